//! The agent of each source (docs/develop/model.md#slots), and limits of a domain.

use a2a_registry_api::search_query::LookupQuery;
use a2a_registry_api::{Act, Registration};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::lifecycle_actions::agent_retire;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::lookup_agents;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const DOMAIN: &str = "many.agents-test.com";

/// A card URL of the domain, as it is registered.
fn card_registration(path: &str) -> Registration {
    Registration {
        card_url: Some(format!("https://{DOMAIN}{path}")),
        ..Registration::default()
    }
}

async fn publisher(
    registry: &InProcessRegistry,
    name: &str,
) -> a2a_registry_core::visibility::caller::Caller {
    let new = a2a_registry_api::NewToken {
        account: name.into(),
        role: Some(a2a_registry_domain::role::Role::Publisher),
        name: "a test".into(),
        ..a2a_registry_api::NewToken::default()
    };
    let made = token_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    authenticate_token(&registry.app, &made.secret)
        .await
        .unwrap()
}

async fn source_rows(registry: &InProcessRegistry) -> Vec<source::Model> {
    let row = domains::domain_by_name(&registry.store, DOMAIN)
        .await
        .unwrap()
        .unwrap();
    domains::live_sources_by_domain(&registry.store, &[row.id])
        .await
        .unwrap()
}

both_databases!(
    one_url_is_one_source,
    the_older_path_is_a_card_url_of_the_domain,
    sources_with_equal_content_share_an_agent,
    agents_per_domain_are_limited,
    additions_are_limited_per_account_and_network,
    many_sources_take_turns,
    a_deleted_domain_can_be_registered_again,
    a_visit_of_a_deleted_domain_is_dropped,
    concurrent_registrations_register_once,
    text_with_nul_is_found_nowhere
);

/// A URL that is a well-known path is the well-known slot; any other is normalised; registering an existing source adds
/// nothing.
async fn one_url_is_one_source(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_domain(DOMAIN).await;
    for same in [
        format!("https://{DOMAIN}/.well-known/agent-card.json"),
        format!("https://{DOMAIN}:443/.well-known/agent-card.json"),
        format!(
            "https://{}/x/../.well-known/agent-card.json",
            DOMAIN.to_uppercase()
        ),
    ] {
        registry.register_card_url(&same).await;
    }
    let kinds: Vec<_> = source_rows(&registry)
        .await
        .into_iter()
        .map(|row| row.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            SourceKind::WellKnown,
            SourceKind::Ard,
            SourceKind::AiCatalog
        ]
    );
    for same in [
        "/%7Ebot/./card.json",
        "/~bot/card.json",
        "/x/../%7ebot/card.json",
    ] {
        registry
            .register_card_url(&format!("https://{DOMAIN}{same}"))
            .await;
    }
    let all = source_rows(&registry).await;
    assert_eq!(all.len(), 4);
    assert_eq!(all[3].url, format!("https://{DOMAIN}/~bot/card.json"));
}

/// The older path alone is a source of its own, which is covered whoever registered it: only the domain can place a card
/// there. With the card of both paths it feeds their agent, and with another one an agent of its own.
async fn the_older_path_is_a_card_url_of_the_domain(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ann = publisher(&registry, "ann").await;
    let what = card_registration(":443/.well-known/agent.json");
    let shown = register_domain(&registry.app, &ann, &what).await.unwrap();
    let [source] = shown.sources.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!(source.kind, SourceKind::Url);
    assert_eq!(source.coverage, Coverage::Covered);
    let both = card_bytes("Old", "At the older path");
    registry
        .run_due_visits(|_| OriginResponse::Card(both.clone()))
        .await;
    let agent = registry.agent(DOMAIN).await;
    registry.advance(time::Duration::minutes(2));
    registry.register_domain(DOMAIN).await;
    registry
        .run_due_visits(|_| OriginResponse::Card(both.clone()))
        .await;
    assert_eq!(
        registry.agent(DOMAIN).await.id,
        agent.id,
        "one card, one agent"
    );
    assert_eq!(source_rows(&registry).await.len(), 4);
    registry
        .crawl_domain_with(DOMAIN, |source| {
            OriginResponse::Card(match source.kind.known_value() {
                Some(SourceKind::WellKnown) => card_bytes("New", "At the newer path"),
                _ => both.clone(),
            })
        })
        .await;
    assert_eq!(registry.agents().await.len(), 2);
}

