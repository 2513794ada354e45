//! Files of ours that are no sessions, such as the config file and exports.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::append::{Appender, make_folders};
use crate::disk::replace::{self, Access, Durable};
use crate::disk::{Appended, Disk, OpenLog, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::regular_file::Links;

/// Replaces a file as a whole, or creates it with the folders above it: readable by its owner only, and safe on disk on return.
///
/// If the path is a link that is followed, the file that it leads to is replaced; else the link itself.
pub fn replace_private_file(path: &Path, bytes: &[u8], links: Links, host: &Host) -> Result<()> {
    let path = match links {
        Links::Follow => Real.resolve(path),
        Links::Refuse => path.to_path_buf(),
    };
    make_folders(&Real, &path)?;
    replace::replace(&Real, &path, &(host.new_id)(), bytes, Durable::Yes)
}

/// Replaces the settings of another program, through links: who may read them stays as it is. A new file is readable by its owner only.
pub fn replace_settings(path: &Path, bytes: &[u8], host: &Host) -> Result<()> {
    let path = Real.resolve(path);
    make_folders(&Real, &path)?;
    replace::replace_for(Access::AsItWas, &Real, &path, &(host.new_id)(), bytes, Durable::Yes)
}

/// Appends a line to a log of ours, and creates it with the folders above it: readable by its owner only. Several programs may do so at
/// once.
pub fn append_private_line(path: &Path, line: &str) -> Result<()> {
    let open = || Appender::open(Arc::new(Real), path, Vec::new());
    let is_kind = |error: &Error, kind| matches!(error, Error::Io { source, .. } if source.kind() == kind);
    let opened = match open() {
        Err(error) if is_kind(&error, io::ErrorKind::NotFound) => Appender::create(Arc::new(Real), path, Vec::new()),
        opened => opened,
    };
    let opened = match opened {
        // Another program has created it meanwhile.
        Err(error) if is_kind(&error, io::ErrorKind::AlreadyExists) => open(),
        opened => opened,
    };
    opened?.append(format!("{line}\n").as_bytes()).map(drop)
}

/// A new file that is written piece by piece: readable by its owner only, and it has its name only when it is complete.
///
/// Without [`NewFile::finish`] nothing is left of it.
pub struct NewFile {
    path: PathBuf,
    beside: PathBuf,
    file: Box<dyn OpenLog>,
    is_named: bool,
}

impl NewFile {
    /// Begins the file beside its place.
    pub fn create(path: &Path, host: &Host) -> Result<NewFile> {
        if Real.exists(path) {
            return Err(Error::Exists(path.to_path_buf()));
        }
        let beside = replace::beside(path, &(host.new_id)());
        let file = Real.create(&beside).at(&beside)?;
        Ok(NewFile { path: path.to_path_buf(), beside, file, is_named: false })
    }

    /// Gives the file its name, unless another one has it meanwhile.
    pub fn finish(mut self) -> Result<()> {
        self.file.sync().at(&self.beside)?;
        Real.publish(&self.beside, &self.path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(self.path.clone()),
            _ => Error::Io { path: self.path.clone(), source: error },
        })?;
        self.is_named = true;
        Ok(())
    }
}

impl io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.append(bytes)? {
            Appended { taken: 0, .. } if !bytes.is_empty() => Err(io::ErrorKind::StorageFull.into()),
            Appended { taken, .. } => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_named {
            // It is our own file, with a name that nobody reads.
            drop(replace::delete(&Real, &self.beside));
        }
    }
}
