//! Tests of the support code that the other tests rely on.

use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use sea_orm::ConnectionTrait as _;
use tempfile::TempDir;
use thirtyfour::By;
use tokio::process::Command;

use crate::support::browser::Browser;
use crate::support::database::Database;
use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::program::{Program, registry_command};
use crate::support::{both_databases, http_client};

both_databases!(a_database_keeps_rows);

/// Each test has a database of its own that stores rows.
async fn a_database_keeps_rows(url: &str) {
    let connection = sea_orm::Database::connect(url).await.unwrap();
    for statement in ["CREATE TABLE t (n INTEGER)", "INSERT INTO t VALUES (7)"] {
        connection.execute_unprepared(statement).await.unwrap();
    }
    let changed = connection
        .execute_unprepared("DELETE FROM t")
        .await
        .unwrap();
    assert_eq!(changed.rows_affected(), 1);
    connection.close().await.unwrap();
}

/// A database is dropped with its test, even while connections to it are open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_database_is_dropped() {
    let database = Database::postgres().await;
    let url = database.url().to_owned();
    let open = sea_orm::Database::connect(&url).await.unwrap();
    open.ping().await.unwrap();
    drop(database);
    assert!(sea_orm::Database::connect(&url).await.is_err());
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Lines of both outputs are found whether they come before or after the wait for them starts.
#[tokio::test]
async fn a_program_is_read_and_ended() {
    let program = Program::start(shell("echo early; echo late >&2; exec sleep 1000"));
    assert_eq!(program.wait_for_line("late").await, "late");
    assert_eq!(program.wait_for_line("earl").await, "early");
    let ended = program.terminate().await;
    assert_eq!(ended.status.code(), None);
    assert_eq!(ended.stdout, ["early"]);
    assert_eq!(ended.stderr, ["late"]);

    let killed = Program::start(shell(
        "trap '' TERM; echo deaf; while :; do read _ </dev/zero; done",
    ));
    killed.wait_for_line("deaf").await;
    killed.send_sigterm();
    assert!(!killed.kill().await.status.success());
}

/// A program that ends without the expected line fails the test at once, with its output.
#[tokio::test]
#[should_panic(expected = "out | something else")]
async fn a_missing_line_is_reported_with_the_output() {
    let program = Program::start(shell("echo something else"));
    program.wait_for_line("never printed").await;
}

/// Input reaches the program, and its exit code is returned.
#[tokio::test]
async fn a_program_reads_its_input() {
    let finished = Program::run_with_input(shell("cat; exit 3"), b"one\ntwo\n").await;
    assert_eq!(finished.stdout, ["one", "two"]);
    assert_eq!(finished.status.code(), Some(3));
}

/// The program under test exists and can be started.
#[tokio::test]
async fn the_registry_starts() {
    let finished = Program::run(registry_command(["--version"])).await;
    assert!(finished.status.success(), "{finished:?}");
}

/// An origin counts requests, revalidates, and can get another reply while running.
#[tokio::test]
async fn an_origin_revalidates_and_counts() {
    let origin = Origin::start();
    let url = origin.url("/card");
    let client = http_client();
    assert_eq!(client.get(&url).send().await.unwrap().status(), 404);

    origin.set_reply("/card", OriginReply::json("{}").with_etag("\"one\""));
    let fresh = client.get(format!("{url}?x=1")).send().await.unwrap();
    assert_eq!(fresh.headers()["etag"], "\"one\"");
    assert_eq!(fresh.headers()["content-type"], "application/json");
    assert_eq!(fresh.text().await.unwrap(), "{}");

    let known = client.get(&url).header("if-none-match", "\"one\"");
    let known = known.send().await.unwrap();
    assert_eq!(known.status(), 304);
    assert_eq!(known.bytes().await.unwrap().len(), 0);

    origin.set_reply(
        "/card",
        OriginReply::html("<h1>moved</h1>").with_etag("\"two\""),
    );
    let changed = client.get(&url).header("if-none-match", "\"one\"");
    assert_eq!(changed.send().await.unwrap().status(), 200);

    let requests = origin.requests_to("/card");
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[1].query, "x=1");
    assert_eq!(
        origin
            .wait_for_request("/card", 3)
            .await
            .header("if-none-match"),
        Some("\"one\"")
    );
    assert!(origin.requests_to("/other").is_empty());
}

