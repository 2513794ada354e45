//! The index in a file of SQLite: words in FTS5 without their text, everything else in small tables.

mod block;
mod counts;
mod newest;
mod schema;
mod seal;
mod statement;
mod store;

use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use scrollback::model::{NamedRequests, SessionId};
use scrollback::session::READING_VERSION;

use crate::card::{Card, Depth};
use crate::checked::without_sum;
use crate::counts::StoredCounts;
use crate::decoded::decoded;
use crate::error::{Error, Result};
use crate::index::{Bookmark, CutRecord, Index, Known, Learned, Match, Place, Ranking, SourceId};
use crate::part::{Rest, rest_digest, row_digest, word_digest};
use crate::query::Query;
use crate::word_set::WordSet;
use block::Block;
use seal::Seal;

/// How many words that begin alike are looked at to find one that was meant.
const WORDS_LOOKED_AT: usize = 20_000;

/// With so many parts at once, a larger cache is worth its memory.
const MANY_PARTS: usize = 1_000;

/// An index of this size is optimized whenever something is forgotten: a larger one takes longer than anybody waits.
const OPTIMIZED_AT_ONCE_BYTES: i64 = 32 * 1024 * 1024;

/// The index of a user, in one file.
pub struct SqliteIndex {
    connection: Connection,
    /// After the connection: closing that may still write to the file.
    seal: Seal,
    path: PathBuf,
    /// What was in its place and is no index, if anything was.
    set_aside: Option<PathBuf>,
    was_changed: bool,
}

impl SqliteIndex {
    /// Opens or makes the index. What is in its place and is none, or is damaged, is moved aside. `masking` is
    /// [`scrollback::redact::Redactor::fingerprint`] of the rules that its texts are masked with: what was indexed with other rules, or
    /// by a program that reads sessions in another way, is forgotten.
    pub fn open(path: &Path, masking: u64) -> Result<SqliteIndex> {
        schema::make_folder(path)?;
        match SqliteIndex::open_as_it_is(path, masking) {
            Err(error) if schema::is_unusable(&error) => {
                let set_aside = Some(schema::move_aside(path)?);
                let mut index = SqliteIndex::open_as_it_is(path, masking)?;
                index.set_aside = set_aside;
                Ok(index)
            }
            opened => opened,
        }
    }

    fn open_as_it_is(path: &Path, masking: u64) -> Result<SqliteIndex> {
        let was_changed = seal::is_changed(path);
        let seal = Seal::open(path);
        let connection = schema::connect(path, !was_changed)?;
        let mut index = SqliteIndex { connection, seal, path: path.to_path_buf(), set_aside: None, was_changed };
        if !index.has_facts(masking)? {
            index.set_facts(masking)?;
        }
        index.seal.accept();
        Ok(index)
    }

    /// Opens the index if there is one of this version that was made with these rules: nothing is made, forgotten or moved.
    pub fn open_known(path: &Path, masking: u64) -> Result<Option<SqliteIndex>> {
        if seal::is_changed(path) {
            return Ok(None);
        }
        let seal = Seal::open(path);
        let Some(connection) = schema::connect_known(path)? else { return Ok(None) };
        let (path, set_aside) = (path.to_path_buf(), None);
        let mut index = SqliteIndex { connection, seal, path, set_aside, was_changed: false };
        if !index.has_facts(masking)? {
            return Ok(None);
        }
        index.seal.accept();
        Ok(Some(index))
    }

    /// What was in the place of the index and is none: it was moved here.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Whether another program had changed its file, so that it was emptied.
    pub fn was_changed(&self) -> bool {
        self.was_changed
    }

    /// Moves a damaged index aside, so that the next one is made anew.
    pub fn move_aside(path: &Path) -> Result<PathBuf> {
        schema::move_aside(path)
    }

    /// Whether an error means that the index itself is damaged.
    pub fn is_damaged(error: &Error) -> bool {
        schema::is_unusable(error)
    }

    /// Whether everything was learned under these rules.
    fn has_facts(&self, masking: u64) -> Result<bool> {
        let read = |name: &str| {
            let sql = "select value from facts where name = ?1";
            self.connection.query_row(sql, [name], |row| row.get::<_, i64>(0)).optional()
        };
        let has = |(name, now): (&str, i64)| Ok(read(name)? == Some(now));
        let has_all = facts(masking).into_iter().map(has).collect::<rusqlite::Result<Vec<bool>>>();
        has_all.map(|has| !has.contains(&false)).map_err(|error| self.error(error))
    }

