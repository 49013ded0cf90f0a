//! The four ARD operations: their parameters, their responses, and their callers.

use std::collections::BTreeMap;

use a2a_registry_api::NewToken;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Config;
use reqwest::Method;
use reqwest::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use serde_json::{Value, json};

use super::{AGENTS, ArdRegistry, Audience, TestCaller, domain, identifiers, urn};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::exchange::ValidatingProxy;

both_databases!(
    lists_and_counts_are_what_each_caller_sees,
    a_curator_accepts_derived_queries_for_one_agent
);

/// A failure in ARD's form, and nothing else.
async fn refused(
    registry: &ArdRegistry,
    who: &TestCaller,
    method: Method,
    path: &str,
    body: Option<&Value>,
    status: u16,
) {
    let code = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        404 => "NOT_FOUND",
        other => panic!("{other}"),
    };
    let answer = registry.ask(who, method, path, body).await;
    assert_eq!(answer.status, status, "{path} {body:?}: {}", answer.text());
    assert_eq!(answer.headers[CONTENT_TYPE], "application/json");
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    let members = error.as_object().unwrap();
    assert_eq!(members.len(), 2, "{error}");
    assert_eq!(error["errorCode"], code, "{path} {body:?}: {error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
}

fn escaped(identifier: &str) -> String {
    format!("/ard/agents/{}", identifier.replace(':', "%3A"))
}

async fn lists_and_counts_are_what_each_caller_sees(url: &str) {
    let registry = ArdRegistry::new(url).await;
    for who in &registry.identities {
        let visible = registry.visible(who);
        // All of them, by identifier, in pages.
        let mut listed = Vec::new();
        let mut token = String::new();
        loop {
            let page = registry
                .get(who, &format!("/ard/agents?pageSize=4{token}"))
                .await;
            assert_eq!(page["total"], visible.len(), "{}", who.name);
            listed.extend(identifiers(&page["items"]));
            match page.get("pageToken") {
                Some(next) => token = format!("&pageToken={}", next.as_str().unwrap()),
                None => break,
            }
        }
        assert_eq!(listed, visible, "{}", who.name);
        // The sums of facets are those of what is listed, as each entry says it.
        let mut counts: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for identifier in &listed {
            let entry = registry.get(who, &escaped(identifier)).await;
            for field in ["tags", "capabilities", "version"] {
                let values = match &entry[field] {
                    Value::Array(all) => all.clone(),
                    Value::Null => Vec::new(),
                    one => vec![one.clone()],
                };
                for value in values {
                    *counts
                        .entry(field)
                        .or_default()
                        .entry(value.as_str().unwrap().into())
                        .or_default() += 1;
                }
            }
            let streaming = entry["metadata"]["a2aStreaming"].to_string();
            *counts
                .entry("metadata.a2aStreaming")
                .or_default()
                .entry(streaming)
                .or_default() += 1;
            let trusted = entry["trustManifest"]["identity"]
                .as_str()
                .unwrap()
                .to_owned();
            *counts
                .entry("trustManifest.identity")
                .or_default()
                .entry(trusted)
                .or_default() += 1;
        }
        let fields: Vec<Value> = counts
            .keys()
            .map(|field| json!({"field": field, "limit": 1000}))
            .collect();
        let explored = registry
            .post(
                who,
                "/ard/explore",
                &json!({"resultType": {"facets": fields}}),
            )
            .await;
        for (field, expected) in &counts {
            let facet = &explored["facets"][field];
            let buckets = facet["buckets"].as_array().unwrap().iter();
            let found: BTreeMap<String, u64> = buckets
                .map(|one| {
                    (
                        one["value"].as_str().unwrap().to_owned(),
                        one["count"].as_u64().unwrap(),
                    )
                })
                .collect();
            assert_eq!(found, *expected, "{field} of {}", who.name);
            assert_eq!(facet["otherCount"], 0);
        }
        // What the caller may not see is answered like what does not exist, byte for byte.
        let nothing = registry
            .ask(
                who,
                Method::GET,
                &escaped("urn:air:d99.agents-test.com:agents:no"),
                None,
            )
            .await;
        for number in 0..AGENTS.len() {
            let answer = registry
                .ask(who, Method::GET, &escaped(&urn(number)), None)
                .await;
            if visible.contains(&urn(number)) {
                assert_eq!(answer.expect_status(200)["identifier"], urn(number));
            } else {
                assert_eq!(
                    (answer.status.as_u16(), &answer.body),
                    (404, &nothing.body),
                    "{}",
                    who.name
                );
            }
        }
    }
    registry.stop().await;
}

