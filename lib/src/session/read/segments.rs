//! A session in several files: Codex begins a further file when a person goes back in the conversation.
//!
//! ```text
//! rollout-<time>-<thread>.jsonl              q1 a1 q2 a2
//! rollout-<time>-<thread>_<segment>.jsonl    header: continues <thread> before q2    q3 a3
//! session                                    q1 a1 q3 a3, and the branch q1 a1 q2 a2
//! ```
//!
//! The newest file is the session's first, the one that grows; the earlier ones are further files of it. Each file's header
//! names the file that it continues; one that names none replaces the conversation.

use std::path::{Path, PathBuf};

use hashbrown::HashMap;

use crate::dialect::Dialect;
use crate::session::Session;
use crate::session::read::base::{Base, BaseRef};
use crate::session::read::files::{Files, OpenFile};
use crate::session::read::source::Source;
use crate::session::tree::skeleton::{BaseGap, Control, ControlKind};

/// Joins the files of one session into one source each. `sources` are those of one folder of a store.
pub(crate) fn join(dialect: &'static dyn Dialect, sources: Vec<Source>) -> Vec<Source> {
    let is_segment = |source: &Source| dialect.segment_from_path(&source.path).is_some();
    if !sources.iter().any(is_segment) {
        return sources;
    }
    let mut sessions: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, source) in sources.iter().enumerate() {
        sessions.entry(source.name()).or_default().push(at);
    }
    let mut earlier: HashMap<usize, Vec<PathBuf>> = HashMap::new();
    let mut is_joined = vec![false; sources.len()];
    for mut files in sessions.into_values().filter(|files| files.iter().any(|at| is_segment(&sources[*at]))) {
        // Their names begin with the time.
        files.sort_by_key(|at| sources[*at].path.file_name().map(ToOwned::to_owned));
        let Some(newest) = files.pop() else { continue };
        files.iter().for_each(|at| is_joined[*at] = true);
        earlier.insert(newest, files.into_iter().map(|at| sources[at].path.clone()).collect());
    }
    let kept = sources.into_iter().enumerate().filter(|(at, _)| !is_joined[*at]);
    kept.map(|(at, source)| Source { earlier: earlier.remove(&at).unwrap_or_default(), ..source })
        .collect()
}

impl Source {
    /// The same source with the earlier files of its session, for a file that was named by its path.
    pub(crate) fn with_earlier_files(self) -> Source {
        if self.dialect.segment_from_path(&self.path).is_none() {
            return self;
        }
        let found = self.neighbours().into_iter().find_map(|session| session.up_to(&self.path));
        Source { earlier: found.map(|session| session.earlier).unwrap_or_default(), ..self }
    }

    /// The session, or its state in an earlier file, by the name that other files use for it.
    pub fn named(&self, name: &str) -> Option<Source> {
        if self.earlier.is_empty() {
            return (self.name() == name).then(|| self.clone());
        }
        let is_named = |path: &&PathBuf| segment_name(self.dialect, path).as_deref() == Some(name);
        let path = self.earlier.iter().chain([&self.path]).find(is_named)?;
        self.up_to(path)
    }

    /// The session as it was in one of its files.
    fn up_to(&self, path: &Path) -> Option<Source> {
        if self.path == path {
            return Some(self.clone());
        }
        let at = self.earlier.iter().position(|earlier| earlier == path)?;
        Some(Source { path: path.to_path_buf(), earlier: self.earlier[..at].to_vec(), ..self.clone() })
    }
}

/// What other files call this one: its segment, or the session if it is the first.
fn segment_name(dialect: &dyn Dialect, path: &Path) -> Option<String> {
    dialect.segment_from_path(path).or_else(|| dialect.session_id_from_path(path))
}

impl Session {
    /// Places the records of one file, which begin at entry `start`, after the record that its header names.
    pub(crate) fn place_segment(&mut self, start: usize, base: Base, files: &Files) {
        let what = match base {
            Base::Named(origin) => self.controls_of_segment(origin, start, files),
            Base::Unknown | Base::Followed => vec![ControlKind::ReplaceAll],
        };
        let at = self.skeleton.controls.partition_point(|control| (control.at as usize) < start);
        let control = |what| Control { at: start as u32, offset: 0, what };
        self.skeleton.controls.splice(at..at, what.into_iter().map(control));
    }

    fn controls_of_segment(&mut self, origin: BaseRef, start: usize, files: &Files) -> Vec<ControlKind> {
        let dialect = self.source.dialect;
        let is_named = |file: &OpenFile| segment_name(dialect, &file.path).as_deref() == Some(&*origin.session);
        let file = files.0.iter().position(is_named).map(|file| file as u16);
        let entries = self.skeleton.entries[..start].iter().enumerate();
        let of_file = entries.filter(|(_, entry)| Some(entry.place.file) == file);
        let is_after = |mark: &str, id| dialect.is_at_or_after(self.skeleton.ids.get(id), mark);
        let (mut until, mut end, mut reaches_last) = (None, None, origin.last.is_none());
        for (at, entry) in of_file {
            end = Some(at + 1);
            reaches_last |= origin.last.as_deref().is_some_and(|last| is_after(last, entry.id));
            if until.is_none() && origin.until.as_deref().is_some_and(|mark| is_after(mark, entry.id)) {
                until = Some(at);
            }
        }
        let missing = match (end, origin.last) {
            (None, _) => Some((self.skeleton.ids.intern(&origin.session), BaseGap::NoSession)),
            (Some(_), Some(last)) if !reaches_last => Some((self.skeleton.ids.intern(&last), BaseGap::EndsEarly)),
            _ => None,
        };
        let cut = until.or(end).map_or(ControlKind::ReplaceAll, |entry| ControlKind::CutEntry(entry as u32));
        let gap = missing.map(|(what, why)| ControlKind::MissingBase(what, why));
        [cut].into_iter().chain(gap).collect()
    }
}
