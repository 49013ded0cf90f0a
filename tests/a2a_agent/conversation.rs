//! Conversations over protocol 1.0: the three skills, pages, questions, streams, and agents that must stay hidden.

use a2a_registry_core::config::Config;
use a2a_registry_domain::lifecycle::Visibility;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::listening_registry::{
    ListeningRegistry, V1, admin, events, message, result_identifiers, task_data, task_text,
};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::in_process_registry::card_bytes;

both_databases!(
    agents_are_found_as_v1_finds_them_page_after_page,
    an_agent_is_described_and_checked,
    an_agent_without_a_urn_is_counted_and_asked_about_by_id,
    a_question_is_asked_and_answered
);

/// Publishes some agents; one of them is for those who are signed in.
pub(super) async fn with_agents(url: &str) -> ListeningRegistry {
    let served = ListeningRegistry::new(url).await;
    for number in 0..5 {
        let about = format!(
            "Books flights to {number} cities. {}",
            "flights ".repeat(number)
        );
        served
            .publish_with_urn(
                &format!("fly{number}"),
                &format!("Flight desk {number}"),
                &about,
            )
            .await;
    }
    let (hidden, _) = served
        .publish_with_urn("inside", "Inside flights", "Books flights for us")
        .await;
    served.show(hidden, Visibility::Internal).await;
    served
}

async fn agents_are_found_as_v1_finds_them_page_after_page(url: &str) {
    let served = with_agents(url).await;
    for (token, count) in [(None, 5), (admin(), 6)] {
        for size in [2, 3, 100] {
            let expected = served.v1_pages(token, "flights", size).await;
            assert_eq!(expected.concat().len(), count);
            // By the token of each page.
            let mut request = json!({"query": {"text": "flights"}, "pageSize": size});
            let mut pages = Vec::new();
            loop {
                let task = served
                    .send_message(token, &message(&json!([{"data": request}])))
                    .await;
                assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
                pages.push(result_identifiers(&task));
                match task_data(&task).get("pageToken") {
                    Some(next) => request["pageToken"] = next.clone(),
                    None => break,
                }
            }
            assert_eq!(pages, expected, "{token:?} {size}");
        }
        // By "more" in the conversation.
        let first = json!([{"data": {"query": {"text": "flights"}, "pageSize": 2}}]);
        let mut task = served.send_message(token, &message(&first)).await;
        let mut pages = vec![result_identifiers(&task)];
        while task_data(&task).get("pageToken").is_some() {
            assert!(task_text(&task).contains("\"more\""), "{task}");
            let mut more = message(&json!([{"text": "more"}]));
            more["contextId"] = task["contextId"].clone();
            let next = served.send_message(token, &more).await;
            assert_eq!(next["contextId"], task["contextId"]);
            assert_ne!(next["id"], task["id"]);
            task = next;
            pages.push(result_identifiers(&task));
        }
        assert_eq!(pages, served.v1_pages(token, "flights", 2).await);
        let mut more = message(&json!([{"text": "More."}]));
        more["contextId"] = task["contextId"].clone();
        assert_eq!(
            result_identifiers(&served.send_message(token, &more).await),
            Vec::<String>::new()
        );
    }
    // ARD's own endpoint says the same, its score and source too.
    let body = json!({"query": {"text": "flights"}, "pageSize": 3});
    let ard = served
        .request(Method::POST, "/ard/search", None, None)
        .json(&body);
    let ard: Value = ard.send().await.unwrap().json().await.unwrap();
    let task = served
        .send_message(None, &message(&json!([{"data": body}])))
        .await;
    assert_eq!(task_data(&task)["results"], ard["results"]);
    // The token of one caller is none of another's, and none of another search.
    let token = task_data(&task)["pageToken"].clone();
    for (by, query) in [(admin(), "flights"), (None, "desk")] {
        let request = json!({"query": {"text": query}, "pageSize": 3, "pageToken": token});
        let params = json!({"message": message(&json!([{"data": request}]))});
        let error = served
            .call(V1, by, "SendMessage", &params)
            .await
            .unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
    }
}

