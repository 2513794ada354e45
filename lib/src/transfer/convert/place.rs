//! Where a converted session goes, what it is called there, and what it is made for.

use std::path::{Path, PathBuf};

use super::kept::{self, Beside, Kept};
use super::steps::{self, Stepped};
use super::{Conversion, Target, script};
use crate::dialect::writer::FILE_NAME_LIMIT_BYTES;
use crate::model::error::{Error, Result};
use crate::model::host::Host;
use crate::model::project;
use crate::model::record::SessionId;
use crate::session::Session;
use crate::session::read::source::Source;
use crate::write::store::{NewSession, Store};

/// The way that a session takes.
pub(super) struct Way {
    /// What was kept of the session that it becomes again.
    pub(super) back: Option<Kept>,
    /// What it becomes on the way, where that takes several steps.
    pub(super) stepped: Option<Stepped>,
    /// What was kept of another one: it goes along.
    pub(super) other: Option<Kept>,
    /// Why what lies beside it was not believed.
    pub(super) remark: Option<String>,
    /// It becomes what it never was.
    pub(super) is_new_kind: bool,
    /// Whom it is with: as somebody says, or as it was.
    pub(super) with: Option<String>,
    pub(super) id: SessionId,
    pub(super) store: Store,
    pub(super) path: PathBuf,
}

impl Way {
    /// Finds the way; what it takes for that is written in `scratch`, and taken away again.
    pub(super) fn find(session: &Session, how: &Conversion<'_>, host: &Host, scratch: Target<'_>) -> Result<Way> {
        if !session.whole() {
            let what = "a session that was read in part".to_owned();
            return Err(Error::cannot_store(how.to.name(), what));
        }
        let (beside, stepped) = steps::find(session, how, host, scratch)?;
        Ok(Way { stepped, ..Way::along(session, how, host, beside)? })
    }

    /// The way that leads along what lies beside a session.
    pub(super) fn along(session: &Session, how: &Conversion<'_>, host: &Host, beside: Beside) -> Result<Way> {
        let Beside { back, step: _, other, remark } = beside;
        // Lines that are copied are copied with all their branches.
        if how.head.is_some() && (back.is_some() || session.stays(how)) {
            return Err(Error::CopiedWhole);
        }
        let id = session.id_for(how, back.as_ref());
        let store = session.store_for(how, host, back.as_ref())?;
        session.check_with(how, back.as_ref())?;
        let with = session.with_before(how, back.as_ref()).or_else(|| how.with.map(str::to_owned));
        // Nobody else is known for a branch that is converted anew.
        let with = with.or_else(|| other.as_ref()?.with(how.to));
        let path = session.path_for(how, &store, (&id, with.as_deref()), back.as_ref())?;
        let is_new_kind = back.is_none() && !session.stays(how);
        // Where a session is called after its place, it is called so from the beginning.
        let is_placed = is_new_kind && matches!(how.target, Target::Store(_));
        let id = if is_placed { store.called(id, &path) } else { id };
        Ok(Way { back, stepped: None, other, remark, is_new_kind, with, id, store, path })
    }
}

impl Target<'_> {
    /// The folder of the store that a file is made for.
    pub(super) fn root(&self, host: &Host) -> PathBuf {
        match self {
            Target::Store(root) => host.cwd.join(root),
            Target::File(file) => host.cwd.join(file).parent().map(Path::to_path_buf).unwrap_or_default(),
        }
    }
}

impl Session {
    /// What the new session is called: as it was called before, or always the same for the same source.
    fn id_for(&self, how: &Conversion<'_>, back: Option<&Kept>) -> SessionId {
        match back {
            Some(kept) => kept.session(),
            None if self.stays(how) => self.id(),
            None => script::derived_id(self.id().as_str(), how.to.name()),
        }
    }

