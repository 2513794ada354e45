//! What each session can add to a count, as bytes beside its other facts.

use hashbrown::HashMap;
use rusqlite::{Connection, Transaction, params};

use crate::counts::StoredCounts;
use crate::index::SourceId;

pub(super) fn read_each(connection: &Connection, each: &mut dyn FnMut(SourceId, StoredCounts)) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("select source, stamp, counts from counts")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let stored = StoredCounts { stamp: row.get::<_, i64>(1)? as u64, bytes: row.get(2)? };
        each(SourceId(row.get(0)?), stored);
    }
    Ok(())
}

/// Stores what was counted, unless another process has learned of newer files.
pub(super) fn store(transaction: &Transaction<'_>, counts: HashMap<SourceId, StoredCounts>) -> rusqlite::Result<()> {
    let sql = "insert or replace into counts select id, stamp, ?3 from sources where id = ?1 and stamp = ?2";
    let mut statement = transaction.prepare_cached(sql)?;
    for (source, StoredCounts { stamp, bytes }) in counts {
        statement.execute(params![source.0, stamp as i64, bytes])?;
    }
    Ok(())
}
