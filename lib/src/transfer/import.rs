//! Creates a native session for each session of a database. What was imported before is not changed.
//!
//! A row that names its log is imported from the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use jiff::Timestamp;
use rayon::prelude::*;
use serde_json::Value;

use crate::dialect::layout::Format;
use crate::dialect::{AiSdk, Native};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::message::Part;
use crate::model::record::{Body, Kind};
use crate::session::Session;
use crate::session::read::files::open_file;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::transfer::convert::{Conversion, Converted, LossRow, Target};

/// Whether anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run<'a> {
    /// Sessions are created.
    Import,
    /// Only temporary files are written, to this folder.
    Rehearsal(&'a Path),
}

/// The result of importing one session.
#[derive(Debug)]
pub enum Imported {
    /// A native session was created.
    New(Converted),
    /// A native session would be created.
    Would(Converted),
    /// It was imported before.
    Known(PathBuf),
    /// It was imported before, and has changed since. The imported session is not changed.
    Grown(PathBuf),
    /// Another session has its place.
    Taken(PathBuf),
    /// It has no messages.
    Empty,
}

/// The sessions of a database, each a row of the `agents` table.
pub fn sessions(database: &Path) -> Result<Vec<Source>> {
    if !open_file(database)?.is_database {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a SQLite database")).at(database);
    }
    let found = Source::in_file(&AiSdk, database)?;
    let is_row = |source: &Source| matches!(source.layout.format, Format::Rows(_));
    if found.iter().all(is_row) { Ok(found) } else { Err(Error::NoSessions(database.to_path_buf())) }
}

/// Imports sessions into a native store, on all cores: each waits for the disk.
pub fn import(sources: &[Source], store: &Path, host: &Host, run: Run<'_>) -> Vec<Result<Imported>> {
    sources.par_iter().map(|source| import_one(source, store, host, run)).collect()
}

fn import_one(source: &Source, store: &Path, host: &Host, run: Run<'_>) -> Result<Imported> {
    let session = Session::open(source, &ReadOptions::plain((host.now)()))?;
    if session.records().all(|record| matches!(record.kind(), Kind::Header | Kind::Other)) {
        return Ok(Imported::Empty);
    }
    let how = Conversion { to: &Native, target: Target::Store(store), head: None, with: None };
    let host = &host_of(source, host);
    let (done, result): (_, fn(Converted) -> Imported) = match run {
        Run::Import => (session.convert(&how, host), Imported::New),
        Run::Rehearsal(scratch) => (session.rehearse(&how, host, scratch).map(|(done, _)| done), Imported::Would),
    };
    match done {
        Ok(mut converted) => {
            converted.losses.extend(lost_columns(source, &session)?);
            Ok(result(converted))
        }
        Err(Error::NothingToStore(_)) => Ok(Imported::Empty),
        Err(Error::Exists(path)) => Ok(compare(&session, path, host)),
        Err(error) => Err(error),
    }
}

/// The columns of a row whose values are not in its log.
fn lost_columns(source: &Source, log: &Session) -> Result<Option<LossRow>> {
    let Some(Value::Object(row)) = source.row_beside_log()? else { return Ok(None) };
    let content = messages(log);
    let is_in_log = |text: &str| {
        log.models().iter().any(|model| model == text)
            || content.iter().any(|(_, parts)| parts.contains(&Part::text(text)))
    };
    let is_lost = |(key, value): &(String, Value)| {
        let text = value.as_str().unwrap_or_default();
        let is_empty = value.is_null() || value.as_str() == Some("");
        !matches!(key.as_str(), "id" | "log_path") && !is_empty && !is_in_log(text)
    };
    Ok(LossRow::fields(&source.name(), row.into_iter().filter(is_lost).map(|(key, _)| key)))
}

/// The working directory and the time of a row without its own: the folder of the database, and when it was last changed.
fn host_of(source: &Source, host: &Host) -> Host {
    let cwd = source.path.parent().filter(|folder| folder.is_absolute()).unwrap_or(&host.cwd).to_path_buf();
    let changed = fs::metadata(&source.path).and_then(|found| found.modified()).ok();
    let changed = changed.and_then(|changed| Timestamp::try_from(changed).ok());
    let now = changed.map_or_else(|| host.now.clone(), |changed| Arc::new(move || changed) as _);
    Host { cwd, now, ..host.clone() }
}

/// Whether the file in a session's place is an earlier import of it.
fn compare(session: &Session, path: PathBuf, host: &Host) -> Imported {
    let Ok(there) = Session::open(&Source::file(&Native, &path), &ReadOptions::plain((host.now)())) else {
        return Imported::Taken(path);
    };
    let (own, imported) = (messages(session), messages(&there));
    if first_text(&own) != first_text(&imported) {
        Imported::Taken(path)
    } else if session.updated() > there.updated() || (session.is_rows() && !imported.starts_with(&own)) {
        // A session that continues after the rows is an import of them, too.
        Imported::Grown(path)
    } else {
        Imported::Known(path)
    }
}

/// Prompts and answers: their texts and data, without other parts.
fn messages(session: &Session) -> Vec<(Kind, Vec<Part>)> {
    let compared = |part| match part {
        Part::Text(text) => Some(Part::text(text.text)),
        part => Some(part).filter(|part| matches!(part, Part::Data(_))),
    };
    let mut messages = Vec::new();
    for record in session.records() {
        if let Ok(Body::User(content) | Body::Assistant(content)) = record.body() {
            messages.push((record.kind(), content.parts.into_iter().filter_map(compared).collect()));
        }
    }
    messages
}

fn first_text(messages: &[(Kind, Vec<Part>)]) -> Option<&Part> {
    messages.first()?.1.iter().find(|part| matches!(part, Part::Text(_)))
}
