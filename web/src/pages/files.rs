//! What a session changed on disk, with each difference, and what an undo would do. The page only looks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use jiff::Timestamp;
use maud::{Markup, html};
use scrollback::model::{Host, Message, Part, ProjectPath};
use scrollback::session::{Branch, RecordRef, Session};
use scrollback::view::files::{
    ChangeAction, ChangeRow, FileHistory, FileRow, FileVersion, KnownVersion, OnDisk, unified_diff,
};
use scrollback::view::tool_view::{Changes, ToolView, size_text};
use scrollback::view::{Conversation, TurnKind, TurnRow};
use scrollback::write::{Action, Blocked, Goal, Plan, Readiness, Scope, Undo, UndoHead};

use super::home::address;
use super::session::{PAGE_BYTES, command, counted, header, with};
use super::{Made, Nav, Params, Rest, Takes, error, hole};
use crate::catalogue::Entry;
use crate::render::icon::icon;
use crate::render::{Look, Room, code, diff, text, words};
use crate::site::Site;

/// How many changes have a column of their own, and how many are shown with their difference.
const COLUMNS: usize = 10;
const CHANGES_SHOWN: usize = 30;

/// More files are counted, not listed.
const FILES_LISTED: usize = 200;

/// Larger texts are not compared.
const COMPARED_BYTES: usize = 1024 * 1024;

/// How much of a whole file a page shows.
const WHOLE_BYTES: usize = 128 * 1024;

/// How many lines of one difference a page shows.
const LINES_SHOWN: usize = 120;

/// How many prompts the form of the undo lists.
const GOALS_LISTED: usize = 30;

/// A file, with its place among those of the session.
type NumberedFile = (usize, FileRow);

/// The page.
pub(crate) fn page(id: &str, params: &Params, site: &Site) -> Made {
    if let Some(wrong) = params.wrong(&[("file", Takes::Number)]) {
        return wrong;
    }
    with(id, site, |entry| begun(entry, params, site).unwrap_or_else(|error| error::unreadable(&error)))
}

/// What is known without reading the session.
fn begun(entry: &Entry, params: &Params, site: &Site) -> scrollback::Result<Made> {
    site.look_for(&entry.source)?;
    let (known, params) = (entry.clone(), params.clone());
    let fill = move |site: &Site, given_up: &Arc<AtomicBool>| {
        files(&known, &params, given_up, site).unwrap_or_else(|error| vec![error::late_unreadable(&error)])
    };
    Ok(Made {
        status: StatusCode::OK,
        title: format!("Files of {}", text::brief(&entry.row.title, 100)),
        nav: Nav::Other,
        body: html! { (header(entry, "files", site)) (hole()) },
        rest: Some(Rest { reads_sessions: false, fill: Box::new(fill) }),
    })
}

/// What a session did to files.
struct Read {
    session: Arc<Session>,
    history: Arc<FileHistory>,
    rows: Vec<FileRow>,
}

fn read(entry: &Entry, site: &Site) -> scrollback::Result<Read> {
    let stamp = entry.source.stamp();
    let session = site.whole(&entry.source)?;
    let history = site.files(&session)?;
    let rows = history.rows();
    site.catalogue.note_changed_files(&entry.source, stamp, rows.len());
    Ok(Read { session, history, rows })
}

