//! The config file: defaults for some options. It is read here and nowhere else.
//!
//! A mistake in it is a warning and never stops a command: a typing error must not cost a recording. The exception is what it says
//! about secrets ([`RedactConfig`]).

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use scrollback::model::regular_file::{self, Links};
use scrollback::model::{Error, Home, Host};
use scrollback::redact::UserRule;
use toml_edit::{Document, DocumentMut, Item, TableLike, Value};

use crate::args::ColorChoice;
use crate::failure::{Failure, FailureKind};

/// The config file is a page of text: a larger file is something else.
const CONFIG_LIMIT_BYTES: u64 = 1024 * 1024;

/// A key of the config file.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Shown as the default.
    pub(crate) default: &'static str,
    kind: ValueKind,
}

enum ValueKind {
    OneOf(&'static [&'static str]),
    Text,
    /// A list of strings.
    Texts,
    /// A list of folders, from the root or the home directory.
    Folders,
    YesOrNo,
    Count {
        least: i64,
    },
}

/// Every key, in the order in which they are listed.
pub(crate) const KEYS: &[Key] = &[
    Key { name: "color", default: "auto", kind: ValueKind::OneOf(&["auto", "always", "never"]) },
    Key { name: "pager", default: "$PAGER, else less", kind: ValueKind::Text },
    Key { name: "list.limit", default: "no limit", kind: ValueKind::Count { least: 1 } },
    Key { name: "tail.last", default: "4", kind: ValueKind::Count { least: 0 } },
    Key { name: "tail.notify", default: "bell", kind: ValueKind::OneOf(&["bell", "desktop", "terminal"]) },
    Key { name: "tail.notify-command", default: "none", kind: ValueKind::Text },
    Key { name: "keep", default: "false", kind: ValueKind::YesOrNo },
    Key { name: "exclude", default: "none", kind: ValueKind::Folders },
    Key { name: "serve.hide", default: "none", kind: ValueKind::Texts },
    Key { name: "redact.allow", default: "none", kind: ValueKind::Texts },
    Key { name: "redact.files", default: "none", kind: ValueKind::Texts },
    Key { name: "redact.env", default: "*KEY*, *TOKEN*, *SECRET*, *PASSWORD*, *PASSWD*", kind: ValueKind::Texts },
    Key { name: "redact.dotenv", default: "false", kind: ValueKind::YesOrNo },
];

/// The table in which each `[[redact.rules]]` is a rule of the user.
const RULES: &str = "redact.rules";

/// What the config file says.
pub(crate) struct Config {
    pub(crate) path: PathBuf,
    values: Vec<(&'static str, Value)>,
    /// Keys and values without effect.
    pub(crate) problems: Vec<Problem>,
    /// Why the whole file has no effect.
    pub(crate) broken: Option<Problem>,
    pub(crate) redact: RedactConfig,
}

/// What the config file says about secrets. A mistake in it stops commands that would mask them: nothing is recorded or printed
/// unmasked in silence.
#[derive(Default)]
pub(crate) struct RedactConfig {
    pub(crate) rules: Vec<UserRule>,
    pub(crate) reads_dotenv: bool,
    pub(crate) problem: Option<Problem>,
}

/// A mistake in the config file.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Config {
    /// Reads the file of this home; a missing file sets nothing. Without a home there is none: a file below the working directory may
    /// be anybody's, and it can name a program to run.
    pub(crate) fn read(home: &Home) -> Config {
        let path = home.config().join("config.toml");
        let mut config = Config::empty(path);
        if !config.path.is_absolute() {
            return config;
        }
        match read_text(&config.path) {
            Ok(text) => config.parse(&text),
            Err(why) => config.break_at(why),
        }
        config
    }

    fn empty(path: PathBuf) -> Config {
        Config { path, values: Vec::new(), problems: Vec::new(), broken: None, redact: RedactConfig::default() }
    }

    pub(crate) fn color(&self) -> Option<ColorChoice> {
        match self.get("color")?.as_str()? {
            "always" => Some(ColorChoice::Always),
            "never" => Some(ColorChoice::Never),
            _ => Some(ColorChoice::Auto),
        }
    }

    pub(crate) fn pager(&self) -> Option<&str> {
        self.get("pager")?.as_str()
    }

