//! Data of other accounts: a caller cannot see or remove it (docs/publish/private-cards.md#who-sees-what-of-a-domain).

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Act, AgentPatch, DomainPatch, DomainView, NewGeneration, Registration};
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::agents::views::agent_versions;
use a2a_registry_core::domains::actions::{domain_list, domain_show};
use a2a_registry_core::domains::owner_actions::domain_patch;
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::withdrawal::{domain_delete, source_withdraw};
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::{Lifecycle, Visibility};
use a2a_registry_store::domains;
use time::Duration;

use super::recorded_sources::assert_recorded;
use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{CatalogExtent, OriginResponse, agent_patch, card_bytes};

pub(super) fn url(path: &str) -> String {
    format!("https://{DOMAIN}{path}")
}

pub(super) fn card_registration(path: &str) -> Registration {
    Registration {
        card_url: Some(url(path)),
        ..Registration::default()
    }
}

fn urls(view: &DomainView) -> Vec<&str> {
    view.sources.iter().map(|one| one.url.as_str()).collect()
}

impl OwnershipSetup {
    /// Two accounts with a card each on one unproved domain.
    pub(super) async fn register_two_accounts(&self) -> [Caller; 2] {
        let two = [
            self.create_publisher("first").await,
            self.create_publisher("second").await,
        ];
        for (caller, path) in two.iter().zip(["/first.json", "/second.json"]) {
            register_domain(&self.registry.app, caller, &card_registration(path))
                .await
                .unwrap();
        }
        self.registry
            .run_due_visits(|source| OriginResponse::Card(card_bytes(&source.url, "Is somebody's")))
            .await;
        two
    }

    pub(super) async fn source_of(&self, path: &str) -> (String, uuid::Uuid) {
        let view = self.domain_view(&self.registry.admin).await;
        let source = view.sources.into_iter().find(|one| one.url == url(path));
        let source = source.unwrap();
        (source.id, source.agent.unwrap())
    }

    pub(super) async fn is_invisible(&self, caller: &Caller, agent: uuid::Uuid) -> bool {
        let shown = agent_show_checked(&self.registry.app, caller, &agent.to_string()).await;
        shown.is_err_and(|error| error.kind == ErrorKind::NotFound)
    }
}

both_databases!(
    each_account_sees_its_own_sources,
    a_hidden_domain_looks_new_to_its_registrants,
    a_hidden_source_is_recorded_for_its_registrants,
    reasons_of_holds_are_visible_to_the_owner_only,
    the_first_registrant_is_no_owner,
    a_waiting_change_does_not_show,
    an_account_withdraws_only_its_own_registration,
    the_first_registrant_deletes_only_its_own,
    a_waiting_agent_shows_the_real_reason,
    a_name_that_cannot_be_proved_gets_the_reason
);

