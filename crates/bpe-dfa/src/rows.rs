//! The distinct rows of the pair relation: which tokens cannot follow.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::forests::{Forests, NONE, Rectangle};
use crate::rectangles::ByStart;

/// Blocks of a row: one bit each in a word.
const BLOCKS: u32 = 64;

/// Sets of forbidden predecessor numbers, each stored once.
///
/// A row is cut into 64 blocks. One word says in which blocks something is forbidden, and for most queries
/// that is all. Everything else of a row lies together, so that it is a line of memory or two: of each block
/// that has intervals how many the row has up to its end, then the intervals.
pub(crate) struct Rows {
    /// Log of the numbers a block.
    shift: u32,
    rows: Vec<Row>,
    /// Rows one after the other: counts, then intervals by [`span`].
    cells: Vec<u32>,
}

/// 16 bytes.
#[derive(Clone, Copy)]
struct Row {
    mask: u64,
    first: u32,
    /// How many numbers are forbidden.
    forbidden: u32,
}

/// What is needed of a row to ask it, so that it can lie where its tokens do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// Bit g: something is forbidden in block g.
    pub(crate) mask: u64,
    /// Where the row begins in the cells.
    pub(crate) first: u32,
}

impl Head {
    /// Of a row that forbids nothing.
    pub(crate) const NOTHING: Self = Self { mask: 0, first: 0 };
}

/// First and last number of an interval, counted from the beginning of its block, as one number that sorts.
fn span(first: u32, last: u32) -> u32 {
    first << 16 | last
}

fn ends_of(span: u32) -> (u32, u32) {
    (span >> 16, span & 0xffff)
}

impl Rows {
    /// The distinct rows, and of each token, by rank, its row.
    ///
    /// A walk over the successor forest: rectangles are entered at their token and left where their
    /// interval ends, the last entered first, since the intervals of a forest are nested. A row is
    /// needed for each depth of the stack at which some token stands.
    pub(crate) fn new(forests: &Forests) -> (Self, Vec<u32>) {
        let count = forests.len();
        let shift = shift_for(count);
        let mut rows = Self {
            shift,
            rows: Vec::new(),
            cells: Vec::new(),
        };
        let mut table: HashTable<(u32, u64)> = HashTable::with_capacity(count / 3);
        let hasher = FixedState::default();
        let by_start = ByStart::new(forests);
        let mut of_number = vec![0_u32; count];
        // Rectangles, and the row of what stands on the stack up to them.
        let mut stack: Vec<(Rectangle, u32)> = Vec::new();
        let mut intervals: Vec<Range<u32>> = Vec::new();
        let empty = rows.intern(&[], &mut table, &hasher);
        for number in 0..count as u32 {
            while stack
                .last()
                .is_some_and(|(rectangle, _)| rectangle.left_end <= number)
            {
                stack.pop();
            }
            stack.extend(
                by_start
                    .at(number)
                    .iter()
                    .map(|&rectangle| (rectangle, NONE)),
            );
            let row = match stack.last() {
                None => empty,
                Some(&(_, row)) if row != NONE => row,
                Some(_) => {
                    intervals.clear();
                    let right = |(rectangle, _): &(Rectangle, u32)| {
                        rectangle.right_start..rectangle.right_end
                    };
                    intervals.extend(stack.iter().map(right));
                    unite(&mut intervals);
                    rows.intern(&intervals, &mut table, &hasher)
                }
            };
            if let Some(top) = stack.last_mut() {
                top.1 = row;
            }
            of_number[number as usize] = row;
        }
        let numbers = forests.successor_number.iter();
        let of_rank = numbers.map(|&number| of_number[number as usize]).collect();
        rows.rows.shrink_to_fit();
        rows.cells.shrink_to_fit();
        (rows, of_rank)
    }

    /// The number of this row, which is added where it is new.
    fn intern(
        &mut self,
        intervals: &[Range<u32>],
        table: &mut HashTable<(u32, u64)>,
        hasher: &FixedState,
    ) -> u32 {
        let mut state = hasher.build_hasher();
        for &Range { start, end } in intervals {
            state.write_u64(u64::from(start) << 32 | u64::from(end));
        }
        let hash = state.finish();
        // Built at the end, and taken away again where the row is there.
        let row = self.rows.len();
        let cells = self.cells.len();
        self.append(intervals);
        let is_same = |&(other, its): &(u32, u64)| its == hash && self.is_same(other as usize, row);
        if let Some(&(found, _)) = table.find(hash, is_same) {
            self.rows.truncate(row);
            self.cells.truncate(cells);
            return found;
        }
        table.insert_unique(hash, (row as u32, hash), |&(_, hash)| hash);
        row as u32
    }