    pub(crate) fn list_limit(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.count("list.limit")?)
    }

    pub(crate) fn tail_last(&self) -> Option<usize> {
        self.count("tail.last")
    }

    /// Whether copies of other agents' sessions are kept.
    pub(crate) fn is_keeping(&self) -> bool {
        self.get("keep").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The strings of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let values = self.get(name).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// What a key is set to.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn count(&self, name: &str) -> Option<usize> {
        usize::try_from(self.get(name)?.as_integer()?).ok()
    }

    /// Fails if the file could not be read.
    pub(crate) fn check_readable(&self) -> Result<(), Failure> {
        match &self.broken {
            Some(problem) => Err(Failure::new(FailureKind::Usage, &problem.message).hint(&problem.hint)),
            None => Ok(()),
        }
    }

    /// Sets a key in the file; comments and everything else in it stay.
    pub(crate) fn set(&mut self, key: &Key, typed: &str, host: &Host) -> Result<(), Failure> {
        self.check_readable()?;
        let value = key.parse(typed)?;
        let text = read_text(&self.path).map_err(|why| Failure::new(FailureKind::Io, why))?;
        let broken = |_| Failure::new(FailureKind::Usage, format!("{}: invalid TOML", self.path.display()));
        let mut document: DocumentMut = text.parse().map_err(broken)?;
        let mut table: &mut dyn TableLike = document.as_table_mut();
        let (folders, last) = key.name.rsplit_once('.').map_or((None, key.name), |(table, last)| (Some(table), last));
        if let Some(name) = folders {
            let inner = table.entry(name).or_insert_with(toml_edit::table);
            table = inner.as_table_like_mut().ok_or_else(|| {
                Failure::new(FailureKind::Usage, format!("{}: {name:?} is not a table", self.path.display()))
                    .hint("edit the file; run `scrollback config path` to see where it is")
            })?;
        }
        match table.get_mut(last).and_then(Item::as_value_mut) {
            Some(before) => {
                let decor = before.decor().clone();
                *before = value.clone();
                *before.decor_mut() = decor;
            }
            None => _ = table.insert(last, Item::Value(value.clone())),
        }
        scrollback::write::replace_private_file(&self.path, document.to_string().as_bytes(), Links::Follow, host)?;
        self.values.retain(|(name, _)| *name != key.name);
        self.values.push((key.name, value));
        Ok(())
    }

    fn parse(&mut self, text: &str) {
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(error) => {
                let line = error.span().map_or(1, |span| line_of(text, span.start));
                self.break_at(format!("line {line}: {}", error.message().lines().next().unwrap_or_default()));
                // It may have rules in it that nobody can read.
                self.redact.problem = self.broken.clone().filter(|_| text.contains("redact"));
                return;
            }
        };
        self.read_table(document.as_table(), "", text);
        self.redact.reads_dotenv = self.get("redact.dotenv").and_then(Value::as_bool).unwrap_or(false);
    }

    fn read_table(&mut self, table: &dyn TableLike, above: &str, text: &str) {
        for (name, item) in table.iter() {
            let full = format!("{above}{name}");
            let line = table.key(name).and_then(|key| key.span()).map_or(1, |span| line_of(text, span.start));
            let place = format!("{}, line {line}", self.path.display());
            let is_table = KEYS.iter().any(|key| key.name.starts_with(&format!("{full}.")));
            match (item.as_table_like().filter(|_| is_table), KEYS.iter().find(|key| key.name == full)) {
                (Some(inner), _) => self.read_table(inner, &format!("{full}."), text),
                (None, None) if full == RULES => self.read_rules(item, &place),
                (None, Some(key)) => match item.as_value().map(|value| key.check(value)) {
                    Some(Ok(value)) => self.values.push((key.name, value)),
                    _ => {
                        let message = format!("{place}: invalid value for {full:?}");
                        let problem = Problem { message, hint: key.kind.hint() };
                        if full.starts_with("redact.") {
                            self.redact.problem = Some(problem);
                        } else {
                            self.problems.push(problem);
                        }
                    }
                },
                (None, None) => {
                    let problem = Problem { message: format!("{place}: unknown key {full:?}"), hint: nearest(&full) };
                    match full == "redact" || full.starts_with("redact.") {
                        true => self.redact.problem = Some(problem),
                        false => self.problems.push(problem),
                    }
                }
            }
        }
    }

    /// Reads the user's rules for secrets.
    fn read_rules(&mut self, item: &Item, place: &str) {
        let tables: Option<Vec<&dyn TableLike>> = match item {
            Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
            Item::Value(Value::Array(values)) => {
                values.iter().map(|value| value.as_inline_table().map(|table| table as &dyn TableLike)).collect()
            }
            Item::None | Item::Table(_) | Item::Value(_) => None,
        };
        let rules: Option<Vec<UserRule>> = tables.and_then(|tables| tables.into_iter().map(rule).collect());
        match rules {
            Some(rules) => self.redact.rules = rules,
            None => {
                self.redact.problem = Some(Problem {
                    message: format!("{place}: invalid rule in {RULES:?}"),
                    hint: "a rule has a name and a pattern, and may have keywords: a list of strings".to_owned(),
                });
            }
        }
    }

    fn break_at(&mut self, why: String) {
        self.broken = Some(Problem {
            message: format!("{}, {why}", self.path.display()),
            hint: "correct the file; until then the defaults apply".to_owned(),
        });
    }
}