/// How many files there are, and what is said of them.
fn files(entry: &Entry, params: &Params, given_up: &AtomicBool, site: &Site) -> scrollback::Result<Vec<Markup>> {
    let Read { session, history, rows } = read(entry, site)?;
    if given_up.load(Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let turns = turns(&session);
    let all = rows.len();
    let count = counted(Some(all).filter(|files| *files > 0));
    let only = params.number("file");
    // A path may have a secret in it: addresses and anchors have the number of the file.
    let rows: Vec<NumberedFile> =
        rows.into_iter().enumerate().filter(|(number, _)| only.is_none_or(|only| *number == only)).collect();
    let changes: usize = rows.iter().map(|(_, row)| row.changes.len()).sum();
    let measured = Measured::newest(&session, &history, &rows, site);
    let shown = html! {
        @if rows.is_empty() && all > 0 {
            div.empty {
                h2 { "There is no such file" }
                p { "This session changed " (words::plural(all, "file")) "; their numbers begin at 0." }
                p { a.link href={ (address(entry)) "/files" } { "every file" } }
            }
        } @else if rows.is_empty() {
            div.empty {
                h2 { "No change of a file is recorded" }
                p { "Known are snapshots and backups of the agent, and the edits in its tool calls." }
            }
        } @else {
            div.panes {
                div {
                    div.hd {
                        h2.h-section { "What changed, and when" }
                        span.meta { (words::plural(rows.len(), "file")) ", " (words::plural(changes, "change")) }
                        @if only.is_some() { a.link href={ (address(entry)) "/files" } { "every file" } }
                    }
                    (matrix(&rows, &measured, &history, &turns, entry, site))
                    @if let (Some(_), [file]) = (only, &rows[..]) { (whole(&session, &history, file, &turns, entry, params, site)) }
                    (differences(&rows, &measured, entry, site))
                }
                (plan(&session, history, &turns, entry, params, site))
            }
        }
    };
    Ok(vec![count, shown])
}

/// What is known of a change without drawing it.
struct Measured {
    /// The difference, masked; `None` if a version is not known, or no text.
    diff: Option<String>,
    /// What the call says, where no copy of the file was kept.
    edit: Option<Edit>,
    /// Lines that were added and removed; `None` if that is not known.
    lines: Option<(usize, usize)>,
    /// Whether the whole file after the change can be shown.
    is_known: bool,
}

impl Measured {
    /// The newest changes, by the number of their file and their place among its changes, the oldest first.
    fn newest(
        session: &Session,
        history: &FileHistory,
        rows: &[NumberedFile],
        site: &Site,
    ) -> Vec<((usize, usize), Measured)> {
        let mut changes: Vec<(&NumberedFile, usize)> =
            rows.iter().flat_map(|row| (0..row.1.changes.len()).map(move |at| (row, at))).collect();
        changes.sort_by_key(|((_, row), at)| row.changes[*at].at);
        let newest = changes.split_off(changes.len().saturating_sub(CHANGES_SHOWN));
        let head = session.head().map(|head| session.branch(head));
        let conversation = head.as_ref().map(Conversation::new);
        let measured = newest.into_iter().map(|((number, row), at)| {
            let (diff, is_known) = compared(session, history, row, at, site);
            let edit = if diff.is_none() { edit_of(session, conversation.as_ref(), row, at, site) } else { None };
            let of_diff = diff.as_deref().map(|diff| {
                let (_, added, removed) = diff::numbered(diff);
                (added, removed)
            });
            let lines = of_diff.or(edit.as_ref().map(|edit| edit.lines));
            ((*number, at), Measured { diff, edit, lines, is_known })
        });
        measured.collect()
    }
}

/// Lines that were added and removed.
fn counts((added, removed): (usize, usize)) -> Markup {
    html! {
        @if added > 0 { span.add-n { "+" (added) } } @if added > 0 && removed > 0 { " " }
        @if removed > 0 { span.del-n { "−" (removed) } }
    }
}

/// What a change is called in the table.
fn brief(action: ChangeAction, lines: Option<(usize, usize)>) -> Markup {
    match (action, lines) {
        (ChangeAction::Created, Some((added, _))) if added > 0 => html! { "new, " (words::plural(added, "line")) },
        (ChangeAction::Modified, Some(lines)) if lines != (0, 0) => counts(lines),
        (ChangeAction::Created, _) => html! { "new" },
        (ChangeAction::Modified, _) => html! { "edit" },
        (ChangeAction::Deleted, _) => html! { "gone" },
    }
}

/// The prompt before each of the columns, as runs of columns with the same one.
fn prompts(columns: &[(Option<Timestamp>, &str)], turns: &[TurnRow]) -> Vec<(Option<TurnRow>, usize)> {
    let turns: Vec<&TurnRow> = turns.iter().filter(|turn| turn.kind == TurnKind::Prompt).collect();
    let mut runs: Vec<(Option<TurnRow>, usize)> = Vec::new();
    for (at, _) in columns {
        // The newest turn is the first.
        let turn = turns.iter().find(|turn| turn.at.zip(*at).is_some_and(|(began, at)| began <= at));
        match runs.last_mut() {
            Some((last, count)) if last.as_ref().map(|last| &last.id) == turn.map(|turn| &turn.id) => *count += 1,
            _ => runs.push((turn.map(|turn| (*turn).clone()), 1)),
        }
    }
    runs
}

/// Files by the moments at which they changed.
fn matrix(
    rows: &[NumberedFile],
    measured: &[((usize, usize), Measured)],
    history: &FileHistory,
    turns: &[TurnRow],
    entry: &Entry,
    site: &Site,
) -> Markup {
    let mut moments: BTreeMap<(Option<Timestamp>, &str), ()> = BTreeMap::new();
    for change in rows.iter().flat_map(|(_, row)| &row.changes) {
        moments.insert((change.at, change.record.as_str()), ());
    }
    let moments: Vec<(Option<Timestamp>, &str)> = moments.into_keys().collect();
    let lines = |number: usize, at: usize| {
        measured.iter().find(|(change, _)| *change == (number, at)).and_then(|(_, measured)| measured.lines)
    };
    // A sum in which some are not known would be wrong.
    let total = |(number, row): &NumberedFile| {
        let lines: Option<Vec<_>> = (0..row.changes.len()).map(|at| lines(*number, at)).collect();
        lines.map(|lines| lines.iter().fold((0, 0), |(a, r), (added, removed)| (a + added, r + removed)))
    };
    let columns = &moments[moments.len().saturating_sub(COLUMNS)..];
    let on_disk: Vec<OnDisk> = rows.iter().take(FILES_LISTED).map(|(_, row)| on_disk(history, &row.path)).collect();
    // Where the project is gone, nothing is known.
    let is_known = on_disk.iter().any(|known| *known != OnDisk::Unknown);
    let base = address(entry);
    html! {
        div class="scroll-x matrix-box" tabindex="0" role="region" aria-label="Changes by file and message" {
            table.matrix {
                thead {
                    @let prompts = prompts(columns, turns);
                    @if prompts.iter().any(|(prompt, _)| prompt.is_some()) {
                        tr.matrix-prompts {
                            td {}
                            @for (prompt, count) in &prompts {
                                @match prompt {
                                    Some(prompt) => th scope="colgroup" colspan=(count) {
                                        a href={ (base) "?at=" (text::path_segment(prompt.first.as_str())) "#m-" (text::anchor(prompt.first.as_str())) } dir="auto" { (text::brief(&prompt.text, 60 * count)) }
                                    },
                                    None => td colspan=(count) {},
                                }
                            }
                            td colspan=(if is_known { "2" } else { "1" }) {}
                        }
                    }
                    tr {
                        th scope="col" { "File" }
                        @for (at, record) in columns {
                            th scope="col" { @match at { Some(at) => (words::clock(*at, &site.zone)), None => code { (text::short_id(record)) } } }
                        }
                        th scope="col" { "in all" }
                        @if is_known { th scope="col" { "on disk" } }
                    }
                }
                tbody {
                    @for (file, on_disk) in rows.iter().zip(&on_disk) {
                        @let (number, row) = file;
                        tr {
                            th scope="row" { a href={ (base) "/files?file=" (number) } { (shown(&row.path, site)) } }
                            @for (_, record) in columns {
                                @match row.changes.iter().enumerate().find(|(_, change)| change.record.as_str() == *record) {
                                    Some((at, change)) => td { a class=(dot(change.action)) href={ "#" (change_id(*number, change)) } { (brief(change.action, lines(*number, at))) } },
                                    None => td.dot-none aria-label="no change" { "·" },
                                }
                            }
                            td { @match total(file) { Some(lines) => (counts(lines)), None => span.meta { "–" } } }
                            @if is_known { td { (as_left(*on_disk)) } }
                        }
                    }
                }
            }
        }
        @if moments.len() > columns.len() { p.meta { (words::plural(moments.len() - columns.len(), "earlier moment")) " not shown here" } }
        @if rows.len() > FILES_LISTED { p.meta { (words::plural(rows.len() - FILES_LISTED, "file")) " more" } }
    }
}

/// Whether a file is as the session left it.
fn on_disk(history: &FileHistory, path: &str) -> OnDisk {
    let known = history.changed().find(|changed| changed.as_str() == path);
    known.map_or(OnDisk::Unknown, |path| history.on_disk(path, COMPARED_BYTES as u64))
}

fn as_left(on_disk: OnDisk) -> Markup {
    match on_disk {
        OnDisk::AsLeft => html! { span.meta { "as left" } },
        OnDisk::Changed => html! { span class="state state-warn" { "changed since" } },
        OnDisk::Gone => html! { span class="state state-warn" { "gone" } },
        OnDisk::Unknown => html! { span.meta { "–" } },
    }
}

/// The whole file as it was after a message: any message, by its record.
fn whole(
    session: &Session,
    history: &FileHistory,
    (number, row): &NumberedFile,
    turns: &[TurnRow],
    entry: &Entry,
    params: &Params,
    site: &Site,
) -> Markup {
    let asked = params.get("at");
    let record = asked.and_then(|at| session.find(at).ok());
    let changes = row.changes.iter().rev().take(GOALS_LISTED);
    html! {
        form.filters action={ (address(entry)) "/files" } aria-label="The whole file" {
            input type="hidden" name="file" value=(number);
            select name="at" aria-label="After which message" {
                option value="" { "The whole file as it was …" }
                @for change in changes {
                    @let when = change.at.map(|at| at.to_zoned(site.zone.clone()).strftime(" at %H:%M:%S").to_string()).unwrap_or_default();
                    @let id = change.record.as_str();
                    option value=(id) selected[asked == Some(id)] { "after " (shown(change.tool.as_deref().unwrap_or("message"), site)) (when) }
                }
                @for turn in turns {
                    @let when = turn.at.map(|at| at.to_zoned(site.zone.clone()).strftime("%H:%M ").to_string()).unwrap_or_default();
                    option value=(turn.id.as_str()) selected[asked == Some(turn.id.as_str())] { "after the turn " (when) "“" (text::brief(&turn.text, 30)) "”" }
                }
            }
            button.btn { "Show" }
        }
        @match (asked, record) {
            (None, _) => {},
            (Some(_), None) => p class="notice notice-warn" { (icon("warn")) span { "This session has no such message." } },
            (Some(_), Some(record)) => (at_record(session, history, row, record, entry, site)),
        }
    }
}

fn at_record(
    session: &Session,
    history: &FileHistory,
    row: &FileRow,
    record: RecordRef<'_>,
    entry: &Entry,
    site: &Site,
) -> Markup {
    let id = record.id();
    let path = history.changed().find(|path| path.as_str() == row.path);
    let is_secret = site.places.mask.as_ref().is_some_and(|mask| mask.is_sensitive_file(&row.path));
    let version = path.filter(|_| !is_secret).and_then(|path| Some((path, version(session, history, path, &id)?)));
    let known = version.as_ref().and_then(|(path, version)| content(history, path, version));
    let why = match &version {
        Some((_, Err(why))) => why.why().to_owned(),
        Some((path, Ok(version))) if !matches!(history.content(path, version), Ok(Some(_))) => {
            "only its hash was recorded".to_owned()
        }
        Some(_) => "it is no text, or too long".to_owned(),
        None => "no record before it names the file".to_owned(),
    };
    let body = match known {
        Some(Some(content)) => {
            let masked = site.masked(&content);
            let start = &masked[..masked.floor_char_boundary(WHOLE_BYTES)];
            html! {
                (code::block(start, code::language_of(&row.path)))
                @if start.len() < masked.len() { p.tool-more { "The rest of its " (size_text(content.len())) " is not shown; " code { "scrollback files --at" } " prints all of it." } }
            }
        }
        Some(None) => html! { p.diff-name { "The file was not there." } },
        None if is_secret => html! { p.diff-name { "This file is a secret as a whole; its content is not shown." } },
        None => {
            html! { p.diff-name { "What was in it then cannot be shown: " (text::brief(&site.masked(&why), 300)) "." } }
        }
    };
    html! {
        article.change id="whole" {
            header {
                h3 { (shown(&row.path, site)) }
                span.end { "as it was after " a.link href={ (address(entry)) "?at=" (text::path_segment(&id)) "#m-" (text::anchor(&id)) } { (text::short_id(&id)) } }
            }
            (body)
        }
    }
}

/// The newest turns of the branch.
fn turns(session: &Session) -> Vec<TurnRow> {
    let Ok(turns) = session.turns() else { return Vec::new() };
    let on_branch = (0..turns.len()).rev().filter(|turn| turns.is_on_branch(*turn));
    on_branch.take(GOALS_LISTED).filter_map(|turn| turns.row(turn).ok()).collect()
}

/// A name without secrets, in one line.
fn shown(name: &str, site: &Site) -> String {
    text::brief(&site.masked(name), 200)
}

fn dot(action: ChangeAction) -> &'static str {
    match action {
        ChangeAction::Created => "dot dot-new",
        ChangeAction::Modified => "dot",
        ChangeAction::Deleted => "dot dot-gone",
    }
}

