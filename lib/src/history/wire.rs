//! Ids and names as APIs take them: letters, digits, `_` and `-`, and not too many.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::{Out, Turn};

/// What a tool's name may have in every API.
const NAME_CHARS: usize = 64;

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// An id of at most `max` characters. A call and its result get the same one, and no other call does.
pub(super) fn id(id: &str, max: usize) -> Cow<'_, str> {
    if id.len() <= max && !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let hash = format!("_{:016x}", xxh3_64(id.as_bytes()));
    let plain = id.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(plain.take(max - hash.len()).chain(hash.chars()).collect())
}

/// A tool's name.
pub(super) fn name<'n>(name: &'n str, turn: &Turn<'_>, out: &mut Out<'_>) -> Cow<'n, str> {
    if (1..=NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain: String = name.chars().take(NAME_CHARS).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain = if plain.is_empty() { "unknown".to_owned() } else { plain };
    out.note(turn, format!("the tool {name:?} is called {plain}: the API does not take its name"));
    Cow::Owned(plain)
}