/// A second source with the same content is a source of the same agent. When the contents differ, the older slot keeps
/// the agent, and each agent is found by its own URL.
async fn sources_with_equal_content_share_an_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let both = card_bytes("Twofold", "Lies in two places");
    let agent = registry.register_approved_card(DOMAIN, &both).await;
    registry.assert_index_matches_database().await;
    registry
        .register_card_url(&format!("https://{DOMAIN}/second.json"))
        .await;
    registry.advance(time::Duration::minutes(2));
    registry
        .run_due_visits(|_| OriginResponse::Card(both.clone()))
        .await;
    assert_eq!(registry.agent(DOMAIN).await.id, agent.id);
    registry.assert_index_matches_database().await;

    let own = card_bytes("Twofold", "Is its own now");
    registry.advance(time::Duration::days(2));
    registry
        .run_due_visits(|source| {
            OriginResponse::Card(if source.kind == SourceKind::Url {
                own.clone()
            } else {
                both.clone()
            })
        })
        .await;
    let rows = registry.agents().await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].id, agent.id);
    assert_eq!(rows[0].lifecycle, Lifecycle::Approved);
    assert_eq!(
        (rows[1].slot.as_str(), rows[1].lifecycle.as_str()),
        (format!("https://{DOMAIN}/second.json").as_str(), "pending")
    );
    registry.assert_index_matches_database().await;

    // If the older slot changes instead, the second source gets an agent of its own.
    registry.advance(time::Duration::days(2));
    registry
        .run_due_visits(|source| {
            OriginResponse::Card(if source.kind == SourceKind::Url {
                own.clone()
            } else {
                card_bytes("Twofold", "Moved on")
            })
        })
        .await;
    assert_eq!(registry.agents().await.len(), 2);
    registry.assert_index_matches_database().await;
}

/// A domain is at its limit of agents: further cards make no agent, break nothing, and the reason is reported.
/// Registrations by an admin are not limited.
async fn agents_per_domain_are_limited(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.limits.agents_per_domain = 10;
        config.limits.agents_reserved = 0;
    })
    .await;
    let publisher = publisher(&registry, "many").await;
    for number in 0..5 {
        let what = card_registration(&format!("/{number}.json"));
        register_domain(&registry.app, &publisher, &what)
            .await
            .unwrap();
    }
    let registry = registry
        .restart(|config| config.limits.agents_per_domain = 3)
        .await;
    assert_eq!(
        registry
            .run_due_visits(|source| OriginResponse::Card(card_bytes("One of many", &source.url)))
            .await,
        1
    );
    assert_eq!(registry.agents().await.len(), 3);
    let view = domain_show(&registry.app, &publisher, DOMAIN)
        .await
        .unwrap();
    let reasons: Vec<&String> = view
        .sources
        .iter()
        .filter_map(|one| one.limit_met.as_ref())
        .collect();
    assert_eq!(reasons.len(), 2, "{view:#?}");
    assert!(reasons[0].contains('3'), "{reasons:?}");
    assert!(
        view.not_listed
            .iter()
            .any(|reason| reason.contains(reasons[0])),
        "{:?}",
        view.not_listed
    );
    let refused = register_domain(&registry.app, &publisher, &card_registration("/5.json"))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    registry.assert_index_matches_database().await;
    // One agent is retired, and there is room for another.
    let over = Act {
        reason: "over".into(),
        hold: None,
    };
    let first = registry.agents().await[0].id.to_string();
    agent_retire(&registry.app, &registry.admin, &first, &over)
        .await
        .unwrap();
    registry.advance(time::Duration::days(2));
    registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes("One of many", &source.url)))
        .await;
    let living = async || {
        registry
            .agents()
            .await
            .into_iter()
            .filter(|row| row.retired_at.is_none())
            .count()
    };
    assert_eq!(living().await, 3);
    for number in 10..15 {
        registry
            .register_card_url(&format!("https://{DOMAIN}/{number}.json"))
            .await;
    }
    registry.advance(time::Duration::days(2));
    registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes("One of many", &source.url)))
        .await;
    registry.advance(time::Duration::minutes(2));
    registry
        .run_due_visits(|source| OriginResponse::Card(card_bytes("One of many", &source.url)))
        .await;
    assert_eq!(
        living().await,
        8,
        "three agents of a publisher, five of an admin"
    );
    registry.assert_index_matches_database().await;
}

