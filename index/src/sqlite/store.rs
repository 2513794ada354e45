//! Stores what was learned of sessions: all of it anew, or what was appended.
//!
//! FTS5 writes what it has collected to its tables whenever a statement begins that could be undone alone: one that changes several rows,
//! returns some or resolves a conflict. So those come first, and then only plain inserts of one row each.

use hashbrown::{HashMap, HashSet};
use rusqlite::{CachedStatement, OptionalExtension, Row, Transaction, params};

use super::block::{self, BLOCK_ROWS, Block, GONE_ROW, PartRow};
use super::newest::{self, NEVER};
use super::statement::Naming;
use crate::card::Depth;
use crate::checked::with_sum;
use crate::index::{Bookmark, Growth, Learned, SourceId, Texts};
use crate::part::{Part, Rest, labels_by_place};
use crate::query::Labels;

/// Stores everything, or nothing if a statement fails.
pub(super) fn store(transaction: &Transaction<'_>, learned: Vec<Learned>) -> rusqlite::Result<()> {
    let mut parts = Vec::new();
    for learned in learned {
        parts.extend(store_session(transaction, learned)?);
    }
    store_parts(transaction, parts)
}

/// What the index knows of a session before.
struct Before {
    id: SourceId,
    stamp: u64,
    depth: i64,
    cut_bytes: i64,
}

impl Before {
    fn of(transaction: &Transaction<'_>, place: &[u8]) -> rusqlite::Result<Option<Before>> {
        let sql = "select id, stamp, depth, cut_bytes from sources where place = ?1";
        let before = |row: &rusqlite::Row<'_>| {
            let stamp = row.get::<_, i64>(1)? as u64;
            Ok(Before { id: SourceId(row.get(0)?), stamp, depth: row.get(2)?, cut_bytes: row.get(3)? })
        };
        transaction.prepare_cached(sql)?.query_row([place], before).optional()
    }
}

/// Stores what is known of a session but its parts, which it returns.
fn store_session(
    transaction: &Transaction<'_>,
    learned: Learned,
) -> rusqlite::Result<impl Iterator<Item = (SourceId, Part)> + use<>> {
    let Learned { place, stamp, depth, card, texts, bookmark, counts } = learned;
    let before = Before::of(transaction, &place.0)?;
    let unchanged = match &texts {
        Texts::Grown(growth) if growth.records.is_empty() => Some(growth.since),
        _ => None,
    };
    let kept_cut_bytes = match (&texts, &before) {
        (Texts::Grown(growth), Some(before)) if before.stamp == growth.since => {
            move_records(transaction, before.id, growth)?;
            Some(before.cut_bytes - forget_records(transaction, before.id, growth)?)
        }
        // Another process was here in the meantime.
        (Texts::Grown(_), _) => None,
        // A stamp of 0 is that of no files: such a session is stored each time.
        (_, Some(before)) if before.stamp == stamp && stamp != 0 && before.depth >= depth as i64 => None,
        (_, Some(before)) => {
            if before.depth >= Depth::Text as i64 {
                forget_texts(transaction, before.id)?;
            }
            Some(0)
        }
        (_, None) => Some(0),
    };
    let parts = match texts {
        Texts::Whole(parts) | Texts::Grown(Growth { parts, .. }) if kept_cut_bytes.is_some() => parts,
        _ => Vec::new(),
    };
    let mut source = before.as_ref().map_or(SourceId(0), |before| before.id);
    if let Some(kept) = kept_cut_bytes {
        let cut_bytes =
            kept + parts.iter().filter_map(|part| part.rest.as_ref()).map(|rest| rest.bytes as i64).sum::<i64>();
        let session = card.session();
        let (card, requests) =
            card.to_bytes().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let values = params![place.0, stamp as i64, depth as i64, cut_bytes, session.as_str()];
        match before {
            Some(_) => {
                let sql = "update sources set stamp = ?2, depth = ?3, cut_bytes = ?4, session = ?5 where place = ?1";
                transaction.prepare_cached(sql)?.execute(values)?;
            }
            None => {
                let sql = "insert into sources(place, stamp, depth, cut_bytes, session) values (?1, ?2, ?3, ?4, ?5)";
                transaction.prepare_cached(sql)?.execute(values)?;
                source = SourceId(transaction.last_insert_rowid());
            }
        }
        let sql = "insert or replace into cards values (?1, ?2, ?3)";
        transaction.prepare_cached(sql)?.execute(params![source.0, card, requests])?;
        store_bookmark(transaction, source, bookmark)?;
        if let Some(since) = unchanged {
            // Its files were touched, and say what they said.
            let sql = "update counts set stamp = ?2 where source = ?1 and stamp = ?3";
            transaction.prepare_cached(sql)?.execute(params![source.0, stamp as i64, since as i64])?;
        }
        if let Some(bytes) = counts {
            let sql = "insert or replace into counts values (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![source.0, stamp as i64, bytes])?;
        }
    }
    Ok(parts.into_iter().map(move |part| (source, part)))
}

