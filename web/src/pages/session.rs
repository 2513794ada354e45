//! One session: what is known about it, and its messages, the newest page first.

use std::ops::Range;
use std::sync::Arc;

use axum::http::StatusCode;
use maud::{Markup, PreEscaped, html};
use scrollback::model::{Issue, Message, Part, Severity, Usage};
use scrollback::session::{Branch, RecordRef, Session};
use scrollback::view::tool_view::{TodoStatus, todo, todo_list};
use scrollback::view::{Conversation, Page};
use serde_json::Value;

use super::home::{address, is_running, lasted, project_name, state_of};
use super::{Made, Nav, Params, Takes, error, hole};
use crate::catalogue::{Entry, Found};
use crate::live::Live;
use crate::render::icon::{agent_mark, agent_name, chevron, icon};
use crate::render::trace::{Map, Trace, is_prompt};
use crate::render::{Folds, Look, Room, Show, text, todos, words};
use crate::site::Site;
use crate::transcript::{Transcript, is_room};

/// How many messages a page has at most, and how large its HTML may get: whichever comes first.
const PAGE_MESSAGES: usize = 50;
pub(crate) const PAGE_BYTES: usize = 230 * 1024;

/// More issues are counted, not listed.
const ISSUES_SHOWN: usize = 50;

/// Finds the session that an address means, and makes a page of it.
pub(crate) fn with(id: &str, site: &Site, make: impl FnOnce(&Entry) -> Made) -> Made {
    let shelf = site.catalogue.shelf();
    match shelf.find(id) {
        Found::One(entry) => make(entry),
        Found::Several(candidates) => error::ambiguous(id, &candidates, site),
        Found::None => error::no_session(id),
    }
}

/// The page.
pub(crate) fn page(id: &str, params: &Params, site: &Site, live: &Live) -> Made {
    let takes = [
        ("show", Takes::One(&["everything", "no-tools", "prompts"])),
        ("open", Takes::One(&["tools"])),
        ("part", Takes::Number),
    ];
    if let Some(wrong) = params.wrong(&takes) {
        return wrong;
    }
    with(id, site, |entry| conversation(entry, params, site, live).unwrap_or_else(|error| error::unreadable(&error)))
}

fn conversation(entry: &Entry, params: &Params, site: &Site, live: &Live) -> scrollback::Result<Made> {
    // Taken before the session is read: whatever is written meanwhile comes as an event.
    let position = live.position(entry);
    let wanted = params.get("at").or(params.get("message"));
    let by_page = wanted.is_none() && params.get("head").is_none() && !params.has("first");
    let page = Page { messages: PAGE_MESSAGES, before: params.get("before") };
    let session = match by_page {
        true => Arc::new(site.open_page(&entry.source, page)?),
        false => site.whole(&entry.source)?,
    };
    let Some(head) = head(&session, params)? else { return Ok(error::empty(entry)) };
    let branch = session.branch(head);
    let conversation = Conversation::new(&branch);
    if conversation.is_empty() {
        return Ok(error::empty(entry));
    }
    let (range, part) = range(params, &session, &conversation)?;
    let is_head = session.head().is_some_and(|main| main.id() == head.id());
    let is_at_work = is_head && is_running(entry, (site.now)());
    let shown = messages(&session, &branch, &conversation, range, part, is_at_work, &address(entry), params, site)?;
    let branch_note = (!is_head).then(|| head.id().into_owned());
    let is_end = is_head
        && shown.range.end == conversation.len()
        && !["show", "before", "message"].iter().any(|name| params.has(name));
    let events = is_end.then(|| {
        let id = text::path_segment(entry.row.id.as_str());
        format!("/api/v1/sessions/{id}/events?parts=html&after={}", position.after(&session))
    });
    let body = html! {
        (header(entry, "conversation", site))
        (issues(&session, &conversation, entry))
        (layout(entry, &shown, &session, &conversation, branch_note.as_deref(), events.as_deref(), params, site))
    };
    Ok(Made { status: StatusCode::OK, title: text::brief(&entry.row.title, 120), nav: Nav::Other, body, rest: None })
}

/// The head of the branch that is shown.
pub(crate) fn head<'s>(session: &'s Session, params: &Params) -> scrollback::Result<Option<RecordRef<'s>>> {
    let wanted = params.get("at").or(params.get("message"));
    Ok(match (params.get("head"), wanted) {
        (Some(head), _) => Some(session.find(head)?),
        (None, Some(wanted)) => Some(head_through(session, session.find(wanted)?)),
        (None, None) => session.head(),
    })
}

