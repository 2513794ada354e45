//! What a conversion becomes: which original it restores, the id of the new session, and where its file goes.

use std::path::{Path, PathBuf};

use super::original::{self, Beside, Original};
use super::restore_chain::{self, Step};
use super::{Conversion, Target, replay_host};
use crate::dialect::writer::FILE_NAME_LIMIT_BYTES;
use crate::model::error::{Error, Result};
use crate::model::host::Host;
use crate::model::project;
use crate::model::record::SessionId;
use crate::session::Session;
use crate::session::read::source::Source;
use crate::write::store::{NewSession, Store};

/// What a conversion becomes.
pub(super) struct Plan {
    /// The original that the session becomes again.
    pub(super) original: Option<Original>,
    /// What it becomes before that, if the way back takes several steps.
    pub(super) step: Option<Step>,
    /// The original of another dialect: it is kept along.
    pub(super) other: Option<Original>,
    /// Why the files beside the session were ignored.
    pub(super) warning: Option<String>,
    /// The session is neither copied nor restored.
    pub(super) is_new_format: bool,
    /// The person or room that the session is with.
    pub(super) with: Option<String>,
    pub(super) id: SessionId,
    pub(super) store: Store,
    pub(super) path: PathBuf,
}

impl Plan {
    /// Plans a conversion. Files that this takes are written in `scratch`, and deleted again.
    pub(super) fn find(session: &Session, how: &Conversion<'_>, host: &Host, scratch: Target<'_>) -> Result<Plan> {
        if !session.whole() {
            return Err(Error::cannot_store(how.to.name(), "a partly read session"));
        }
        let (beside, step) = restore_chain::find(session, how, host, scratch)?;
        Ok(Plan { step, ..Plan::new(session, how, host, beside)? })
    }

    /// Plans a conversion of one step.
    pub(super) fn new(session: &Session, how: &Conversion<'_>, host: &Host, beside: Beside) -> Result<Plan> {
        let Beside { original, step: _, other, warning } = beside;
        let is_new_format = original.is_none() && !session.is_copied(how);
        // A file is copied with all its branches.
        if how.head.is_some() && !is_new_format {
            return Err(Error::CopiedWhole);
        }
        let id = session.id_for(how, original.as_ref());
        let store = session.store_for(how, host, original.as_ref())?;
        let known_with = session.known_with(how, original.as_ref());
        if let (Some(asked), Some(with)) = (how.with, &known_with)
            && asked != with
        {
            return Err(Error::WithAnother { with: with.clone() });
        }
        let with = known_with.or_else(|| how.with.map(str::to_owned)).or_else(|| other.as_ref()?.with(how.to));
        let path = session.path_for(how, &store, (&id, with.as_deref()), original.as_ref())?;
        // A format that names a session after its place does so from the beginning.
        let is_placed = is_new_format && matches!(how.target, Target::Store(_));
        let id = if is_placed { store.called(id, &path) } else { id };
        Ok(Plan { original, step: None, other, warning, is_new_format, with, id, store, path })
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
    fn id_for(&self, how: &Conversion<'_>, original: Option<&Original>) -> SessionId {
        match original {
            Some(original) => SessionId(original.from.session.clone()),
            None if self.is_copied(how) => self.id(),
            None => replay_host::derived_id(self.id().as_str(), how.to.name()),
        }
    }

    /// The store that the new file is made for: it works where and when the source did, or what the source was made of.
    fn store_for(&self, how: &Conversion<'_>, host: &Host, original: Option<&Original>) -> Result<Store> {
        let is_a_place = |cwd: &PathBuf| cwd.is_absolute() && !cwd.as_os_str().as_encoded_bytes().contains(&0);
        let known = [original.and_then(|original| original.from.cwd.as_deref()), self.cwd()];
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
        original: Option<&Original>,
    ) -> Result<PathBuf> {
        let path = match how.target {
            Target::File(file) => store.root.join(file.file_name().unwrap_or_default()),
            Target::Store(_) => {
                let project = project::of(&store.host.cwd);
                let new = NewSession { with, ..NewSession::of(&project) };
                let place = |id: &SessionId| store.path_of(&store.beginning(id, &new, self.git_branch())?);
                // What another file calls itself may be no name for one.
                let fresh = replay_host::derived_id(self.id().as_str(), how.to.name());
                let is_known = original.is_some() || self.is_copied(how);
                let path = match self.known_place(how, store, original) {
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
        let beside = original::paths(&path);
        let longest =
            beside.iter().filter_map(|path| path.file_name()).map(|name| name.len()).max().unwrap_or_default();
        if longest > FILE_NAME_LIMIT_BYTES {
            let why = format!("with the names of the files beside it, it has {longest} bytes, which is too long");
            return Err(Error::InvalidName {
                name: path.file_name().unwrap_or_default().to_string_lossy().into(),
                why,
            });
        }
        let taken = [path.clone()].into_iter().chain(beside).find(|path| store.disk.exists(path));
        taken.map_or(Ok(path), |taken| Err(Error::Exists(taken)))
    }

    /// Where a session lay that becomes what it is or was, if that is a place for one. What a sidecar says is anybody's word.
    fn known_place(&self, how: &Conversion<'_>, store: &Store, original: Option<&Original>) -> Option<PathBuf> {
        let place = match original {
            Some(original) => original.place().map(Path::to_path_buf),
            None if self.is_copied(how) => original::place_in_store(self),
            None => None,
        };
        let path = store.path_below(&place?, &self.id()).ok()?;
        let is_of_store = Source::file(how.to, &path).store().is_some_and(|root| root == store.root);
        (is_of_store && how.to.is_session_file(&path)).then_some(path)
    }

    /// The person or room that a copied or restored session is with.
    fn known_with(&self, how: &Conversion<'_>, original: Option<&Original>) -> Option<String> {
        match original {
            Some(original) => original.with(how.to),
            None if self.is_copied(how) => {
                self.with().map(str::to_owned).or_else(|| how.to.peer_from_path(self.path()))
            }
            None => None,
        }
    }
}