impl Key {
    /// The key with this name.
    pub(crate) fn named(name: &str) -> Result<&'static Key, Failure> {
        let unknown = || Failure::new(FailureKind::Usage, format!("unknown key {name:?}")).hint(nearest(name));
        KEYS.iter().find(|key| key.name == name).ok_or_else(unknown)
    }

    /// The value that was typed.
    fn parse(&self, typed: &str) -> Result<Value, Failure> {
        let value = match self.kind {
            ValueKind::OneOf(_) | ValueKind::Text => Some(Value::from(typed)),
            ValueKind::YesOrNo => typed.parse::<bool>().ok().map(Value::from),
            // A list as TOML writes it, or one string.
            ValueKind::Texts | ValueKind::Folders => {
                let list = typed.parse::<Value>().ok().filter(Value::is_array);
                Some(list.unwrap_or_else(|| Value::Array([typed].into_iter().collect())))
            }
            ValueKind::Count { .. } => typed.parse::<i64>().ok().map(Value::from),
        };
        // In the file, the other folders still count.
        let is_useful = |value: &Value| !matches!(self.kind, ValueKind::Folders) || are_folders(value);
        value.and_then(|value| self.check(&value).ok()).filter(is_useful).ok_or_else(|| {
            let message = format!("invalid value {typed:?} for {:?}", self.name);
            Failure::new(FailureKind::Usage, message).hint(self.kind.hint())
        })
    }

    /// A value of the right kind, without its white space and comments.
    fn check(&self, value: &Value) -> Result<Value, ()> {
        let is_valid = match self.kind {
            ValueKind::OneOf(words) => value.as_str().is_some_and(|value| words.contains(&value)),
            ValueKind::Text => value.is_str(),
            ValueKind::YesOrNo => value.is_bool(),
            ValueKind::Texts | ValueKind::Folders => {
                value.as_array().is_some_and(|values| values.iter().all(Value::is_str))
            }
            ValueKind::Count { least } => value.as_integer().is_some_and(|value| value >= least),
        };
        let mut value = value.clone();
        value.decor_mut().clear();
        if is_valid { Ok(value) } else { Err(()) }
    }
}

impl ValueKind {
    fn hint(&self) -> String {
        match self {
            ValueKind::OneOf(words) => format!("use one of: {}", words.join(", ")),
            ValueKind::Text => "use a string".to_owned(),
            ValueKind::YesOrNo => "use true or false".to_owned(),
            ValueKind::Texts => "use a list of strings, such as [\"one\", \"two\"]".to_owned(),
            ValueKind::Folders => "use a list of folders, such as [\"~/clients\", \"/srv/private\"]".to_owned(),
            ValueKind::Count { least } => format!("use a whole number, at least {least}"),
        }
    }
}

/// Whether a list names folders. One that does not would exclude nothing, and nobody would notice.
fn are_folders(list: &Value) -> bool {
    let is_folder = |folder: &str| Path::new(folder).is_absolute() || folder == "~" || folder.starts_with("~/");
    list.as_array()
        .is_some_and(|folders| folders.iter().all(|folder| folder.as_str().is_some_and(is_folder)))
}

/// The text of the config file, empty without one; or why it cannot be read. People keep it elsewhere and link to it.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let bytes = match regular_file::read(path, CONFIG_LIMIT_BYTES, Links::Follow) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) => match source.kind() {
            ErrorKind::NotFound if path.is_symlink() => return Err("it is a link to a file that does not exist".into()),
            ErrorKind::NotFound | ErrorKind::NotADirectory => Vec::new(),
            _ => return Err(source.to_string()),
        },
        Err(_) => return Err("not a regular file".to_owned()),
    };
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// A rule of the user.
fn rule(table: &dyn TableLike) -> Option<UserRule> {
    let text = |key: &str| table.get(key).and_then(Item::as_str).map(str::to_owned);
    let keywords = match table.get("keywords") {
        None => Vec::new(),
        Some(keywords) => {
            keywords.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<_>>()?
        }
    };
    let is_known = table.iter().all(|(key, _)| matches!(key, "name" | "pattern" | "keywords"));
    Some(UserRule { name: text("name")?, pattern: text("pattern")?, keywords }).filter(|_| is_known)
}

