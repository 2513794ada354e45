//! `rewind`: a session goes on from an earlier record.

use std::process::ExitCode;

use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::name;
use crate::session::warnings;
use crate::session::writable::Writable;
use crate::terminal::clean;

/// Let a session go on from an earlier record
///
/// A record is appended that says so: nothing is removed, and what was left stays a branch that `tree` shows. Files are not touched.
/// Formats that are one line of records have no branches: fork such a session, or convert it to native.
#[derive(clap::Args, Debug)]
pub(crate) struct RewindArgs {
    /// The record to go on from: SESSION#RECORD
    #[arg(value_name = "SESSION#RECORD")]
    session: SessionName,
    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) fn run(args: &RewindArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let unnamed = |session: &str| {
        let failure = Failure::new(FailureKind::Usage, "no record was named");
        failure.hint(format!("say {}#RECORD; `scrollback tree` shows every record", clean::line(session)))
    };
    if let Some(session) = args.session.typed().strip_suffix('#') {
        return Err(unnamed(session));
    }
    let writable = Writable::find(&args.session, global, ctx)?;
    let Some(to) = &writable.record else { return Err(unnamed(&writable.id())) };
    let to = name::record(&writable.session, to)?.id().into_owned();
    let left = writable.session.head().map(|head| head.id().into_owned());
    let rewound = writable.store()?.rewind(&writable.source, &to, args.reason.clone())?;
    warnings::tell_all(&rewound.warnings, ctx)?;
    if ctx.json {
        ctx.print_json(&writable.done(rewound.ack.id().map(ToString::to_string)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let id = writable.id();
    ctx.line(&format!("{} goes on from {}", clean::line(&id), clean::line(&to)))?;
    if let Some(left) = left.filter(|left| *left != to) {
        ctx.note(&format!("What was left stays a branch: `scrollback rewind {id}#{left}` takes this back."))?;
    }
    Ok(ExitCode::SUCCESS)
}
