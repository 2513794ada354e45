//! Whether a value can be a secret at all: placeholders, words, code and randomness.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::words::is_word;

/// How much the name before a value says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    /// `password`, `client_secret`: nearly everything that is no placeholder, word or code.
    Strong,
    /// `api_key`: what has a digit, or looks random.
    Key,
    /// `token`, `auth`, `key`: only what looks random.
    Weak,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Between quotes, or as a whole string of JSON.
    Quoted,
    /// `NAME=value` without spaces, as in a shell or a `.env` file.
    Env,
    /// Up to the next white space, in code, YAML or a table.
    Bare,
    /// After "is" in a sentence.
    Prose,
}

/// A value of more characters is a text that has a secret in it, not a secret.
pub(super) const MAX_VALUE_BYTES: usize = 4096;

/// Words that show where a secret goes.
#[rustfmt::skip]
const STAND_INS: &[&str] = &[
    "example", "placeholder", "your-", "your_", "yourkey", "yourtoken", "yoursecret", "yourpassword", "your key",
    "changeme", "change-me", "change_me", "changeit", "redacted", "insert-", "insert_", "replace-", "replace_",
    "replaceme", "-here", "_here", "xxxx", "xxx-", "xxx_", "dummy", "notasecret", "not-a-secret", "todo", "fixme",
    "<your", "my-secret", "my_secret", "mysecret", "my-token", "my_token", "mytoken", "my-api-key", "my_api_key",
    "myapikey", "my-password", "my_password", "mypassword", "some-", "some_", "none-of",
];

/// Where a secret is kept, not the secret.
const REFERENCES: &[&str] = &["arn:aws", "op://", "ref+"];

/// The same, if what follows is a name or a path: a password may begin with `env:`.
const NAMED_REFERENCES: &[&str] = &["arn:", "vault:", "ssm:", "env:", "keychain:", "secretref:"];

/// What stands for another text, from its first sign to its last one.
const TEMPLATES: &[(&str, &str)] =
    &[("${{", "}}"), ("{{", "}}"), ("${", "}"), ("#{", "}"), ("%{", "}"), ("%(", ")s"), ("%(", ")"), ("$(", ")")];

/// Signs for what is left out.
const FILLS: &[&str] = &["***", "....", "•••", "………"];

/// The stand-ins that are not part of a random token either.
#[rustfmt::skip]
const STAND_INS_IN_TOKENS: &[&str] = &[
    "example", "placeholder", "your-", "your_", "yourkey", "yourtoken", "redacted", "replace", "changeme",
];

static STAND_IN: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| finder(STAND_INS));
static STAND_IN_TOKEN: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| finder(STAND_INS_IN_TOKENS));

/// Whether a value only shows where a secret goes: `xxxx`, `your-key-here`, `${VAR}`, `<token>`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let trimmed = value.trim();
    let bytes = trimmed.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
    let is_variable = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_wrapped = (*first == b'<' && *last == b'>')
        || (*first == b'%' && *last == b'%' && bytes.len() > 2 && is_variable(&trimmed[1..trimmed.len() - 1]))
        || (*first == b'%' && bytes.len() <= 3)
        || (*first == b'`' && (bytes.len() > 1 && *last == b'`' || trimmed.contains(' ')))
        || (*first == b'{' && trimmed.contains('}'))
        || trimmed.ends_with("...")
        || trimmed.ends_with('…')
        || trimmed.strip_prefix('$').is_some_and(|name| is_variable(name) && !is_no_variable(name))
        || trimmed.contains("[REDACTED");
    let is_marked = matches!(first, b'@' | b'!' | b':' | b'#' | b'?') && is_words(trimmed);
    is_wrapped
        || is_marked
        || has_one_character(bytes)
        || is_reference(trimmed)
        || is_template(trimmed)
        || is_stand_in(trimmed)
        || is_series(bytes)
}

/// `arn:aws:…`, `env:DB_PASSWORD`, `vault:secret/data/db#password`.
fn is_reference(value: &str) -> bool {
    REFERENCES.iter().any(|start| value.starts_with(start))
        || NAMED_REFERENCES
            .iter()
            .any(|start| value.strip_prefix(start).is_some_and(|rest| !has_odd_piece(rest)))
}

