//! The project of a session: the git work tree of its first working directory, else that directory.
//!
//! It is known from content, never from a folder's name, and the key is the whole path, so that no two projects share one.

use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;

/// No system opens a longer path; a log may name one, and looking into each of its folders would take hours.
const PATH_LIMIT_BYTES: usize = 4096;

/// The project that work in `cwd` belongs to.
pub fn of(cwd: &Path) -> PathBuf {
    let cwd = lexically_clean(cwd);
    git_root(&cwd).unwrap_or(cwd)
}

/// The absolute path of a directory that was typed in `cwd`, without `..`, and without links if it exists.
pub fn settled(cwd: &Path, dir: &Path) -> PathBuf {
    let path = cwd.join(dir);
    path.canonicalize().unwrap_or_else(|_| {
        // In a path that does not exist, nothing is a link.
        let mut clean = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => _ = clean.pop(),
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
            }
        }
        clean
    })
}

/// [`of`], computed once for each directory: thousands of sessions share a few, and each answer looks into all folders above.
#[derive(Debug, Default)]
pub struct Projects(Mutex<HashMap<PathBuf, PathBuf>>);

impl Projects {
    /// The project that work in `cwd` belongs to, as it was at the first call.
    pub fn of(&self, cwd: &Path) -> PathBuf {
        // A thread that panicked with the lock left only whole answers in the map.
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(project) = known().get(cwd) {
            return project.clone();
        }
        let project = of(cwd);
        known().insert(cwd.to_path_buf(), project.clone());
        project
    }
}

/// The root of the git work tree that contains `dir`. Linked work trees and submodules count as their own.
pub(crate) fn git_root(dir: &Path) -> Option<PathBuf> {
    // A log may name a share on another machine: looking there would be a login.
    let is_share = dir.to_string_lossy().starts_with(r"\\");
    if !dir.is_absolute() || is_share || dir.as_os_str().len() > PATH_LIMIT_BYTES {
        return None;
    }
    dir.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_path_buf)
}

/// The path without `.`, doubled or trailing separators. `..` stays: what it means depends on links.
fn lexically_clean(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_inside_a_work_tree_belongs_to_its_root() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(of(&deep), deep);
        std::fs::create_dir(dir.path().join("a/.git")).unwrap();
        assert_eq!(of(&deep), dir.path().join("a"));
    }

    #[test]
    fn a_linked_work_tree_is_its_own_project() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let linked = dir.path().join("wt");
        std::fs::create_dir(&linked).unwrap();
        std::fs::write(linked.join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(of(&linked), linked);
    }

    #[test]
    fn spelling_does_not_make_a_second_project() {
        assert_eq!(of(Path::new("/gone/a/./b/")), Path::new("/gone/a/b"));
        assert_ne!(of(Path::new("/gone/a-b")), of(Path::new("/gone/a/b")));
    }

    #[cfg(unix)]
    #[test]
    fn a_typed_directory_is_where_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("repo/.git")).unwrap();
        std::fs::create_dir(root.join("plain")).unwrap();
        std::os::unix::fs::symlink(root.join("plain"), root.join("repo/link")).unwrap();
        for (typed, expected) in [
            ("../plain", "plain"),
            ("link", "plain"),
            ("./", "repo"),
            ("../gone/../other", "other"),
            ("../../../../../../../../gone", "/gone"),
        ] {
            let settled = settled(&root.join("repo"), Path::new(typed));
            assert_eq!(settled, root.join(expected), "{typed}");
            assert_eq!(of(&settled), settled, "{typed}");
        }
    }

    #[test]
    fn a_path_without_end_is_not_walked() {
        let endless = "/a".repeat(2_000_000);
        assert_eq!(of(Path::new(&endless)), Path::new(&endless));
    }

    proptest::proptest! {
        #[test]
        fn two_paths_never_share_a_key(a in "/gone[a-z./_-]{0,24}", b in "/gone[a-z./_-]{0,24}") {
            let parts = |path: &str| -> Vec<String> {
                path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
            };
            proptest::prop_assert_eq!(of(Path::new(&a)) == of(Path::new(&b)), parts(&a) == parts(&b));
        }
    }
}
