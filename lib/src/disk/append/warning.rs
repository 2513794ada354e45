//! What happened to a log behind a writer's back, and how a person is told of it.

use std::fmt;

/// Something that happened to the log behind our back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// The file ended inside a record: that piece was closed with LF.
    TornTail,
    /// The file ended behind a record whose line had no end: it got its LF.
    NoLineEnd,
    /// Another file has its name now: that one is written to.
    Replaced,
    /// Nothing had its name any more: it was begun anew.
    Deleted,
    /// It is shorter than where our last line ended: records are gone.
    Shortened,
    /// A piece of a record stayed in the file, because somebody wrote behind it: it was closed with LF.
    TornPiece,
    /// The file system has no locks: two writers may tear each other's lines.
    NoLocks,
    /// The file beside the log could not be written. The log says all that it would.
    NoSidecar,
    /// Another program wrote to the session in the last minute, and may go on.
    InUse,
    /// Not every session could be looked into: a newer one may be among those.
    Unread,
    /// Nobody asked for so long which held calls are on disk that the first of them are forgotten.
    Forgotten,
}

/// What a person is told of it.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::InUse => "another program wrote to this session in the last minute, and may go on",
            Warning::Unread => "not every session could be read: a newer one may be among those",
            Warning::TornTail => "the file ended inside a record; that piece was closed, nothing else changed",
            Warning::NoLineEnd => "the last record's line had no end; it got one, nothing else changed",
            Warning::Replaced => "another file took the session's name meanwhile; that one is written to now",
            Warning::Deleted => "the session's file was deleted meanwhile; it was begun anew",
            Warning::Shortened => "the session's file was cut short meanwhile; what stood there is gone",
            Warning::TornPiece => "a record did not fit and a piece of it stayed in the file",
            Warning::NoLocks => "this file system has no locks: let no other program write to the session",
            Warning::Forgotten => "not every call that had to wait is told of: nobody asked for too long",
            Warning::NoSidecar => "the file beside the log could not be written; the log itself says everything",
        })
    }
}
