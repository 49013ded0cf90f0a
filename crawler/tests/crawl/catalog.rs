//! Fetches of catalogs: conditional requests, nested catalogs, limits, and the result of each response.

use std::net::IpAddr;
use std::sync::Arc;

use a2a_crawler::AttemptOutcome::{
    self, BadBody, BadStatus, Catalog, NotACatalog, NotFound, NotModified, Refused,
};
use a2a_crawler::catalog::{
    ARD_PATH, EntrySkipReason, MAX_CATALOG_BYTES, MAX_CATALOG_REQUESTS, MAX_DEPTH,
};
use a2a_crawler::fetch::{FetchLimits, Fetcher};
use a2a_crawler::foreign_text::MAX_SUMMARY;
use a2a_crawler::{
    FetchTarget, FetchedCatalog, SourceOutcome, SourceResult, SourceTask, Validators,
};
use serde_json::{Value, json};
use url::Url;

use crate::support::{
    Canary, FORBIDDEN, HOST, OPEN, Request, ScriptedReply, Server, config, fetcher, fetcher_with,
    resolver,
};

fn card(identifier: &str, url: &str) -> Value {
    json!({"identifier": identifier, "type": "application/a2a-agent-card+json", "url": url})
}

fn nested(url: &str) -> Value {
    json!({"identifier": "n", "type": "application/ai-catalog+json", "url": url})
}

fn document(entries: &[Value]) -> String {
    json!({"specVersion": "1.0", "entries": entries}).to_string()
}

async fn ask_with(fetcher: &Fetcher, url: Url, validators: Option<Validators>) -> SourceOutcome {
    let task = SourceTask {
        source_key: 7,
        target: FetchTarget::Catalog {
            url,
            read_registries: true,
        },
        validators,
        credential: None,
    };
    let outcome = fetcher.fetch_source(&task).await;
    for attempt in &outcome.attempts {
        let length = attempt.detail.chars().count();
        assert!((1..=MAX_SUMMARY).contains(&length), "{attempt:?}");
        assert!(!attempt.detail.chars().any(char::is_control), "{attempt:?}");
    }
    outcome
}

async fn ask(server: &Server) -> SourceOutcome {
    ask_with(&fetcher(), server.url(ARD_PATH), None).await
}

fn outcomes(outcome: &SourceOutcome) -> Vec<AttemptOutcome> {
    outcome.attempts.iter().map(|one| one.outcome).collect()
}

fn catalog(outcome: &SourceOutcome) -> &FetchedCatalog {
    match &outcome.result {
        SourceResult::Catalog(catalog) => catalog,
        other => panic!("{other:?}"),
    }
}

fn paths(catalog: &FetchedCatalog) -> Vec<&str> {
    catalog.entries.iter().map(|card| card.url.path()).collect()
}

fn last_detail(outcome: &SourceOutcome) -> &str {
    &outcome.attempts.last().unwrap().detail
}

#[tokio::test]
async fn a_catalog_names_cards_and_says_what_it_passes_over() {
    let entries = [
        card("a", "/cards/a.json"),
        card("b", "b.json"),
        card("far", "https://elsewhere.example/c.json"),
        json!({"identifier": "m", "type": "application/mcp-server-card+json", "url": "/m"}),
    ];
    let headers =
        "content-type: application/ai-catalog+json\r\netag: \"1\"\r\ncache-control: max-age=60\r\n";
    let server = Server::always(ScriptedReply::new(200, headers, document(&entries))).await;
    let outcome = ask(&server).await;
    assert_eq!(outcomes(&outcome), [Catalog]);
    let found = catalog(&outcome);
    assert_eq!(paths(found), ["/cards/a.json", "/.well-known/b.json"]);
    assert!(found.is_complete);
    assert_eq!(found.freshness.max_age, Some(60));
    let kept = found.freshness.validators.clone().unwrap();
    assert_eq!(kept.etag.as_deref(), Some("\"1\""));
    let detail = last_detail(&outcome);
    assert!(
        detail.contains("2 agents") && detail.contains("elsewhere.example"),
        "{detail}"
    );
    assert!(detail.contains("m is not an A2A agent card"), "{detail}");
    let request = &server.requests()[0];
    assert_eq!(
        request.header("accept"),
        Some("application/ai-catalog+json, application/json")
    );
    assert_eq!(request.header("a2a-version"), None);
}

