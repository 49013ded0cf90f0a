//! Tasks: owners, limits, expiry, list and end, and that replicas share them.

use a2a_registry_api::NewToken;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Config;
use a2a_registry_core::health::housekeeping::delete_expired_rows;
use a2a_registry_domain::role::Role;
use a2a_registry_store::Executor as _;
use a2a_registry_store::entity::a2a_task;
use reqwest::{Method, Response, StatusCode};
use sea_orm::EntityTrait as _;
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use super::listening_registry::{
    ListeningRegistry, V1, admin, events, message, result_identifiers, task_text,
};
use crate::collections::create_account;
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::polling::eventually;

both_databases!(
    tasks_are_of_their_caller_alone,
    tasks_are_listed_page_after_page,
    tasks_are_bounded_and_expire,
    a_task_ends_once
);

/// The secret of a token of a new account.
pub(super) async fn create_account_token(registry: &ListeningRegistry, name: &str) -> String {
    create_account(&registry.inner, name, Role::Reader).await;
    let new = NewToken {
        account: name.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.inner.app, &registry.inner.admin, &new).await;
    made.unwrap().secret
}

pub(super) async fn get_task(
    registry: &ListeningRegistry,
    token: Option<&str>,
    id: &Value,
) -> Result<Value, Value> {
    registry
        .call(V1, token, "GetTask", &json!({"id": id}))
        .await
}

pub(super) async fn list_tasks(
    registry: &ListeningRegistry,
    token: Option<&str>,
    params: Value,
) -> Value {
    registry
        .call(V1, token, "ListTasks", &params)
        .await
        .unwrap()
}

pub(super) fn task_ids(list: &Value) -> Vec<Value> {
    let tasks = list["tasks"].as_array().unwrap();
    tasks.iter().map(|task| task["id"].clone()).collect()
}

async fn tasks_are_of_their_caller_alone(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    registry
        .publish_with_urn("paint", "Painter", "Paints fences")
        .await;
    let (ann, ben) = (
        create_account_token(&registry, "ann").await,
        create_account_token(&registry, "ben").await,
    );
    let callers = [Some(ann.as_str()), Some(ben.as_str()), None];
    let mut tasks = Vec::new();
    for caller in callers {
        // All in a conversation of the same name.
        let mut first = message(&json!([{"data": {"query": {"text": "paints"}, "pageSize": 1}}]));
        first["contextId"] = json!("shared");
        tasks.push(registry.send_message(caller, &first).await);
    }
    let missing = get_task(&registry, None, &json!(Uuid::new_v4()))
        .await
        .unwrap_err();
    assert_eq!(missing["code"], -32001);
    for (caller, own) in callers.iter().zip(&tasks) {
        for task in &tasks {
            let is_own = task["id"] == own["id"];
            let id = &task["id"];
            let got = get_task(&registry, *caller, id).await;
            assert_eq!(got.is_ok(), is_own, "{caller:?} {id}");
            if !is_own {
                assert_eq!(got.unwrap_err(), missing);
                for method in ["CancelTask", "SubscribeToTask"] {
                    let refused = registry.call(V1, *caller, method, &json!({"id": id})).await;
                    assert_eq!(refused.unwrap_err(), missing, "{method}");
                }
                let mut further = message(&json!([{"text": "x"}]));
                further["taskId"] = id.clone();
                let refused = registry
                    .call(V1, *caller, "SendMessage", &json!({"message": further}))
                    .await;
                assert_eq!(refused.unwrap_err(), missing);
            }
        }
        let listed = list_tasks(&registry, *caller, json!({"contextId": "shared"})).await;
        let expected = if caller.is_some() {
            vec![own["id"].clone()]
        } else {
            Vec::new()
        };
        assert_eq!(task_ids(&listed), expected, "{caller:?}");
        assert_eq!(listed["totalSize"], expected.len());
    }
    // Nobody goes on with another's search, by the conversation's name alone.
    let mut more = message(&json!([{"text": "more"}]));
    more["contextId"] = json!("shared");
    let task = registry.send_message(None, &more).await;
    assert_eq!(
        task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{task}"
    );
    let task = registry.send_message(Some(&ann), &more).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    // An invalid token is no anonymous caller.
    let refused = registry
        .post(V1, Some("nonsense"), "GetTask", &json!({"id": "x"}))
        .await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let document: Value = refused.json().await.unwrap();
    assert_eq!(
        (&document["jsonrpc"], &document["id"]),
        (&json!("2.0"), &Value::Null)
    );
}

