//! The rules for secrets in this run: the built-in ones and the user's, the key, and values of the environment.

use std::path::Path;
use std::sync::Arc;

use scrollback::model::regular_file::{self, Links};
use scrollback::model::{Error, project};
use scrollback::redact::{Key, Redactor, Settings};
use scrollback::write::{Options, known_redaction_key, redaction_key};

use crate::args::Global;
use crate::ctx::Ctx;
use crate::failure::{Failure, FailureKind};
use crate::glob::matches_glob;

/// Names of environment variables that hold secrets, unless the config file has others.
const SECRET_VARIABLES: &[&str] = &["*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*"];

/// A larger `.env` is something else.
const DOTENV_LIMIT_BYTES: u64 = 1024 * 1024;

/// What masks output. The demo has no key, and a key that cannot be used does not stop reading: placeholders then have no hash.
pub(crate) fn for_reading(ctx: &Ctx) -> Result<Arc<Redactor>, Failure> {
    let key = if ctx.demo { Key::None } else { key(ctx).unwrap_or(Key::None) };
    build(ctx, Settings { key, ..Settings::built_in() })
}

/// What masks files for good: a key that cannot be used or made is an error, because placeholders without hashes would stay.
pub(crate) fn for_cleaning(ctx: &Ctx) -> Result<Arc<Redactor>, Failure> {
    make_key(ctx).map_err(unusable)?;
    build(ctx, Settings { key: if ctx.demo { Key::None } else { key(ctx).map_err(unusable)? }, ..Settings::built_in() })
}

/// What masks a recording: also the values of this environment and, if the config file says so, of the project's `.env`.
fn for_recording(project: &Path, ctx: &Ctx) -> Result<Arc<Redactor>, Failure> {
    let mut masked = secrets_of_environment(ctx);
    if ctx.config.redact.reads_dotenv {
        masked.extend(secrets_of_dotenv(&project.join(".env")));
    }
    build(ctx, Settings { key: key(ctx).map_err(unusable)?, masked, ..Settings::built_in() })
}

/// How new records are written: without secrets, unless `--no-redact` was typed.
pub(crate) fn options(global: &Global, ctx: &Ctx) -> Result<Options, Failure> {
    if ctx.is_not_redacting() {
        return Ok(Options::unredacted());
    }
    let typed = global.project.as_deref().unwrap_or(&ctx.home.cwd);
    let project = project::of(&project::settled(&ctx.home.cwd, typed));
    Ok(Options { redactor: Some(for_recording(&project, ctx)?), ..Options::unredacted() })
}

fn build(ctx: &Ctx, settings: Settings) -> Result<Arc<Redactor>, Failure> {
    let config = &ctx.config;
    if let Some(problem) = &config.redact.problem {
        return Err(Failure::new(FailureKind::Usage, &problem.message).hint(&problem.hint));
    }
    let settings = Settings {
        rules: config.redact.rules.clone(),
        allow: config.texts("redact.allow"),
        files: config.texts("redact.files"),
        ..settings
    };
    let redactor = Redactor::new(settings).map_err(|error| {
        Failure::new(FailureKind::Usage, format!("{}: {error}", config.path.display()))
            .hint("correct the rule; without it, secrets would be printed or recorded")
    })?;
    Ok(Arc::new(redactor))
}

/// The key of our data folder. A missing one is made when the first secret is found: who only reads and has none needs no key.
fn key(ctx: &Ctx) -> Result<Key, Error> {
    let (data, host) = (ctx.home.data(), ctx.host());
    if !data.is_absolute() {
        return Ok(Key::None);
    }
    let known = known_redaction_key(&data)?;
    let failure = ctx.key_failure.clone();
    let make = move || match redaction_key(&data, &host) {
        Ok(key) => Some(key),
        Err(error) => {
            failure.get_or_init(|| error.to_string());
            None
        }
    };
    Ok(known.map_or_else(|| Key::WhenNeeded(Arc::new(make)), Key::Known))
}

/// Makes a missing key before the first record is written.
pub(crate) fn make_key_for_recording(ctx: &Ctx) -> Result<(), Error> {
    if ctx.is_not_redacting() { Ok(()) } else { make_key(ctx) }
}

/// Makes a missing key: placeholders without hashes would stay in what is written.
fn make_key(ctx: &Ctx) -> Result<(), Error> {
    let data = ctx.home.data();
    if ctx.demo || !data.is_absolute() {
        return Ok(());
    }
    redaction_key(&data, &ctx.host()).map(drop)
}

