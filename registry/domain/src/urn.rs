//! URNs of agents: `urn:air:<publisher>:…` (docs/model.md#lasting-names, ARD section 1.4).

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
pub fn candidate_urns(domain: &str, name: &str) -> impl Iterator<Item = String> {
    let plain = format!("{PREFIX}{domain}:agents:{}", to_slug(name));
    let numbered = plain.clone();
    once(plain).chain((2u32..).map(move |number| format!("{numbered}-{number}")))
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