async fn tasks_are_listed_page_after_page(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    registry
        .publish_with_urn("paint", "Painter", "Paints fences")
        .await;
    let ann = create_account_token(&registry, "ann").await;
    let by = Some(ann.as_str());
    let mut made = Vec::new();
    for number in 0..5 {
        let text = if number == 3 { "" } else { "paints" };
        let mut sent = message(&json!([{"text": text}]));
        sent["contextId"] = json!(format!("talk {}", number % 2));
        made.push(registry.send_message(by, &sent).await["id"].clone());
        registry.inner.advance(Duration::seconds(1));
    }
    made.reverse();
    let all = list_tasks(&registry, by, json!({})).await;
    assert_eq!(task_ids(&all), made);
    assert_eq!(
        (&all["nextPageToken"], &all["pageSize"], &all["totalSize"]),
        (&json!(""), &json!(50), &json!(5))
    );
    for task in all["tasks"].as_array().unwrap() {
        assert!(task.get("artifacts").is_none(), "{task}");
        assert!(task["status"]["timestamp"].as_str().unwrap().ends_with('Z'));
    }
    let whole = list_tasks(
        &registry,
        by,
        json!({"includeArtifacts": true, "pageSize": 100}),
    )
    .await;
    assert_eq!(whole["pageSize"], 20);
    assert_eq!(
        result_identifiers(&whole["tasks"][0]),
        ["urn:air:paint.agents-test.com:agents:paint"]
    );
    let (mut seen, mut params) = (Vec::new(), json!({"pageSize": 2}));
    loop {
        let page = list_tasks(&registry, by, params.clone()).await;
        assert!(task_ids(&page).len() <= 2 && page["totalSize"] == 5);
        seen.extend(task_ids(&page));
        params["pageToken"] = page["nextPageToken"].clone();
        if params["pageToken"] == "" {
            break;
        }
    }
    assert_eq!(seen, made);
    for (filter, expected) in [
        (json!({"contextId": "talk 1"}), vec![1, 3]),
        (json!({"status": "TASK_STATE_INPUT_REQUIRED"}), vec![1]),
        (json!({"status": "TASK_STATE_REJECTED"}), vec![]),
        (json!({"contextId": "no such"}), vec![]),
        (
            json!({"statusTimestampAfter": all["tasks"][1]["status"]["timestamp"]}),
            vec![0, 1],
        ),
    ] {
        let expected: Vec<Value> = expected
            .into_iter()
            .map(|place: usize| made[place].clone())
            .collect();
        assert_eq!(
            task_ids(&list_tasks(&registry, by, filter.clone()).await),
            expected,
            "{filter}"
        );
    }
    let page = list_tasks(&registry, by, json!({"pageSize": 2})).await;
    let forged = page["nextPageToken"].clone();
    for wrong in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"pageSize": -1}),
        json!({"status": "done"}),
        json!({"pageToken": "x"}),
        json!({"pageToken": forged, "contextId": "talk 1"}),
        json!({"statusTimestampAfter": "yesterday"}),
        json!({"historyLength": "many"}),
    ] {
        let error = registry
            .call(V1, by, "ListTasks", &wrong)
            .await
            .unwrap_err();
        assert_eq!(error["code"], -32602, "{wrong}");
    }
    let error = registry
        .call(V1, admin(), "ListTasks", &json!({"pageToken": forged}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    // The same over HTTP+JSON.
    let query = "contextId=talk%201&pageSize=1&includeArtifacts=true&historyLength=0";
    let request = registry.request(Method::GET, &format!("/a2a/v1/tasks?{query}"), V1, by);
    let page: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (task_ids(&page), &page["pageSize"], &page["totalSize"]),
        (vec![made[1].clone()], &json!(1), &json!(2))
    );
    assert!(page["tasks"][0].get("history").is_none());
}