/// The arrival of a request is an event, and its response waits for the gate.
#[tokio::test]
async fn an_origin_holds_its_response() {
    let origin = Origin::start();
    let gate = ResponseGate::default();
    origin.set_reply("/slow", OriginReply::redirect("/elsewhere").gated_by(&gate));
    let asked = tokio::spawn(http_client().get(origin.url("/slow")).send());
    assert_eq!(origin.wait_for_request("/slow", 1).await.method, "GET");
    assert!(!asked.is_finished());
    gate.open();
    let answer = asked.await.unwrap().unwrap();
    assert_eq!(answer.status(), 302);
    assert_eq!(answer.headers()["location"], "/elsewhere");
}

/// A body can be endless, or stop in the middle.
#[tokio::test]
async fn an_origin_can_send_endless_and_stalled_bodies() {
    let origin = Origin::start();
    origin.set_reply("/endless", OriginReply::endless());
    origin.set_reply("/stalled", OriginReply::stalled("{\"name\":"));
    let client = http_client();

    let mut endless = client.get(origin.url("/endless")).send().await.unwrap();
    let mut read = 0;
    while read < 4 * 1024 * 1024 {
        read += endless.chunk().await.unwrap().unwrap().len();
    }

    let mut stalled = client.get(origin.url("/stalled")).send().await.unwrap();
    assert_eq!(stalled.chunk().await.unwrap().unwrap(), "{\"name\":");
    let more = tokio::time::timeout(Duration::from_millis(100), stalled.chunk()).await;
    assert!(more.is_err());
    drop((endless, stalled));
}

/// A dropped origin refuses connections, and another can take its port.
#[tokio::test]
async fn a_dropped_origin_frees_its_port() {
    let origin = Origin::start();
    let (address, url) = (origin.address(), origin.url("/"));
    drop(origin);
    assert!(
        http_client()
            .get(&url)
            .send()
            .await
            .unwrap_err()
            .is_connect()
    );
    let again = Origin::start_on(address.port());
    assert_eq!(http_client().get(&url).send().await.unwrap().status(), 404);
    assert_eq!(again.requests_to("/").len(), 1);
}

/// A browser ends even if its test fails before closing it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_browser_ends() {
    let browser = Browser::open().await;
    let capabilities = browser.page().capabilities();
    let id = capabilities
        .get("goog:processID")
        .unwrap()
        .as_i64()
        .unwrap();
    let id = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    assert!(test_kill_process(id).is_ok());
    drop(browser);
    assert!(test_kill_process(id).is_err());
}

/// The browser shows a page, and takes a screenshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_shows_a_page() {
    let origin = Origin::start();
    origin.set_reply(
        "/",
        OriginReply::html(
            "<!doctype html><title>t</title><h1 id=head>Agents</h1><a href=/next>on</a>",
        ),
    );
    origin.set_reply(
        "/next",
        OriginReply::html("<!doctype html><p id=done>arrived</p>"),
    );
    let browser = Browser::open().await;
    browser.page().goto(origin.url("/")).await.unwrap();
    let head = browser.page().find(By::Id("head")).await.unwrap();
    assert_eq!(head.text().await.unwrap(), "Agents");

    let folder = TempDir::new().unwrap();
    let picture = folder.path().join("shots/page.png");
    browser.screenshot(&picture).await;
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));

    browser
        .page()
        .find(By::LinkText("on"))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
    let done = browser.page().find(By::Id("done")).await.unwrap();
    assert_eq!(done.text().await.unwrap(), "arrived");
    browser.close().await;
}
