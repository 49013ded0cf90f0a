//! The agent of each source (docs/model.md#slots), and limits of a domain.

use a2a_registry_api::{Act, Registration};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::agents::acts::agent_retire;
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::domains::acts::domain_show;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::search::lookup;
use a2a_registry_core::search::query::LookupQuery;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::Lifecycle;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::domains;
use a2a_registry_store::entity::source;

use crate::support::both_databases;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAIN: &str = "many.agents-test.com";

/// A card URL of the domain, as it is registered.
fn at(path: &str) -> Registration {
    Registration {
        card_url: Some(format!("https://{DOMAIN}{path}")),
        ..Registration::default()
    }
}

async fn publisher(stage: &Stage, name: &str) -> a2a_registry_core::visibility::caller::Caller {
    let new = a2a_registry_api::NewToken {
        account: name.into(),
        role: Some(a2a_registry_domain::role::Role::Publisher),
        name: "a test".into(),
        ..a2a_registry_api::NewToken::default()
    };
    let made = token_create(&stage.app, &stage.admin, &new).await.unwrap();
    authenticate(&stage.app, &made.secret).await.unwrap()
}

async fn sources(stage: &Stage) -> Vec<source::Model> {
    let row = domains::domain_by_name(&stage.store, DOMAIN)
        .await
        .unwrap()
        .unwrap();
    domains::sources_of(&stage.store, &[row.id]).await.unwrap()
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
    let stage = Stage::new(url).await;
    stage.register(DOMAIN).await;
    for same in [
        format!("https://{DOMAIN}/.well-known/agent-card.json"),
        format!("https://{DOMAIN}:443/.well-known/agent-card.json"),
        format!(
            "https://{}/x/../.well-known/agent-card.json",
            DOMAIN.to_uppercase()
        ),
    ] {
        stage.register_url(&same).await;
    }
    let kinds: Vec<_> = sources(&stage)
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
        stage.register_url(&format!("https://{DOMAIN}{same}")).await;
    }
    let all = sources(&stage).await;
    assert_eq!(all.len(), 4);
    assert_eq!(all[3].url, format!("https://{DOMAIN}/~bot/card.json"));
}

/// The older path alone is a source of its own, which is covered whoever registered it: only the domain can place a card
/// there. With the card of both paths it feeds their agent, and with another one an agent of its own.
async fn the_older_path_is_a_card_url_of_the_domain(url: &str) {
    let stage = Stage::new(url).await;
    let ann = publisher(&stage, "ann").await;
    let what = at(":443/.well-known/agent.json");
    let shown = register(&stage.app, &ann, &what).await.unwrap();
    let [source] = shown.sources.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!(source.kind, SourceKind::Url);
    assert_eq!(source.coverage, Coverage::Covered);
    let both = card("Old", "At the older path");
    stage.visit(|_| OriginAnswer::Card(both.clone())).await;
    let agent = stage.agent(DOMAIN).await;
    stage.advance(time::Duration::minutes(2));
    stage.register(DOMAIN).await;
    stage.visit(|_| OriginAnswer::Card(both.clone())).await;
    assert_eq!(
        stage.agent(DOMAIN).await.id,
        agent.id,
        "one card, one agent"
    );
    assert_eq!(sources(&stage).await.len(), 4);
    stage
        .crawl_with(DOMAIN, |source| {
            OriginAnswer::Card(match source.kind.known() {
                Some(SourceKind::WellKnown) => card("New", "At the newer path"),
                _ => both.clone(),
            })
        })
        .await;
    assert_eq!(stage.agents().await.len(), 2);
}

/// A second source with the same content is a source of the same agent. When the contents differ, the older slot keeps
/// the agent, and each agent is found by its own URL.
async fn sources_with_equal_content_share_an_agent(url: &str) {
    let stage = Stage::new(url).await;
    let both = card("Twofold", "Lies in two places");
    let agent = stage.publish_approved(DOMAIN, &both).await;
    stage.index_equals_database().await;
    stage
        .register_url(&format!("https://{DOMAIN}/second.json"))
        .await;
    stage.advance(time::Duration::minutes(2));
    stage.visit(|_| OriginAnswer::Card(both.clone())).await;
    assert_eq!(stage.agent(DOMAIN).await.id, agent.id);
    stage.index_equals_database().await;

    let own = card("Twofold", "Is its own now");
    stage.advance(time::Duration::days(2));
    stage
        .visit(|source| {
            OriginAnswer::Card(if source.kind == SourceKind::Url {
                own.clone()
            } else {
                both.clone()
            })
        })
        .await;
    let rows = stage.agents().await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].id, agent.id);
    assert_eq!(rows[0].lifecycle, Lifecycle::Approved);
    assert_eq!(
        (rows[1].slot.as_str(), rows[1].lifecycle.as_str()),
        (format!("https://{DOMAIN}/second.json").as_str(), "pending")
    );
    stage.index_equals_database().await;

    // If the older slot changes instead, the second source gets an agent of its own.
    stage.advance(time::Duration::days(2));
    stage
        .visit(|source| {
            OriginAnswer::Card(if source.kind == SourceKind::Url {
                own.clone()
            } else {
                card("Twofold", "Moved on")
            })
        })
        .await;
    assert_eq!(stage.agents().await.len(), 2);
    stage.index_equals_database().await;
}

