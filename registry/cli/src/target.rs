//! What users name: something to register, or an agent.

use a2a_crawler::fetch::{AGENT_CARD_PATH, AGENT_PATH};
use a2a_registry_api::{Registration, SourceView};
use a2a_registry_domain::source::SourceKind;
use url::Url;
use uuid::Uuid;

use super::failure::Failure;

/// What to register for a word of the command line or a line of a file.
///
/// A name (`host`, `host:port`), or `https://host` without a path, is a domain. Any other URL is one
/// card; `http://host` without a path means the card at its well-known path, because a bare domain
/// would be asked over https.
///
/// # Errors
/// For a URL that cannot be read. Whether a name fits is the registry's to say.
pub fn registration(word: &str, approve: bool) -> Result<Registration, Failure> {
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
    if !word.contains("://") {
        return Ok(domain(word.to_owned()));
    }
    let url =
        Url::parse(word).map_err(|error| Failure::new(format!("{word} is not a URL: {error}")))?;
    Ok(match without_a_path(&url) {
        Some(Target::Domain(name)) => domain(name),
        Some(Target::Card(url)) => card(url.into()),
        None => card(word.to_owned()),
    })
}

/// What a URL without a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A domain, which is asked over https.
    Domain(String),
    /// The card at the well-known path, because a domain would not be asked over http.
    Card(Url),
}

/// What a URL stands for that has no path, in every command alike; `None` for one that has.
pub fn without_a_path(url: &Url) -> Option<Target> {
    let bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match (url.scheme(), url.host_str()) {
        ("https", Some(host)) if bare => Some(Target::Domain(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        })),
        ("http", Some(_)) if bare => {
            let mut card = url.clone();
            card.set_path(AGENT_CARD_PATH);
            Some(Target::Card(card))
        }
        _ => None,
    }
}

/// Whether a source asks for the card or the catalog at that URL, which is normalised.
pub fn asks(source: &SourceView, url: &Url) -> bool {
    match source.kind.known() {
        Some(SourceKind::Url | SourceKind::Entry) => {
            source.url == url.as_str() || source.card_url.as_deref() == Some(url.as_str())
        }
        Some(SourceKind::WellKnown) => {
            let own = Url::parse(&source.url);
            is_well_known(url) && own.is_ok_and(|own| own.origin() == url.origin())
        }
        Some(SourceKind::Ard | SourceKind::AiCatalog) => source.url == url.as_str(),
        None => false,
    }
}

/// Whether a URL stands for the well-known paths of its origin.
fn is_well_known(url: &Url) -> bool {
    [AGENT_CARD_PATH, AGENT_PATH].contains(&url.path()) && url.query().is_none()
}

/// How an agent is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentName {
    Id(Uuid),
    Urn(String),
    /// The URL of its card, or of an interface.
    Url(Url),
    /// Its host, with the port where it has one.
    Host(String),
    /// The digest of its card.
    Digest(String),
}

impl AgentName {
    /// Tells the kind of name.
    ///
    /// # Errors
    /// For text that is none of them, such as an agent's display name.
    pub fn parse(word: &str) -> Result<Self, Failure> {
        if let Ok(id) = Uuid::parse_str(word) {
            return Ok(Self::Id(id));
        }
        if word
            .get(..4)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("urn:"))
        {
            return Ok(Self::Urn(word.to_owned()));
        }
        if word.starts_with("sha256:") {
            return Ok(Self::Digest(word.to_owned()));
        }
        if word.contains("://") {
            return Url::parse(word)
                .map(Self::Url)
                .map_err(|error| Failure::new(format!("{word} is not a URL: {error}")));
        }
        let host = Url::parse(&format!("https://{word}"));
        let is_host = host.is_ok_and(|url| {
            url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
        });
        if is_host && !word.ends_with('/') {
            return Ok(Self::Host(word.to_owned()));
        }
        Err(Failure::new(format!(
            "{word} is no id, URN, host or card URL; `a2a-registry search` finds an agent's id by words"
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
            let what = registration(word, false).unwrap();
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
            let what = registration(word, true).unwrap();
            assert_eq!(
                (what.card_url.as_deref(), what.domain),
                (Some(url), None),
                "{word}"
            );
            assert!(what.approve);
        }
        assert!(registration("https://", false).is_err());
    }

    #[test]
    fn agents_are_known_by_many_names() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(
            AgentName::parse(id).unwrap(),
            AgentName::Id(id.parse().unwrap())
        );
        let urn = "urn:air:a.example:agents:x";
        assert_eq!(AgentName::parse(urn).unwrap(), AgentName::Urn(urn.into()));
        for host in ["a.example", "localhost:9001", "127.0.0.1", "[::1]:80"] {
            assert_eq!(
                AgentName::parse(host).unwrap(),
                AgentName::Host(host.into())
            );
        }
        assert!(matches!(
            AgentName::parse("http://a.example/x").unwrap(),
            AgentName::Url(_)
        ));
        for wrong in [
            "Trip Planner",
            "a.example/path",
            "",
            "http://",
            "user@a.example",
        ] {
            let failure = AgentName::parse(wrong).unwrap_err();
            assert!(matches!(failure, Failure::Failed(_)), "{wrong}");
        }
    }
}
