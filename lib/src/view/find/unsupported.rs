//! How many sessions a home has of agents that cannot be read yet.

use crate::dialect::layout::Format;
use crate::dialect::unsupported::UNSUPPORTED;
use crate::model::home::Home;
use crate::session::read::rows;

/// Sessions of an agent that cannot be read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    /// The agent.
    pub agent: &'static str,
    /// How many there are; `None` if that cannot be read either.
    pub count: Option<usize>,
}

/// The agent that somebody means by this name, if its sessions cannot be read yet: `gemini`, `copilot-cli`.
pub fn unsupported_agent(typed: &str) -> Option<&'static str> {
    let is_meant = |name: &str| {
        let name = name.to_lowercase().replace(' ', "-");
        name.strip_suffix("-cli").unwrap_or(&name) == typed.strip_suffix("-cli").unwrap_or(typed)
    };
    UNSUPPORTED.iter().map(|agent| agent.name).find(|name| is_meant(name))
}

/// The agents with such sessions in this home. Their files are counted by name and not opened; a database is asked.
pub fn unsupported(home: &Home) -> Vec<Unsupported> {
    let counted = UNSUPPORTED.iter().map(|agent| {
        let layout = agent.layout(home);
        let files = layout.files().into_iter().filter_map(Result::ok);
        let in_file = |file: std::path::PathBuf| match layout.format {
            Format::Rows(rows) => rows::sessions(&file, rows).ok().map(|sessions| sessions.len()),
            Format::Lines | Format::Document | Format::ByContent { .. } => Some(1),
        };
        Unsupported { agent: agent.name, count: files.map(in_file).sum() }
    });
    counted.filter(|agent| agent.count != Some(0)).collect()
}
