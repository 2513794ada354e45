//! The trace: a session, or a turn of it, in one line of ticks.
//!
//! ```text
//! tall: a prompt   short: a call   red: failed   amber: refused or waiting   violet: a sub-agent   dots: a compaction
//! ```

use maud::{Markup, html};
use scrollback::model::{Message, Part, Role};
use scrollback::view::counting::{EventKind, SessionCounts};
use scrollback::view::tool_view::{Ending, ToolView, ending};

use super::words::plural;
use super::{text, tool};

/// More ticks than this are thinned out in a list: the plain ones go, the coloured ones stay.
pub const LIST_TICKS: usize = 20;

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// A person asked.
    Prompt,
    /// A tool was called.
    Call,
    /// A call failed.
    Failed,
    /// A call was refused.
    Refused,
    /// A call waits for a person's approval.
    Waiting,
    /// A sub-agent was started.
    SubAgent,
    /// Earlier turns were summarised.
    Compaction,
}

impl Tick {
    /// Each kind in the order of its numbers, its class, and its shape below its column.
    const SHAPES: [(Tick, &'static str, &'static str); 7] = [
        (Tick::Prompt, "tr-u", "1v12"),
        (Tick::Call, "tr-t", "7v6"),
        (Tick::Failed, "tr-e", "4v9"),
        (Tick::Refused, "tr-d", "4v9"),
        (Tick::Waiting, "tr-d", "4v9"),
        (Tick::SubAgent, "tr-s", "4v9"),
        (Tick::Compaction, "tr-c", "2v2m0 2v2m0 2v2"),
    ];
}

/// Ticks, and how many there are of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    ticks: Vec<Tick>,
    prompts: usize,
    calls: usize,
    failed: usize,
    refused: usize,
    waiting: usize,
    sub_agents: usize,
    compactions: usize,
}

impl Trace {
    /// Adds what a message shows.
    pub fn add(&mut self, message: &Message) {
        let begins_with_divider = message.parts.iter().take_while(|part| tick(part) == Some(Tick::Compaction)).count();
        let (before, parts) = message.parts.split_at(begins_with_divider);
        before.iter().filter_map(tick).for_each(|tick| self.push(tick));
        if is_prompt(message) {
            self.push(Tick::Prompt);
        }
        parts.iter().filter_map(tick).for_each(|tick| self.push(tick));
    }

    /// Adds what a session counts: less than its messages show, but nothing has to be read for it.
    pub fn add_counted(&mut self, counts: &SessionCounts) {
        for event in &counts.events {
            match event.kind {
                EventKind::Prompt { is_turn: true, .. } => self.push(Tick::Prompt),
                EventKind::Call { has_failed: true, .. } => self.push(Tick::Failed),
                EventKind::Call { has_failed: false, .. } => self.push(Tick::Call),
                EventKind::Compaction => self.push(Tick::Compaction),
                EventKind::Prompt { is_turn: false, .. } | EventKind::Answer { .. } => {}
            }
        }
    }

    fn push(&mut self, tick: Tick) {
        match tick {
            Tick::Prompt => self.prompts += 1,
            Tick::Call => self.calls += 1,
            Tick::Failed => (self.calls, self.failed) = (self.calls + 1, self.failed + 1),
            Tick::Refused => (self.calls, self.refused) = (self.calls + 1, self.refused + 1),
            Tick::Waiting => (self.calls, self.waiting) = (self.calls + 1, self.waiting + 1),
            Tick::SubAgent => (self.calls, self.sub_agents) = (self.calls + 1, self.sub_agents + 1),
            Tick::Compaction => self.compactions += 1,
        }
        self.ticks.push(tick);
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.ticks.is_empty()
    }

