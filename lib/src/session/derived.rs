//! What is derived from a session's skeleton after each update: the tree, its heads, the facts and the issues.

use std::sync::OnceLock;

use crate::model::issue::{Issue, IssueKind, Issues, quoted};
use crate::model::record::{Kind, Title, TitleSource};
use crate::model::time::Micros;
use crate::session::Session;
use crate::session::tree::branch::{self, HeadKind};
use crate::session::tree::facts::Facts;
use crate::session::tree::keys::SharedKeys;
use crate::session::tree::skeleton::Flags;
use crate::session::tree::{Bridge, NodeIx, Tree, TreeRules};

/// What is derived from the skeleton.
#[derive(Default)]
pub(crate) struct Derived {
    pub(crate) tree: Tree,
    pub(crate) keys: SharedKeys,
    /// Where the conversation ends.
    pub(crate) head: Option<NodeIx>,
    /// That and the ends of other branches, once somebody asks for them.
    pub(crate) heads: OnceLock<Vec<(NodeIx, HeadKind)>>,
    /// Context records beside the conversation, in file order: each applies to the answers that follow.
    pub(crate) surroundings: Vec<NodeIx>,
    pub(crate) facts: Facts,
    pub(crate) issues: Issues,
}

impl Session {
    pub(crate) fn derive(&mut self) {
        let traits = self.source.dialect.traits();
        let bridge_within = match self.tail.bridge {
            Bridge::Always => Some(Micros::MAX),
            Bridge::AsTheAgent => traits.bridged_gap_ms.map(|ms| ms.saturating_mul(1000)),
        };
        let rules = TreeRules { repeated_id: traits.repeated_id, bridge_within, whole: self.whole };
        let mut facts = self.skeleton.facts.clone();
        facts.fall_back_on(self.sidecar.clone());
        if let Some(title) = &self.source.index_title
            && title.at.is_none_or(|at| facts.titled_at.is_none_or(|known| known <= at.as_microsecond()))
        {
            facts.add_title(Title { text: title.text.clone(), source: TitleSource::Manual });
        }
        let itself = self.source.name();
        facts.parent_session.take_if(|parent| facts.session.as_ref() == Some(parent) || *parent == itself);
        self.skeleton.mark_sidechains(facts.parent_session.is_some());
        self.skeleton.mark_summaries();
        let tree = Tree::build(&self.skeleton, rules);
        let keys = SharedKeys::new(&self.skeleton, &tree);
        let head = branch::main_head(&tree);
        let beside = |node: &NodeIx| {
            let entry = tree.entry(&self.skeleton, *node);
            entry.kind == Kind::Attachment && entry.flags.has(Flags::SIDE)
        };
        let surroundings = (0..tree.nodes.len() as NodeIx).filter(beside).collect();
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut facts.summaries)
            .into_iter()
            .partition(|(of, _)| self.skeleton.ids.find(of).and_then(|id| tree.named(id)).is_some());
        facts.summaries = others;
        for (_, text) in own {
            facts.add_title(Title { text, source: TitleSource::Summary });
        }
        let mut issues = self.skeleton.issues.clone();
        let placed = self.source.dialect.peer_from_path(&self.source.path);
        if let (Some(with), Some(placed)) = (&facts.with, placed)
            && !with.eq_ignore_ascii_case(&placed)
            && let Some(first) = self.skeleton.entries.first()
        {
            let detail = format!(
                "the file is in the folder of {} but belongs to a session with {}; it is kept",
                quoted(&placed),
                quoted(with)
            );
            issues.push(Issue::at(first.place, None, IssueKind::MixedSession, detail));
        }
        // Where only the end of a file was read, missing records may be before it.
        let from_tree = if self.whole { tree.issues.iter() } else { [].iter() };
        let from_keys = if self.whole { keys.issues(&tree) } else { Vec::new() };
        for found in from_tree.chain(&from_keys) {
            let place = self.skeleton.entries[found.entry as usize].place;
            let file = self.skeleton.file_names.get(usize::from(place.file)).cloned().flatten();
            issues.push(Issue::at(place, file, found.kind, found.detail.clone()));
        }
        issues.kept.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        self.derived = Derived { tree, keys, head, heads: OnceLock::new(), surroundings, facts, issues };
    }
}
