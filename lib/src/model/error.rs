//! I/O and usage errors; malformed content is an [`Issue`](crate::model::issue::Issue).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::issue::quoted;
use crate::model::loss::Losses;
use crate::model::record::RecordId;

/// What the system says of a failure, without its number: "permission denied".
pub(crate) fn in_words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = without_number(&text);
    let mut rest = text.chars();
    rest.next().map(|first| first.to_lowercase().chain(rest).collect()).unwrap_or_default()
}

/// Words of the system without the number that follows them.
pub(crate) fn without_number(text: &str) -> &str {
    text.rsplit_once(" (os error ").map_or(text, |(words, _)| words)
}

/// Why the library stopped. Where a file is concerned, the error names it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// I/O error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A device, a socket or the like: reading it may never end.
    #[error("{}: not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// A restore that is not safe to apply.
    #[error("the plan is not ready: files are in conflict")]
    NotReady,
    /// An earlier restore of the project's files was interrupted.
    #[error("{}: an earlier undo was interrupted", .0.display())]
    Interrupted(PathBuf),
    /// Another agent's session is undone only where our own data folder is known.
    #[error("no folder to note the undo in")]
    NoDataFolder,
    /// A root that undo does not touch.
    #[error("{}: not the root of a project", .0.display())]
    InvalidRoot(PathBuf),
    /// The folder of a session's project is not there.
    #[error("{}: the project is gone", .0.display())]
    NoProject(PathBuf),
    /// The file changed while it was read.
    #[error("{}: the file changed while it was read", .0.display())]
    Changed(PathBuf),
    /// A database without sessions of a known agent.
    #[error("{}: not a database of a known agent", .0.display())]
    NoSessions(PathBuf),
    /// A database that no export made.
    #[error("{}: not a database that `export` made", .0.display())]
    NotOurTables(PathBuf),
    /// A database that a newer version exported.
    #[error("{}: a newer version of scrollback exported it", .0.display())]
    NewerTables(PathBuf),
    /// A database of several sessions, and none was named.
    #[error("{}: contains {count} sessions", path.display())]
    SeveralSessions {
        /// The file.
        path: PathBuf,
        /// How many sessions it contains.
        count: usize,
    },
    /// A database of more sessions than are read.
    #[error("{}: contains more than {limit} sessions", path.display())]
    TooManySessions {
        /// The file.
        path: PathBuf,
        /// How many sessions are read.
        limit: usize,
    },
    /// Another program holds the file's lock and does not release it.
    #[error("{}: another program is writing to it", .0.display())]
    Busy(PathBuf),
    /// A record did not fit, and a piece of it stayed in the file as a line of its own.
    #[error("{}: a record was written only in part and is not saved", .0.display())]
    Torn(PathBuf),
    /// Records are in the file and may not survive a crash: the recorder keeps them until it is reopened.
    #[error("{}: {count} {} may not survive a crash: {source}", path.display(), if *count == 1 { "record" } else { "records" })]
    Unsaved {
        /// The file.
        path: PathBuf,
        /// How many records.
        count: usize,
        /// Why `sync` failed.
        source: Arc<io::Error>,
        /// Whether the record of the failed call is among them. If not, reopen the recorder and make the call again.
        is_recorded: bool,
    },
    /// A removed session in the trash of a store that it does not belong to.
    #[error("{}: the session is not one of this store", .0.display())]
    ForeignTrash(PathBuf),
    /// A removal or a restoration was interrupted: some of the session is in the trash, and some is in its old place.
    #[error("only a part of {} is in the trash: its removal or restoration was interrupted", quoted(.0))]
    PartlyRemoved(String),
    /// scrollback reads this dialect and does not write it.
    #[error("{0} sessions are read-only")]
    ReadOnly(&'static str),
    /// The format cannot store something.
    #[error("{dialect} cannot store this: {what}")]
    CannotStore {
        /// The dialect.
        dialect: &'static str,
        /// What it cannot store, for people.
        what: String,
        /// Of a record: everything that is lost, with counts.
        losses: Losses,
    },
    /// The format cannot store anything in a session.
    #[error("{0} cannot store anything in this session")]
    NothingToStore(&'static str),
    /// The branch has no messages, and another one has: usually somebody went back to before the first prompt.
    #[error("session {} has no messages on this branch: it ends before the first prompt", quoted(session))]
    EmptyBranch {
        /// The session.
        session: String,
        /// The last record of the branch that was left.
        left: RecordId,
    },
    /// One branch was asked for, and the session is copied whole.
    #[error("a copy in the same format has every branch; one branch cannot be selected")]
    CopiedWhole,
    /// A name that cannot be a session's: it leads out of the store, or the format wants another shape.
    #[error("invalid session name {}: {why}", quoted(name))]
    InvalidName {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A text of a log that cannot be the name of a kept content.
    #[error("{} is not the name of a kept content", quoted(.0))]
    InvalidCopy(String),
    /// The project's directory, or whom the session is with, gives no file name.
    #[error("cannot create a session: {why}")]
    CannotCreate {
        /// What is wrong with which of them.
        why: String,
    },
    /// The session has ended: nothing is added to it any more.
    #[error("session {} has ended", quoted(.0))]
    Ended(String),
    /// A record that is longer than a reader accepts.
    #[error("the record is too long: {bytes} bytes")]
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// No session has this name; or, without one, the project has none.
    #[error("no session {}", .0.as_deref().map_or_else(|| "of this project".to_owned(), quoted))]
    NoSession(Option<String>),
    /// Several sessions have this id, or ids that begin so.
    #[error("{} is ambiguous: {} sessions match", quoted(name), paths.len())]
    AmbiguousSession {
        /// What was asked for.
        name: String,
        /// The files of the sessions.
        paths: Vec<PathBuf>,
    },
    /// No record of the session has this id.
    #[error("no record {}", quoted(.0))]
    NoRecord(String),
    /// The ids of several records begin so.
    #[error("{} is ambiguous: {}", quoted(prefix), shortened(records))]
    AmbiguousRecord {
        /// What was asked for.
        prefix: String,
        /// Some of the records.
        records: Vec<RecordId>,
    },
    /// The conversation cannot continue from this record.
    #[error("cannot continue from {}: {why}", quoted(record))]
    CannotContinue {
        /// The record.
        record: String,
        /// Why not.
        why: &'static str,
    },
    /// A call that makes sense only after another one.
    #[error("{0}")]
    OutOfOrder(&'static str),
    /// Two tool calls of one answer have the same id: a result could belong to either.
    #[error("two tool calls of one answer have the id {}", quoted(call))]
    DuplicateCall {
        /// The id.
        call: String,
    },
    /// A title that would not be one: see [`crate::model::Title::checked`].
    #[error("invalid title: {0}")]
    InvalidTitle(String),
    /// The folder of the session belongs to another project.
    #[error("{}: the folder belongs to another project, {}", path.parent().unwrap_or(path).display(), project.display())]
    OtherProject {
        /// The file that would be written.
        path: PathBuf,
        /// The project that the folder belongs to.
        project: PathBuf,
    },
    /// The session is with another peer.
    #[error("the session is with {}", quoted(with))]
    WithAnother {
        /// Whom it is with.
        with: String,
    },
    /// The file exists already.
    #[error("{}: already exists", .0.display())]
    Exists(PathBuf),
    /// A file that is not rewritten without its secrets; nothing was changed.
    #[error("{}: {why}", path.display())]
    NotCleaned {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: NotCleaned,
    },
    /// A database that cannot be read.
    #[error("{}: {}", path.display(), database_message(source))]
    Database {
        /// The file.
        path: PathBuf,
        /// The database's error.
        source: rusqlite::Error,
    },
}

/// Why a file is not rewritten without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCleaned {
    /// An agent may be writing to it.
    #[error("written to in the last minute")]
    JustWritten,
    /// It is compressed.
    #[error("a compressed file is not rewritten")]
    Packed,
    /// It is text in UTF-16.
    #[error("text in UTF-16 is not rewritten")]
    Utf16,
    /// It is a database.
    #[error("a database is not rewritten")]
    Database,
    /// It is a link: the file that it leads to would keep the secret.
    #[error("a link is not rewritten")]
    Link,
    /// Another name of the same file would keep the secret.
    #[error("it has another name, a hard link, which would keep the secrets")]
    OtherName,
    /// The result would differ from the file in more than masked secrets.
    #[error("cleaning it would change more than secrets: {0}")]
    Differs(String),
}

/// A result with that error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether a retry would not help: the content has no place in the format, is too long, or comes at the wrong time.
    pub(crate) fn is_unstorable(&self) -> bool {
        matches!(self, Error::CannotStore { .. } | Error::TooLong { .. } | Error::OutOfOrder(_))
    }

    /// The format cannot store something that is not a record.
    pub(crate) fn cannot_store(dialect: &'static str, what: impl Into<String>) -> Error {
        Error::CannotStore { dialect, what: what.into(), losses: Losses::default() }
    }

    /// The format cannot store a record.
    pub(crate) fn record_lost(dialect: &'static str, losses: Losses) -> Error {
        Error::CannotStore { dialect, what: losses.names(), losses }
    }
}

/// Attaches the path to an I/O error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_path_buf(), source })
    }
}

/// Ids to choose among, in full: others that are not listed may begin alike. No agent's ids are longer than this.
fn shortened(ids: &[RecordId]) -> String {
    const CHARS: usize = 80;
    let short = |id: &RecordId| match id.as_str().char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &id.as_str()[..end]),
        None => id.to_string(),
    };
    ids.iter().map(short).collect::<Vec<_>>().join(", ")
}

/// SQLite's sentence without the statement that it is about.
fn database_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}