async fn an_agent_is_described_and_checked(url: &str) {
    let served = with_agents(url).await;
    let (id, urn) = served
        .publish_with_urn("trip", "Trip \u{202e}planner\u{7}", "Plans trips.")
        .await;
    let by_name = "describe trip \u{202e}planner\u{7}".to_owned();
    for asked in [
        format!("describe {urn}"),
        urn.clone(),
        id.to_string(),
        by_name,
    ] {
        let task = served.send_text(&asked).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        assert_eq!(task_data(&task)["identifier"], urn, "{asked}");
        assert!(task_data(&task).get("score").is_none());
        let said = task_text(&task);
        assert!(
            said.contains(&urn) && said.contains("Plans trips."),
            "{said}"
        );
        assert!(
            said.contains("⟦U+202E⟧") && !said.contains('\u{202e}'),
            "{said}"
        );
        assert!(!said.contains('\u{7}'), "{said}");
    }
    let listed = task_text(&served.send_text("Plans trips").await);
    assert!(
        listed.contains("⟦U+202E⟧") && !listed.contains('\u{202e}'),
        "{listed}"
    );
    for asked in [format!("is {urn} allowed?"), format!("may I use {id}")] {
        let task = served.send_text(&asked).await;
        let checked = task_data(&task);
        assert_eq!(
            (
                &checked["discover"]["allowed"],
                &checked["invoke"]["allowed"]
            ),
            (&json!(true), &json!(true))
        );
        let decided = json!({"action": "invoke", "agent": urn});
        let request = served
            .request(Method::POST, "/v1/decide", None, None)
            .json(&decided);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let decision: Value = answer.json().await.unwrap();
        assert_eq!(decision["allowed"], checked["invoke"]["allowed"]);
    }
    // An agent that is hidden is as one that never was, to the letter.
    let hidden = "urn:air:inside.agents-test.com:agents:inside";
    let never = "urn:air:never.agents-test.com:agents:never0";
    for skill in ["describe-agent", "check-agent"] {
        let ask = |agent: &str| message(&json!([{"data": {"skill": skill, "agent": agent}}]));
        let [one, other] = [hidden, never].map(|agent| (agent, ask(agent)));
        let seen = served.send_message(None, &one.1).await["artifacts"].to_string();
        let none = served.send_message(None, &other.1).await["artifacts"].to_string();
        assert_eq!(seen.replace(one.0, "X"), none.replace(other.0, "X"));
        assert!(task_text(&served.send_message(admin(), &one.1).await).contains("Inside flights"));
    }
}

/// The hint of a search by ARD; none where no agent is left out.
async fn ard_hint(served: &ListeningRegistry, token: Option<&str>, body: &Value) -> Option<String> {
    let request = served.request(Method::POST, "/ard/search", None, token);
    let answer = request.json(body).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let hint = answer.headers().get("a2a-registry-hint");
    hint.map(|hint| hint.to_str().unwrap().to_owned())
}

async fn an_agent_without_a_urn_is_counted_and_asked_about_by_id(url: &str) {
    let served = with_agents(url).await;
    let registry = &served.inner;
    let publish = async |host: &str| {
        let domain = format!("{host}.agents-test.com");
        let card = card_bytes("Kite flights", "Flies kites, and books flights.");
        let agent = registry.register_approved_card(&domain, &card).await;
        registry.catch_up().await;
        agent.id
    };
    let (id, inside) = (publish("kite1").await, publish("kite2").await);
    served.show(inside, Visibility::Internal).await;
    for (token, sentence, count) in [
        (None, "1 matching agent is left out", 1),
        (admin(), "2 matching agents are left out", 2),
    ] {
        // With agents that have a URN, and without any.
        for query in ["flights", "kites"] {
            let request = json!({"query": {"text": query}, "pageSize": 2});
            let task = served
                .send_message(token, &message(&json!([{"data": request}])))
                .await;
            assert!(task_text(&task).contains(sentence), "{task}");
            let artifact = &task["artifacts"][0];
            assert_eq!(artifact["metadata"], json!({"withoutUrn": count}));
            let same = json!({"id": task["id"]});
            let got = served.call(V1, token, "GetTask", &same).await.unwrap();
            assert_eq!(got["artifacts"], task["artifacts"]);
            let hint = ard_hint(&served, token, &request).await;
            assert!(hint.is_some_and(|hint| hint.starts_with(sentence)));
            let next = task_data(&task)["pageToken"].clone();
            assert_eq!(next.is_string(), query == "flights", "{task}");
            if next.is_string() {
                let request = json!({"query": {"text": query}, "pageSize": 2, "pageToken": next});
                let task = served
                    .send_message(token, &message(&json!([{"data": request}])))
                    .await;
                assert!(task["artifacts"][0].get("metadata").is_none(), "{task}");
            }
        }
    }
    // Conditions count: every agent is of the type of agents, and none without a URN has another one.
    for (filter, is_counted) in [
        (json!({"type": "application/a2a-agent-card+json"}), true),
        (json!({"type": "application/mcp-server-card+json"}), false),
        (json!({"tags": ["tests"]}), true),
        (json!({"tags": ["other"]}), false),
    ] {
        let body = json!({"query": {"text": "kites", "filter": filter}});
        let hint = ard_hint(&served, None, &body).await;
        assert_eq!(hint.is_some(), is_counted, "{body} {hint:?}");
    }
    let nothing = json!({"query": {"text": "quokkas"}});
    assert_eq!(ard_hint(&served, None, &nothing).await, None);
    // Such an agent is asked about by its id.
    let task = served.send_text(&format!("describe {id}")).await;
    let (entry, said) = (task_data(&task), task_text(&task));
    assert_eq!(
        (&entry["id"], &entry["displayName"]),
        (&json!(id), &json!("Kite flights"))
    );
    assert!(entry.get("identifier").is_none(), "{entry}");
    assert!(
        said.contains(&format!("Identifier: {id}")) && said.contains("Flies kites"),
        "{said}"
    );
    let checked = task_data(&served.send_text(&format!("is {id} allowed?")).await);
    assert_eq!(
        (&checked["agent"], &checked["identifier"]),
        (&json!(id), &Value::Null)
    );
    assert_eq!(checked["invoke"]["allowed"], true);
    // A hidden one is as one that never was, and to those who see it the same as the other.
    for asked in [
        format!("describe {inside}"),
        format!("is {inside} allowed?"),
    ] {
        let missing = task_text(&served.send_text(&asked).await);
        assert!(
            missing.starts_with("No agent that you may see"),
            "{missing}"
        );
        let asked = message(&json!([{"text": asked}]));
        let seen = task_text(&served.send_message(admin(), &asked).await);
        assert!(seen.contains("Kite flights"), "{seen}");
    }
}

