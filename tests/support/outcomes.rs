//! Simulated responses of origins: cards, and outcomes of visits that were never made.

use a2a_crawler::catalog::{CatalogEntry, CatalogWalk, Findings, ReadOptions, WalkedCatalog, read};
use a2a_crawler::guard::{Guard, GuardConfig};
use a2a_crawler::{
    Attempt, AttemptOutcome, FetchedCard, FetchedCatalog, FetchedKeySet, Freshness, SourceOutcome,
    SourceVerdict, Validators,
};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::source;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use time::OffsetDateTime;

/// A response of an origin.
#[derive(Debug, Clone)]
pub enum OriginAnswer {
    /// 200 with these bytes.
    Card(Vec<u8>),
    /// 200 with these bytes, after a redirect to that URL.
    Redirected(Vec<u8>, String),
    /// 200 with a catalog that names these cards, after a redirect to that URL.
    CatalogOf(Vec<(String, String)>, String),
    /// 200 with these bytes, and the fetched key set that their signatures name.
    Signed(Vec<u8>, FetchedKeySet),
    /// 200 with a catalog that names these cards, as identifier and URL, and how much of it was read.
    Catalog(Vec<(String, String)>, Read),
    /// 200 with this document as the catalog.
    Document(String),
    /// 304.
    NotModified,
    /// 429 with this `Retry-After` in seconds.
    Rests(u32),
    /// A failure.
    Fails(AttemptOutcome),
}

/// How much of a catalog could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Whole,
    InPart,
}

/// The response of a catalog in tests about cards: missing, or unchanged.
fn of_catalog(source: &source::Model, answer: OriginAnswer) -> OriginAnswer {
    match answer {
        OriginAnswer::Card(_) | OriginAnswer::Signed(..) | OriginAnswer::Redirected(..) => {
            OriginAnswer::Fails(AttemptOutcome::NotFound)
        }
        OriginAnswer::NotModified if source.last_success_at.is_none() => {
            OriginAnswer::Fails(AttemptOutcome::NotFound)
        }
        other => other,
    }
}

/// The URL of a source's card.
pub fn card_url(source: &source::Model) -> String {
    if source.kind == SourceKind::WellKnown {
        format!(
            "{}/.well-known/agent-card.json",
            source.url.trim_end_matches('/')
        )
    } else {
        let brought = source.validator_url.as_ref();
        let brought = brought.filter(|_| source.kind == SourceKind::Url);
        brought.unwrap_or(&source.url).clone()
    }
}

