//! Failures of the database, the disk, the index and the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sea_orm::ConnectionTrait as _;
use serde_json::Value;

use super::{ApprovedAgent, CARD, card};
use crate::support::api::ApiResponse;
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::event_stream::event_seq;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::setup::RegistrySetup;

/// Checks that writes are refused with that problem, and reads still work.
async fn assert_read_only(fixture: &ApprovedAgent, slug: &str) {
    let api = fixture.api();
    let other = Origin::start();
    let body = serde_json::json!({"card_url": other.url(CARD)});
    for _ in 0..3 {
        let answer = api.post_as_admin("/v1/domains", &body).await;
        answer.expect_problem(503, slug);
        assert!(answer.headers.contains_key("retry-after"));
    }
    let path = format!("/v1/agents/{}:suspend", fixture.agent);
    let act = serde_json::json!({"reason": "cannot be written"});
    api.post_as_admin(&path, &act)
        .await
        .expect_problem(503, slug);
    fixture.is_intact().await;
    assert_eq!(fixture.domains().await, 1);
}

/// The details of the checks of readiness that fail, by their names.
async fn failing_checks(fixture: &ApprovedAgent) -> BTreeMap<String, String> {
    let response = fixture.api().get_as_admin("/readyz").await;
    let readiness: Value = serde_json::from_slice(&response.body).unwrap();
    let checks = readiness["checks"].as_array().unwrap().iter();
    let failing: BTreeMap<String, String> = checks
        .filter(|check| check["ok"] == false)
        .map(|check| {
            let text = |member: &str| check[member].as_str().unwrap().to_owned();
            (text("name"), text("detail"))
        })
        .collect();
    let status = if failing.is_empty() { 200 } else { 503 };
    assert_eq!(response.status, status, "{readiness}");
    failing
}

/// Waits until readiness reports with this text that the database accepts no writes, and that it is read: writes may
/// have been accepted a moment ago, and a connection that has ended fails one check.
async fn wait_for_refused_writes(fixture: &ApprovedAgent, text: &str) {
    eventually("readiness reports the writes", || async {
        let failing = failing_checks(fixture).await;
        let is_reported = failing.get("writes")?.contains(text);
        (is_reported && !failing.contains_key("database")).then_some(())
    })
    .await;
}

async fn wait_until_ready(fixture: &ApprovedAgent) {
    eventually("every check of readiness succeeds", || async {
        failing_checks(fixture).await.is_empty().then_some(())
    })
    .await;
}

/// Registers one more agent; returns the event of its approval.
async fn approved(fixture: &ApprovedAgent, name: &str) -> Value {
    let other = Origin::start();
    other.set_reply(CARD, OriginReply::json(card(name)));
    fixture.api().register_approved(&other.url(CARD)).await
}

/// Checks that writes work again, from the registration to the search.
async fn assert_writable(fixture: &ApprovedAgent) {
    let api = fixture.api();
    let approved = approved(fixture, "Afterwards").await;
    api.wait_until_indexed(event_seq(&approved)).await;
    assert_eq!(api.search("q=afterwards").await["total"], 1);
    fixture.is_intact().await;
}

/// Reads as often as the registry has connections: each that the server ended less than a second after its last use fails one
/// request, which may be repeated.
async fn drop_ended_connections(fixture: &ApprovedAgent) {
    for _ in 0..16 {
        let answer = fixture.api().get_as_admin("/v1/domains").await;
        if answer.status != 200 {
            answer.expect_problem(503, "unavailable");
        }
    }
}

/// PostgreSQL refuses writes, as a standby does, or after an operator's command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_postgres_serves_reads() {
    let database = Database::postgres().await;
    let fixture = ApprovedAgent::with(|setup| setup.with_database(database.url())).await;
    let mut options = sea_orm::ConnectOptions::new(database.url());
    options.max_connections(1).sqlx_logging(false);
    let operator = sea_orm::Database::connect(options).await.unwrap();
    let (_, name) = database.url().rsplit_once('/').unwrap();
    let run = async |statement: &str| {
        operator.execute_unprepared(statement).await.unwrap();
    };
    let everybody_again = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run(&format!(
        "ALTER DATABASE {name} SET default_transaction_read_only = on"
    ))
    .await;
    run(everybody_again).await;
    drop_ended_connections(&fixture).await;
    assert_read_only(&fixture, "read-only").await;
    wait_for_refused_writes(&fixture, "read-only").await;
    run(&format!(
        "ALTER DATABASE {name} RESET default_transaction_read_only"
    ))
    .await;
    run(everybody_again).await;
    drop_ended_connections(&fixture).await;
    assert_writable(&fixture).await;
    wait_until_ready(&fixture).await;
    operator.close().await.unwrap();
}

/// Shell command after which a process ignores the signal that ends it when a file reaches its size limit: its writes then
/// fail, as on a full disk, whichever user runs the tests.
const IGNORE_FILE_SIZE_SIGNAL: &str = "trap '' XFSZ";

