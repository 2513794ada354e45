//! From a question to what an index can decide: words as an expression of FTS5, everything else as a condition on the rows of parts.

use std::cell::Cell;

use hashbrown::HashSet;
use rusqlite::Connection;

use super::block::PartRow;
use crate::query::{Expr, Filter, Labels, Query, ROLES, Term};
use crate::words::fold;

/// A question that an index can answer.
pub(super) struct Statement {
    /// What the words must match; `None` if the condition alone decides.
    pub(super) words: Option<String>,
    /// Whether all words that begin in some way are among them.
    pub(super) has_beginning: bool,
    /// What else must be true of a part.
    pub(super) condition: Condition,
}

/// What must be true of a part.
#[derive(Debug)]
pub(super) enum Condition {
    /// It is one of these rows, in their order: those that match some words.
    Rows(Vec<i64>),
    Role(u8),
    /// A name of it is one of these.
    Named(Naming, HashSet<u32>),
    /// At this time or later, in microseconds.
    Since(i64),
    /// Before this time.
    Until(i64),
    /// It has one of these labels.
    Labels(u8),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// What a name of a part names; these numbers are in index files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Naming {
    Tool = 0,
    Files = 1,
    Model = 2,
}

impl Condition {
    /// Whether it is true of a row with this number.
    pub(super) fn holds(&self, number: i64, row: &PartRow) -> bool {
        match self {
            Condition::Rows(rows) => rows.binary_search(&number).is_ok(),
            Condition::Role(role) => row.role == *role,
            Condition::Named(Naming::Tool, names) => names.contains(&row.tool),
            Condition::Named(Naming::Files, names) => names.contains(&row.files),
            Condition::Named(Naming::Model, names) => names.contains(&row.model),
            Condition::Since(from) => row.at.is_some_and(|at| at >= *from),
            Condition::Until(end) => row.at.is_some_and(|at| at < *end),
            Condition::Labels(labels) => row.labels.bits() & labels != 0,
            Condition::Not(inner) => !inner.holds(number, row),
            Condition::All(all) => all.iter().all(|one| one.holds(number, row)),
            Condition::Any(any) => any.iter().any(|one| one.holds(number, row)),
        }
    }
}

/// A piece of a question: FTS5 can decide it alone, or not.
enum Piece {
    Words(String),
    Condition(Condition),
}

type Result<T> = rusqlite::Result<T>;

/// Filters on the session are decided before: they are always true here.
pub(super) fn of(query: &Query, connection: &Connection) -> Result<Statement> {
    let writing = Writing { connection };
    let (words, condition) = match query.expr() {
        // Words and filters together are driven by the words.
        Expr::And(all) => writing.conjunction(all)?,
        expr => match writing.piece(expr)? {
            Piece::Words(words) => (Some(words), Vec::new()),
            Piece::Condition(condition) => (None, vec![condition]),
        },
    };
    // Words are letters and digits.
    let has_beginning = words.as_ref().is_some_and(|words| words.contains('*'));
    Ok(Statement { words, has_beginning, condition: Condition::All(condition) })
}

/// A statement while it is written.
struct Writing<'c> {
    connection: &'c Connection,
}

impl Writing<'_> {
    fn piece(&self, expr: &Expr) -> Result<Piece> {
        Ok(match expr {
            Expr::Term(term) => Piece::Words(self.term(term)?),
            Expr::Filter(filter) => Piece::Condition(self.filter(filter)?),
            // The archive reads the texts of such questions.
            Expr::Regex(_) => Piece::Condition(Condition::All(Vec::new())),
            Expr::Not(inner) => Piece::Condition(Condition::Not(Box::new(self.condition(self.piece(inner)?)?))),
            Expr::And(all) => match self.conjunction(all)? {
                (Some(words), conditions) if conditions.is_empty() => Piece::Words(words),
                (words, mut conditions) => {
                    let words = words.map(|words| self.condition(Piece::Words(words)));
                    conditions.extend(words.transpose()?);
                    Piece::Condition(Condition::All(conditions))
                }
            },
            Expr::Or(any) => {
                let pieces = any.iter().map(|one| self.piece(one)).collect::<Result<Vec<Piece>>>()?;
                let words = |piece: &Piece| if let Piece::Words(words) = piece { Some(words.clone()) } else { None };
                match pieces.iter().map(words).collect::<Option<Vec<String>>>() {
                    Some(words) => Piece::Words(format!("({})", words.join(" OR "))),
                    None => {
                        let conditions = pieces.into_iter().map(|piece| self.condition(piece));
                        Piece::Condition(Condition::Any(conditions.collect::<Result<_>>()?))
                    }
                }
            }
        })
    }

    fn term(&self, term: &Term) -> Result<String> {
        let failure = Cell::new(None);
        let is_word = |word: &str| {
            has_word(self.connection, word).unwrap_or_else(|error| {
                failure.set(Some(error));
                false
            })
        };
        let words = term_words(term, &is_word);
        failure.into_inner().map_or(Ok(words), Err)
    }

    /// Everything at once: the words that FTS5 decides together, and the rest.
    fn conjunction(&self, all: &[Expr]) -> Result<(Option<String>, Vec<Condition>)> {
        let (mut wanted, mut unwanted, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for one in all {
            match one {
                Expr::Not(inner) => match self.piece(inner)? {
                    Piece::Words(words) => unwanted.push(words),
                    Piece::Condition(condition) => rest.push(Condition::Not(Box::new(condition))),
                },
                one => match self.piece(one)? {
                    Piece::Words(words) => wanted.push(words),
                    Piece::Condition(condition) => rest.push(condition),
                },
            }
        }
        let words = match (wanted.is_empty(), unwanted.is_empty()) {
            (true, _) => {
                for words in unwanted {
                    rest.push(Condition::Not(Box::new(self.condition(Piece::Words(words))?)));
                }
                None
            }
            (false, true) => Some(format!("({})", wanted.join(" AND "))),
            (false, false) => Some(format!("(({}) NOT ({}))", wanted.join(" AND "), unwanted.join(" OR "))),
        };
        Ok((words, rest))
    }

    fn condition(&self, piece: Piece) -> Result<Condition> {
        match piece {
            Piece::Words(words) => {
                let sql = "select rowid from words where words match ?1 order by rowid";
                let mut statement = self.connection.prepare_cached(sql)?;
                let rows = statement.query_map([words], |row| row.get(0))?.collect::<Result<_>>()?;
                Ok(Condition::Rows(rows))
            }
            Piece::Condition(condition) => Ok(condition),
        }
    }

    fn filter(&self, filter: &Filter) -> Result<Condition> {
        Ok(match filter {
            // Decided for the whole session, or for titles.
            Filter::Agent(_) | Filter::Project(_) | Filter::Branch(_) | Filter::InTitle => Condition::All(Vec::new()),
            Filter::Role(role) => match ROLES.iter().position(|name| name == role) {
                Some(number) => Condition::Role(number as u8),
                None => Condition::Any(Vec::new()),
            },
            Filter::Tool(tool) => self.named(Naming::Tool, |name| match tool.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == tool,
            })?,
            Filter::File(file) => self.named(Naming::Files, |name| name.contains(file))?,
            Filter::Model(model) => self.named(Naming::Model, |name| name.contains(model))?,
            Filter::Since(at) => Condition::Since(at.as_microsecond()),
            Filter::Until(at) => Condition::Until(at.as_microsecond()),
            Filter::Is(label) => Condition::Labels(Labels::bit(*label)),
        })
    }

    /// That a folded name is one that is meant, as the scan compares them.
    fn named(&self, naming: Naming, is_meant: impl Fn(&str) -> bool) -> Result<Condition> {
        let mut statement = self.connection.prepare_cached("select id, name from names where kind = ?1")?;
        let (mut rows, mut names) = (statement.query([naming as u8])?, HashSet::new());
        while let Some(row) = rows.next()? {
            if is_meant(&fold(row.get_ref(1)?.as_str()?)) {
                names.insert(row.get(0)?);
            }
        }
        Ok(Condition::Named(naming, names))
    }
}

