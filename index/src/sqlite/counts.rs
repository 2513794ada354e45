//! What each session can add to a count, as bytes beside its other facts.

use hashbrown::HashMap;
use rusqlite::{Connection, Transaction, params};

use crate::counts::StoredCounts;
use crate::index::SourceId;

pub(super) fn read(connection: &Connection) -> rusqlite::Result<HashMap<SourceId, StoredCounts>> {
    let mut statement = connection.prepare_cached("select source, stamp, counts from counts")?;
    let counts = statement.query_map([], |row| {
        let stored = StoredCounts { stamp: row.get::<_, i64>(1)? as u64, bytes: row.get(2)? };
        Ok((SourceId(row.get(0)?), stored))
    })?;
    counts.collect()
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