/// Whether a value is made of templates and fills, and what is between them is no secret: `${A}-${B}`, `%s:%s`, `sk-***`, but not
/// `Gold%sun91X`.
fn is_template(value: &str) -> bool {
    let (mut rest, mut outside, mut has_template) = (value, String::new(), false);
    while let Some(sign) = rest.chars().next() {
        let length =
            if matches!(sign, '$' | '{' | '#' | '%' | '*' | '.' | '•' | '…') { template_length(rest) } else { 0 };
        has_template |= length > 0;
        if length == 0 {
            outside.push(sign);
        }
        rest = &rest[length.max(sign.len_utf8())..];
    }
    has_template && !has_odd_piece(&outside)
}

/// How long the template is that a text starts with; one that is not closed ends with the text, where white space cut it off.
fn template_length(text: &str) -> usize {
    let is_name = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b':');
    if let Some((open, close)) = TEMPLATES.iter().find(|(open, _)| text.starts_with(open)) {
        let inside = &text[open.len()..];
        return match inside.find(close) {
            Some(end) => open.len() + end + close.len(),
            None if inside.bytes().all(is_name) => text.len(),
            None => 0,
        };
    }
    if let Some(after) = ["%s", "%d", "%v"].iter().find_map(|format| text.strip_prefix(format)) {
        return if after.starts_with(|c: char| c.is_ascii_alphanumeric()) { 0 } else { text.len() - after.len() };
    }
    let fill = FILLS.iter().find(|fill| text.starts_with(**fill)).and_then(|fill| fill.chars().next());
    fill.map_or(0, |sign| text.len() - text.trim_start_matches(sign).len())
}

/// Whether there is something between separators that is no word: letters with digits or signs among them.
fn has_odd_piece(value: &str) -> bool {
    const LEAST: usize = 4;
    let is_odd = |piece: &str| {
        let has_letter = piece.bytes().any(|byte| byte.is_ascii_alphabetic());
        let has_sign = piece.bytes().any(|byte| b"!^*~&$".contains(&byte));
        piece.len() >= LEAST && has_letter && (has_digit(piece) || has_sign) && !is_word(piece)
            || is_random_letters(piece)
    };
    value.split(|c: char| c.is_whitespace() || "/:.,-_=?@#()<>'\"|+;".contains(c)).any(is_odd)
}

/// Whether a stand-in is a word of its own in a value, or most of it: `Todorov91!x` has none.
fn is_stand_in(value: &str) -> bool {
    let Some(words) = STAND_IN.as_ref() else { return false };
    let bytes = value.as_bytes();
    let mut covered = 0;
    for found in words.find_iter(value) {
        covered += found.len();
        if (is_word_edge(bytes, found.start()) && is_word_edge(bytes, found.end())) || covered * 2 >= value.len() {
            return true;
        }
    }
    value.contains("EXAMPLE")
}

/// Whether a word starts or ends here: not two letters beside each other, unless the second one is the capital of another word.
fn is_word_edge(bytes: &[u8], at: usize) -> bool {
    let (Some(before), Some(after)) = (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at)) else { return true };
    !before.is_ascii_alphabetic()
        || !after.is_ascii_alphabetic()
        || before.is_ascii_lowercase() && after.is_ascii_uppercase()
}

/// What nobody calls a variable, and so is a password after its `$`: a number first, or a digit between letters of both cases and no
/// word of code, as in `Tid3Pool`.
fn is_no_variable(name: &str) -> bool {
    let has_digit_inside =
        name.as_bytes().windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic());
    name.len() > 2 && name.starts_with(|c: char| c.is_ascii_digit())
        || name.len() >= 6
            && has_digit_inside
            && mixes_case(name)
            && !name.contains('_')
            && !split_words(name).any(is_word)
}

/// Whether what has a vendor's shape is an example of it.
pub(super) fn is_example_token(token: &str) -> bool {
    is_filled(token) || STAND_IN_TOKEN.as_ref().is_some_and(|words| words.is_match(token))
}

/// Whether the same character is repeated so often that the rest is no token: random ones, and numbers in them, have runs, too.
fn is_filled(token: &str) -> bool {
    const LEAST: usize = 12;
    let bytes = token.as_bytes();
    let mut long = bytes.windows(6).filter(|run| has_long_run(run)).peekable();
    if long.peek().is_none() {
        return false;
    }
    // People write `x` and stars for what they leave out.
    if long.any(|run| matches!(run[0], b'x' | b'X') || !run[0].is_ascii_alphanumeric()) {
        return true;
    }
    let runs = bytes.chunk_by(|a, b| a == b).filter(|run| !has_long_run(run));
    let rest = String::from_utf8_lossy(&runs.flatten().copied().collect::<Vec<u8>>()).into_owned();
    rest.len() < LEAST || rest.len() * 2 < token.len() || !is_random(&rest)
}