/// The newest head whose branch contains the record.
fn head_through<'s>(session: &'s Session, record: RecordRef<'s>) -> RecordRef<'s> {
    let is_on = |head: &RecordRef<'s>| {
        let order = record.order();
        session.branch(*head).records.iter().any(|on_branch| on_branch.order() == order)
    };
    const HEADS_TRIED: usize = 50;
    session.heads().map(|head| head.record).take(HEADS_TRIED).find(is_on).unwrap_or(record)
}

/// Which messages are shown, and from which part the first of them.
pub(crate) fn range(
    params: &Params,
    session: &Session,
    conversation: &Conversation<'_, '_>,
) -> scrollback::Result<(Range<usize>, usize)> {
    let position = |name: &str| -> scrollback::Result<Option<usize>> {
        let record = params.get(name).map(|record| session.find(record)).transpose()?;
        Ok(record.and_then(|record| conversation.position(record)))
    };
    let len = conversation.len();
    if let Some(at) = position("message")? {
        return Ok((at..at + 1, params.number("part").unwrap_or(0)));
    }
    if params.has("first") {
        return Ok((0..PAGE_MESSAGES.min(len), 0));
    }
    if let Some(at) = position("at")? {
        // What was looked for is near the top, with a little of what came before it.
        let start = at.saturating_sub(2);
        return Ok((start..len.min(start + PAGE_MESSAGES), 0));
    }
    if let Some(at) = position("after")? {
        return Ok((at + 1..len.min(at + 1 + PAGE_MESSAGES), 0));
    }
    let end = position("before")?.unwrap_or(len);
    Ok((end.saturating_sub(PAGE_MESSAGES)..end, 0))
}

/// The messages of a page.
struct Shown {
    html: String,
    range: Range<usize>,
    outline: Vec<Outlined>,
    /// The task list at the end of the page.
    todos: Option<Value>,
    is_room: bool,
    /// The messages in one line.
    map: Markup,
}

/// A prompt in the outline.
struct Outlined {
    id: String,
    text: String,
    at: Option<jiff::Timestamp>,
    trace: Trace,
    /// Whether it is none, but a compaction between two.
    is_cut: bool,
}

#[expect(clippy::too_many_arguments, reason = "each is a different thing, and there is one caller")]
fn messages(
    session: &Session,
    branch: &Branch<'_>,
    conversation: &Conversation<'_, '_>,
    range: Range<usize>,
    part: usize,
    is_running: bool,
    address: &str,
    params: &Params,
    site: &Site,
) -> scrollback::Result<Shown> {
    let room = Room::of_page(PAGE_BYTES);
    let look = Look { folds: folds(params), is_running, ..site.look(session, is_room(conversation), address, &room) };
    let transcript = Transcript::new(session, branch, conversation, range.clone(), site)?;
    // A page that was asked for from its beginning is cut at its end, the newest page at its beginning.
    let is_forward = ["at", "after", "first", "message"].iter().any(|name| params.has(name));
    let order: Vec<usize> = if is_forward { range.clone().collect() } else { range.clone().rev().collect() };
    let mut pieces: Vec<(usize, String, Option<Message>)> = Vec::new();
    for at in order {
        if room.bytes.get() < MESSAGE_LEAST_BYTES && !pieces.is_empty() {
            break;
        }
        let Some(message) = conversation.message(at).transpose()? else { continue };
        let html = match part {
            0 => transcript.fragment(at, &message, &look),
            part => transcript.shown(at, &message, part, &look).0,
        };
        pieces.push((at, html, Some(message)));
    }
    pieces.sort_by_key(|(at, ..)| *at);
    let start = pieces.first().map_or(range.start, |(at, ..)| *at);
    let end = pieces.last().map_or(range.end, |(at, ..)| at + 1);
    let messages: Vec<&Message> = pieces.iter().filter_map(|(_, _, message)| message.as_ref()).collect();
    Ok(Shown {
        outline: outline(&messages, session),
        todos: messages.iter().rev().find_map(|message| todo_list(message).cloned().map(Value::Array)),
        html: {
            let end = transcript.end(range.end, &look).0;
            let pieces = pieces.iter().map(|(_, html, _)| html.as_str()).chain([end.as_str()]);
            pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("\n")
        },
        range: start..end,
        is_room: look.is_room,
        map: {
            let mut map = Map::default();
            let last = conversation.len().checked_sub(1).filter(|_| is_running);
            for (at, message) in pieces.iter().filter_map(|(at, _, message)| Some((at, message.as_ref()?))) {
                map.add(message, Some(*at) == last);
            }
            map.svg()
        },
    })
}

