//! Every branch of a session: drawn by turns, and two of them side by side from where they part.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use maud::{Markup, PreEscaped, html};
use scrollback::model::Part;
use scrollback::session::{Branch, HeadKind, RecordRef, Session};
use scrollback::view::{Conversation, TurnEnd, TurnKind, TurnRow};

use super::home::address;
use super::session::{header, with};
use super::{Made, Nav, Params, Rest, Takes, error, hole};
use crate::catalogue::Entry;
use crate::render::icon::icon;
use crate::render::work::Work;
use crate::render::{Look, Room, text, words};
use crate::site::Site;
use crate::transcript::Transcript;

/// How many turns a page draws, the newest first: each is read for its row.
const TURNS_DRAWN: usize = 100;

/// How many branches stand beside one another before they share a lane.
const LANES: usize = 6;

/// How many heads the forms list.
const HEADS_LISTED: usize = 50;

/// How many messages of each side are compared, and how much HTML they may be.
const SIDE_MESSAGES: usize = 15;
const SIDE_BYTES: usize = 60 * 1024;

/// What a side of more messages took is not counted: each would have to be read.
const SIDE_MESSAGES_COUNTED: usize = 200;

/// A smaller session is read before anybody notices.
const LARGE_BYTES: u64 = 4 * 1024 * 1024;

/// The height of a row, and the distance of lanes.
const ROW: usize = 32;
const LANE: usize = 24;

/// The page.
pub(crate) fn page(id: &str, params: &Params, site: &Site) -> Made {
    if let Some(wrong) = params.wrong(&[("until", Takes::Number)]) {
        return wrong;
    }
    with(id, site, |entry| tree(entry, params, site).unwrap_or_else(|error| error::unreadable(&error)))
}

/// A turn in its place.
struct Node {
    row: TurnRow,
    lane: usize,
    parent: Option<usize>,
}

/// The header of a large session, whose tree follows; of others all of it, and where it says whether there are such heads.
fn tree(entry: &Entry, params: &Params, site: &Site) -> scrollback::Result<Made> {
    site.look_for(&entry.source)?;
    let names_heads = ["a", "b"].iter().any(|name| params.get(name).is_some());
    let (shown, rest) = if entry.row.size_bytes > LARGE_BYTES && !names_heads {
        let (entry, params) = (entry.clone(), params.clone());
        let fill = move |site: &Site, _: &Arc<AtomicBool>| {
            let shown = branches(&entry, &params, site);
            let shown = shown.map(|shown| shown.unwrap_or_else(|| error::late_empty(&entry)));
            vec![shown.unwrap_or_else(|error| error::late_unreadable(&error))]
        };
        (hole(), Some(Rest { reads_sessions: false, fill: Box::new(fill) }))
    } else {
        let Some(shown) = branches(entry, params, site)? else { return Ok(error::empty(entry)) };
        (shown, None)
    };
    Ok(Made {
        status: StatusCode::OK,
        title: format!("Tree of {}", text::brief(&entry.row.title, 100)),
        nav: Nav::Other,
        body: html! { (header(entry, "tree", site)) (shown) },
        rest,
    })
}

/// What stands below the header, if the session has a turn.
fn branches(entry: &Entry, params: &Params, site: &Site) -> scrollback::Result<Option<Markup>> {
    let session = site.whole(&entry.source)?;
    let (nodes, drawn, turns) = nodes(&session, params.number("until"))?;
    if nodes.is_empty() {
        return Ok(None);
    }
    let heads: Vec<RecordRef<'_>> =
        session.heads().filter(|head| head.kind != HeadKind::Sidechain).map(|head| head.record).collect();
    let chosen = |name: &str, or: usize| match params.get(name) {
        Some(head) => session.find(head).map(Some),
        None => Ok(heads.get(or).copied()),
    };
    let (a, b) = (chosen("a", 1)?, chosen("b", 0)?);
    let pair = a.zip(b).filter(|_| heads.len() > 1).map(|(a, b)| Pair::new(&session, a, b));
    let picked = pair.as_ref().map(Pair::picked).unwrap_or_default();
    Ok(Some(html! {
        p.tree-key {
            (key("head", "where it goes on")) (key("on", "on the branch")) (key("", "left behind"))
            @if !picked.is_empty() { (key("picked", "compared below")) }
            span.end {
                @if drawn.len() == turns { (words::plural(turns, "turn")) }
                @else { "Turns " (words::grouped(drawn.start as u64 + 1)) "–" (words::grouped(drawn.end as u64)) " of " (words::grouped(turns as u64)) }
            }
        }
        @if drawn.start > 0 {
            nav.pager aria-label="Earlier turns" { (icon("up")) a.link href=(params.with("until", Some(&drawn.start.to_string()))) { "Earlier turns" } }
        }
        section class={ "tree lanes-" (nodes.iter().map(|node| node.lane).max().unwrap_or(0)) } aria-label="Branches" { (graph(&nodes, &picked, &address(entry))) (list(&nodes, &picked, entry, site)) }
        @if drawn.end < turns {
            nav.pager aria-label="Later turns" {
                a.link href=(params.with("until", Some(&(drawn.end + TURNS_DRAWN).to_string()))) { "Later turns" }
                span.meta { a.link href=(params.with("until", None)) { "go to the newest" } }
            }
        }
        @if let Some(pair) = &pair { (compare(&session, &heads, pair, entry, site)?) }
    }))
}

