//! The lines in which two texts differ, with some lines around them.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::change::{Builder, Sign};

/// Equal lines around a difference.
const CONTEXT_LINES: usize = 3;

/// Larger texts are not compared: one is removed, the other is added.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Comparing costs the product of the lines in which the texts differ: larger differences are one replacement.
const MAX_DIFFERENT_LINES: usize = 2_000;

/// The same for their bytes, because each comparison of two lines may read both.
const MAX_DIFFERENT_BYTES: usize = 256 << 10;

/// Adds the difference of two texts.
pub(super) fn compare<'a>(old: &'a str, new: &'a str, out: &mut Builder<'a>) {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        return replace(old.lines(), new.lines(), out);
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let after = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]);
    let equal = |lines: &[&'a str], out: &mut Builder<'a>| lines.iter().for_each(|line| out.line(Sign::Context, line));
    out.hunk(None);
    equal(&old[before.saturating_sub(CONTEXT_LINES)..before], out);
    let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    if old_middle.len().max(new_middle.len()) > MAX_DIFFERENT_LINES
        || bytes(old_middle) + bytes(new_middle) > MAX_DIFFERENT_BYTES
    {
        replace(old_middle.iter().copied(), new_middle.iter().copied(), out);
    } else {
        for op in capture_diff_slices(Algorithm::Myers, old_middle, new_middle) {
            match op {
                DiffOp::Equal { old_index, len, .. } if len > 2 * CONTEXT_LINES => {
                    equal(&old_middle[old_index..old_index + CONTEXT_LINES], out);
                    out.hunk(None);
                    equal(&old_middle[old_index + len - CONTEXT_LINES..old_index + len], out);
                }
                DiffOp::Equal { old_index, len, .. } => equal(&old_middle[old_index..old_index + len], out),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    replace(
                        old_middle[op.old_range()].iter().copied(),
                        new_middle[op.new_range()].iter().copied(),
                        out,
                    );
                }
            }
        }
    }
    equal(&old_rest[old_rest.len() - after..][..after.min(CONTEXT_LINES)], out);
}

fn replace<'a>(old: impl Iterator<Item = &'a str>, new: impl Iterator<Item = &'a str>, out: &mut Builder<'a>) {
    old.for_each(|line| out.line(Sign::Removed, line));
    new.for_each(|line| out.line(Sign::Added, line));
}
