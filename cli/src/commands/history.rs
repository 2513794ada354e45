//! `history`: prints what to send to a model to continue from a record, in the form of one API.

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use scrollback::session::{Bridge, RecordRef, Session};
use scrollback::view::find::SessionName;
use scrollback::view::history::{History, View};
use serde_json::{Value, json};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::outlet::Secrets;
use crate::record::destination::report_branch;
use crate::render::json;
use crate::session::{located, name};
use crate::terminal::clean;

/// Print what to send to a model to continue a session
///
/// Prints the messages that an agent would send to continue from the newest record, or from RECORD: everything since the last
/// compaction, each tool call with a result. The output is a JSON array, in the form that the API expects as `messages`, `input` or
/// `contents`; with --for text it is plain text. Standard error reports how the session ends, and what was repaired or left out. No
/// tool runs again, and the session does not change.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct HistoryArgs {
    /// Session id, unique prefix, @, a path, or -; add #RECORD to continue from that record
    #[arg(allow_hyphen_values = true)]
    session: SessionName,
    /// Choose the API
    #[arg(long = "for", value_name = "VIEW", value_parser = PossibleValuesParser::new(View::ALL.map(View::name)).try_map(|name| name.parse::<View>()))]
    view: View,
    /// Print only the last N messages; a result whose call is not among them is left out
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Include context that the agent adds by itself and would add again
    #[arg(long)]
    with_context: bool,
    /// Connect each gap to the record that was written before it
    #[arg(long)]
    bridge: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback history @ --for anthropic
  scrollback history 3f8a#319c --for openai --last 10";

/// A note names this many records and counts the rest.
const RECORDS_NAMED: usize = 3;

/// How many notes are printed: a damaged history can have one for each of its calls.
const NOTES_PRINTED: usize = 50;

pub(crate) fn run(args: &HistoryArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let named = name::resolve(&args.session, global, ctx)?;
    let bridge = if args.bridge { Bridge::Always } else { Bridge::AsTheAgent };
    let session = named.located.open(global, ctx, bridge, None, ctx.mask.clone().as_ref())?;
    let head = match &named.record {
        Some(record) => Some(name::record(&session, record)?),
        None => session.head(),
    };
    let Some(head) = head else { return no_records(&session, args.view, ctx) };
    let (history, count) = print(&session, head, args, ctx)?;
    report(&history, &session, ctx)?;
    if count == 0 && !ctx.json {
        match session.check_not_empty(Some(head)) {
            Err(empty) => ctx.warn(&empty.into())?,
            Ok(()) => ctx.note("Nothing to send; run `scrollback show` to see the session.")?,
        }
    }
    Ok(if count == 0 { ExitCode::from(super::FOUND_PROBLEMS) } else { ExitCode::SUCCESS })
}

/// Prints an empty history: what reads it gets the document that it expects.
fn no_records(session: &Session, view: View, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    match view {
        View::Text if ctx.json => writeln!(ctx.out, "\"\"")?,
        View::Text => {}
        _ => writeln!(ctx.out, "[]")?,
    }
    ctx.out.flush()?;
    ctx.warn(&located::no_records(session))?;
    Ok(ExitCode::from(super::FOUND_PROBLEMS))
}

/// Prints message by message: a long history is never in memory as a whole. Returns the history without its turns.
fn print<'s>(
    session: &'s Session,
    head: RecordRef<'s>,
    args: &HistoryArgs,
    ctx: &mut Ctx,
) -> Result<(History<'s>, usize), Failure> {
    let view = args.view;
    let is_text = view == View::Text;
    let (mut count, mut failed, mut whole) = (0, None, String::new());
    let in_json = ctx.json;
    // Colours in a pipe are for a terminal at its other end.
    let for_terminal = ctx.on_terminal || ctx.look.colour;
    let mut secrets = Secrets::new(ctx)?;
    let out = &mut ctx.out;
    let mut print = |message: Value| -> Result<(), Failure> {
        if let (true, Some(text)) = (is_text, message.as_str()) {
            let space = if count > 0 { "\n" } else { "" };
            secrets.count(text.as_bytes());
            if in_json {
                whole.extend([space, text, "\n"]);
                count += 1;
                return Ok(());
            }
            // Other piped text goes to a model: it is not cleaned.
            let text = if for_terminal { clean::text(text) } else { text.into() };
            writeln!(out, "{space}{text}")?;
        } else {
            let mut line = Vec::new();
            json::compact(&mut line, &message)?;
            // Gone before its copies are looked through: it may be most of a session.
            drop(message);
            secrets.count(&line);
            out.write_all(if count > 0 { b",\n" } else { b"[\n" })?;
            out.write_all(&line)?;
        }
        count += 1;
        Ok(())
    };
    let mut emit = |message: Value| {
        if failed.is_none() {
            failed = print(message).err();
        }
    };
    let (mut history, notes) = match args.last {
        Some(last) => {
            let mut history =
                if args.with_context { History::with_context(session, head)? } else { History::of(session, head)? };
            let (messages, notes) = history.last_messages(last, view)?;
            messages.into_iter().for_each(emit);
            (history, notes)
        }
        None => view.write_while_reading(session, head, args.with_context, &mut emit)?,
    };
    history.notes.extend(notes);
    match failed {
        Some(failure) => return Err(failure),
        // The same text as without `--json`, as one string.
        None if is_text && in_json => {
            json::compact(&mut ctx.out, &whole)?;
            writeln!(ctx.out)?;
        }
        None if is_text => {}
        None if count == 0 => writeln!(ctx.out, "[]")?,
        None => writeln!(ctx.out, "\n]")?,
    }
    ctx.out.flush()?;
    secrets.tell(ctx)?;
    Ok((history, count))
}

/// Reports how the branch ends, and what differs from the session. With `--json` it is one line of JSON.
fn report(history: &History<'_>, session: &Session, ctx: &mut Ctx) -> Result<(), Failure> {
    if ctx.json {
        let notes = history.notes.iter().map(|note| json!({"record": note.record, "what": note.what}));
        let mut report =
            json!({"state": history.state.name(), "notice": history.notice, "notes": notes.collect::<Value>()});
        if let Some(now) = session.git_branch_now() {
            report["gitBranchNow"] = now.into();
        }
        json::compact(&mut ctx.err, &report)?;
        writeln!(ctx.err)?;
        return Ok(());
    }
    ctx.note(&format!("{}: {}", history.state.name(), history.notice))?;
    report_branch(session, ctx)?;
    let (mut groups, mut places) = (Vec::<(&str, Vec<&str>)>::new(), HashMap::new());
    for note in &history.notes {
        let at = *places.entry(note.what.as_str()).or_insert(groups.len());
        if at == groups.len() {
            groups.push((&note.what, Vec::new()));
        }
        groups[at].1.push(note.record.as_str());
    }
    for (what, records) in groups.iter().take(NOTES_PRINTED) {
        let named = records[..records.len().min(RECORDS_NAMED)].join(", ");
        let more = match records.len().saturating_sub(RECORDS_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        ctx.note(&format!("note: {named}{more}: {what}"))?;
    }
    if groups.len() > NOTES_PRINTED {
        ctx.note(&format!("{} more notes; add --json to see them.", groups.len() - NOTES_PRINTED))?;
    }
    Ok(())
}
