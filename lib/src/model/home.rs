//! Where a person's sessions are: the caller passes it in, because the library reads no environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A home directory, a working directory and the variables that agents honour.
///
/// ```
/// use scrollback::model::Home;
///
/// let home = Home { dir: "/home/ada".into(), cwd: "/home/ada/tide".into(), vars: Default::default() };
/// assert_eq!(home.data(), std::path::Path::new("/home/ada/.local/share/scrollback"));
/// ```
#[derive(Debug, Clone)]
pub struct Home {
    /// The home directory.
    pub dir: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The environment.
    pub vars: BTreeMap<String, String>,
}

impl Home {
    /// The folder that a variable names, or else this one below the home directory.
    pub(crate) fn var_or(&self, name: &str, below_home: &str) -> PathBuf {
        match self.vars.get(name).filter(|value| !value.is_empty()) {
            Some(value) => self.cwd.join(value),
            None => self.dir.join(below_home),
        }
    }

    /// The folder of our own sessions, blobs and trash.
    pub fn data(&self) -> PathBuf {
        self.own_or("XDG_DATA_HOME", ".local/share")
    }

    /// The folder of the config file.
    pub fn config(&self) -> PathBuf {
        self.own_or("XDG_CONFIG_HOME", ".config")
    }

    /// The folder of files that can be made again.
    pub fn cache(&self) -> PathBuf {
        self.own_or("XDG_CACHE_HOME", ".cache")
    }

    /// `SCROLLBACK_HOME` holds everything of ours; without it, each kind of file has the folder that XDG names.
    ///
    /// A relative path would be another folder in each working directory. XDG asks to ignore it; one in `SCROLLBACK_HOME` is
    /// returned as it is, for the caller to refuse.
    fn own_or(&self, xdg: &str, below_home: &str) -> PathBuf {
        if let Some(value) = self.vars.get("SCROLLBACK_HOME").filter(|value| !value.is_empty()) {
            return PathBuf::from(value);
        }
        let named = self.vars.get(xdg).map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| self.dir.join(below_home)).join("scrollback")
    }

    /// The working directory and the folders above it, up to the root of its git work tree.
    ///
    /// Outside a work tree only the working directory itself counts: a stray folder in `/tmp` is not a project.
    pub(crate) fn cwd_up_to_git_root(&self) -> impl Iterator<Item = &Path> {
        let root = crate::model::project::git_root(&self.cwd);
        self.cwd.ancestors().take_while(move |dir| match &root {
            Some(root) => dir.starts_with(root),
            None => *dir == self.cwd,
        })
    }
}