fn store_bookmark(transaction: &Transaction<'_>, source: SourceId, bookmark: Option<Bookmark>) -> rusqlite::Result<()> {
    let Some(Bookmark { checkpoint, standings }) = bookmark else {
        return transaction.prepare_cached("delete from bookmarks where source = ?1")?.execute([source.0]).map(drop);
    };
    let sql = "insert or replace into bookmarks values (?1, ?2, ?3)";
    transaction
        .prepare_cached(sql)?
        .execute(params![source.0, with_sum(checkpoint), with_sum(standings)])
        .map(drop)
}

fn store_parts(transaction: &Transaction<'_>, parts: Vec<(SourceId, Part)>) -> rusqlite::Result<()> {
    let mut names = Names::new(transaction);
    let named = parts.iter().map(|(_, part)| names.of(part)).collect::<rusqlite::Result<Vec<_>>>()?;
    let mut storing = Storing::new(transaction)?;
    let mut last = LastBlock::read(transaction)?;
    let (mut parts, mut named) = (parts.as_slice(), named.as_slice());
    while let Some((source, _)) = parts.first() {
        // A session that grows fills its block.
        if *source != last.source || last.rows.len() >= BLOCK_ROWS {
            last = LastBlock { first: last.end(), source: *source, rows: Vec::new() };
        }
        let room = BLOCK_ROWS - last.rows.len();
        let of_source = parts.iter().take(room).take_while(|(other, _)| other == source).count();
        let (lot, others) = parts.split_at(of_source);
        let (their_names, other_names) = named.split_at(of_source);
        storing.rows(&mut last, lot, their_names)?;
        (parts, named) = (others, other_names);
    }
    Ok(())
}

/// The block with the last rows.
struct LastBlock {
    first: i64,
    source: SourceId,
    rows: Vec<PartRow>,
}

impl LastBlock {
    fn read(transaction: &Transaction<'_>) -> rusqlite::Result<LastBlock> {
        let sql = "select first, source, rows from parts order by first desc limit 1";
        let read = |row: &Row<'_>| {
            let (first, source) = (row.get(0)?, SourceId(row.get(1)?));
            let block = Block::of_bytes(first, source, row.get_ref(2)?.as_blob()?).ok_or_else(newest::damaged)?;
            Ok(LastBlock { first, source, rows: block.rows() })
        };
        let last = transaction.query_row(sql, [], read).optional()?;
        Ok(last.unwrap_or(LastBlock { first: 0, source: SourceId(0), rows: Vec::new() }))
    }

    /// The number that the next row gets.
    fn end(&self) -> i64 {
        self.first + self.rows.len() as i64
    }
}

/// The statements that store parts.
struct Storing<'t> {
    rows: CachedStatement<'t>,
    time: CachedStatement<'t>,
    more_rows: CachedStatement<'t>,
    later_time: CachedStatement<'t>,
    rest: CachedStatement<'t>,
    words: CachedStatement<'t>,
}

