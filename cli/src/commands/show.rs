//! `show`: one branch of a session, as a person reads it.

use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;

use scrollback::conversation::Conversation;
use scrollback::message::Sdk;
use scrollback::query::{Messages, Shown};
use scrollback::reading::Page;
use scrollback::session::{Branch, Bridge, RecordRef, Session};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::name::{self, SessionName};
use crate::render::message::{Detail, Renderer};
use crate::render::{divider, plural};
use crate::terminal::{clean, width};

/// Show one session
///
/// Shows the newest branch, or the one that a record is on. SESSION is an id, a unique beginning of one, @ (the newest of this project), @~1,
/// DIALECT:ID, a path, or - (standard input); SESSION#ID opens the pager at that message.
#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    /// Session id, unique beginning, @, a path, or -
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
    let named = args.session.resolve(global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let paged = args.last.is_some() || args.before.is_some();
    let page = Page { messages: args.last.unwrap_or(PAGE_MESSAGES), before: args.before.as_deref() };
    // Another head may lie anywhere, so it needs the whole file.
    let by_page = paged && args.head.is_none() && named.record.is_none();
    let session = named.located.open(global, ctx, bridge, by_page.then_some(page))?;
    let at = named.record.as_deref().map(|record| name::record(&session, record)).transpose()?;
    let head = match (&args.head, at) {
        (Some(head), _) => Some(name::record(&session, head)?),
        (None, Some(at)) => Some(head_through(&session, at)),
        (None, None) => session.head(),
    };
    let Some(head) = head else { return nothing_in(&session, ctx, args.sdk) };
    let branch = session.branch(head);
    let conversation = Conversation::new(&branch);
    let range = range(args, paged, &session, &conversation, page)?;
    if args.raw {
        raw(&branch, &conversation, range, ctx)?;
    } else if ctx.json {
        let shown = Shown {
            session: session.row()?,
            whole: session.whole() && range.len() == conversation.len(),
            branch: session.branch_row(&branch, Some(head)),
            heads: session.head_rows()?,
            messages: Messages { conversation: &conversation, range, sdk: args.sdk },
            issues: session.issues(),
        };
        ctx.print_json(&shown)?;
    } else {
        let at = at.and_then(|at| conversation.position(at));
        read(&session, &branch, &conversation, range, at, args, ctx)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest end of the conversation that a record is part of.
fn head_through<'s>(session: &'s Session, record: RecordRef<'s>) -> RecordRef<'s> {
    let through = |head: &RecordRef<'s>| session.branch(*head).records.contains(&record);
    session.heads().map(|head| head.record).find(through).unwrap_or(record)
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

fn nothing_in(session: &Session, ctx: &mut Ctx, sdk: Sdk) -> Result<ExitCode, Failure> {
    if ctx.json {
        let branch = Branch { records: Vec::new(), gaps: Vec::new(), cycle: Vec::new() };
        let conversation = Conversation::new(&branch);
        let shown = Shown {
            session: session.row()?,
            whole: true,
            branch: session.branch_row(&branch, None),
            heads: Vec::new(),
            messages: Messages { conversation: &conversation, range: 0..0, sdk },
            issues: session.issues(),
        };
        ctx.print_json(&shown)?;
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
    if range.len() == conversation.len() {
        branch.records.iter().try_for_each(|record| print(*record))
    } else {
        range.flat_map(|message| conversation.records(message)).try_for_each(print)
    }
}

fn read(
    session: &Session,
    branch: &Branch<'_>,
    conversation: &Conversation<'_, '_>,
    range: Range<usize>,
    at: Option<usize>,
    args: &ShowArgs,
    ctx: &mut Ctx,
) -> Result<(), Failure> {
    if conversation.is_empty() {
        if session.dialect().name() == "unknown" {
            let failure =
                Failure::new(FailureKind::NotFound, format!("{}: no known agent's file", session.path().display()));
            return Err(failure.hint("--dialect NAME reads it as one; `scrollback doctor` tells what is in it"));
        }
        let failure = Failure::new(FailureKind::NotFound, format!("nothing is said in session {}", session.id()));
        return Err(failure.hint("`scrollback tree` shows what is in it"));
    }
    let look = ctx.prose();
    let detail = Detail { full: args.full };
    let mut before_jump = String::new();
    if let Some(at) = at.filter(|at| range.contains(at) && ctx.on_terminal) {
        // The pager opens at a line, so what stands above it must be known first.
        let mut renderer = Renderer::new(ctx, detail);
        before_jump = title(session, ctx)?;
        for message in range.start..at {
            before_jump += &renderer.message(&conversation.message(message)?);
        }
    }
    ctx.page(before_jump.lines().count());
    // Without a pager the reader is taken there by leaving out what comes before.
    let start = if ctx.on_terminal { range.start } else { at.unwrap_or(range.start).max(range.start) };
    let mut out = std::mem::replace(&mut ctx.out, Box::new(std::io::sink()));
    let written = (|| -> Result<(), Failure> {
        let mut renderer = Renderer::new(ctx, detail);
        out.write_all(title(session, ctx)?.as_bytes())?;
        if start > 0 || !session.whole() {
            let first = conversation
                .records(start.min(conversation.len() - 1))
                .next()
                .map(|record| record.id().into_owned());
            let earlier = format!("earlier messages: --before {}", clean::line(&first.unwrap_or_default()));
            writeln!(out, "{}\n", divider::rule(&earlier, &look))?;
        }
        for message in start..range.end {
            for gap in branch.gaps.iter().filter(|gap| conversation.records(message).any(|record| record == gap.child))
            {
                let words = match gap.bridged_to {
                    Some(to) => format!(
                        "gap: {} is missing; bridged to {}",
                        divider::short(gap.missing_parent.as_str()),
                        divider::short(&to.id())
                    ),
                    None => gap_words(session, gap.missing_parent.as_str()),
                };
                writeln!(out, "{}\n", divider::rule(&words, &look))?;
            }
            out.write_all(renderer.message(&conversation.message(message)?).as_bytes())?;
        }
        Ok(())
    })();
    ctx.out = out;
    written?;
    footer(session, ctx)
}

fn gap_words(session: &Session, missing: &str) -> String {
    let island = session.heads().find(|head| head.kind == scrollback::session::HeadKind::Island);
    let way = island
        .map(|head| format!("; what came before: --head {}", divider::short(&head.record.id())))
        .unwrap_or_default();
    format!("gap: the record {} is missing{way}", divider::short(missing))
}

/// What the session is, above its messages.
fn title(session: &Session, ctx: &Ctx) -> Result<String, Failure> {
    let row = session.row()?;
    let paint = ctx.paint();
    let mut about = vec![row.dialect.to_owned(), row.id.0.clone()];
    about.extend(row.project);
    about.extend(row.git_branch);
    about.extend(row.state.map(|state| state.name().to_owned()));
    if let Some(usage) = row.usage {
        about.push(format!("{} in, {} out, {} cached", usage.input, usage.output, usage.cache_read));
    }
    if let Some(parent) = row.parent_session {
        about.push(format!("sub-agent of {}", divider::short(parent.as_str())));
    }
    // As many facts to a line as fit.
    let mut lines = vec![String::new()];
    for fact in about {
        let fact = clean::line(&fact).into_owned();
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line = fact,
            Some(line) if width::of(line) + 3 + width::of(&fact) <= ctx.prose().width => *line += &format!(" · {fact}"),
            _ => lines.push(fact),
        }
    }
    let facts: String = lines.iter().map(|line| format!("{}\n", paint.dim(line))).collect();
    Ok(format!("{}\n{facts}\n", paint.bold(&row.title)))
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
