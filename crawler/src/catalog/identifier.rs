//! Identifiers of entries, `urn:air:<publisher>[:<namespace>…]:<name>` as ARD 0.91 has them, in the strictest reading.

use std::net::Ipv4Addr;

/// The prefix of every identifier.
const PREFIX: &str = "urn:air:";
/// The prefix until June 2026, which many catalogs still use.
const FORMER_PREFIX: &str = "urn:ai:";
/// Most bytes of a domain's name (RFC 1035 section 2.3.4).
const MAX_DOMAIN: usize = 253;
/// Most bytes of one label of a domain's name.
const MAX_LABEL: usize = 63;

/// The publisher of an identifier that keeps to the grammar and names a domain in its own form; `None` for any other text.
///
/// ```
/// use a2a_crawler::catalog::publisher_of;
///
/// assert_eq!(publisher_of("urn:air:house.example.com:tools:sorter"), Some("house.example.com"));
/// assert_eq!(publisher_of("urn:air:House.example.com:sorter"), None);
/// ```
pub fn publisher_of(identifier: &str) -> Option<&str> {
    let (publisher, path) = identifier.strip_prefix(PREFIX)?.split_once(':')?;
    let is_part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && part.bytes().all(plain)
    };
    (is_publisher(publisher) && path.split(':').all(is_part)).then_some(publisher)
}

/// Whether a text is the name of a domain in the form in which publishers are compared: lower case, at least one dot, no
/// port, no address, no dot at the end.
pub fn is_publisher(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_DOMAIN
        && text.contains('.')
        && text.split('.').all(is_label)
        && text.parse::<Ipv4Addr>().is_err()
}

/// The identifier with the prefix of today.
pub(super) fn current(identifier: &str) -> String {
    match identifier.strip_prefix(FORMER_PREFIX) {
        Some(rest) => format!("{PREFIX}{rest}"),
        None => identifier.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_kept_strictly() {
        for valid in [
            "a.example:x",
            "a.example:x:y:z",
            "a.example:X_1.2-3",
            "xn--bcher-kva.example:x",
        ] {
            let identifier = format!("{PREFIX}{valid}");
            let publisher = valid.split(':').next();
            assert_eq!(publisher_of(&identifier), publisher, "{valid}");
        }
        let long = format!("{}.example:x", "a".repeat(MAX_LABEL + 1));
        let deep = format!("{}example:x", "abcdefg.".repeat(32));
        for invalid in [
            "",
            "a.example",
            "a.example:",
            "a.example::x",
            "a.example:x:",
            "a.example:x y",
            "a.example:x\n",
            "A.example:x",
            "localhost:x",
            "a.example.:x",
            "-a.example:x",
            "a-.example:x",
            "a..example:x",
            "10.0.0.1:x",
            "bücher.example:x",
            "did:web:a.example:x",
            &long,
            &deep,
        ] {
            assert_eq!(
                publisher_of(&format!("{PREFIX}{invalid}")),
                None,
                "{invalid}"
            );
        }
        assert_eq!(publisher_of("urn:ai:a.example:x"), None);
        assert_eq!(publisher_of("URN:AIR:a.example:x"), None);
    }

    #[test]
    fn the_former_prefix_is_rewritten() {
        assert_eq!(current("urn:ai:a.example:x"), "urn:air:a.example:x");
        assert_eq!(current("urn:air:a.example:x"), "urn:air:a.example:x");
        assert_eq!(current("free text"), "free text");
    }
}
