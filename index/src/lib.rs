//! Answers questions over all sessions of all agents: list and search, from an index that is only a cache.
//!
//! [`Archive`] is the one answerer. It reads the sessions themselves, and keeps what it learns in an [`Index`], so that the next answer
//! reads only what has changed. Losing the index loses nothing.

pub mod query;
mod answer;
mod archive;
mod card;
mod checked;
mod counts;
mod decide;
mod decoded;
mod error;
mod index;
mod part;
mod prices;
mod refresh;
mod search;
mod snippet;
mod sql;
mod sqlite;
mod word_set;
pub(crate) mod words;

pub use answer::{Answer, FoundSession, Hit, SearchOptions, Sort};
pub use archive::Archive;
pub use card::{Card, Depth};
pub use counts::{Counted, StoredCounts};
pub use error::{Error, Result};
pub use index::{Bookmark, CutRecord, Growth, Index, Known, Learned, Match, Place, Ranking, SourceId, Texts};
pub use part::{Part, Rest};
pub use prices::{PRICES, listed_cost};
pub use refresh::{Pending, Refreshed, Verified};
/// A value in the answer to SQL.
pub use rusqlite::types::Value as SqlValue;
pub use snippet::Piece;
pub use sql::{SQL_ROWS, SqlAnswer, SqlError};
pub use sqlite::SqliteIndex;
pub use word_set::WordSet;