/// Where a word that shows where a secret goes is joined to the end of a token: `….example.com`, `…-your-key`.
pub(super) fn stand_in_behind(token: &str) -> Option<usize> {
    let found = STAND_IN_TOKEN.as_ref()?.find(token)?;
    token[..found.start()].ends_with(['.', '-', '_']).then_some(found.start() - 1)
}

/// Whether what follows a vendor's prefix is random, and no row of letters or digits.
pub(super) fn is_random_body(body: &str) -> bool {
    is_random(body) && !is_series(body.as_bytes()) && !has_long_run(body.as_bytes())
}

/// Whether a value after such a name can be a secret.
pub(super) fn is_plausible(value: &str, strength: Strength, written: Written) -> bool {
    if value.len() > MAX_VALUE_BYTES {
        return false;
    }
    let fits = match strength {
        Strength::Strong => is_password(value, written),
        Strength::Key if written == Written::Env => {
            value.len() >= 4 && !is_code(value) && !is_words(value) && !is_plain_word(value)
        }
        Strength::Key => {
            let is_mixed = has_digit(value) || value.len() >= 16 && is_random(value);
            let is_name = is_identifier(value) && !has_number_part(value);
            value.len() >= 8 && is_mixed && is_one_token(value) && !is_name && !is_code(value)
        }
        Strength::Weak => {
            let least = if written == Written::Env { 8 } else { 10 };
            value.len() >= least && is_one_token(value) && !is_code(value) && is_random(value)
        }
    };
    // The dearest checks come last: most values are words or code.
    fits && !is_hex_number(value) && !is_placeholder(value) && !has_long_run(value.as_bytes()) && !is_path(value)
}

/// `0x100`, `0xce536359UL`
fn is_hex_number(value: &str) -> bool {
    const LONGEST: usize = 20;
    let digits = value.strip_prefix("0x").map(|digits| digits.trim_end_matches(['u', 'U', 'l', 'L']));
    digits.is_some_and(|digits| value.len() <= LONGEST && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a cookie has a value that can open something: `theme=dark` has none.
pub(super) fn is_session(cookie: &str) -> bool {
    const ATTRIBUTES: [&str; 6] = ["path", "domain", "expires", "max-age", "samesite", "version"];
    let can_open = |value: &str| {
        let is_mixed = has_digit(value) && value.bytes().any(|byte| byte.is_ascii_alphabetic());
        value.len() >= 8 && is_mixed && !is_identifier(value) || value.len() >= 16 && is_random(value)
    };
    cookie
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, _)| !ATTRIBUTES.iter().any(|attribute| name.trim().eq_ignore_ascii_case(attribute)))
        .any(|(_, value)| can_open(value.trim()))
}

/// Letters, and digits or signs that no name has.
pub(super) fn is_mixed(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && (has_digit(value) || value.bytes().any(is_symbol))
        && !is_identifier(value)
        && !value.contains([':', '\\'])
}

fn is_password(value: &str, written: Written) -> bool {
    let (has_digit, has_symbol) = (has_digit(value), value.bytes().any(is_symbol));
    let mixes_case = mixes_case(value);
    match written {
        Written::Quoted if value.contains(char::is_whitespace) => is_passphrase(value),
        Written::Quoted if has_digit || has_symbol => {
            let is_call = is_call(value) && value.ends_with([')', ']', '}', '>', ';']);
            value.len() >= 4 && !is_known_identifier(value) && !is_call && !is_url(value)
        }
        Written::Quoted if is_random_letters(value) => !is_words(value),
        Written::Quoted => value.len() >= 6 && !is_words(value) && !is_name(value) && !is_code(value),
        Written::Env => value.len() >= 3 && !is_code(value) && !is_words(value),
        Written::Bare if is_code(value) || is_known_identifier(value) => false,
        Written::Bare => {
            value.len() >= 5 && (has_digit || has_symbol) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
                || (value.len() >= 8 && mixes_case && !is_camel(value))
                || value.len() >= 6 && value.bytes().all(|byte| byte.is_ascii_digit())
                || is_random_letters(value)
        }
        Written::Prose => {
            let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
            value.len() >= 4
                && !is_words(value)
                && !is_code(value)
                && !is_known_identifier(value)
                && ((has_digit && letters)
                    || (has_symbol && letters && value.len() >= 6)
                    || (mixes_case && !is_camel(value) && value.len() >= 8)
                    || (has_digit && value.len() >= 6 && !letters)
                    || is_random_letters(value))
        }
    }
}