/// The representative queries of an entry in the catalog, which are those by its identifier.
async fn representative_queries(registry: &ArdRegistry, number: usize) -> Value {
    let who = registry.anonymous();
    let entry = registry.get(who, &escaped(&urn(number))).await;
    let catalog = registry.get(who, "/.well-known/ard.json").await;
    let mut listed = catalog["entries"].as_array().unwrap().iter();
    let listed = listed.find(|one| one["identifier"] == urn(number)).unwrap();
    assert_eq!(
        listed["representativeQueries"],
        entry["representativeQueries"]
    );
    entry["representativeQueries"].clone()
}

async fn a_curator_accepts_derived_queries_for_one_agent(url: &str) {
    let registry = ArdRegistry::new(url).await;
    let stage = &registry.inner;
    let owner = NewToken {
        account: "orchard".into(),
        name: "a second test".into(),
        ..NewToken::default()
    };
    let owner = token_create(&stage.app, &stage.admin, &owner).await;
    let owner = TestCaller {
        name: "owner",
        token: Some(owner.unwrap().secret),
    };
    let path = format!("/v1/agents/{}", stage.agent(&domain(8)).await.id);
    let change = async |who: &TestCaller, accepted: bool| {
        let body = json!({"derived_queries": accepted});
        registry.ask(who, Method::PATCH, &path, Some(&body)).await
    };
    assert_eq!(change(&owner, true).await.status, 403);
    assert_eq!(representative_queries(&registry, 8).await, Value::Null);
    let agent = change(registry.curator(), true).await.expect_status(200);
    assert_eq!(agent["derived_queries"], true);
    assert_eq!(
        representative_queries(&registry, 8).await,
        json!([
            "Example 0 of Iota Parcels?",
            "Which agent offers parcel tracking 0?",
            "Which agent does this: Does parcel tracking in way 0?",
        ])
    );
    assert_eq!(
        representative_queries(&registry, 9).await,
        Value::Null,
        "another agent"
    );
    let agent = change(registry.curator(), false).await.expect_status(200);
    assert_eq!(agent["derived_queries"], false);
    assert_eq!(representative_queries(&registry, 8).await, Value::Null);
    registry.stop().await;
}

#[tokio::test]
async fn a_setting_derives_queries_for_every_agent() {
    let database = Database::sqlite();
    let configure = |config: &mut Config| config.ard.derive_queries = true;
    let registry =
        ArdRegistry::with(database.url(), ValidatingProxy::new().await, "d", configure).await;
    let catalog = registry
        .get(registry.anonymous(), "/.well-known/ard.json")
        .await;
    let entries = catalog["entries"].as_array().unwrap();
    assert!(entries.len() > 5, "{catalog}");
    for entry in entries {
        let queries = entry["representativeQueries"].as_array();
        let fits = queries.is_some_and(|queries| (2..=5).contains(&queries.len()));
        assert!(fits, "{entry}");
    }
    registry.stop().await;
}

