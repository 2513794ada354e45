//! Lines that a patch replaces: of `apply_patch`, of unified diffs, and of the differences that agents note.

use hashbrown::HashMap;
use serde_json::Value;

use super::edit::{Edit, FileEdit, Way};
use crate::view::tool_view::FileAction;
use crate::view::tool_view::patch::{self, PatchedFile};

/// Some lines, and what comes in their place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line that it begins at, before and after, counted from 0; without them, the first fitting place counts.
    starts: Option<(usize, usize)>,
    /// Lines that must be passed before it.
    headings: Vec<String>,
    lines: Vec<PatchLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PatchLine {
    sign: char,
    text: String,
    /// It is the last line of the file and has no line feed.
    is_unended: bool,
}

/// Which of several places counts, if a hunk does not tell its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// The first one that fits.
    First,
    /// None, unless only one fits.
    Only,
}

/// The text with the hunks applied; `None` if one does not fit.
pub(crate) fn apply(hunks: &[Hunk], text: &str, places: Places) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut index: HashMap<&str, Vec<usize>> = HashMap::new();
    if hunks.iter().any(|hunk| hunk.starts.is_none()) {
        lines.iter().enumerate().for_each(|(at, line)| index.entry(bare(line)).or_default().push(at));
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for hunk in hunks {
        let old: Vec<&PatchLine> = hunk.lines.iter().filter(|line| line.sign != '+').collect();
        let at = hunk.place(&lines, &index, done, &old, places)?;
        lines[done..at].iter().for_each(|line| out.push_str(line));
        done = at;
        for line in &hunk.lines {
            match line.sign {
                '+' => {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(&line.text);
                    out.push_str(if line.is_unended { "" } else { "\n" });
                }
                sign => {
                    if sign == ' ' {
                        out.push_str(lines[done]);
                    }
                    done += 1;
                }
            }
        }
    }
    lines[done..].iter().for_each(|line| out.push_str(line));
    Some(out)
}

/// A line without its end.
fn bare(line: &str) -> &str {
    line.strip_suffix('\n').unwrap_or(line)
}

/// The hunks that lead back.
pub(crate) fn inverse(hunks: &[Hunk]) -> Vec<Hunk> {
    let turned = |line: &PatchLine| {
        let sign = match line.sign {
            '+' => '-',
            '-' => '+',
            other => other,
        };
        PatchLine { sign, ..line.clone() }
    };
    let inverse = |hunk: &Hunk| Hunk {
        starts: hunk.starts.map(|(old, new)| (new, old)),
        headings: hunk.headings.clone(),
        lines: hunk.lines.iter().map(turned).collect(),
    };
    hunks.iter().map(inverse).collect()
}

impl Hunk {
    /// Where the old lines stand, from `from` on. `index` has the places of each line, if the hunk does not name its own.
    fn place(
        &self,
        lines: &[&str],
        index: &HashMap<&str, Vec<usize>>,
        from: usize,
        old: &[&PatchLine],
        places: Places,
    ) -> Option<usize> {
        let fits = |at: usize| {
            let there = lines.get(at..).and_then(|rest| rest.get(..old.len()));
            there.is_some_and(|there| there.iter().zip(old).all(|(line, old)| bare(line) == old.text))
        };
        if let Some((start, _)) = self.starts {
            return Some(start).filter(|start| *start >= from && fits(*start));
        }
        let places_of = |text: &str, from: usize| {
            let all = index.get(text).map(Vec::as_slice).unwrap_or_default();
            &all[all.partition_point(|at| *at < from)..]
        };
        let mut from = from;
        for heading in &self.headings {
            from = places_of(heading, from).first()? + 1;
        }
        if old.is_empty() {
            // `apply_patch` adds lines without a place at the end.
            let at = if self.headings.is_empty() { lines.len() } else { from };
            return (places == Places::First || lines.is_empty()).then_some(at);
        }
        // Only the places of the rarest line are tried.
        let candidates = old.iter().enumerate().map(|(number, line)| (number, places_of(&line.text, from + number)));
        let (number, candidates) = candidates.min_by_key(|(_, candidates)| candidates.len())?;
        let mut fitting = candidates.iter().map(|at| at - number).filter(|at| fits(*at));
        let first = fitting.next()?;
        (places == Places::First || fitting.next().is_none()).then_some(first)
    }

