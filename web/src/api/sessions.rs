//! Sessions: the list, as `list --json` has it, and one of them.

use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use scrollback::session::{Source, State};
use scrollback::view::{SessionRow, listing};
use scrollback_index::query::Query;

use super::{Ask, List, Problem, invalid_cursor, tag_of};
use crate::catalogue::Entry;
use crate::pages::home::{is_running, project_name};

/// How many sessions a page of the list has, and how many at most.
const USUAL: usize = 100;
const MOST: usize = 1_000;

/// The list.
pub(super) fn list(ask: &Ask) -> Result<Response, Problem> {
    let mut found = wanted(ask)?;
    if !ask.is_set("sidechains")? {
        found.retain(|(row, _)| row.parent_session.is_none());
    }
    let limit = ask.limit(USUAL, MOST)?;
    let from = match ask.params.get("cursor") {
        Some(cursor) => Cursor::parse(cursor).ok_or_else(|| invalid_cursor(cursor))?.after(&found),
        None => 0,
    };
    // Rows of large sessions come from the index, and which requests they have is kept beside them.
    (ask.site.open_archive)().add_requests(&mut found);
    listing::mark_copied_requests(&mut found.iter_mut().map(|(row, _)| &mut **row).collect::<Vec<_>>());
    let page: Vec<&SessionRow> = found.iter().skip(from).take(limit).map(|(row, _)| &**row).collect();
    let has_more = from + page.len() < found.len();
    let next = page.last().filter(|_| has_more).map(|last| Cursor::of(last).text());
    ask.json(&List { items: page, next })
}

/// One of them, read whole.
pub(super) fn one(ask: &Ask) -> Result<Response, Problem> {
    let entry = ask.entry()?;
    let tag = tag_of(&entry.source);
    if let Some(unchanged) = tag.as_deref().and_then(|tag| ask.unchanged(tag)) {
        return Ok(unchanged);
    }
    let row = ask.site.whole(&entry.source)?.row()?;
    let mut response = ask.json(&row)?;
    // The tag of the session costs no reading the next time.
    if let Some(tag) = tag.and_then(|tag| tag.parse().ok()) {
        response.headers_mut().insert(axum::http::header::ETAG, tag);
    }
    Ok(response)
}

/// The sessions that the parameters select, the newest first.
pub(super) fn wanted(ask: &Ask) -> Result<Vec<(Box<SessionRow>, Source)>, Problem> {
    let (since, until) = (ask.time("since")?, ask.time("until")?);
    let now = (ask.site.now)();
    let query = ask.params.get("q").filter(|_| ask.names.is_empty());
    let query = query.map(|typed| Query::parse(typed, now, &ask.site.zone)).transpose();
    let query = query.map_err(|error| invalid_query(&error))?;
    let is_state = |state: &str| state == "running" || serde_json::from_value::<State>(state.into()).is_ok();
    if let Some(state) = ask.params.get("state").filter(|state| !is_state(state)) {
        return Err(Problem::usage(format!("state: {state:?} is none of the states of sessions")));
    }
    check_dialect(ask)?;
    let is_wanted = |entry: &&Entry| {
        let row = &entry.row;
        is_of(row, ask)
            && since.is_none_or(|since| row.updated.is_some_and(|at| at >= since))
            && until.is_none_or(|until| row.updated.is_some_and(|at| at < until))
            && ask.params.get("state").is_none_or(|state| match state {
                "running" => is_running(entry, now),
                state => row.state.is_some_and(|own| own.name() == state),
            })
    };
    let shelf = ask.site.catalogue.shelf();
    let entries = shelf.entries.iter().filter(is_wanted);
    let mut found: Vec<_> = entries.map(|entry| (entry.row.clone(), entry.source.clone())).collect();
    if let Some(query) = query {
        (ask.site.open_archive)().narrow(&query, &mut found);
    }
    Ok(found)
}

/// Fails if an agent is asked for that nobody knows.
pub(super) fn check_dialect(ask: &Ask) -> Result<(), Problem> {
    let Some(name) = ask.params.get("dialect").or(ask.params.get("agent")) else { return Ok(()) };
    let is_known = scrollback::dialect::named(name).is_some() || name == "unknown";
    if is_known { Ok(()) } else { Err(Problem::usage(format!("dialect: {name:?} is none that can be read"))) }
}

/// Whether a session is of the agent and the project that are asked for.
pub(super) fn is_of(row: &SessionRow, ask: &Ask) -> bool {
    let dialect = ask.params.get("dialect").or(ask.params.get("agent"));
    let is_project = ask.params.get("project").is_none_or(|project| match project {
        "-" => row.project.is_none(),
        project => row.project.as_deref() == Some(project) || project_name(row.project.as_deref()) == project,
    });
    dialect.is_none_or(|dialect| row.dialect == dialect) && is_project
}

pub(super) fn invalid_query(error: &scrollback_index::query::QueryError) -> Problem {
    let problem = Problem::usage(format!("q: {} at byte {}", error.message, error.at.start));
    match &error.hint {
        Some(hint) => problem.hint(hint.clone()),
        None => problem,
    }
}

/// The last session of a page: the next one begins behind it, whatever came on top meanwhile.
struct Cursor {
    updated: Option<Timestamp>,
    path: String,
}

impl Cursor {
    fn of(row: &SessionRow) -> Cursor {
        Cursor { updated: row.updated, path: format!("{}\t{}", row.id, row.path) }
    }

    fn text(&self) -> String {
        let updated = self.updated.map(|at| at.to_string()).unwrap_or_default();
        URL_SAFE_NO_PAD.encode(format!("{updated}\t{}", self.path))
    }

    fn parse(text: &str) -> Option<Cursor> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (updated, path) = text.split_once('\t')?;
        let updated = if updated.is_empty() { None } else { Some(updated.parse().ok()?) };
        Some(Cursor { updated, path: path.to_owned() })
    }

    fn after(&self, found: &[(Box<SessionRow>, Source)]) -> usize {
        let same = |(row, _): &(Box<SessionRow>, Source)| {
            row.updated == self.updated && format!("{}\t{}", row.id, row.path) == self.path
        };
        // One that has changed since is at the top now: what is older than it was comes next.
        let older = |(row, _): &(Box<SessionRow>, Source)| row.updated < self.updated;
        let at = found.iter().position(same).map(|at| at + 1);
        at.or_else(|| found.iter().position(older)).unwrap_or(found.len())
    }
}
