//! The bundled demo: a home with made-up sessions, unpacked into the cache and read like any other home.

use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use scrollback::model::{Error, Home, Host};
use scrollback::write::replace_private_file;

use crate::failure::{Failure, FailureKind};

/// Its top folders are the dot folders of a home: `sage` is `~/.sage`. Only `data` keeps its name.
static DEMO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// The working directory of Fluux Agent.
const WORK_FOLDER: &str = "data";

/// Unpacks the demo home into the cache, else into a new temporary folder, and returns its path.
pub(crate) fn unpack(home: &Home, host: &Host) -> Result<PathBuf, Failure> {
    let cache = home.cache().join("demo");
    if cache.is_absolute() && unpack_into(&DEMO, &cache, host).is_ok() {
        return Ok(cache);
    }
    // Other users can write to the temporary directory: nobody can guess the name, and nothing may be there already.
    let spare = std::env::temp_dir().join(format!("scrollback-demo-{}", (host.new_id)()));
    let created = create_private_folder(&spare).map_err(|source| Error::Io { path: spare.clone(), source });
    created.and_then(|()| unpack_into(&DEMO, &spare, host)).map(|()| spare).map_err(|error| {
        Failure::new(FailureKind::Io, error.to_string())
            .hint("the demo is unpacked there; set SCROLLBACK_HOME to use another directory")
    })
}

fn unpack_into(dir: &Dir<'_>, target: &Path, host: &Host) -> Result<(), Error> {
    let mut left = vec![dir];
    while let Some(dir) = left.pop() {
        left.extend(dir.dirs());
        for file in dir.files() {
            let dot = if file.path().starts_with(WORK_FOLDER) { "" } else { "." };
            let path = target.join(format!("{dot}{}", file.path().display()));
            // An unpacked file is left alone: another run may be reading it.
            if !fs::read(&path).is_ok_and(|known| known == file.contents()) {
                replace_private_file(&path, file.contents(), host)?;
            }
        }
    }
    Ok(())
}

/// Creates a folder that did not exist, for its owner only.
fn create_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