    /// The store that the new file is made for: it works where and when the source did, or what the source was made of.
    fn store_for(&self, how: &Conversion<'_>, host: &Host, back: Option<&Kept>) -> Result<Store> {
        let is_a_place = |cwd: &PathBuf| cwd.is_absolute() && !cwd.as_os_str().as_encoded_bytes().contains(&0);
        let known = [back.and_then(Kept::cwd), self.cwd()];
        let cwd = known.into_iter().flatten().map(PathBuf::from).find(is_a_place).unwrap_or_else(|| host.cwd.clone());
        // Another program's version is none of this one's.
        let own_version = self.agent_version().filter(|_| how.to.name() == self.dialect().name());
        let version = own_version.map_or_else(|| host.version.clone(), str::to_owned);
        let root = how.target.root(host);
        let started = self.started();
        let now = host.now.clone();
        let now = std::sync::Arc::new(move || started.unwrap_or_else(|| now()));
        Store::open(how.to, &root, Host { now, cwd, version, ..host.clone() })
    }

    fn path_for(
        &self,
        how: &Conversion<'_>,
        store: &Store,
        (id, with): (&SessionId, Option<&str>),
        back: Option<&Kept>,
    ) -> Result<PathBuf> {
        let path = match how.target {
            Target::File(file) => store.root.join(file.file_name().unwrap_or_default()),
            Target::Store(_) => {
                let project = project::of(&store.host.cwd);
                let new = NewSession { with, ..NewSession::of(&project) };
                let place = |id: &SessionId| store.path_of(&store.beginning(id, &new, self.git_branch())?);
                // What another file calls itself may be no name for one.
                let fresh = script::derived_id(self.id().as_str(), how.to.name());
                let is_known = back.is_some() || self.stays(how);
                let path = match self.place_before(how, store, back) {
                    Some(path) => path,
                    None => place(id).or_else(|_| place(&fresh))?,
                };
                // Its place is not always the same: one that lay elsewhere the last time is there all the same. So is one
                // of an unknown instant, where the place tells it.
                if (is_known || self.started().is_none())
                    && let Ok(known) = store.source(id.as_str())
                {
                    return Err(Error::Exists(known.path));
                }
                store.check_folder(&path, &project)?;
                path
            }
        };
        let name = kept::path(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.len() > FILE_NAME_LIMIT_BYTES {
            let why = format!("with the file beside it, {} bytes are too long for a name", name.len());
            return Err(Error::InvalidName {
                name: path.file_name().unwrap_or_default().to_string_lossy().into(),
                why,
            });
        }
        let taken = [path.clone(), kept::path(&path)].into_iter().find(|path| store.disk.exists(path));
        taken.map_or(Ok(path), |taken| Err(Error::Exists(taken)))
    }

    /// Where a session lay that becomes what it is or was, if that is a place for one. What a sidecar says is anybody's word.
    fn place_before(&self, how: &Conversion<'_>, store: &Store, back: Option<&Kept>) -> Option<PathBuf> {
        let place = match back {
            Some(kept) => kept.place().map(Path::to_path_buf),
            None if self.stays(how) => kept::place_in_store(self),
            None => None,
        };
        let path = store.path_below(&place?, &self.id()).ok()?;
        let is_of_store = Source::file(how.to, &path).store().is_some_and(|root| root == store.root);
        (is_of_store && how.to.is_session_file(&path)).then_some(path)
    }

    /// Refuses to give a session to somebody else than it was with.
    fn check_with(&self, how: &Conversion<'_>, back: Option<&Kept>) -> Result<()> {
        match (how.with, self.with_before(how, back)) {
            (Some(asked), Some(with)) if asked != with => Err(Error::WithAnother { with }),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    /// Whom a session was with that becomes what it is or was.
    fn with_before(&self, how: &Conversion<'_>, back: Option<&Kept>) -> Option<String> {
        match back {
            Some(kept) => kept.with(how.to),
            None if self.stays(how) => self.with().map(str::to_owned).or_else(|| how.to.peer_from_path(self.path())),
            None => None,
        }
    }
}
