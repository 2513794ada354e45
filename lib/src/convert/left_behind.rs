//! What a session has besides its first file, and what a conversion therefore leaves where it is.

use std::fs;
use std::path::PathBuf;

use super::LossRow;
use crate::session::Session;
use crate::trash::belongings;

/// So many files and folders are counted: a session has a handful, and a folder is anybody's to fill.
const FILES_COUNTED: u64 = 10_000;

/// The rows of what stays behind. A copy leaves what the session begins in and what lies beside it, too: only its own lines go along.
pub(super) fn rows(session: &Session, is_new_kind: bool) -> Vec<LossRow> {
    let (sub_agents, blobs) = count(session);
    let inherited = session.records().filter(|record| record.is_inherited()).count() as u64;
    let companions = session.files.0.len().saturating_sub(1) as u64;
    let only_copied = |count: u64| if is_new_kind { 0 } else { count };
    let found = [
        ("sub-agent session", sub_agents),
        ("blobs", blobs),
        ("base", only_copied(inherited.min(1))),
        ("snapshot", only_copied(companions)),
    ];
    let found = found.into_iter().filter(|(_, count)| *count > 0);
    found.map(|(what, count)| session.lost_beside(what, count)).collect()
}

/// The sub-agents' sessions and the other files in the folders that are this session's.
fn count(session: &Session) -> (u64, u64) {
    let source = &session.source;
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    // A folder that holds the session itself holds nothing of others.
    let own = belongings(source).into_iter().filter(|path| is_folder(path) && !source.path.starts_with(path));
    let mut folders: Vec<PathBuf> = own.collect();
    let (mut sub_agents, mut blobs, mut seen) = (0, 0, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                _ if seen > FILES_COUNTED => return (sub_agents, blobs),
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) if name.starts_with("agent-") && name.ends_with(".jsonl") => sub_agents += 1,
                // What describes a sub-agent's session goes with it.
                Ok(_) if name.starts_with("agent-") => {}
                Ok(_) => blobs += 1,
                Err(_) => {}
            }
        }
    }
    (sub_agents, blobs)
}
