//! `rename`: a session gets a title.

use std::process::ExitCode;

use scrollback::model::record::{Title, TitleSource};
use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::warnings;
use crate::session::writable::Writable;
use crate::terminal::clean;

/// Give a session a title
///
/// The title is appended to the session as a record: nothing that is there changes, and of several titles the last one counts.
#[derive(clap::Args, Debug)]
pub(crate) struct RenameArgs {
    /// Session id, unique beginning, @, or a path
    session: SessionName,
    /// The new title
    title: String,
}

pub(crate) fn run(args: &RenameArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let no_title = |why| Failure::new(FailureKind::Usage, "that is no title").hint(why);
    let title = &Title::checked(&args.title).map_err(no_title)?;
    let writable = Writable::find(&args.session, global, ctx)?;
    let before = writable.session.title().filter(|title| title.source == TitleSource::Manual).cloned();
    let new = Title { text: title.to_owned(), source: TitleSource::Manual };
    let renamed = writable.store()?.rename(&writable.source, new)?;
    warnings::tell_all(&renamed.warnings, ctx)?;
    if ctx.json {
        ctx.print_json(&writable.done(renamed.ack.id().map(ToString::to_string)))?;
        return Ok(ExitCode::SUCCESS);
    }
    ctx.line(&format!("{} is called {:?} now", clean::line(&writable.id()), clean::line(title)))?;
    if let Some(before) = before {
        ctx.note(&format!("It was {:?}: `scrollback rename` with that takes it back.", before.text))?;
    }
    Ok(ExitCode::SUCCESS)
}
