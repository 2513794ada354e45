//! A branch for people: a header, then the messages, with a divider at each gap.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;

use scrollback::model::{Role, Usage};
use scrollback::session::{Branch, Gap, HeadKind, Session};
use scrollback::view::reactions::Reactions;
use scrollback::view::surroundings::{Attached, Surroundings};
use scrollback::view::tool_view::size_text;
use scrollback::view::{Conversation, SessionRow};

use super::divider;
use super::message::{Around, Detail, Renderer};
use super::reaction;
use super::short_ids::ShortIds;
use super::state_word;
use super::sub_agents::SubAgents;
use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::{clean, width, wrap};

pub(crate) struct Transcript<'a> {
    pub(crate) session: &'a Session,
    /// Its description.
    pub(crate) row: SessionRow,
    pub(crate) branch: &'a Branch<'a>,
    pub(crate) conversation: &'a Conversation<'a, 'a>,
    /// The requested messages.
    pub(crate) range: Range<usize>,
    pub(crate) detail: Detail,
    /// How its records are named.
    pub(crate) ids: ShortIds<'a>,
    /// Reads the last words of sub-agents; not of a session that was piped.
    pub(crate) sub_agents: Option<SubAgents>,
}

/// What came along with a message, in a line.
fn attached(attached: &Attached) -> String {
    match attached {
        Attached::Notice(text) => format!("⎘ {text}"),
        Attached::File { name, media_type, bytes } => {
            let size = bytes.map(|bytes| format!(", {}", size_text(bytes))).unwrap_or_default();
            format!("⎘ {name} ({media_type}{size})")
        }
    }
}

/// The token counts that are known.
fn tokens(usage: Usage) -> String {
    let counted = |count: Option<u64>, what: &str| count.map(|count| format!("{count} {what}"));
    let thinking = usage.reasoning.filter(|count| *count > 0).map(|count| format!(" ({count} thinking)"));
    let output = format!("out{}", thinking.unwrap_or_default());
    let counts = [
        counted(usage.input, "in"),
        counted(usage.output, &output),
        counted(usage.cache_read, "from cache"),
        counted(usage.cache_write.filter(|count| *count > 0), "to cache"),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl Transcript<'_> {
    /// Writes the header and some of the messages.
    pub(crate) fn write(&self, range: Range<usize>, ctx: &Ctx, out: &mut dyn Write) -> Result<(), Failure> {
        out.write_all(self.header(ctx).as_bytes())?;
        let look = ctx.prose();
        if range.start > 0 || !self.session.whole() {
            let first = self.conversation.records(range.start).next().map(|record| record.id().into_owned());
            // Without a message to begin before, `--last 0` says how to see some.
            let option = first.map_or("--last 20".to_owned(), |first| format!("--before {}", clean::line(&first)));
            let earlier = format!("earlier messages: {option}");
            writeln!(out, "{}\n", divider::rule(&earlier, &look))?;
        }
        let mut gaps: BTreeMap<usize, Vec<&Gap<'_>>> = BTreeMap::new();
        for gap in &self.branch.gaps {
            gaps.entry(self.conversation.position(gap.child).unwrap_or(0)).or_default().push(gap);
        }
        let reactions = Reactions::find(self.conversation, self.range.clone(), range.clone())?;
        let surroundings = Surroundings::find(self.session, self.branch, self.conversation, range.clone())?;
        let mut renderer = Renderer::new(ctx, self.detail, &self.ids);
        renderer.sub_agents = self.sub_agents.as_ref();
        let end = range.end;
        for (at, message) in range.clone().zip(self.conversation.messages(range)) {
            for gap in gaps.get(&at).into_iter().flatten() {
                writeln!(out, "{}\n", divider::rule(&self.gap(gap), &look))?;
            }
            let message = message?;
            if reactions.is_placed(at) {
                continue;
            }
            for divider in surroundings.dividers_before(at) {
                writeln!(out, "{}", renderer.part(divider, Role::System))?;
            }
            let found = surroundings.of(at, self.conversation);
            let reactions = reactions.under(at).iter().map(|(emojis, people)| reaction::line(emojis, people));
            let around = Around {
                under: found.attached.iter().map(attached).chain(reactions).collect(),
                duration_ms: found.duration_ms,
                usage: found.usage,
                moved: found.moved,
            };
            out.write_all(renderer.message(&message, &around).as_bytes())?;
        }
        for divider in surroundings.dividers_before(end) {
            writeln!(out, "{}", renderer.part(divider, Role::System))?;
        }
        Ok(())
    }

    /// What is missing, and how to see what came before.
    fn gap(&self, gap: &Gap<'_>) -> String {
        let missing = self.ids.short(gap.missing_parent.as_str());
        let is_of_session = gap.child.continues_its_session();
        if gap.child.is_in_a_cycle() && is_of_session {
            return "gap: the parts of this session continue each other in a circle".to_owned();
        }
        if gap.child.is_in_a_cycle() {
            return format!("gap: the session starts in {missing}, which starts in this one");
        }
        if let Some(to) = gap.bridged_to {
            if gap.child.has_unclear_base() {
                return format!("gap: unclear what this continues; bridged to {}", self.ids.short(&to.id()));
            }
            return format!("gap: record {missing} is missing; bridged to {}", self.ids.short(&to.id()));
        }
        let island = self.session.heads().find(|head| head.kind == HeadKind::Island);
        let earlier = island.map(|head| format!("; earlier messages: --head {}", self.ids.short(&head.record.id())));
        let lacks = divider::lacks(gap.child, gap.missing_parent.as_str(), &self.ids);
        format!("gap: {lacks}{}", earlier.unwrap_or_default())
    }

    /// The title and the facts of the session, as many per line as fit.
    fn header(&self, ctx: &Ctx) -> String {
        let row = self.row.clone();
        let paint = ctx.paint();
        let state = state_word(&row);
        let mut facts = vec![row.dialect, row.id.0];
        facts.extend(row.project);
        facts.extend(row.git_branch);
        facts.extend((!state.is_empty()).then(|| state.to_owned()));
        facts.extend(row.usage.map(|usage| format!("tokens: {}", tokens(usage))));
        facts.extend(row.copied_usage.map(|usage| format!("of these copied from another session: {}", tokens(usage))));
        let of_branch = self.session.usage_of(self.branch).filter(|_| self.session.whole());
        facts.extend(
            of_branch
                .filter(|usage| Some(*usage) != row.usage)
                .map(|usage| format!("this branch: {}", tokens(usage))),
        );
        facts.extend(row.parent_session.map(|parent| format!("sub-agent of {parent}")));
        facts.extend(row.forked_from.map(|origin| format!("fork of {origin}")));
        let mut lines = vec![String::new()];
        for fact in facts {
            let fact = clean::line(&fact).into_owned();
            match lines.last_mut() {
                Some(line) if line.is_empty() => *line = fact,
                Some(line) if width::of(line) + 3 + width::of(&fact) <= ctx.prose().width => {
                    *line += &format!(" · {fact}");
                }
                _ => lines.push(fact),
            }
        }
        let facts: String = lines.iter().map(|line| format!("{}\n", paint.dim(line))).collect();
        let title = clean::line(&row.title).into_owned();
        let title = wrap::prose(&title, ctx.prose().width).into_iter().map(|range| paint.bold(&title[range]) + "\n");
        format!("{}{facts}\n", title.collect::<String>())
    }
}
