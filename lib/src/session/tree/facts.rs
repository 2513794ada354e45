//! Facts about a session, collected from its records. Each list has a limit.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dialect::SessionFacts;
use crate::model::record::{Cost, Title};
use crate::model::time::Micros;

/// Facts about the session: the first working directory and parent, the last git branch, platform, kind of user and version.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) session: Option<String>,
    /// Whom it is with.
    pub(crate) with: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) git_branch: Option<String>,
    pub(crate) platform: Option<String>,
    pub(crate) user_type: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) models: Vec<String>,
    /// What all requests to each model cost so far, by the agent's own count; without a name, those to all models.
    pub(crate) costs_so_far: BTreeMap<Option<String>, Cost>,
    pub(crate) parent_session: Option<String>,
    pub(crate) parent_call: Option<String>,
    pub(crate) forked_from: Option<String>,
    /// Sessions whose headers were copied before the first record, and those that they were forked from.
    pub(crate) copied_headers: Vec<String>,
    /// The last manual, the last automatic title, the last summary.
    pub(crate) titles: Vec<Title>,
    /// The most binding title of a line, of those the last, and where that line ends.
    pub(crate) title_line: Option<TitleLine>,
    /// When the last title was given.
    pub(crate) titled_at: Option<Micros>,
    /// Summaries of this session or others, each with that session's last record.
    pub(crate) summaries: Vec<(String, String)>,
    /// Ids of other sessions that were reported already.
    foreign: Vec<String>,
    /// How many records there are of each unknown kind.
    pub(crate) unknown: BTreeMap<String, u64>,
}

/// A line of a log that gives the session a title.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TitleLine {
    pub(crate) title: Title,
    /// The offset of its end.
    pub(crate) end: u64,
}

impl TitleLine {
    /// The line that counts when another one follows.
    pub(crate) fn followed_by(line: Option<TitleLine>, next: TitleLine) -> TitleLine {
        line.filter(|line| line.title.source > next.title.source).unwrap_or(next)
    }
}

/// How many models are kept: a session with thousands of names is not useful.
const MODELS_KEPT: usize = 32;

/// How many summaries of sessions are kept.
const SUMMARIES_KEPT: usize = 256;

/// How many sessions are kept whose headers were copied: a fork of a fork of a fork has three.
const COPIED_HEADERS_KEPT: usize = 64;

/// How many sessions mixed into a file are reported once; further ones are reported at each record.
const FOREIGN_KEPT: usize = 64;

/// How many unknown kinds are counted, and how much of each is kept: an agent has a few dozen, each a word.
const UNKNOWN_KINDS_KEPT: usize = 256;
const UNKNOWN_KIND_CHARS: usize = 80;

impl Facts {
    /// Adds facts. Returns another session's id as an error, the first time.
    pub(crate) fn add(&mut self, about: SessionFacts<'_>) -> Result<(), String> {
        fn first(slot: &mut Option<String>, value: Option<Cow<'_, str>>) {
            if let (None, Some(value)) = (&slot, value) {
                *slot = Some(value.into_owned());
            }
        }
        fn last(slot: &mut Option<String>, value: Option<Cow<'_, str>>) {
            if let Some(value) = value
                && slot.as_deref() != Some(&*value)
            {
                *slot = Some(value.into_owned());
            }
        }
        first(&mut self.cwd, about.cwd);
        last(&mut self.git_branch, about.git_branch);
        last(&mut self.platform, about.platform);
        last(&mut self.user_type, about.user_type);
        last(&mut self.version, about.version);
        first(&mut self.parent_session, about.parent_session);
        first(&mut self.parent_call, about.parent_call);
        first(&mut self.forked_from, about.forked_from);
        if let Some(model) = about.model
            && self.models.len() < MODELS_KEPT
            && !self.models.iter().any(|known| *known == *model)
        {
            self.models.push(model.into_owned());
        }
        match (&self.session, about.session) {
            (None, Some(value)) => self.session = Some(value.into_owned()),
            (Some(known), Some(value)) if *known != *value => return self.add_foreign(value),
            _ => {}
        }
        Ok(())
    }

    /// Adds the header of another session that was copied with its records.
    pub(crate) fn add_copied_header(&mut self, about: SessionFacts<'_>) {
        for id in [about.session, about.forked_from].into_iter().flatten() {
            if self.copied_headers.len() < COPIED_HEADERS_KEPT && !self.copied_headers.iter().any(|known| *known == *id)
            {
                self.copied_headers.push(id.into_owned());
            }
        }
    }

