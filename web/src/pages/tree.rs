//! Every branch of a session: drawn by turns, and two of them side by side from where they part.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use axum::http::StatusCode;
use maud::{Markup, PreEscaped, html};
use scrollback::session::{Branch, HeadKind, RecordRef, Session};
use scrollback::view::{Conversation, TurnEnd, TurnKind, TurnRow};

use super::home::address;
use super::session::{header, with};
use super::{Made, Nav, Params, error};
use crate::catalogue::Entry;
use crate::render::grammar::Budget;
use crate::render::{Folds, Look, Medium, text, words};
use crate::site::Site;
use crate::transcript::{PAGE_NESTED, Transcript};

/// More turns than this are not drawn: the newest are.
const TURNS_DRAWN: usize = 200;

/// How many branches stand beside one another before they share a lane.
const LANES: usize = 6;

/// How many heads the forms list.
const HEADS_LISTED: usize = 50;

/// How many messages of each side are compared, and how much HTML they may be.
const SIDE_MESSAGES: usize = 15;
const SIDE_BYTES: usize = 60 * 1024;

/// The height of a row, and the distance of lanes.
const ROW: usize = 32;
const LANE: usize = 24;

/// The page.
pub(crate) fn page(id: &str, params: &Params, site: &Site) -> Made {
    with(id, site, |entry| tree(entry, params, site).unwrap_or_else(|error| error::unreadable(&error)))
}

/// A turn in its place.
struct Node {
    row: TurnRow,
    lane: usize,
    parent: Option<usize>,
}

fn tree(entry: &Entry, params: &Params, site: &Site) -> scrollback::Result<Made> {
    let session = site.whole(&entry.source)?;
    let (nodes, left_out) = nodes(&session)?;
    if nodes.is_empty() {
        return Ok(error::empty(entry));
    }
    let heads: Vec<RecordRef<'_>> =
        session.heads().filter(|head| head.kind != HeadKind::Sidechain).map(|head| head.record).collect();
    let chosen = |name: &str, or: usize| match params.get(name) {
        Some(head) => session.find(head).map(Some),
        None => Ok(heads.get(or).copied()),
    };
    let (a, b) = (chosen("a", 1)?, chosen("b", 0)?);
    let body = html! {
        (header(entry, "tree", site))
        p.tree-key {
            (key("head", "where it goes on")) (key("on", "on the branch")) (key("", "left behind"))
            span.end { (words::plural(nodes.len(), "turn")) @if left_out > 0 { "; " (words::grouped(left_out as u64)) " older ones are not drawn" } }
        }
        section class={ "tree lanes-" (nodes.iter().map(|node| node.lane).max().unwrap_or(0)) } aria-label="Branches" { (graph(&nodes, &address(entry))) (list(&nodes, entry, site)) }
        @if heads.len() > 1 && let (Some(a), Some(b)) = (a, b) { (compare(&session, &heads, a, b, entry, site)?) }
    };
    Ok(Made {
        status: StatusCode::OK,
        title: format!("Tree of {}", text::brief(&entry.row.title, 100)),
        nav: Nav::Other,
        body,
    })
}

