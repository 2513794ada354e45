//! The files and folders that belong to one session alone, by its dialect's layouts. The disk is not read.

use std::path::PathBuf;

use crate::dialect::layout::{Layout, beside_converted};
use crate::session::read::source::Source;

/// Everything that a session may have, its first file first; or only the folder of the session.
pub(crate) fn belongings(source: &Source) -> Vec<PathBuf> {
    let (own, layouts) = source.layout_in_store();
    if let (Some(own), Some(folder)) = (&own, source.path.parent())
        && is_a_folder_each(own, &layouts)
    {
        return vec![folder.to_path_buf()];
    }
    let companions = source.layout.companions.iter().map(|name| source.path.with_file_name(name));
    // A sidecar that describes other sessions too does not belong to this one.
    let is_shared = layouts.iter().any(|layout| layout.sidecar.is_some_and(|name| name.starts_with("../")));
    let sidecar = source.named_sidecar().filter(|_| !is_shared);
    std::iter::once(source.path.clone())
        .chain(source.earlier.iter().cloned())
        // Else the session would be listed again, as it was in them.
        .chain(source.copies.iter().cloned())
        .chain(companions)
        .chain(sidecar)
        .chain(source.own_folders())
        .chain(source.file_history())
        .chain(beside_converted(&source.path))
        .collect()
}

/// Whether each session has its own folder, without other sessions in it: `*/messages.jsonl`.
fn is_a_folder_each(own: &Layout, layouts: &[Layout]) -> bool {
    let Some((folder, file)) = own.pattern.rsplit_once('/') else { return false };
    let is_below = |other: &Layout| {
        other.root == own.root && other.pattern != own.pattern && other.pattern.starts_with(&format!("{folder}/"))
    };
    !file.contains('*') && folder.ends_with('*') && !layouts.iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::dialect;

    #[test]
    fn each_dialect_knows_the_files_of_a_session() {
        for (dialect, path, expected) in [
            ("native", "/s/sessions/x/messages.jsonl", &["/s/sessions/x"][..]),
            // Outside a store the folder may hold other files.
            ("native", "/s/messages.jsonl", &["/s/messages.jsonl", "/s/snapshots.jsonl", "/s/metadata.json"]),
            ("native", "/s/copy.jsonl", &["/s/copy.jsonl"]),
            (
                "claude-code",
                "/c/projects/p/x.jsonl",
                &["/c/projects/p/x.jsonl", "/c/projects/p/x", "/c/file-history/x"],
            ),
            (
                "claude-code",
                "/c/projects/p/x/subagents/agent-1.jsonl",
                &["/c/projects/p/x/subagents/agent-1.jsonl", "/c/projects/p/x/subagents/agent-1.meta.json"],
            ),
            (
                "qwen-code",
                "/q/projects/p/chats/x.jsonl",
                &[
                    "/q/projects/p/chats/x.jsonl",
                    "/q/projects/p/chats/x.meta.json",
                    "/q/projects/p/subagents/x",
                    "/q/file-history/x",
                ],
            ),
            ("fluux", "/f/a@b/history.jsonl", &["/f/a@b/history.jsonl"]),
            ("fluux", "/f/a@b/sessions/20260101-000000.jsonl", &["/f/a@b/sessions/20260101-000000.jsonl"]),
            // The sidecar describes the project.
            ("sage-el", "/e/projects/p/conversation.jsonl", &["/e/projects/p/conversation.jsonl"]),
            ("sage-el", "/e/projects/p/history/1.jsonl", &["/e/projects/p/history/1.jsonl"]),
            ("codex", "/x/sessions/2026/01/02/rollout-1.jsonl", &["/x/sessions/2026/01/02/rollout-1.jsonl"]),
            ("ai-sdk", "/a/chats/x.json", &["/a/chats/x.json"]),
        ] {
            let source = Source::file(dialect::named(dialect).unwrap(), Path::new(path));
            let mut own: Vec<String> = belongings(&source).iter().map(|path| path.display().to_string()).collect();
            // The original of a converted session is beside it.
            if own.len() > 1 {
                let beside = own.split_off(own.len() - 2);
                assert_eq!(beside, ["json", "original"].map(|ending| format!("{path}.scrollback.{ending}")));
            }
            assert_eq!(own, expected, "{dialect} {path}");
        }
    }
}
