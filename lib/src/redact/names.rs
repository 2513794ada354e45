//! Which names say that their value is a secret: `DB_PASSWORD`, `x-api-key`, `clientSecret`, but not `max_tokens` or `keyboard`.
//!
//! The last word decides, as in English: a `password_field` is a field, a `secret_name` is a name.

use std::sync::LazyLock;

use super::keywords::Keywords;
use super::values::{Strength, is_random, split_words};

/// The kind of secret that a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    /// A kind of `kinds/plain.rs`.
    pub(super) kind: &'static str,
    pub(super) strength: Strength,
    /// `passwords`, `secrets`: a list or an object has them. Alone, such a name is often that of a file or of an option.
    pub(super) of_several: bool,
}

/// So much of a name is looked at.
pub(super) const MAX_NAME_BYTES: usize = 96;

/// Longer names have words in them.
const LONG_NAME_BYTES: usize = 12;

/// Words after the one that decides.
#[rustfmt::skip]
const TRAILERS: &[&str] = &[
    "value", "val", "base", "b64", "base64", "prod", "production", "dev", "live", "test", "testing", "staging",
    "sandbox", "raw", "str", "string", "text", "plain", "plaintext", "new", "old", "current", "previous",
    "confirm", "confirmation", "again", "repeat", "encoded", "env", "default", "primary", "secondary", "input",
    "main", "backup", "admin", "local", "private", "v1", "v2", "v3", "a", "b",
];

/// Words before `key` that make it a secret one.
#[rustfmt::skip]
const SECRET_KEYS: &[&str] = &[
    "api", "access", "secret", "private", "preshared", "auth", "authentication", "authorization", "encryption", "encrypt",
    "decryption", "signing", "sign", "signature", "master", "account", "shared", "service", "license", "licence",
    "admin", "deploy", "consumer", "storage", "subscription", "webhook", "app", "application", "integration",
    "server", "function", "functions", "security", "hmac", "aes", "crypto", "cipher", "session", "cookie", "jwt", "rsa",
    "registry", "restricted", "write", "ingest", "ingestion", "client", "management", "transaction", "vault",
    "recovery", "merchant", "developer", "role", "rails", "bot", "supabase", "stripe", "openai", "anthropic",
    "gemini", "google", "aws", "azure", "github", "gitlab", "slack", "sendgrid", "mailgun", "datadog", "algolia",
];

/// Words before `key` in capitals that make it no secret: `PRIMARY_KEY`.
#[rustfmt::skip]
const OPEN_KEYS: &[&str] = &[
    "public", "publishable", "primary", "foreign", "cache", "sort", "partition", "hash", "range", "hot", "unique",
    "composite", "s3", "object", "storage", "state", "query", "group", "row", "idempotency", "map", "registry",
    "hkey", "pub", "host", "known", "verification", "index", "join", "lookup", "routing", "message", "config",
    "translation", "i18n", "site", "enter", "escape", "shift", "ctrl", "the", "no", "a", "this",
];

/// Words before `token` that make it no secret.
#[rustfmt::skip]
const OPEN_TOKENS: &[&str] = &[
    "next", "page", "continuation", "cancel", "cancellation", "pad", "padding", "eos", "bos", "unk", "mask", "sep",
    "cls", "special", "stop", "first", "last", "start", "end", "max", "min", "per", "lex", "parser", "design",
    "sync", "image", "each", "any", "eof", "syntax", "num",
];

/// Short for "password", or the word in another language; `u00f1a` ends an escaped "contraseña".
#[rustfmt::skip]
const PASSWORDS: &[&str] = &[
    "pass", "pwd", "pw", "psw", "passw", "userpass", "dbpass", "storepass", "keypass", "psk", "contraseña",
    "u00f1a", "contrasena", "motdepasse", "wachtwoord", "senha", "пароль", "密码", "密碼", "パスワード", "비밀번호", "hasło",
    "lösenord", "heslo", "şifre", "mdp",
];

/// What a `key` promises in a query: there, it opens something.
pub(super) const QUERY_KEY: Promise = Promise { kind: "api-key", strength: Strength::Weak, of_several: false };

/// Whether a name promises something in a query only.
pub(super) fn is_query_key(name: &str) -> bool {
    name.eq_ignore_ascii_case("key")
}

/// `getPassword`: a call of it takes no password, it returns one.
pub(super) fn is_asked_for(name: &str) -> bool {
    let first = split_words(name).next().unwrap_or_default();
    is_one_of(first, &["get", "read", "load", "find", "fetch", "ask", "prompt", "generate", "reset", "forgot"])
}

