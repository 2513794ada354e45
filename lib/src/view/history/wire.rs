//! Names of tools that an API accepts, and names of senders in a room.

use std::borrow::Cow;

use serde_json::Value;

use super::{Turn, ViewOutput};
pub(super) use crate::model::wire::id;
use crate::model::wire::{name_sender, tool_name};

/// A tool's name of at most `max` characters.
pub(super) fn name<'n>(name: &'n str, max: usize, turn: &Turn<'_>, out: &mut ViewOutput<'_>) -> Cow<'n, str> {
    let plain = tool_name(name, max);
    if plain != name {
        out.note(turn, format!("the tool {name:?} is called {plain}: the API does not take its name"));
    }
    plain
}

/// Puts the sender's name before the text, in a room.
pub(super) fn name_speaker(turn: &Turn<'_>, pieces: &mut [Value]) {
    name_sender(turn.sender.as_deref(), pieces);
}
