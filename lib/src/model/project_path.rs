//! The place of a file in a project, as a log names it: checked before anything is read or written there.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

/// No system opens a longer path.
const PATH_LIMIT_BYTES: usize = 4096;

/// A path below the root of a project: relative, without `.` and `..`, with `/` between its names.
///
/// ```
/// use scrollback::model::ProjectPath;
/// use std::path::Path;
///
/// let root = Path::new("/home/ada/tides");
/// let path = ProjectPath::in_project("/home/ada/tides/src/./high.rs", root, root).unwrap();
/// assert_eq!(path.as_str(), "src/high.rs");
/// assert!(ProjectPath::in_project("../notes", root, root).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ProjectPath(String);

impl ProjectPath {
    /// The path that a log names, absolute or relative to `cwd`; or why it is refused.
    pub fn in_project(path: &str, cwd: &Path, root: &Path) -> Result<ProjectPath, &'static str> {
        let whole = plain(path, cwd)?;
        ProjectPath::below_root(whole.strip_prefix(root).map_err(|_| "it is outside the project")?)
    }

    /// The path that we wrote down ourselves: relative to the root.
    pub(crate) fn parse(path: &str) -> Result<ProjectPath, &'static str> {
        let inside = plain(path, Path::new(""))?;
        if inside.has_root() { Err("it is outside the project") } else { ProjectPath::below_root(&inside) }
    }

    fn below_root(inside: &Path) -> Result<ProjectPath, &'static str> {
        if inside.has_root() {
            return Err("it is outside the project");
        }
        let names: Option<Vec<&str>> = inside.iter().map(|name| name.to_str()).collect();
        match names {
            // What git runs by itself is no file of the project; a repository within it is.
            Some(names) if names.first() == Some(&".git") => Err("it belongs to git"),
            Some(names) if !names.is_empty() => Ok(ProjectPath(names.join("/"))),
            Some(_) => Err("it is the project itself"),
            None => Err("its path is not UTF-8"),
        }
    }

    /// The path as text. It comes from a log: escape it before it reaches a terminal or a page.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the folders above it, and its own.
    pub fn parts(&self) -> (impl Iterator<Item = &str>, &str) {
        let (folders, name) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        (folders.split('/').filter(|name| !name.is_empty()), name)
    }

    /// The folder that it is in, unless that is the root.
    pub fn folder(&self) -> Option<ProjectPath> {
        self.0.rsplit_once('/').map(|(folder, _)| ProjectPath(folder.to_owned()))
    }

    /// The folders that it is in below the root, the innermost first.
    pub fn folders(&self) -> impl Iterator<Item = ProjectPath> + use<> {
        std::iter::successors(self.folder(), ProjectPath::folder)
    }

    /// The file itself.
    pub fn below(&self, root: &Path) -> PathBuf {
        root.join(&self.0)
    }
}

/// The path of a file named in `cwd`, without `.`; or why it is refused.
fn plain(path: &str, cwd: &Path) -> Result<PathBuf, &'static str> {
    if path.contains('\0') {
        return Err("its path contains a NUL");
    }
    if path.len() > PATH_LIMIT_BYTES {
        return Err("its path is too long");
    }
    let mut whole = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            // What `..` means depends on links, which the log does not tell.
            Component::ParentDir => return Err("its path contains `..`"),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    Ok(whole)
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_root_are_accepted() {
        let (root, cwd) = (Path::new("/p"), Path::new("/p/web"));
        for (typed, expected) in [
            ("a.rs", Ok("web/a.rs")),
            ("./a/./b.rs", Ok("web/a/b.rs")),
            ("/p/a.rs", Ok("a.rs")),
            ("/p//a//b", Ok("a/b")),
            ("/p/日本 語.txt", Ok("日本 語.txt")),
            ("/p/a\nb", Ok("a\nb")),
            ("/p/.git/hooks/pre-commit", Err("it belongs to git")),
            ("/p/vendor/.git/config", Ok("vendor/.git/config")),
            ("../a.rs", Err("its path contains `..`")),
            ("/p/../etc/passwd", Err("its path contains `..`")),
            ("/etc/passwd", Err("it is outside the project")),
            ("/proc/self/mem", Err("it is outside the project")),
            ("/pp/a", Err("it is outside the project")),
            ("/p", Err("it is the project itself")),
            ("a\0b", Err("its path contains a NUL")),
        ] {
            let found = ProjectPath::in_project(typed, cwd, root);
            assert_eq!(found.as_ref().map(ProjectPath::as_str).map_err(|why| *why), expected, "{typed:?}");
        }
        // A session that names no directory names no project.
        let nowhere = Path::new("");
        let found = ProjectPath::in_project("/etc/passwd", nowhere, nowhere);
        assert_eq!(found.unwrap_err(), "it is outside the project");
        assert_eq!(ProjectPath::in_project("a.rs", nowhere, nowhere).unwrap().as_str(), "a.rs");
        for (written, expected) in [("a/b", Ok("a/b")), ("./a", Ok("a"))] {
            assert_eq!(ProjectPath::parse(written).as_ref().map(ProjectPath::as_str).map_err(|why| *why), expected);
        }
        for written in ["/p/a", "../a", "", ".git/config"] {
            assert!(ProjectPath::parse(written).is_err(), "{written:?}");
        }
        let long = "a/".repeat(4000);
        assert_eq!(ProjectPath::in_project(&long, cwd, root).unwrap_err(), "its path is too long");
    }
}
