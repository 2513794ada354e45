//! The bundled demo: a home with sessions written by us, unpacked into the cache and read like anybody's.

use std::fs;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use scrollback::model::home::Home;

use crate::failure::{Failure, FailureKind};

/// Its top folders are the dot folders of a home: `sage` is `~/.sage`; but `data` is where an agent was started.
static DEMO: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo");

/// The top folder that keeps its name.
const WORK_FOLDER: &str = "data";

/// Writes the demo home where it can be read, and tells where: in the cache, else among temporary files.
pub(crate) fn unpack(home: &Home) -> Result<PathBuf, Failure> {
    let cache = home.cache();
    let spare = std::env::temp_dir().join(format!("scrollback-demo-{}", std::process::id()));
    let in_cache = unpack_into(&DEMO, &cache.join("demo")).map(|()| cache.join("demo"));
    in_cache.or_else(|_| unpack_into(&DEMO, &spare).map(|()| spare)).map_err(|(path, error)| {
        Failure::new(FailureKind::Io, format!("{}: {error}", path.display()))
            .hint("the demo is unpacked there; SCROLLBACK_HOME names another folder")
    })
}

fn unpack_into(dir: &Dir<'_>, target: &Path) -> Result<(), (PathBuf, std::io::Error)> {
    let mut left = vec![dir];
    while let Some(dir) = left.pop() {
        left.extend(dir.dirs());
        for file in dir.files() {
            let dot = if file.path().starts_with(WORK_FOLDER) { "" } else { "." };
            let path = target.join(format!("{dot}{}", file.path().display()));
            // What is there already and the same is left alone: two runs may read it at once.
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
