//! Finds the newest matches of a question, in whatever order their rows were stored.
//!
//! FTS5 gives rows by their numbers, forwards or backwards, and those follow the order of storing: a session that was touched, restored or
//! read again has the greatest ones, however old it is. So for every block of rows the index knows the newest time in it. The last rows
//! give a first answer; then come the blocks that may have something newer than the oldest of it, those with the newest rows first, until
//! there is none. What was forgotten may leave the time of a block too new: then it is looked at in vain.

use std::ops::{ControlFlow, Range};

use hashbrown::HashSet;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use super::SqliteIndex;
use super::block::{BLOCK_ROWS, Block};
use super::statement::{self, Statement};
use crate::index::{Match, Ranking, SourceId};
use crate::query::Query;

/// Stands for the time of a part that has none: it is older than all others.
pub(super) const NEVER: i64 = i64::MIN;

/// What is asked, of which sessions.
struct Selection<'s> {
    statement: Statement,
    sources: HashSet<&'s SourceId>,
    by: Ranking,
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
        // Another process may store, or give a row to another part, between the steps of an answer.
        let _as_of_now = self.connection.unchecked_transaction()?;
        let statement = statement::of(query, &self.connection)?;
        let selection = Selection { statement, sources: sources.iter().collect(), by };
        let (mut found, first) = self.last_stored(&selection, limit.saturating_add(1))?;
        if found.len() <= limit {
            return Ok(found);
        }
        let mut oldest = cut(&mut found, limit);
        let firsts = self.first_rows()?;
        let mut others = self.blocks_before(first)?;
        // If matches are everywhere alike, as many are in as many blocks.
        let mut step = firsts.len().saturating_sub(others.len()).max(1);
        // Each question counts anew in how many texts the words are, or joins all words that begin so: one, then, over what is between
        // the blocks, too.
        let is_slow_to_begin = by == Ranking::Words || selection.statement.has_beginning;
        loop {
            let newer = others.partition_point(|(_, newest)| *newest >= oldest);
            if newer == 0 {
                return Ok(found);
            }
            let blocks: Vec<i64> = others.drain(..newer.min(step)).map(|(block, _)| block).collect();
            let mut add = |one: Match| {
                found.extend(Some(one).filter(|one| time(one) >= oldest));
                ControlFlow::Continue(())
            };
            if is_slow_to_begin {
                let wanted: HashSet<i64> = blocks.iter().copied().collect();
                let block_of = |row: i64| firsts.partition_point(|first| *first <= row).checked_sub(1);
                let is_wanted = |row| block_of(row).is_some_and(|at| wanted.contains(&firsts[at]));
                let from = blocks.iter().min().copied().unwrap_or(first);
                self.each_match(&selection, from..first, &is_wanted, |_, one| add(one))?;
            } else {
                for rows in runs(blocks, &firsts, first) {
                    self.each_match(&selection, rows, &|_| true, |_, one| add(one))?;
                }
            }
            oldest = cut(&mut found, limit);
            step = step.saturating_mul(2);
        }
    }

    /// The matches that were stored last, and the first row that was looked at.
    fn last_stored(&self, selection: &Selection<'_>, limit: usize) -> rusqlite::Result<(Vec<Match>, i64)> {
        let (mut found, mut first) = (Vec::new(), 0);
        self.each_match(selection, 0..i64::MAX, &|_| true, |row, one| {
            found.push(one);
            first = row;
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok((found, first))
    }

    /// The first row of each block.
    fn first_rows(&self) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached("select first from times order by first")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// The blocks with rows before this one: their first rows and their newest times, the newest first.
    fn blocks_before(&self, row: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
        let sql = "select first, newest from times where first < ?1 order by newest desc, first desc";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_map([row], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// Visits the matches in these rows, the last one first, with the numbers of their rows.
    fn each_match(
        &self,
        selection: &Selection<'_>,
        rows: Range<i64>,
        is_wanted: &dyn Fn(i64) -> bool,
        mut visit: impl FnMut(i64, Match) -> ControlFlow<()>,
    ) -> rusqlite::Result<()> {
        let Selection { statement, by, .. } = selection;
        let mut blocks = Blocks::new(&self.connection)?;
        let mut look = |number: i64, rank: f64, blocks: &mut Blocks<'_>| -> rusqlite::Result<ControlFlow<()>> {
            let found = blocks.matching(selection, number)?;
            Ok(found
                .map_or(ControlFlow::Continue(()), |found| visit(number, Match { rank: found.rank + rank, ..found })))
        };
        let Some(words) = &statement.words else {
            let sql = "select first from parts where first > ?1 and first < ?2 order by first desc";
            let mut all = self.connection.prepare_cached(sql)?;
            let range = params![rows.start - BLOCK_ROWS as i64, rows.end];
            for first in all.query_map(range, |row| row.get::<_, i64>(0))? {
                let first = first?;
                let count = if is_wanted(first) { blocks.load(first)?.rows.count() } else { 0 };
                for number in (first..first + count as i64).rev().filter(|number| rows.contains(number)) {
                    if look(number, 0.0, &mut blocks)?.is_break() {
                        return Ok(());
                    }
                }
            }
            return Ok(());
        };
        let rank = if *by == Ranking::Words { "rank" } else { "0.0" };
        let sql = format!(
            "select rowid, {rank} from words where words match ?1 and rowid >= ?2 and rowid < ?3 order by rowid desc"
        );
        let mut having = self.connection.prepare_cached(&sql)?;
        let mut having = having.query(params![words, rows.start, rows.end])?;
        while let Some(row) = having.next()? {
            let number: i64 = row.get(0)?;
            if is_wanted(number) && look(number, row.get(1)?, &mut blocks)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The rows of some blocks before this one, those of blocks beside each other together.
fn runs(mut blocks: Vec<i64>, firsts: &[i64], before: i64) -> Vec<Range<i64>> {
    blocks.sort_unstable();
    let mut runs: Vec<Range<i64>> = Vec::new();
    for first in blocks {
        let next = firsts.get(firsts.partition_point(|known| *known <= first)).copied();
        let rows = first..next.unwrap_or(i64::MAX).min(before);
        match runs.last_mut().filter(|run| run.end == rows.start) {
            Some(run) => run.end = rows.end,
            None => runs.push(rows),
        }
    }
    runs
}

/// Reads blocks one after the other.
struct Blocks<'c> {
    read: CachedStatement<'c>,
    current: Option<ReadBlock>,
}

struct ReadBlock {
    first: i64,
    source: SourceId,
    rows: Block,
}

impl ReadBlock {
    fn position(&self, row: i64) -> Option<usize> {
        usize::try_from(row - self.first).ok().filter(|position| *position < self.rows.count())
    }
}

impl Blocks<'_> {
    fn new(connection: &Connection) -> rusqlite::Result<Blocks<'_>> {
        let sql = "select first, source, rows from parts where first <= ?1 order by first desc limit 1";
        Ok(Blocks { read: connection.prepare_cached(sql)?, current: None })
    }

    /// Reads the block with this row, unless it is the one that was read last.
    fn load(&mut self, row: i64) -> rusqlite::Result<&ReadBlock> {
        let current = match self.current.take() {
            Some(current) if current.position(row).is_some() => current,
            _ => {
                let read = |row: &Row<'_>| {
                    let (first, source) = (row.get(0)?, SourceId(row.get(1)?));
                    let rows = Block::of_bytes(first, source, row.get_ref(2)?.as_blob()?).ok_or_else(damaged)?;
                    Ok(ReadBlock { first, source, rows })
                };
                let block = self.read.query_row([row], read).optional()?;
                block.filter(|block| block.position(row).is_some()).ok_or_else(damaged)?
            }
        };
        Ok(self.current.insert(current))
    }

    /// The part of a row, if it matches.
    fn matching(&mut self, selection: &Selection<'_>, number: i64) -> rusqlite::Result<Option<Match>> {
        let block = self.load(number)?;
        let row = block.position(number).and_then(|position| block.rows.row(position)).filter(|row| {
            selection.sources.contains(&block.source) && selection.statement.condition.holds(number, row)
        });
        Ok(row.map(|row| Match {
            source: block.source,
            record: row.record,
            part: row.part,
            repeat: row.repeat,
            at: row.at,
            labels: row.labels,
            is_cut: row.is_cut,
            rank: if selection.by == Ranking::Length { f64::from(row.length) } else { 0.0 },
        }))
    }
}

/// What SQLite itself says of a file that is not as it was written.
pub(super) fn damaged() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None)
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
