//! Address that clients assume for a card that names none.

use url::Url;

use crate::AgentCard;

/// Paths at which a host publishes its card; the first also stands for both others.
const WELL_KNOWN_PATHS: [&str; 3] = [
    "/",
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
];

const ADDRESS_WORDS: [&str; 9] = [
    "url",
    "uri",
    "endpoint",
    "interface",
    "address",
    "transport",
    "service",
    "server",
    "locator",
];

/// The assumed address of a card at a well-known URL, or at its host's origin, if the card names no address at all:
/// `/a2a` on that host, where `PromptKit` serves such agents. `None` for all other cards, including those with an
/// unreadable address.
///
/// ```
/// let card = a2a_card::parse_card(br#"{"name": "Desk", "skills": []}"#)?.card;
/// let address = |url: &str| a2a_card::assumed_address(&card, &url::Url::parse(url).ok()?);
/// let found = address("https://desk.example:8443/.well-known/agent.json");
/// assert_eq!(found.as_ref().map(url::Url::as_str), Some("https://desk.example:8443/a2a"));
/// assert_eq!(address("https://desk.example/cards/desk.json"), None);
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn assumed_address(card: &AgentCard, card_url: &Url) -> Option<Url> {
    let is_well_known = matches!(card_url.scheme(), "http" | "https")
        && WELL_KNOWN_PATHS.contains(&card_url.path())
        && card_url.query().is_none();
    let may_contain_address = |name: &String| {
        let name = name.to_ascii_lowercase();
        ADDRESS_WORDS.iter().any(|word| name.contains(word))
    };
    if !is_well_known || !card.interfaces.is_empty() || card.unknown.keys().any(may_contain_address)
    {
        return None;
    }
    // Only the origin is used, because the rest of the URL may be secret.
    let origin = Url::parse(&card_url.origin().ascii_serialization()).ok()?;
    origin.join("/a2a").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assumed(members: &str, url: &str) -> Option<String> {
        let card = format!(r#"{{"name": "Desk"{members}}}"#);
        let card = crate::parse_card(card.as_bytes()).ok()?.card;
        assumed_address(&card, &Url::parse(url).ok()?).map(Into::into)
    }

    #[test]
    fn only_a_well_known_card_without_any_address_has_one() {
        const URL: &str = "http://desk.example:8080/.well-known/agent.json";
        for url in [
            URL,
            "http://desk.example:8080/.well-known/agent-card.json",
            "http://desk.example:8080/",
            "http://ann:secret@desk.example:8080/#x",
        ] {
            let expected = Some("http://desk.example:8080/a2a".to_owned());
            assert_eq!(assumed("", url), expected, "{url}");
        }
        for url in [
            "http://desk.example/card.json",
            "http://desk.example/agents/one/.well-known/agent.json",
            "http://desk.example/.well-known/agent.json?x=1",
            "http://desk.example/.well-known/ard.json#desk",
            "ftp://desk.example/.well-known/agent.json",
        ] {
            assert_eq!(assumed("", url), None, "{url}");
        }
        for members in [
            r#", "url": "https://desk.example/""#,
            r#", "url": 7"#,
            r#", "endpoint": "https://desk.example/""#,
            r#", "endpoints": {"base_url": "https://desk.example/"}"#,
            r#", "supportedInterfaces": "https://desk.example/""#,
            r#", "services": [{"name": "A2A"}]"#,
        ] {
            assert_eq!(assumed(members, URL), None, "{members}");
        }
        let harmless = r#", "version": "1", "provider": {"organization": "Desk", "url": "https://desk.example/"},
            "documentationUrl": "https://desk.example/docs", "keywords": ["desk"]"#;
        assert!(assumed(harmless, URL).is_some());
    }
}
