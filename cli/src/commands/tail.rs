//! `tail`: follows sessions while they grow.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;
use scrollback::model::Sdk;
use scrollback::session::{Bridge, ReadOptions, Source};
use scrollback::view::Conversation;
use scrollback::view::find::SessionName;
use scrollback::view::listing::Depth;
use scrollback::view::stream::{Begin, Follower, Following, Growing, Wake, Watch, WatchBy};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::notify::{How, Notifier};
use crate::render::message::Detail;
use crate::render::printer::{Form, Label, Printer};
use crate::session::located::Located;
use crate::session::name::{self, Named};
use crate::session::scope;
use crate::terminal::interrupt::on_interrupt;

/// Follow sessions while they grow
///
/// Shows the last messages of a session (with SESSION#ID: from that message on), then each new one, part by part, until Ctrl-C. Without
/// SESSION, it follows the sessions of this project, starting with the newest; with --all, the sessions of every project. Sessions that
/// start later are followed too, and so are files that are truncated, replaced or deleted.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct TailArgs {
    /// Session id, unique prefix, @, a path, or -
    #[arg(allow_hyphen_values = true)]
    session: Option<SessionName>,
    /// Start with the last N messages of the session, or of the newest one (default: 4, or `tail.last` in the config file)
    ///
    /// Piped input is shown from its start.
    #[arg(long, short = 'n', value_name = "N")]
    last: Option<usize>,
    /// Follow sub-agents' sessions too
    #[arg(long)]
    sidechains: bool,
    /// Unfold tool calls and thinking
    #[arg(long)]
    full: bool,
    /// Print each update as one JSON object per line
    #[arg(long, conflicts_with = "chunks")]
    jsonl: bool,
    /// Print the chunks of the AI SDK's UI message stream, one per line (for one session)
    #[arg(long)]
    chunks: bool,
    /// Print messages and chunks for this major version of the AI SDK
    #[arg(long, value_name = "MAJOR", default_value = "7")]
    sdk: Sdk,
    /// Say when an agent has finished or waits for you (default: `tail.notify` in the config file, else bell)
    ///
    /// An agent has finished when nothing follows its answer for 2 seconds; it waits if it asks for your approval, a plan or a question, and
    /// may wait if a call has no result for 15 seconds.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    notify: Option<Vec<How>>,
    /// Run this command line then, by the shell
    ///
    /// SCROLLBACK_EVENT is `finished` or `waiting`; SCROLLBACK_SESSION, SCROLLBACK_TITLE and SCROLLBACK_TEXT say more.
    #[arg(long, value_name = "COMMAND")]
    notify_command: Option<String>,
    /// Poll the files instead of waiting for file events
    #[arg(long)]
    poll: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback tail
  scrollback tail --all --jsonl
  scrollback tail --all --notify=desktop";

impl TailArgs {
    /// How many messages of a session are shown before it changes.
    fn last(&self, ctx: &Ctx) -> usize {
        const DEFAULT_MESSAGES: usize = 4;
        self.last.or(ctx.config.tail_last()).unwrap_or(DEFAULT_MESSAGES)
    }

    /// Who says that an agent has finished; nobody unless somebody asked for it.
    fn notifier(&self, ctx: &Ctx) -> Option<Notifier> {
        let set = |name: &str| ctx.config.get(name)?.as_str().map(str::to_owned);
        let usual = || set("tail.notify").and_then(|how| How::from_str(&how, true).ok()).unwrap_or(How::Bell);
        let how = self.notify.clone().map(|how| if how.is_empty() { vec![usual()] } else { how });
        if how.is_none() && self.notify_command.is_none() {
            return None;
        }
        let command = self.notify_command.clone().or_else(|| set("tail.notify-command"));
        Some(Notifier::new(how.unwrap_or_default(), command))
    }
}

/// How much of a pipe is read at a time.
const PIPE_READ_BYTES: usize = 64 * 1024;

pub(crate) fn run(args: &TailArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    ctx.json |= args.jsonl || args.chunks;
    if args.chunks && args.session.is_none() && global.all {
        let failure = Failure::new(FailureKind::Usage, "--chunks can follow only one session");
        return Err(failure.hint("name the session, or use --jsonl"));
    }
    let form = match (args.chunks, ctx.json) {
        (true, _) => Form::Chunks,
        (false, true) => Form::Updates,
        (false, false) => {
            Form::Text { detail: Detail { full: args.full }, named: args.session.is_none() && global.all }
        }
    };
    let mut printer = Printer::new(form, args.sdk);
    printer.notifier = args.notifier(ctx);
    match &args.session {
        Some(name) if name.typed() == "-" => follow_pipe(std::io::stdin().lock(), &mut printer, global, ctx)?,
        None if !args.chunks => follow_all(&mut printer, args, global, ctx)?,
        name => {
            let newest = || "@".parse().map_err(|why: &str| Failure::new(FailureKind::Usage, why));
            let name: SessionName = name.clone().map_or_else(newest, Ok)?;
            let Named { located, record, .. } = name::resolve(&name, global, ctx)?;
            match located {
                Located::Source(source) => {
                    let from = record.map(|record| messages_from(&record, &source, global, ctx)).transpose()?;
                    let begin = Begin::Last(from.unwrap_or_else(|| args.last(ctx)));
                    let guessed = global.dialect.is_none() && source.key.is_none() && name.is_file(&ctx.home.cwd);
                    let growing = match guessed {
                        true => Growing::guessing(*source, begin, ctx.home.clone()),
                        false => Growing::new(*source, begin),
                    };
                    follow_one(growing, &mut printer, args, global, ctx)?;
                }
                Located::Bytes { .. } if record.is_some() => {
                    let failure = Failure::new(FailureKind::Usage, "piped input is always shown from its start");
                    return Err(failure.hint("leave out #RECORD"));
                }
                Located::Bytes { bytes, .. } => follow_pipe(bytes.as_slice(), &mut printer, global, ctx)?,
            }
        }
    }
    printer.finish(ctx)?;
    Ok(ExitCode::SUCCESS)
}

