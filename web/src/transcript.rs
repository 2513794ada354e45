//! A branch as HTML, message by message, with what stands between and beside its messages.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use scrollback::model::{Message, Role, ToolPart};
use scrollback::session::{Branch, Gap, HeadKind, Session, Source};
use scrollback::view::Conversation;
use scrollback::view::reactions::Reactions;
use scrollback::view::surroundings::{Around, Surroundings};
use scrollback::view::tool_view::{Ending, SubAgent, ToolView};

use crate::render::icon::{chevron, icon};
use crate::render::message::{self, Beside};
use crate::render::tool::{Nested, ending_in};
use crate::render::words::plural;
use crate::render::work::Work;
use crate::render::{Look, Medium, divider, text};

/// Conversations inside of conversations: deeper ones are a link.
pub(crate) const MAX_DEPTH: u8 = 3;

/// How many messages of a sub-agent are shown inside its call: on a page, and in a file.
pub(crate) const PAGE_NESTED_MESSAGES: usize = 12;
pub(crate) const FILE_NESTED_MESSAGES: usize = 2_000;

/// Finds the sessions of sub-agents. Whoever renders decides where they may be looked for.
pub trait SubAgents {
    /// The session that a call of another session started; `noted` is the one that the call names.
    fn find(&self, parent: &str, call: &str, noted: Option<&str>) -> Option<Source>;
    /// Reads it as the session that started it is read.
    fn open(&self, source: &Source) -> scrollback::Result<Session>;
}

/// No sub-agents: those of a session that was piped cannot be found.
impl SubAgents for () {
    fn find(&self, _: &str, _: &str, _: Option<&str>) -> Option<Source> {
        None
    }

    fn open(&self, source: &Source) -> scrollback::Result<Session> {
        Session::open(source, &scrollback::ReadOptions::plain(Timestamp::UNIX_EPOCH))
    }
}

/// Some messages of a branch, and what is around them.
pub struct Transcript<'a> {
    session: &'a Session,
    conversation: &'a Conversation<'a, 'a>,
    surroundings: Surroundings,
    reactions: Reactions,
    gaps: BTreeMap<usize, Vec<Gap<'a>>>,
    /// Side conversations in the same file, by the message that they began at.
    sides: HashMap<usize, Vec<Branch<'a>>>,
    sub_agents: &'a dyn SubAgents,
    depth: u8,
    /// When the message before was written.
    before: Cell<Option<Timestamp>>,
}