/// The reserved slots are the owner's, and no single account or network can fill the others: counted at the limit, and
/// on existing domains as well.
async fn additions_are_limited_per_account_and_network(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.limits.agents_per_domain = 6;
        config.limits.agents_reserved = 3;
        config.limits.sources_per_account = 4;
        config.limits.pending_nominations = 2;
        config.governance.registration = a2a_registry_core::config::RegistrationAccess::Open;
    })
    .await;
    registry.register_domain(DOMAIN).await;
    let anyone = |last: u8| a2a_registry_core::visibility::caller::Caller {
        network: Some([192, 0, 2, last].into()),
        ..a2a_registry_core::visibility::caller::Caller::default()
    };
    let add = async |caller: &a2a_registry_core::visibility::caller::Caller, path: &str| {
        let added = register_domain(&registry.app, caller, &card_registration(path)).await;
        added.map(|_| ()).map_err(|error| error.kind)
    };
    assert_eq!(add(&anyone(1), "/1.json").await, Ok(()));
    assert_eq!(
        add(&anyone(1), "/1.json").await,
        Ok(()),
        "the same source again"
    );
    let view = register_domain(&registry.app, &anyone(1), &card_registration("/1.json"))
        .await
        .unwrap();
    let named: Vec<&str> = view.sources.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(
        named,
        [format!("https://{DOMAIN}/1.json")],
        "none of the admin's sources"
    );
    assert_eq!((view.state.as_str(), view.agents.len()), ("unverified", 0));
    assert_eq!(add(&anyone(1), "/2.json").await, Ok(()));
    assert_eq!(
        add(&anyone(1), "/3.json").await,
        Err(ErrorKind::LimitReached),
        "its two nominations are waiting"
    );
    assert_eq!(add(&anyone(2), "/3.json").await, Ok(()));
    assert_eq!(
        add(&anyone(3), "/4.json").await,
        Err(ErrorKind::LimitReached),
        "the other slots are reserved for the owner"
    );
    let publisher = publisher(&registry, "many").await;
    assert_eq!(
        add(&publisher, "/4.json").await,
        Err(ErrorKind::LimitReached)
    );
    assert_eq!(
        add(&publisher, "/1.json").await,
        Err(ErrorKind::LimitReached),
        "whether others have registered a URL does not show"
    );
    for (number, expected) in [Ok(()), Ok(()), Ok(()), Ok(()), Err(ErrorKind::LimitReached)]
        .into_iter()
        .enumerate()
    {
        let what = Registration {
            domain: Some(format!("own{number}.agents-test.com")),
            ..Registration::default()
        };
        let added = register_domain(&registry.app, &publisher, &what).await;
        let added = added.map(|_| ()).map_err(|error| error.kind);
        assert_eq!(added, expected, "own{number}: the account's limit is 4");
    }
    assert_eq!(add(&registry.admin, "/5.json").await, Ok(()));
}

/// If a domain has more sources than one visit fetches, they take turns: none is fetched twice before all were fetched.
async fn many_sources_take_turns(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    for number in 0..20 {
        registry
            .register_card_url(&format!("https://{DOMAIN}/{number}.json"))
            .await;
    }
    let mut asked = Vec::new();
    for _ in 0..3 {
        let group = registry
            .lease_due_outcomes(|source| OriginResponse::Card(card_bytes("Many", &source.url)))
            .await;
        asked.extend(
            group
                .iter()
                .flat_map(|one| &one.sources)
                .map(|one| one.source_key),
        );
        ingest_outcomes(&registry.app, &group).await.unwrap();
        registry.advance(time::Duration::seconds(61));
    }
    assert_eq!(asked.len(), 20);
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 20);
    assert_eq!(registry.agents().await.len(), 20);
    registry.assert_index_matches_database().await;
}

