//! A session turn by turn, with its timing: one prompt and its answer at a time.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use axum::http::StatusCode;
use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use scrollback::model::Role;
use scrollback::view::Conversation;

use super::home::address;
use super::session::{PAGE_BYTES, header, with};
use super::{Made, Nav, Params, error};
use crate::catalogue::Entry;
use crate::render::code::Budget;
use crate::render::{Folds, Look, Medium, text, words};
use crate::site::Site;
use crate::transcript::{Transcript, is_room};

/// The page.
pub(crate) fn page(id: &str, params: &Params, site: &Site) -> Made {
    with(id, site, |entry| replay(entry, params, site).unwrap_or_else(|error| error::unreadable(&error)))
}

fn replay(entry: &Entry, params: &Params, site: &Site) -> scrollback::Result<Made> {
    let session = site.whole(&entry.source)?;
    let Some(head) = session.head() else { return Ok(error::empty(entry)) };
    let branch = session.branch(head);
    let conversation = Conversation::new(&branch);
    let turns = turns(&conversation);
    if turns.is_empty() {
        return Ok(error::empty(entry));
    }
    let turn = params.number("turn").unwrap_or(1).clamp(1, turns.len());
    let range = turns[turn - 1].clone();
    let base = address(entry);
    let (highlighting, room) = (RefCell::new(Budget::new()), Cell::new(PAGE_BYTES));
    let look = Look {
        medium: Medium::Page(&base),
        zone: &site.zone,
        dialect: session.dialect().name(),
        folds: Folds { tools: params.get("open") == Some("tools"), ..Folds::default() },
        is_room: is_room(&conversation),
        level: 2,
        cwd: RefCell::new(None),
        highlighting: &highlighting,
        room_bytes: &room,
    };
    let transcript = Transcript::new(&session, &branch, &conversation, range.clone(), site)?;
    let mut shown = String::new();
    for at in range.clone() {
        shown += &transcript.message(at, &look)?.0;
    }
    let began = |at: usize| conversation.records(at).find_map(|record| record.at());
    let ended = |at: usize| conversation.records(at).filter_map(|record| record.at()).max();
    let start = (0..conversation.len()).find_map(began);
    let (from, to) = (range.clone().find_map(began), range.clone().rev().find_map(ended));
    let next_from = turns.get(turn).and_then(|next| next.clone().find_map(began));
    let body = html! {
        (header(entry, "replay", site))
        (controls(turn, turns.len(), &base))
        (timing(start, from, to, next_from))
        div class=(if look.is_room { "room" } else { "msgs" }) id="messages" { (PreEscaped(shown)) }
        (controls(turn, turns.len(), &base))
    };
    Ok(Made {
        status: StatusCode::OK,
        title: format!("Replay of {}", text::brief(&entry.row.title, 100)),
        nav: Nav::Other,
        body,
    })
}

/// The messages of each turn: a prompt, and all up to the next one.
fn turns(conversation: &Conversation<'_, '_>) -> Vec<Range<usize>> {
    let mut turns: Vec<Range<usize>> = Vec::new();
    for at in 0..conversation.len() {
        match turns.last_mut() {
            Some(last) if conversation.role(at) != Some(Role::User) => last.end = at + 1,
            _ => turns.push(at..at + 1),
        }
    }
    turns
}

fn controls(turn: usize, turns: usize, base: &str) -> Markup {
    let link = |to: usize| format!("{base}/replay?turn={to}");
    html! {
        nav.pager aria-label="Turns" {
            @if turn > 1 { a.link href=(link(turn - 1)) rel="prev" { "Previous" } } @else { span.none { "Previous" } }
            span.num { "Turn " (turn) " of " (turns) }
            @if turn < turns { a.link href=(link(turn + 1)) rel="next" { "Next" } } @else { span.none { "Next" } }
            span class="meta js-only" { kbd { "←" } " " kbd { "→" } " turn" }
        }
        progress.replay-bar max=(turns) value=(turn) aria-label="How far" {}
    }
}

/// When the turn began, how long it took, and how long nothing happened after it.
fn timing(start: Option<Timestamp>, from: Option<Timestamp>, to: Option<Timestamp>, next: Option<Timestamp>) -> Markup {
    let between =
        |a: Option<Timestamp>, b: Option<Timestamp>| u64::try_from(b?.as_millisecond() - a?.as_millisecond()).ok();
    html! {
        p class="meta replay-time" {
            @if let Some(ms) = between(start, from) { span { (words::took(ms)) " after the start" } }
            @if let Some(ms) = between(from, to) { span { "took " (words::took(ms)) } }
            @if let Some(ms) = between(to, next) { span { "the next one " (words::took(ms)) " later" } }
        }
    }
}