/// A word of a language in small letters, which is no password that everybody knows.
pub(super) fn is_plain_word(value: &str) -> bool {
    value.len() <= 10
        && value.bytes().all(|byte| byte.is_ascii_lowercase())
        && is_pronounceable(value)
        && !COMMON_PASSWORDS.contains(&value)
}

/// Letters in an order that no word has: two pairs of them or more stand beside each other in hardly any word.
pub(super) fn is_random_letters(value: &str) -> bool {
    const LEAST: usize = 8;
    const LONGEST: usize = 64;
    let bytes = value.as_bytes();
    // `chpasswd`, `getpwd`: programs that ask for one.
    let is_of_passwords = || ["pass", "pwd"].iter().any(|name| value.to_ascii_lowercase().contains(name));
    let is_letters = (LEAST..=LONGEST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_alphabetic);
    if !is_letters || is_of_passwords() {
        return false;
    }
    let is_rare = |pair: &&[u8]| {
        // A capital begins another word.
        let is_joint = pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
        let [first, second] = [pair[0], pair[1]].map(|byte| byte.to_ascii_lowercase() - b'a');
        !is_joint && PAIRS[usize::from(first)] & (1 << second) == 0
    };
    let rare = bytes.windows(2).filter(is_rare).count();
    rare >= 2 && rare * 4 >= bytes.len()
}

/// Which letters follow each letter in at least twenty of the ten thousand words that documents of programs have most: one bit for
/// each of `a` to `z`.
#[rustfmt::skip]
const PAIRS: [u32; 26] = [
    0x1febd6f, 0x11e4b17, 0x11e5dbd, 0x01e693b, 0x1fffdff, 0x11e4939, 0x01669d1, 0x11e5911, 0x2aefc7f,
    0x0104011, 0x0040911, 0x13cc93d, 0x01cd91b, 0x13cedfd, 0x0fefd6f, 0x11ec99d, 0x0100000, 0x13efd7f,
    0x15cfdfd, 0x15ed9bd, 0x00ef97f, 0x0004111, 0x0066191, 0x0088114, 0x00cb911, 0x0000110,
];

/// Passwords without a digit that people use most, and that stories and documents have.
#[rustfmt::skip]
const COMMON_PASSWORDS: &[&str] = &[
    "access", "amanda", "andrea", "andrew", "angel", "asdfgh", "ashley", "baseball", "batman", "buster", "butterfly",
    "charlie", "cheese", "chelsea", "computer", "cookie", "daniel", "dragon", "eminem", "flower", "football", "freedom",
    "george", "ginger", "hannah", "harley", "hello", "hockey", "hunter", "iloveyou", "internet", "jasmine", "jennifer",
    "jessica", "jordan", "joshua", "justin", "killer", "letmein", "liverpool", "loveme", "lovely", "maggie", "master",
    "matrix", "matthew", "michael", "michelle", "monkey", "mustang", "naruto", "nicole", "ninja", "pepper", "pokemon",
    "princess", "qazwsx", "qwerty", "qwertyuiop", "ranger", "robert", "samsung", "secret", "shadow", "silver", "soccer",
    "starwars", "summer", "sunshine", "superman", "swordfish", "taylor", "thomas", "thunder", "tigger", "trustno",
    "welcome", "whatever", "william", "yankees", "zxcvbn", "zxcvbnm",
];

/// Whether a token after a scheme is more than a word: "Bearer authentication".
pub(super) fn is_odd(value: &str) -> bool {
    let is_letters = value
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'=' | b':'));
    let names_something = value.trim_end_matches('=').contains('=');
    !is_letters && !names_something && !is_known_identifier(value) || value.len() >= 20 && is_random(value)
}