    fn append(&mut self, intervals: &[Range<u32>]) {
        let within = (1_u32 << self.shift) - 1;
        let blocks =
            |interval: &Range<u32>| interval.start >> self.shift..=(interval.end - 1) >> self.shift;
        let mask = intervals
            .iter()
            .flat_map(blocks)
            .fold(0, |mask, block| mask | 1_u64 << block);
        let first = self.cells.len();
        let counts = mask.count_ones() as usize;
        self.cells.resize(first + counts, 0);
        let mut forbidden = 0;
        for &Range { start, end } in intervals {
            forbidden += end - start;
            let mut from = start;
            while from < end {
                let block = from >> self.shift;
                let last = (end - 1).min(from | within);
                self.cells.push(span(from & within, last & within));
                let index = (mask & ((1 << block) - 1)).count_ones() as usize;
                self.cells[first + index] = (self.cells.len() - first - counts) as u32;
                from = last + 1;
            }
        }
        self.rows.push(Row {
            mask,
            first: first as u32,
            forbidden,
        });
    }

    /// Whether the last row, `row`, is row `other`.
    fn is_same(&self, other: usize, row: usize) -> bool {
        let (a, b) = (self.rows[other], self.rows[row]);
        let (one, other) = (self.head(other as u32), self.head(row as u32));
        a.mask == b.mask
            && a.forbidden == b.forbidden
            && self.cells[self.counts(one)] == self.cells[self.counts(other)]
            && self.cells[self.spans(one)] == self.cells[self.spans(other)]
    }

    /// Where the counts of a row are.
    fn counts(&self, head: Head) -> Range<usize> {
        head.first as usize..head.first as usize + head.mask.count_ones() as usize
    }

    /// Where the intervals of a row are.
    fn spans(&self, head: Head) -> Range<usize> {
        let counts = self.counts(head);
        let spans = self.cells[counts.clone()].last().copied().unwrap_or(0);
        counts.end..counts.end + spans as usize
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many tokens a row forbids.
    pub(crate) fn forbidden(&self, row: u32) -> u32 {
        self.rows[row as usize].forbidden
    }

    /// What is needed of a row to ask it.
    pub(crate) fn head(&self, row: u32) -> Head {
        let Row { mask, first, .. } = self.rows[row as usize];
        Head { mask, first }
    }

    /// Whether a row forbids anything in the block of this predecessor number.
    #[inline]
    pub(crate) fn may_forbid(&self, head: Head, number: u32) -> bool {
        let block = number >> self.shift & (BLOCKS - 1);
        head.mask >> block & 1 != 0
    }

    /// Whether a row forbids the token with this predecessor number.
    #[inline]
    pub(crate) fn forbids(&self, head: Head, number: u32) -> bool {
        self.may_forbid(head, number) && self.is_within(self.block(head, number), number)
    }

    /// Whether one of these rows forbids its number; each must [perhaps](Rows::may_forbid) do so. What
    /// all have to wait for is read together.
    pub(crate) fn forbid_any(&self, pairs: &[(Head, u32)]) -> bool {
        const TOGETHER: usize = 16;
        let mut blocks: [Range<usize>; TOGETHER] = core::array::from_fn(|_| 0..0);
        pairs.chunks(TOGETHER).any(|pairs| {
            for (&(head, number), block) in pairs.iter().zip(&mut blocks) {
                *block = self.block(head, number);
            }
            let pairs = pairs.iter().zip(&blocks);
            let within = |(&(_, number), block): (&(Head, u32), &Range<usize>)| {
                self.is_within(block.clone(), number)
            };
            pairs.map(within).fold(false, |any, it| any | it)
        })
    }

    /// Where the intervals of the block of a number are, of a row that has some there.
    #[inline]
    fn block(&self, head: Head, number: u32) -> Range<usize> {
        let block = number >> self.shift & (BLOCKS - 1);
        let index = (head.mask & ((1 << block) - 1)).count_ones() as usize;
        let first = head.first as usize;
        let spans = first + head.mask.count_ones() as usize;
        let start = match index {
            0 => 0,
            index => self.cells[first + index - 1],
        };
        spans + start as usize..spans + self.cells[first + index] as usize
    }

    /// Whether a number is in one of these intervals, which are those of its block.
    #[inline]
    fn is_within(&self, spans: Range<usize>, number: u32) -> bool {
        let within = number & ((1 << self.shift) - 1);
        let most = span(within, 0xffff);
        let mut spans = &self.cells[spans];
        while spans.len() > 16 {
            let middle = spans.len() / 2;
            spans = match spans[middle] <= most {
                true => &spans[middle..],
                false => &spans[..middle],
            };
        }
        // The last that does not begin behind it.
        let begun = spans.iter().filter(|&&span| span <= most).count();
        match begun.checked_sub(1).and_then(|last| spans.get(last)) {
            Some(&span) => within <= ends_of(span).1,
            None => false,
        }
    }

    /// The intervals of a row, ascending, with something between any two.
    pub(crate) fn intervals(&self, row: u32) -> Intervals<'_> {
        let head = self.head(row);
        let spans = self.spans(head);
        Intervals {
            rows: self,
            mask: head.mask,
            counts: self.counts(head),
            first: spans.start,
            base: 0,
            spans: spans.start..spans.start,
            open: None,
        }
    }

