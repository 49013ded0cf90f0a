//! Checks a peer's results before anyone sees them. Accepted are only known members, within bounds, of a publisher
//! that this registry does not deny, and with addresses that the guard of `[federation]` allows.

use a2a_crawler::catalog::{identity_domain, is_publisher_domain};
use a2a_crawler::guard::SsrfGuard;
use a2a_registry_api::ard::{Entry, Publisher, SearchResult};
use a2a_registry_domain::timestamp::Timestamp;
use serde_json::{Map, Value};
use url::Url;

use crate::agents::catalog_entry::urn_publisher;
use crate::config::PeerConfig;
use crate::context::AppContext;

/// Maximum length of an identifier, in bytes.
const MAX_IDENTIFIER_BYTES: usize = 512;
/// Maximum length of any text, in characters; longer texts are cut.
const MAX_TEXT_CHARS: usize = 2_000;
/// Maximum number of values of a list; the rest is left out.
const MAX_VALUES: usize = 32;
/// The metadata member that marks a peer's result as not reviewed by this registry.
const REVIEWED_MEMBER: &str = "reviewed";
/// The accepted metadata: statements of a card about its own interfaces, as texts and booleans. Facts that only this
/// registry can determine, such as lifecycle and trust level, are not accepted.
const TEXT_METADATA: [&str; 3] = ["a2aProtocolVersion", "a2aTransports", "authSchemes"];
const BOOLEAN_METADATA: [&str; 3] = ["a2aStreaming", "a2aPushNotifications", "a2aExtendedCard"];

/// Validates a result and marks it as not reviewed; `None` if it is not acceptable.
pub(super) fn validate_peer_result(
    context: &AppContext,
    guard: &SsrfGuard,
    peer: &PeerConfig,
    result: &Value,
) -> Option<SearchResult> {
    let own = Url::parse(&context.config().public_url()).ok()?;
    let found = parse_peer_result(guard, &peer.base_url(), &own, result)?;
    let publisher = urn_publisher(&found.entry.identifier)?;
    // Names under this registry's authority are its own; those under a former one are withheld with the names that
    // this registry knows.
    let is_reserved = publisher == context.config().ard.authority;
    (!is_reserved && !context.rules().denies(publisher)).then_some(found)
}

fn parse_peer_result(
    guard: &SsrfGuard,
    base: &str,
    own_url: &Url,
    result: &Value,
) -> Option<SearchResult> {
    let text_member = |name: &str| result.get(name).and_then(Value::as_str);
    let truncate = |text: &str| text.chars().take(MAX_TEXT_CHARS).collect::<String>();
    let text_list = |name: &str| -> Vec<String> {
        let list = result.get(name).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.take(MAX_VALUES).map(truncate).collect()
    };
    let identifier = text_member("identifier").filter(|text| text.len() <= MAX_IDENTIFIER_BYTES)?;
    let publisher = urn_publisher(identifier).filter(|publisher| is_publisher_domain(publisher))?;
    if !manifest_matches_publisher(publisher, result.get("trustManifest")) {
        return None;
    }
    let url = text_member("url").and_then(|url| guard.check_url(url).ok())?;
    let media_type = text_member("type")
        .filter(|kind| kind.contains('/') && kind.len() <= MAX_IDENTIFIER_BYTES)?;
    // Our own results come back from a peer that queries others although told not to, or a peer claims that its own
    // results are ours.
    let is_ours = text_member("source").is_some_and(|source| is_own_address(own_url, base, source));
    if is_ours || own_url.host_str() == Some(publisher) {
        return None;
    }
    let source = text_member("source").filter(|source| guard.check_url(source).is_ok());
    let source = source.unwrap_or(base);
    let score = result
        .get("score")
        .and_then(Value::as_u64)
        .unwrap_or(0)
        .min(100);
    let name = text_member("displayName")
        .map(str::trim)
        .filter(|name| !name.is_empty());
    Some(SearchResult {
        entry: Entry {
            identifier: identifier.to_owned(),
            display_name: truncate(name.unwrap_or(identifier)),
            media_type: media_type.to_owned(),
            url: url.into(),
            description: text_member("description").map(truncate),
            version: text_member("version").map(truncate),
            updated_at: text_member("updatedAt").and_then(normalize_timestamp),
            digest: text_member("digest").map(truncate),
            tags: text_list("tags"),
            capabilities: text_list("capabilities"),
            publisher: verified_publisher(publisher, result.get("publisher"), truncate),
            // This registry has not verified the manifest.
            trust_manifest: None,
            metadata: filter_peer_metadata(result.get("metadata"), truncate),
            ..Entry::default()
        },
        score: u8::try_from(score).unwrap_or(100),
        source: source.to_owned(),
    })
}

