//! The checks of the conformance kits that apply to this agent: the card rules of a2a-tck 1.0-dev and 0.3.x and of
//! a2a-inspector, and 1.0-dev's rules of both bindings.

use std::collections::BTreeMap;

use a2a_registry_core::config::Config;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::card::CARD;
use super::conversation::with_agents;
use super::listening_registry::{ListeningRegistry, V1, admin, events, message};
use crate::support::database::Database;

/// The members of each object of a card that the schema of 1.0 knows: it allows no others.
const SCHEMA: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "name",
            "description",
            "supportedInterfaces",
            "provider",
            "version",
            "documentationUrl",
            "capabilities",
            "securitySchemes",
            "securityRequirements",
            "defaultInputModes",
            "defaultOutputModes",
            "skills",
            "signatures",
            "iconUrl",
        ],
    ),
    (
        "/supportedInterfaces/*",
        &["url", "protocolBinding", "protocolVersion", "tenant"],
    ),
    (
        "/capabilities",
        &[
            "streaming",
            "pushNotifications",
            "extensions",
            "extendedAgentCard",
        ],
    ),
    ("/provider", &["url", "organization"]),
    (
        "/securitySchemes/*",
        &[
            "apiKeySecurityScheme",
            "httpAuthSecurityScheme",
            "oauth2SecurityScheme",
            "openIdConnectSecurityScheme",
            "mtlsSecurityScheme",
        ],
    ),
    (
        "/securitySchemes/*/httpAuthSecurityScheme",
        &["description", "scheme", "bearerFormat"],
    ),
    ("/securityRequirements/*", &["schemes"]),
    (
        "/skills/*",
        &[
            "id",
            "name",
            "description",
            "tags",
            "examples",
            "inputModes",
            "outputModes",
            "securityRequirements",
        ],
    ),
    ("/signatures/*", &["protected", "signature", "header"]),
];

/// The members that the schema of 1.0 does not know.
fn beyond_schema(card: &Value) -> Vec<String> {
    let known: BTreeMap<_, _> = SCHEMA.iter().copied().collect();
    let mut beyond = Vec::new();
    let mut left = vec![(String::new(), card)];
    while let Some((place, value)) = left.pop() {
        match value {
            Value::Array(list) => left.extend(list.iter().map(|one| (format!("{place}/*"), one))),
            Value::Object(members) => {
                for (name, member) in members {
                    if let Some(names) = known.get(place.as_str())
                        && !names.contains(&name.as_str())
                    {
                        beyond.push(format!("{place}/{name}"));
                        continue;
                    }
                    // The members of these are named by the card itself.
                    let free = place == "/securitySchemes";
                    left.push((format!("{place}/{}", if free { "*" } else { name }), member));
                }
            }
            _ => {}
        }
    }
    beyond.sort();
    beyond.dedup();
    beyond
}

async fn card(registry: &ListeningRegistry) -> Value {
    let answer = registry
        .request(Method::GET, CARD, None, None)
        .send()
        .await
        .unwrap();
    answer.json().await.unwrap()
}

fn modes_are_given(card: &Value) {
    for name in ["defaultInputModes", "defaultOutputModes"] {
        let modes = card[name].as_array().unwrap();
        assert!(!modes.is_empty(), "{name}");
        assert!(
            modes
                .iter()
                .all(|mode| mode.as_str().is_some_and(|mode| !mode.is_empty()))
        );
    }
}

