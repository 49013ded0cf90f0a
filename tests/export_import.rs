//! Curated content that is exported from one registry and imported into another: between SQLite and PostgreSQL and
//! back, with conflicts, decisions of others, changed cards, missing permissions and hostile files.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::api::ApiResponse;
use crate::support::cards::card_json;
use crate::support::database::Database;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{FinishedProgram, Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

const HEADER: &str = r#"{"kind":"header","format":"a2a-registry-export","version":1,"origin":"http://other.example"}"#;
const EVERYBODY: &str = "permit (principal, action, resource);\n";
const QUIET: &str =
    "forbid (principal, action, resource)\nwhen { resource.skills.contains(\"repeat\") };\n";

/// An origin with two cards: Echo, which the curators know, and Parrot, which waits.
fn start_origin() -> Origin {
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    origin.set_reply("/b.json", OriginReply::json(card_json("Parrot", "talk")));
    origin
}

async fn run_as_admin(registry: &ServingRegistry, arguments: &[&str]) -> FinishedProgram {
    let finished = registry.run_admin_command(arguments).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    finished
}

/// Registers a card and waits for its review; returns the ids of the agent and of the review, and the digest.
async fn register_pending(
    registry: &ServingRegistry,
    url: &str,
    name: &str,
) -> (String, String, String) {
    registry.register(url).await;
    let review = registry
        .wait_for_open_review(|review| review.name == name)
        .await;
    let agent = review.agent.to_string();
    (agent, review.id.to_string(), review.digest)
}

async fn approve_review(registry: &ServingRegistry, review: &str, digest: &str) {
    let arguments = [
        "review", "approve", review, "--digest", digest, "--reason", "known",
    ];
    run_as_admin(registry, &arguments).await;
}

/// Accounts are not imported, so each registry has its own.
async fn create_accounts(registry: &ServingRegistry) {
    registry.create_token("ann", "publisher").await;
    registry.create_token("ben", "publisher").await;
}

/// Makes something of every kind that is exported.
async fn curate_everything(registry: &ServingRegistry, origin: &Origin) {
    create_accounts(registry).await;
    run_as_admin(registry, &["group", "set", "team", "ben", "ann"]).await;
    let collection = [
        "collection",
        "set",
        "ours",
        "--filter",
        "label:env=prod tag:repeat",
        "--description",
        "What we run",
        "--group",
        "team",
        "--owner",
        "ann",
    ];
    run_as_admin(registry, &collection).await;
    let policies = TempDir::new().unwrap();
    std::fs::write(policies.path().join("everybody.cedar"), EVERYBODY).unwrap();
    std::fs::write(policies.path().join("quiet.cedar"), QUIET).unwrap();
    let folder = policies.path().to_str().unwrap();
    let apply = ["policy", "apply", folder, "--reason", "a test", "--wait"];
    run_as_admin(registry, &apply).await;
    let (agent, review, digest) = register_pending(registry, &origin.url("/a.json"), "Echo").await;
    let settings = json!({
        "labels": {"env": "prod", "team": "tax"}, "visibility": "restricted", "groups": ["team"],
        "collections": ["ours"], "sponsor": "ann", "derived_queries": true,
    });
    let patch = registry
        .admin_request(Method::PATCH, &format!("/v1/agents/{agent}"))
        .json(&settings);
    ApiResponse::send(patch).await.expect_status(200);
    let waiver = [
        "waiver",
        "grant",
        "quiet",
        &agent,
        "--digest",
        &digest,
        "--expires",
        "30",
        "--reason",
        "loud, but ours",
    ];
    run_as_admin(registry, &waiver).await;
    approve_review(registry, &review, &digest).await;
    register_pending(registry, &origin.url("/b.json"), "Parrot").await;
    let domain = origin.address().to_string();
    let contact = [
        "domain",
        "set",
        &domain,
        "--contact",
        "mailto:ops@agents.dev",
    ];
    run_as_admin(registry, &contact).await;
}

/// The exported text of a registry, and its records without what belongs to the person who imports: who decided, when
/// and why, and when a waiver ends.
async fn export_records(registry: &ServingRegistry) -> (String, Vec<Value>) {
    let finished = run_as_admin(registry, &["export"]).await;
    let records = finished.stdout.iter().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        for member in ["by", "at", "reason", "expires_at", "origin"] {
            record.as_object_mut().unwrap().remove(member);
        }
        record
    });
    let records = records.collect();
    (join_lines(&finished.stdout) + "\n", records)
}

