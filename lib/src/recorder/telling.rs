//! What the file beside a log is told of it: at the beginning, at a title, at the end, and now and then.

use std::path::Path;

use jiff::Timestamp;

use super::log::{Log, Place};
use crate::append::Surprise;
use crate::git;
use crate::redact;
use crate::replace::{Keep, replace};
use crate::sidecar::{self, Sidecar};
use crate::writing::{End, Tally};

/// How often the sidecar is written while records come.
const SIDECAR_EVERY_MS: i64 = 1_000;

/// Whether the sidecar's title is behind the log's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Title {
    /// The log says it anew.
    Due,
    /// It was told: from now on whoever changes it in the sidecar knows better.
    Told,
}

impl Log {
    /// Writes what the file beside the log says. It is derived: that it could not be written stops nothing.
    pub(crate) fn tell_sidecar(&mut self) {
        let (Some(path), Some(tell)) = (self.place.sidecar.clone(), self.place.writing.sidecar) else { return };
        self.sidecar_at = Some((self.place.host.now)());
        let mut tally = self.start.tally.clone();
        tally.size_bytes = self.appender.len().unwrap_or_default();
        let before = match sidecar::read(&*self.place.disk, &path) {
            Sidecar::Says(value) => {
                if self.title == Title::Told {
                    tally.title = sidecar::title(self.place.dialect, &value);
                }
                Some(value)
            }
            Sidecar::Nothing => self.sidecar_before.take(),
            // Somebody may want to mend it: what it should say is in the log.
            Sidecar::Unclear => return self.surprise(Surprise::NoSidecar),
        };
        let mut told = tell(before, &tally);
        redact::scrub(&mut told, &[]);
        let Ok(mut bytes) = serde_json::to_vec_pretty(&told) else { return };
        bytes.push(b'\n');
        let new_id = (self.place.host.new_id)();
        let inside = self.appender.check_inside();
        if inside.and_then(|()| replace(&*self.place.disk, &path, &new_id, &bytes, Keep::IfPossible)).is_err() {
            return self.surprise(Surprise::NoSidecar);
        }
        self.title = Title::Told;
    }

    pub(super) fn tell_sidecar_in_time(&mut self, at: Timestamp) {
        let is_due = |last: Timestamp| at.as_millisecond().saturating_sub(last.as_millisecond()) >= SIDECAR_EVERY_MS;
        if self.sidecar_at.is_none_or(is_due) {
            self.tell_sidecar();
        }
    }
}

/// What the tally needs to be a new session's.
pub(crate) fn first_tally(place: &Place, project: &Path) -> Tally {
    Tally {
        session: place.session.clone(),
        project: project.to_string_lossy().into_owned(),
        cwd: place.host.cwd.to_string_lossy().into_owned(),
        git_branch: git::branch(&place.host.cwd),
        version: place.host.version.clone(),
        started: None,
        updated: None,
        title: None,
        prompts: None,
        model: None,
        messages: 0,
        size_bytes: 0,
        usage: None,
        is_open: true,
        end: End::Closed,
        forked_from: place.forked_from.as_ref().map(|(session, _)| session.clone()),
    }
}
