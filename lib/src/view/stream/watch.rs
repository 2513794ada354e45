//! Waits until files change, until another thread interrupts, or until it is time to look anyway.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// How often files are looked at when the system does not report changes: hardly noticed by a person or by the machine.
const POLL: Duration = Duration::from_millis(250);

/// How often they are looked at even if it does: some file systems report nothing.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchBy {
    /// The system reports them; where it cannot, as with [`WatchBy::Polling`].
    Events,
    /// Files are looked at regularly.
    Polling,
}

/// Waits for changes of files and folders.
pub struct Watch {
    wakes: Receiver<Wake>,
    sender: Sender<Wake>,
    watcher: Option<RecommendedWatcher>,
    watched: HashSet<PathBuf>,
}

/// Why waiting ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wake {
    /// These files changed.
    Changed(HashSet<PathBuf>),
    /// It is time to look, though no change was reported.
    Time,
    /// [`Interrupter::interrupt`] was called.
    Interrupted,
}

/// Ends the waiting of a [`Watch`] from another thread.
#[derive(Debug, Clone)]
pub struct Interrupter(Sender<Wake>);

impl Interrupter {
    /// Interrupts. False when the watch is gone.
    pub fn interrupt(&self) -> bool {
        self.0.send(Wake::Interrupted).is_ok()
    }
}

impl Watch {
    /// Starts to listen; nothing is watched yet.
    pub fn new(by: WatchBy) -> Watch {
        let (sender, wakes) = mpsc::channel();
        let report = sender.clone();
        let on_event = move |event: notify::Result<Event>| {
            let changed = event.ok().filter(is_change).map(|event| event.paths.into_iter().collect());
            if let Some(paths) = changed {
                // Without a receiver, the watch no longer exists.
                drop(report.send(Wake::Changed(paths)));
            }
        };
        let watcher = match by {
            WatchBy::Events => notify::recommended_watcher(on_event).ok(),
            WatchBy::Polling => None,
        };
        Watch { wakes, sender, watcher, watched: HashSet::new() }
    }

    /// What another thread interrupts the waiting with.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.sender.clone())
    }

    /// Watches the folder of a file, since a file may be replaced by another one.
    pub fn file(&mut self, path: &Path) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.add(folder, RecursiveMode::NonRecursive);
    }

    /// Watches everything below a folder. One that does not exist is ignored: call again later. Returns whether it is watched only
    /// from now on: what is in it may be new.
    pub fn folder(&mut self, path: &Path) -> bool {
        self.add(path, RecursiveMode::Recursive)
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) -> bool {
        if self.watched.contains(path) || !path.is_dir() {
            return false;
        }
        match self.watcher.as_mut().map(|watcher| watcher.watch(path, mode)) {
            Some(Ok(())) => return self.watched.insert(path.to_owned()),
            // There are more folders than the system watches: then we poll.
            Some(Err(_)) => self.watcher = None,
            None => {}
        }
        false
    }

    /// Waits, and collects everything that happens meanwhile.
    pub fn wait(&mut self) -> Wake {
        self.wait_at_most(if self.watcher.is_some() { LOOK_ANYWAY } else { POLL })
    }

    /// The same, for no longer than this.
    pub fn wait_at_most(&mut self, patience: Duration) -> Wake {
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

/// Reading is not a change: we do it ourselves.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_and_an_interrupt_end_the_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let mut watch = Watch::new(WatchBy::Events);
        watch.folder(&folder);
        let file = folder.join("log.jsonl");
        std::fs::write(&file, "{}\n").unwrap();
        match watch.wait() {
            Wake::Changed(paths) => assert!(paths.contains(&file), "{paths:?}"),
            // A file system that reports nothing is polled.
            other => assert_eq!(other, Wake::Time),
        }
        assert!(watch.interrupter().interrupt());
        while watch.wait() != Wake::Interrupted {}
    }
}
