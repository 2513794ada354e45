//! Tells what changed in sessions: as text for a person, as JSON, or as chunks of the AI SDK's stream.

use std::collections::HashMap;
use std::io::Write;

use scrollback::model::message::Sdk;
use scrollback::session::read::open::ReadOptions;
use scrollback::session::read::source::Source;
use scrollback::view::find::Places;
use scrollback::view::stream::{Change, Chunks, Growing, Update};
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::render::json;
use crate::render::live::Live;
use crate::render::message::Detail;
use crate::render::{divider, plural};
use crate::terminal::{Look, clean, width};

/// How updates are told.
pub(crate) enum Form {
    /// As a transcript; `named` puts the session before each line.
    Text { detail: Detail, named: bool },
    /// As JSON, one object a line.
    Updates,
    /// As chunks, one a line.
    Chunks,
}

pub(crate) struct Teller {
    form: Form,
    sdk: Sdk,
    chunks: Chunks,
    /// What was printed of each session.
    live: HashMap<String, Live>,
    /// Which session the messages of each place were told of: a file may become another one's.
    told_of: HashMap<String, HashMap<String, String>>,
    /// The session that each place was last told to be.
    called: HashMap<String, String>,
    /// The session that was told of last.
    last: Option<String>,
    /// What could not be read of each file, so that it is told once.
    failed: HashMap<String, String>,
}

/// A session that is told of: its name, and what tells it from others.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) id: &'a str,
    /// The session that it is a sub-agent's work for.
    pub(crate) parent: Option<&'a str>,
    pub(crate) place: &'a str,
}

impl Told<'_> {
    /// A short name for a person.
    fn name(&self) -> String {
        let short = |id: &str| clean::line(&divider::short(id)).into_owned();
        match self.parent {
            Some(parent) => format!("{} of {}", short(self.id), short(parent)),
            None => short(self.id),
        }
    }
}

/// The columns of a session's name before a line.
const NAME_COLUMNS: usize = 8;

impl Teller {
    pub(crate) fn new(form: Form, sdk: Sdk) -> Teller {
        let (live, told_of, called, failed) = Default::default();
        Teller { form, sdk, chunks: Chunks::new(sdk), live, told_of, called, last: None, failed }
    }

    /// Looks at a file and tells what is new.
    pub(crate) fn look(&mut self, growing: &mut Growing, places: &Places, ctx: &mut Ctx) -> Result<(), Failure> {
        let source = growing.source().clone();
        let find = places.finder(&source);
        let reading = ReadOptions { find: &find, ..ReadOptions::plain(ctx.now) };
        let path = source.path.to_string_lossy().into_owned();
        let look = match growing.look(&reading) {
            Ok(look) => look,
            Err(error) => {
                let failure = Failure::from(error);
                let known = self.failed.insert(path, failure.message.clone());
                return if known.as_ref() == Some(&failure.message) { Ok(()) } else { ctx.warn(&failure) };
            }
        };
        self.failed.remove(&path);
        if look.change.is_none() && look.updates.is_empty() {
            return Ok(());
        }
        let session = growing.session(&reading);
        let parent = session.and_then(|session| session.parent_session()).map(|(parent, _)| parent.to_owned());
        let id = session.map_or_else(|| source.name(), |session| session.id().0);
        // Copies of a file have the same id: the place tells sessions apart.
        let place = place(&source);
        let told = Told { id: &id, parent: parent.as_deref(), place: &place };
        if let Some(change) = look.change {
            // A file that is back may not say yet which session it is.
            let called = self.called.get(&place).cloned().unwrap_or_else(|| id.clone());
            self.change(Told { id: &called, ..told }, &path, change, ctx)?;
        }
        if look.updates.iter().any(|update| matches!(update, Update::Message(_))) {
            self.called.insert(place.clone(), id.clone());
        }
        // What a rewritten file tells again was printed already, and nobody took back what it lacks.
        self.live.entry(place.clone()).or_default().rewritten = look.change.is_some();
        self.updates(told, look.updates, ctx)
    }

    /// What was told of a file is told of where it lies now.
    pub(crate) fn moved(&mut self, from: &Source, to: &Source) {
        let (from, to) = (place(from), place(to));
        self.live.remove(&from).map(|live| self.live.insert(to.clone(), live));
        self.told_of.remove(&from).map(|told_of| self.told_of.insert(to.clone(), told_of));
        self.called.remove(&from).map(|called| self.called.insert(to.clone(), called));
        if self.last.as_ref() == Some(&from) {
            self.last = Some(to);
        }
    }