impl Storing<'_> {
    fn new<'t>(transaction: &'t Transaction<'t>) -> rusqlite::Result<Storing<'t>> {
        Ok(Storing {
            rows: transaction.prepare_cached("insert into parts values (?1, ?2, ?3)")?,
            time: transaction.prepare_cached("insert into times values (?1, ?2)")?,
            more_rows: transaction.prepare_cached("update parts set rows = ?2 where first = ?1")?,
            later_time: transaction.prepare_cached("update times set newest = ?2 where first = ?1")?,
            rest: transaction.prepare_cached("insert into rests values (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?,
            words: transaction.prepare_cached("insert into words(rowid, split, whole) values (?1, ?2, ?3)")?,
        })
    }

    /// Stores parts of one session behind the rows of a block.
    fn rows(&mut self, block: &mut LastBlock, parts: &[(SourceId, Part)], names: &[[u32; 3]]) -> rusqlite::Result<()> {
        let row = |((_, part), [tool, files, model]): (&(SourceId, Part), &[u32; 3])| PartRow {
            record: part.record,
            part: part.part,
            role: part.role as u8,
            labels: part.labels,
            tool: *tool,
            files: *files,
            model: *model,
            at: part.at,
            repeat: part.repeat,
            length: part.length,
            is_cut: part.rest.is_some(),
            is_gone: false,
        };
        let begin = block.end();
        block.rows.extend(parts.iter().zip(names).map(row));
        let LastBlock { first, source, rows } = &*block;
        let newest = rows.iter().filter_map(|row| row.at).max().unwrap_or(NEVER);
        let bytes = block::to_bytes(*first, *source, rows);
        if begin == *first {
            self.rows.execute(params![first, source.0, bytes])?;
            self.time.execute(params![first, newest])?;
        } else {
            self.more_rows.execute(params![first, bytes])?;
            self.later_time.execute(params![first, newest])?;
        }
        for (number, (_, part)) in (begin..).zip(parts) {
            if let Some(Rest { bytes, span, words }) = &part.rest {
                let (offset, length) = span.map(|(offset, length)| (offset as i64, length)).unzip();
                let words = with_sum(words.as_bytes().to_vec());
                self.rest.execute(params![number, source.0, part.record, *bytes as i64, offset, length, words])?;
            }
            self.words.execute(params![number, part.words, part.wholes])?;
        }
        Ok(())
    }
}

/// Calls `change` for each part of a session with the number of its row, and stores the blocks in which it says that it changed one.
fn change_rows(
    transaction: &Transaction<'_>,
    source: SourceId,
    mut change: impl FnMut(i64, &mut PartRow) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached("select first, rows from parts where source = ?1")?;
    let read = |row: &Row<'_>| {
        let first = row.get(0)?;
        let block = Block::of_bytes(first, source, row.get_ref(1)?.as_blob()?).ok_or_else(newest::damaged)?;
        Ok((first, block.rows()))
    };
    let blocks = statement.query_map([source.0], read)?.collect::<rusqlite::Result<Vec<(i64, Vec<PartRow>)>>>()?;
    let mut store = transaction.prepare_cached("update parts set rows = ?2 where first = ?1")?;
    let mut forget = ["delete from parts where first = ?1", "delete from times where first = ?1"]
        .map(|sql| transaction.prepare_cached(sql))
        .into_iter()
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (first, mut rows) in blocks {
        let mut has_changed = false;
        for (number, row) in (first..).zip(&mut rows).filter(|(_, row)| !row.is_gone) {
            has_changed |= change(number, row)?;
        }
        if rows.iter().all(|row| row.is_gone) {
            forget.iter_mut().try_for_each(|forget| forget.execute([first]).map(drop))?;
        } else if has_changed {
            store.execute(params![first, block::to_bytes(first, source, &rows)])?;
        }
    }
    Ok(())
}

/// Changes the labels of records that stand elsewhere now.
fn move_records(transaction: &Transaction<'_>, source: SourceId, growth: &Growth) -> rusqlite::Result<()> {
    let moved: HashMap<u32, u8> = growth.moved.iter().map(|(record, standing)| (*record, standing.bits())).collect();
    if moved.is_empty() {
        return Ok(());
    }
    change_rows(transaction, source, |_, row| {
        let Some(standing) = moved.get(&row.record) else { return Ok(false) };
        row.labels = Labels::from_bits((row.labels.bits() & !labels_by_place().bits()) | standing);
        Ok(true)
    })
}

/// Forgets what is known of records that have grown. Returns how many bytes of them were not indexed.
fn forget_records(transaction: &Transaction<'_>, source: SourceId, growth: &Growth) -> rusqlite::Result<i64> {
    let grown: HashSet<u32> = growth.records.iter().copied().collect();
    if grown.is_empty() {
        return Ok(0);
    }
    let mut forgetting = Forgetting::new(transaction)?;
    change_rows(transaction, source, |number, row| {
        let has_grown = grown.contains(&row.record);
        if has_grown {
            forgetting.row(number, row)?;
            *row = GONE_ROW;
        }
        Ok(has_grown)
    })?;
    Ok(forgetting.cut_bytes)
}

