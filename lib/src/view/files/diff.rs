//! Differences between two versions of a file, for people.

use std::time::Duration;

use hashbrown::HashSet;
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag, TextDiff};

use super::version::FileVersion;

/// How long the shortest difference is looked for; then a longer one is shown.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// Lines of a difference that are the same on both sides, before and after each change.
const CONTEXT_LINES: usize = 3;

/// A unified diff of two texts; `None` if they are equal, or not text. A side that does not exist is `None`.
pub fn unified_diff(path: &str, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before == after || old.contains('\0') || new.contains('\0') {
        return None;
    }
    // A name with a line end in it would be a line of the diff.
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let path: String = path.chars().map(escaped).collect();
    let name = |side: &str, text: Option<&str>| text.map_or("/dev/null".to_owned(), |_| format!("{side}/{path}"));
    let mut out = format!("--- {}\n+++ {}\n", name("a", before), name("b", after));
    // A file that is empty has no lines that could tell that it comes or goes.
    if old == new {
        return Some(out);
    }
    let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<&str>>());
    for hunk in similar::group_diff_ops(changes(&old, &new), CONTEXT_LINES) {
        out += &format!("{}\n", UnifiedHunkHeader::new(&hunk));
        for op in hunk {
            let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
            match op.tag() {
                DiffTag::Equal => add_lines(&mut out, ' ', old),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    add_lines(&mut out, '-', old);
                    add_lines(&mut out, '+', new);
                }
            }
        }
    }
    Some(out)
}

fn add_lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// What makes the new lines of the old ones. Lines that only one side has cannot be the same as any: they are left out of the
/// search, whose time grows with the square of what differs.
fn changes(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let [in_old, in_new] = [old, new].map(|lines| lines.iter().copied().collect::<HashSet<&str>>());
    let shared = |lines: &[&str], others: &HashSet<&str>| -> Vec<usize> {
        (0..lines.len()).filter(|at| others.contains(lines[*at])).collect()
    };
    let (shared_old, shared_new) = (shared(old, &in_new), shared(new, &in_old));
    let [few_old, few_new] = [(old, &shared_old), (new, &shared_new)]
        .map(|(lines, shared)| shared.iter().map(|at| lines[*at]).collect::<Vec<&str>>());
    let found = TextDiff::configure().timeout(SEARCH_TIME).diff_slices(&few_old, &few_new);
    let mut ops = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let equal = found.ops().iter().filter(|op| op.tag() == DiffTag::Equal);
    let equal = equal.flat_map(|op| op.old_range().zip(op.new_range()));
    let ends = std::iter::once((old.len(), new.len()));
    for (old_next, new_next) in equal.map(|(old_at, new_at)| (shared_old[old_at], shared_new[new_at])).chain(ends) {
        let (old_len, new_len) = (old_next - old_at, new_next - new_at);
        match (old_len, new_len) {
            (0, 0) => {}
            (_, 0) => ops.push(DiffOp::Delete { old_index: old_at, old_len, new_index: new_at }),
            (0, _) => ops.push(DiffOp::Insert { old_index: old_at, new_index: new_at, new_len }),
            _ => ops.push(DiffOp::Replace { old_index: old_at, old_len, new_index: new_at, new_len }),
        }
        match ops.last_mut() {
            _ if old_next == old.len() => {}
            Some(DiffOp::Equal { len, .. }) if (old_len, new_len) == (0, 0) => *len += 1,
            _ => ops.push(DiffOp::Equal { old_index: old_next, new_index: new_next, len: 1 }),
        }
        (old_at, new_at) = (old_next + 1, new_next + 1);
    }
    ops
}

/// What differs beside the text: permissions, or the target of a link.
pub fn kind_change(before: &FileVersion, after: &FileVersion) -> Option<String> {
    match (before, after) {
        (FileVersion::File { mode: Some(before), .. }, FileVersion::File { mode: Some(after), .. }) => {
            let [before, after] = [before, after].map(|mode| mode & 0o777);
            (before != after).then(|| format!("mode {before:o} → {after:o}"))
        }
        (FileVersion::Link(before), FileVersion::Link(after)) => {
            (before != after).then(|| format!("link {before} → {after}"))
        }
        (FileVersion::File { .. }, FileVersion::Link(to)) => Some(format!("file → link to {to}")),
        (FileVersion::Link(to), FileVersion::File { .. }) => Some(format!("link to {to} → file")),
        (FileVersion::Absent, FileVersion::Link(to)) | (FileVersion::Link(to), FileVersion::Absent) => {
            Some(format!("link to {to}"))
        }
        (FileVersion::File { .. } | FileVersion::Absent, FileVersion::File { .. } | FileVersion::Absent) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_does_not_exist_is_dev_null() {
        for (before, after, expected) in [
            (Some("a\n"), Some(""), Some("--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n")),
            (Some("a\n"), None, Some("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")),
            (None, Some(""), Some("--- /dev/null\n+++ b/f\n")),
            (Some(""), None, Some("--- a/f\n+++ /dev/null\n")),
            (Some("a"), Some("a"), None),
            (Some("a\0"), None, None),
        ] {
            assert_eq!(unified_diff("f", before, after).as_deref(), expected, "{before:?} {after:?}");
        }
        let numbers = |from: u32, to: u32| (from..to).map(|n| format!("{n}\n")).collect::<String>();
        // Lines that only one side has, at both ends and between lines that both have.
        let (old, new) = (format!("a\n{}b\n", numbers(0, 9)), format!("x\n{}y\n{}z", numbers(0, 2), numbers(2, 9)));
        let expected = "--- a/f\n+++ b/f\n@@ -1,6 +1,7 @@\n-a\n+x\n 0\n 1\n+y\n 2\n 3\n 4\n@@ -8,4 +9,4 @@\n 6\n 7\n 8\n-b\n+z\n\\ No newline at end of file\n";
        assert_eq!(unified_diff("f", Some(&old), Some(&new)).as_deref(), Some(expected));
        assert_eq!(unified_diff("a\n+b", None, Some("")).as_deref(), Some("--- /dev/null\n+++ b/a\\n+b\n"));
    }
}
