//! Says when an agent has finished or waits for a person, while its session is followed: with the bell, on the desktop, or by a command.
//!
//! A log does not say that nothing follows. So an answer counts as the last one when nothing was written for a while after it, and a call
//! without a result, which may run or wait for a permission, when that takes long.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use scrollback::model::{Message, Part, Role, ToolPart};
use scrollback::view::stream::Update;
use scrollback::view::tool_view::{Ending, ToolView, ending};
use serde_json::json;

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::terminal::clean;

/// How long nothing may follow an answer until it is the last: agents write the blocks of an answer one after the other.
const FINISHED_AFTER: Duration = Duration::from_secs(2);

/// How long a question may be there until a person is called: some are answered at once by the agent's own rules.
const ASKED_AFTER: Duration = Duration::from_secs(1);

/// How long a call may be open until a person is told that it may wait for them: agents do not record that they ask for a permission.
const OPEN_AFTER: Duration = Duration::from_secs(15);

/// How a person is told.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Ring the bell of the terminal
    Bell,
    /// Show a notification of the desktop, with notify-send or osascript; without them as `terminal`
    Desktop,
    /// Let the terminal show a notification (OSC 9 and OSC 777)
    Terminal,
}

/// Follows sessions, and tells a person.
pub(crate) struct Notifier {
    how: Vec<How>,
    /// A command line of the user.
    command: Option<String>,
    /// By the place of the session.
    followed: HashMap<String, Followed>,
    /// No round of looks has ended.
    is_first_round: bool,
}

/// What is known of a session.
struct Followed {
    session: String,
    news: Option<News>,
    since: Instant,
    /// The last news that somebody was told.
    told: Option<News>,
}

/// What a person may want to know, about which message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct News {
    event: Event,
    message: String,
    /// What the agent said last, or asks.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Finished,
    /// It asks something.
    Waiting,
    /// It may ask something.
    Open,
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Event::Finished => "finished",
            Event::Waiting | Event::Open => "waiting",
        }
    }

    fn after(self) -> Duration {
        match self {
            Event::Finished => FINISHED_AFTER,
            Event::Waiting => ASKED_AFTER,
            Event::Open => OPEN_AFTER,
        }
    }
}

impl Notifier {
    pub(crate) fn new(how: Vec<How>, command: Option<String>) -> Notifier {
        Notifier { how, command, followed: HashMap::new(), is_first_round: true }
    }

    /// Takes what changed in a session. What was there in the first round is no news; a session that appears later is.
    pub(crate) fn saw(&mut self, place: &str, session: &str, updates: &[Update], now: Instant) {
        let last = updates.iter().rev().find_map(|update| match update {
            Update::Message(message) => Some(message),
            Update::Removed(_) => None,
        });
        let Some(message) = last else { return };
        let news = news(message);
        match self.followed.get_mut(place) {
            Some(followed) => {
                session.clone_into(&mut followed.session);
                (followed.news, followed.since) = (news, now);
            }
            None => {
                let told = if self.is_first_round { news.clone() } else { None };
                let followed = Followed { session: session.to_owned(), news, since: now, told };
                self.followed.insert(place.to_owned(), followed);
            }
        }
    }

    /// Tells what is due.
    ///
    /// Called at the end of each round of looks.
    pub(crate) fn tell(&mut self, now: Instant, ctx: &mut Ctx) -> Result<(), Failure> {
        self.is_first_round = false;
        self.due(now).iter().try_for_each(|(session, news)| self.deliver(session, news, ctx))
    }

    /// What is to be told now, each with its session.
    fn due(&mut self, now: Instant) -> Vec<(String, News)> {
        let mut due = Vec::new();
        for followed in self.followed.values_mut() {
            let is_due = |news: &News| now.saturating_duration_since(followed.since) >= news.event.after();
            if let Some(news) = followed.news.take_if(|news| is_due(news))
                && followed.told.as_ref() != Some(&news)
            {
                followed.told = Some(news.clone());
                due.push((followed.session.clone(), news));
            }
        }
        due
    }

