//! Prints what changed in sessions: as text for a person, as JSON, or as chunks of the AI SDK's stream.

use std::collections::HashMap;
use std::io::Write;
use std::time::Instant;

use scrollback::model::Sdk;
use scrollback::session::{ReadOptions, Source};
use scrollback::view::find::Places;
use scrollback::view::stream::{Change, Chunks, Growing, Update};
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::notify::Notifier;

use crate::render::live::Live;
use crate::render::message::Detail;
use crate::render::short_ids::{SHORT_ID_CHARS, ShortIds};
use crate::render::{divider, plural};
use crate::terminal::{clean, width};

/// How updates are printed.
pub(crate) enum Form {
    /// As a transcript; `named` puts the session before each line.
    Text { detail: Detail, named: bool },
    /// As JSON, one object per line.
    Updates,
    /// As chunks, one per line.
    Chunks,
}

pub(crate) struct Printer {
    form: Form,
    sdk: Sdk,
    chunks: Chunks,
    /// What has been printed of each session.
    live: HashMap<String, Live>,
    /// For each place, the session that each message was printed under: a file may come to belong to another session.
    session_of: HashMap<String, HashMap<String, String>>,
    /// The session that each place was last printed under.
    session_at: HashMap<String, String>,
    /// The place that was printed last.
    last: Option<String>,
    /// How sessions are named; `None` before the first is printed.
    ids: Option<ShortIds<'static>>,
    /// Why each file could not be read, so that it is reported once.
    failed: HashMap<String, String>,
    /// Says when an agent has finished.
    pub(crate) notifier: Option<Notifier>,
}

/// The session that an update belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Label<'a> {
    pub(crate) id: &'a str,
    /// The session that started it, if it is a sub-agent's.
    pub(crate) parent: Option<&'a str>,
    pub(crate) place: &'a str,
}

impl Label<'_> {
    /// A short name for people.
    fn name(&self, ids: Option<&ShortIds<'_>>) -> String {
        let short = |id: &str| clean::line(ids.unwrap_or(&ShortIds::Unknown).short_session(id)).into_owned();
        match self.parent {
            Some(parent) => format!("{} of {}", short(self.id), short(parent)),
            None => short(self.id),
        }
    }
}

impl Printer {
    pub(crate) fn new(form: Form, sdk: Sdk) -> Printer {
        let (live, session_of, session_at, failed) = Default::default();
        let (last, ids, notifier) = (None, None, None);
        Printer { form, sdk, chunks: Chunks::new(sdk), live, session_of, session_at, last, ids, failed, notifier }
    }

    /// Looks at a file and prints what is new.
    pub(crate) fn look(&mut self, growing: &mut Growing, places: &Places, ctx: &mut Ctx) -> Result<(), Failure> {
        let source = growing.source().clone();
        let find = places.finder(&source);
        let reading = ReadOptions { find: &find, mask: ctx.mask.as_ref(), ..ReadOptions::plain(ctx.now) };
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
        // Copies of a file have the same id: only the place is unique.
        let place = place(&source);
        let label = Label { id: &id, parent: parent.as_deref(), place: &place };
        self.add_ids(label, places);
        if let Some(change) = look.change {
            // A file that has just been created may not contain its session id yet.
            let known = self.session_at.get(&place).cloned().unwrap_or_else(|| id.clone());
            self.change(Label { id: &known, ..label }, &path, change, ctx)?;
        }
        if look.updates.iter().any(|update| matches!(update, Update::Message(_))) {
            self.session_at.insert(place.clone(), id.clone());
        }
        if let Some(notifier) = self.notifier.as_mut().filter(|_| parent.is_none()) {
            notifier.saw(&place, &id, &look.updates, Instant::now());
        }
        // The messages of a rewritten file are printed already, and missing ones are not a rewind.
        self.live.entry(place.clone()).or_default().rewritten = look.change.is_some();
        self.updates(label, look.updates, ctx)
    }

    /// Says which agents have finished or wait.
    pub(crate) fn notify(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        self.notifier.as_mut().map_or(Ok(()), |notifier| notifier.tell(Instant::now(), ctx))
    }

    /// Notes the ids of a session, so that its short name names no other session.
    fn add_ids(&mut self, label: Label<'_>, places: &Places) {
        if !matches!(self.form, Form::Text { .. }) {
            return;
        }
        let ids = self.ids.get_or_insert_with(|| {
            let others = places.sources().into_iter().flatten();
            ShortIds::of_sessions(others.map(|source| source.name()))
        });
        [Some(label.id), label.parent].into_iter().flatten().for_each(|id| ids.add(id));
    }

