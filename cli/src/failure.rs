//! Why a command stopped: what failed, and a hint. The kind picks the exit code.

use std::ops::Range;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::session::resume::quote;
use crate::terminal::{clean, width};

/// The exit code when nothing was found, or something is wrong with it.
pub(crate) const FOUND_PROBLEMS: u8 = 1;

/// The exit code when nothing could be done.
pub(crate) const FAILED: u8 = 2;

/// What ends a command early.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// What is wrong with what was typed.
    pub(crate) wrong: Option<Wrong>,
}

/// A part of what was typed.
#[derive(Debug, Clone)]
pub(crate) struct Wrong {
    /// All of it, and a caret under the part.
    pub(crate) excerpt: [String; 2],
    /// The bytes of the part.
    bytes: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Nothing was found.
    NotFound,
    /// The request is invalid.
    Usage,
    /// I/O error.
    Io,
    /// The reader closed the pipe, which is not an error.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), hint: None, wrong: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// Shows what was typed with a caret under these bytes of it.
    pub(crate) fn pointing_at(self, typed: &str, wrong: Range<usize>) -> Failure {
        let columns = |text: Option<&str>| width::of(&clean::line(text.unwrap_or_default()));
        let caret = "^".repeat(columns(typed.get(wrong.clone())).max(1));
        let caret = format!("{}{caret}", " ".repeat(columns(typed.get(..wrong.start))));
        Failure { wrong: Some(Wrong { excerpt: [clean::line(typed).into_owned(), caret], bytes: wrong }), ..self }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            FailureKind::BrokenPipe => 0,
            FailureKind::NotFound => 1,
            FailureKind::Usage | FailureKind::Io => 2,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let kind = match self.kind {
            FailureKind::NotFound => "not-found",
            FailureKind::Usage => "usage",
            FailureKind::Io | FailureKind::BrokenPipe => "io",
        };
        let mut error = json!({"kind": kind, "message": self.message});
        if let Some(hint) = &self.hint {
            error["hint"] = hint.clone().into();
        }
        if let Some(Wrong { bytes, .. }) = &self.wrong {
            error["at"] = json!([bytes.start, bytes.end]);
        }
        json!({"error": error})
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Failure::new(FailureKind::BrokenPipe, "");
        }
        Failure::new(FailureKind::Io, error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => Failure::new(FailureKind::Io, error.to_string()),
        }
    }
}

impl From<scrollback::model::Error> for Failure {
    fn from(error: scrollback::model::Error) -> Failure {
        use scrollback::model::{Error, NotCleaned};
        if let Error::AmbiguousSession { paths, .. } = &error {
            return Failure::new(FailureKind::Usage, error.to_string()).hint(use_a_path(paths));
        }
        if let Error::EmptyBranch { session, left } = &error {
            let hint = format!("use {session}#{left} to take the branch that was left; {}", see_branches(session));
            return Failure::new(FailureKind::NotFound, error.to_string()).hint(hint);
        }
        let hint = match &error {
            Error::AmbiguousSession { .. } => "use its path",
            Error::EmptyBranch { .. } => "name another branch",
            Error::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => "check the path, or run `scrollback list --all` to see every session",
                std::io::ErrorKind::PermissionDenied => "check its owner and permissions",
                std::io::ErrorKind::IsADirectory => "name a session file",
                std::io::ErrorKind::InvalidInput => "sessions are written only to regular files, never through links",
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    "existing data is unchanged; free some space on that disk (run `df -h` to see it), then run the command again"
                }
                std::io::ErrorKind::FileTooLarge => "the file has reached the size limit there; start a new session",
                std::io::ErrorKind::InvalidFilename => {
                    "a name in the path is too long or has a character that is not allowed there"
                }
                std::io::ErrorKind::ReadOnlyFilesystem => "this file system can only be read",
                _ => "check the path",
            },
            Error::NotAFile(_) => "pipe it instead: `… | scrollback show -`",
            Error::ForeignTrash(_) => "restore it by hand, if you trust it",
            Error::PartlyRemoved(_) => "run `scrollback trash restore ID` to have all of it in its old place",
            Error::NotReady => "run the command again with --dry-run to see the plan",
            Error::Interrupted(_) => "run the command again: it finishes the earlier one first",
            Error::NoDataFolder => "set HOME, XDG_DATA_HOME or SCROLLBACK_HOME to an absolute path",
            Error::InvalidRoot(_) | Error::NoProject(_) => "use --root DIR to name the directory of the project",
            Error::Changed(_) => "another program rewrote it; run the command again",
            Error::NotOurTables(_) => "name a new file, or one that `scrollback export --to sqlite` made",
            Error::NewerTables(_) => "update scrollback, or name a new file",
            Error::NoSessions(_) => {
                "it needs a table `agents` with the columns id, prompt, status and model; see docs/dialects/ai-sdk.md"
            }
            Error::SeveralSessions { .. } => "add #ID to the path; run `scrollback list --store FILE` to see the ids",
            Error::TooManySessions { .. } => "split it into smaller databases",
            Error::Database { .. } => "it may be locked or damaged, or not an SQLite database",
            Error::Busy(_) => "wait until it has finished, then run the command again",
            Error::Torn(_) => {
                "earlier records are unchanged; the disk may be full; run `scrollback doctor` for details"
            }
            Error::Unsaved { .. } => "check the disk, then run the command again",
            Error::ReadOnly(_) => "the README lists the formats that scrollback writes",
            Error::CannotStore { .. } => {
                "run `scrollback convert SESSION --to native`: native stores everything that scrollback understands"
            }
            Error::NothingToStore(_) => {
                "run `scrollback show SESSION` to see it, or use --to native, which stores everything that scrollback understands"
            }
            Error::CopiedWhole => "leave out the record, or run `scrollback fork SESSION#RECORD` to copy one branch",
            Error::InvalidName { .. } => "use letters, digits, -, _ and ., or leave out the id to get a new one",
            Error::InvalidCopy(_) => "run `scrollback doctor SESSION` for details",
            Error::CannotCreate { .. } => {
                "choose the place with --project DIR or --jid JID; native accepts every directory"
            }
            Error::Ended(_) => {
                "use --jid or --project to continue the session that followed it, or `scrollback convert` to continue a copy"
            }
            Error::TooLong { .. } => "write large contents to a file and record its path",
            Error::NoSession(_) => "run `scrollback list --all` to see every session",
            Error::NoRecord(_) => "run `scrollback tree SESSION --records` to see every record",
            Error::AmbiguousRecord { .. } => "use a longer prefix",
            Error::CannotContinue { .. } => {
                "run `scrollback fork SESSION#RECORD` to get a session that ends there, or `scrollback convert SESSION --to native` to get one with branches"
            }
            Error::OutOfOrder(_) => "record the model's answer first",
            Error::DuplicateCall { .. } => "give each call its own id, so that each result belongs to one call",
            Error::InvalidTitle(_) => "use a short text without line breaks",
            Error::OtherProject { .. } => {
                "both projects get the same folder name: use another --store DIR for one of them"
            }
            Error::WithAnother { .. } => "leave out --jid: copied lines keep theirs",
            Error::NotCleaned { why, .. } => match why {
                NotCleaned::JustWritten => "close the agent that uses it, and run the command again in a minute",
                NotCleaned::Packed => "unpack it first, or write a clean copy with --output FILE",
                NotCleaned::Utf16 => "convert it to UTF-8 first: `iconv -f UTF-16 -t UTF-8`",
                NotCleaned::Database => {
                    "run `scrollback convert SESSION --to native --redact` to get a copy without secrets"
                }
                NotCleaned::Link => "name the file that it leads to",
                NotCleaned::OtherName => "remove the other name first; `find DIR -samefile FILE` finds it",
                NotCleaned::Differs(_) => "the file is unchanged; please report this with the rule that is listed",
            },
            Error::Exists(_) => "nothing is overwritten: choose another name, or move the file away first",
        };
        Failure::new(kind_of(&error), error.to_string()).hint(hint)
    }
}

