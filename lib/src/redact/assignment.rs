//! Secrets that only their name gives away: `NAME=value`, `"name": "value"`, `--name value`, "the password is …".

use std::ops::Range;

use super::names::{self, MAX_NAME_BYTES, Promise};
use super::values::{self, MAX_VALUE_BYTES, Strength, Written};

/// A value that its name makes a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) promise: Promise,
    pub(super) value: Range<usize>,
    /// With its quotes, where seed 002's expressions take them too.
    pub(super) with_quotes: Range<usize>,
}

/// Where no value of this form ends: a value that is too long is not read again for each name in it.
#[derive(Default)]
pub(super) struct Clear {
    for_values: Option<(Form, &'static [u8])>,
    range: Range<usize>,
}

/// A quoted value with white space in it ends here: longer ones are texts. A stream holds so much back.
pub(super) const MAX_QUOTED_BYTES: usize = 512;

/// How far after a name "is" may stand: "the password for the staging database is …".
const MAX_GAP_BYTES: usize = 48;

/// A token that only follows its name: shorter ones may be numbers and names, longer ones are data.
const MIN_TOKEN_BYTES: usize = 20;
const MAX_TOKEN_BYTES: usize = 256;

/// Spaces between a name, its separator and its value: columns of a table or of an aligned file.
const MAX_SPACES: usize = 32;

/// The secret that is assigned to the name around `hit`. Returns also the name's place.
pub(super) fn at(text: &str, hit: Range<usize>, clear: &mut Clear) -> (Range<usize>, Option<Assigned>) {
    let name = name_around(text.as_bytes(), &hit);
    let promise = names::promise_of_words(&text[name.clone()]);
    // Most names that a keyword is in promise nothing: what follows them need not be looked at.
    if promise.is_none() && !names::is_query_key(&text[name.clone()]) {
        return (name, None);
    }
    let before = |promise| said_before(text, &name, promise);
    let assigned = assigned(text, name.clone(), promise, clear).or_else(|| promise.and_then(before));
    (name, assigned)
}

/// Where an open quoted value starts, if more text could still belong to it.
pub(super) fn open_quote(text: &str, hit: Range<usize>) -> Option<usize> {
    let bytes = text.as_bytes();
    let name = name_around(bytes, &hit);
    let (at, _) = separator(text, &name)?;
    let quote = Quote::at(bytes, at)?;
    let inside = at + quote.length;
    let is_open = quote.end(bytes, inside).is_none()
        && !bytes[inside..].contains(&b'\n')
        && bytes.len() - inside < MAX_QUOTED_BYTES;
    is_open.then_some(at)
}

fn assigned(text: &str, name: Range<usize>, promise: Option<Promise>, clear: &mut Clear) -> Option<Assigned> {
    let bytes = text.as_bytes();
    let (at, form) = separator(text, &name)?;
    let before_name = name.start.checked_sub(1).map(|before| bytes[before]);
    let in_query = form == Form::Env && matches!(before_name, Some(b'?' | b'&' | b'#'));
    let promise = promise.or(in_query.then_some(names::QUERY_KEY))?;
    // `--image-pull-secrets=harbour-login`
    let promise =
        if promise.of_several && form == Form::Env { Promise { strength: Strength::Weak, ..promise } } else { promise };
    // A call says little: `getToken("…")` names a token, `setPassword("…")` has one.
    if form == Form::Call && (promise.kind != "password" || names::is_asked_for(&text[name.clone()])) {
        return None;
    }
    // `suite.pass("…")` passes something on.
    if matches!(form, Form::Call | Form::Pair) && names::is_verb(&text[name.clone()]) {
        return None;
    }
    let is_quoted = Quote::at(bytes, name.end).is_some();
    let is_in_code = bytes[name.clone()].iter().any(u8::is_ascii_lowercase);
    let (at, form) = after_type(text, at, form, promise.strength);
    let at = if form == Form::Spaced { after_constructor(bytes, at) } else { at };
    if let Some(quote) = Quote::at(bytes, at) {
        let inside = at + quote.length;
        if let Some(end) = quote.end(bytes, inside) {
            let value = inside..end;
            let with_quotes = if form == Form::Env { at..end + quote.closing_length() } else { value.clone() };
            let strength = if form == Form::Cell { Strength::Weak } else { promise.strength };
            let inner = text.get(value.clone())?;
            // A constant that is called what it says, or what a check says when it passes.
            if is_quoted_name(inner, &text[name.clone()])
                || names::is_verb(&text[name.clone()]) && values::is_sentence(inner)
            {
                return None;
            }
            // A command whose output is the value.
            if quote.sign == b'`' && inner.contains(' ') && !values::has_mixed_word(inner) {
                return None;
            }
            // In code, tests are full of them: `User(name="ada", password="national")`.
            if is_in_code && !is_quoted && matches!(form, Form::Env | Form::Spaced) && values::is_plain_word(inner) {
                return None;
            }
            // In a list, names follow one another: `"user", "password", "repository"`.
            if form == Form::Pair && !values::is_mixed(inner) && !values::is_random_letters(inner) {
                return None;
            }
            let is_env = form == Form::Env && !is_in_code && !inner.contains(char::is_whitespace);
            let is_phrase =
                form == Form::Env && !is_in_code && strength != Strength::Weak && values::has_mixed_word(inner);
            // In quotes, `=` and the like at the start are no code, if there is more than a name after them.
            let fits = is_phrase
                || is_env && values::is_plausible(inner, strength, Written::Env)
                || (!is_env || values::is_mixed(inner)) && values::is_plausible(inner, strength, Written::Quoted);
            return fits.then_some(Assigned { promise, value, with_quotes });
        }
        return bare(text, inside, form, before_name, promise, at, clear);
    }
    let found = bare(text, at, form, before_name, promise, at, clear)?;
    // `connect(password=user_password)`: names in lower case take variables, too.
    let value = &text[found.value.clone()];
    let is_code = form == Form::Env && is_in_code && values::is_variable(value);
    // `pass: 123456` counts what passed.
    let is_number = form == Form::Spaced && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_verb = names::is_verb(&text[name]);
    // "pass force_zip64 to use it"
    let is_argument = form == Form::Prose && is_verb && value.contains('_');
    let is_count = is_number && is_verb;
    (!is_code && !is_count && !is_argument).then_some(found)
}

/// `CHANGE_PASSWORD = "CHANGE_PASSWORD"`
fn is_quoted_name(value: &str, name: &str) -> bool {
    name.contains('_') && value.eq_ignore_ascii_case(name.rsplit('.').next().unwrap_or(name))
}

/// A value without quotes, or whose closing quote is missing.
fn bare(
    text: &str,
    at: usize,
    form: Form,
    before_name: Option<u8>,
    promise: Promise,
    outer: usize,
    clear: &mut Clear,
) -> Option<Assigned> {
    let stops_at: &'static [u8] = match before_name {
        Some(b'?' | b'&') if form == Form::Env => b"&#",
        Some(b';') => b";",
        Some(b'{') => b"}",
        _ => b"",
    };
    let end = bare_end(text, at, form, stops_at, clear);
    let value = at..end;
    let written = match form {
        Form::Env => Written::Env,
        Form::Prose | Form::Cell => Written::Prose,
        Form::Flag | Form::Spaced | Form::Tag => Written::Bare,
        // Only what is quoted can be told from the variables beside it.
        Form::Pair | Form::Call => return None,
    };
    let fits = values::is_plausible(text.get(value.clone())?, promise.strength, written);
    fits.then(|| Assigned { promise, with_quotes: if form == Form::Env { outer..end } else { value.clone() }, value })
}