/// On an unproved domain the first registrant sees its own sources, agents and reasons; the next one sees that its source is
/// recorded, until its agent is listed; outsiders see the listed agents.
async fn each_account_sees_its_own_sources(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [first, second] = setup.register_two_accounts().await;
    let registry = &setup.registry;
    let (_, of_first) = setup.source_of("/first.json").await;
    let (_, of_second) = setup.source_of("/second.json").await;
    let view = setup.domain_view(&first).await;
    assert_eq!(urls(&view), [url("/first.json")]);
    assert!(view.sources[0].own && view.sources[0].last_attempt.is_some());
    assert_eq!(
        (view.agents.as_slice(), view.sources[0].agent),
        ([of_first].as_slice(), Some(of_first))
    );
    assert!(!format!("{view:?}").contains("/second.json"), "{view:#?}");
    assert!(!setup.is_invisible(&first, of_first).await);
    let view = setup.domain_view(&second).await;
    assert_eq!(urls(&view), [url("/second.json")]);
    assert_recorded(&view.sources[0]);
    assert_eq!((view.agents.len(), view.not_listed.len()), (0, 0));
    assert!(!format!("{view:?}").contains("/first.json"), "{view:#?}");
    for (caller, agent, name) in [(&first, of_first, "first"), (&second, of_second, "second")] {
        let other = if name == "first" { of_second } else { of_first };
        assert!(setup.is_invisible(caller, other).await, "{name}");
        let review = registry.find_open_review(agent).await.unwrap();
        assert_eq!(review.submitter.as_deref(), Some(name));
        let listed = domain_list(&registry.app, caller, &Default::default())
            .await
            .unwrap();
        assert_eq!(listed.domains.len(), 1, "{name}");
    }
    assert!(setup.is_invisible(&second, of_second).await);
    let anyone = Caller::default();
    let missing = domain_show(&registry.app, &anyone, DOMAIN)
        .await
        .unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    registry.approve_open_review(of_first).await;
    let view = setup.domain_view(&anyone).await;
    assert_eq!(
        (urls(&view), view.agents.as_slice()),
        (vec![url("/first.json").as_str()], [of_first].as_slice())
    );
    assert!(
        !view.sources[0].own
            && view.sources[0].last_attempt.is_none()
            && view.not_listed.is_empty()
    );
    assert!(!format!("{view:?}").contains("/second.json"), "{view:#?}");
    registry.approve_open_review(of_second).await;
    let view = setup.domain_view(&second).await;
    let own = view.sources.iter().find(|one| one.own).unwrap();
    assert_eq!((own.state.as_str(), own.agent), ("fresh", Some(of_second)));
    assert!(own.last_attempt.is_some());
    registry.assert_index_matches_database().await;
}

/// To an account that registers an existing source of a hidden agent the domain looks like an unknown one.
async fn a_hidden_domain_looks_new_to_its_registrants(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let stranger = setup.create_publisher("stranger").await;
    let registry = &setup.registry;
    let hide = AgentPatch {
        visibility: Some(Visibility::Restricted),
        labels: None,
        ..AgentPatch::default()
    };
    agent_patch(&registry.app, &registry.admin, &agent.to_string(), &hide)
        .await
        .unwrap();
    registry.advance(Duration::hours(3));
    let began = registry.now();
    for view in [
        setup.register(&stranger, DOMAIN).await,
        setup.domain_view(&stranger).await,
    ] {
        assert_eq!(
            (view.state.as_str(), view.generation, view.proofs.len()),
            ("unverified", 1, 0)
        );
        assert_eq!(
            (view.next_check, view.agents.len(), view.not_listed.len()),
            (None, 0, 0),
            "{view:#?}"
        );
        assert_eq!(time::OffsetDateTime::from(view.created_at), began);
        assert_eq!(
            (&view.owner, &view.contact, view.checks.len()),
            (&None, &None, 0)
        );
        let known = &view.sources[0];
        assert_eq!(
            (known.state.as_str(), known.agent, known.days.len()),
            ("recorded", None, 0)
        );
        assert!(
            known.last_attempt.is_none() && known.attempts.is_empty() && known.own,
            "{known:#?}"
        );
    }
    assert!(setup.is_invisible(&stranger, agent).await && !setup.is_invisible(&owner, agent).await);
    registry.catch_up().await;
    let found = registry.search_all(&stranger, &Default::default()).await;
    assert_eq!(found.agents.len(), 0);
}

