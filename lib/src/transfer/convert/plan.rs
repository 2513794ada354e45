//! The plan of a conversion: which original it restores, the id of the new session, and where its file goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// The plan of a conversion.
pub(super) struct Plan {
    pub(super) way: Way,
    /// What the session becomes first, if restoring takes several steps.
    pub(super) steps: Vec<Step>,
    /// An original of another dialect: it is kept as the original of this session.
    pub(super) other: Option<Original>,
    /// Why the files beside the session were ignored.
    pub(super) warning: Option<String>,
    /// Why the new session is called something else.
    pub(super) renamed: Option<String>,
    /// The person or room that the session is with.
    pub(super) with: Option<String>,
    pub(super) id: SessionId,
    pub(super) store: Store,
    pub(super) path: PathBuf,
}

/// How the new file is made.
pub(super) enum Way {
    /// The session is one of that dialect: its bytes are copied.
    Copy,
    /// The session was made of this original, and becomes it again.
    Restore(Box<Original>),
    /// The records are written in the other format.
    Replay,
}

impl Way {
    /// The original that is restored.
    pub(super) fn original(&self) -> Option<&Original> {
        if let Way::Restore(original) = self { Some(original) } else { None }
    }
}

impl Plan {
    /// Plans a conversion. Temporary files are written to `scratch`, and deleted again.
    pub(super) fn find(session: &Session, how: &Conversion<'_>, host: &Host, scratch: Target<'_>) -> Result<Plan> {
        if !session.whole() {
            return Err(Error::cannot_store(how.to.name(), "a partly read session"));
        }
        let (beside, steps) = restore_chain::find(session, how, host, scratch)?;
        let plan = Plan { steps, ..Plan::new(session, how, host, beside)? };
        if matches!(plan.way, Way::Replay) {
            session.check_not_empty(session.named_head(how.head)?)?;
        }
        Ok(plan)
    }

    /// Plans a conversion of one step.
    pub(super) fn new(session: &Session, how: &Conversion<'_>, host: &Host, beside: Beside) -> Result<Plan> {
        let Beside { original, step: _, other, warning } = beside;
        let is_copied = how.to.name() == session.dialect().name() && session.is_one_file();
        let way = match original {
            Some(original) => Way::Restore(Box::new(original)),
            None if is_copied => Way::Copy,
            None => Way::Replay,
        };
        // A file is copied with all its branches.
        if how.head.is_some() && !matches!(way, Way::Replay) {
            return Err(Error::CopiedWhole);
        }
        // The same source always gets the same id.
        let derived = replay_host::derived_id(session.id().as_str(), how.to.name());
        let (id, known_with, known_place) = match &way {
            Way::Restore(original) => {
                let place = original.from.place.as_ref().map(PathBuf::from);
                (SessionId(original.from.session.clone()), original.with(how.to), place)
            }
            Way::Copy => {
                let with = session.with().map(str::to_owned).or_else(|| how.to.peer_from_path(session.path()));
                (session.id(), with, original::place_in_store(session))
            }
            Way::Replay => (derived.clone(), None, None),
        };
        if let (Some(wanted), Some(with)) = (how.with, &known_with)
            && wanted != with
        {
            return Err(Error::WithAnother { with: with.clone() });
        }
        let with = known_with.or_else(|| how.with.map(str::to_owned)).or_else(|| other.as_ref()?.with(how.to));
        let store = store_for(session, how, host, way.original())?;
        let (mut name, mut renamed) = (id.clone(), None);
        let path = match how.target {
            Target::File(file) => store.root.join(file.file_name().unwrap_or_default()),
            Target::Store(_) => {
                let project = project::of(&store.host.cwd);
                let new = NewSession { with: with.as_deref(), ..NewSession::of(&project) };
                let place = |id: &SessionId| store.path_of(&store.beginning(id, &new, session.git_branch())?);
                let path = match known_place.and_then(|known| place_below(session, &store, &known)) {
                    Some(path) => path,
                    None => match place(&id) {
                        // The id in a file may be no valid name for one.
                        Err(error @ Error::InvalidName { .. }) => {
                            name = derived.clone();
                            renamed = Some(format!("{error}; the new session is called {name}"));
                            place(&derived)?
                        }
                        path => path?,
                    },
                };
                // The session may be in the store at another place; so may one without a time, if the place depends on the time.
                if (!matches!(way, Way::Replay) || session.started().is_none())
                    && let Some(known) = store.with_id(id.as_str()).0.into_iter().next()
                {
                    return Err(Error::Exists(known.path));
                }
                store.check_folder(&path, &project)?;
                path
            }
        };
        check_free(&store, &path)?;
        // A format that names a session after its place does so from the beginning.
        let is_named_after_place = matches!((&way, how.target), (Way::Replay, Target::Store(_)));
        let id = if is_named_after_place { store.called(name, &path) } else { name };
        Ok(Plan { way, steps: Vec::new(), other, warning, renamed, with, id, store, path })
    }
}

impl Target<'_> {
    /// The folder of the store that a file is written for.
    pub(super) fn root(&self, host: &Host) -> PathBuf {
        match self {
            Target::Store(root) => host.cwd.join(root),
            Target::File(file) => host.cwd.join(file).parent().map(Path::to_path_buf).unwrap_or_default(),
        }
    }
}

/// The store of the new file, with the working directory and the time of the source or of its original.
fn store_for(session: &Session, how: &Conversion<'_>, host: &Host, original: Option<&Original>) -> Result<Store> {
    let is_valid = |cwd: &PathBuf| cwd.is_absolute() && !cwd.as_os_str().as_encoded_bytes().contains(&0);
    let known = [original.and_then(|original| original.from.cwd.as_deref()), session.cwd()];
    let cwd = known.into_iter().flatten().map(PathBuf::from).find(is_valid).unwrap_or_else(|| host.cwd.clone());
    // The version of another program means nothing here.
    let own_version = session.agent_version().filter(|_| how.to.name() == session.dialect().name());
    let version = own_version.map_or_else(|| host.version.clone(), str::to_owned);
    let (started, now) = (session.started(), host.now.clone());
    let now = Arc::new(move || started.unwrap_or_else(|| now()));
    let store = Store::open(how.to, &how.target.root(host), Host { now, cwd, version, ..host.clone() })?;
    // What is converted was recorded before: a conversion changes nothing in silence.
    Ok(store.copying(session))
}

/// A known place in a store, if sessions can be there: a sidecar is untrusted.
fn place_below(session: &Session, store: &Store, place: &Path) -> Option<PathBuf> {
    let path = store.path_below(place, &session.id()).ok()?;
    let is_of_store = Source::file(store.dialect, &path).store().is_some_and(|root| root == store.root);
    (is_of_store && store.dialect.is_session_file(&path)).then_some(path)
}

/// Fails if a name is too long, or taken.
fn check_free(store: &Store, path: &Path) -> Result<()> {
    let beside = original::paths(path);
    let lengths = beside.iter().filter_map(|path| path.file_name()).map(|name| name.len());
    if let Some(longest) = lengths.max().filter(|longest| *longest > FILE_NAME_LIMIT_BYTES) {
        let why = format!("with the names of the files beside it, it has {longest} bytes, which is too long");
        return Err(Error::InvalidName { name: path.file_name().unwrap_or_default().to_string_lossy().into(), why });
    }
    let taken = std::iter::once(path.to_path_buf()).chain(beside).find(|path| store.disk.exists(path));
    taken.map_or(Ok(()), |taken| Err(Error::Exists(taken)))
}