/// What is between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `NAME=value`
    Env,
    /// `name = value`, `name: value`, `"name" => value`
    Spaced,
    /// `<name>value</name>`
    Tag,
    /// `--name value`
    Flag,
    /// `| name | value |`
    Cell,
    /// `("name", "value")`, `NAME || "value"`
    Pair,
    /// `name("value")`
    Call,
    /// "name is value"
    Prose,
}

/// The name around a keyword.
fn name_around(bytes: &[u8], hit: &Range<usize>) -> Range<usize> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let room = bytes[..hit.start].len().min(MAX_NAME_BYTES);
    let mut start =
        hit.start - bytes[hit.start - room..hit.start].iter().rev().take_while(|byte| is_name(byte)).count();
    // The `n` of an escaped line break is no letter of the name.
    if start > 0 && bytes[start - 1] == b'\\' && start < hit.start && matches!(bytes[start], b'n' | b'r' | b't') {
        start += 1;
    }
    // "api key": the word before says which.
    let is_key =
        start == hit.start && bytes[hit.clone()].eq_ignore_ascii_case(b"key") && start > 1 && bytes[start - 1] == b' ';
    if is_key {
        start -= 1 + bytes[..start - 1]
            .iter()
            .rev()
            .take(MAX_SPACES)
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
    }
    // "mot de passe" is one name of three words.
    if bytes[..start].ends_with(b"ot de ") && bytes[hit.start..].starts_with(b"passe") {
        start -= b"mot de ".len();
    }
    let rest = &bytes[hit.end..];
    let end = hit.end + rest.iter().take(MAX_NAME_BYTES).take_while(|byte| is_name(byte)).count();
    let trailing = bytes[hit.end..end].iter().rev().take_while(|byte| matches!(byte, b'-' | b'.')).count();
    start..end - trailing
}

