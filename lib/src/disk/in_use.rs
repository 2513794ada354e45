//! Whether another program may be writing to a session. DESIGN.md, "When is a session in use by another program?".

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

/// A session that was written to this recently may still have a writer.
const IN_USE_SECONDS: i64 = 60;

/// Whether the log was written to in the last minute, and no sidecar says that its recorder has closed it.
pub(crate) fn is_in_use(path: &Path, newest: Option<Timestamp>, sidecar: Option<&Value>, now: Timestamp) -> bool {
    let Ok(log) = fs::metadata(path) else { return false };
    // A copy is as old as its records; only a log without times is as old as its file.
    let modified = || Timestamp::try_from(log.modified().ok()?).ok();
    let is_recent = newest.or_else(modified).is_some_and(|newest| is_recent(newest, now));
    is_recent && !sidecar.is_some_and(|sidecar| is_closed(sidecar, log.len()))
}

/// Whether a recorder of ours wrote to the log in the last minute and has not closed it. `free` is the token of a lock that nobody
/// holds: a recorder that held it has ended, even if it could not say so.
pub(crate) fn is_recording(
    newest: Option<Timestamp>,
    sidecar: Option<&Value>,
    free: Option<&str>,
    now: Timestamp,
) -> bool {
    let is_open = |sidecar: &Value| {
        let has_ended = free.is_some_and(|token| sidecar["recordingLock"] == token);
        sidecar["recording"] == true && !has_ended
    };
    sidecar.is_some_and(is_open) && newest.is_some_and(|newest| is_recent(newest, now))
}

fn is_recent(newest: Timestamp, now: Timestamp) -> bool {
    now.duration_since(newest).as_secs().abs() < IN_USE_SECONDS
}

/// Whether the sidecar says that there is no recorder, and the log has not grown since.
fn is_closed(sidecar: &Value, length: u64) -> bool {
    sidecar["recording"] != true && sidecar["sizeBytes"].as_u64() == Some(length)
}