    /// Calls `visit` for each interval of a row, cut at the ends of blocks, ascending.
    #[inline]
    pub(crate) fn for_each_span(&self, row: u32, mut visit: impl FnMut(u32, u32)) {
        let head = self.head(row);
        let mut mask = head.mask;
        let spans = &self.cells[self.spans(head)];
        let mut start = 0;
        for &end in &self.cells[self.counts(head)] {
            let base = mask.trailing_zeros() << self.shift;
            mask &= mask - 1;
            for &span in &spans[start..end as usize] {
                let (first, last) = ends_of(span);
                visit(base + first, base + last + 1);
            }
            start = end as usize;
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Row>() + self.cells.capacity() * size_of::<u32>()
    }
}

/// See [`Rows::intervals`].
#[derive(Clone)]
pub(crate) struct Intervals<'r> {
    rows: &'r Rows,
    mask: u64,
    /// The counts of blocks that are to come.
    counts: Range<usize>,
    /// Where the intervals of the row begin.
    first: usize,
    base: u32,
    spans: Range<usize>,
    /// The last interval, which may go on in the next block.
    open: Option<Range<u32>>,
}

impl Iterator for Intervals<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        loop {
            let Some(at) = self.spans.next() else {
                let Some(count) = self.counts.next() else {
                    return self.open.take();
                };
                self.base = self.mask.trailing_zeros() << self.rows.shift;
                self.mask &= self.mask - 1;
                let end = self.first + self.rows.cells[count] as usize;
                self.spans = self.spans.end..end;
                continue;
            };
            if let Some(before) = join(&mut self.open, self.base, self.rows.cells[at]) {
                return Some(before);
            }
        }
    }

    /// Without what has to be remembered between two.
    fn fold<B, F: FnMut(B, Range<u32>) -> B>(mut self, init: B, mut with: F) -> B {
        let cells = &self.rows.cells;
        let mut sum = init;
        loop {
            for &span in &cells[self.spans.clone()] {
                if let Some(before) = join(&mut self.open, self.base, span) {
                    sum = with(sum, before);
                }
            }
            let Some(count) = self.counts.next() else {
                break;
            };
            self.base = self.mask.trailing_zeros() << self.rows.shift;
            self.mask &= self.mask - 1;
            self.spans = self.spans.end..self.first + cells[count] as usize;
        }
        match self.open {
            Some(last) => with(sum, last),
            None => sum,
        }
    }
}

/// Joins an interval to the open one, or takes its place, and returns what stood there.
#[inline]
fn join(open: &mut Option<Range<u32>>, base: u32, span: u32) -> Option<Range<u32>> {
    let (first, last) = ends_of(span);
    let (start, end) = (base + first, base + last + 1);
    match open {
        Some(open) if open.end == start => {
            open.end = end;
            None
        }
        open => open.replace(start..end),
    }
}

/// The smallest block for which 64 are enough.
fn shift_for(count: usize) -> u32 {
    let mut shift = 0;
    while count as u64 > u64::from(BLOCKS) << shift {
        shift += 1;
    }
    shift
}

/// Sorts intervals, and joins those that overlap or touch.
pub(crate) fn unite(intervals: &mut Vec<Range<u32>>) {
    intervals.sort_unstable_by_key(|interval| interval.start);
    let mut kept = 0;
    for index in 0..intervals.len() {
        let Range { start, end } = intervals[index];
        match kept {
            0 => {}
            _ if start <= intervals[kept - 1].end => {
                let last = &mut intervals[kept - 1].end;
                *last = end.max(*last);
                continue;
            }
            _ => {}
        }
        intervals[kept] = start..end;
        kept += 1;
    }
    intervals.truncate(kept);
}
