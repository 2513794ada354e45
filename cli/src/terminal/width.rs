//! The width of clean text on a terminal, in columns.
//!
//! It is measured per grapheme cluster, so that widths add up wherever a line is cut.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The display columns of one line.
pub(crate) fn of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let (plain, rest) = text.split_at(plain_start(text));
    plain.len() + atoms(rest).map(|(_, columns)| columns).sum::<usize>()
}

/// The text in exactly `columns` columns: cut with `…` or padded with spaces.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if text.is_ascii() {
        let mut fitted = String::with_capacity(columns + "…".len());
        match columns.checked_sub(text.len()) {
            Some(free) => {
                fitted.push_str(text);
                pad(&mut fitted, free);
            }
            None if columns == 0 => {}
            None => {
                fitted.push_str(&text[..columns - 1]);
                fitted.push('…');
            }
        }
        return fitted;
    }
    let mut kept = plain_start(text).min(columns.saturating_sub(1));
    let mut kept_columns = kept;
    let mut used = kept;
    for (atom, wide) in atoms(&text[kept..]) {
        used += wide;
        if used > columns {
            break;
        }
        if used < columns {
            kept += atom.len();
            kept_columns = used;
        }
    }
    let mut out = String::with_capacity(columns);
    if used <= columns {
        out.push_str(text);
        kept_columns = used;
    } else if columns > 0 {
        out.push_str(text.get(..kept).unwrap_or_default());
        out.push('…');
        kept_columns += 1;
    }
    pad(&mut out, columns - kept_columns);
    out
}

/// Adds so many spaces, many at a time.
fn pad(out: &mut String, mut columns: usize) {
    const SPACES: &str = "                                ";
    while columns > 0 {
        let some = columns.min(SPACES.len());
        out.push_str(&SPACES[..some]);
        columns -= some;
    }
}

/// How much of the start is clean ASCII, one column per byte: looking for clusters costs fifty times more.
fn plain_start(text: &str) -> usize {
    // In blocks: a search that may stop at each byte takes one at a time.
    const BLOCK: usize = 32;
    let plain_blocks = text.as_bytes().chunks(BLOCK).take_while(|block| block.is_ascii()).count();
    let searched = (plain_blocks * BLOCK).min(text.len());
    match text.as_bytes()[searched..].iter().position(|byte| !byte.is_ascii()) {
        None => text.len(),
        // A mark may belong to the character before it.
        Some(at) => (searched + at).saturating_sub(1),
    }
}

/// The smallest pieces a line may be cut into, with their columns.
///
/// A cluster wider than two columns (a run of jamo has no limit) is split into characters, each with the marks that
/// follow it.
pub(crate) fn atoms(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).flat_map(|cluster| {
        let columns = cluster.width();
        let mut rest = cluster;
        std::iter::from_fn(move || {
            let end = if columns <= 2 { rest.len() } else { end_of_first_character(rest) };
            let atom;
            (atom, rest) = rest.split_at(end);
            (end > 0).then(|| (atom, if columns <= 2 { columns } else { atom.width() }))
        })
    })
}

fn end_of_first_character(cluster: &str) -> usize {
    let takes_room = |c: char| c.width().is_some_and(|columns| columns > 0);
    cluster
        .char_indices()
        .skip(1)
        .find(|&(_, c)| takes_room(c))
        .map_or(cluster.len(), |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::terminal::clean;

    #[test]
    fn wide_and_joined_characters_are_counted_as_shown() {
        for (text, columns) in [("", 0), ("abc", 3), ("世界", 4), ("e\u{301}", 1), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("…│", 2)]
        {
            assert_eq!(of(text), columns, "{text}");
        }
    }

    #[test]
    fn text_is_cut_or_padded_to_the_column() {
        insta::assert_snapshot!(
            [fit("four", 6), fit("four", 4), fit("four", 3), fit("世界人", 5), fit("世界人", 4), fit("x", 0), fit("", 2)]
                .map(|text| format!("[{text}]")).join("\n"),
            @"
        [four  ]
        [four]
        [fo…]
        [世界…]
        [世… ]
        []
        [  ]
        "
        );
    }

    proptest! {
        #[test]
        fn fitted_text_has_exactly_the_columns_asked_for(source in any::<String>(), columns in 0_usize..60) {
            prop_assert_eq!(of(&fit(&clean::line(&source), columns)), columns);
        }

        #[test]
        fn atoms_are_the_whole_text(source in "\\PC*|[\u{1100}-\u{11ff}]*|[क्\u{94d}षि]*") {
            prop_assert_eq!(atoms(&source).map(|(atom, _)| atom).collect::<String>(), source);
        }
    }
}