#[tokio::test]
async fn an_entry_says_what_the_card_says_and_what_was_verified() {
    let database = Database::sqlite();
    let registry = ArdRegistry::new(database.url()).await;
    let who = registry.anonymous();
    let entry = registry.get(who, &escaped(&urn(0))).await;
    let domain = domain(0);
    assert_eq!(entry["displayName"], "Alpha Parcels");
    assert_eq!(entry["type"], "application/a2a-agent-card+json");
    assert_eq!(entry["tags"], json!(["logistics", "parcels"]));
    assert_eq!(
        entry["capabilities"],
        json!(["skill-0", "skill-1", "skill-2", "skill-3", "skill-4"])
    );
    assert_eq!(entry["representativeQueries"].as_array().unwrap().len(), 5);
    assert_eq!(
        entry["publisher"],
        json!({"identifier": format!("did:web:{domain}"), "displayName": "Orchard"})
    );
    assert_eq!(
        entry["trustManifest"],
        json!({"identity": format!("did:web:{domain}"), "identityType": "did"})
    );
    assert_eq!(entry["metadata"]["a2aProtocolVersion"], "0.3");
    assert_eq!(entry["metadata"]["a2aTransports"], "JSONRPC");
    assert_eq!(entry["metadata"]["lifecycle"], "approved");
    assert!(entry.get("score").is_none() && entry.get("source").is_none());
    // One example is no question; the schema of ARD 0.9 refuses fewer than two.
    let few = registry.get(who, &escaped(&urn(8))).await;
    assert!(few.get("representativeQueries").is_none(), "{few}");
    // The URL leads to the approved bytes, whose digest is the entry's.
    let url = entry["url"].as_str().unwrap();
    let path = url.strip_prefix(&registry.api.url).unwrap();
    let card = registry.ask(who, Method::GET, path, None).await;
    assert_eq!(
        card.headers[CONTENT_TYPE],
        "application/a2a-agent-card+json"
    );
    let digest = ring::digest::digest(&ring::digest::SHA256, &card.body);
    let digest = data_encoding::HEXLOWER.encode(digest.as_ref());
    assert_eq!(entry["digest"], format!("sha256:{digest}"));
    // No entry of an agent whose domain is not proved.
    let body = json!({"query": {"text": "omikron"}});
    let found = registry
        .post(registry.curator(), "/ard/search", &body)
        .await;
    assert_eq!(found, json!({"results": []}));
    registry.stop().await;
}

