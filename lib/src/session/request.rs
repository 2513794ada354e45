//! Requests to a model: which of them are a session's own, and what they cost, each counted once.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};
use jiff::Timestamp;
use xxhash_rust::xxh3::Xxh3;

use crate::dialect::RepeatedId;
use crate::model::issue::IssueKind;
use crate::model::named_requests::NamedRequests;
use crate::model::record::{Cost, Usage};
use crate::session::tree::NodeIx;
use crate::session::tree::skeleton::{Entry, Flags, NO_TIME};
use crate::session::{Branch, RecordRef, Session};

/// What identifies a request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// The hash of its name, the same in every session.
    Named(u64),
    /// The record that reports it, known in this session only.
    Record(u32),
}

/// One request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'s> {
    /// Its tokens.
    pub usage: Usage,
    /// The model that answered, where the agent names it.
    pub model: Option<&'s str>,
    /// What it cost, where the agent records that.
    pub cost: Option<Cost>,
    /// The entry that reports it.
    entry: u32,
    /// The first entry that names it: later ones repeat it, more or less finished.
    first: u32,
}

/// Tokens of a session's requests.
pub(crate) struct UsageTally {
    /// Of all requests in its files.
    pub(crate) all: Option<Usage>,
    /// Of those in records that are marked as copies of another session's.
    pub(crate) copied: Option<Usage>,
    /// The hash of the name of each other request that has one, and its tokens.
    pub(crate) named: NamedRequests,
}

impl Request<'_> {
    /// The entry that reports it.
    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    /// The first entry that names it.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }
}