    /// How many calls there are.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// How many calls failed, were refused and wait, each in two words, if there are any.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        let troubles = [(self.failed, "failed"), (self.refused, "refused"), (self.waiting, "waiting")];
        troubles.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
    }

    /// Keeps at most so many ticks: plain calls go first, evenly, then anything.
    ///
    /// Returns which of them were kept.
    pub fn thin(&mut self, most: usize) -> Vec<bool> {
        let mut kept = vec![true; self.ticks.len()];
        for is_plain in [|tick: &Tick| *tick == Tick::Call, |_: &Tick| true] {
            let is_left_plain = |(tick, is_kept): &(&Tick, &bool)| **is_kept && is_plain(tick);
            let plain = self.ticks.iter().zip(&kept).filter(is_left_plain).count();
            let surplus = kept.iter().filter(|is_kept| **is_kept).count().saturating_sub(most).min(plain);
            let mut seen = 0;
            for (tick, is_kept) in self.ticks.iter().zip(&mut kept) {
                if !*is_kept || !is_plain(tick) {
                    continue;
                }
                seen += 1;
                // Of `plain` ticks, every so many is left out until the surplus is gone.
                *is_kept = seen * surplus / plain.max(1) == (seen - 1) * surplus / plain.max(1);
            }
        }
        let mut of_tick = kept.iter();
        self.ticks.retain(|_| *of_tick.next().unwrap_or(&true));
        kept
    }

    /// The ticks as a picture: one path for each kind.
    pub fn svg(&self) -> Markup {
        const STEP: usize = 5;
        let width = (self.ticks.len() * STEP).saturating_sub(2);
        let path = |kind: Tick, shape: &str| {
            let mut path = String::new();
            for (at, _) in self.ticks.iter().enumerate().filter(|(_, tick)| **tick == kind) {
                path.push_str(&format!("M{}.5 {shape}", at * STEP + 1));
            }
            path
        };
        html! {
            svg.trace width=(width) height="14" viewBox=(format!("0 0 {width} 14")) role="img" aria-label=(self.words()) {
                @for (kind, class, shape) in Tick::SHAPES {
                    @if self.ticks.contains(&kind) { path class=(class) d=(path(kind, shape)) {} }
                }
            }
        }
    }

    fn words(&self) -> String {
        let mut words = vec![plural(self.prompts, "prompt"), plural(self.calls, "tool call")];
        words.extend(self.troubles());
        let more = [(self.sub_agents, "by sub-agents"), (self.compactions, "compacted")];
        words.extend(more.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
        words.join(", ")
    }
}

/// A trace whose ticks lead to what they stand for on the same page.
#[derive(Default)]
pub struct Map {
    ticks: Vec<MapTick>,
}

struct MapTick {
    kind: Tick,
    /// The anchor of its message.
    message: String,
    target: String,
    title: String,
}

/// More ticks than this are thinned out on a page.
const MAP_TICKS: usize = 120;

/// How wide a tick is with what is around it. The script has the same number.
const STEP: usize = 7;

impl Map {
    /// Adds what a message shows; an agent may be at work in it.
    pub fn add(&mut self, message: &Message, is_at_work: bool) {
        let anchor = format!("m-{}", text::anchor(&message.id));
        let of_message = format!("#{anchor}");
        let mut push = |kind: Tick, target: String, title: String| {
            self.ticks.push(MapTick { kind, message: anchor.clone(), target, title });
        };
        if is_prompt(message) {
            let said = message.display().map(|display| display.text().to_owned());
            let said = said.or_else(|| message.parts.iter().find_map(Part::as_text).map(str::to_owned));
            push(Tick::Prompt, of_message.clone(), text::brief(&said.unwrap_or_default(), 80));
        }
        for part in &message.parts {
            let Some(tick) = tick(part) else { continue };
            match part {
                Part::Tool(call) => {
                    let (name, about) = tool::in_one_line(call);
                    let ended = Some(tool::ending_in(call, is_at_work)).filter(|ended| *ended != Ending::Ok);
                    let ended = ended.map(|ended| format!(" ({})", ended.name())).unwrap_or_default();
                    let target = format!("#t-{}", text::anchor(&call.call_id));
                    push(tick, target, format!("{name} {}{ended}", text::brief(&about, 60)));
                }
                _ => push(tick, of_message.clone(), "compacted".to_owned()),
            }
        }
    }

