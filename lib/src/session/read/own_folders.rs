//! The folders that a session has for its sub-agents, by its dialect's layouts. The disk is not read.

use std::path::{Path, PathBuf};

use crate::dialect::layout::Layout;
use crate::session::read::source::{Source, root_of};

impl Source {
    /// The layout of the store that the session is in, and all of its dialect, with roots relative to the store.
    pub(crate) fn layout_in_store(&self) -> (Option<Layout>, Vec<Layout>) {
        let layouts = self.dialect.layouts_in(Path::new(""));
        let own = layouts.iter().find(|layout| root_of(layout, &self.path).is_some()).cloned();
        (own, layouts)
    }

    /// The folders that other patterns have for the session's sub-agents, whether they exist or not.
    pub(crate) fn own_folders(&self) -> Vec<PathBuf> {
        let (own, layouts) = self.layout_in_store();
        let Some(own) = own else { return Vec::new() };
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        layouts.iter().filter_map(|other| own_folder(&own, other, &self.path, &stem)).collect()
    }
}

/// The folder that another pattern has for a session's sub-agents, named as the session's file.
///
/// `*/*.jsonl` and `*/*/subagents/agent-*.jsonl`: `<project>/<session>/`.
/// `*/chats/*.jsonl` and `*/subagents/*/agent-*.jsonl`: `<project>/subagents/<session>/`.
fn own_folder(own: &Layout, other: &Layout, path: &Path, stem: &str) -> Option<PathBuf> {
    let (own_parts, parts): (Vec<&str>, Vec<&str>) =
        (own.pattern.split('/').collect(), other.pattern.split('/').collect());
    let named = parts
        .iter()
        .rposition(|part| *part == "*")
        .filter(|at| *at > 0 && other.root == own.root && other.pattern != own.pattern)?;
    let root = path.ancestors().nth(own_parts.len())?;
    let names: Vec<_> = path.strip_prefix(root).ok()?.components().collect();
    let mut folder = root.to_path_buf();
    for (at, part) in parts.iter().enumerate().take(named) {
        let is_folder = at + 1 < own_parts.len();
        match (part.contains('*'), own_parts.get(at).zip(names.get(at))) {
            (false, _) => folder.push(part),
            (true, Some((same, name))) if is_folder && same == part => folder.push(name),
            (true, _) => return None,
        }
    }
    Some(folder.join(stem))
}