fn unusable(error: Error) -> Failure {
    Failure::from(error)
        .hint("the redaction key must be a private file of yours; --no-redact records without masking secrets")
}

fn secrets_of_environment(ctx: &Ctx) -> Vec<String> {
    let patterns = match ctx.config.get("redact.env") {
        Some(_) => ctx.config.texts("redact.env"),
        None => SECRET_VARIABLES.iter().map(ToString::to_string).collect(),
    };
    let is_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        patterns.iter().any(|pattern| matches_glob(&pattern.to_ascii_uppercase(), &name))
    };
    // `SSH_KEY_PATH` names a file, and so does what says so of itself.
    let is_path = |value: &str| value.starts_with('/') && Path::new(value).exists();
    let variables = ctx.home.vars.iter().filter(|(name, value)| is_secret(name) && !is_path(value));
    variables.map(|(_, value)| value.clone()).collect()
}

/// The values in a project's `.env`; none if it cannot be read.
fn secrets_of_dotenv(path: &Path) -> Vec<String> {
    let bytes = regular_file::read(path, DOTENV_LIMIT_BYTES, Links::Refuse).unwrap_or_default();
    dotenv_values(&String::from_utf8_lossy(&bytes))
}

/// The values of a `.env` file, and of those with several lines each line that can be a secret. A word alone is none: it is in any text.
fn dotenv_values(text: &str) -> Vec<String> {
    let (mut values, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (line, mut next) = rest.split_once('\n').unwrap_or((rest, ""));
        if let Some((name, value)) = line.split_once('=').filter(|_| !line.trim_start().starts_with('#')) {
            match quoted(rest[name.len() + 1..].trim_start_matches([' ', '\t'])) {
                Some((value, after)) => {
                    if value.contains('\n') {
                        values.extend(value.lines().map(str::trim).filter(|line| is_dense(line)).map(str::to_owned));
                        next = after.split_once('\n').map_or("", |(_, next)| next);
                    }
                    values.push(value.to_owned());
                }
                None => values.push(without_comment(value.trim()).trim_matches(['"', '\'']).to_owned()),
            }
        }
        rest = next;
    }
    values.retain(|value| !value.bytes().all(|byte| byte.is_ascii_lowercase()));
    values
}

/// What is between the quotes that a text starts with, and what is after them. A value goes on in the next lines only if its second
/// quote ends one: `'tis` begins none.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    // A longer value is none.
    let end = text[1..text.floor_char_boundary(MAX_QUOTED_BYTES)].find(quote)? + 1;
    let (value, after) = (&text[1..end], &text[end + 1..]);
    let left = after.lines().next().unwrap_or_default().trim();
    (!value.contains('\n') || left.is_empty() || left.starts_with('#')).then_some((value, after))
}

/// The longest value in quotes: a private key in lines.
const MAX_QUOTED_BYTES: usize = 64 * 1024;

/// Whether a line of a value is no text: letters and digits without a space.
fn is_dense(line: &str) -> bool {
    const LEAST: usize = 12;
    line.len() >= LEAST
        && !line.contains(char::is_whitespace)
        && line.bytes().any(|byte| byte.is_ascii_digit())
        && line.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// A value of a `.env` file without the comment after it, behind white space and a `#`.
fn without_comment(value: &str) -> &str {
    let is_comment = |(at, _): &(usize, &str)| value[..*at].ends_with([' ', '\t']);
    value.match_indices('#').find(is_comment).map_or(value, |(at, _)| value[..at].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_dotenv_file_end_at_their_quotes_and_comments() {
        for (written, values) in [
            ("A=tide4x", vec!["tide4x"]),
            ("export A = tide4x # rotate", vec!["tide4x"]),
            ("# A=tide4x\nB=tide#4x", vec!["tide#4x"]),
            ("A=\"tide # 4x\" # rotate\nB=2x", vec!["tide # 4x", "2x"]),
            ("A='tide4x'\r\nB=3x\r\n", vec!["tide4x", "3x"]),
            ("A=\"tide4x\nB=4x", vec!["tide4x", "4x"]),
            ("MOTD='tis\nB=4x\nC='5x'", vec!["4x", "5x"]),
            ("A = \"harbour-Blue\"", vec!["harbour-Blue"]),
            (
                "A=\"-- BEGIN --\nline1x4tide9\n  two words 2\"\nB=localhost",
                vec!["line1x4tide9", "-- BEGIN --\nline1x4tide9\n  two words 2"],
            ),
            ("", vec![]),
        ] {
            assert_eq!(dotenv_values(written), values, "{written}");
        }
    }
}
