//! The sessions of a database become native sessions, each once: what was imported before stays as it is.
//!
//! A row that names its log is imported from the log, as it is read from there.

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
use crate::model::loss::{LossKind, Lost};
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
    /// It is.
    Import,
    /// It is only told what would be; this is a folder for files on the way.
    Rehearsal(&'a Path),
}

/// What came of one session of a database.
#[derive(Debug)]
pub enum Imported {
    /// It is a native session now.
    New(Converted),
    /// It would be one.
    Would(Converted),
    /// It was imported before.
    Known(PathBuf),
    /// It was imported before, and more has come since, or says something else now. What was imported is not changed.
    Grown(PathBuf),
    /// Another session has its name.
    Taken(PathBuf),
    /// Nobody says anything in it.
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

/// Brings sessions into a native store, on all cores: each waits for the disk.
pub fn import(sources: &[Source], store: &Path, host: &Host, run: Run<'_>) -> Vec<Result<Imported>> {
    sources.par_iter().map(|source| import_one(source, store, host, run)).collect()
}

fn import_one(source: &Source, store: &Path, host: &Host, run: Run<'_>) -> Result<Imported> {
    let session = Session::open(source, &ReadOptions::plain((host.now)()))?;
    // What nobody understands cannot be said again.
    if session.records().all(|record| matches!(record.kind(), Kind::Header | Kind::Other)) {
        return Ok(Imported::Empty);
    }
    let how = Conversion { to: &Native, target: Target::Store(store), head: None, with: None };
    let host = &host_of(source, host);
    let told = |mut converted: Converted| {
        converted.losses.extend(unsaid(source, &session)?);
        Ok(converted)
    };
    let done = match run {
        Run::Import => session.convert(&how, host).and_then(told).map(Imported::New),
        Run::Rehearsal(scratch) => session
            .rehearse(&how, host, scratch)
            .and_then(|(converted, _)| told(converted))
            .map(Imported::Would),
    };
    match done {
        Err(Error::NothingToStore(_)) => Ok(Imported::Empty),
        Err(Error::Exists(path)) => Ok(compared(&session, path, host)),
        done => done,
    }
}

/// What a row tells that its log does not.
fn unsaid(source: &Source, log: &Session) -> Result<Option<LossRow>> {
    let Some(Value::Object(row)) = source.row_beside_log()? else { return Ok(None) };
    let content = words(log);
    let is_said = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        log.models().iter().any(|model| model == text)
            || content.iter().any(|(_, parts)| parts.contains(&Part::text(text)))
    };
    let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
    let is_name = |key: &str| matches!(key, "id" | "log_path");
    let unsaid = row.iter().filter(|(key, value)| !is_name(key) && !is_empty(value) && !is_said(value));
    let fields: Vec<String> = unsaid.map(|(key, _)| key.clone()).collect();
    let (record, count) = (source.name(), fields.len() as u64);
    let row = LossRow { record, what: Lost::Field, kind: LossKind::Dropped, count, fields };
    Ok((count > 0).then_some(row))
}

/// Where and when a row was written that does not tell it: where the database lies, when it was last changed. Not here, and not now.
fn host_of(source: &Source, host: &Host) -> Host {
    let cwd = source.path.parent().filter(|folder| folder.is_absolute()).unwrap_or(&host.cwd).to_path_buf();
    let changed = fs::metadata(&source.path).and_then(|found| found.modified()).ok();
    let changed = changed.and_then(|changed| Timestamp::try_from(changed).ok());
    let now = changed.map_or_else(|| host.now.clone(), |changed| Arc::new(move || changed) as _);
    Host { cwd, now, ..host.clone() }
}

/// Whether what has the session's place is the session.
fn compared(session: &Session, path: PathBuf, host: &Host) -> Imported {
    let Ok(there) = Session::open(&Source::file(&Native, &path), &ReadOptions::plain((host.now)())) else {
        return Imported::Taken(path);
    };
    if first_words(session) != first_words(&there) {
        Imported::Taken(path)
    } else if session.updated() > there.updated() || (session.is_rows() && !begins(&there, session)) {
        Imported::Grown(path)
    } else {
        Imported::Known(path)
    }
}

/// Whether a session begins with all that a row says. Somebody may have gone on with it.
fn begins(there: &Session, row: &Session) -> bool {
    let (there, row) = (words(there), words(row));
    there.starts_with(&row)
}

/// What each side says and how it stands; who tells it in more parts says the same.
fn words(session: &Session) -> Vec<(Kind, Vec<Part>)> {
    let is_told = |part: &Part| matches!(part, Part::Data(_));
    let told = |part| match part {
        Part::Text(text) => Some(Part::text(text.text)),
        part => Some(part).filter(is_told),
    };
    let bodies = session.records().filter_map(|record| Some((record.kind(), record.body().ok()?)));
    bodies
        .filter_map(|(kind, body)| match body {
            Body::User(content) | Body::Assistant(content) => {
                Some((kind, content.parts.into_iter().filter_map(told).collect()))
            }
            _ => None,
        })
        .collect()
}

/// What was said first.
fn first_words(session: &Session) -> Option<String> {
    let spoken = session.records().find(|record| matches!(record.kind(), Kind::User | Kind::Assistant))?;
    let (Body::User(content) | Body::Assistant(content)) = spoken.body().ok()? else { return None };
    content
        .parts
        .into_iter()
        .find_map(|part| if let Part::Text(text) = part { Some(text.text) } else { None })
}