/// A domain is at its limit of agents: further cards make no agent, break nothing, and the reason is reported.
/// Registrations by an admin are not limited.
async fn agents_per_domain_are_limited(url: &str) {
    let stage = Stage::with(url, |config| {
        config.limits.agents_per_domain = 10;
        config.limits.agents_reserved = 0;
    })
    .await;
    let publisher = publisher(&stage, "many").await;
    for number in 0..5 {
        let what = at(&format!("/{number}.json"));
        register(&stage.app, &publisher, &what).await.unwrap();
    }
    let stage = stage
        .restart(|config| config.limits.agents_per_domain = 3)
        .await;
    assert_eq!(
        stage
            .visit(|source| OriginAnswer::Card(card("One of many", &source.url)))
            .await,
        1
    );
    assert_eq!(stage.agents().await.len(), 3);
    let view = domain_show(&stage.app, &publisher, DOMAIN).await.unwrap();
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
    let refused = register(&stage.app, &publisher, &at("/5.json"))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::LimitReached);
    stage.index_equals_database().await;
    // One agent is retired, and there is room for another.
    let over = Act {
        reason: "over".into(),
        hold: None,
    };
    let first = stage.agents().await[0].id.to_string();
    agent_retire(&stage.app, &stage.admin, &first, &over)
        .await
        .unwrap();
    stage.advance(time::Duration::days(2));
    stage
        .visit(|source| OriginAnswer::Card(card("One of many", &source.url)))
        .await;
    let living = async || {
        stage
            .agents()
            .await
            .into_iter()
            .filter(|row| row.retired_at.is_none())
            .count()
    };
    assert_eq!(living().await, 3);
    for number in 10..15 {
        stage
            .register_url(&format!("https://{DOMAIN}/{number}.json"))
            .await;
    }
    stage.advance(time::Duration::days(2));
    stage
        .visit(|source| OriginAnswer::Card(card("One of many", &source.url)))
        .await;
    stage.advance(time::Duration::minutes(2));
    stage
        .visit(|source| OriginAnswer::Card(card("One of many", &source.url)))
        .await;
    assert_eq!(
        living().await,
        8,
        "three agents of a publisher, five of an admin"
    );
    stage.index_equals_database().await;
}

/// The reserved slots are the owner's, and no single account or network can fill the others: counted at the limit, and
/// on existing domains as well.
async fn additions_are_limited_per_account_and_network(url: &str) {
    let stage = Stage::with(url, |config| {
        config.limits.agents_per_domain = 6;
        config.limits.agents_reserved = 3;
        config.limits.sources_per_account = 4;
        config.limits.pending_nominations = 2;
        config.governance.registration = a2a_registry_core::config::Registration::Open;
    })
    .await;
    stage.register(DOMAIN).await;
    let anyone = |last: u8| a2a_registry_core::visibility::caller::Caller {
        network: Some([192, 0, 2, last].into()),
        ..a2a_registry_core::visibility::caller::Caller::default()
    };
    let add = async |caller: &a2a_registry_core::visibility::caller::Caller, path: &str| {
        let added = register(&stage.app, caller, &at(path)).await;
        added.map(|_| ()).map_err(|error| error.kind)
    };
    assert_eq!(add(&anyone(1), "/1.json").await, Ok(()));
    assert_eq!(
        add(&anyone(1), "/1.json").await,
        Ok(()),
        "the same source again"
    );
    let view = register(&stage.app, &anyone(1), &at("/1.json"))
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
    let publisher = publisher(&stage, "many").await;
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
        let added = register(&stage.app, &publisher, &what).await;
        let added = added.map(|_| ()).map_err(|error| error.kind);
        assert_eq!(added, expected, "own{number}: the account's limit is 4");
    }
    assert_eq!(add(&stage.admin, "/5.json").await, Ok(()));
}

