//! Something wrong in a file's content, with its place. Reading reports it and continues.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::model::place::Place;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// The file, where the session has several or the reader knows its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, counted from 1; unknown when only the end of the file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The first byte.
    pub offset: u64,
    /// How many bytes, when they belong to no record.
    #[serde(skip)]
    pub length: u64,
    /// What it is.
    pub kind: IssueKind,
    /// Whether something was lost.
    pub severity: Severity,
    /// What is wrong and what was kept, in a sentence.
    pub detail: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Something is lost or cannot be trusted.
    Error,
}

named_enum! {
    /// What can be wrong.
    IssueKind {
        /// A line without any JSON.
        NotJson = "not-json",
        /// A JSON value that is not an object.
        NotAnObject = "not-an-object",
        /// Several records share one line.
        Glued = "glued",
        /// A record was cut off.
        Torn = "torn",
        /// Bytes that are not UTF-8, or half of a surrogate pair.
        BadUtf8 = "bad-utf8",
        /// NUL bytes, as a crash leaves them.
        NulBytes = "nul-bytes",
        /// A value over the limit.
        TooLong = "too-long",
        /// A record whose parent is missing.
        Orphan = "orphan",
        /// Records that are their own ancestors.
        Cycle = "cycle",
        /// Fragments of one record name different parents.
        ConflictingParent = "conflicting-parent",
        /// A time that cannot be read, or is in the future.
        BadTime = "bad-time",
        /// A record lacks what its kind needs.
        MissingField = "missing-field",
        /// A message that its agent's own rules reject.
        InvalidMessage = "invalid-message",
        /// A session's log that is missing.
        LogMissing = "log-missing",
        /// A file beside the log that cannot be read.
        UnreadableFile = "unreadable-file",
        /// A second file of the same name in the store, with other content; it is ignored.
        OtherCopy = "other-copy",
        /// A tool result without its call.
        OrphanResult = "orphan-result",
        /// A second result for one call.
        DuplicateResult = "duplicate-result",
        /// Two sessions in one file.
        MixedSession = "mixed-session",
        /// A kind of record that this version does not know.
        UnknownKind = "unknown-kind",
        /// The same line again.
        DuplicateLine = "duplicate-line",
        /// The same id again, with other content, in a format where only the order links records.
        DuplicateId = "duplicate-id",
        /// A tool call without a result.
        UnansweredCall = "unanswered-call",
        /// A sidecar that is not what its agent writes; the log counts anyway.
        DamagedSidecar = "damaged-sidecar",
        /// A gap that was closed by a guess, as the agent does.
        BridgedGap = "bridged-gap",
        /// A content that a record names is not in the store, so that an undo cannot restore it. Only `doctor` looks.
        MissingCopy = "missing-copy",
        /// The working directory does not exist on this machine. Only `doctor` looks.
        MissingCwd = "missing-cwd",
    }
}

impl IssueKind {
    /// Whether bytes of a file say nothing that can be read.
    pub fn is_loss(self) -> bool {
        use IssueKind::{BadUtf8, NotAnObject, NotJson, NulBytes, TooLong, Torn, UnreadableFile};
        matches!(self, NotJson | NotAnObject | Torn | BadUtf8 | NulBytes | TooLong | UnreadableFile)
    }

    /// How bad it is.
    pub fn severity(self) -> Severity {
        let is_note = matches!(
            self,
            IssueKind::UnknownKind
                | IssueKind::DuplicateLine
                | IssueKind::DuplicateId
                | IssueKind::UnansweredCall
                | IssueKind::DamagedSidecar
                | IssueKind::BridgedGap
                | IssueKind::MissingCwd
        );
        if is_note { Severity::Note } else { Severity::Error }
    }
}

/// The issues of a session. Only so many are kept, and the rest is counted: a damaged file must not fill the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Issues {
    pub(crate) kept: Vec<Issue>,
    pub(crate) errors_beyond: u64,
    pub(crate) notes_beyond: u64,
}

/// How many issues are kept.
const ISSUES_KEPT: usize = 100_000;

/// How much of a foreign text an issue repeats.
const QUOTED_CHARS: usize = 80;

impl Issue {
    pub(crate) fn at(place: Place, file: Option<String>, kind: IssueKind, detail: String) -> Issue {
        Issue {
            file,
            line: (place.line > 0).then_some(u64::from(place.line)),
            offset: place.offset,
            length: 0,
            kind,
            severity: kind.severity(),
            detail,
        }
    }
}

impl Issues {
    pub(crate) fn push(&mut self, issue: Issue) {
        match issue.severity {
            _ if self.kept.len() < ISSUES_KEPT => self.kept.push(issue),
            Severity::Error => self.errors_beyond += 1,
            Severity::Note => self.notes_beyond += 1,
        }
    }

    pub(crate) fn beyond(&self) -> u64 {
        self.errors_beyond + self.notes_beyond
    }
}

/// A foreign name for one line: line breaks and control characters are replaced.
pub(crate) fn one_line(name: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if name.contains(breaks) { Cow::Owned(name.replace(breaks, "\u{FFFD}")) } else { Cow::Borrowed(name) }
}

/// Quotes a text from a file or another program for a message; a long one is cut.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