/// A hint with the most similar key.
fn nearest(name: &str) -> String {
    /// Below this, two names are similar only by chance.
    const ALIKE: f64 = 0.75;
    let likeness = |key: &Key| {
        // The table may have been left out.
        let last = key.name.rsplit('.').next().unwrap_or(key.name);
        strsim::jaro_winkler(name, key.name).max(strsim::jaro_winkler(name, last))
    };
    let nearest = KEYS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|key| likeness(key) >= ALIKE) {
        Some(key) => format!("did you mean {:?}?", key.name),
        None => "run `scrollback config list` to see every key".to_owned(),
    }
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// A value as it is typed: text without quotes.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Config {
        let mut config = Config::empty("c".into());
        config.parse(text);
        config
    }

    fn problems(text: &str) -> Vec<String> {
        parsed(text)
            .problems
            .iter()
            .map(|problem| format!("{} ({})", problem.message, problem.hint))
            .collect()
    }

    #[test]
    fn keys_are_read_in_every_spelling_of_a_table() {
        for text in ["list.limit = 5\n", "[list]\nlimit = 5 # five\n", "list = { limit = 5 }\n"] {
            let config = parsed(text);
            assert_eq!((config.list_limit().map(NonZeroUsize::get), config.problems.len()), (Some(5), 0), "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_line_and_a_suggestion() {
        assert_eq!(problems("\ncolour = \"never\"\n"), ["c, line 2: unknown key \"colour\" (did you mean \"color\"?)"]);
        assert_eq!(problems("limit = 5"), ["c, line 1: unknown key \"limit\" (did you mean \"list.limit\"?)"]);
        let list = "run `scrollback config list` to see every key";
        assert_eq!(problems("xyz = 1"), [format!("c, line 1: unknown key \"xyz\" ({list})")]);
        assert_eq!(problems("[xyz]\na = 1"), [format!("c, line 1: unknown key \"xyz\" ({list})")]);
        assert_eq!(problems("color = 3"), ["c, line 1: invalid value for \"color\" (use one of: auto, always, never)"]);
        let count = "(use a whole number, at least 1)";
        assert_eq!(problems("[list]\nlimit = 0"), [format!("c, line 2: invalid value for \"list.limit\" {count}")]);
        assert_eq!(problems("list = 3").len(), 1);
        assert_eq!(problems("[tail]\nlast = 2\n[list.limit]\nx = 1").len(), 1);
    }

    #[test]
    fn rules_for_secrets_are_read_and_mistakes_in_them_are_kept() {
        let text = "[redact]\nallow = [\"^tide-\"]\n[[redact.rules]]\nname = \"tide\"\npattern = \"T-[0-9]+\"\nkeywords = [\"T-\"]\n";
        let config = parsed(text);
        assert_eq!((config.texts("redact.allow"), config.problems.len()), (vec!["^tide-".to_owned()], 0));
        let wanted = UserRule { name: "tide".into(), keywords: vec!["T-".into()], pattern: "T-[0-9]+".into() };
        assert_eq!(config.redact.rules, [wanted]);
        assert!(config.redact.problem.is_none());
        for wrong in [
            "[redact]\nallow = 3",
            "[redact]\nrules = 3",
            "[[redact.rules]]\nname = \"x\"",
            "[[redact.rules]]\nname = \"x\"\npattern = \"y\"\ntypo = 1",
            "[redact]\nallow = [",
            "redact = 3",
            "[[redact.rule]]\nname = \"x\"",
        ] {
            assert!(parsed(wrong).redact.problem.is_some(), "{wrong}");
        }
    }

    #[test]
    fn broken_toml_is_one_line_with_its_place() {
        let config = parsed("color = \"never\"\npager = = \n");
        assert!(config.check_readable().is_err());
        let message = config.broken.as_ref().map(|problem| problem.message.as_str()).unwrap_or_default();
        assert!(message.starts_with("c, line 2: ") && !message.contains('\n'), "{message}");
        assert_eq!(config.color(), None);
    }
}
