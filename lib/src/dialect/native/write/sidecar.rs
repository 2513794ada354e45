//! Writes `metadata.json` beside a log: what lists show without reading the log.

use jiff::Timestamp;
use serde_json::Value;

use super::line::usage;
use crate::dialect::line_builder;
use crate::dialect::writer::{self, End, Tally};
use crate::model::record::SessionId;

/// Has the keys of Sage, in their order.
pub(super) fn sidecar(before: Option<Value>, tally: &Tally) -> Value {
    let mut before = line_builder::fields(before.unwrap_or_default());
    let (first, last) = tally.prompts.as_ref().map(|(first, last)| (first.as_str(), last.as_str())).unzip();
    let text = |text: Option<&str>| text.map(Value::from);
    let instant = |at: Option<Timestamp>| at.map(|at| at.to_string().into());
    let known = [
        ("id", text(Some(tally.session.as_str()))),
        ("customTitle", text(tally.title.as_deref())),
        ("name", before.shift_remove("name")),
        ("firstPrompt", text(first)),
        ("lastPrompt", text(last)),
        ("summary", before.shift_remove("summary")),
        ("createdAt", instant(tally.started)),
        ("updatedAt", instant(tally.updated)),
        ("workingDirectory", text(Some(&tally.cwd))),
        ("gitBranch", text(tally.git_branch.as_deref())),
        ("model", text(tally.model.as_deref())),
        ("version", text(Some(&tally.version))),
        ("messageCount", Some(tally.messages.into())),
        ("sizeBytes", Some(tally.size_bytes.into())),
        ("state", text(Some(state(tally)))),
        ("recording", tally.is_open.then_some(true.into())),
        ("recordingLock", text(tally.lock.as_deref().filter(|_| tally.is_open))),
        ("tokenUsage", tally.usage.map(usage)),
        // Once off, the session may have secrets in it for ever.
        ("redaction", before.shift_remove("redaction").or_else(|| text((!tally.is_redacted).then_some("off")))),
        ("forkedFrom", text(tally.forked_from.as_ref().map(SessionId::as_str))),
    ];
    writer::sidecar(known, before)
}

/// The state in Sage's terms: a session that ended with an error is `failed`, one that continues is `active`.
fn state(tally: &Tally) -> &'static str {
    match tally.end {
        End::Failed if !tally.is_open => "failed",
        End::Closed if !tally.is_open => "completed",
        End::Closed | End::BrokenOff | End::Failed => "active",
    }
}