/// Below this there is no room for a further message.
const MESSAGE_LEAST_BYTES: usize = 4 * 1024;

fn folds(params: &Params) -> Folds {
    let show = match params.get("show") {
        Some("no-tools") => Show::NoTools,
        Some("prompts") => Show::Prompts,
        _ => Show::Everything,
    };
    Folds { tools: params.get("open") == Some("tools"), show }
}

fn outline(messages: &[&Message], session: &Session) -> Vec<Outlined> {
    let mut outline: Vec<Outlined> = Vec::new();
    let compaction = |part: &Part| match part {
        Part::Data(data) if data.kind == "compaction" => {
            Some(data.data["record"].as_str().unwrap_or_default().to_owned())
        }
        _ => None,
    };
    for message in messages {
        let at = message.noted("timestamp").and_then(|at| at.parse().ok());
        if let Some(record) = message.parts.iter().find_map(compaction) {
            let (id, text, trace) = (message.id.clone(), "compacted".to_owned(), Trace::default());
            // The time of the message is that of its beginning.
            let at = session.find(&record).ok().and_then(RecordRef::at);
            outline.push(Outlined { id, text, at, trace, is_cut: true });
        }
        if is_prompt(message) {
            let typed = message.display().map(|display| display.text().to_owned());
            let said = || message.parts.iter().find_map(Part::as_text).unwrap_or("(no text)").to_owned();
            outline.push(Outlined {
                id: message.id.clone(),
                text: text::brief(&typed.unwrap_or_else(said), 160),
                at,
                trace: Trace::default(),
                is_cut: false,
            });
        } else if let Some(last) = outline.iter_mut().rev().find(|one| !one.is_cut) {
            last.trace.add(message);
        }
    }
    outline.iter_mut().for_each(|prompt| drop(prompt.trace.thin(crate::render::trace::LIST_TICKS)));
    outline
}

/// What stands above every view of a session. How many files it changed is a hole where that is found out.
pub(crate) fn header(entry: &Entry, view: &str, site: &Site) -> Markup {
    let row = &entry.row;
    let now = (site.now)();
    let project = project_name(row.project.as_deref());
    html! {
        header {
            nav.crumbs aria-label="Where this is" {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" }
                @if let Some(path) = &row.project { a href={ "/?project=" (text::path_segment(path)) } { (project) } } @else { span { (project) } }
                @if let Some(at) = row.started.or(row.updated) { span aria-hidden="true" { "/" } span { (words::day(at, &site.zone)) } }
            }
            div.head-title { h1.page-title dir="auto" { (text::brief(&row.title, 300)) } (state_of(entry, now)) }
            @if view == "conversation" { (facts(entry, site, now)) (all_facts(entry, site)) }
            (tabs(entry, view, site))
        }
    }
}

