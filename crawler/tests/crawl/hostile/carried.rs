//! Input 131: a card that carries any of the inputs 1 to 107. Its URLs are those of 1 to 84. Name servers (85 to 94)
//! and redirects (95 to 107) matter only for the one URL of a card that is ever fetched, its key set's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use a2a_crawler::fetch::FetchLimits;
use a2a_crawler::{FetchTarget, ReferencedKeySet, SourceResult, SourceTask};
use data_encoding::BASE64URL_NOPAD;
use serde_json::json;
use url::Url;

use super::mutation::Seed;
use super::setup::FetchSetup;
use super::{
    HOME, MANY, answers, canary, config, in_time, redirects, serve, serve_beside_canary, short,
    urls,
};
use crate::support::{HOST, NameServer, Request, ScriptedReply, Server, Zone};

/// The number of this input, which combines all the others.
pub const NUMBER: u8 = 131;

/// A card with this URL in every place where a card has a URL that software may fetch.
fn carrier(url: &str) -> String {
    let header = json!({"alg": "ES256", "kid": "k", "jku": url}).to_string();
    json!({
        "name": "x",
        "url": url,
        "iconUrl": url,
        "documentationUrl": url,
        "provider": {"organization": "x", "url": url},
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": {
            "a": {"type": "openIdConnect", "openIdConnectUrl": url},
            "b": {"type": "oauth2", "oauth2MetadataUrl": url, "flows": {
                "clientCredentials": {"tokenUrl": url, "scopes": {}},
                "authorizationCode": {"tokenUrl": url, "authorizationUrl": url, "refreshUrl": url, "scopes": {}},
            }},
        },
        "signatures": [{"protected": BASE64URL_NOPAD.encode(header.as_ref()), "signature": "AAAA"}],
    })
    .to_string()
}

/// The URLs of inputs 1 to 84, as they are and as targets of redirects.
fn carried(port: u16) -> impl Iterator<Item = (u8, String)> {
    urls::cases()
        .into_iter()
        .map(move |case| (case.number, case.at(port)))
}

async fn carries(world: &FetchSetup, number: u8, url: &str) {
    let body = carrier(url);
    let server = serve(move |_| ScriptedReply::json(&body).then_close()).await;
    let (attempt, verdict) = world.ask(&server.url_of(HOST, "/card"), url).await;
    let SourceResult::Fetched(card) = verdict else {
        panic!("input {number}: {attempt:?}");
    };
    for set in &card.key_sets {
        assert!(set.result.is_err(), "input {number}: {set:?}");
    }
    assert_eq!(server.requests().len(), 1, "input {number}: {url}");
}

/// Of all the URLs of a card, only a key set's is ever fetched, and only from the card's own origin.
#[tokio::test]
async fn urls_inside_a_card_are_not_asked() {
    let canary = canary();
    let world = FetchSetup::trap().await;
    for (number, url) in carried(canary.at.port()) {
        carries(&world, number, &url).await;
    }
    canary.assert_untouched();
}

/// Serves at `/card` a card with a key set on its own origin, and at every other path the reply that `key_set` makes
/// from the server's port.
async fn with_key_set(key_set: impl Fn(u16) -> ScriptedReply + Send + Sync + 'static) -> Server {
    serve(move |request: &Request| {
        let host = request.header("host").unwrap();
        match request.path.as_str() {
            "/card" => ScriptedReply::json(carrier(&format!("http://{host}/keys"))),
            _ => key_set(host.rsplit(':').next().unwrap().parse().unwrap()),
        }
        // Closed, so that the key set needs a connection, and a DNS query, of its own.
        .then_close()
    })
    .await
}

/// Reads the card at this URL, and returns its one key set.
async fn key_set(world: &FetchSetup, url: Url, what: &str) -> ReferencedKeySet {
    let task = SourceTask {
        source_key: 1,
        target: FetchTarget::CardUrl { url },
        validators: None,
        credential: None,
    };
    let visit = in_time(what, world.fetcher.fetch_source(&task)).await;
    let SourceResult::Fetched(mut card) = visit.result else {
        panic!("{what}: no card");
    };
    assert_eq!(card.key_sets.len(), 1, "{what}");
    card.key_sets.remove(0)
}

/// A key set on the card's own origin whose reply refers to any of the URLs.
#[tokio::test]
async fn a_key_set_leads_nowhere() {
    let canary = canary();
    for (number, url) in carried(canary.at.port()) {
        let server = with_key_set(move |_| ScriptedReply::redirect(&url)).await;
        let world = FetchSetup::trap().await;
        let what = format!("input {number}");
        let set = key_set(&world, server.url_of(HOST, "/card"), &what).await;
        assert!(set.result.is_err(), "{what}: {set:?}");
        assert_eq!(server.requests().len(), 2, "{what}");
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn no_redirect_of_a_key_set_is_followed() {
    let canary = Arc::new(canary());
    for case in redirects::cases() {
        let what = format!("input {}", case.number);
        // A page with a refresh tag is a valid response, which contains no keys.
        let page = case.number == 105;
        let at = Arc::clone(&canary);
        let server = with_key_set(move |port| ScriptedReply::raw(case.bytes(&at, port))).await;
        let world = FetchSetup::trap().await;
        let set = key_set(&world, server.url_of(HOST, "/card"), &what).await;
        assert!(set.result.is_err() || page, "{what}: {set:?}");
        assert_eq!(server.requests().len(), 2, "{what}");
    }
    canary.assert_untouched();
}

/// A name server that starts to lie once the card is requested.
#[tokio::test]
async fn no_answer_leads_a_key_set_to_a_forbidden_address() {
    for case in answers::cases() {
        let what = format!("input {}, {}", case.number, case.name);
        let script = case.script;
        let lying = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&lying);
        let names = NameServer::start(move |name, kind| {
            if begun.load(Ordering::Relaxed) {
                script(name, kind, 1)
            } else {
                Some(Zone::now(kind, &[HOME.into()]))
            }
        })
        .await;
        let (server, canary) = serve_beside_canary(move |request| {
            lying.store(true, Ordering::Relaxed);
            let host = request.header("host").unwrap();
            ScriptedReply::json(carrier(&format!("http://{host}/keys"))).then_close()
        })
        .await;
        // The timeout fits both cases: a silent server is waited for, and the first response has time enough.
        let limits = FetchLimits {
            dns: 10 * short().dns,
            ..FetchLimits::default()
        };
        let world = FetchSetup::new(names, config(limits));
        let set = key_set(&world, server.url_of("names.example.com", "/card"), &what).await;
        assert!(set.result.is_err(), "{what}: {set:?}");
        assert_eq!(server.requests().len(), 1, "{what}");
        canary.assert_untouched();
    }
}

async fn mutated(rounds: usize) {
    let canary = canary();
    let world = FetchSetup::trap().await;
    for (number, url) in carried(canary.at.port()) {
        for round in 0..rounds {
            let url = Seed::new(number, round).mutate_text(&url);
            carries(&world, number, &url).await;
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn mutated_urls_inside_a_card_are_not_asked() {
    mutated(1).await;
}

#[tokio::test]
#[ignore = "the longer run, see the module"]
async fn many_mutated_urls_inside_a_card_are_not_asked() {
    mutated(MANY / 4).await;
}
