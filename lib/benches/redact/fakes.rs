//! Made-up secrets of many kinds in the texts around which people and programs put them. Written from what vendors document, apart from
//! the rules' own texts.

use super::random::*;

pub(crate) struct Fake {
    pub(crate) text: String,
    pub(crate) secret: String,
}

type Make = fn(&mut Random) -> Fake;

/// A token where tokens stand: in a sentence, a command, a file, a program.
fn placed(random: &mut Random, token: String) -> Fake {
    let text = match random.below(10) {
        0 => token.clone(),
        1 => format!("I pasted {token} into the form, is that ok?"),
        2 => format!("const client = new Client({{ credential: \"{token}\" }});"),
        3 => format!("curl -H 'X-Custom: {token}' https://api.example.org/v1"),
        4 => format!("value: {token}\nother: {}", random.word()),
        5 => format!("{{\"stdout\": \"{token}\\n\", \"code\": 0}}"),
        6 => format!("export SOMETHING={token}"),
        7 => format!("| prod | {token} | ok |"),
        8 => format!("- {token}\n- {}", random.word()),
        _ => format!("({token})"),
    };
    Fake { text, secret: token }
}

fn around(before: &str, secret: String, after: &str) -> Fake {
    Fake { text: format!("{before}{secret}{after}"), secret }
}