fn change_id(file: usize, change: &ChangeRow) -> String {
    format!("c-{}-{}", text::anchor(change.record.as_str()), file)
}

/// Each change with what it changed, the oldest first.
fn differences(rows: &[NumberedFile], measured: &[((usize, usize), Measured)], entry: &Entry, site: &Site) -> Markup {
    let all: usize = rows.iter().map(|(_, row)| row.changes.len()).sum();
    let left = all - measured.len();
    let mut room = PAGE_BYTES / 2;
    let shown = measured.iter().filter_map(|((number, at), measured)| {
        let file = rows.iter().find(|(file, _)| file == number)?;
        let html = difference(file, *at, measured, room > 0, entry, site);
        room = room.saturating_sub(html.0.len());
        Some(html)
    });
    html! {
        @if left > 0 { p.meta { (words::plural(left, "earlier change")) " not shown here; choose a file to see its own" } }
        div.changes { @for change in shown { (change) } }
    }
}

fn difference(
    (number, row): &NumberedFile,
    at: usize,
    measured: &Measured,
    has_room: bool,
    entry: &Entry,
    site: &Site,
) -> Markup {
    let change = &row.changes[at];
    let diff = measured.diff.as_deref().filter(|_| has_room);
    let (lines, ..) = diff.map(diff::numbered).unwrap_or_default();
    let message = change.message.as_str();
    let link = format!("{}?at={}#m-{}", address(entry), text::path_segment(message), text::anchor(message));
    html! {
        article.change id=(change_id(*number, change)) {
            header {
                h3 { (shown(&row.path, site)) }
                @match change.action {
                    ChangeAction::Created => span class="dot dot-new" { "new" },
                    ChangeAction::Deleted => span class="state state-err" { "deleted" },
                    ChangeAction::Modified => span.num { (counts(measured.lines.unwrap_or_default())) },
                }
                span.end {
                    a.link href=(link) {
                        (shown(change.tool.as_deref().unwrap_or("message"), site))
                        @if let Some(at) = change.at { " at " (at.to_zoned(site.zone.clone()).strftime("%H:%M:%S")) }
                    }
                    @if let Some(bytes) = change.size_bytes { span.num { (size_text(bytes as usize)) } }
                    @if measured.is_known {
                        a.link href={ (address(entry)) "/files?file=" (number) "&at=" (text::path_segment(change.record.as_str())) "#whole" } { "whole file" }
                    }
                }
            }
            @if lines.is_empty() {
                @match measured.edit.as_ref().filter(|_| has_room) {
                    Some(edit) => (edit.html),
                    None => p.diff-name { (why_not(&row.path, has_room, site)) },
                }
            }
            @else { (diff::numbered_table(&shown(&row.path, site), &lines, LINES_SHOWN)) }
        }
    }
}