async fn import_text(registry: &ServingRegistry, text: &str, options: &[&str]) -> FinishedProgram {
    let arguments = [&["import", "-"][..], options].concat();
    let command = registry.admin_command(&arguments);
    Program::run_with_input(command, text.as_bytes()).await
}

/// The lines of a report with `--json`.
fn parse_report(finished: &FinishedProgram) -> Vec<Value> {
    let lines = finished.stdout.iter();
    let parsed = lines.map(|line| serde_json::from_str(line));
    parsed
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {finished:#?}"))
}

/// The result for the only record of a kind.
#[track_caller]
fn result_of(report: &[Value], kind: &str) -> String {
    let mut lines = report.iter().filter(|line| line["kind"] == kind);
    let line = lines.next().unwrap_or_else(|| panic!("{report:#?}"));
    assert!(lines.next().is_none(), "{report:#?}");
    line["result"].as_str().unwrap().to_owned()
}

async fn read_events(registry: &ServingRegistry) -> Value {
    registry
        .read_as_admin("/v1/events?after=0&page_size=100")
        .await
}

/// The agent whose card has this name, as a curator sees it.
async fn agent_named(registry: &ServingRegistry, name: &str) -> Value {
    let reviews: Value = registry.read_as_admin("/v1/reviews?page_size=100").await;
    let mut reviews = reviews["reviews"].as_array().unwrap().iter();
    let review = reviews.find(|review| review["name"] == name).unwrap();
    let id = review["agent"].as_str().unwrap();
    registry.read_as_admin(&format!("/v1/agents/{id}")).await
}

/// Both engines hold the same content afterwards, and an import that is repeated does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curated_content_goes_from_sqlite_to_postgresql_and_back() {
    let origin = start_origin();
    let first = RegistrySetup::new().start().await;
    curate_everything(&first, &origin).await;
    let (text, records) = export_records(&first).await;
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record["kind"].as_str().unwrap())
        .collect();
    let expected = [
        "header",
        "group",
        "collection",
        "policy",
        "policy",
        "domain",
        "source",
        "source",
        "agent",
        "waiver",
        "decision",
        "agent",
        "end",
    ];
    assert_eq!(kinds, expected, "{text}");

    let database = Database::postgres().await;
    let second = RegistrySetup::new()
        .with_database(database.url())
        .start()
        .await;
    create_accounts(&second).await;
    let before = read_events(&second).await;
    let tried = import_text(&second, &text, &["--dry-run"]).await;
    assert_eq!(tried.status.code(), Some(1), "{tried:#?}");
    assert!(
        join_lines(&tried.stdout).contains("would create group team"),
        "{tried:#?}"
    );
    assert_eq!(
        read_events(&second).await,
        before,
        "a dry run changes nothing"
    );

    let imported = import_text(&second, &text, &["--json"]).await;
    assert_eq!(imported.status.code(), Some(0), "{imported:#?}");
    let lines = parse_report(&imported);
    let (summary, lines) = lines.split_last().unwrap();
    assert!(
        lines
            .iter()
            .all(|line| line["result"] == "created" || line["result"] == "same"),
        "{lines:#?}"
    );
    // Nobody had set anything for Parrot.
    assert_eq!(summary["created"], records.len() - 3, "{summary}");
    assert_eq!(summary["same"], 1, "{summary}");
    let echo = agent_named(&second, "Echo").await;
    assert_eq!(echo["lifecycle"], "approved");
    assert_eq!(echo["decision"]["by"], "admin");
    let reason = echo["decision"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with(&format!("imported from {}: admin at ", first.url)),
        "{reason}"
    );
    assert!(reason.ends_with(": known"), "{reason}");
    assert_eq!(agent_named(&second, "Parrot").await["lifecycle"], "pending");
    let unseen = second.search("q=Echo").await;
    assert_eq!(unseen["total"], 0, "it stays restricted");

    let again = import_text(&second, &text, &["--json"]).await;
    assert_eq!(again.status.code(), Some(0), "{again:#?}");
    assert_eq!(
        parse_report(&again).last().unwrap()["same"],
        records.len() - 2
    );

    let (back, second_records) = export_records(&second).await;
    assert_eq!(second_records, records);
    let third = RegistrySetup::new().start().await;
    create_accounts(&third).await;
    let returned = import_text(&third, &back, &[]).await;
    assert_eq!(returned.status.code(), Some(0), "{returned:#?}");
    assert_eq!(export_records(&third).await.1, records);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_differs_is_reported_and_stays() {
    let origin = start_origin();
    let first = RegistrySetup::new().start().await;
    curate_everything(&first, &origin).await;
    let (text, _) = export_records(&first).await;
    let target = RegistrySetup::new().start().await;
    create_accounts(&target).await;
    run_as_admin(&target, &["group", "set", "team", "ann"]).await;
    run_as_admin(
        &target,
        &["collection", "set", "ours", "--filter", "tag:other"],
    )
    .await;
    let policies = TempDir::new().unwrap();
    std::fs::write(policies.path().join("everybody.cedar"), EVERYBODY).unwrap();
    let quiet = QUIET.replace("repeat", "shout");
    std::fs::write(policies.path().join("quiet.cedar"), quiet).unwrap();
    std::fs::write(policies.path().join("own.cedar"), EVERYBODY).unwrap();
    let folder = policies.path().to_str().unwrap();
    let apply = ["policy", "apply", folder, "--reason", "a test", "--wait"];
    run_as_admin(&target, &apply).await;
    let (agent, review, digest) = register_pending(&target, &origin.url("/a.json"), "Echo").await;
    let patch = target
        .admin_request(Method::PATCH, &format!("/v1/agents/{agent}"))
        .json(&json!({"labels": {"env": "test"}}));
    ApiResponse::send(patch).await.expect_status(200);
    let reject = [
        "review", "reject", &review, "--digest", &digest, "--reason", "unknown",
    ];
    run_as_admin(&target, &reject).await;
    let domain = origin.address().to_string();
    let contact = [
        "domain",
        "set",
        &domain,
        "--contact",
        "mailto:other@agents.dev",
    ];
    run_as_admin(&target, &contact).await;

    let imported = import_text(&target, &text, &["--json"]).await;
    assert_eq!(imported.status.code(), Some(1), "{imported:#?}");
    let lines = parse_report(&imported);
    for kind in ["group", "collection", "domain", "decision"] {
        assert_eq!(result_of(&lines, kind), "different", "{kind}");
    }
    let result = |name: &str| {
        let mut lines = lines.iter();
        let line = lines.find(|line| line["name"] == name).unwrap();
        line["result"].as_str().unwrap().to_owned()
    };
    assert_eq!(result("everybody"), "same");
    assert_eq!(result("quiet"), "different");
    assert_eq!(result("own"), "different");
    let collection: Value = target.read_as_admin("/v1/collections/ours").await;
    assert_eq!(collection["filter"], "tag:other");
    let echo: Value = target.read_as_admin(&format!("/v1/agents/{agent}")).await;
    assert_eq!(echo["labels"], json!({"env": "test"}));
    assert_eq!(echo["lifecycle"], "rejected");
    assert_eq!(echo["visibility"], "public");
}

