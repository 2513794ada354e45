//! The branch that is checked out, read from `.git` without running git.

use std::path::{Path, PathBuf};

use crate::model::project::git_root;
use crate::model::regular_file::{self, Links};

/// A `HEAD` or a `.git` file is one line; a larger file is something else.
const POINTER_LIMIT_BYTES: u64 = 4096;

/// How many characters of a commit's name are shown.
const SHORT_COMMIT: usize = 12;

/// The content of `HEAD` if git keeps its references in a table: then the branch is not known here.
const ELSEWHERE: &str = "refs/heads/.invalid";

/// The branch checked out in the work tree of `dir`; for a detached head the beginning of its commit.
pub(crate) fn branch(dir: &Path) -> Option<String> {
    let root = git_root(dir)?;
    let head = pointer(&git_dir(&root)?.join("HEAD"))?;
    match head.strip_prefix("ref:").map(str::trim) {
        Some(ELSEWHERE) => None,
        Some(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        None if head.len() >= SHORT_COMMIT && head.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(head[..SHORT_COMMIT].to_owned())
        }
        None => None,
    }
}

/// The folder of git's own files for a work tree: in a linked one, `.git` is a file with its path.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let at = root.join(".git");
    if at.is_dir() {
        return Some(at);
    }
    let named = pointer(&at)?.strip_prefix("gitdir:")?.trim().to_owned();
    Some(root.join(named))
}

/// The only line of a small regular file.
fn pointer(path: &Path) -> Option<String> {
    let text = String::from_utf8(regular_file::read(path, POINTER_LIMIT_BYTES, Links::Follow).ok()?).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(files: &[(&str, &str)], dir: &str, expected: Option<&str>) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("ROOT", &root.path().to_string_lossy())).unwrap();
        }
        let dir = root.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        assert_eq!(branch(&dir).as_deref(), expected, "{files:?}");
    }

    #[test]
    fn the_branch_is_what_head_names() {
        check(&[(".git/HEAD", "ref: refs/heads/main\n")], "", Some("main"));
        check(&[(".git/HEAD", "ref: refs/heads/feat/tides\n")], "deep/er", Some("feat/tides"));
        check(&[(".git/HEAD", "ref: refs/remotes/x\n")], "", Some("refs/remotes/x"));
    }

    #[test]
    fn a_detached_head_is_named_by_its_commit() {
        check(&[(".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n")], "", Some("0123456789ab"));
    }

    #[test]
    fn a_linked_work_tree_has_its_own_branch() {
        let files =
            [("main/.git/HEAD", "ref: refs/heads/main\n"), ("main/.git/worktrees/wt/HEAD", "ref: refs/heads/fix\n")];
        check(&[files[0], files[1], ("wt/.git", "gitdir: ROOT/main/.git/worktrees/wt\n")], "wt", Some("fix"));
        check(&[files[0], files[1], ("wt/.git", "gitdir: ../main/.git/worktrees/wt\n")], "wt", Some("fix"));
    }

    #[test]
    fn what_is_no_head_names_no_branch() {
        check(&[(".git/HEAD", "")], "", None);
        check(&[(".git/HEAD", "nonsense")], "", None);
        check(&[(".git/HEAD", "é́́́́́é́́́́́é́́́́́")], "", None);
        check(&[(".git", "gitdir: nowhere")], "", None);
        check(&[(".git/other", "")], "", None);
        check(&[(".git/HEAD", "ref: refs/heads/.invalid\n"), (".git/reftable/tables.list", "")], "", None);
        check(&[(".git/HEAD", &"0".repeat(5000))], "", None);
    }
}
