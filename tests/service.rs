//! The registry as a service: signals, its log of actions, and whether it reports in time that it is not ready.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::api::{ApiResponse, RegistryClient};
use crate::support::database::Database;
use crate::support::database_proxy::{DatabaseProxy, ProxyState};
use crate::support::in_process_registry::card_bytes;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::StatusLine;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

const CARD: &str = "/.well-known/agent-card.json";

/// SIGHUP comes from a closed terminal, and from operators who want a reload; neither ends a service.
#[tokio::test]
async fn a_hangup_does_not_end_the_service() {
    let registry = RegistrySetup::new().start().await;
    let process = Pid::from_raw(i32::try_from(registry.program.id()).unwrap()).unwrap();
    kill_process(process, Signal::HUP).unwrap();
    registry
        .program
        .wait_for_line("the configuration was reloaded")
        .await;
    assert_eq!(registry.api.get("/livez").await.status, 200);
    registry.stop().await;
}

/// The log lines of acts, as JSON.
fn action_log_lines(lines: &[String]) -> Vec<Value> {
    let lines = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["target"] == "audit")
        .collect()
}

/// Each act and decision is logged once, with its account and the request id.
#[tokio::test]
async fn each_act_is_logged_once() {
    let registry = RegistrySetup::new()
        .with_config_lines("[log]\nformat = \"json\"")
        .start()
        .await;
    let api = &registry.api;
    let origin = Origin::start();
    origin.set_reply(
        CARD,
        OriginReply::json(card_bytes("Fernweh", "Books flights")),
    );
    let send = async |id: &str, path: &str, body: Value| {
        let request = api
            .admin_request(reqwest::Method::POST, path)
            .header("x-request-id", id)
            .json(&body);
        ApiResponse::send(request).await
    };
    let registration = json!({"card_url": origin.url(CARD)});
    let mut feed = api.open_event_stream(0).await;
    let domain = send("req-register", "/v1/domains", registration)
        .await
        .expect_status(202);
    let opened = feed.wait_for("review.opened").await;
    let review = opened["subject"].as_str().unwrap().to_owned();
    let shown = api
        .get_as_admin(&format!("/v1/reviews/{review}"))
        .await
        .expect_status(200);
    let agent = shown["agent"].as_str().unwrap().to_owned();
    let decision = json!({"digest": shown["digest"], "reason": "it is good"});
    send(
        "req-approve",
        &format!("/v1/reviews/{review}:approve"),
        decision,
    )
    .await
    .expect_status(200);
    let reason = json!({"reason": "a test"});
    send(
        "req-suspend",
        &format!("/v1/agents/{agent}:suspend"),
        reason.clone(),
    )
    .await
    .expect_status(200);
    // A refused act is not logged as done.
    send("req-refused", "/v1/agents/none:suspend", reason)
        .await
        .expect_problem(404, "not-found");
    // For an account that exists: making one is an act of its own.
    let token = json!({"account": "admin", "role": "curator", "name": "a test"});
    let token = send("req-token", "/v1/tokens", token)
        .await
        .expect_status(201);
    let ended = registry.stop().await;

    let acts = action_log_lines(&ended.stderr);
    let of = |id: &str| -> Vec<&Value> {
        let with = |act: &&Value| act["request_id"] == id;
        acts.iter().filter(with).collect()
    };
    for (id, kind, subject) in [
        (
            "req-register",
            "domain.registered",
            domain["domain"].clone(),
        ),
        ("req-approve", "agent.approved", agent.as_str().into()),
        ("req-suspend", "agent.held", agent.as_str().into()),
        ("req-token", "token.created", token["id"].clone()),
    ] {
        let lines = of(id);
        assert_eq!(lines.len(), 1, "{id}: {acts:#?}");
        let line = lines[0];
        assert_eq!(line["event"], kind, "{line}");
        assert_eq!(line["subject"], subject, "{line}");
        assert_eq!(line["actor"], "admin", "{line}");
        assert_eq!(line["level"], "INFO", "{line}");
    }
    assert!(of("req-refused").is_empty(), "{acts:#?}");
    let messages: Vec<Value> = ended
        .stderr
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| line["message"].clone())
        .collect();
    for message in ["started", "ended"] {
        let lines = messages.iter().filter(|text| *text == message);
        assert_eq!(lines.count(), 1, "{message}: {messages:?}");
    }
    // The log contains no secret.
    let secret = token["secret"].as_str().unwrap();
    let all = ended.stderr.join("\n");
    assert!(!all.contains(secret) && !all.contains(ADMIN_TOKEN), "{all}");
}