    /// Forgets everything that was learned under other rules.
    fn set_facts(&mut self, masking: u64) -> Result<()> {
        self.clear()?;
        let set = |(name, value): (&str, i64)| {
            self.connection
                .execute("insert or replace into facts values (?1, ?2)", params![name, value])
                .map(drop)
        };
        facts(masking).into_iter().try_for_each(set).map_err(|error| self.error(error))
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::Database { path: self.path.clone(), source }
    }

    fn begin(&mut self) -> Result<Transaction<'_>> {
        let path = self.path.clone();
        self.connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|source| Error::Database { path, source })
    }

    fn read_known(&self) -> rusqlite::Result<HashMap<Place, Known>> {
        let mut statement =
            self.connection.prepare_cached("select id, place, stamp, depth, cut_bytes, session from sources")?;
        let mut rows = statement.query([])?;
        let mut known = HashMap::new();
        while let Some(row) = rows.next()? {
            // What cannot be read is as unknown as what is not there.
            let Some(depth) = Depth::from_number(row.get(3)?) else { continue };
            let (id, stamp, cut_bytes) = (SourceId(row.get(0)?), row.get::<_, i64>(2)? as u64, row.get::<_, i64>(4)?);
            let cut_bytes = u64::try_from(cut_bytes).unwrap_or(0);
            known.insert(Place(row.get(1)?), Known { id, session: SessionId(row.get(5)?), stamp, depth, cut_bytes });
        }
        Ok(known)
    }

    fn size_bytes(&self) -> rusqlite::Result<i64> {
        let number = |pragma: &str| self.connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        Ok(number("pragma page_count")? * number("pragma page_size")?)
    }

    fn read_cards(&self, each: &mut dyn FnMut((SourceId, Vec<u8>))) -> rusqlite::Result<()> {
        self.scan(|| {
            let mut statement = self.connection.prepare_cached("select source, card from cards")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                each((SourceId(row.get(0)?), row.get(1)?));
            }
            Ok(())
        })
    }

    /// Reads a table once from one end to the other: none of it is kept, because new memory takes longer than the reading.
    fn scan(&self, read: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let pages: i64 = self.connection.query_row("pragma cache_size", [], |row| row.get(0))?;
        self.connection.pragma_update(None, "cache_size", SCANNED_PAGES)?;
        let done = read();
        self.connection.pragma_update(None, "cache_size", pages)?;
        done
    }

    fn read_cut_records(&self, query: &Query, sources: &[SourceId]) -> rusqlite::Result<Vec<CutRecord>> {
        let asked: HashSet<i64> = sources.iter().map(|source| source.0).collect();
        let mut statement = self
            .connection
            .prepare_cached("select source, record, offset, length, words from rests order by part")?;
        let mut rows = statement.query([])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let source = row.get(0)?;
            if !asked.contains(&source) {
                continue;
            }
            // A damaged set may have any word.
            let words = without_sum(row.get_ref(4)?.as_blob()?);
            if words.is_none_or(|words| query.could_match(&WordSet::from_bytes(words))) {
                records.push(CutRecord { source: SourceId(source), record: row.get(1)?, span: span(row, 2)? });
            }
        }
        // Several outputs of one record are read at once.
        records.dedup();
        Ok(records)
    }

    fn read_digests(&self) -> rusqlite::Result<HashMap<(SourceId, u32, u32), u64>> {
        let mut words: HashMap<i64, u64> = HashMap::new();
        // The table is only a way to look, and of this connection.
        self.connection
            .execute_batch("create virtual table if not exists temp.postings using fts5vocab(main, words, instance)")?;
        let mut postings = self.connection.prepare("select term, doc, col, offset from temp.postings")?;
        let mut rows = postings.query([])?;
        while let Some(row) = rows.next()? {
            let column = i64::from(row.get_ref(2)?.as_str()? == "whole");
            let digest = word_digest(row.get_ref(0)?.as_str()?, column, row.get(3)?);
            let sum = words.entry(row.get(1)?).or_default();
            *sum = sum.wrapping_add(digest);
        }
        let names = self.read_names()?;
        let mut rests = self.connection.prepare("select part, bytes, offset, length, words from rests")?;
        let rests = rests.query_map([], |row| Ok((row.get::<_, i64>(0)?, rest(row, 1)?)))?;
        let mut rests = rests.collect::<rusqlite::Result<HashMap<i64, Rest>>>()?;
        let mut parts = self.connection.prepare("select first, source, rows from parts")?;
        let mut blocks = parts.query([])?;
        let mut digests = HashMap::new();
        while let Some(row) = blocks.next()? {
            let (first, source) = (row.get::<_, i64>(0)?, SourceId(row.get(1)?));
            let block = Block::of_bytes(first, source, row.get_ref(2)?.as_blob()?).ok_or_else(newest::damaged)?;
            for (number, row) in (first..).zip(block.rows()).filter(|(_, row)| !row.is_gone) {
                let names = [row.tool, row.files, row.model].map(|id| names.get(&id).map(String::as_str));
                let own = row_digest(i64::from(row.role), names, row.at, row.labels);
                let rest = if row.is_cut { rests.remove(&number) } else { None };
                let own = own.wrapping_add(rest_digest(row.repeat as i64, row.length, rest.as_ref()));
                let digest = own.wrapping_add(words.remove(&number).unwrap_or_default());
                digests.insert((source, row.record, row.part), digest);
            }
        }
        // Words and texts of no part.
        for (row, digest) in words.into_iter().chain(rests.into_keys().map(|row| (row, 0))) {
            digests.insert((SourceId(-row - 1), 0, 0), digest);
        }
        Ok(digests)
    }

    fn read_names(&self) -> rusqlite::Result<HashMap<u32, String>> {
        let mut statement = self.connection.prepare("select id, name from names")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}

