//! Whether somebody else may be writing to a session. DESIGN.md, "When is a session in use by another program?".

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde_json::Value;

/// A session that was written to this recently may be another program's.
const IN_USE_SECONDS: i64 = 60;

/// What a recorder that closes a log leaves below the milliseconds of the file's time, where the system puts what its clock
/// says. Whole tenths of a microsecond: every file system that tells more than milliseconds keeps those.
const CLOSED_NANOS: u32 = 424_200;

/// A log's time once its recorder is closed.
pub(crate) fn marked(at: Timestamp) -> SystemTime {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(millis) + Duration::from_nanos(u64::from(CLOSED_NANOS))
}

/// Whether another program wrote to the log just now, and did not say that it had finished.
pub(crate) fn is_in_use(path: &Path, newest: Option<Timestamp>, sidecar: Option<&Value>, now: Timestamp) -> bool {
    let Ok(log) = fs::metadata(path) else { return false };
    let modified = log.modified().ok();
    // A copy is as old as what it says; only a log that tells no time is as old as its file.
    let newest = newest.or_else(|| modified.and_then(|modified| Timestamp::try_from(modified).ok()));
    let is_recent = newest.is_some_and(|newest| is_recent(newest, now));
    let is_closed = modified.is_some_and(is_marked) || sidecar.is_some_and(|told| tells_closed(told, log.len()));
    is_recent && !is_closed
}

/// Whether a recorder of ours wrote to the log just now, and has not closed it.
pub(crate) fn is_recording(path: &Path, newest: Option<Timestamp>, sidecar: Option<&Value>, now: Timestamp) -> bool {
    // One that nobody records may end in a prompt: then it is not over.
    let is_marked = fs::metadata(path).and_then(|log| log.modified()).is_ok_and(is_marked);
    let is_open = !is_marked && sidecar.is_some_and(|told| told["state"] == "active");
    is_open && newest.is_some_and(|newest| is_recent(newest, now))
}

fn is_recent(newest: Timestamp, now: Timestamp) -> bool {
    now.duration_since(newest).as_secs().abs() < IN_USE_SECONDS
}

fn is_marked(modified: SystemTime) -> bool {
    modified
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|since| since.subsec_nanos() % 1_000_000 == CLOSED_NANOS)
}

/// Whether a sidecar says that the log was closed, and the log is what it was then.
fn tells_closed(told: &Value, length: u64) -> bool {
    told["state"] == "completed" && told["sizeBytes"].as_u64() == Some(length)
}
