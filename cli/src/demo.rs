//! The bundled demo: a home with made-up sessions, unpacked into the cache and read like any other home; `undo` gets a copy of its own.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use scrollback::model::regular_file::{self, Links};
use scrollback::model::{Error, Home, Host};
use scrollback::write::replace_private_file;
use tempfile::TempDir;

use crate::failure::{Failure, FailureKind};

/// Its top folders are the dot folders of a home: `sage` is `~/.sage`. Only those of [`NOT_HIDDEN`] keep their names.
static DEMO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// The working directory of Fluux Agent, and a project whose files can be restored.
const NOT_HIDDEN: [&str; 2] = ["data", "harbour"];

/// Where the sessions of the demo say that their home is.
const HOME_OF_DEMO: &str = "/home/ada";

/// How temporary folders are called.
const PREFIX: &str = "scrollback-demo-";

/// The demo home. One in the temporary directory is deleted with this value.
pub(crate) struct Demo {
    pub(crate) path: PathBuf,
    _spare: Option<TempDir>,
}

/// Unpacks the demo home into the cache, else into a new temporary folder.
pub(crate) fn unpack(home: &Home, host: &Host) -> Result<Demo, Failure> {
    let cache = home.cache().join("demo");
    if cache.is_absolute() && unpack_into(&DEMO, &cache, &exactly, host).is_ok() {
        return Ok(Demo { path: cache, _spare: None });
    }
    // Other users can write to the temporary directory: nobody can guess the name, and nothing may be there already.
    let unpacked = new_folder().and_then(|spare| unpack_into(&DEMO, spare.path(), &exactly, host).map(|()| spare));
    let spare = unpacked.map_err(|error| not_unpacked(&error, "set SCROLLBACK_HOME to use another directory"))?;
    Ok(Demo { path: spare.path().to_path_buf(), _spare: Some(spare) })
}

/// A copy of the demo home that may be changed, in a new folder for its owner only, which stays. Its sessions name that folder as
/// their home, so that the project in it is theirs.
pub(crate) fn copy(host: &Host) -> Result<Demo, Failure> {
    let copied = new_folder().and_then(|folder| {
        // The path as it stands inside of a JSON string.
        let home = serde_json::Value::from(&*folder.path().to_string_lossy()).to_string();
        let home = home.trim_matches('"');
        let moved = |bytes: &'static [u8]| match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text.replace(HOME_OF_DEMO, home).into_bytes()),
            Err(_) => Cow::Borrowed(bytes),
        };
        unpack_into(&DEMO, folder.path(), &moved, host).map(|()| folder.keep())
    });
    let path = copied.map_err(|error| not_unpacked(&error, "set TMPDIR to use another directory"))?;
    Ok(Demo { path, _spare: None })
}

/// A new folder that only its owner can read.
fn new_folder() -> Result<TempDir, Error> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Whatever the umask is.
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    builder.tempdir().map_err(|source| Error::Io { path: std::env::temp_dir(), source })
}

fn not_unpacked(error: &Error, hint: &str) -> Failure {
    Failure::new(FailureKind::Io, error.to_string()).hint(format!("the demo is unpacked there; {hint}"))
}

/// A file of the demo as it is unpacked.
type Content<'c> = dyn Fn(&'static [u8]) -> Cow<'static, [u8]> + 'c;

fn exactly(bytes: &'static [u8]) -> Cow<'static, [u8]> {
    Cow::Borrowed(bytes)
}

/// Fails if a folder of the demo is a link: what it leads to is not the demo's.
fn unpack_into(dir: &'static Dir<'static>, target: &Path, content: &Content<'_>, host: &Host) -> Result<(), Error> {
    let below = |path: &Path| {
        let dot = if NOT_HIDDEN.iter().any(|name| path.starts_with(name)) { "" } else { "." };
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
            let content = content(file.contents());
            let known = regular_file::read(&path, content.len() as u64, Links::Refuse);
            // An unpacked file is left alone: another run may be reading it.
            if !known.is_ok_and(|known| known == *content) {
                replace_private_file(&path, &content, Links::Refuse, host)?;
            }
        }
    }
    Ok(())
}
