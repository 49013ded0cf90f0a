//! Entry identifiers, `urn:air:<publisher>[:<namespace>…]:<name>` in ARD 0.91, in the strictest interpretation.

use std::net::Ipv4Addr;

const URN_PREFIX: &str = "urn:air:";
/// Prefix in use until June 2026; many catalogs still have it.
const FORMER_URN_PREFIX: &str = "urn:ai:";
/// Maximum length of a domain name in bytes (RFC 1035 section 2.3.4).
const MAX_DOMAIN_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// The publisher of a well-formed identifier that names a domain in normal form; `None` for any other text.
///
/// ```
/// use a2a_crawler::catalog::identifier_publisher;
///
/// assert_eq!(identifier_publisher("urn:air:house.example.com:tools:sorter"), Some("house.example.com"));
/// assert_eq!(identifier_publisher("urn:air:House.example.com:sorter"), None);
/// ```
pub fn identifier_publisher(identifier: &str) -> Option<&str> {
    let (publisher, path) = identifier.strip_prefix(URN_PREFIX)?.split_once(':')?;
    let is_part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && part.bytes().all(plain)
    };
    (is_publisher_domain(publisher) && path.split(':').all(is_part)).then_some(publisher)
}

/// Whether a text is a publisher's domain in normal form: lower case, a dot inside, no port, address or final dot.
pub fn is_publisher_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_DOMAIN_BYTES
        && text.contains('.')
        && text.split('.').all(is_label)
        && text.parse::<Ipv4Addr>().is_err()
}

/// Whether an entry's `trustManifest` declares an identity in a domain other than its identifier's, if both name one.
pub(super) fn is_identity_mismatch(identifier: &str, identity: Option<&str>) -> bool {
    let named = identifier.strip_prefix(URN_PREFIX);
    let named = named.and_then(|rest| rest.split(':').next());
    let declared = identity.and_then(identity_domain);
    matches!((named, declared), (Some(named), Some(declared)) if named.to_ascii_lowercase() != declared)
}

/// Domain of `did:web:D`, `spiffe://D/…`, `https://D/…` or a bare `D`, in lower case.
pub fn identity_domain(identity: &str) -> Option<String> {
    let rest = ["did:web:", "spiffe://", "https://"]
        .iter()
        .find_map(|prefix| identity.strip_prefix(prefix))
        .unwrap_or(identity);
    let domain = rest.split(['/', ':']).next().unwrap_or_default();
    domain.contains('.').then(|| domain.to_ascii_lowercase())
}

pub(super) fn with_current_urn_prefix(identifier: &str) -> String {
    match identifier.strip_prefix(FORMER_URN_PREFIX) {
        Some(rest) => format!("{URN_PREFIX}{rest}"),
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
            let identifier = format!("{URN_PREFIX}{valid}");
            let publisher = valid.split(':').next();
            assert_eq!(identifier_publisher(&identifier), publisher, "{valid}");
        }
        let long = format!("{}.example:x", "a".repeat(MAX_LABEL_BYTES + 1));
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
                identifier_publisher(&format!("{URN_PREFIX}{invalid}")),
                None,
                "{invalid}"
            );
        }
        assert_eq!(identifier_publisher("urn:ai:a.example:x"), None);
        assert_eq!(identifier_publisher("URN:AIR:a.example:x"), None);
    }

    /// A declared identity proves nothing, but it must not contradict the identifier.
    #[test]
    fn an_identity_of_another_domain_is_noticed() {
        let ours = "urn:air:house.example.com:tools:sorter";
        for (identifier, identity, expected) in [
            (ours, None, false),
            (ours, Some("did:web:house.example.com"), false),
            (ours, Some("did:web:House.Example.com"), false),
            (ours, Some("did:web:house.example.com:a"), false),
            (ours, Some("spiffe://house.example.com/x"), false),
            (ours, Some("https://house.example.com/x"), false),
            (ours, Some("house.example.com"), false),
            (ours, Some("did:web:example.com"), true),
            (ours, Some("spiffe://a.house.example.com/x"), true),
            (ours, Some("https://evil.example/"), true),
            (ours, Some("evil.example"), true),
            // If there is no domain, there is nothing to compare.
            (ours, Some("did:key:z6Mk"), false),
            ("free text", Some("evil.example"), false),
        ] {
            assert_eq!(
                is_identity_mismatch(identifier, identity),
                expected,
                "{identifier} {identity:?}"
            );
        }
    }

    #[test]
    fn the_former_prefix_is_rewritten() {
        assert_eq!(
            with_current_urn_prefix("urn:ai:a.example:x"),
            "urn:air:a.example:x"
        );
        assert_eq!(
            with_current_urn_prefix("urn:air:a.example:x"),
            "urn:air:a.example:x"
        );
        assert_eq!(with_current_urn_prefix("free text"), "free text");
    }
}