fn why_not(path: &str, has_room: bool, site: &Site) -> &'static str {
    let is_secret = site.places.mask.as_ref().is_some_and(|mask| mask.is_sensitive_file(path));
    match (is_secret, has_room) {
        (true, _) => "This file is a secret as a whole; its content is not shown.",
        (false, false) => "This page has no room for it; choose the file to see it.",
        (false, true) => "What changed in it is not known, or it is no text.",
    }
}

/// What one change changed, masked as everything is, and whether the file after it is known.
fn compared(session: &Session, history: &FileHistory, row: &FileRow, at: usize, site: &Site) -> (Option<String>, bool) {
    if site.places.mask.as_ref().is_some_and(|mask| mask.is_sensitive_file(&row.path)) {
        return (None, false);
    }
    let Some(path) = history.changed().find(|path| path.as_str() == row.path) else { return (None, false) };
    let after = |at: usize| version(session, history, path, row.changes[at].record.as_str());
    let Some(now) = after(at).and_then(|version| content(history, path, &version)) else { return (None, false) };
    let before = at.checked_sub(1).map_or_else(|| history.version_at_start(path), after);
    let before = before.and_then(|version| content(history, path, &version));
    let diff = before.and_then(|before| unified_diff(&row.path, before.as_deref(), now.as_deref()));
    (diff.map(|diff| site.masked(&diff)), true)
}