async fn a_question_is_asked_and_answered(url: &str) {
    let served = with_agents(url).await;
    for (host, name) in [("twin1", "Twin"), ("twin2", "twin")] {
        served.publish_with_urn(host, name, "One of two").await;
    }
    for parts in [
        json!([{"text": "  "}]),
        json!([{"data": {"odd": 1}}]),
        json!([{"text": "more"}]),
    ] {
        let task = served.send_message(None, &message(&parts)).await;
        assert_eq!(
            task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
            "{task}"
        );
        assert!(task["status"]["message"]["parts"][0]["text"].is_string());
        assert_eq!(task["status"]["message"]["role"], "ROLE_AGENT");
        assert!(task.get("artifacts").is_none());
    }
    let asked = served.send_text("describe Twin").await;
    assert_eq!(
        asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{asked}"
    );
    let question = asked["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    for host in ["twin1", "twin2"] {
        assert!(
            question.contains(&format!("urn:air:{host}.agents-test.com:agents:{host}")),
            "{question}"
        );
    }
    // Another conversation is refused, an unknown task is not found.
    let mut answer = message(&json!([{"text": "urn:air:twin2.agents-test.com:agents:twin2"}]));
    answer["taskId"] = asked["id"].clone();
    answer["contextId"] = json!("another");
    let params = json!({"message": answer});
    let error = served
        .call(V1, None, "SendMessage", &params)
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    answer.as_object_mut().unwrap().remove("contextId");
    let task = served.send_message(None, &answer).await;
    assert_eq!(
        (&task["id"], &task["contextId"]),
        (&asked["id"], &asked["contextId"])
    );
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        task_data(&task)["identifier"],
        "urn:air:twin2.agents-test.com:agents:twin2"
    );
    let roles: Vec<&Value> = task["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["role"])
        .collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]);
    // It has ended, so it takes no more.
    let error = served
        .call(V1, None, "SendMessage", &json!({"message": answer}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32004);
}

