//! Break-glass: one account approves alone for a day, and others confirm it or what was before returns, on both engines.

use a2a_registry_api::{
    AccountPatch, Act, NewAccount, NewGeneration, NewToken, Review, ReviewDecision,
};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::people::{account_create, account_patch};
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Config;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::precondition::Precondition;
use a2a_registry_core::reviews::break_glass::break_glass;
use a2a_registry_core::reviews::deciding::{review_approve, review_reject};
use a2a_registry_core::reviews::glass_restored::end_break_glasses;
use a2a_registry_core::reviews::recertification::{agent_recertify, pass_terms};
use a2a_registry_core::reviews::resuming::agent_resume;
use a2a_registry_core::reviews::waiting::waiting;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use time::Duration;
use uuid::Uuid;

use crate::recertification::open_of;
use crate::reviews::{account, decision};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card};

both_databases!(
    others_confirm_what_one_account_has_approved,
    without_a_confirmation_the_state_before_returns,
    a_first_card_waits_again,
    one_rejection_returns_the_state_before_at_once,
    only_a_curating_admin_breaks_the_glass_and_only_where_others_must_approve,
    the_same_content_is_not_served_so_twice,
    an_account_that_is_disabled_keeps_no_glass_broken,
    who_broke_the_glass_confirms_it_by_no_detour,
    what_others_approve_meanwhile_stays,
    what_changes_meanwhile_is_decided_against_what_returns,
    an_agent_held_for_recertification_is_served_for_a_day,
    a_hold_of_a_change_is_not_resumed_alone
);

/// Two must approve a first card or a critical change, and none of them its registrant.
fn strict(config: &mut Config) {
    config.governance.four_eyes = true;
    config.governance.deciders.first = 2;
    config.governance.deciders.critical = 2;
}

struct People {
    ann: Caller,
    ben: Caller,
}

impl People {
    async fn on(stage: &Stage) -> Self {
        Self {
            ann: account(stage, "ann", Role::Curator).await,
            ben: account(stage, "ben", Role::Curator).await,
        }
    }

    async fn approve(&self, stage: &Stage, review: &Review) {
        for one in [&self.ann, &self.ben] {
            review_approve(&stage.app, one, review.id, &decision(review))
                .await
                .unwrap();
        }
    }
}

/// An account that is admin and curator, and has registered nothing.
async fn boss(stage: &Stage) -> Caller {
    let new = NewAccount {
        name: "boss".into(),
        roles: vec![Role::Admin, Role::Curator],
        groups: Vec::new(),
    };
    account_create(&stage.app, &stage.admin, &new)
        .await
        .unwrap();
    let token = NewToken {
        account: "boss".into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&stage.app, &stage.admin, &token)
        .await
        .unwrap();
    authenticate(&stage.app, &token.secret).await.unwrap()
}

/// An agent whose card two have approved, and which then has changed critically.
async fn changed(stage: &Stage, people: &People) -> (Uuid, Review) {
    let agent = stage.publish("a.dev", &card("Echo", "1.0")).await;
    let first = stage.open_review(agent.id).await.unwrap();
    people.approve(stage, &first).await;
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    assert_eq!(stage.holds(agent.id).await, ["critical_change"]);
    (agent.id, stage.open_review(agent.id).await.unwrap())
}

async fn broken(stage: &Stage, by: &Caller, review: &Review) -> Result<Review, AppError> {
    break_glass(&stage.app, by, review.id, &decision(review)).await
}

async fn pass(stage: &Stage, hours: i64) {
    stage.advance(Duration::hours(hours));
    end_break_glasses(&stage.app).await.unwrap();
    pass_terms(&stage.app).await.unwrap();
}

fn kind(result: Result<Review, AppError>) -> ErrorKind {
    result.unwrap_err().kind
}

