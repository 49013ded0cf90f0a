//! Endpoint checks in the registry, on both databases: what permits and limits them, leases, sharing, history,
//! outages, and what shows their results.

use a2a_crawler::dns::{TxtLookup, TxtRecords};
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{NewEndpointVouch, NewOwnerVouch, NewToken, Vouch};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::{AllowPorts, CheckEndpoints, Config};
use a2a_registry_core::domains::actions::vouch_for_domain;
use a2a_registry_core::domains::endpoint_permission::{
    vouch_for_endpoints, withdraw_endpoint_vouch,
};
use a2a_registry_core::domains::owner_vouch::vouch_for_domain_owner;
use a2a_registry_core::endpoints::assignment::{
    MAX_ADDRESSES_PER_HOST, MAX_HOSTS_PER_SITE, advance_endpoint_assignments,
    clear_endpoint_assignments,
};
use a2a_registry_core::endpoints::check::{
    HostCheckProgress, check_leased_host, end_host_lease, lease_due_endpoint_host,
};
use a2a_registry_core::endpoints::views::agent_endpoint;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Role;
use a2a_registry_store::Executor as _;
use a2a_registry_store::endpoint_checks::{
    ENDPOINT_HISTORY_DAYS, NewEndpointCheck, endpoint_checks_by_ids, endpoint_days,
};
use a2a_registry_store::entity::endpoint_day;
use a2a_registry_store::events::events_after;
use sea_orm::{ConnectionTrait as _, EntityTrait as _, PaginatorTrait as _};
use serde_json::json;
use time::Duration;

use crate::policies::put_policies;
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse};
use crate::support::origin::{Origin, OriginReply};

both_databases!(
    only_an_endpoint_vouch_permits_checks_of_a_host_without_a_proof,
    agents_with_one_address_share_its_check,
    a_changed_card_is_checked_again,
    of_two_processes_one_checks_a_host,
    an_address_that_becomes_due_while_a_lease_ends_is_checked,
    a_host_that_asks_for_a_week_is_left_alone_for_a_week,
    two_hosts_of_a_network_are_asked_at_a_time,
    a_host_and_a_domain_have_bounds,
    history_ends_after_ninety_days,
    nothing_is_recorded_while_the_breaker_is_open,
    an_event_is_written_only_when_the_word_changes,
    a_host_that_opted_out_is_not_asked,
    of_equal_hits_the_one_that_answers_comes_first,
    only_owners_curators_and_auditors_see_the_details,
    a_policy_follows_the_word,
    checks_that_are_turned_off_leave_no_result
);

const NOT_FOUND: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#;
const CARD_HOST: &str = "cards.agents-test.com";

fn permit_loopback(config: &mut Config) {
    config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.crawler.allow_http = true;
    config.crawler.allow_ports = AllowPorts::Word("any".into());
    config.crawler.check_endpoints = CheckEndpoints::Vouched;
}

async fn checking_registry(url: &str) -> InProcessRegistry {
    InProcessRegistry::with_config(url, permit_loopback).await
}

/// A server at whose `/rpc` an agent answers.
fn answering_server() -> Origin {
    let server = Origin::start();
    server.set_reply("/rpc", OriginReply::json(NOT_FOUND));
    server
}

fn card(name: &str, endpoint: &str) -> Vec<u8> {
    let card = json!({
        "name": name,
        "description": "Is asked whether it answers.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": endpoint, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Skill", "description": "None.", "tags": ["t"]}],
    });
    card.to_string().into_bytes()
}

/// A listed agent of a domain that nobody has proved, with this endpoint.
async fn publish(registry: &InProcessRegistry, domain: &str, endpoint: &str) {
    registry.register_domain(domain).await;
    let answer = OriginResponse::Card(card(domain, endpoint));
    registry.crawl_domain(domain, answer).await;
    let agent = registry.agent(domain).await;
    registry.approve_open_review(agent.id).await;
}

/// Registers the host of a server, so that a vouch can be given for it.
async fn register_host(registry: &InProcessRegistry, server: &Origin) -> String {
    let view = registry.register_card_url(&server.url("/card.json")).await;
    view.domain
}