fn nodes(session: &Session) -> scrollback::Result<(Vec<Node>, usize)> {
    let turns = session.turns()?;
    let first = turns.len().saturating_sub(TURNS_DRAWN);
    let mut lanes: Vec<usize> = Vec::new();
    let mut continued: Vec<bool> = vec![false; turns.len()];
    // The last turn of each lane: a lane is free again for what begins after it.
    let mut last: Vec<usize> = vec![0; LANES + 1];
    let mut nodes = Vec::new();
    for turn in 0..turns.len() {
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
    Ok((nodes, first))
}

fn key(class: &str, words: &str) -> Markup {
    html! { span { svg class="tree-graph-key" width="12" height="12" aria-hidden="true" { circle class=(class) cx="6" cy="6" r="4" {} } (words) } }
}

fn graph(nodes: &[Node], address: &str) -> Markup {
    let x = |lane: usize| 16 + lane * LANE;
    let y = |at: usize| 16 + at * ROW;
    let width = x(nodes.iter().map(|node| node.lane).max().unwrap_or(0)) + 20;
    let height = nodes.len() * ROW;
    html! {
        svg.tree-graph width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) aria-hidden="true" {
            @for (at, node) in nodes.iter().enumerate() {
                @if let Some(parent) = node.parent {
                    @let (x1, y1, x2, y2) = (x(nodes[parent].lane), y(parent), x(node.lane), y(at));
                    @let class = if node.row.on_branch && nodes[parent].row.on_branch { "on" } else { "" };
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

fn list(nodes: &[Node], entry: &Entry, site: &Site) -> Markup {
    let address = address(entry);
    html! {
        ol {
            @for node in nodes {
                @let row = &node.row;
                li class=(classes(row)) {
                    span.node-who { (who(row)) }
                    a.node-text href=(link(row, &address)) dir="auto" { (text::brief(if row.text.is_empty() { row.kind.name() } else { &row.text }, 200)) }
                    span {
                        @match row.head {
                            Some(HeadKind::Main) => span class="state state-on" { "head" },
                            Some(HeadKind::Branch | HeadKind::Island) => a.state href={ (address) "/tree?a=" (text::path_segment(row.id.as_str())) } { "compare" },
                            Some(HeadKind::Sidechain) => span class="state state-sub" { "sub-agent" },
                            None => span.meta { (calls(row)) },
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

fn classes(row: &TurnRow) -> String {
    let is_event = matches!(row.kind, TurnKind::Compaction | TurnKind::Rewind | TurnKind::Restore);
    let classes = [
        (true, "node"),
        (row.kind == TurnKind::Prompt, "node-user"),
        (!row.on_branch, "node-off"),
        (is_event, "node-event"),
        (row.head == Some(HeadKind::Main), "node-head"),
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
    a: RecordRef<'_>,
    b: RecordRef<'_>,
    entry: &Entry,
    site: &Site,
) -> scrollback::Result<Markup> {
    let (left, right) = (session.branch(a), session.branch(b));
    let same = left.records.iter().zip(&right.records).take_while(|(a, b)| a.order() == b.order()).count();
    let parting = same.checked_sub(1).map(|last| left.records[last].id().into_owned());
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
                    select name="a" aria-label="Left branch" { @for head in heads.iter().take(HEADS_LISTED) { (option(head, a)) } }
                    span class="meta wide-only" { "beside" }
                    select name="b" aria-label="Right branch" { @for head in heads.iter().take(HEADS_LISTED) { (option(head, b)) } }
                    button.btn { "Compare" }
                }
            }
            p.compare-from {
                @match &parting {
                    Some(id) => { b { "They part after" } " " a.link href={ (address) "?at=" (text::path_segment(id)) "#m-" (text::anchor(id)) } { (text::short_id(id)) } },
                    None => b { "They have nothing in common" },
                }
            }
            svg.compare-fork viewBox="0 0 100 32" preserveAspectRatio="none" aria-hidden="true" {
                path.fork-a d="M50 0C50 22 24.5 10 24.5 32" {} path.fork-b d="M50 0C50 22 75.5 10 75.5 32" {}
            }
            div.compare-cols {
                (side(session, &left, same, a, &address, "side-picked", site)?)
                (side(session, &right, same, b, &address, "side-on", site)?)
            }
        }
    })
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
    let shared: HashSet<usize> = branch.records[..same].iter().map(|record| record.order()).collect();
    let is_own = |at: &usize| !conversation.records(*at).any(|record| shared.contains(&record.order()));
    let first = (0..conversation.len()).find(is_own).unwrap_or(conversation.len());
    let range = first..conversation.len().min(first + SIDE_MESSAGES);
    let (highlighting, room) = (RefCell::new(Budget::of_page()), Cell::new(SIDE_BYTES));
    let look = Look {
        medium: Medium::Page(address),
        zone: &site.zone,
        dialect: session.dialect().name(),
        folds: Folds::default(),
        is_room: false,
        level: 4,
        cwd: RefCell::new(None),
        price: &*site.price,
        highlighting: &highlighting,
        room_bytes: &room,
        nested_left: &Cell::new(PAGE_NESTED),
    };
    let transcript = Transcript::new(session, branch, &conversation, range.clone(), site)?;
    let mut shown = String::new();
    for at in range.clone() {
        shown += &transcript.message(at, &look)?.0;
    }
    let id = head.id();
    let is_main = session.head().is_some_and(|main| main.id() == id);
    let left = conversation.len() - range.end;
    // Both sides may have the same message: its anchors belong to the conversation.
    let shown = shown.replace(" id=\"m-", " data-id=\"m-").replace(" id=\"t-", " data-id=\"t-");
    Ok(html! {
        section class={ "side " (class) } {
            header.side-head {
                h3 { (if is_main { "Where it goes on" } else { "Left behind" }) " " a.anchor href={ (address) "?head=" (text::path_segment(&id)) } { (text::short_id(&id)) } }
                p.meta { (words::plural(conversation.len() - first, "message")) " of its own" }
            }
            (PreEscaped(shown))
            @if left > 0 { p.meta { (words::plural(left, "message")) " more" } }
            footer.side-foot { a.link href={ (address) "?head=" (text::path_segment(&id)) } { "Read this branch" } }
        }
    })
}
