//! The distinct rows of the pair relation: which tokens cannot follow.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::forests::{Forests, NONE};

/// Blocks of a row: one bit each in a word.
const BLOCKS: u32 = 64;

/// Sets of forbidden predecessor numbers, each stored once.
///
/// A row is cut into 64 blocks. One word says in which blocks something is forbidden; the intervals of
/// such a block lie together, so a query is two or three loads, and none from the intervals for most.
pub(crate) struct Rows {
    /// Log of the numbers a block.
    shift: u32,
    rows: Vec<Row>,
    /// Of each block that has intervals, rows one after the other, where its intervals begin; and the
    /// end of the last.
    starts: Vec<u32>,
    /// First and last number of each interval, counted from the beginning of its block.
    spans: Vec<(u16, u16)>,
}

/// 16 bytes.
#[derive(Clone, Copy)]
struct Row {
    /// Bit g: something is forbidden in block g.
    mask: u64,
    /// Where the row's blocks begin in `starts`.
    first: u32,
    /// How many numbers are forbidden.
    forbidden: u32,
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
            starts: Vec::new(),
            spans: Vec::new(),
        };
        let mut table: HashTable<(u32, u64)> = HashTable::with_capacity(count / 3);
        let hasher = FixedState::default();
        let by_start = ByStart::new(forests);
        let mut of_number = vec![0_u32; count];
        // Indexes of rectangles, and the row of what stands on the stack up to them.
        let mut stack: Vec<(u32, u32)> = Vec::new();
        let mut intervals: Vec<(u32, u32)> = Vec::new();
        let empty = rows.intern(&[], &mut table, &hasher);
        let rectangle = |index: u32| forests.rectangles[index as usize];
        for number in 0..count as u32 {
            while stack
                .last()
                .is_some_and(|&(index, _)| rectangle(index).left_end <= number)
            {
                stack.pop();
            }
            for &index in by_start.at(number) {
                stack.push((index, NONE));
            }
            let row = match stack.last() {
                None => empty,
                Some(&(_, row)) if row != NONE => row,
                Some(_) => {
                    intervals.clear();
                    intervals.extend(stack.iter().map(|&(index, _)| {
                        let rectangle = rectangle(index);
                        (rectangle.right_start, rectangle.right_end)
                    }));
                    unite(&mut intervals);
                    rows.intern(&intervals, &mut table, &hasher)
                }
            };
            if let Some(top) = stack.last_mut() {
                top.1 = row;
            }
            of_number[number as usize] = row;
        }
        rows.starts.push(rows.spans.len() as u32);
        let numbers = forests.successor_number.iter();
        let of_rank = numbers.map(|&number| of_number[number as usize]).collect();
        rows.rows.shrink_to_fit();
        rows.starts.shrink_to_fit();
        rows.spans.shrink_to_fit();
        (rows, of_rank)
    }

    /// The number of this row, which is added where it is new.
    fn intern(
        &mut self,
        intervals: &[(u32, u32)],
        table: &mut HashTable<(u32, u64)>,
        hasher: &FixedState,
    ) -> u32 {
        let mut state = hasher.build_hasher();
        for &(start, end) in intervals {
            state.write_u64(u64::from(start) << 32 | u64::from(end));
        }
        let hash = state.finish();
        // Built at the end, and taken away again where the row is there.
        let row = self.rows.len();
        let (starts, spans) = (self.starts.len(), self.spans.len());
        self.append(intervals);
        let is_same = |&(other, its): &(u32, u64)| its == hash && self.is_same(other as usize, row);
        if let Some(&(found, _)) = table.find(hash, is_same) {
            self.rows.truncate(row);
            self.starts.truncate(starts);
            self.spans.truncate(spans);
            return found;
        }
        table.insert_unique(hash, (row as u32, hash), |&(_, hash)| hash);
        row as u32
    }

    fn append(&mut self, intervals: &[(u32, u32)]) {
        let mut row = Row {
            mask: 0,
            first: self.starts.len() as u32,
            forbidden: 0,
        };
        let within = (1_u32 << self.shift) - 1;
        for &(start, end) in intervals {
            row.forbidden += end - start;
            let mut from = start;
            while from < end {
                let block = from >> self.shift;
                let last = (end - 1).min(from | within);
                if row.mask >> block & 1 == 0 {
                    row.mask |= 1 << block;
                    self.starts.push(self.spans.len() as u32);
                }
                self.spans
                    .push(((from & within) as u16, (last & within) as u16));
                from = last + 1;
            }
        }
        self.rows.push(row);
    }

    /// Whether the last row, `row`, is row `other`.
    fn is_same(&self, other: usize, row: usize) -> bool {
        let (a, b) = (self.rows[other], self.rows[row]);
        let blocks = a.mask.count_ones();
        if a.mask != b.mask || a.forbidden != b.forbidden {
            return false;
        }
        (0..blocks).all(|block| self.spans[self.raw(a, block)] == self.spans[self.raw(b, block)])
    }

    /// Where the intervals of a row's `index`th block with any are, while rows are still added.
    fn raw(&self, row: Row, index: u32) -> Range<usize> {
        let at = (row.first + index) as usize;
        let end = self.starts.get(at + 1);
        self.starts[at] as usize..end.map_or(self.spans.len(), |&end| end as usize)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many tokens a row forbids.
    pub(crate) fn forbidden(&self, row: u32) -> u32 {
        self.rows[row as usize].forbidden
    }

    /// Whether a row forbids anything in the block of this predecessor number.
    #[inline]
    pub(crate) fn may_forbid(&self, row: u32, number: u32) -> bool {
        let block = number >> self.shift;
        self.rows[row as usize].mask >> block & 1 != 0
    }

    /// Whether a row forbids the token with this predecessor number.
    #[inline]
    pub(crate) fn forbids(&self, row: u32, number: u32) -> bool {
        let row = self.rows[row as usize];
        let block = number >> self.shift;
        row.mask >> block & 1 != 0 && self.is_within(self.block(row, block), number)
    }

    /// Whether one of these rows forbids its number; each must [perhaps](Rows::may_forbid) do so. What
    /// all have to wait for is read together.
    pub(crate) fn forbid_any(&self, pairs: &[(u32, u32)]) -> bool {
        const TOGETHER: usize = 16;
        let mut blocks: [Range<usize>; TOGETHER] = core::array::from_fn(|_| 0..0);
        pairs.chunks(TOGETHER).any(|pairs| {
            for (&(row, number), block) in pairs.iter().zip(&mut blocks) {
                *block = self.block(self.rows[row as usize], number >> self.shift);
            }
            let mut pairs = pairs.iter().zip(&blocks);
            pairs.any(|(&(_, number), block)| self.is_within(block.clone(), number))
        })
    }

    /// Where the intervals of a block of a row are that has some.
    #[inline]
    fn block(&self, row: Row, block: u32) -> Range<usize> {
        let index = row.first + (row.mask & ((1 << block) - 1)).count_ones();
        let start = self.starts[index as usize] as usize;
        start..self.starts[index as usize + 1] as usize
    }

    /// Whether a number is in one of these intervals, which are those of its block.
    #[inline]
    fn is_within(&self, spans: Range<usize>, number: u32) -> bool {
        let within = (number & ((1 << self.shift) - 1)) as u16;
        let mut spans = &self.spans[spans];
        while spans.len() > 8 {
            let middle = spans.len() / 2;
            spans = match spans[middle].0 <= within {
                true => &spans[middle..],
                false => &spans[..middle],
            };
        }
        for &(first, last) in spans {
            if within <= last {
                return first <= within;
            }
        }
        false
    }

    /// The intervals of a row, ascending, with something between any two.
    pub(crate) fn intervals(&self, row: u32) -> Intervals<'_> {
        let row = self.rows[row as usize];
        Intervals {
            rows: self,
            mask: row.mask,
            next_block: row.first,
            base: 0,
            spans: 0..0,
            open: None,
        }
    }

    /// Calls `visit` for each interval of a row, cut at the ends of blocks, ascending.
    #[inline]
    pub(crate) fn for_each_span(&self, row: u32, mut visit: impl FnMut(u32, u32)) {
        let row = self.rows[row as usize];
        let mut mask = row.mask;
        let mut index = row.first as usize;
        while mask != 0 {
            let base = mask.trailing_zeros() << self.shift;
            mask &= mask - 1;
            let (start, end) = (self.starts[index] as usize, self.starts[index + 1] as usize);
            index += 1;
            for &(first, last) in &self.spans[start..end] {
                visit(base + u32::from(first), base + u32::from(last) + 1);
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.starts.capacity() * size_of::<u32>()
            + self.spans.capacity() * size_of::<(u16, u16)>()
    }
}

/// See [`Rows::intervals`].
#[derive(Clone)]
pub(crate) struct Intervals<'r> {
    rows: &'r Rows,
    mask: u64,
    next_block: u32,
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
                if self.mask == 0 {
                    return self.open.take();
                }
                self.base = self.mask.trailing_zeros() << self.rows.shift;
                self.mask &= self.mask - 1;
                let starts = &self.rows.starts;
                let index = self.next_block as usize;
                let end = starts.get(index + 1);
                self.spans =
                    starts[index] as usize..end.map_or(self.rows.spans.len(), |&end| end as usize);
                self.next_block += 1;
                continue;
            };
            let (first, last) = self.rows.spans[at];
            let (start, end) = (
                self.base + u32::from(first),
                self.base + u32::from(last) + 1,
            );
            match &mut self.open {
                Some(open) if open.end == start => open.end = end,
                open => {
                    if let Some(before) = open.replace(start..end) {
                        return Some(before);
                    }
                }
            }
        }
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

