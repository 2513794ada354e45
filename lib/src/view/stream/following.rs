//! Many sessions at once: which of them changed, and which are new.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::growing::{Stamp, identity, stamp};
use super::{Begin, Growing};
use crate::dialect::layout::Format;
use crate::session::read::open::ReadOptions;
use crate::session::read::source::Source;
use crate::view::find::Places;
use crate::view::listing::{self, Depth};

/// How often all places are walked at most: a large home has thousands of files.
const WALK_AFTER: Duration = Duration::from_secs(1);

/// Every session in scope, including those that start later.
pub struct Following {
    places: Places,
    /// Only sessions of this project.
    pub project: Option<PathBuf>,
    /// Sub-agents' sessions too.
    pub sidechains: bool,
    known: HashMap<Key, Known>,
    walked: Option<Instant>,
}

/// A file that was moved.
#[derive(Debug)]
pub struct Moved {
    /// What it was.
    pub from: Source,
    /// What it is now.
    pub to: Source,
}

/// A file, and which of its sessions.
type Key = (PathBuf, Option<String>);

enum Known {
    /// It has not changed since it was first seen.
    Unchanged {
        source: Box<Source>,
        seen: Option<Stamp>,
    },
    Followed(Box<Growing>),
}

impl Following {
    /// Follows every session of these places. What is written from now on is new.
    pub fn new(places: Places) -> Following {
        let mut known = HashMap::new();
        for source in places.sources().into_iter().flatten() {
            let seen = stamp(&source).ok();
            known.insert(key(&source), Known::Unchanged { source: Box::new(source), seen });
        }
        Following { places, project: None, sidechains: false, known, walked: None }
    }

    /// Follows this session from `begin` on, whether it changes or not.
    pub fn follow(&mut self, source: Source, begin: Begin) {
        self.known.insert(key(&source), Known::Followed(Box::new(Growing::new(source, begin))));
    }

    /// Looks for sessions that are new or were moved, and returns the moved ones. `at` is the time of this look.
    pub fn find_new(&mut self, changed: Option<&HashSet<PathBuf>>, at: Instant) -> Vec<Moved> {
        let due = self.walked.is_none_or(|walked| at.saturating_duration_since(walked) >= WALK_AFTER);
        if self.knows_all(changed) || !due {
            return Vec::new();
        }
        let found: Vec<Source> = self.places.sources().into_iter().flatten().collect();
        let moved = found.iter().filter_map(|to| Some(Moved { from: self.notice_move(to)?, to: to.clone() })).collect();
        for source in found {
            self.known.entry(key(&source)).or_insert(Known::Unchanged { source: Box::new(source), seen: None });
        }
        self.walked = Some(at);
        moved
    }

    /// The sessions to look at. `changed` are the files that are known to have changed; without it all are looked at.
    pub fn changed(&mut self, changed: Option<&HashSet<PathBuf>>, clock: Timestamp) -> Vec<&mut Growing> {
        let all_known = self.knows_all(changed);
        let mut looked_at = Vec::new();
        for ((path, _), known) in &mut self.known {
            // A database may be written beside its file.
            let mentioned = |changed: &HashSet<PathBuf>| changed.iter().any(|other| is_of(other, path));
            if all_known && !changed.is_some_and(mentioned) {
                continue;
            }
            if let Known::Unchanged { source, seen: before } = known {
                let now = stamp(source).ok();
                // A file that is gone was not reported; it may have been moved.
                if now.is_none() || now == *before {
                    continue;
                }
                let begin = match (source.layout.format, *before) {
                    (Format::Lines, Some(before)) => Begin::At(before.length),
                    (_, None) => Begin::At(0),
                    (Format::Document | Format::Rows(_) | Format::ByContent { .. }, Some(_)) => Begin::Last(1),
                };
                match is_in_scope(source, &self.places, self.project.as_deref(), self.sidechains, clock) {
                    Some(true) => {}
                    Some(false) => {
                        *before = now;
                        continue;
                    }
                    // A new file may not show its project yet; in one that was cut, everything that follows is new.
                    None => {
                        if let (Some(before), Some(now)) = (before, now) {
                            before.length = before.length.min(now.length);
                        }
                        continue;
                    }
                }
                *known = Known::Followed(Box::new(Growing::new((**source).clone(), begin)));
            }
            if let Known::Followed(growing) = known {
                looked_at.push(growing.as_mut());
            }
        }
        looked_at.sort_by(|a, b| a.source().path.cmp(&b.source().path));
        looked_at
    }

    /// Follows a moved file under its new name, and returns its former source.
    fn notice_move(&mut self, source: &Source) -> Option<Source> {
        if self.known.contains_key(&key(source)) {
            return None;
        }
        let now = stamp(source).ok()?;
        let is_left = |path: &Path| fs::metadata(path).map_or(true, |there| identity(&there) != now.file);
        let mut others = self.known.iter_mut().filter(|((_, key), _)| *key == source.key);
        let (from, before) = others.find_map(|(key, known)| match known {
            Known::Unchanged { source: before, seen } => {
                let same = *seen == Some(now) && before.dialect.name() == source.dialect.name() && is_left(&key.0);
                same.then(|| (key.clone(), std::mem::replace(&mut **before, source.clone())))
            }
            Known::Followed(growing) => {
                let before = growing.source().clone();
                (is_left(&key.0) && growing.moved_to(source)).then(|| (key.clone(), before))
            }
        })?;
        let known = self.known.remove(&from)?;
        self.known.insert(key(source), known);
        Some(before)
    }

    fn knows_all(&self, changed: Option<&HashSet<PathBuf>>) -> bool {
        changed.is_some_and(|changed| changed.iter().all(|path| self.knows(path)))
    }

    fn knows(&self, path: &Path) -> bool {
        self.known.keys().any(|(known, _)| is_of(path, known))
    }
}

fn key(source: &Source) -> Key {
    (source.path.clone(), source.key.clone())
}

/// Whether a change of one file is a change of a session's.
fn is_of(changed: &Path, session: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    changed == session
        || (changed.parent() == session.parent() && name(changed).strip_prefix(&name(session)) == Some("-wal"))
}

/// `None` when the file does not show it yet.
fn is_in_scope(
    source: &Source,
    places: &Places,
    project: Option<&Path>,
    sidechains: bool,
    now: Timestamp,
) -> Option<bool> {
    let find = places.finder(source);
    let reading = ReadOptions { find: &find, ..ReadOptions::plain(now) };
    let row = match listing::row(source, &reading, Depth::Ends) {
        Ok(row) => row,
        // Following it reports why it cannot be read.
        Err(_) => return project.is_none().then_some(true),
    };
    row.head?;
    if row.parent_session.is_some() && !sidechains {
        return Some(false);
    }
    let Some(project) = project else { return Some(true) };
    Some(Path::new(&row.project?) == project)
}
