//! URNs under the company's authority, of agents whose host cannot be proved (docs/find/ard.md).

use std::collections::HashSet;

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::search_query::{LookupQuery, SearchQuery};
use a2a_registry_api::{Act, Erasure, NewGeneration, NewOwnerVouch, NewToken, Registration, Vouch};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::admission::authority_urns::assign_missing_authority_urns;
use a2a_registry_core::agents::lifecycle_actions::agent_retire;
use a2a_registry_core::config::{AllowPorts, Config};
use a2a_registry_core::domains::actions::{domain_show, vouch_for_domain};
use a2a_registry_core::domains::erasure::domain_erase;
use a2a_registry_core::domains::owner_vouch::vouch_for_domain_owner;
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::lookup_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Role;
use a2a_registry_store::agents::undisclosed_domains;
use a2a_registry_store::domains::domain_by_name;
use a2a_registry_store::entity::{agent, source};
use time::Duration;

use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::database::count_events;
use crate::support::in_process_registry::{
    CatalogExtent, InProcessRegistry, OriginResponse, card_bytes,
};

const AUTHORITY: &str = "company.agents-test.com";
/// A port that cannot be proved, the card there, and the URN of its agent.
const HOST: &str = "travel.agents-test.com:8443";
const CARD: &str = "https://travel.agents-test.com:8443/card.json";
const NAMED: &str = "urn:air:company.agents-test.com:hosts:travel.agents-test.com:8443:travel";

both_databases!(
    a_vouched_host_gets_names_of_the_company_for_good,
    nobody_is_named_by_being_unprovable,
    hosts_take_no_names_from_one_another,
    an_erased_agent_keeps_its_name_from_others,
    a_catalog_names_nothing_under_the_authority,
    an_authority_that_is_set_later_names_every_agent_once,
    a_later_proof_gives_a_name_of_its_own_and_the_old_one_answers,
    an_authority_is_proved_by_admins_alone,
    a_start_refuses_an_authority_that_another_account_has_proved,
    a_start_refuses_an_authority_below_a_proved_parent
);

fn open_network(config: &mut Config) {
    config.crawler.allow_ports = AllowPorts::Word("any".into());
    config.crawler.allow_http = true;
    config.crawler.allow_networks = vec!["10.0.0.0/8".parse().unwrap()];
}

fn with_authority(config: &mut Config) {
    open_network(config);
    config.ard.authority = AUTHORITY.into();
}

impl OwnershipSetup {
    async fn with_config(url: &str, configure: impl FnOnce(&mut Config)) -> Self {
        Self::with_registry(InProcessRegistry::with_config(url, configure).await)
    }

    /// Registers a card URL as that caller, and crawls it; the card has this name.
    async fn publish(&self, caller: &Caller, url: &str, name: &str) {
        let what = Registration {
            card_url: Some(url.into()),
            ..Registration::default()
        };
        register_domain(&self.registry.app, caller, &what)
            .await
            .unwrap();
        self.registry.advance(Duration::minutes(2));
        self.registry
            .run_due_visits(|_| OriginResponse::Card(card_bytes(name, "Books flights")))
            .await;
    }

    /// Registers a card URL as the admin, and crawls it.
    async fn publish_as_admin(&self, url: &str, name: &str) {
        self.publish(&self.registry.admin, url, name).await;
    }

    /// Vouches for a host as the admin, who approves its card if the rules do not.
    async fn vouch_for_host(&self, host: &str) {
        let vouch = Vouch {
            reason: "ours".into(),
            ..Vouch::default()
        };
        vouch_for_domain(&self.registry.app, &self.registry.admin, host, &vouch)
            .await
            .unwrap();
        for agent in self.registry.agents().await {
            let is_here = agent.domain == host && agent.retired_at.is_none();
            if is_here && self.registry.find_open_review(agent.id).await.is_some() {
                self.registry.approve_open_review(agent.id).await;
            }
        }
    }

    /// The URN of the only agent of a domain.
    async fn urn(&self, domain: &str) -> Option<String> {
        current_urn(&self.registry.agent(domain).await)
    }

    /// The account of an admin, beside the one that every registry has.
    async fn create_admin(&self, name: &str) -> Caller {
        let new = NewToken {
            account: name.into(),
            role: Some(Role::Admin),
            name: "a test".into(),
            ..NewToken::default()
        };
        let (app, admin) = (&self.registry.app, &self.registry.admin);
        let made = token_create(app, admin, &new).await.unwrap();
        authenticate_token(app, &made.secret).await.unwrap()
    }

