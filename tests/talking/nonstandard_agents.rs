//! Agents written after descriptions of A2A other than the specification, called from the command line.

use serde_json::{Value, json};

use super::CARD;
use super::raw::{RawReply, RawServer};
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, join_lines, registry_command};

/// A host with that card.
fn host(card: &Value) -> Origin {
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card.to_string()));
    origin
}

fn rpc_result(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

fn rpc_reply(answer: &Value) -> RawReply {
    RawReply::json(&rpc_result(answer))
}

async fn run_with_credential(words: &[&str], credential: (&str, &str)) -> FinishedProgram {
    let mut command = registry_command(words);
    command.env(credential.0, credential.1);
    Program::run(command).await
}

/// Whether every request had this header.
fn all_had(server: &RawServer, header: &str) -> bool {
    let seen = server.seen();
    let has = |head: &str| head.lines().any(|line| line.eq_ignore_ascii_case(header));
    !seen.is_empty() && seen.iter().all(|request| has(&request.head))
}

/// `AgentOS`: 0.1 with tools beside the skills, bearer tokens, results by polling and `cancelled` with two l.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_agentos_is_talked_to() {
    let task = |state: &str| json!({"id": "t", "sessionId": "s", "status": {"state": state}, "history": []});
    let mut done = task("completed");
    done["artifacts"] = json!([{"parts": [{"type": "text", "text": "at your service"}]}]);
    let server = RawServer::start(vec![
        rpc_reply(&task("submitted")),
        rpc_reply(&task("working")),
        rpc_reply(&done),
        rpc_reply(&task("cancelled")),
    ])
    .await;
    let origin = host(&json!({
        "name": "Desk", "description": "Answers", "url": format!("{}/a2a/rpc", server.base),
        "capabilities": {"tools": ["summarize"], "streaming": false, "pushNotifications": false},
        "skills": [{"id": "plan", "name": "Plan", "description": "Plans"}],
        "authentication": {"schemes": ["bearer"]},
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
    }));
    let (card, token) = (origin.url(CARD), ("A2A_AGENT_TOKEN", "secret-1"));
    let sent = run_with_credential(&["send", "--direct", &card, "hi"], token).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    assert_eq!(sent.stdout, ["at your service"]);
    let canceled = run_with_credential(&["task", "cancel", "--direct", &card, "t"], token).await;
    assert_eq!(canceled.status.code(), Some(0), "{canceled:#?}");
    assert!(
        join_lines(&canceled.stderr).contains("is canceled"),
        "{canceled:#?}"
    );
    let methods = ["tasks/send", "tasks/get", "tasks/get", "tasks/cancel"];
    assert_eq!(server.methods(), methods);
    assert!(all_had(&server, "authorization: Bearer secret-1"));
}

/// A host with the card of an agent after the protocol reference of 0.3.0.
fn reference(server: &RawServer) -> Origin {
    host(&json!({
        "name": "Desk", "description": "Answers", "version": "1", "url": format!("{}/a2a", server.base),
        "provider": {"name": "Harbour", "url": "https://harbourlight.io"},
        "capabilities": {"streaming": true, "pushNotifications": false, "stateTransitionHistory": true},
        "schemes": [{"scheme": "apiKey", "in": "header", "name": "X-Desk-Key"}],
        "skills": [{"id": "ask", "name": "Ask", "examples": [{"input": "Who is there?"}]}],
    }))
}

/// The protocol reference of 0.3.0: a list of schemes, parts and events without `kind`, the state `created`, and
/// `tasks/subscribe`.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_after_the_0_3_reference_is_talked_to() {
    let task = |state: &str| json!({"id": "t", "contextId": "c", "status": {"state": state}});
    let status = |state: &str| json!({"taskId": "t", "contextId": "c", "status": {"state": state}});
    let artifact = json!({"taskId": "t", "contextId": "c",
        "artifact": {"artifactId": "a", "parts": [{"text": "at your service"}]}});
    let stream = |first: Value| {
        let events = [
            first,
            status("working"),
            artifact.clone(),
            status("completed"),
        ];
        RawReply::events(&events.map(|event| rpc_result(&event)))
    };
    let unknown =
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "unknown"}});
    let mut done = task("completed");
    done["artifacts"] = json!([artifact["artifact"]]);
    let server = RawServer::start(vec![
        stream(task("created")),
        rpc_reply(&task("created")),
        RawReply::json(&unknown),
        stream(status("working")),
        rpc_reply(&done),
    ])
    .await;
    let origin = reference(&server);
    let (card, key) = (origin.url(CARD), ("A2A_AGENT_KEY", "secret-2"));
    let sent = run_with_credential(&["send", "--direct", &card, "hi"], key).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    assert_eq!(sent.stdout, ["at your service"]);
    let followed = run_with_credential(&["task", "subscribe", "--direct", &card, "t"], key).await;
    assert_eq!(followed.status.code(), Some(0), "{followed:#?}");
    assert_eq!(followed.stdout, ["at your service"]);
    let methods = server.methods();
    let expected = [
        "message/stream",
        "tasks/get",
        "tasks/resubscribe",
        "tasks/subscribe",
    ];
    assert_eq!(methods[..4], expected, "{methods:?}");
    assert!(all_had(&server, "X-Desk-Key: secret-2"));

    let server = RawServer::start(vec![
        rpc_reply(&json!({"tasks": [task("input_required")]})),
        rpc_reply(&task("canceled")),
    ])
    .await;
    let origin = reference(&server);
    let card = origin.url(CARD);
    let listed = run_with_credential(&["task", "list", "--direct", &card], key).await;
    assert_eq!(listed.status.code(), Some(0), "{listed:#?}");
    assert!(
        join_lines(&listed.stdout).contains("input-required"),
        "{listed:#?}"
    );
    let canceled = run_with_credential(&["task", "cancel", "--direct", &card, "t"], key).await;
    assert_eq!(canceled.status.code(), Some(0), "{canceled:#?}");
    assert_eq!(server.methods(), ["tasks/list", "tasks/cancel"]);
}
