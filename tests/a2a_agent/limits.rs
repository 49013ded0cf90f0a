//! Limits of one client: bytes of histories and lists, number of tasks, and concurrent messages.

use std::collections::HashSet;

use a2a_registry_core::config::Config;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_store::a2a_tasks::{self, TaskProjection};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use super::listening_registry::{ListeningRegistry, V1, admin, message, task_data};
use super::tasks::{create_account_token, get_task, list_tasks, task_ids};
use crate::support::both_databases;
use crate::support::database::Database;

both_databases!(
    histories_are_bounded_in_bytes,
    a_list_ends_at_its_bytes,
    a_list_reads_what_is_asked_for,
    what_is_too_large_to_be_shown_is_left_out,
    of_messages_at_the_same_time_none_is_lost,
    a_sender_pushes_out_its_own_tasks_alone,
    messages_at_the_same_time_make_tasks_that_are_all_kept,
    a_question_leaves_no_agent_in_the_history
);

/// Bytes that the history of a task may have.
const HISTORY: usize = 128 << 10;

/// A message that is no request, so that the task asks back, with so many bytes more than the smallest one.
fn clarifying_message(bytes: usize) -> Value {
    let mut odd = message(&json!([{"data": {"odd": "x".repeat(bytes)}}]));
    odd["messageId"] = json!(Uuid::nil());
    odd
}

async fn send_message(
    registry: &ListeningRegistry,
    token: Option<&str>,
    message: &Value,
) -> Result<Value, Value> {
    let params = json!({"message": message});
    let sent = registry.call(V1, token, "SendMessage", &params).await;
    sent.map(|sent| sent["task"].clone())
}

fn roomy(config: &mut Config) {
    config.limits.json_bytes = 1 << 20;
}

async fn histories_are_bounded_in_bytes(url: &str) {
    let registry = ListeningRegistry::with_config(url, roomy).await;
    let small = send_message(&registry, None, &clarifying_message(0))
        .await
        .unwrap();
    let room = HISTORY - small["history"].to_string().len();
    let most = send_message(&registry, None, &clarifying_message(room))
        .await
        .unwrap();
    assert_eq!(most["history"].to_string().len(), HISTORY);
    let refused = send_message(&registry, None, &clarifying_message(room + 1))
        .await
        .unwrap_err();
    assert_eq!(refused["code"], -32602);
    assert!(refused["message"].as_str().unwrap().contains("128 KiB"));
    // Further messages count with those before, and one that does not fit changes nothing.
    let mut further = clarifying_message(room / 2);
    further["taskId"] = small["id"].clone();
    let grown = send_message(&registry, None, &further).await.unwrap();
    let refused = send_message(&registry, None, &further).await.unwrap_err();
    assert_eq!(refused["code"], -32004);
    assert!(refused["message"].as_str().unwrap().contains("128 KiB"));
    assert_eq!(
        get_task(&registry, None, &small["id"]).await.unwrap(),
        grown
    );
}

async fn a_list_ends_at_its_bytes(url: &str) {
    let registry = ListeningRegistry::with_config(url, roomy).await;
    let ann = create_account_token(&registry, "ann").await;
    let by = Some(ann.as_str());
    let mut made = Vec::new();
    for _ in 0..20 {
        let task = send_message(&registry, by, &clarifying_message(HISTORY - 1024))
            .await
            .unwrap();
        made.push(task["id"].clone());
        registry.inner.advance(Duration::seconds(1));
    }
    made.reverse();
    let mut params = json!({"pageSize": 100});
    let mut seen = Vec::new();
    loop {
        let page = list_tasks(&registry, by, params.clone()).await;
        assert!(page.to_string().len() < (1 << 20) + 8192);
        assert_eq!(page["totalSize"], 20);
        seen.push(task_ids(&page));
        params["pageToken"] = page["nextPageToken"].clone();
        if params["pageToken"] == "" {
            break;
        }
    }
    assert_eq!(seen.concat(), made);
    let sizes: Vec<usize> = seen.iter().map(Vec::len).collect();
    assert_eq!(sizes, [8, 8, 4]);
    // Without histories they are one page.
    let page = list_tasks(&registry, by, json!({"pageSize": 100, "historyLength": 0})).await;
    assert_eq!(
        (task_ids(&page), &page["nextPageToken"]),
        (made, &json!(""))
    );
}

