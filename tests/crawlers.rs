//! Crawlers as processes of their own on one database: killed, and asked to end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use a2a_registry::store::entity::{attempt, domain, source};
use a2a_registry::store::{Handle as _, Store};
use futures::future::join_all;
use rustix::process::{Resource, getrlimit, setrlimit};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait as _, EntityTrait as _, PaginatorTrait as _, QueryFilter as _};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::leases;
use crate::support::DEADLINE;
use crate::support::database::Database;
use crate::support::origin::{Origin, Reply};
use crate::support::program::Program;
use crate::support::serving::Setup;
use crate::support::stage::options;

fn card(name: &str) -> String {
    json!({
        "name": name, "description": "d", "version": "1", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [
            {"url": "https://agent.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}],
    })
    .to_string()
}

/// A domain of that name, due now.
fn due_domain(name: &str) -> domain::Model {
    domain::Model {
        name: name.into(),
        scheme: "http".into(),
        ..leases::domain(0, 1)
    }
}

/// A crawler without the API, in a folder of its own, once it crawls.
async fn crawler(folder: &TempDir, number: usize, url: &str) -> Program {
    let own = folder.path().join(number.to_string());
    std::fs::create_dir_all(&own).unwrap();
    let setup = Setup::new(&own)
        .database(url)
        .argument("--roles")
        .argument("crawler");
    let program = Program::start(setup.command());
    program
        .find(|line| line.starts_with("crawling").then_some(()))
        .await;
    program
}

/// How often each source was asked, and which are in the books.
async fn books(store: &Store) -> BTreeMap<String, usize> {
    let mut books = BTreeMap::new();
    for row in attempt::Entity::find()
        .all(store.connection())
        .await
        .unwrap()
    {
        *books.entry(row.url).or_default() += 1;
    }
    books
}

/// Four crawlers share what is due. All of them are killed in the middle of it, again and again: nobody ever
/// asks for what is in the books already, in no round is a source asked twice, and in the end each has been
/// fetched once for its due time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_crawlers_killed_at_random_share_the_work() {
    const ORIGINS: usize = 24;
    const CARDS: usize = 8;
    const ROUNDS: usize = 6;
    let database = Database::postgres().await;
    let store = Store::open(&options(database.url())).await.unwrap();
    let origins: Vec<Origin> = (0..ORIGINS).map(|_| Origin::start()).collect();
    let mut paths = Vec::new();
    let write = store.write().await.unwrap();
    for (number, origin) in origins.iter().enumerate() {
        let row = due_domain(&origin.address().to_string());
        let domain = write.domain_insert(row).await.unwrap().id;
        for at in 0..CARDS {
            let path = format!("/{at}.json");
            origin.answer(&path, Reply::json(card(&format!("Agent {number} {at}"))));
            write
                .source_insert(leases::source(domain, &origin.url(&path), 1))
                .await
                .unwrap();
            paths.push((number, path));
        }
    }
    write.commit().await.unwrap();
    let asked = || -> BTreeMap<String, usize> {
        let counts = paths.iter().map(|(number, path)| {
            let origin = &origins[*number];
            (origin.url(path), origin.requests(path).len())
        });
        counts.collect()
    };
    let folder = TempDir::new().unwrap();
    let mut finished: BTreeSet<String> = BTreeSet::new();
    let mut before = asked();
    for round in 0..=ROUNDS {
        let last = round == ROUNDS;
        let crawlers =
            join_all((0..4).map(|number| crawler(&folder, number, database.url()))).await;
        // The crawlers race each other to the work; how far they are when they die is chance.
        let enough = if last {
            ORIGINS * CARDS
        } else {
            finished.len() + 1 + round * 5
        };
        let reached = async {
            while books(&store).await.len() < enough.min(ORIGINS * CARDS) {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, reached).await.unwrap();
        join_all(crawlers.into_iter().map(Program::kill)).await;
        let after = asked();
        for (url, count) in &after {
            let more = count - before[url];
            assert!(more <= 1, "{url} was asked {more} times in round {round}");
            assert!(
                more == 0 || !finished.contains(url),
                "{url} was in the books in round {round}"
            );
        }
        before = after;
        let books = books(&store).await;
        assert!(books.values().all(|attempts| *attempts == 1), "{books:?}");
        finished = books.into_keys().collect();
        // Nobody lives who holds a lease: as if their time had run out.
        domain::Entity::update_many()
            .col_expr(domain::Column::LeasedUntil, Expr::value(1_i64))
            .filter(domain::Column::Lease.is_not_null())
            .exec(store.connection())
            .await
            .unwrap();
    }
    assert_eq!(finished.len(), ORIGINS * CARDS);
    let due = source::Entity::find().filter(source::Column::NextDueAt.eq(1));
    assert_eq!(due.count(store.connection()).await.unwrap(), 0);
}

/// A thousand origins that never answer are being asked when the process is told to end. It gives every visit
/// back and does not wait for a single one: what does not end in time is told in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_in_the_middle_of_a_thousand_slow_fetches() {
    const FETCHES: usize = 1_000;
    // Each fetch is a connection, here and in the process that is started.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("registry.sqlite");
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let store = Store::open(&options(&url)).await.unwrap();
    let write = store.write().await.unwrap();
    let connected = Arc::new(watch::Sender::new(0));
    for _ in 0..FETCHES {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let row = due_domain(&address.to_string());
        let domain = write.domain_insert(row).await.unwrap().id;
        let card = format!("http://{address}/card.json");
        write
            .source_insert(leases::source(domain, &card, 1))
            .await
            .unwrap();
        let connected = Arc::clone(&connected);
        tokio::spawn(async move {
            let held = listener.accept().await.unwrap();
            connected.send_modify(|count| *count += 1);
            std::future::pending::<()>().await;
            drop(held);
        });
    }
    write.commit().await.unwrap();
    store.close().await.unwrap();
    let registry = Setup::new(folder.path())
        .database(&url)
        .only(
            "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"\n\
             concurrency = 1000",
        )
        .start()
        .await;
    let mut all = connected.subscribe();
    let under_way = all.wait_for(|count| *count == FETCHES);
    timeout(DEADLINE, under_way).await.unwrap().unwrap();
    let began = Instant::now();
    let ended = registry.stop().await;
    let took = began.elapsed();
    let complaint = |line: &&String| line.contains("in time") || line.contains("run out");
    assert_eq!(ended.stderr.iter().find(complaint), None);
    // The promise itself, not a guess at how fast this machine is.
    assert!(took.as_secs() < 5, "it took {took:?}");
    let store = Store::connect(&options(&url)).await.unwrap();
    let rows = domain::Entity::find()
        .all(store.connection())
        .await
        .unwrap();
    assert_eq!(rows.len(), FETCHES);
    assert!(
        rows.iter()
            .all(|row| row.lease.is_none() && row.visit_due_at == Some(1)),
        "returned, and due"
    );
    store.close().await.unwrap();
}
