//! The URLs by which gateways ask about an agent, on both databases: what an admin's vouch and the reach of a proof
//! change about them, in every process.

use a2a_registry_api::{Act, DecisionRequest, DecisionSubject, NewEndpointVouch, Vouch};
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::config::AllowPorts;
use a2a_registry_core::domains::actions::{domain_show, vouch_for_domain};
use a2a_registry_core::domains::endpoint_permission::{
    vouch_for_endpoints, withdraw_endpoint_vouch,
};
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::policies::access_decision::decide_access;
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use crate::ownership::OwnershipSetup;
use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

both_databases!(
    a_vouch_lets_gateways_ask_by_url,
    a_vouch_for_plain_http_ends_with_the_proof,
    a_smaller_reach_of_a_proof_is_known_in_every_process
);

fn card_at(name: &str, url: &str) -> Vec<u8> {
    let mut card: Value = serde_json::from_slice(&card_bytes(name, "x")).unwrap();
    card["url"] = json!(url);
    card.to_string().into_bytes()
}

/// The processes of a registry: two on PostgreSQL.
struct Processes<'a> {
    first: &'a InProcessRegistry,
    second: Option<InProcessRegistry>,
}

impl<'a> Processes<'a> {
    async fn new(first: &'a InProcessRegistry, database: &str) -> Self {
        let second = match database.starts_with("postgres") {
            true => Some(first.second_process().await),
            false => None,
        };
        Self { first, second }
    }

