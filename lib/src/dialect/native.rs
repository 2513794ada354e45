//! Our own format: Sage Agent's, versioned, with more kinds. One JSON object per line, a tree by `parentUuid`.
//!
//! docs/format.md shows a line of every kind; docs/dialects/native.md describes what differs in files of Sage.

mod body;
mod line;
mod part;
mod record_class;
mod snapshot;
mod write;

use std::path::{Path, PathBuf};

use super::{Dialect, Event, RepeatedId, SessionFacts, Traits};
use crate::dialect::layout::Layout;
use crate::dialect::writer::Writer;
use crate::model::home::Home;
use crate::model::json;
use crate::model::lenient::RawObject;
use crate::model::record::{Body, TitleSource};
use line::Line;

/// The newest version of the format that this program writes.
const FORMAT: u64 = 2;

/// The native dialect.
pub struct Native;

impl Dialect for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn layouts(&self, home: &Home) -> Vec<Layout> {
        let own = home.data().join("sessions");
        let sage = home.dir.join(".sage/sessions");
        let projects = home.cwd_up_to_git_root().map(|dir| dir.join(".sage/sessions"));
        let mut roots = vec![own, sage];
        for root in projects {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        roots.into_iter().map(layout).collect()
    }

    fn layouts_in(&self, store: &Path) -> Vec<Layout> {
        vec![layout(store.join("sessions"))]
    }

    fn traits(&self) -> Traits {
        Traits { snapshots_from_root: true, ..Traits::new(RepeatedId::Join) }
    }

    fn link<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        let line: Line<'a> = json::from_str(text)?;
        line.link(text, emit);
        Ok(())
    }

    fn recognizes(&self, text: &str) -> bool {
        json::from_str(text).is_ok_and(|line: Line<'_>| line.is_recognized())
    }

    fn session_id_from_path(&self, path: &Path) -> Option<String> {
        let folder = path.parent().filter(|_| path.ends_with("messages.jsonl"))?;
        Some(folder.file_name()?.to_string_lossy().into_owned())
    }

    /// As Sage's format description has it; Sage itself keeps its copies in the project.
    fn file_history(&self, _store: &Path, log: &Path) -> Option<PathBuf> {
        Some(log.with_file_name("backups"))
    }

    fn sidecar<'a>(&self, text: &'a str, emit: &mut dyn FnMut(Event<'a>)) -> Result<(), serde_json::Error> {
        // `metadata.json`, as Sage writes it.
        let sidecar: RawObject<'a> = json::from_str(text)?;
        emit(Event::Facts(SessionFacts {
            session: sidecar.text("id"),
            cwd: sidecar.text("workingDirectory"),
            git_branch: sidecar.text("gitBranch"),
            version: sidecar.text("version"),
            model: sidecar.text("model"),
            parent_session: sidecar.text("parentSessionId"),
            ..SessionFacts::default()
        }));
        for (key, source) in [("customTitle", TitleSource::Manual), ("summary", TitleSource::Summary)] {
            if let Some(text) = sidecar.text(key) {
                emit(Event::Title { text, source });
            }
        }
        Ok(())
    }

    fn writer(&self) -> Option<&'static Writer> {
        Some(&write::WRITER)
    }

    fn body(&self, text: &str) -> Body {
        body::parse(text)
    }
}

fn layout(root: PathBuf) -> Layout {
    Layout {
        companions: &["snapshots.jsonl"],
        sidecar: Some("metadata.json"),
        ..Layout::lines(root, "*/messages.jsonl")
    }
}