/// How to name one of several sessions with the same id.
pub(crate) fn use_a_path<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    const LISTED: usize = 6;
    let mut names = paths.into_iter().map(|path| quote(&path.to_string_lossy()));
    let listed: Vec<String> = names.by_ref().take(LISTED).collect();
    let more = if names.next().is_some() { " or …" } else { "" };
    format!("use its path: {}{more}", listed.join(" or "))
}

/// The end of a hint about another branch.
pub(crate) fn see_branches(session: &str) -> String {
    format!("run `scrollback tree {session}` to see every branch")
}

/// Whether the system failed, or the request is invalid.
pub(crate) fn kind_of(error: &scrollback::model::Error) -> FailureKind {
    use scrollback::model::Error;
    match error {
        Error::NoSession(_) | Error::NoRecord(_) | Error::EmptyBranch { .. } => FailureKind::NotFound,
        Error::ReadOnly(_)
        | Error::CannotStore { .. }
        | Error::NothingToStore(_)
        | Error::CopiedWhole
        | Error::InvalidName { .. }
        | Error::CannotCreate { .. }
        | Error::Ended(_)
        | Error::TooLong { .. }
        | Error::AmbiguousSession { .. }
        | Error::AmbiguousRecord { .. }
        | Error::OutOfOrder(_)
        | Error::CannotContinue { .. }
        | Error::DuplicateCall { .. }
        | Error::InvalidTitle(_)
        | Error::OtherProject { .. }
        | Error::WithAnother { .. }
        | Error::NotCleaned { .. }
        | Error::NotReady
        | Error::NotOurTables(_)
        | Error::NewerTables(_)
        | Error::NoDataFolder
        | Error::InvalidRoot(_)
        | Error::NoProject(_)
        | Error::Exists(_) => FailureKind::Usage,
        Error::Io { .. }
        | Error::NotAFile(_)
        | Error::InvalidCopy(_)
        | Error::ForeignTrash(_)
        | Error::PartlyRemoved(_)
        | Error::Changed(_)
        | Error::Interrupted(_)
        | Error::NoSessions(_)
        | Error::SeveralSessions { .. }
        | Error::TooManySessions { .. }
        | Error::Busy(_)
        | Error::Torn(_)
        | Error::Unsaved { .. }
        | Error::Database { .. } => FailureKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error as IoError, ErrorKind};

    use super::*;

    #[test]
    fn an_io_error_has_a_hint() {
        for (kind, hint) in [
            (ErrorKind::StorageFull, "free some space on that disk"),
            (ErrorKind::QuotaExceeded, "free some space on that disk"),
            (ErrorKind::FileTooLarge, "start a new session"),
            (ErrorKind::InvalidFilename, "a name in the path is too long"),
            (ErrorKind::PermissionDenied, "check its owner and permissions"),
        ] {
            let error = scrollback::model::Error::Io { path: "log".into(), source: IoError::from(kind) };
            let failure = Failure::from(error);
            assert!(failure.hint.as_deref().is_some_and(|shown| shown.contains(hint)), "{failure:?}");
            assert_eq!(failure.exit_code(), 2);
        }
    }
}
