//! Keeps copies of other agents' sessions, so that what an agent deletes or rewrites is not lost (`session/read/kept.rs`).
//!
//! A copy is a second name of the same file where the agent only appends and the disk can, else a file of its own. Nothing in a copy is
//! ever overwritten by something that does not begin with it: then the copy moves to an older generation.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::dialect::layout::Format;
use crate::disk::append::make_folders;
use crate::disk::replace::{Durable, beside, delete, replace, sync_parent};
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::home::Home;
use crate::model::host::Host;
use crate::model::regular_file::{self, Links};
use crate::session::read::kept::{self, KeptStore, ORIGIN};
use crate::session::read::source::Source;
use crate::write::copy::{PIECE_BYTES, copy_bytes, copy_file};
use crate::write::trash::{belongings, tree};

/// The kept copies of a home.
#[derive(Clone)]
pub struct Kept {
    root: PathBuf,
    host: Host,
    disk: Arc<dyn Disk>,
}

/// What keeping a session did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptNow {
    /// It is ours, or in a database: nothing is kept of it.
    #[default]
    Not,
    /// The copy has everything already.
    Unchanged,
    /// The copy has more than before.
    Grown,
    /// There was no copy.
    New,
    /// The agent has rewritten it: the copy before is an older generation now.
    Rewritten,
}

impl Kept {
    /// The copies of this home. Nothing is created before a session is kept.
    pub fn open(home: &Home, host: Host) -> Kept {
        Kept { root: kept::root(home), host, disk: Arc::new(Real) }
    }

    /// The folder of the copies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keeps a session as it is now, with everything that belongs to it.
    pub fn keep(&self, source: &Source) -> Result<KeptNow> {
        let is_kept = source.dialect.name() != "native"
            && source.kept_from().is_none()
            && !matches!(source.layout.format, Format::Rows(_));
        let Some(original) = source.store().filter(|store| is_kept && store.is_absolute()) else {
            return Ok(KeptNow::Not);
        };
        let store = KeptStore::of(&self.root, source.dialect, &original, 1);
        let may_link = source.dialect.traits().appends_only;
        let mut all = KeptNow::Unchanged;
        for belonging in belongings(source) {
            let Ok(below) = belonging.strip_prefix(&original) else { continue };
            if !self.disk.exists(&original.join(below)) {
                continue;
            }
            // A link or a device among them is not the session's.
            for (file, is_folder) in tree(&belonging).unwrap_or_default() {
                if let (false, Ok(below)) = (is_folder, file.strip_prefix(&original)) {
                    let now = self.keep_file(&file, &store, below, source, may_link)?;
                    all = if file == source.path { all.max(now) } else { all.max(now.min(KeptNow::Grown)) };
                }
            }
        }
        Ok(all)
    }

    fn keep_file(&self, file: &Path, store: &KeptStore, below: &Path, of: &Source, may_link: bool) -> Result<KeptNow> {
        let copy = store.folder.join(below);
        let now = match (fs::symlink_metadata(&copy), fs::symlink_metadata(file)) {
            // The agent deletes it right now.
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(KeptNow::Unchanged),
            (Err(_), _) => KeptNow::New,
            (Ok(copied), Ok(there)) if self.disk.is_same_file(&copy, file) || is_alike(&copied, &there) => {
                return Ok(KeptNow::Unchanged);
            }
            // An agent that empties a file leaves nothing to keep: the copy stays what people get back.
            (Ok(_), Ok(there)) if there.len() == 0 => return Ok(KeptNow::Unchanged),
            (Ok(_), _) if begins_with(file, &copy)? => KeptNow::Grown,
            (Ok(_), _) => KeptNow::Rewritten,
        };
        self.name_folder(store)?;
        make_folders(&*self.disk, &copy)?;
        if now == KeptNow::Rewritten {
            let older = self.free_generation(of, store, below);
            self.name_folder(&older)?;
            let to = older.folder.join(below);
            make_folders(&*self.disk, &to)?;
            self.disk.publish(&copy, &to).at(&to)?;
        }
        self.place(file, &copy, may_link)?;
        Ok(now)
    }

