//! The rows of parts, up to 128 of one session together: a frequent word has thousands of them, and SQLite takes longer to find one row
//! than to read a block of them.
//!
//! ```text
//! first row, session, count │ of each column: widths, base │ of each column: the values, as wide as the greatest needs │ checksum
//! ```
//!
//! A column's base is its smallest number but 0, and a value is how far a number is above it, plus one; 0 stands for itself. So one row
//! is read without those before it, and takes some twenty bytes.

use crate::checked::{with_sum, without_sum};
use crate::index::SourceId;
use crate::query::Labels;

/// The most rows in a block. Fewer take more room, more have older rows beside the newest one.
pub(super) const BLOCK_ROWS: usize = 128;

/// What is known of a part beside its words. Names are the numbers that they have in their table; none is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartRow {
    pub(super) record: u32,
    pub(super) part: u32,
    pub(super) role: u8,
    pub(super) labels: Labels,
    pub(super) tool: u32,
    pub(super) files: u32,
    pub(super) model: u32,
    pub(super) at: Option<i64>,
    pub(super) repeat: u64,
    pub(super) length: u32,
    /// Whether some of its text is not indexed.
    pub(super) is_cut: bool,
    /// Whether it was forgotten: the rows after it keep their numbers.
    pub(super) is_gone: bool,
}

/// What is left of a row that was forgotten.
pub(super) const GONE_ROW: PartRow = PartRow {
    record: 0,
    part: 0,
    role: 0,
    labels: Labels::from_bits(0),
    tool: 0,
    files: 0,
    model: 0,
    at: None,
    repeat: 0,
    length: 0,
    is_cut: false,
    is_gone: true,
};

const COLUMNS: usize = 10;

/// Bits of the column of roles.
const ROLE_MASK: u64 = 0b0000_1111;
const CUT: u64 = 0b0001_0000;
const GONE: u64 = 0b0010_0000;

/// Times before 1970 are negative; the order stays.
const TIME_BIAS: u64 = 1 << 63;

impl PartRow {
    fn numbers(&self) -> [u64; COLUMNS] {
        let flags = if self.is_cut { CUT } else { 0 } | if self.is_gone { GONE } else { 0 };
        [
            u64::from(self.record),
            u64::from(self.part),
            u64::from(self.role) | flags,
            u64::from(self.labels.bits()),
            u64::from(self.tool),
            u64::from(self.files),
            u64::from(self.model),
            self.at.map_or(0, |at| (at as u64 ^ TIME_BIAS).saturating_add(1)),
            self.repeat,
            u64::from(self.length),
        ]
    }

    fn of_numbers(numbers: [u64; COLUMNS]) -> PartRow {
        let [record, part, role, labels, tool, files, model, at, repeat, length] = numbers;
        PartRow {
            record: record as u32,
            part: part as u32,
            role: (role & ROLE_MASK) as u8,
            labels: Labels::from_bits(labels as u8),
            tool: tool as u32,
            files: files as u32,
            model: model as u32,
            at: at.checked_sub(1).map(|at| (at ^ TIME_BIAS) as i64),
            repeat,
            length: length as u32,
            is_cut: role & CUT != 0,
            is_gone: role & GONE != 0,
        }
    }
}

/// The number of a row is less: whatever is done with it, it does not overflow.
const ROWS_LIMIT: i64 = 1 << 48;

/// The bytes of a block.
pub(super) fn to_bytes(first: i64, source: SourceId, rows: &[PartRow]) -> Vec<u8> {
    debug_assert!(rows.len() <= BLOCK_ROWS, "{} rows", rows.len());
    let rows: Vec<[u64; COLUMNS]> = rows.iter().map(PartRow::numbers).collect();
    let (mut head, mut values) = (whose(first, source).to_vec(), Vec::new());
    head.push(rows.len() as u8);
    for column in 0..COLUMNS {
        let numbers = || rows.iter().map(move |row| row[column]);
        let base = numbers().filter(|number| *number > 0).min().unwrap_or(0);
        let value = |number: u64| if number == 0 { 0 } else { number - base + 1 };
        let width = width(numbers().map(value).max().unwrap_or(0));
        let base_width = self::width(base);
        head.push((base_width << 4 | width) as u8);
        head.extend_from_slice(&base.to_le_bytes()[..base_width]);
        numbers().for_each(|number| values.extend_from_slice(&value(number).to_le_bytes()[..width]));
    }
    head.append(&mut values);
    with_sum(head)
}

/// What says that a block is the one that it is taken for.
fn whose(first: i64, source: SourceId) -> [u8; 16] {
    let mut whose = [0; 16];
    whose[..8].copy_from_slice(&first.to_le_bytes());
    whose[8..].copy_from_slice(&source.0.to_le_bytes());
    whose
}