/// The outcome of one fetch of a source.
pub fn result(source: &source::Model, answer: OriginAnswer, at: OffsetDateTime) -> SourceOutcome {
    let answer = if source.kind.known().is_some_and(SourceKind::is_catalog) {
        of_catalog(source, answer)
    } else {
        answer
    };
    let url = card_url(source);
    let freshness = Freshness {
        validators: Some(Validators {
            url: url.clone(),
            etag: Some("\"e\"".into()),
            last_modified: None,
        }),
        max_age: None,
        vary: None,
    };
    let (outcome, status) = match &answer {
        OriginAnswer::Card(_) | OriginAnswer::Signed(..) | OriginAnswer::Redirected(..) => {
            (AttemptOutcome::Card, Some(200))
        }
        OriginAnswer::Catalog(..) | OriginAnswer::CatalogOf(..) | OriginAnswer::Document(_) => {
            (AttemptOutcome::Catalog, Some(200))
        }
        OriginAnswer::NotModified => (AttemptOutcome::NotModified, Some(304)),
        OriginAnswer::Rests(_) => (AttemptOutcome::Throttled, Some(429)),
        OriginAnswer::Fails(outcome) => (*outcome, None),
    };
    let (answer, key_sets) = match answer {
        OriginAnswer::Signed(bytes, keys) => (OriginAnswer::Card(bytes), vec![keys]),
        other => (other, Vec::new()),
    };
    let (answer, answered) = match answer {
        OriginAnswer::Redirected(bytes, to) => (OriginAnswer::Card(bytes), to),
        OriginAnswer::CatalogOf(cards, to) => (OriginAnswer::Catalog(cards, Read::Whole), to),
        other => (other, url.clone()),
    };
    let verdict = match answer {
        OriginAnswer::Redirected(..) | OriginAnswer::CatalogOf(..) => {
            unreachable!("taken apart above")
        }
        OriginAnswer::Card(bytes) | OriginAnswer::Signed(bytes, _) => {
            SourceVerdict::Fetched(Box::new(FetchedCard {
                url: answered,
                parsed: a2a_card::parse(&bytes).unwrap(),
                bytes,
                key_sets,
                tls: true,
                freshness,
            }))
        }
        OriginAnswer::Catalog(cards, read) => {
            let cards = cards.into_iter().map(|(identifier, url)| CatalogEntry {
                identifier,
                url: url.parse().unwrap(),
                updated_at: None,
                digest: None,
                inline: None,
            });
            SourceVerdict::Catalog(Box::new(FetchedCatalog {
                url: answered,
                entries: cards.collect(),
                registries: Vec::new(),
                findings: Findings::default(),
                complete: read == Read::Whole,
                freshness,
            }))
        }
        OriginAnswer::Document(text) => {
            let walked = walked(&text, &answered);
            SourceVerdict::Catalog(Box::new(FetchedCatalog {
                url: answered,
                entries: walked.cards,
                registries: walked.registries,
                findings: walked.findings,
                complete: walked.complete,
                freshness,
            }))
        }
        OriginAnswer::NotModified => SourceVerdict::NotModified(freshness),
        OriginAnswer::Rests(seconds) => SourceVerdict::Failed {
            outcome: AttemptOutcome::Throttled,
            retry_after: Some(seconds),
        },
        OriginAnswer::Fails(outcome) => SourceVerdict::Failed {
            outcome,
            retry_after: None,
        },
    };
    SourceOutcome {
        source_key: source.id,
        attempts: vec![Attempt {
            at,
            url,
            outcome,
            status,
            address: None,
            detail: "as the test says".into(),
            conditional: outcome == AttemptOutcome::NotModified,
            elapsed_ms: 1,
        }],
        verdict,
    }
}

/// The content of a catalog's document at that URL.
fn walked(text: &str, url: &str) -> WalkedCatalog {
    let options = ReadOptions {
        depth: 0,
        most: usize::MAX,
        registries: true,
    };
    let base = url.parse().unwrap();
    let reading = read(text.as_bytes(), &base, options).unwrap();
    let guard = Guard::new(GuardConfig::default());
    let mut walk = CatalogWalk::new(&guard, &base);
    walk.take(&base, text.len(), reading);
    walk.end()
}

/// A card without a finding of severity error.
pub fn card(name: &str, about: &str) -> Vec<u8> {
    card_value(name, about).to_string().into_bytes()
}

fn card_value(name: &str, about: &str) -> Value {
    json!({
        "protocolVersion": "0.3.0",
        "name": name,
        "description": about,
        "url": "https://endpoint.example.net/a2a/v1",
        "preferredTransport": "JSONRPC",
        "version": "1.0.0",
        "provider": {"organization": "Test House", "url": "https://example.net/"},
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "answer",
            "name": "Answer questions",
            "description": "Answers questions about tests.",
            "tags": ["tests"]
        }]
    })
}

/// The same card with a signature of JWS form by that key; `random` replaces the bytes that differ with every signing.
pub fn signed(name: &str, about: &str, kid: &str, random: &str) -> Vec<u8> {
    let mut value = card_value(name, about);
    let header = json!({"alg": "ES256", "kid": kid}).to_string();
    value["signatures"] = json!([{
        "protected": BASE64URL_NOPAD.encode(header.as_ref()),
        "signature": BASE64URL_NOPAD.encode(random.as_ref()),
    }]);
    value.to_string().into_bytes()
}

/// The same content with its members in the opposite order, and other white space.
pub fn reordered(card: &[u8]) -> Vec<u8> {
    let Value::Object(members) = serde_json::from_slice(card).unwrap() else {
        panic!("a card is an object");
    };
    let mut lines: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("  {}: {value}", Value::from(name.as_str())))
        .collect();
    lines.reverse();
    format!("{{\n{}\n}}\n", lines.join(",\n")).into_bytes()
}