/// A variable rather than a value: words in camel case or with underscores between them.
pub(super) fn is_variable(value: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.');
    let joins = value.contains('_') || value.bytes().skip(1).any(|byte| byte.is_ascii_uppercase()) && is_camel(value);
    value.bytes().all(is_part) && joins && value.split(['_', '.']).all(is_pronounceable)
}

/// Several words that nobody would print on a form.
fn is_passphrase(value: &str) -> bool {
    let words = || value.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let sentence = value.ends_with(['.', '?', '!', ':', ',', ';', ')', '…']) || value.contains(['(', '<', '{', '=']);
    let (count, known) = (words().count(), words().filter(|word| is_word(word)).count());
    let has_few_known = known * 3 <= count && count >= 2;
    let is_long = count >= 3 || !value.starts_with(char::is_uppercase);
    !sentence && value.is_ascii() && value.len() <= 128 && has_few_known && is_long
}

/// Nine digits in the blocks of a social security number, none of which is a number that is never given out.
pub(super) fn is_ssn(value: &str) -> bool {
    let digits: Vec<u8> = value.bytes().filter(u8::is_ascii_digit).collect();
    let is_grouped = value.len() == 9
        || value.len() == 11 && [3, 6].iter().all(|at| matches!(value.as_bytes()[*at], b'-' | b' ' | b'.'));
    let is_given = |digits: &[u8]| {
        !matches!(digits[..3], [b'0', b'0', b'0'] | [b'6', b'6', b'6'] | [b'9', ..])
            && digits[3..5] != *b"00"
            && digits[5..] != *b"0000"
    };
    is_grouped && digits.len() == 9 && is_given(&digits)
}

/// Several words, or what is written in another language's letters: under "pass", a message about what passed.
pub(super) fn is_sentence(value: &str) -> bool {
    const LEAST: usize = 4;
    !value.is_ascii() || value.split_whitespace().nth(LEAST - 1).is_some()
}

/// `my s3cret pass`: several words, one of them with letters and digits.
pub(super) fn has_mixed_word(value: &str) -> bool {
    const LONGEST: usize = 128;
    let is_mixed = |word: &str| has_digit(word) && word.bytes().any(|byte| byte.is_ascii_alphabetic());
    value.len() <= LONGEST
        && value.contains(' ')
        && !value.contains(['$', '<', '{', '('])
        && value.split(' ').any(is_mixed)
}

/// Nothing but words of a form or of code, in any spelling: `user_password`, `newToken`.
pub(super) fn is_words(value: &str) -> bool {
    // `Password1!` is a password; `@password` is a variable.
    if value.bytes().skip(1).any(|byte| b"!@#$%^&*+~".contains(&byte)) {
        return false;
    }
    let mut words = 0;
    let known = split_words(value).all(|word| {
        words += 1;
        is_word(word)
    });
    known && words > 0
}

/// Two or more words with `_`, `-` or `.` between them, or in camel case, with at most a short number at the end of each.
fn is_identifier(value: &str) -> bool {
    let joints = ['_', '-', '.', ':', '/', '|'];
    let mut parts = value.split(joints);
    let is_part = |part: &str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        part.len() - letters.len() <= 4
            && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
            && (is_pronounceable(letters) || is_joined(letters))
    };
    let count = value.split(joints).count();
    if count == 1 {
        let letters = value.trim_end_matches(|c: char| c.is_ascii_digit());
        // `condition1`
        let is_numbered = letters.len() >= 5
            && (1..=2).contains(&(value.len() - letters.len()))
            && letters.bytes().all(|byte| byte.is_ascii_lowercase())
            && is_pronounceable(letters);
        return is_numbered || is_camel(value) && is_words(value);
    }
    let all = parts.all(is_part);
    all && (count < 4 || split_words(value).any(is_word))
}

/// An identifier with a word of forms or code in it: `step-2-form`, but not `needle-16-ocean`, nor `wrong-horse-17`, which is a
/// password that people make up.
fn is_known_identifier(value: &str) -> bool {
    is_identifier(value) && split_words(value).any(is_word) && !is_words_and_number(value)
}

/// Whether an identifier that is no name of forms or code has a number of its own in it: `HBW-1287-akyj`, but not `checkout-2-form`.
fn has_number_part(value: &str) -> bool {
    let is_number = |part: &str| part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    value.split(['_', '-', '.']).any(is_number) && !value.contains([':', '/', '|']) && !is_known_identifier(value)
}