/// At any log level, credentials that are meant for another host are not logged.
#[tokio::test]
async fn credentials_for_other_hosts_are_never_logged() {
    const SECRET: &str = "eyJzZWNyZXQtb2YtYW5vdGhlci1ob3N0In0";
    let registry = RegistrySetup::new()
        .with_config_lines("[log]\nfilter = \"a2a_registry=trace,actix_http=debug,actix_server=trace,actix_web=trace,debug\"")
        .start()
        .await;
    let none = "018f0000-0000-7000-8000-000000000000";
    for path in [
        format!("/v1/agents/{none}/card"),
        format!("/agents/{none}/.well-known/agent-card.json"),
        format!("/v1/agents/{none}"),
    ] {
        for scheme in ["Bearer", "Basic", "DPoP", "Bearer a2ar_"] {
            let blank = if scheme.ends_with('_') { "" } else { " " };
            let request = registry
                .api
                .request(reqwest::Method::GET, &path)
                .header("authorization", format!("{scheme}{blank}{SECRET}"));
            let answer = ApiResponse::send(request).await;
            assert!(answer.status.is_client_error(), "{path}");
            assert!(!answer.text().contains(SECRET), "{path}");
        }
    }
    let ended = registry.stop().await;
    let logged = ended.stderr.iter().any(|line| line.contains("answered"));
    assert!(logged, "requests are logged at this level: {ended:?}");
    let leaked: Vec<_> = ended
        .stderr
        .iter()
        .filter(|line| line.contains(SECRET))
        .collect();
    assert!(leaked.is_empty(), "{leaked:?}");
}

/// The value of a metric in a scrape, if it is there.
fn sample(scrape: &str, name: &str) -> Option<f64> {
    let mut lines = scrape.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// A database that neither answers nor refuses is reported in time, to callers whose token cannot be verified too, and
/// the metrics keep what was read from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_reports_a_silent_database_in_time() {
    let database = Database::postgres().await;
    let line = DatabaseProxy::start(database.url()).await;
    let registry = RegistrySetup::new()
        .with_database(line.url())
        .with_config_lines("[server]\nmetrics_listen = \"127.0.0.1:0\"")
        .start()
        .await;
    let StatusLine::Serving {
        metrics_url: Some(metrics),
        ..
    } = &registry.status_line
    else {
        panic!("it serves no metrics: {:?}", registry.status_line);
    };
    let metrics = RegistryClient::new(metrics.strip_suffix("/metrics").unwrap());
    let scrape = async || metrics.get("/metrics").await.text();
    assert_eq!(registry.api.get("/readyz").await.status, 200);
    let read_only = "a2a_registry_database_read_only";
    let well = eventually("the metrics have read the database", async || {
        let well = scrape().await;
        sample(&well, read_only).is_some().then_some(well)
    })
    .await;
    assert_eq!(sample(&well, read_only), Some(0.0));
    line.set_state(ProxyState::Silent);
    let check = |away: &Value, name: &str| {
        let checks = away["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == name)
            .unwrap()
            .clone()
    };
    // The check of writes of the last second still counts.
    let away = eventually("both checks of the database fail", async || {
        let away = registry.api.get("/readyz").await;
        let away = away.expect_problem(503, "not-ready");
        (check(&away, "writes")["ok"] == false).then_some(away)
    })
    .await;
    let check = |name: &str| check(&away, name);
    assert_eq!(check("database")["ok"], false, "{away}");
    assert_eq!(check("writes")["ok"], false, "{away}");
    assert_eq!(check("disk")["ok"], true, "{away}");
    let to_admin = registry.api.get_as_admin("/readyz").await;
    let to_admin = to_admin.expect_problem(503, "not-ready");
    assert_eq!(to_admin["checks"], away["checks"]);
    // Longer than any pause between two polls of a database that responds.
    let away = eventually("the metrics show the silence", async || {
        let away = scrape().await;
        let silence = sample(&away, "a2a_registry_database_silence_seconds").unwrap();
        (silence > 3.0).then_some(away)
    })
    .await;
    let age = "a2a_registry_database_readings_age_seconds";
    assert!(sample(&away, age).unwrap() >= sample(&well, age).unwrap());
    assert_eq!(sample(&away, read_only), Some(0.0));
    assert_eq!(registry.api.get("/livez").await.status, 200);
    registry.program.kill().await;
}