    async fn admin_view_state(&self, domain: &str) -> String {
        let view = domain_show(&self.registry.app, &self.registry.admin, domain).await;
        view.unwrap().state.to_string()
    }
}

fn current_urn(agent: &agent::Model) -> Option<String> {
    agent.current_urn().map(str::to_owned)
}

/// The URNs of all agents that have one, retired ones included, each once.
async fn all_urns(registry: &InProcessRegistry) -> Vec<String> {
    let agents = registry.agents().await;
    let mut urns: Vec<String> = agents.iter().filter_map(current_urn).collect();
    let count = urns.len();
    urns.sort_unstable();
    urns.dedup();
    assert_eq!(urns.len(), count, "a name was given twice");
    urns
}

/// The name stays when the card, the vouch or the authority changes, and leads to the agent.
async fn a_vouched_host_gets_names_of_the_company_for_good(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    setup.publish_as_admin(CARD, "Travel").await;
    assert_eq!(setup.urn(HOST).await, None, "nobody has vouched");
    setup.vouch_for_host(HOST).await;
    let registry = &setup.registry;
    let named = registry.agent(HOST).await;
    assert_eq!(current_urn(&named).as_deref(), Some(NAMED));
    assert_eq!(named.urn, None, "the domain proves nothing");
    registry.assert_index_matches_database().await;
    let shown = agent_show_checked(&registry.app, &Caller::default(), NAMED)
        .await
        .unwrap();
    assert_eq!(
        (shown.hit.summary.id, shown.hit.summary.urn.as_deref()),
        (named.id, Some(NAMED))
    );
    assert_eq!(shown.former_urn, None);
    assert_eq!(shown.hit.summary.trust.level.unwrap().as_str(), "L0");

    let renamed = OriginResponse::Card(card_bytes("Voyages", "Books flights"));
    registry.crawl_domain(HOST, renamed).await;
    assert_eq!(setup.urn(HOST).await.as_deref(), Some(NAMED));
    let why = NewGeneration {
        reason: "sold".into(),
    };
    domain_new_generation(&registry.app, &registry.admin, HOST, &why)
        .await
        .unwrap();
    assert_eq!(setup.urn(HOST).await.as_deref(), Some(NAMED));
    setup.vouch_for_host(HOST).await;
    assert_eq!(setup.urn(HOST).await.as_deref(), Some(NAMED));

    // Another authority names later agents. Names under the first stay, and no peer brings back what they name.
    let other = "other.agents-test.com";
    let registry = setup
        .registry
        .restart(|config| config.ard.authority = other.into())
        .await;
    let setup = OwnershipSetup::with_registry(registry);
    assign_missing_authority_urns(&setup.registry.app)
        .await
        .unwrap();
    assert_eq!(setup.urn(HOST).await.as_deref(), Some(NAMED));
    setup
        .publish_as_admin("http://10.0.0.7/card.json", "Rail")
        .await;
    setup.vouch_for_host("10.0.0.7").await;
    let under_other = format!("urn:air:{other}:hosts:10.0.0.7:rail");
    assert_eq!(setup.urn("10.0.0.7").await, Some(under_other));
    let asked: HashSet<String> = [AUTHORITY, other, "third.agents-test.com"]
        .map(str::to_owned)
        .into();
    let withheld = undisclosed_domains(&setup.registry.store, &asked)
        .await
        .unwrap();
    let expected: HashSet<String> = [AUTHORITY, other].map(str::to_owned).into();
    assert_eq!(withheld, expected);
}