/// The disk of the SQLite database is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_sqlite_serves_reads() {
    let setup = RegistrySetup::new().approve_all();
    let registry = setup.start_after_commands(IGNORE_FILE_SIZE_SIGNAL).await;
    let fixture = ApprovedAgent::register(registry).await;
    limit_file_size(&fixture, Some(0));
    assert_read_only(&fixture, "read-only").await;
    wait_for_refused_writes(&fixture, "changes are rejected").await;
    limit_file_size(&fixture, None);
    assert_writable(&fixture).await;
    wait_until_ready(&fixture).await;
}

/// The disk of the index is full, while the database accepts writes: indexed agents are served, readiness reports the
/// disk, and once there is free space the index applies all changes made meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_index_is_reported_until_it_has_space() {
    let database = Database::postgres().await;
    let setup = RegistrySetup::new()
        .approve_all()
        .with_database(database.url());
    let registry = setup.start_after_commands(IGNORE_FILE_SIZE_SIGNAL).await;
    let fixture = ApprovedAgent::register(registry).await;
    let api = fixture.api();
    let failing = || async {
        let ready = api.get("/readyz").await;
        let readiness: Value = serde_json::from_slice(&ready.body).unwrap();
        let checks = readiness["checks"].as_array().unwrap().clone();
        let failing = checks.into_iter().filter(|check| check["ok"] == false);
        let names: Vec<String> = failing
            .map(|check| check["name"].as_str().unwrap().to_owned())
            .collect();
        (ready.status, names)
    };
    assert_eq!(failing().await, (reqwest::StatusCode::OK, Vec::new()));

    limit_file_size(&fixture, Some(0));
    let approved = approved(&fixture, "Meanwhile").await;
    // The check of the disk may have succeeded a moment ago.
    eventually("readiness reports the disk", || async {
        let (status, names) = failing().await;
        let missed = names.contains(&"disk".to_owned());
        (missed && status == reqwest::StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
    fixture.is_intact().await;

    limit_file_size(&fixture, None);
    api.wait_until_indexed(event_seq(&approved)).await;
    assert_eq!(api.search("q=meanwhile").await["total"], 1);
    assert_writable(&fixture).await;
    let well = (reqwest::StatusCode::OK, Vec::new());
    eventually("every check of readiness succeeds", || async {
        (failing().await == well).then_some(())
    })
    .await;
}

/// Limits the size of files that the serving process writes, or lifts the limit.
fn limit_file_size(fixture: &ApprovedAgent, bytes: Option<u64>) {
    let process = Pid::from_raw(i32::try_from(fixture.registry.program.id()).unwrap());
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(process, Resource::Fsize, limit).unwrap();
}

/// A database file that cannot be written is reported at start, in one line.
#[tokio::test]
async fn a_read_only_database_file_is_reported_at_start() {
    let fixture = ApprovedAgent::new().await;
    let setup = fixture.registry.setup.clone();
    fixture.registry.stop().await;
    let file = setup.data_folder().join("registry.sqlite");
    assert!(file.is_file());
    let read_only = setup
        .clone()
        .with_database(&format!("sqlite://{}?mode=ro", file.display()));
    let line = read_only.start_expecting_failure().await;
    assert!(line.contains("registry.sqlite"), "{line}");
    assert!(line.to_lowercase().contains("read"), "{line}");
    // Nothing is lost: with write permission it serves as before.
    let again = setup.start().await;
    assert_eq!(again.api.search("q=fernweh").await["total"], 1);
}

both_databases!(a_missing_table_is_an_internal_error);

/// A missing table is not treated as a silent database: trying again will not help, so callers get an internal error, the
/// log has its cause with the request's id, and readiness agrees with the responses.
async fn a_missing_table_is_an_internal_error(url: &str) {
    let fixture = ApprovedAgent::with(|setup| {
        setup
            .with_database(url)
            .with_config_lines("[log]\nformat = \"json\"")
    })
    .await;
    let mut options = sea_orm::ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    let operator = sea_orm::Database::connect(options).await.unwrap();
    let rename = async |from: &str, to: &str| {
        operator
            .execute_unprepared(&format!("ALTER TABLE {from} RENAME TO {to}"))
            .await
            .unwrap();
    };
    rename("agents", "agents_away").await;
    let api = fixture.api();
    let path = format!("/v1/agents/{}", fixture.agent);
    let request = api
        .request(reqwest::Method::GET, &path)
        .header("x-request-id", "req-broken");
    let response = ApiResponse::send(request).await;
    response.expect_problem(500, "internal");
    assert!(!response.headers.contains_key("retry-after"));
    assert!(
        !response.text().contains("agents_away"),
        "{}",
        response.text()
    );
    let ready = api.get("/readyz").await.expect_problem(503, "not-ready");
    let database = ready["checks"].as_array().unwrap().iter();
    let check = database
        .filter(|check| check["name"] == "database")
        .collect::<Vec<_>>();
    assert_eq!(check[0]["ok"], false, "{ready}");
    rename("agents_away", "agents").await;
    fixture.is_intact().await;
    assert_eq!(api.get("/readyz").await.status, 200);
    operator.close().await.unwrap();

    let ended = fixture.registry.stop().await;
    let lines: Vec<Value> = ended
        .stderr
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line.to_string().contains("req-broken"))
        .filter(|line| line["level"] == "ERROR")
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].to_string().contains("agents"), "{}", lines[0]);
}

