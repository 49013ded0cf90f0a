//! Parsing of the names that users give: of domains and cards to register, and of agents.

use a2a_crawler::fetch::{AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH};
use a2a_registry_api::{Registration, SourceView};
use a2a_registry_domain::source::SourceKind;
use url::Url;
use uuid::Uuid;

use super::command_error::CommandError;

/// Parses a word of the command line or a line of a file into a registration.
///
/// A name (`host`, `host:port`), or `https://host` without a path, is a domain. Any other URL is one card;
/// `http://host` without a path means the card at its well-known path, because a bare domain would be requested over
/// https.
///
/// # Errors
/// If a URL cannot be parsed. Names are not checked here: the registry decides whether a name is valid.
pub fn parse_registration(name_or_url: &str, approve: bool) -> Result<Registration, CommandError> {
    let domain = |name: String| Registration {
        domain: Some(name),
        card_url: None,
        approve,
    };
    let card = |url: String| Registration {
        domain: None,
        card_url: Some(url),
        approve,
    };
    if !name_or_url.contains("://") {
        return Ok(domain(name_or_url.to_owned()));
    }
    let url = Url::parse(name_or_url)
        .map_err(|error| CommandError::new(format!("{name_or_url} is not a URL: {error}")))?;
    Ok(match bare_url_target(&url) {
        Some(BareUrlTarget::Domain(name)) => domain(name),
        Some(BareUrlTarget::Card(url)) => card(url.into()),
        None => card(name_or_url.to_owned()),
    })
}

/// Meaning of a URL without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BareUrlTarget {
    /// A domain, which is requested over https.
    Domain(String),
    /// The card at the well-known path of an http URL, because a domain would be requested over https.
    Card(Url),
}

/// Meaning of a URL without a path, the same in every command; `None` if it has a path.
pub fn bare_url_target(url: &Url) -> Option<BareUrlTarget> {
    let is_bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match (url.scheme(), url.host_str()) {
        ("https", Some(host)) if is_bare => Some(BareUrlTarget::Domain(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })),
        ("http", Some(_)) if is_bare => {
            let mut card = url.clone();
            card.set_path(AGENT_CARD_PATH);
            Some(BareUrlTarget::Card(card))
        }
        _ => None,
    }
}

/// Whether a source fetches the card or the catalog at `url`, which must be normalized.
pub fn source_fetches_url(source: &SourceView, url: &Url) -> bool {
    match source.kind.known_value() {
        Some(SourceKind::Url | SourceKind::Entry) => {
            source.url == url.as_str() || source.card_url.as_deref() == Some(url.as_str())
        }
        Some(SourceKind::WellKnown) => {
            let own = Url::parse(&source.url);
            is_well_known_card_url(url) && own.is_ok_and(|own| own.origin() == url.origin())
        }
        Some(SourceKind::Ard | SourceKind::AiCatalog) => source.url == url.as_str(),
        None => false,
    }
}

/// Whether a URL is one of the two well-known card URLs of its origin.
fn is_well_known_card_url(url: &Url) -> bool {
    [AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH].contains(&url.path()) && url.query().is_none()
}

/// Reference to an agent on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentReference {
    Id(Uuid),
    Urn(String),
    /// The URL of its card, or of an interface.
    Url(Url),
    /// Its host, with the port if it has one.
    Host(String),
    /// The digest of its card.
    Digest(String),
}

impl AgentReference {
    /// Recognizes the kind of reference.
    ///
    /// # Errors
    /// For text of any other kind, such as an agent's display name.
    pub fn parse(text: &str) -> Result<Self, CommandError> {
        if let Ok(id) = Uuid::parse_str(text) {
            return Ok(Self::Id(id));
        }
        if text
            .get(..4)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("urn:"))
        {
            return Ok(Self::Urn(text.to_owned()));
        }
        if text.starts_with("sha256:") {
            return Ok(Self::Digest(text.to_owned()));
        }
        if text.contains("://") {
            return Url::parse(text)
                .map(Self::Url)
                .map_err(|error| CommandError::new(format!("{text} is not a URL: {error}")));
        }
        let host = Url::parse(&format!("https://{text}"));
        let is_host = host.is_ok_and(|url| {
            url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
        });
        if is_host && !text.ends_with('/') {
            return Ok(Self::Host(text.to_owned()));
        }
        Err(CommandError::new(format!(
            "{text} is not an id, URN, host or card URL; `a2a-registry search` finds an agent's id by words"
        )))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_are_domains_and_urls_are_cards() {
        for (word, domain) in [
            ("agents.example.com", "agents.example.com"),
            ("127.0.0.1:9001", "127.0.0.1:9001"),
            ("https://agents.example.com", "agents.example.com"),
            (
                "https://agents.example.com:8443/",
                "agents.example.com:8443",
            ),
        ] {
            let what = parse_registration(word, false).unwrap();
            assert_eq!(
                (what.domain.as_deref(), what.card_url),
                (Some(domain), None),
                "{word}"
            );
        }
        for (word, url) in [
            (
                "http://127.0.0.1:9001",
                "http://127.0.0.1:9001/.well-known/agent-card.json",
            ),
            (
                "http://a.example/",
                "http://a.example/.well-known/agent-card.json",
            ),
            (
                "https://a.example/cards/x.json",
                "https://a.example/cards/x.json",
            ),
            ("https://a.example/?card=x", "https://a.example/?card=x"),
            ("ftp://a.example/", "ftp://a.example/"),
        ] {
            let registration = parse_registration(word, true).unwrap();
            assert_eq!(
                (registration.card_url.as_deref(), registration.domain),
                (Some(url), None),
                "{word}"
            );
            assert!(registration.approve);
        }
        assert!(parse_registration("https://", false).is_err());
    }

    #[test]
    fn agents_are_known_by_many_names() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(
            AgentReference::parse(id).unwrap(),
            AgentReference::Id(id.parse().unwrap())
        );
        let urn = "urn:air:a.example:agents:x";
        assert_eq!(
            AgentReference::parse(urn).unwrap(),
            AgentReference::Urn(urn.into())
        );
        for host in ["a.example", "localhost:9001", "127.0.0.1", "[::1]:80"] {
            assert_eq!(
                AgentReference::parse(host).unwrap(),
                AgentReference::Host(host.into())
            );
        }
        assert!(matches!(
            AgentReference::parse("http://a.example/x").unwrap(),
            AgentReference::Url(_)
        ));
        for wrong in [
            "Trip Planner",
            "a.example/path",
            "",
            "http://",
            "user@a.example",
        ] {
            let failure = AgentReference::parse(wrong).unwrap_err();
            assert!(matches!(failure, CommandError::Failed(_)), "{wrong}");
        }
    }
}
