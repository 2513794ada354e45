//! Requests to a model: which of them are a session's own, and what they cost, each counted once.

use hashbrown::{HashMap, HashSet};

use crate::dialect::RepeatedId;
use crate::model::issue::IssueKind;
use crate::model::record::Usage;
use crate::session::tree::NodeIx;
use crate::session::tree::skeleton::Flags;
use crate::session::{Branch, RecordRef, Session};

/// One request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// By the hash of its name, the same in every session.
    Named(u64),
    /// By the record that tells of it, known in this session only.
    Record(u32),
}

impl Session {
    /// Tokens of the session's own requests, each counted once (reading rule 6).
    pub fn usage(&self) -> Option<Usage> {
        sum(self.requests())
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

    /// The session's own requests with what each cost. A copy of a session repeats the names of the requests it copies.
    pub fn requests(&self) -> HashMap<Request, Usage> {
        self.requests_where(|_| true)
    }

    /// What the session's own requests among some records cost, by the order of the record that tells it or stands before what
    /// tells it.
    pub(crate) fn costs_of(&self, records: &[RecordRef<'_>]) -> HashMap<usize, Usage> {
        let owners = self.owners();
        let owner = |entry: u32| owners.get(entry as usize).copied().flatten();
        let among: HashSet<NodeIx> = records.iter().map(|record| record.node).collect();
        let mut costs: HashMap<usize, Usage> = HashMap::new();
        for (entry, usage) in
            self.told_where(|entry| owner(entry).is_some_and(|owner| among.contains(&owner))).into_values()
        {
            owner(entry).into_iter().for_each(|owner| costs.entry(owner as usize).or_default().add(usage));
        }
        costs
    }

    /// Tokens of the session's own requests but those that a record tells of.
    pub(crate) fn usage_without(&self, record: RecordRef<'_>) -> Option<Usage> {
        let owners = self.owners();
        sum(self.requests_where(|entry| owners.get(entry as usize).copied().flatten() != Some(record.node)))
    }

    fn requests_where(&self, wanted: impl Fn(u32) -> bool) -> HashMap<Request, Usage> {
        self.told_where(wanted).into_iter().map(|(request, (_, usage))| (request, usage)).collect()
    }

    /// Each request with what it cost, and the entry that says so.
    fn told_where(&self, wanted: impl Fn(u32) -> bool) -> HashMap<Request, (u32, Usage)> {
        let repeats = self.derived.tree.issues.iter().filter(|found| found.kind == IssueKind::DuplicateLine);
        let repeats: HashSet<u32> = repeats.map(|found| found.entry).collect();
        let inherited = |entry: u32| self.skeleton.entries[entry as usize].flags.has(Flags::INHERITED);
        let own = |entry: u32| !inherited(entry) && !repeats.contains(&entry);
        let distinct = self.dialect().traits().repeated_id == RepeatedId::Distinct;
        let record = |entry: u32| if distinct { entry } else { self.skeleton.entries[entry as usize].id };
        // Of fragments the last counts. A named request repeats its usage on each of its records, more or less finished;
        // a record's own only grows.
        let joins = self.dialect().traits().repeated_id == RepeatedId::Join;
        // Running totals count up to the first record that tells the cost of one request: an older version wrote them.
        let first = self.skeleton.usages.iter().find(|told| own(told.entry)).map_or(u32::MAX, |told| told.entry);
        let totals = self.skeleton.growth.iter().take_while(|told| told.entry < first);
        let mut requests: HashMap<Request, (u32, Usage)> = HashMap::new();
        for told in totals.chain(&self.skeleton.usages).filter(|told| own(told.entry) && wanted(told.entry)) {
            let request = told.request.map_or_else(|| Request::Record(record(told.entry)), Request::Named);
            let known = requests.entry(request).or_insert((told.entry, told.usage));
            if joins || told.request.is_none() || told.usage.output >= known.1.output {
                *known = (told.entry, told.usage);
            }
        }
        requests
    }

    /// The record that each entry belongs to; what has no place in the chain belongs to the link before it.
    fn owners(&self) -> Vec<Option<NodeIx>> {
        let tree = &self.derived.tree;
        let mut owners = vec![None; self.skeleton.entries.len()];
        for node in 0..tree.nodes.len() as NodeIx {
            tree.entries_of(node).into_iter().for_each(|entry| owners[entry as usize] = Some(node));
        }
        let mut before = None;
        for (owner, entry) in owners.iter_mut().zip(&self.skeleton.entries) {
            if entry.flags.has(Flags::SIDE) {
                *owner = before;
            } else {
                before = owner.or(before);
            }
        }
        owners
    }
}

fn sum(requests: HashMap<Request, Usage>) -> Option<Usage> {
    requests.into_values().reduce(|mut sum, usage| {
        sum.add(usage);
        sum
    })
}
