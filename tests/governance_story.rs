//! The story of one agent: held by a policy, approved by others, waived, changed, served by one account alone, confirmed, held
//! again, and approved anew, on both engines.

use a2a_registry_api::Registration;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use a2a_registry_server::caller::Caller;
use a2a_registry_server::domains::register::register;
use a2a_registry_server::error::ErrorKind;
use a2a_registry_server::policies::job::round;
use a2a_registry_server::policies::waivers::waiver_grant;
use a2a_registry_server::reviews::break_glass::break_glass;
use a2a_registry_server::reviews::deciding::review_approve;
use a2a_registry_server::reviews::glass_restored::end_break_glasses;
use a2a_registry_server::reviews::recertification::pass_terms;
use a2a_registry_server::reviews::waiting::waiting;
use a2a_registry_store::events::events_after;
use time::Duration;
use uuid::Uuid;

use crate::admission_policies::{OPEN, digest_shown, put, waiver};
use crate::recertification::open_of;
use crate::reviews::{account, decision};
use crate::support::both_databases;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card};

both_databases!(an_agent_is_approved_held_confirmed_and_recertified);

const DOMAIN: &str = "story.dev";

async fn an_agent_is_approved_held_confirmed_and_recertified(url: &str) {
    let stage = Stage::with(url, |config| {
        config.governance.four_eyes = true;
        config.governance.deciders.critical = 2;
        config.governance.recertify_after = Some(90);
    })
    .await;
    let app = &stage.app;
    let publisher = account(&stage, "publisher", Role::Publisher).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let ben = account(&stage, "ben", Role::Curator).await;

    // Policies forbid what it offers.
    let forbids = "forbid (principal, action == Action::\"admit\", resource) when { resource.tags.contains(\"tests\") };";
    put(&stage, &[OPEN, ("no-tests", forbids)]).await;

    // A publisher registers, and the card comes in.
    let what = Registration {
        domain: Some(DOMAIN.into()),
        ..Registration::default()
    };
    register(app, &publisher, &what).await.unwrap();
    stage
        .visit(|_| OriginAnswer::Card(card("Echo", "1.0")))
        .await;
    let agent = stage.agent(DOMAIN).await.id;
    assert_eq!(stage.holds(agent).await, ["policy"]);
    let digest = digest_shown(&stage, agent).await;
    let own = waiver_grant(app, &publisher, &waiver(agent, "no-tests", &digest)).await;
    assert_eq!(own.unwrap_err().kind, ErrorKind::Forbidden);

    // Four eyes approve it.
    let first = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    let own = review_approve(app, &publisher, first.id, &decision(&first)).await;
    assert_eq!(own.unwrap_err().kind, ErrorKind::Forbidden);
    review_approve(app, &ann, first.id, &decision(&first))
        .await
        .unwrap();
    // What people approve, policies hold all the same, until one of them is waived.
    assert_eq!(seen(&stage, agent).await, None);
    waiver_grant(app, &ann, &waiver(agent, "no-tests", &digest))
        .await
        .unwrap();
    assert_eq!(seen(&stage, agent).await, Some(card("Echo", "1.0")));

    // The card changes critically: nobody finds the agent any more.
    stage
        .crawl(DOMAIN, OriginAnswer::Card(card("Other", "1.0")))
        .await;
    assert_eq!(stage.holds(agent).await, ["critical_change"]);
    assert_eq!(seen(&stage, agent).await, None);

    // One account serves it for a day, and two others confirm that.
    let change = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    let confirmation = break_glass(app, &stage.admin, change.id, &decision(&change))
        .await
        .unwrap();
    // The waiver was for other content.
    assert_eq!(stage.holds(agent).await, ["policy"]);
    let digest = digest_shown(&stage, agent).await;
    waiver_grant(app, &ben, &waiver(agent, "no-tests", &digest))
        .await
        .unwrap();
    assert_eq!(seen(&stage, agent).await, Some(card("Other", "1.0")));
    for one in [&ann, &ben] {
        review_approve(app, one, confirmation.id, &decision(&confirmation))
            .await
            .unwrap();
    }
    pass(&stage, 2).await;
    assert_eq!(seen(&stage, agent).await, Some(card("Other", "1.0")));

    // The waiver expires, and the policy bites; then the policy is taken back.
    pass(&stage, 30).await;
    assert_eq!(stage.holds(agent).await, ["policy"]);
    assert_eq!(seen(&stage, agent).await, None);
    put(&stage, &[OPEN]).await;
    assert_eq!(seen(&stage, agent).await, Some(card("Other", "1.0")));

    // The approval ends undecided, and the agent goes.
    pass(&stage, 44).await;
    let again = open_of(&stage, agent, ReviewKind::Recertification)
        .await
        .unwrap();
    assert_eq!(waiting(app, &ann).await.unwrap().reviews.len(), 1);
    pass(&stage, 14).await;
    assert_eq!(stage.holds(agent).await, ["recertify"]);
    assert_eq!(seen(&stage, agent).await, None);

    // Approving what is served brings it back.
    let approved = review_approve(app, &ben, again.id, &decision(&again)).await;
    assert_eq!(approved.unwrap().state, ReviewState::Approved);
    assert_eq!(seen(&stage, agent).await, Some(card("Other", "1.0")));
    let told = waiting(app, &publisher).await.unwrap().news;
    assert_eq!(told.iter().filter(|one| one.kind == "approved").count(), 4);
    assert_eq!(
        acts(&stage, agent).await,
        [
            EventKind::AgentDiscovered,
            EventKind::AgentHeld,
            EventKind::AgentApproved,
            EventKind::WaiverGranted,
            EventKind::AgentReleased,
            EventKind::AgentChanged,
            EventKind::AgentHeld,
            EventKind::AgentReleased,
            EventKind::AgentApproved,
            EventKind::AgentBreakGlass,
            EventKind::AgentHeld,
            EventKind::WaiverGranted,
            EventKind::AgentReleased,
            EventKind::AgentApproved,
            EventKind::WaiverEnded,
            EventKind::AgentHeld,
            EventKind::WaiverEnded,
            EventKind::AgentReleased,
            EventKind::AgentHeld,
            EventKind::AgentReleased,
            EventKind::AgentApproved,
        ]
    );
    stage.index_equals_database().await;
}

pub(crate) async fn pass(stage: &Stage, days: i64) {
    stage.advance(Duration::days(days));
    end_break_glasses(&stage.app).await.unwrap();
    pass_terms(&stage.app).await.unwrap();
    round(&stage.app, || false).await.unwrap();
}

/// The card that anybody is served; a search, the agent and its card agree on whether there is one.
pub(crate) async fn seen(stage: &Stage, agent: Uuid) -> Option<Vec<u8>> {
    stage.settle().await;
    let card = stage.served(agent).await;
    let found = stage.found_by_anyone().await.contains(&agent);
    let shown = agent_show(&stage.app, &Caller::default(), &agent.to_string()).await;
    assert_eq!((found, shown.is_ok()), (card.is_some(), card.is_some()));
    card
}

/// What happened to the agent, in order.
async fn acts(stage: &Stage, agent: Uuid) -> Vec<EventKind> {
    let page = events_after(&stage.store, 0, 1000).await.unwrap();
    let of_it = page.iter().filter(|event| event.agent_id == Some(agent));
    of_it.map(|event| event.kind().unwrap()).collect()
}
