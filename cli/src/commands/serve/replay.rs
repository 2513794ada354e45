//! `serve --replay`: the session as the model of an agent.

use std::io::Write;
use std::sync::{Arc, Mutex};

use scrollback::session::Bridge;
use scrollback::view::find::SessionName;
use scrollback::view::replay::{Comparison, Script};
use scrollback_web::Site;
use scrollback_web::scripted::{Asked, Became, RequestRow, ScriptedModel};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::render::plural;
use crate::session::name;
use crate::terminal::clean;

/// Reads the session, and those of its sub-agents.
pub(super) fn model(
    name: &SessionName,
    is_loose: bool,
    site: &Site,
    global: &Global,
    ctx: &mut Ctx,
) -> Result<Arc<ScriptedModel>, Failure> {
    let named = name::resolve(name, global, ctx)?;
    if named.record.is_some() {
        let failure = Failure::new(FailureKind::Usage, "a replay plays the newest branch from its start");
        return Err(failure.hint("leave out #RECORD, or `scrollback fork` that branch first"));
    }
    let mask = site.places.mask.clone();
    let session = named.located.open(global, ctx, Bridge::AsTheAgent, None, mask.as_ref())?;
    let (id, title) = (session.id(), session.row()?.title);
    let mut models = session.models().to_vec();
    let mut sessions = vec![Arc::new(session)];
    let shelf = site.catalogue.shelf();
    for entry in shelf.entries.iter().filter(|entry| entry.row.parent_session.as_ref() == Some(&id)) {
        match site.open(&entry.source) {
            Ok(of_sub_agent) => sessions.push(Arc::new(of_sub_agent)),
            Err(error) => ctx.warn(&error.into())?,
        }
    }
    let script = Script::new(&sessions)?;
    if script.is_empty() {
        let failure = Failure::new(FailureKind::NotFound, format!("session {id} has no answers to play"));
        return Err(failure.hint("run `scrollback list` to choose another session"));
    }
    models.dedup();
    let is_json = ctx.json;
    Ok(Arc::new(ScriptedModel {
        script,
        comparison: if is_loose { Comparison::Loose } else { Comparison::Strict },
        mask,
        title,
        models,
        tell: Box::new(move |row| tell(row, is_json)),
        asked: Mutex::new(Asked::default()),
    }))
}

/// Prints how an agent is led to the model.
pub(super) fn say_how(model: &ScriptedModel, host: &str, token: &str, ctx: &mut Ctx) -> Result<(), Failure> {
    let (answers, comparison) = (plural(model.script.len() as u64, "answer"), model.comparison);
    let how = if comparison == Comparison::Strict { "strictly" } else { "loosely" };
    ctx.note(&format!("Playing {answers} {how}. Start the agent with one of:"))?;
    let key = "API_KEY";
    for variables in [
        format!("ANTHROPIC_BASE_URL=http://{host} ANTHROPIC_{key}={token}"),
        format!("OPENAI_BASE_URL=http://{host}/v1 OPENAI_{key}={token}"),
        format!("GOOGLE_GEMINI_BASE_URL=http://{host} GEMINI_{key}={token}"),
    ] {
        // Not masked: these are ours, and they end with the server.
        if !ctx.json {
            writeln!(ctx.err, "  {variables}")?;
        }
    }
    Ok(())
}

/// Prints a request while the server runs. Whoever does not read it does not stop the server.
fn tell(row: &RequestRow, is_json: bool) {
    let line = match is_json {
        true => serde_json::json!({"request": row}).to_string(),
        false => text(row),
    };
    drop(writeln!(std::io::stderr(), "{line}"));
}

fn text(row: &RequestRow) -> String {
    let detail = row.detail.as_deref().unwrap_or_default();
    let what = match (row.outcome, row.answer) {
        (Became::Answered, Some(answer)) => format!("answer {answer}"),
        (Became::Answered, None) => "answered".to_owned(),
        (Became::Side, _) => format!("beside the conversation: {detail}"),
        (Became::Refused, _) => format!("refused: {detail}"),
        (Became::Unknown, _) => format!("unknown: {detail}"),
    };
    clean::line(&format!("{:>4} {}: {what}", row.request, row.path)).into_owned()
}

/// Prints what was asked in all.
pub(super) fn report(model: &ScriptedModel, ctx: &mut Ctx) -> Result<(), Failure> {
    let (rows, answered, answers) = model.report();
    let count = |became: Became| rows.iter().filter(|row| row.outcome == became).count();
    ctx.note(&format!(
        "Played {answered} of {}; {} beside the conversation, {} refused.",
        plural(answers as u64, "answer"),
        plural(count(Became::Side) as u64, "request"),
        count(Became::Refused),
    ))
}