/// Under four-eyes the importer, who has registered the card, may not decide: the review waits, and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_others_must_decide_an_imported_approval_opens_a_review() {
    let origin = start_origin();
    let first = RegistrySetup::new().start().await;
    let (_, review, digest) = register_pending(&first, &origin.url("/a.json"), "Echo").await;
    approve_review(&first, &review, &digest).await;
    let (text, _) = export_records(&first).await;
    for rules in ["four_eyes = true", "deciders = { first = 2 }"] {
        let target = RegistrySetup::new()
            .with_config_lines(&format!("[governance]\n{rules}"))
            .start()
            .await;
        for _ in 0..2 {
            let imported = import_text(&target, &text, &["--json"]).await;
            assert_eq!(imported.status.code(), Some(1), "{imported:#?}");
            assert_eq!(result_of(&parse_report(&imported), "decision"), "review");
            let open: Value = target.read_as_admin("/v1/reviews?state=open").await;
            let id = open["reviews"][0]["id"].as_str().unwrap();
            let detail: Value = target.read_as_admin(&format!("/v1/reviews/{id}")).await;
            let comments = detail["comments"].as_array().unwrap();
            assert_eq!(comments.len(), 1, "{detail}");
            let note = comments[0]["text"].as_str().unwrap();
            assert!(note.contains("approve, decided by admin at "), "{note}");
            assert_eq!(detail["approvals"], json!([]), "{rules}");
        }
    }
}