async fn vouch(registry: &InProcessRegistry, server: &Origin) -> String {
    let host = register_host(registry, server).await;
    let new = NewEndpointVouch {
        reason: "a test".into(),
    };
    vouch_for_endpoints(&registry.app, &registry.admin, &host, &new)
        .await
        .unwrap();
    host
}

/// Applies all events and scans.
async fn assign(registry: &InProcessRegistry) {
    while advance_endpoint_assignments(&registry.app).await.unwrap() {}
}

/// Makes the due checks; returns how many hosts were leased.
async fn make_due_checks(registry: &InProcessRegistry) -> usize {
    assign(registry).await;
    let mut hosts = 0;
    while let Some(leased) = lease_due_endpoint_host(&registry.app).await.unwrap() {
        let mut progress = HostCheckProgress::default();
        check_leased_host(&registry.app, &leased, &mut progress)
            .await
            .unwrap();
        end_host_lease(&registry.app, &leased.host, progress)
            .await
            .unwrap();
        hosts += 1;
    }
    hosts
}

async fn state(registry: &InProcessRegistry, domain: &str) -> EndpointState {
    registry.agent(domain).await.endpoint().unwrap()
}

async fn endpoint_events(registry: &InProcessRegistry) -> usize {
    let events = events_after(&registry.store, 0, 10_000).await.unwrap();
    let events = events.iter();
    events
        .filter(|event| event.kind == EventKind::AgentEndpoint)
        .count()
}

async fn only_an_endpoint_vouch_permits_checks_of_a_host_without_a_proof(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    let host = register_host(&registry, &server).await;
    assert_eq!(make_due_checks(&registry).await, 0);
    let (app, admin) = (&registry.app, &registry.admin);
    let of_host = Vouch {
        reason: "a test".into(),
        account: None,
    };
    vouch_for_domain(app, admin, &host, &of_host).await.unwrap();
    let of_owner = NewOwnerVouch {
        account: admin.account.as_ref().unwrap().name.clone(),
        reason: "a test".into(),
        expires_in_days: None,
    };
    vouch_for_domain_owner(app, admin, &host, &of_owner)
        .await
        .unwrap();
    registry.advance(Duration::days(2));
    assert_eq!(make_due_checks(&registry).await, 0);
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::NotChecked);

    let new = NewEndpointVouch {
        reason: "a test".into(),
    };
    let view = vouch_for_endpoints(app, admin, &host, &new).await.unwrap();
    assert_eq!(view.endpoint_vouch.unwrap().reason, "a test");
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::Answers);
    registry.catch_up().await;
    let query = SearchQuery {
        endpoint: vec!["answers".into()],
        ..SearchQuery::default()
    };
    let found = registry.search_all(&registry.admin, &query).await;
    assert_eq!(found.agents.len(), 1);

    // What was permitted when the address was assigned is judged again before each check.
    registry.advance(Duration::days(2));
    withdraw_endpoint_vouch(app, admin, &host).await.unwrap();
    if let Some(leased) = lease_due_endpoint_host(app).await.unwrap() {
        let mut progress = HostCheckProgress::default();
        check_leased_host(app, &leased, &mut progress)
            .await
            .unwrap();
        end_host_lease(app, &leased.host, progress).await.unwrap();
    }
    assert_eq!(server.requests_to("/rpc").len(), 1);
    assign(&registry).await;
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::NotChecked);
    let agent = registry.agent(CARD_HOST).await;
    assert_eq!(agent.endpoint_check_id, None);
    assert_eq!(agent.endpoint_answered_at, None);
}

async fn agents_with_one_address_share_its_check(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    let endpoint = server.url("/rpc");
    for domain in ["one.agents-test.com", "two.agents-test.com"] {
        publish(&registry, domain, &endpoint).await;
    }
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(server.requests_to("/rpc").len(), 1);
    let one = registry.agent("one.agents-test.com").await;
    let two = registry.agent("two.agents-test.com").await;
    assert_eq!(one.endpoint_check_id, two.endpoint_check_id);
    for agent in [one, two] {
        assert_eq!(agent.endpoint, EndpointState::Answers);
        assert!(agent.endpoint_answered_at.is_some());
    }
    // A third one is told the result that is there.
    publish(&registry, "three.agents-test.com", &endpoint).await;
    assert_eq!(make_due_checks(&registry).await, 0);
    assert_eq!(
        state(&registry, "three.agents-test.com").await,
        EndpointState::Answers
    );
    registry.advance(Duration::hours(23));
    assert_eq!(make_due_checks(&registry).await, 0);
    registry.advance(Duration::hours(2));
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(server.requests_to("/rpc").len(), 2);
}