    fn push(&mut self, line: &str) {
        match line.chars().next() {
            Some('\\') => self.lines.iter_mut().rev().take(1).for_each(|last| last.is_unended = true),
            Some(sign @ ('+' | '-' | ' ')) => {
                self.lines.push(PatchLine { sign, text: line[1..].to_owned(), is_unended: false });
            }
            // An empty context line may have lost its blank.
            None => self.lines.push(PatchLine { sign: ' ', text: String::new(), is_unended: false }),
            Some(_) => {}
        }
    }
}

/// The hunks of a `structuredPatch`: `[{oldStart, newStart, lines}]`.
pub(crate) fn structured(patch: &Value) -> Option<Vec<Hunk>> {
    let hunk = |value: &Value| {
        let number = |key: &str| value.get(key)?.as_u64().and_then(|number| usize::try_from(number).ok());
        let starts = starts((number("oldStart")?, number("oldLines")?), (number("newStart")?, number("newLines")?));
        let mut hunk = Hunk { starts: Some(starts), ..Hunk::default() };
        for line in value.get("lines")?.as_array()? {
            hunk.push(line.as_str()?);
        }
        Some(hunk)
    };
    patch.as_array()?.iter().map(hunk).collect()
}

/// The hunks of a unified diff of one file.
pub(crate) fn unified(text: &str) -> Option<Vec<Hunk>> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in text.lines() {
        if line.starts_with("@@") {
            hunks.push(Hunk { starts: Some(numbers(line)?), ..Hunk::default() });
        } else if let Some(hunk) = hunks.last_mut() {
            hunk.push(line);
        }
    }
    (!hunks.is_empty()).then_some(hunks)
}

