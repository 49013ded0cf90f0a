//! Recorded sources: an account that neither owns a domain nor registered it first sees only that the URLs it adds are
//! recorded, whatever they serve (docs/publish/not-listed.md#only-recorded).

use a2a_crawler::AttemptOutcome;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Act, AgentPatch, DomainView, SourceView};
use a2a_registry_core::agents::lifecycle_actions::{agent_retire, agent_suspend};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::withdrawal::source_withdraw;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::source::SourceState;
use a2a_registry_store::accounts::account_by_name;
use a2a_registry_store::entity::source;
use a2a_registry_store::registrants::source_count_by_registrant;
use time::Duration;

use super::other_accounts::{card_registration, url};
use super::{DOMAIN, OwnershipSetup};
use crate::support::both_databases;
use crate::support::in_process_registry::{
    InProcessRegistry, OriginResponse, agent_patch, card_bytes,
};

both_databases!(
    whatever_a_stranger_adds_is_recorded,
    a_full_domain_refuses_what_is_hidden_too,
    the_end_of_a_hidden_agent_does_not_show
);

/// Checks that a view of a source tells nothing but that the caller has registered it.
#[track_caller]
pub(super) fn assert_recorded(source: &SourceView) {
    let expected = SourceView {
        id: source.id.clone(),
        url: source.url.clone(),
        kind: source.kind.clone(),
        coverage: source.coverage.clone(),
        state: SourceState::Recorded.into(),
        agent: None,
        own: true,
        limit_met: None,
        card_url: None,
        credential: None,
        last_attempt: None,
        attempts: Vec::new(),
        next_due: None,
        validators: None,
        max_age: None,
        vary: None,
        days: Vec::new(),
    };
    assert_eq!(*source, expected);
}

