//! The sample agents by the letter of the protocol, asked without the client.

use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_demo::start_sample_agents;
use serde_json::{Value, json};

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Posts JSON, with an `A2A-Version` where one is given.
pub async fn post(url: &str, body: &Value, version: Option<&str>) -> reqwest::Response {
    let mut request = client().post(url).json(body);
    if let Some(version) = version {
        request = request.header("A2A-Version", version);
    }
    request.send().await.unwrap()
}

/// Gets a document.
pub async fn get(url: &str) -> reqwest::Response {
    client().get(url).send().await.unwrap()
}

fn message(text: &str) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The events of a `text/event-stream`, read to its end.
async fn events(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = response.text().await.unwrap();
    assert!(body.ends_with("\n\n"), "{body}");
    body.trim_end()
        .split("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

/// Checks a stream of a trip and gives its artifacts' text.
fn streamed_text(events: &[Value]) -> String {
    assert_eq!(events[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    let id = &events[0]["task"]["id"];
    let (last, middle) = events[1..].split_last().unwrap();
    assert_eq!(
        last["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert_eq!(
        middle[0]["statusUpdate"]["status"]["state"],
        "TASK_STATE_WORKING"
    );
    let updates: Vec<&Value> = middle[1..]
        .iter()
        .map(|event| &event["artifactUpdate"])
        .collect();
    for update in &updates {
        assert_eq!(update["taskId"], *id);
        assert_eq!(update["artifact"]["artifactId"], "itinerary");
    }
    let appended: Vec<bool> = updates
        .iter()
        .map(|update| update["append"].as_bool().unwrap())
        .collect();
    let ended: Vec<bool> = updates
        .iter()
        .map(|update| update["lastChunk"].as_bool().unwrap())
        .collect();
    assert_eq!(
        (appended, ended),
        (vec![false, true, true], vec![false, false, true])
    );
    let texts: Vec<&str> = updates
        .iter()
        .map(|update| update["artifact"]["parts"][0]["text"].as_str().unwrap())
        .collect();
    texts.concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_1_0_agent_streams_on_both_bindings() {
    let agents = start_sample_agents(Arc::new(SystemClock)).await.unwrap();
    let base = &agents.agents[2].base_url;
    let call = json!({"jsonrpc": "2.0", "id": "s", "method": "SendStreamingMessage", "params": message("Plan 3 days in Rome")});
    let wrapped = events(post(&format!("{base}/rpc"), &call, Some("1.0")).await).await;
    assert!(
        wrapped
            .iter()
            .all(|event| event["jsonrpc"] == "2.0" && event["id"] == "s")
    );
    let over_rpc: Vec<Value> = wrapped
        .into_iter()
        .map(|mut event| event["result"].take())
        .collect();
    let bare = post(
        &format!("{base}/rest/message:stream"),
        &message("Plan 3 days in Rome"),
        Some("1.0"),
    )
    .await;
    let over_rest = events(bare).await;
    let text = streamed_text(&over_rpc);
    assert_eq!(text, streamed_text(&over_rest));
    assert!(
        text.starts_with("Day 1: Colosseum, then Roman Forum.\nDay 2:"),
        "{text}"
    );

    // The task can be asked for afterwards, and holds what was streamed.
    let id = over_rest[0]["task"]["id"].as_str().unwrap();
    let task: Value = client()
        .get(format!("{base}/rest/tasks/{id}?A2A-Version=1.0"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let parts = task["artifacts"][0]["parts"].as_array().unwrap();
    assert_eq!(
        parts
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect::<Vec<_>>()
            .join("\n"),
        text
    );

    let unclear = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": message("hello")});
    let only = events(post(&format!("{base}/rpc"), &unclear, Some("1.0")).await).await;
    assert_eq!(only.len(), 1);
    assert_eq!(only[0]["result"]["message"]["role"], "ROLE_AGENT");
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_1_0_agent_refuses_calls_of_another_version() {
    let agents = start_sample_agents(Arc::new(SystemClock)).await.unwrap();
    let base = &agents.agents[2].base_url;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("Rome")});
    for version in [None, Some("0.3"), Some("2.0")] {
        let refused: Value = post(&format!("{base}/rpc/"), &call, version)
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(refused["error"]["code"], -32009, "{version:?}");
        assert_eq!(
            refused["error"]["data"][0]["reason"],
            "VERSION_NOT_SUPPORTED"
        );
        let response = post(
            &format!("{base}/rest/message:send"),
            &message("Rome"),
            version,
        )
        .await;
        assert_eq!(response.status(), 400);
        let refused: Value = response.json().await.unwrap();
        assert_eq!(
            refused["error"]["details"][0]["reason"],
            "VERSION_NOT_SUPPORTED"
        );
    }
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_codes_of_the_protocol() {
    let agents = start_sample_agents(Arc::new(SystemClock)).await.unwrap();
    let [ledger, recipe, trip] = &agents.agents[..] else {
        panic!("{agents:?}")
    };
    let old = [
        format!("{}/", ledger.base_url),
        format!("{}/a2a", recipe.base_url),
    ];
    for url in &old {
        for (method, params, code) in [
            ("tasks/send", json!({}), -32601),
            ("SendMessage", message("x"), -32601),
            ("message/send", json!({}), -32602),
            ("message/stream", json!({}), -32004),
            ("tasks/get", json!({"id": "none"}), -32001),
            ("tasks/get", json!({}), -32602),
            ("tasks/cancel", json!({"id": "none"}), -32001),
            ("tasks/pushNotificationConfig/set", json!({}), -32003),
        ] {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let answer: Value = post(url, &call, None).await.json().await.unwrap();
            assert_eq!(answer["error"]["code"], code, "{url} {method}: {answer}");
        }
    }
    let url = format!("{}/rpc", trip.base_url);
    for (method, params, code) in [
        ("message/send", json!({}), -32601),
        ("SendMessage", json!({}), -32602),
        ("SendStreamingMessage", json!({}), -32602),
        ("GetTask", json!({"id": "none"}), -32001),
        ("CancelTask", json!({"id": "none"}), -32001),
        ("ListTasks", json!({"pageSize": 101}), -32602),
        ("CreateTaskPushNotificationConfig", json!({}), -32003),
        ("GetExtendedAgentCard", json!({}), -32004),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer: Value = post(&url, &call, Some("1.0")).await.json().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    for (path, status) in [
        ("tasks/none", 404),
        ("tasks?pageSize=x", 400),
        ("nothing", 404),
    ] {
        let url = format!("{}/rest/{path}", trip.base_url);
        let response = client()
            .get(url)
            .header("A2A-Version", "1.0")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed_page_by_page() {
    let agents = start_sample_agents(Arc::new(SystemClock)).await.unwrap();
    let base = &agents.agents[2].base_url;
    for _ in 0..3 {
        post(
            &format!("{base}/rest/message:send"),
            &message("Rome"),
            Some("1.0"),
        )
        .await;
    }
    let page = async |query: &str| -> Value {
        let url = format!("{base}/rest/tasks?{query}");
        client()
            .get(url)
            .header("A2A-Version", "1.0")
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    };
    let first = page("pageSize=2").await;
    assert_eq!(
        (
            first["tasks"].as_array().unwrap().len(),
            &first["totalSize"]
        ),
        (2, &json!(3))
    );
    assert_eq!(first["tasks"][0].get("artifacts"), None);
    let token = first["nextPageToken"].as_str().unwrap();
    let second = page(&format!(
        "pageSize=2&includeArtifacts=true&pageToken={token}"
    ))
    .await;
    assert_eq!(second["nextPageToken"], "");
    assert_eq!(
        second["tasks"][0]["artifacts"][0]["artifactId"],
        "itinerary"
    );
    let context = second["tasks"][0]["contextId"].as_str().unwrap();
    assert_eq!(page(&format!("contextId={context}")).await["totalSize"], 1);
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_lie_where_their_version_keeps_them_and_answer_304() {
    let agents = start_sample_agents(Arc::new(SystemClock)).await.unwrap();
    for (agent, other) in agents
        .agents
        .iter()
        .zip(["agent-card.json", "agent.json", "agent.json"])
    {
        let response = client().get(&agent.card_url).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/json");
        let tag = response.headers()["etag"].to_str().unwrap().to_owned();
        let card: Value = response.json().await.unwrap();
        assert_eq!(card["name"], agent.name);
        for (known, status) in [
            (tag.as_str(), 304),
            (&format!("W/{tag}, \"x\""), 304),
            ("*", 304),
            ("\"x\"", 200),
        ] {
            let request = client().get(&agent.card_url).header("if-none-match", known);
            assert_eq!(request.send().await.unwrap().status(), status, "{known}");
        }
        let elsewhere = format!("{}/.well-known/{other}", agent.base_url);
        assert_eq!(client().get(elsewhere).send().await.unwrap().status(), 404);
        assert_eq!(
            client()
                .post(&agent.card_url)
                .send()
                .await
                .unwrap()
                .status(),
            405
        );
    }
    agents.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_beyond_the_bound_is_refused() {
    let agents = start_sample_agents(Arc::new(SystemClock)).await.unwrap();
    let url = format!("{}/", agents.agents[0].base_url);
    let body = |length: usize| {
        let mut body = r#"{"jsonrpc":"2.0","id":1,"method":"none"}"#.to_owned();
        body.push_str(&" ".repeat(length - body.len()));
        client().post(&url).body(body)
    };
    assert_eq!(body(64 * 1024).send().await.unwrap().status(), 200);
    assert_eq!(body(64 * 1024 + 1).send().await.unwrap().status(), 413);
    agents.stop().await;
}