/// A catalog that was registered by its URL is recognized by its content, and read as one of a well-known path is; older
/// ones state the media type of an entry as `mediaType`.
#[tokio::test]
async fn a_registered_url_may_be_that_of_a_catalog() {
    let server = Server::start(|request: &Request| match request.path.as_str() {
        "/lists/all.json" => ScriptedReply::new(
            200,
            "etag: \"1\"\r\n",
            document(&[
                card("a", "a.json"),
                json!({"identifier": "b", "mediaType": "application/a2a-agent-card+json", "url": "b.json"}),
                card("far", "https://elsewhere.example/c.json"),
                json!({"identifier": "m", "mediaType": "application/mcp-server-card+json", "url": "/m"}),
                json!({"identifier": "untyped", "url": "/u"}),
            ]),
        ),
        "/lists/nested.json" => ScriptedReply::json(document(&[nested("/lists/all.json")])),
        _ => ScriptedReply::new(404, "", ""),
    })
    .await;
    let ask = async |path: &str| {
        let slot = FetchTarget::RegisteredUrl {
            url: server.url(path),
            may_be_base: true,
        };
        let task = SourceTask {
            source_key: 7,
            target: slot,
            validators: None,
            credential: None,
        };
        fetcher().fetch_source(&task).await
    };
    let outcome = ask("/lists/all.json").await;
    assert_eq!(outcomes(&outcome), [Catalog]);
    assert_eq!(server.requests().len(), 1, "it is fetched once");
    assert_eq!(paths(catalog(&outcome)), ["/lists/a.json", "/lists/b.json"]);
    assert!(catalog(&outcome).freshness.validators.is_some());
    let detail = last_detail(&outcome);
    for told in [
        "2 agents",
        "https://elsewhere.example/c.json is not on the scheme, host and port",
        "untyped is not a complete entry",
        "m is not an A2A agent card",
    ] {
        assert!(detail.contains(told), "{told}: {detail}");
    }
    let outcome = ask("/lists/nested.json").await;
    assert_eq!(outcomes(&outcome), [Catalog, Catalog]);
    assert_eq!(catalog(&outcome).entries.len(), 2);
    assert_eq!(catalog(&outcome).freshness.validators, None);
}

#[tokio::test]
async fn it_is_asked_for_conditionally() {
    let server = Server::start(|request: &Request| {
        if request.header("if-none-match") == Some("\"1\"") {
            ScriptedReply::new(304, "etag: \"1\"\r\n", "")
        } else {
            ScriptedReply::new(200, "etag: \"1\"\r\n", document(&[card("a", "/a")]))
        }
    })
    .await;
    let first = ask(&server).await;
    let kept = catalog(&first).freshness.validators.clone();
    let again = ask_with(&fetcher(), server.url(ARD_PATH), kept.clone()).await;
    assert_eq!(outcomes(&again), [NotModified]);
    // A validator of another URL is not sent to this one.
    let other = ask_with(&fetcher(), server.url("/.well-known/ai-catalog.json"), kept).await;
    assert_eq!(outcomes(&other), [Catalog]);
}