    fn deliver(&self, session: &str, news: &News, ctx: &mut Ctx) -> Result<(), Failure> {
        let (title, text) = (title(session, news), ctx.shown(&news.text).into_owned());
        if ctx.json {
            ctx.print_json_line(
                &json!({"type": "notice", "session": session, "event": news.event.name(), "text": text}),
            )?;
            ctx.out.flush()?;
        } else {
            ctx.note(&format!("{title}: {text}"))?;
        }
        for how in &self.how {
            match how {
                How::Bell => write!(ctx.err, "\x07")?,
                How::Desktop if on_desktop(&title, &text) => {}
                How::Desktop | How::Terminal => write!(ctx.err, "{}", escapes(&title, &text))?,
            }
        }
        ctx.err.flush()?;
        if let Some(command) = &self.command {
            let mut shell = if cfg!(windows) { Command::new("cmd") } else { Command::new("sh") };
            shell.arg(if cfg!(windows) { "/C" } else { "-c" }).arg(command);
            shell.env("SCROLLBACK_EVENT", news.event.name()).env("SCROLLBACK_SESSION", session);
            start(shell.env("SCROLLBACK_TITLE", &title).env("SCROLLBACK_TEXT", &text));
        }
        Ok(())
    }
}

fn title(session: &str, news: &News) -> String {
    const ID_CHARS: usize = 8;
    let short: String = session.chars().take(ID_CHARS).collect();
    match news.event {
        Event::Finished => format!("{short} has finished"),
        Event::Waiting => format!("{short} waits for you"),
        Event::Open => format!("{short} may wait for you"),
    }
}

/// What a message means for the person who is waited for.
fn news(message: &Message) -> Option<News> {
    if message.role != Role::Assistant {
        return None;
    }
    let last = message.parts.iter().rev().find(|part| !matches!(part, Part::StepStart | Part::Data(_)))?;
    let (event, text) = match last {
        Part::Text(text) if !text.text.trim().is_empty() => (Event::Finished, first_line(&text.text)),
        Part::Tool(call) => (asks(call)?, call.name.clone()),
        _ => return None,
    };
    Some(News { event, message: message.id.clone(), text })
}

/// Whether an open call asks a person something.
fn asks(call: &ToolPart) -> Option<Event> {
    match (ending(call), ToolView::of(call)) {
        (Ending::Waiting, _) => Some(Event::Waiting),
        (Ending::NoResult, ToolView::Plan { .. } | ToolView::Questions { .. }) => Some(Event::Waiting),
        (Ending::NoResult, _) => Some(Event::Open),
        (Ending::Running | Ending::Ok | Ending::Failed | Ending::Denied | Ending::Interrupted, _) => None,
    }
}

fn first_line(text: &str) -> String {
    const SHOWN_CHARS: usize = 120;
    let line = text.trim().lines().next().unwrap_or_default();
    clean::line(&line.chars().take(SHOWN_CHARS).collect::<String>()).into_owned()
}

/// Shows a notification of the desktop, if there is a program for it.
fn on_desktop(title: &str, text: &str) -> bool {
    let mut command = if cfg!(target_os = "macos") {
        let mut command = Command::new("osascript");
        // The words are arguments, never a part of the script.
        let script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        command.args(["-e", script]).args([title, text]);
        command
    } else {
        let mut command = Command::new("notify-send");
        command.args(["--app-name=scrollback", "--"]).args([title, text]);
        command
    };
    start(&mut command)
}

/// The words as escape sequences; none of them ends a sequence, because they are clean.
fn escapes(title: &str, text: &str) -> String {
    let (title, text) = (clean::line(title).replace(';', ","), clean::line(text).replace(';', ","));
    format!("\x1b]9;{title}: {text}\x07\x1b]777;notify;{title};{text}\x07")
}