/// The index folder is deleted while the registry serves: the next change restores it.
#[tokio::test]
async fn a_deleted_index_folder_is_restored_by_the_next_change() {
    let fixture = ApprovedAgent::new().await;
    std::fs::remove_dir_all(index_folder(&fixture.registry.setup)).unwrap();
    fixture.is_intact().await;
    assert_writable(&fixture).await;
    assert!(index_folder(&fixture.registry.setup).is_dir());

    // The next process finds a complete index too.
    let setup = fixture.registry.setup.clone();
    fixture.registry.stop().await;
    let again = setup.start().await;
    assert_eq!(again.api.search("").await["total"], 2);
}

fn index_folder(setup: &RegistrySetup) -> PathBuf {
    setup.data_folder().join("index")
}

/// Every file of the index except the one that names the folder in use.
fn segments(index: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(index).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.is_dir())
        .flat_map(|folder| files(&folder))
        .collect()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A damaged, truncated or missing index is rebuilt at start.
#[tokio::test]
async fn a_corrupt_index_is_rebuilt_at_start() {
    type Damage = fn(&Path);
    let damages: [Damage; 4] = [
        |file| std::fs::write(file, b"").unwrap(),
        |file| {
            let length = std::fs::metadata(file).unwrap().len();
            std::fs::write(file, vec![0x5a; usize::try_from(length).unwrap()]).unwrap();
        },
        |file| {
            let bytes = std::fs::read(file).unwrap();
            std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        },
        |file| std::fs::remove_file(file).unwrap(),
    ];
    let mut fixture = ApprovedAgent::new().await;
    let setup = fixture.registry.setup.clone();
    for damage in damages {
        fixture.registry.stop().await;
        let damaged = segments(&index_folder(&setup));
        assert!(!damaged.is_empty());
        for file in &damaged {
            damage(file);
        }
        fixture.registry = setup.start().await;
        let api = fixture.api();
        eventually("the index is rebuilt", || async {
            let found = api.get("/v1/agents?q=fernweh").await;
            (found.status == 200 && found.expect_status(200)["total"] == 1).then_some(())
        })
        .await;
    }
    fixture.is_intact().await;
    assert_writable(&fixture).await;
    // Files that are no index at all.
    fixture.registry.stop().await;
    std::fs::remove_dir_all(index_folder(&setup)).unwrap();
    std::fs::write(index_folder(&setup), b"no folder").unwrap();
    let line = setup.start_expecting_failure().await;
    assert!(line.contains("index"), "{line}");
    std::fs::remove_file(index_folder(&setup)).unwrap();
    fixture.registry = setup.start().await;
    eventually("the index is rebuilt", || async {
        let found = fixture.api().get("/v1/agents").await;
        (found.status == 200 && found.expect_status(200)["total"] == 2).then_some(())
    })
    .await;
    fixture.is_intact().await;
}

/// A data folder belongs to one process: the second one reports that in one line, and does not affect the first.
#[tokio::test]
async fn a_second_process_on_one_data_folder_is_refused() {
    let fixture = ApprovedAgent::new().await;
    let line = fixture.registry.setup.start_expecting_failure().await;
    assert!(line.contains("another process"), "{line}");
    assert!(line.contains("--data-dir"), "{line}");
    fixture.is_intact().await;
    assert_writable(&fixture).await;
    // A process that has ended, in whichever way, holds no lock.
    let setup = fixture.registry.setup.clone();
    fixture.registry.program.kill().await;
    setup.start().await.stop().await;
}

/// Invalid ports, files and values end the program before it changes anything.
#[tokio::test]
async fn bad_settings_end_the_program_before_it_changes_anything() {
    let fixture = ApprovedAgent::new().await;
    let taken = fixture.api().url.strip_prefix("http://").unwrap();
    for (setup, word) in [
        (
            RegistrySetup::new()
                .with_argument("--listen")
                .with_argument(taken),
            "in use",
        ),
        (
            RegistrySetup::new().with_config_lines("[servr]\nlisten = 1"),
            "servr",
        ),
        (
            RegistrySetup::with_default_config().with_config_lines("[crawler"),
            "configuration",
        ),
        (
            RegistrySetup::new().with_database("mysql://127.0.0.1/x"),
            "store.database",
        ),
        (
            RegistrySetup::new()
                .with_argument("--roles")
                .with_argument("api"),
            "--roles",
        ),
        (
            RegistrySetup::new().with_database("postgres://127.0.0.1:1/x"),
            "127.0.0.1:1/x cannot be used: Connection refused",
        ),
        (
            RegistrySetup::new().with_config_lines("[log]\nfilter = \"inof\""),
            "log.filter",
        ),
    ] {
        let line = setup.start_expecting_failure().await;
        assert!(line.contains(word), "{word}: {line}");
    }
    fixture.is_intact().await;
}
