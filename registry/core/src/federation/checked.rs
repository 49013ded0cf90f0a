//! Checks a peer's results before anyone sees them: only known members, within bounds, of a publisher that this
//! registry does not deny, and at addresses that the guard of `[federation]` allows.

use a2a_crawler::catalog::{domain_of_identity, is_publisher};
use a2a_crawler::guard::Guard;
use a2a_registry_api::ard::{Entry, Publisher, SearchResult};
use a2a_registry_domain::timestamp::Timestamp;
use serde_json::{Map, Value};
use url::Url;

use crate::agents::catalog_entry::publisher_of;
use crate::config::PeerConfig;
use crate::context::Context;

/// Maximum length of an identifier, in bytes.
const MAX_IDENTIFIER: usize = 512;
/// The longest text of any member, in characters; a longer one is cut.
const MAX_TEXT: usize = 2_000;
/// Values of a list; the rest is left out.
const MAX_VALUES: usize = 32;
/// The member of a peer result's metadata which says that no one here has reviewed it.
const REVIEWED: &str = "reviewed";
/// The accepted metadata: what a card says of its own interfaces, as texts and booleans. What only this registry can
/// know of an agent, such as its lifecycle and level of trust, is not accepted.
const TEXTS: [&str; 3] = ["a2aProtocolVersion", "a2aTransports", "authSchemes"];
const FLAGS: [&str; 3] = ["a2aStreaming", "a2aPushNotifications", "a2aExtendedCard"];

/// The result, marked as not reviewed; `None` if it is not acceptable.
pub(super) fn checked(
    context: &Context,
    guard: &Guard,
    peer: &PeerConfig,
    result: &Value,
) -> Option<SearchResult> {
    let own = Url::parse(&context.config.public_url()).ok()?;
    let found = read(guard, &peer.base(), &own, result)?;
    let publisher = publisher_of(&found.entry.identifier)?;
    (!context.rules.denies(publisher)).then_some(found)
}

fn read(guard: &Guard, base: &str, own: &Url, result: &Value) -> Option<SearchResult> {
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    let cut = |text: &str| text.chars().take(MAX_TEXT).collect::<String>();
    let texts = |name: &str| -> Vec<String> {
        let list = result.get(name).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.take(MAX_VALUES).map(cut).collect()
    };
    let identifier = text("identifier").filter(|text| text.len() <= MAX_IDENTIFIER)?;
    let publisher = publisher_of(identifier).filter(|publisher| is_publisher(publisher))?;
    if !is_aligned(publisher, result.get("trustManifest")) {
        return None;
    }
    let url = text("url").and_then(|url| guard.check_url(url).ok())?;
    let media_type =
        text("type").filter(|kind| kind.contains('/') && kind.len() <= MAX_IDENTIFIER)?;
    // Our own results come back from a peer that queries others despite being told not to; or a peer calls its own
    // results ours.
    let is_ours = text("source").is_some_and(|source| is_ours(own, base, source));
    if is_ours || own.host_str() == Some(publisher) {
        return None;
    }
    let source = text("source").filter(|source| guard.check_url(source).is_ok());
    let source = source.unwrap_or(base);
    let score = result
        .get("score")
        .and_then(Value::as_u64)
        .unwrap_or(0)
        .min(100);
    let name = text("displayName")
        .map(str::trim)
        .filter(|name| !name.is_empty());
    Some(SearchResult {
        entry: Entry {
            identifier: identifier.to_owned(),
            display_name: cut(name.unwrap_or(identifier)),
            media_type: media_type.to_owned(),
            url: url.into(),
            description: text("description").map(cut),
            version: text("version").map(cut),
            updated_at: text("updatedAt").and_then(moment),
            digest: text("digest").map(cut),
            tags: texts("tags"),
            capabilities: texts("capabilities"),
            publisher: publisher_object(publisher, result.get("publisher"), cut),
            // Nothing of it was verified here.
            trust_manifest: None,
            metadata: metadata(result.get("metadata"), cut),
            ..Entry::default()
        },
        score: u8::try_from(score).unwrap_or(100),
        source: source.to_owned(),
    })
}

