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

/// Filters on the session are decided before: they are always true here.
pub(super) fn of(query: &Query) -> Statement {
    let mut values = Vec::new();
    let (words, condition) = match query.expr() {
        // Words and filters together are driven by the words.
        Expr::And(all) => conjunction(all, &mut values),
        expr => match piece(expr, &mut values) {
            Piece::Words(words) => (Some(words), None),
            Piece::Condition(condition) => (None, Some(condition)),
        },
    };
    Statement { words, condition, values }
}

fn piece(expr: &Expr, values: &mut Vec<Value>) -> Piece {
    match expr {
        Expr::Term(term) => Piece::Words(term_words(term)),
        Expr::Filter(filter) => Piece::Condition(filter_condition(filter, values)),
        // The archive reads the texts of such questions.
        Expr::Regex(_) => Piece::Condition("true".to_owned()),
        Expr::Not(inner) => {
            let condition = condition(piece(inner, values), values);
            Piece::Condition(format!("not ({condition})"))
        }
        Expr::And(all) => match conjunction(all, values) {
            (Some(words), None) => Piece::Words(words),
            (Some(words), Some(rest)) => {
                let words = condition(Piece::Words(words), values);
                Piece::Condition(format!("({words} and {rest})"))
            }
            (None, rest) => Piece::Condition(rest.unwrap_or_else(|| "true".to_owned())),
        },
        Expr::Or(any) => {
            let pieces: Vec<Piece> = any.iter().map(|one| piece(one, values)).collect();
            let words = |piece: &Piece| if let Piece::Words(words) = piece { Some(words.clone()) } else { None };
            if let Some(words) = pieces.iter().map(words).collect::<Option<Vec<String>>>() {
                return Piece::Words(format!("({})", words.join(" OR ")));
            }
            let conditions: Vec<String> = pieces.into_iter().map(|piece| condition(piece, values)).collect();
            Piece::Condition(format!("({})", conditions.join(" or ")))
        }
    }
}

/// Everything at once: the words that FTS5 decides together, and the rest.
fn conjunction(all: &[Expr], values: &mut Vec<Value>) -> (Option<String>, Option<String>) {
    let (mut wanted, mut unwanted, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for one in all {
        match one {
            Expr::Not(inner) => match piece(inner, values) {
                Piece::Words(words) => unwanted.push(words),
                Piece::Condition(condition) => rest.push(format!("not ({condition})")),
            },
            one => match piece(one, values) {
                Piece::Words(words) => wanted.push(words),
                Piece::Condition(condition) => rest.push(condition),
            },
        }
    }
    let words = match (wanted.is_empty(), unwanted.is_empty()) {
        (true, _) => {
            let excluded = unwanted.drain(..).map(|words| format!("not {}", condition(Piece::Words(words), values)));
            rest.extend(excluded);
            None
        }
        (false, true) => Some(format!("({})", wanted.join(" AND "))),
        (false, false) => Some(format!("(({}) NOT ({}))", wanted.join(" AND "), unwanted.join(" OR "))),
    };
    (words, (!rest.is_empty()).then(|| format!("({})", rest.join(" and "))))
}

fn condition(piece: Piece, values: &mut Vec<Value>) -> String {
    match piece {
        Piece::Words(words) => {
            values.push(words.into());
            format!("p.id in (select rowid from words where words match ?{})", values.len())
        }
        Piece::Condition(condition) => condition,
    }
}

/// One word is looked for among the parts of words and the whole ones; several follow one another.
fn term_words(term: &Term) -> String {
    // Words have no quotes: they are letters and digits.
    let star = if term.is_prefix { " *" } else { "" };
    match term.words.as_slice() {
        [word] => format!("\"{word}\"{star}"),
        words => format!("split : \"{}\"{star}", words.join(" ")),
    }
}

fn filter_condition(filter: &Filter, values: &mut Vec<Value>) -> String {
    let mut value = |value: Value| {
        values.push(value);
        format!("?{}", values.len())
    };
    let mut named = |column: &str, text: &str, condition: &str| {
        let number = value(text.to_owned().into());
        format!("p.{column} in (select id from names where {})", condition.replace('?', &number))
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
        Filter::Since(at) => format!("p.at >= {}", value(at.as_microsecond().into())),
        Filter::Until(at) => format!("p.at < {}", value(at.as_microsecond().into())),
        Filter::Is(label) => format!("p.labels & {} != 0", Labels::bit(*label)),
    }
}