/// Of an answer the largest entries are left out, and a page of tasks with their answers ends before it is too large: by
/// what is shown, however little of it is kept.
async fn what_is_too_large_to_be_shown_is_left_out(url: &str) {
    const RESULTS: usize = 3000;
    let registry = ListeningRegistry::new(url).await;
    let account = registry.inner.admin.require_account().unwrap().id;
    let (agent, urn) = registry
        .publish_with_urn("paint", "Painter", "Paints fences")
        .await;
    let result = json!([agent, {"identifier": urn, "score": 7}]);
    let outcome = json!({"text": true, "data": true, "outcome": {
        "kind": "found", "results": vec![result; RESULTS], "rest": {"pageToken": "next"},
    }});
    let mut made = Vec::new();
    for _ in 0..2 {
        registry.inner.advance(Duration::seconds(1));
        let id = registry.foreign_task(Some(account)).await;
        assert!(registry.finish_with(id, &outcome).await);
        made.insert(0, json!(id));
        let task = get_task(&registry, admin(), &json!(id)).await.unwrap();
        let response = task_data(&task);
        let results = response["results"].as_array().unwrap();
        let bytes: usize = results.iter().map(|one| one.to_string().len()).sum();
        assert!(bytes <= 1 << 20, "{bytes}");
        let shown = results.len();
        assert!((1..RESULTS).contains(&shown), "{shown}");
        let left_out = json!({"leftOut": RESULTS - shown});
        assert_eq!(task["artifacts"][0]["metadata"], left_out);
        assert_eq!(response["pageToken"], "next");
    }
    let mut params = json!({"includeArtifacts": true});
    for (place, id) in made.iter().enumerate() {
        let page = list_tasks(&registry, admin(), params.clone()).await;
        assert_eq!(task_ids(&page), std::slice::from_ref(id));
        assert_eq!(page["nextPageToken"] == "", place == 1);
        params["pageToken"] = page["nextPageToken"].clone();
    }
    assert_eq!(
        task_ids(&list_tasks(&registry, admin(), json!({})).await),
        made
    );
}

async fn a_list_reads_what_is_asked_for(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let account = registry.inner.admin.require_account().unwrap().id;
    for text in ["x", ""] {
        registry
            .send_message(admin(), &message(&json!([{"text": text}])))
            .await;
    }
    let now = (registry.inner.now().unix_timestamp_nanos() / 1000) as i64;
    let every: &[TaskState] = TaskState::ALL;
    for (history, outcomes, expected) in [
        (true, every, [true, true, true]),
        (false, &[TaskState::InputRequired][..], [false, false, true]),
        (false, &[][..], [false, false, false]),
    ] {
        let columns = TaskProjection { history, outcomes };
        let (store, filter) = (&registry.inner.store, a2a_tasks::TaskFilter::default());
        let heads = a2a_tasks::task_positions(store, account, &filter, None, 9, columns, now);
        let heads = heads.await.unwrap();
        let all = heads.iter().map(|head| head.id).collect();
        let rows = a2a_tasks::live_tasks_by_ids(store, account, all, columns, now);
        let rows = rows.await.unwrap();
        assert_eq!(rows.len(), 2);
        for row in rows {
            let head = heads.iter().find(|head| head.id == row.id).unwrap();
            let has_history = row.history != "[]";
            let outcome = row.outcome.as_ref().map_or(0, String::len);
            let bytes = if has_history { row.history.len() } else { 0 } + outcome;
            assert_eq!(head.bytes, bytes as i64);
            let is_question = row.state.known_value() == Some(TaskState::InputRequired);
            let shown = if is_question {
                expected[2]
            } else {
                expected[1]
            };
            assert_eq!((has_history, row.outcome.is_some()), (expected[0], shown));
            assert_eq!(row.more, None);
        }
    }
}

