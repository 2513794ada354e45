//! An open object or list of JSON, and what it says about the next string in it.

use std::borrow::Cow;

use crate::redact::names::{self, Promise};
use crate::redact::values::{self, Strength, Written};
use crate::redact::{Change, blocks, masked};

/// Lists of the words of a command.
const COMMAND_KEYS: &[&str] = &["command", "cmd", "argv", "args", "arguments"];

/// How many bytes of a command's words are remembered: no rule looks further back.
const MAX_COMMAND_BYTES: usize = 256;

/// An open object or list.
pub(super) struct Frame<'w> {
    pub(super) is_object: bool,
    /// The key of the value that is being read, or of the list itself.
    pub(super) key: Option<Cow<'w, str>>,
    /// The same, if a secret in it was masked.
    pub(super) masked_key: Option<String>,
    /// What names the next string beside its key: the `name` of a `value` in this object, the option before it in a list
    /// (`["--password", "…"]`), or the header (`["authorization", "…"]`).
    named: Option<String>,
    /// What an object holds whose own name promises secrets: `{"passwords": {"ada": "…"}}`.
    holds: Option<Promise>,
    /// A list in a list.
    is_nested_list: bool,
    /// A list of the lines of a private key: its first line was read, and not its last.
    has_open_key: bool,
    /// The last words of a command that is a list.
    command: String,
    pub(super) index: usize,
    /// The next string is a key.
    pub(super) expects_key: bool,
}

impl<'w> Frame<'w> {
    /// Opens an object or a list in another one.
    pub(super) fn new(is_object: bool, outer: Option<&Frame<'w>>) -> Frame<'w> {
        // The strings of a list are judged by its key. What is longer is no name, and lists in lists would copy it each time.
        let is_name = |key: &&Cow<'w, str>| key.len() <= names::MAX_NAME_BYTES;
        let outer_key = outer.and_then(|outer| outer.key.as_ref()).filter(is_name);
        let holds = outer_key.filter(|_| is_object && outer.is_some_and(|outer| outer.is_object));
        Frame {
            is_object,
            key: outer_key.filter(|_| !is_object).cloned(),
            masked_key: None,
            named: None,
            holds: holds.and_then(|key| names::promise(key)),
            is_nested_list: !is_object && outer.is_some_and(|outer| !outer.is_object),
            has_open_key: false,
            command: String::new(),
            index: 0,
            expects_key: is_object,
        }
    }

    pub(super) fn read_key(&mut self, key: Cow<'w, str>, change: &Change) {
        self.masked_key = match change {
            Change::Masks(masks) if masks.is_empty() => None,
            Change::Masks(masks) => Some(masked(&key, masks)),
            Change::Whole(new) => Some(new.clone()),
        };
        self.key = Some(key);
        self.expects_key = false;
    }

    /// Remembers a value that says what the next one is.
    pub(super) fn read_value(&mut self, text: &str) {
        if self.is_object {
            if text.len() <= names::MAX_NAME_BYTES && self.key.as_deref().is_some_and(is_name_key) {
                self.named = Some(text.to_owned());
            }
            return;
        }
        let option = text.strip_prefix("--").filter(|name| !name.contains(['=', ' ']));
        let header = Some(text).filter(|text| self.is_nested_list && self.index == 0 && names::is_opening_header(text));
        self.named = option.or(header).map(str::to_owned);
        self.has_open_key = self.is_in_key(text)
            || text.contains("PRIVATE KEY") && text.contains("-----BEGIN") && !text.contains("-----END");
        self.read_word(text);
    }

    /// Remembers a word of a command, so that the next one is judged as what comes after it.
    fn read_word(&mut self, word: &str) {
        let key = self.key.as_deref().unwrap_or_default();
        // A shell's script is a word that is judged by itself.
        let starts_command = self.index == 0 && COMMAND_KEYS.contains(&key) && !word.ends_with("sh");
        if self.command.is_empty() && !starts_command {
            return;
        }
        if word.len() > MAX_COMMAND_BYTES {
            return self.command.clear();
        }
        self.command.extend([word, " "]);
        let cut = self.command.len().saturating_sub(MAX_COMMAND_BYTES);
        if cut > 0 {
            let cut = self.command.ceil_char_boundary(cut);
            let word = self.command[cut..].find(' ').map_or(self.command.len(), |space| cut + space + 1);
            self.command.drain(..word);
        }
    }

    /// Whether a string is a line of the private key that the list has.
    pub(super) fn is_in_key(&self, text: &str) -> bool {
        self.has_open_key && blocks::is_body_line(text)
    }

    /// The name that the next value is judged by: the one beside it, or its key.
    pub(super) fn judged_as(&self) -> Option<&str> {
        let key = self.key.as_deref();
        match self.is_object {
            true => self.named.as_deref().filter(|_| key.is_some_and(is_value_key)).or(key),
            false => self.named.as_deref().or(key),
        }
    }

    /// Whether the next value is called `value` and nothing beside it says of what.
    pub(super) fn is_nameless_value(&self) -> bool {
        self.is_object && self.named.is_none() && self.key.as_deref().is_some_and(is_value_key)
    }

    /// Whether a value is a secret because of the object that it is in: a password for each name, or the value of a secret.
    pub(super) fn holds_secret(&self, text: &str) -> bool {
        let (Some(promise), Some(key)) = (self.holds, self.key.as_deref()) else { return false };
        let is_container = promise.of_several || promise.kind == "password" || is_value_key(key);
        let strength = if promise.strength == Strength::Weak { Strength::Weak } else { Strength::Key };
        // Dates, addresses and versions.
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"-:./TZ+".contains(&byte));
        is_container
            && !names::names_no_secret(key)
            && !is_number(text)
            && values::is_plausible(text.trim(), strength, Written::Quoted)
    }

    /// The last words of a command before the next one.
    pub(super) fn command(&self) -> Option<&str> {
        Some(self.command.as_str()).filter(|command| !self.is_object && !command.is_empty())
    }
}

fn is_name_key(key: &str) -> bool {
    ["name", "key", "Name", "Key", "variable", "field", "header"].contains(&key)
}

fn is_value_key(key: &str) -> bool {
    ["value", "Value", "val"].contains(&key)
}
