//! What a session has besides its first file, and a conversion skips.

use std::fs;
use std::path::PathBuf;

use crate::model::loss::Lost;
use crate::model::record::Kind;
use crate::session::Session;
use crate::write::trash::belongings;

/// How many files and folders are counted: any program can fill a folder.
const FILES_COUNTED: u64 = 10_000;

/// What happens to a session's own lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// They are copied; the session that this one begins in, and the files beside it, are not.
    Copied,
    /// They are replayed, with everything that they refer to.
    Replayed,
}

/// How many of the other files are named: a person knows by a few what they are.
const FILES_NAMED: usize = 3;

/// The names of the first other files, as sorted.
pub(super) fn other_files(session: &Session) -> Vec<String> {
    let mut names = own_files(session).1;
    names.sort_unstable();
    names.truncate(FILES_NAMED);
    names
}

/// What is skipped, and how many of each.
pub(super) fn found(session: &Session, lines: Lines) -> Vec<(Lost, u64)> {
    let (sub_agents, others) = own_files(session);
    let inherited = session.records().filter(|record| record.is_inherited()).count() as u64;
    // A session that begins in another one has that one's files open, too.
    let is_there = |name: &&&str| session.path().with_file_name(name).is_file();
    let companions = session.source.layout.companions.iter().filter(is_there).count() as u64;
    let only_copied = |count: u64| if lines == Lines::Copied { count } else { 0 };
    let mut found = vec![
        (Lost::SubAgentSession, sub_agents),
        (Lost::OtherFiles, others.len() as u64),
        (Lost::Base, only_copied(inherited.min(1))),
        (Kind::Snapshot.into(), only_copied(companions)),
    ];
    found.retain(|(_, count)| *count > 0);
    found
}

/// How many sub-agents' sessions are in the folders that are this session's, and the names of the other files there.
fn own_files(session: &Session) -> (u64, Vec<String>) {
    let source = &session.source;
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    // A folder with the session itself has only its own files.
    let own = belongings(source).into_iter().filter(|path| is_folder(path) && !source.path.starts_with(path));
    let mut folders: Vec<PathBuf> = own.collect();
    let (mut sub_agents, mut others, mut seen) = (0, Vec::new(), 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                _ if seen > FILES_COUNTED => return (sub_agents, others),
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) if name.starts_with("agent-") && name.ends_with(".jsonl") => sub_agents += 1,
                // It describes a sub-agent's session, which is counted.
                Ok(_) if name.starts_with("agent-") => {}
                Ok(_) => others.push(name),
                Err(_) => {}
            }
        }
    }
    (sub_agents, others)
}
