//! One query over every protocol, by four callers: the same agents in the same order, page after page.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::{ArdRegistry, TestCaller, identifiers};
use crate::mcp::stdio::StdioSession;
use crate::mcp::{McpClient, REVISIONS};
use crate::support::api::ApiResponse;
use crate::support::both_databases;

/// The question, and the size of a page.
const QUESTION: &str = "parcel tracking";
const SIZE: u32 = 3;

both_databases!(every_door_gives_the_same_agents_in_the_same_order);

async fn every_door_gives_the_same_agents_in_the_same_order(url: &str) {
    let registry = ArdRegistry::new(url).await;
    for who in &registry.identities {
        let expected = through_v1(&registry, who).await;
        let mut found: Vec<String> = expected.concat();
        found.sort_unstable();
        let visible = registry.visible(who);
        let asked: Vec<&String> = visible
            .iter()
            .filter(|urn| urn.contains("parcels"))
            .collect();
        assert!(
            asked.iter().all(|urn| found.contains(urn)),
            "{}: {found:?}",
            who.name
        );
        let others: Vec<&String> = found.iter().filter(|urn| !visible.contains(urn)).collect();
        assert_eq!(others, Vec::<&String>::new(), "{}", who.name);
        assert!(expected.len() > 2, "{expected:?}");
        let doors: BTreeMap<&str, Vec<Vec<String>>> = BTreeMap::from([
            ("ard", through_ard(&registry, who).await),
            (
                "the command line",
                through_the_command_line(&registry, who).await,
            ),
            ("MCP over HTTP", through_mcp(&registry, who).await),
            (
                "MCP on standard input",
                through_standard_input(&registry, who).await,
            ),
            ("A2A", through_a2a(&registry, who).await),
        ]);
        for (door, pages) in doors {
            assert_eq!(pages, expected, "{} through {door}", who.name);
        }
        if who.token.is_none() {
            assert_eq!(through_the_page(&registry).await, expected.concat());
        }
    }
    registry.stop().await;
}

/// The agents with an identifier, page by page.
async fn through_v1(registry: &ArdRegistry, who: &TestCaller) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut token = String::new();
    loop {
        let path = format!(
            "/v1/agents?q={}&page_size={SIZE}{token}",
            QUESTION.replace(' ', "+")
        );
        let page = registry.get(who, &path).await;
        pages.push(urns(&page["agents"]));
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => return without_empty_end(pages),
        }
    }
}

fn urns(agents: &Value) -> Vec<String> {
    let agents = agents.as_array().unwrap().iter();
    agents
        .filter_map(|agent| Some(agent["urn"].as_str()?.to_owned()))
        .collect()
}

/// An agent without an identifier that stands alone on the last page leaves an empty one.
fn without_empty_end(mut pages: Vec<Vec<String>>) -> Vec<Vec<String>> {
    while pages.last().is_some_and(Vec::is_empty) {
        pages.pop();
    }
    pages
}

async fn through_ard(registry: &ArdRegistry, who: &TestCaller) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut body = json!({"query": {"text": QUESTION}, "pageSize": SIZE, "federation": "none"});
    loop {
        let page = registry.post(who, "/ard/search", &body).await;
        let scores: Vec<u64> = page["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["score"].as_u64().unwrap())
            .collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        pages.push(identifiers(&page["results"]));
        match page.get("pageToken") {
            Some(token) => body["pageToken"] = token.clone(),
            None => return without_empty_end(pages),
        }
    }
}

async fn through_the_command_line(registry: &ArdRegistry, who: &TestCaller) -> Vec<Vec<String>> {
    let size = SIZE.to_string();
    let mut pages = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let mut arguments = vec!["search", QUESTION, "--json", "--limit", &size];
        if let Some(token) = &token {
            arguments.extend(["--page-token", token]);
        }
        let mut command = registry.api.anonymous_command(&arguments);
        if let Some(token) = &who.token {
            command.env("A2A_REGISTRY_TOKEN", token);
        }
        let ended = crate::support::program::Program::run(command).await;
        let page: Value = serde_json::from_str(&ended.stdout.join("\n")).unwrap();
        pages.push(urns(&page["agents"]));
        match page["next_page_token"].as_str() {
            Some(next) => token = Some(next.to_owned()),
            None => return without_empty_end(pages),
        }
    }
}

/// The arguments of the tool that searches.
fn arguments(token: Option<&Value>) -> Value {
    let mut arguments = json!({"text": QUESTION, "page_size": SIZE});
    if let Some(token) = token {
        arguments["page_token"] = token.clone();
    }
    arguments
}

/// Page after page, each by the token of the one before.
async fn tool_pages(mut page: impl AsyncFnMut(Value) -> Value) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut token = None;
    loop {
        let answer = page(arguments(token.as_ref())).await;
        pages.push(urns(&answer["agents"]));
        match answer.get("next_page_token").filter(|next| !next.is_null()) {
            Some(next) => token = Some(next.clone()),
            None => return without_empty_end(pages),
        }
    }
}

async fn through_mcp(registry: &ArdRegistry, who: &TestCaller) -> Vec<Vec<String>> {
    let client = McpClient::new(&registry.api, REVISIONS[0], who.token.as_deref());
    tool_pages(async |arguments| client.structured("search_agents", arguments).await).await
}

async fn through_standard_input(registry: &ArdRegistry, who: &TestCaller) -> Vec<Vec<String>> {
    let mut session = StdioSession::start(&registry.api, who.token.as_deref()).await;
    let pages = tool_pages(async |arguments| {
        let result = session.call("search_agents", arguments).await;
        result["structuredContent"].clone()
    })
    .await;
    session.close().await;
    pages
}

async fn through_a2a(registry: &ArdRegistry, who: &TestCaller) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut asked = json!({"query": {"text": QUESTION}, "pageSize": SIZE});
    loop {
        let message = json!({"messageId": "1", "role": "ROLE_USER", "parts": [{"data": asked}]});
        let params = json!({"message": message});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
        let request = registry.api.request(Method::POST, "/a2a");
        let mut request = request.header("A2A-Version", "1.0").json(&call);
        if let Some(token) = &who.token {
            request = request.bearer_auth(token);
        }
        let answer = ApiResponse::send(request).await.expect_status(200);
        let parts = &answer["result"]["task"]["artifacts"][0]["parts"];
        let parts = parts.as_array().unwrap_or_else(|| panic!("{answer}"));
        let data = parts.iter().find_map(|part| part.get("data")).unwrap();
        pages.push(identifiers(&data["results"]));
        match data.get("pageToken") {
            Some(token) => asked["pageToken"] = token.clone(),
            None => return without_empty_end(pages),
        }
    }
}

/// The identifiers of the agents on the page of the search, in their order; it shows more on one page.
async fn through_the_page(registry: &ArdRegistry) -> Vec<String> {
    let path = format!("/?q={}&fitting=false", QUESTION.replace(' ', "+"));
    let page = registry
        .ask(registry.anonymous(), Method::GET, &path, None)
        .await;
    let text = page.text();
    let ids: Vec<String> = text
        .match_indices("<h2><a href=\"/agents/")
        .map(|(at, start)| {
            let rest = &text[at + start.len()..];
            rest[..rest.find('/').unwrap()].to_owned()
        })
        .collect();
    let mut found = Vec::new();
    for id in ids {
        let agent = registry
            .get(registry.anonymous(), &format!("/v1/agents/{id}"))
            .await;
        found.extend(agent["urn"].as_str().map(str::to_owned));
    }
    found
}