    /// Gives a copy its content, and its name when it is complete.
    fn place(&self, file: &Path, copy: &Path, may_link: bool) -> Result<()> {
        let new = beside(copy, &(self.host.new_id)());
        // On another file system, or one without second names, it is a file of its own.
        let is_linked = may_link && self.disk.link(file, &new).is_ok();
        let copy_whole = || {
            let changed = fs::metadata(file).and_then(|there| there.modified()).at(file)?;
            let (mut open, _) = regular_file::open(file, Links::Refuse)?;
            // Readable by its owner only, whoever may read the agent's.
            copy_bytes(&mut open, &*self.disk, (file, &new)).and_then(|()| self.disk.touch(&new, changed).at(&new))
        };
        let placed = if is_linked { Ok(()) } else { copy_whole() };
        let placed = placed.and_then(|()| self.disk.rename(&new, copy).at(copy));
        if placed.is_err() {
            drop(delete(&*self.disk, &new));
        }
        placed?;
        // Renaming one name of a file to another one does nothing.
        if self.disk.exists(&new) {
            delete(&*self.disk, &new)?;
        }
        sync_parent(&*self.disk, copy)
    }

    fn name_folder(&self, store: &KeptStore) -> Result<()> {
        let note = store.folder.join(ORIGIN);
        if self.disk.exists(&note) {
            return Ok(());
        }
        make_folders(&*self.disk, &note)?;
        let origin = store.origin().to_string();
        replace(&*self.disk, &note, &(self.host.new_id)(), origin.as_bytes(), Durable::Yes)
    }

    /// The first generation without this file.
    fn free_generation(&self, of: &Source, store: &KeptStore, below: &Path) -> KeptStore {
        let generation = |number| KeptStore::of(&self.root, of.dialect, &store.original, number);
        let mut number = 2;
        while self.disk.exists(&generation(number).folder.join(below)) {
            number += 1;
        }
        generation(number)
    }

    /// Makes files of their own of a copy's files that are second names of the agent's, so that one can change without the other.
    pub fn separate(&self, kept: &Source) -> Result<()> {
        let Some((original, folder)) = kept.kept_from().zip(kept.store()) else { return Ok(()) };
        let Some(store) = Source::file(kept.dialect, original).store() else { return Ok(()) };
        for belonging in belongings(kept).into_iter().filter(|path| self.disk.exists(path)) {
            for (copy, is_folder) in tree(&belonging)? {
                let Ok(below) = copy.strip_prefix(&folder) else { continue };
                if !is_folder && self.disk.is_same_file(&copy, &store.join(below)) {
                    self.place(&copy, &copy, false)?;
                }
            }
        }
        Ok(())
    }

    /// Puts a kept session back where its agent finds it: as new files, because agents delete by age. Fails if one is there.
    pub fn restore(&self, kept: &Source) -> Result<PathBuf> {
        let no_copy = || Error::NoSession(Some(kept.name()));
        let (original, folder) = (kept.kept_from().ok_or_else(no_copy)?, kept.store().ok_or_else(no_copy)?);
        let store = Source::file(kept.dialect, original).store().ok_or_else(no_copy)?;
        let mut files = Vec::new();
        for belonging in belongings(kept) {
            if self.disk.exists(&belonging) {
                files.extend(tree(&belonging)?.into_iter().filter(|(_, is_folder)| !is_folder).map(|(file, _)| file));
            }
        }
        let places: Vec<(PathBuf, PathBuf)> = files
            .into_iter()
            .filter_map(|file| file.strip_prefix(&folder).ok().map(|below| store.join(below)).map(|to| (file, to)))
            .collect();
        if self.disk.exists(original) {
            return Err(Error::Exists(original.to_path_buf()));
        }
        // The log comes last: it makes the session.
        let (log, others): (Vec<_>, Vec<_>) = places.into_iter().partition(|(_, to)| to == original);
        for (file, to) in others.into_iter().filter(|(_, to)| !self.disk.exists(to)).chain(log) {
            make_folders(&*self.disk, &to)?;
            let new = beside(&to, &(self.host.new_id)());
            copy_file(&*self.disk, &file, &new)?;
            self.disk.publish(&new, &to).inspect_err(|_| drop(delete(&*self.disk, &new))).at(&to)?;
            sync_parent(&*self.disk, &to)?;
        }
        Ok(original.to_path_buf())
    }
}

/// Whether a copy was made of a file as it is.
fn is_alike(copy: &Metadata, file: &Metadata) -> bool {
    let changed = |metadata: &Metadata| metadata.modified().ok();
    copy.len() == file.len() && changed(copy).is_some() && changed(copy) == changed(file)
}

/// Whether a file begins with everything that a copy has.
fn begins_with(file: &Path, copy: &Path) -> Result<bool> {
    let (mut file_bytes, _) = regular_file::open(file, Links::Refuse)?;
    let (mut copy_bytes, _) = regular_file::open(copy, Links::Refuse)?;
    let (mut one, mut other) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let read = copy_bytes.read(&mut one).at(copy)?;
        if read == 0 {
            return Ok(true);
        }
        match file_bytes.read_exact(&mut other[..read]) {
            Ok(()) if one[..read] == other[..read] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error).at(file),
        }
    }
}