/// Rectangles by the beginning of their left interval, in the order of priority: the longest first.
struct ByStart {
    ends: Vec<u32>,
    order: Vec<u32>,
}

impl ByStart {
    fn new(forests: &Forests) -> Self {
        let mut ends = vec![0_u32; forests.len() + 1];
        for rectangle in &forests.rectangles {
            ends[rectangle.left_start as usize] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        let mut order = vec![0; forests.rectangles.len()];
        for (index, rectangle) in (0_u32..).zip(&forests.rectangles) {
            let next = &mut ends[rectangle.left_start as usize];
            order[*next as usize] = index;
            *next += 1;
        }
        Self { ends, order }
    }

    fn at(&self, number: u32) -> &[u32] {
        let start = match number {
            0 => 0,
            _ => self.ends[number as usize - 1],
        };
        &self.order[start as usize..self.ends[number as usize] as usize]
    }
}

/// Sorts intervals, and joins those that overlap or touch.
pub(crate) fn unite(intervals: &mut Vec<(u32, u32)>) {
    intervals.sort_unstable();
    let mut kept = 0;
    for index in 0..intervals.len() {
        let (start, end) = intervals[index];
        match kept {
            0 => {}
            _ if start <= intervals[kept - 1].1 => {
                let last = &mut intervals[kept - 1].1;
                *last = end.max(*last);
                continue;
            }
            _ => {}
        }
        intervals[kept] = (start, end);
        kept += 1;
    }
    intervals.truncate(kept);
}
