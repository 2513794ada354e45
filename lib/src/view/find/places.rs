//! The stores of a home, or one store that was named; every session in them.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashSet;
use jiff::Timestamp;
use rayon::prelude::*;

use super::by_id;
use crate::dialect::layout::Layout;
use crate::dialect::{self, Dialect};
use crate::model::error::{Error, Result};
use crate::model::home::Home;
use crate::model::project::Projects;
use crate::redact::Redactor;
use crate::session::read::detect;
use crate::session::read::kept::{self, KeptStore};
use crate::session::read::open::ReadOptions;
use crate::session::read::source::{Source, each};
use crate::view::answers::SessionRow;
use crate::view::listing::{self, Depth};

/// Where to look for sessions.
#[derive(Clone)]
pub struct Places {
    /// The home.
    pub home: Home,
    /// Only this store, instead of the home's.
    pub store: Option<PathBuf>,
    /// Only this dialect.
    pub dialect: Option<&'static dyn Dialect>,
    /// Masks secrets in descriptions.
    pub mask: Option<Arc<Redactor>>,
}

/// Sessions with their descriptions, and what could not be read.
pub struct Listing {
    /// The newest first.
    pub sessions: Vec<(Box<SessionRow>, Source)>,
    /// Kept copies of some of them, which have another name by now.
    pub copies: Vec<(Box<SessionRow>, Source)>,
    /// Folders and files that could not be read.
    pub unreadable: Vec<Error>,
}

impl Places {
    /// Every session's source. Each place that cannot be read is an error of its own.
    pub fn sources(&self) -> Vec<Result<Source>> {
        if let Some(file) = self.store.as_ref().filter(|store| store.is_file()) {
            // A database is a store too.
            let of_file = || detect::of_file(file, &self.home);
            return each(self.dialect.map_or_else(of_file, Ok).and_then(|dialect| Source::in_file(dialect, file)));
        }
        let mut sources = Source::walk_all(&self.layouts());
        let kept = self.kept_where(|store| store.generation == 1);
        if !kept.is_empty() {
            // What has moved within its store is still there.
            let there: HashSet<(&str, String)> =
                sources.iter().flatten().map(|source| (source.dialect.name(), source.name())).collect();
            let is_gone = |kept: &Source| {
                !kept.kept_from().is_some_and(Path::exists) && !there.contains(&(kept.dialect.name(), kept.name()))
            };
            let gone: Vec<Source> = kept.into_iter().filter(is_gone).collect();
            sources.extend(gone.into_iter().map(Ok));
        }
        sources
    }

    /// Kept copies of what agents have rewritten since: they have the ids of sessions that are there.
    pub fn older_generations(&self) -> Vec<Source> {
        self.kept_where(|store| store.generation > 1)
    }

    /// Kept copies of a session, the newest first.
    pub fn kept_copies(&self, source: &Source) -> Vec<Source> {
        let original = source.kept_from().unwrap_or(&source.path);
        let at = Source::file(source.dialect, original);
        let Some((root, store)) = self.kept_root().zip(at.store()) else { return Vec::new() };
        let Ok(below) = original.strip_prefix(&store) else { return Vec::new() };
        KeptStore::generations(&root, source.dialect, &store)
            .into_iter()
            .map(|kept| kept.folder.join(below))
            .filter(|path| path.is_file())
            .map(|path| Source { kept_from: Some(original.to_path_buf()), ..Source::file(source.dialect, &path) })
            .collect()
    }

    /// Kept copies of some sessions whose files had other names then.
    pub fn copies_under_other_names(&self, sources: &[&Source], now: Timestamp) -> Vec<Source> {
        let is_gone = |kept: &Source| !kept.kept_from().is_some_and(Path::exists);
        let mut copies: Vec<Source> = self.kept_where(|_| true).into_iter().filter(is_gone).collect();
        if copies.is_empty() {
            return copies;
        }
        let id = |source: &Source| {
            let id = listing::id(source, &ReadOptions::plain(now)).ok()?;
            Some((source.dialect.name(), id))
        };
        let wanted: HashSet<_> = sources.iter().filter_map(|source| id(source)).collect();
        copies.retain(|kept| id(kept).is_some_and(|id| wanted.contains(&id)));
        copies
    }

    /// The folder of kept copies; a store that was named has none.
    fn kept_root(&self) -> Option<PathBuf> {
        let root = kept::root(&self.home);
        Some(root).filter(|root| self.store.is_none() && root.is_absolute() && root.is_dir())
    }