/// If a domain has more sources than one visit fetches, they take turns: none is fetched twice before all were fetched.
async fn many_sources_take_turns(url: &str) {
    let stage = Stage::new(url).await;
    for number in 0..20 {
        stage
            .register_url(&format!("https://{DOMAIN}/{number}.json"))
            .await;
    }
    let mut asked = Vec::new();
    for _ in 0..3 {
        let group = stage
            .outcomes(|source| OriginAnswer::Card(card("Many", &source.url)))
            .await;
        asked.extend(
            group
                .iter()
                .flat_map(|one| &one.sources)
                .map(|one| one.source_key),
        );
        ingest(&stage.app, &group).await.unwrap();
        stage.advance(time::Duration::seconds(61));
    }
    assert_eq!(asked.len(), 20);
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 20);
    assert_eq!(stage.agents().await.len(), 20);
    stage.index_equals_database().await;
}

/// A deleted domain ends with its agents, and its name may be registered again: with new ids, without any data of the
/// old agents, and without the open review.
async fn a_deleted_domain_can_be_registered_again(url: &str) {
    let stage = Stage::new(url).await;
    let bytes = card("Phoenix", "Burns");
    let first = stage.publish_approved(DOMAIN, &bytes).await;
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Phoenix", "Asks")))
        .await;
    let under_way = stage.outcomes(|_| panic!("nothing is due")).await;
    assert!(under_way.is_empty());
    domain_delete(&stage.app, &stage.admin, DOMAIN)
        .await
        .unwrap();
    let missing = domain_delete(&stage.app, &stage.admin, DOMAIN)
        .await
        .unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    assert_eq!(stage.agents().await[0].lifecycle, Lifecycle::Retired);
    assert_eq!(stage.open_review(first.id).await, None);
    assert_eq!(
        stage.served(first.id).await,
        None,
        "before the index has applied the event"
    );
    stage.index_equals_database().await;

    stage.register(DOMAIN).await;
    assert_eq!(
        stage.visit(|_| panic!("its host rests")).await,
        0,
        "registering the name again does not end the rest"
    );
    stage.advance(time::Duration::minutes(2));
    let second = stage.publish(DOMAIN, &bytes).await;
    assert_ne!(second.id, first.id);
    assert_eq!(
        second.lifecycle,
        Lifecycle::Pending,
        "the approval belonged to the old agent"
    );
    stage.approve(second.id).await;
    assert_eq!(stage.served(second.id).await, Some(bytes));
    assert_eq!(stage.served(first.id).await, None);
    stage.index_equals_database().await;
}

/// A visit in progress when its domain is deleted leaves no data behind.
async fn a_visit_of_a_deleted_domain_is_dropped(url: &str) {
    let stage = Stage::new(url).await;
    stage.register(DOMAIN).await;
    let under_way = stage
        .outcomes(|_| OriginAnswer::Card(card("Late", "Too late")))
        .await;
    domain_delete(&stage.app, &stage.admin, DOMAIN)
        .await
        .unwrap();
    stage.register(DOMAIN).await;
    ingest(&stage.app, &under_way).await.unwrap();
    assert!(stage.agents().await.is_empty());
    stage.index_equals_database().await;
}

/// Concurrent registrations of one domain all get the same response, and register it once.
async fn concurrent_registrations_register_once(url: &str) {
    let stage = Stage::new(url).await;
    let calls = (0..16).map(|_| stage.register(DOMAIN));
    let views = futures::future::join_all(calls).await;
    assert!(views.iter().all(|view| view.domain == DOMAIN));
    assert_eq!(
        sources(&stage).await.len(),
        3,
        "the well-known paths and both catalogs"
    );
    assert_eq!(
        stage
            .visit(|_| OriginAnswer::Card(card("Once", "Once")))
            .await,
        1
    );
}

/// Text that no database can store is found nowhere, on either database.
async fn text_with_nul_is_found_nowhere(url: &str) {
    let stage = Stage::new(url).await;
    stage
        .publish_approved(DOMAIN, &card("Here", "Is here"))
        .await;
    let domain = domain_show(&stage.app, &stage.admin, "many\0.agents-test.com")
        .await
        .unwrap_err();
    let agent = agent_show(&stage.app, &stage.admin, "urn:air:\0")
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
    if let Err(error) = register(&stage.app, &stage.admin, &what).await {
        assert_eq!(error.kind, ErrorKind::TargetRefused);
    }
    let query = LookupQuery {
        urn: Some("urn:\0".into()),
        ..LookupQuery::default()
    };
    stage.settle().await;
    assert_eq!(
        lookup(&stage.app, &stage.admin, &query)
            .await
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
}