    /// Whether a client without a token may call this URL, and the agent that decides; every process says the same.
    async fn ask(&self, url: &str) -> (bool, Option<Uuid>) {
        let request = DecisionRequest {
            action: "invoke".into(),
            url: Some(url.into()),
            subject: Some(DecisionSubject {
                account: Some("anonymous".into()),
                groups: Vec::new(),
            }),
            ..DecisionRequest::default()
        };
        let mut answers = Vec::new();
        for process in [Some(self.first), self.second.as_ref()]
            .into_iter()
            .flatten()
        {
            process.catch_up().await;
            let decision = decide_access(&process.app, &self.first.admin, &request).await;
            let decision = decision.unwrap();
            answers.push((decision.allowed, decision.agent));
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers[0]
    }
}

/// A vouch for the endpoints of a host makes the URLs of all agents there count while it lasts, and a vouch for the host
/// those of its own agents.
async fn a_vouch_lets_gateways_ask_by_url(database: &str) {
    let registry = InProcessRegistry::new(database).await;
    let (app, admin) = (&registry.app, &registry.admin);
    let processes = Processes::new(&registry, database).await;
    let host = "shared.agents-test.com";
    let url = format!("https://{host}/a2a");
    registry
        .register_approved_card(host, &card_bytes("Host", "x"))
        .await;
    let named = registry
        .register_approved_card("one.agents-test.com", &card_at("One", &url))
        .await
        .id;
    assert_eq!(processes.ask(&url).await, (false, None));
    let reason = || "a test".to_owned();
    for _ in 0..2 {
        let vouch = NewEndpointVouch { reason: reason() };
        vouch_for_endpoints(app, admin, host, &vouch).await.unwrap();
        assert_eq!(processes.ask(&url).await, (true, Some(named)));
        withdraw_endpoint_vouch(app, admin, host).await.unwrap();
        assert_eq!(processes.ask(&url).await, (false, None));
    }

    let own_host = "own.agents-test.com";
    let own_url = format!("https://{own_host}/a2a");
    let own = registry
        .register_approved_card(own_host, &card_at("Own", &own_url))
        .await
        .id;
    let foreign = registry
        .register_approved_card("foreign.agents-test.com", &card_at("Foreign", &own_url))
        .await
        .id;
    let suspension = Act {
        reason: reason(),
        hold: None,
    };
    agent_suspend(app, admin, &foreign.to_string(), &suspension)
        .await
        .unwrap();
    assert_eq!(processes.ask(&own_url).await, (false, None));
    let vouch = Vouch {
        reason: reason(),
        account: None,
    };
    vouch_for_domain(app, admin, own_host, &vouch)
        .await
        .unwrap();
    assert_eq!(processes.ask(&own_url).await, (true, Some(own)));
    let vouch = NewEndpointVouch { reason: reason() };
    vouch_for_endpoints(app, admin, own_host, &vouch)
        .await
        .unwrap();
    assert_eq!(processes.ask(&own_url).await, (false, Some(foreign)));
}

/// A proof is of the host name on port 443, so what an admin has said about endpoints on plain http ends with it.
async fn a_vouch_for_plain_http_ends_with_the_proof(database: &str) {
    let registry = InProcessRegistry::with_config(database, |config| {
        config.crawler.allow_http = true;
        config.crawler.allow_ports = AllowPorts::Word("any".into());
    });
    let setup = OwnershipSetup::with_registry(registry.await);
    let registry = &setup.registry;
    let (app, admin) = (&registry.app, &registry.admin);
    let processes = Processes::new(registry, database).await;
    let host = "plain.agents-test.com";
    let url = format!("http://{host}/a2a");
    let card = || card_at("Plain", &url);
    registry
        .register_card_url(&format!("http://{host}/.well-known/agent-card.json"))
        .await;
    registry
        .run_due_visits(|_| OriginResponse::Card(card()))
        .await;
    let agent = registry.agent(host).await.id;
    registry.approve_open_review(agent).await;
    let reason = "a test".to_owned();
    vouch_for_endpoints(app, admin, host, &NewEndpointVouch { reason })
        .await
        .unwrap();
    assert_eq!(processes.ask(&url).await, (true, Some(agent)));
    let owner = setup.create_publisher("acme").await;
    setup.register(&owner, host).await;
    registry.advance(Duration::minutes(2));
    registry
        .run_due_visits(|_| OriginResponse::Card(card()))
        .await;
    let unproved = domain_verify(app, &owner, host).await.unwrap().domain;
    let vouch = domain_show(app, admin, host).await.unwrap().endpoint_vouch;
    assert!(vouch.is_some());
    setup.place_standing_record(&unproved);
    let proved = domain_verify(app, &owner, host).await.unwrap().domain;
    assert_eq!(proved.owner.as_deref(), Some("acme"));
    let shown = domain_show(app, admin, host).await.unwrap();
    assert_eq!(shown.endpoint_vouch, None);
    assert_eq!(processes.ask(&url).await, (false, None));
}

/// A record that no longer covers the hosts below its name makes URLs there count no more.
async fn a_smaller_reach_of_a_proof_is_known_in_every_process(database: &str) {
    let setup = OwnershipSetup::with_registry(InProcessRegistry::new(database).await);
    let registry = &setup.registry;
    let processes = Processes::new(registry, database).await;
    let domain = "agents-test.com";
    let url = format!("https://below.{domain}/a2a");
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, domain).await;
    registry
        .crawl_domain(domain, OriginResponse::Card(card_at("Apex", &url)))
        .await;
    let agent = registry.agent(domain).await.id;
    registry.approve_open_review(agent).await;
    let challenge = &view.challenges[0];
    let (name, exact) = (
        challenge.name.as_ref().unwrap(),
        challenge.value.as_ref().unwrap(),
    );
    setup.place_record(name, &exact.replace("policy=exact", "policy=subdomains"));
    domain_verify(&registry.app, &owner, domain).await.unwrap();
    assert_eq!(processes.ask(&url).await, (true, Some(agent)));
    setup.place_record(name, exact);
    registry.advance(Duration::hours(2));
    let found = domain_verify(&registry.app, &owner, domain).await.unwrap();
    assert_eq!(found.domain.state.as_str(), "verified");
    assert_eq!(processes.ask(&url).await, (false, None));
}