pub(super) async fn count_task_rows(registry: &ListeningRegistry) -> usize {
    let rows = a2a_task::Entity::find()
        .all(registry.inner.store.connection())
        .await;
    rows.unwrap().len()
}

async fn tasks_are_bounded_and_expire(url: &str) {
    let registry = ListeningRegistry::with_config(url, |config: &mut Config| {
        config.a2a.tasks_per_account = 3;
        config.a2a.anonymous_tasks = 2;
        config.a2a.tasks = 4;
        config.a2a.task_hours = 2;
    })
    .await;
    let ann = create_account_token(&registry, "ann").await;
    for (caller, most) in [(Some(ann.as_str()), 3), (None, 2)] {
        let mut made = Vec::new();
        for number in 0..=most {
            let task = registry
                .send_message(caller, &message(&json!([{"text": "x"}])))
                .await;
            made.push(task["id"].clone());
            registry.inner.advance(Duration::seconds(1));
            // All of those up to the bound are kept, and with one more the oldest is not.
            let first = get_task(&registry, caller, &made[0]).await;
            assert_eq!(first.is_ok(), number < most, "{caller:?} {number}");
        }
        for id in &made[1..] {
            assert!(get_task(&registry, caller, id).await.is_ok(), "{caller:?}");
        }
    }
    assert_eq!(count_task_rows(&registry).await, 5);
    delete_expired_rows(&registry.inner.app).await.unwrap();
    assert_eq!(count_task_rows(&registry).await, 4);
    let last = registry
        .send_message(None, &message(&json!([{"text": "x"}])))
        .await;
    registry
        .inner
        .advance(Duration::hours(2) - Duration::microseconds(1));
    assert!(get_task(&registry, None, &last["id"]).await.is_ok());
    registry.inner.advance(Duration::microseconds(1));
    assert_eq!(
        get_task(&registry, None, &last["id"]).await.unwrap_err()["code"],
        -32001
    );
    assert_eq!(
        list_tasks(&registry, Some(&ann), json!({})).await["totalSize"],
        0
    );
    delete_expired_rows(&registry.inner.app).await.unwrap();
    assert_eq!(count_task_rows(&registry).await, 0);
}

async fn a_task_ends_once(url: &str) {
    let registry = ListeningRegistry::new(url).await;
    let account = registry.inner.admin.require_account().unwrap().id;
    // Cancelled first: the work that comes later changes nothing.
    let id = registry.foreign_task(Some(account)).await;
    let cancelled = registry
        .call(V1, admin(), "CancelTask", &json!({"id": id}))
        .await
        .unwrap();
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert!(!registry.finish(id).await);
    assert_eq!(
        get_task(&registry, admin(), &json!(id)).await.unwrap(),
        cancelled
    );
    // Finished first: it cannot be cancelled.
    let id = registry.foreign_task(Some(account)).await;
    assert!(registry.finish(id).await);
    for _ in 0..2 {
        let refused = registry
            .call(V1, admin(), "CancelTask", &json!({"id": id}))
            .await;
        assert_eq!(refused.unwrap_err()["code"], -32002);
    }
    let refused = registry
        .call(V1, admin(), "SubscribeToTask", &json!({"id": id}))
        .await;
    assert_eq!(refused.unwrap_err()["code"], -32004);
    // While it is worked on it takes no message; a process that ends leaves it behind, and it fails.
    let id = registry.foreign_task(None).await;
    let mut further = message(&json!([{"text": "x"}]));
    further["taskId"] = json!(id);
    let refused = registry
        .call(V1, None, "SendMessage", &json!({"message": further}))
        .await;
    assert_eq!(refused.unwrap_err()["code"], -32004);
    registry.inner.advance(Duration::minutes(1));
    let working = get_task(&registry, None, &json!(id)).await.unwrap();
    assert_eq!(working["status"]["state"], "TASK_STATE_WORKING");
    registry.inner.advance(Duration::microseconds(1));
    let failed = get_task(&registry, None, &json!(id)).await.unwrap();
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED");
    assert!(!registry.finish(id).await);
    // At once: the task, which is worked on or done; then what came of it.
    let params = json!({"message": message(&json!([{"text": "x"}])), "configuration": {"returnImmediately": true}});
    let begun = registry
        .call(V1, admin(), "SendMessage", &params)
        .await
        .unwrap();
    let id = begun["task"]["id"].clone();
    assert_eq!(begun["task"]["status"]["state"], "TASK_STATE_WORKING");
    let done = eventually("the task is done", async || {
        let task = get_task(&registry, admin(), &id).await.unwrap();
        (task["status"]["state"] == "TASK_STATE_COMPLETED").then_some(task)
    });
    assert!(task_text(&done.await).starts_with("No agents found"));
}

