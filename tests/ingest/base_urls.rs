//! Base URLs of agents, whose cards are at the well-known path under them (docs/model.md#slots).

use a2a_crawler::AttemptOutcome::{Card, NotFound};
use a2a_crawler::{Attempt, SourceOutcome, SourceVerdict, VisitOutcome};
use a2a_registry_api::{NewToken, Registration, SourceView};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::crawl::ingest::ingest;
use a2a_registry_core::domains::acts::domain_show;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::search::lookup;
use a2a_registry_core::search::query::LookupQuery;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::source::SourceState;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

const DOMAIN: &str = "bases.agents-test.com";

fn base() -> String {
    format!("https://{DOMAIN}/agents/one")
}

fn under() -> String {
    format!("{}/.well-known/agent-card.json", base())
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
        let missed = Attempt {
            outcome: NotFound,
            status: Some(404),
            detail: "the server responded with status 404".into(),
            ..outcome.attempts[0].clone()
        };
        outcome.attempts[0].url = under();
        outcome.attempts.insert(0, missed);
        if let SourceVerdict::Fetched(card) = &mut outcome.verdict
            && let Some(validators) = &mut card.freshness.validators
        {
            validators.url = under();
        }
    }
}

fn is_of_base(outcome: &SourceOutcome) -> bool {
    outcome.attempts[0].url == base() && outcome.attempts[0].outcome == Card
}

async fn visit(stage: &Stage, card: &[u8]) {
    let mut group = stage.outcomes(|_| OriginAnswer::Card(card.to_vec())).await;
    found_under(&mut group);
    ingest(&stage.app, &group).await.unwrap();
}

async fn sources(stage: &Stage) -> Vec<SourceView> {
    let view = domain_show(&stage.app, &stage.admin, DOMAIN).await;
    view.unwrap().sources
}

async fn a_base_url_keeps_the_url_that_brought_the_card(url: &str) {
    let stage = Stage::new(url).await;
    stage.register_url(&base()).await;
    visit(&stage, &card("One", "Of several on its host")).await;
    let agent = stage.agent(DOMAIN).await;
    stage.approve(agent.id).await;
    stage.index_equals_database().await;
    // Registered again it is the same source, and what it brings goes on to be fetched where it was found.
    stage.register_url(&base()).await;
    let all = sources(&stage).await;
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0].url, &all[0].card_url), (&base(), &Some(under())));
    let last = all[0].last_attempt.as_ref().unwrap();
    assert_eq!((last.outcome.as_str(), &last.url), ("card", &under()));
    assert!(all[0].attempts.is_empty(), "the base URL has not failed");
    for name in [base(), format!("{}/", base()), under()] {
        let query = LookupQuery {
            url: Some(name.clone()),
            ..LookupQuery::default()
        };
        let found = lookup(&stage.app, &stage.admin, &query).await.unwrap();
        assert_eq!(found.agents[0].summary.id, agent.id, "{name}");
    }
    let gone = OriginAnswer::Fails(NotFound);
    stage.crawl(DOMAIN, gone).await;
    let all = sources(&stage).await;
    assert_eq!(all[0].last_attempt.as_ref().unwrap().url, under());
    assert_eq!(all[0].card_url, Some(under()));
}

/// Both names are of one place, in whatever order they were registered.
async fn a_base_url_and_its_card_url_are_one_agent(url: &str) {
    let stage = Stage::new(url).await;
    stage.register_url(&under()).await;
    visit(&stage, &card("One", "Of several on its host")).await;
    let agent = stage.agent(DOMAIN).await;
    stage.advance(time::Duration::minutes(2));
    stage.register_url(&base()).await;
    visit(&stage, &card("One", "Of several on its host")).await;
    assert_eq!(stage.agent(DOMAIN).await.id, agent.id);
    let all = sources(&stage).await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|source| source.agent == Some(agent.id)));
}

async fn a_stranger_does_not_learn_where_the_card_is(url: &str) {
    let stage = Stage::new(url).await;
    stage.register_url(&base()).await;
    visit(&stage, &card("One", "Is not listed")).await;
    let new = NewToken {
        account: "ann".into(),
        role: Some(Role::Publisher),
        name: "a test".into(),
        ..NewToken::default()
    };
    let made = token_create(&stage.app, &stage.admin, &new).await.unwrap();
    let ann = authenticate(&stage.app, &made.secret).await.unwrap();
    let what = Registration {
        card_url: Some(base()),
        ..Registration::default()
    };
    let told = register(&stage.app, &ann, &what).await.unwrap();
    assert_eq!(told.sources.len(), 1);
    assert_eq!(told.sources[0].state, SourceState::Recorded);
    assert_eq!(
        (&told.sources[0].url, &told.sources[0].card_url),
        (&base(), &None)
    );
}