/// Card rules of 1.0-dev. The card for clients of 0.3 too fails one of them, by the members that those need.
#[tokio::test]
async fn the_card_keeps_the_rules_of_the_kit_for_1_0() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.a2a.serve_0_3 = false;
        config.a2a.provider = "Acme".into();
    })
    .await;
    let pure = card(&registry).await;
    assert_eq!(beyond_schema(&pure), Vec::<String>::new());
    let answer = registry
        .request(Method::GET, CARD, None, None)
        .send()
        .await
        .unwrap();
    assert!(
        answer.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("max-age=")
    );
    assert!(
        answer.headers().contains_key("etag") && answer.headers().contains_key("last-modified")
    );
    let database = Database::sqlite();
    let registry = ListeningRegistry::new(database.url()).await;
    let both = card(&registry).await;
    assert_eq!(
        beyond_schema(&both),
        [
            "/preferredTransport",
            "/protocolVersion",
            "/security",
            "/securitySchemes/*/description",
            "/securitySchemes/*/scheme",
            "/securitySchemes/*/type",
            "/supportsAuthenticatedExtendedCard",
            "/url",
        ]
    );
    for card in [&pure, &both] {
        for name in [
            "name",
            "description",
            "version",
            "capabilities",
            "skills",
            "supportedInterfaces",
            "defaultInputModes",
            "defaultOutputModes",
        ] {
            assert!(!card[name].is_null(), "{name}");
        }
        modes_are_given(card);
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        for one in interfaces {
            let binding = one["protocolBinding"].as_str().unwrap();
            assert!(["JSONRPC", "HTTP+JSON"].contains(&binding));
            assert!(one["url"].as_str().unwrap().starts_with("http"));
            let version = one["protocolVersion"].as_str().unwrap();
            assert_eq!(version.split('.').count(), 2, "{version}");
        }
        let expected = if card == &both { 3 } else { 2 };
        assert_eq!(interfaces.len(), expected);
    }
}

/// Card rules of 0.3.x and of the inspector.
#[tokio::test]
async fn the_card_keeps_the_rules_of_the_kits_for_0_3() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::with_config(database.url(), |config: &mut Config| {
        config.server.public_url = "https://registry.example".into()
    })
    .await;
    let card = card(&registry).await;
    for name in [
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "description",
        "name",
        "protocolVersion",
        "skills",
        "url",
        "version",
    ] {
        assert!(!card[name].is_null(), "{name}");
    }
    for name in ["name", "description", "version", "url"] {
        assert!(!card[name].as_str().unwrap().is_empty(), "{name}");
    }
    assert!(card["url"].as_str().unwrap().starts_with("https://"));
    assert_eq!(
        (&card["protocolVersion"], &card["preferredTransport"]),
        (&json!("0.3.0"), &json!("JSONRPC"))
    );
    modes_are_given(&card);
    let capabilities = card["capabilities"].as_object().unwrap();
    assert!(capabilities.values().all(Value::is_boolean));
    let skills = card["skills"].as_array().unwrap();
    assert!(!skills.is_empty());
    for skill in skills {
        for name in ["id", "name", "description"] {
            assert!(!skill[name].as_str().unwrap().is_empty());
        }
        assert!(!skill["tags"].as_array().unwrap().is_empty());
    }
    // What the kit takes for secrets in a public card.
    let text = card.to_string().to_lowercase();
    for word in [
        "api key",
        "api_key",
        "apikey",
        "secret",
        "token",
        "password",
        "credential",
        "localhost",
        "127.0.0.1",
        "192.168.",
    ] {
        assert!(!text.contains(word), "{word}");
    }
}

/// An error in the form of a binding: code, status, reason.
type ExpectedError = (i64, u16, &'static str, &'static str);

