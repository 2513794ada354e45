//! `rewind`: continues a session from an earlier record.

use std::process::ExitCode;

use scrollback::view::find::SessionName;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::session::name;
use crate::session::resume;
use crate::session::warnings;
use crate::session::writable::Writable;
use crate::terminal::clean;

/// Continue a session from an earlier record
///
/// Appends a rewind record. Nothing is removed: later records stay as a branch that `tree` shows. The files of the project do not change.
/// Formats without branches cannot be rewound: fork such a session, or convert it to native.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RewindArgs {
    /// Record to continue from, or with --to its session
    #[arg(value_name = "SESSION#RECORD")]
    session: SessionName,
    /// Continue from this record, or from the `start`, before the first prompt (only native)
    #[arg(long, value_name = "RECORD")]
    to: Option<String>,
    /// Record the reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  scrollback rewind @#a1
  scrollback rewind 3f8a#u2 --reason 'wrong file'
  scrollback rewind 3f8a --to start";

/// The name of the place before the first record.
const START: &str = "start";

pub(crate) fn run(args: &RewindArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let unnamed = |session: &str| {
        let failure = Failure::new(FailureKind::Usage, "no record named");
        let session = clean::line(session);
        failure
            .hint(format!("use {session}#RECORD; run `scrollback tree {session}` to see its turns and their records"))
    };
    if let Some(session) = args.session.typed().strip_suffix('#') {
        return Err(unnamed(session));
    }
    let writable = Writable::find(&args.session, global, ctx)?;
    let to = match (&writable.record, &args.to) {
        (Some(_), Some(_)) => {
            let failure = Failure::new(FailureKind::Usage, "two records named");
            return Err(failure.hint("use either SESSION#RECORD or --to RECORD"));
        }
        (Some(to), None) | (None, Some(to)) => to,
        (None, None) => return Err(unnamed(&writable.id())),
    };
    let to_start = args.to.as_deref() == Some(START) && writable.session.find(START).is_err();
    let to = if to_start { START.to_owned() } else { name::record(&writable.session, to)?.id().into_owned() };
    let left = writable.session.head().map(|head| head.id().into_owned());
    let (store, reason) = (writable.store()?, args.reason.clone());
    let rewound = match to_start {
        true => store.rewind_to_start(&writable.source, reason)?,
        false => store.rewind(&writable.source, &to, reason)?,
    };
    warnings::print(&rewound.warnings, ctx)?;
    if ctx.json {
        ctx.print_json(&writable.done(rewound.entry.id().map(ToString::to_string)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let id = writable.id();
    ctx.line(&format!("rewound {} to {}", clean::line(&id), clean::line(&to)))?;
    if let Some(left) = left.filter(|left| *left != to) {
        ctx.note(&format!("Later records stay as a branch; run `scrollback rewind {id}#{left}` to undo."))?;
    }
    resume::print_resume_line(writable.resumable(&id), ctx)?;
    Ok(ExitCode::SUCCESS)
}