/// Where the value starts, and what is before it.
fn separator(text: &str, name: &Range<usize>) -> Option<(usize, Form)> {
    let bytes = text.as_bytes();
    let mut at = name.end;
    let mut closes_quote = false;
    if let Some(quote) = Quote::at(bytes, at) {
        at += quote.length;
        closes_quote = true;
    }
    while matches!(bytes.get(at), Some(b']' | b')' | b'*')) {
        at += 1;
    }
    at = after_remark(bytes, at);
    if let Some(quote) = Quote::at(bytes, at).filter(|_| !closes_quote) {
        at += quote.length;
    }
    if let Some(at) = beside(bytes, at) {
        return Some((at, Form::Spaced));
    }
    if let Some(at) = after_key_tag(bytes, at) {
        return Some((at, Form::Tag));
    }
    let tight = at;
    at = skip_spaces(bytes, at);
    let spaced = at > tight;
    let rest = bytes.get(at..)?;
    let is_flag = name.start >= 2 && bytes[name.start - 1] == b'-' || text[name.clone()].starts_with('-');
    let (length, form) = match rest {
        [b':', b':', ..] => return None,
        [b':', b'-', ..] if name.start > 0 && bytes[name.start - 1] == b'{' => (2, Form::Env),
        [b'|', b'|', ..] | [b'?', b'?', ..] => (2, Form::Pair),
        [b'(', b'"' | b'\'' | b'`', ..] if at == name.end => (1, Form::Call),
        [b'(', b'\\', ..] if at == name.end => (1, Form::Call),
        [b'=', b'=', b'=', ..] => (3, Form::Spaced),
        [b'=', b'>', ..] | [b':', b'=', ..] | [b'=', b'=', ..] | [b'-', b'>', ..] => (2, Form::Spaced),
        [b'=', next, ..] if !spaced && !closes_quote && !next.is_ascii_whitespace() => (1, Form::Env),
        [b'=' | b':', ..] => (1, Form::Spaced),
        // After a parenthesis, it compares.
        [b'>', ..] if !spaced && bytes[at - 1] != b')' => (1, Form::Tag),
        [b'|', ..] => (1, Form::Cell),
        [b',', ..] if closes_quote => (1, Form::Pair),
        _ if rest.starts_with("：".as_bytes()) => ("：".len(), Form::Spaced),
        _ if spaced && is_flag => (0, Form::Flag),
        _ => return prose(text, name),
    };
    let mut at = skip_spaces(bytes, at + length);
    // "password: is …", and the markers of bold text.
    while matches!(bytes.get(at), Some(b'*')) && form == Form::Spaced {
        at += 1;
    }
    at = skip_spaces(bytes, at);
    if form == Form::Spaced && matches!(bytes.get(at..), Some([b'|' | b'>', ..])) {
        // A block of YAML: the value is on the next line.
        at = skip_spaces(bytes, at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+'))));
    }
    if form == Form::Spaced {
        if is_reference(&text[at..]) {
            return None;
        }
        at = after_tag(bytes, at);
        let next = at + line_break(&bytes[at..]);
        if next > at {
            // After an empty line, only what no sentence begins with.
            let after = next + line_break(&bytes[next..]);
            at = skip_spaces(bytes, after);
            if after > next && !is_odd_at(text, at) {
                return None;
            }
        }
    }
    // Prefixes of strings in Python and C.
    if matches!(bytes.get(at..), Some([b'b' | b'r' | b'u' | b'L' | b'@', b'"' | b'\'', ..])) {
        at += 1;
    }
    (at < bytes.len()).then_some((at, form))
}

/// "password (for staging):", "password [prod]:", where what is in brackets is no value.
fn after_remark(bytes: &[u8], at: usize) -> usize {
    let (inside, close) = match bytes.get(at..) {
        Some([b' ', b'(', inside @ ..]) => (inside, b')'),
        Some([b' ', b'[', inside @ ..]) => (inside, b']'),
        _ => return at,
    };
    let is_remark =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'_' | b'.' | b',' | b'/');
    let length = inside.iter().take(MAX_GAP_BYTES).take_while(is_remark).count();
    let after = inside.get(length..).and_then(|rest| rest.strip_prefix(&[close]));
    let is_before_value = |rest: &[u8]| {
        matches!(rest, [b':' | b'=', ..]) || [&b" is "[..], b" was "].iter().any(|verb| rest.starts_with(verb))
    };
    if after.is_some_and(is_before_value) { at + 2 + length + 1 } else { at }
}