/// Whether an address is of this registry, however it is spelled: its host with any scheme and port, and names of the
/// local machine, which are no registry's address for a reader elsewhere. A peer that the operator has set on the same
/// host is another registry.
fn is_ours(own: &Url, base: &str, address: &str) -> bool {
    let Some(named) = HostAndPort::of(address) else {
        return false;
    };
    let own = HostAndPort::of(own.as_str());
    let is_local = named.host == LOCAL || own.as_ref().is_some_and(|own| own.host == named.host);
    let is_peer = HostAndPort::of(base).is_some_and(|peer| peer == named);
    own.as_ref() == Some(&named) || (is_local && !is_peer)
}

/// The common spelling of the local machine's names and addresses.
const LOCAL: &str = "localhost";

/// A host and port, in one spelling.
#[derive(Debug, PartialEq, Eq)]
struct HostAndPort {
    host: String,
    port: Option<u16>,
}

impl HostAndPort {
    /// The host and port of a URL, or of a URL without its scheme.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let whole = || Url::parse(text).ok().filter(Url::has_host);
        let url = whole().or_else(|| {
            let rest = text.trim_start_matches('/');
            let url = Url::parse(&format!("https://{rest}")).ok()?;
            let is_host = |host: &str| host.contains('.') || host == LOCAL || host.contains(':');
            url.host_str().is_some_and(is_host).then_some(url)
        })?;
        // Other schemes keep the host as it is written.
        let host = url.host_str()?.trim_end_matches('.').to_lowercase();
        let host = match url::Host::parse(&host) {
            Ok(url::Host::Domain(name)) if name == LOCAL || name.ends_with(".localhost") => {
                LOCAL.to_owned()
            }
            Ok(url::Host::Ipv4(address)) if is_own_address(address.into()) => LOCAL.to_owned(),
            Ok(url::Host::Ipv6(address)) if is_own_address(address.into()) => LOCAL.to_owned(),
            Ok(parsed) => parsed.to_string(),
            Err(_) => host,
        };
        Some(Self {
            host,
            port: url.port_or_known_default(),
        })
    }
}

fn is_own_address(address: std::net::IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// Whether a manifest names the publisher, if there is one (ARD section 4.5.1).
fn is_aligned(publisher: &str, manifest: Option<&Value>) -> bool {
    let Some(manifest) = manifest.filter(|manifest| !manifest.is_null()) else {
        return true;
    };
    let identity = manifest.get("identity").and_then(Value::as_str);
    identity.and_then(domain_of_identity).as_deref() == Some(publisher)
}

fn moment(text: &str) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.to_rfc3339())
}

/// The publisher of a result according to the peer, if that is the domain in its identifier.
fn publisher_object(
    domain: &str,
    publisher: Option<&Value>,
    cut: impl Fn(&str) -> String,
) -> Option<Publisher> {
    let text = |name: &str| publisher?.get(name)?.as_str();
    let named = text("identifier").and_then(domain_of_identity)?;
    (named == domain).then_some(Publisher {
        identifier: format!("did:web:{domain}"),
        display_name: cut(text("displayName")?),
    })
}

/// The accepted members of the metadata, and that no one here has reviewed the result.
fn metadata(metadata: Option<&Value>, cut: impl Fn(&str) -> String) -> Map<String, Value> {
    let member = |name: &str| metadata?.get(name);
    let text = |name: &'static str| Some((name, Value::String(cut(member(name)?.as_str()?))));
    let flag = |name: &'static str| Some((name, Value::Bool(member(name)?.as_bool()?)));
    let texts = TEXTS.into_iter().filter_map(text);
    let kept = texts.chain(FLAGS.into_iter().filter_map(flag));
    let mut kept: Map<String, Value> = kept.map(|(name, value)| (name.to_owned(), value)).collect();
    kept.insert(REVIEWED.to_owned(), Value::Bool(false));
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
        read(&Guard::new(GuardConfig::default()), BASE, &own, &result)
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
            // Several registries on one host are told apart by the port that the operator has set.
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
                is_ours(&url(own), base, place),
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
            json!({"identifier": format!("urn:air:a.agents-test.com:{}", "x".repeat(MAX_IDENTIFIER))}),
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
        assert_eq!(long.entry.description.unwrap().chars().count(), MAX_TEXT);
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
