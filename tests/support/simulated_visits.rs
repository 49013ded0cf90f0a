//! Simulated responses of origins: cards, and outcomes of visits that were never made.

use a2a_crawler::catalog::{
    CatalogCardEntry, CatalogContents, CatalogReadOptions, CatalogWalk, SkippedEntryList,
    parse_catalog,
};
use a2a_crawler::guard::{GuardConfig, SsrfGuard};
use a2a_crawler::{
    AttemptOutcome, FetchAttempt, FetchedCard, FetchedCatalog, Freshness, ReferencedKeySet,
    SourceOutcome, SourceResult, Validators,
};
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::source;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use time::OffsetDateTime;

/// A response of an origin.
#[derive(Debug, Clone)]
pub enum OriginResponse {
    /// 200 with these bytes.
    Card(Vec<u8>),
    /// 200 with these bytes, after a redirect to that URL.
    RedirectedCard(Vec<u8>, String),
    /// 200 with a catalog that names these cards, after a redirect to that URL.
    RedirectedCatalog(Vec<(String, String)>, String),
    /// 200 with these bytes, and the fetched key set that their signatures name.
    SignedCard(Vec<u8>, ReferencedKeySet),
    /// 200 with a catalog that names these cards, as identifier and URL, of which this extent was read.
    Catalog(Vec<(String, String)>, CatalogExtent),
    /// 200 with this document as the catalog.
    CatalogDocument(String),
    /// 304.
    NotModified,
    /// 429 with this `Retry-After` in seconds.
    RateLimited(u32),
    /// A failure.
    Failure(AttemptOutcome),
}

/// How much of a catalog could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogExtent {
    Complete,
    Partial,
}

/// The response for a catalog in tests about cards: missing, or unchanged.
fn catalog_response(source: &source::Model, answer: OriginResponse) -> OriginResponse {
    match answer {
        OriginResponse::Card(_)
        | OriginResponse::SignedCard(..)
        | OriginResponse::RedirectedCard(..) => OriginResponse::Failure(AttemptOutcome::NotFound),
        OriginResponse::NotModified if source.last_success_at.is_none() => {
            OriginResponse::Failure(AttemptOutcome::NotFound)
        }
        other => other,
    }
}

/// The URL of a source's card.
pub fn source_card_url(source: &source::Model) -> String {
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
pub fn fetch_outcome(
    source: &source::Model,
    answer: OriginResponse,
    at: OffsetDateTime,
) -> SourceOutcome {
    let answer = if source
        .kind
        .known_value()
        .is_some_and(SourceKind::is_catalog)
    {
        catalog_response(source, answer)
    } else {
        answer
    };
    let url = source_card_url(source);
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
        OriginResponse::Card(_)
        | OriginResponse::SignedCard(..)
        | OriginResponse::RedirectedCard(..) => (AttemptOutcome::Card, Some(200)),
        OriginResponse::Catalog(..)
        | OriginResponse::RedirectedCatalog(..)
        | OriginResponse::CatalogDocument(_) => (AttemptOutcome::Catalog, Some(200)),
        OriginResponse::NotModified => (AttemptOutcome::NotModified, Some(304)),
        OriginResponse::RateLimited(_) => (AttemptOutcome::Throttled, Some(429)),
        OriginResponse::Failure(outcome) => (*outcome, None),
    };
    let (answer, key_sets) = match answer {
        OriginResponse::SignedCard(bytes, keys) => (OriginResponse::Card(bytes), vec![keys]),
        other => (other, Vec::new()),
    };
    let (answer, answered) = match answer {
        OriginResponse::RedirectedCard(bytes, to) => (OriginResponse::Card(bytes), to),
        OriginResponse::RedirectedCatalog(cards, to) => {
            (OriginResponse::Catalog(cards, CatalogExtent::Complete), to)
        }
        other => (other, url.clone()),
    };
    let verdict = match answer {
        OriginResponse::RedirectedCard(..) | OriginResponse::RedirectedCatalog(..) => {
            unreachable!("taken apart above")
        }
        OriginResponse::Card(bytes) | OriginResponse::SignedCard(bytes, _) => {
            SourceResult::Fetched(Box::new(FetchedCard {
                url: answered,
                parsed: a2a_card::parse_card(&bytes).unwrap(),
                bytes,
                key_sets,
                over_tls: true,
                with_credential: false,
                freshness,
            }))
        }
        OriginResponse::Catalog(cards, read) => {
            let cards = cards.into_iter().map(|(identifier, url)| CatalogCardEntry {
                identifier,
                url: url.parse().unwrap(),
                updated_at: None,
                digest: None,
                inline_card: None,
            });
            SourceResult::Catalog(Box::new(FetchedCatalog {
                url: answered,
                entries: cards.collect(),
                registries: Vec::new(),
                skipped: SkippedEntryList::default(),
                is_complete: read == CatalogExtent::Complete,
                freshness,
            }))
        }
        OriginResponse::CatalogDocument(text) => {
            let walked = walk_catalog(&text, &answered);
            SourceResult::Catalog(Box::new(FetchedCatalog {
                url: answered,
                entries: walked.cards,
                registries: walked.registries,
                skipped: walked.skipped,
                is_complete: walked.is_complete,
                freshness,
            }))
        }
        OriginResponse::NotModified => SourceResult::NotModified(freshness),
        OriginResponse::RateLimited(seconds) => SourceResult::Failed {
            outcome: AttemptOutcome::Throttled,
            retry_after: Some(seconds),
        },
        OriginResponse::Failure(outcome) => SourceResult::Failed {
            outcome,
            retry_after: None,
        },
    };
    SourceOutcome {
        source_key: source.id,
        attempts: vec![FetchAttempt {
            started_at: at,
            url,
            outcome,
            status,
            address: None,
            detail: "as the test says".into(),
            is_conditional: outcome == AttemptOutcome::NotModified,
            elapsed_ms: 1,
        }],
        result: verdict,
    }
}

/// The contents of a catalog document at that URL.
fn walk_catalog(text: &str, url: &str) -> CatalogContents {
    let options = CatalogReadOptions {
        depth: 0,
        max_entries: usize::MAX,
        read_registries: true,
    };
    let base = url.parse().unwrap();
    let reading = parse_catalog(text.as_bytes(), &base, options).unwrap();
    let guard = SsrfGuard::new(GuardConfig::default());
    let mut walk = CatalogWalk::new(&guard, &base);
    walk.add_document(&base, text.len(), reading);
    walk.into_contents()
}

/// A card without a finding of severity error.
pub fn card_bytes(name: &str, about: &str) -> Vec<u8> {
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

/// The same card with a signature in the form of JWS by that key; `random` stands for the bytes that vary with each
/// signing.
pub fn signed_card_bytes(name: &str, about: &str, kid: &str, random: &str) -> Vec<u8> {
    let mut value = card_value(name, about);
    let header = json!({"alg": "ES256", "kid": kid}).to_string();
    value["signatures"] = json!([{
        "protected": BASE64URL_NOPAD.encode(header.as_ref()),
        "signature": BASE64URL_NOPAD.encode(random.as_ref()),
    }]);
    value.to_string().into_bytes()
}

/// The same content with its members in the opposite order, and other white space.
pub fn reorder_members(card: &[u8]) -> Vec<u8> {
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
