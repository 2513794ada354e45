//! Made-up secrets, put together when the test runs, so that no scanner of sources takes one for a real one.

/// Characters that look random and are the same for the same seed.
pub(crate) fn signs(seed: u64, alphabet: &str, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet.as_bytes()[(state >> 20) as usize % alphabet.len()] as char
    };
    (0..count).map(|_| next()).collect()
}

pub(crate) const WORD: &str = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
pub(crate) const HEX: &str = "0123456789abcdef";
pub(crate) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Tokens of some vendors, and secrets in what is usually around them: the text, and the secret in it.
pub(crate) fn all(seed: u64) -> Vec<(String, String)> {
    let word = |count| signs(seed, WORD, count);
    let hex = |count| signs(seed, HEX, count);
    let alone = |token: String| (format!("use {token} now"), token);
    let key = [signs(seed, BASE64, 64), signs(seed + 1, BASE64, 64), signs(seed + 2, BASE64, 30)].join("\n");
    let pem = format!("-----BEGIN {0} KEY-----\n{key}\n-----END {0} KEY-----", "RSA PRIVATE");
    let assigned = |before: &str, secret: String, after: &str| (format!("{before}{secret}{after}"), secret);
    vec![
        alone(format!("{}{}", "sk-ant-api03-", word(95))),
        alone(format!("{}{}", "ghp_", word(36))),
        alone(format!("{}{}", "glpat-", word(20))),
        alone(format!("{}{}-{}-{}", "xoxb-", signs(seed, "123456789", 12), signs(seed + 9, "123456789", 12), word(24))),
        alone(format!("{}{}", "AKIA", signs(seed, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16))),
        alone(format!("{}{}", "sk_live_", word(24))),
        alone(format!("{}{}", "npm_", word(36))),
        alone(format!("eyJ{}.eyJ{}.{}", word(33), word(70), word(43))),
        (format!("before\n{pem}\nafter"), key),
        assigned("DB_PASSWORD=", format!("{}#4", word(12)), "\nPORT=1"),
        assigned("the password is ", format!("{}7!", word(9)), ", he said"),
        assigned("{\"client_secret\": \"", hex(32), "\"}"),
        assigned("Authorization: Bearer ", format!("{}.{}", word(20), word(20)), "\r\n"),
        assigned("postgres://app:", format!("{}4", word(14)), "@db.local:5432/app"),
        assigned("x-api-key: ", hex(40), ""),
        ("card 4111 1111 1111 1111 ok".to_owned(), "4111 1111 1111 1111".to_owned()),
        ("SSN: 219-09-9998.".to_owned(), "219-09-9998".to_owned()),
        ("IBAN DE89 3704 0044 0532 0130 00 please".to_owned(), "DE89 3704 0044 0532 0130 00".to_owned()),
        assigned("curl -u ada:", format!("{}9", word(10)), " https://x.org"),
        assigned("Cookie: sid=", word(32), "; theme=dark\n"),
    ]
}
