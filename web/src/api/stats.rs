//! Tokens, cost, turns and tool calls over sessions, as `stats --json` has them.

use axum::response::Response;
use scrollback::view::counting::{Elected, Level, StatsQuery, stats as count};

use super::sessions::is_of;
use super::{Ask, Problem};
use crate::catalogue;

/// The figures.
pub(super) fn stats(ask: &Ask) -> Result<Response, Problem> {
    let mut by: Vec<Level> = Vec::new();
    for name in ask.params.get("by").unwrap_or("day").split(',') {
        let level = Level::named(name.trim()).ok_or_else(|| {
            let names = Level::ALL.map(|level| level.name()).join(", ");
            Problem::usage(format!("by: {name:?} is not one of {names}"))
        })?;
        if !by.contains(&level) {
            by.push(level);
        }
    }
    let query = StatsQuery {
        by,
        zone: ask.site.zone.clone(),
        since: ask.time("since")?,
        until: ask.time("until")?,
        price: &*ask.site.price,
    };
    let sessions = catalogue::counted(&ask.site, &|row| is_of(row, ask));
    ask.json(&count(&sessions, &Elected::among(&sessions), &query))
}