fn facts(entry: &Entry, site: &Site, now: jiff::Timestamp) -> Markup {
    let row = &entry.row;
    let fact = |name: &str, first: Markup, second: Markup| html! { div { dt { (name) } dd { (first) } @if !second.0.is_empty() { dd { (second) } } } };
    let when = match (row.started, row.updated) {
        (Some(start), Some(end)) => {
            html! { time datetime=(start.to_string()) { (words::day_and_time(start, &site.zone)) } "–" (end.to_zoned(site.zone.clone()).strftime("%H:%M")) }
        }
        (Some(at), None) | (None, Some(at)) => html! { (words::day_and_time(at, &site.zone)) },
        (None, None) => html! { "–" },
    };
    let lasted = lasted(row);
    let work = entry
        .glance
        .as_ref()
        .map(|glance| (glance.trace.calls(), glance.trace.troubles().collect::<Vec<_>>().join(", ")));
    html! {
        dl.facts {
            (fact("Agent", html! { span.agent { (agent_mark(&row.dialect)) (agent_name(&row.dialect)) } }, html! { (text::brief(&row.models.join(", "), 200)) }))
            (fact("Project", html! { (project_name(row.project.as_deref())) }, html! { @if let Some(branch) = &row.git_branch { span.mono { (text::brief(branch, 60)) } } }))
            (fact("When", when, html! { @if let Some(ms) = lasted { (words::took(ms)) } @if let Some(at) = row.updated { ", " (words::ago(at, now)) } }))
            @if let Some(count) = row.message_count {
                (fact("Work", html! { (words::plural(count, "message")) @if let Some((calls, _)) = &work { ", " (words::plural(*calls, "tool call")) } }, html! {
                    @if let Some((_, troubles)) = &work { (troubles) }
                }))
            }
            @if let Some(usage) = site.catalogue.figures().usage_of(row) {
                @let known = words::usage_facts(&Usage { reasoning: None, ..usage });
                (fact("Tokens", html! { (known.iter().take(2).cloned().collect::<Vec<_>>().join(", ")) }, html! { (known.iter().skip(2).cloned().collect::<Vec<_>>().join(", ")) }))
            } @else { (fact("Tokens", html! { span.none { "–" } }, html! { "not recorded" })) }
            @if let Some(cost) = site.catalogue.figures().cost_of(&row.path) {
                @let unpriced = (cost.own.unpriced > 0).then(|| format!("{} without a price", words::plural(cost.own.unpriced, "request")));
                @let sub_agents = cost.sub_agents.words().map(|words| format!("sub-agents {words}"));
                @if let Some(words) = cost.own.words() {
                    (fact("Cost", html! { (words) }, html! { (unpriced.into_iter().chain(sub_agents).collect::<Vec<_>>().join(", ")) }))
                }
            }
        }
    }
}

fn all_facts(entry: &Entry, site: &Site) -> Markup {
    let row = &entry.row;
    let size = format!(
        "{} bytes{}{}",
        words::grouped(row.size_bytes),
        row.record_count.map(|count| format!(", {}", words::plural(count, "record"))).unwrap_or_default(),
        row.issue_count
            .map(|count| format!(", {}", words::plural(count as usize, "issue")))
            .unwrap_or_default()
    );
    let facts = [
        ("Id", Some(row.id.to_string())),
        ("File", Some(row.path.clone())),
        ("Size", Some(size)),
        ("Head", row.head.as_ref().map(ToString::to_string)),
        ("Directory", row.cwd.clone().or(row.project.clone())),
        ("Written by", row.agent_version.as_ref().map(|version| format!("{} {version}", agent_name(&row.dialect)))),
        ("Platform", row.platform.clone()),
        ("Forked from", row.forked_from.as_ref().map(ToString::to_string)),
        ("Started by", row.parent_session.as_ref().map(ToString::to_string)),
    ];
    html! {
        details.all-facts {
            summary { (chevron()) "Everything known about it" }
            dl { @for (name, fact) in facts { @if let Some(fact) = fact { dt { (name) } dd.mono { (text::brief(&site.masked(&fact), 500)) } } } }
        }
    }
}

fn tabs(entry: &Entry, view: &str, site: &Site) -> Markup {
    let base = address(entry);
    let files = match view {
        "files" => hole(),
        _ => counted(site.catalogue.changed_files(&entry.source).filter(|files| *files > 0)),
    };
    let tab = |name: &str, path: &str, shown: &str, count: Markup| {
        let is_here = (view == name).then_some("page");
        html! { a href={ (base) (path) } aria-current=[is_here] data-key=(name) { (shown) (count) } }
    };
    html! {
        nav.tabs aria-label="Views of this session" {
            (tab("conversation", "", "Conversation", html! {}))
            (tab("tree", "/tree", "Tree", counted(entry.row.branch_count)))
            (tab("files", "/files", "Files", files))
            (tab("replay", "/replay", "Replay", html! {}))
            span.end {
                a class="btn btn-quiet" href={ (base) "/export" } aria-label="Export as one HTML file" { (icon("export")) span.wide-only { "Export" } }
                a class="btn btn-quiet wide-only" href={ (base) "/export?to=md" } aria-label="Export as Markdown" { "Markdown" }
            }
        }
    }
}

/// What stands behind the name of a tab.
pub(crate) fn counted(count: Option<usize>) -> Markup {
    html! { @if let Some(count) = count { " " span.num { (count) } } }
}