/// An approval names content: it waits until the origin serves exactly that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_another_card_waits_until_the_origin_serves_it() {
    let origin = start_origin();
    let first = RegistrySetup::new().start().await;
    let (_, review, digest) = register_pending(&first, &origin.url("/a.json"), "Echo").await;
    approve_review(&first, &review, &digest).await;
    let (text, _) = export_records(&first).await;
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "shout")));
    let target = RegistrySetup::new().start().await;
    let early = import_text(&target, &text, &["--json"]).await;
    assert_eq!(early.status.code(), Some(1), "{early:#?}");
    let lines = parse_report(&early);
    assert_eq!(result_of(&lines, "decision"), "waiting");
    let detail = lines
        .iter()
        .find(|line| line["kind"] == "decision")
        .unwrap();
    assert!(
        detail["detail"].as_str().unwrap().contains(&digest),
        "{detail}"
    );
    assert_eq!(agent_named(&target, "Echo").await["lifecycle"], "pending");

    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    target.recrawl_and_wait(&origin.address().to_string()).await;
    // A fetched card becomes a version a moment later.
    target
        .wait_for_open_review(|review| review.digest == digest)
        .await;
    let late = import_text(&target, &text, &["--json"]).await;
    assert_eq!(late.status.code(), Some(0), "{late:#?}");
    assert_eq!(result_of(&parse_report(&late), "decision"), "created");
    let echo = agent_named(&target, "Echo").await;
    assert_eq!(echo["card_digest"], digest.as_str());
    assert_eq!(echo["lifecycle"], "approved");
}

/// An agent on hold keeps its approval at home: another registry would list it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_approval_of_a_suspended_agent_is_not_exported() {
    let origin = start_origin();
    let registry = RegistrySetup::new().start().await;
    let (agent, review, digest) = register_pending(&registry, &origin.url("/a.json"), "Echo").await;
    approve_review(&registry, &review, &digest).await;
    assert!(
        export_records(&registry)
            .await
            .0
            .contains("\"kind\":\"decision\"")
    );
    run_as_admin(&registry, &["agent", "suspend", &agent, "--reason", "bad"]).await;
    let finished = run_as_admin(&registry, &["export"]).await;
    assert!(!join_lines(&finished.stdout).contains("\"kind\":\"decision\""));
    assert!(
        join_lines(&finished.stderr).contains("1 approvals are of agents on hold"),
        "{finished:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_needs_both_roles_and_an_export_sees_everything() {
    let registry = RegistrySetup::new().start().await;
    let (text, _) = export_records(&registry).await;
    for (role, exports) in [
        ("publisher", false),
        ("curator", false),
        ("auditor", true),
        ("admin", true),
    ] {
        let token = registry.create_token(&format!("a {role}"), role).await;
        let mut command = registry.admin_command(&["import", "-"]);
        command.env("A2A_REGISTRY_TOKEN", &token);
        let before = read_events(&registry).await;
        let imported = Program::run_with_input(command, text.as_bytes()).await;
        assert_exit(&imported, 2, "roles admin and curator");
        assert_eq!(read_events(&registry).await, before, "{role}");
        let mut command = registry.admin_command(&["export"]);
        command.env("A2A_REGISTRY_TOKEN", &token);
        let exported = Program::run(command).await;
        assert_eq!(exported.status.success(), exports, "{role}: {exported:#?}");
    }
}

