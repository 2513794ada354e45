//! What the rows of a count are: days, projects, models and so on.

use jiff::civil::Date;

use crate::model::named_enum;

named_enum! {
    /// One level of the rows.
    Level {
        /// A day, as in `2026-03-01`.
        Day = "day",
        /// A week that begins on Monday, as in `2026-W09`.
        Week = "week",
        /// A month, as in `2026-03`.
        Month = "month",
        /// The project of the session.
        Project = "project",
        /// The agent: the name of its dialect.
        Agent = "agent",
        /// The model that answered.
        Model = "model",
        /// The tool that was called.
        Tool = "tool",
        /// The session, sub-agents included.
        Session = "session",
    }
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 8] = [
        Level::Day,
        Level::Week,
        Level::Month,
        Level::Project,
        Level::Agent,
        Level::Model,
        Level::Tool,
        Level::Session,
    ];

    /// The level with this name.
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether its rows are in the order of time.
    pub fn is_time(self) -> bool {
        matches!(self, Level::Day | Level::Week | Level::Month)
    }

    /// The name of the period that a day is in.
    pub(super) fn period(self, date: Date) -> String {
        match self {
            Level::Week => {
                let week = date.iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            Level::Month => format!("{:04}-{:02}", date.year(), date.month()),
            _ => date.to_string(),
        }
    }
}