    fn kept_where(&self, is_wanted: impl Fn(&KeptStore) -> bool) -> Vec<Source> {
        let Some(root) = self.kept_root() else { return Vec::new() };
        let dialects = self.dialect.map_or_else(|| dialect::all().to_vec(), |dialect| vec![dialect]);
        let of_dialect = |dialect: &'static dyn Dialect| {
            let stores = kept::stores(&root, dialect).into_iter().filter(&is_wanted);
            stores.flat_map(|store| store.sources(dialect)).collect::<Vec<_>>()
        };
        dialects.into_iter().flat_map(of_dialect).collect()
    }

    /// The sessions with exactly this id.
    pub fn with_id(&self, session: &str, now: Timestamp) -> Vec<Source> {
        let sources = self.sources().into_iter().filter_map(Result::ok).collect();
        by_id::with_id(sources, session, now, &mut Vec::new())
    }

    /// The folders that hold sessions, whether they exist or not, in the order of the dialects.
    pub fn roots(&self) -> Vec<PathBuf> {
        let mut known = HashSet::new();
        let roots = self.layouts().into_iter().map(|(_, layout)| layout.root);
        roots.filter(|root| known.insert(root.clone())).collect()
    }

    /// Finds the session that `source` continues: in the same store, else in these places. Nothing is walked until it is called.
    pub fn finder<'a>(&'a self, source: &'a Source) -> impl Fn(&str) -> Option<Source> + 'a {
        let (near, far) = (OnceCell::<Vec<Source>>::new(), OnceCell::<Vec<Source>>::new());
        let walk = || {
            let places = Places { dialect: Some(source.dialect), ..self.clone() };
            places.sources().into_iter().filter_map(Result::ok).collect()
        };
        move |id| {
            let named = |sources: &[Source]| sources.iter().find_map(|known| known.named(id));
            named(near.get_or_init(|| source.neighbours())).or_else(|| named(far.get_or_init(walk)))
        }
    }

    /// Describes these sessions on all cores, and calls `on_described` after each.
    pub fn describe(
        &self,
        sources: Vec<Source>,
        now: Timestamp,
        depth: Depth,
        on_described: &(dyn Fn() + Sync),
    ) -> Listing {
        let (mut sessions, unreadable) = self.rows(sources, now, depth, on_described);
        let copies = listing::take_kept_copies(&mut sessions);
        listing::entitle(&mut sessions.iter_mut().map(|(row, _)| &mut **row).collect::<Vec<_>>());
        listing::sort_newest_first(&mut sessions);
        Listing { sessions, copies, unreadable }
    }

    /// The same, each session by itself: without the titles that other sessions' files have for it, and in no order.
    pub fn rows(
        &self,
        sources: Vec<Source>,
        now: Timestamp,
        depth: Depth,
        on_described: &(dyn Fn() + Sync),
    ) -> (Vec<(Box<SessionRow>, Source)>, Vec<Error>) {
        let projects = Projects::default();
        let describe = |source: &Source| {
            let row = self.row(source, &projects, now, depth).map(Box::new);
            on_described();
            row
        };
        let rows: Vec<Result<Box<SessionRow>>> = sources.par_iter().map(describe).collect();
        let (mut sessions, mut unreadable) = (Vec::new(), Vec::new());
        for (row, source) in rows.into_iter().zip(sources) {
            match row {
                Ok(row) => sessions.push((row, source)),
                Err(error) => unreadable.push(error),
            }
        }
        (sessions, unreadable)
    }

    /// Completes descriptions that were made of [`Depth::Ends`]: reads the newest sessions whole, as far as
    /// [`listing::WHOLE_SESSION_BYTES`] and [`listing::WHOLE_LIST_BYTES`] allow. Those that cannot be read keep their
    /// descriptions. They are in the order of a list again.
    pub fn complete(&self, sessions: &mut Vec<(Box<SessionRow>, Source)>, now: Timestamp) -> Vec<Error> {
        let projects = Projects::default();
        let complete = |(row, source): &mut (Box<SessionRow>, Source)| {
            self.row(source, &projects, now, Depth::Whole).map(|whole| listing::replace(row, whole))
        };
        let chosen = listing::to_read_whole(sessions);
        let unreadable = chosen.into_par_iter().filter_map(|session| complete(session).err()).collect();
        listing::sort_newest_first(sessions);
        unreadable
    }

    fn row(&self, source: &Source, projects: &Projects, now: Timestamp, depth: Depth) -> Result<SessionRow> {
        let find = self.finder(source);
        let project = |cwd: &Path| projects.of(cwd);
        let mask = self.mask.as_ref();
        listing::row(source, &ReadOptions { find: &find, project: &project, mask, ..ReadOptions::plain(now) }, depth)
    }

    fn layouts(&self) -> Vec<(&'static dyn Dialect, Layout)> {
        let dialects = self.dialect.map_or_else(|| dialect::all().to_vec(), |dialect| vec![dialect]);
        let layouts = |dialect: &'static dyn Dialect| {
            let mut layouts = match &self.store {
                Some(store) => dialect.layouts_in(store),
                None => dialect.layouts(&self.home),
            };
            // Without a home directory, its folders would be folders of the working directory.
            layouts.retain(|layout| self.store.is_some() || layout.root.is_absolute());
            layouts.into_iter().map(move |layout| (dialect, layout))
        };
        dialects.into_iter().flat_map(layouts).collect()
    }
}
