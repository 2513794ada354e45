//! What a program printed, as people saw it: without the sequences that colour a terminal or move about in it.

/// The text without escape sequences. The model still gets them, as the agent sends them.
///
/// ```text
/// ESC [ parameters letter        colours, moves       ESC ] text BEL, or ESC ] text ESC \\        titles, links
/// ```
pub(super) fn without_escapes(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    let mut is_inside = false;
    for piece in pieces {
        let rest = match piece.chars().next() {
            Some('[') => {
                let end = piece[1..].find(|c: char| ('@'..='~').contains(&c));
                end.map_or("", |end| &piece[end + 2..])
            }
            Some(']') => piece.split_once('\u{7}').map_or("", |(_, rest)| rest),
            // The end of what an `ESC ]` began.
            Some('\\') if is_inside => &piece[1..],
            // A sequence of one letter, or nothing that we know.
            Some(letter) => &piece[letter.len_utf8()..],
            None => "",
        };
        is_inside = piece.starts_with(']') && !piece.contains('\u{7}');
        out += rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_printed_text_is_left() {
        for (text, printed) in [
            ("plain\ntext", "plain\ntext"),
            ("\u{1b}[31mred\u{1b}[0m, \u{1b}[38;5;246mgrey\u{1b}[39m", "red, grey"),
            ("\u{1b}]8;;https://example.org\u{7}link\u{1b}]8;;\u{7}", "link"),
            ("\u{1b}]0;title\u{1b}\\after", "after"),
            ("\u{1b}Mup \u{1b}é", "up "),
            ("cut \u{1b}[38;5", "cut "),
            ("\u{1b}", ""),
        ] {
            assert_eq!(without_escapes(text), printed, "{text:?}");
        }
    }
}