/// The value that is written beside its name: `key="DbPassword" value="…"`, `name: DB_PASSWORD` with `value: …` in the next line,
/// `variable "db_password" { default = "…" }`.
fn beside(bytes: &[u8], from: usize) -> Option<usize> {
    let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'{' | b'"' | b'\'' | b'\\');
    let mut at = from;
    while at < from + MAX_SPACES && bytes.get(at).is_some_and(is_between) {
        at += line_break(&bytes[at..]).max(1);
    }
    let word = [&b"value"[..], b"default"]
        .into_iter()
        .find(|word| at > from && bytes.get(at..at + word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word)))?;
    at += word.len();
    at += Quote::at(bytes, at).map_or(0, |quote| quote.length);
    at = skip_spaces(bytes, at);
    matches!(bytes.get(at), Some(b'=' | b':')).then(|| skip_spaces(bytes, at + 1))
}

/// The value of a property list: `<key>password</key>` and `<string>…</string>`, often in the next line.
fn after_key_tag(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + bytes.get(at..)?.strip_prefix(b"</key>").map(|_| b"</key>".len())?;
    let limit = at + MAX_SPACES;
    while at < limit && at < bytes.len() {
        match line_break(&bytes[at..]).max(skip_spaces(bytes, at) - at) {
            0 => break,
            length => at += length,
        }
    }
    bytes[at..].starts_with(b"<string>").then_some(at + b"<string>".len())
}

/// `password: !Ref DbPassword`: a tag of YAML that says where the value is.
fn is_reference(value: &str) -> bool {
    let tag = value.strip_prefix('!').and_then(|value| value.split([' ', '\n']).next());
    tag.is_some_and(|tag| {
        matches!(tag, "Ref" | "GetAtt" | "ImportValue" | "Select" | "FindInMap" | "If" | "reference" | "secret")
    })
}

/// `&anchor` and `!tag` before a value of YAML.
fn after_tag(bytes: &[u8], at: usize) -> usize {
    if !matches!(bytes.get(at), Some(b'&' | b'!')) {
        return at;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'!');
    let end = at + 1 + bytes[at + 1..].iter().take(MAX_SPACES).take_while(|byte| is_name(byte)).count();
    let after = skip_spaces(bytes, end);
    // `password: &str = …` has a type instead.
    if after > end && !matches!(bytes.get(after), Some(b'=' | b'|')) { after } else { at }
}

/// `String::from("…")`, `new SecretString("…")`: where the value in it starts.
fn after_constructor(bytes: &[u8], at: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b':' | b'.' | b' ');
    let end = at + bytes[at..].iter().take(MAX_SPACES).take_while(|byte| is_part(byte)).count();
    let name = &bytes[at..end];
    let makes_text = [&b"from"[..], b"String", b"string", b"Some", b"SecretStr", b"Secret", b"str", b"bytes", b"text"];
    let is_constructor = makes_text.iter().any(|last| name.ends_with(last)) && bytes.get(end) == Some(&b'(');
    if is_constructor && Quote::at(bytes, end + 1).is_some() { end + 1 } else { at }
}

/// How long the line break is that starts here, real or escaped.
fn line_break(bytes: &[u8]) -> usize {
    match bytes {
        [b'\r', b'\n', ..] | [b'\\', b'n', ..] => 2,
        [b'\n', ..] => 1,
        [b'\\', b'r', b'\\', b'n', ..] => 4,
        _ => 0,
    }
}