/// Whether a word is in any text. The vocabulary still has words of what was forgotten.
pub(super) fn has_word(connection: &Connection, word: &str) -> Result<bool> {
    connection
        .prepare_cached("select 1 from words where words match ?1 limit 1")?
        .exists([quoted(word)])
}

/// One word is looked for among the parts of words and the whole ones; several follow one another. A word of several may be written in
/// camelCase: then its parts follow one another, and the text has it as a whole, too.
fn term_words(term: &Term, is_word: &dyn Fn(&str) -> bool) -> String {
    let star = |is_last: bool| if term.is_prefix && is_last { " *" } else { "" };
    if let [word] = term.words.as_slice() {
        return format!("{}{}", quoted(word), star(true));
    }
    let mut spellings: Vec<(Vec<&str>, Vec<String>)> = vec![(Vec::new(), Vec::new())];
    for (at, word) in term.words.iter().enumerate() {
        let is_last = at + 1 == term.words.len();
        let mut ways = vec![(vec![word.as_str()], None)];
        let camel = parts_of(word, is_last && term.is_prefix, is_word);
        ways.extend(camel.into_iter().map(|parts| (parts, Some(format!("whole : \"{word}\"{}", star(is_last))))));
        let mut longer = Vec::new();
        for ((parts, wholes), (more, whole)) in
            spellings.iter().flat_map(|known| ways.iter().map(move |way| (known, way)))
        {
            longer.push(([&parts[..], more].concat(), wholes.iter().chain(whole).cloned().collect()));
        }
        longer.truncate(MOST_SPELLINGS);
        spellings = longer;
    }
    let phrase = |(parts, wholes): &(Vec<&str>, Vec<String>)| {
        let split = format!("split : \"{}\"{}", parts.join(" "), star(true));
        if wholes.is_empty() { split } else { format!("({split} AND {})", wholes.join(" AND ")) }
    };
    let phrases: Vec<String> = spellings.iter().map(phrase).collect();
    if let [phrase] = phrases.as_slice() { phrase.clone() } else { format!("({})", phrases.join(" OR ")) }
}

/// A word as an expression of FTS5. Words have no quotes: they are letters and digits.
fn quoted(word: &str) -> String {
    format!("\"{word}\"")
}

/// A term is looked for in so many spellings.
const MOST_SPELLINGS: usize = 16;

/// The ways to cut a word into two or three words that are in texts; the last one may go on.
fn parts_of<'w>(word: &'w str, is_open: bool, is_word: &dyn Fn(&str) -> bool) -> Vec<Vec<&'w str>> {
    let cuts = |word: &'w str| (1..word.len()).filter(|at| word.is_char_boundary(*at)).map(|at| word.split_at(at));
    let mut ways = Vec::new();
    for (first, rest) in cuts(word).filter(|(first, _)| is_word(first)) {
        if is_open || is_word(rest) {
            ways.push(vec![first, rest]);
        }
        let deeper = cuts(rest).filter(|(second, third)| is_word(second) && (is_open || is_word(third)));
        ways.extend(deeper.map(|(second, third)| vec![first, second, third]));
        if ways.len() >= MOST_SPELLINGS {
            break;
        }
    }
    ways
}
