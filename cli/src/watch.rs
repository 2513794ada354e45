//! Waiting for something to happen: a file that changes, Ctrl-C, or time to look anyway.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::failure::{Failure, FailureKind};

/// How often files are looked at where nobody tells of changes: a person hardly notices it, nor does the machine.
const POLL: Duration = Duration::from_millis(250);

/// How often they are looked at all the same: some file systems do not tell.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// What a command that follows files waits for.
pub(crate) struct Watch {
    wakes: Receiver<Wake>,
    watcher: Option<RecommendedWatcher>,
    watched: HashSet<PathBuf>,
}

/// Why a command wakes up.
pub(crate) enum Wake {
    /// These changed.
    Changed(HashSet<PathBuf>),
    /// Nothing is known to have changed.
    Time,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

impl Watch {
    /// Begins to listen. Without `told`, or where the system has nothing to tell, files are looked at regularly.
    pub(crate) fn new(told: bool) -> Result<Watch, Failure> {
        let (sender, wakes) = mpsc::channel();
        listen_for_interrupts(sender.clone())?;
        let tell = move |event: notify::Result<Event>| {
            let changed = event.ok().filter(is_a_change).map(|event| event.paths.into_iter().collect());
            if let Some(paths) = changed {
                // Who no longer listens is about to end.
                drop(sender.send(Wake::Changed(paths)));
            }
        };
        let watcher = if told { notify::recommended_watcher(tell).ok() } else { None };
        Ok(Watch { wakes, watcher, watched: HashSet::new() })
    }

    /// Watches the folder of a file, since files are renamed over one another.
    pub(crate) fn file(&mut self, path: &Path) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.add(folder, RecursiveMode::NonRecursive);
    }

    /// Watches all that lies below a folder, once it is there.
    pub(crate) fn folder(&mut self, path: &Path) {
        self.add(path, RecursiveMode::Recursive);
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) {
        if self.watched.contains(path) || !path.is_dir() {
            return;
        }
        match self.watcher.as_mut().map(|watcher| watcher.watch(path, mode)) {
            Some(Ok(())) => _ = self.watched.insert(path.to_owned()),
            // There are more folders than the system watches: then we look ourselves.
            Some(Err(_)) => self.watcher = None,
            None => {}
        }
    }

    /// Waits, and gathers all that happened meanwhile.
    pub(crate) fn wait(&mut self) -> Wake {
        let patience = if self.watcher.is_some() { LOOK_ANYWAY } else { POLL };
        let mut changed = match self.wakes.recv_timeout(patience) {
            Ok(Wake::Changed(paths)) => paths,
            Ok(Wake::Interrupted) => return Wake::Interrupted,
            Ok(Wake::Time) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Wake::Time,
        };
        for more in self.wakes.try_iter() {
            match more {
                Wake::Changed(paths) => changed.extend(paths),
                Wake::Interrupted => return Wake::Interrupted,
                Wake::Time => {}
            }
        }
        Wake::Changed(changed)
    }
}

/// Reading is no change: we do it ourselves.
fn is_a_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

/// The first Ctrl-C asks for an end, the second one makes it.
fn listen_for_interrupts(sender: Sender<Wake>) -> Result<(), Failure> {
    let asked = AtomicBool::new(false);
    let handler = move || {
        if asked.swap(true, Ordering::Relaxed) || sender.send(Wake::Interrupted).is_err() {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::new(FailureKind::Io, error.to_string()))
}
