//! Whether JavaScript's `new URL(…)` takes an address. SDK 7 calls it on every file part and throws the whole
//! conversation away where it fails. Stricter than the real parser: when in doubt, no.

use core::net::{Ipv4Addr, Ipv6Addr};

pub(super) fn parses(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let authority = rest.strip_prefix("//").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let special = ["http", "https", "ws", "wss", "ftp"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    named
        && match authority {
            Some("") => !special,
            Some(host) if scheme.eq_ignore_ascii_case("file") => is_host(host),
            Some(authority) => is_host_and_port(authority),
            // JavaScript drops tabs and reads `\\` as `/`, so these could still make a `//`.
            None => !special && rest.chars().take(2).all(|c| c > ' ' && c != '\\'),
        }
}

fn is_host_and_port(authority: &str) -> bool {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let port_fits = port.is_empty() || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok());
    port_fits && is_host(host)
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    // A host that ends in a number must be an address, and `xn--` must be valid Punycode.
    let numeric = last.starts_with(|c: char| c.is_ascii_digit());
    plain
        && !last.is_empty()
        && !host.to_ascii_lowercase().contains("xn--")
        && (!numeric || host.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_javascript_takes_are_taken() {
        for url in [
            "https://example.com/a.png",
            "HTTP://localhost:8080",
            "http://127.0.0.1/x?y#z",
            "http://[::1]:80/",
            "data:image/png;base64,AAAA",
            "file:///home/ada/a.png",
            "blob:https://example.com/1",
            "s3://bucket/key",
            "mailto:ada@example.com",
        ] {
            assert!(parses(url), "{url}");
        }
    }

    #[test]
    fn addresses_that_javascript_refuses_are_refused() {
        for url in [
            "",
            "a.png",
            "/home/ada/a.png",
            "http://",
            "http://a b/",
            "http://1.2.3.999/",
            "https://h:99999/",
            "file:\\\\a<",
        ] {
            assert!(!parses(url), "{url}");
        }
    }
}
