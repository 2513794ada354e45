//! What a view notes about names that an API does not take, and who speaks in a room.

use std::borrow::Cow;

use serde_json::Value;

use super::{Out, Turn};
pub(super) use crate::model::wire::id;
use crate::model::wire::{name_sender, tool_name};

/// A tool's name of at most `max` characters.
pub(super) fn name<'n>(name: &'n str, max: usize, turn: &Turn<'_>, out: &mut Out<'_>) -> Cow<'n, str> {
    let plain = tool_name(name, max);
    if plain != name {
        out.note(turn, format!("the tool {name:?} is called {plain}: the API does not take its name"));
    }
    plain
}

/// Says who speaks before what they say. Only in a room does it matter.
pub(super) fn name_speaker(turn: &Turn<'_>, pieces: &mut [Value]) {
    name_sender(turn.sender.as_deref(), pieces);
}