    /// Sets whom the session is with. Returns another peer as an error, the first time.
    pub(crate) fn set_peer(&mut self, with: Cow<'_, str>) -> Result<(), String> {
        match &self.with {
            None => self.with = Some(with.into_owned()),
            Some(known) if *known != *with => return self.add_foreign(with),
            Some(_) => {}
        }
        Ok(())
    }

    /// Remembers another session's name; an error if it is new.
    fn add_foreign(&mut self, other: Cow<'_, str>) -> Result<(), String> {
        if self.foreign.iter().any(|known| *known == *other) {
            return Ok(());
        }
        if self.foreign.len() < FOREIGN_KEPT {
            self.foreign.push(other.clone().into_owned());
        }
        Err(other.into_owned())
    }

    /// Sets what all requests to a model, or to all models, cost so far.
    pub(crate) fn set_cost_so_far(&mut self, model: Option<Cow<'_, str>>, cost: Cost) {
        let model = model.map(Cow::into_owned);
        if self.costs_so_far.len() < MODELS_KEPT || self.costs_so_far.contains_key(&model) {
            self.costs_so_far.insert(model, cost);
        }
    }

    /// Adds the title of a line that ends there.
    pub(crate) fn add_title_line(&mut self, title: Title, end: u64) {
        if !title.text.trim().is_empty() {
            let line = TitleLine { title: title.clone(), end };
            self.title_line = Some(TitleLine::followed_by(self.title_line.take(), line));
        }
        self.add_title(title);
    }

    pub(crate) fn add_title(&mut self, title: Title) {
        if title.text.trim().is_empty() {
            return;
        }
        self.titles.retain(|known| known.source != title.source);
        self.titles.push(title);
    }

    pub(crate) fn add_summary(&mut self, of: Cow<'_, str>, text: Cow<'_, str>) {
        self.summaries.retain(|(known, _)| *known != *of);
        if self.summaries.len() < SUMMARIES_KEPT {
            self.summaries.push((of.into_owned(), text.into_owned()));
        }
    }

    /// Counts a kind of record that the dialect does not know.
    pub(crate) fn count_unknown(&mut self, kind: &str) -> u64 {
        let kind: String = kind.chars().take(UNKNOWN_KIND_CHARS).collect();
        let full = self.unknown.len() >= UNKNOWN_KINDS_KEPT && !self.unknown.contains_key(&kind);
        let count = self.unknown.entry(if full { "…".to_owned() } else { kind }).or_default();
        *count += 1;
        *count
    }

    /// The title that counts: the most binding, and of those the last.
    pub(crate) fn title(&self) -> Option<&Title> {
        self.titles.iter().max_by_key(|title| title.source)
    }

    /// Every text among them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let Facts { session, with, cwd, git_branch, platform, user_type, version, .. } = self;
        let Facts { parent_session, parent_call, forked_from, .. } = self;
        let single =
            [session, with, cwd, git_branch, platform, user_type, version, parent_session, parent_call, forked_from];
        let line = self.title_line.as_ref().map(|line| &line.title);
        let titles = self.titles.iter().chain(line).map(|title| &title.text);
        let summaries = self.summaries.iter().flat_map(|(of, text)| [of, text]);
        let several = self.models.iter().chain(&self.foreign).chain(&self.copied_headers).chain(self.unknown.keys());
        let costs = self.costs_so_far.keys().flatten();
        single
            .into_iter()
            .flatten()
            .chain(titles)
            .chain(summaries)
            .chain(several)
            .chain(costs)
            .map(String::as_str)
    }

    /// Adds facts from a sidecar that are missing in the log.
    pub(crate) fn fall_back_on(&mut self, sidecar: Facts) {
        self.session = self.session.take().or(sidecar.session);
        self.cwd = self.cwd.take().or(sidecar.cwd);
        self.git_branch = self.git_branch.take().or(sidecar.git_branch);
        self.version = self.version.take().or(sidecar.version);
        self.parent_session = self.parent_session.take().or(sidecar.parent_session);
        self.parent_call = self.parent_call.take().or(sidecar.parent_call);
        if self.models.is_empty() {
            self.models = sidecar.models;
        }
        if self.titles.is_empty() {
            self.titles = sidecar.titles;
        }
    }
}
