//! Words that follow "password" and the like in code, forms and sentences, and are no secrets.

/// Whether a word is one of them, in any case.
pub(super) fn is_word(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    // `arg1`, but not `correct99` or `admin123`, which are passwords.
    let word = if word.len() - letters.len() <= MAX_DIGITS { letters } else { word };
    let mut lower = [0; LONGEST_BYTES];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    WORDS.binary_search_by(|known| known.as_bytes().cmp(lower)).is_ok()
}

/// A word with more digits is no word, unless it is in the list with them.
const MAX_DIGITS: usize = 1;

/// No word of the list is longer.
const LONGEST_BYTES: usize = 16;

/// Sorted, for the search.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "a", "abc", "able", "about", "above", "absent", "accepted", "access", "account", "add", "admin", "aes",
    "aes128", "aes256", "after", "again", "all", "also", "always", "an", "and", "anonymous", "any", "api", "api03",
    "apikey", "are", "argon", "argon2id", "array", "as", "asked", "assigned", "async", "at", "auth",
    "authenticated", "authentication", "authorization", "auto", "available", "await", "bad", "bar", "base",
    "base32", "base58", "base64", "basic", "baz", "bcrypt", "be", "bearer", "because", "been", "before", "being",
    "below", "bitte", "blank", "bool", "boolean", "both", "but", "by", "byte", "bytes", "cached", "call", "can",
    "case", "changed", "char", "character", "characters", "check", "checked", "class", "clear", "client", "code",
    "common", "compromised", "config", "configured", "confirm", "const", "context", "cookie", "copied", "correct",
    "could", "crc32", "create", "created", "credential", "credentials", "crypt", "css", "current", "data",
    "database", "date", "db", "de", "default", "defined", "deleted", "demo", "deprecated", "description", "dict",
    "did", "different", "disabled", "do", "does", "done", "double", "each", "ed25519", "el", "email", "empty",
    "enabled", "encoded", "encrypted", "encryption", "enter", "entered", "enum", "env", "environment", "error",
    "es256", "exactly", "example", "exists", "expired", "exposed", "extern", "failed", "fake", "false", "few",
    "field", "fields", "file", "final", "fine", "first", "float", "float32", "float64", "flow", "foo", "for",
    "forgot", "forgotten", "format", "found", "from", "function", "generated", "generator", "get", "given", "good",
    "grant", "grants", "had", "hardcoded", "has", "hash", "hashed", "hashes", "hashing", "have", "having", "he",
    "header", "hello", "her", "here", "hidden", "him", "hint", "hints", "his", "hmac", "how", "hs256", "html",
    "http", "https", "id", "ids", "if", "ignored", "il", "import", "in", "incorrect", "index", "info", "input", "int",
    "int16", "int32", "int64", "integer", "internal", "into", "invalid", "is", "it", "item", "its", "json", "just",
    "jwt", "keep", "kept", "key", "keyring", "keys", "known", "la", "label", "last", "le", "leaked", "least",
    "length", "let", "lexer", "like", "list", "literal", "local", "logged", "login", "long", "lost", "manager", "managers",
    "manual", "many", "map", "masked", "match", "max", "may", "maybe", "md", "me", "message", "method", "might",
    "min", "missing", "mock", "more", "most", "mot", "much", "must", "my", "name", "needed", "neue", "neues",
    "never", "new", "nil", "no", "none", "nor", "not", "now", "null", "number", "o", "oauth", "object", "of", "off",
    "old", "omitted", "on", "once", "one", "only", "option", "optional", "or", "other", "our", "out", "over", "own",
    "param", "parameter", "params", "pass", "passe", "passed", "passphrase", "passwd", "password", "passwords",
    "path", "pbkdf", "plain", "plaintext", "please", "policies", "policy", "present", "previous", "print",
    "private", "production", "prompt", "properties", "property", "props", "protected", "protection", "provided",
    "public", "pwd", "random", "raw", "read", "readonly", "ready", "recovery", "ref", "refs", "rejected",
    "remember", "removed", "renewed", "repeat", "request", "require", "required", "reset", "result", "return",
    "returned", "reuse", "revoked", "right", "role", "root", "rotated", "rotation", "rs256", "rsa", "rules", "safe",
    "salt", "same", "saml", "sample", "saved", "schema", "scope", "scrypt", "secret", "secrets", "secure", "select",
    "self", "sent", "server", "service", "session", "set", "sha", "sha1", "sha256", "sha384", "sha512", "shared",
    "she", "short", "should", "show", "shown", "simple", "single", "so", "some", "something", "sso", "static",
    "still", "stored", "str", "strength", "string", "strings", "strong", "struct", "stub", "su", "success", "such",
    "sudo", "super", "supplied", "system", "temporary", "test", "text", "textarea", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "to", "token", "tokens", "too", "totp", "true", "tu", "type",
    "typed", "typeof", "uint16", "uint32", "uint64", "undefined", "under", "unique", "unknown", "unset", "until",
    "unused", "up", "updated", "uri", "url", "us", "use", "used", "user", "username", "uses", "using", "utf",
    "utf16", "utf32", "uuid", "valid", "validated", "value", "values", "var", "variable", "vault", "vec",
    "verified", "very", "via", "void", "votre", "was", "we", "weak", "were", "what", "when", "where", "which",
    "while", "who", "why", "will", "with", "without", "working", "would", "wrong", "yes", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_sorted_and_short() {
        assert!(WORDS.is_sorted());
        assert!(WORDS.iter().all(|word| word.len() <= LONGEST_BYTES));
        assert!(is_word("Password") && !is_word("tide"));
    }
}