/// Words with joints between them and a number after them: `wrong-horse-17`, or `wrong-horse-purple-tide3`, of which two
/// words or more are none of forms or code.
fn is_words_and_number(value: &str) -> bool {
    const LEAST_GLUED: usize = 4;
    if !value.starts_with(|c: char| c.is_ascii_alphabetic()) || value.contains([':', '/', '|']) {
        return false;
    }
    let Some((_, last)) = value.rsplit_once(['_', '-', '.']) else { return false };
    let letters = last.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_glued = || {
        let words = || value.split(['_', '-', '.']).map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
        words().count() >= LEAST_GLUED && words().filter(|word| !is_word(word)).count() >= 2
    };
    letters.len() < last.len() && (letters.is_empty() || is_glued())
}

/// Whether letters are rather a word than random: vowels among them, and one case.
fn is_pronounceable(letters: &str) -> bool {
    let rest = letters.get(1..).unwrap_or_default();
    let one_case = rest.bytes().all(|byte| byte.is_ascii_lowercase())
        || letters.bytes().all(|byte| byte.is_ascii_uppercase())
        || is_camel(letters);
    let vowels = letters.bytes().filter(|byte| b"aeiouyAEIOUY".contains(byte)).count();
    one_case && (letters.len() <= 4 || vowels * 6 >= letters.len()) && letters.len() <= 16
}

/// One capital letter at the start of each of its words: `accessToken`, `SecretString`.
fn is_camel(value: &str) -> bool {
    let letters = value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let runs = value.as_bytes().windows(2).any(|pair| pair[0].is_ascii_uppercase() && pair[1].is_ascii_uppercase());
    // `startShardId` has one.
    let short = value.as_bytes().split(u8::is_ascii_uppercase).skip(1).filter(|word| word.len() < 2).count();
    letters && !runs && short <= usize::from(value.len() > 8)
}

/// A word with a capital at its start, several in camel case, or in another language.
fn is_name(value: &str) -> bool {
    let all_capitals = value.bytes().all(|byte| byte.is_ascii_uppercase());
    !value.is_ascii() || all_capitals || is_camel(value) && value.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Whether a value has signs in it that stand together in programs only.
fn has_operator(value: &str) -> bool {
    #[rustfmt::skip]
    const OPERATORS: [&str; 17] =
        ["::", "->", "=>", "()", "!=", "==", "${", "#{", "%{", "</", "/>", "||", "&&", "[a-z", "[A-Z", "[0-9", "(?:"];
    // Each has one of these, and most values none.
    let is_sign = |byte: u8| matches!(byte, b':' | b'>' | b'(' | b'=' | b'{' | b'<' | b'|' | b'&' | b'[');
    value.bytes().any(is_sign) && OPERATORS.iter().any(|operator| value.contains(operator))
}

/// An expression of a programming language.
pub(super) fn is_code(value: &str) -> bool {
    let starts_as_code = value.starts_with(['$', '&', '(', '[', '{', '<', '=', '|', '/', ';', '\\', ')', '@', ','])
        && !value.bytes().skip(1).any(|byte| byte.is_ascii_digit())
        || value.starts_with("//")
        || value.starts_with("--");
    // Signs at the end are a password's, or the padding of base64.
    let inside = value.trim_end_matches(['=', '!', '>', '|', '&']);
    // `e.password=t||""`
    let is_choice = (value.ends_with("||") || value.ends_with("&&")) && is_name_of_code(&value[..value.len() - 2]);
    let dotted = value.contains('.')
        && value.trim_end_matches('?').split('.').map(|part| part.trim_end_matches('?')).all(|part| {
            let first = part.trim_matches('_').split('_').next().unwrap_or_default();
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && (is_pronounceable(first) || is_joined(first))
                && !part.bytes().any(|byte| byte.is_ascii_digit())
        });
    // `*name`, `&name.field`, `[name]`, `__name`: pointers, references, lists and what compilers define.
    let is_pointer = value.strip_prefix(['*', '&', '[']).is_some_and(|rest| {
        let rest = rest.strip_prefix("mut ").unwrap_or(rest);
        is_name_of_code(rest.trim_end_matches([']', ')', '}', ';', ',']))
            && (value.starts_with(['*', '[']) || rest.contains('.'))
            || is_call(rest)
    });
    // `!$name`, `[1]*N`
    let is_negated =
        value.strip_prefix("!$").is_some_and(|name| is_name_of_code(name.trim_end_matches([')', ';', ','])));
    let is_list = value
        .strip_prefix('[')
        .is_some_and(|list| list.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("]*"));
    let is_internal = value.starts_with('_') && value[1..].contains('_') && is_called_name(value);
    starts_as_code
        || is_choice
        || has_operator(inside)
        || dotted
        || is_pointer
        || is_negated
        || is_list
        || is_internal
        || is_call(value)
}

fn is_name_of_code(value: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$') && value.bytes().all(is_part)
}

/// A name with an opening parenthesis or bracket after it: `getenv("X")`, `tokens[0]`.
fn is_call(value: &str) -> bool {
    let name = value.find(|c: char| !(c.is_ascii_alphanumeric() || "_.!?:$".contains(c)));
    name.is_some_and(|end| {
        end > 0
            && value[end..].starts_with(['(', '[', '{', '<'])
            && is_called_name(&value[..end])
            && !is_no_argument(&value[end + 1..])
            && !goes_on_after_call(&value[end..])
    })
}

/// What is called has a name of words; a password has digits among its letters: `kX9v(…`.
fn is_called_name(name: &str) -> bool {
    /// Only words that are written together are longer.
    const LONG_BYTES: usize = 16;
    let is_part = |part: &str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !is_random_letters(letters)
            && (letters.len() > LONG_BYTES || is_pronounceable(letters) || is_joined(letters))
            || CODERS.iter().any(|coder| part.ends_with(coder))
    };
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.split(['_', '.', '!', '?', ':', '$']).filter(|part| !part.is_empty()).all(is_part)
}

