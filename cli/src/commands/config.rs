//! `config`: shows and changes the config file.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::config::{self, KEYS, Key};
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::table::{Cell, Column, Table};
use crate::terminal::clean;
use crate::terminal::paint::Paint;

/// Show and change the config file
///
/// The config file sets defaults: `color` (auto, always, never), `pager`, `list.limit`, `tail.last` and `tail.notify`; `keep` and
/// `exclude` are described in docs/keep.md and docs/search.md, and the keys of `redact` in docs/redaction.md. Options on the command line and
/// $SCROLLBACK_PAGER take precedence. Unknown keys and invalid values are reported as warnings.
#[derive(clap::Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  scrollback config set list.limit 20
  scrollback config get color";

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the path of the config file, even if it does not exist
    Path,
    /// Print the value of a key
    ///
    /// The exit code is 1 if the key is not set.
    Get {
        /// Name of the key, such as list.limit
        key: String,
    },
    /// Set a key and leave the rest of the file unchanged
    Set {
        /// Name of the key, such as list.limit
        key: String,
        /// New value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// List every key with its value and its default
    List,
}

pub(crate) fn run(args: &ConfigArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::Path => path(ctx)?,
        Action::Get { key } => get(Key::named(key)?, ctx)?,
        Action::Set { key, value } => set(Key::named(key)?, value, ctx)?,
        Action::List => list(ctx)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What places the config file elsewhere than in the home directory.
const FOLDER_VARIABLES: &str = "XDG_CONFIG_HOME or SCROLLBACK_HOME";

fn path(ctx: &mut Ctx) -> Result<(), Failure> {
    let path = ctx.check_home(ctx.config.path.clone(), FOLDER_VARIABLES)?;
    match ctx.json {
        true => ctx.print_json(&json!({"path": path, "exists": path.exists()})),
        false => ctx.line(&path.display().to_string()),
    }
}

fn get(key: &'static Key, ctx: &mut Ctx) -> Result<(), Failure> {
    ctx.config.check_readable()?;
    let Some(value) = ctx.config.get(key.name) else {
        let failure =
            Failure::new(FailureKind::NotFound, format!("{} is not set (default: {})", key.name, key.default));
        return Err(failure.hint(format!("run `scrollback config set {} VALUE` to set it", key.name)));
    };
    let text = config::plain(value);
    match ctx.json {
        true => ctx.print_json(&row(key, ctx)),
        false => ctx.line(&clean::line(&text)),
    }
}

fn set(key: &'static Key, value: &str, ctx: &mut Ctx) -> Result<(), Failure> {
    let host = ctx.host();
    ctx.check_home(ctx.config.path.clone(), FOLDER_VARIABLES)?;
    ctx.config.set(key, value, &host)?;
    match ctx.json {
        true => ctx.print_json(&row(key, ctx)),
        false => ctx.note(&format!("Set {} in {}", key.name, ctx.config.path.display())),
    }
}

fn list(ctx: &mut Ctx) -> Result<(), Failure> {
    ctx.config.check_readable()?;
    if ctx.json {
        let rows: Vec<Value> = KEYS.iter().map(|key| row(key, ctx)).collect();
        return ctx.print_json(&rows);
    }
    let mut table = Table::new(vec![Column::fixed("KEY"), Column::shrinking("VALUE", 8), Column::fixed("DEFAULT")]);
    for key in KEYS {
        let value = ctx.config.get(key.name).map(config::plain).unwrap_or_default();
        table.push(vec![
            Cell::new(key.name, Paint::cyan),
            Cell::new(clean::line(&value), Paint::plain),
            Cell::new(key.default, Paint::dim),
        ]);
    }
    let table = table.render(ctx.look.width, ctx.paint());
    Ok(write!(ctx.out, "{table}")?)
}

/// What `--json` prints for a key; `value` is null if it is not set.
fn row(key: &Key, ctx: &Ctx) -> Value {
    let value = ctx.config.get(key.name).map(|value| match value.as_integer() {
        Some(count) => Value::from(count),
        None => Value::from(config::plain(value)),
    });
    json!({"key": key.name, "value": value, "default": key.default})
}