/// How many pages are in memory while a table is read once.
const SCANNED_PAGES: i64 = 64;

/// What decides whether something can be used that was learned before.
fn facts(masking: u64) -> [(&'static str, i64); 2] {
    [("masking", masking as i64), ("reading", i64::from(READING_VERSION))]
}

/// What is not indexed of a text, from four columns.
fn rest(row: &Row<'_>, first: usize) -> rusqlite::Result<Rest> {
    let words = without_sum(row.get_ref(first + 3)?.as_blob()?);
    Ok(Rest {
        bytes: row.get::<_, i64>(first)? as u64,
        span: span(row, first + 1)?,
        words: words.map_or_else(WordSet::of_anything, |words| WordSet::from_bytes(words.to_vec())),
    })
}

/// Where a record is, from two columns.
fn span(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<(u64, u32)>> {
    let span = row.get::<_, Option<i64>>(first)?.zip(row.get::<_, Option<u32>>(first + 1)?);
    Ok(span.map(|(offset, length)| (offset as u64, length)))
}

/// Numbers of sessions, for `json_each`.
fn json(sources: &[SourceId]) -> String {
    serde_json::json!(sources.iter().map(|source| source.0).collect::<Vec<_>>()).to_string()
}

impl Index for SqliteIndex {
    fn known(&self) -> Result<HashMap<Place, Known>> {
        self.read_known().map_err(|error| self.error(error))
    }

    fn cards(&self) -> Result<HashMap<SourceId, Card>> {
        let card = |(id, card): (SourceId, Vec<u8>)| Some((id, Card::from_bytes(&card)?));
        let cards = decoded(|each| self.read_cards(each), card).map_err(|error| self.error(error))?;
        Ok(cards.into_iter().collect())
    }

    fn requests(&self, sources: &[SourceId]) -> Result<HashMap<SourceId, NamedRequests>> {
        let read = || {
            let sql = "select source, requests from cards where source in (select value from json_each(?1))";
            let mut statement = self.connection.prepare_cached(sql)?;
            let requests = statement.query_map([json(sources)], |row| Ok((SourceId(row.get(0)?), row.get(1)?)))?;
            requests.collect::<rusqlite::Result<Vec<(SourceId, Vec<u8>)>>>()
        };
        let requests = read().map_err(|error| self.error(error))?;
        Ok(requests
            .into_iter()
            .filter_map(|(id, bytes)| Some((id, Card::requests_from_bytes(&bytes)?)))
            .collect())
    }

    fn bookmark(&self, place: &Place) -> Result<Option<Bookmark>> {
        let read = || {
            let sql = "select checkpoint, standings from sources join bookmarks on source = id where place = ?1";
            let stored = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            self.connection.prepare_cached(sql)?.query_row([&place.0], stored).optional()
        };
        let stored: Option<(Vec<u8>, Vec<u8>)> = read().map_err(|error| self.error(error))?;
        Ok(stored.and_then(|(checkpoint, standings)| {
            let bytes = |stored: &[u8]| without_sum(stored).map(<[u8]>::to_vec);
            Some(Bookmark { checkpoint: bytes(&checkpoint)?, standings: bytes(&standings)? })
        }))
    }

    fn store(&mut self, learned: Vec<Learned>) -> Result<()> {
        let path = self.path.clone();
        if learned.iter().map(|learned| learned.texts.parts().len()).sum::<usize>() >= MANY_PARTS {
            self.connection.execute_batch(schema::STORING_MANY).map_err(|error| self.error(error))?;
        }
        let transaction = self.begin()?;
        let stored = store::store(&transaction, learned);
        stored.and_then(|()| transaction.commit()).map_err(|source| Error::Database { path, source })
    }

    fn each_counts(&self, each: &mut dyn FnMut(SourceId, StoredCounts)) -> Result<()> {
        self.scan(|| counts::read_each(&self.connection, each)).map_err(|error| self.error(error))
    }

    fn store_counts(&mut self, counts: HashMap<SourceId, StoredCounts>) -> Result<()> {
        let path = self.path.clone();
        let transaction = self.begin()?;
        let stored = counts::store(&transaction, counts);
        stored.and_then(|()| transaction.commit()).map_err(|source| Error::Database { path, source })
    }

    fn forget(&mut self, sources: &[SourceId]) -> Result<()> {
        let path = self.path.clone();
        let transaction = self.begin()?;
        let forgotten = sources.iter().try_for_each(|source| {
            store::forget_texts(&transaction, *source)?;
            transaction.execute("delete from sources where id = ?1", [source.0]).map(drop)
        });
        let forgotten = forgotten.and_then(|()| store::forget_names(&transaction));
        forgotten.and_then(|()| transaction.commit()).map_err(|source| Error::Database { path, source })?;
        // Words of what is gone stay in pieces of the index until they are merged.
        if self.size_bytes().map_err(|error| self.error(error))? <= OPTIMIZED_AT_ONCE_BYTES {
            self.optimize()?;
        }
        Ok(())
    }

    fn search(&self, query: &Query, sources: &[SourceId], limit: usize, by: Ranking) -> Result<Vec<Match>> {
        self.newest_matches(query, sources, limit, by).map_err(|error| self.error(error))
    }

    fn cut_records(&self, query: &Query, sources: &[SourceId]) -> Result<Vec<CutRecord>> {
        self.read_cut_records(query, sources).map_err(|error| self.error(error))
    }

    fn words_like(&self, beginning: &str) -> Result<Vec<String>> {
        let read = || {
            let sql = "select term from vocabulary where term >= ?1 and term < ?1 || char(1114111) order by doc desc limit ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let words = statement.query_map(params![beginning, WORDS_LOOKED_AT as i64], |row| row.get(0))?;
            words.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| self.error(error))
    }

    fn has_word(&self, word: &str) -> Result<bool> {
        statement::has_word(&self.connection, word).map_err(|error| self.error(error))
    }

    fn digests(&self) -> Result<HashMap<(SourceId, u32, u32), u64>> {
        self.read_digests().map_err(|error| self.error(error))
    }

    fn clear(&mut self) -> Result<()> {
        let path = self.path.clone();
        let transaction = self.begin()?;
        let clear = "delete from parts; delete from times; delete from rests; delete from sources; delete from names; delete from bookmarks; insert into words(words) values ('delete-all');";
        let cleared = transaction.execute_batch(clear).and_then(|()| transaction.commit());
        cleared.map_err(|source| Error::Database { path, source })
    }

    fn optimize(&mut self) -> Result<()> {
        let path = self.path.clone();
        let transaction = self.begin()?;
        let named = store::forget_names(&transaction).and_then(|()| transaction.commit());
        named.map_err(|source| Error::Database { path, source })?;
        // What merging leaves empty is given back.
        let optimize = "insert into words(words) values ('optimize'); vacuum; pragma wal_checkpoint(truncate);";
        self.connection.execute_batch(optimize).map_err(|error| self.error(error))
    }
}
