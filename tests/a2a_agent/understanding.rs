//! Filters and exclusions in words: every interface understands the same, and nobody finds more by them.

use std::collections::BTreeSet;

use a2a_registry_core::search::understanding::understand_query;
use a2a_registry_domain::lifecycle::Visibility;
use reqwest::Method;
use serde_json::{Value, json};

use super::listening_registry::{
    ListeningRegistry, V1, admin, message, result_identifiers, task_text,
};
use crate::mcp::{McpClient, REVISIONS};
use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::both_databases;
use crate::support::in_process_registry::card_bytes;
use crate::support::program::{Program, assert_exit, join_lines};

both_databases!(
    every_interface_understands_the_same,
    pages_belong_to_what_was_understood,
    words_never_widen_what_is_found
);

const QUESTION: &str = "weather agent without login, but not zendesk";

/// The URNs of the agents: one that everybody may call, one that needs a key, and one for zendesk.
struct Agents {
    open: String,
    key: String,
    desk: String,
}

async fn with_agents(url: &str) -> (ListeningRegistry, Agents) {
    let served = ListeningRegistry::new(url).await;
    let card = |name: &str, about: &str| -> Value {
        serde_json::from_slice(&card_bytes(name, about)).unwrap()
    };
    let open = card("Open weather", "Forecasts the weather.");
    let mut key = card("Key weather", "Forecasts the weather.");
    key["securitySchemes"] = json!({"key": {"type": "apiKey", "in": "header", "name": "X-Key"}});
    key["security"] = json!([{"key": []}]);
    let desk = card("Desk weather", "Forecasts the weather in zendesk.");
    let publish = async |host: &str, card: Value| {
        let card = card.to_string().into_bytes();
        served.publish_card_with_urn(host, &card).await.1
    };
    let agents = Agents {
        open: publish("open", open).await,
        key: publish("key", key).await,
        desk: publish("desk", desk).await,
    };
    (served, agents)
}

fn parts() -> Value {
    json!([
        {"text": "without login", "parameter": "auth", "value": "none"},
        {"text": "but not zendesk", "parameter": "q", "value": "-zendesk"},
    ])
}

async fn get(served: &ListeningRegistry, path: &str) -> ApiResponse {
    ApiResponse::send(served.request(Method::GET, path, None, None)).await
}

fn urns(page: &Value) -> BTreeSet<&str> {
    let agents = page["agents"].as_array().unwrap().iter();
    agents.map(|agent| agent["urn"].as_str().unwrap()).collect()
}

fn in_address(text: &str) -> String {
    text.replace(' ', "+")
}

async fn every_interface_understands_the_same(url: &str) {
    let (served, agents) = with_agents(url).await;
    let only_open = BTreeSet::from([agents.open.as_str()]);
    let all = BTreeSet::from([&*agents.open, &*agents.key, &*agents.desk]);
    let path = format!("/v1/agents?q={}", in_address(QUESTION));
    let found = get(&served, &path).await.expect_status(200);
    assert_eq!(urns(&found), only_open, "{found}");
    let expected = json!({"q": "weather agent -zendesk", "parts": parts()});
    assert_eq!(found["understood"], expected);
    let as_text = get(&served, &format!("{path}&understand=false")).await;
    let as_text = as_text.expect_status(200);
    assert_eq!(urns(&as_text), all, "{as_text}");
    assert_eq!(as_text["understood"], Value::Null);

    assert_tools_understand(&served, &only_open, &all).await;
    assert_agent_understands(&served, &only_open, &all).await;
    assert_command_line_understands(&served, &only_open, &all).await;
    assert_page_understands(&served).await;

    // A request of ARD has filters of its own.
    let body = json!({"query": {"text": QUESTION}, "federation": "none"});
    let search = served
        .request(Method::POST, "/ard/search", None, None)
        .json(&body);
    let page = ApiResponse::send(search).await.expect_status(200);
    assert_eq!(page["results"].as_array().unwrap().len(), 3, "{page}");
}

async fn assert_tools_understand(
    served: &ListeningRegistry,
    understood: &BTreeSet<&str>,
    all: &BTreeSet<&str>,
) {
    let client = McpClient::new(&RegistryClient::new(&served.url), REVISIONS[0], None);
    let page = client
        .structured("search_agents", json!({"text": QUESTION}))
        .await;
    assert_eq!((&urns(&page), &page["understood"]), (understood, &parts()));
    let as_text = json!({"text": QUESTION, "understand": false});
    let page = client.structured("search_agents", as_text).await;
    assert_eq!((&urns(&page), &page["understood"]), (all, &json!([])));
    let facets = client
        .structured("list_facets", json!({"text": QUESTION}))
        .await;
    assert_eq!(
        (&facets["total"], &facets["understood"]),
        (&json!(1), &parts())
    );
}

