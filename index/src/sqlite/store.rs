//! Stores what was learned of a session: all of it anew, or what was appended.

use hashbrown::HashMap;
use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};

use crate::index::{Bookmark, Growth, Learned, SourceId, Texts};
use crate::part::{Part, labels_by_place};

/// What the index knows of a session before.
struct Before {
    id: SourceId,
    stamp: u64,
    depth: i64,
    cut_bytes: i64,
}

pub(super) fn store(transaction: &Transaction<'_>, learned: Learned) -> rusqlite::Result<()> {
    let Learned { place, stamp, depth, card, texts, bookmark } = learned;
    let before = {
        let mut statement =
            transaction.prepare_cached("select id, stamp, depth, cut_bytes from sources where place = ?1")?;
        statement
            .query_row([&place.0], |row| {
                let stamp = row.get::<_, i64>(1)? as u64;
                Ok(Before { id: SourceId(row.get(0)?), stamp, depth: row.get(2)?, cut_bytes: row.get(3)? })
            })
            .optional()?
    };
    let kept_cut_bytes = match (&texts, &before) {
        (Texts::Grown(growth), Some(before)) if before.stamp == growth.since => {
            before.cut_bytes - forget_records(transaction, before.id, growth)?
        }
        // Another process was here in the meantime.
        (Texts::Grown(_), _) => return Ok(()),
        (_, Some(before)) if before.stamp == stamp && before.depth >= depth as i64 => return Ok(()),
        (_, Some(before)) => {
            forget_texts(transaction, before.id)?;
            0
        }
        (_, None) => 0,
    };
    let (parts, moved) = match texts {
        Texts::Unread => (Vec::new(), Vec::new()),
        Texts::Whole(parts) => (parts, Vec::new()),
        Texts::Grown(Growth { parts, moved, .. }) => (parts, moved),
    };
    let (card, requests) = card.to_bytes().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let cut_bytes = kept_cut_bytes + parts.iter().map(|part| part.cut_bytes as i64).sum::<i64>();
    let sql = "insert into sources(place, stamp, depth, cut_bytes, card, requests) values (?1, ?2, ?3, ?4, ?5, ?6)
        on conflict(place) do update set stamp = ?2, depth = ?3, cut_bytes = ?4, card = ?5, requests = ?6 returning id";
    let values = params![place.0, stamp as i64, depth as i64, cut_bytes, card, requests];
    let source = SourceId(transaction.prepare_cached(sql)?.query_row(values, |row| row.get(0))?);
    let mut labels = transaction
        .prepare_cached("update parts set labels = (labels & ~?3) | ?4 where source = ?1 and record = ?2")?;
    for (record, standing) in moved {
        labels.execute(params![source.0, record, labels_by_place().bits(), standing.bits()])?;
    }
    let mut names = Names { transaction, known: HashMap::new() };
    let mut row = transaction.prepare_cached(
        "insert into parts(source, record, part, role, tool, files, model, at, labels, repeat, cut_bytes)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let mut words = transaction.prepare_cached("insert into words(rowid, split, whole) values (?1, ?2, ?3)")?;
    for part in parts {
        store_part(transaction, source, &part, &mut names, &mut row, &mut words)?;
    }
    store_bookmark(transaction, source, bookmark)
}

fn store_bookmark(transaction: &Transaction<'_>, source: SourceId, bookmark: Option<Bookmark>) -> rusqlite::Result<()> {
    let Some(Bookmark { checkpoint, standings }) = bookmark else {
        return transaction.prepare_cached("delete from bookmarks where source = ?1")?.execute([source.0]).map(drop);
    };
    let sql = "insert or replace into bookmarks values (?1, ?2, ?3)";
    transaction.prepare_cached(sql)?.execute(params![source.0, checkpoint, standings]).map(drop)
}

fn store_part(
    transaction: &Transaction<'_>,
    source: SourceId,
    part: &Part,
    names: &mut Names<'_>,
    row: &mut CachedStatement<'_>,
    words: &mut CachedStatement<'_>,
) -> rusqlite::Result<()> {
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
        part.cut_bytes as i64,
    ])?;
    words.execute(params![transaction.last_insert_rowid(), part.words, part.wholes]).map(drop)
}

/// Forgets what is known of records that have grown. Returns how many bytes of them were not indexed.
fn forget_records(transaction: &Transaction<'_>, source: SourceId, growth: &Growth) -> rusqlite::Result<i64> {
    let mut cut = transaction
        .prepare_cached("select coalesce(sum(cut_bytes), 0) from parts where source = ?1 and record = ?2")?;
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

/// The numbers of names: tools, models and files repeat.
struct Names<'t> {
    transaction: &'t Transaction<'t>,
    known: HashMap<String, i64>,
}

impl Names<'_> {
    fn id(&mut self, name: Option<&str>) -> rusqlite::Result<Option<i64>> {
        let Some(name) = name else { return Ok(None) };
        if let Some(id) = self.known.get(name) {
            return Ok(Some(*id));
        }
        let sql = "insert into names(name) values (?1) on conflict(name) do update set name = name returning id";
        let id = self.transaction.prepare_cached(sql)?.query_row([name], |row| row.get(0))?;
        self.known.insert(name.to_owned(), id);
        Ok(Some(id))
    }
}
