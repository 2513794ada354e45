//! Differences as tables. Line numbers and signs are drawn by the style sheet, so that a copy holds code only.

use maud::{Markup, PreEscaped, html};
use scrollback::view::tool_view::{Changes, DiffLine, FileAction, FileChange, Sign};

use super::text::{self, push};
use super::words::plural;
use super::{Look, code};

/// More lines of one difference than this are cut on a page, and in a file.
const PAGE_LINES: usize = 200;
const FILE_LINES: usize = 5_000;

/// A line with the numbers that it has before and after.
pub struct NumberedLine<'t> {
    sign: Sign,
    before: Option<usize>,
    after: Option<usize>,
    text: &'t str,
}

/// What a call changes: one table for each file.
pub fn changes(changes: &Changes<'_>, look: &Look<'_>) -> Markup {
    let mut left = line_limit(look);
    html! {
        @for file in &changes.files {
            @if changes.files.len() > 1 { p.diff-name { code { (text::line(look.relative(file.path))) } " " (counts(file)) } }
            (one_file(file, &mut left, look))
        }
        @if changes.left_out > 0 { span.tool-more { (plural(changes.left_out, "changed line")) " more" } }
    }
}

fn line_limit(look: &Look<'_>) -> usize {
    match look.medium {
        super::Medium::Page(_) => PAGE_LINES,
        super::Medium::File => FILE_LINES,
    }
}

fn one_file(file: &FileChange<'_>, left: &mut usize, look: &Look<'_>) -> Markup {
    let total: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let mut rows = String::new();
    let mut shown = 0;
    for hunk in &file.hunks {
        if let Some(heading) = hunk.heading.filter(|heading| !heading.trim().is_empty()) {
            rows.push_str("<tr class=\"hunk\"><td colspan=\"2\">");
            push(&mut rows, &text::brief(heading, 200));
            rows.push_str("</td></tr>");
        }
        let lines = &hunk.lines[..hunk.lines.len().min(*left)];
        let budget = look.text_limit();
        for (line, marked) in lines.iter().zip(marked_lines(lines, code::language_of(file.path))) {
            if rows.len() > budget.saturating_mul(4) {
                break;
            }
            push_row(&mut rows, line.sign, &[], &marked);
            shown += 1;
            *left -= 1;
        }
    }
    html! {
        @if file.action == FileAction::Delete && file.hunks.is_empty() { p.diff-name { "deleted" } }
        @if let Some(to) = file.moved_to { p.diff-name { "moved to " code { (text::line(look.relative(to))) } } }
        @if !rows.is_empty() {
            table class="diff diff-nonum" aria-label={ "Change of " (text::brief(look.relative(file.path), 200)) } {
                colgroup { col.s; col; }
                tbody { (PreEscaped(rows)) }
            }
        }
        @if shown < total { span.tool-more { (plural(total - shown, "line")) " more" } }
    }
}

/// `+4 −2`.
pub fn counts(file: &FileChange<'_>) -> Markup {
    html! {
        @if file.added > 0 { span.add-n { "+" (file.added) } }
        @if file.added > 0 && file.removed > 0 { " " }
        @if file.removed > 0 { span.del-n { "−" (file.removed) } }
    }
}

/// The lines of a unified difference, without its file names, and how many were added and removed.
pub fn numbered(unified: &str) -> (Vec<NumberedLine<'_>>, usize, usize) {
    let (mut lines, mut before, mut after, mut added, mut removed) = (Vec::new(), 0, 0, 0, 0);
    let mut in_hunk = false;
    for line in unified.lines() {
        if let Some(heading) = line.strip_prefix("@@ -") {
            let start =
                |text: Option<&str>| text.and_then(|text| text.split([',', ' ']).next()?.parse().ok()).unwrap_or(1);
            before = start(Some(heading));
            after = start(heading.split_once('+').map(|(_, rest)| rest));
            in_hunk = true;
            continue;
        }
        if !in_hunk {
            continue;
        }
        let (sign, text) = match line.as_bytes().first() {
            Some(b'+') => (Sign::Added, &line[1..]),
            Some(b'-') => (Sign::Removed, &line[1..]),
            Some(b' ') => (Sign::Context, &line[1..]),
            _ => continue,
        };
        let (is_before, is_after) = (sign != Sign::Added, sign != Sign::Removed);
        lines.push(NumberedLine { sign, before: is_before.then_some(before), after: is_after.then_some(after), text });
        before += usize::from(is_before);
        after += usize::from(is_after);
        added += usize::from(sign == Sign::Added);
        removed += usize::from(sign == Sign::Removed);
    }
    (lines, added, removed)
}

