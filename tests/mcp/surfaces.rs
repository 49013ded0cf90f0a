//! One query over several protocols gives the same agents in the same order, page after page, to each caller.

use reqwest::Method;
use serde_json::{Value, json};

use super::stdio::StdioSession;
use super::{McpClient, PublishedAgents, REVISIONS, publish, show_to};
use crate::support::api::ApiResponse;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// A caller: its token, and how many of the agents it finds.
struct TestCaller {
    name: &'static str,
    token: Option<String>,
    finds: usize,
}

/// A registry with seven public agents, an internal one, one for a group and one on hold; and who asks.
async fn registry() -> (ServingRegistry, PublishedAgents, Vec<TestCaller>) {
    let registry = RegistrySetup::new().approve_all().start().await;
    let names = [
        "Rose", "Tulip", "Daisy", "Lily", "Poppy", "Violet", "Iris", "Inside", "Members", "Held",
    ];
    let published = publish(&registry, &names).await;
    let ids = &published.ids;
    let reader = registry.create_token("reader", "reader").await;
    let member = registry.create_token("member", "reader").await;
    let curator = registry.create_token("curator", "curator").await;
    let group = registry.admin_request(Method::PUT, "/v1/groups/gardeners");
    let group = group.json(&json!({"members": ["member"]}));
    let made = ApiResponse::send(group).await;
    assert!(made.status.is_success(), "{}", made.text());
    show_to(&registry, &ids[7], json!({"visibility": "internal"})).await;
    let members = json!({"visibility": "restricted", "groups": ["gardeners"]});
    show_to(&registry, &ids[8], members).await;
    let held = format!("/v1/agents/{}:suspend", ids[9]);
    registry
        .post_as_admin(&held, &json!({"reason": "a test"}))
        .await
        .expect_status(200);
    let asking = |name, token, finds| TestCaller { name, token, finds };
    let asking = vec![
        asking("anonymous", None, 7),
        asking("reader", Some(reader), 8),
        asking("member", Some(member), 9),
        asking("curator", Some(curator), 9),
    ];
    (registry, published, asking)
}

/// The pages of three that `page` gives, by ids.
async fn pages_by(mut page: impl AsyncFnMut(Option<String>) -> Value) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut token = None;
    loop {
        let answer = page(token).await;
        let agents = answer["agents"].as_array().unwrap();
        let ids = agents
            .iter()
            .map(|agent| agent["id"].as_str().unwrap().to_owned());
        pages.push(ids.collect());
        token = answer["next_page_token"].as_str().map(str::to_owned);
        if token.is_none() {
            return pages;
        }
    }
}

/// The page's arguments, for a token.
fn arguments(question: &Value, token: Option<String>) -> Value {
    let mut arguments = question.clone();
    arguments["page_size"] = json!(3);
    if let Some(token) = token {
        arguments["page_token"] = json!(token);
    }
    arguments
}

#[tokio::test]
async fn every_door_gives_the_same_agents_in_the_same_order() {
    let (registry, _published, asking) = registry().await;
    let questions = [
        (json!({"text": "gardening"}), "q=gardening"),
        (json!({"sort": "name"}), "sort=name"),
        (
            json!({"tag": ["gardening"], "sort": "newest"}),
            "tag=gardening&sort=newest",
        ),
    ];
    for TestCaller { name, token, finds } in &asking {
        let token = token.as_deref();
        let mut session = StdioSession::start(&registry.api, token).await;
        for (question, query) in &questions {
            let plain = pages_by(async |page| {
                let page = page
                    .map(|page| format!("&page_token={page}"))
                    .unwrap_or_default();
                let path = format!("/v1/agents?{query}&page_size=3{page}");
                let request = registry.request(Method::GET, &path);
                let request = match token {
                    Some(token) => request.bearer_auth(token),
                    None => request,
                };
                ApiResponse::send(request).await.expect_status(200)
            })
            .await;
            assert_eq!(plain.concat().len(), *finds, "{name}: {query}");
            for revision in REVISIONS {
                let client = McpClient::new(&registry.api, revision, token);
                let found = pages_by(async |page| {
                    client
                        .structured("search_agents", arguments(question, page))
                        .await
                })
                .await;
                assert_eq!(found, plain, "{name}: {question} in {revision}");
            }
            let found = pages_by(async |page| {
                let result = session
                    .call("search_agents", arguments(question, page))
                    .await;
                result["structuredContent"].clone()
            })
            .await;
            assert_eq!(found, plain, "{name}: {question} on standard input");
        }
        session.close().await;
    }
}

/// Facets count what the caller finds, and no more.
#[tokio::test]
async fn facets_count_what_the_caller_finds() {
    let (registry, _published, asking) = registry().await;
    for TestCaller { name, token, finds } in &asking {
        let client = McpClient::new(&registry.api, REVISIONS[0], token.as_deref());
        let found = client
            .structured("list_facets", json!({"facets": ["tag"]}))
            .await;
        assert_eq!(found["total"], *finds, "{name}");
        let tag = &found["facets"][0];
        assert_eq!(tag["name"], "tag");
        assert_eq!(
            tag["values"],
            json!([{"value": "gardening", "count": finds}]),
            "{name}"
        );
    }
}

/// A page token belongs to one question of one caller.
#[tokio::test]
async fn a_page_token_is_good_for_its_own_question_alone() {
    let (registry, _published, asking) = registry().await;
    let [anonymous, reader] =
        [0, 1].map(|at| McpClient::new(&registry.api, REVISIONS[0], asking[at].token.as_deref()));
    let first = anonymous
        .structured(
            "search_agents",
            json!({"text": "gardening", "page_size": 3}),
        )
        .await;
    let token = &first["next_page_token"];
    for (client, other) in [
        (
            &anonymous,
            json!({"text": "weeding", "page_token": token, "page_size": 3}),
        ),
        (
            &reader,
            json!({"text": "gardening", "page_token": token, "page_size": 3}),
        ),
        (
            &anonymous,
            json!({"text": "gardening", "page_token": "made up", "page_size": 3}),
        ),
    ] {
        let sentence = client.failure("search_agents", other.clone()).await;
        assert!(sentence.contains("`page_token`"), "{other}: {sentence}");
    }
}
