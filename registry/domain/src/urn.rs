//! URNs of agents: `urn:air:<publisher>:…` (docs/publish/prove.md#lasting-names, ARD section 1.4).

use std::iter::once;

use unicode_normalization::UnicodeNormalization;

/// The longest catalog identifier that becomes a URN, in bytes.
const MAX_URN_BYTES: usize = 255;
/// The longest part that comes from an agent's name, in bytes.
const MAX_SLUG_BYTES: usize = 64;

const PREFIX: &str = "urn:air:";
/// The prefix used until June 2026, still found in many catalogs.
const FORMER_PREFIX: &str = "urn:ai:";

/// The URN in a catalog's identifier, if its publisher is this domain.
pub fn urn_from_identifier(domain: &str, identifier: &str) -> Option<String> {
    let rest = identifier
        .strip_prefix(PREFIX)
        .or_else(|| identifier.strip_prefix(FORMER_PREFIX))?;
    let (publisher, path) = rest.split_once(':')?;
    let is_part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && part.bytes().all(plain)
    };
    let fits = publisher == domain && path.split(':').all(is_part) && rest.len() <= MAX_URN_BYTES;
    fits.then(|| format!("{PREFIX}{rest}"))
}

/// Candidate URNs for an agent, derived from its domain and name; it gets the first free one.
pub fn candidate_urns(domain: &str, name: &str) -> impl Iterator<Item = String> + use<> {
    numbered_urns(format!("{PREFIX}{domain}:agents:{}", to_slug(name)))
}

/// Candidate URNs under a company's authority for an agent of a host that cannot be proved. They contain the host: so
/// no host takes the name of another one's agent, and no number tells how many agents of a name other hosts have.
pub fn authority_candidate_urns(
    authority: &str,
    host: &str,
    name: &str,
) -> impl Iterator<Item = String> + use<> {
    let (host, name) = (host_segments(host), to_slug(name));
    numbered_urns(format!("{PREFIX}{authority}:hosts:{host}:{name}"))
}

fn numbered_urns(plain: String) -> impl Iterator<Item = String> + use<> {
    let numbered = plain.clone();
    once(plain).chain((2u32..).map(move |number| format!("{numbered}-{number}")))
}

/// A host and its port as segments of a URN. An IPv6 address is one segment, with hyphens instead of its colons.
fn host_segments(host: &str) -> String {
    let ipv6 = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let host = match ipv6 {
        Some((address, port)) => format!("{}{port}", address.replace(':', "-")),
        None => host.to_owned(),
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-:".contains(letter);
    host.chars()
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect()
}

/// A name as lower-case ASCII letters and digits with hyphens between words; `agent` if it contains none of them.
fn to_slug(name: &str) -> String {
    let mut slug = String::new();
    let mut pending_separator = false;
    for letter in name
        .nfkd()
        .filter(|letter| !('\u{300}'..='\u{36f}').contains(letter))
    {
        if !letter.is_ascii_alphanumeric() {
            pending_separator = true;
            continue;
        }
        let between = pending_separator && !slug.is_empty();
        if slug.len() + usize::from(between) >= MAX_SLUG_BYTES {
            break;
        }
        if between {
            slug.push('-');
        }
        pending_separator = false;
        slug.push(letter.to_ascii_lowercase());
    }
    if slug.is_empty() {
        slug.push_str("agent");
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_slugs() {
        for (name, expected) in [
            ("Travel Agent", "travel-agent"),
            ("  Crème--Brûlée 2.0! ", "creme-brulee-2-0"),
            ("ＦＵＬＬ width", "full-width"),
            ("旅行", "agent"),
            ("", "agent"),
        ] {
            assert_eq!(to_slug(name), expected, "{name}");
        }
        assert_eq!(to_slug(&"x".repeat(500)).len(), MAX_SLUG_BYTES);
        assert_eq!(to_slug(&"x y".repeat(500)).len(), MAX_SLUG_BYTES);
    }

    #[test]
    fn a_second_agent_of_a_name_is_numbered() {
        let urns: Vec<String> = candidate_urns("a.example", "Travel").take(3).collect();
        assert_eq!(
            urns,
            [
                "urn:air:a.example:agents:travel",
                "urn:air:a.example:agents:travel-2",
                "urn:air:a.example:agents:travel-3"
            ]
        );
    }

    #[test]
    fn a_host_is_part_of_the_urn_under_an_authority() {
        for (host, expected) in [
            ("travel.corp:8443", "travel.corp:8443"),
            ("travel.corp", "travel.corp"),
            ("10.0.0.5:8080", "10.0.0.5:8080"),
            ("[fd00::1]:8443", "fd00--1:8443"),
            ("[::1]", "--1"),
            ("a_b.corp", "a_b.corp"),
            ("odd!host:1", "odd-host:1"),
        ] {
            let urns: Vec<String> = authority_candidate_urns("agents.corp.example", host, "Travel")
                .take(2)
                .collect();
            let first = format!("urn:air:agents.corp.example:hosts:{expected}:travel");
            assert_eq!(urns, [first.clone(), format!("{first}-2")]);
            let read = urn_from_identifier("agents.corp.example", &first);
            assert_eq!(read, Some(first), "it fits the grammar");
        }
    }

    #[test]
    fn identifiers_count_under_their_publishers_domain() {
        for (identifier, expected) in [
            ("urn:air:a.example:x", Some("urn:air:a.example:x")),
            ("urn:air:a.example:x:Y_1", Some("urn:air:a.example:x:Y_1")),
            ("urn:ai:a.example:x", Some("urn:air:a.example:x")),
            ("urn:air:b.example:x", None),
            ("urn:air:sub.a.example:x", None),
            ("urn:air:A.example:x", None),
            ("urn:air:a.example", None),
            ("urn:air:a.example:", None),
            ("urn:air:a.example::x", None),
            ("urn:air:a.example:x y", None),
            ("a.example:x", None),
        ] {
            assert_eq!(
                urn_from_identifier("a.example", identifier).as_deref(),
                expected,
                "{identifier}"
            );
        }
        let long = format!("urn:air:a.example:{}", "x".repeat(MAX_URN_BYTES));
        assert_eq!(urn_from_identifier("a.example", &long), None);
    }
}