/// A numbered difference as a table.
pub fn numbered_table(path: &str, lines: &[NumberedLine<'_>], limit: usize) -> Markup {
    let shown = &lines[..lines.len().min(limit)];
    let plain: Vec<DiffLine<'_>> = shown.iter().map(|line| DiffLine { sign: line.sign, text: line.text }).collect();
    let mut rows = String::new();
    let mut last: Option<usize> = None;
    for (line, marked) in shown.iter().zip(marked_lines(&plain, code::language_of(path))) {
        let number = line.after.or(line.before);
        if last.zip(number).is_some_and(|(last, number)| line.sign == Sign::Context && number > last + 1) {
            rows.push_str("<tr class=\"hunk\"><td colspan=\"4\">…</td></tr>");
        }
        last = line.after.or(last);
        push_row(&mut rows, line.sign, &[("n old", line.before), ("n", line.after)], &marked);
    }
    html! {
        table.diff aria-label={ "Change of " (path) } {
            colgroup { col class="n old"; col.n; col.s; col; }
            tbody { (PreEscaped(rows)) }
        }
        @if shown.len() < lines.len() { span.tool-more { (plural(lines.len() - shown.len(), "line")) " more" } }
    }
}

fn push_row(rows: &mut String, sign: Sign, numbers: &[(&str, Option<usize>)], marked: &str) {
    let (class, sign) = match sign {
        Sign::Added => (" class=\"add\"", "+"),
        Sign::Removed => (" class=\"del\"", "−"),
        Sign::Context => ("", ""),
    };
    rows.push_str(&format!("<tr{class}>"));
    for (class, number) in numbers {
        let number = number.map(|number| format!(" data-n=\"{number}\"")).unwrap_or_default();
        rows.push_str(&format!("<td class=\"{class}\"{number}></td>"));
    }
    rows.push_str(&format!("<td class=\"s\">{sign}</td><td class=\"t\">{marked}</td></tr>"));
}

/// Lines as HTML. Where as many lines go as come, what differs within each pair is marked.
fn marked_lines(lines: &[DiffLine<'_>], language: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, sign: Sign| lines[from..].iter().take_while(|line| line.sign == sign).count();
        let gone = run(at, Sign::Removed);
        let come = run(at + gone, Sign::Added);
        if gone == 0 || gone != come {
            let plain = (gone + come).max(1);
            out.extend(lines[at..at + plain].iter().map(|line| code::line(line.text, language, None)));
            at += plain;
            continue;
        }
        let pairs: Vec<(String, String)> = (0..gone)
            .map(|pair| marked_pair(lines[at + pair].text, lines[at + gone + pair].text, language))
            .collect();
        out.extend(pairs.iter().map(|(old, _)| old.clone()));
        out.extend(pairs.into_iter().map(|(_, new)| new));
        at += gone + come;
    }
    out
}

/// Marks what is between the common beginning and the common end of two lines, by whole words.
fn marked_pair(old: &str, new: &str, language: &str) -> (String, String) {
    let start: usize = words(old).zip(words(new)).take_while(|(a, b)| a == b).map(|(word, _)| word.len()).sum();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let (old_words, new_words): (Vec<&str>, Vec<&str>) = (words(old_rest).collect(), words(new_rest).collect());
    let pairs = old_words.iter().rev().zip(new_words.iter().rev());
    let end: usize = pairs.take_while(|(a, b)| a == b).map(|(word, _)| word.len()).sum();
    let marked = |line: &str, tag: &str| {
        let middle = start..line.len() - end;
        // A mark over the whole line says nothing more than its colour.
        code::line(line, language, Some((middle, tag)).filter(|(middle, _)| middle.len() < line.len()))
    };
    (marked(old, "del"), marked(new, "ins"))
}

/// Runs of letters and digits, and every other character by itself.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, more) = rest.split_at(end);
        rest = more;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_within_a_line_is_marked_by_words() {
        let (old, new) = marked_pair("-> Map<Time> {", "-> Vec<Row<b>> {", "");
        assert_eq!(old, "-&gt; <del>Map&lt;Time</del>&gt; {");
        assert_eq!(new, "-&gt; <ins>Vec&lt;Row&lt;b&gt;</ins>&gt; {");
        assert_eq!(marked_pair("a", "b", "rs"), ("a".to_owned(), "b".to_owned()));
        assert_eq!(marked_pair("é", "éè", "").1, "éè");
        let (_, new) = marked_pair("let x = \"a b\";", "let x = \"a c\";", "rs");
        assert_eq!(
            new,
            "<span class=\"hl-keyword\">let</span> x = <span class=\"hl-string\">&quot;a </span><ins><span class=\"hl-string\">c</span></ins><span class=\"hl-string\">&quot;</span>;"
        );
    }

    #[test]
    fn a_unified_difference_has_the_numbers_of_its_lines() {
        let (lines, added, removed) = numbered("--- a\n+++ b\n@@ -3,2 +3,2 @@\n one\n-two\n+2\n");
        let shown: Vec<_> = lines.iter().map(|line| (line.before, line.after, line.text)).collect();
        assert_eq!(shown, [(Some(3), Some(3), "one"), (Some(4), None, "two"), (None, Some(4), "2")]);
        assert_eq!((added, removed), (1, 1));
        assert!(numbered_table("<x>", &lines, 10).0.contains("aria-label=\"Change of &lt;x&gt;\""));
    }
}
