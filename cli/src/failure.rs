//! Why a command stopped: what, then a hint how. The kind picks the exit code.

use serde_json::{Value, json};

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
    /// What was asked for cannot be meant.
    Usage,
    /// The system said no.
    Io,
    /// Nobody reads the output any more: nothing is wrong.
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
                std::io::ErrorKind::PermissionDenied => "you may not; look at its owner and mode",
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
                _ => "is that the right path?",
            },
            Error::NotAFile(_) => "pipe it in instead: … | scrollback show -",
            Error::Changed(_) => "another program rewrote it; run the command again",
            Error::NoSessions(_) => {
                "a table `agents` with the columns id, prompt, status and model is known; docs/dialects/ai-sdk.md tells more"
            }
            Error::SeveralSessions { .. } => {
                "add #ID to the path; `scrollback list --store` with this file shows the ids"
            }
            Error::TooManySessions { .. } => "name one: add #ID to the path of a smaller database",
            Error::Database { .. } => "it may be locked, damaged or no SQLite database",
            Error::Busy(_) => "wait until it has finished, then run the command again",
            Error::Torn(_) => {
                "the disk may be full; `scrollback doctor` shows the piece, and nothing before it changed"
            }
            Error::Unsaved { .. } => "look at the disk, then run the command again",
            Error::ReadOnly(_) => "`scrollback fork` and `rewind` need a format that is written; README tells which",
            Error::CannotHold { .. } => "convert the session to native, which holds all that scrollback understands",
            Error::Nothing(_) => {
                "`scrollback show` shows what the session says; native holds all that scrollback understands"
            }
            Error::CopiedWhole => {
                "leave the record out; `scrollback fork SESSION#RECORD` makes a branch a session of its own"
            }
            Error::BadName { .. } => "choose a plain one, or leave it out and a fresh one is made",
            Error::Misplaced { .. } => {
                "--project DIR and --jid JID say where a session lies; native takes every directory"
            }
            Error::Ended(_) => {
                "say its --jid or --project to go on with the session that followed; `scrollback convert` makes a copy that goes on"
            }
            Error::TooLong { .. } => "write large contents to a file and record its path",
            Error::NoSession(_) => "`scrollback list --all` shows every session",
            Error::NoRecord { .. } => "`scrollback tree SESSION` shows every record",
            Error::NoPlace { .. } => {
                "`scrollback fork SESSION#RECORD` makes a session that ends there, and `convert --to native` one with branches; `scrollback tree` shows every record"
            }
            Error::Ambiguous { .. } => {
                "a result names the call that it answers: no two calls of an answer are called alike"
            }
            Error::OtherProject { .. } => "both projects have the same name for a folder: --store DIR keeps them apart",
            Error::WithAnother { .. } => "leave --jid out: lines that are copied stay as they are",
            Error::Exists(_) => "nothing is overwritten: choose another name, or move that away first",
        };
        Failure::new(kind_of(&error), error.to_string()).hint(hint)
    }
}

/// Whether the world said no, or what was asked for cannot be meant.
pub(crate) fn kind_of(error: &scrollback::model::error::Error) -> FailureKind {
    use scrollback::model::error::Error;
    match error {
        Error::ReadOnly(_)
        | Error::CannotHold { .. }
        | Error::Nothing(_)
        | Error::CopiedWhole
        | Error::BadName { .. }
        | Error::Misplaced { .. }
        | Error::Ended(_)
        | Error::TooLong { .. }
        | Error::NoSession(_)
        | Error::NoRecord { .. }
        | Error::NoPlace { .. }
        | Error::Ambiguous { .. }
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
            (ErrorKind::PermissionDenied, "look at its owner and mode"),
        ] {
            let error = scrollback::model::error::Error::Io { path: "log".into(), source: IoError::from(kind) };
            let failure = Failure::from(error);
            assert!(failure.hint.as_deref().is_some_and(|told| told.contains(hint)), "{failure:?}");
            assert_eq!(failure.exit_code(), 2);
        }
    }
}
