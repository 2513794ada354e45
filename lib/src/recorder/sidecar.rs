//! The file beside a log, as it is now: others write it too.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::dialect::{Dialect, Event};
use crate::disk::Disk;

/// A sidecar is a few lines; more is not one.
const SIDECAR_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// What is there.
pub(super) enum Sidecar {
    Nothing,
    Says(Value),
    /// It cannot be read, or is no JSON object.
    Unclear,
}

pub(super) fn read(disk: &dyn Disk, path: &Path) -> Sidecar {
    match read_bytes(disk, path).map(|bytes| serde_json::from_slice(&bytes)) {
        Ok(Ok(value @ Value::Object(_))) => Sidecar::Says(value),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Sidecar::Nothing,
        Ok(_) | Err(_) => Sidecar::Unclear,
    }
}

fn read_bytes(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path)?;
    let length = file.len()?.min(SIDECAR_LIMIT_BYTES);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let read = crate::append::fill(&*file, 0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// The title that somebody gave the session.
pub(super) fn title(dialect: &dyn Dialect, told: &Value) -> Option<String> {
    let (mut title, text) = (None, told.to_string());
    let take = &mut |event: Event<'_>| {
        if let (Event::Title { text, .. }, None) = (event, &title) {
            title = Some(text.into_owned());
        }
    };
    dialect.sidecar(&text, take).ok()?;
    title
}
