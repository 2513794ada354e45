//! What an archive asks of an index, whichever database it is in.

use std::path::Path;

use hashbrown::HashMap;
use scrollback::Source;
use scrollback::model::{NamedRequests, SessionId};

use crate::card::{Card, Depth};
use crate::counts::StoredCounts;
use crate::error::Result;
use crate::part::Part;
use crate::query::{Labels, Query};

/// The number of a session in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub(crate) i64);

/// Where a session is: its file and, in a database, which of its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub(crate) Vec<u8>);

impl Place {
    /// The place of a session.
    pub fn of(source: &Source) -> Place {
        Place::new(&source.path, source.key.as_deref())
    }

    /// The file, where its name can be written again.
    pub(crate) fn path(&self) -> Option<&Path> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..end]).ok().map(Path::new)
    }

    fn new(path: &Path, key: Option<&str>) -> Place {
        let mut place = path.as_os_str().as_encoded_bytes().to_vec();
        if let Some(key) = key {
            // No path has a NUL.
            place.push(0);
            place.extend_from_slice(key.as_bytes());
        }
        Place(place)
    }
}

/// What an index knows of a session.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its number.
    pub id: SourceId,
    /// Its id.
    pub session: SessionId,
    /// The stamp of its files then.
    pub stamp: u64,
    /// How much is known.
    pub depth: Depth,
    /// How many bytes of its tool outputs are not indexed.
    pub cut_bytes: u64,
}

impl Known {
    /// Whether the files are still those that were read, and were read this deep.
    pub(crate) fn holds(&self, stamp: Option<u64>, depth: Depth) -> bool {
        Some(self.stamp) == stamp && self.depth >= depth
    }
}

/// What was learned of a session.
#[derive(Debug, Clone)]
pub struct Learned {
    /// Where it is.
    pub place: Place,
    /// The stamp of its files before they were read.
    pub stamp: u64,
    /// How much was read.
    pub depth: Depth,
    /// What a list shows.
    pub card: Card,
    /// What was read of its text.
    pub texts: Texts,
    /// How to read only what is appended to it from now on, if that is possible.
    pub bookmark: Option<Bookmark>,
    /// What it can add to a count, as [`StoredCounts::bytes`], if all of it was read.
    pub counts: Option<Vec<u8>>,
}

/// What was read of a session's text.
#[derive(Debug, Clone)]
pub enum Texts {
    /// Nothing.
    Unread,
    /// All of it.
    Whole(Vec<Part>),
    /// What was appended.
    Grown(Growth),
}

impl Texts {
    /// The parts that were read.
    pub(crate) fn parts(&self) -> &[Part] {
        match self {
            Texts::Unread => &[],
            Texts::Whole(parts) | Texts::Grown(Growth { parts, .. }) => parts,
        }
    }
}

/// What has changed in a session that has grown.
#[derive(Debug, Clone)]
pub struct Growth {
    /// The stamp of its files before: nothing is stored if the index knows other ones by now.
    pub since: u64,
    /// The records that are new or have grown: what was known of them goes.
    pub records: Vec<u32>,
    /// The parts of those records.
    pub parts: Vec<Part>,
    /// Other records that stand elsewhere now, such as on a branch that was left.
    pub moved: Vec<(u32, Labels)>,
}

/// How far a session was read.
#[derive(Debug, Clone)]
pub struct Bookmark {
    /// See [`scrollback::Session::checkpoint`].
    pub checkpoint: Vec<u8>,
    /// Where each record stands: the bits of its labels.
    pub standings: Vec<u8>,
}

/// What makes one match better than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// How often the words are in the text, how rare they are, and how long the text is (BM25).
    Words,
    /// How long the text is, alone: the words weigh more in a short one, and nobody has to look at all that have them.
    Length,
    /// Nothing but its time.
    Time,
}

/// A part that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// Its session.
    pub source: SourceId,
    /// Its record, by its number in file order.
    pub record: u32,
    /// Its number in the record.
    pub part: u32,
    /// The same for copies.
    pub repeat: u64,
    /// When it was written, in microseconds.
    pub at: Option<i64>,
    /// What it is.
    pub labels: Labels,
    /// How well it matches: less is better.
    pub rank: f64,
    /// Whether some of its text is not indexed.
    pub is_cut: bool,
}

/// A record that has text which is not indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutRecord {
    /// Its session.
    pub source: SourceId,
    /// Its number in file order.
    pub record: u32,
    /// Where it is in the file, if it is in one piece: offset and length.
    pub span: Option<(u64, u32)>,
}

/// Keeps what is known of sessions. It is a cache: the logs are the truth.
pub trait Index {
    /// Every session that is known.
    fn known(&self) -> Result<HashMap<Place, Known>>;

    /// What a list shows of each, without its requests.
    fn cards(&self) -> Result<HashMap<SourceId, Card>>;

    /// The requests of these sessions that copies of them repeat.
    fn requests(&self, sources: &[SourceId]) -> Result<HashMap<SourceId, NamedRequests>>;

    /// How far a session was read, if it can be continued.
    fn bookmark(&self, place: &Place) -> Result<Option<Bookmark>>;

    /// Stores what was learned of some sessions, all or nothing. What another process stored of the same files stays, if it is more.
    fn store(&mut self, learned: Vec<Learned>) -> Result<()>;

    /// Passes on what each session can add to a count, where that is known.
    fn each_counts(&self, each: &mut dyn FnMut(SourceId, StoredCounts)) -> Result<()>;

    /// Stores what sessions can add to a count. What belongs to other files than the index knows is left out.
    fn store_counts(&mut self, counts: HashMap<SourceId, StoredCounts>) -> Result<()>;

    /// Forgets sessions.
    fn forget(&mut self, sources: &[SourceId]) -> Result<()>;

    /// The newest parts of these sessions that match: `limit` of them, and all others of the same time as the last one. Regular expressions and titles are the archive's work.
    fn search(&self, query: &Query, sources: &[SourceId], limit: usize, by: Ranking) -> Result<Vec<Match>>;

    /// The records of these sessions that have text which is not indexed, as far as it could match.
    fn cut_records(&self, query: &Query, sources: &[SourceId]) -> Result<Vec<CutRecord>>;

    /// Words that begin like this, the most frequent first.
    fn words_like(&self, beginning: &str) -> Result<Vec<String>>;

    /// Whether any part has this word.
    fn has_word(&self, word: &str) -> Result<bool>;

    /// The digest of every part, by session, record and number.
    fn digests(&self) -> Result<HashMap<(SourceId, u32, u32), u64>>;

    /// Forgets everything.
    fn clear(&mut self) -> Result<()>;

    /// Makes the index smaller and faster after much was stored.
    fn optimize(&mut self) -> Result<()>;
}
