//! A recorder for what is said again: on a new file, or behind an original that is there.

use std::path::Path;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::title::Called;
use super::{Replay, Replayed, Sidechains};
use crate::disk::append::Appender;
use crate::disk::replace::write_all;
use crate::model::error::{At, Result};
use crate::model::project;
use crate::model::record::SessionId;
use crate::session::Session;
use crate::transfer::convert::one_path::OnePath;
use crate::transfer::convert::pairing::Pairing;
use crate::transfer::convert::replay_host::{ReplayHost, derived_id};
use crate::write::recorder::{Durability, Log, Mode, Options, Place, Recorder, Start};
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
        // A session that is called after its place may have a name that is none for a file.
        let fresh = derived_id(session.id().as_str(), store.dialect.name());
        let beginning = store.beginning(&fresh, &new, session.git_branch())?;
        if store.writing.is_with_somebody {
            // Its first line tells whom it is with, wherever the file goes: no place is made for nobody.
            store.path_of(&beginning)?;
        }
        let header = store.bytes(&(store.writing.header)(&beginning));
        let (host, place) = scripted(store, id, session.started(), file);
        let mut start = Start::fresh(&place, &project::of(&store.host.cwd));
        start.tally.git_branch = session.git_branch().map(str::to_owned);
        let appender = Appender::create(store.disk.clone(), file, header)?;
        Ok(Replay::over(session, host, Log::new(place, appender, start, None)))
    }

    /// Goes on behind bytes that are there already, as a recorder that resumes them does.
    pub(super) fn resume(
        session: &'s Session,
        store: &Store,
        id: &SessionId,
        (bytes, before): (&[u8], &Session),
        file: &Path,
    ) -> Result<Replay<'s>> {
        let log = store.disk.create(file).at(file)?;
        write_all(&*log, bytes, file)?;
        let (host, place) = scripted(store, id, before.updated(), file);
        let mut start = Start::at(before, before.head(), &place, &project::of(&store.host.cwd))?;
        start.tally.git_branch = session.git_branch().or(before.git_branch()).map(str::to_owned);
        let appender = Appender::open(store.disk.clone(), file, Vec::new())?;
        host.know(before.records().map(|record| record.id().into_owned()));
        Ok(Replay::over(session, host, Log::new(place, appender, start, None)))
    }

    fn over(session: &'s Session, host: ReplayHost, log: Log) -> Replay<'s> {
        let options = Options { durability: Some(Durability::Flush), ..Options::usual() };
        let writing = log.place.writing;
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
            path: OnePath::default(),
            called: Called::of(session),
            last_link: None,
            last_of_conversation: None,
        }
    }
}

/// Where the new file is written, with the clock and the ids of the source.
fn scripted(store: &Store, id: &SessionId, at: Option<Timestamp>, file: &Path) -> (ReplayHost, Place) {
    let replayed = ReplayHost::new(store, id, at.unwrap_or_else(|| (store.host.now)()));
    let host = replayed.host(&store.host);
    let place = Place { host, mode: Mode::Replay, sidecar: None, ..store.place(id.clone(), file) };
    (replayed, place)
}