const NOT_FOUND: ExpectedError = (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND");
const NOT_CANCELABLE: ExpectedError = (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE");
const NO_PUSH: ExpectedError = (
    -32003,
    400,
    "FAILED_PRECONDITION",
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
);
const UNSUPPORTED: ExpectedError = (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION");
const CONTENT: ExpectedError = (
    -32005,
    400,
    "INVALID_ARGUMENT",
    "CONTENT_TYPE_NOT_SUPPORTED",
);
const VERSION: ExpectedError = (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED");
const PARAMS: ExpectedError = (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS");

fn is_error_info(details: &Value, reason: &str) {
    let [info] = details.as_array().unwrap().as_slice() else {
        panic!("{details}");
    };
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!(
        (&info["reason"], &info["domain"]),
        (&json!(reason), &json!("a2a-protocol.org"))
    );
}

/// One operation in both bindings, and its error.
struct RejectedCall {
    method: &'static str,
    params: Value,
    rest: (Method, String, Option<Value>),
    error: ExpectedError,
}

fn refusals(ended: &Value, version: Option<&str>) -> Vec<RejectedCall> {
    let id = ended["id"].as_str().unwrap();
    let mut further = message(&json!([{"text": "x"}]));
    further["taskId"] = ended["id"].clone();
    let mut lost = further.clone();
    lost["taskId"] = json!("tck-nonexistent");
    let sends = |message: Value, error| RejectedCall {
        method: "SendMessage",
        params: json!({"message": message}),
        rest: (
            Method::POST,
            "message:send".into(),
            Some(json!({"message": message})),
        ),
        error,
    };
    let about = |method, id: &str, rest: (Method, String), error| RejectedCall {
        method,
        params: json!({"id": id, "taskId": id}),
        rest: (rest.0, rest.1, None),
        error,
    };
    let none = "tck-nonexistent";
    let mut all = vec![
        sends(further, UNSUPPORTED),
        sends(lost, NOT_FOUND),
        sends(
            message(&json!([{"raw": "dGNr", "mediaType": "application/x-unsupported-tck-type"}])),
            CONTENT,
        ),
        sends(
            message(&json!([{"url": "https://example.com/file"}])),
            CONTENT,
        ),
        sends(message(&json!([])), PARAMS),
        sends(
            json!({"role": "ROLE_USER", "parts": [{"text": "x"}]}),
            PARAMS,
        ),
        about(
            "GetTask",
            none,
            (Method::GET, format!("tasks/{none}")),
            NOT_FOUND,
        ),
        about(
            "CancelTask",
            none,
            (Method::POST, format!("tasks/{none}:cancel")),
            NOT_FOUND,
        ),
        about(
            "CancelTask",
            id,
            (Method::POST, format!("tasks/{id}:cancel")),
            NOT_CANCELABLE,
        ),
        about(
            "SubscribeToTask",
            none,
            (Method::POST, format!("tasks/{none}:subscribe")),
            NOT_FOUND,
        ),
        about(
            "SubscribeToTask",
            id,
            (Method::GET, format!("tasks/{id}:subscribe")),
            UNSUPPORTED,
        ),
        about(
            "GetExtendedAgentCard",
            none,
            (Method::GET, "extendedAgentCard".into()),
            UNSUPPORTED,
        ),
    ];
    let push = format!("tasks/{id}/pushNotificationConfigs");
    for (method, http, path) in [
        (
            "CreateTaskPushNotificationConfig",
            Method::POST,
            push.clone(),
        ),
        (
            "GetTaskPushNotificationConfig",
            Method::GET,
            format!("{push}/c"),
        ),
        ("ListTaskPushNotificationConfigs", Method::GET, push.clone()),
        (
            "DeleteTaskPushNotificationConfig",
            Method::DELETE,
            format!("{push}/c"),
        ),
    ] {
        all.push(about(method, id, (http, path), NO_PUSH));
    }
    if version != V1 {
        all.iter_mut().for_each(|one| one.error = VERSION);
    }
    all
}

/// Errors have the codes, statuses and details of 1.0 section 5.4 in both bindings, at all addresses of each.
#[tokio::test]
async fn errors_are_those_of_the_specification_in_both_bindings() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::new(database.url()).await;
    let ended = registry.send_text("x").await;
    for version in [V1, Some("1.0.7"), Some("99.0"), Some("1.1"), Some("x")] {
        let spoken = if version == Some("1.0.7") {
            V1
        } else {
            version
        };
        for refused in refusals(&ended, spoken) {
            let (code, status, word, reason) = refused.error;
            let what = format!("{version:?} {} {}", refused.method, refused.params);
            let error = registry
                .call(version, None, refused.method, &refused.params)
                .await;
            let error = error.expect_err(&what);
            assert_eq!(error["code"], code, "{what}");
            is_error_info(&error["data"], reason);
            let (method, path, body) = refused.rest;
            for base in ["/a2a/v1", "/a2a"] {
                let mut request =
                    registry.request(method.clone(), &format!("{base}/{path}"), version, None);
                if let Some(body) = &body {
                    request = request.json(body);
                }
                let answer = request.send().await.unwrap();
                assert_eq!(answer.status(), status, "{what} {path}");
                assert_eq!(answer.headers()["content-type"], "application/json");
                let document: Value = answer.json().await.unwrap();
                let error = &document["error"];
                assert_eq!(
                    (&error["code"], &error["status"]),
                    (&json!(status), &json!(word)),
                    "{what}"
                );
                is_error_info(&error["details"], reason);
            }
        }
    }
}

/// What is no request has JSON-RPC's own codes, and the address with a slash is the same one.
#[tokio::test]
async fn what_is_no_request_is_told_so() {
    let database = Database::sqlite();
    let registry = ListeningRegistry::new(database.url()).await;
    for path in ["/a2a", "/a2a/"] {
        for (body, code) in [
            ("{", -32700),
            ("[]", -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"Nothing"}"#, -32601),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#,
                -32602,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#,
                -32602,
            ),
        ] {
            let request = registry.request(Method::POST, path, V1, None);
            let request = request
                .header("content-type", "application/json")
                .body(body);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK, "{body}");
            let document: Value = answer.json().await.unwrap();
            assert_eq!(document["error"]["code"], code, "{body}");
        }
        let request = registry.request(Method::POST, path, V1, None).body("x");
        let document: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(document["error"]["code"], -32005);
        // Not a page, not a problem document.
        let answer = registry
            .request(Method::GET, path, V1, None)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        let document: Value = answer.json().await.unwrap();
        assert_eq!(document["jsonrpc"], "2.0");
    }
    for (method, path, status) in [
        (Method::GET, "/a2a/v1/nothing", 404),
        (Method::DELETE, "/a2a/v1/tasks", 405),
        (Method::PUT, "/a2a/v1/message:send", 405),
    ] {
        let answer = registry
            .request(method, path, V1, None)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let document: Value = answer.json().await.unwrap();
        assert_eq!(document["error"]["code"], status, "{path}");
    }
    for (path, body) in [
        ("message:send", "{"),
        ("message:send", "[]"),
        ("message:stream", "null"),
    ] {
        let request = registry.request(Method::POST, &format!("/a2a/v1/{path}"), V1, None);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 400);
        let document: Value = answer.json().await.unwrap();
        is_error_info(&document["error"]["details"], "PARSE_ERROR");
    }
    let refused = registry
        .request(Method::GET, "/a2a/v1/tasks", V1, Some("nonsense"))
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let document: Value = refused.json().await.unwrap();
    assert_eq!(
        (&document["error"]["code"], &document["error"]["status"]),
        (&json!(401), &json!("UNAUTHENTICATED"))
    );
}

/// Send, get, list and cancel over HTTP+JSON are what they are over JSON-RPC; histories are cut; extensions are tolerated.
#[tokio::test]
async fn both_bindings_do_the_same() {
    let database = Database::sqlite();
    let registry = with_agents(database.url()).await;
    let mut sent =
        message(&json!([{"text": "flights", "mediaType": "text/plain", "metadata": {"a": 1}}]));
    sent["contextId"] = json!("tck-client-context-001");
    sent["metadata"] = json!({"b": [1, 2]});
    for (path, kind) in [
        ("/a2a/v1/message:send", "application/a2a+json"),
        ("/a2a/message:send", "application/json"),
    ] {
        let request = registry.request(Method::POST, path, V1, admin());
        let request = request
            .header("content-type", kind)
            .header("A2A-Extensions", "https://example.com/ext/v1")
            .body(json!({"message": sent, "tenant": ""}).to_string());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["content-type"], "application/a2a+json");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        let task = answer.json::<Value>().await.unwrap()["task"].clone();
        assert_eq!(task["contextId"], "tck-client-context-001");
        let id = task["id"].as_str().unwrap();
        let got = registry
            .call(V1, admin(), "GetTask", &json!({"id": id}))
            .await
            .unwrap();
        assert_eq!(got, task);
        let request = registry.request(Method::GET, &format!("/a2a/v1/tasks/{id}"), V1, admin());
        assert_eq!(
            request.send().await.unwrap().json::<Value>().await.unwrap(),
            task
        );
        // The history is what was said.
        let kept = &task["history"][0];
        assert_eq!(
            (&kept["parts"], &kept["metadata"], &kept["messageId"]),
            (&sent["parts"], &sent["metadata"], &sent["messageId"])
        );
        assert_eq!(
            (&kept["taskId"], &kept["contextId"]),
            (&task["id"], &task["contextId"])
        );
        for (length, count) in [("0", None), ("1", Some(1)), ("5", Some(1))] {
            let path = format!("/a2a/v1/tasks/{id}?historyLength={length}");
            let cut: Value = registry
                .request(Method::GET, &path, V1, admin())
                .send()
                .await
                .unwrap()
                .json()
                .await
                .unwrap();
            assert_eq!(
                cut.get("history")
                    .map(|list| list.as_array().unwrap().len()),
                count
            );
        }
        let listed = registry
            .call(
                V1,
                admin(),
                "ListTasks",
                &json!({"contextId": "tck-client-context-001"}),
            )
            .await
            .unwrap();
        let mut listed = listed["tasks"].as_array().unwrap().iter();
        assert!(listed.any(|one| one["id"] == id));
    }
    // The version may stand in the address.
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
                      "params": {"message": sent, "configuration": {"historyLength": 0, "acceptedOutputModes": ["text/plain"]}}});
    let answer = registry
        .request(Method::POST, "/a2a?A2A-Version=1.0", None, None)
        .json(&call)
        .send()
        .await
        .unwrap();
    let task = answer.json::<Value>().await.unwrap()["result"]["task"].clone();
    assert!(task.get("history").is_none(), "{task}");
    assert_eq!(task["artifacts"][0]["parts"].as_array().unwrap().len(), 1);
    assert!(task["artifacts"][0]["parts"][0]["text"].is_string());
    let stamp = task["status"]["timestamp"].as_str().unwrap();
    assert_eq!(
        (stamp.len(), stamp.ends_with('Z'), &stamp[10..11]),
        (24, true, "T")
    );
    // Every task has an identifier of its own, and so has every conversation that names none.
    let (one, other) = (registry.send_text("x").await, registry.send_text("x").await);
    assert_ne!(one["id"], other["id"]);
    assert_ne!(one["contextId"], other["contextId"]);
    // An open task is cancelled in either binding.
    let open = registry.send_text("").await;
    let path = format!("/a2a/v1/tasks/{}:cancel", open["id"].as_str().unwrap());
    let answer = registry
        .request(Method::POST, &path, V1, None)
        .send()
        .await
        .unwrap();
    let ended: Value = answer.json().await.unwrap();
    assert_eq!(ended["status"]["state"], "TASK_STATE_CANCELED");
    // One stream of the other binding closes with it, and says nothing of `final`.
    let open = registry.foreign_task(None).await;
    let path = format!("/a2a/v1/tasks/{open}:subscribe");
    let stream = registry
        .request(Method::POST, &path, V1, None)
        .send()
        .await
        .unwrap();
    registry
        .call(V1, None, "CancelTask", &json!({"id": open}))
        .await
        .unwrap();
    let streamed = events(stream).await;
    assert_eq!(streamed[0]["task"]["id"], json!(open));
    assert_eq!(
        streamed.last().unwrap()["statusUpdate"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    assert!(
        streamed.last().unwrap()["statusUpdate"]
            .get("final")
            .is_none()
    );
}
