//! Many sessions at once: which of them changed, and which are new.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use scrollback::dialect::Dialect;
use scrollback::layout::Format;
use scrollback::listing::{self, Depth};
use scrollback::reading::Reading;
use scrollback::source::Source;
use scrollback::stream::{Begin, Growing};

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
        source: Source,
        seen: Option<(u64, SystemTime)>,
    },
    Followed(Box<Growing>),
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
            known.insert(key(&source), Known::Still { source, seen });
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

    /// The sessions to look at. `changed` are the files that are known to have changed; without it all are looked at.
    pub(crate) fn changed(
        &mut self,
        changed: Option<&HashSet<PathBuf>>,
        stores: &Stores,
        ctx: &Ctx,
    ) -> Vec<&mut Growing> {
        let all_known = changed.is_some_and(|changed| changed.iter().all(|path| self.knows(path)));
        let due = self.walked.is_none_or(|walked| walked.elapsed() >= WALK_AFTER);
        if !all_known && due {
            for source in stores.sources(self.dialect) {
                self.known.entry(key(&source)).or_insert(Known::Still { source, seen: None });
            }
            self.walked = Some(Instant::now());
        }
        let mut looked_at = Vec::new();
        for ((path, _), known) in &mut self.known {
            // A database may be written beside its file.
            let mentioned = |changed: &HashSet<PathBuf>| changed.iter().any(|other| is_of(other, path));
            if all_known && !changed.is_some_and(mentioned) {
                continue;
            }
            if let Known::Still { source, seen: before } = known {
                let now = seen(path);
                if now == *before {
                    continue;
                }
                let begin = match (source.layout.format, *before) {
                    (Format::Lines, Some((length, _))) => Begin::At(length),
                    (Format::Lines | Format::Document | Format::Rows(_), None) => Begin::At(0),
                    (Format::Document | Format::Rows(_), Some(_)) => Begin::Last(1),
                };
                match in_scope(source, self.project.as_deref(), self.sidechains, stores, ctx) {
                    Some(true) => {}
                    Some(false) => {
                        *before = now;
                        continue;
                    }
                    // A new file may not tell yet whose it is.
                    None => continue,
                }
                *known = Known::Followed(Box::new(Growing::new(source.clone(), begin)));
            }
            if let Known::Followed(growing) = known {
                looked_at.push(growing.as_mut());
            }
        }
        looked_at.sort_by(|a, b| a.source().path.cmp(&b.source().path));
        looked_at
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

fn seen(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

fn in_scope(source: &Source, project: Option<&Path>, sidechains: bool, stores: &Stores, ctx: &Ctx) -> Option<bool> {
    let find = stores.finder(source);
    let reading = Reading { find: &find, ..Reading::plain(ctx.now) };
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
