//! Duplicate agents, and the choice of the one that represents the others (docs/develop/model.md#duplicates).

use a2a_card::AgentCard;
use ring::digest::{Context, SHA256};
use url::Url;

/// Preference for an agent whose endpoint is on its own domain; higher than every trust level.
const OWN_DOMAIN_PREFERENCE: u8 = 8;

/// The key that an agent shares with its duplicates: its name and first endpoint. Cards of the same content share
/// both, unless their addresses are relative. If a card lacks one of them, only copies of its content are duplicates.
pub fn duplicate_group_key(card: &AgentCard, content_digest: &str) -> u128 {
    let name = card.name.trim().to_lowercase();
    let parts = match first_endpoint_and_tenant(card).filter(|_| !name.is_empty()) {
        Some((url, tenant)) => vec![name, url, tenant],
        None => vec![content_digest.to_owned()],
    };
    let mut context = Context::new(&SHA256);
    for part in parts {
        // The length prefix makes the boundary of each part unambiguous.
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    let digest = context.finish();
    let half = digest.as_ref().iter().take(size_of::<u128>());
    half.fold(0, |key, byte| key << 8 | u128::from(*byte))
}

fn first_endpoint_and_tenant(card: &AgentCard) -> Option<(String, String)> {
    let first = card.interfaces.first()?;
    let url = match Url::parse(&first.url) {
        Ok(url) => url.to_string(),
        Err(_) => first.url.trim().to_owned(),
    };
    let url = url.trim_end_matches('/');
    let tenant = first.tenant.clone().unwrap_or_default();
    (!url.is_empty()).then(|| (url.to_owned(), tenant))
}

/// The preference of an agent among its duplicates: first the one whose endpoint is on the domain that publishes the
/// card, which no copy on another domain fulfils, then the more trusted one.
pub fn duplicate_preference(card: &AgentCard, domain: &str, trust: Option<u8>) -> u8 {
    let trust = trust
        .map_or(0, |level| level + 1)
        .min(OWN_DOMAIN_PREFERENCE - 1);
    match is_endpoint_on_domain(card, domain) {
        true => OWN_DOMAIN_PREFERENCE + trust,
        false => trust,
    }
}

fn is_endpoint_on_domain(card: &AgentCard, domain: &str) -> bool {
    let host = |url: &str| Some(Url::parse(url).ok()?.host_str()?.to_owned());
    let endpoint = card.interfaces.first().and_then(|first| host(&first.url));
    let domain = host(&format!("https://{domain}"));
    endpoint.zip(domain).is_some_and(|(endpoint, domain)| {
        let below = endpoint.strip_suffix(&domain);
        below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn card(name: &str, url: &str, more: &str) -> (AgentCard, String) {
        let text = format!(r#"{{"name": "{name}", "description": "{more}", "url": "{url}"}}"#);
        let card = a2a_card::parse_card(text.as_bytes()).unwrap().card;
        (card, a2a_card::content_digest(text.as_bytes()))
    }

    fn key_of(name: &str, url: &str, more: &str) -> u128 {
        let (card, digest) = card(name, url, more);
        duplicate_group_key(&card, &digest)
    }

    #[test]
    fn the_same_name_at_the_same_endpoint_is_the_same_agent() {
        let one = key_of("Trip", "https://trip.example/a2a", "");
        assert_ne!(one, 0);
        for same in [
            key_of("Trip", "https://trip.example/a2a", "another version of it"),
            key_of(" trip ", "https://TRIP.example:443/a2a/", ""),
        ] {
            assert_eq!(one, same);
        }
        for other in [
            key_of("Hotel", "https://trip.example/a2a", ""),
            key_of("Trip", "https://trip.example/a2a/2", ""),
            key_of("Trip", "http://trip.example/a2a", ""),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_card_without_an_endpoint_has_copies_of_its_content_only() {
        let one = key_of("Trip", "", "books trips");
        assert_eq!(one, key_of("Trip", "", "books trips"));
        assert_ne!(one, key_of("Trip", "", "books flights"));
    }

    #[test]
    fn the_agent_of_the_endpoint_s_own_domain_comes_before_more_trusted_copies() {
        let (card, _) = card("Trip", "https://api.trip.example:8443/a2a", "");
        let own = duplicate_preference(&card, "trip.example", None);
        assert_eq!(
            own,
            duplicate_preference(&card, "api.trip.example:8443", None)
        );
        for copy in ["elsewhere.example", "rip.example", "www.trip.example"] {
            assert!(own > duplicate_preference(&card, copy, Some(4)), "{copy}");
        }
        let better = duplicate_preference(&card, "elsewhere.example", Some(1));
        assert!(better > duplicate_preference(&card, "elsewhere.example", Some(0)));
        assert!(better > duplicate_preference(&card, "elsewhere.example", None));
        assert!(own < duplicate_preference(&card, "trip.example", Some(0)));
    }
}
