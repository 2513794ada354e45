//! The bundled demo: a home with made-up sessions, unpacked into the cache and read like any other home.

use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use scrollback::model::Home;

use crate::failure::{Failure, FailureKind};

/// Its top folders are the dot folders of a home: `sage` is `~/.sage`. Only `data` keeps its name.
static DEMO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// The working directory of Fluux Agent.
const WORK_FOLDER: &str = "data";

/// Unpacks the demo home into the cache, else into a temporary folder, and returns its path.
pub(crate) fn unpack(home: &Home) -> Result<PathBuf, Failure> {
    let cache = home.cache();
    let spare = std::env::temp_dir().join(format!("scrollback-demo-{}", std::process::id()));
    let in_cache = unpack_into(&DEMO, &cache.join("demo")).map(|()| cache.join("demo"));
    in_cache.or_else(|_| unpack_into(&DEMO, &spare).map(|()| spare)).map_err(|(path, error)| {
        Failure::new(FailureKind::Io, format!("{}: {error}", path.display()))
            .hint("the demo is unpacked there; set SCROLLBACK_HOME to use another directory")
    })
}

fn unpack_into(dir: &Dir<'_>, target: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let mut left = vec![dir];
    while let Some(dir) = left.pop() {
        left.extend(dir.dirs());
        for file in dir.files() {
            let dot = if file.path().starts_with(WORK_FOLDER) { "" } else { "." };
            let path = target.join(format!("{dot}{}", file.path().display()));
            // An unpacked file is left alone: another run may be reading it.
            if fs::read(&path).is_ok_and(|known| known == file.contents()) {
                continue;
            }
            let folder = path.parent().unwrap_or(target);
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, file.contents()));
            written.map_err(|error| (path, error))?;
        }
    }
    Ok(())
}