fn issues(session: &Session, conversation: &Conversation<'_, '_>, entry: &Entry) -> Markup {
    let issues: Vec<&Issue> = session.issues().iter().collect();
    let bad = issues.iter().filter(|issue| issue.severity == Severity::Error).count();
    if bad == 0 {
        return html! {};
    }
    let short = text::short_id(entry.row.id.as_str());
    let mut places: Vec<(u64, RecordRef<'_>)> =
        session.records().map(|record| (record.place().offset, record)).collect();
    places.sort_by_key(|(offset, _)| *offset);
    html! {
        details.issues {
            summary {
                (icon("warn")) span { b { (words::plural(bad, "problem")) " in this file." } " Everything whole in it is shown below." } (chevron())
            }
            ol {
                @for issue in issues.iter().take(ISSUES_SHOWN) {
                    li class=(if issue.severity == Severity::Note { "issue issue-note" } else { "issue" }) {
                        span.num { @match issue.line { Some(line) => { "line " (line) }, None => { "byte " (issue.offset) } } }
                        span.issue-kind { (issue.kind.name()) }
                        span { (text::brief(&issue.detail, 400)) }
                        @if let Some(record) = beside(issue, &places, session) { a.link href=(link_to(record, conversation, &address(entry))) { "go there" } }
                    }
                }
                @if issues.len() > ISSUES_SHOWN { li.issue { span {} span {} span { "and " (issues.len() - ISSUES_SHOWN) " more" } } }
            }
            div.issues-foot { span { "The file is never changed by looking at it. In a terminal:" } (command(&["scrollback", "doctor", &short])) }
        }
    }
}

/// The record that an issue is about, or the next one in the file.
fn beside<'s>(issue: &Issue, places: &[(u64, RecordRef<'s>)], session: &Session) -> Option<RecordRef<'s>> {
    // A session of several files has places in each.
    if issue.file.as_deref().is_some_and(|file| !session.path().ends_with(file)) {
        return None;
    }
    let next = places.partition_point(|(offset, _)| *offset < issue.offset);
    let before = next.checked_sub(1).and_then(|before| places.get(before));
    let holds = |(_, record): &&(u64, RecordRef<'s>)| {
        let place = record.place();
        issue.offset < place.offset + u64::from(place.length)
    };
    before.filter(holds).or(places.get(next)).or(before).map(|(_, record)| *record)
}

/// The address of the message that a record belongs to.
fn link_to(record: RecordRef<'_>, conversation: &Conversation<'_, '_>, base: &str) -> String {
    let message = conversation.position(record).and_then(|at| conversation.records(at).next()).unwrap_or(record);
    let id = message.id();
    format!("{base}?at={}#m-{}", text::path_segment(&record.id()), text::anchor(&id))
}