/// Two branches that are compared.
struct Pair<'s> {
    heads: (RecordRef<'s>, RecordRef<'s>),
    branches: (Branch<'s>, Branch<'s>),
    /// How many of their first records are the same.
    same: usize,
}

impl<'s> Pair<'s> {
    fn new(session: &'s Session, a: RecordRef<'s>, b: RecordRef<'s>) -> Pair<'s> {
        let (left, right) = (session.branch(a), session.branch(b));
        let same = left.records.iter().zip(&right.records).take_while(|(a, b)| a.order() == b.order()).count();
        Pair { heads: (a, b), branches: (left, right), same }
    }

    /// The records that only the first of them has: the second one is usually where the session goes on.
    fn picked(&self) -> HashSet<String> {
        self.branches.0.records[self.same..].iter().map(|record| record.id().into_owned()).collect()
    }
}

/// The turns that are drawn, which of all they are, and how many there are.
fn nodes(session: &Session, until: Option<usize>) -> scrollback::Result<(Vec<Node>, Range<usize>, usize)> {
    let turns = session.turns()?;
    let end = until.unwrap_or(turns.len()).clamp(turns.len().min(1), turns.len());
    let first = end.saturating_sub(TURNS_DRAWN);
    let mut lanes: Vec<usize> = Vec::new();
    let mut continued: Vec<bool> = vec![false; turns.len()];
    // The last turn of each lane: a lane is free again for what begins after it.
    let mut last: Vec<usize> = vec![0; LANES + 1];
    let mut nodes = Vec::new();
    for turn in 0..end {
        let parent = turns.parent(turn);
        let lane = match parent {
            _ if turns.is_on_branch(turn) => 0,
            // The first turn that goes on from one left behind stays in its lane.
            Some(parent) if !turns.is_on_branch(parent) && !continued[parent] => {
                continued[parent] = true;
                lanes[parent]
            }
            _ => (1..LANES).find(|lane| last[*lane] <= parent.unwrap_or(turn)).unwrap_or(LANES),
        };
        lanes.push(lane);
        last[lane] = turn;
        if turn >= first {
            let parent = parent.and_then(|parent| parent.checked_sub(first));
            nodes.push(Node { row: turns.row(turn)?, lane, parent });
        }
    }
    Ok((nodes, first..end, turns.len()))
}

fn key(class: &str, words: &str) -> Markup {
    html! { span { svg class="tree-graph-key" width="12" height="12" aria-hidden="true" { circle class=(class) cx="6" cy="6" r="4" {} } (words) } }
}

fn graph(nodes: &[Node], picked: &HashSet<String>, address: &str) -> Markup {
    let x = |lane: usize| 16 + lane * LANE;
    let y = |at: usize| 16 + at * ROW;
    let width = x(nodes.iter().map(|node| node.lane).max().unwrap_or(0)) + 20;
    let height = nodes.len() * ROW;
    html! {
        svg.tree-graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            @for (at, node) in nodes.iter().enumerate() {
                @if let Some(parent) = node.parent {
                    @let (x1, y1, x2, y2) = (x(nodes[parent].lane), y(parent), x(node.lane), y(at));
                    @let class = match () {
                        () if picked.contains(node.row.first.as_str()) => "picked",
                        () if node.row.on_branch && nodes[parent].row.on_branch => "on",
                        () => "",
                    };
                    @if x1 == x2 { path class=(class) d=(format!("M{x1} {y1}V{y2}")) {} }
                    @else {
                        @let turn = y1 + ROW;
                        path class=(class) d=(format!("M{x1} {y1}C{x1} {} {x2} {} {x2} {turn}V{y2}", y1 + 18, y1 + 14)) {}
                    }
                }
            }
            @for (at, node) in nodes.iter().enumerate() {
                @let is_event = matches!(node.row.kind, TurnKind::Compaction | TurnKind::Rewind | TurnKind::Restore);
                @let class = match node.row.head {
                    Some(HeadKind::Main) => "head",
                    _ if picked.contains(node.row.first.as_str()) => "picked",
                    _ if is_event => "event",
                    _ if node.row.on_branch => "on",
                    _ => "",
                };
                a href=(link(&node.row, address)) tabindex="-1" { circle class=(class) cx=(x(node.lane)) cy=(y(at)) r="5" {} }
            }
        }
    }
}

