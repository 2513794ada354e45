//! Finds the newest matches of a question, in whatever order their rows were stored.
//!
//! FTS5 gives rows by their numbers, forwards or backwards, and those follow the order of storing: a session that was touched, restored or
//! read again has the greatest ones, however old it is. So for every block of rows the index knows the newest time in it. The last rows
//! give a first answer; then come the blocks that may have something newer than the oldest of it, those with the newest rows first, until
//! there is none. What was forgotten may leave the time of a block too new: then it is looked at in vain.

use hashbrown::HashMap;
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, params, params_from_iter};

use super::{SqliteIndex, json, statement};
use crate::index::{Match, Ranking, SourceId};
use crate::part::Part;
use crate::query::{Labels, Query};

/// A block has this many rows: `row >> BLOCK_BITS` is its number. Fewer take more room, more have older rows beside the newest one.
const BLOCK_BITS: i64 = 7;

/// Stands for the time of a part that has none: it is older than all others.
const NEVER: i64 = i64::MIN;

/// A question as SQL, without an order.
struct Selection {
    /// Its columns, tables and conditions.
    sql: String,
    /// The number of a row.
    row: &'static str,
    values: Vec<Value>,
}

impl SqliteIndex {
    /// The newest matches, and all others of the same time as the oldest of them.
    pub(super) fn newest_matches(
        &self,
        query: &Query,
        sources: &[SourceId],
        limit: usize,
        by: Ranking,
    ) -> rusqlite::Result<Vec<Match>> {
        let selection = self.selection(query, sources, by)?;
        let (mut found, first) = self.last_stored(&selection, limit.saturating_add(1))?;
        if found.len() <= limit {
            return Ok(found);
        }
        let mut oldest = cut(&mut found, limit);
        let mut others = self.blocks_before(first)?;
        let last: i64 = self.connection.query_row("select coalesce(max(id), 0) from parts", [], |row| row.get(0))?;
        // If matches are everywhere alike, as many are in as many blocks.
        let mut step = usize::try_from((last - first) >> BLOCK_BITS).unwrap_or(0) + 1;
        loop {
            let newer = others.partition_point(|(_, newest)| *newest >= oldest);
            if newer == 0 {
                return Ok(found);
            }
            let blocks: Vec<i64> = others.drain(..newer.min(step)).map(|(block, _)| block).collect();
            found.extend(self.in_blocks(&selection, &blocks, first, oldest)?);
            oldest = cut(&mut found, limit);
            step = step.saturating_mul(2);
        }
    }

    fn selection(&self, query: &Query, sources: &[SourceId], by: Ranking) -> rusqlite::Result<Selection> {
        let is_word = |word: &str| self.has_word(word).unwrap_or(false);
        let statement::Statement { words, condition, mut values } = statement::of(query, &is_word);
        let mut conditions = Vec::from_iter(condition);
        if !self.is_every_source(sources)? {
            values.push(json(sources).into());
            conditions.push(format!("p.source in (select value from json_each(?{}))", values.len()));
        }
        let (row, tables, weight) = match words {
            Some(words) => {
                values.push(words.into());
                conditions.push(format!("words match ?{}", values.len()));
                ("words.rowid", "words join parts p on p.id = words.rowid", "words.rank")
            }
            None => ("p.id", "parts p", "0.0"),
        };
        let rank = match by {
            Ranking::Words => weight,
            Ranking::Length => "cast(p.length as real)",
            Ranking::Time => "0.0",
        };
        conditions.push("true".to_owned());
        let columns = "p.source, p.record, p.part, p.repeat, p.at, p.labels, p.is_cut";
        let sql = format!("select {columns}, {rank}, {row} from {tables} where {}", conditions.join(" and "));
        Ok(Selection { sql, row, values })
    }

    /// The matches that were stored last, and the first row that was looked at.
    fn last_stored(&self, selection: &Selection, limit: usize) -> rusqlite::Result<(Vec<Match>, i64)> {
        let Selection { sql, row, values } = selection;
        let mut statement = self.connection.prepare(&format!("{sql} order by {row} desc limit {limit}"))?;
        let mut rows = statement.query(params_from_iter(values))?;
        let (mut found, mut first) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            found.push(matching(row)?);
            first = row.get(8)?;
        }
        Ok((found, first))
    }

    /// The blocks with rows before this one and their newest times, the newest first.
    fn blocks_before(&self, first: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
        let sql = "select block, newest from times where block <= ?1 order by newest desc, block desc";
        let mut statement = self.connection.prepare_cached(sql)?;
        let blocks = statement.query_map([first >> BLOCK_BITS], |row| Ok((row.get(0)?, row.get(1)?)))?;
        blocks.collect()
    }

    /// The matches in some blocks that are before this row and not older than this time.
    fn in_blocks(
        &self,
        selection: &Selection,
        blocks: &[i64],
        before: i64,
        oldest: i64,
    ) -> rusqlite::Result<Vec<Match>> {
        let Selection { sql, row, values } = selection;
        let from = blocks.iter().min().map_or(0, |block| block << BLOCK_BITS);
        let to = blocks.iter().max().map_or(0, |block| (block + 1) << BLOCK_BITS).min(before);
        let number = values.len();
        let sql = format!(
            "{sql} and {row} >= ?{} and {row} < ?{} and {row} >> {BLOCK_BITS} in (select value from json_each(?{})) \
             and coalesce(p.at, {NEVER}) >= ?{}",
            number + 1,
            number + 2,
            number + 3,
            number + 4,
        );
        let own = [from.into(), to.into(), serde_json::json!(blocks).to_string().into(), oldest.into()];
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values.iter().cloned().chain(own)), matching)?;
        rows.collect()
    }
}

fn matching(row: &Row<'_>) -> rusqlite::Result<Match> {
    Ok(Match {
        source: SourceId(row.get(0)?),
        record: row.get(1)?,
        part: row.get(2)?,
        repeat: row.get::<_, i64>(3)? as u64,
        at: row.get(4)?,
        labels: Labels::from_bits(row.get(5)?),
        is_cut: row.get(6)?,
        rank: row.get(7)?,
    })
}

fn time(found: &Match) -> i64 {
    found.at.unwrap_or(NEVER)
}

/// Leaves the newest matches, and those of the same time as the last of them. Returns that time.
fn cut(found: &mut Vec<Match>, limit: usize) -> i64 {
    let Some(last) = limit.checked_sub(1).filter(|last| *last < found.len()) else { return NEVER };
    let (_, oldest, _) = found.select_nth_unstable_by_key(last, |found| std::cmp::Reverse(time(found)));
    let oldest = time(oldest);
    found.retain(|found| time(found) >= oldest);
    oldest
}

/// The newest time of each block, of rows that are being stored.
#[derive(Default)]
pub(super) struct Times(HashMap<i64, i64>);

impl Times {
    pub(super) fn add(&mut self, row: i64, part: &Part) {
        let newest = self.0.entry(row >> BLOCK_BITS).or_insert(NEVER);
        *newest = part.at.unwrap_or(NEVER).max(*newest);
    }

    pub(super) fn store(self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let sql = "insert into times values (?1, ?2) on conflict(block) do update set newest = max(newest, ?2)";
        let mut statement = transaction.prepare_cached(sql)?;
        self.0
            .into_iter()
            .try_for_each(|(block, newest)| statement.execute(params![block, newest]).map(drop))
    }
}