/// What a call says of a change.
struct Edit {
    html: Markup,
    lines: (usize, usize),
}

/// A message up to a record, whose call is then the last one.
fn message_up_to<'s>(
    session: &'s Session,
    head: Option<&Conversation<'s, 's>>,
    record: RecordRef<'s>,
) -> Option<Message> {
    let own = head.and_then(|head| Some(head.records(head.position(record)?)));
    let branch = match own {
        Some(own) => {
            let mut records: Vec<RecordRef<'s>> = own.collect();
            let end = records.iter().position(|own| own.order() == record.order());
            records.truncate(end.map_or(records.len(), |end| end + 1));
            Branch { records, gaps: Vec::new(), cycle: Vec::new() }
        }
        None => session.branch(record),
    };
    let conversation = Conversation::new(&branch);
    conversation.message(conversation.position(record)?)?.ok()
}

/// What the call that made a change says of it, where no copy of the file was kept.
fn edit_of<'s>(
    session: &'s Session,
    head: Option<&Conversation<'s, 's>>,
    row: &FileRow,
    at: usize,
    site: &Site,
) -> Option<Edit> {
    if site.places.mask.as_ref().is_some_and(|mask| mask.is_sensitive_file(&row.path)) {
        return None;
    }
    let message = message_up_to(session, head, session.find(row.changes[at].message.as_str()).ok()?)?;
    let calls = message.parts.iter().filter_map(Part::as_call);
    let edit = calls.rev().find_map(|call| match ToolView::of(call) {
        ToolView::Change(changes) => {
            let files = changes.files.into_iter().filter(|file| file.path.ends_with(&row.path)).collect::<Vec<_>>();
            (!files.is_empty()).then_some((files, changes.left_out))
        }
        _ => None,
    });
    let (files, left_out) = edit?;
    let room = Room::of_page(PAGE_BYTES);
    let look = Look { level: 3, ..site.look(session, false, "", &room) };
    let lines = files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed));
    Some(Edit { html: diff::changes(&Changes { files, left_out }, &look), lines })
}