/// "is", "was" or ":" some words after the name.
fn prose(text: &str, name: &Range<usize>) -> Option<(usize, Form)> {
    let bytes = text.as_bytes();
    let from = after_remark(bytes, name.end);
    for says in ["是", "为", "は"] {
        if bytes[from..].starts_with(says.as_bytes()) {
            return Some((skip_spaces(bytes, from + says.len()), Form::Prose));
        }
    }
    if let Some(at) = token_after(text, name) {
        return Some((at, Form::Prose));
    }
    if !matches!(bytes.get(from), Some(b' ' | b'\'' | b'\t')) && !bytes[from..].starts_with(b"\\t") {
        return None;
    }
    // "with password hunter2": nothing but the name says it, so the value follows at once.
    if let Some(found) = at_once(text, name) {
        return Some(found);
    }
    let limit = bytes.len().min(from + MAX_GAP_BYTES);
    let mut at = from;
    let mut words = 0;
    while at < limit {
        let word_at = skip_spaces(bytes, at);
        let length = bytes[word_at..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let word = text.get(word_at..word_at + length)?;
        let is_one_of = |verbs: &[&str]| verbs.iter().any(|verb| word.eq_ignore_ascii_case(verb));
        // Some words later, "are" speaks of something else: "password private keys are …".
        let is_verb = is_one_of(&["is", "was", "is:", "=", "->", "→", "equals", "'s", "ist", "lautet", "était"])
            || words == 0 && is_one_of(&["are"]);
        // Words that say so only if what follows is no word.
        let may_be_verb = is_one_of(&["to", "be", "being", "-", "–", "—", "est", "es", "è", "é", "jest", "är"])
            && !names::is_verb(&text[name.clone()]);
        let is_plain = !word.contains(['[', ']', '{', '}', '"', '=', '(', ')', '<', '>']);
        let ends_clause = word.ends_with(['.', '!', '?', ';', ',']) || length == 0;
        let then = word_at + length;
        let is_colon = word.ends_with(':') && length > 1 && words > 0 && is_plain;
        if is_verb || is_colon || may_be_verb && is_odd_at(text, skip_spaces(bytes, then)) {
            let mut value = skip_spaces(bytes, then);
            for filler in FILLERS {
                if bytes[value..].len() > filler.len()
                    && bytes[value..value + filler.len()].eq_ignore_ascii_case(filler.as_bytes())
                {
                    value += filler.len();
                }
            }
            // In the next line, only what no sentence begins with.
            let next = value + line_break(&bytes[value..]);
            if next > value {
                return is_odd_at(text, next).then_some((next, Form::Prose));
            }
            return (value < bytes.len() && value > then).then_some((value, Form::Prose));
        }
        if ends_clause || !is_plain || words > 6 || bytes.get(then) == Some(&b'\n') {
            break;
        }
        // A line break in JSON within JSON.
        if word.contains("\\n") {
            break;
        }
        words += 1;
        at = then;
    }
    None
}

/// Words between a value and the name after it: "… is my password", "… as the root password".
const VERBS_BEFORE: &[&str] = &["is", "was", "as"];
const ARTICLES: &[&str] = &["the", "my", "our", "your", "his", "her", "their", "its", "a"];

/// Words after a name that a sentence goes on with: the "password manager" is another thing.
#[rustfmt::skip]
const GOES_ON: &[&str] = &[
    "for", "on", "of", "in", "to", "at", "and", "but", "so", "now", "here", "there", "please", "if", "until", "when", "or",
    "right", "there", "again", "i", "you", "we", "not", "by", "with", "everywhere", "today", "too",
];

/// "tide4x9 is my password", "use tide4x9 as the root password": the value stands before its name.
fn said_before(text: &str, name: &Range<usize>, promise: Promise) -> Option<Assigned> {
    if promise.kind != "password" {
        return None;
    }
    let is_word = text[name.clone()].bytes().all(|byte| byte.is_ascii_alphabetic());
    let bytes = text.as_bytes();
    if !is_word || names::is_verb(&text[name.clone()]) || bytes.get(name.start.checked_sub(1)?) != Some(&b' ') {
        return None;
    }
    let ends = match bytes.get(name.end..) {
        Some([b' ', rest @ ..]) => {
            let word = rest.split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
            GOES_ON.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        }
        Some([next, ..]) => matches!(next, b'.' | b',' | b';' | b'!' | b'?' | b')' | b'\n' | b'\r'),
        _ => true,
    };
    if !ends {
        return None;
    }
    let from = text.ceil_char_boundary(name.start.saturating_sub(MAX_TRAIL_BYTES));
    let line = text[from..name.start].rsplit('\n').next().unwrap_or_default();
    let is_one_of = |word: &str, known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    let mut words = line.split_ascii_whitespace().rev().peekable();
    let is_adjective = |word: &&str| {
        word.len() >= 2
            && word.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !is_one_of(word, ARTICLES)
            && !is_one_of(word, VERBS_BEFORE)
    };
    words.next_if(is_adjective);
    words.next_if(|word| is_one_of(word, ARTICLES));
    words.next().filter(|word| is_one_of(word, VERBS_BEFORE))?;
    let word = words.next()?.trim_matches(['`', '"', '\'', '*', ',', '(', ')']);
    let start = word.as_ptr() as usize - text.as_ptr() as usize;
    // The first word that is looked at may be cut off.
    let is_whole = start > from || from == 0;
    let fits = is_whole && is_odd_at(text, start) && values::is_plausible(word, promise.strength, Written::Prose);
    let value = start..start + word.len();
    fits.then(|| Assigned { promise, with_quotes: value.clone(), value })
}

/// So far before a name its value may stand. A stream holds so much back.
const MAX_TRAIL_BYTES: usize = 128;

/// Where a word starts that what follows may still make a secret: "tide4x9 is my", "219-09-9998 is her". More text decides.
pub(super) fn open_trail(text: &str) -> Option<usize> {
    /// "when you are asked for the admin password", and one word more.
    const MAX_WORDS: usize = 10;
    const STARTS: &[&str] = &["is", "was", "as", "when", "if", "once", "where"];
    let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_TRAIL_BYTES));
    let line = text[from..].rsplit('\n').next().unwrap_or_default();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_plain = |word: &&str| {
        word.bytes()
            .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'\'' | b'(' | b')' | b'-' | b'='))
    };
    let is_open = |at: &usize| {
        let after = &words[at + 1..];
        let leads = after.first().is_none_or(|word| {
            let is_last = after.len() == 1 && !line.ends_with(char::is_whitespace);
            let starts = |known: &&str| if is_last { known.starts_with(word) } else { known == word };
            let follows_number = word.starts_with(['(', '-', '=', ':']) || words[*at].ends_with([',', ':']);
            STARTS.iter().any(starts) || follows_number && has_nine_digits(words[*at])
        });
        let start = words[*at].as_ptr() as usize - text.as_ptr() as usize;
        leads && after.len() <= MAX_WORDS && after.iter().all(is_plain) && may_be_value(text, start)
    };
    let at = (0..words.len()).find(is_open)?;
    Some(words[at].as_ptr() as usize - text.as_ptr() as usize)
}

