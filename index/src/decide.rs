//! What of a question is decided by the session alone: its agent, project and branch are the same for all its parts.

use scrollback::view::SessionRow;

use crate::query::{Expr, Filter};
use crate::words::fold;

/// The question that is left for the parts of a session.
#[derive(Debug, Clone)]
pub(crate) enum Left {
    /// Every part matches, or none.
    Decided(bool),
    /// This is to be asked of each part.
    Question(Expr),
}

/// Answers what a session decides. Titles are asked separately, so no part is one.
pub(crate) fn for_session(expr: &Expr, row: &SessionRow) -> Left {
    decide(expr, &|filter| match filter {
        Filter::Agent(agent) => Some(row.dialect == *agent),
        Filter::Project(project) => Some(row.project.as_deref().is_some_and(|of| fold(of).contains(project))),
        Filter::Branch(branch) => Some(row.git_branch.as_deref().is_some_and(|of| fold(of).contains(branch))),
        Filter::InTitle => Some(false),
        _ => None,
    })
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