/// Starts a program that nobody waits for; whether there is one.
fn start(command: &mut Command) -> bool {
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        Ok(mut child) => {
            // So that it does not stay as a dead process.
            std::thread::spawn(move || drop(child.wait()));
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use scrollback::model::ToolState;

    use super::*;

    fn message(id: &str, role: Role, parts: Vec<Part>) -> Vec<Update> {
        let parts = serde_json::to_value(parts).unwrap();
        let role = if role == Role::User { "user" } else { "assistant" };
        let message = serde_json::from_value(json!({"id": id, "role": role, "parts": parts})).unwrap();
        vec![Update::Message(Box::new(message))]
    }

    /// What is told, at the seconds after which something was seen or nothing.
    fn told(steps: &[(u64, Option<Vec<Update>>)]) -> Vec<(u64, &'static str)> {
        let (mut notifier, began) = (Notifier::new(Vec::new(), None), Instant::now());
        let mut told = Vec::new();
        for (second, updates) in steps {
            let now = began + Duration::from_secs(*second);
            if let Some(updates) = updates {
                notifier.saw("p", "s1", updates, now);
            }
            notifier.is_first_round = false;
            told.extend(notifier.due(now).iter().map(|(_, news)| (*second, news.event.name())));
        }
        told
    }

    #[test]
    fn an_answer_is_finished_when_nothing_follows_and_what_was_there_is_no_news() {
        let prompt = || Some(message("u1", Role::User, vec![Part::text("When?")]));
        let answer = || Some(message("a1", Role::Assistant, vec![Part::text("At 04:12.")]));
        let call = ToolPart::dynamic("bash", "c1", ToolState::called(json!({"command": "ls"})));
        let calling = || Some(message("a1", Role::Assistant, vec![Part::text("I look."), Part::from(call.clone())]));
        assert_eq!(told(&[(0, answer()), (9, None)]), []);
        assert_eq!(told(&[(0, prompt()), (1, answer()), (2, None), (3, None), (9, None)]), [(3, "finished")]);
        // A text that a call follows at once is not the end.
        assert_eq!(told(&[(0, prompt()), (1, answer()), (2, calling()), (5, None), (17, None)]), [(17, "waiting")]);
    }

    #[test]
    fn a_session_that_appears_while_others_are_followed_is_news_as_a_whole() {
        let (mut notifier, began) = (Notifier::new(Vec::new(), None), Instant::now());
        let answer = |id: &str| message(id, Role::Assistant, vec![Part::text("At 04:12.")]);
        notifier.saw("old", "s1", &answer("a1"), began);
        notifier.is_first_round = false;
        notifier.saw("new", "s2", &answer("a2"), began);
        let due = notifier.due(began + Duration::from_secs(9));
        let told: Vec<_> = due.iter().map(|(session, news)| (session.as_str(), news.event.name())).collect();
        assert_eq!(told, [("s2", "finished")]);
    }

    #[test]
    fn a_question_is_told_soon_and_once() {
        let questions = json!({"questions": [{"question": "Which?", "header": "x", "options": [{"label": "a", "description": ""}]}]});
        let call = ToolPart::dynamic("AskUserQuestion", "c1", ToolState::called(questions));
        let asking = || Some(message("a1", Role::Assistant, vec![Part::from(call.clone())]));
        let prompt = || Some(message("u1", Role::User, vec![Part::text("Go.")]));
        assert_eq!(told(&[(0, prompt()), (1, asking()), (2, None), (3, asking()), (9, None)]), [(2, "waiting")]);
    }

    #[test]
    fn words_of_a_session_end_no_escape_sequence() {
        let shown = escapes("s1 has finished", "a;b\x07\x1b]0;evil\x07");
        assert_eq!(shown.matches('\x07').count(), 2);
        assert_eq!(shown.matches('\x1b').count(), 2);
    }
}