fn link(row: &TurnRow, address: &str) -> String {
    format!("{address}?at={}#m-{}", text::path_segment(row.first.as_str()), text::anchor(row.first.as_str()))
}

fn list(nodes: &[Node], picked: &HashSet<String>, entry: &Entry, site: &Site) -> Markup {
    let address = address(entry);
    html! {
        ol {
            @for node in nodes {
                @let row = &node.row;
                @let is_picked = picked.contains(row.id.as_str());
                li class=(classes(row, is_picked)) {
                    span.node-who { (who(row)) }
                    a.node-text href=(link(row, &address)) dir="auto" { (text::brief(if row.text.is_empty() { row.kind.name() } else { &row.text }, 200)) }
                    span {
                        @let calls = calls(row);
                        @if !calls.is_empty() { span.meta { (calls) } " " }
                        @match row.head {
                            Some(HeadKind::Branch | HeadKind::Island) if is_picked => span class="state state-sub" { "compared" },
                            Some(HeadKind::Main) => span class="state state-on" { "head" },
                            Some(HeadKind::Branch | HeadKind::Island) => a.state href={ (address) "/tree?a=" (text::path_segment(row.id.as_str())) } { "compare" },
                            Some(HeadKind::Sidechain) => span class="state state-sub" { "sub-agent" },
                            None => {},
                        }
                    }
                    @match row.at {
                        Some(at) => time datetime=(at.to_string()) { (at.to_zoned(site.zone.clone()).strftime("%H:%M")) },
                        None => span {},
                    }
                }
            }
        }
    }
}

fn classes(row: &TurnRow, is_picked: bool) -> String {
    let is_event = matches!(row.kind, TurnKind::Compaction | TurnKind::Rewind | TurnKind::Restore);
    let classes = [
        (true, "node"),
        (row.kind == TurnKind::Prompt, "node-user"),
        (!row.on_branch, "node-off"),
        (is_event, "node-event"),
        (row.head == Some(HeadKind::Main), "node-head"),
        (row.head.is_some() && is_picked, "node-picked"),
    ];
    classes
        .into_iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, class)| class)
        .collect::<Vec<_>>()
        .join(" ")
}

fn who(row: &TurnRow) -> &'static str {
    match row.kind {
        TurnKind::Prompt if row.sidechain => "the task",
        TurnKind::Prompt => "You",
        TurnKind::Command => "command",
        TurnKind::Shell => "shell",
        TurnKind::Notification => "notice",
        TurnKind::Compaction => "compacted",
        TurnKind::Rewind => "went back",
        TurnKind::Restore => "put back",
        TurnKind::Answer => "answer",
    }
}

fn calls(row: &TurnRow) -> String {
    let mut words = Vec::new();
    if row.calls > 0 {
        words.push(words::plural(row.calls, "call"));
    }
    if row.failed_calls > 0 {
        words.push(format!("{} failed", row.failed_calls));
    }
    if row.denied_calls > 0 {
        words.push(format!("{} denied", row.denied_calls));
    }
    match row.end {
        Some(TurnEnd::NoAnswer) => words.push("no answer".to_owned()),
        Some(TurnEnd::Interrupted) => words.push("interrupted".to_owned()),
        Some(TurnEnd::Failed) => words.push("failed".to_owned()),
        Some(TurnEnd::Answered | TurnEnd::AnsweredWithNext) | None => {}
    }
    words.join(", ")
}