/// Forgets everything but what a list shows.
pub(super) fn forget_texts(transaction: &Transaction<'_>, source: SourceId) -> rusqlite::Result<()> {
    let mut forgetting = Forgetting::new(transaction)?;
    change_rows(transaction, source, |number, row| forgetting.row(number, row).map(|()| false))?;
    for sql in [
        "delete from times where first in (select first from parts where source = ?1)",
        "delete from parts where source = ?1",
        "delete from bookmarks where source = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([source.0])?;
    }
    Ok(())
}

/// Forgets what is beside the rows of parts.
struct Forgetting<'t> {
    words: CachedStatement<'t>,
    rest: CachedStatement<'t>,
    /// How many bytes of them were not indexed.
    cut_bytes: i64,
}

impl Forgetting<'_> {
    fn new<'t>(transaction: &'t Transaction<'t>) -> rusqlite::Result<Forgetting<'t>> {
        let words = transaction.prepare_cached("delete from words where rowid = ?1")?;
        let rest = transaction.prepare_cached("delete from rests where part = ?1 returning bytes")?;
        Ok(Forgetting { words, rest, cut_bytes: 0 })
    }

    fn row(&mut self, number: i64, row: &PartRow) -> rusqlite::Result<()> {
        if row.is_cut {
            let bytes = self.rest.query_row([number], |row| row.get::<_, i64>(0)).optional()?;
            self.cut_bytes += bytes.unwrap_or(0);
        }
        self.words.execute([number]).map(drop)
    }
}

/// Forgets the names that no part has any more: paths of files can be private.
pub(super) fn forget_names(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut used = HashSet::new();
    let mut statement = transaction.prepare_cached("select first, source, rows from parts")?;
    let mut blocks = statement.query([])?;
    while let Some(row) = blocks.next()? {
        let (first, source) = (row.get(0)?, SourceId(row.get(1)?));
        let block = Block::of_bytes(first, source, row.get_ref(2)?.as_blob()?).ok_or_else(newest::damaged)?;
        let rows = block.rows().into_iter().filter(|row| !row.is_gone);
        used.extend(rows.flat_map(|row| [row.tool, row.files, row.model]));
    }
    let mut statement = transaction.prepare_cached("select id from names")?;
    let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<u32>>>()?;
    let mut forget = transaction.prepare_cached("delete from names where id = ?1")?;
    names.into_iter().filter(|id| !used.contains(id)).try_for_each(|id| forget.execute([id]).map(drop))
}

/// The numbers of names: tools, models and files repeat.
struct Names<'t> {
    transaction: &'t Transaction<'t>,
    /// Those of each kind, once one is needed: of what is appended to a session, few parts have any.
    known: [Option<HashMap<String, u32>>; 3],
}

impl Names<'_> {
    fn new<'t>(transaction: &'t Transaction<'t>) -> Names<'t> {
        Names { transaction, known: Default::default() }
    }

    /// Those of a part: its tool, its files and its model.
    fn of(&mut self, part: &Part) -> rusqlite::Result<[u32; 3]> {
        let names = [(Naming::Tool, &part.tool), (Naming::Files, &part.files), (Naming::Model, &part.model)];
        let mut ids = [0; 3];
        for (id, (naming, name)) in ids.iter_mut().zip(names) {
            *id = name.as_ref().map_or(Ok(0), |name| self.id(naming, name))?;
        }
        Ok(ids)
    }

    fn id(&mut self, naming: Naming, name: &str) -> rusqlite::Result<u32> {
        let known = match self.known[naming as usize].take() {
            Some(known) => known,
            None => self.read(naming)?,
        };
        let known = self.known[naming as usize].insert(known);
        if let Some(id) = known.get(name) {
            return Ok(*id);
        }
        let sql = "insert into names(kind, name) values (?1, ?2)";
        self.transaction.prepare_cached(sql)?.execute(params![naming as u8, name])?;
        let id = u32::try_from(self.transaction.last_insert_rowid())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        known.insert(name.to_owned(), id);
        Ok(id)
    }

    fn read(&self, naming: Naming) -> rusqlite::Result<HashMap<String, u32>> {
        let mut statement = self.transaction.prepare_cached("select name, id from names where kind = ?1")?;
        statement.query_map([naming as u8], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}