/// Whether an address is this registry's, in any spelling: its host with any scheme and port, and names of the local
/// machine, which no remote reader could use as a registry's address. A peer that the operator has configured on the
/// same host is another registry.
fn is_own_address(own_url: &Url, base: &str, address: &str) -> bool {
    let Some(address_host) = HostAndPort::parse(address) else {
        return false;
    };
    let own_host = HostAndPort::parse(own_url.as_str());
    let is_local = address_host.host == LOCALHOST
        || own_host
            .as_ref()
            .is_some_and(|own| own.host == address_host.host);
    let is_peer = HostAndPort::parse(base).is_some_and(|peer| peer == address_host);
    own_host.as_ref() == Some(&address_host) || (is_local && !is_peer)
}

/// The one spelling used for the local machine's names and addresses.
const LOCALHOST: &str = "localhost";

/// A host and port in normalized spelling.
#[derive(Debug, PartialEq, Eq)]
struct HostAndPort {
    host: String,
    port: Option<u16>,
}

impl HostAndPort {
    /// The host and port of a URL, or of a URL without its scheme.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let whole = || Url::parse(text).ok().filter(Url::has_host);
        let url = whole().or_else(|| {
            let rest = text.trim_start_matches('/');
            let url = Url::parse(&format!("https://{rest}")).ok()?;
            let is_host =
                |host: &str| host.contains('.') || host == LOCALHOST || host.contains(':');
            url.host_str().is_some_and(is_host).then_some(url)
        })?;
        // With other schemes the host keeps its spelling.
        let host = url.host_str()?.trim_end_matches('.').to_lowercase();
        let host = match url::Host::parse(&host) {
            Ok(url::Host::Domain(name)) if name == LOCALHOST || name.ends_with(".localhost") => {
                LOCALHOST.to_owned()
            }
            Ok(url::Host::Ipv4(address)) if is_local_address(address.into()) => {
                LOCALHOST.to_owned()
            }
            Ok(url::Host::Ipv6(address)) if is_local_address(address.into()) => {
                LOCALHOST.to_owned()
            }
            Ok(parsed) => parsed.to_string(),
            Err(_) => host,
        };
        Some(Self {
            host,
            port: url.port_or_known_default(),
        })
    }
}

fn is_local_address(address: std::net::IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// Whether a manifest names the publisher, if there is one (ARD section 4.5.1).
fn manifest_matches_publisher(publisher: &str, manifest: Option<&Value>) -> bool {
    let Some(manifest) = manifest.filter(|manifest| !manifest.is_null()) else {
        return true;
    };
    let identity = manifest.get("identity").and_then(Value::as_str);
    identity.and_then(identity_domain).as_deref() == Some(publisher)
}

fn normalize_timestamp(text: &str) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.to_rfc3339())
}

/// Returns the publisher that the peer names, if it is the domain in the result's identifier.
fn verified_publisher(
    domain: &str,
    publisher: Option<&Value>,
    truncate: impl Fn(&str) -> String,
) -> Option<Publisher> {
    let text = |name: &str| publisher?.get(name)?.as_str();
    let named = text("identifier").and_then(identity_domain)?;
    (named == domain).then_some(Publisher {
        identifier: format!("did:web:{domain}"),
        display_name: truncate(text("displayName")?),
    })
}

