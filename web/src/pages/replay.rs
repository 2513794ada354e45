//! A session turn by turn, with its timing: one prompt and its answer at a time.

use std::ops::Range;

use axum::http::StatusCode;
use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use scrollback::model::Role;
use scrollback::view::Conversation;

use super::home::{address, is_running};
use super::session::{PAGE_BYTES, header, with};
use super::{Made, Nav, Params, Takes, error};
use crate::catalogue::Entry;
use crate::render::{Folds, Look, Room, text, words};
use crate::site::Site;
use crate::transcript::{Transcript, is_room};

/// How many turns the timeline draws.
const TURNS_DRAWN: usize = 200;

/// The page.
pub(crate) fn page(id: &str, params: &Params, site: &Site) -> Made {
    if let Some(wrong) = params.wrong(&[("turn", Takes::Number), ("open", Takes::One(&["tools"]))]) {
        return wrong;
    }
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
    let room = Room::of_page(PAGE_BYTES);
    let folds = Folds { tools: params.get("open") == Some("tools"), ..Folds::default() };
    let is_running = is_running(entry, (site.now)());
    let look = Look { folds, is_running, ..site.look(&session, is_room(&conversation), &base, &room) };
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
        (controls("Turns", turn, turns.len(), &base, params.has("play")))
        (timeline(&turns, turn, &conversation, &base, site))
        (timing(start, from, to, next_from))
        div class=(if look.is_room { "room" } else { "msgs" }) id="messages" { (PreEscaped(shown)) }
        (controls("Turns, below", turn, turns.len(), &base, false))
    };
    Ok(Made {
        status: StatusCode::OK,
        title: format!("Replay of {}", text::brief(&entry.row.title, 100)),
        nav: Nav::Other,
        body,
        rest: None,
    })
}

/// The messages of the turn that is shown.
pub(crate) fn turn(params: &Params, conversation: &Conversation<'_, '_>) -> Option<Range<usize>> {
    let turns = turns(conversation);
    let turn = params.number("turn").unwrap_or(1).clamp(1, turns.len().max(1));
    turns.into_iter().nth(turn - 1)
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

/// Turns side by side, each as wide as it took long: by the square root, so that short ones are seen beside long ones.
fn timeline(
    turns: &[Range<usize>],
    turn: usize,
    conversation: &Conversation<'_, '_>,
    base: &str,
    site: &Site,
) -> Markup {
    let first = (turn - 1) / TURNS_DRAWN * TURNS_DRAWN;
    let shown = &turns[first..turns.len().min(first + TURNS_DRAWN)];
    let times = |range: &Range<usize>| {
        let mut all = range.clone().flat_map(|at| conversation.records(at)).filter_map(|record| record.at());
        let begin = all.next()?;
        Some((begin, all.fold(begin, Timestamp::max)))
    };
    let (mut left, mut pieces) = (0.0, Vec::new());
    for (at, range) in shown.iter().enumerate() {
        let times = times(range);
        let ms = times.map_or(0, |(begin, end)| end.as_millisecond().saturating_sub(begin.as_millisecond()).max(0));
        let width = 4.0 + (ms as f64 / 1000.0).sqrt();
        let when = times.map(|(begin, _)| begin.to_zoned(site.zone.clone()).strftime(", %-d %b %H:%M:%S").to_string());
        let title = format!("Turn {}{}, took {}", first + at + 1, when.unwrap_or_default(), words::took(ms as u64));
        pieces.push((first + at + 1, left, width, title));
        left += width + 1.0;
    }
    html! {
        svg.timeline viewBox=(format!("0 0 {left:.1} 20")) preserveAspectRatio="none" aria-hidden="true" {
            @for (number, x, width, title) in pieces {
                a href={ (base) "/replay?turn=" (number) } tabindex="-1" {
                    rect class=(if number == turn { "here" } else { "" }) x=(format!("{x:.1}")) width=(format!("{width:.1}")) height="20" { title { (title) } }
                }
            }
        }
    }
}

fn controls(label: &str, turn: usize, turns: usize, base: &str, is_playing: bool) -> Markup {
    let link = |to: usize| format!("{base}/replay?turn={to}");
    html! {
        nav.pager aria-label=(label) {
            @if turn > 1 { a.link href=(link(turn - 1)) rel="prev" { "Previous" } } @else { span.none { "Previous" } }
            span.num { "Turn " (turn) " of " (turns) }
            @if turn < turns { a.link href=(link(turn + 1)) rel="next" { "Next" } } @else { span.none { "Next" } }
            span class="meta js-only" {
                kbd { "←" } " " kbd { "→" } " turn "
                @if is_playing { a.link href=(link(turn)) data-play="on" { "Pause" } } @else if turn < turns { a.link href={ (link(turn)) "&play=1" } data-play="off" { "Play" } }
                " " kbd { "p" }
            }
        }
    }
}

/// When the turn began, how long it took, and how long nothing happened after it.
fn timing(start: Option<Timestamp>, from: Option<Timestamp>, to: Option<Timestamp>, next: Option<Timestamp>) -> Markup {
    let between =
        |a: Option<Timestamp>, b: Option<Timestamp>| u64::try_from(b?.as_millisecond() - a?.as_millisecond()).ok();
    html! {
        p class="meta replay-time" data-took=[between(from, to).map(|ms| ms.to_string())] {
            @if let Some(ms) = between(start, from).filter(|ms| *ms > 0) { span { (words::took(ms)) " after the start" } }
            @if let Some(ms) = between(from, to) { span { "took " (words::took(ms)) } }
            @if let Some(ms) = between(to, next) { span { "the next one " (words::took(ms)) " later" } }
        }
    }
}
