//! `replay`: plays a session in the terminal, in the time that it took.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use scrollback::model::Sdk;
use scrollback::session::{Bridge, Session};
use scrollback::view::find::SessionName;
use scrollback::view::replay::{Frame, frames};
use scrollback::view::{Conversation, listing};
use serde_json::json;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::live::Live;
use crate::render::message::Detail;
use crate::session::{located, name};
use crate::terminal::keys::{Keys, Pressed};

/// Play a session again, in the time that it took
///
/// Shows the messages of the newest branch (with SESSION#ID: from that message on) part by part, as `tail` showed them when they were
/// written, with the pauses between them; a pause of more than 3 seconds is shortened to 3. Any key ends a pause, and q or Ctrl-C ends the
/// replay. If standard output is not a terminal, nothing is waited for.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// Session id, unique prefix, @, a path, or -
    #[arg(allow_hyphen_values = true)]
    session: SessionName,
    /// Play N times as fast; less than 1 is slower
    #[arg(long, value_name = "N", value_parser = speed, default_value = "1")]
    speed: f64,
    /// Wait for a key before each step
    ///
    /// At a terminal.
    #[arg(long, conflicts_with = "speed")]
    step: bool,
    /// Unfold tool calls and thinking
    #[arg(long)]
    full: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback replay @ --speed 4
  scrollback --demo replay 3f8a --step";

/// A slower replay would stand still.
const SLOWEST: f64 = 0.01;

fn speed(typed: &str) -> Result<f64, String> {
    let speed = typed.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed >= SLOWEST);
    speed.ok_or_else(|| format!("use a number of at least {SLOWEST}, such as 4"))
}

pub(crate) fn run(args: &ReplayArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let named = name::resolve(&args.session, global, ctx)?;
    let mut session = named.located.open(global, ctx, Bridge::AsTheAgent, None, ctx.mask.clone().as_ref())?;
    if let Some(summary) = listing::summary_elsewhere(&session) {
        session.title_from_summary(summary);
    }
    let at = named.record.as_deref().map(|record| name::record(&session, record)).transpose()?;
    let Some(head) = session.head() else { return Err(located::no_records(&session)) };
    let branch = session.branch(head);
    if let Some(at) = at.filter(|at| !branch.records.contains(at)) {
        let failure = Failure::new(FailureKind::Usage, format!("record {} is not on the newest branch", at.id()));
        return Err(failure.hint("run `scrollback show SESSION#RECORD` to see that branch"));
    }
    let conversation = Conversation::new(&branch);
    if conversation.is_empty() {
        return Err(Failure::new(FailureKind::NotFound, format!("session {} has no messages", session.id())));
    }
    let first = at.and_then(|at| conversation.position(at)).unwrap_or(0);
    let frames = frames(&branch, &conversation, first);
    if ctx.json {
        return print_json(&session, &conversation, &frames, ctx);
    }
    let shown = if ctx.on_terminal { frames } else { last_of_each(frames) };
    let keys = ctx.on_terminal.then(Keys::listen).transpose()?;
    if keys.is_some() {
        let title = &session.row()?.title;
        let how = if args.step { "press a key for the next step" } else { "press q or Ctrl-C to stop" };
        ctx.note(&format!("Playing {title}; {how}."))?;
    }
    let (mut live, detail) = (Live::default(), Detail { full: args.full });
    for Frame { message, records, pause, .. } in shown {
        let Some(message) = conversation.message_after(message, records).transpose()? else { continue };
        let text = live.news(&message, ctx, detail, ctx.prose());
        if text.is_empty() {
            continue;
        }
        let pressed = match &keys {
            None => Pressed::Nothing,
            Some(keys) if args.step => keys.wait(),
            Some(keys) => keys.pause(at_speed(pause, args.speed)),
        };
        if pressed == Pressed::Quit {
            break;
        }
        ctx.out.write_all(text.as_bytes())?;
        if keys.is_some() {
            ctx.out.flush()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn at_speed(pause: Duration, speed: f64) -> Duration {
    Duration::try_from_secs_f64(pause.as_secs_f64() / speed).unwrap_or(pause)
}

/// Each message once, when it was complete: for those who do not watch it grow.
fn last_of_each(frames: Vec<Frame>) -> Vec<Frame> {
    let mut last: Vec<Frame> = Vec::new();
    for frame in frames {
        match last.iter_mut().rev().find(|known| known.message == frame.message) {
            Some(known) => (known.records, known.at) = (frame.records, frame.at),
            None => last.push(frame),
        }
    }
    last
}

/// Each message on a line, with the pause before it.
fn print_json(
    session: &Session,
    conversation: &Conversation<'_, '_>,
    frames: &[Frame],
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    for Frame { message, records, pause, .. } in last_of_each(frames.to_vec()) {
        let Some(message) = conversation.message_after(message, records).transpose()? else { continue };
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        ctx.print_json_line(&json!({
            "type": "message", "session": session.id(), "pauseMs": pause_ms, "message": message.for_sdk(Sdk::V7),
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}
