//! Sessions as people have them: an agent at its own screen, driven through a [`Terminal`], and resumed there.

use std::fs;

use super::sandbox::{Sandbox, id_of};
use super::terminal::Terminal;
use super::{Agent, Bench, PROMPT, Row, model};

/// What an agent's screen needs to be told.
pub(super) struct Screen {
    /// The arguments of every start, and those before the session's id to resume.
    pub(super) arguments: &'static [&'static str],
    pub(super) resume: &'static [&'static str],
    /// On the screen when it waits for a prompt.
    pub(super) ready: &'static str,
    /// The command that compacts, and what the screen says then.
    pub(super) compact: (&'static str, &'static str),
    /// What the screen says when two Escapes have opened the list of prompts, and the keys that then undo the last one and
    /// leave its text to be edited.
    pub(super) rewind: (&'static str, &'static [&'static str]),
    pub(super) quit: &'static str,
}

/// One session at a screen: one row of the table.
pub(super) struct Scene {
    name: &'static str,
    moves: &'static [Move],
}

/// What a person does.
enum Move {
    /// Types a prompt and waits for its answer.
    Ask(&'static str),
    /// Types a prompt and stops the answer in its middle.
    Stop(&'static str),
    /// Types a line that no answer needs to follow.
    Line(&'static str),
    Compact,
    /// Undoes the last prompt.
    Rewind,
    /// Types this prompt in the place of that one, which was undone.
    Instead(&'static str, &'static str),
}

/// Prompts have no `?`: alone on a line it opens a help page.
const HIGH_WATER: &str = "Tell me about high water";
const LOW_WATER: &str = "Tell me about low water";
const HELLO: Move = Move::Ask("Say good day");
const HIGH: Move = Move::Ask(HIGH_WATER);
const LOW: Move = Move::Ask(LOW_WATER);

const SCENES: &[Scene] = &[
    Scene { name: "a chat, renamed", moves: &[HELLO, HIGH, Move::Line("/rename Tide talk")] },
    Scene {
        name: "shell commands of the user",
        moves: &[HELLO, Move::Line("!echo over-the-side"), Move::Line("!false")],
    },
    Scene {
        name: "rewound, then another prompt",
        moves: &[HELLO, HIGH, Move::Rewind, Move::Instead(LOW_WATER, HIGH_WATER)],
    },
    Scene { name: "rewound, then closed", moves: &[HELLO, HIGH, Move::Rewind] },
    Scene { name: "stopped in the middle of an answer", moves: &[HELLO, Move::Stop(model::SLOWLY), LOW] },
    Scene { name: "compacted, then another prompt", moves: &[HELLO, HIGH, Move::Compact, LOW] },
];

impl Bench {
    /// The rows of an agent at its screen whose name has this word in it.
    pub(super) fn interactive_rows(
        &self,
        agent: &'static Agent,
        only: &str,
    ) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
        let named = SCENES.iter().map(|scene| (format!("at its screen: {}", scene.name), scene));
        let wanted = named.filter(|(name, _)| name.contains(only));
        wanted.map(|(name, scene)| self.interactive_row(agent, name, scene)).collect()
    }

    fn interactive_row(
        &self,
        agent: &'static Agent,
        name: String,
        scene: &Scene,
    ) -> Result<Row, Box<dyn std::error::Error>> {
        let sandbox = Sandbox::new(self, agent, &name)?;
        let actor = Actor { sandbox: &sandbox, screen: &agent.screen };
        actor.play(&[], scene.moves)?;
        let Some(log) = sandbox.log()? else { return Ok(Row::not_written(agent, name)) };
        self.keep_history(agent, &sandbox, &log)?;
        let session = id_of(&log);
        let resume: Vec<&str> = agent.screen.resume.iter().copied().chain([session.as_str()]).collect();
        actor.play(&resume, &[Move::Ask(PROMPT)])?;
        self.compared(agent, name, &sandbox)
    }
}

/// Somebody at an agent's screen.
struct Actor<'a> {
    sandbox: &'a Sandbox<'a>,
    screen: &'a Screen,
}

impl Actor<'_> {
    /// Starts the agent, makes the moves, and quits.
    fn play(&self, arguments: &[&str], moves: &[Move]) -> Result<(), Box<dyn std::error::Error>> {
        let arguments: Vec<String> =
            arguments.iter().chain(self.screen.arguments).map(|&argument| argument.to_owned()).collect();
        let words = self.sandbox.without_network("--at-screen", &self.sandbox.cwd, &arguments)?;
        let terminal = Terminal::start(&words, self.sandbox.place.join("screen.txt"))?;
        terminal.wait("its prompt", || terminal.screen().contains(self.screen.ready))?;
        terminal.rest();
        for one in moves {
            self.make(one, &terminal)?;
            terminal.rest();
        }
        fs::write(self.sandbox.place.join("screen.txt"), terminal.screen())?;
        self.line(self.screen.quit, &terminal)?;
        terminal.end()
    }

    fn make(&self, one: &Move, terminal: &Terminal) -> Result<(), Box<dyn std::error::Error>> {
        match one {
            Move::Ask(prompt) => self.ask(prompt, terminal).map(|_| ()),
            Move::Instead(prompt, undone) => {
                let request = self.ask(prompt, terminal)?;
                if request.contains(undone) { Err(format!("{undone:?} was not undone").into()) } else { Ok(()) }
            }
            Move::Stop(prompt) => {
                self.ask(prompt, terminal)?;
                // The first half of the answer arrives at once, but not every screen shows it before it is whole.
                std::thread::sleep(model::PAUSE / 4);
                terminal.key("Escape")
            }
            Move::Line(line) => self.line(line, terminal),
            Move::Compact => {
                let (command, done) = self.screen.compact;
                self.line(command, terminal)?;
                terminal.wait(done, || terminal.screen().contains(done))
            }
            Move::Rewind => {
                let (list, keys) = self.screen.rewind;
                terminal.wait(list, || {
                    // An agent that is busy for a moment takes them for two single ones.
                    let escapes = terminal.key("Escape").and_then(|()| terminal.key("Escape"));
                    terminal.rest();
                    escapes.is_ok() && terminal.screen().contains(list)
                })?;
                for key in keys {
                    terminal.key(key)?;
                    terminal.rest();
                }
                // The prompt that was undone is there to be edited.
                ["C-a", "C-k", "C-u"].into_iter().try_for_each(|key| terminal.key(key))
            }
        }
    }

    /// Types a line. A `!` changes what the rest of it is.
    fn line(&self, line: &str, terminal: &Terminal) -> Result<(), Box<dyn std::error::Error>> {
        let (shell, rest) = line.split_at(usize::from(line.starts_with('!')));
        if !shell.is_empty() {
            terminal.text(shell)?;
        }
        terminal.text(rest)?;
        terminal.key("Enter")
    }

    /// Types a prompt and waits for the request with it, which it returns.
    fn ask(&self, prompt: &str, terminal: &Terminal) -> Result<String, Box<dyn std::error::Error>> {
        let request = || {
            let requests = fs::read_to_string(self.sandbox.requests()).unwrap_or_default();
            requests.lines().rfind(|request| request.contains(prompt)).map(str::to_owned)
        };
        self.line(prompt, terminal)?;
        terminal.wait("a request", || request().is_some())?;
        Ok(request().unwrap_or_default())
    }
}
