//! What a person typed: line by line as it was typed, and fenced code as in an answer.
//!
//! Nothing else in a prompt is Markdown: a person who types `2*3*4` or `# todo` means just that.

use super::{Look, clean, markdown, wrap};

/// Renders a prompt as lines that end with a newline, each after this margin unless it is empty.
pub(crate) fn render(text: &str, look: &Look, margin: &str) -> String {
    let text = clean::text(text.trim_matches(['\n', '\r']).trim_end());
    let (mut out, mut rest) = (String::new(), &*text);
    while let Some((before, code, after)) = split_at_code(rest) {
        lines(before, look, margin, &mut out);
        markdown::render(code, look).lines().for_each(|row| push(row, margin, &mut out));
        rest = after;
    }
    lines(rest, look, margin, &mut out);
    out
}

/// Line by line: somebody may have pasted a file of a hundred megabytes.
fn lines(text: &str, look: &Look, margin: &str, out: &mut String) {
    let Some(text) = text.strip_suffix('\n').or(Some(text).filter(|text| !text.is_empty())) else { return };
    for line in text.split('\n') {
        wrap::typed(line, look.width.max(1)).iter().for_each(|row| push(row, margin, out));
    }
}

fn push(row: &str, margin: &str, out: &mut String) {
    out.extend([if row.is_empty() { "" } else { margin }, row, "\n"]);
}

/// The first fenced code, with what is before and after it. A fence that nobody closes is text.
fn split_at_code(text: &str) -> Option<(&str, &str, &str)> {
    let mut lines = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end - line.len(), *end, line))
    });
    let (start, mark, length) = lines.find_map(|(start, _, line)| {
        let (mark, length, info) = fence(line)?;
        // `` ```x``` `` on one line is code in a sentence.
        (!info.contains('`')).then_some((start, mark, length))
    })?;
    let closes =
        |line: &str| fence(line).is_some_and(|(other, long, info)| other == mark && long >= length && info.is_empty());
    let (_, end, _) = lines.find(|(_, _, line)| closes(line))?;
    Some((&text[..start], &text[start..end], &text[end..]))
}

/// The mark of a fence, its length, and what follows it.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    /// A line that is indented further is no fence.
    const MAX_INDENT: usize = 3;
    let trimmed = line.trim_start_matches(' ');
    let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = trimmed.trim_start_matches(mark);
    let length = trimmed.len() - info.len();
    (length >= 3 && line.len() - trimmed.len() <= MAX_INDENT).then_some((mark, length, info.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_code_is_laid_out_as_in_an_answer() {
        let look = Look { width: 24, code: 40, colour: false };
        let text = "Why does this fail, as *you* said?\n\n```python\nprint(round(tide.height, 2), tide.time)\n```\n# and this\n~~~\na\n~~~";
        insta::assert_snapshot!(render(text, &look, ""), @"
        Why does this fail, as
        *you* said?

          print(round(tide.height, 2), tide.time
          )
        # and this
          a
        ");
    }

    #[test]
    fn what_is_no_fence_stays_as_it_was_typed() {
        let look = Look { width: 40, code: 40, colour: false };
        for text in [
            "",
            "```\nnever closed",
            "say ```x``` now",
            "```x``` now\n```",
            "    ```\n    a\n    ```",
            "``\na\n``",
            "```\na\n~~~",
        ] {
            assert_eq!(render(text, &look, "").trim_end(), text, "{text:?}");
        }
    }

    #[test]
    fn colours_mark_code_and_control_characters_stay_harmless() {
        let look = Look { width: 40, code: 40, colour: true };
        let shown = render("a\n```rust\nfn main() {} // \u{1b}[31m\n```\nb", &look, "");
        assert!(shown.starts_with("a\n") && shown.ends_with("\nb\n") && shown.contains("␛[31m"), "{shown:?}");
        assert!(shown.contains("\u{1b}["), "highlighted: {shown:?}");
    }
}
