//! Stores what was learned of sessions: all of it anew, or what was appended.
//!
//! FTS5 writes what it has collected to its tables whenever a statement begins that could be undone alone: one that changes several rows,
//! returns some or resolves a conflict. So those come first, and then only plain inserts of one row each.

use hashbrown::HashMap;
use rusqlite::{OptionalExtension, Transaction, params};

use super::newest::Times;
use crate::card::Depth;
use crate::checked::with_sum;
use crate::index::{Bookmark, Growth, Learned, SourceId, Texts};
use crate::part::{Part, Rest, labels_by_place};

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
        (_, Some(before)) if before.stamp == stamp && before.depth >= depth as i64 => None,
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
    let mut names = Names::read(transaction)?;
    let mut row = transaction.prepare_cached(
        "insert into parts(source, record, part, role, tool, files, model, at, labels, repeat, length, is_cut)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let mut rest = transaction.prepare_cached("insert into rests values (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let mut words = transaction.prepare_cached("insert into words(rowid, split, whole) values (?1, ?2, ?3)")?;
    let mut times = Times::default();
    for (source, part) in parts {
        let (tool, files, model) =
            (names.id(part.tool.as_deref())?, names.id(part.files.as_deref())?, names.id(part.model.as_deref())?);
        row.execute(params![
            source.0,
            part.record,
            part.part,
            part.role as i64,
            tool,
            files,
            model,
            part.at,
            part.labels.bits(),
            part.repeat as i64,
            part.length,
            part.rest.is_some(),
        ])?;
        let number = transaction.last_insert_rowid();
        if let Some(Rest { bytes, span, words }) = &part.rest {
            let (offset, length) = span.map(|(offset, length)| (offset as i64, length)).unzip();
            let words = with_sum(words.as_bytes().to_vec());
            rest.execute(params![number, source.0, part.record, *bytes as i64, offset, length, words])?;
        }
        times.add(number, &part);
        words.execute(params![number, part.words, part.wholes])?;
    }
    times.store(transaction)
}

/// Changes the labels of records that stand elsewhere now.
fn move_records(transaction: &Transaction<'_>, source: SourceId, growth: &Growth) -> rusqlite::Result<()> {
    let sql = "update parts set labels = (labels & ~?3) | ?4 where source = ?1 and record = ?2";
    let mut labels = transaction.prepare_cached(sql)?;
    for (record, standing) in &growth.moved {
        labels.execute(params![source.0, record, labels_by_place().bits(), standing.bits()])?;
    }
    Ok(())
}

/// Forgets what is known of records that have grown. Returns how many bytes of them were not indexed.
fn forget_records(transaction: &Transaction<'_>, source: SourceId, growth: &Growth) -> rusqlite::Result<i64> {
    let mut cut = transaction
        .prepare_cached("select coalesce(sum(bytes), 0) from parts join rests on rests.part = parts.id where parts.source = ?1 and parts.record = ?2")?;
    let mut words = transaction
        .prepare_cached("delete from words where rowid in (select id from parts where source = ?1 and record = ?2)")?;
    let mut parts = transaction.prepare_cached("delete from parts where source = ?1 and record = ?2")?;
    let mut cut_bytes = 0;
    for record in &growth.records {
        let values = params![source.0, record];
        cut_bytes += cut.query_row(values, |row| row.get::<_, i64>(0))?;
        words.execute(values)?;
        parts.execute(values)?;
    }
    Ok(cut_bytes)
}

/// Forgets everything but what a list shows.
pub(super) fn forget_texts(transaction: &Transaction<'_>, source: SourceId) -> rusqlite::Result<()> {
    for sql in [
        "delete from words where rowid in (select id from parts where source = ?1)",
        "delete from parts where source = ?1",
        "delete from bookmarks where source = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([source.0])?;
    }
    Ok(())
}

/// Forgets the names that no part has any more: paths of files can be private.
pub(super) fn forget_names(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let used = ["tool", "files", "model"].map(|column| format!("select {column} from parts where {column} not null"));
    transaction
        .execute(&format!("delete from names where id not in ({})", used.join(" union ")), [])
        .map(drop)
}

/// The numbers of names: tools, models and files repeat.
struct Names<'t> {
    transaction: &'t Transaction<'t>,
    known: HashMap<String, i64>,
}

impl Names<'_> {
    fn read<'t>(transaction: &'t Transaction<'t>) -> rusqlite::Result<Names<'t>> {
        let mut statement = transaction.prepare_cached("select name, id from names")?;
        let known = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
        Ok(Names { transaction, known })
    }

    fn id(&mut self, name: Option<&str>) -> rusqlite::Result<Option<i64>> {
        let Some(name) = name else { return Ok(None) };
        if let Some(id) = self.known.get(name) {
            return Ok(Some(*id));
        }
        self.transaction.prepare_cached("insert into names(name) values (?1)")?.execute([name])?;
        let id = self.transaction.last_insert_rowid();
        self.known.insert(name.to_owned(), id);
        Ok(Some(id))
    }
}