async fn a_changed_card_is_checked_again(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        permit_loopback(config);
        config.governance.approve_all = true;
    })
    .await;
    let server = answering_server();
    vouch(&registry, &server).await;
    let endpoint = server.url("/rpc");
    registry.register_domain(CARD_HOST).await;
    registry
        .crawl_domain(CARD_HOST, OriginResponse::Card(card("Before", &endpoint)))
        .await;
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(make_due_checks(&registry).await, 0);
    registry.advance(Duration::hours(1));
    registry
        .crawl_domain(CARD_HOST, OriginResponse::Card(card("After", &endpoint)))
        .await;
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(server.requests_to("/rpc").len(), 2);
}

async fn of_two_processes_one_checks_a_host(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    assign(&registry).await;
    let leased = lease_due_endpoint_host(&registry.app)
        .await
        .unwrap()
        .unwrap();
    // A process on the same database has the same leases.
    assert!(
        lease_due_endpoint_host(&registry.app)
            .await
            .unwrap()
            .is_none()
    );
    // One that ends without a word is replaced after its lease.
    registry.advance(Duration::minutes(11));
    let again = lease_due_endpoint_host(&registry.app)
        .await
        .unwrap()
        .unwrap();
    assert_ne!(leased.host.lease, again.host.lease);
    let mut progress = HostCheckProgress::default();
    check_leased_host(&registry.app, &again, &mut progress)
        .await
        .unwrap();
    // The first one no longer holds the lease, so it cannot end it.
    end_host_lease(&registry.app, &leased.host, HostCheckProgress::default())
        .await
        .unwrap();
    assert!(
        lease_due_endpoint_host(&registry.app)
            .await
            .unwrap()
            .is_none()
    );
    end_host_lease(&registry.app, &again.host, progress)
        .await
        .unwrap();
    assert_eq!(server.requests_to("/rpc").len(), 1);
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::Answers);
}

async fn an_address_that_becomes_due_while_a_lease_ends_is_checked(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    assign(&registry).await;
    let leased = lease_due_endpoint_host(&registry.app)
        .await
        .unwrap()
        .unwrap();
    let mut progress = HostCheckProgress::default();
    check_leased_host(&registry.app, &leased, &mut progress)
        .await
        .unwrap();
    // Another process assigns an address of the host, and commits while the lease is ended here.
    let write = registry.store.begin_write().await.unwrap();
    let new = NewEndpointCheck {
        key: "of another agent".into(),
        origin: leased.host.origin.clone(),
        site: leased.host.site.clone(),
        form: "json_rpc_1".into(),
        url: server.url("/other"),
        tenant: None,
    };
    let now = registry.app.now().0;
    write.insert_endpoint_checks(&[new], now).await.unwrap();
    let end = end_host_lease(&registry.app, &leased.host, progress);
    let (ended, committed) = futures::join!(end, write.commit());
    ended.unwrap();
    committed.unwrap();
    let again = lease_due_endpoint_host(&registry.app).await.unwrap();
    let again = again.expect("the host is due");
    let due: Vec<&str> = again
        .checks
        .iter()
        .map(|check| check.url.as_str())
        .collect();
    assert_eq!(due, [server.url("/other")]);
}

async fn a_host_that_asks_for_a_week_is_left_alone_for_a_week(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    let busy = OriginReply::status(503).with_header("retry-after", "604800");
    server.set_reply("/rpc", busy);
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    assert_eq!(make_due_checks(&registry).await, 1);
    registry.advance(Duration::days(3));
    assert_eq!(make_due_checks(&registry).await, 0);
    registry.advance(Duration::days(5));
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(server.requests_to("/rpc").len(), 2);
}

/// Permits checks of the endpoints on the host of this URL.
async fn vouch_for_url(registry: &InProcessRegistry, url: &str) {
    let view = registry.register_card_url(url).await;
    let new = NewEndpointVouch {
        reason: "a test".into(),
    };
    vouch_for_endpoints(&registry.app, &registry.admin, &view.domain, &new)
        .await
        .unwrap();
}