/// "pass" also says what one does with an argument.
pub(super) fn is_verb(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    let mut words = split_words(name).filter(|word| !is_one_of(word, TRAILERS));
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("pass")) && words.next().is_none()
}

/// What is in every name that promises something: most names of JSON have nothing of it.
#[rustfmt::skip]
const HINTS: &[&str] = &[
    "pass", "pw", "psw", "psk", "wort", "contrase", "u00f1a", "wachtwoord", "senha", "пароль", "密码", "密碼", "パスワード",
    "비밀번호", "hasło", "lösenord", "heslo", "şifre", "mdp", "cvv", "cvc", "secret", "key", "token", "sk", "auth", "cred",
    "jwt", "pat", "otp", "bearer", "hmac", "cookie", "sid", "sessionid",
];

static HINT: LazyLock<Keywords> = LazyLock::new(|| Keywords::new(HINTS.iter().copied()));

/// Whether a column of a table has social security numbers.
pub(super) fn is_ssn(name: &str) -> bool {
    let mut words = split_words(name).filter(|word| !is_one_of(word, &["no", "nr", "num", "number", "s"]));
    let is = |word: Option<&str>, known: &[&str]| word.is_some_and(|word| is_one_of(word, known));
    let last = words.by_ref().last();
    let before = split_words(name).find(|word| is_one_of(word, &["soc", "social"]));
    is(last, &["ssn", "ssns"]) || is(last, &["sec", "security"]) && before.is_some()
}

/// What a name promises, if anything.
pub(super) fn promise(name: &str) -> Option<Promise> {
    if HINT.are_in(name) { promise_of_words(name) } else { None }
}

/// The same for a name that a hint is in.
pub(super) fn promise_of_words(name: &str) -> Option<Promise> {
    // The end decides, so only the end is looked at.
    let name = &name[name.ceil_char_boundary(name.len().saturating_sub(MAX_NAME_BYTES))..];
    let mut words = [""; 12];
    let mut count = 0;
    for word in split_words(name) {
        if count == words.len() {
            words.rotate_left(1);
            count -= 1;
        }
        words[count] = word;
        count += 1;
    }
    while count > 1
        && (is_one_of(words[count - 1], TRAILERS) || words[count - 1].bytes().all(|byte| byte.is_ascii_digit()))
    {
        count -= 1;
    }
    let words = &words[..count];
    let last = words.last()?.trim_end_matches(|c: char| c.is_ascii_digit());
    let promise = promise_of_end(name, words, last)?;
    // A few letters end what is random, too, unless they stand apart.
    let stands_apart = || name.rfind(last).is_some_and(|at| name[..at].ends_with(['_', '-', '.']));
    let is_chance = last.len() <= 4 && name.len() > LONG_NAME_BYTES && is_random(name) && !stands_apart();
    (!is_chance).then_some(promise)
}

/// What the last words of a name promise; `last` is the last one without its number.
fn promise_of_end(name: &str, words: &[&str], last: &str) -> Option<Promise> {
    let before = words.iter().rev().nth(1).copied().unwrap_or_default();
    let is = |known: &[&str]| is_one_of(last, known);
    let ends = |known: &[&str]| known.iter().any(|end| ends_with(last, end));
    let found = |kind, strength| Some(Promise { kind, strength, of_several: false });
    if let Some(one) = last.strip_suffix(['s', 'S']).filter(|one| is_several(one, before)) {
        // Each must look like one: `secrets` also has names.
        let promise = promise_of_end(name, words, one)?;
        let strength = if promise.strength == Strength::Strong { Strength::Key } else { promise.strength };
        return Some(Promise { strength, of_several: true, ..promise });
    }
    if ends(&["password", "passwd", "passwort", "passphrase", "passcode", "kennwort"])
        || is(PASSWORDS)
        || is(&["passe"]) && before.eq_ignore_ascii_case("de")
    {
        return found("password", Strength::Strong);
    }
    if ends(&["pwd"]) || is(&["cvv", "cvc", "cvv2"]) {
        return found("password", Strength::Key);
    }
    if ends(&["secret"]) {
        return found("secret", if before.is_empty() && last.len() == 6 { Strength::Key } else { Strength::Strong });
    }
    if ends(&[
        "apikey",
        "accesskey",
        "secretkey",
        "authkey",
        "privatekey",
        "masterkey",
        "encryptionkey",
        "signingkey",
        "accountkey",
        "presharedkey",
    ]) {
        return found("api-key", Strength::Key);
    }
    if is(&["key"]) {
        let qualified = is_one_of(before, SECRET_KEYS);
        if qualified {
            return found("api-key", Strength::Key);
        }
        let in_capitals = words.len() > 1 && name.contains('_') && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        return if in_capitals && !is_one_of(before, OPEN_KEYS) { found("api-key", Strength::Weak) } else { None };
    }
    // The token of a public key is a hash of it: `PublicKeyToken`.
    let is_of_public_key = || is_one_of(before, &["key"]) && words.iter().any(|word| is_one_of(word, &["public"]));
    if ends(&["token"]) && !is_one_of(before, OPEN_TOKENS) && !is_of_public_key() {
        let is_of_api =
            is_one_of(before, &["api", "access", "auth"]) && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        return found("token", if is_of_api { Strength::Key } else { Strength::Weak });
    }
    // Not a language with its country, nor the kinds of keys that SSH keeps in hardware: `sk_SK`, `id_ed25519_sk`.
    if is(&["sk"]) && words.len() > 1 && !is_one_of(before, &["sk", "ecdsa", "ed25519"]) {
        return found("api-key", Strength::Weak);
    }
    if is(&[
        "authorization",
        "auth",
        "credential",
        "credentials",
        "creds",
        "jwt",
        "pat",
        "otp",
        "bearer",
        "hmac",
        "cookie",
        "sessionid",
        "sid",
    ]) {
        return found(if is(&["cookie", "sid", "sessionid"]) { "cookie" } else { "credential" }, Strength::Weak);
    }
    None
}

