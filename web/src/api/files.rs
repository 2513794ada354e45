//! The files that a session changed, as `files --json` has them.

use axum::response::Response;
use scrollback::view::files::FileRow;
use scrollback::write::file_history;

use super::{Ask, List, Problem};

/// How many files one answer has.
const MOST: usize = 10_000;

/// The files.
pub(crate) fn list(ask: &Ask) -> Result<Response, Problem> {
    let entry = ask.entry()?;
    let session = ask.site.whole(&entry.source)?;
    let mut rows = file_history(&session, ask.site.data.as_deref(), None)?.rows();
    rows.iter_mut().for_each(|row| mask(row, ask));
    let mut text = Vec::new();
    // Beside the path of a file that is a secret as a whole, every string would be masked: the rows are masked already.
    scrollback::model::json::write(&mut text, &List::page(rows, ask, MOST)?).map_err(|_| Problem::internal())?;
    // Not the tag of the session: restores are noted elsewhere.
    Ok(ask.tagged(text))
}

/// Paths and names of tools come from the session, too.
fn mask(row: &mut FileRow, ask: &Ask) {
    row.path = ask.site.masked(&row.path);
    let tools = row.changes.iter_mut().filter_map(|change| change.tool.as_mut());
    tools.for_each(|tool| *tool = ask.site.masked(tool));
}