/// A deleted domain ends with its agents, and its name may be registered again: with new ids, without any data of the
/// old agents, and without the open review.
async fn a_deleted_domain_can_be_registered_again(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let bytes = card_bytes("Phoenix", "Burns");
    let first = registry.register_approved_card(DOMAIN, &bytes).await;
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(card_bytes("Phoenix", "Asks")))
        .await;
    let under_way = registry
        .lease_due_outcomes(|_| panic!("nothing is due"))
        .await;
    assert!(under_way.is_empty());
    domain_delete(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
    let missing = domain_delete(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    assert_eq!(registry.agents().await[0].lifecycle, Lifecycle::Retired);
    assert_eq!(registry.find_open_review(first.id).await, None);
    assert_eq!(
        registry.public_card_bytes(first.id).await,
        None,
        "before the index has applied the event"
    );
    registry.assert_index_matches_database().await;

    registry.register_domain(DOMAIN).await;
    assert_eq!(
        registry.run_due_visits(|_| panic!("its host rests")).await,
        0,
        "registering the name again does not end the rest"
    );
    registry.advance(time::Duration::minutes(2));
    let second = registry.register_with_card(DOMAIN, &bytes).await;
    assert_ne!(second.id, first.id);
    assert_eq!(
        second.lifecycle,
        Lifecycle::Pending,
        "the approval belonged to the old agent"
    );
    registry.approve_open_review(second.id).await;
    assert_eq!(registry.public_card_bytes(second.id).await, Some(bytes));
    assert_eq!(registry.public_card_bytes(first.id).await, None);
    registry.assert_index_matches_database().await;
}

/// A visit in progress when its domain is deleted leaves no data behind.
async fn a_visit_of_a_deleted_domain_is_dropped(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_domain(DOMAIN).await;
    let under_way = registry
        .lease_due_outcomes(|_| OriginResponse::Card(card_bytes("Late", "Too late")))
        .await;
    domain_delete(&registry.app, &registry.admin, DOMAIN)
        .await
        .unwrap();
    registry.register_domain(DOMAIN).await;
    ingest_outcomes(&registry.app, &under_way).await.unwrap();
    assert!(registry.agents().await.is_empty());
    registry.assert_index_matches_database().await;
}

/// Concurrent registrations of one domain all get the same response, and register it once.
async fn concurrent_registrations_register_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let calls = (0..16).map(|_| registry.register_domain(DOMAIN));
    let views = futures::future::join_all(calls).await;
    assert!(views.iter().all(|view| view.domain == DOMAIN));
    assert_eq!(
        source_rows(&registry).await.len(),
        3,
        "the well-known paths and both catalogs"
    );
    assert_eq!(
        registry
            .run_due_visits(|_| OriginResponse::Card(card_bytes("Once", "Once")))
            .await,
        1
    );
}

/// Text that no database can store is found nowhere, on either database.
async fn text_with_nul_is_found_nowhere(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry
        .register_approved_card(DOMAIN, &card_bytes("Here", "Is here"))
        .await;
    let domain = domain_show(&registry.app, &registry.admin, "many\0.agents-test.com")
        .await
        .unwrap_err();
    let agent = agent_show_checked(&registry.app, &registry.admin, "urn:air:\0")
        .await
        .unwrap_err();
    assert_eq!(
        (domain.kind, agent.kind),
        (ErrorKind::NotFound, ErrorKind::NotFound)
    );
    let what = Registration {
        card_url: Some(format!("https://{DOMAIN}/a\0b")),
        ..Registration::default()
    };
    // The URL parser escapes NUL or the guard refuses it; either way the database never gets it.
    if let Err(error) = register_domain(&registry.app, &registry.admin, &what).await {
        assert_eq!(error.kind, ErrorKind::TargetRefused);
    }
    let query = LookupQuery {
        urn: Some("urn:\0".into()),
        ..LookupQuery::default()
    };
    registry.catch_up().await;
    assert_eq!(
        lookup_agents(&registry.app, &registry.admin, &query)
            .await
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
}
