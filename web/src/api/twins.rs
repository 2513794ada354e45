//! The twin of each page in JSON: its address with `.json` behind it.

use axum::response::Response;
use scrollback::model::{Message, Sdk};
use scrollback::session::Branch;
use scrollback::view::{Conversation, listing, origins};

use super::messages::FileAddresses;
use super::{Ask, Problem, files, json_response, search, sessions, stats, tag_of, tree};
use crate::pages::{replay, session};

/// Which page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twin {
    Home,
    Search,
    Stats,
    Session,
    Tree,
    Files,
    Replay,
}

/// What a page shows.
pub(crate) fn answer(twin: Twin, ask: &Ask) -> Result<Response, Problem> {
    match twin {
        Twin::Home => sessions::list(ask),
        Twin::Search => search::search(ask),
        Twin::Stats => stats::stats(ask),
        Twin::Session => conversation(ask, Pick::Page),
        Twin::Tree => tree::tree(ask),
        Twin::Files => files::list(ask),
        Twin::Replay => conversation(ask, Pick::Turn),
    }
}

enum Pick {
    /// The messages of the page.
    Page,
    /// Those of one turn.
    Turn,
}

/// A page of a session, as `show --json` has it.
fn conversation(ask: &Ask, pick: Pick) -> Result<Response, Problem> {
    let entry = ask.entry()?;
    let tag = tag_of(&entry.source);
    if let Some(unchanged) = tag.as_deref().and_then(|tag| ask.unchanged(tag)) {
        return Ok(unchanged);
    }
    let mut session = ask.site.open(&entry.source)?;
    if let Some(summary) = listing::summary_elsewhere(&session) {
        session.title_from_summary(summary);
    }
    let head = session::head(&session, &ask.params)?;
    let branch = head.map(|head| session.branch(head));
    let branch = branch.unwrap_or(Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() });
    let conversation = Conversation::new(&branch);
    let range = match pick {
        Pick::Page => session::range(&ask.params, &session, &conversation)?.0,
        Pick::Turn => replay::turn(&ask.params, &conversation).unwrap_or(0..0),
    };
    let is_whole = range.len() == conversation.len();
    let addresses = FileAddresses::of(&ask.origin, &entry);
    let messages: Result<Vec<Message>, _> = conversation
        .messages(range)
        .map(|message| message.map(|message| addresses.in_message(message).for_sdk(Sdk::V7)))
        .collect();
    let mut text = Vec::new();
    let mut page = session.page(&branch, head, messages?, is_whole)?;
    origins::mark_copied_requests(&session, &mut page.session, &ask.site.places.finder(&entry.source));
    scrollback::model::json::write(&mut text, &page).map_err(|_| Problem::internal())?;
    Ok(json_response(text.into(), tag.as_deref()))
}
