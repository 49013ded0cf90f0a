//! Base URLs of agents, whose cards are at the well-known path under them (docs/develop/model.md#slots).

use a2a_crawler::AttemptOutcome::{Card, NotFound};
use a2a_crawler::{FetchAttempt, SourceOutcome, SourceResult, VisitOutcome};
use a2a_registry_api::search_query::LookupQuery;
use a2a_registry_api::{NewToken, Registration, SourceView};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::crawl::ingest::ingest_outcomes;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::search::lookup_agents;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::source::SourceState;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

const DOMAIN: &str = "bases.agents-test.com";

fn base_url() -> String {
    format!("https://{DOMAIN}/agents/one")
}

fn card_url_under_base() -> String {
    format!("{}/.well-known/agent-card.json", base_url())
}

both_databases!(
    a_base_url_keeps_the_url_that_brought_the_card,
    a_base_url_and_its_card_url_are_one_agent,
    a_stranger_does_not_learn_where_the_card_is
);

/// Has the requests of each outcome begin with one to the base URL, which has no card.
fn found_under(group: &mut [VisitOutcome]) {
    let outcomes = group.iter_mut().flat_map(|outcome| &mut outcome.sources);
    for outcome in outcomes.filter(|outcome| is_of_base(outcome)) {
        let missed = FetchAttempt {
            outcome: NotFound,
            status: Some(404),
            detail: "the server responded with status 404".into(),
            ..outcome.attempts[0].clone()
        };
        outcome.attempts[0].url = card_url_under_base();
        outcome.attempts.insert(0, missed);
        if let SourceResult::Fetched(card) = &mut outcome.result
            && let Some(validators) = &mut card.freshness.validators
        {
            validators.url = card_url_under_base();
        }
    }
}

fn is_of_base(outcome: &SourceOutcome) -> bool {
    outcome.attempts[0].url == base_url() && outcome.attempts[0].outcome == Card
}

async fn visit(registry: &InProcessRegistry, card: &[u8]) {
    let mut group = registry
        .lease_due_outcomes(|_| OriginResponse::Card(card.to_vec()))
        .await;
    found_under(&mut group);
    ingest_outcomes(&registry.app, &group).await.unwrap();
}

async fn source_views(registry: &InProcessRegistry) -> Vec<SourceView> {
    let view = domain_show(&registry.app, &registry.admin, DOMAIN).await;
    view.unwrap().sources
}

async fn a_base_url_keeps_the_url_that_brought_the_card(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_card_url(&base_url()).await;
    visit(&registry, &card_bytes("One", "Of several on its host")).await;
    let agent = registry.agent(DOMAIN).await;
    registry.approve_open_review(agent.id).await;
    registry.assert_index_matches_database().await;
    // Registered again it is the same source, and what it brings goes on to be fetched where it was found.
    registry.register_card_url(&base_url()).await;
    let all = source_views(&registry).await;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (&all[0].url, &all[0].card_url),
        (&base_url(), &Some(card_url_under_base()))
    );
    let last = all[0].last_attempt.as_ref().unwrap();
    assert_eq!(
        (last.outcome.as_str(), &last.url),
        ("card", &card_url_under_base())
    );
    assert!(all[0].attempts.is_empty(), "the base URL has not failed");
    for name in [
        base_url(),
        format!("{}/", base_url()),
        card_url_under_base(),
    ] {
        let query = LookupQuery {
            url: Some(name.clone()),
            ..LookupQuery::default()
        };
        let found = lookup_agents(&registry.app, &registry.admin, &query)
            .await
            .unwrap();
        assert_eq!(found.agents[0].summary.id, agent.id, "{name}");
    }
    let gone = OriginResponse::Failure(NotFound);
    registry.crawl_domain(DOMAIN, gone).await;
    let all = source_views(&registry).await;
    assert_eq!(
        all[0].last_attempt.as_ref().unwrap().url,
        card_url_under_base()
    );
    assert_eq!(all[0].card_url, Some(card_url_under_base()));
}

/// Both names are of one place, in whatever order they were registered.
async fn a_base_url_and_its_card_url_are_one_agent(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_card_url(&card_url_under_base()).await;
    visit(&registry, &card_bytes("One", "Of several on its host")).await;
    let agent = registry.agent(DOMAIN).await;
    registry.advance(time::Duration::minutes(2));
    registry.register_card_url(&base_url()).await;
    visit(&registry, &card_bytes("One", "Of several on its host")).await;
    assert_eq!(registry.agent(DOMAIN).await.id, agent.id);
    let all = source_views(&registry).await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|source| source.agent == Some(agent.id)));
}

async fn a_stranger_does_not_learn_where_the_card_is(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    registry.register_card_url(&base_url()).await;
    visit(&registry, &card_bytes("One", "Is not listed")).await;
    let new = NewToken {
        account: "ann".into(),
        role: Some(Role::Publisher),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    let ann = authenticate_token(&registry.app, &made.secret)
        .await
        .unwrap();
    let what = Registration {
        card_url: Some(base_url()),
        ..Registration::default()
    };
    let told = register_domain(&registry.app, &ann, &what).await.unwrap();
    assert_eq!(told.sources.len(), 1);
    assert_eq!(told.sources[0].state, SourceState::Recorded);
    assert_eq!(
        (&told.sources[0].url, &told.sources[0].card_url),
        (&base_url(), &None)
    );
}
