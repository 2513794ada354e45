//! Requests to a model: which of them are a session's own, and what they cost, each counted once.

use hashbrown::{HashMap, HashSet};

use crate::dialect::Repeated;
use crate::issue::IssueKind;
use crate::record::Usage;
use crate::session::Session;
use crate::skeleton::Flags;

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
        let requests = self.requests().into_values().reduce(|mut sum, usage| {
            sum.add(usage);
            sum
        });
        requests.or(self.skeleton.totals.sum)
    }

    /// The session's own requests with what each cost. A copy of a session repeats the names of the requests it copies.
    pub fn requests(&self) -> HashMap<Request, Usage> {
        let repeats = self.derived.tree.issues.iter().filter(|found| found.kind == IssueKind::DuplicateLine);
        let repeats: HashSet<u32> = repeats.map(|found| found.entry).collect();
        let inherited = |entry: u32| self.skeleton.entries[entry as usize].flags.has(Flags::INHERITED);
        let own = |entry: u32| !inherited(entry) && !repeats.contains(&entry);
        let distinct = self.dialect().habits().repeated == Repeated::Distinct;
        let record = |entry: u32| if distinct { entry } else { self.skeleton.entries[entry as usize].id };
        // Of fragments the last counts. A named request repeats its usage on each of its records, more or less finished;
        // a record's own only grows.
        let joins = self.dialect().habits().repeated == Repeated::Join;
        let mut requests: HashMap<Request, Usage> = HashMap::new();
        for told in self.skeleton.usages.iter().filter(|told| own(told.entry)) {
            let request = told.request.map_or_else(|| Request::Record(record(told.entry)), Request::Named);
            let known = requests.entry(request).or_insert(told.usage);
            if joins || told.request.is_none() || told.usage.output >= known.output {
                *known = told.usage;
            }
        }
        requests
    }
}
