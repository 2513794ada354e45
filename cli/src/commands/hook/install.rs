//! `hook install`, `remove` and `status`: the settings of the agents, changed only when a person has seen how.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use scrollback::view::files::unified_diff;
use scrollback::write::replace_settings;
use serde_json::json;

use super::agents::Agent;
use crate::config::read_text;
use crate::ctx::{self, Ctx};
use crate::failure::{Failure, FailureKind};
use crate::terminal::{ask, clean};

#[derive(clap::Args, Debug)]
pub(super) struct ChangeArgs {
    /// The agent
    agent: Agent,
    /// Change the settings without asking
    #[arg(long, short = 'y')]
    yes: bool,
}

/// This program, as settings call it.
fn program() -> Result<String, Failure> {
    Ok(ctx::program()?.to_string_lossy().into_owned())
}

pub(super) fn install(args: &ChangeArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let program = program()?;
    let (path, before) = settings(args.agent, ctx)?;
    let after = args.agent.with_hook(&before, &program).map_err(|why| unusable(&path, &why))?;
    change(args, &path, &before, after, "calls the hook already", ctx)
}

pub(super) fn remove(args: &ChangeArgs, ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let (path, before) = settings(args.agent, ctx)?;
    let after = args.agent.without_hook(&before, &program()?).map_err(|why| unusable(&path, &why))?;
    change(args, &path, &before, after, "does not call the hook", ctx)
}

pub(super) fn status(ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let (mut rows, program) = (Vec::new(), program()?);
    for agent in Agent::ALL {
        let path = agent.settings(ctx);
        let text = read_text(&path);
        let called = text.as_ref().map_err(String::clone).and_then(|text| agent.called(text, &program));
        let off = text.ok().and_then(|text| agent.switched_off(&text));
        let (state, word) = match called {
            Ok(None) => (Some(false), "not installed".to_owned()),
            Ok(Some(called)) if is_gone(&called) => {
                (Some(false), format!("calls {called}, which is not there; install it again"))
            }
            Ok(Some(_)) => match off {
                Some(key) => (Some(false), format!("installed, but {key} switches all hooks off")),
                None => (Some(true), "installed".to_owned()),
            },
            Err(why) => (None, format!("settings not understood: {why}")),
        };
        rows.push((agent.name(), path, state, word));
    }
    if ctx.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(agent, path, state, _)| json!({"agent": agent, "path": path.to_string_lossy(), "installed": state}))
            .collect();
        ctx.print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (agent, path, _, word) in rows {
        ctx.line(&clean::line(&format!("{agent:12} {word}  {}", path.display())))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether settings call a program that is not there. One without a folder is where the agent's shell finds it.
fn is_gone(program: &str) -> bool {
    let program = Path::new(program);
    program.is_absolute() && !program.exists()
}

fn settings(agent: Agent, ctx: &Ctx) -> Result<(std::path::PathBuf, String), Failure> {
    let path = ctx.check_home(agent.settings(ctx), "the variable of the agent")?;
    let text = read_text(&path).map_err(|why| unusable(&path, &why))?;
    Ok((path, text))
}

fn unusable(path: &Path, why: &str) -> Failure {
    let failure = Failure::new(FailureKind::Usage, format!("{}: {why}; it is left as it is", path.display()));
    failure.hint("change it by hand, as docs/hooks.md shows")
}

/// Shows the change, asks, and makes it.
fn change(
    args: &ChangeArgs,
    path: &Path,
    before: &str,
    after: Option<String>,
    nothing: &str,
    ctx: &mut Ctx,
) -> Result<ExitCode, Failure> {
    let agent = args.agent.name();
    let Some(after) = after else {
        if ctx.json {
            ctx.print_json(&json!({"agent": agent, "path": path.to_string_lossy(), "changed": false}))?;
        } else {
            ctx.line(&format!("{agent} {nothing}."))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let name = path.to_string_lossy();
    let diff = unified_diff(name.trim_start_matches('/'), Some(before), Some(&after)).unwrap_or_default();
    if fs::metadata(path).is_ok_and(|known| known.permissions().readonly()) {
        return Err(unusable(path, "it may not be written"));
    }
    if !ctx.json {
        for line in diff.lines() {
            ctx.line(&clean::line(line))?;
        }
    }
    if !args.yes {
        if !ask::is_possible(ctx) {
            let failure = Failure::new(FailureKind::Usage, format!("{name} is not changed without your consent"));
            return Err(failure.hint("add --yes to change it"));
        }
        if !ask::is_agreed(&format!("Change {}?", clean::line(&name)), ctx)? {
            ctx.note("Nothing was changed.")?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    replace_settings(path, after.as_bytes(), &ctx.host())?;
    if let Some(key) = args.agent.switched_off(&after) {
        ctx.caution("settings", &format!("{key} switches all hooks off: {agent} does not call this one"))?;
    }
    if ctx.json {
        ctx.print_json(&json!({"agent": agent, "path": name, "changed": true, "diff": diff}))?;
    } else {
        ctx.note(&format!("Changed {name}."))?;
    }
    Ok(ExitCode::SUCCESS)
}