/// In how many bytes a number fits.
fn width(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

/// A block that was read.
pub(super) struct Block {
    bytes: Vec<u8>,
    count: usize,
    columns: [Column; COLUMNS],
}

/// Where the values of a column are.
#[derive(Clone, Copy, Default)]
struct Column {
    base: u64,
    width: usize,
    begin: usize,
}

impl Block {
    /// A block as it was stored; `None` if it is damaged, or another one.
    pub(super) fn of_bytes(first: i64, source: SourceId, stored: &[u8]) -> Option<Block> {
        let bytes = without_sum(stored)?
            .strip_prefix(&whose(first, source))
            .filter(|_| (0..ROWS_LIMIT).contains(&first))?;
        let count = usize::from(*bytes.first()?);
        let (mut at, mut columns) = (1, [Column::default(); COLUMNS]);
        for column in &mut columns {
            let widths = usize::from(*bytes.get(at)?);
            let (base_width, width) = (widths >> 4, widths & 0b1111);
            let base = bytes.get(at + 1..at + 1 + base_width)?;
            *column = Column { base: number(base)?, width, begin: 0 };
            at += 1 + base_width;
        }
        for column in &mut columns {
            column.begin = at;
            at += column.width * count;
        }
        let is_whole = at == bytes.len() && columns.iter().all(|column| column.width <= size_of::<u64>());
        is_whole.then(|| Block { bytes: bytes.to_vec(), count, columns })
    }

    /// How many rows it has, forgotten ones included.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A row by its position; `None` if the block has fewer, or the row was forgotten.
    pub(super) fn row(&self, position: usize) -> Option<PartRow> {
        self.any_row(position).filter(|row| !row.is_gone)
    }

    /// All rows, forgotten ones included.
    pub(super) fn rows(&self) -> Vec<PartRow> {
        (0..self.count).filter_map(|position| self.any_row(position)).collect()
    }

    fn any_row(&self, position: usize) -> Option<PartRow> {
        if position >= self.count {
            return None;
        }
        let mut numbers = [0; COLUMNS];
        for (number, Column { base, width, begin }) in numbers.iter_mut().zip(self.columns) {
            let from = begin + width * position;
            let value = self::number(self.bytes.get(from..from + width)?)?;
            *number = if value == 0 { 0 } else { base.wrapping_add(value - 1) };
        }
        Some(PartRow::of_numbers(numbers))
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    let mut all = [0; size_of::<u64>()];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(all))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_row() -> impl Strategy<Value = PartRow> {
        let names = (0..3_u32, any::<u32>(), 0..2_u32);
        let flags = (0..4_u8, 0..32_u8, any::<bool>(), any::<bool>());
        let time = prop_oneof![
            Just(None),
            Just(Some(i64::MIN)),
            any::<i64>().prop_map(|at| Some(at >> 1)),
            (1_700_000_000_000_000..1_700_000_100_000_000_i64).prop_map(Some)
        ];
        (any::<u32>(), 0..3_u32, flags, names, time, any::<u64>(), any::<u32>()).prop_map(
            |(record, part, (role, labels, is_cut, is_gone), (tool, files, model), at, repeat, length)| PartRow {
                record,
                part,
                role,
                labels: Labels::from_bits(labels),
                tool,
                files,
                model,
                at,
                repeat,
                length,
                is_cut,
                is_gone,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rows_come_back_as_they_were(rows in prop::collection::vec(any_row(), 0..=BLOCK_ROWS)) {
            let (bytes, whose) = (to_bytes(7, SourceId(3), &rows), SourceId(3));
            prop_assert!(Block::of_bytes(8, whose, &bytes).is_none() && Block::of_bytes(7, SourceId(4), &bytes).is_none());
            let block = Block::of_bytes(7, whose, &bytes).unwrap();
            prop_assert_eq!(block.rows(), rows.clone());
            for (position, row) in rows.iter().enumerate() {
                prop_assert_eq!(block.row(position), Some(*row).filter(|row| !row.is_gone));
            }
            prop_assert_eq!(block.row(rows.len()), None);
        }

        #[test]
        fn other_bytes_are_no_block(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let whose = SourceId(3);
            prop_assert!(Block::of_bytes(7, whose, &bytes).is_none());
            // A sum that fits does not make them one that reads beyond its end.
            let bytes = with_sum([&super::whose(7, whose), &bytes[..]].concat());
            if let Some(block) = Block::of_bytes(7, whose, &bytes) {
                prop_assert_eq!(block.rows().len(), block.count());
            }
        }
    }

    #[test]
    fn a_usual_row_takes_some_twenty_bytes() {
        let row = |number: u32| PartRow {
            record: 1_000 + number,
            part: 0,
            role: 2,
            labels: Labels::from_bits(number.is_multiple_of(7).into()),
            tool: number % 5,
            files: 40_000 + number * 3,
            model: 1,
            at: Some(1_770_000_000_000_000 + i64::from(number) * 30_000_000),
            repeat: u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            length: number * 37,
            is_cut: number.is_multiple_of(9),
            is_gone: false,
        };
        let rows: Vec<PartRow> = (0..BLOCK_ROWS as u32).map(row).collect();
        let bytes = to_bytes(0, SourceId(1), &rows).len() / BLOCK_ROWS;
        assert!(bytes <= 24, "{bytes}");
    }
}
