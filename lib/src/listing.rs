//! Every session of a home, each described from the two ends of its file (reading rule 10).

use std::path::PathBuf;

use hashbrown::HashMap;

use crate::dialect::{self, Dialect};
use crate::error::Result;
use crate::home::Home;
use crate::layout::Format;
use crate::query::SessionRow;
use crate::reading::Reading;
use crate::record::TitleSource;
use crate::session::Session;
use crate::source::{Source, open_file};
use crate::view::title;

/// The windows at both ends of a file: the first size, what they grow by, and the last.
const WINDOW_BYTES: u64 = 8 * 1024;
const WINDOW_GROWTH: u64 = 4;
const WINDOW_LIMIT_BYTES: u64 = 1024 * 1024;

/// A file no larger than the windows after one step is read whole: that costs no more and tells everything.
const WHOLE_BYTES: u64 = WINDOW_BYTES * WINDOW_GROWTH;

/// How much of each file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Its two ends.
    Windows,
    /// All of it.
    Whole,
}

/// Where to look for sessions.
pub struct Places<'a> {
    /// The home.
    pub home: &'a Home,
    /// Only this store, instead of the home's.
    pub store: Option<PathBuf>,
    /// Only this dialect.
    pub dialect: Option<&'static dyn Dialect>,
}

impl Places<'_> {
    /// Every session's source. What cannot be looked into is an error of its own.
    pub fn sources(&self) -> Vec<Result<Source>> {
        let dialects: Vec<&'static dyn Dialect> = match self.dialect {
            Some(dialect) => vec![dialect],
            None => dialect::all().to_vec(),
        };
        let mut found = Vec::new();
        for dialect in dialects {
            let layouts = match &self.store {
                Some(store) => dialect.layouts_in(store),
                None => dialect.layouts(self.home),
            };
            for layout in layouts {
                found.extend(Source::walk(dialect, &layout));
            }
        }
        found
    }
}

/// Describes one session.
pub fn row(source: &Source, reading: &Reading<'_>, depth: Depth) -> Result<SessionRow> {
    let whole = || Session::open(source, reading)?.row();
    if depth == Depth::Whole || !matches!(source.layout.format, Format::Lines) {
        return whole();
    }
    let file = open_file(&source.path)?;
    let size = file.len()?;
    if size <= WHOLE_BYTES || file.is_in_memory() {
        return whole();
    }
    let mut begin = grow(
        size,
        |window| Session::open_start(source, reading, window)?.described(),
        |row| row.project.is_some() && row.first_prompt.is_some() && row.started.is_some(),
    )?;
    let end = grow(
        size,
        |window| Session::open_end(source, reading, window)?.described(),
        |row| row.head.is_some() && row.updated.is_some(),
    )?;
    begin.size_bytes = source.open()?.size_bytes()?;
    begin.updated = end.updated.max(begin.updated);
    begin.head = end.head;
    begin.git_branch = end.git_branch.or(begin.git_branch);
    begin.agent_version = end.agent_version.or(begin.agent_version);
    for model in end.models {
        if !begin.models.contains(&model) {
            begin.models.push(model);
        }
    }
    begin.summaries.extend(end.summaries);
    // At the end stands what was said last; a prompt there is not the first one.
    if end.title_source > TitleSource::Prompt && end.title_source >= begin.title_source {
        (begin.title, begin.title_source) = (end.title, end.title_source);
    }
    Ok(begin)
}

/// Gives sessions without a title the summaries that stand in other sessions' files.
pub fn entitle(rows: &mut [&mut SessionRow]) {
    let stored = rows.iter_mut().flat_map(|row| std::mem::take(&mut row.summaries));
    let summaries: HashMap<String, String> = stored.collect();
    for row in rows.iter_mut().filter(|row| row.title_source < TitleSource::Summary) {
        if let Some(summary) = row.head.as_ref().and_then(|head| summaries.get(head.as_str())) {
            (row.title, row.title_source) = (title(summary), TitleSource::Summary);
        }
    }
}

/// Reads larger and larger windows until they show enough.
fn grow(
    size: u64,
    read: impl Fn(u64) -> Result<SessionRow>,
    enough: impl Fn(&SessionRow) -> bool,
) -> Result<SessionRow> {
    let mut window = WINDOW_BYTES;
    loop {
        let row = read(window)?;
        if enough(&row) || window >= size || window >= WINDOW_LIMIT_BYTES {
            return Ok(row);
        }
        window *= WINDOW_GROWTH;
    }
}
