//! The tool calls of a branch, as `extract-tools --json` has them.

use axum::response::Response;
use scrollback::view::Conversation;
use scrollback::view::tool_calls;

use super::{Ask, List, Problem};

/// How many calls one answer has, and how large it gets: outputs can be long.
const MOST: usize = 1_000;

/// The calls.
pub(super) fn list(ask: &Ask) -> Result<Response, Problem> {
    let entry = ask.entry()?;
    let session = ask.site.whole(&entry.source)?;
    let head = match ask.params.get("head") {
        Some(head) => Some(session.find(head)?),
        None => session.head(),
    };
    let mut calls = Vec::new();
    if let Some(head) = head {
        let branch = session.branch(head);
        for of_message in tool_calls::of(&Conversation::new(&branch)) {
            calls.extend(of_message?);
        }
    }
    let only_failed = ask.is_set("failed")?;
    calls.retain(|call| {
        ask.params.get("name").is_none_or(|name| call.name == name) && (!only_failed || call.has_failed())
    });
    ask.json(&List::page(calls, ask, MOST)?)
}