async fn assert_agent_understands(
    served: &ListeningRegistry,
    understood: &BTreeSet<&str>,
    all: &BTreeSet<&str>,
) {
    let identifiers = |task: &Value| BTreeSet::from_iter(result_identifiers(task));
    let owned = |urns: &BTreeSet<&str>| -> BTreeSet<String> {
        urns.iter().map(|urn| (*urn).to_owned()).collect()
    };
    let task = served.send_text(QUESTION).await;
    assert_eq!(identifiers(&task), owned(understood), "{task}");
    let metadata = &task["artifacts"][0]["metadata"];
    assert_eq!(metadata["understood"], parts(), "{task}");
    let said = task_text(&task);
    assert!(
        said.contains("Understood: auth=none (\"without login\"), q=-zendesk"),
        "{said}"
    );
    let ask = async |understand: Value| {
        let request = json!({"query": {"text": QUESTION}, "understand": understand});
        let params = json!({"message": message(&json!([{"data": request}]))});
        served.call(V1, None, "SendMessage", &params).await
    };
    let task = ask(json!(false)).await.unwrap()["task"].clone();
    assert_eq!(identifiers(&task), owned(all), "{task}");
    let task = ask(json!(true)).await.unwrap()["task"].clone();
    assert_eq!(identifiers(&task), owned(understood), "{task}");
    let error = ask(json!("perhaps")).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
}

async fn assert_command_line_understands(
    served: &ListeningRegistry,
    understood: &BTreeSet<&str>,
    all: &BTreeSet<&str>,
) {
    let api = RegistryClient::new(&served.url);
    let run = async |arguments: &[&str]| Program::run(api.anonymous_command(arguments)).await;
    let line = "Understood: auth=none (\"without login\"), q=-zendesk (\"but not zendesk\"); \
                search for these words with --no-understand";
    for arguments in [
        &["search", QUESTION][..],
        &["search", "--all", QUESTION],
        &["search", "--all", "--json", QUESTION],
    ] {
        let ended = run(arguments).await;
        assert_exit(&ended, 0, line);
        let printed = join_lines(&ended.stdout);
        assert!(printed.contains("Open weather"), "{printed}");
        assert!(!printed.contains("Key weather"), "{printed}");
    }
    for (arguments, expected, parts) in [
        (&["search", "--json", QUESTION][..], understood, parts()),
        (
            &["search", "--json", "--no-understand", QUESTION],
            all,
            Value::Null,
        ),
    ] {
        let ended = run(arguments).await;
        let page: Value = serde_json::from_str(&join_lines(&ended.stdout)).unwrap();
        assert_eq!(&urns(&page), expected, "{page}");
        assert_eq!(page["understood"]["parts"], parts);
    }
}

/// The chip of a part leads to the search in which its words are text, and from there back.
async fn assert_page_understands(served: &ListeningRegistry) {
    let page = async |path: &str| {
        let answer = get(served, path).await;
        assert_eq!(answer.status, 200, "{path}");
        answer.text()
    };
    let link = |html: &str, after: &str| -> String {
        let (before, _) = html.split_once(after).unwrap_or_else(|| panic!("{html}"));
        let (_, address) = before.rsplit_once("href=\"").unwrap();
        let address = address.split('"').next().unwrap();
        address.replace("&#38;", "&").replace("&amp;", "&")
    };
    let html = page(&format!("/?q={}", in_address(QUESTION))).await;
    assert!(html.contains("Open <mark>weather"), "{html}");
    assert!(
        !html.contains("Key <mark>weather") && !html.contains("Desk <mark>weather"),
        "{html}"
    );
    assert!(html.contains("from “<bdi>without login</bdi>”"), "{html}");
    assert!(html.contains("from “<bdi>but not zendesk</bdi>”"), "{html}");

    let chip = "title=\"Search for these words instead: without login\"";
    let without_first = link(&html, chip);
    // As text, "login" is a word that no agent has, so all results are weaker ones.
    let html = page(&format!("{without_first}&fitting=false")).await;
    assert!(
        html.contains("Open <mark>weather") && html.contains("Key <mark>weather"),
        "{html}"
    );
    assert!(!html.contains("Desk <mark>weather"), "{html}");
    let again = link(&html, ">Use phrases as filters again<");
    let html = page(&again).await;
    assert!(!html.contains("Key <mark>weather"), "{html}");
    assert!(html.contains(chip), "{html}");
}

