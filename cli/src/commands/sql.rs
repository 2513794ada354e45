//! `sql`: questions in SQL over documented views of all sessions.

use std::io::Write;
use std::process::ExitCode;

use scrollback::model::Usage;
use scrollback_index::{SQL_ROWS, SqlAnswer, SqlValue};
use serde_json::{Map, Value, json};

use super::stats::csv;
use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::prices::Prices;
use crate::render::table::{Cell, Column, Table};
use crate::session::scope::Everything;
use crate::session::{archive, scope};
use crate::terminal::clean;
use crate::terminal::paint::Paint;
use crate::terminal::preview::one_line;

/// Ask in SQL: sessions, messages, parts, usage, tool_calls
///
/// The views are those of docs/sql.md, over the sessions of the current project; add --all for every project. part_text(id) is the text
/// of a part. Nothing can be changed. A question takes at most 10 seconds and answers at most 100,000 rows.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SqlArgs {
    /// One question, such as select
    #[arg(value_name = "SQL")]
    question: String,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

const EXAMPLES: &str = "\
Examples:
  scrollback sql 'select dialect, count(*) from sessions group by 1' --all
  scrollback sql 'select name, sum(failed), count(*) from tool_calls group by name order by 3 desc'
  scrollback sql \"select part_text(id) from parts where type = 'reasoning' limit 5\"";

/// A longer cell is cut where a person reads it.
const CELL_COLUMNS: usize = 80;

pub(crate) fn run(args: &SqlArgs, global: &Global, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let mut places = scope::places(global, ctx)?;
    if !ctx.is_not_redacting() {
        // Whatever the question is, its answer has no secrets.
        places.mask = Some(crate::redaction::for_reading(ctx)?);
    }
    let scope = scope::scope(global, ctx)?;
    let Everything { sessions, in_scope, mut archive, .. } = scope::everything(places, &scope, global, ctx)?;
    let prices = Prices::read(ctx)?;
    let price = |model: &str, usage: Usage| prices.cost(model, usage);
    let answer = archive.sql(&args.question, sessions, &|row| in_scope.holds(row), &price);
    archive::warn_about_index(&mut archive, ctx)?;
    let answer = answer.map_err(|error| {
        Failure::new(FailureKind::Usage, error.to_string()).hint("the views and their columns are in docs/sql.md")
    })?;
    print(&answer, args.csv, ctx)?;
    for error in answer.unreadable {
        ctx.warn(&error.into())?;
    }
    if answer.is_cut {
        ctx.caution("cut", &format!("there are more than {SQL_ROWS} rows; the rest is left out"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(answer: &SqlAnswer, is_csv: bool, ctx: &mut Ctx) -> Result<(), Failure> {
    if ctx.json {
        let rows: Vec<Value> = answer.rows.iter().map(|row| object(&answer.columns, row)).collect();
        return ctx.print_json(&rows);
    }
    let cells = answer.rows.iter().map(|row| row.iter().map(text).collect::<Vec<String>>());
    if is_csv {
        let cells: Vec<Vec<String>> = cells.collect();
        return csv::print(&answer.columns, &cells, ctx);
    }
    let text = table(&answer.columns, cells, ctx);
    ctx.page_if_long(text.lines().count());
    ctx.out.write_all(text.as_bytes())?;
    ctx.end_page()
}

/// A row as an object. Of columns with the same name, the later ones get a number.
fn object(columns: &[String], row: &[SqlValue]) -> Value {
    let mut object = Map::new();
    for (column, value) in columns.iter().zip(row) {
        let mut names = (2..).map(|number| format!("{column}_{number}"));
        let is_taken = object.contains_key(column);
        let name = if is_taken { names.find(|name| !object.contains_key(name)) } else { None };
        object.insert(name.unwrap_or_else(|| column.clone()), json_value(value));
    }
    Value::Object(object)
}

fn json_value(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => json!(number),
        SqlValue::Real(number) => json!(number),
        SqlValue::Text(text) => json!(text),
        SqlValue::Blob(bytes) => json!(String::from_utf8_lossy(bytes)),
    }
}

fn text(value: &SqlValue) -> String {
    match json_value(value) {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn table(columns: &[String], rows: impl Iterator<Item = Vec<String>>, ctx: &Ctx) -> String {
    // The names of columns are the question's: they are the first row.
    let mut table = Table::new(columns.iter().map(|_| Column::fixed("")).collect());
    let cell = |text: &str, brush: fn(Paint, &str) -> String| {
        let text = if ctx.on_terminal { one_line(text, CELL_COLUMNS) } else { clean::line(text).into_owned() };
        // A column that is empty everywhere is a column all the same.
        Cell::new(if text.is_empty() { "·".to_owned() } else { text }, brush)
    };
    table.push(columns.iter().map(|name| cell(name, Paint::dim)).collect());
    rows.for_each(|row| table.push(row.iter().map(|text| cell(text, Paint::plain)).collect()));
    table.render(if ctx.on_terminal { ctx.look.width } else { usize::from(u16::MAX) }, ctx.paint())
}
