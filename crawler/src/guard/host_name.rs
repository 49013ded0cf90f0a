//! Rules for host names.

use super::GuardError;

/// Maximum length of a host name in bytes, without the root dot (RFC 1035 section 2.3.4).
const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// Names that never refer to a public host, including all names below them.
const SPECIAL_NAMES: &[(&str, &str)] = &[
    ("localhost", "this machine (RFC 6761)"),
    ("localdomain", "this machine"),
    ("local", "a name of the local link (RFC 6762)"),
    ("internal", "a name for private use"),
    ("arpa", "a name of the network's own infrastructure"),
    ("onion", "a Tor service (RFC 7686)"),
    ("i2p", "an I2P service"),
    ("alt", "a name outside of DNS (RFC 9476)"),
    ("test", "a name for tests (RFC 6761)"),
    ("invalid", "a name that never exists (RFC 6761)"),
    ("example", "a name for documentation (RFC 6761)"),
    ("metadata.goog", "a cloud's metadata service"),
];

/// Checks the syntax of a host that is not an IP literal: lower-case ASCII labels of letters, digits and hyphens (RFC
/// 1123 section 2.1), none empty, none longer than 63 bytes, 253 bytes in total.
pub(super) fn check_host_syntax(host: &str) -> Result<(), GuardError> {
    let bad = |reason| Err(GuardError::BadHost { reason });
    if host.is_empty() {
        return bad("it is empty");
    }
    if host.len() > MAX_HOST_BYTES {
        return bad("it is longer than 253 bytes");
    }
    for label in host.split('.') {
        if label.is_empty() {
            return bad("it has an empty label (two dots in a row)");
        }
        if label.len() > MAX_LABEL_BYTES {
            return bad("a label is longer than 63 bytes");
        }
        if label.starts_with('-') || label.ends_with('-') {
            return bad("a label begins or ends with a hyphen");
        }
        if !label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        {
            return bad("a label contains something other than letters, digits and hyphens");
        }
    }
    Ok(())
}

/// Checks the meaning of a well-formed name: not special, not a single label or public suffix, a real top-level
/// domain.
pub(super) fn check_public_host(host: &str) -> Result<(), GuardError> {
    for (name, meaning) in SPECIAL_NAMES {
        if is_same_or_subdomain(host, name) {
            return Err(GuardError::SpecialName {
                host: host.to_owned(),
                meaning,
            });
        }
    }
    if !host.contains('.') {
        return Err(GuardError::SpecialName {
            host: host.to_owned(),
            meaning: "a single label, which names a host in a local network,",
        });
    }
    match psl::suffix(host.as_bytes()) {
        Some(suffix) if suffix.is_known() => {
            if suffix.as_bytes().len() == host.len() {
                return Err(GuardError::PublicSuffix {
                    host: host.to_owned(),
                });
            }
            Ok(())
        }
        _ => Err(GuardError::UnknownSuffix {
            host: host.to_owned(),
        }),
    }
}

fn is_same_or_subdomain(host: &str, name: &str) -> bool {
    host.strip_suffix(name)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// An entry of `allow_names`: `*` for every name, `*.corp.internal` for every name below, or one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostNamePattern {
    Any,
    /// Every name with this suffix, which begins with a dot.
    Subdomains(String),
    Exact(String),
}

impl HostNamePattern {
    /// Parses a pattern; case and one trailing dot are ignored.
    pub(super) fn parse(pattern: &str) -> Self {
        let pattern = pattern.trim().to_ascii_lowercase();
        let pattern = pattern.strip_suffix('.').unwrap_or(&pattern);
        match pattern.strip_prefix('*') {
            Some("") => Self::Any,
            Some(rest) if rest.starts_with('.') => Self::Subdomains(rest.to_owned()),
            _ => Self::Exact(pattern.to_owned()),
        }
    }

    pub(super) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Subdomains(suffix) => {
                host.len() > suffix.len() && host.ends_with(suffix.as_str())
            }
            Self::Exact(name) => host == name,
        }
    }
}

/// Whether two hosts have the same registrable domain. A host without one matches only itself.
pub(super) fn is_same_registrable_domain(one: &str, other: &str) -> bool {
    one == other
        || match (psl::domain_str(one), psl::domain_str(other)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_admit_exactly_what_they_name() {
        let below = HostNamePattern::parse("*.Corp.Internal.");
        assert!(below.matches("a.corp.internal"));
        assert!(below.matches("a.b.corp.internal"));
        assert!(!below.matches("corp.internal"));
        assert!(!below.matches("evilcorp.internal"));
        let exact = HostNamePattern::parse("intranet");
        assert!(exact.matches("intranet"));
        assert!(!exact.matches("a.intranet"));
        assert!(HostNamePattern::parse("*").matches("anything.at.all"));
        // A star without a dot is not a pattern: it would allow names of other owners.
        assert!(!HostNamePattern::parse("*corp.com").matches("evilcorp.com"));
    }

    #[test]
    fn registrable_domains_follow_the_list() {
        assert!(is_same_registrable_domain(
            "a.example.com",
            "www.example.com"
        ));
        assert!(is_same_registrable_domain(
            "example.co.uk",
            "x.example.co.uk"
        ));
        assert!(!is_same_registrable_domain("one.co.uk", "two.co.uk"));
        assert!(!is_same_registrable_domain(
            "one.github.io",
            "two.github.io"
        ));
        assert!(!is_same_registrable_domain("intranet", "extranet"));
        assert!(is_same_registrable_domain("intranet", "intranet"));
        assert!(is_same_registrable_domain(
            "a.corp.internal",
            "b.corp.internal"
        ));
    }
}