pub(crate) const KINDS: &[(&str, Make)] = &[
    ("anthropic", |random| {
        let token = format!(
            "{}{}-{}AA",
            "sk-ant-",
            random.one(&["api03", "admin01", "oat01", "api04"]),
            random.signs(URL64, 93)
        );
        placed(random, token)
    }),
    ("openai", |random| {
        let token = match random.below(4) {
            0 => format!("{}{}{}{}", "sk-", random.signs(ALNUM, 20), "T3BlbkFJ", random.signs(ALNUM, 20)),
            1 => format!("{}{}{}{}", "sk-proj-", random.signs(URL64, 74), "T3BlbkFJ", random.signs(URL64, 74)),
            2 => format!("{}{}{}{}", "sk-svcacct-", random.signs(URL64, 58), "T3BlbkFJ", random.signs(URL64, 58)),
            _ => format!("{}{}", "sk-admin-", random.signs(URL64, 100)),
        };
        placed(random, token)
    }),
    ("google-api-key", |random| {
        let token = format!("{}{}", "AIza", random.signs(URL64, 35));
        placed(random, token)
    }),
    ("google-oauth", |random| {
        let token = match random.below(3) {
            0 => format!("{}{}", "ya29.a0", random.signs(URL64, 180)),
            1 => format!("{}{}", "GOCSPX-", random.signs(URL64, 28)),
            _ => format!("{}{}", "1//0", random.signs(URL64, 95)),
        };
        placed(random, token)
    }),
    ("aws-access-key-id", |random| {
        let token = format!("{}{}", random.one(&["AKIA", "ASIA"]), random.signs(BASE32, 16));
        placed(random, token)
    }),
    ("aws-secret-key", |random| {
        let before = random.one(&[
            "aws_secret_access_key = ",
            "AWS_SECRET_ACCESS_KEY=",
            "\"SecretAccessKey\": \"",
            "export AWS_SECRET_ACCESS_KEY='",
            "secretAccessKey: \"",
            "my AWS secret access key is ",
            "aws configure set aws_secret_access_key ",
            "AWS Secret Access Key [None]: ",
        ]);
        let after = if before.ends_with('"') {
            "\""
        } else if before.ends_with('\'') {
            "'"
        } else {
            "\n"
        };
        around(before, random.signs(BASE64, 40), after)
    }),
    ("azure", |random| match random.below(3) {
        0 => around(
            "DefaultEndpointsProtocol=https;AccountName=tides;AccountKey=",
            random.signs(BASE64, 86) + "==",
            ";EndpointSuffix=core.windows.net",
        ),
        1 => {
            let token = format!("{}{}Q~{}", random.signs(ALNUM, 3), random.one(&["7", "8"]), random.signs(ALNUM, 34));
            placed(random, token)
        }
        _ => around(
            "Endpoint=sb://tides.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=",
            random.signs(BASE64, 43) + "=",
            "",
        ),
    }),
    ("github", |random| {
        let token = match random.below(4) {
            0 => format!("{}{}_{}", "github_pat_", random.signs(ALNUM, 22), random.signs(ALNUM, 59)),
            _ => format!("{}{}", random.one(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]), random.signs(ALNUM, 36)),
        };
        placed(random, token)
    }),
    ("gitlab", |random| {
        let token = format!(
            "{}{}",
            random.one(&["glpat-", "gldt-", "glrt-", "glptt-", "gloas-", "glft-", "GR1348941"]),
            random.signs(ALNUM, 20)
        );
        placed(random, token)
    }),
    ("slack", |random| match random.below(3) {
        0 => around(
            "https://hooks.slack.com/",
            format!("services/T{}/B{}/{}", random.signs(BASE32, 9), random.signs(BASE32, 10), random.signs(ALNUM, 24)),
            "",
        ),
        1 => {
            let token = format!(
                "{}1-A{}-{}-{}",
                "xapp-",
                random.signs(BASE32, 10),
                random.signs("123456789", 13),
                random.signs(HEX, 64)
            );
            placed(random, token)
        }
        _ => {
            let token = format!(
                "{}{}-{}-{}",
                random.one(&["xoxb-", "xoxp-", "xoxa-", "xoxr-"]),
                random.signs("123456789", 12),
                random.signs("123456789", 13),
                random.signs(ALNUM, 24)
            );
            placed(random, token)
        }
    }),
    ("stripe", |random| {
        let token = match random.below(3) {
            0 => format!("{}{}", "whsec_", random.signs(ALNUM, 32)),
            _ => {
                format!("{}{}", random.one(&["sk_live_", "rk_live_", "sk_test_", "rk_test_"]), random.signs(ALNUM, 24))
            }
        };
        placed(random, token)
    }),
    ("twilio-sendgrid", |random| match random.below(3) {
        0 => {
            let token = format!("{}{}", "SK", random.signs(HEX, 32));
            placed(random, token)
        }
        1 => around("TWILIO_AUTH_TOKEN=", random.signs(HEX, 32), "\n"),
        _ => {
            let token = format!("{}{}.{}", "SG.", random.signs(URL64, 22), random.signs(URL64, 43));
            placed(random, token)
        }
    }),
    ("registries", |random| {
        let token = match random.below(5) {
            0 => format!("{}{}", "npm_", random.signs(ALNUM, 36)),
            1 => format!("{}{}", "pypi-AgEIcHlwaS5vcmc", random.signs(URL64, 160)),
            2 => format!("{}{}", "cio", random.signs(ALNUM, 32)),
            3 => format!("{}{}", "dckr_pat_", random.signs(URL64, 27)),
            _ => format!("{}{}", "rubygems_", random.signs(HEX, 48)),
        };
        placed(random, token)
    }),
    ("huggingface", |random| {
        let token = format!("{}{}", "hf_", random.signs("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 34));
        placed(random, token)
    }),
    ("telegram-discord", |random| match random.below(3) {
        0 => {
            let token = format!("{}:AA{}", random.signs("123456789", 10), random.signs(URL64, 33));
            placed(random, token)
        }
        1 => around(
            "DISCORD_TOKEN=",
            format!("{}{}.G{}.{}", "MTE", random.signs(ALNUM, 23), random.signs(ALNUM, 5), random.signs(URL64, 38)),
            "",
        ),
        _ => around(
            "https://discord.com/api/webhooks/",
            format!("{}/{}", random.signs("123456789", 19), random.signs(URL64, 68)),
            "",
        ),
    }),
    ("shops", |random| {
        let token = match random.below(4) {
            0 => format!("{}{}", random.one(&["shpat_", "shpss_", "shpca_", "shppa_"]), random.signs(HEX, 32)),
            1 => format!("{}{}", "sq0atp-", random.signs(URL64, 22)),
            2 => format!("{}{}", "sq0csp-", random.signs(URL64, 43)),
            _ => format!("{}{}", "EAAA", random.signs(ALNUM, 60)),
        };
        placed(random, token)
    }),
    ("clouds", |random| match random.below(6) {
        0 => {
            let token = format!("{}{}", random.one(&["dop_v1_", "doo_v1_", "dor_v1_"]), random.signs(HEX, 64));
            placed(random, token)
        }
        1 => around("CLOUDFLARE_API_TOKEN=", random.signs(URL64, 38) + "x4", "\n"),
        2 => around("vercel deploy --token ", random.signs(ALNUM, 22) + "k7", " --prod"),
        3 => {
            let token = format!("{}{}", "sbp_", random.signs(HEX, 40));
            placed(random, token)
        }
        4 => {
            let token = format!("{}{}", "hvs.", random.signs(URL64, 95));
            placed(random, token)
        }
        _ => around("HEROKU_API_KEY=", random.uuid(), ""),
    }),
    ("work-tools", |random| {
        let token = match random.below(7) {
            0 => format!("{}{}", "lin_api_", random.signs(ALNUM, 40)),
            1 => format!("{}{}", "ntn_", random.signs(ALNUM, 46)),
            2 => format!("{}{}={}", "ATATT3xFfGF0", random.signs(URL64, 170), random.signs("0123456789ABCDEF", 8)),
            3 => format!("{}{}-{}", "PMAK-", random.signs(HEX, 24), random.signs(HEX, 34)),
            4 => format!("{}{}", "figd_", random.signs(URL64, 40)),
            5 => format!("pat{}.{}", random.signs(ALNUM, 14), random.signs(HEX, 64)),
            _ => format!("{}{}_{}", "glsa_", random.signs(ALNUM, 32), random.signs(HEX, 8)),
        };
        placed(random, token)
    }),
    ("model-hosts", |random| {
        let token = match random.below(6) {
            0 => format!("{}{}", "gsk_", random.signs(ALNUM, 52)),
            1 => format!("{}{}", "r8_", random.signs(ALNUM, 37)),
            2 => format!("{}{}", "pplx-", random.signs(ALNUM, 48)),
            3 => format!("{}{}", "sk-or-v1-", random.signs(HEX, 64)),
            4 => format!("{}{}", "xai-", random.signs(ALNUM, 80)),
            _ => format!("{}{}", "nvapi-", random.signs(URL64, 64)),
        };
        placed(random, token)
    }),
    ("bearer", |random| {
        let before = random.one(&[
            "Authorization: Bearer ",
            "-H \"Authorization: Bearer ",
            "headers = {'Authorization': 'Bearer ",
            "authorization: bearer ",
            "\"Authorization\": \"Bearer ",
            "sent Bearer ",
        ]);
        let after = if before.contains('"') {
            "\""
        } else if before.contains('\'') {
            "'}"
        } else {
            "\n"
        };
        let token = match random.below(3) {
            0 => random.signs(HEX, 40),
            1 => random.signs(URL64, 42) + "9b",
            _ => format!("{}.{}.{}", random.signs(URL64, 20), random.signs(ALNUM, 30), random.signs(URL64, 19) + "x"),
        };
        around(before, token, after)
    }),
    ("basic", |random| {
        let login = format!("{}:{}", random.word(), random.password());
        around(
            random.one(&["Authorization: Basic ", "-H 'Authorization: Basic ", "\"authorization\": \"Basic "]),
            encode(login.as_bytes()),
            "\n",
        )
    }),
    ("cookie", |random| {
        let before = random.one(&[
            "Cookie: session=",
            "Set-Cookie: sid=",
            "-H 'Cookie: auth=",
            "\"cookie\": \"connect.sid=s%3A",
        ]);
        let after = random.one(&["; Path=/; HttpOnly", "; theme=dark", ""]);
        around(before, random.signs(ALNUM, 32), after)
    }),
    ("jwt", |random| {
        let header = encode(br#"{"alg":"HS256","typ":"JWT"}"#).trim_end_matches('=').to_owned();
        let claims = format!("{{\"sub\":\"{}\",\"iat\":17{}}}", random.signs(DIGITS, 10), random.signs(DIGITS, 8));
        let token =
            format!("{header}.{}.{}", encode(claims.as_bytes()).trim_end_matches('='), random.signs(URL64, 42) + "w");
        placed(random, token)
    }),
    ("private-key", |random| {
        let label = random.one(&[
            "RSA PRIVATE KEY",
            "PRIVATE KEY",
            "EC PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "ENCRYPTED PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
            "DSA PRIVATE KEY",
        ]);
        let between = random.one(&["\n", "\\n", "\r\n", "\n    ", "\n> "]);
        let lines: Vec<String> = (0..4 + random.below(20)).map(|_| random.signs(BASE64, 64)).collect();
        let body = lines.join(between);
        let text = match random.below(4) {
            0 => format!("-----BEGIN {label}-----{between}{body}"),
            _ => format!("cat key:\n-----BEGIN {label}-----{between}{body}{between}-----END {label}-----\ndone"),
        };
        Fake { text, secret: body }
    }),
    ("env-file", |random| {
        let name = random.one(&[
            "DB_PASSWORD",
            "SECRET_KEY_BASE",
            "STRIPE_SECRET",
            "SESSION_SECRET",
            "SMTP_PASS",
            "REDIS_PASSWORD",
            "JWT_SECRET",
            "ENCRYPTION_KEY",
            "API_TOKEN",
            "APP_KEY",
            "MAIL_PASSWORD",
            "ADMIN_TOKEN",
        ]);
        let quote = random.one(&["", "\"", "'"]);
        let value = if random.below(2) == 0 { random.signs(ALNUM, 22) + "q7" } else { random.password() };
        let export = random.one(&["", "export ", "\n"]);
        around(&format!("PORT=3000\n{export}{name}={quote}"), value, &format!("{quote}\nDEBUG=true"))
    }),
    ("credentials-json", |random| {
        let name = random.one(&[
            "client_secret",
            "refresh_token",
            "private_key_password",
            "access_token",
            "api_key",
            "password",
            "secretKey",
            "apiToken",
        ]);
        let value = random.signs(URL64, 34) + "h3";
        match random.below(2) {
            0 => around(
                &format!("{{\n  \"type\": \"authorized_user\",\n  \"client_id\": \"tides\",\n  \"{name}\": \""),
                value,
                "\"\n}",
            ),
            _ => around(&format!("{{\"installed\":{{\"client_id\":\"tides\",\"{name}\":\""), value, "\"}}"),
        }
    }),
    ("secrets-yaml", |random| {
        let value = random.password();
        let name = random.one(&[
            "password",
            "db_password",
            "api_secret",
            "smtp_passwd",
            "rootPassword",
            "encryption-passphrase",
        ]);
        match random.below(3) {
            0 => around(&format!("production:\n  host: db\n  {name}: "), value, "\n  port: 5432"),
            1 => around(&format!("{name}: \""), value, "\""),
            _ => around("apiVersion: v1\nkind: Secret\ndata:\n  password: ", encode(value.as_bytes()), "\n"),
        }
    }),
    ("url-password", |random| {
        let scheme =
            random.one(&["postgres", "postgresql", "mysql", "mongodb+srv", "redis", "amqp", "https", "ftp", "smtp"]);
        let password = random.password().replace(['#', '&', '/'], "x");
        let user = random.word();
        around(&format!("{} {scheme}://{user}:", random.word()), password, "@db.internal:5432/app?ssl=true")
    }),
    ("url-token", |random| {
        let name = random.one(&[
            "access_token",
            "token",
            "api_key",
            "apikey",
            "key",
            "auth_token",
            "X-Amz-Security-Token",
            "secret",
        ]);
        let name = if name == "key" { "api-key" } else { name };
        around(
            &format!("GET https://api.example.org/v1/tides?station=7&{name}="),
            random.signs(ALNUM, 30) + "4",
            "&units=m",
        )
    }),
    ("connection-string", |random| {
        let password = random.password().replace(';', "x");
        around(
            random.one(&[
                "Server=db;Database=tides;User Id=sa;Password=",
                "host=db user=app password=",
                "jdbc:mysql://db/tides?user=app&password=",
                "Data Source=db;User ID=app;Pwd=",
            ]),
            password.replace(['&', '#'], "x"),
            random.one(&["", ";Encrypt=true"]),
        )
    }),
    ("command-line", |random| {
        let password = random.password().replace(['$', '&', '!', '#'], "x");
        let before = random.one(&[
            "mysql -h db -u root -p",
            "sshpass -p ",
            "curl -s -u ada:",
            "mongosh --host db -u ada -p ",
            "redis-cli -h db -a ",
            "docker login -u ada -p ",
            "deploy --password ",
            "deploy --api-token=",
            "PGPASSWORD=",
            "gh auth login --with-token ",
        ]);
        let value = if before.contains("token") { random.signs(ALNUM, 30) + "3k" } else { password };
        around(before, value, " db.example.org")
    }),
    ("password-prose", |random| {
        let before = random.one(&[
            "The password is ",
            "my password: ",
            "pw: ",
            "Password for the staging server is ",
            "use the password `",
            "the admin password was \"",
            "login with ada and password ",
            "pass: ",
            "Passwort: ",
            "the wifi password is ",
        ]);
        let after = if before.ends_with('`') {
            "` please"
        } else if before.ends_with('"') {
            "\" I think"
        } else {
            random.one(&["", ".", ", thanks", " and the port is 22"])
        };
        let value = loop {
            let value = random.password();
            if value.bytes().any(|byte| byte.is_ascii_digit()) {
                break value;
            }
        };
        around(before, value, after)
    }),
    ("password-code", |random| {
        let value = random.password();
        match random.below(6) {
            0 => around("password = \"", value, "\""),
            1 => around("db.connect(user='ada', password='", value, "')"),
            2 => around("const DB_PASS: &str = \"", value, "\";"),
            3 => around("{\"username\": \"ada\", \"password\": \"", value, "\"}"),
            4 => around("<password>", value.replace('<', "x"), "</password>"),
            _ => around("spring.datasource.password=", value, "\n"),
        }
    }),
    ("card", |random| {
        let (prefix, length) =
            [("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("37", 15), ("6011", 16), ("3530", 16), ("55", 16)]
                [random.below(8)];
        let mut number = prefix.to_owned() + &random.signs(DIGITS, length - prefix.len() - 1);
        let sum: u32 = number
            .bytes()
            .rev()
            .enumerate()
            .map(|(at, byte)| u32::from(byte - b'0') * if at % 2 == 0 { 2 } else { 1 })
            .map(|value| value / 10 + value % 10)
            .sum();
        number += &((10 - sum % 10) % 10).to_string();
        let separator = random.one(&["", " ", "-"]);
        let groups: &[usize] = if length == 15 { &[4, 6, 5] } else { &[4, 4, 4, 4] };
        let mut rest = number.as_str();
        let parts: Vec<&str> = groups
            .iter()
            .map(|count| {
                let (part, after) = rest.split_at(*count);
                rest = after;
                part
            })
            .collect();
        around(
            random.one(&["card ", "My Visa is ", "{\"number\": \"", "", "charge to: "]),
            parts.join(separator),
            random.one(&["", " exp 12/27", "\", \"cvv\": \"x\"}", "."]),
        )
    }),
    ("ssn", |random| {
        let separator = random.one(&["-", "-", " ", ""]);
        let number = [
            format!("{}", 100 + random.below(500)),
            format!("{:02}", 1 + random.below(98)),
            format!("{:04}", 1 + random.below(9998)),
        ]
        .join(separator);
        around(
            random.one(&[
                "SSN: ",
                "my social security number is ",
                "\"ssn\": \"",
                "Social Security No. ",
                "ssn=",
                "SSN (US) ",
            ]),
            number,
            random.one(&["", ".", "\n"]),
        )
    }),
    ("iban", |random| {
        let country = ["DE", "AT", "ES", "PL"][random.below(4)];
        let bban = random.signs(
            "0123456789",
            match country {
                "DE" => 18,
                "AT" => 16,
                "ES" => 20,
                _ => 24,
            },
        );
        let digits: String = format!("{bban}{country}00")
            .chars()
            .map(|c| if c.is_ascii_digit() { c.to_string() } else { (c as u32 - 'A' as u32 + 10).to_string() })
            .collect();
        let rest = digits.bytes().fold(0_u32, |rest, byte| (rest * 10 + u32::from(byte - b'0')) % 97);
        let iban = format!("{country}{:02}{bban}", 98 - rest);
        let spaced: Vec<&str> = (0..iban.len()).step_by(4).map(|at| &iban[at..(at + 4).min(iban.len())]).collect();
        let iban = if random.below(2) == 0 { spaced.join(" ") } else { iban.clone() };
        around(random.one(&["IBAN ", "transfer to ", "", "account: "]), iban, random.one(&["", ".", " today"]))
    }),
];

pub(crate) fn encode(bytes: &[u8]) -> String {
    let signs = BASE64.as_bytes();
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            let sign = signs[(bits >> (18 - 6 * at)) as usize & 63] as char;
            out.push(if at <= group.len() { sign } else { '=' });
        }
    }
    out
}
