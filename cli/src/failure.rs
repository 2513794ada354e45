//! Why a command stopped: what failed, and a hint. The kind picks the exit code.

use serde_json::{Value, json};

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Nothing was found.
    NotFound,
    /// The request is invalid.
    Usage,
    /// I/O error.
    Io,
    /// Nobody reads the output any more, which is fine.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
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

impl From<scrollback::model::error::Error> for Failure {
    fn from(error: scrollback::model::error::Error) -> Failure {
        use scrollback::model::error::Error;
        let hint = match &error {
            Error::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => "`scrollback list --all` shows every session",
                std::io::ErrorKind::PermissionDenied => "check its owner and mode",
                std::io::ErrorKind::IsADirectory => "name a session file",
                std::io::ErrorKind::InvalidInput => "sessions are written only to regular files, never through links",
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    "what was there is as it was: delete or move something on that disk (`df -h` shows it), then run the command again"
                }
                std::io::ErrorKind::FileTooLarge => "no file may be larger there: a new session is a new file",
                std::io::ErrorKind::InvalidFilename => {
                    "a name in it is too long, or has a character that is not allowed there"
                }
                std::io::ErrorKind::ReadOnlyFilesystem => "nothing can be written there",
                _ => "check the path",
            },
            Error::NotAFile(_) => "pipe it in instead: … | scrollback show -",
            Error::Changed(_) => "another program rewrote it; run the command again",
            Error::NoSessions(_) => {
                "it needs a table `agents` with the columns id, prompt, status and model; see docs/dialects/ai-sdk.md"
            }
            Error::SeveralSessions { .. } => {
                "add #ID to the path; `scrollback list --store` with this file shows the ids"
            }
            Error::TooManySessions { .. } => "name one: add #ID to the path of a smaller database",
            Error::Database { .. } => "it may be locked, damaged or not an SQLite database",
            Error::Busy(_) => "wait until it has finished, then run the command again",
            Error::Torn(_) => {
                "the disk may be full; run `scrollback doctor` to see the piece; nothing before it changed"
            }
            Error::Unsaved { .. } => "look at the disk, then run the command again",
            Error::ReadOnly(_) => {
                "`scrollback fork` and `rewind` need a format that scrollback writes; the README lists them"
            }
            Error::CannotStore { .. } => {
                "convert the session to native, which stores everything that scrollback understands"
            }
            Error::NothingToStore(_) => {
                "run `scrollback show` to see the session; native stores everything that scrollback understands"
            }
            Error::CopiedWhole => {
                "leave the record out, or run `scrollback fork SESSION#RECORD` to make a session of one branch"
            }
            Error::InvalidName { .. } => "use letters, digits, - _ and ., or leave it out to get a new one",
            Error::CannotCreate { .. } => {
                "--project DIR and --jid JID choose the place; native accepts every directory"
            }
            Error::Ended(_) => {
                "use --jid or --project to continue the session that followed it, or `scrollback convert` to continue a copy"
            }
            Error::TooLong { .. } => "write large contents to a file and record its path",
            Error::NoSession(_) => "`scrollback list --all` shows every session",
            Error::NoRecord(_) => "`scrollback tree SESSION` shows every record",
            Error::AmbiguousRecord { .. } => "use a longer prefix",
            Error::CannotContinue { .. } => {
                "`scrollback fork SESSION#RECORD` makes a session that ends there, `convert --to native` one with branches; `scrollback tree` shows every record"
            }
            Error::OutOfOrder(_) => "record what the model says first",
            Error::DuplicateCall { .. } => "give each call its own id, so that results can name theirs",
            Error::OtherProject { .. } => {
                "both projects get the same folder name: use another --store DIR for one of them"
            }
            Error::WithAnother { .. } => "leave --jid out: copied lines keep theirs",
            Error::Exists(_) => "nothing is overwritten: choose another name, or move the file away first",
        };
        Failure::new(kind_of(&error), error.to_string()).hint(hint)
    }
}

/// Whether the system failed, or the request is invalid.
pub(crate) fn kind_of(error: &scrollback::model::error::Error) -> FailureKind {
    use scrollback::model::error::Error;
    match error {
        Error::ReadOnly(_)
        | Error::CannotStore { .. }
        | Error::NothingToStore(_)
        | Error::CopiedWhole
        | Error::InvalidName { .. }
        | Error::CannotCreate { .. }
        | Error::Ended(_)
        | Error::TooLong { .. }
        | Error::NoSession(_)
        | Error::NoRecord(_)
        | Error::AmbiguousRecord { .. }
        | Error::OutOfOrder(_)
        | Error::CannotContinue { .. }
        | Error::DuplicateCall { .. }
        | Error::OtherProject { .. }
        | Error::WithAnother { .. }
        | Error::Exists(_) => FailureKind::Usage,
        Error::Io { .. }
        | Error::NotAFile(_)
        | Error::Changed(_)
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
    fn what_the_system_refuses_comes_with_what_to_do() {
        for (kind, hint) in [
            (ErrorKind::StorageFull, "delete or move something on that disk"),
            (ErrorKind::QuotaExceeded, "delete or move something on that disk"),
            (ErrorKind::FileTooLarge, "a new session is a new file"),
            (ErrorKind::InvalidFilename, "a name in it is too long"),
            (ErrorKind::PermissionDenied, "check its owner and mode"),
        ] {
            let error = scrollback::model::error::Error::Io { path: "log".into(), source: IoError::from(kind) };
            let failure = Failure::from(error);
            assert!(failure.hint.as_deref().is_some_and(|told| told.contains(hint)), "{failure:?}");
            assert_eq!(failure.exit_code(), 2);
        }
    }
}
