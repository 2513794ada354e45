//! `show`: one branch of a session, as a person reads it.

use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;

use scrollback::model::message::{Message, Sdk};
use scrollback::session::{Branch, Bridge, RecordRef, Session};
use scrollback::view::conversation::Conversation;
use scrollback::view::find::SessionName;
use scrollback::view::listing;
use scrollback::view::page::Page;

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::message::Detail;
use crate::render::transcript::Transcript;
use crate::render::{json, plural};
use crate::session::name;

/// Show one session
///
/// Shows the newest branch, or the one that a record is on. SESSION is an id, a unique beginning of one, @ (the newest of this project), @~1,
/// DIALECT:ID, a path, or - (standard input); SESSION#ID opens the pager at that message.
#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    /// Session id, unique beginning, @, a path, or -
    #[arg(allow_hyphen_values = true)]
    session: SessionName,
    /// Show the branch that ends in this record
    #[arg(long, value_name = "RECORD")]
    head: Option<String>,
    /// Show only the last N messages; of a large file only its end is read
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Show what comes before this record (with --last N: N messages of it)
    #[arg(long, value_name = "RECORD")]
    before: Option<String>,
    /// Open tool calls and thinking
    #[arg(long)]
    full: bool,
    /// Print the lines of the file instead, as they are
    #[arg(long, conflicts_with = "full")]
    raw: bool,
    /// Go on before a missing record with the one that was written before it
    #[arg(long)]
    bridge: bool,
    /// Which major version of the AI SDK the messages of --json are for
    #[arg(long, value_name = "MAJOR", default_value = "7")]
    sdk: Sdk,
}

/// A page when only `--before` is given.
const PAGE_MESSAGES: usize = 20;

