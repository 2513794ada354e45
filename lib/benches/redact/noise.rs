//! Strings without a secret, of the kinds that sessions are full of.

use super::random::*;

type Make = fn(&mut Random) -> String;

pub(crate) const KINDS: &[(&str, Make)] = &[
    ("uuid", |random| format!("{}{}", random.one(&["", "request ", "session_id=", "\"key\": \""]), random.uuid())),
    ("git-sha", |random| {
        format!("{}{}", random.one(&["commit ", "", "HEAD is now at ", "parent "]), random.signs(HEX, 40))
    }),
    ("hashes", |random| {
        let count = [32, 40, 56, 64, 96, 128][random.below(6)];
        format!("{}{}", random.one(&["sha256:", "md5 ", "", "checksum = ", "etag: "]), random.signs(HEX, count))
    }),
    ("cargo-lock", |random| {
        format!(
            "[[package]]\nname = \"{0}-{1}\"\nversion = \"0.{2}.{2}\"\nsource = \"index\"\nchecksum = \"{3}\"",
            random.word(),
            random.word(),
            random.below(30),
            random.signs(HEX, 64)
        )
    }),
    ("npm-lock", |random| {
        format!(
            "\"node_modules/{0}\": {{\n  \"version\": \"{1}.0.{1}\",\n  \"integrity\": \"sha512-{2}==\",\n  \"license\": \"MIT\"\n}}",
            random.word(),
            random.below(20),
            random.signs(BASE64, 86)
        )
    }),
    ("integrity", |random| format!("integrity=\"sha384-{}\" crossorigin=\"anonymous\"", random.signs(BASE64, 64))),
    ("base64-image", |random| {
        let count = 400 + random.below(800);
        format!(
            "{}{}",
            random.one(&[
                "data:image/png;base64,iVBORw0KGgo",
                "data:image/jpeg;base64,/9j/4AAQ",
                "iVBORw0KGgoAAAANSUhEUgAA",
                "<img src=\"data:image/gif;base64,R0lGOD"
            ]),
            random.signs(BASE64, count)
        )
    }),
    ("tool-call-id", |random| match random.below(6) {
        0 => format!("toolu_01{}", random.signs(ALNUM, 22)),
        1 => format!("call_{}", random.signs(ALNUM, 24)),
        2 => format!("msg_01{}", random.signs(ALNUM, 22)),
        3 => format!("req_011C{}", random.signs(ALNUM, 20)),
        4 => format!("chatcmpl-{}", random.signs(ALNUM, 29)),
        _ => format!("{}_{}", random.one(&["rs", "fc", "resp", "item", "ws"]), random.signs(HEX, 48)),
    }),
    ("signature", |random| {
        let count = 200 + random.below(400);
        format!(
            "{}{}==",
            random.one(&["EqQBCkYIBxgCKkA", "ErUBCkYIBRgCIkD", "CkcIARgCIkA"]),
            random.signs(BASE64, count)
        )
    }),
    ("encrypted-content", |random| format!("{}{}", "gAAAAAB", random.signs(URL64, 400))),
    ("ssh-public-key", |random| match random.below(2) {
        0 => format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} ada@host", random.signs(BASE64, 43)),
        _ => format!("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{} ada@host", random.signs(BASE64, 340)),
    }),
    ("certificate", |random| {
        let lines: Vec<String> = (0..12).map(|_| random.signs(BASE64, 64)).collect();
        format!(
            "-----BEGIN CERTIFICATE-----\nMIID{}\n{}\n-----END CERTIFICATE-----",
            random.signs(BASE64, 60),
            lines.join("\n")
        )
    }),
    ("public-key", |random| {
        format!(
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{}\n{}\n-----END PUBLIC KEY-----",
            random.signs(BASE64, 32),
            random.signs(BASE64, 64)
        )
    }),
    ("placeholder", |random| {
        let name = random.one(&[
            "API_KEY",
            "password",
            "SECRET",
            "token",
            "OPENAI_API_KEY",
            "client_secret",
            "DB_PASSWORD",
            "Authorization: Bearer",
            "ANTHROPIC_API_KEY",
        ]);
        let value = random.one(&[
            "xxxx",
            "your-key-here",
            "${VAR}",
            "<token>",
            "***",
            "changeme",
            "$API_KEY",
            "{{ secret }}",
            "YOUR_API_KEY",
            "xxxxxxxxxxxxxxxx",
            "<your-token>",
            "%TOKEN%",
            "${{ secrets.TOKEN }}",
            "...",
            "sk-ant-xxxxxxxxxxxxxxxxxxxx",
            "process.env.TOKEN",
            "os.environ['X']",
            "REPLACE_ME",
        ]);
        if name.ends_with("Bearer") {
            format!("{name} {value}")
        } else {
            format!("{name}{}{value}", random.one(&["=", ": ", " = "]))
        }
    }),
    ("code-rust", |random| {
        let (a, b) = (random.word(), random.word());
        match random.below(5) {
            0 => format!("let {a}_token = self.{b}.next_token()?;\nif {a}_token == Token::Key {{ return Ok(key); }}"),
            1 => format!("pub struct {a} {{ password: String, api_key: Option<String>, token: &'static str }}"),
            2 => format!(
                "fn {a}(key: &str, secret: Secret<{b}>) -> Result<Token, AuthError> {{ auth::verify(key, secret) }}"
            ),
            3 => format!("assert_eq!({a}.password, config.password); // the password is kept in the {b}"),
            _ => format!("let key = format!(\"{{}}-{{}}\", {a}.key, {b}.id); cache.insert(key, value);"),
        }
    }),
    ("code-python", |random| {
        let (a, b) = (random.word(), random.word());
        match random.below(5) {
            0 => format!("password = getpass.getpass('Password: ')\ntoken = client.{a}_token(password=password)"),
            1 => format!(
                "api_key = os.environ.get(\"{}_API_KEY\", \"\")\nsecret = config['{b}']['secret']",
                a.to_uppercase()
            ),
            2 => format!("def {a}(self, token: str, key: Optional[str] = None) -> Token:\n    return self.tokens[{b}]"),
            3 => "tokens = tokenizer.encode(text)\nmax_tokens=4096, pad_token_id=tokenizer.eos_token_id".to_owned(),
            _ => format!("for key, value in {a}.items(): print(f'{{key}}: {{value}}')  # {b} key"),
        }
    }),
    ("code-typescript", |random| {
        let (a, b) = (random.word(), random.word());
        match random.below(5) {
            0 => format!("interface {a} {{ password: string; token?: string; apiKey: string | undefined; }}"),
            1 => format!("const token = await auth.getToken({a}); headers.set('Authorization', `Bearer ${{token}}`);"),
            2 => format!("<input type=\"password\" name=\"password\" value={{password}} onChange={{e => set{b}(e.target.value)}} />"),
            3 => "const { password, secret, ...rest } = req.body; if (!password) throw new Error('password is required');".to_owned(),
            _ => format!("export const keys = {{ primary: '{a}', secondary: '{b}' }}; const key = keys[name];"),
        }
    }),
    ("phone", |random| match random.below(5) {
        0 => format!("+49 {} {}", random.signs("123456789", 3), random.signs(DIGITS, 7)),
        1 => format!("({}) {}-{}", random.signs("23456789", 3), random.signs(DIGITS, 3), random.signs(DIGITS, 4)),
        2 => format!("+1-{}-{}-{}", random.signs("23456789", 3), random.signs(DIGITS, 3), random.signs(DIGITS, 4)),
        3 => format!("tel:+44{}", random.signs(DIGITS, 10)),
        _ => format!(
            "call {} {} {} {} {}",
            random.signs(DIGITS, 2),
            random.signs(DIGITS, 2),
            random.signs(DIGITS, 2),
            random.signs(DIGITS, 2),
            random.signs(DIGITS, 2)
        ),
    }),
    ("timestamp", |random| match random.below(4) {
        0 => format!(
            "2026-{:02}-{:02}T{:02}:00:{:02}.{}Z",
            1 + random.below(12),
            1 + random.below(28),
            random.below(24),
            random.below(60),
            random.signs(DIGITS, 6)
        ),
        1 => format!("at 17{}", random.signs(DIGITS, 11)),
        2 => format!("\"ts\": 17{}", random.signs(DIGITS, 14)),
        _ => format!("1{} ns", random.signs(DIGITS, 18)),
    }),
    ("prose", |random| {
        let (a, b) = (random.sentence(), random.sentence());
        match random.below(6) {
            0 => format!("The password is required when you {a}. Tokens expire after {} days.", random.below(90)),
            1 => format!("We keep the secret in a vault, and the key is rotated by {b}."),
            2 => format!("Reset your password if {a}; the token was revoked and the api key is missing."),
            3 => format!("{a}. The author of the key paper on authentication is {b}."),
            4 => format!("Password must have {} characters. {a}: {b}", 8 + random.below(20)),
            _ => format!("{a}, {b}. Basic usage and bearer tokens are explained below."),
        }
    }),
    ("path", |random| {
        format!(
            "{}/{}/{}_{}/{}.{}",
            random.one(&["/home/ada", "src", "~/.config", "C:\\Users\\ada", "./lib"]),
            random.word(),
            random.word(),
            random.one(&["password", "token", "key", "secret", "auth", "tests"]),
            random.word(),
            random.one(&["rs", "py", "json", "pem.rs", "ts"])
        )
    }),
    ("version", |random| {
        format!(
            "{} {}.{}.{}-{}.{}+{}",
            random.word(),
            random.below(20),
            random.below(99),
            random.below(99),
            random.one(&["alpha", "rc", "beta"]),
            random.below(9),
            random.signs(HEX, 7)
        )
    }),
    ("css", |random| {
        format!(
            ".{}-{} {{ color: #{}; background: #{}; width: {}px; grid-area: {} }}",
            random.word(),
            random.word(),
            random.signs(HEX, 6),
            random.signs(HEX, 3),
            random.below(999),
            random.word()
        )
    }),
    ("minified-js", |random| {
        let count = 3 + random.below(8);
        (0..count)
            .map(|_| {
                format!(
                    "!function({0},{1}){{var {2}={0}.{3}||{1}.key,token={2}[{4}];return {0}({2},token)}}({5}),",
                    random.signs(LOWER, 1),
                    random.signs(LOWER, 1),
                    random.signs(LOWER, 2),
                    random.word(),
                    random.below(99),
                    random.signs(ALNUM, 3)
                )
            })
            .collect()
    }),
    ("json-usage", |random| {
        format!(
            "{{\"usage\":{{\"input_tokens\":{},\"cache_read_input_tokens\":{},\"output_tokens\":{}}},\"stop_reason\":\"end_turn\",\"id\":\"msg_01{}\"}}",
            random.below(9999),
            random.below(99999),
            random.below(999),
            random.signs(ALNUM, 22)
        )
    }),
    ("url", |random| {
        format!(
            "https://{}.example.org/{}/{}?page={}&next_page_token={}&sort=key#{}",
            random.word(),
            random.word(),
            random.signs(ALNUM, 12),
            random.below(99),
            random.signs(ALNUM, 16),
            random.word()
        )
    }),
    ("log-line", |random| {
        format!(
            "2026-11-15 12:00:{:02} INFO auth: token refreshed for user={} key={} took={}ms trace={}",
            random.below(60),
            random.word(),
            random.word(),
            random.below(999),
            random.signs(HEX, 32)
        )
    }),
    ("yaml-config", |random| {
        format!(
            "auth:\n  enabled: true\n  token_ttl: {}\n  secretName: {}-creds\n  keyRef:\n    name: {}\n    key: password\nreplicas: {}",
            random.below(999),
            random.word(),
            random.word(),
            random.below(9)
        )
    }),
    ("numbers", |random| {
        format!(
            "{} {} {:.6} {}",
            random.signs(DIGITS, 5),
            random.below(1_000_000),
            random.below(1_000_000) as f64 / 1e6,
            random.signs("123456789", 12)
        )
    }),
    ("shell", |random| {
        format!(
            "$ cat {0}.env.example && export TOKEN=$(pass show {1}) && curl -H \"Authorization: Bearer $TOKEN\" https://{0}.example.org -o {1}.json",
            random.word(),
            random.word()
        )
    }),
    ("i18n", |random| {
        format!(
            "{{\"password\": \"Password\", \"forgot_password\": \"Forgot your password?\", \"token\": \"Token\", \"secret\": \"Enter the secret {}\", \"api_key\": \"API key\"}}",
            random.word()
        )
    }),
    ("gpg-fingerprint", |random| (0..10).map(|_| random.signs("0123456789ABCDEF", 4)).collect::<Vec<_>>().join(" ")),
    ("upper-codes", |random| {
        format!("{}-{}-{}", random.signs(UPPER, 4), random.signs(DIGITS, 6), random.signs(UPPER, 3))
    }),
];
