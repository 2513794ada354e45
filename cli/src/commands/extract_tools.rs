//! `extract-tools`: lists the tool calls of a session.

use std::io::Write;
use std::process::ExitCode;

use scrollback::session::Bridge;
use scrollback::view::Conversation;
use scrollback::view::find::SessionName;
use scrollback::view::tool_calls::{self, CallState, ToolCallRow};
use serde_json::Value;

use super::FOUND_PROBLEMS;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::glob::matches_glob;
use crate::render::fields;

use crate::render::short_ids::ShortIds;
use crate::render::table::{Cell, Column, Table};
use crate::session::name;
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// Texts are cut to this length before layout: more than any terminal is wide.
const CELL_CHARS: usize = 400;

/// List the tool calls of a session
///
/// Lists each call of the newest branch with its state, duration, input and result; with SESSION#ID, only the calls of that message. If
/// the agent did not record a duration, it is the time between the call and its result.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExtractToolsArgs {
    /// Session id, unique prefix, @, a path, or -
    #[arg(allow_hyphen_values = true)]
    session: SessionName,
    /// List only tools with this name; * matches anything
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// List only calls that failed or were refused
    #[arg(long)]
    failed: bool,
    /// List the calls of the branch that ends in this record
    #[arg(long, value_name = "RECORD")]
    head: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    jsonl: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback extract-tools @ --failed
  scrollback extract-tools 3f8a --name 'mcp__*' --jsonl";

pub(crate) fn run(args: &ExtractToolsArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    ctx.json |= args.jsonl;
    let named = name::resolve(&args.session, global, ctx)?;
    let session = named.located.open(global, ctx, Bridge::AsTheAgent, None, ctx.mask.clone().as_ref())?;
    let at = named.record.as_deref().map(|record| name::record(&session, record)).transpose()?;
    let head = match &args.head {
        Some(head) => Some(name::record(&session, head)?),
        None => session.head(),
    };
    let mut branch = head.map(|head| session.branch(head));
    if let (Some(at), Some(newest)) = (at, &branch)
        && !newest.records.contains(&at)
    {
        branch = Some(session.branch(at));
    }
    let Some(branch) = branch else { return none(args, ctx) };
    let conversation = Conversation::new(&branch);
    let of_message = at.and_then(|at| conversation.position(at)).and_then(|at| conversation.message(at)).transpose()?;
    let wanted = |row: &ToolCallRow| {
        of_message.as_ref().is_none_or(|message| message.id == row.message)
            && args.name.as_deref().is_none_or(|glob| matches_glob(glob, &row.name))
            && (!args.failed || row.has_failed())
    };
    let mut rows = Vec::new();
    let mut found = false;
    for calls in tool_calls::of(&conversation) {
        let calls: Vec<ToolCallRow> = calls?.into_iter().filter(&wanted).collect();
        found |= !calls.is_empty();
        if args.jsonl {
            for row in &calls {
                ctx.print_json_line(row)?;
            }
        } else {
            rows.extend(calls);
        }
    }
    if !found {
        return none(args, ctx);
    }
    if ctx.json && !args.jsonl {
        ctx.print_json(&rows)?;
    } else if !ctx.json {
        let table = table(&rows, &ShortIds::of_records(&session)).render(ctx.look.width, ctx.paint());
        ctx.page(0);
        write!(ctx.out, "{table}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn none(args: &ExtractToolsArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    if !ctx.json {
        let (message, hint) = match args.name.is_some() || args.failed {
            true => ("no matching tool call", "leave out --name and --failed to list every call"),
            false => ("no tool calls", "run `scrollback show SESSION` to see the session"),
        };
        return Err(Failure::new(FailureKind::NotFound, message).hint(hint));
    }
    if !args.jsonl {
        ctx.print_json(&Vec::<ToolCallRow>::new())?;
    }
    Ok(ExitCode::from(FOUND_PROBLEMS))
}

fn table(rows: &[ToolCallRow], ids: &ShortIds<'_>) -> Table {
    let mut table = Table::new(vec![
        Column::fixed("MESSAGE").spare(2),
        Column::shrinking("TOOL", 8),
        Column::fixed("STATE"),
        Column::right("TIME").spare(1),
        Column::shrinking("INPUT", 12),
        Column::shrinking("RESULT", 12),
    ]);
    for row in rows {
        let result = match (&row.error_text, &row.output) {
            (Some(error), _) => error.clone(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(Value::Null) | None) => String::new(),
            (None, Some(output)) => scrollback::model::json::to_string(output),
        };
        table.push(vec![
            Cell::new(cell(ids.short(&row.message)), Paint::dim),
            Cell::new(cell(&row.name), Paint::bold),
            Cell::new(row.state.name(), brush(row)),
            Cell::new(row.duration_ms.map(duration).unwrap_or_default(), Paint::plain),
            Cell::new(cell(&fields::input_summary(row.input.as_ref().or(row.raw_input.as_ref()))), Paint::plain),
            Cell::new(cell(&result), Paint::dim),
        ]);
    }
    table
}

fn brush(row: &ToolCallRow) -> fn(Paint, &str) -> String {
    match row.state {
        CallState::OutputAvailable => Paint::green,
        CallState::OutputError | CallState::OutputDenied => Paint::red,
        CallState::InputStreaming
        | CallState::InputAvailable
        | CallState::ApprovalRequested
        | CallState::ApprovalResponded => Paint::yellow,
    }
}

/// The beginning of a text, as one clean line.
fn cell(text: &str) -> String {
    let start: String = text.trim_start().chars().take(CELL_CHARS).collect();
    clean::line(&start).into_owned()
}

fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}