/// Whether a word can be a password or a social security number that only the words after it show.
fn may_be_value(text: &str, at: usize) -> bool {
    let word = text[at..].split(char::is_whitespace).next().unwrap_or_default();
    has_nine_digits(word) || is_odd_at(text, at + (word.len() - word.trim_start_matches(['*', ',', '(']).len()))
}

fn has_nine_digits(word: &str) -> bool {
    word.bytes().filter(u8::is_ascii_digit).count() == 9
}

/// Between "is" and the value.
const FILLERS: &[&str] = &[
    "now ",
    "currently ",
    "still ",
    "just ",
    "simply ",
    "set to ",
    "changed to ",
    "reset to ",
    "updated to ",
    "rotated to ",
];

/// Words before a name after which its value may follow at once.
#[rustfmt::skip]
const LEADS: &[&str] = &[
    "with", "and", "using", "use", "the", "my", "/", "temp", "temporary", "new", "old", "initial", "default", "root",
    "admin", "wifi", "env", "arg", "-x", "-gx", "-Ux", "y", "et", "und", "e", "mit", "avec", "con", "com", "try", "tried", "your", "our",
    "their", "his", "her", "this", "that", "current", "db", "database", "user", "login", "account", "sudo", "ssh",
];

/// Words for who somebody is: a password follows.
const USERS: &[&str] = &["user", "username", "login", "usuario", "identifiant", "utilisateur", "benutzer", "utente"];

/// "with password hunter2", "user ada pass tide4x", "(password tide4x)", `ENV DB_PASSWORD tide4x`.
fn at_once(text: &str, name: &Range<usize>) -> Option<(usize, Form)> {
    let bytes = text.as_bytes();
    let line = &bytes[name.start.saturating_sub(2 * MAX_GAP_BYTES)..name.start];
    let is_one_of = |word: &[u8], known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\\' | b'`' | b',');
    let mut words = line.rsplit(is_space).filter(|word| !word.is_empty());
    // "ssh ada@10.0.0.4, password tide4x"
    let ends_clause = line.trim_ascii_end().ends_with(b",");
    let leads = words.next().is_some_and(|word| is_one_of(word, LEADS));
    let names_user = words.next().is_some_and(|word| is_one_of(word.strip_suffix(b":").unwrap_or(word), USERS));
    let is_opened =
        line.last() == Some(&b'(') || bytes[name.end..].starts_with(b"\t") || bytes[name.end..].starts_with(b"\\t");
    // `#define OBJ_server_auth OBJ_id_kp,1L`
    let is_defined = line.rsplit(|byte| *byte == b'\n').next().is_some_and(|line| line.trim_ascii() == b"#define");
    let is_variable = bytes[name.clone()].contains(&b'_') && !is_defined;
    // "pwd tide4x9" in a line of its own.
    let is_short = bytes[name.clone()].eq_ignore_ascii_case(b"pwd") && line.last().is_none_or(|byte| *byte == b'\n');
    let is_escaped = bytes[name.end..].starts_with(b"\\t");
    let at = skip_spaces(bytes, name.end + if is_escaped { 2 } else { 0 });
    let is_quoted = matches!(bytes.get(at), Some(b'`' | b'"' | b'\''));
    // A type of C, and what points to it: `EC_KEY *d2i_key(…`.
    if matches!(bytes.get(at..), Some([b'*', next, ..]) if *next != b'*') {
        return None;
    }
    let fits = leads && is_quoted
        || (leads || ends_clause || names_user || is_opened || is_variable || is_quoted || is_short)
            && is_odd_at(text, at);
    (at > name.end && fits).then_some((at, Form::Prose))
}

