//! Secrets do not leave a session that was opened with a redactor: what is read of it afterwards is masked.
//!
//! Records are masked where their bytes are read, so that messages, model views, trees and lists of calls agree.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use serde_json::{Value, json};

use crate::model::error::Result;
use crate::model::lenient::to_text;
use crate::model::message::Part;
use crate::model::record::{Body, Kind, Outcome, ToolResult};
use crate::redact::{Redactor, SensitiveCalls};
use crate::session::{RecordRef, Session};

/// What a record of the user has in it if there is a result of a call, or of what the user ran or mentioned.
#[rustfmt::skip]
const RESULT_MARKS: [&[u8]; 8] = [
    b"tool_use_id", b"call_id", b"callId", b"CallId", b"oolUseI", b"functionResponse", b"<bash-std", b"Result of calling the Read",
];

/// Masks what is read of a session.
pub(crate) struct Mask {
    redactor: Arc<Redactor>,
    calls: Mutex<KnownCalls>,
}

/// Calls on sensitive files: their results are in other records.
#[derive(Default)]
struct KnownCalls {
    calls: SensitiveCalls,
    /// How many entries of the skeleton were looked at.
    entries: usize,
}

impl Mask {
    pub(crate) fn new(redactor: Arc<Redactor>) -> Mask {
        Mask { redactor, calls: Mutex::default() }
    }

    /// For a session of which these many entries are known to make these calls.
    pub(crate) fn knowing(redactor: Arc<Redactor>, calls: SensitiveCalls, entries: usize) -> Mask {
        Mask { redactor, calls: Mutex::new(KnownCalls { calls, entries }) }
    }

    /// The pieces of a record without secrets.
    pub(crate) fn pieces(&self, record: RecordRef<'_>, pieces: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        // Lists read only prompts, and need not know the calls. Claude Code writes results into records of the user, with text beside
        // them: these name a call.
        let is_prompt = matches!(record.kind(), Kind::User | Kind::System | Kind::Title | Kind::Header);
        let names_call =
            || pieces.iter().any(|piece| RESULT_MARKS.iter().any(|mark| memmem::find(piece, mark).is_some()));
        let may_have_result = !is_prompt || names_call();
        let mut calls = if may_have_result { self.known_calls(record.session)? } else { SensitiveCalls::new() };
        let masked = pieces.into_iter().map(|piece| match self.redactor.line_after(&mut calls, &piece).bytes {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => piece,
        });
        Ok(masked.collect())
    }

    /// Masks what a command printed as in the result that it replaces: the call may have read a sensitive file.
    pub(crate) fn late_result(&self, session: &Session, late: ToolResult) -> Result<ToolResult> {
        let mut calls = self.known_calls(session)?;
        let line =
            json!({"type": "function_call_output", "call_id": &late.call_id, "output": &late.output}).to_string();
        let masked = self.redactor.line_after(&mut calls, line.as_bytes()).bytes;
        let output = serde_json::from_slice::<Value>(&masked).ok().and_then(|line| line.get("output").cloned());
        let output = output.unwrap_or_default();
        if output == late.output {
            return Ok(late);
        }
        let outcome = match &late.outcome {
            Outcome::Failed(_) => Outcome::Failed(to_text(&output)),
            outcome => outcome.clone(),
        };
        Ok(ToolResult { output, outcome, ..late })
    }

    /// Masks the texts of a record of several pieces as they are when they are joined; `exact` is the same body with its secrets.
    pub(crate) fn joined_texts(&self, body: &mut Body, exact: &Body) {
        let (Some(content), Some(exact)) = (body.content_mut(), exact.content()) else { return };
        for (part, exact) in content.parts.iter_mut().zip(&exact.parts) {
            let (text, exact) = match (part, exact) {
                (Part::Text(part), Part::Text(exact)) => (&mut part.text, &exact.text),
                (Part::Reasoning(part), Part::Reasoning(exact)) => (&mut part.text, &exact.text),
                _ => continue,
            };
            // What comes from a sensitive file is masked for another reason than what it says.
            let whole = if text.contains("[REDACTED:file") { &*text } else { exact };
            *text = self.redactor.text(whole).text.into_owned();
        }
    }

    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// The calls of the session as it is now; of one that grows, only the new records are looked at.
    pub(crate) fn known_calls(&self, session: &Session) -> Result<SensitiveCalls> {
        let mut known = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = session.skeleton.entries.len();
        if known.entries == entries {
            return Ok(known.calls.clone());
        }
        let is_new = |record: &RecordRef<'_>| session.derived.tree.nodes[record.order()].last as usize >= known.entries;
        for record in session.records().filter(is_new).collect::<Vec<_>>() {
            for piece in record.exact()? {
                if self.redactor.may_name_sensitive_file(&piece) {
                    drop(self.redactor.line_after(&mut known.calls, &piece));
                }
            }
        }
        known.entries = entries;
        Ok(known.calls.clone())
    }
}

impl Session {
    /// A text of the session as it may leave it.
    pub(crate) fn shown(&self, text: &str) -> String {
        self.mask
            .as_ref()
            .map_or_else(|| text.to_owned(), |mask| mask.redactor.text(text).text.into_owned())
    }
}
