//! `export --to sqlite`: rows for each session, message and part.

use std::path::Path;
use std::process::ExitCode;

use scrollback::session::{Bridge, Session};
use scrollback::transfer::tables::{StoredRows, Tables};
use scrollback::view::find::SessionName;
use scrollback::view::listing::Depth;
use serde_json::json;

use crate::args::Global;
use crate::commands::FOUND_PROBLEMS;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::redaction;
use crate::render::plural;
use crate::session::{name, scope};
use crate::terminal::clean;

pub(super) fn run(names: &[SessionName], output: &Path, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let is_everything = global.all || global.project.is_some() || global.store.is_some() || ctx.demo;
    if names.is_empty() && !is_everything {
        let failure = Failure::new(FailureKind::Usage, "no session is named");
        return Err(failure.hint("name a session, or add --all for every session"));
    }
    // What is in a file leaves, wherever the command was typed.
    let mask = if ctx.is_not_redacting() { None } else { Some(redaction::for_reading(ctx)?) };
    let path = ctx.typed_in.join(output);
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        return Err(Failure::new(FailureKind::Usage, format!("{} is no folder", folder.display())));
    }
    let host = ctx.host();
    // Nothing is made before there is something to store.
    let mut tables = None;
    let (mut sessions, mut unreadable, mut all) = (0, 0, StoredRows::default());
    let mut store = |session: &Session| -> Result<(), Failure> {
        let tables = match &mut tables {
            Some(tables) => tables,
            none => none.insert(Tables::open(&path, &host)?),
        };
        let stored = tables.store(session)?;
        sessions += 1;
        all = StoredRows {
            added: all.added + stored.added,
            changed: all.changed + stored.changed,
            removed: all.removed + stored.removed,
        };
        Ok(())
    };
    // A name that is wrong is known before anything is stored.
    let named: Vec<_> = names.iter().map(|name| name::resolve(name, global, ctx)).collect::<Result<_, _>>()?;
    for named in named {
        store(&named.located.open(global, ctx, Bridge::AsTheAgent, None, mask.as_ref())?)?;
    }
    if names.is_empty() {
        let found = scope::found(global, ctx, Depth::Ends)?;
        let places = found.archive.places();
        for (_, source) in &found.rows {
            let find = places.finder(source);
            let reading =
                scrollback::ReadOptions { find: &find, mask: mask.as_ref(), ..scrollback::ReadOptions::plain(ctx.now) };
            match Session::open(source, &reading) {
                Ok(session) => store(&session)?,
                Err(error) => {
                    unreadable += 1;
                    ctx.warn(&error.into())?;
                }
            }
        }
    }
    let StoredRows { added, changed, removed } = all;
    if ctx.json {
        ctx.print_json(&json!({
            "path": path.to_string_lossy(), "sessions": sessions, "added": added, "changed": changed, "removed": removed,
        }))?;
    } else {
        ctx.line(&clean::line(&path.to_string_lossy()))?;
        ctx.note(&format!(
            "{}: {added} messages added, {changed} changed, {removed} removed.",
            plural(sessions, "session")
        ))?;
    }
    Ok(if unreadable > 0 { ExitCode::from(FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}