/// Hosts that no check has reached yet count in the blocks to which their names lead.
async fn two_hosts_of_a_network_are_asked_at_a_time(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        permit_loopback(config);
        config.crawler.allow_networks = Vec::new();
    })
    .await;
    for number in 1..=3_u8 {
        let host = format!("h{number}.agents-test.com");
        // The guard rejects this address, so that nothing is sent.
        let address = [198, 51, 100, number];
        registry.resolver.set(&host, [address.into()]);
        vouch_for_url(&registry, &format!("http://{host}:9000/card.json")).await;
        let cards = format!("cards{number}.agents-test.com");
        publish(&registry, &cards, &format!("http://{host}:9000/rpc")).await;
    }
    assign(&registry).await;
    let app = &registry.app;
    let mut asked = Vec::new();
    while let Some(leased) = lease_due_endpoint_host(app).await.unwrap() {
        let mut progress = HostCheckProgress::default();
        check_leased_host(app, &leased, &mut progress)
            .await
            .unwrap();
        let id = leased.checks[0].id;
        let rows = endpoint_checks_by_ids(&registry.store, &[id]).await;
        if rows.unwrap()[0].reason.is_some() {
            asked.push((leased.host, progress));
        } else {
            end_host_lease(app, &leased.host, progress).await.unwrap();
        }
    }
    assert_eq!(asked.len(), 2);
    for number in 1..=3 {
        let cards = format!("cards{number}.agents-test.com");
        assert_eq!(state(&registry, &cards).await, EndpointState::NotChecked);
    }
    for (host, progress) in asked {
        end_host_lease(app, &host, progress).await.unwrap();
    }
    // They count for a second more.
    assert!(lease_due_endpoint_host(app).await.unwrap().is_none());
    registry.advance(Duration::seconds(2));
    let third = lease_due_endpoint_host(app).await.unwrap().unwrap();
    assert_eq!(third.host.network.as_deref(), Some("198.51.100.0/24"));
}

async fn a_host_and_a_domain_have_bounds(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    let endpoint = server.url("/rpc");
    let origin = endpoint.strip_suffix("/rpc").unwrap();
    let fill = async |count: u64, into: &str| {
        let statement = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             INSERT INTO {into} FROM n"
        );
        let connection = registry.store.connection();
        let done = connection.execute_unprepared(&statement).await;
        assert_eq!(done.unwrap().rows_affected(), count);
    };
    let addresses = format!(
        "endpoint_checks (key, origin, form, url, due_at, state) SELECT 'k' || i, '{origin}', 'json_rpc_1', \
         '{origin}/' || i, 9000000000000000, 'not_checked'"
    );
    fill(MAX_ADDRESSES_PER_HOST - 1, &addresses).await;
    let other = server.url("/other");
    for (domain, url) in [
        ("one.agents-test.com", &endpoint),
        ("two.agents-test.com", &other),
        ("three.agents-test.com", &endpoint),
    ] {
        publish(&registry, domain, url).await;
        assign(&registry).await;
    }
    let has_check = async |domain: &str| {
        let agent = registry.agent(domain).await;
        agent.endpoint_check_id.is_some()
    };
    assert!(has_check("one.agents-test.com").await);
    assert!(!has_check("two.agents-test.com").await);
    // It has the address of the first one.
    assert!(has_check("three.agents-test.com").await);

    let hosts = "endpoint_hosts (origin, site, not_before, created_at) \
                 SELECT 'https://h' || i || '.agents-test.com', 'agents-test.com', 0, 0";
    fill(MAX_HOSTS_PER_SITE - 1, hosts).await;
    for domain in ["four.agents-test.com", "five.agents-test.com"] {
        vouch_for_url(&registry, &format!("http://{domain}:9000/card.json")).await;
        publish(&registry, domain, &format!("http://{domain}:9000/rpc")).await;
        assign(&registry).await;
    }
    assert!(has_check("four.agents-test.com").await);
    assert!(!has_check("five.agents-test.com").await);
}

