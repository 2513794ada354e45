//! Reads the sidecar of a log: derived from the log, and written by other programs too.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::dialect::{Dialect, Event};
use crate::disk::Disk;
use crate::model::json;
use crate::model::regular_file::{self, Links};
use crate::session::read::source::SIDECAR_LIMIT_BYTES;

/// The current sidecar.
pub(crate) enum Sidecar {
    /// There is none, or nothing in it.
    Missing,
    Content(Value),
    /// It cannot be read, or is not a JSON object.
    Damaged,
}

/// Reads a sidecar in order to replace it.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> Sidecar {
    match read_bytes(disk, path) {
        // A crash left an empty file: nothing of anybody's is in it.
        Ok(bytes) if bytes.trim_ascii().is_empty() => Sidecar::Missing,
        Ok(bytes) => json::parse_bytes(&bytes).filter(json::is_object).map_or(Sidecar::Damaged, Sidecar::Content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Sidecar::Missing,
        Err(_) => Sidecar::Damaged,
    }
}

fn read_bytes(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let length = file.len()?.min(SIDECAR_LIMIT_BYTES);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let read = crate::disk::append::fill(&*file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The content of a sidecar; `None` if it cannot be read.
pub(crate) fn content(path: &Path) -> Option<Value> {
    json::parse_bytes(&regular_file::read(path, SIDECAR_LIMIT_BYTES, Links::Follow).ok()?)
}

/// The title of the session.
pub(crate) fn title(dialect: &dyn Dialect, sidecar: &Value) -> Option<String> {
    first(dialect, sidecar, |event| if let Event::Title { text, .. } = event { Some(text.into_owned()) } else { None })
}

/// The working directory of the agent.
pub(crate) fn cwd(dialect: &dyn Dialect, sidecar: &Value) -> Option<String> {
    first(dialect, sidecar, |event| if let Event::Facts(about) = event { Some(about.cwd?.into_owned()) } else { None })
}

/// The first event of a kind.
fn first(dialect: &dyn Dialect, sidecar: &Value, wanted: fn(Event<'_>) -> Option<String>) -> Option<String> {
    let (mut found, text) = (None, json::to_string(sidecar));
    dialect.sidecar(&text, &mut |event| found = found.take().or_else(|| wanted(event))).ok()?;
    found
}