pub(crate) fn run(args: &ShowArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if args.raw && ctx.json {
        let failure = Failure::new(FailureKind::Usage, "--raw and --json exclude each other");
        return Err(failure.hint("--raw prints the file's own lines, which are JSON already"));
    }
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let paged = args.last.is_some() || args.before.is_some();
    let page = Page { messages: args.last.unwrap_or(PAGE_MESSAGES), before: args.before.as_deref() };
    // Another head may lie anywhere, so it needs the whole file.
    let by_page = paged && args.head.is_none() && named.record.is_none();
    let mut session = named.located.open(global, ctx, bridge, by_page.then_some(page))?;
    if let Some(summary) = listing::summary_elsewhere(&session) {
        session.title_from_summary(summary);
    }
    let at = named.record.as_deref().map(|record| name::record(&session, record)).transpose()?;
    let head = match (&args.head, at) {
        (Some(head), _) => Some(name::record(&session, head)?),
        (None, Some(at)) => Some(head_through(&session, at)),
        (None, None) => session.head(),
    };
    let Some(head) = head else { return nothing_in(&session, ctx) };
    let branch = session.branch(head);
    let conversation = Conversation::new(&branch);
    let mut range = range(args, paged, &session, &conversation, page)?;
    if (ctx.json || args.raw)
        && let Some(at) = at.and_then(|at| conversation.position(at))
    {
        range.start = range.start.max(at);
    }
    if args.raw {
        raw(&session, &branch, &conversation, range, ctx)?;
    } else if ctx.json {
        let whole = range.len() == conversation.len();
        // Each message is read when it is printed: a long session is never in memory as a whole.
        let messages = json::Streamed(|| {
            let messages = conversation.messages(range.clone());
            messages.map(|message| message.map(|message| message.for_sdk(args.sdk)))
        });
        ctx.print_json(&session.page(&branch, Some(head), messages, whole)?)?;
    } else {
        if conversation.is_empty() {
            return Err(nothing_said(&session));
        }
        let at = at.and_then(|at| conversation.position(at));
        let detail = Detail { full: args.full };
        let transcript = Transcript { session: &session, branch: &branch, conversation: &conversation, range, detail };
        read(&transcript, at, ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest end of the conversation that a record is part of.
fn head_through<'s>(session: &'s Session, record: RecordRef<'s>) -> RecordRef<'s> {
    let mut ways: Vec<Option<RecordRef<'s>>> = vec![None; session.records().len()];
    for head in session.heads().map(|head| head.record) {
        let unseen = lineage(head).take_while(|on_way| ways[on_way.order()].is_none());
        for on_way in unseen.collect::<Vec<_>>() {
            ways[on_way.order()] = Some(head);
        }
    }
    // A result that was only pulled in lies on no way: what it hangs on does.
    lineage(record).find_map(|above| ways[above.order()]).unwrap_or(record)
}

fn lineage(record: RecordRef<'_>) -> impl Iterator<Item = RecordRef<'_>> {
    std::iter::successors(Some(record), |record| record.parent())
}

fn nothing_said(session: &Session) -> Failure {
    if session.dialect().name() == "unknown" {
        let failure =
            Failure::new(FailureKind::NotFound, format!("{}: no known agent's file", session.path().display()));
        return failure.hint("--dialect NAME reads it as one; `scrollback doctor` tells what is in it");
    }
    Failure::new(FailureKind::NotFound, format!("nothing is said in session {}", session.id()))
        .hint("`scrollback tree` shows what is in it")
}

fn range(
    args: &ShowArgs,
    paged: bool,
    session: &Session,
    conversation: &Conversation<'_, '_>,
    page: Page<'_>,
) -> Result<Range<usize>, Failure> {
    let end = match &args.before {
        None => conversation.len(),
        Some(before) => {
            let record = name::record(session, before)?;
            conversation.position(record).ok_or_else(|| {
                Failure::new(FailureKind::NotFound, format!("{before:?} is not on this branch"))
                    .hint("--head RECORD chooses another branch")
            })?
        }
    };
    Ok(if paged { end.saturating_sub(page.messages)..end } else { 0..end })
}

fn nothing_in(session: &Session, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if ctx.json {
        let branch = Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() };
        ctx.print_json(&session.page(&branch, None, Vec::<Message>::new(), true)?)?;
        return Ok(ExitCode::from(super::FOUND_PROBLEMS));
    }
    let path = session.path().display();
    Err(if session.issues().is_empty() {
        Failure::new(FailureKind::NotFound, format!("{path} is empty")).hint("nothing was recorded in it yet")
    } else {
        Failure::new(FailureKind::NotFound, format!("{path} holds no record"))
            .hint("`scrollback doctor` tells what is in it")
    })
}

fn raw(
    session: &Session,
    branch: &Branch<'_>,
    conversation: &Conversation<'_, '_>,
    range: Range<usize>,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    let mut print = |record: RecordRef<'_>| -> Result<(), Failure> {
        for piece in record.raw()? {
            ctx.out.write_all(&piece)?;
            ctx.out.write_all(b"\n")?;
        }
        Ok(())
    };
    if conversation.is_empty() {
        session.records().try_for_each(print)
    } else if range.len() == conversation.len() {
        branch.records.iter().try_for_each(|record| print(*record))
    } else {
        range.flat_map(|message| conversation.records(message)).try_for_each(print)
    }
}

fn read(transcript: &Transcript<'_>, at: Option<usize>, ctx: &mut Ctx) -> Result<(), Failure> {
    let range = transcript.range.clone();
    // The pager opens at a line, so what stands above it must be known first.
    let above = match at.filter(|at| range.contains(at) && ctx.on_terminal) {
        Some(at) => {
            let mut above = Vec::new();
            transcript.write(range.start..at, ctx, &mut above)?;
            above.iter().filter(|byte| **byte == b'\n').count()
        }
        None => 0,
    };
    ctx.page(above);
    // Without a pager the reader is taken there by leaving out what comes before.
    let start = if ctx.on_terminal { range.start } else { at.unwrap_or(range.start).max(range.start) };
    ctx.writing(|ctx, out| transcript.write(start..range.end, ctx, out))?;
    footer(transcript.session, ctx)
}

/// What else there is, on standard error.
fn footer(session: &Session, ctx: &mut Ctx) -> Result<(), Failure> {
    ctx.out.flush()?;
    let others = session.heads().len().saturating_sub(1) as u64;
    if others > 0 {
        let them = if others == 1 { "it" } else { "them" };
        ctx.note(&format!("{} more: `scrollback tree` shows {them}.", plural(others, "branch")))?;
    }
    if session.has_errors() {
        ctx.note(&format!("{} in the file: `scrollback doctor` tells.", plural(session.issue_count(), "problem")))?;
    }
    Ok(())
}