fn version(session: &Session, history: &FileHistory, path: &ProjectPath, record: &str) -> Option<KnownVersion> {
    history.version_after(path, session.find(record).ok()?)
}

/// The text of a version; the inner `None` is a file that is not there.
fn content(history: &FileHistory, path: &ProjectPath, version: &KnownVersion) -> Option<Option<String>> {
    match version.as_ref().ok()? {
        FileVersion::Absent => Some(None),
        version => {
            let bytes = history.content(path, version).ok()??;
            let text =
                String::from_utf8(bytes).ok().filter(|text| text.len() <= COMPARED_BYTES && !text.contains('\0'))?;
            Some(Some(text))
        }
    }
}

/// What an undo would do, and the command that does it.
fn plan(
    session: &Session,
    history: Arc<FileHistory>,
    turns: &[TurnRow],
    entry: &Entry,
    params: &Params,
    site: &Site,
) -> Markup {
    let host = Host { data: site.data.clone(), ..site.host.clone() };
    let planned = Undo::with_history(session, host, history).and_then(|undo| {
        let goal = match params.get("to") {
            Some(record) => Goal::Before(session.find(record)?.id().into_owned()),
            None => Goal::LastTurn,
        };
        undo.plan(&goal, Scope::FilesOnly)
    });
    html! {
        aside.plan aria-labelledby="plan-title" {
            header { h2 id="plan-title" { "If you undo" } (goals(turns, entry, params, site)) }
            @match planned {
                Ok(plan) => (planned_files(&plan, entry, params, site)),
                Err(why) => p class="plan-say notice-warn" { (icon("warn")) span { (text::brief(&site.masked(&why.to_string()), 300)) } },
            }
        }
    }
}