    /// Continues with a file under its new path.
    pub(crate) fn moved(&mut self, from: &Source, to: &Source) {
        let (from, to) = (place(from), place(to));
        self.live.remove(&from).map(|live| self.live.insert(to.clone(), live));
        self.session_of.remove(&from).map(|session_of| self.session_of.insert(to.clone(), session_of));
        self.session_at.remove(&from).map(|session| self.session_at.insert(to.clone(), session));
        if self.last.as_ref() == Some(&from) {
            self.last = Some(to);
        }
    }

    /// Prints what happened to a file.
    fn change(&mut self, label: Label<'_>, path: &str, change: Change, ctx: &mut Ctx) -> Result<(), Failure> {
        if let Form::Updates = self.form {
            return print(&json!({"type": "file", "session": label.id, "path": path, "change": change}), ctx);
        }
        ctx.out.flush()?;
        let what = match change {
            Change::Gone => "does not exist; waiting for it.",
            Change::Appeared => "exists now.",
            Change::Rewritten => "was rewritten.",
            Change::Replaced => "was replaced by another file.",
        };
        ctx.note(&format!("{path} {what}"))
    }

    /// Prints the updates of a session.
    pub(crate) fn updates(&mut self, label: Label<'_>, updates: Vec<Update>, ctx: &mut Ctx) -> Result<(), Failure> {
        for update in updates {
            match &self.form {
                Form::Updates => {
                    for line in self.as_json(label, update) {
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
                    self.text(label, update, detail, named, ctx)?;
                }
            }
        }
        Ok(())
    }

    /// Prints the end of an open message.
    pub(crate) fn finish(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        if let Form::Chunks = self.form {
            for chunk in self.chunks.finish() {
                print(&chunk, ctx)?;
            }
        }
        Ok(())
    }

    /// A removed message belongs to the session that it was printed under.
    fn as_json(&mut self, label: Label<'_>, update: Update) -> Vec<Value> {
        let session_of = self.session_of.entry(label.place.to_owned()).or_default();
        let removed = |session: &str, ids: Vec<String>| json!({"type": "removed", "session": session, "ids": ids});
        match update {
            Update::Message(message) => {
                let before =
                    session_of.insert(message.id.clone(), label.id.to_owned()).filter(|before| before != label.id);
                let moved = before.map(|before| removed(&before, vec![message.id.clone()]));
                let mut message = json!({"type": "message", "session": label.id, "message": message.for_sdk(self.sdk)});
                if let Some(parent) = label.parent {
                    message["parentSession"] = parent.into();
                }
                moved.into_iter().chain([message]).collect()
            }
            Update::Removed(ids) => {
                let mut groups: Vec<(String, Vec<String>)> = Vec::new();
                for id in ids {
                    let session = session_of.remove(&id).unwrap_or_else(|| label.id.to_owned());
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
        label: Label<'_>,
        update: Update,
        detail: Detail,
        named: bool,
        ctx: &mut Ctx,
    ) -> Result<(), Failure> {
        let prose = ctx.prose();
        let name = label.name(self.ids.as_ref());
        let usual = SHORT_ID_CHARS + label.parent.map_or(0, |_| SHORT_ID_CHARS + " of ".len());
        let columns = width::of(&name).max(usual);
        let look = if named { prose.beside(columns + 3) } else { prose };
        let live = self.live.entry(label.place.to_owned()).or_default();
        let elsewhere = self.last.as_deref() != Some(label.place);
        if elsewhere {
            live.interrupted();
        }
        let text = match update {
            Update::Message(message) => live.news(&message, ctx, detail, look),
            Update::Removed(ids) => live.removed(&ids).map_or_else(String::new, |count| {
                let what = format!("rewound: {} left this branch", plural(count as u64, "message"));
                format!("\n{}\n", divider::rule(&what, &look))
            }),
        };
        if text.is_empty() {
            return Ok(());
        }
        if !named && elsewhere && self.last.is_some() {
            writeln!(ctx.out, "\n{}", divider::rule(&format!("session {name}"), &look))?;
        }
        self.last = Some(label.place.to_owned());
        if !named {
            return Ok(ctx.out.write_all(text.as_bytes())?);
        }
        let name = width::fit(&name, columns);
        let name = ctx.paint().dim(&format!("{name} │"));
        for line in text.lines() {
            writeln!(ctx.out, "{}", format!("{name} {line}").trim_end())?;
        }
        Ok(())
    }
}

/// The unique name of a place.
fn place(source: &Source) -> String {
    format!("{}#{}", source.path.to_string_lossy(), source.key.as_deref().unwrap_or_default())
}

/// Prints a value on one line.
fn print(value: &impl serde::Serialize, ctx: &mut Ctx) -> Result<(), Failure> {
    ctx.print_json_line(value)
}
