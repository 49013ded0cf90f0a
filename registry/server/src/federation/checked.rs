//! What a peer calls a result, checked before anybody sees it: only members that are known, within bounds, of a publisher
//! that this registry does not deny, and at addresses that the guard of `[federation]` lets pass.

use a2a_crawler::catalog::{domain_of_identity, is_publisher};
use a2a_crawler::guard::Guard;
use a2a_registry_api::ard::{Entry, Publisher, SearchResult, TrustManifest};
use a2a_registry_domain::timestamp::Timestamp;
use serde_json::{Map, Value};
use url::Url;

use crate::catalog_entry::publisher_of;
use crate::config::PeerConfig;
use crate::context::Context;

/// The longest identifier, in bytes.
const MAX_IDENTIFIER: usize = 512;
/// The longest text of any member, in characters; a longer one is cut.
const MAX_TEXT: usize = 2_000;
/// The most values of a list and of the metadata; the rest is left out.
const MAX_VALUES: usize = 32;
/// What results of peers say in their metadata: nobody here has reviewed them.
const REVIEWED: &str = "reviewed";

/// The result, marked as not reviewed; `None` where it cannot be taken.
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
    let trust = trust_manifest(publisher, result.get("trustManifest"))?;
    let url = text("url").and_then(|url| guard.check_url(url).ok())?;
    let media_type =
        text("type").filter(|kind| kind.contains('/') && kind.len() <= MAX_IDENTIFIER)?;
    let source = text("source").filter(|source| guard.check_url(source).is_ok());
    let source = source.unwrap_or(base);
    // Its own results come back from a peer that asks others although it was told not to; or a peer calls its own ours.
    if is_ours(own, source, publisher) {
        return None;
    }
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
            publisher: publisher_object(result.get("publisher"), cut),
            trust_manifest: trust,
            metadata: metadata(result.get("metadata"), cut),
            ..Entry::default()
        },
        score: u8::try_from(score).unwrap_or(100),
        source: source.to_owned(),
    })
}

/// Whether a result claims to be of this registry, by the place that has it or by its publisher.
fn is_ours(own: &Url, source: &str, publisher: &str) -> bool {
    let source = Url::parse(source).map(|url| url.origin());
    source.is_ok_and(|origin| origin == own.origin()) || own.host_str() == Some(publisher)
}

/// The manifest, as far as it says who the publisher is; `None` where it names another one (ARD section 4.5.1).
#[allow(
    clippy::option_option,
    reason = "a manifest may be absent, or a reason to refuse the result"
)]
fn trust_manifest(publisher: &str, manifest: Option<&Value>) -> Option<Option<TrustManifest>> {
    let Some(manifest) = manifest.filter(|manifest| !manifest.is_null()) else {
        return Some(None);
    };
    let identity = manifest.get("identity").and_then(Value::as_str)?;
    let kind = manifest.get("identityType").and_then(Value::as_str);
    let aligned = domain_of_identity(identity).as_deref() == Some(publisher);
    aligned.then(|| {
        Some(TrustManifest {
            identity: identity.chars().take(MAX_IDENTIFIER).collect(),
            identity_type: kind
                .filter(|kind| kind.len() <= MAX_IDENTIFIER)
                .map(str::to_owned),
            attestations: Vec::new(),
        })
    })
}

/// A time, as this registry writes times.
fn moment(text: &str) -> Option<String> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.to_rfc3339())
}

fn publisher_object(publisher: Option<&Value>, cut: impl Fn(&str) -> String) -> Option<Publisher> {
    let text = |name: &str| publisher?.get(name)?.as_str();
    Some(Publisher {
        identifier: cut(text("identifier")?),
        display_name: cut(text("displayName")?),
    })
}

/// Scalars of the metadata, and that nobody here has reviewed the result.
fn metadata(metadata: Option<&Value>, cut: impl Fn(&str) -> String) -> Map<String, Value> {
    let members = metadata.and_then(Value::as_object);
    let mut kept: Map<String, Value> = members
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.len() <= MAX_IDENTIFIER && name.as_str() != REVIEWED)
        .filter_map(|(name, value)| {
            let value = match value {
                Value::String(text) => Value::String(cut(text)),
                Value::Bool(_) | Value::Number(_) => value.clone(),
                _ => return None,
            };
            Some((name.clone(), value))
        })
        .take(MAX_VALUES)
        .collect();
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
            "metadata": {"location": "eu", "nested": {"a": 1}, "none": null, "reviewed": true},
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
        assert_eq!(metadata, json!({"location": "eu", "reviewed": false}));
        let aligned = json!({"trustManifest": {"identity": "did:web:A.agents-test.com", "attestations": [{"type": "SOC2"}]}});
        let trust = taken(aligned).unwrap().entry.trust_manifest.unwrap();
        assert_eq!(
            (trust.identity.as_str(), trust.attestations.len()),
            ("did:web:A.agents-test.com", 0)
        );
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
