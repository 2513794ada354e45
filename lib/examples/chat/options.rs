//! The command line of the example.

use std::path::{Path, PathBuf};

use scrollback::dialect::{self, Dialect};
use scrollback::history::View;

use super::model::{Failure, Model};

pub(crate) const HELP: &str = "\
Usage: cargo run -p scrollback-lib --example chat -- [OPTIONS]

  --continue               go on with the newest session of this project
  --resume ID              go on with this session
  --checkpoint ID#RECORD   go on from this record; what came after it stays a branch
  --format DIALECT         native (default), claude-code, codex, qwen-code, fluux, sage-el, ai-sdk
  --store DIR              where the sessions lie; another agent's folder, where its format is written
  --with JID               whom a fluux session is with
  --script FILE            answers from a file instead of a model: [{\"text\": \"…\", \"calls\": […]}]
  --acks                   print a line of JSON for each record that is on disk

The model: ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, or OPENAI_BASE_URL and OPENAI_API_KEY; MODEL names it.
Only http:// is spoken: for https start a proxy on this machine.

  /new  /rewind N|RECORD  /fork  /title TEXT  /todos [TEXT|N]  /export  /help  /quit";

/// What was typed.
pub(crate) struct Options {
    pub(crate) start: Start,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) store: PathBuf,
    pub(crate) with: Option<String>,
    pub(crate) prints_acks: bool,
    pub(crate) model: Model,
}

pub(crate) enum Start {
    New,
    Continue,
    Resume(String),
    Checkpoint(String, String),
}

/// Nothing where help is wanted.
pub(crate) fn read(args: &mut dyn Iterator<Item = String>) -> Result<Option<Options>, Failure> {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let (mut start, mut store, mut script, mut with, mut prints_acks) = (Start::New, None, None, None, false);
    let mut format = "native".to_owned();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{option} is followed by nothing; see --help"));
        match option.as_str() {
            "--continue" => start = Start::Continue,
            "--resume" => start = Start::Resume(value()?),
            "--checkpoint" => {
                let point = value()?;
                let (session, record) = point.split_once('#').ok_or("--checkpoint wants ID#RECORD")?;
                start = Start::Checkpoint(session.to_owned(), record.to_owned());
            }
            "--format" => format = value()?,
            "--store" => store = Some(PathBuf::from(value()?)),
            "--with" => with = Some(value()?),
            "--script" => script = Some(value()?),
            "--acks" => prints_acks = true,
            "--help" => return Ok(None),
            _ => return Err(format!("no option {option}; see --help").into()),
        }
    }
    let usual = || (format == "native").then(|| Path::new(&var("HOME")).join(".local/share/scrollback"));
    let model = match script {
        Some(file) => Model::Script(serde_json::from_slice(&std::fs::read(file)?)?),
        None if var("ANTHROPIC_BASE_URL").is_empty() => {
            Model::endpoint(View::OpenAi, &var("OPENAI_BASE_URL"), var("OPENAI_API_KEY"), var("MODEL"))?
        }
        None => Model::endpoint(View::Anthropic, &var("ANTHROPIC_BASE_URL"), var("ANTHROPIC_API_KEY"), var("MODEL"))?,
    };
    Ok(Some(Options {
        start,
        dialect: dialect::named(&format).ok_or_else(|| format!("no format {format:?}; see --help"))?,
        store: store.or_else(usual).ok_or_else(|| format!("--format {format} needs --store"))?,
        with,
        prints_acks,
        model,
    }))
}
