//! Many sessions at once: which of them changed, and which are new.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use scrollback::dialect::Dialect;
use scrollback::dialect::layout::Format;
use scrollback::session::read::open::ReadOptions;
use scrollback::session::read::source::Source;
use scrollback::view::listing::{self, Depth};
use scrollback::view::stream::{self, Begin, Growing};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::scope::{self, Stores};

/// How often all places are walked at most: a large home has thousands of files.
const WALK_AFTER: Duration = Duration::from_secs(1);

/// What is said while there is nothing to tell.
const WAITING: &str = "Waiting for a session to go on; Ctrl-C ends.";

/// Every session in scope, those that begin later included.
pub(crate) struct Sessions {
    dialect: Option<&'static dyn Dialect>,
    project: Option<PathBuf>,
    sidechains: bool,
    known: HashMap<Key, Known>,
    walked: Option<Instant>,
}

/// A file, and which of its sessions.
type Key = (PathBuf, Option<String>);

enum Known {
    /// It stands still, as far as we know.
    Still {
        source: Box<Source>,
        seen: Option<Seen>,
    },
    Followed(Box<Growing>),
}

/// A file as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    length: u64,
    modified: SystemTime,
    /// Which file it is.
    identity: u64,
}

impl Sessions {
    /// Finds the sessions in scope. The newest is told of with its last messages, the others when they go on; those of
    /// sub-agents only with `sidechains`.
    pub(crate) fn find(global: &Global, ctx: &mut Ctx, last: usize, sidechains: bool) -> Result<Sessions, Failure> {
        let dialect = scope::dialect(global)?;
        let mut known = HashMap::new();
        // First how long they are: what is written from now on is news.
        for source in Stores::new(global, ctx)?.sources(dialect) {
            let seen = seen(&source.path);
            known.insert(key(&source), Known::Still { source: Box::new(source), seen });
        }
        let found = scope::found(global, ctx, Depth::Windows)?;
        match found.rows.into_iter().find(|(row, _)| row.parent_session.is_none()) {
            Some((row, source)) => {
                ctx.note(&format!("Following {} ({}); Ctrl-C ends.", row.title, row.id))?;
                known.insert(key(&source), Known::Followed(Box::new(Growing::new(source, Begin::Last(last)))));
            }
            None => ctx.note(WAITING)?,
        }
        Ok(Sessions { dialect, project: found.project, sidechains, known, walked: None })
    }

    /// Looks for sessions that are new or lie elsewhere now, and gives the moved ones: from where, and where to.
    pub(crate) fn find_new(&mut self, changed: Option<&HashSet<PathBuf>>, stores: &Stores) -> Vec<(Source, Source)> {
        let due = self.walked.is_none_or(|walked| walked.elapsed() >= WALK_AFTER);
        if self.knows_all(changed) || !due {
            return Vec::new();
        }
        let found = stores.sources(self.dialect);
        let moved = found.iter().filter_map(|source| Some((self.notice_move(source)?, source.clone()))).collect();
        for source in found {
            self.known.entry(key(&source)).or_insert(Known::Still { source: Box::new(source), seen: None });
        }
        self.walked = Some(Instant::now());
        moved
    }

    /// The sessions to look at. `changed` are the files that are known to have changed; without it all are looked at.
    pub(crate) fn changed(
        &mut self,
        changed: Option<&HashSet<PathBuf>>,
        stores: &Stores,
        ctx: &Ctx,
    ) -> Vec<&mut Growing> {
        let all_known = self.knows_all(changed);
        let mut looked_at = Vec::new();
        for ((path, _), known) in &mut self.known {
            // A database may be written beside its file.
            let mentioned = |changed: &HashSet<PathBuf>| changed.iter().any(|other| is_of(other, path));
            if all_known && !changed.is_some_and(mentioned) {
                continue;
            }
            if let Known::Still { source, seen: before } = known {
                let now = seen(path);
                // One that is gone was not told of; it may lie elsewhere.
                if now.is_none() || now == *before {
                    continue;
                }
                let begin = match (source.layout.format, *before) {
                    (Format::Lines, Some(before)) => Begin::At(before.length),
                    (_, None) => Begin::At(0),
                    (Format::Document | Format::Rows(_) | Format::ByContent { .. }, Some(_)) => Begin::Last(1),
                };
                match in_scope(source, self.project.as_deref(), self.sidechains, stores, ctx) {
                    Some(true) => {}
                    Some(false) => {
                        *before = now;
                        continue;
                    }
                    // A new file may not tell yet whose it is; in one that was cut, what comes is news.
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

    /// A file that was moved goes on under its new name, and is nothing new. Gives what it was.
    fn notice_move(&mut self, source: &Source) -> Option<Source> {
        if self.known.contains_key(&key(source)) {
            return None;
        }
        let now = seen(&source.path)?;
        let is_left = |path: &Path| seen(path).is_none_or(|there| there.identity != now.identity);
        let mut others = self.known.iter_mut().filter(|((_, key), _)| *key == source.key);
        let (from, before) = others.find_map(|(key, known)| match known {
            Known::Still { source: before, seen } => {
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

fn seen(path: &Path) -> Option<Seen> {
    let metadata = fs::metadata(path).ok()?;
    Some(Seen { length: metadata.len(), modified: metadata.modified().ok()?, identity: stream::identity(&metadata) })
}

fn in_scope(source: &Source, project: Option<&Path>, sidechains: bool, stores: &Stores, ctx: &Ctx) -> Option<bool> {
    let find = stores.finder(source);
    let reading = ReadOptions { find: &find, ..ReadOptions::plain(ctx.now) };
    let row = match listing::row(source, &reading, Depth::Windows) {
        Ok(row) => row,
        // Why it cannot be read is told by who follows it.
        Err(_) => return project.is_none().then_some(true),
    };
    row.head?;
    if row.parent_session.is_some() && !sidechains {
        return Some(false);
    }
    let Some(project) = project else { return Some(true) };
    Some(Path::new(&row.project?) == project)
}
