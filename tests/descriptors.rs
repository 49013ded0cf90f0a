//! File descriptors: how many a process needs, and its behaviour when there are too few or none.

use a2a_registry_store::Store;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::leases;
use crate::support::cards::minimal_card_json;
use crate::support::database::store_options;
use crate::support::origin::{Origin, OriginReply, ResponseGate};
use crate::support::polling::eventually;
use crate::support::program::{Program, after_shell_commands, join_lines, registry_command};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

const CARD: &str = "/.well-known/agent-card.json";

/// A limit with which no process serves, and the shell command that sets it.
const TOO_FEW: &str = "ulimit -n 400";

/// It says so at its start, in one line with what to do, as `doctor` does beforehand.
#[tokio::test]
async fn a_process_that_may_open_too_few_files_does_not_start() {
    let setup = RegistrySetup::new();
    let ended = Program::run(after_shell_commands(TOO_FEW, &setup.serve_command())).await;
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let [line] = ended.stderr.as_slice() else {
        panic!("expected one line: {ended:?}");
    };
    for part in ["only 400 files", "ulimit -n", "crawler.concurrency"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!setup.data_folder().exists(), "nothing was begun");

    let data = setup.data_folder();
    let doctor = registry_command(["doctor", "--data-dir", data.to_str().unwrap()]);
    let ill = Program::run(after_shell_commands(TOO_FEW, &doctor)).await;
    assert_eq!(ill.status.code(), Some(1), "{ill:?}");
    let shown = join_lines(&ill.stdout);
    assert!(shown.contains("fail file descriptors: "), "{shown}");

    // Fewer visits at once need fewer descriptors.
    let modest = setup.with_config_lines("concurrency = 1");
    let registry = modest.start_after_commands(TOO_FEW).await;
    assert_eq!(registry.api.get("/readyz").await.status, 200);
    registry.stop().await;
}

/// Answers every request with the card, and keeps the connection open for as long as the client does.
async fn serve_card(mut stream: TcpStream, answer: String) {
    let mut received = Vec::new();
    while stream
        .read_buf(&mut received)
        .await
        .is_ok_and(|count| count > 0)
    {
        if received.ends_with(b"\r\n\r\n") {
            received.clear();
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Every loopback address is a host of its own.
async fn many_hosts(card: &str) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let length = card.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
    let answer = format!("{head} {length}\r\n\r\n{card}");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_card(stream, answer.clone()));
        }
    });
    port
}

/// More hosts than the process may open files, all due at once, and all of them keep their connections open: each card is
/// fetched, and nothing fails for want of a descriptor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_hosts_than_descriptors_are_crawled_without_a_failure() {
    const HOSTS: usize = 900;
    // The other ends of the connections are in this process.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let port = many_hosts(&minimal_card_json("One of many")).await;
    let folder = TempDir::new().unwrap();
    let url = format!(
        "sqlite://{}?mode=rwc",
        folder.path().join("registry.sqlite").display()
    );
    let store = Store::open(&store_options(&url)).await.unwrap();
    let write = store.begin_write().await.unwrap();
    for number in 0..HOSTS {
        let name = format!("127.1.{}.{}:{port}", number / 200, 1 + number % 200);
        let row = a2a_registry_store::entity::domain::Model {
            name: name.clone(),
            scheme: "http".into(),
            ..leases::domain(number, 1)
        };
        let domain = write.insert_domain(row).await.unwrap().id;
        let source = leases::source(domain, &format!("http://{name}/card.json"), 1);
        write.insert_source(source).await.unwrap();
    }
    write.commit().await.unwrap();
    store.close().await.unwrap();
    let setup = RegistrySetup::new().approve_all().with_database(&url);
    let registry = setup.start_after_commands("ulimit -n 600").await;
    let api = &registry.api;
    eventually("every agent is found", || async {
        let fresh = api.search("liveness=fresh&page_size=1").await;
        (fresh["total"] == HOSTS).then_some(())
    })
    .await;
    assert_eq!(api.get("/readyz").await.status, 200);
    let ended = registry.stop().await;
    let complaint = |line: &&String| {
        line.contains("descriptor") || line.contains("damaged") || line.contains("open files")
    };
    // Fewer connections of clients than configured is all that there is to say.
    let said = |line: &&String| !line.contains("limits.connections");
    assert_eq!(
        ended.stderr.iter().filter(said).find(complaint),
        None,
        "{ended:?}"
    );
}

/// Lets the process open no further file, or lifts that.
fn allow_files(registry: &ServingRegistry, allowed: bool) {
    let own = getrlimit(Resource::Nofile);
    let process = Pid::from_raw(i32::try_from(registry.program.id()).unwrap());
    let limit = Rlimit {
        current: if allowed { own.maximum } else { Some(3) },
        maximum: own.maximum,
    };
    prlimit(process, Resource::Nofile, limit).unwrap();
}

/// A process that runs out of descriptors in the middle of a visit holds nothing against the agent: there is no attempt, the
/// circuit breaker is open, and everything goes on once there are descriptors again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_out_of_descriptors_is_no_fault_of_an_agent() {
    let registry = RegistrySetup::new()
        .approve_all()
        .start_without_proxy()
        .await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(minimal_card_json("Fernweh")));
    let agent = registry.publish(&origin.url(CARD)).await;
    let path = format!("/v1/domains/{}", origin.address());
    let source =
        || async { registry.get_as_admin(&path).await.expect_status(200)["sources"][0].take() };
    let before: Value = source().await;
    let requests = origin.requests_to(CARD).len();

    // The visit has a connection already, and needs another one for the redirect.
    let gate = ResponseGate::default();
    let elsewhere = Origin::start();
    elsewhere.set_reply(CARD, OriginReply::json(minimal_card_json("Fernweh")));
    let moved = OriginReply::redirect(&elsewhere.url(CARD)).gated_by(&gate);
    origin.set_reply(CARD, moved);
    let recrawl = format!("{path}:recrawl");
    registry
        .post_as_admin(&recrawl, &serde_json::json!({}))
        .await
        .expect_status(202);
    origin.wait_for_request(CARD, requests + 1).await;
    allow_files(&registry, false);
    gate.open();
    let said = registry
        .program
        .wait_for_line("no file descriptors are left")
        .await;
    assert!(said.contains("ulimit -n"), "{said}");
    allow_files(&registry, true);

    let after: Value = source().await;
    for member in ["attempts", "last_attempt", "liveness"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    let ready = registry.get_as_admin("/readyz").await.expect_status(200);
    let mut checks = ready["checks"].as_array().unwrap().iter();
    let crawler = checks.find(|check| check["name"] == "crawler");
    let detail = crawler.unwrap()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("agents keep their state"), "{detail}");

    let other = Origin::start();
    other.set_reply(CARD, OriginReply::json(minimal_card_json("Afterwards")));
    registry.publish(&other.url(CARD)).await;
    let found = registry.search("liveness=fresh").await;
    assert_eq!(found["total"], 2, "{agent}: {found}");
    registry.stop().await;
}
