//! The bundled demo: a home with made-up sessions, unpacked into the cache and read like any other home.

use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use scrollback::model::regular_file::{self, Links};
use scrollback::model::{Error, Home, Host};
use scrollback::write::replace_private_file;
use tempfile::TempDir;

use crate::failure::{Failure, FailureKind};

/// Its top folders are the dot folders of a home: `sage` is `~/.sage`. Only `data` keeps its name.
static DEMO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// The working directory of Fluux Agent.
const WORK_FOLDER: &str = "data";

/// The demo home. One in the temporary directory is deleted with this value.
pub(crate) struct Demo {
    pub(crate) path: PathBuf,
    _spare: Option<TempDir>,
}

/// Unpacks the demo home into the cache, else into a new temporary folder.
pub(crate) fn unpack(home: &Home, host: &Host) -> Result<Demo, Failure> {
    let cache = home.cache().join("demo");
    if cache.is_absolute() && unpack_into(&DEMO, &cache, host).is_ok() {
        return Ok(Demo { path: cache, _spare: None });
    }
    // Other users can write to the temporary directory: nobody can guess the name, and nothing may be there already.
    let spare = tempfile::Builder::new().prefix("scrollback-demo-").tempdir();
    let spare = spare.map_err(|source| Error::Io { path: std::env::temp_dir(), source });
    let unpacked = spare.and_then(|spare| unpack_into(&DEMO, spare.path(), host).map(|()| spare));
    let spare = unpacked.map_err(|error| {
        Failure::new(FailureKind::Io, error.to_string())
            .hint("the demo is unpacked there; set SCROLLBACK_HOME to use another directory")
    })?;
    Ok(Demo { path: spare.path().to_path_buf(), _spare: Some(spare) })
}

/// Fails if a folder of the demo is a link: what it leads to is not the demo's.
fn unpack_into(dir: &Dir<'_>, target: &Path, host: &Host) -> Result<(), Error> {
    let below = |path: &Path| {
        let dot = if path.starts_with(WORK_FOLDER) { "" } else { "." };
        target.join(format!("{dot}{}", path.display()))
    };
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
    let mut left = vec![dir];
    while let Some(dir) = left.pop() {
        left.extend(dir.dirs());
        let folder = if dir.path().as_os_str().is_empty() { target.to_path_buf() } else { below(dir.path()) };
        if is_link(&folder) {
            return Err(Error::NotAFile(folder));
        }
        for file in dir.files() {
            let path = below(file.path());
            let known = regular_file::read(&path, file.contents().len() as u64, Links::Refuse);
            // An unpacked file is left alone: another run may be reading it.
            if !known.is_ok_and(|known| known == file.contents()) {
                replace_private_file(&path, file.contents(), Links::Refuse, host)?;
            }
        }
    }
    Ok(())
}
