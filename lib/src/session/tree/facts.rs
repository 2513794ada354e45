//! Facts about a session as its records tell them in passing, and what its running totals grow by. All of it has limits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::dialect::SessionFacts;
use crate::model::record::{Cost, Title, Usage};

/// Facts about the session, gathered in passing: the first cwd and parent, the last branch and version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) session: Option<String>,
    /// Whom it is with.
    pub(crate) with: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) git_branch: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) models: Vec<String>,
    /// What all requests to each model cost so far, by the agent's own count; without a name, those to all models.
    pub(crate) costs_so_far: BTreeMap<Option<String>, Cost>,
    pub(crate) parent_session: Option<String>,
    pub(crate) parent_call: Option<String>,
    pub(crate) forked_from: Option<String>,
    /// The last manual, the last automatic title, the last summary.
    pub(crate) titles: Vec<Title>,
    /// Summaries, each with the record that it ends with: of this session or another.
    pub(crate) summaries: Vec<(String, String)>,
    /// Other sessions' ids that were reported already.
    foreign: Vec<String>,
    /// Of each kind of record that the dialect does not know: how many.
    pub(crate) unknown: BTreeMap<String, u64>,
}

/// A session that named thousands of models is not telling anything: this many are kept.
const MODELS_KEPT: usize = 32;

/// A file that sums up more sessions than a person has is not telling anything: this many are kept.
const SUMMARIES_KEPT: usize = 256;

/// Of the sessions mixed into a file, this many are reported once; further ones at each record.
const FOREIGN_KEPT: usize = 64;

/// A kind is a word, and an agent has a few dozen: a file with more is not telling kinds.
const UNKNOWN_KINDS_KEPT: usize = 256;
const UNKNOWN_KIND_CHARS: usize = 80;

impl Facts {
    /// Gives another session's id, when told for the first time.
    pub(crate) fn learn(&mut self, about: SessionFacts<'_>) -> Result<(), String> {
        fn first(slot: &mut Option<String>, told: Option<Cow<'_, str>>) {
            if let (None, Some(told)) = (&slot, told) {
                *slot = Some(told.into_owned());
            }
        }
        fn last(slot: &mut Option<String>, told: Option<Cow<'_, str>>) {
            if let Some(told) = told
                && slot.as_deref() != Some(&*told)
            {
                *slot = Some(told.into_owned());
            }
        }
        first(&mut self.cwd, about.cwd);
        last(&mut self.git_branch, about.git_branch);
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
            (None, Some(told)) => self.session = Some(told.into_owned()),
            (Some(known), Some(told)) if *known != *told => return self.notice(told),
            _ => {}
        }
        Ok(())
    }

    /// Learns whom the session is with. Gives somebody else, when told for the first time.
    pub(crate) fn meet(&mut self, with: Cow<'_, str>) -> Result<(), String> {
        match &self.with {
            None => self.with = Some(with.into_owned()),
            Some(known) if *known != *with => return self.notice(with),
            Some(_) => {}
        }
        Ok(())
    }

    /// Remembers another session's name; an error when it is new.
    fn notice(&mut self, other: Cow<'_, str>) -> Result<(), String> {
        if self.foreign.iter().any(|known| *known == *other) {
            return Ok(());
        }
        if self.foreign.len() < FOREIGN_KEPT {
            self.foreign.push(other.clone().into_owned());
        }
        Err(other.into_owned())
    }

    /// Notes what all requests to a model, or to all models, cost so far.
    pub(crate) fn spend(&mut self, model: Option<Cow<'_, str>>, cost: Cost) {
        let model = model.map(Cow::into_owned);
        if self.costs_so_far.len() < MODELS_KEPT || self.costs_so_far.contains_key(&model) {
            self.costs_so_far.insert(model, cost);
        }
    }

    pub(crate) fn entitle(&mut self, title: Title) {
        if title.text.trim().is_empty() {
            return;
        }
        self.titles.retain(|known| known.source != title.source);
        self.titles.push(title);
    }

    pub(crate) fn sum_up(&mut self, of: Cow<'_, str>, text: Cow<'_, str>) {
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

    /// Takes from a sidecar what the log does not tell.
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

/// What the last running total was.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    last: Option<Usage>,
}

impl Totals {
    /// Gives what a total tells: what it has grown by; where it did not grow, or nothing came before it, its latest request.
    pub(crate) fn take(&mut self, total: Usage, last: Option<Usage>) -> Usage {
        let grown = self.last.replace(total).and_then(|before| total.since(before));
        grown.or(last).unwrap_or(total)
    }
}
