//! `scrollback` alone on a terminal: the newest sessions, or how to begin if there are none.

use std::process::ExitCode;

use super::list::{self, ListArgs};
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::session::scope;
use crate::terminal::clean;

/// How many folders the page names: the line is to fit into 80 columns.
const NAMED_FOLDERS: usize = 3;

pub(crate) fn run(global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let places = scope::places(global, ctx)?;
    // A place that cannot be read is one that `list` reports.
    if !places.sources().is_empty() {
        return list::run(&ListArgs::newest(), global, ctx);
    }
    let page = page(&scope::folders(&places), list::unsupported_note(ctx).as_deref());
    ctx.line(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// Five lines for somebody who has no session yet, and one about sessions that cannot be read.
fn page(folders: &[Vec<String>], unsupported: Option<&str>) -> String {
    // The first folder of an agent is the one that its users know.
    let named: Vec<&str> =
        folders.iter().filter_map(|folders| Some(folders.first()?.as_str())).take(NAMED_FOLDERS).collect();
    let more = match folders.iter().map(Vec::len).sum::<usize>() - named.len() {
        0 => String::new(),
        more => format!(" or {more} more"),
    };
    let unsupported = unsupported.map(|note| format!("{note}\n")).unwrap_or_default();
    format!(
        "Welcome to scrollback, the session history of every AI agent, in one place.\n\
         No session in {}{more}.\n{}  \
         scrollback --demo list         look around in the bundled demo sessions\n  \
         scrollback list --store DIR    read sessions that are somewhere else\n  \
         scrollback --help              see every command",
        clean::line(&named.join(", ")),
        unsupported
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_has_five_lines() {
        let folders = [
            vec!["~/.claude/projects".to_owned()],
            vec!["~/.codex/sessions".to_owned(), "~/.codex/archived_sessions".to_owned()],
            vec!["~/.qwen/projects".to_owned()],
            vec!["~/.sage/sessions".to_owned()],
        ];
        insta::assert_snapshot!(page(&folders, None), @"
        Welcome to scrollback, the session history of every AI agent, in one place.
        No session in ~/.claude/projects, ~/.codex/sessions, ~/.qwen/projects or 2 more.
          scrollback --demo list         look around in the bundled demo sessions
          scrollback list --store DIR    read sessions that are somewhere else
          scrollback --help              see every command
        ");
        let page = page(&folders, Some("2 Gemini CLI sessions: not supported yet."));
        assert!(page.contains("or 2 more.\n2 Gemini CLI sessions: not supported yet.\n  scrollback --demo"), "{page}");
    }
}
