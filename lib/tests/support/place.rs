//! A store in a temporary folder, with a fixed clock and fixed ids.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use scrollback::dialect::{Beginning, Dialect, Writer};
use scrollback::model::{Error, Host, SessionId};
use scrollback::write::{Durability, NewSession, Options, Policy, Recorder, Store};
use tempfile::TempDir;

/// A session id that every dialect accepts.
pub(crate) const SESSION: &str = "5e551000-0000-4000-8000-000000000001";
pub(crate) const PROJECT: &str = "/home/ada/engine";
/// Where the agent works, in its project.
pub(crate) const CWD: &str = "/home/ada/engine/src";
pub(crate) const VERSION: &str = "1.2.3";

/// Whom a session is with, where a dialect needs it.
const WITH: &str = "alice@example.com/phone";

pub(crate) fn began() -> Timestamp {
    "2026-11-14T23:59:58.250Z".parse().unwrap()
}

/// A clock that advances by a millisecond at each call, and ids that count.
pub(crate) fn host() -> Host {
    let (looks, ids) = (AtomicI64::new(0), AtomicU64::new(0));
    let now = move || began() + SignedDuration::from_millis(looks.fetch_add(1, Ordering::Relaxed));
    let new_id = move || format!("00000000-0000-7000-8000-{:012}", ids.fetch_add(1, Ordering::Relaxed));
    Host {
        now: Arc::new(now),
        new_id: Arc::new(new_id),
        cwd: CWD.into(),
        data: None,
        platform: "linux".to_owned(),
        version: VERSION.to_owned(),
    }
}

/// The same, with a clock that is stopped.
pub(crate) fn host_at(now: Timestamp) -> Host {
    Host { now: Arc::new(move || now), ..host() }
}

/// A store in a folder that is removed when it is dropped. Nothing is synced, because disks are slow.
pub(crate) fn store(dialect: &'static dyn Dialect) -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { durability: Some(Durability::Flush), ..Options::unredacted() };
    let store = Store::open(dialect, folder.path(), host()).unwrap().with_options(options);
    (folder, store)
}

pub(crate) fn begin(store: &Store) -> Result<Recorder, Error> {
    store.session(NewSession { id: Some(SESSION), with: Some(WITH), ..NewSession::of(Path::new(PROJECT)) }, Policy::New)
}

pub(crate) fn writing(dialect: &dyn Dialect) -> &'static Writer {
    dialect.writer().unwrap()
}

/// A beginning that every dialect accepts.
pub(crate) fn beginning(session: &SessionId) -> Beginning<'_> {
    Beginning {
        session,
        project: Path::new(PROJECT),
        cwd: Path::new(CWD),
        at: began(),
        version: VERSION,
        git_branch: Some("main"),
        with: Some(WITH),
        forked_from: None,
        settings: None,
    }
}

/// Every file below a folder, as paths from there.
pub(crate) fn files_below(root: &Path) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(path) = next.pop() {
        if path.is_dir() {
            next.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
    found.sort();
    found
}
