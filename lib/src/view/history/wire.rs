//! Names as APIs take them. Of calls and tools: letters, digits, `_` and `-`, and not too many; of people: before their words.

use std::borrow::Cow;

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::fluux::IN_A_ROOM;
use super::{Out, Turn};
use crate::model::issue::one_line;

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// An id of at most `max` characters. A call and its result get the same one, and no other call does.
pub(crate) fn id(id: &str, max: usize) -> Cow<'_, str> {
    if id.len() <= max && !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let hash = format!("_{:016x}", xxh3_64(id.as_bytes()));
    let plain = id.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(plain.take(max - hash.len()).chain(hash.chars()).collect())
}

/// A tool's name of at most `max` characters.
pub(super) fn name<'n>(name: &'n str, max: usize, turn: &Turn<'_>, out: &mut Out<'_>) -> Cow<'n, str> {
    let plain = tool_name(name, max);
    if plain != name {
        out.note(turn, format!("the tool {name:?} is called {plain}: the API does not take its name"));
    }
    plain
}

/// The same, without a word about it.
pub(crate) fn tool_name(name: &str, max: usize) -> Cow<'_, str> {
    if (1..=max).contains(&name.len()) && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    match name.chars().count() {
        0 => Cow::Borrowed("unknown"),
        // Long names of one server begin alike.
        count if count > max => Cow::Owned(id(name, max).into_owned()),
        _ => name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect(),
    }
}

/// Says who speaks before what they say. Only in a room does it matter.
pub(super) fn name_speaker(turn: &Turn<'_>, pieces: &mut [Value]) {
    name_sender(turn.sender.as_deref(), pieces);
}

/// The same, for anybody; true when it was said.
pub(crate) fn name_sender(sender: Option<&str>, pieces: &mut [Value]) -> bool {
    let Some(name) = in_a_room(sender) else { return false };
    let first = pieces.iter_mut().find_map(|piece| piece.get_mut("text"));
    if let Some(Value::String(text)) = first {
        text.insert_str(0, &name);
        return true;
    }
    false
}

/// What somebody's words begin with in a room.
pub(crate) fn in_a_room(sender: Option<&str>) -> Option<String> {
    sender.filter(|sender| sender.ends_with(IN_A_ROOM)).map(|sender| format!("{}: ", one_line(sender)))
}