/// How many messages the newest branch has from the message of a record on.
fn messages_from(record: &str, source: &Source, global: &Global, ctx: &mut Ctx) -> Result<usize, Failure> {
    let session = Located::Source(Box::new(source.clone())).open(
        global,
        ctx,
        Bridge::AsTheAgent,
        None,
        ctx.mask.clone().as_ref(),
    )?;
    let record = name::record(&session, record)?;
    let branch = session.head().map(|head| session.branch(head)).filter(|branch| branch.records.contains(&record));
    let Some(branch) = branch else {
        let failure = Failure::new(FailureKind::Usage, format!("record {} is not on the newest branch", record.id()));
        return Err(failure.hint("run `scrollback show SESSION#RECORD` to see that branch"));
    };
    let conversation = Conversation::new(&branch);
    let first = conversation.position(record);
    Ok(first.map_or(0, |first| conversation.len() - first))
}

fn follow_one(
    mut growing: Growing,
    printer: &mut Printer,
    args: &TailArgs,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    let places = scope::places(global, ctx)?;
    let mut watch = start_watch(args)?;
    loop {
        watch.file(&growing.source().path);
        printer.look(&mut growing, &places, ctx)?;
        ctx.out.flush()?;
        printer.notify(ctx)?;
        if watch.wait() == Wake::Interrupted {
            return Ok(());
        }
        ctx.update_now();
    }
}

/// Follows the sessions in scope: the newest from its last messages, the others when they change.
fn follow_all(printer: &mut Printer, args: &TailArgs, global: &Global, ctx: &mut Ctx) -> Result<(), Failure> {
    let places = scope::places(global, ctx)?;
    let mut watch = start_watch(args)?;
    let mut following = Following::new(places.clone());
    let found = scope::found(global, ctx, Depth::Ends)?;
    (following.project, following.sidechains) = (found.project, args.sidechains);
    match found.rows.into_iter().find(|(row, _)| row.parent_session.is_none()) {
        Some((row, source)) => {
            ctx.note(&format!("Following {} ({}); press Ctrl-C to stop.", row.title, row.id))?;
            following.follow(source, Begin::Last(args.last(ctx)));
        }
        None => ctx.note("Waiting for a session to change; press Ctrl-C to stop.")?,
    }
    let mut changed = None;
    loop {
        // A folder may have been created since.
        places.roots().iter().for_each(|root| _ = watch.folder(root));
        for moved in following.find_new(changed.as_ref(), Instant::now()) {
            printer.moved(&moved.from, &moved.to);
        }
        for growing in following.changed(changed.as_ref(), ctx.now) {
            printer.look(growing, &places, ctx)?;
        }
        ctx.out.flush()?;
        printer.notify(ctx)?;
        changed = match watch.wait() {
            Wake::Interrupted => return Ok(()),
            Wake::Changed(paths) => Some(paths),
            Wake::Time => None,
        };
        ctx.update_now();
    }
}

fn start_watch(args: &TailArgs) -> Result<Watch, Failure> {
    let watch = Watch::new(if args.poll { WatchBy::Polling } else { WatchBy::Events });
    let interrupter = watch.interrupter();
    on_interrupt(move || interrupter.interrupt())?;
    Ok(watch)
}

/// Follows piped input to its end.
fn follow_pipe(mut pipe: impl Read, printer: &mut Printer, global: &Global, ctx: &mut Ctx) -> Result<(), Failure> {
    let (named, mask) = (scope::dialect(global)?, ctx.mask.clone());
    let begin = Begin::Everything;
    let reading = ReadOptions { mask: mask.as_ref(), ..ReadOptions::plain(ctx.now) };
    let mut follower = match named {
        Some(dialect) => Follower::of_bytes(dialect, begin, &reading),
        None => Follower::guessing(begin, &reading),
    };
    let mut piece = vec![0; PIPE_READ_BYTES];
    loop {
        let read = pipe.read(&mut piece)?;
        let reading = ReadOptions { mask: mask.as_ref(), ..ReadOptions::plain(ctx.now) };
        follower.push(&piece[..read], &reading);
        let updates = follower.updates(&reading)?;
        let id = follower.session(&reading).id();
        printer.updates(Label { id: id.as_str(), parent: None, place: "-" }, updates, ctx)?;
        ctx.out.flush()?;
        if read == 0 {
            return Ok(());
        }
        ctx.update_now();
    }
}
