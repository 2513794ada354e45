//! What a log says about files: paths stay below the root, and an edit that is taken back leads forward again.

use std::path::{Component, Path};

use serde_json::Value;

use crate::dialect;
use crate::model::project_path::ProjectPath;
use crate::session::Session;
use crate::session::read::open::ReadOptions;
use crate::view::files::{FileHistory, taken_back};

/// Any bytes as a path, as the input of a tool call, and as a session with file states.
pub fn restore(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (cwd, root) = (Path::new("/p/work"), Path::new("/p"));
    if let Ok(path) = ProjectPath::in_project(&text, cwd, root) {
        let below = path.below(root);
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::RootDir | Component::Prefix(_));
        assert!(below.starts_with(root) && below != root, "{path:?} leaves the root");
        assert!(below.components().all(is_plain), "{path:?} is not plain");
        assert_eq!(
            ProjectPath::in_project(path.as_str(), root, root).as_ref(),
            Ok(&path),
            "another path the second time"
        );
    }
    if let Ok(input) = serde_json::from_str::<Value>(&text) {
        taken_back(&input, &text);
    }
    taken_back(&Value::String(text.clone().into_owned()), &text);
    for dialect in dialect::all() {
        let session = Session::from_bytes(*dialect, bytes.to_vec(), &ReadOptions::plain(jiff::Timestamp::UNIX_EPOCH));
        if let Ok(history) = FileHistory::read(&session, None, Some(root), &[]) {
            assert!(history.rows().iter().all(|row| !row.changes.is_empty()));
        }
    }
}