/// The source of a hidden agent, be it registered by the owner or named by a catalog, looks like an unknown source.
async fn a_hidden_source_is_recorded_for_its_registrants(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (owner, first) = setup.prove_with_agent().await;
    let registry = &setup.registry;
    register_domain(&registry.app, &owner, &card_registration("/secret.json"))
        .await
        .unwrap();
    let named = vec![("named".to_owned(), url("/named.json"))];
    for _ in 0..2 {
        registry
            .crawl_domain_with(DOMAIN, |source| match source.kind.as_str() {
                "ard" => OriginResponse::Catalog(named.clone(), CatalogExtent::Complete),
                "ai_catalog" => OriginResponse::NotModified,
                _ => OriginResponse::Card(card_bytes(&source.url, "Is the owner's")),
            })
            .await;
    }
    let all = registry.agents().await;
    assert_eq!(all.len(), 3);
    let hide = AgentPatch {
        visibility: Some(Visibility::Restricted),
        labels: None,
        ..AgentPatch::default()
    };
    for agent in &all {
        agent_patch(&registry.app, &registry.admin, &agent.id.to_string(), &hide)
            .await
            .unwrap();
    }
    assert!(all.iter().any(|agent| agent.id == first));
    let stranger = setup.create_publisher("stranger").await;
    let (mut answers, mut ids) = (Vec::new(), Vec::new());
    for path in ["/secret.json", "/named.json", "/unknown.json"] {
        let view = register_domain(&registry.app, &stranger, &card_registration(path))
            .await
            .unwrap();
        let mut source = view
            .sources
            .into_iter()
            .find(|one| one.url == url(path))
            .unwrap();
        assert_eq!(
            (source.coverage.known_value(), source.state.as_str()),
            (Some(Coverage::Nomination), "recorded"),
            "{path}"
        );
        ids.push(std::mem::take(&mut source.id));
        source.url.clear();
        answers.push(source);
    }
    assert!(
        answers.iter().all(|source| *source == answers[0]),
        "{answers:#?}"
    );
    // Nor do their identifiers show which existed before.
    let all = domains::live_sources_by_domain(&registry.store, &[all[0].domain_id])
        .await
        .unwrap();
    assert!(
        all.iter()
            .all(|source| !ids.contains(&source.id.to_string())),
        "{ids:?}"
    );
    let view = setup.domain_view(&owner).await;
    let own = view
        .sources
        .iter()
        .find(|one| one.url == url("/secret.json"))
        .unwrap();
    assert_eq!(own.coverage, Coverage::Covered);
}

/// Why an agent is on hold is visible to its owner and the curators only, not to accounts that register its domain,
/// before the owner or after it.
async fn reasons_of_holds_are_visible_to_the_owner_only(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let early = setup.create_publisher("early").await;
    setup.register(&early, DOMAIN).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let late = setup.create_publisher("late").await;
    setup.register(&late, DOMAIN).await;
    let app = &setup.registry.app;
    for caller in [&early, &late] {
        assert!(
            !setup.is_invisible(caller, agent).await,
            "the agent is listed"
        );
    }
    let why = Act {
        reason: "sells what it does not have".into(),
        hold: None,
    };
    agent_suspend(app, &setup.registry.admin, &agent.to_string(), &why)
        .await
        .unwrap();
    for caller in [&early, &late] {
        let view = setup.domain_view(caller).await;
        let text = format!("{view:?}");
        assert!(
            !text.contains(&why.reason) && !text.contains(&agent.to_string()),
            "{view:#?}"
        );
        assert!(setup.is_invisible(caller, agent).await);
    }
    for caller in [&owner, &setup.registry.admin] {
        let view = setup.domain_view(caller).await;
        assert!(
            view.not_listed
                .iter()
                .any(|reason| reason.contains(&why.reason)),
            "{view:#?}"
        );
        assert!(!setup.is_invisible(caller, agent).await);
    }
    setup.registry.catch_up().await;
    let everything = SearchQuery {
        lifecycle: vec!["suspended".into()],
        ..SearchQuery::default()
    };
    for (caller, count) in [(&early, 0), (&late, 0), (&owner, 1)] {
        assert_eq!(
            setup
                .registry
                .search_all(caller, &everything)
                .await
                .agents
                .len(),
            count
        );
    }
}

