//! `scrollback` alone on a terminal: the newest sessions, or how to begin if there are none.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::list::{self, ListArgs};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::session::scope;
use crate::terminal::clean;

/// How many folders the page names: the line is to fit into 80 columns.
const NAMED_FOLDERS: usize = 2;

pub(crate) fn run(global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let places = scope::places(global, ctx)?;
    // A place that cannot be read is one that `list` reports.
    if !places.sources().is_empty() {
        return list::run(&ListArgs::newest(), global, ctx);
    }
    let page = page(&places.roots(), &ctx.home.dir);
    ctx.line(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// Five lines for somebody who has no session yet.
fn page(folders: &[PathBuf], home: &Path) -> String {
    // An agent's folder in the home is short, and known to its user.
    let below_home = folders.iter().filter_map(|folder| folder.strip_prefix(home).ok()?.components().next());
    let mut names: Vec<String> = below_home.map(|agent| format!("~/{}", agent.as_os_str().display())).collect();
    names.dedup();
    names.truncate(NAMED_FOLDERS);
    let more = folders.len() - names.len();
    let more = if more > 0 {
        format!("{}{more} more folders", if names.is_empty() { "" } else { " and " })
    } else {
        String::new()
    };
    format!(
        "Welcome to scrollback, the session history of every AI agent, in one place.\n\
         There is no session yet in {}{more}.\n  \
         scrollback --demo list         look around in the bundled demo sessions\n  \
         scrollback list --store DIR    read sessions that are somewhere else\n  \
         scrollback --help              see every command",
        clean::line(&names.join(", "))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_has_five_lines() {
        let folders =
            ["/c", "/home/ada/.claude/projects", "/home/ada/.codex/a", "/home/ada/.codex/b"].map(PathBuf::from);
        assert_eq!(
            page(&folders, Path::new("/home/ada")),
            "Welcome to scrollback, the session history of every AI agent, in one place.\n\
             There is no session yet in ~/.claude, ~/.codex and 2 more folders.\n  \
             scrollback --demo list         look around in the bundled demo sessions\n  \
             scrollback list --store DIR    read sessions that are somewhere else\n  \
             scrollback --help              see every command"
        );
    }
}