/// The token that follows "access key", "this token" or, in the next line, "API key:" at once: so long and random that it is no word of
/// a sentence.
fn token_after(text: &str, name: &Range<usize>) -> Option<usize> {
    let bytes = text.as_bytes();
    let gap = skip_spaces(bytes, name.end);
    let at = gap + line_break(&bytes[gap..]);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=');
    let length = bytes[at..].iter().take(MAX_TOKEN_BYTES).take_while(|byte| is_part(byte)).count();
    if at == name.end || !(MIN_TOKEN_BYTES..MAX_TOKEN_BYTES).contains(&length) {
        return None;
    }
    let token = &text[at..at + length];
    // A path or an assignment has signs of both alphabets of base64, and signs inside.
    let is_path = token.contains(['+', '/']) && token.contains(['_', '-']) || token.trim_end_matches('=').contains('=');
    let is_token = !is_path && values::is_random(token);
    // A heading is alone in its line, and so is what follows it.
    let ends_line = bytes[at + length..].is_empty() || line_break(&bytes[at + length..]) > 0;
    let before = &bytes[name.start.saturating_sub(MAX_SPACES)..name.start];
    let own_line = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t' | b'#' | b'*' | b'-' | b'>'));
    let is_heading = before.iter().rev().nth(own_line.count()).is_none_or(|byte| *byte == b'\n');
    let is_of_token = || names::promise(&text[name.clone()]).is_some_and(|it| matches!(it.kind, "api-key" | "token"));
    (is_token && (at == gap || is_heading && ends_line) && is_of_token()).then_some(at)
}

/// Whether no sentence has the word that starts here: digits or signs in it, and not at its end alone.
fn is_odd_at(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default().trim_start_matches(['`', '"', '\'']);
    let word = rest.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"')).next().unwrap_or_default();
    let word = word.trim_end_matches(['.', ',', ';', ')', '\'', '!', '?', ':']);
    // `crypt_*` stands for several names.
    let word = word.strip_suffix('*').filter(|name| name.ends_with('_')).unwrap_or(word);
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let is_sign = |byte: &u8| b"!@#$%^&*+~".contains(byte);
    !word.starts_with(['(', '['])
        && !is_count(word)
        && !is_port(word)
        && word.len() >= 6
        && word.len() <= MAX_VALUE_BYTES
        && (has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || has(is_sign))
            || values::is_random_letters(word))
}

/// `pass=12`, `input_tokens=12345`: a name and a number.
fn is_count(word: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once('=').is_some_and(|(name, number)| is_name(name) && is_number(number))
}

