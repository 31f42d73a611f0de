//! Cells: the characters that no class of a pattern tells apart.

use std::collections::HashMap;

use regex_syntax::hir::ClassUnicode;

use super::AnalysisError;

/// The number of a cell.
pub(crate) type Cell = u8;

/// Characters a block of the table of cells.
const BLOCK: usize = 256;

/// A partition of all characters, as a table in two levels: linear to make, two loads to ask.
#[derive(Clone)]
pub(crate) struct Cells {
    /// For each 256 characters in a row, which block of `blocks` has their cells.
    index: Vec<u16>,
    blocks: Vec<[Cell; BLOCK]>,
    /// A character of each cell, if possible one that can be read.
    representatives: Vec<char>,
}

impl Cells {
    /// The coarsest partition of which every class is a union, and for each class the cells
    /// that it is made of.
    pub(super) fn new(classes: &[ClassUnicode]) -> Result<(Self, Vec<Vec<bool>>), AnalysisError> {
        let mut borders = vec![0_u32];
        for range in classes.iter().flat_map(|class| class.ranges()) {
            borders.push(u32::from(range.start()));
            borders.push(u32::from(range.end()) + 1);
        }
        borders.sort_unstable();
        borders.dedup();
        borders.retain(|&border| border <= u32::from(char::MAX));
        let mut numbers: HashMap<Vec<u64>, Cell> = HashMap::new();
        let mut members: Vec<Vec<bool>> = vec![Vec::new(); classes.len()];
        let mut next_range = vec![0; classes.len()];
        let mut runs = Vec::with_capacity(borders.len());
        for &border in &borders {
            let mut signature = vec![0_u64; classes.len().div_ceil(64)];
            for (number, class) in classes.iter().enumerate() {
                let ranges = class.ranges();
                while ranges
                    .get(next_range[number])
                    .is_some_and(|range| u32::from(range.end()) < border)
                {
                    next_range[number] += 1;
                }
                let inside = ranges
                    .get(next_range[number])
                    .is_some_and(|range| u32::from(range.start()) <= border);
                signature[number / 64] |= u64::from(inside) << (number % 64);
            }
            let count = numbers.len();
            let cell = match numbers.get(&signature) {
                Some(&cell) => cell,
                None => {
                    let cell = Cell::try_from(count)
                        .map_err(|_| AnalysisError::too_large("more than 256 cells"))?;
                    for (number, cells) in members.iter_mut().enumerate() {
                        cells.push(signature[number / 64] >> (number % 64) & 1 == 1);
                    }
                    numbers.insert(signature, cell);
                    cell
                }
            };
            runs.push((border, cell));
        }
        Ok((Self::from_runs(&runs), members))
    }

    fn from_runs(runs: &[(u32, Cell)]) -> Self {
        let mut index = Vec::new();
        let mut blocks: Vec<[Cell; BLOCK]> = Vec::new();
        let mut known: HashMap<[Cell; BLOCK], u16> = HashMap::new();
        let mut run = 0;
        for first in (0..=u32::from(char::MAX)).step_by(BLOCK) {
            let mut block = [0; BLOCK];
            for (character, cell) in (first..).zip(&mut block) {
                while runs.get(run + 1).is_some_and(|next| next.0 <= character) {
                    run += 1;
                }
                *cell = runs[run].1;
            }
            let number = *known.entry(block).or_insert_with(|| {
                blocks.push(block);
                // There are 4,352 blocks at most.
                (blocks.len() - 1) as u16
            });
            index.push(number);
        }
        let count = runs.iter().map(|run| usize::from(run.1) + 1).max();
        let mut representatives: Vec<Option<char>> = vec![None; count.unwrap_or(1)];
        let readable = ('!'..='~')
            .chain([' ', '\n', '\t'])
            .chain('\u{A0}'..='\u{FFFF}');
        let cells = Self {
            index,
            blocks,
            representatives: Vec::new(),
        };
        let starts = runs.iter().filter_map(|run| char::from_u32(run.0));
        for character in readable.chain(starts) {
            let representative = &mut representatives[usize::from(cells.of(character))];
            representative.get_or_insert(character);
        }
        let representatives = representatives.into_iter();
        Self {
            representatives: representatives.map(|found| found.unwrap_or('\0')).collect(),
            ..cells
        }
    }

    /// The cell of a character. O(1).
    #[inline]
    pub(crate) fn of(&self, character: char) -> Cell {
        self.at(u32::from(character))
    }

    #[inline]
    fn at(&self, character: u32) -> Cell {
        let block = self.index[character as usize / BLOCK];
        self.blocks[usize::from(block)][character as usize % BLOCK]
    }

    /// The number of cells.
    pub(crate) fn count(&self) -> usize {
        self.representatives.len()
    }

    /// A character of the cell.
    pub(crate) fn representative(&self, cell: Cell) -> char {
        self.representatives[usize::from(cell)]
    }

    /// The text of representatives of these cells.
    pub(super) fn text(&self, cells: &[Cell]) -> String {
        cells
            .iter()
            .map(|&cell| self.representative(cell))
            .collect()
    }
}