    /// The ticks as links. The keys e and E lead to failures, and the outline to prompts: for the keyboard it is only a picture.
    pub fn svg(mut self) -> Markup {
        let mut kinds = Trace { ticks: self.ticks.iter().map(|tick| tick.kind).collect(), ..Trace::default() };
        let kept = kinds.thin(MAP_TICKS);
        self.ticks = self.ticks.into_iter().zip(kept).filter(|(_, is_kept)| *is_kept).map(|(tick, _)| tick).collect();
        let width = self.ticks.len() * STEP;
        html! {
            svg.trace-map width=(width) height="24" viewBox=(format!("0 0 {width} 24")) preserveAspectRatio="none" aria-hidden="true" {
                (self.links())
            }
        }
    }

    /// The same without the picture around them: the script of a live page puts them there.
    pub fn links(&self) -> Markup {
        html! {
            @for (at, MapTick { kind, message, target, title }) in self.ticks.iter().enumerate() {
                @let (_, class, _) = Tick::SHAPES[*kind as usize];
                @let (top, height) = match kind { Tick::Prompt => (2, 20), Tick::Call => (14, 8), _ => (8, 14) };
                a href=(target) tabindex="-1" data-m=(message) transform=(format!("translate({})", at * STEP)) {
                    rect.hit width=(STEP) height="24" { title { (title) } }
                    rect class=(class) x="2" y=(top) width="3" height=(height) {}
                }
            }
        }
    }
}

/// Whether a person said something: a reaction is none.
pub fn is_prompt(message: &Message) -> bool {
    let is_reaction = |part: &Part| matches!(part, Part::Data(data) if data.kind == "reaction");
    message.role == Role::User && (message.parts.is_empty() || !message.parts.iter().all(is_reaction))
}

fn tick(part: &Part) -> Option<Tick> {
    match part {
        Part::Tool(call) => Some(match ending(call) {
            Ending::Failed | Ending::Interrupted => Tick::Failed,
            Ending::Denied => Tick::Refused,
            Ending::Waiting => Tick::Waiting,
            Ending::Ok | Ending::Running | Ending::NoResult => match ToolView::of(call) {
                ToolView::SubAgent(_) => Tick::SubAgent,
                _ => Tick::Call,
            },
        }),
        Part::Data(data) if data.kind == "compaction" => Some(Tick::Compaction),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(ticks: &str) -> Trace {
        let mut trace = Trace::default();
        for tick in ticks.chars() {
            trace.push(match tick {
                'P' => Tick::Prompt,
                'c' => Tick::Call,
                'x' => Tick::Failed,
                'r' => Tick::Refused,
                's' => Tick::SubAgent,
                _ => Tick::Compaction,
            });
        }
        trace
    }

    #[test]
    fn a_trace_is_one_path_for_each_kind() {
        insta::assert_snapshot!(trace("Pcxr.").svg().0, @r#"<svg class="trace" width="23" height="14" viewBox="0 0 23 14" role="img" aria-label="1 prompt, 3 tool calls, 1 failed, 1 refused, 1 compacted"><path class="tr-u" d="M1.5 1v12"></path><path class="tr-t" d="M6.5 7v6"></path><path class="tr-e" d="M11.5 4v9"></path><path class="tr-d" d="M16.5 4v9"></path><path class="tr-c" d="M21.5 2v2m0 2v2m0 2v2"></path></svg>"#);
    }

    #[test]
    fn thinning_keeps_the_coloured_ticks() {
        let mut thinned = trace(&format!("P{}x{}s", "c".repeat(30), "c".repeat(10)));
        thinned.thin(10);
        assert_eq!(thinned.ticks.len(), 10);
        let kept = |kind: Tick| thinned.ticks.iter().filter(|tick| **tick == kind).count();
        assert_eq!((kept(Tick::Prompt), kept(Tick::Failed), kept(Tick::SubAgent), kept(Tick::Call)), (1, 1, 1, 7));
        assert_eq!(thinned.calls(), 42);
        let mut many = trace(&"P".repeat(100));
        many.thin(20);
        assert_eq!(many.ticks.len(), 20);
    }
}
