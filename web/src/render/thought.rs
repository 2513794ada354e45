//! What a model thought: folded, with its first words.

use maud::{Markup, html};

use super::icon::chevron;
use super::markdown;
use super::text;
use super::{Look, Medium};

/// The first words that are shown while it is folded.
const PEEK_CHARS: usize = 120;

/// A model's reasoning. Providers may hide it: then only that is known.
pub fn reasoning(thought: &str, more: Option<String>, look: &Look<'_>) -> Markup {
    if thought.trim().is_empty() {
        return html! { p.meta { "Thinking that the provider does not show" } };
    }
    fold("Thinking", thought, more, look)
}

/// A long text under a label.
pub fn fold(label: &str, source: &str, more: Option<String>, look: &Look<'_>) -> Markup {
    let (shown, is_whole) = look.cut(source);
    html! {
        details.thought {
            summary {
                (chevron()) span.thought-label { (label) } " "
                span.thought-peek dir="auto" { (text::brief(&plain(shown), PEEK_CHARS)) }
            }
            (markdown::prose(shown, look.level))
            @if !is_whole { (rest(&source[shown.len()..], more, look)) }
        }
    }
}

/// The rest of a long text: a page has the way to all of it, a file the rest itself, as it is.
pub fn rest(rest: &str, address: Option<String>, look: &Look<'_>) -> Markup {
    match look.medium {
        Medium::Page(_) => way(address),
        Medium::File => html! { pre.raw tabindex="0" { (look.room.later(rest)) } },
    }
}

/// The way to all of a text.
pub fn way(address: Option<String>) -> Markup {
    html! {
        @match address {
            Some(address) => a class="tool-more link" href=(address) { "Show all of it" },
            None => span.tool-more { "…" },
        }
    }
}

/// A text without the signs of Markdown that would stand out in one line.
fn plain(source: &str) -> String {
    let start = &source[..source.floor_char_boundary(PEEK_CHARS * 8)];
    start.trim_start_matches(['#', ' ']).replace(['`'], "").replace("**", "")
}
