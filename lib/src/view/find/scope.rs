//! Which sessions count: those of a project, and those updated in a period.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::model::project;
use crate::session::read::source::Source;
use crate::view::answers::SessionRow;

/// Which sessions count.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Of which project.
    pub project: ProjectScope,
    /// Updated at this time or later.
    pub since: Option<Timestamp>,
    /// Updated before this time.
    pub until: Option<Timestamp>,
}

/// Of which project sessions count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectScope {
    /// Of every project.
    All,
    /// Of the project of the working directory; of every project when that directory is in none.
    Current,
    /// Of the project of this directory.
    Of(PathBuf),
}

/// The sessions in scope, and how many there are beside them.
pub struct InScope {
    /// In the order in which they came.
    pub sessions: Vec<(Box<SessionRow>, Source)>,
    /// How many belong to other projects.
    pub hidden: usize,
    /// The project, unless every project counts.
    pub project: Option<PathBuf>,
}

impl Scope {
    /// Every session, whatever its project and its time.
    pub const EVERYTHING: Scope = Scope { project: ProjectScope::All, since: None, until: None };

    /// Selects the sessions in scope, as seen from the working directory.
    pub fn select(&self, mut sessions: Vec<(Box<SessionRow>, Source)>, cwd: &Path) -> InScope {
        let project = self.project_of(sessions.iter().map(|(row, _)| &**row), cwd);
        let total = sessions.len();
        sessions.retain(|(row, _)| is_of(row, project.as_deref()));
        let hidden = total - sessions.len();
        sessions.retain(|(row, _)| self.has_time_of(row));
        InScope { sessions, hidden, project }
    }

    /// The same without taking sessions away: whether each is in scope, and how many belong to other projects.
    pub fn judge<'r>(&self, rows: impl Iterator<Item = &'r SessionRow> + Clone, cwd: &Path) -> (Vec<bool>, usize) {
        let project = self.project_of(rows.clone(), cwd);
        let of_project: Vec<bool> = rows.clone().map(|row| is_of(row, project.as_deref())).collect();
        let hidden = of_project.iter().filter(|is_of| !**is_of).count();
        let in_scope = rows.zip(of_project).map(|(row, is_of)| is_of && self.has_time_of(row)).collect();
        (in_scope, hidden)
    }

    /// The project, unless every project counts.
    fn project_of<'r>(&self, rows: impl Iterator<Item = &'r SessionRow> + Clone, cwd: &Path) -> Option<PathBuf> {
        match &self.project {
            ProjectScope::All => None,
            ProjectScope::Of(dir) => Some(project::of(&project::settled(cwd, dir))),
            ProjectScope::Current => project::git_root(cwd).or_else(|| {
                // Outside a work tree, a directory is a project only if a session names it.
                let is_project = |dir: &&Path| rows.clone().any(|row| is_of(row, Some(dir)));
                cwd.ancestors().find(is_project).map(Path::to_path_buf)
            }),
        }
    }

    fn has_time_of(&self, row: &SessionRow) -> bool {
        self.since.is_none_or(|since| row.updated.is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| row.updated.is_some_and(|at| at < until))
    }
}

fn is_of(row: &SessionRow, project: Option<&Path>) -> bool {
    project.is_none_or(|project| row.project.as_deref().is_some_and(|of| Path::new(of) == project))
}

/// Parses a date such as `2026-11-01`, an instant, or an age such as `3d` (`m`, `h`, `d`, `w`).
///
/// ```
/// use jiff::tz::TimeZone;
///
/// let now = "2026-11-15T12:00:00Z".parse()?;
/// let three_days_ago = scrollback::view::find::parse_time("3d", now, &TimeZone::UTC);
/// assert_eq!(three_days_ago, Some("2026-11-12T12:00:00Z".parse()?));
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn parse_time(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if let Ok(day) = text.parse::<Date>() {
        return day.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    }
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: i64 = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    let age = number.parse::<u32>().ok()?;
    Timestamp::from_second(now.as_second().checked_sub(seconds.checked_mul(i64::from(age))?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let read = |text: &str| parse_time(text, now, &TimeZone::UTC).map(|at| at.to_string());
        assert_eq!(read("2026-11-01").as_deref(), Some("2026-11-01T00:00:00Z"));
        assert_eq!(read("3d").as_deref(), Some("2026-11-12T12:00:00Z"));
        assert_eq!(read("2026-11-01T10:00:00+02:00").as_deref(), Some("2026-11-01T08:00:00Z"));
        for nonsense in ["", "d", "3y", "-3d", "é", "99999999999d"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