async fn others_confirm_what_one_account_has_approved(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let boss = boss(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    let review = broken(&stage, &boss, &question).await.unwrap();
    assert_eq!(review.kind, ReviewKind::BreakGlass);
    assert_eq!(
        (review.approvals_needed, &review.digest),
        (2, &question.digest)
    );
    assert!(stage.holds(agent).await.is_empty());
    assert_eq!(stage.served(agent).await, Some(card("Other", "1.0")));
    stage.settle().await;
    assert!(stage.found_by_anyone().await.contains(&agent));
    let shown = agent_show(&stage.app, &Caller::default(), &agent.to_string()).await;
    let shown = shown.unwrap();
    let told = shown.break_glass.unwrap();
    assert_eq!((told.by.as_str(), Some(told.until)), ("boss", review.due));
    assert_eq!(shown.decision.rules, ["break_glass"]);
    // Who broke it does not confirm it, nor does who has registered the agent; it waits for the others alone.
    for own in [&boss, &stage.admin] {
        assert_eq!(
            kind(review_approve(&stage.app, own, review.id, &decision(&review)).await),
            ErrorKind::Forbidden
        );
        assert_eq!(
            kind(review_reject(&stage.app, own, review.id, &decision(&review)).await),
            ErrorKind::Forbidden
        );
    }
    assert!(waiting(&stage.app, &boss).await.unwrap().reviews.is_empty());
    assert_eq!(
        waiting(&stage.app, &people.ann)
            .await
            .unwrap()
            .reviews
            .len(),
        1
    );
    people.approve(&stage, &review).await;
    pass(&stage, 48).await;
    assert_eq!(stage.served(agent).await, Some(card("Other", "1.0")));
    let shown = agent_show(&stage.app, &Caller::default(), &agent.to_string()).await;
    let shown = shown.unwrap();
    assert!(shown.break_glass.is_none());
    assert_eq!(shown.decision.rules, ["person"]);
    // It stands as any decision of persons.
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Echo", "1.0")))
        .await;
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    assert_eq!(stage.served(agent).await, Some(card("Other", "1.0")));
    stage.index_equals_database().await;
}

async fn without_a_confirmation_the_state_before_returns(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    let before = stage.agent("a.dev").await;
    // Who has registered the agent may break the glass too.
    let review = broken(&stage, &stage.admin, &question).await.unwrap();
    review_approve(&stage.app, &people.ann, review.id, &decision(&review))
        .await
        .unwrap();
    pass(&stage, 23).await;
    assert!(stage.served(agent).await.is_some());
    stage.advance(Duration::hours(1));
    // The day is over, whether or not anything has noticed it.
    let late = review_approve(&stage.app, &people.ben, review.id, &decision(&review)).await;
    assert_eq!(kind(late), ErrorKind::Conflict);
    pass(&stage, 0).await;
    assert_eq!(stage.holds(agent).await, ["critical_change"]);
    assert_eq!(stage.served(agent).await, None);
    let after = stage.agent("a.dev").await;
    assert_eq!(after.approved_version, before.approved_version);
    assert_eq!(after.certified_at, before.certified_at);
    // The question is open again, and its content is approved by nothing that happened.
    let again = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    assert_eq!(
        (&again.digest, again.previous.as_ref()),
        (&question.digest, question.previous.as_ref())
    );
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    pass(&stage, 1).await;
    assert_eq!(stage.served(agent).await, None);
    stage.index_equals_database().await;
    people.approve(&stage, &again).await;
    assert_eq!(stage.served(agent).await, Some(card("Other", "1.0")));
}

async fn a_first_card_waits_again(url: &str) {
    let stage = Stage::with(url, strict).await;
    let agent = stage.publish("a.dev", &card("Echo", "1.0")).await;
    let question = stage.open_review(agent.id).await.unwrap();
    broken(&stage, &stage.admin, &question).await.unwrap();
    assert!(stage.served(agent.id).await.is_some());
    pass(&stage, 24).await;
    let after = stage.agent("a.dev").await;
    assert_eq!(
        (
            after.lifecycle.as_str(),
            after.approved_version,
            after.certified_at
        ),
        ("pending", None, None)
    );
    assert_eq!(stage.served(agent.id).await, None);
    let shown = agent_show(&stage.app, &stage.admin, &agent.id.to_string()).await;
    let decision = shown.unwrap().decision;
    assert_eq!(
        (decision.state.as_str(), decision.by.as_str()),
        ("pending", "system")
    );
    assert!(stage.open_review(agent.id).await.is_some());
    stage.index_equals_database().await;
}

async fn one_rejection_returns_the_state_before_at_once(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    let review = broken(&stage, &stage.admin, &question).await.unwrap();
    let rejected = review_reject(&stage.app, &people.ann, review.id, &decision(&review)).await;
    assert_eq!(rejected.unwrap().state, ReviewState::Rejected);
    assert_eq!(stage.holds(agent).await, ["critical_change"]);
    assert_eq!(stage.served(agent).await, None);
    assert!(
        open_of(&stage, agent, ReviewKind::Admission)
            .await
            .is_some()
    );
    let told = waiting(&stage.app, &stage.admin).await.unwrap().news;
    assert!(
        told.iter()
            .any(|one| one.kind == "rejected" && one.by == "ann")
    );
    stage.index_equals_database().await;
}

async fn only_a_curating_admin_breaks_the_glass_and_only_where_others_must_approve(url: &str) {
    let stage = Stage::with(url, |config| config.governance.deciders.critical = 2).await;
    let people = People::on(&stage).await;
    let admin = account(&stage, "admin2", Role::Admin).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    let question = stage.open_review(agent.id).await.unwrap();
    for other in [&people.ann, &admin, &Caller::default()] {
        let refused = kind(broken(&stage, other, &question).await);
        assert!(matches!(
            refused,
            ErrorKind::Forbidden | ErrorKind::Unauthenticated
        ));
    }
    // The content that was looked at, and no other.
    let stale = ReviewDecision {
        digest: question.previous.clone().unwrap(),
        reason: "either".into(),
    };
    let mixed = break_glass(&stage.app, &stage.admin, question.id, &stale).await;
    assert_eq!(kind(mixed), ErrorKind::Conflict);
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Third", "1.0")))
        .await;
    assert_eq!(
        kind(broken(&stage, &stage.admin, &question).await),
        ErrorKind::Conflict
    );
    let question = stage.open_review(agent.id).await.unwrap();
    // With the approval of another one, one's own is all that is needed.
    review_approve(&stage.app, &people.ann, question.id, &decision(&question))
        .await
        .unwrap();
    assert_eq!(
        kind(broken(&stage, &stage.admin, &question).await),
        ErrorKind::Conflict
    );
    assert_eq!(stage.served(agent.id).await, None);
}

async fn the_same_content_is_not_served_so_twice(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let boss = boss(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    broken(&stage, &stage.admin, &question).await.unwrap();
    // A newer change does not get its own glass before the first one is decided.
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Third", "1.0")))
        .await;
    let newer = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    assert_eq!(
        kind(broken(&stage, &boss, &newer).await),
        ErrorKind::Conflict
    );
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    pass(&stage, 24).await;
    let again = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    assert_eq!(again.digest, question.digest);
    for one in [&stage.admin, &boss] {
        assert_eq!(kind(broken(&stage, one, &again).await), ErrorKind::Conflict);
    }
    assert_eq!(stage.served(agent).await, None);
}

async fn an_account_that_is_disabled_keeps_no_glass_broken(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let boss = boss(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    let review = broken(&stage, &boss, &question).await.unwrap();
    let patch = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(
        &stage.app,
        &stage.admin,
        "boss",
        &patch,
        &Precondition::default(),
    )
    .await
    .unwrap();
    pass(&stage, 0).await;
    assert_eq!(stage.holds(agent).await, ["critical_change"]);
    assert_eq!(stage.served(agent).await, None);
    let late = review_approve(&stage.app, &people.ann, review.id, &decision(&review)).await;
    assert_eq!(kind(late), ErrorKind::Conflict);
    // Who was authenticated before that breaks nothing any more.
    let again = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    assert_eq!(
        kind(broken(&stage, &boss, &again).await),
        ErrorKind::Forbidden
    );
}

async fn who_broke_the_glass_confirms_it_by_no_detour(url: &str) {
    let stage = Stage::with(url, |config| {
        config.governance.deciders.critical = 2;
        config.governance.recertify_after = Some(30);
    })
    .await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    pass(&stage, 20 * 24).await;
    let open = open_of(&stage, agent.id, ReviewKind::Recertification).await;
    assert!(open.is_some());
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    let question = open_of(&stage, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    let review = broken(&stage, &stage.admin, &question).await.unwrap();
    // One may approve served content again; not this one, which is not confirmed.
    let follows = open_of(&stage, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    assert_eq!(follows.digest, review.digest);
    let detour = review_approve(&stage.app, &stage.admin, follows.id, &decision(&follows)).await;
    assert_eq!(kind(detour), ErrorKind::Conflict);
    review_reject(
        &stage.app,
        &account(&stage, "ann", Role::Curator).await,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
    let follows = open_of(&stage, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    assert_eq!(Some(follows.digest), question.previous);
    assert_eq!(stage.holds(agent.id).await, ["critical_change"]);
    let act = Act {
        reason: "again".into(),
        hold: None,
    };
    let twice = agent_recertify(&stage.app, &stage.admin, &agent.id.to_string(), &act).await;
    assert_eq!(kind(twice), ErrorKind::Conflict);
}

async fn what_others_approve_meanwhile_stays(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    let review = broken(&stage, &stage.admin, &question).await.unwrap();
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Third", "1.0")))
        .await;
    let newer = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    people.approve(&stage, &newer).await;
    let late = review_approve(&stage.app, &people.ann, review.id, &decision(&review)).await;
    assert!(late.unwrap_err().public.contains("withdrawn"));
    pass(&stage, 25).await;
    assert_eq!(stage.served(agent).await, Some(card("Third", "1.0")));
    stage.index_equals_database().await;
    // A new generation of the domain has no approvals, of before the glass neither.
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Fourth", "1.0")))
        .await;
    let question = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    broken(&stage, &stage.admin, &question).await.unwrap();
    let new = NewGeneration {
        reason: "sold".into(),
    };
    a2a_registry_core::domains::generation::domain_new_generation(
        &stage.app,
        &stage.admin,
        "a.dev",
        &new,
    )
    .await
    .unwrap();
    pass(&stage, 25).await;
    let after = stage.agent("a.dev").await;
    assert_eq!(
        (after.lifecycle.as_str(), after.approved_version),
        ("pending", None)
    );
    assert_eq!(stage.served(agent).await, None);
}

async fn what_changes_meanwhile_is_decided_against_what_returns(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let (agent, question) = changed(&stage, &people).await;
    broken(&stage, &stage.admin, &question).await.unwrap();
    // A small change against what is served so is served by rule, and goes with it.
    let small = String::from_utf8(card("Other", "1.0")).unwrap();
    let small = small.replace("1.0.0", "1.0.1").into_bytes();
    stage
        .crawl("a.dev", OriginAnswer::Card(small.clone()))
        .await;
    assert_eq!(stage.served(agent).await, Some(small));
    let shown = agent_show(&stage.app, &Caller::default(), &agent.to_string()).await;
    assert!(shown.unwrap().break_glass.is_some());
    pass(&stage, 24).await;
    assert_eq!(stage.served(agent).await, None);
    assert_eq!(stage.holds(agent).await, ["critical_change"]);
    let again = open_of(&stage, agent, ReviewKind::Admission).await.unwrap();
    assert_eq!(
        again.change_class.as_ref().map(|class| class.as_str()),
        Some("critical")
    );
    assert_eq!(again.previous, question.previous);
    stage.index_equals_database().await;
    // Where the origin has returned to what was approved, that is served.
    let review = broken(&stage, &stage.admin, &again).await.unwrap();
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Echo", "1.0")))
        .await;
    review_reject(&stage.app, &people.ann, review.id, &decision(&review))
        .await
        .unwrap();
    assert!(stage.holds(agent).await.is_empty());
    assert_eq!(stage.served(agent).await, Some(card("Echo", "1.0")));
    assert_eq!(open_of(&stage, agent, ReviewKind::Admission).await, None);
    stage.index_equals_database().await;
}

async fn an_agent_held_for_recertification_is_served_for_a_day(url: &str) {
    let stage = Stage::with(url, |config| {
        strict(config);
        config.governance.recertify_after = Some(30);
    })
    .await;
    let people = People::on(&stage).await;
    let agent = stage.publish("a.dev", &card("Echo", "1.0")).await;
    let first = stage.open_review(agent.id).await.unwrap();
    people.approve(&stage, &first).await;
    pass(&stage, 16 * 24).await;
    pass(&stage, 14 * 24).await;
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    let question = open_of(&stage, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    broken(&stage, &stage.admin, &question).await.unwrap();
    pass(&stage, 23).await;
    assert!(stage.served(agent.id).await.is_some());
    pass(&stage, 1).await;
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    let shown = agent_show(&stage.app, &stage.admin, &agent.id.to_string()).await;
    assert_eq!(shown.unwrap().decision.rules, ["person"]);
    let again = open_of(&stage, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    people.approve(&stage, &again).await;
    assert!(stage.served(agent.id).await.is_some());
    stage.index_equals_database().await;
}

async fn a_hold_of_a_change_is_not_resumed_alone(url: &str) {
    let stage = Stage::with(url, strict).await;
    let people = People::on(&stage).await;
    let admin = account(&stage, "admin2", Role::Admin).await;
    let (agent, question) = changed(&stage, &people).await;
    let id = agent.to_string();
    let act = |hold| Act {
        reason: "it is fine".into(),
        hold: Some(hold),
    };
    for one in [&people.ann, &stage.admin, &admin] {
        let refused = agent_resume(&stage.app, one, &id, &act(Hold::CriticalChange)).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
    }
    let refused = agent_resume(&stage.app, &people.ann, &id, &act(Hold::CriticalChange)).await;
    assert!(
        refused
            .unwrap_err()
            .public
            .contains(&question.id.to_string())
    );
    // A change that was refused keeps its hold; two approve what is served, and with that lift it.
    review_reject(&stage.app, &people.ann, question.id, &decision(&question))
        .await
        .unwrap();
    let refused = agent_resume(&stage.app, &people.ann, &id, &act(Hold::CriticalChange)).await;
    assert!(refused.unwrap_err().public.contains("agent recertify"));
    let act = Act {
        reason: "serve what was approved".into(),
        hold: None,
    };
    let review = agent_recertify(&stage.app, &people.ann, &id, &act)
        .await
        .unwrap();
    assert_eq!(review.approvals_needed, 2);
    people.approve(&stage, &review).await;
    assert!(stage.holds(agent).await.is_empty());
    assert_eq!(stage.served(agent).await, Some(card("Echo", "1.0")));
    stage.index_equals_database().await;
}

/// Two processes end the same break-glass, while others confirm it: one of the three does.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_and_a_late_confirmation_end_it_once() {
    let database = Database::postgres().await;
    let stage = Stage::with(database.url(), |config| {
        config.governance.deciders.critical = 2;
        config.governance.deciders.first = 1;
    })
    .await;
    let people = People::on(&stage).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    let question = stage.open_review(agent.id).await.unwrap();
    let review = broken(&stage, &stage.admin, &question).await.unwrap();
    review_approve(&stage.app, &people.ann, review.id, &decision(&review))
        .await
        .unwrap();
    let other = stage.beside().await;
    stage.advance(Duration::hours(24));
    let last = decision(&review);
    let (one, two, late) = futures::join!(
        end_break_glasses(&stage.app),
        end_break_glasses(&other.app),
        review_approve(&stage.app, &people.ben, review.id, &last)
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(kind(late), ErrorKind::Conflict);
    assert_eq!(stage.holds(agent.id).await, ["critical_change"]);
    let admissions = crate::recertification::all_of(&stage, agent.id, ReviewKind::Admission).await;
    let open = admissions
        .iter()
        .filter(|one| one.state == ReviewState::Open);
    assert_eq!(open.count(), 1);
}