async fn count_days(registry: &InProcessRegistry) -> u64 {
    let days = endpoint_day::Entity::find().count(registry.store.connection());
    days.await.unwrap()
}

async fn history_ends_after_ninety_days(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    make_due_checks(&registry).await;
    let id = registry.agent(CARD_HOST).await.endpoint_check_id.unwrap();
    let row = endpoint_checks_by_ids(&registry.store, &[id])
        .await
        .unwrap()
        .remove(0);
    let first = endpoint_days(&registry.store, id).await.unwrap()[0].day;
    let write = registry.app.store.begin_write().await.unwrap();
    for day in first..first + ENDPOINT_HISTORY_DAYS {
        // A second check of a day replaces its result.
        for _ in 0..2 {
            write.record_endpoint_check(&row, day).await.unwrap();
        }
    }
    write.commit().await.unwrap();
    let kept = u64::from(ENDPOINT_HISTORY_DAYS.unsigned_abs());
    assert_eq!(count_days(&registry).await, kept);
    let write = registry.app.store.begin_write().await.unwrap();
    let next = first + ENDPOINT_HISTORY_DAYS;
    write.record_endpoint_check(&row, next).await.unwrap();
    write.commit().await.unwrap();
    let days = endpoint_days(&registry.store, id).await.unwrap();
    assert_eq!(days.len() as u64, kept);
    assert_eq!((days[0].day, days[89].day), (next, first + 1));
    assert_eq!(count_days(&registry).await, kept);
}

async fn nothing_is_recorded_while_the_breaker_is_open(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    make_due_checks(&registry).await;
    let before = registry.agent(CARD_HOST).await;
    registry.advance(Duration::days(2));
    server.set_reply("/rpc", OriginReply::status(502));
    let leased = lease_due_endpoint_host(&registry.app)
        .await
        .unwrap()
        .unwrap();
    // It opens while the host is asked.
    registry.app.crawl_state.open_breaker(registry.now());
    let mut progress = HostCheckProgress::default();
    check_leased_host(&registry.app, &leased, &mut progress)
        .await
        .unwrap();
    end_host_lease(&registry.app, &leased.host, progress)
        .await
        .unwrap();
    registry.advance(Duration::hours(1));
    assert!(
        lease_due_endpoint_host(&registry.app)
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(registry.agent(CARD_HOST).await, before);
    assert_eq!(server.requests_to("/rpc").len(), 2);
}

async fn an_event_is_written_only_when_the_word_changes(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    make_due_checks(&registry).await;
    assert_eq!(endpoint_events(&registry).await, 1);
    let first = registry.agent(CARD_HOST).await;
    registry.advance(Duration::days(1));
    make_due_checks(&registry).await;
    assert_eq!(endpoint_events(&registry).await, 1);
    let second = registry.agent(CARD_HOST).await;
    assert!(second.endpoint_checked_at > first.endpoint_checked_at);
    assert!(second.endpoint_answered_at > first.endpoint_answered_at);
    server.set_reply("/rpc", OriginReply::status(502));
    registry.advance(Duration::days(1));
    make_due_checks(&registry).await;
    assert_eq!(endpoint_events(&registry).await, 2);
    let third = registry.agent(CARD_HOST).await;
    assert_eq!(third.endpoint, EndpointState::DoesNotAnswer);
    assert_eq!(third.endpoint_answered_at, second.endpoint_answered_at);
    registry.assert_index_matches_database().await;
}

/// The record counts on hosts of endpoints too, which need not be the domain of any agent.
async fn a_host_that_opted_out_is_not_asked(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    let (host, port) = ("endpoint.agents-test.com", server.address().port());
    registry.resolver.set(host, [[127, 0, 0, 1].into()]);
    vouch_for_url(&registry, &format!("http://{host}:{port}/card.json")).await;
    publish(&registry, CARD_HOST, &format!("http://{host}:{port}/rpc")).await;
    let name = format!("_a2a-registry.{host}");
    let mut records = TxtRecords::default();
    records.push(["127.0.0.1:8080; policy=none"]);
    registry
        .resolver
        .set_texts(&name, TxtLookup::Records(records));
    assert_eq!(make_due_checks(&registry).await, 1);
    assert!(server.requests_to("/rpc").is_empty());
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::NotChecked);
    let id = registry.agent(CARD_HOST).await.endpoint_check_id.unwrap();
    let rows = endpoint_checks_by_ids(&registry.store, &[id])
        .await
        .unwrap();
    let reason = rows[0].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("opted out"), "{reason}");

    registry.resolver.set_texts(&name, TxtLookup::Absent);
    registry.advance(Duration::days(2));
    assert_eq!(make_due_checks(&registry).await, 1);
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::Answers);
}