/// Returns the accepted members of the metadata, with the mark that this registry has not reviewed the result.
fn filter_peer_metadata(
    metadata: Option<&Value>,
    truncate: impl Fn(&str) -> String,
) -> Map<String, Value> {
    let member = |name: &str| metadata?.get(name);
    let text = |name: &'static str| Some((name, Value::String(truncate(member(name)?.as_str()?))));
    let flag = |name: &'static str| Some((name, Value::Bool(member(name)?.as_bool()?)));
    let texts = TEXT_METADATA.into_iter().filter_map(text);
    let accepted = texts.chain(BOOLEAN_METADATA.into_iter().filter_map(flag));
    let mut kept: Map<String, Value> = accepted
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    kept.insert(REVIEWED_MEMBER.to_owned(), Value::Bool(false));
    kept
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_crawler::guard::GuardConfig;
    use serde_json::json;

    use super::*;

    const BASE: &str = "https://peer.agents-test.com/ard";
    const OWN: &str = "https://own.agents-test.com";

    fn taken(change: Value) -> Option<SearchResult> {
        let mut result = json!({
            "identifier": "urn:air:a.agents-test.com:agents:x",
            "displayName": "X",
            "type": "application/a2a-agent-card+json",
            "url": "https://a.agents-test.com/card.json",
            "score": 90,
            "source": "https://third.agents-test.com/ard",
            "tags": ["one", 2, "three"],
            "metadata": {
                "a2aProtocolVersion": "1.0", "a2aStreaming": true, "a2aExtendedCard": "yes", "location": "eu",
                "lifecycle": "approved", "trustLevel": "L3", "authority": "domain-verified", "nested": {"a": 1},
                "authSchemes": null, "reviewed": true,
            },
            "unknown": "member",
        });
        for (name, value) in change.as_object().unwrap() {
            result[name] = value.clone();
        }
        let own = Url::parse(OWN).unwrap();
        parse_peer_result(&SsrfGuard::new(GuardConfig::default()), BASE, &own, &result)
    }

    #[test]
    fn what_is_right_is_taken_and_marked() {
        let found = taken(json!({})).unwrap();
        assert_eq!(found.entry.tags, ["one", "three"]);
        assert_eq!(found.source, "https://third.agents-test.com/ard");
        let metadata = Value::Object(found.entry.metadata);
        assert_eq!(
            metadata,
            json!({"a2aProtocolVersion": "1.0", "a2aStreaming": true, "reviewed": false})
        );
        let aligned = json!({"trustManifest": {"identity": "did:web:A.agents-test.com", "attestations": [{"type": "SOC2"}]}});
        assert_eq!(taken(aligned).unwrap().entry.trust_manifest, None);
    }

    #[test]
    fn a_publisher_is_the_domain_of_the_identifier_or_none() {
        for (identifier, is_taken) in [
            ("did:web:a.agents-test.com", true),
            ("did:web:A.agents-test.com:users:x", true),
            ("did:web:victim.agents-test.com", false),
            ("did:web:agents-test.com", false),
            ("did:key:z6Mk", false),
        ] {
            let named = json!({"publisher": {"identifier": identifier, "displayName": "X"}});
            let publisher = taken(named).unwrap().entry.publisher;
            let found = publisher.map(|publisher| publisher.identifier);
            let expected = is_taken.then(|| "did:web:a.agents-test.com".to_owned());
            assert_eq!(found, expected, "{identifier}");
        }
    }

    #[test]
    fn this_registry_is_recognised_in_every_spelling() {
        let url = |text: &str| Url::parse(text).unwrap();
        for (own, base, place, expected) in [
            (OWN, BASE, "https://own.agents-test.com/ard", true),
            (OWN, BASE, "http://OWN.agents-test.com./", true),
            (OWN, BASE, "https://own.agents-test.com:8443", true),
            (OWN, BASE, "own.agents-test.com", true),
            (OWN, BASE, "//own.agents-test.com/ard", true),
            (OWN, BASE, "ard://Own.Agents-Test.com/ard", true),
            (OWN, BASE, "https://user@own.agents-test.com/", true),
            (OWN, BASE, "localhost", true),
            (OWN, BASE, "localhost:8080/ard", true),
            (OWN, BASE, "http://LOCALHOST./ard", true),
            (OWN, BASE, "http://registry.localhost/", true),
            (OWN, BASE, "http://127.0.0.1:8080/ard", true),
            (OWN, BASE, "http://127.1/ard", true),
            (OWN, BASE, "http://2130706433/", true),
            (OWN, BASE, "http://[::1]:8080/", true),
            (OWN, BASE, "http://[::ffff:127.0.0.1]/", true),
            (OWN, BASE, "http://0.0.0.0/", true),
            (
                OWN,
                BASE,
                "https://own.agents-test.com.evil.example/",
                false,
            ),
            (OWN, BASE, "https://peer.agents-test.com/ard", false),
            (OWN, BASE, "relative", false),
            (
                "https://xn--bcher-kva.example",
                BASE,
                "https://b\u{fc}cher.example/ard",
                true,
            ),
            (
                "https://xn--bcher-kva.example",
                BASE,
                "https://B\u{dc}CHER.example",
                true,
            ),
            // Registries on one host are distinguished by the port that the operator has configured.
            (
                "http://127.0.0.1:8080",
                "http://127.0.0.1:9090/ard",
                "http://localhost:9090/ard",
                false,
            ),
            (
                "http://127.0.0.1:8080",
                "http://127.0.0.1:9090/ard",
                "http://localhost:8080/ard",
                true,
            ),
        ] {
            assert_eq!(
                is_own_address(&url(own), base, place),
                expected,
                "{place} for {own}"
            );
        }
    }

    #[test]
    fn lies_are_not_taken() {
        for change in [
            json!({"identifier": "urn:air:localhost:agents:x"}),
            json!({"identifier": "urn:air:127.0.0.1:x"}),
            json!({"identifier": "a.agents-test.com:x"}),
            json!({"identifier": 7}),
            json!({"identifier": format!("urn:air:a.agents-test.com:{}", "x".repeat(MAX_IDENTIFIER_BYTES))}),
            json!({"url": "http://a.agents-test.com/card.json"}),
            json!({"url": "https://127.0.0.1/card.json"}),
            json!({"url": "https://169.254.169.254/latest"}),
            json!({"url": "javascript:alert(1)"}),
            json!({"url": null}),
            json!({"type": ["application/a2a-agent-card+json"]}),
            json!({"trustManifest": {"identity": "did:web:b.agents-test.com"}}),
            json!({"trustManifest": {"identity": "did:web:sub.a.agents-test.com"}}),
            json!({"trustManifest": "yes"}),
            json!({"source": format!("{OWN}/ard")}),
            json!({"source": "HTTPS://Own.agents-test.com:443/x/../ard?y"}),
            json!({"identifier": "urn:air:own.agents-test.com:agents:x"}),
        ] {
            assert_eq!(taken(change.clone()), None, "{change}");
        }
    }

    #[test]
    fn what_is_odd_is_made_harmless() {
        for (change, score, source) in [
            (
                json!({"score": 1000}),
                100,
                "https://third.agents-test.com/ard",
            ),
            (json!({"score": -3}), 0, "https://third.agents-test.com/ard"),
            (
                json!({"score": "high"}),
                0,
                "https://third.agents-test.com/ard",
            ),
            (json!({"source": "relative"}), 90, BASE),
            (json!({"source": "https://10.0.0.1/ard"}), 90, BASE),
        ] {
            let found = taken(change).unwrap();
            assert_eq!((found.score, found.source.as_str()), (score, source));
        }
        let long =
            taken(json!({"description": "x".repeat(100_000), "tags": vec!["t"; 1000]})).unwrap();
        assert_eq!(
            long.entry.description.unwrap().chars().count(),
            MAX_TEXT_CHARS
        );
        assert_eq!(long.entry.tags.len(), MAX_VALUES);
        assert_eq!(
            taken(json!({"displayName": " "}))
                .unwrap()
                .entry
                .display_name,
            "urn:air:a.agents-test.com:agents:x"
        );
    }
}
