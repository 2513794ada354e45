//! What of a question is decided by the session alone: its agent, project and branch are the same for all its parts.

use std::collections::BTreeMap;

use scrollback::view::SessionRow;

use crate::query::{Expr, Filter};
use crate::words::fold;

/// The questions that are left for the parts of sessions. Sessions that answer its filters alike share one.
pub(crate) struct Questions<'q> {
    expr: &'q Expr,
    by_answers: BTreeMap<Vec<bool>, Option<usize>>,
    left: Vec<Expr>,
}

/// What of a question is left for the parts of a session.
enum Left {
    /// Every part matches, or none.
    Decided(bool),
    /// This is to be asked of each part.
    Question(Expr),
}

impl<'q> Questions<'q> {
    pub(crate) fn of(expr: &'q Expr) -> Questions<'q> {
        Questions { expr, by_answers: BTreeMap::new(), left: Vec::new() }
    }

    /// The number of the question that is left for a session; `None` if nothing of it can match.
    pub(crate) fn of_session(&mut self, row: &SessionRow) -> Option<usize> {
        let mut answers = Vec::new();
        self.expr.each_filter(&mut |filter| answers.extend(answer(filter, row)));
        if let Some(number) = self.by_answers.get(&answers) {
            return *number;
        }
        let left = match decide(self.expr, &|filter| answer(filter, row)) {
            Left::Decided(false) => None,
            Left::Decided(true) => Some(Expr::And(Vec::new())),
            Left::Question(left) => Some(left),
        };
        let number = left.map(|left| {
            self.left.push(left);
            self.left.len() - 1
        });
        *self.by_answers.entry(answers).or_insert(number)
    }

    /// The questions by their numbers.
    pub(crate) fn left(self) -> Vec<Expr> {
        self.left
    }
}

/// What a session says to a filter. Titles are asked separately, so no part is one.
fn answer(filter: &Filter, row: &SessionRow) -> Option<bool> {
    match filter {
        Filter::Agent(agent) => Some(row.dialect == *agent),
        Filter::Project(project) => Some(row.project.as_deref().is_some_and(|of| fold(of).contains(project))),
        Filter::Branch(branch) => Some(row.git_branch.as_deref().is_some_and(|of| fold(of).contains(branch))),
        Filter::InTitle => Some(false),
        _ => None,
    }
}

fn decide(expr: &Expr, answer: &dyn Fn(&Filter) -> Option<bool>) -> Left {
    match expr {
        Expr::Filter(filter) => answer(filter).map_or_else(|| Left::Question(expr.clone()), Left::Decided),
        Expr::Term(_) | Expr::Regex(_) => Left::Question(expr.clone()),
        Expr::Not(inner) => match decide(inner, answer) {
            Left::Decided(is_true) => Left::Decided(!is_true),
            Left::Question(left) => Left::Question(Expr::Not(Box::new(left))),
        },
        Expr::And(all) => joined(all, answer, false, Expr::And),
        Expr::Or(any) => joined(any, answer, true, Expr::Or),
    }
}

/// What is left of several: one that is `decisive` decides all.
fn joined(
    exprs: &[Expr],
    answer: &dyn Fn(&Filter) -> Option<bool>,
    decisive: bool,
    join: impl Fn(Vec<Expr>) -> Expr,
) -> Left {
    let mut left = Vec::new();
    for expr in exprs {
        match decide(expr, answer) {
            Left::Decided(is_true) if is_true == decisive => return Left::Decided(decisive),
            Left::Decided(_) => {}
            Left::Question(question) => left.push(question),
        }
    }
    match left.len() {
        0 => Left::Decided(!decisive),
        1 => left.pop().map_or(Left::Decided(!decisive), Left::Question),
        _ => Left::Question(join(left)),
    }
}