/// Reads a stream up to its first event.
pub(super) async fn first_event(answer: &mut Response) -> Value {
    let chunk = answer.chunk().await.unwrap().unwrap();
    let text = String::from_utf8(chunk.to_vec()).unwrap();
    serde_json::from_str(text.trim().strip_prefix("data: ").unwrap()).unwrap()
}

/// Every stream of a task has the same events, on whichever replica; closing one takes nothing from the others.
#[tokio::test]
async fn streams_of_a_task_are_the_same_on_all_replicas() {
    let database = Database::postgres().await;
    let one = ListeningRegistry::new(database.url()).await;
    let other = one.second_replica().await;
    let id = one.foreign_task(None).await;
    let params = json!({"id": id});
    let mut open = Vec::new();
    for replica in [&one, &other] {
        open.push(replica.post(V1, None, "SubscribeToTask", &params).await);
        for method in [Method::GET, Method::POST] {
            let path = format!("/a2a/v1/tasks/{id}:subscribe");
            open.push(
                replica
                    .request(method, &path, V1, None)
                    .send()
                    .await
                    .unwrap(),
            );
        }
    }
    let task = first_event(&mut open[0]).await["result"]["task"].clone();
    assert_eq!(
        (&task["id"], &task["status"]["state"]),
        (&json!(id), &json!("TASK_STATE_WORKING"))
    );
    for answer in &mut open[1..] {
        let event = first_event(answer).await;
        let event = event.get("result").unwrap_or(&event);
        assert_eq!(event["task"], task);
    }
    drop(open.remove(1));
    // Made on one replica, got and listed by the other.
    assert_eq!(get_task(&other, None, &json!(id)).await.unwrap(), task);
    assert!(one.finish(id).await);
    let mut seen = Vec::new();
    for answer in open {
        let rest: Vec<Value> = events(answer).await;
        seen.push(
            rest.iter()
                .map(|one| one.get("result").unwrap_or(one).clone())
                .collect::<Vec<_>>(),
        );
    }
    let [artifact, end] = seen[0].as_slice() else {
        panic!("{seen:?}");
    };
    assert!(artifact.get("artifactUpdate").is_some());
    assert_eq!(
        end["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    let kept = served_task(&one, admin()).await;
    assert_eq!(get_task(&other, admin(), &kept["id"]).await.unwrap(), kept);
    assert_eq!(
        task_ids(&list_tasks(&other, admin(), json!({})).await),
        [kept["id"].clone()]
    );
}

async fn served_task(registry: &ListeningRegistry, token: Option<&str>) -> Value {
    registry
        .send_message(token, &message(&json!([{"text": "x"}])))
        .await
}
