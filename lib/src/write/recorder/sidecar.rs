//! Writes the sidecar of a log: when the session is created, titled and closed, and at most once a second.

use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use super::log::{Log, Place};
use crate::dialect::writer::{End, Tally};
use crate::disk::append::Warning;
use crate::disk::replace::{Durable, replace};
use crate::disk::sidecar::{self, Sidecar};
use crate::model::error::{At, Result};
use crate::model::{git, json};

/// How often the sidecar is written while records come.
const SIDECAR_EVERY_MS: i64 = 1_000;

/// How much of a prompt is repeated in the sidecar.
const PROMPT_CHARS: usize = 100;

/// Whether the sidecar's title is behind the log's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TitleState {
    /// The log has a newer title.
    Due,
    /// The sidecar has the title; if another program changes it there, that one is newer.
    Written,
}

impl Log {
    /// Writes the sidecar. It is derived from the log, so a failure is only a warning.
    pub(crate) fn write_sidecar(&mut self) {
        // Lines that are held may never be in the log.
        if self.place.sidecar.is_none() || self.held.is_some() {
            return;
        }
        self.sidecar_at = Some((self.place.host.now)());
        let mut tally = self.cursor.tally.clone();
        tally.size_bytes = self.appender.len().unwrap_or_default();
        tally.lock = self.lock_token();
        tally.prompts = tally.prompts.map(|(first, last)| (self.shown_prompt(&first), self.shown_prompt(&last)));
        let (dialect, is_written, before) =
            (self.place.dialect, self.title == TitleState::Written, &mut self.sidecar_before);
        let written = self.appender.check_inside().and_then(|()| {
            replace_sidecar(&self.place, |old, build| {
                if let Some(value) = old.as_ref().filter(|_| is_written) {
                    tally.title = sidecar::title(dialect, value);
                }
                build(old.or_else(|| before.take()), &tally)
            })
        });
        match written {
            Ok(()) => self.title = TitleState::Written,
            Err(error) => self.warning(Warning::of_sidecar(&error)),
        }
    }

    /// The beginning of a prompt, masked before it is cut.
    fn shown_prompt(&self, start: &str) -> String {
        self.place
            .masked_start(start, &self.cursor.chain.sensitive_calls)
            .chars()
            .take(PROMPT_CHARS)
            .collect()
    }

    pub(super) fn write_sidecar_if_due(&mut self, at: Timestamp) {
        let is_due = |last: Timestamp| at.as_millisecond().saturating_sub(last.as_millisecond()) >= SIDECAR_EVERY_MS;
        if self.sidecar_at.is_none_or(is_due) {
            self.write_sidecar();
        }
    }
}

/// Builds the content of a sidecar from the old one: see [`crate::dialect::writer::Writer::sidecar`].
type Build = fn(Option<Value>, &Tally) -> Value;

/// Replaces the sidecar of a log by what `content` makes of the old one, with the format's own function. One that cannot be parsed
/// is left for its owner to repair.
pub(crate) fn replace_sidecar(place: &Place, content: impl FnOnce(Option<Value>, Build) -> Value) -> Result<()> {
    let (Some(path), Some(build)) = (&place.sidecar, place.writing.sidecar) else { return Ok(()) };
    let old = match sidecar::read(&*place.disk, path) {
        Sidecar::Content(value) => Some(value),
        Sidecar::Missing => None,
        Sidecar::Damaged => return Err(io::Error::from(io::ErrorKind::InvalidData)).at(path),
    };
    let mut new = content(old, build);
    if let Some(redactor) = &place.redactor {
        redactor.json(&mut new);
    }
    let text = json::to_string_pretty(&new) + "\n";
    replace(&*place.disk, path, &(place.host.new_id)(), text.as_bytes(), Durable::No)
}

/// The tally of a new session.
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
        lock: None,
        end: End::Closed,
        forked_from: place.forked_from.as_ref().map(|(session, _)| session.clone()),
        is_redacted: place.redactor.is_some(),
    }
}