    /// What happened to a file, beside the messages.
    fn change(&mut self, told: Told<'_>, path: &str, change: Change, ctx: &mut Ctx) -> Result<(), Failure> {
        if let Form::Updates = self.form {
            return print(&json!({"type": "file", "session": told.id, "path": path, "change": change}), ctx);
        }
        ctx.out.flush()?;
        let words = match change {
            Change::Gone => "is not there; waiting for it.",
            Change::Appeared => "is there.",
            Change::Rewritten => "was rewritten.",
            Change::Replaced => "was replaced by another file.",
        };
        ctx.note(&format!("{path} {words}"))
    }

    /// Tells updates of a session.
    pub(crate) fn updates(&mut self, told: Told<'_>, updates: Vec<Update>, ctx: &mut Ctx) -> Result<(), Failure> {
        for update in updates {
            match &self.form {
                Form::Updates => {
                    for line in self.as_json(told, update) {
                        print(&line, ctx)?;
                    }
                }
                Form::Chunks => {
                    for chunk in self.chunks.of(update) {
                        print(&chunk, ctx)?;
                    }
                }
                Form::Text { detail, named } => {
                    let (detail, named) = (*detail, *named);
                    self.text(told, update, detail, named, ctx)?;
                }
            }
        }
        Ok(())
    }

    /// Ends what is open.
    pub(crate) fn finish(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        if let Form::Chunks = self.form {
            for chunk in self.chunks.finish() {
                print(&chunk, ctx)?;
            }
        }
        Ok(())
    }

    /// What was told of one session is removed from that one.
    fn as_json(&mut self, told: Told<'_>, update: Update) -> Vec<Value> {
        let told_of = self.told_of.entry(told.place.to_owned()).or_default();
        let removed = |session: &str, ids: Vec<String>| json!({"type": "removed", "session": session, "ids": ids});
        match update {
            Update::Message(message) => {
                let before = told_of.insert(message.id.clone(), told.id.to_owned()).filter(|before| before != told.id);
                let moved = before.map(|before| removed(&before, vec![message.id.clone()]));
                let mut message = json!({"type": "message", "session": told.id, "message": message.for_sdk(self.sdk)});
                if let Some(parent) = told.parent {
                    message["parentSession"] = parent.into();
                }
                moved.into_iter().chain([message]).collect()
            }
            Update::Removed(ids) => {
                let mut groups: Vec<(String, Vec<String>)> = Vec::new();
                for id in ids {
                    let session = told_of.remove(&id).unwrap_or_else(|| told.id.to_owned());
                    match groups.last_mut().filter(|(last, _)| *last == session) {
                        Some((_, ids)) => ids.push(id),
                        None => groups.push((session, vec![id])),
                    }
                }
                groups.into_iter().map(|(session, ids)| removed(&session, ids)).collect()
            }
        }
    }

    fn text(
        &mut self,
        told: Told<'_>,
        update: Update,
        detail: Detail,
        named: bool,
        ctx: &mut Ctx,
    ) -> Result<(), Failure> {
        let prose = ctx.prose();
        let columns = NAME_COLUMNS + told.parent.map_or(0, |_| NAME_COLUMNS + " of ".len());
        let look = if named { Look { width: prose.width.saturating_sub(columns + 3), ..prose } } else { prose };
        let live = self.live.entry(told.place.to_owned()).or_default();
        let elsewhere = self.last.as_deref() != Some(told.place);
        if elsewhere {
            live.interrupted();
        }
        let text = match update {
            Update::Message(message) => live.news(&message, ctx, detail, look),
            Update::Removed(ids) => live.taken_back(&ids).map_or_else(String::new, |count| {
                let words = format!("went back: {} left behind", plural(count as u64, "message"));
                format!("\n{}\n", divider::rule(&words, &look))
            }),
        };
        if text.is_empty() {
            return Ok(());
        }
        if !named && elsewhere && self.last.is_some() {
            let words = format!("session {}", told.name());
            writeln!(ctx.out, "\n{}", divider::rule(&words, &look))?;
        }
        self.last = Some(told.place.to_owned());
        if !named {
            return Ok(ctx.out.write_all(text.as_bytes())?);
        }
        let name = width::fit(&told.name(), columns);
        let name = ctx.paint().dim(&format!("{name} │"));
        for line in text.lines() {
            writeln!(ctx.out, "{}", format!("{name} {line}").trim_end())?;
        }
        Ok(())
    }
}

/// What tells a session from others.
fn place(source: &Source) -> String {
    format!("{}#{}", source.path.to_string_lossy(), source.key.as_deref().unwrap_or_default())
}

/// Prints a value in one line.
fn print(value: &impl serde::Serialize, ctx: &mut Ctx) -> Result<(), Failure> {
    json::compact(&mut ctx.out, value)?;
    writeln!(ctx.out)?;
    Ok(())
}
