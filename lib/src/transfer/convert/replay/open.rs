//! The recorder of a replay: for a new file, or for an original that is continued.

use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use jiff::Timestamp;

use super::parents::SinglePath;
use super::title::CurrentTitle;
use super::{Replay, Replayed, Sidechains};
use crate::dialect::Dialect;
use crate::disk::append::Appender;
use crate::disk::replace::write_all;
use crate::model::error::{At, Result};
use crate::model::project;
use crate::model::record::SessionId;
use crate::session::Session;
use crate::transfer::convert::pairing::Pairing;
use crate::transfer::convert::replay_host::{ReplayHost, derived_id};
use crate::transfer::convert::sent::Sent;
use crate::view::files::FileHistory;
use crate::write::recorder::{Cursor, Durability, Log, Mode, Options, Place, Recorder};
use crate::write::store::{NewSession, Store};

impl<'s> Replay<'s> {
    pub(super) fn begin(
        session: &'s Session,
        store: &Store,
        id: &SessionId,
        with: Option<&str>,
        file: &Path,
    ) -> Result<Replay<'s>> {
        let project = project::of(&store.host.cwd);
        let new = NewSession { with, ..NewSession::of(&project) };
        // The id in a file may be no valid name for one.
        let fresh = derived_id(session.id().as_str(), store.dialect.name());
        let beginning = store.beginning(&fresh, &new, session.git_branch())?;
        if store.writing.is_with_somebody {
            // The header names the other person, wherever the file goes. Without one there is no path.
            store.path_of(&beginning)?;
        }
        let header = store.bytes(&(store.writing.header)(&beginning));
        let (host, place) = replay_place(store, id, session.started(), file);
        let mut cursor = Cursor::fresh(&place, &project::of(&store.host.cwd));
        cursor.tally.git_branch = session.git_branch().map(str::to_owned);
        let appender = Appender::create(store.disk.clone(), file, header)?;
        Ok(Replay::over(session, host, Log::new(place, appender, cursor, None)))
    }

    /// Continues a file of these bytes, as a recorder that resumes it does.
    pub(super) fn resume(
        session: &'s Session,
        store: &Store,
        id: &SessionId,
        (bytes, before): (&[u8], &Session),
        file: &Path,
    ) -> Result<Replay<'s>> {
        let log = store.disk.create(file).at(file)?;
        write_all(&*log, bytes, file)?;
        let (host, place) = replay_place(store, id, before.updated(), file);
        let mut cursor = Cursor::at(before, before.head(), &place, &project::of(&store.host.cwd))?;
        cursor.tally.git_branch = session.git_branch().or(before.git_branch()).map(str::to_owned);
        let appender = Appender::open(store.disk.clone(), file, Vec::new())?;
        host.add_facts(before.records().map(|record| record.id().into_owned()));
        Ok(Replay::over(session, host, Log::new(place, appender, cursor, None)))
    }

    fn over(session: &'s Session, host: ReplayHost, log: Log) -> Replay<'s> {
        let options = Options { durability: Some(Durability::Flush), ..Options::unredacted() };
        let writing = log.place.writing;
        let path_bases = path_bases(session, log.place.dialect);
        Replay {
            recorder: Recorder::new(log, options),
            unit: writing.unit,
            shape: writing.shape,
            sidechains: Sidechains::Beside,
            host,
            parents: HashMap::new(),
            linear_parent: None,
            out: Replayed::default(),
            costs: HashMap::new(),
            held: Vec::new(),
            pairing: Pairing::default(),
            sent: Sent::default(),
            path: SinglePath::default(),
            title: CurrentTitle::of(session),
            path_bases,
            last_link: None,
            last_of_conversation: None,
        }
    }
}

/// The folders that paths in snapshots are relative to, in a session and in another dialect, if these differ.
fn path_bases(session: &Session, to: &dyn Dialect) -> Option<(PathBuf, PathBuf)> {
    let (cwd, root) = (PathBuf::from(session.cwd()?), FileHistory::root_of(session)?);
    match (session.dialect().traits().snapshots_from_root, to.traits().snapshots_from_root) {
        (false, true) => Some((cwd, root)),
        (true, false) => Some((root, cwd)),
        (false, false) | (true, true) => None,
    }
}

/// Where the new file is written, with the clock and the ids of the source.
fn replay_place(store: &Store, id: &SessionId, at: Option<Timestamp>, file: &Path) -> (ReplayHost, Place) {
    let replayed = ReplayHost::new(store, id, at.unwrap_or_else(|| (store.host.now)()));
    let host = replayed.host(&store.host);
    let place = Place { host, mode: Mode::Replay, sidecar: None, ..store.place(id.clone(), file) };
    (replayed, place)
}