/// A command to copy: it breaks between its words only.
pub(crate) fn command(words: &[&str]) -> Markup {
    html! {
        span.copy {
            code { @for (at, word) in words.iter().enumerate() { @if at > 0 { " " } span { (text::shown(word)) } } }
            button class="btn btn-icon js-only" type="button" data-copy="command" aria-label="Copy the command" { (icon("copy")) }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "each is a different thing, and there is one caller")]
fn layout(
    entry: &Entry,
    shown: &Shown,
    session: &Session,
    conversation: &Conversation<'_, '_>,
    branch_note: Option<&str>,
    events: Option<&str>,
    params: &Params,
    site: &Site,
) -> Markup {
    let base = address(entry);
    let show = params.get("show").unwrap_or("everything");
    let has_earlier = shown.range.start > 0 || !session.whole();
    let first = conversation.records(shown.range.start).next().map(|record| record.id().into_owned());
    let last = shown
        .range
        .end
        .checked_sub(1)
        .and_then(|last| conversation.records(last).last())
        .map(|record| record.id().into_owned());
    let has_later = shown.range.end < conversation.len();
    let head = branch_note.map(|head| format!("&head={}", text::path_segment(head))).unwrap_or_default();
    html! {
        div.read {
            (rail(shown, site))
            div {
                div.read-bar {
                    nav.seg aria-label="What to show" {
                        a href=(params.with("show", None)) aria-current=[(show == "everything").then_some("true")] { "Everything" }
                        a href=(params.with("show", Some("no-tools"))) aria-current=[(show == "no-tools").then_some("true")] { "No tools" }
                        a href=(params.with("show", Some("prompts"))) aria-current=[(show == "prompts").then_some("true")] { "Prompts" }
                    }
                    @if params.get("open") == Some("tools") { a.link href=(params.with("open", None)) { "Fold every tool" } }
                    @else { a.link href=(params.with("open", Some("tools"))) { "Open every tool" } }
                    span class="end wide-only" { (place(shown, session, conversation)) }
                }
                @if let Some(head) = branch_note {
                    p class="notice notice-warn" { (icon("branch")) span { "A branch that was left, up to " code { (text::short_id(head)) } ". " a.link href=(base) { "Where it goes on" } } }
                }
                (shown.map)
                @if has_earlier && let Some(first) = first {
                    nav.pager aria-label="Earlier messages" data-earlier {
                        (icon("up")) a.link href={ (base) "?before=" (text::path_segment(&first)) (head) } { "Earlier messages" }
                        span.meta { a.link href={ (base) "?first=1" (head) } { "go to the beginning" } }
                    }
                }
                div class=(if shown.is_room { "room" } else { "msgs" }) id="messages" data-live=[events] { (PreEscaped(&shown.html)) }
                @if events.is_some() { (live_bar()) }
                @if has_later && let Some(last) = last {
                    nav.pager aria-label="Later messages" {
                        a.link href={ (base) "?after=" (text::path_segment(&last)) (head) } { "Later messages" }
                        span.meta { a.link href=(base) { "go to the newest" } }
                    }
                }
            }
        }
    }
}

/// What follows a session that is being written: only the script shows it.
fn live_bar() -> Markup {
    html! {
        div.live hidden {
            span.live-dot aria-hidden="true" {}
            span role="status" aria-live="polite" { b { "Live" } span.live-news {} }
            button class="btn btn-quiet" type="button" data-live-key="newest" hidden { "Jump to newest" }
            button class="btn btn-quiet" type="button" data-live-key="notify" aria-pressed="false" { "Notify me" }
            button class="btn btn-quiet" type="button" data-live-key="pause" aria-pressed="false" { "Pause" }
        }
    }
}

fn place(shown: &Shown, session: &Session, conversation: &Conversation<'_, '_>) -> String {
    let count = shown.range.len();
    match session.whole() {
        true if count == conversation.len() => "The whole branch, oldest first".to_owned(),
        true => format!(
            "Messages {}–{} of {}",
            words::grouped(shown.range.start as u64 + 1),
            words::grouped(shown.range.end as u64),
            words::grouped(conversation.len() as u64)
        ),
        false => format!("The newest {}", words::plural(count, "message")),
    }
}

/// What the outline says of a turn, as the script of a live page puts it there.
pub(crate) fn outline_of(turn: &[Message], session: &Session, site: &Site) -> Markup {
    let outline = outline(&turn.iter().collect::<Vec<_>>(), session);
    html! { @for prompt in &outline { (outlined(prompt, site)) } }
}

fn outlined(prompt: &Outlined, site: &Site) -> Markup {
    let anchor = format!("m-{}", text::anchor(&prompt.id));
    let clock = |at: jiff::Timestamp| at.to_zoned(site.zone.clone()).strftime("%H:%M").to_string();
    html! {
        @if prompt.is_cut {
            li.outline-cut data-m=(anchor) { (icon("fold")) "compacted" @if let Some(at) = prompt.at { ", " (clock(at)) } }
        } @else { li data-m=(anchor) {
            a href={ "#" (anchor) } {
                span.outline-text dir="auto" { (prompt.text) }
                span.outline-meta {
                    @if !prompt.trace.is_empty() { (prompt.trace.svg()) }
                    @if let Some(at) = prompt.at { time datetime=(at.to_string()) { (clock(at)) } }
                }
            }
        } }
    }
}

fn rail(shown: &Shown, site: &Site) -> Markup {
    let items: Vec<_> = shown.todos.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(todo).collect();
    let done = todos::count(&items, TodoStatus::Completed);
    let prompts = shown.outline.iter().filter(|one| !one.is_cut).count();
    html! {
        nav.rail aria-label="Outline" {
            details.narrow {
                summary { (icon("outline")) "Outline " span.meta { span.count { (words::plural(prompts, "prompt")) } @if !items.is_empty() { ", todo " (done) " of " (items.len()) } } }
                h2 { "Prompts " span.num { (prompts) } }
                ol.outline {
                    @for prompt in &shown.outline { (outlined(prompt, site)) }
                }
                div id="rail-todos" hidden[items.is_empty()] {
                    h2 { "Todo " span.num { (done) " of " (items.len()) } }
                    (todos::list(&items))
                }
                p class="keys js-only" {
                    span { kbd { "j" } kbd { "k" } " message" } span { kbd { "o" } " open" } span { kbd { "t" } " tree" }
                    span { kbd { "/" } " search" } span { kbd { "?" } " all keys" }
                }
            }
        }
    }
}