/// Neither a host without an admin's vouch, nor an owner's vouch, nor what others nominate of a vouched host, nor a
/// host that can be proved.
async fn nobody_is_named_by_being_unprovable(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    let acme = setup.create_publisher("acme").await;
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    setup.publish(&acme, CARD, "Travel").await;
    let owner = NewOwnerVouch {
        account: "acme".into(),
        reason: "ticket 7".into(),
        expires_in_days: None,
    };
    vouch_for_domain_owner(app, admin, HOST, &owner)
        .await
        .unwrap();
    assert_eq!(setup.urn(HOST).await, None, "an owner is no publisher");

    let stranger = setup.create_publisher("stranger").await;
    let nominated = "http://10.0.0.5:8080/card.json";
    setup.publish(&stranger, nominated, "Rail").await;
    setup.vouch_for_host("10.0.0.5:8080").await;
    let agent = setup.registry.agent("10.0.0.5:8080").await;
    assert_eq!(current_urn(&agent), None, "a nomination");
    setup
        .registry
        .crawl_domain(
            "10.0.0.5:8080",
            OriginResponse::Card(card_bytes("Rail", "Books trains")),
        )
        .await;
    assign_missing_authority_urns(app).await.unwrap();
    assert_eq!(setup.urn("10.0.0.5:8080").await, None, "still a nomination");
    let for_account = Vouch {
        reason: "ours".into(),
        account: Some("stranger".into()),
    };
    vouch_for_domain(app, admin, "10.0.0.5:8080", &for_account)
        .await
        .unwrap();
    let named = format!("urn:air:{AUTHORITY}:hosts:10.0.0.5:8080:rail");
    assert_eq!(setup.urn("10.0.0.5:8080").await, Some(named));

    let provable = "https://plain.agents-test.com/card.json";
    setup.publish_as_admin(provable, "Ships").await;
    setup.vouch_for_host("plain.agents-test.com").await;
    assert_eq!(setup.urn("plain.agents-test.com").await, None);
    // The authority itself is to be proved.
    let own = format!("http://{AUTHORITY}/card.json");
    setup.publish_as_admin(&own, "Bikes").await;
    setup.vouch_for_host(AUTHORITY).await;
    assert_eq!(setup.urn(AUTHORITY).await, None);
}

/// Agents of one name on several hosts have names without numbers, so that none shows that another exists; on one host
/// they are numbered, and the name of an agent that has ended is given to no other.
async fn hosts_take_no_names_from_one_another(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    let hosts = ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.1"];
    for host in hosts {
        setup
            .publish_as_admin(&format!("http://{host}/card.json"), "Travel")
            .await;
        setup.vouch_for_host(host).await;
        let named = format!("urn:air:{AUTHORITY}:hosts:{host}:travel");
        assert_eq!(setup.urn(host).await, Some(named));
    }
    let host = hosts[0];
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    let second = format!("http://{host}/second.json");
    setup.publish_as_admin(&second, "TRAVEL!").await;
    let first = |agent: &&agent::Model| agent.domain == host && agent.slot != second;
    let agents = setup.registry.agents().await;
    let ended = agents.iter().find(first).unwrap();
    let why = Act {
        reason: "replaced".into(),
        hold: None,
    };
    agent_retire(app, admin, &ended.id.to_string(), &why)
        .await
        .unwrap();
    let third = format!("http://{host}/third.json");
    setup.publish_as_admin(&third, "Travel").await;
    domain_delete(app, admin, host).await.unwrap();
    setup.registry.advance(Duration::minutes(2));
    setup.publish_as_admin(&second, "Travel").await;
    assert_eq!(setup.urn(host).await, None, "nobody vouches any more");
    setup.vouch_for_host(host).await;
    let named = |suffix: &str| format!("urn:air:{AUTHORITY}:hosts:{host}:travel{suffix}");
    assert_eq!(setup.urn(host).await, Some(named("-4")));
    let urns = all_urns(&setup.registry).await;
    for suffix in ["", "-2", "-3", "-4"] {
        assert!(urns.contains(&named(suffix)), "{suffix}: {urns:?}");
    }
    setup.registry.assert_index_matches_database().await;
}

/// An erasure deletes what the cards said, and gives no name away.
async fn an_erased_agent_keeps_its_name_from_others(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    setup.publish_as_admin(CARD, "Travel").await;
    setup.vouch_for_host(HOST).await;
    assert_eq!(setup.urn(HOST).await.as_deref(), Some(NAMED));
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    let request = Erasure {
        reason: "a request".into(),
    };
    domain_erase(app, admin, HOST, &request).await.unwrap();
    setup.registry.advance(Duration::minutes(2));
    setup.publish_as_admin(CARD, "Travel").await;
    setup.vouch_for_host(HOST).await;
    let second = format!("{NAMED}-2");
    assert_eq!(all_urns(&setup.registry).await, [NAMED, second.as_str()]);
    assert_eq!(setup.urn(HOST).await, Some(second));
    setup.registry.assert_index_matches_database().await;
}