/// Whether several of what a word names are secrets, too: `passwords`, `api_keys`, but not `tokens` or `keys`.
fn is_several(word: &str, before: &str) -> bool {
    let is_secret = ["password", "passphrase", "passcode", "secret", "apikey", "accesskey", "secretkey", "privatekey"]
        .iter()
        .any(|end| ends_with(word, end));
    let is_opening = is_one_of(before, &["api", "access", "refresh", "auth", "secret", "private", "bearer", "session"]);
    is_secret || is_one_of(word, &["key", "token"]) && is_opening
}

/// Whether a key beside secrets says what they are, how they are called or where they belong, and has none.
pub(super) fn names_no_secret(key: &str) -> bool {
    #[rustfmt::skip]
    const LAST_WORDS: &[&str] = &[
        "name", "names", "version", "id", "uid", "uuid", "ref", "at", "date", "time", "created", "updated", "expires", "expiry",
        "host", "url", "uri", "path", "file", "type", "kind", "format", "pattern", "algorithm", "alg", "image", "label", "labels",
        "title", "description", "example", "default", "policy", "hint", "length", "count", "size", "status", "state", "role",
        "namespace", "region", "zone", "owner", "email", "user", "username", "contract", "address", "schema", "scope",
    ];
    split_words(key).last().is_none_or(|last| is_one_of(last, LAST_WORDS))
}

/// Whether the second string of a pair after this one is a header that opens something.
pub(super) fn is_opening_header(name: &str) -> bool {
    is_one_of(
        name,
        &["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token"],
    )
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

fn ends_with(word: &str, end: &str) -> bool {
    word.len()
        .checked_sub(end.len())
        .and_then(|at| word.get(at..))
        .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_promises_something_has_a_hint() {
        let others = ["kennwort", "passwort", "passphrase", "cvv2", "apikey", "creds", "authorization", "sessionid"];
        for word in PASSWORDS.iter().chain(&others) {
            assert!(promise(&format!("db_{word}")).is_some(), "{word}");
            let capitals = format!("DB_{}", word.to_uppercase());
            assert_eq!(promise(&capitals), promise_of_words(&capitals), "{word}");
        }
    }

    #[test]
    fn the_last_word_decides() {
        for name in [
            "password",
            "DB_PASSWORD",
            "PGPASSWORD",
            "userPass",
            "smtp-passwd",
            "client_secret",
            "SECRET_KEY_BASE",
            "x-api-key",
            "apiKey2",
            "refreshToken",
            "STRIPE_KEY",
            "aws_secret_access_key",
        ] {
            assert!(promise(name).is_some(), "{name}");
        }
        for name in [
            "password_field",
            "secret_name",
            "max_tokens",
            "token_count",
            "tokens",
            "keyboard",
            "primary_key",
            "PRIMARY_KEY",
            "key",
            "passenger",
            "next_page_token",
            "token_type",
            "compass",
            "author",
            "public_key",
            "key_id",
            "secretary",
        ] {
            assert_eq!(promise(name), None, "{name}");
        }
    }
}