/// `464/tcp`
fn is_port(word: &str) -> bool {
    word.strip_suffix("/tcp")
        .or_else(|| word.strip_suffix("/udp"))
        .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `password: str = "…"`: a type between the name and the value.
fn after_type(text: &str, at: usize, form: Form, strength: Strength) -> (usize, Form) {
    let bytes = text.as_bytes();
    let is_type = |byte: &u8| {
        byte.is_ascii_alphabetic()
            || matches!(byte, b'_' | b'&' | b'\'' | b'?' | b'.' | b'[' | b']' | b'<' | b'>' | b'|' | b':')
    };
    if form != Form::Spaced || strength == Strength::Weak && Quote::at(bytes, at).is_some() {
        return (at, form);
    }
    if bytes[at..].starts_with(b"[REDACTED") {
        return (at, form);
    }
    let end = at + bytes[at..].iter().take(MAX_SPACES).take_while(|byte| is_type(byte)).count();
    let equals = skip_spaces(bytes, end);
    match bytes.get(equals..) {
        Some([b'=', next, ..]) if end > at && *next != b'=' => (skip_spaces(bytes, equals + 1), Form::Spaced),
        _ => (at, form),
    }
}

/// Where a value without quotes ends.
fn bare_end(text: &str, at: usize, form: Form, stops_at: &'static [u8], clear: &mut Clear) -> usize {
    let bytes = text.as_bytes();
    let limit = bytes.len().min(at + MAX_VALUE_BYTES + 1);
    let is_clear = clear.for_values == Some((form, stops_at)) && clear.range.contains(&at);
    let mut end = if is_clear { clear.range.end.min(limit) } else { at };
    while end < limit {
        let stops = match bytes[end] {
            byte if byte.is_ascii_whitespace() || byte.is_ascii_control() => true,
            b'"' | b'`' => true,
            b'\'' => form != Form::Prose || end + 1 >= limit || !bytes[end + 1].is_ascii_alphanumeric(),
            b'<' => form == Form::Tag || bytes.get(end + 1) == Some(&b'/'),
            b'|' => form == Form::Cell,
            byte if stops_at.contains(&byte) => true,
            b',' | b';' => form == Form::Spaced && !goes_on(text, end + 1),
            b'\\' => matches!(bytes.get(end + 1), Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\')),
            0xe2 | 0xe3 | 0xef => is_foreign_stop(text, end),
            _ => false,
        };
        if stops {
            break;
        }
        end += 1;
    }
    if end - at > MAX_VALUE_BYTES {
        *clear = Clear { for_values: Some((form, stops_at)), range: at..end };
        return end;
    }
    let value = &bytes[at..end];
    let closing = |byte: &u8| {
        matches!(byte, b',' | b';' | b')' | b']' | b'}' | b':')
            || matches!(byte, b'.' | b'?') && form != Form::Env
            || *byte == b'!' && form == Form::Prose
    };
    let balanced = value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{'));
    let trailing = value
        .iter()
        .rev()
        .take_while(|byte| closing(byte) && !(balanced && matches!(byte, b')' | b']' | b'}')))
        .count();
    text.floor_char_boundary(end - trailing).max(at)
}

/// Whether a value goes on after a comma: what follows is no word, and no name of another value.
fn goes_on(text: &str, at: usize) -> bool {
    let bytes = &text.as_bytes()[at..];
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'"' | b'\'');
    let length = bytes.iter().take(MAX_SPACES).take_while(is_name).count();
    let after = skip_spaces(bytes, length);
    is_odd_at(text, at)
        && !matches!(bytes.get(after), Some(b':' | b'='))
        && !matches!(bytes.first(), Some(b'"' | b'\''))
}

/// General, ideographic and full-width punctuation: “”, …, 。, ，.
pub(super) fn is_foreign_stop(text: &str, at: usize) -> bool {
    let stop = |c: char| matches!(c, '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}');
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(stop)
}

fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..]
        .iter()
        .take(MAX_SPACES)
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// A quote, with the backslashes before it in JSON within JSON.
#[derive(Clone, Copy)]
struct Quote {
    sign: u8,
    /// With its backslashes.
    length: usize,
}

impl Quote {
    fn at(bytes: &[u8], at: usize) -> Option<Quote> {
        let slashes = bytes.get(at..)?.iter().take(8).take_while(|byte| **byte == b'\\').count();
        let sign = *bytes.get(at + slashes)?;
        matches!(sign, b'"' | b'\'' | b'`').then_some(Quote { sign, length: slashes + 1 })
    }

    fn closing_length(self) -> usize {
        self.length
    }

    /// Where the value ends: at the same quote with as many backslashes, on the same line.
    fn end(self, bytes: &[u8], inside: usize) -> Option<usize> {
        let limit = bytes.len().min(inside + MAX_VALUE_BYTES);
        let mut has_space = false;
        let mut at = inside;
        while at < limit {
            match bytes[at] {
                b'\n' | b'\r' => return None,
                // A line break in JSON within JSON.
                b'\\' if matches!(bytes.get(at + 1), Some(b'n')) && bytes.get(at.wrapping_sub(1)) != Some(&b'\\') => {
                    return None;
                }
                b'\\' => {
                    let slashes = bytes[at..limit].iter().take_while(|byte| **byte == b'\\').count();
                    let closes = bytes.get(at + slashes) == Some(&self.sign);
                    if closes && slashes + 1 == self.length {
                        return Some(at);
                    }
                    at += slashes + usize::from(closes || slashes % 2 == 1);
                    continue;
                }
                byte if byte == self.sign => return (self.length == 1).then_some(at),
                b' ' | b'\t' => has_space = true,
                _ => {}
            }
            if has_space && at - inside >= MAX_QUOTED_BYTES {
                return None;
            }
            at += 1;
        }
        None
    }
}