impl<'a> Transcript<'a> {
    /// Looks around the messages in a range.
    pub fn new(
        session: &'a Session,
        branch: &'a Branch<'a>,
        conversation: &'a Conversation<'a, 'a>,
        range: Range<usize>,
        sub_agents: &'a dyn SubAgents,
    ) -> scrollback::Result<Transcript<'a>> {
        let mut gaps: BTreeMap<usize, Vec<Gap<'a>>> = BTreeMap::new();
        for gap in &branch.gaps {
            gaps.entry(conversation.position(gap.child).unwrap_or(0)).or_default().push(gap.clone());
        }
        Ok(Transcript {
            session,
            conversation,
            surroundings: Surroundings::find(session, branch, conversation, range.clone())?,
            reactions: Reactions::find(conversation, 0..conversation.len(), range.clone())?,
            gaps,
            sides: sides(session, conversation, range),
            sub_agents,
            depth: 0,
            before: Cell::new(None),
        })
    }

    /// One message, with the dividers before it. The message itself is read for this.
    pub fn message(&self, at: usize, look: &Look<'_>) -> scrollback::Result<Markup> {
        self.message_from(at, 0, look)
    }

    /// Dividers behind the last message of a range.
    pub fn end(&self, after: usize, look: &Look<'_>) -> Markup {
        let dividers = self.surroundings.dividers_before(after).filter_map(|part| match part {
            scrollback::Part::Data(data) => divider::of_part(&data.kind, &data.data, look),
            _ => None,
        });
        PreEscaped(dividers.map(|divider| divider.0).collect())
    }

    /// The same from one of its parts on.
    pub fn message_from(&self, at: usize, part: usize, look: &Look<'_>) -> scrollback::Result<Markup> {
        let Some(message) = self.conversation.message(at).transpose()? else { return Ok(html! {}) };
        Ok(self.shown(at, &message, part, look))
    }

    /// A message that was read already.
    pub fn shown(&self, at: usize, message: &Message, part: usize, look: &Look<'_>) -> Markup {
        let mut html = String::new();
        for gap in self.gaps.get(&at).into_iter().flatten() {
            let island = self.session.heads().find(|head| head.kind == HeadKind::Island && gap.bridged_to.is_none());
            html += &divider::gap(gap, island.map(|head| head.record), look).0;
        }
        if self.reactions.is_placed(at) {
            return PreEscaped(html);
        }
        let when = message.noted("timestamp").and_then(|at| at.parse::<Timestamp>().ok());
        if let Some((before, when)) = self.before.replace(when.or(self.before.get())).zip(when) {
            html += &divider::pause(before, when, look).unwrap_or_default().0;
        }
        for part in self.surroundings.dividers_before(at) {
            if let scrollback::Part::Data(data) = part {
                html += &divider::of_part(&data.kind, &data.data, look).unwrap_or_default().0;
            }
        }
        let around = self.surroundings.of(at, self.conversation);
        html += &self.article(at, message, part, &around, look).0;
        look.room.bytes.set(look.room.bytes.get().saturating_sub(html.len()));
        PreEscaped(html)
    }

    /// Goes on as if the message at this place had been shown.
    pub(crate) fn begin_after(&self, at: Option<usize>) {
        self.before
            .set(at.and_then(|at| self.conversation.records(at).filter_map(|record| record.at()).next()));
    }

    /// A message as the script of a page finds it again: what has nothing to show leaves its place.
    pub(crate) fn fragment(&self, at: usize, message: &Message, look: &Look<'_>) -> String {
        let html = self.shown(at, message, 0, look).0;
        let anchor = format!("m-{}", text::anchor(&message.id));
        match html.contains(&format!(" id=\"{anchor}\"")) {
            true => html,
            false => html + &html! { span hidden id=(anchor) {} }.0,
        }
    }

    fn article(&self, at: usize, message: &Message, part: usize, around: &Around, look: &Look<'_>) -> Markup {
        let sides = self.sides.get(&at).map(Vec::as_slice).unwrap_or_default();
        // Which call began which side conversation is known by the prompt that both have.
        let started: HashMap<&str, usize> = calls_of_sides(message, sides);
        let is_last = at + 1 == self.conversation.len();
        let nested = |call: &ToolPart, agent: &SubAgent<'_>| {
            let is_running = ending_in(call, look.is_running && is_last) == Ending::Running;
            if let Some(side) = started.get(call.call_id.as_str()).and_then(|side| sides.get(*side)) {
                return self.side(side, agent.role.unwrap_or_default(), is_running, look);
            }
            self.sub_agent(call, agent, is_running, look)
        };
        let is_unnamed = |side: &usize| !started.values().any(|started| started == side);
        let asides = (0..sides.len()).filter(is_unnamed).filter_map(|side| {
            let inside = self.side(&sides[side], "", false, look)?.html;
            Some(html! {
                details class="tool tool-sub" {
                    summary {
                        (icon("agent")) span.tool-name { "sidechain" }
                        span.tool-arg { "a conversation beside this one" }
                        span.tool-note {} span.tool-time {} (chevron())
                    }
                    div.tool-body { (inside) }
                }
            })
        });
        let beside = Beside {
            around,
            reactions: self.reactions.under(at),
            nested: &nested,
            asides: asides.collect(),
            is_last,
            from_part: part,
        };
        message::message(message, &beside, look)
    }

    /// The conversation of a sub-agent that has a session of its own.
    fn sub_agent(&self, call: &ToolPart, agent: &SubAgent<'_>, is_running: bool, look: &Look<'_>) -> Option<Nested> {
        let parent = self.session.id().0;
        let source = self.sub_agents.find(&parent, &call.call_id, agent.session)?;
        let id = source.name();
        let address = format!("/s/{}", text::path_segment(&id));
        let foot = html! {
            p.nested-foot {
                @if let Medium::Page(_) = look.medium { a.link href=(address) { "Open as a session of its own" } }
                span { (text::brief(&id, 80)) }
            }
        };
        if !self.may_nest(look) {
            return Some(Nested { html: html! { div.nested { (foot) } }, note: String::new() });
        }
        let session = self.sub_agents.open(&source).ok()?;
        let branch = session.branch(session.head()?);
        let medium = if let Medium::Page(_) = look.medium { Medium::Page(&address) } else { Medium::File };
        let inner = look.nested(medium, session.dialect().name(), agent.role.unwrap_or_default(), is_running);
        let Nested { html, note } = self.inside(&session, &branch, &inner)?;
        Some(Nested { html: html! { div.nested { (html) (foot) } }, note })
    }

    /// Whether there is room for a conversation inside of a call.
    fn may_nest(&self, look: &Look<'_>) -> bool {
        let left = look.room.nested.get();
        look.room.nested.set(left.saturating_sub(1));
        left > 0 && self.depth < MAX_DEPTH && look.text_limit() >= PAGE_LEAST_BYTES
    }

    /// A side conversation in the same file.
    fn side(&self, side: &Branch<'a>, name: &str, is_running: bool, look: &Look<'_>) -> Option<Nested> {
        if !self.may_nest(look) {
            return None;
        }
        let inner = look.nested(look.medium, look.dialect, name, is_running);
        let Nested { html, note } = self.inside(self.session, side, &inner)?;
        Some(Nested { html: html! { div.nested { (html) } }, note })
    }

    fn inside(&self, session: &Session, branch: &Branch<'_>, look: &Look<'_>) -> Option<Nested> {
        let conversation = Conversation::new(branch);
        let most = if look.medium == Medium::File { FILE_NESTED_MESSAGES } else { PAGE_NESTED_MESSAGES };
        let range = conversation.len().saturating_sub(most)..conversation.len();
        let left = range.start;
        let transcript = Transcript::new(session, branch, &conversation, range.clone(), self.sub_agents).ok()?;
        let transcript = Transcript { depth: self.depth + 1, sides: HashMap::new(), ..transcript };
        let (mut html, mut work) = (String::new(), Work::default());
        for at in range {
            let Some(message) = conversation.message(at).transpose().ok()? else { continue };
            transcript.add_work(at, &message, &mut work, look);
            html += &transcript.shown(at, &message, 0, look).0;
        }
        // What the messages took that are not shown is not known.
        let note = if left == 0 && session.whole() { work.note() } else { String::new() };
        let html = html! {
            @if left > 0 { p.meta { (plural(left, "earlier message")) " not shown here" } }
            (PreEscaped(html))
        };
        Some(Nested { html, note })
    }

    /// Counts what a message took.
    pub(crate) fn add_work(&self, at: usize, message: &Message, work: &mut Work, look: &Look<'_>) {
        work.add(message, &self.surroundings.of(at, self.conversation), look.price);
    }
}