async fn of_equal_hits_the_one_that_answers_comes_first(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    let (one, two) = ("one.agents-test.com", "two.agents-test.com");
    publish(&registry, one, &server.url("/one")).await;
    publish(&registry, two, &server.url("/two")).await;
    let dead = || OriginReply::status(502);
    let alive = || OriginReply::json(NOT_FOUND);
    let query = SearchQuery {
        q: Some("whether answers".into()),
        ..SearchQuery::default()
    };
    for (replies, first) in [((alive(), dead()), one), ((dead(), alive()), two)] {
        server.set_reply("/one", replies.0);
        server.set_reply("/two", replies.1);
        registry.advance(Duration::days(2));
        make_due_checks(&registry).await;
        registry.catch_up().await;
        let found = registry.search_all(&registry.admin, &query).await.agents;
        assert_eq!(found.len(), 2);
        let expected = registry.agent(first).await.id;
        assert_eq!(found[0].summary.id, expected, "{found:#?}");
    }
}

async fn only_owners_curators_and_auditors_see_the_details(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    make_due_checks(&registry).await;
    let id = registry.agent(CARD_HOST).await.id.to_string();
    for (role, sees_details) in [
        (None, false),
        (Some(Role::Reader), false),
        (Some(Role::Publisher), false),
        (Some(Role::Curator), true),
        (Some(Role::Auditor), true),
        (Some(Role::Admin), true),
    ] {
        let caller = match role {
            None => Caller::default(),
            Some(role) => {
                let new = NewToken {
                    account: format!("a-{role}"),
                    role: Some(role),
                    name: "a test".into(),
                    ..NewToken::default()
                };
                let made = token_create(&registry.app, &registry.admin, &new);
                let secret = made.await.unwrap().secret;
                authenticate_token(&registry.app, &secret).await.unwrap()
            }
        };
        let view = agent_endpoint(&registry.app, &caller, &id).await.unwrap();
        assert_eq!(view.summary.state, EndpointState::Answers, "{role:?}");
        assert!(view.summary.checked_on.is_some(), "{role:?}");
        assert_eq!(view.details.is_some(), sees_details, "{role:?}");
    }
}

/// A policy that permits agents that answer permits one from the check on that says so, and no longer than that.
async fn a_policy_follows_the_word(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    let answering =
        "permit (principal, action, resource) when { resource.endpoint == \"answers\" };";
    put_policies(&registry, &[("answering", answering)]).await;
    registry.catch_up().await;
    let nobody = Caller::default();
    let found = async || {
        let query = SearchQuery::default();
        registry.search_all(&nobody, &query).await.agents.len()
    };
    assert_eq!(found().await, 0);
    make_due_checks(&registry).await;
    registry.catch_up().await;
    assert_eq!(found().await, 1);
    server.set_reply("/rpc", OriginReply::status(502));
    registry.advance(Duration::days(1));
    make_due_checks(&registry).await;
    // It is hidden from the result on, before the index has applied its event.
    assert_eq!(found().await, 0);
    registry.catch_up().await;
    assert_eq!(found().await, 0);
}

async fn checks_that_are_turned_off_leave_no_result(url: &str) {
    let registry = checking_registry(url).await;
    let server = answering_server();
    vouch(&registry, &server).await;
    publish(&registry, CARD_HOST, &server.url("/rpc")).await;
    make_due_checks(&registry).await;
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::Answers);
    let registry = registry
        .restart(|config| config.crawler.check_endpoints = CheckEndpoints::Off)
        .await;
    while clear_endpoint_assignments(&registry.app).await.unwrap() {}
    assert_eq!(state(&registry, CARD_HOST).await, EndpointState::NotChecked);
    assert_eq!(make_due_checks(&registry).await, 0);
    assert_eq!(server.requests_to("/rpc").len(), 1);
}