#[tokio::test]
async fn filters_and_orders_are_those_of_the_standard() {
    let database = Database::sqlite();
    let registry = ArdRegistry::new(database.url()).await;
    let who = registry.curator();
    let found = async |filter: Value, context: Value| {
        let mut query = json!({"text": "parcel tracking", "filter": filter});
        if !context.is_null() {
            query["@context"] = context;
        }
        let body = json!({"query": query, "pageSize": 100});
        let mut found = identifiers(&registry.post(who, "/ard/search", &body).await["results"]);
        found.sort_unstable();
        found
    };
    let of = |wanted: &dyn Fn(usize) -> bool| {
        let seen = |number: &usize| AGENTS[*number].1 != Audience::Nobody && AGENTS[*number].3 > 0;
        let mut urns: Vec<String> = (0..AGENTS.len())
            .filter(seen)
            .filter(|number| wanted(*number))
            .map(urn)
            .collect();
        urns.sort_unstable();
        urns
    };
    let tagged = |tag: &'static str| {
        move |number: usize| AGENTS[number].2.iter().any(|one| one.to_lowercase() == tag)
    };
    let none = Value::Null;
    for (filter, context, expected) in [
        (json!({}), none.clone(), of(&|_| true)),
        (
            json!({"tags": ["logistics"]}),
            none.clone(),
            of(&tagged("logistics")),
        ),
        (
            json!({"tags": "parcels"}),
            none.clone(),
            of(&tagged("parcels")),
        ),
        // Compared exactly: an entry's tags are in lower case.
        (json!({"tags": "Parcels"}), none.clone(), Vec::new()),
        (
            json!({"tags": ["parcels", "internal"]}),
            none.clone(),
            of(&|number| tagged("parcels")(number) || tagged("internal")(number)),
        ),
        (
            json!({"tags": "logistics", "capabilities": "skill-4"}),
            none.clone(),
            of(&|number| tagged("logistics")(number) && AGENTS[number].3 > 4),
        ),
        (
            json!({"publisher": [domain(3)]}),
            none.clone(),
            of(&|number| number == 3),
        ),
        (
            json!({"identifier": urn(5)}),
            none.clone(),
            of(&|number| number == 5),
        ),
        (
            json!({"displayName": "Beta Parcels"}),
            none.clone(),
            of(&|number| number == 1),
        ),
        (
            json!({"displayName": "beta parcels"}),
            none.clone(),
            Vec::new(),
        ),
        (
            json!({"version": ["1.7.0", "1.8.0"]}),
            none.clone(),
            of(&|number| number == 7 || number == 8),
        ),
        (
            json!({"type": "Application/A2A-Agent-Card+JSON"}),
            none.clone(),
            of(&|_| true),
        ),
        (
            json!({"type": ["application/mcp-server-card+json"]}),
            none.clone(),
            Vec::new(),
        ),
        (
            json!({"metadata.a2aStreaming": "true"}),
            none.clone(),
            of(&|number| number.is_multiple_of(2)),
        ),
        (
            json!({"trustManifest.identity": format!("did:web:{}", domain(0))}),
            none.clone(),
            of(&|number| number == 0),
        ),
        (json!({"data.anything": "x"}), none.clone(), Vec::new()),
        (
            json!({"o:tags": "logistics"}),
            json!({"o": "https://agenticresourcediscovery.org/ns#"}),
            of(&tagged("logistics")),
        ),
    ] {
        assert_eq!(found(filter.clone(), context).await, expected, "{filter}");
    }
    // Filters of lists, and their orders.
    for (query, expected) in [
        ("filter=displayName%3D'beta%20parcels'", vec![urn(1)]),
        ("filter=displayName%3Dbeta%20AND%20type%3Dx", vec![]),
        (
            "filter=publisherId%3Dd00.agents-test.com,d03.agents-test.com",
            vec![urn(0), urn(3)],
        ),
        ("orderBy=displayName&pageSize=2", vec![urn(0), urn(1)]),
        ("orderBy=name%20DESC&pageSize=2", vec![urn(5), urn(13)]),
        (
            "orderBy=createdAt%20DESC&pageSize=2",
            vec![urn(13), urn(12)],
        ),
        ("orderBy=updatedAt,displayName&pageSize=1", vec![urn(0)]),
        ("filter=createdAfter%3E2999-01-01", vec![]),
    ] {
        let page = registry.get(who, &format!("/ard/agents?{query}")).await;
        assert_eq!(identifiers(&page["items"]), expected, "{query}");
    }
    // A collection holds what is its own, and is none to those who do not see it.
    let inside = registry.get(who, "/ard/c/inside/agents").await;
    assert_eq!(identifiers(&inside["items"]), [urn(4), urn(11)]);
    let body = json!({"query": {"text": "weather"}});
    let found = registry.post(who, "/ard/c/inside/search", &body).await;
    assert_eq!(identifiers(&found["results"]), [urn(11)]);
    assert!(
        found["results"][0]["source"]
            .as_str()
            .unwrap()
            .ends_with("/ard/c/inside")
    );
    let anonymous = registry.anonymous();
    let hidden = registry
        .ask(anonymous, Method::GET, "/ard/c/inside/agents", None)
        .await;
    let missing = registry
        .ask(anonymous, Method::GET, "/ard/c/nosuch/agents", None)
        .await;
    assert_eq!((hidden.status.as_u16(), &hidden.body), (404, &missing.body));
    registry.get(anonymous, "/ard/c/freight/agents").await;
    refused(
        &registry,
        anonymous,
        Method::GET,
        "/ard/c/freight/agents/urn%3Aair%3Ad03.agents-test.com%3Aagents%3Adelta-parcels",
        None,
        404,
    )
    .await;
    registry.stop().await;
}