/// Below this, a page has no room for a conversation inside of a call.
const PAGE_LEAST_BYTES: usize = 8_000;

/// The side conversations of a session's file that began at messages in a range, each without what it shares with the branch.
pub(crate) fn sides<'a>(
    session: &'a Session,
    conversation: &Conversation<'a, 'a>,
    range: Range<usize>,
) -> HashMap<usize, Vec<Branch<'a>>> {
    let mut heads = session.heads().filter(|head| head.kind == HeadKind::Sidechain).peekable();
    if heads.peek().is_none() {
        return HashMap::new();
    }
    let in_message = range.flat_map(|at| conversation.records(at).map(move |record| (record.order(), at)));
    let in_message: HashMap<usize, usize> = in_message.collect();
    let mut sides: HashMap<usize, Vec<Branch<'a>>> = HashMap::new();
    for head in heads {
        let branch = session.branch(head.record);
        let began_at = branch.records.iter().rev().find(|record| !record.is_sidechain());
        let Some(at) = began_at.and_then(|record| in_message.get(&record.order())) else { continue };
        let records = branch.records.into_iter().filter(|record| record.is_sidechain()).collect();
        sides.entry(*at).or_default().push(Branch { records, gaps: Vec::new(), cycle: Vec::new() });
    }
    // The oldest first, as the calls are.
    sides
        .values_mut()
        .for_each(|sides| sides.sort_by_key(|side| side.records.first().map(|record| record.order())));
    sides
}

/// The call that began each side conversation: the one with the same prompt, else the only one.
pub(crate) fn calls_of_sides<'m>(message: &'m Message, sides: &[Branch<'_>]) -> HashMap<&'m str, usize> {
    if sides.is_empty() {
        return HashMap::new();
    }
    let calls: Vec<(&str, SubAgent<'m>, String)> = message
        .parts
        .iter()
        .filter_map(|part| part.as_call())
        .filter_map(|call| match ToolView::of(call) {
            ToolView::SubAgent(agent) => {
                let prompt = call.input().and_then(|input| input.get("prompt")?.as_str()).unwrap_or_default();
                Some((call.call_id.as_str(), agent, prompt.trim().to_owned()))
            }
            _ => None,
        })
        .collect();
    let mut started = HashMap::new();
    for (at, side) in sides.iter().enumerate() {
        let asked = Conversation::new(side).message(0).and_then(Result::ok).filter(|first| first.role == Role::User);
        let asked = asked.and_then(|first| first.parts.first()?.as_text().map(|text| text.trim().to_owned()));
        let is_free = |call: &str, started: &HashMap<&str, usize>| !started.contains_key(call);
        let same = calls.iter().find(|(call, _, prompt)| is_free(call, &started) && Some(prompt) == asked.as_ref());
        let only = calls.first().filter(|(call, _, _)| calls.len() == 1 && is_free(call, &started));
        if let Some((call, ..)) = same.or(only) {
            started.insert(*call, at);
        }
    }
    started
}

/// Whether several people talk here: their messages have senders.
pub(crate) fn is_room(conversation: &Conversation<'_, '_>) -> bool {
    const LOOKED_AT: usize = 5;
    let users = (0..conversation.len()).filter(|at| conversation.role(*at) == Some(Role::User)).take(LOOKED_AT);
    let messages = users.filter_map(|at| conversation.message(at)?.ok());
    messages.into_iter().any(|message| message.noted("sender").is_some())
}
