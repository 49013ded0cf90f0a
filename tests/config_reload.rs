//! SIGHUP: what a running registry takes over from its changed configuration, and what it keeps.

use std::path::Path;

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_store::agents::holds_of_agents;
use a2a_registry_store::{Executor as _, Store};
use reqwest::Certificate;
use rustix::process::{Pid, Signal, kill_process};
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::database::{Database, store_options, wait_for_lock_waiter};
use crate::support::database_proxy::{DatabaseProxy, ProxyState};
use crate::support::event_stream::event_seq;
use crate::support::in_process_registry::card_bytes;
use crate::support::install_tls;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

const CARD: &str = "/.well-known/agent-card.json";
const CRAWLER: &str =
    "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"\n";

/// Replaces the configuration file of a running registry, and sends SIGHUP.
fn reload_with(registry: &ServingRegistry, configuration: &str) {
    let file = registry.setup.scratch_folder().join("registry.toml");
    std::fs::write(file, configuration).unwrap();
    let process = Pid::from_raw(i32::try_from(registry.program.id()).unwrap()).unwrap();
    kill_process(process, Signal::HUP).unwrap();
}

/// Writes a new certificate and its key, and returns the certificate.
fn write_certificate(folder: &Path) -> Certificate {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    Certificate::from_pem(made.cert.pem().as_bytes()).unwrap()
}

/// A client with a connection pool of its own that trusts this certificate and no other.
fn client_trusting(certificate: &Certificate) -> reqwest::Client {
    install_tls();
    let builder = reqwest::Client::builder().no_proxy();
    let builder = builder.tls_certs_only([certificate.clone()]);
    builder.build().unwrap()
}

#[tokio::test]
async fn a_certificate_is_replaced_for_new_handshakes_and_a_broken_one_is_not_taken() {
    let setup = RegistrySetup::with_default_config();
    let folder = setup.scratch_folder().to_owned();
    let shown = folder.display();
    let tls = format!("[server]\ntls_cert = \"{shown}/cert.pem\"\ntls_key = \"{shown}/key.pem\"\n");
    let old = write_certificate(&folder);
    let registry = setup.with_config_lines(&tls).start_without_proxy().await;
    let url = format!("{}/livez", registry.status_line.url());
    let is_served = async |client: &reqwest::Client| {
        // The body is read to its end, so that the connection can be used again.
        match client.get(&url).send().await {
            Ok(answer) => answer.text().await.is_ok_and(|text| text == "ok\n"),
            Err(_) => false,
        }
    };
    let early = client_trusting(&old);
    assert!(is_served(&early).await);

    // The key of another certificate: the certificate in use stays.
    let new = write_certificate(&folder);
    let made = std::fs::read(folder.join("key.pem")).unwrap();
    write_certificate(&folder);
    let other_certificate = std::fs::read(folder.join("cert.pem")).unwrap();
    let other_key = std::fs::read(folder.join("key.pem")).unwrap();
    std::fs::write(folder.join("key.pem"), "no key").unwrap();
    reload_with(&registry, &format!("{tls}drain_seconds = 6\n"));
    let line = registry
        .program
        .wait_for_line("the TLS certificate was not reloaded")
        .await;
    assert!(
        line.contains("server.tls_key") && line.contains("key.pem"),
        "{line}"
    );
    let line = registry.program.wait_for_line("server.drain_seconds").await;
    assert!(line.contains("the rest of the configuration"), "{line}");
    assert!(is_served(&client_trusting(&old)).await);
    std::fs::write(folder.join("key.pem"), &made).unwrap();
    reload_with(&registry, &format!("{tls}[search]\nembed_rate = 6\n"));
    registry.program.wait_for_line("search.embed_rate").await;
    assert!(is_served(&client_trusting(&old)).await);
    assert!(!is_served(&client_trusting(&new)).await);

    // A pair that fits: new handshakes get it, and the old connection goes on.
    std::fs::write(folder.join("key.pem"), other_key).unwrap();
    let newest = Certificate::from_pem(&other_certificate).unwrap();
    reload_with(&registry, &format!("{tls}[store]\nstale_limit = 61\n"));
    registry.program.wait_for_line("store.stale_limit").await;
    assert!(is_served(&client_trusting(&newest)).await);
    assert!(!is_served(&client_trusting(&old)).await);
    assert!(is_served(&early).await, "the old connection was closed");
    drop(early);
    registry.stop().await;
}

both_databases!(rules_and_limits_are_replaced);