/// The catalog of a vouched host takes no name of the company's choosing, least of all one that another agent has.
async fn a_catalog_names_nothing_under_the_authority(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    setup
        .publish_as_admin("http://10.0.0.1:8080/card.json", "Payroll")
        .await;
    setup.vouch_for_host("10.0.0.1:8080").await;
    let victim = setup.urn("10.0.0.1:8080").await.unwrap();
    let registry = &setup.registry;
    registry.register_domain(HOST).await;
    let entries = [
        (victim.clone(), format!("https://{HOST}/own.json")),
        (
            format!("urn:air:{AUTHORITY}:payroll"),
            format!("https://{HOST}/other.json"),
        ),
    ];
    let answer = |source: &source::Model| match source.kind.as_str() {
        "ard" => OriginResponse::Catalog(entries.to_vec(), CatalogExtent::Complete),
        "ai_catalog" | "well_known" => OriginResponse::Failure(NotFound),
        _ => OriginResponse::Card(card_bytes(&format!("At {}", source.url), "Books flights")),
    };
    registry.crawl_domain_with(HOST, answer).await;
    registry.crawl_domain_with(HOST, answer).await;
    setup.vouch_for_host(HOST).await;
    let urns = all_urns(registry).await;
    assert_eq!(urns.len(), 3);
    let prefix = format!("urn:air:{AUTHORITY}:hosts:{HOST}:at-https-");
    let others = urns.iter().filter(|urn| **urn != victim);
    for urn in others {
        assert!(urn.starts_with(&prefix), "{urn}");
    }
}

/// The agents of hosts that were vouched for before are named by the job, once, however many processes run it.
async fn an_authority_that_is_set_later_names_every_agent_once(url: &str) {
    let setup = OwnershipSetup::with_config(url, open_network).await;
    setup.publish_as_admin(CARD, "Travel").await;
    setup.vouch_for_host(HOST).await;
    setup
        .publish_as_admin("http://10.0.0.5/card.json", "Rail")
        .await;
    assign_missing_authority_urns(&setup.registry.app)
        .await
        .unwrap();
    assert_eq!(setup.urn(HOST).await, None, "no authority is set");

    let registry = setup.registry.restart(with_authority).await;
    let beside = match url.starts_with("postgres") {
        true => Some(registry.second_process().await),
        false => None,
    };
    let app = &registry.app;
    let other = beside.as_ref().map_or(app, |beside| &beside.app);
    let (one, two) = tokio::join!(
        assign_missing_authority_urns(app),
        assign_missing_authority_urns(other)
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(all_urns(&registry).await, [NAMED]);
    let events = count_events(&registry.store).await;
    assign_missing_authority_urns(app).await.unwrap();
    assert_eq!(count_events(&registry.store).await, events);
    registry.assert_index_matches_database().await;
    if let Some(beside) = beside {
        beside.catch_up().await;
        let shown = agent_show_checked(&beside.app, &Caller::default(), NAMED).await;
        assert_eq!(shown.unwrap().hit.summary.urn.as_deref(), Some(NAMED));
    }
}

/// A host that was registered over plain http is proved: its agent gets a URN of the domain, is found by both, and is
/// listed once.
async fn a_later_proof_gives_a_name_of_its_own_and_the_old_one_answers(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    let plain = format!("http://{DOMAIN}/.well-known/agent-card.json");
    setup.publish_as_admin(&plain, "Travel").await;
    setup.vouch_for_host(DOMAIN).await;
    let registry = &setup.registry;
    let (app, admin) = (&registry.app, &registry.admin);
    let agent = registry.agent(DOMAIN).await;
    let old = format!("urn:air:{AUTHORITY}:hosts:{DOMAIN}:travel");
    assert_eq!(current_urn(&agent).as_ref(), Some(&old));
    let refused = domain_verify(app, admin, DOMAIN).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict, "nothing is on port 443");

    let acme = setup.create_publisher("acme").await;
    setup.register(&acme, DOMAIN).await;
    registry.advance(Duration::minutes(2));
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    assert_eq!(registry.agent(DOMAIN).await.id, agent.id, "one agent");
    let found = domain_verify(app, &acme, DOMAIN).await.unwrap();
    assert_eq!(found.domain.owner, None);
    assert_eq!(setup.urn(DOMAIN).await.as_ref(), Some(&old));
    setup.place_standing_record(&found.domain);
    let found = domain_verify(app, &acme, DOMAIN).await.unwrap();
    assert_eq!(found.domain.owner.as_deref(), Some("acme"));
    let row = domain_by_name(&registry.store, DOMAIN).await.unwrap();
    assert_eq!(row.unwrap().scheme, "https");

    let new = format!("urn:air:{DOMAIN}:agents:travel");
    let named = registry.agent(DOMAIN).await;
    assert_eq!(named.id, agent.id);
    assert_eq!(
        (named.urn.as_ref(), named.authority_urn.as_ref()),
        (Some(&new), Some(&old))
    );
    registry.assert_index_matches_database().await;
    for urn in [&old, &new] {
        let shown = agent_show_checked(app, &Caller::default(), urn)
            .await
            .unwrap();
        assert_eq!(shown.hit.summary.id, agent.id);
        assert_eq!(shown.hit.summary.urn.as_ref(), Some(&new));
        assert_eq!(shown.former_urn.as_ref(), Some(&old));
        let query = LookupQuery {
            urn: Some(urn.clone()),
            ..LookupQuery::default()
        };
        let found = lookup_agents(app, &Caller::default(), &query)
            .await
            .unwrap();
        assert_eq!(found.agents.len(), 1, "{urn}");
    }
    let listed = registry
        .search_all(&Caller::default(), &SearchQuery::default())
        .await;
    assert_eq!(listed.agents.len(), 1);
    // The names stay, also when the proof ends.
    setup.remove(super::STANDING);
    for _ in 0..5 {
        setup.next_day().await;
    }
    let lapsed = registry.agent(DOMAIN).await;
    assert_eq!((lapsed.urn, lapsed.authority_urn), (Some(new), Some(old)));
}

