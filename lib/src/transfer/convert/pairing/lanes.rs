//! The ways through a session's tree as lanes, so that the calls before a result are found without walking its records.
//!
//! ```text
//! records   u1 ── a1 ── r1 ── a2 ── u2 ── a3        lane 0: u1 a1 r1 a2     lane 1, a turn: u2 a3
//!                  └── r2 ── a4                     lane 2, from place 1 of lane 0: r2 a4
//! ```
//!
//! A turn begins a lane, and so does the second child of a record. The records of one answer have one place.

use hashbrown::HashMap;

use crate::model::record::Kind;
use crate::session::RecordRef;

/// A place on a lane, counted from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LanePlace {
    pub(super) lane: usize,
    pub(super) place: usize,
}

struct Lane {
    /// The place before its first.
    above: Option<LanePlace>,
    /// Its last place so far.
    last: usize,
    starts_turn: bool,
}

/// The lanes of the records that were asked for.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// By the order of records.
    places: HashMap<usize, LanePlace>,
}

impl Lanes {
    /// Gives the records of one answer one place: that of the first.
    pub(super) fn join(&mut self, records: &[RecordRef<'_>]) {
        if let [first, others @ ..] = records
            && !others.is_empty()
        {
            let place = self.place_of(*first);
            self.places.extend(others.iter().map(|record| (record.order(), place)));
        }
    }

    /// The place of a record. Each record is looked at once, whatever is asked for.
    pub(super) fn place_of(&mut self, record: RecordRef<'_>) -> LanePlace {
        let mut unplaced = Vec::new();
        let (mut next, mut above) = (Some(record), None);
        while let Some(record) = next {
            above = self.places.get(&record.order()).copied();
            if above.is_some() {
                break;
            }
            unplaced.push(record);
            next = record.parent();
        }
        for record in unplaced.iter().rev() {
            let place = self.place_after(above, starts_turn(*record));
            self.places.insert(record.order(), place);
            above = Some(place);
        }
        // The record itself is placed now, or was before.
        above.unwrap_or(LanePlace { lane: 0, place: 0 })
    }

    fn place_after(&mut self, above: Option<LanePlace>, starts_turn: bool) -> LanePlace {
        if let Some(above) = above.filter(|_| !starts_turn)
            && let Some(lane) = self.lanes.get_mut(above.lane).filter(|lane| lane.last == above.place)
        {
            lane.last += 1;
            return LanePlace { place: lane.last, ..above };
        }
        self.lanes.push(Lane { above, last: 0, starts_turn });
        LanePlace { lane: self.lanes.len() - 1, place: 0 }
    }

    /// A place, and the last one before it on each lane that leads to it, with whether that lane starts a turn.
    pub(super) fn up_from(&self, place: LanePlace) -> impl Iterator<Item = (LanePlace, bool)> + '_ {
        let lane_of = |place: LanePlace| self.lanes.get(place.lane);
        std::iter::successors(Some(place), move |place| lane_of(*place)?.above)
            .map(move |place| (place, lane_of(place).is_some_and(|lane| lane.starts_turn)))
    }
}

/// Whether `show` starts a new message with a record.
fn starts_turn(record: RecordRef<'_>) -> bool {
    let kind = record.kind();
    kind == Kind::User
        || (kind == Kind::System && !record.is_failure())
        || (kind == Kind::Assistant && record.is_message())
}