impl Session {
    /// The session's own requests. A copy of a session repeats the names of the requests it copies.
    pub fn requests(&self) -> HashMap<RequestId, Request<'_>> {
        self.requests_where(|_| true)
    }

    /// Tokens of the session's own requests, each counted once (reading rule 6).
    pub fn usage(&self) -> Option<Usage> {
        sum(self.requests())
    }

    /// What its requests add up to, and which of them other sessions may have too.
    pub(crate) fn tally(&self) -> UsageTally {
        let requests = self.requests();
        let is_copied = |request: &Request<'_>| self.skeleton.entries[request.entry as usize].flags.has(Flags::COPIED);
        let copied = requests.values().filter(|request| is_copied(request)).map(|request| request.usage);
        let name = |(id, request): (&RequestId, &Request<'_>)| match id {
            RequestId::Named(name) => Some(*name),
            // Copies have the same time and the same counts.
            RequestId::Record(_) => Some(name_by_content(self.time_of(request)?, request.usage)),
        };
        let own = requests.iter().filter(|(_, request)| !is_copied(request));
        let named = own.filter_map(|(id, request)| Some((name((id, request))?, request.usage)));
        let (copied, named) = (Usage::sum(copied), named.collect());
        UsageTally { all: sum(requests), copied, named }
    }

    /// What the session's requests to each model cost, where the agent records that: its own running totals, or else the
    /// costs of the single requests.
    pub fn costs(&self) -> BTreeMap<Option<&str>, Cost> {
        let so_far = &self.skeleton.facts.costs_so_far;
        if !so_far.is_empty() {
            return so_far.iter().map(|(model, cost)| (model.as_deref(), *cost)).collect();
        }
        let mut costs: BTreeMap<Option<&str>, Cost> = BTreeMap::new();
        for request in self.requests().values() {
            request.cost.into_iter().for_each(|cost| costs.entry(request.model).or_default().add(cost));
        }
        costs
    }

    /// Tokens of the session's own requests on a branch, each counted once.
    pub fn usage_of(&self, branch: &Branch<'_>) -> Option<Usage> {
        self.usages_of([branch.clone()]).next().flatten()
    }

    /// The same for several branches.
    pub(crate) fn usages_of<'b>(
        &self,
        branches: impl IntoIterator<Item = Branch<'b>>,
    ) -> impl Iterator<Item = Option<Usage>> {
        let owners = self.owners();
        branches.into_iter().map(move |branch| {
            let on: HashSet<NodeIx> = branch.records.iter().map(|record| record.node).collect();
            sum(self.requests_where(|entry| owners[entry as usize].is_some_and(|owner| on.contains(&owner))))
        })
    }

    /// The session's own requests among some records, by the order of the record that each belongs to.
    pub fn requests_by_record<'s>(
        &'s self,
        records: impl IntoIterator<Item = RecordRef<'s>>,
    ) -> BTreeMap<usize, Vec<Request<'s>>> {
        let owners = self.owners();
        let owner = |entry: u32| owners[entry as usize];
        let among: HashSet<NodeIx> = records.into_iter().map(|record| record.node).collect();
        let mut by_record: BTreeMap<usize, Vec<Request<'s>>> = BTreeMap::new();
        let requests = self.requests_where(|entry| owner(entry).is_some_and(|owner| among.contains(&owner)));
        for request in requests.into_values() {
            let owner = owner(request.entry).into_iter();
            owner.for_each(|owner| by_record.entry(owner as usize).or_default().push(request));
        }
        by_record.values_mut().for_each(|requests| requests.sort_by_key(|request| request.first));
        by_record
    }

    /// Their tokens.
    pub fn usage_by_record(&self, records: &[RecordRef<'_>]) -> BTreeMap<usize, Usage> {
        let by_record = self.requests_by_record(records.iter().copied()).into_iter();
        let sum = |requests: Vec<Request<'_>>| Usage::sum(requests.iter().map(|request| request.usage));
        by_record.filter_map(|(order, requests)| Some((order, sum(requests)?))).collect()
    }

    /// When a request was first reported.
    pub fn time_of(&self, request: &Request<'_>) -> Option<Timestamp> {
        let at = self.skeleton.entries.get(request.first as usize)?.at;
        Some(at).filter(|at| *at != NO_TIME).and_then(|at| Timestamp::from_microsecond(at).ok())
    }

    /// Tokens of the session's own requests but those that a record reports.
    pub(crate) fn usage_without(&self, record: RecordRef<'_>) -> Option<Usage> {
        let owners = self.owners();
        sum(self.requests_where(|entry| owners[entry as usize] != Some(record.node)))
    }

    /// The session's own requests among the entries that are wanted.
    fn requests_where(&self, wanted: impl Fn(u32) -> bool) -> HashMap<RequestId, Request<'_>> {
        let repeats = self.derived.tree.issues.iter().filter(|found| found.kind == IssueKind::DuplicateLine);
        let repeats: HashSet<u32> = repeats.map(|found| found.entry).collect();
        let is_inherited = |entry: u32| self.skeleton.entries[entry as usize].flags.has(Flags::INHERITED);
        let is_own = |entry: u32| !is_inherited(entry) && !repeats.contains(&entry);
        let repeated = self.dialect().traits().repeated_id;
        let is_distinct = repeated == RepeatedId::Distinct;
        let record = |entry: u32| if is_distinct { entry } else { self.skeleton.entries[entry as usize].id };
        // The last fragment counts. A named request repeats its usage on each of its records, more or less finished;
        // a record's own only grows.
        let is_joined = repeated == RepeatedId::Join;
        let reports = self.skeleton.growth.iter().chain(&self.skeleton.usages);
        let mut requests: HashMap<RequestId, Request<'_>> = HashMap::new();
        for reported in reports.filter(|usage| is_own(usage.entry) && wanted(usage.entry)) {
            let id = reported.request.map_or_else(|| RequestId::Record(record(reported.entry)), RequestId::Named);
            let model = reported.model.map(|model| self.skeleton.models.get(model));
            let request = Request {
                usage: reported.usage,
                model,
                cost: reported.cost,
                entry: reported.entry,
                first: reported.entry,
            };
            let known = requests.entry(id).or_insert(request);
            if is_joined || reported.request.is_none() || request.usage.output >= known.usage.output {
                *known = Request { cost: request.cost.or(known.cost), first: known.first, ..request };
            }
        }
        requests
    }

    /// The record that each entry belongs to: an entry outside the chain belongs to the link before it, and a compaction's own
    /// answer to the compaction.
    pub(crate) fn owners(&self) -> Vec<Option<NodeIx>> {
        let tree = &self.derived.tree;
        let mut owners = vec![None; self.skeleton.entries.len()];
        for node in 0..tree.nodes.len() as NodeIx {
            tree.entries_of(node).iter().for_each(|entry| owners[*entry as usize] = Some(node));
        }
        let entries = &self.skeleton.entries;
        let is_link = |entry: &Entry| !entry.flags.has(Flags::SIDE);
        let mut before = None;
        for (at, entry) in entries.iter().enumerate() {
            if entry.flags.has(Flags::SUMMARY) {
                before = entries[at..].iter().position(is_link).and_then(|after| owners[at + after]);
            }
            if is_link(entry) {
                before = owners[at].or(before);
            } else {
                owners[at] = before;
            }
        }
        owners
    }
}

fn sum(requests: HashMap<RequestId, Request<'_>>) -> Option<Usage> {
    Usage::sum(requests.into_values().map(|request| request.usage))
}
/// A name for a request that has none.
fn name_by_content(at: Timestamp, usage: Usage) -> u64 {
    let Usage { input, output, cache_read, cache_write, reasoning } = usage;
    let mut hash = Xxh3::new();
    hash.update(&at.as_microsecond().to_le_bytes());
    for count in [input, output, cache_read, cache_write, reasoning] {
        hash.update(&count.map_or(0, |count| count.saturating_add(1)).to_le_bytes());
    }
    hash.digest()
}