/// How names end that have a number inside: `b64encode`, `Uint8Array`.
const CODERS: [&str; 5] = ["encode", "decode", "digest", "Array", "hash"];

/// Words that are written together, a known one among them: `indexOf`, `parsedURL`, `GraphqlAPIKey`. What is random falls into
/// smaller pieces.
fn is_joined(letters: &str) -> bool {
    const LEAST: usize = 3;
    const SHORT: usize = 8;
    let (mut count, mut has_known) = (0, false);
    let is_spoken = split_words(letters).all(|word| {
        count += 1;
        has_known |= word.len() >= LEAST && is_word(word);
        let has_vowel = word.bytes().any(|byte| b"aeiouyAEIOUY".contains(&byte));
        is_pronounceable(word) || word.len() <= SHORT && has_vowel
    });
    is_spoken && has_known && count * LEAST <= letters.len()
}

/// A letter or a digit right after the last bracket: `x(1)y` is no call.
fn goes_on_after_call(call: &str) -> bool {
    let last = if call.starts_with('<') { call.rfind('>') } else { call.rfind([')', ']', '}']) };
    last.is_some_and(|at| call[at + 1..].starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// What no call has in its parentheses, and so is a part of a password: `tide(4moon`. Names do not begin with a digit.
fn is_no_argument(inside: &str) -> bool {
    const UNITS: [&str; 20] = [
        "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "usize", "px", "em", "ms", "s", "k", "m",
        "l", "f", "n",
    ];
    let inside = inside.split([')', ']', '}', '>']).next().unwrap_or_default();
    let unit = inside.trim_start_matches(|c: char| c.is_ascii_digit());
    inside.starts_with(|c: char| c.is_ascii_digit())
        && !inside.starts_with("0x")
        && !inside.contains([':', '.', '-', '_', ',', ' ', '"', '\''])
        && unit.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !UNITS.iter().any(|known| known.eq_ignore_ascii_case(unit))
}

fn is_url(value: &str) -> bool {
    value.contains("://")
}

/// A file's path: each part a name.
fn is_path(value: &str) -> bool {
    let rooted = ["/", "./", "../", "~/", "C:\\", "file:"].iter().any(|root| value.starts_with(root));
    let parts = || value.split(['/', '\\']).skip(1).filter(|part| !part.is_empty());
    let is_name = |part: &str| part.len() <= 24 && !(part.len() >= 12 && is_random(part));
    // `/Kx92/zqW81`: short, and half of it is no name.
    let odd = parts().filter(|part| has_digit(part) && has_odd_piece(part) && !is_identifier(part)).count();
    rooted && parts().all(is_name) && odd * 2 < parts().count().max(1) || is_url(value) && !value.contains('@')
}

fn is_one_token(value: &str) -> bool {
    !value.contains(char::is_whitespace)
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

fn mixes_case(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_uppercase()) && value.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !b"_-./:,;'\"()[]{}<>\\`".contains(&byte)
}

/// Letters and digits without an order that a person would give them.
pub(super) fn is_random(value: &str) -> bool {
    let (digits, letters) = value.bytes().fold((0, 0), |(digits, letters), byte| {
        (digits + usize::from(byte.is_ascii_digit()), letters + usize::from(byte.is_ascii_alphabetic()))
    });
    let is_name = value.split('_').all(is_camel);
    let mixed = mixes_case(value) && value.len() >= 16 && entropy(value.as_bytes()) >= 3.5 && !is_name;
    // Nobody writes so many letters without a space, a joint or a capital.
    let endless = value.len() >= 24 && letters == value.len() && !mixes_case(value) && entropy(value.as_bytes()) >= 3.0;
    ((digits > 0 && letters > 0) || mixed || endless)
        && !is_identifier(value)
        && !is_date(value)
        && entropy(value.as_bytes()) >= 2.5
}

/// `2026-11-15T12:00:00Z`, `v1.2.3-rc1`, `10.0.0.1`.
fn is_date(value: &str) -> bool {
    /// With nanoseconds and an offset; a UUID is longer.
    const LONGEST: usize = 35;
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    letters <= 3 && value.len() <= LONGEST && value.bytes().any(|byte| b"-:.".contains(&byte))
}

/// Shannon's entropy in bits a byte.
pub(super) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = bytes.len() as f64;
    let share = |count: u32| f64::from(count) / all;
    -counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| share(*count) * share(*count).log2())
        .sum::<f64>()
}