fn goals(turns: &[TurnRow], entry: &Entry, params: &Params, site: &Site) -> Markup {
    html! {
        form.plan-to action={ (address(entry)) "/files" } {
            select name="to" aria-label="Undo to before which message" {
                option value="" { "the last turn" }
                @for row in turns {
                    @let id = row.first.as_str();
                    @let when = row.at.map(|at| at.to_zoned(site.zone.clone()).strftime("%H:%M ").to_string()).unwrap_or_default();
                    option value=(id) selected[params.get("to") == Some(id)] { "before " (when) "“" (text::brief(&row.text, 30)) "”" }
                }
            }
            button.btn { "Show" }
        }
    }
}

fn planned_files(plan: &Plan, entry: &Entry, params: &Params, site: &Site) -> Markup {
    let short = text::short_id(entry.row.id.as_str());
    let target = params.get("to").map(|to| format!("{short}#{}", text::short_id(to))).unwrap_or(short);
    let is_blocked = !plan.is_ready(Blocked::Stop);
    let mut words = vec!["scrollback", "undo", target.as_str()];
    if is_blocked {
        words.push("--skip-conflicts");
    }
    html! {
        @if plan.is_empty() { p.plan-say { "Nothing would change: every file is as it was." } }
        @else if is_blocked {
            p class="plan-say notice-warn" { (icon("warn")) span { b { "Nothing would be changed:" } " a file is not as the session left it, and it is all or nothing." } }
        }
        ol {
            @for file in plan.files.iter().take(FILES_LISTED) {
                @let (act, class) = match (file.state, file.action) {
                    (Readiness::Ready, Action::Restore) => ("put back", "plan-act plan-back"),
                    (Readiness::Ready, Action::Create) => ("bring back", "plan-act plan-back"),
                    (Readiness::Ready, Action::Delete) => ("delete", "plan-act plan-del"),
                    (Readiness::Ready, Action::None) => ("as it is", "plan-act"),
                    (state, _) => (state.name(), "plan-act"),
                };
                li class=(if file.state == Readiness::Ready { "plan-file" } else { "plan-file plan-conflict" }) {
                    span class=(class) { (act) } code { (shown(&file.path, site)) }
                    span.plan-why { (shown(file.reason.as_deref().unwrap_or(if file.is_rebuilt { "rebuilt from the edits" } else { "" }), site)) }
                }
            }
        }
        @if let Some(UndoHead::Record(head)) = &plan.head { p.meta { "The conversation goes on from " code { (text::short_id(head.as_str())) } } }
        footer { p.meta { "Pages only look. In a terminal:" } (command(&words)) }
    }
}
