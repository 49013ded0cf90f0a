//! Key sets named by signatures: fetched from the card's own origin, and from nowhere else.

use a2a_crawler::fetch::{FetchLimits, FetcherConfig, KeySetRules, MAX_KEY_SETS};
use a2a_crawler::{FetchTarget, ReferencedKeySet, SourceResult, SourceTask};
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use crate::support::{
    Authority, Canary, HOST, Request, ScriptedReply, Server, config, fetcher, fetcher_with,
    resolver,
};

const CARD: &str = "/card.json";

/// A card whose signatures name these key sets.
pub fn card(jkus: &[String]) -> String {
    let signatures: Vec<Value> = jkus
        .iter()
        .map(|jku| {
            let header = json!({"alg": "ES256", "kid": "k", "jku": jku}).to_string();
            json!({"protected": BASE64URL_NOPAD.encode(header.as_ref()), "signature": "AAAA"})
        })
        .collect();
    json!({"name": "Signed", "url": "https://a.example/", "signatures": signatures}).to_string()
}

/// A server whose card names key sets at the URLs that `jkus` makes from its own address, and that answers every other
/// path with `keys`.
async fn server(
    jkus: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    keys: ScriptedReply,
) -> Server {
    Server::start(move |request: &Request| {
        if request.path == CARD {
            let host = request.header("host").unwrap_or_default();
            ScriptedReply::json(card(&jkus(&format!("http://{host}"))))
        } else {
            keys.clone()
        }
    })
    .await
}

async fn key_sets(server: &Server) -> Vec<ReferencedKeySet> {
    let task = SourceTask {
        source_key: 1,
        target: FetchTarget::CardUrl {
            url: server.url(CARD),
        },
        validators: None,
        credential: None,
    };
    match fetcher().fetch_source(&task).await.result {
        SourceResult::Fetched(card) => card.key_sets,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn key_sets_of_the_cards_origin_are_fetched_once_each() {
    let named = |base: &str| {
        let mut jkus = vec![format!("{base}/keys"); 3];
        jkus.extend((0..MAX_KEY_SETS).map(|number| format!("{base}/keys/{number}")));
        jkus
    };
    let server = server(named, ScriptedReply::json(r#"{"keys": []}"#)).await;
    let sets = key_sets(&server).await;
    assert_eq!(sets.len(), MAX_KEY_SETS);
    assert_eq!(sets[0].url, server.url("/keys").as_str());
    for set in &sets {
        assert_eq!(set.result.as_deref(), Ok(br#"{"keys": []}"#.as_slice()));
    }
    assert_eq!(server.requests().len(), 1 + MAX_KEY_SETS);
}

#[tokio::test]
async fn nothing_is_sent_where_else_a_signature_points() {
    let canary = Canary::new();
    let elsewhere = canary.url().to_string();
    let pointer = elsewhere.clone();
    let server = server(move |_| vec![pointer.clone()], ScriptedReply::json("{}")).await;
    let sets = key_sets(&server).await;
    canary.assert_untouched();
    assert_eq!(sets[0].url, elsewhere);
    let why = sets[0].result.as_ref().unwrap_err();
    assert!(why.contains("is not on"), "{why}");
    for wrong in ["", "keys", "data:application/json,{}", "https://"] {
        let server = self::server(move |_| vec![wrong.to_owned()], ScriptedReply::json("{}")).await;
        assert!(key_sets(&server).await[0].result.is_err(), "{wrong}");
        assert_eq!(server.requests().len(), 1, "{wrong}");
    }
}

#[tokio::test]
async fn no_redirect_is_followed_and_no_huge_set_read() {
    let canary = Canary::new();
    let huge = "x".repeat(a2a_card::MAX_KEY_SET_BYTES + 1);
    for reply in [
        ScriptedReply::redirect(canary.url().as_str()),
        ScriptedReply::redirect("/other"),
        ScriptedReply::json(huge),
        ScriptedReply::new(404, "", ""),
        ScriptedReply::new(500, "", ""),
    ] {
        let server = server(|base| vec![format!("{base}/keys")], reply).await;
        let sets = key_sets(&server).await;
        assert!(sets[0].result.is_err(), "{sets:?}");
        assert_eq!(server.requests().len(), 2);
    }
    canary.assert_untouched();
    let most = "x".repeat(a2a_card::MAX_KEY_SET_BYTES);
    let server = server(
        |base| vec![format!("{base}/keys")],
        ScriptedReply::json(&most),
    )
    .await;
    assert_eq!(
        key_sets(&server).await[0].result.as_deref(),
        Ok(most.as_bytes())
    );
}

#[tokio::test]
async fn an_unsigned_card_asks_for_nothing_more() {
    let server = server(|_| Vec::new(), ScriptedReply::json("{}")).await;
    assert!(key_sets(&server).await.is_empty());
    assert_eq!(server.requests().len(), 1);
}

/// With a live DNS proof, another host of the domain is fetched from; without a proof, or on another customer's host of
/// a shared platform, nothing is sent.
#[tokio::test]
async fn a_dns_proof_and_the_operators_list_open_what_they_name() {
    let authority = Authority::new("keys");
    let (mut hits, mut foreign) = (Vec::new(), Vec::new());
    for (host, rules) in [
        ("keys.example.com", KeySetRules::default()),
        ("keys.example.com", proved()),
        ("keys.example.net", proved()),
        (
            "keys.example.net",
            KeySetRules {
                trusted_hosts: &["keys.example.net".to_owned()],
                ..KeySetRules::default()
            },
        ),
    ] {
        let resolver = resolver();
        let canary = Canary::new();
        resolver.set(host, [canary.at.ip()]);
        let fetcher = fetcher_with(
            FetcherConfig {
                extra_ca: vec![authority.pem()],
                ..config(FetchLimits::default())
            },
            resolver,
        );
        let jku = format!("https://{host}/keys");
        let body = card(std::slice::from_ref(&jku));
        let identity = authority.identity(HOST);
        let server = Server::with_tls(&identity, ScriptedReply::json(body)).await;
        let (_, verdict) = fetcher
            .fetch_card_and_keys(&server.url(CARD), None, &rules)
            .await;
        let SourceResult::Fetched(card) = verdict else {
            panic!("{verdict:?}")
        };
        // Even a host that the rules admit must pass the guard, which refuses its address.
        foreign.push(card.key_sets[0].is_foreign);
        let why = card.key_sets[0].result.clone().unwrap_err();
        hits.push(why.contains("loopback"));
        assert_ne!(why.contains("loopback"), why.contains("is not on"), "{why}");
        canary.assert_untouched();
    }
    assert_eq!(hits, [false, true, false, true]);
    // Another host of the domain is allowed once the domain is proved, so its key set does not count as foreign.
    assert_eq!(foreign, [false, false, true, false]);
}

const fn proved() -> KeySetRules<'static> {
    KeySetRules {
        dns_proved: true,
        trusted_hosts: &[],
    }
}