fn has_one_character(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == bytes[0]) && (bytes.len() > 1 || !bytes[0].is_ascii_alphanumeric())
}

/// Six times the same character, as in `xxxxxx` and `000000`; other digits repeat by chance, too.
fn has_long_run(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|run| run.iter().all(|byte| *byte == run[0]) && !matches!(run[0], b'1'..=b'9'))
}

/// Each character the one after the last: `abcdefgh`, `0123456789`, or all letters and digits. People do use `12345678` and `abcd1234`.
fn is_series(bytes: &[u8]) -> bool {
    const ALPHABET_BYTES: usize = 48;
    let steps = bytes.windows(2).filter(|pair| pair[1] == pair[0].wrapping_add(1)).count();
    let is_one = bytes.len() >= 8 && steps + 1 == bytes.len() && !bytes.starts_with(b"12345");
    is_one || bytes.len() >= ALPHABET_BYTES && steps * 5 >= bytes.len() * 4
}

/// An automaton of our own words: it always builds.
pub(super) fn finder(words: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
}

/// The words of a name, in any spelling: `dbPassword`, `DB_PASSWORD`, `db-password`.
pub(super) fn split_words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let bytes = rest.as_bytes();
        let mut end = rest.chars().next()?.len_utf8();
        while let Some(byte) = bytes.get(end) {
            let before = bytes[end - 1];
            let starts_word = (byte.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()))
                || (byte.is_ascii_uppercase()
                    && before.is_ascii_uppercase()
                    && bytes.get(end + 1).is_some_and(u8::is_ascii_lowercase));
            if starts_word || (byte.is_ascii() && !byte.is_ascii_alphanumeric()) {
                break;
            }
            end += 1;
        }
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_spelling() {
        let words = |name| split_words(name).collect::<Vec<_>>();
        assert_eq!(words("dbPassword"), ["db", "Password"]);
        assert_eq!(words("AWSSecretKey"), ["AWS", "Secret", "Key"]);
        assert_eq!(words("x-api-key"), ["x", "api", "key"]);
        assert_eq!(words("été_token"), ["été", "token"]);
    }

    #[test]
    fn what_shows_where_a_secret_goes_is_none() {
        for value in [
            "",
            "xxxx",
            "your-key-here",
            "${VAR}",
            "$VAR",
            "<token>",
            "***",
            "{{ x }}",
            "%PASS%",
            "changeme",
            "abcdefgh",
            "........",
        ] {
            assert!(is_placeholder(value), "{value}");
        }
        assert!(!is_placeholder("tide-4-morning"));
    }
}
