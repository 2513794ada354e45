//! sage for Emacs: one JSONL file per project, `~/.emacs.d/sage/projects/<encoded path>/conversation.jsonl`, and its
//! archives in `history/`. A line is a message; the order of lines is the conversation.
//!
//! The facts, with the versions they were seen in: docs/dialects/sage-el.md.

mod body;
mod folder_name;
mod line;
mod profile;
mod write;

use std::path::Path;

pub use folder_name::{aligned_sage_folder_name, sage_folder_name};
pub use profile::faults;

use super::{Dialect, Event, RepeatedId, SessionFacts, Traits};
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::json;
use crate::model::lenient::RawObject;
use crate::model::record::Body;
use line::Line;

/// The dialect of sage for Emacs.
pub struct SageEl;

/// The file of a project's current conversation.
const CURRENT: &str = "conversation.jsonl";

impl Dialect for SageEl {
    fn name(&self) -> &'static str {
        "sage-el"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        // Emacs's own folder in its two places, then the presets `standalone` and `claude-shared`.
        let emacs = home.var_or("XDG_CONFIG_HOME", ".config").join("emacs/sage");
        let stores = [home.dir.join(".emacs.d/sage"), emacs, home.dir.join(".sage"), home.dir.join(".claude")];
        stores.iter().flat_map(|store| self.layouts_in(store)).collect()
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        [("*/conversation.jsonl", "metadata.json"), ("*/history/*.jsonl", "../metadata.json")]
            .map(|(pattern, sidecar)| Layout {
                sidecar: Some(sidecar),
                ..Layout::lines(store.join("projects"), pattern)
            })
            .into()
    }

    fn traits(&self) -> Traits {
        Traits { has_ids_in_names: false, ..Traits::new(RepeatedId::Distinct) }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        json::from_str(text).is_ok_and(|line: Line<'_>| line.is_recognized())
    }

    fn resembles(&self, text: &str) -> bool {
        line::is_current(text)
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        // `metadata.json` is about a project, not about one conversation. Its counts come from memory and are not read.
        let sidecar: RawObject<'a> = json::from_str(text)?;
        emit(Event::Facts(SessionFacts {
            cwd: sidecar.text("project_dir"),
            version: sidecar.text("tca_version"),
            model: sidecar.text("model"),
            ..SessionFacts::default()
        }));
        Ok(())
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    /// The id of a project's current conversation is the name of its folder, without the leading dashes: a shell command
    /// would take them for an option.
    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        let folder = path.parent().filter(|_| path.ends_with(CURRENT))?.file_name()?.to_string_lossy();
        Some(folder.trim_start_matches('-').to_owned()).filter(|name| !name.is_empty())
    }
}