/// The first registrant of a domain sees it like an outsider once another account tries to prove it, has proved it, or
/// had.
async fn the_first_registrant_is_no_owner(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let first = setup.create_publisher("first").await;
    setup.register(&first, DOMAIN).await;
    setup
        .registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Travel", "Books flights")))
        .await;
    let agent = setup.registry.agent(DOMAIN).await.id;
    let owner = setup.create_publisher("owner").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.verify(&owner).await.unwrap();
    assert!(!setup.domain_view(&owner).await.checks.is_empty());
    assert_eq!(setup.domain_view(&first).await.checks, []);
    setup.verify(&first).await.unwrap();
    let own: Vec<_> = setup
        .domain_view(&first)
        .await
        .checks
        .into_iter()
        .map(|check| check.wanted)
        .collect();
    assert!(!own.is_empty() && own.iter().all(Option::is_some));
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let app = &setup.registry.app;
    let contact = DomainPatch {
        contact: Some("mailto:ops@travel.example".into()),
        opt_out: None,
        ..DomainPatch::default()
    };
    domain_patch(app, &owner, DOMAIN, &contact).await.unwrap();
    setup
        .registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Travel", "Books trains too")),
        )
        .await;
    assert!(
        setup.registry.find_open_review(agent).await.is_some(),
        "the new version has an open review"
    );
    let no_more = async |state: &str| {
        let view = setup.domain_view(&first).await;
        assert_eq!(view.state.as_str(), state);
        assert_eq!(
            (view.contact, view.known_by, view.owner, view.keys.len()),
            (None, None, None, 0),
            "{state}"
        );
        let others = view
            .checks
            .iter()
            .filter(|check| !own.contains(&check.wanted));
        assert_eq!(others.count(), 0, "{state}");
        let shown = agent_show_checked(app, &first, &agent.to_string()).await;
        assert!(shown.is_ok_and(|shown| shown.holds.is_empty()), "{state}");
        let kept = agent_versions(app, &first, &agent.to_string(), &Default::default())
            .await
            .unwrap();
        assert_eq!(
            kept.versions.len(),
            1,
            "{state}: only the approved version is shown"
        );
    };
    no_more("verified").await;
    setup.remove(STANDING);
    for _ in 0..5 {
        setup.next_day().await;
    }
    no_more("lapsed").await;
    assert_eq!(
        setup.domain_view(&setup.registry.admin).await.contact,
        contact.contact
    );
    let why = NewGeneration {
        reason: "sold".into(),
    };
    domain_new_generation(app, &setup.registry.admin, DOMAIN, &why)
        .await
        .unwrap();
    let kept = agent_versions(app, &first, &agent.to_string(), &Default::default())
        .await
        .unwrap();
    assert_eq!(
        kept.versions.len(),
        1,
        "a version that waited under the former owner is hidden"
    );
}

/// A change that waits for a decision does not show in the time of the last change of a listed agent.
async fn a_waiting_change_does_not_show(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (_, agent) = setup.prove_with_agent().await;
    let registry = &setup.registry;
    let changed = async || {
        let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.to_string())
            .await
            .unwrap();
        shown.hit.summary.liveness.last_changed
    };
    let before = changed().await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::Card(card_bytes("Travel", "Waits for a curator")),
        )
        .await;
    assert!(registry.find_open_review(agent).await.is_some());
    assert_eq!(changed().await, before);
    registry.approve_open_review(agent).await;
    assert!(changed().await > before);
    registry.assert_index_matches_database().await;
}

/// Each account withdraws its own registration: a source ends with its last registration, and with it the agents that
/// have no other source.
async fn an_account_withdraws_only_its_own_registration(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [first, second] = setup.register_two_accounts().await;
    let app = &setup.registry.app;
    let (id, agent) = setup.source_of("/first.json").await;
    for (caller, id) in [(&second, id.as_str()), (&first, "x"), (&first, "999999")] {
        let missing = source_withdraw(app, caller, DOMAIN, id).await.unwrap_err();
        assert_eq!(missing.kind, ErrorKind::NotFound, "{id}");
    }
    register_domain(app, &second, &card_registration("/first.json"))
        .await
        .unwrap();
    setup.registry.catch_up().await;
    source_withdraw(app, &first, DOMAIN, &id).await.unwrap();
    let view = setup.domain_view(&second).await;
    assert!(
        urls(&view).contains(&url("/first.json").as_str()),
        "the other account's registration is kept"
    );
    setup.registry.approve_open_review(agent).await;
    let kept = source_withdraw(app, &second, DOMAIN, &id)
        .await
        .unwrap_err();
    assert_eq!(kept.kind, ErrorKind::Conflict);
    assert!(kept.public.contains(&agent.to_string()), "{kept:?}");
    let (id, agent) = setup.source_of("/second.json").await;
    source_withdraw(app, &second, DOMAIN, &id).await.unwrap();
    let row = setup
        .registry
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == agent)
        .unwrap();
    assert_eq!(row.lifecycle, Lifecycle::Retired);
    assert_eq!(setup.registry.find_open_review(agent).await, None);
    setup.registry.assert_index_matches_database().await;
}