#[tokio::test]
async fn what_the_standard_forbids_is_refused_in_its_words() {
    let database = Database::sqlite();
    let registry = ArdRegistry::new(database.url()).await;
    let who = registry.anonymous();
    let search = |body: Value| (Method::POST, "/ard/search".to_owned(), Some(body));
    let text = json!({"text": "parcel"});
    for (method, path, body) in [
        search(json!({})),
        search(json!({"query": {}})),
        search(json!({"query": {"text": " "}})),
        search(json!({"query": {"text": 7}})),
        search(json!({"query": text, "sort": "name"})),
        search(json!({"query": {"text": "x", "words": "y"}})),
        search(json!({"query": text, "pageSize": 0})),
        search(json!({"query": text, "pageSize": "10"})),
        search(json!({"query": text, "federation": "everything"})),
        search(json!({"query": text, "pageToken": "forged"})),
        search(json!({"query": {"text": "x", "filter": {"tags": []}}})),
        search(json!({"query": {"text": "x", "filter": {"tags": 7}}})),
        search(json!({"query": {"text": "x", "filter": {"tags": [true]}}})),
        search(json!({"query": {"text": "x", "filter": {"colour": "red"}}})),
        search(json!({"query": {"text": "x", "filter": {"x:tags": "red"}}})),
        search(json!({"query": {"text": "x".repeat(513)}})),
        search(json!({"query": text, "federation": 5})),
        // One value is left for the condition that asks for entries.
        search(json!({"query": {"text": "x", "filter": {"tags": vec!["t"; 256]}}})),
        (
            Method::GET,
            format!("/ard/agents?filter=displayName%3D{}a", "a,".repeat(255)),
            None,
        ),
        (
            Method::POST,
            "/ard/explore".into(),
            Some(json!({"resultType": {"facets": []}})),
        ),
        (
            Method::POST,
            "/ard/explore".into(),
            Some(json!({"query": text})),
        ),
        (
            Method::POST,
            "/ard/explore".into(),
            Some(json!({"resultType": {"facets": [{"field": "identifier"}]}})),
        ),
        (
            Method::POST,
            "/ard/explore".into(),
            Some(json!({"resultType": {"facets": [{"field": "tags", "limit": 1001}]}})),
        ),
        (
            Method::POST,
            "/ard/explore".into(),
            Some(json!({"resultType": {"facets": [{"field": "tags", "order": "x"}]}})),
        ),
        (Method::GET, "/ard/agents?pageSize=0".into(), None),
        (Method::GET, "/ard/agents?orderBy=relevance".into(), None),
        (Method::GET, "/ard/agents?filter=colour%3Dred".into(), None),
        (Method::GET, "/ard/agents?colour=red".into(), None),
        (Method::GET, "/ard/agents/word".into(), None),
        (
            Method::GET,
            "/ard/agents/urn%3Aai%3Ad00.agents-test.com%3Ax".into(),
            None,
        ),
        (
            Method::GET,
            format!("/ard/agents/{}", urn(0).replace(':', "%253A")),
            None,
        ),
        (
            Method::GET,
            "/ard/agents/urn%3Aair%3Aa.example%3Ax%0A".into(),
            None,
        ),
        (
            Method::GET,
            "/ard/agents/urn%3Aair%3Aa.example%3Ax%FF".into(),
            None,
        ),
        (
            Method::GET,
            "/ard/agents/urn%3Aair%3Aa.example%3Ax%G0".into(),
            None,
        ),
    ] {
        refused(&registry, who, method, &path, body.as_ref(), 400).await;
    }
    // The raw form of an identifier is taken, and more than 100 results are taken as 100.
    registry.get(who, &format!("/ard/agents/{}", urn(0))).await;
    registry
        .post(
            who,
            "/ard/search",
            &json!({"query": text, "pageSize": 5000}),
        )
        .await;
    let not_json = registry
        .api
        .request(Method::POST, "/ard/search")
        .header(CONTENT_TYPE, "application/json")
        .body("{");
    let not_json = crate::support::api::ApiResponse::send(not_json).await;
    assert_eq!(not_json.status, 400, "{}", not_json.text());
    let form = registry
        .api
        .request(Method::POST, "/ard/search")
        .header(CONTENT_TYPE, "text/plain")
        .body("{}");
    assert_eq!(
        crate::support::api::ApiResponse::send(form).await.status,
        400
    );
    let large = json!({"query": {"text": "x", "filter": {"tags": vec!["x".repeat(1000); 400]}}});
    refused(
        &registry,
        who,
        Method::POST,
        "/ard/search",
        Some(&large),
        400,
    )
    .await;
    // A token belongs to its query, its caller and its part of the registry.
    let first = json!({"query": text, "pageSize": 2});
    let token = registry.post(who, "/ard/search", &first).await["pageToken"].clone();
    let with = |text: &str| json!({"query": {"text": text}, "pageSize": 2, "pageToken": token});
    registry.post(who, "/ard/search", &with("parcel")).await;
    refused(
        &registry,
        who,
        Method::POST,
        "/ard/search",
        Some(&with("parcels")),
        400,
    )
    .await;
    refused(
        &registry,
        who,
        Method::POST,
        "/ard/c/freight/search",
        Some(&with("parcel")),
        400,
    )
    .await;
    refused(
        &registry,
        registry.curator(),
        Method::POST,
        "/ard/search",
        Some(&with("parcel")),
        400,
    )
    .await;
    let native = format!(
        "/v1/agents?q=parcel&page_size=2&page_token={}",
        token.as_str().unwrap()
    );
    registry
        .ask(who, Method::GET, &native, None)
        .await
        .expect_problem(400, "invalid-request");
    // A wrong token is no anonymous caller.
    let wrong = TestCaller {
        name: "nobody",
        token: Some("a2ar_wrong".into()),
    };
    refused(
        &registry,
        &wrong,
        Method::POST,
        "/ard/search",
        Some(&first),
        401,
    )
    .await;
    refused(&registry, &wrong, Method::GET, "/ard/agents", None, 401).await;
    registry.stop().await;
}

