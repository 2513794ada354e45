//! The command line of the example.

use std::path::{Path, PathBuf};

use scrollback::dialect::{self, Dialect};

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
    /// A session, or a record of one as `ID#RECORD`.
    pub(crate) resume: Option<String>,
    pub(crate) is_continued: bool,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) store: PathBuf,
    pub(crate) with: Option<String>,
    pub(crate) prints_acks: bool,
    pub(crate) model: Model,
}

/// Nothing where help is wanted.
pub(crate) fn read(args: &mut dyn Iterator<Item = String>) -> Result<Option<Options>, Failure> {
    let (mut resume, mut store, mut script, mut with) = (None, None, None, None);
    let (mut format, mut is_continued, mut prints_acks) = ("native".to_owned(), false, false);
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{option} is followed by nothing; see --help"));
        match option.as_str() {
            "--continue" => is_continued = true,
            "--resume" => resume = Some(value()?),
            "--checkpoint" => {
                resume = Some(value()?);
                resume.as_ref().filter(|named| named.contains('#')).ok_or("--checkpoint wants ID#RECORD")?;
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
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".local/share/scrollback"));
    let store = store.or_else(|| home().filter(|_| format == "native"));
    let store = store.ok_or_else(|| format!("--format {format} needs --store"))?;
    let dialect = dialect::named(&format).ok_or_else(|| format!("no format {format:?}; see --help"))?;
    let play = |file| Ok(Model::Script(serde_json::from_slice(&std::fs::read(file)?)?));
    let model = script.map_or_else(Model::named, play)?;
    Ok(Some(Options { resume, is_continued, dialect, store, with, prints_acks, model }))
}