#[tokio::test]
async fn what_is_no_catalog_is_told_from_what_is_not_there() {
    for (reply, expected) in [
        (ScriptedReply::new(404, "", ""), NotFound),
        (ScriptedReply::new(500, "", ""), BadStatus),
        (
            ScriptedReply::new(
                200,
                "content-type: text/html\r\n",
                "<!doctype html><p>Hello",
            ),
            NotACatalog,
        ),
        (ScriptedReply::json(r#"{"name": "a card"}"#), NotACatalog),
        (
            ScriptedReply::json(r#"{"specVersion": "2.0", "entries": []}"#),
            NotACatalog,
        ),
        (ScriptedReply::json(""), NotACatalog),
    ] {
        let server = Server::always(reply).await;
        let outcome = ask(&server).await;
        assert_eq!(outcomes(&outcome), [expected]);
        assert!(
            matches!(outcome.result, SourceResult::Failed { outcome, .. } if outcome == expected)
        );
        assert!(last_detail(&outcome).contains("catalog") || expected == BadStatus);
    }
}

/// Every `/N` is a catalog that names the catalog `/N+1` and a card.
fn chain(request: &Request) -> ScriptedReply {
    let number: usize = request.path.trim_start_matches('/').parse().unwrap_or(0);
    let next = number + 1;
    ScriptedReply::new(
        200,
        "etag: \"1\"\r\n",
        document(&[
            nested(&format!("/{next}")),
            card(&format!("c{number}"), &format!("/c{number}")),
        ]),
    )
}

#[tokio::test]
async fn nesting_is_followed_to_the_depth_of_four() {
    let server = Server::start(chain).await;
    let outcome = ask(&server).await;
    assert_eq!(outcomes(&outcome), [Catalog; MAX_DEPTH + 1]);
    let found = catalog(&outcome);
    assert_eq!(paths(found), ["/c0", "/c1", "/c2", "/c3", "/c4"]);
    assert_eq!(found.skipped.entries[0].reason, EntrySkipReason::TooDeep);
    assert_eq!(
        found.freshness.validators, None,
        "a 304 would hide what the others say"
    );
    assert!(
        last_detail(&outcome).contains("5 agents"),
        "{}",
        last_detail(&outcome)
    );
}

#[tokio::test]
async fn a_loop_ends_and_requests_are_bounded() {
    let server = Server::start(|request: &Request| {
        let entries: Vec<Value> = match request.path.as_str() {
            "/x" => vec![nested("/x"), nested(ARD_PATH), card("x", "/x.json")],
            _ => vec![nested("/x"), nested("/%78")],
        };
        ScriptedReply::json(document(&entries))
    })
    .await;
    let outcome = ask(&server).await;
    assert_eq!(outcomes(&outcome), [Catalog, Catalog]);
    assert_eq!(paths(catalog(&outcome)), ["/x.json"]);

    let wide: Vec<Value> = (0..20).map(|n| nested(&format!("/{n}"))).collect();
    let server = Server::start(move |request: &Request| {
        let root = request.path == ARD_PATH;
        ScriptedReply::json(document(if root { &wide } else { &[] }))
    })
    .await;
    let outcome = ask(&server).await;
    assert_eq!(server.requests().len(), MAX_CATALOG_REQUESTS);
    assert!(!catalog(&outcome).is_complete);
}

#[tokio::test]
async fn bytes_are_bounded_over_all_documents() {
    let half = MAX_CATALOG_BYTES / 2;
    let server = Server::start(move |request: &Request| {
        let entries: Vec<Value> = match request.path.as_str() {
            ARD_PATH => (0..4).map(|n| nested(&format!("/{n}"))).collect(),
            path => vec![card(path, "/card.json")],
        };
        let mut text = document(&entries);
        text.push_str(&" ".repeat(half - text.len()));
        ScriptedReply::json(text)
    })
    .await;
    let limits = FetchLimits {
        body_bytes: MAX_CATALOG_BYTES,
        ..FetchLimits::default()
    };
    let generous = fetcher_with(config(limits), resolver());
    let outcome = ask_with(&generous, server.url(ARD_PATH), None).await;
    assert_eq!(
        server.requests().len(),
        2,
        "what two documents fill is full"
    );
    assert_eq!(catalog(&outcome).entries.len(), 1);
    assert!(!catalog(&outcome).is_complete);

    // A single document has the same size limit as every other response.
    let outcome = ask(&Server::always(ScriptedReply::json(" ".repeat(half + 1))).await).await;
    assert_eq!(outcomes(&outcome), [BadBody]);
}

#[tokio::test]
async fn a_nested_catalog_that_fails_leaves_the_rest_and_says_that_it_is_not_all() {
    let server = Server::start(|request: &Request| match request.path.as_str() {
        "/broken" => ScriptedReply::new(503, "", ""),
        "/fine" => ScriptedReply::json(document(&[card("b", "/b")])),
        _ => ScriptedReply::json(document(&[
            nested("/broken"),
            nested("/fine"),
            card("a", "/a"),
        ])),
    })
    .await;
    let outcome = ask(&server).await;
    assert_eq!(outcomes(&outcome), [Catalog, BadStatus, Catalog]);
    assert_eq!(paths(catalog(&outcome)), ["/a", "/b"]);
    assert!(!catalog(&outcome).is_complete);
}

/// A catalog cannot lead the crawler to a target that is refused for a card.
#[tokio::test]
async fn nested_catalogs_pass_the_guard() {
    let canary = Canary::new();
    let names = resolver();
    names.set("inner.example.com", [IpAddr::V4(FORBIDDEN)]);
    names.set("fine.example.com", [IpAddr::V4(OPEN)]);
    names.set("stranger.test.net", [IpAddr::V4(OPEN)]);
    let port = canary.at.port();
    let server = Server::start(move |request: &Request| {
        let host = request.header("host").unwrap_or_default();
        if !host.starts_with(HOST) {
            return ScriptedReply::json(document(&[card("theirs", "/theirs.json")]));
        }
        let own = host.rsplit(':').next().unwrap();
        ScriptedReply::json(document(&[
            nested(&format!("http://inner.example.com:{port}/c")),
            nested(&format!("http://127.0.0.2:{port}/c")),
            nested(&format!("http://stranger.test.net:{own}/c")),
            nested(&format!("http://fine.example.com:{own}/c")),
        ]))
    })
    .await;
    let fetcher = fetcher_with(config(FetchLimits::default()), Arc::clone(&names) as _);
    let outcome = ask_with(&fetcher, server.url(ARD_PATH), None).await;
    canary.assert_untouched();
    assert_eq!(outcomes(&outcome), [Catalog, Refused, Catalog]);
    let hosts: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.header("host").unwrap().to_owned())
        .collect();
    assert!(hosts[1].starts_with("fine.example.com"), "{hosts:?}");
    // A catalog on a sister host is read; the cards it names lie on that host, and need a registration of their own.
    assert_eq!(catalog(&outcome).entries, []);
}

#[tokio::test]
async fn a_card_inside_a_catalog_is_read_from_its_document() {
    let inside = |data: Value| json!({"identifier": "in", "type": "application/a2a-agent-card+json", "data": data});
    let card_of = async |entries: &[Value]| {
        let server = Server::always(ScriptedReply::new(200, "", document(entries))).await;
        let mut url = server.url(ARD_PATH);
        url.set_fragment(Some("in"));
        let task = SourceTask {
            source_key: 7,
            target: FetchTarget::InlineCard {
                url,
                identifier: "in".to_owned(),
            },
            validators: None,
            credential: None,
        };
        let outcome = fetcher().fetch_source(&task).await;
        assert_eq!(server.requests().len(), 1);
        outcome
    };
    let found = card_of(&[card("other", "/x"), inside(json!({"name": "Inline"}))]).await;
    let SourceResult::Fetched(fetched) = &found.result else {
        panic!("{found:?}");
    };
    assert_eq!(fetched.bytes, br#"{"name":"Inline"}"#);
    assert!(fetched.url.ends_with("/ard.json#in"), "{}", fetched.url);
    for (entries, expected) in [
        (vec![], NotFound),
        (vec![card("in", "/x")], NotFound),
        (vec![inside(json!("no card"))], AttemptOutcome::NotACard),
    ] {
        assert_eq!(outcomes(&card_of(&entries).await), [expected]);
    }
}