/// No other account gets names under the authority: neither by its own proof, asked for or found by the daily check,
/// nor by one of a parent. An admin's account may prove it.
async fn an_authority_is_proved_by_admins_alone(url: &str) {
    let setup = OwnershipSetup::with_config(url, with_authority).await;
    let registry = &setup.registry;
    let app = &registry.app;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, AUTHORITY).await;
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    setup.place_standing_record(&view);
    let refused = domain_verify(app, &acme, AUTHORITY).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.public.contains("[ard] authority"), "{refused:?}");
    registry.advance(Duration::hours(27));
    setup.run_due_checks().await;
    assert_eq!(setup.admin_view_state(AUTHORITY).await, "unverified");

    let parent = "agents-test.com";
    let view = setup.register(&acme, parent).await;
    let challenge = &view.challenges[0];
    let record = challenge.value.as_ref().unwrap();
    let whole = record.replace("policy=exact", "policy=subdomains");
    setup.place_record(challenge.name.as_ref().unwrap(), &whole);
    let found = domain_verify(app, &acme, parent).await.unwrap();
    assert_eq!(found.domain.state.as_str(), "verified");
    registry.advance(Duration::hours(27));
    setup.run_due_checks().await;
    assert_eq!(setup.admin_view_state(AUTHORITY).await, "unverified");
    assert_eq!(setup.urn(AUTHORITY).await, None);

    let platform = setup.create_admin("platform").await;
    let view = setup.register(&platform, AUTHORITY).await;
    setup.place_standing_record(&view);
    registry.advance(Duration::hours(2));
    let found = domain_verify(app, &platform, AUTHORITY).await.unwrap();
    assert_eq!(found.domain.owner.as_deref(), Some("platform"));
    let own = format!("urn:air:{AUTHORITY}:agents:travel");
    assert_eq!(setup.urn(AUTHORITY).await, Some(own));
    registry.assert_index_matches_database().await;
}

async fn a_start_refuses_an_authority_that_another_account_has_proved(url: &str) {
    let setup = OwnershipSetup::with_config(url, open_network).await;
    setup.prove_with_agent().await;
    let refusal = setup
        .registry
        .start_refusal(|config| config.ard.authority = DOMAIN.into())
        .await;
    assert!(
        refusal.contains("acme") && refusal.contains(&format!("ard.authority = \"{DOMAIN}\"")),
        "{refusal}"
    );
}

async fn a_start_refuses_an_authority_below_a_proved_parent(url: &str) {
    let setup = OwnershipSetup::with_config(url, open_network).await;
    let acme = setup.create_publisher("acme").await;
    let view = setup.register(&acme, DOMAIN).await;
    let challenge = &view.challenges[0];
    let record = challenge.value.as_ref().unwrap();
    let whole = record.replace("policy=exact", "policy=subdomains");
    setup.place_record(challenge.name.as_ref().unwrap(), &whole);
    domain_verify(&setup.registry.app, &acme, DOMAIN)
        .await
        .unwrap();
    let below = format!("agents.{DOMAIN}");
    let refusal = setup
        .registry
        .start_refusal(|config| config.ard.authority = below)
        .await;
    assert!(refusal.contains("acme"), "{refusal}");
}
