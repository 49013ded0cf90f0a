//! Registries that respond too late or only in part: the messages of the commands, which claim nothing they cannot
//! know.

use serde_json::{Value, json};

use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};

const AGENT: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// A command at a registry that must answer within a second.
async fn run_with_timeout(origin: &Origin, arguments: &[&str]) -> FinishedProgram {
    let mut command = registry_command(arguments);
    command.args(["--token", "a2ar_test", "--registry-timeout", "1"]);
    command.args(["--registry", origin.url("").trim_end_matches('/')]);
    Program::run(command).await
}

/// A question that is not answered is only that; of a change it is not known whether it was made, and the command says so.
#[tokio::test]
async fn a_change_without_an_answer_may_have_been_made() {
    let origin = Origin::start();
    let gate = ResponseGate::default();
    let agent = format!("/v1/agents/{AGENT}");
    let suspend = format!("{agent}:suspend");
    let suspended = ["agent", "suspend", AGENT, "--reason", "a test"];
    let shown = ["show", AGENT, "--json"];
    origin.set_reply(&agent, OriginReply::json("{}").gated_by(&gate));
    origin.set_reply(&suspend, OriginReply::json("{}").gated_by(&gate));
    let question = run_with_timeout(&origin, &shown).await;
    assert_exit(&question, 2, "did not answer within 1 s");
    let document: Value = serde_json::from_str(&join_lines(&question.stdout)).unwrap();
    assert!(
        !document.to_string().contains("may have been"),
        "{document}"
    );
    // Half of an answer is as little as none.
    for reply in [None, Some(OriginReply::stalled("{"))] {
        if let Some(reply) = reply {
            origin.set_reply(&suspend, reply);
        }
        let change = run_with_timeout(&origin, &suspended).await;
        assert_exit(&change, 2, "the change may have been made");
        assert!(
            !join_lines(&change.stderr).contains("nothing was"),
            "{change:?}"
        );
    }
    // So is what a proxy says that has given up; a refusal of the registry is one, and where nobody listens nothing was asked for.
    origin.set_reply(&suspend, OriginReply::html("late").with_status(504));
    let given_up = run_with_timeout(&origin, &suspended).await;
    assert_exit(&given_up, 2, "answered HTTP 504");
    assert_exit(&given_up, 2, "the change may have been made");
    let refusal = json!({"type": "/problems/conflict", "detail": "It is suspended already."});
    let refusal = OriginReply::json(refusal.to_string()).with_status(409);
    let refusal = refusal.with_header("content-type", "application/problem+json");
    origin.set_reply(&suspend, refusal);
    let refused = run_with_timeout(&origin, &suspended).await;
    assert_exit(&refused, 2, "It is suspended already.");
    assert!(
        !join_lines(&refused.stderr).contains("may have been"),
        "{refused:?}"
    );
    let nobody = registry_command(["agent", "suspend", AGENT, "--reason", "a test"]);
    let mut nobody = nobody;
    nobody.args(["--registry", "http://127.0.0.1:1"]);
    assert_exit(&Program::run(nobody).await, 2, "no registry answers at");
}

#[tokio::test]
async fn the_limit_is_a_number_of_seconds() {
    let origin = Origin::start();
    for wrong in ["0", "-1", "soon", "86401"] {
        let mut command = registry_command(["whoami"]);
        command.env("A2A_REGISTRY_TIMEOUT", wrong);
        command.args(["--registry", origin.url("").trim_end_matches('/')]);
        let refused = Program::run(command).await;
        assert_exit(&refused, 2, "--registry-timeout");
    }
}

/// A file of events has no end of its own, so the error says where it was cut.
#[tokio::test]
async fn a_cut_export_says_so() {
    let event = json!({"seq": 7, "at": "2026-11-24T09:31:00Z", "kind": "agent.approved", "subject": AGENT,
        "actor": "policy", "data": {}});
    let page = json!({"events": [event], "next_page_token": "more"});
    let origin = Origin::start();
    origin.set_reply("/v1/events", OriginReply::json(page.to_string()));
    let cut = async {
        origin.wait_for_request("/v1/events", 2).await;
        origin.set_reply("/v1/events", OriginReply::stalled("{"));
    };
    let export = run_with_timeout(&origin, &["events", "--all", "--json"]);
    let (export, ()) = tokio::join!(export, cut);
    assert_exit(&export, 2, "its last event is 7");
    let first: Value = serde_json::from_str(&export.stdout[0]).unwrap();
    assert_eq!(first, event);
}

/// A set that was accepted is not denied because somebody could not wait for it.
#[tokio::test]
async fn an_accepted_set_is_named_whatever_becomes_of_waiting_for_it() {
    // Set 5 was accepted, and set 4 decides: an answer to both requests.
    let set = json!({"number": 5, "in_force": 4, "policies": [], "author": null, "reason": null, "created_at": null});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everybody.cedar");
    std::fs::write(&path, "permit (principal, action, resource);\n").unwrap();
    let apply = [
        "policy",
        "apply",
        path.to_str().unwrap(),
        "--reason",
        "a test",
    ];
    let origin = Origin::start();
    origin.set_reply("/v1/policies", OriginReply::json(set.to_string()));
    let still = run_with_timeout(&origin, &[&apply[..], &["--wait=1"]].concat()).await;
    assert_exit(
        &still,
        1,
        "set 5 is accepted, but after 1 s set 4 is still in force",
    );

    let before = origin.requests_to("/v1/policies").len();
    let waiting = [&apply[..], &["--wait"]].concat();
    let lost = async {
        // Read, put, and asked once.
        origin.wait_for_request("/v1/policies", before + 3).await;
        let away =
            json!({"type": "/problems/unavailable", "detail": "The database did not respond."});
        let away = OriginReply::json(away.to_string()).with_status(503);
        let away = away.with_header("content-type", "application/problem+json");
        origin.set_reply("/v1/policies", away);
    };
    let (lost, ()) = tokio::join!(run_with_timeout(&origin, &waiting), lost);
    assert_exit(&lost, 2, "set 5 is accepted, but its state is unknown");
    assert!(
        !join_lines(&lost.stderr).contains("nothing was"),
        "{lost:?}"
    );
}
