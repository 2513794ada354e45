//! The pager: `$SCROLLBACK_PAGER`, else `pager` in the config file, else `$PAGER`, else `less`; without one, output is not paged.

use std::process::{Child, ChildStdin, Command, Stdio};

use scrollback::model::Home;

/// A running pager.
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts the pager at a line; `None` if there is no pager.
    pub(crate) fn start(home: &Home, configured: Option<&str>, from_line: usize) -> Option<(Pager, ChildStdin)> {
        let var = |name| home.vars.get(name).map(String::as_str);
        let chosen = var("SCROLLBACK_PAGER").or(configured).or_else(|| var("PAGER"));
        let chosen = chosen.map_or("less", str::trim);
        if chosen.is_empty() || chosen == "cat" {
            return None;
        }
        let mut words = chosen.split_whitespace();
        let program = words.next()?;
        let mut command = Command::new(program);
        command.args(words);
        if program.rsplit('/').next() == Some("less") {
            if from_line > 0 {
                command.arg(format!("+{}", from_line + 1));
            }
            if !home.vars.contains_key("LESS") {
                // Quit if the text fits on one screen, keep colours, leave the text on the screen.
                command.env("LESS", "FRX");
            }
        }
        let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
        let input = child.stdin.take()?;
        Some((Pager(child), input))
    }

    pub(crate) fn wait(mut self) {
        // If waiting fails, the pager has ended.
        drop(self.0.wait());
    }
}