/// A stream has the task, then its artifact, then its end; both bindings carry the same.
#[tokio::test]
async fn a_stream_has_the_task_the_artifact_and_the_end() {
    let database = Database::sqlite();
    let served = with_agents(database.url()).await;
    let params = json!({"message": message(&json!([{"text": "flights"}]))});
    let rpc = served.post(V1, None, "SendStreamingMessage", &params).await;
    let rpc: Vec<Value> = events(rpc)
        .await
        .into_iter()
        .map(|one| one["result"].clone())
        .collect();
    let rest = served
        .request(Method::POST, "/a2a/v1/message:stream", V1, None)
        .json(&params);
    let rest = events(rest.send().await.unwrap()).await;
    for streamed in [rpc, rest] {
        let [task, artifact, end] = streamed.as_slice() else {
            panic!("{streamed:?}");
        };
        let task = &task["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
        let (artifact, end) = (&artifact["artifactUpdate"], &end["statusUpdate"]);
        for update in [artifact, end] {
            assert_eq!(
                (&update["taskId"], &update["contextId"]),
                (&task["id"], &task["contextId"])
            );
        }
        assert_eq!(artifact["lastChunk"], true);
        assert_eq!(end["status"]["state"], "TASK_STATE_COMPLETED");
        let kept = served
            .call(V1, None, "GetTask", &json!({"id": task["id"]}))
            .await
            .unwrap();
        assert_eq!(kept["artifacts"][0], artifact["artifact"]);
        assert_eq!(kept["status"], end["status"]);
        assert_eq!(
            result_identifiers(&kept),
            served.v1_pages(None, "flights", 10).await.concat()
        );
    }
    // One that asks back ends there, one that fails says why.
    let params = json!({"message": message(&json!([{"text": ""}]))});
    let asked = events(served.post(V1, None, "SendStreamingMessage", &params).await).await;
    let end = &asked.last().unwrap()["result"]["statusUpdate"]["status"];
    assert_eq!(end["state"], "TASK_STATE_INPUT_REQUIRED");
    let wrong = json!([{"data": {"query": {"text": "x"}, "pageToken": "forged"}}]);
    let params = json!({"message": message(&wrong)});
    let failed = events(served.post(V1, None, "SendStreamingMessage", &params).await).await;
    let end = &failed.last().unwrap()["result"]["statusUpdate"]["status"];
    assert_eq!(end["state"], "TASK_STATE_FAILED");
    assert!(
        end["message"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("token")
    );
}

/// What a caller may not see any more is not in what it reads again, nor can it be told that it was there.
#[tokio::test]
async fn a_task_forgets_what_its_caller_may_not_see_any_more() {
    let database = Database::sqlite();
    let served = ListeningRegistry::new(database.url()).await;
    let (_, first) = served
        .publish_with_urn("first", "First", "Paints fences")
        .await;
    let (second, urn) = served
        .publish_with_urn("second", "Second", "Paints fences")
        .await;
    let list = served.send_text("Paints fences").await;
    let described = served.send_text(&format!("describe {urn}")).await;
    let checked = served.send_text(&format!("is {urn} allowed")).await;
    assert_eq!(result_identifiers(&list).len(), 2);
    served.show(second, Visibility::Internal).await;
    let again = async |task: &Value| {
        served
            .call(V1, None, "GetTask", &json!({"id": task["id"]}))
            .await
            .unwrap()
    };
    let now = again(&list).await;
    assert_eq!(result_identifiers(&now), [first]);
    assert!(!now.to_string().contains("Second"), "{now}");
    for task in [&described, &checked] {
        let now = again(task).await;
        assert!(!now["artifacts"].to_string().contains("Second"), "{now}");
        assert!(
            task_text(&now).starts_with("No agent that you may see"),
            "{now}"
        );
    }
    served.show(second, Visibility::Public).await;
    assert_eq!(again(&list).await, list);
}

/// Texts, parts and bodies are bounded, and what is at a bound passes.
#[tokio::test]
async fn messages_are_bounded() {
    let database = Database::sqlite();
    let served = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.limits.json_bytes = 8192
    })
    .await;
    let say = async |text: &str| {
        let params = json!({"message": message(&json!([{"text": text}]))});
        served.call(V1, None, "SendMessage", &params).await
    };
    assert!(say(&"a".repeat(512)).await.is_ok());
    assert_eq!(say(&"a".repeat(513)).await.unwrap_err()["code"], -32602);
    for (bytes, status) in [(8192, 200), (8193, 413)] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}})
            .to_string();
        let body = format!("{call}{}", " ".repeat(bytes - call.len()));
        let request = served.request(Method::POST, "/a2a", V1, None);
        let request = request
            .header("content-type", "application/json")
            .body(body.clone());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{bytes}");
        let document: Value = answer.json().await.unwrap();
        assert_eq!(document["jsonrpc"], "2.0");
        assert!(document["error"]["code"].is_i64());
        let request = served.request(Method::POST, "/a2a/v1/message:send", V1, None);
        let request = request
            .header("content-type", "application/a2a+json")
            .body(body);
        let answer = request.send().await.unwrap();
        let expected = if status == 200 { 400 } else { 413 };
        assert_eq!(answer.status(), expected, "{bytes}");
        let document: Value = answer.json().await.unwrap();
        assert_eq!(document["error"]["code"], expected);
    }
}