/// Whatever is at the URLs that somebody adds to another's domain, and whatever becomes of it, looks the same to them until
/// an agent there is listed for them: the sources, agents, searches, identifiers and refusals.
async fn whatever_a_stranger_adds_is_recorded(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (owner, _) = setup.prove_with_agent().await;
    let registry = &setup.registry;
    let hidden = [
        "/restricted.json",
        "/held.json",
        "/rejected.json",
        "/waiting.json",
    ];
    for path in hidden {
        register_domain(&registry.app, &owner, &card_registration(path))
            .await
            .unwrap();
    }
    // The owner's cards are approved by a rule, except for those with an error.
    let answer = |source: &source::Model| match source.url.rsplit('/').next() {
        _ if source.kind.as_str() != "url" => {
            OriginResponse::Card(card_bytes("Travel", "Books flights"))
        }
        Some("missing.json") => OriginResponse::Failure(AttemptOutcome::NotFound),
        Some("rejected.json" | "waiting.json") => {
            let broken = format!(r#"{{"name": "Broken {}", "skills": []}}"#, source.url);
            OriginResponse::Card(broken.into_bytes())
        }
        _ => OriginResponse::Card(card_bytes(&source.url, "Is somebody's")),
    };
    registry.advance(Duration::hours(8));
    registry.run_due_visits(answer).await;
    let agent_of = async |path: &str| setup.source_of(path).await.1;
    let hide = AgentPatch {
        visibility: Some(Visibility::Restricted),
        ..AgentPatch::default()
    };
    let why = Act {
        reason: "a test".into(),
        hold: None,
    };
    let restricted = agent_of("/restricted.json").await.to_string();
    agent_patch(&registry.app, &registry.admin, &restricted, &hide)
        .await
        .unwrap();
    let held = agent_of("/held.json").await.to_string();
    agent_suspend(&registry.app, &registry.admin, &held, &why)
        .await
        .unwrap();
    registry
        .reject_open_review(agent_of("/rejected.json").await)
        .await;
    let stranger = setup.create_publisher("stranger").await;
    // Those that nobody had registered come first, so that the order of the rows would tell them apart.
    let added = ["/fresh.json", "/missing.json"].into_iter().chain(hidden);
    let mut ids = Vec::new();
    for path in added.clone() {
        let view = register_domain(&registry.app, &stranger, &card_registration(path))
            .await
            .unwrap();
        let mut all = view.sources.into_iter();
        let source = all.find(|one| one.url == url(path)).unwrap();
        assert_recorded(&source);
        assert_eq!(source.coverage, Coverage::Nomination);
        ids.push((path, source.id));
        registry.advance(Duration::seconds(1));
    }
    let looks_the_same = async |when: &str| {
        let view = setup.domain_view(&stranger).await;
        let own: Vec<&SourceView> = view.sources.iter().filter(|one| one.own).collect();
        let order: Vec<String> = own.iter().map(|one| one.url.clone()).collect();
        let expected: Vec<String> = added.clone().map(url).collect();
        assert_eq!(order, expected, "{when}");
        own.into_iter().for_each(assert_recorded);
        assert_eq!(view.not_listed.len(), 0, "{when}: {view:#?}");
        registry.catch_up().await;
        for lifecycle in ["pending", "rejected", "suspended", "approved"] {
            let query = SearchQuery {
                lifecycle: vec![lifecycle.into()],
                ..SearchQuery::default()
            };
            let found = registry.search_all(&stranger, &query).await;
            let count = usize::from(lifecycle == "approved");
            assert_eq!(found.agents.len(), count, "{when}: {lifecycle}");
        }
        for path in added.clone().filter(|path| *path != "/missing.json") {
            let view = setup.domain_view(&registry.admin).await;
            let mut all = view.sources.into_iter();
            let agent = all.find(|one| one.url == url(path)).unwrap().agent;
            if let Some(agent) = agent {
                assert!(setup.is_invisible(&stranger, agent).await, "{when}: {path}");
            }
        }
    };
    looks_the_same("before the visit").await;
    registry.advance(Duration::hours(8));
    registry.run_due_visits(answer).await;
    looks_the_same("after the visit").await;
    // An identifier that is given again does not show who else has registered the URL, nor does a withdrawal.
    for (path, id) in &ids {
        source_withdraw(&registry.app, &stranger, DOMAIN, id)
            .await
            .unwrap();
        let view = register_domain(&registry.app, &stranger, &card_registration(path))
            .await
            .unwrap();
        let mut all = view.sources.into_iter();
        let source = all.find(|one| one.url == url(path)).unwrap();
        assert_eq!(source.id, *id, "{path}");
        registry.advance(Duration::seconds(1));
    }
    looks_the_same("registered again").await;
    registry.advance(Duration::hours(8));
    registry.run_due_visits(answer).await;
    let fresh = agent_of("/fresh.json").await;
    registry.approve_open_review(fresh).await;
    let view = setup.domain_view(&stranger).await;
    let of_fresh = view.sources.iter().find(|one| one.agent == Some(fresh));
    assert!(of_fresh.is_some_and(|source| source.state == SourceState::Fresh));
    agent_suspend(&registry.app, &registry.admin, &fresh.to_string(), &why)
        .await
        .unwrap();
    looks_the_same("after a listed one was suspended").await;
    // An approved agent that is hidden from whoever alone has registered it shows in no refusal either.
    let id = &ids[0].1;
    source_withdraw(&registry.app, &stranger, DOMAIN, id)
        .await
        .unwrap();
    assert_eq!(
        agent_of("/fresh.json").await,
        fresh,
        "the source stays for its agent"
    );
    let public = AgentPatch {
        visibility: Some(Visibility::Public),
        ..AgentPatch::default()
    };
    agent_patch(&registry.app, &registry.admin, &restricted, &public)
        .await
        .unwrap();
    registry.assert_index_matches_database().await;
}

/// A domain without a place for another card refuses a stranger whether the URL is registered already or not, and as many
/// places are left to whoever has registered such URLs as to others.
async fn a_full_domain_refuses_what_is_hidden_too(url_of_database: &str) {
    let registry = InProcessRegistry::with_config(url_of_database, |config| {
        config.limits.agents_per_domain = 8;
        config.limits.agents_reserved = 4;
    })
    .await;
    let setup = OwnershipSetup::with_registry(registry);
    let first = setup.create_publisher("first").await;
    for path in ["/hidden0.json", "/hidden1.json"] {
        register_domain(&setup.registry.app, &first, &card_registration(path))
            .await
            .unwrap();
    }
    let mut taken = Vec::new();
    for known in [0, 1, 2] {
        let stranger = setup.create_publisher(&format!("stranger{known}")).await;
        let known = (0..known).map(|number| format!("/hidden{number}.json"));
        let others = (0..9).map(|number| format!("/other{number}.json"));
        let mut count = 0;
        let mut ids = Vec::new();
        for path in known.chain(others) {
            match register_domain(&setup.registry.app, &stranger, &card_registration(&path)).await {
                Ok(view) => {
                    count += 1;
                    let mut all = view.sources.into_iter();
                    ids.push(all.find(|one| one.url == url(&path)).unwrap().id);
                }
                Err(refused) => assert_eq!(refused.kind, ErrorKind::LimitReached, "{path}"),
            }
        }
        for path in ["/hidden1.json", "/nowhere.json"] {
            let view = setup.domain_view(&stranger).await;
            if view.sources.iter().any(|one| one.url == url(path)) {
                continue;
            }
            let full =
                register_domain(&setup.registry.app, &stranger, &card_registration(path)).await;
            assert_eq!(full.unwrap_err().kind, ErrorKind::LimitReached, "{path}");
        }
        taken.push(count);
        for id in ids {
            source_withdraw(&setup.registry.app, &stranger, DOMAIN, &id)
                .await
                .unwrap();
        }
    }
    assert_eq!(taken, [2, 2, 2]);
}

/// A hidden agent that is retired takes its source along; the registrations of strangers stay recorded, and can be withdrawn.
async fn the_end_of_a_hidden_agent_does_not_show(url_of_database: &str) {
    let setup = OwnershipSetup::new(url_of_database).await;
    let (owner, _) = setup.prove_with_agent().await;
    let registry = &setup.registry;
    register_domain(&registry.app, &owner, &card_registration("/hidden.json"))
        .await
        .unwrap();
    let answer = |source: &source::Model| match source.url.rsplit('/').next() {
        Some("missing.json") => OriginResponse::Failure(AttemptOutcome::NotFound),
        Some("hidden.json") => OriginResponse::Card(card_bytes("Hidden", "Is the owner's")),
        _ => OriginResponse::Card(card_bytes("Travel", "Books flights")),
    };
    registry.advance(Duration::hours(8));
    registry.run_due_visits(answer).await;
    let (_, agent) = setup.source_of("/hidden.json").await;
    let hide = AgentPatch {
        visibility: Some(Visibility::Restricted),
        ..AgentPatch::default()
    };
    agent_patch(&registry.app, &owner, &agent.to_string(), &hide)
        .await
        .unwrap();
    let stranger = setup.create_publisher("stranger").await;
    for path in ["/hidden.json", "/missing.json"] {
        register_domain(&registry.app, &stranger, &card_registration(path))
            .await
            .unwrap();
    }
    let before = setup.domain_view(&stranger).await;
    let row = account_by_name(&registry.store, "stranger").await.unwrap();
    let account = row.unwrap().id;
    let counted = async || {
        source_count_by_registrant(&registry.store, account)
            .await
            .unwrap()
    };
    assert_eq!(counted().await, 2);
    let why = Act {
        reason: "a test".into(),
        hold: None,
    };
    agent_retire(&registry.app, &owner, &agent.to_string(), &why)
        .await
        .unwrap();
    let own = |view: DomainView| -> Vec<SourceView> {
        let all = view.sources.into_iter();
        all.filter(|source| source.own).collect()
    };
    let after = setup.domain_view(&stranger).await;
    assert_eq!(after.created_at, before.created_at);
    assert_eq!(own(after), own(before.clone()));
    assert_eq!(counted().await, 2);
    let again = register_domain(&registry.app, &stranger, &card_registration("/hidden.json")).await;
    again.unwrap();
    assert_eq!(counted().await, 2, "a URL counts once");
    let sources = own(before);
    assert_eq!(sources.len(), 2);
    for (left, source) in [1, 0].into_iter().zip(&sources) {
        source_withdraw(&registry.app, &stranger, DOMAIN, &source.id)
            .await
            .unwrap();
        let view = setup.domain_view(&stranger).await;
        assert_eq!(own(view).len(), left);
        assert_eq!(counted().await, left as u64);
        let gone = source_withdraw(&registry.app, &stranger, DOMAIN, &source.id).await;
        assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound);
    }
}
