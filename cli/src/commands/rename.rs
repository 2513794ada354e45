//! `rename`: sets the title of a session.

use std::process::ExitCode;

use scrollback::model::{Title, TitleSource};
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::redaction;
use crate::session::name;
use crate::session::warnings;
use crate::session::writable::Writable;
use crate::terminal::clean;

/// Set the title of a session
///
/// Appends the title to the session as a record; nothing else in the file changes. The last title counts.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RenameArgs {
    /// Session id, unique prefix, @, or a path
    session: SessionName,
    /// New title
    title: String,
}

const EXAMPLES: &str = "\
Examples:
  scrollback rename @ 'Tide tables for Brest'
  scrollback rename 3f8a 'Lighthouse keepers'";

pub(crate) fn run(args: &RenameArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let invalid = |why| Failure::new(FailureKind::Usage, "invalid title").hint(why);
    let title = &Title::checked(&args.title).map_err(invalid)?;
    let writable = Writable::find(&args.session, global, ctx)?;
    if let Some(record) = &writable.record {
        name::record(&writable.session, record)?;
    }
    let before = writable.session.title().filter(|title| title.source == TitleSource::Manual).cloned();
    let new = Title { text: title.to_owned(), source: TitleSource::Manual };
    let store = writable.store()?.with_options(redaction::options(global, ctx)?);
    redaction::make_key_for_recording(ctx)?;
    let renamed = store.rename(&writable.source, new)?;
    warnings::print(&renamed.warnings, ctx)?;
    if ctx.json {
        ctx.print_json(&writable.done(renamed.entry.id().map(ToString::to_string)))?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&format!("renamed {} to {:?}", clean::line(&writable.id()), clean::line(title)))?;
    if let Some(before) = before {
        ctx.note(&format!("The title was {:?}; rename the session again to undo.", before.text))?;
    }
    Ok(ExitCode::SUCCESS)
}