fn compare(
    session: &Session,
    heads: &[RecordRef<'_>],
    pair: &Pair<'_>,
    entry: &Entry,
    site: &Site,
) -> scrollback::Result<Markup> {
    let Pair { heads: (a, b), branches: (left, right), same } = pair;
    let option = |head: &RecordRef<'_>, chosen: RecordRef<'_>| {
        let id = head.id();
        let at = head
            .at()
            .map(|at| at.to_zoned(site.zone.clone()).strftime(", %-d %b %H:%M").to_string())
            .unwrap_or_default();
        html! { option value=(id) selected[id == chosen.id()] { (text::short_id(&id)) (at) } }
    };
    let address = address(entry);
    Ok(html! {
        section.compare aria-labelledby="compare-title" {
            div.hd {
                h2.h-section id="compare-title" { "Two branches, side by side" }
                form class="filters filters-many end" action={ (address) "/tree" } {
                    select name="a" aria-label="Left branch" { @for head in heads.iter().take(HEADS_LISTED) { (option(head, *a)) } }
                    span class="meta wide-only" { "beside" }
                    select name="b" aria-label="Right branch" { @for head in heads.iter().take(HEADS_LISTED) { (option(head, *b)) } }
                    button.btn { "Compare" }
                }
            }
            p.compare-from { (parting(pair, &address, site)?) }
            svg.compare-fork viewBox="0 0 100 32" preserveAspectRatio="none" aria-hidden="true" {
                path.fork-a d="M50 0C50 22 24.5 10 24.5 32" {} path.fork-b d="M50 0C50 22 75.5 10 75.5 32" {}
            }
            div.compare-cols {
                (side(session, left, *same, *a, &address, "side-picked", site)?)
                (side(session, right, *same, *b, &address, "side-on", site)?)
            }
        }
    })
}

/// The last message that both branches have: what it says, who wrote it and when.
fn parting(pair: &Pair<'_>, address: &str, site: &Site) -> scrollback::Result<Markup> {
    let conversation = Conversation::new(&pair.branches.0);
    let last = pair.same.checked_sub(1).map(|last| pair.branches.0.records[last]);
    let Some((last, at)) = last.and_then(|last| Some((last, conversation.position(last)?))) else {
        return Ok(html! { b { "They have nothing in common" } });
    };
    let Some(message) = conversation.message(at).transpose()? else { return Ok(html! {}) };
    let said = message.parts.iter().rev().filter_map(Part::as_text).find(|text| !text.trim().is_empty());
    let quote = message.display().map(|display| display.text().to_owned()).or(said.map(str::to_owned));
    let author = match message.author() {
        "you" => "You".to_owned(),
        author => text::brief(author, 80),
    };
    let own = first_own(&conversation, &pair.branches.0, pair.same);
    Ok(html! {
        b { "They part after" } " "
        a.link href={ (address) "?at=" (text::path_segment(&message.id)) "#m-" (text::anchor(&message.id)) } { (text::short_id(&last.id())) }
        @if let Some(quote) = quote { " " span dir="auto" { "“" (text::brief(&quote, 80)) "”" } }
        " " span.meta {
            (author) @if let Some(at) = last.at() { ", " (words::clock(at, &site.zone)) }
            "; " (words::plural(own, "message")) @if own == 1 { " is" } @else { " are" } " the same"
        }
    })
}

/// The first message of a branch that has none of the records that it shares with another one.
fn first_own(conversation: &Conversation<'_, '_>, branch: &Branch<'_>, same: usize) -> usize {
    let shared: HashSet<usize> = branch.records[..same].iter().map(|record| record.order()).collect();
    let is_own = |at: &usize| !conversation.records(*at).any(|record| shared.contains(&record.order()));
    (0..conversation.len()).find(is_own).unwrap_or(conversation.len())
}

fn side(
    session: &Session,
    branch: &Branch<'_>,
    same: usize,
    head: RecordRef<'_>,
    address: &str,
    class: &str,
    site: &Site,
) -> scrollback::Result<Markup> {
    let conversation = Conversation::new(branch);
    let first = first_own(&conversation, branch, same);
    let counted = first..conversation.len().min(first + SIDE_MESSAGES_COUNTED);
    let range = first..conversation.len().min(first + SIDE_MESSAGES);
    let room = Room::of_page(SIDE_BYTES);
    let look = Look { level: 4, ..site.look(session, false, address, &room) };
    let transcript = Transcript::new(session, branch, &conversation, counted.clone(), site)?;
    let (mut shown, mut work) = (String::new(), Work::default());
    for at in counted.clone() {
        let Some(message) = conversation.message(at).transpose()? else { continue };
        transcript.add_work(at, &message, &mut work, &look);
        if range.contains(&at) {
            shown += &transcript.shown(at, &message, 0, &look).0;
        }
    }
    let took = match counted.end == conversation.len() {
        true => work.words(),
        false => words::plural(conversation.len() - first, "message"),
    };
    let id = head.id();
    let is_main = session.head().is_some_and(|main| main.id() == id);
    let left = conversation.len() - range.end;
    // Both sides may have the same message: its anchors belong to the conversation.
    let shown = shown.replace(" id=\"m-", " data-id=\"m-").replace(" id=\"t-", " data-id=\"t-");
    Ok(html! {
        section class={ "side " (class) } {
            header.side-head {
                h3 { (if is_main { "Where it goes on" } else { "Left behind" }) " " a.anchor href={ (address) "?head=" (text::path_segment(&id)) } { (text::short_id(&id)) } }
                p.meta { (took) }
            }
            (PreEscaped(shown))
            @if left > 0 { p.meta { (words::plural(left, "message")) " more" } }
            footer.side-foot { a.link href={ (address) "?head=" (text::path_segment(&id)) } { "Read this branch" } }
        }
    })
}
