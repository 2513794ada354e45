//! Keys as they are pressed, and pauses that one of them, or Ctrl-C, ends.

use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::interrupt::on_interrupt;
use crate::failure::Failure;

/// What ended a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// Nothing: it is over.
    Nothing,
    /// A key that means "go on".
    Next,
    /// `q`, Ctrl-C, or the end of the input.
    Quit,
}

/// The keys of the terminal; without a terminal only Ctrl-C.
pub(crate) struct Keys {
    pressed: Receiver<Pressed>,
    /// Where nobody presses keys, a pause still ends by itself.
    _open: Sender<Pressed>,
    // Dropped at the end: the terminal is then as it was.
    _mode: Option<EachKey>,
}

impl Keys {
    /// Listens for Ctrl-C and, if there is a person at a terminal, for keys.
    pub(crate) fn listen() -> Result<Keys, Failure> {
        let (sender, pressed) = mpsc::channel();
        let (interrupts, keys) = (sender.clone(), sender.clone());
        on_interrupt(move || interrupts.send(Pressed::Quit).is_ok())?;
        let mode = io::stdin().is_terminal().then(EachKey::set).flatten();
        if mode.is_some() {
            // The thread ends with the process.
            std::thread::spawn(move || read_keys(&keys));
        }
        Ok(Keys { pressed, _open: sender, _mode: mode })
    }

    /// Waits for a while, or until something is pressed.
    pub(crate) fn pause(&self, time: Duration) -> Pressed {
        match self.pressed.recv_timeout(time) {
            Ok(pressed) => pressed,
            Err(RecvTimeoutError::Timeout) => Pressed::Nothing,
            Err(RecvTimeoutError::Disconnected) => Pressed::Quit,
        }
    }

    /// Waits until something is pressed.
    pub(crate) fn wait(&self) -> Pressed {
        self.pressed.recv().unwrap_or(Pressed::Quit)
    }
}

fn read_keys(sender: &Sender<Pressed>) {
    let mut keys = [0; 64];
    loop {
        let pressed = match io::stdin().lock().read(&mut keys) {
            // An arrow is several bytes: one read is one key.
            Ok(count) if count > 0 && keys[0] != b'q' && keys[0] != 0x04 => Pressed::Next,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => Pressed::Quit,
        };
        if sender.send(pressed).is_err() || pressed == Pressed::Quit {
            return;
        }
    }
}

/// A terminal that gives each key at once and does not show it. Ctrl-C still interrupts.
#[cfg(unix)]
struct EachKey(rustix::termios::Termios);

#[cfg(unix)]
impl EachKey {
    fn set() -> Option<EachKey> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut each = before.clone();
        each.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &each).ok()?;
        Some(EachKey(before))
    }
}

#[cfg(unix)]
impl Drop for EachKey {
    fn drop(&mut self) {
        // If the terminal is gone, nobody sees its mode.
        rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0).unwrap_or_default();
    }
}

/// Elsewhere a line is a key.
#[cfg(not(unix))]
struct EachKey;

#[cfg(not(unix))]
impl EachKey {
    fn set() -> Option<EachKey> {
        Some(EachKey)
    }
}