async fn pages_belong_to_what_was_understood(url: &str) {
    let (served, agents) = with_agents(url).await;
    let path = format!(
        "/v1/agents?q={}&page_size=1",
        in_address("weather without login")
    );
    let first = get(&served, &path).await.expect_status(200);
    let token = first["next_page_token"].as_str().unwrap();
    let second = get(&served, &format!("{path}&page_token={token}")).await;
    let second = second.expect_status(200);
    let mut found = urns(&first);
    found.extend(urns(&second));
    assert_eq!(found, BTreeSet::from([&*agents.open, &*agents.desk]));
    assert_eq!(second["understood"], first["understood"]);
    assert_eq!(second["next_page_token"], Value::Null);
    let other = format!("{path}&understand=false&page_token={token}");
    get(&served, &other)
        .await
        .expect_problem(400, "invalid-request");

    // In a conversation, "more" continues with what was understood, and with what was not.
    for (understand, count) in [(true, 2), (false, 3)] {
        let request = json!({"query": {"text": "weather without login"}, "pageSize": 1, "understand": understand});
        let mut task = served
            .send_message(None, &message(&json!([{"data": request}])))
            .await;
        let mut found = BTreeSet::from_iter(result_identifiers(&task));
        for _ in 1..count {
            let mut more = message(&json!([{"text": "more"}]));
            more["contextId"] = task["contextId"].clone();
            task = served.send_message(None, &more).await;
            found.extend(result_identifiers(&task));
        }
        assert_eq!(found.len(), count, "{found:?}");
        assert!(!task_text(&task).contains("\"more\""), "{task}");
    }
}

async fn words_never_widen_what_is_found(url: &str) {
    let (served, agents) = with_agents(url).await;
    let (inside, inside_urn) = served
        .publish_with_urn("inside", "Inside weather", "Forecasts the weather for us.")
        .await;
    served.show(inside, Visibility::Internal).await;
    let pending = card_bytes("Pending weather", "Forecasts the weather.");
    served
        .inner
        .register_with_card("pending.agents-test.com", &pending)
        .await;
    served.inner.catch_up().await;
    let public = BTreeSet::from([&*agents.open, &*agents.key, &*agents.desk]);
    for phrase in [
        "without login",
        "no API key",
        "but not zendesk",
        "except acme",
        "agents that are unsigned",
        "agents with streaming",
        "and speaks json-rpc",
        "for A2A 0.3",
        "from a verified domain",
        "trust level l1",
        "with lifecycle pending",
        "suspended and pending agents",
        "lifecycle:pending",
        "visibility internal",
    ] {
        let q = in_address(&format!("weather {phrase}"));
        let path = format!("/v1/agents?q={q}&page_size=100&facets=lifecycle,tag");
        let page = get(&served, &path).await.expect_status(200);
        assert!(urns(&page).is_subset(&public), "{phrase}: {page}");
        assert!(page["total"].as_u64() <= Some(3), "{phrase}: {page}");
        let lifecycles = page["facets"]["lifecycle"]["values"].to_string();
        assert!(!lifecycles.contains("pending"), "{phrase}: {page}");
        // Who may see more sees it with the same words.
        let asked = served.request(Method::GET, &path, None, admin());
        let seen = ApiResponse::send(asked).await.expect_status(200);
        assert_eq!(seen["understood"], page["understood"]);
        assert!(urns(&page).is_subset(&urns(&seen)), "{phrase}: {seen}");
    }
    let path = format!("/v1/agents?q={}", in_address("weather without login"));
    let asked = served.request(Method::GET, &path, None, admin());
    let seen = ApiResponse::send(asked).await.expect_status(200);
    assert!(urns(&seen).contains(&*inside_urn), "{seen}");
    // A filter of the request is not extended by the words.
    let given = get(&served, &format!("{path}&auth=apiKey")).await;
    let given = given.expect_status(200);
    assert_eq!(urns(&given), BTreeSet::from([&*agents.key]), "{given}");
    assert_eq!(given["understood"], Value::Null);
    // A long question is refused as before, however often it has a phrase.
    let long = in_address(&"weather without login not acme, ".repeat(320));
    let refused = get(&served, &format!("/v1/agents?q={long}")).await;
    refused.expect_problem(400, "invalid-request");
    let limits = served.inner.app.config().limits.clone();
    let query = a2a_registry_api::search_query::SearchQuery {
        q: Some(long),
        ..Default::default()
    };
    assert_eq!(understand_query(&query, &limits), None);
}