/// A file is imported as a whole or not at all; what the registry refuses is a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_file_changes_nothing_or_costs_only_its_own_records() {
    let registry = RegistrySetup::new().start().await;
    let before = read_events(&registry).await;
    let huge = format!(
        "{{\"kind\":\"group\",\"name\":\"{}\"}}",
        "x".repeat(600 * 1024)
    );
    let group = r#"{"kind":"group","name":"team","members":[]}"#;
    let end = r#"{"kind":"end","records":2}"#;
    for (second, reason) in [
        (huge.as_str(), "line 3: it is longer than"),
        (r#"{"kind":"account","name":"root"}"#, "unknown variant"),
        (
            r#"{"kind":"group","name":"t","members":"ann"}"#,
            "invalid type",
        ),
        ("\u{1b}[2J", "line 3: "),
        ("[[[[[[", "line 3: "),
    ] {
        let text = format!("{HEADER}\n{group}\n{second}\n{end}\n");
        let refused = import_text(&registry, &text, &[]).await;
        assert_exit(&refused, 2, reason);
        assert!(refused.stdout.is_empty(), "{refused:#?}");
    }
    let cut_off = import_text(&registry, &format!("{HEADER}\n{group}\n"), &[]).await;
    assert_exit(&cut_off, 2, "cut off");
    assert_eq!(read_events(&registry).await, before);

    let digest = format!("sha256:{}", "0".repeat(64));
    let records = [
        r#"{"kind":"group","name":"admin","members":[]}"#.to_owned(),
        r#"{"kind":"group","name":"team","members":["no such account"]}"#.to_owned(),
        r#"{"kind":"collection","name":"c","description":"","filter":"nonsense","audience":null,"owners":[]}"#
            .to_owned(),
        r#"{"kind":"source","domain":"x","url":"file:///etc/passwd"}"#.to_owned(),
        r#"{"kind":"source","domain":"169.254.169.254","url":"http://169.254.169.254/latest"}"#.to_owned(),
        json!({
            "kind": "decision", "domain": "nosuch.example", "source": "https://nosuch.example/a",
            "digest": digest, "approved": true, "by": "\u{1b}[2J", "at": "2026-01-31T12:00:00Z",
            "reason": null,
        })
        .to_string(),
    ];
    let end = format!(r#"{{"kind":"end","records":{}}}"#, records.len());
    let text = format!("{HEADER}\n{}\n{end}\n", records.join("\n"));
    let imported = import_text(&registry, &text, &["--json"]).await;
    assert_eq!(imported.status.code(), Some(1), "{imported:#?}");
    let lines = parse_report(&imported);
    let summary = lines.last().unwrap();
    assert_eq!(summary["failed"], 5, "{lines:#?}");
    assert_eq!(summary["waiting"], 1, "{lines:#?}");
    assert_eq!(summary["created"], 0, "{lines:#?}");
}

/// A page has at most 100 hits; `--all` goes through every page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_prints_every_page() {
    const AGENTS: usize = 101;
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let mut urls = Vec::new();
    for number in 0..AGENTS {
        let path = format!("/{number}.json");
        let card = card_json(&format!("Agent {number}"), "repeat");
        origin.set_reply(&path, OriginReply::json(card));
        urls.push(origin.url(&path));
    }
    let mut arguments = vec!["register", "--no-wait"];
    arguments.extend(urls.iter().map(String::as_str));
    run_as_admin(&registry, &arguments).await;
    eventually("all agents are listed", || async {
        (registry.search("q=repeat").await["total"] == AGENTS).then_some(())
    })
    .await;
    let all = ["search", "repeat", "--all", "--json", "--fields", "name"];
    let found = run_as_admin(&registry, &all).await;
    let mut names: Vec<String> = parse_report(&found)
        .iter()
        .map(|hit| hit["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), AGENTS);
    let shown = run_as_admin(&registry, &["search", "repeat", "--all"]).await;
    assert!(
        join_lines(&shown.stderr).contains("101 hits"),
        "{:?}",
        shown.stderr
    );
    let none = registry
        .run_admin_command(&["search", "nosuchword", "--all"])
        .await;
    assert_exit(&none, 1, "no agent matches");
}