#[tokio::test]
async fn answers_are_kept_by_those_who_may_keep_them() {
    let database = Database::sqlite();
    let registry = ArdRegistry::new(database.url()).await;
    for who in &registry.identities {
        let path = escaped(&urn(0));
        let whole = registry.ask(who, Method::GET, &path, None).await;
        let private = whole.headers[CACHE_CONTROL]
            .to_str()
            .unwrap()
            .contains("private");
        assert_eq!(private, who.token.is_some(), "{}", who.name);
        let vary: Vec<&str> = whole
            .headers
            .get_all(VARY)
            .iter()
            .map(|one| one.to_str().unwrap())
            .collect();
        assert!(
            vary.iter()
                .any(|one| one.eq_ignore_ascii_case("authorization")),
            "{vary:?}"
        );
        let mut again = registry
            .api
            .request(Method::GET, &path)
            .header(IF_NONE_MATCH, &whole.headers[ETAG]);
        if let Some(token) = &who.token {
            again = again.bearer_auth(token);
        }
        let again = crate::support::api::ApiResponse::send(again).await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    }
    let missing = registry
        .ask(
            registry.anonymous(),
            Method::GET,
            &escaped("urn:air:a.example:x"),
            None,
        )
        .await;
    assert_eq!(missing.headers[CACHE_CONTROL], "no-store");
    let wrong = registry
        .ask(
            registry.anonymous(),
            Method::DELETE,
            &escaped(&urn(0)),
            None,
        )
        .await;
    assert_eq!(
        (
            wrong.status.as_u16(),
            wrong.headers["allow"].to_str().unwrap()
        ),
        (405, "GET, HEAD, OPTIONS")
    );
    // Referrals are an empty list where there are no peers, and no member otherwise.
    let body = |federation: &str| json!({"query": {"text": "parcel"}, "federation": federation});
    for (federation, expected) in [
        ("none", None),
        ("auto", None),
        ("referrals", Some(json!([]))),
    ] {
        let found = registry
            .post(registry.anonymous(), "/ard/search", &body(federation))
            .await;
        assert_eq!(found.get("referrals").cloned(), expected, "{federation}");
    }
    registry.stop().await;
}