/// A denied domain disappears without a restart and comes back likewise; what cannot be replaced is named.
async fn rules_and_limits_are_replaced(url: &str) {
    let setup = RegistrySetup::new().with_database(url).approve_all();
    let registry = setup.start_without_proxy().await;
    let origin = Origin::start();
    let card = card_bytes("Fernweh", "Books flights");
    origin.set_reply(CARD, OriginReply::json(card));
    let agent = registry.publish(&origin.url(CARD)).await;
    let found = async || {
        let list = registry.search("q=Fernweh").await;
        list["agents"].as_array().unwrap().len()
    };
    assert_eq!(found().await, 1);
    let mut feed = registry.open_event_stream(0).await;
    let is_its_own = |event: &Value| event["subject"] == agent.as_str();

    let denial =
        "[governance]\ndeny_domains = [\"127.0.0.1:*\"]\n[limits]\nfilters = 0\nstreams = 7\n";
    reload_with(&registry, &format!("{CRAWLER}{denial}"));
    let line = registry.program.wait_for_line("limits.streams").await;
    assert!(
        !line.contains("limits.filters") && !line.contains("governance"),
        "{line}"
    );
    let held = feed.wait_for_match("agent.held", is_its_own).await;
    registry.wait_until_indexed(event_seq(&held)).await;
    assert_eq!(found().await, 0);
    // A rule decided it, so the log says about which agent.
    let line = registry.program.wait_for_line("agent.held").await;
    assert!(
        line.contains("Fernweh") && line.contains(&agent) && line.contains("policy"),
        "{line}"
    );
    let path = format!("/v1/agents/{agent}");
    registry.get(&path).await.expect_problem(404, "not-found");
    assert_eq!(registry.get("/v1/agents?provider=x").await.status, 400);
    // The rules decide on what comes in, too.
    let other = json!({"card_url": "http://127.0.0.1:9/agent-card.json"});
    let refused = registry.post_as_admin("/v1/domains", &other).await;
    assert!(refused.status.is_client_error(), "{}", refused.text());

    reload_with(&registry, CRAWLER);
    let released = feed.wait_for_match("agent.released", is_its_own).await;
    registry.wait_until_indexed(event_seq(&released)).await;
    assert_eq!(found().await, 1);
    registry.get(&path).await.expect_status(200);
    assert_eq!(registry.get("/v1/agents?provider=x").await.status, 200);
    drop(feed);
    registry.stop().await;
}

#[tokio::test]
async fn a_broken_configuration_is_refused_and_a_log_filter_is_replaced() {
    let setup = RegistrySetup::new().with_config_lines("[log]\nfilter = \"error\"");
    let registry = setup.start_without_proxy().await;
    reload_with(&registry, "[server]\nlissen = \"127.0.0.1:1\"\n[store\n");
    let line = registry
        .program
        .wait_for_line("the configuration was not reloaded")
        .await;
    assert!(line.contains("ERROR"), "{line}");
    assert_eq!(registry.get("/livez").await.status, 200);
    // This line is below the level of errors, so only the new filter shows it.
    reload_with(&registry, &format!("{CRAWLER}[log]\nfilter = \"info\"\n"));
    registry
        .program
        .wait_for_line("the configuration was reloaded")
        .await;
    registry.stop().await;
}

/// The database commits what a reload hides, and the answer is lost with the connection. The reload is repeated
/// without another signal, so that the hidden agents are decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_whose_commit_was_not_answered_is_repeated() {
    lose_the_answer_to_a_reload(false).await;
}

/// The same where the file has its old rules again by then: the hidden agents are released.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_whose_commit_was_not_answered_is_taken_back() {
    lose_the_answer_to_a_reload(true).await;
}

async fn lose_the_answer_to_a_reload(takes_it_back: bool) {
    let database = Database::postgres().await;
    let line = DatabaseProxy::start(database.url()).await;
    let setup = RegistrySetup::new().with_database(line.url()).approve_all();
    let registry = setup.start_without_proxy().await;
    let origin = Origin::start();
    origin.set_reply(
        CARD,
        OriginReply::json(card_bytes("Fernweh", "Books flights")),
    );
    let agent = registry.publish(&origin.url(CARD)).await;
    let agent: Uuid = agent.parse().unwrap();

    // The commit of the reload waits in the server for a lock that this test holds.
    let store = Store::connect(&store_options(database.url()))
        .await
        .unwrap();
    let trigger = "CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS \
                   $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$; \
                   CREATE CONSTRAINT TRIGGER wait_for_test AFTER INSERT OR UPDATE ON settings \
                   DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = 'rules_pass') \
                   EXECUTE FUNCTION wait_for_test()";
    store
        .connection()
        .execute_unprepared(trigger)
        .await
        .unwrap();
    let lock = store.begin_write().await.unwrap();
    let take = "SELECT pg_advisory_xact_lock(4711)";
    lock.connection().execute_unprepared(take).await.unwrap();
    let denial = "[governance]\ndeny_domains = [\"127.0.0.1:*\"]\n";
    reload_with(&registry, &format!("{CRAWLER}{denial}"));
    wait_for_lock_waiter(&store).await;
    line.set_state(ProxyState::Refusing);
    drop(lock);
    registry
        .program
        .wait_for_line("this is repeated until the database responds")
        .await;
    let wait_for_hold = async |hold: Hold| {
        eventually("the agent has the hold", async || {
            let rows = holds_of_agents(&store, &[agent]).await.unwrap();
            rows.iter().any(|row| row.hold == hold).then_some(())
        })
        .await;
    };
    wait_for_hold(Hold::RulesChanged).await;

    if takes_it_back {
        reload_with(&registry, CRAWLER);
    }
    line.set_state(ProxyState::Forwarding);
    registry
        .program
        .wait_for_line("the configuration was reloaded")
        .await;
    match takes_it_back {
        false => wait_for_hold(Hold::Denied).await,
        true => {
            eventually("the agent has no hold", async || {
                let rows = holds_of_agents(&store, &[agent]).await.unwrap();
                rows.is_empty().then_some(())
            })
            .await;
        }
    }
    registry.stop().await;
}