/// `@@ -1,3 +1,4 @@`
fn numbers(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace().skip(1);
    let mut side = |sign: char| {
        let range = words.next()?.strip_prefix(sign)?;
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some(starts(side('-')?, side('+')?))
}

/// Lines are counted from 1; a side without lines begins after the line that it names.
fn starts(old: (usize, usize), new: (usize, usize)) -> (usize, usize) {
    let start = |(start, count): (usize, usize)| if count == 0 { start } else { start.saturating_sub(1) };
    (start(old), start(new))
}

/// The changes of a patch in the format of `apply_patch`, file by file.
pub(crate) fn patched_files(text: &str) -> Vec<FileEdit> {
    patch::patched_files(text).iter().flat_map(edits).collect()
}

fn edits(file: &PatchedFile<'_>) -> Vec<FileEdit> {
    let edit = |path: &str, ways| FileEdit { path: path.to_owned(), before: None, edit: Edit(ways), after: None };
    let way = match file.action {
        FileAction::Write => {
            let content: String =
                file.lines.iter().map(|line| format!("{}\n", line.strip_prefix('+').unwrap_or(line))).collect();
            // Codex adds a file over one that is there, and its log does not tell.
            Way::Write(content.into())
        }
        FileAction::Delete => Way::Delete,
        FileAction::Edit => Way::Patch { hunks: hunks(&file.lines), ends_with_newline: true },
    };
    match file.moved_to {
        None => vec![edit(file.path, vec![way])],
        // What the new file holds follows from the old one, which is not looked at here.
        Some(to) => vec![edit(file.path, vec![Way::Delete]), edit(to, Vec::new())],
    }
}

fn hunks(lines: &[&str]) -> Vec<Hunk> {
    let mut hunks = vec![Hunk::default()];
    for line in lines {
        let Some(heading) = line.strip_prefix("@@") else {
            hunks.iter_mut().rev().take(1).for_each(|hunk| hunk.push(line));
            continue;
        };
        if hunks.last().is_some_and(|hunk| !hunk.lines.is_empty()) {
            hunks.push(Hunk::default());
        }
        let heading = Some(heading.trim()).filter(|heading| !heading.is_empty());
        hunks.iter_mut().rev().take(1).for_each(|hunk| hunk.headings.extend(heading.map(str::to_owned)));
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(patch: &str, before: &str) -> Option<String> {
        let files = patched_files(patch);
        let after = files[0].edit.apply(Some(before.as_bytes()))?;
        Some(after.map_or_else(|| "(deleted)".to_owned(), |bytes| String::from_utf8(bytes).unwrap()))
    }

    #[test]
    fn a_patch_finds_its_lines() {
        let patch = |hunks: &str| format!("*** Begin Patch\n*** Update File: a\n{hunks}\n*** End Patch\n");
        for (hunks, before, after) in [
            ("@@\n-b\n+B", "a\nb\nc\n", Some("a\nB\nc\n")),
            ("-b\n+B", "a\nb\nc", Some("a\nB\nc\n")),
            ("@@ fn two\n-x\n+y", "fn one\nx\nfn two\nx\n", Some("fn one\nx\nfn two\ny\n")),
            ("@@\n a\n-b\n+B\n@@\n-d\n+D", "a\nb\nc\nd\n", Some("a\nB\nc\nD\n")),
            ("@@\n+end", "a\n", Some("a\nend\n")),
            ("@@\n-z\n+B", "a\nb\n", None),
        ] {
            assert_eq!(patched(&patch(hunks), before).as_deref(), after, "{hunks}");
        }
    }

    #[test]
    fn a_patch_is_taken_back_where_only_one_place_fits() {
        let patch = |hunks: &str| format!("*** Begin Patch\n*** Update File: a\n{hunks}\n*** End Patch\n");
        for (hunks, after, before) in [
            ("@@\n-b\n+B", "a\nB\n", Some("a\nb\n")),
            ("@@\n-b\n+B", "B\na\nB\n", None),
            // The deleted line may have stood anywhere.
            ("@@\n-b", "a\n", None),
            ("@@\n a\n-b", "a\n", Some("a\nb\n")),
        ] {
            let found = patched_files(&patch(hunks))[0].edit.unapply(Some(after.as_bytes()));
            assert_eq!(found.as_deref(), before.map(str::as_bytes), "{hunks}");
        }
    }

    #[test]
    fn a_place_beyond_the_file_does_not_fit() {
        for start in [4, u64::MAX] {
            let patch = serde_json::json!([{"oldStart": start, "oldLines": 2, "newStart": start, "newLines": 1, "lines": ["-a", "-b"]}]);
            assert_eq!(apply(&structured(&patch).unwrap(), "a\nb\n", Places::Only), None);
        }
    }

    #[test]
    fn a_patch_adds_deletes_and_moves() {
        let patch = "*** Begin Patch\n*** Add File: new\n+one\n+two\n*** Delete File: old\n*** Update File: from\n*** Move to: to\n@@\n-a\n+b\n*** End Patch";
        let files = patched_files(patch);
        let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(names, ["new", "old", "from", "to"]);
        assert_eq!((&files[0].before, &files[0].edit.0), (&None, &vec![Way::Write("one\ntwo\n".into())]));
        assert_eq!(files[1].edit.0, [Way::Delete]);
    }

    #[test]
    fn a_unified_diff_leads_there_and_back() {
        for (diff, before, after) in [
            ("--- a\n+++ b\n@@ -1,3 +1,2 @@\n a\n-b\n c\n", "a\nb\nc\n", "a\nc\n"),
            ("@@ -0,0 +1,2 @@\n+a\n+b\n", "", "a\nb\n"),
            ("@@ -1,2 +0,0 @@\n-a\n-b\n", "a\nb\n", ""),
            ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a", "a\n"),
            ("@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a\n", "a"),
            ("@@ -2,0 +3,1 @@\n+x\n", "a\nb\nc\n", "a\nb\nx\nc\n"),
        ] {
            let hunks = unified(diff).unwrap();
            assert_eq!(apply(&hunks, before, Places::Only).as_deref(), Some(after), "{diff}");
            assert_eq!(apply(&inverse(&hunks), after, Places::Only).as_deref(), Some(before), "{diff}");
        }
    }
}
