//! From a question to SQL: words as an expression of FTS5, filters as conditions on the part.

use rusqlite::types::Value;

use crate::query::{Expr, Filter, Labels, Query, ROLES, Term};

/// A question as SQL over `words` and `parts p`.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// What the words must match; `None` if filters alone decide.
    pub(super) words: Option<String>,
    /// A condition on the part.
    pub(super) condition: Option<String>,
    /// The values of its parameters, `?1` and so on.
    pub(super) values: Vec<Value>,
}

/// A piece of a question: FTS5 can decide it alone, or not.
enum Piece {
    Words(String),
    Condition(String),
}

/// Filters on the session are decided before: they are always true here. `is_word` says whether a word is in any text.
pub(super) fn of(query: &Query, is_word: &dyn Fn(&str) -> bool) -> Statement {
    let mut writing = Writing { is_word, values: Vec::new() };
    let (words, condition) = match query.expr() {
        // Words and filters together are driven by the words.
        Expr::And(all) => writing.conjunction(all),
        expr => match writing.piece(expr) {
            Piece::Words(words) => (Some(words), None),
            Piece::Condition(condition) => (None, Some(condition)),
        },
    };
    Statement { words, condition, values: writing.values }
}

/// A statement while it is written.
struct Writing<'w> {
    is_word: &'w dyn Fn(&str) -> bool,
    values: Vec<Value>,
}

impl Writing<'_> {
    fn piece(&mut self, expr: &Expr) -> Piece {
        match expr {
            Expr::Term(term) => Piece::Words(term_words(term, self.is_word)),
            Expr::Filter(filter) => Piece::Condition(filter_condition(filter, &mut self.values)),
            // The archive reads the texts of such questions.
            Expr::Regex(_) => Piece::Condition("true".to_owned()),
            Expr::Not(inner) => {
                let inner = self.piece(inner);
                let condition = self.condition(inner);
                Piece::Condition(format!("not ({condition})"))
            }
            Expr::And(all) => match self.conjunction(all) {
                (Some(words), None) => Piece::Words(words),
                (Some(words), Some(rest)) => {
                    let words = self.condition(Piece::Words(words));
                    Piece::Condition(format!("({words} and {rest})"))
                }
                (None, rest) => Piece::Condition(rest.unwrap_or_else(|| "true".to_owned())),
            },
            Expr::Or(any) => {
                let pieces: Vec<Piece> = any.iter().map(|one| self.piece(one)).collect();
                let words = |piece: &Piece| if let Piece::Words(words) = piece { Some(words.clone()) } else { None };
                if let Some(words) = pieces.iter().map(words).collect::<Option<Vec<String>>>() {
                    return Piece::Words(format!("({})", words.join(" OR ")));
                }
                let conditions: Vec<String> = pieces.into_iter().map(|piece| self.condition(piece)).collect();
                Piece::Condition(format!("({})", conditions.join(" or ")))
            }
        }
    }

    /// Everything at once: the words that FTS5 decides together, and the rest.
    fn conjunction(&mut self, all: &[Expr]) -> (Option<String>, Option<String>) {
        let (mut wanted, mut unwanted, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for one in all {
            match one {
                Expr::Not(inner) => match self.piece(inner) {
                    Piece::Words(words) => unwanted.push(words),
                    Piece::Condition(condition) => rest.push(format!("not ({condition})")),
                },
                one => match self.piece(one) {
                    Piece::Words(words) => wanted.push(words),
                    Piece::Condition(condition) => rest.push(condition),
                },
            }
        }
        let words = match (wanted.is_empty(), unwanted.is_empty()) {
            (true, _) => {
                let excluded = unwanted.drain(..).map(|words| format!("not {}", self.condition(Piece::Words(words))));
                rest.extend(excluded);
                None
            }
            (false, true) => Some(format!("({})", wanted.join(" AND "))),
            (false, false) => Some(format!("(({}) NOT ({}))", wanted.join(" AND "), unwanted.join(" OR "))),
        };
        (words, (!rest.is_empty()).then(|| format!("({})", rest.join(" and "))))
    }

    fn condition(&mut self, piece: Piece) -> String {
        match piece {
            Piece::Words(words) => {
                self.values.push(words.into());
                format!("p.id in (select rowid from words where words match ?{})", self.values.len())
            }
            Piece::Condition(condition) => condition,
        }
    }
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
pub(super) fn quoted(word: &str) -> String {
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

fn filter_condition(filter: &Filter, values: &mut Vec<Value>) -> String {
    let mut value = |value: Value| {
        values.push(value);
        format!("?{}", values.len())
    };
    let mut named = |column: &str, text: &str, condition: &str| {
        let number = value(text.to_owned().into());
        let names = format!("select id from names where {}", condition.replace('?', &number));
        known(column, &format!("p.{column} in ({names})"))
    };
    match filter {
        // Decided for the whole session, or for titles.
        Filter::Agent(_) | Filter::Project(_) | Filter::Branch(_) | Filter::InTitle => "true".to_owned(),
        Filter::Role(role) => {
            let number = ROLES.iter().position(|name| name == role);
            number.map_or_else(|| "false".to_owned(), |number| format!("p.role = {number}"))
        }
        Filter::Tool(tool) => match tool.strip_suffix('*') {
            Some(beginning) => named("tool", beginning, "has_beginning(name, ?)"),
            None => named("tool", tool, "is_folded(name, ?)"),
        },
        Filter::File(file) => named("files", file, "has_piece(name, ?)"),
        Filter::Model(model) => named("model", model, "has_piece(name, ?)"),
        Filter::Since(at) => known("at", &format!("p.at >= {}", value(at.as_microsecond().into()))),
        Filter::Until(at) => known("at", &format!("p.at < {}", value(at.as_microsecond().into()))),
        Filter::Is(label) => format!("p.labels & {} != 0", Labels::bit(*label)),
    }
}

/// A condition that is false, and not unknown, of a part without this property: its opposite is true then.
fn known(column: &str, condition: &str) -> String {
    format!("(p.{column} is not null and {condition})")
}