async fn of_messages_at_the_same_time_none_is_lost(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    for immediately in [false, true] {
        let asked = registry.send_text("").await;
        let sent: Vec<Value> = (0..12)
            .map(|_| {
                let mut further = message(&json!([{"text": ""}]));
                further["taskId"] = asked["id"].clone();
                json!({"message": further, "configuration": {"returnImmediately": immediately}})
            })
            .collect();
        let calls = sent
            .iter()
            .map(|params| registry.call(V1, None, "SendMessage", params));
        let answers = join_all(calls).await;
        let kept = get_task(&registry, None, &asked["id"]).await.unwrap();
        let history: HashSet<&str> = kept["history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["messageId"].as_str().unwrap())
            .collect();
        let mut taken = 0;
        for (params, answer) in sent.iter().zip(answers) {
            let id = params["message"]["messageId"].as_str().unwrap();
            assert_eq!(history.contains(id), answer.is_ok(), "{answer:?}");
            match answer {
                Ok(_) => taken += 1,
                Err(error) => assert_eq!(error["code"], -32004),
            }
        }
        assert!(taken > 0);
    }
    // By what was read: a change of what has changed since is none.
    let id = registry.foreign_task(None).await;
    let now = (registry.inner.now().unix_timestamp_nanos() / 1000) as i64;
    for (since, expected) in [(now - 1, false), (now, true), (now, false)] {
        let change = a2a_tasks::TaskUpdate {
            state: TaskState::Working,
            history: None,
            outcome: None,
            next_page_request: None,
            at: now + 1,
        };
        let write = registry.inner.store.begin_write().await.unwrap();
        let changed = write.update_task(id, &[TaskState::Working], Some(since), change);
        assert_eq!(changed.await.unwrap(), expected, "{since} {now}");
        write.commit().await.unwrap();
    }
}

/// Sends a message without a token from an address; returns the task's identifier.
async fn say_from(registry: &ListeningRegistry, address: &str) -> Value {
    let request = registry.request(Method::POST, "/a2a/v1/message:send", V1, None);
    let request = request
        .header("x-forwarded-for", address)
        .json(&json!({"message": message(&json!([{"text": "x"}]))}));
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    registry.inner.advance(Duration::seconds(1));
    answer["task"]["id"].clone()
}

async fn a_sender_pushes_out_its_own_tasks_alone(url: &str) {
    let registry = ListeningRegistry::with_config(url, |config: &mut Config| {
        config.server.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
        config.a2a.anonymous_tasks_per_address = 3;
        config.a2a.anonymous_tasks = 6;
    })
    .await;
    let ann = create_account_token(&registry, "ann").await;
    let of_ann = send_message(&registry, Some(&ann), &clarifying_message(0))
        .await
        .unwrap()["id"]
        .clone();
    let mut made: Vec<(char, Value)> = Vec::new();
    // Two addresses of one IPv6 /64 are one sender.
    for (sender, address, kept) in [
        ('a', "2001:db8::1", "a"),
        ('a', "2001:db8::2", "aa"),
        ('a', "2001:db8::3", "aaa"),
        // Its share is full, so its first one goes.
        ('a', "2001:db8::4", "-aaa"),
        ('b', "192.0.2.1", "-aaab"),
        ('c', "192.0.2.2", "-aaabc"),
        ('c', "192.0.2.2", "-aaabcc"),
        // All places are full: the one who has most loses its oldest,
        ('d', "192.0.2.3", "--aabccd"),
        // and of two who have as many, the one whose oldest is older.
        ('d', "192.0.2.3", "---abccdd"),
        ('c', "192.0.2.2", "---ab-cddc"),
        ('a', "2001:db8::1", "----b-cddca"),
    ] {
        made.push((sender, say_from(&registry, address).await));
        let mut seen = String::new();
        for (sender, id) in &made {
            let is_kept = get_task(&registry, None, id).await.is_ok();
            seen.push(if is_kept { *sender } else { '-' });
        }
        assert_eq!(seen, kept, "{address}");
        assert!(get_task(&registry, Some(&ann), &of_ann).await.is_ok());
    }
    // However many one sends, the others keep theirs.
    for _ in 0..20 {
        say_from(&registry, "192.0.2.9").await;
    }
    for sender in ['a', 'b', 'c', 'd'] {
        let mut own = made.iter().filter(|(of, _)| *of == sender).rev();
        let (_, last) = own.next().unwrap();
        assert!(get_task(&registry, None, last).await.is_ok(), "{sender}");
    }
}

async fn messages_at_the_same_time_make_tasks_that_are_all_kept(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let sent = join_all((0..60).map(|_| registry.send_text(""))).await;
    let different: HashSet<String> = sent.iter().map(|task| task["id"].to_string()).collect();
    assert_eq!(different.len(), 60);
    for task in &sent {
        assert_eq!(get_task(&registry, None, &task["id"]).await.unwrap(), *task);
    }
}

/// The agents that a question may mean are not kept with the messages, where nobody checks them again.
async fn a_question_leaves_no_agent_in_the_history(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let (hidden, _) = registry
        .publish_with_urn("twin1", "Twin", "One of two")
        .await;
    registry
        .publish_with_urn("twin2", "Twin", "One of two")
        .await;
    let eve = create_account_token(&registry, "eve").await;
    let by = Some(eve.as_str());
    let asked = registry
        .send_message(by, &message(&json!([{"text": "describe Twin"}])))
        .await;
    assert!(asked["status"]["message"].to_string().contains("twin1"));
    let mut further = message(&json!([{"text": ""}]));
    further["taskId"] = asked["id"].clone();
    let task = registry.send_message(by, &further).await;
    assert_eq!(task["history"][1]["role"], "ROLE_AGENT");
    registry.show(hidden, Visibility::Restricted).await;
    let now = get_task(&registry, by, &asked["id"]).await.unwrap();
    let listed = list_tasks(&registry, by, json!({"includeArtifacts": true})).await;
    for seen in [&now, &listed] {
        assert!(!seen.to_string().contains("twin1"), "{seen}");
    }
}

#[tokio::test]
async fn a_path_that_cannot_be_read_is_refused() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::new(database.url()).await;
    for (method, path) in [
        (Method::GET, "/a2a/v1/tasks/%zz"),
        (Method::GET, "/a2a/tasks/%ff"),
        (Method::POST, "/a2a/v1/tasks/%zz:cancel"),
        (Method::POST, "/a2a/v1/tasks/%zz:subscribe"),
    ] {
        let answer = registry
            .request(method, path, V1, None)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 400, "{path}");
        let document: Value = answer.json().await.unwrap();
        assert_eq!(document["error"]["code"], 400, "{path}");
    }
}
