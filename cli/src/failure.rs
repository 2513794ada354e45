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

impl From<scrollback::error::Error> for Failure {
    fn from(error: scrollback::error::Error) -> Failure {
        use scrollback::error::Error;
        let hint = match &error {
            Error::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Some("`scrollback list --all` shows every session"),
                std::io::ErrorKind::PermissionDenied => Some("you may not read it; look at its owner and mode"),
                std::io::ErrorKind::IsADirectory => Some("name a session file"),
                _ => Some("is that the right path?"),
            },
            Error::NotAFile(_) => Some("pipe it in instead: … | scrollback show -"),
            Error::Changed(_) => Some("another program rewrote it; run the command again"),
            Error::NoSessions(_) => Some("--dialect says whose it is; docs/dialects tells which tables are known"),
            Error::SeveralSessions { .. } => {
                Some("add #ID to the path; `scrollback list --store` with this file shows the ids")
            }
            Error::TooManySessions { .. } => Some("name one: add #ID to the path of a smaller database"),
            Error::Database { .. } => Some("it may be locked, damaged or no SQLite database"),
        };
        let failure = Failure::new(FailureKind::Io, error.to_string());
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