/// The first registrant of a domain cannot delete other accounts' sources, least of all their approved agents.
async fn the_first_registrant_deletes_only_its_own(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let [first, second] = setup.register_two_accounts().await;
    let app = &setup.registry.app;
    let (_, of_first) = setup.source_of("/first.json").await;
    let (_, of_second) = setup.source_of("/second.json").await;
    setup.registry.approve_open_review(of_second).await;
    let refused = domain_delete(app, &first, DOMAIN).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    domain_delete(app, &second, DOMAIN).await.unwrap();
    let lifecycle = async |id| {
        let all = setup.registry.agents().await;
        all.into_iter().find(|row| row.id == id).unwrap().lifecycle
    };
    assert_eq!(
        lifecycle(of_second).await,
        Lifecycle::Retired,
        "the account's own agent"
    );
    assert_eq!(
        lifecycle(of_first).await,
        Lifecycle::Pending,
        "another account's agent"
    );
    domain_delete(app, &first, DOMAIN).await.unwrap();
    assert_eq!(lifecycle(of_first).await, Lifecycle::Retired);
    let missing = domain_show(app, &setup.registry.admin, DOMAIN)
        .await
        .unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    setup.registry.assert_index_matches_database().await;
}

/// The shown reason for waiting is what kept the rules from deciding, not a proof that exists.
async fn a_waiting_agent_shows_the_real_reason(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let owner = setup.create_publisher("acme").await;
    let stranger = setup.create_publisher("stranger").await;
    let view = setup.register(&owner, DOMAIN).await;
    let app = &setup.registry.app;
    register_domain(app, &stranger, &card_registration("/nominated.json"))
        .await
        .unwrap();
    setup
        .registry
        .run_due_visits(|source| {
            OriginResponse::Card(match source.kind.as_str() {
                "url" => card_bytes("Nominated", "By somebody"),
                _ => br#"{"name": "Broken", "skills": []}"#.to_vec(),
            })
        })
        .await;
    let reason_of = async |name: &str| {
        let view = setup.domain_view(&owner).await;
        let reason = view
            .not_listed
            .into_iter()
            .find(|reason| reason.contains(name));
        reason.unwrap()
    };
    let before = reason_of("Broken").await;
    assert!(
        before.contains("no account has proved") && before.contains("severity error"),
        "{before}"
    );
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    let broken = reason_of("Broken").await;
    let nominated = reason_of("Nominated").await;
    assert!(
        broken.contains("severity error") && !broken.contains("proof"),
        "{broken}"
    );
    assert!(
        nominated.contains("does not cover it") && !nominated.contains("severity"),
        "{nominated}"
    );
}

/// Registering a name that cannot be proved is answered with the reason and an alternative.
async fn a_name_that_cannot_be_proved_gets_the_reason(url_of_database: &str) {
    let registry = crate::support::in_process_registry::InProcessRegistry::with_config(
        url_of_database,
        |config| {
            config.crawler.allow_ports = a2a_registry_core::config::AllowPorts::Word("any".into());
        },
    )
    .await;
    let odd = registry
        .register_card_url("https://travel.agents-test.com:8443/card.json")
        .await;
    let why = odd.no_challenge.unwrap();
    assert!(why.contains("443") && why.contains("vouch"), "{why}");
    assert_eq!(registry.register_domain(DOMAIN).await.no_challenge, None);
}
