//! Where a session may be written: under a valid name, inside the store, in a folder of its own project, to a file of lines.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::Store;
use crate::dialect::layout::Format;
use crate::dialect::writer::{Beginning, file_name};
use crate::disk::inside::Inside;
use crate::disk::sidecar;
use crate::model::error::{Error, Result};
use crate::model::project;
use crate::model::record::SessionId;
use crate::session::read::packed::is_called_packed;
use crate::session::read::source::Source;

/// With an ending, a name of this length is still a valid file name.
const NAME_LIMIT_BYTES: usize = 128;

/// An id that every format accepts: if this one has no path either, the id is not the reason.
pub(crate) const ANY_ID: &str = "00000000-0000-4000-8000-000000000000";

impl Store {
    /// The path of a new session, which is always inside the store. Every id that becomes part of a path is checked here.
    pub(crate) fn path_of(&self, beginning: &Beginning<'_>) -> Result<PathBuf> {
        check_name(beginning.session.as_str())?;
        let bad = |why: String| Error::InvalidName { name: beginning.session.to_string(), why };
        let below = (self.writing.place)(beginning).map_err(|why| {
            let any = SessionId(ANY_ID.to_owned());
            match (self.writing.place)(&Beginning { session: &any, ..*beginning }) {
                Ok(_) => bad(why),
                Err(why) => Error::CannotCreate { why },
            }
        })?;
        self.path_below(&below, beginning.session)
    }

    /// The path of a session, unless its names or a symlink lead out of the store.
    pub(crate) fn path_below(&self, below: &Path, session: &SessionId) -> Result<PathBuf> {
        let leads_out =
            || Error::InvalidName { name: session.to_string(), why: "it leads out of the store".to_owned() };
        for part in below.components() {
            match part {
                Component::Normal(name) => {
                    file_name(name.to_string_lossy().into_owned()).map_err(|why| Error::CannotCreate { why })?;
                }
                _ => return Err(leads_out()),
            }
        }
        let path = self.root.join(below);
        // A symlink inside the store may lead anywhere.
        let there = |path: &Path| path.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        match there(&path) {
            Some(folder) if folder.starts_with(&root) || root.starts_with(&folder) => Ok(path),
            _ => Err(leads_out()),
        }
    }

    /// Refuses an id that readers would not find again, because the format stores only ids of another shape.
    pub(crate) fn check_storable_id(&self, session: &SessionId) -> Result<()> {
        let tells = self.writing.states_session_id;
        if tells(session) || !tells(&SessionId(ANY_ID.to_owned())) {
            return Ok(());
        }
        let why = format!("{} session ids are UUIDs, or derived from the path", self.dialect.name());
        Err(Error::InvalidName { name: session.to_string(), why })
    }

    /// Refuses a session that cannot be appended to.
    pub(crate) fn check_log(&self, source: &Source) -> Result<()> {
        let is_packed = is_called_packed(&source.path);
        if source.dialect.name() != self.dialect.name() || !matches!(source.layout.format, Format::Lines) || is_packed {
            let what = "an append to a file that is not JSON Lines".to_owned();
            return Err(Error::cannot_store(source.dialect.name(), what));
        }
        Ok(())
    }

    /// Refuses a session that a symlink leads to, out of its store: it can be read, but not written.
    pub(crate) fn check_inside(&self, source: &Source) -> Result<()> {
        Inside::store_of(source).map_or(Ok(()), |inside| inside.check(&*self.disk, &source.path))
    }

    /// Refuses a folder that belongs to another project: two projects can have the same folder name.
    pub(crate) fn check_folder(&self, log: &Path, project: &Path) -> Result<()> {
        let source = Source::file(self.dialect, log);
        let known = source.sidecar().and_then(|path| sidecar::cwd(self.dialect, &sidecar::content(&path)?));
        let known = known.map(|cwd| project::of(Path::new(&cwd)));
        // A path relative to a home directory that we do not know may be this one.
        match known.filter(|known| known.is_absolute() && *known != project::of(project)) {
            Some(known) => Err(Error::OtherProject { path: log.to_path_buf(), project: known }),
            None => Ok(()),
        }
    }
}

/// Refuses a name that cannot be part of a path on every system.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > NAME_LIMIT_BYTES {
        "it is longer than 128 bytes"
    } else if name.starts_with('-') {
        // It would look like an option.
        "it starts with a -"
    } else if name.starts_with('.') || name.ends_with('.') {
        "it starts or ends with a dot"
    } else if is_device(name) {
        "it is the name of a device on Windows"
    } else if !name.bytes().all(is_plain) {
        "only letters, digits, -, _ and . are allowed"
    } else {
        return Ok(());
    };
    Err(Error::InvalidName { name: name.to_owned(), why: why.to_owned() })
}

/// Windows treats these names as devices, with any ending.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    let is_port = |kind: &str| stem.strip_prefix(kind).is_some_and(|port| matches!(port.as_bytes(), [b'1'..=b'9']));
    matches!(&*stem, "con" | "prn" | "aux" | "nul") || is_port("com") || is_port("lpt")
}
