//! Break-glass: one account approves alone for a day, and the earlier state returns unless others confirm, on both
//! engines.

use a2a_registry_api::{
    AccountPatch, Act, NewAccount, NewGeneration, NewToken, Review, ReviewDecision,
};
use a2a_registry_core::accounts::account_operations::{account_create, account_patch};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Config;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::break_glass::approve_by_break_glass;
use a2a_registry_core::reviews::break_glass_expiry::expire_break_glasses;
use a2a_registry_core::reviews::decisions::{review_approve, review_reject};
use a2a_registry_core::reviews::inbox::load_inbox;
use a2a_registry_core::reviews::recertification::{advance_approval_terms, agent_recertify};
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use time::Duration;
use uuid::Uuid;

use crate::recertification::open_review_of_kind;
use crate::reviews::{create_account, decision};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

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
fn require_two_approvals(config: &mut Config) {
    config.governance.four_eyes = true;
    config.governance.deciders.first = 2;
    config.governance.deciders.critical = 2;
}

struct Curators {
    ann: Caller,
    ben: Caller,
}

impl Curators {
    async fn create(registry: &InProcessRegistry) -> Self {
        Self {
            ann: create_account(registry, "ann", Role::Curator).await,
            ben: create_account(registry, "ben", Role::Curator).await,
        }
    }

    async fn approve(&self, registry: &InProcessRegistry, review: &Review) {
        for one in [&self.ann, &self.ben] {
            review_approve(&registry.app, one, review.id, &decision(review))
                .await
                .unwrap();
        }
    }
}

/// An account that is admin and curator, and has registered nothing.
async fn create_admin_curator(registry: &InProcessRegistry) -> Caller {
    let new = NewAccount {
        name: "boss".into(),
        roles: vec![Role::Admin, Role::Curator],
        groups: Vec::new(),
    };
    account_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    let token = NewToken {
        account: "boss".into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&registry.app, &registry.admin, &token)
        .await
        .unwrap();
    authenticate_token(&registry.app, &token.secret)
        .await
        .unwrap()
}

/// An agent whose card two have approved, and which then has changed critically.
async fn publish_critical_change(
    registry: &InProcessRegistry,
    people: &Curators,
) -> (Uuid, Review) {
    let agent = registry
        .register_with_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let first = registry.find_open_review(agent.id).await.unwrap();
    people.approve(registry, &first).await;
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    assert_eq!(registry.holds(agent.id).await, ["critical_change"]);
    (agent.id, registry.find_open_review(agent.id).await.unwrap())
}

async fn break_glass_on(
    registry: &InProcessRegistry,
    by: &Caller,
    review: &Review,
) -> Result<Review, AppError> {
    approve_by_break_glass(&registry.app, by, review.id, &decision(review)).await
}

async fn advance_hours(registry: &InProcessRegistry, hours: i64) {
    registry.advance(Duration::hours(hours));
    expire_break_glasses(&registry.app).await.unwrap();
    advance_approval_terms(&registry.app).await.unwrap();
}

fn error_kind(result: Result<Review, AppError>) -> ErrorKind {
    result.unwrap_err().kind
}

async fn others_confirm_what_one_account_has_approved(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let boss = create_admin_curator(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    let review = break_glass_on(&registry, &boss, &question).await.unwrap();
    assert_eq!(review.kind, ReviewKind::BreakGlass);
    assert_eq!(
        (review.approvals_needed, &review.digest),
        (2, &question.digest)
    );
    assert!(registry.holds(agent).await.is_empty());
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Other", "1.0"))
    );
    registry.catch_up().await;
    assert!(registry.publicly_found_ids().await.contains(&agent));
    let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.to_string()).await;
    let shown = shown.unwrap();
    let told = shown.break_glass.unwrap();
    assert_eq!((told.by.as_str(), Some(told.until)), ("boss", review.due));
    assert_eq!(shown.decision.rules, ["break_glass"]);
    // Who broke it does not confirm it, nor does who has registered the agent; it waits for the others alone.
    for own in [&boss, &registry.admin] {
        assert_eq!(
            error_kind(review_approve(&registry.app, own, review.id, &decision(&review)).await),
            ErrorKind::Forbidden
        );
        assert_eq!(
            error_kind(review_reject(&registry.app, own, review.id, &decision(&review)).await),
            ErrorKind::Forbidden
        );
    }
    assert!(
        load_inbox(&registry.app, &boss)
            .await
            .unwrap()
            .reviews
            .is_empty()
    );
    assert_eq!(
        load_inbox(&registry.app, &people.ann)
            .await
            .unwrap()
            .reviews
            .len(),
        1
    );
    people.approve(&registry, &review).await;
    advance_hours(&registry, 48).await;
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Other", "1.0"))
    );
    let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.to_string()).await;
    let shown = shown.unwrap();
    assert!(shown.break_glass.is_none());
    assert_eq!(shown.decision.rules, ["person"]);
    // It stands as any decision of persons.
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Echo", "1.0")))
        .await;
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Other", "1.0"))
    );
    registry.assert_index_matches_database().await;
}

async fn without_a_confirmation_the_state_before_returns(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    let before = registry.agent("a.dev").await;
    // Who has registered the agent may break the glass too.
    let review = break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    review_approve(&registry.app, &people.ann, review.id, &decision(&review))
        .await
        .unwrap();
    advance_hours(&registry, 23).await;
    assert!(registry.public_card_bytes(agent).await.is_some());
    registry.advance(Duration::hours(1));
    // The day is over, whether or not anything has noticed it.
    let late = review_approve(&registry.app, &people.ben, review.id, &decision(&review)).await;
    assert_eq!(error_kind(late), ErrorKind::Conflict);
    advance_hours(&registry, 0).await;
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    let after = registry.agent("a.dev").await;
    assert_eq!(after.approved_version, before.approved_version);
    assert_eq!(after.certified_at, before.certified_at);
    // The question is open again, and its content is approved by nothing that happened.
    let again = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    assert_eq!(
        (&again.digest, again.previous.as_ref()),
        (&question.digest, question.previous.as_ref())
    );
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    advance_hours(&registry, 1).await;
    assert_eq!(registry.public_card_bytes(agent).await, None);
    registry.assert_index_matches_database().await;
    people.approve(&registry, &again).await;
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Other", "1.0"))
    );
}

async fn a_first_card_waits_again(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let agent = registry
        .register_with_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let question = registry.find_open_review(agent.id).await.unwrap();
    break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    assert!(registry.public_card_bytes(agent.id).await.is_some());
    advance_hours(&registry, 24).await;
    let after = registry.agent("a.dev").await;
    assert_eq!(
        (
            after.lifecycle.as_str(),
            after.approved_version,
            after.certified_at
        ),
        ("pending", None, None)
    );
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
    let shown = agent_show_checked(&registry.app, &registry.admin, &agent.id.to_string()).await;
    let decision = shown.unwrap().decision;
    assert_eq!(
        (decision.state.as_str(), decision.by.as_str()),
        ("pending", "system")
    );
    assert!(registry.find_open_review(agent.id).await.is_some());
    registry.assert_index_matches_database().await;
}

async fn one_rejection_returns_the_state_before_at_once(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    let review = break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    let rejected = review_reject(&registry.app, &people.ann, review.id, &decision(&review)).await;
    assert_eq!(rejected.unwrap().state, ReviewState::Rejected);
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    assert!(
        open_review_of_kind(&registry, agent, ReviewKind::Admission)
            .await
            .is_some()
    );
    let told = load_inbox(&registry.app, &registry.admin)
        .await
        .unwrap()
        .news;
    assert!(
        told.iter()
            .any(|one| one.kind == "rejected" && one.by == "ann")
    );
    registry.assert_index_matches_database().await;
}

async fn only_a_curating_admin_breaks_the_glass_and_only_where_others_must_approve(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.deciders.critical = 2).await;
    let people = Curators::create(&registry).await;
    let admin = create_account(&registry, "admin2", Role::Admin).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    let question = registry.find_open_review(agent.id).await.unwrap();
    for other in [&people.ann, &admin, &Caller::default()] {
        let refused = error_kind(break_glass_on(&registry, other, &question).await);
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
    let mixed = approve_by_break_glass(&registry.app, &registry.admin, question.id, &stale).await;
    assert_eq!(error_kind(mixed), ErrorKind::Conflict);
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Third", "1.0")))
        .await;
    assert_eq!(
        error_kind(break_glass_on(&registry, &registry.admin, &question).await),
        ErrorKind::Conflict
    );
    let question = registry.find_open_review(agent.id).await.unwrap();
    // With the approval of another one, one's own is all that is needed.
    review_approve(
        &registry.app,
        &people.ann,
        question.id,
        &decision(&question),
    )
    .await
    .unwrap();
    assert_eq!(
        error_kind(break_glass_on(&registry, &registry.admin, &question).await),
        ErrorKind::Conflict
    );
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
}

async fn the_same_content_is_not_served_so_twice(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let boss = create_admin_curator(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    // A newer change does not get its own glass before the first one is decided.
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Third", "1.0")))
        .await;
    let newer = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    assert_eq!(
        error_kind(break_glass_on(&registry, &boss, &newer).await),
        ErrorKind::Conflict
    );
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    advance_hours(&registry, 24).await;
    let again = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    assert_eq!(again.digest, question.digest);
    for one in [&registry.admin, &boss] {
        assert_eq!(
            error_kind(break_glass_on(&registry, one, &again).await),
            ErrorKind::Conflict
        );
    }
    assert_eq!(registry.public_card_bytes(agent).await, None);
}

async fn an_account_that_is_disabled_keeps_no_glass_broken(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let boss = create_admin_curator(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    let review = break_glass_on(&registry, &boss, &question).await.unwrap();
    let patch = AccountPatch {
        disabled: Some(true),
        ..AccountPatch::default()
    };
    account_patch(
        &registry.app,
        &registry.admin,
        "boss",
        &patch,
        &IfMatch::default(),
    )
    .await
    .unwrap();
    advance_hours(&registry, 0).await;
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    let late = review_approve(&registry.app, &people.ann, review.id, &decision(&review)).await;
    assert_eq!(error_kind(late), ErrorKind::Conflict);
    // Who was authenticated before that breaks nothing any more.
    let again = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    assert_eq!(
        error_kind(break_glass_on(&registry, &boss, &again).await),
        ErrorKind::Forbidden
    );
}

async fn who_broke_the_glass_confirms_it_by_no_detour(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.governance.deciders.critical = 2;
        config.governance.recertify_after = Some(30);
    })
    .await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    advance_hours(&registry, 20 * 24).await;
    let open = open_review_of_kind(&registry, agent.id, ReviewKind::Recertification).await;
    assert!(open.is_some());
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    let question = open_review_of_kind(&registry, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    let review = break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    // One may approve served content again; not this one, which is not confirmed.
    let follows = open_review_of_kind(&registry, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    assert_eq!(follows.digest, review.digest);
    let detour = review_approve(
        &registry.app,
        &registry.admin,
        follows.id,
        &decision(&follows),
    )
    .await;
    assert_eq!(error_kind(detour), ErrorKind::Conflict);
    review_reject(
        &registry.app,
        &create_account(&registry, "ann", Role::Curator).await,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
    let follows = open_review_of_kind(&registry, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    assert_eq!(Some(follows.digest), question.previous);
    assert_eq!(registry.holds(agent.id).await, ["critical_change"]);
    let act = Act {
        reason: "again".into(),
        hold: None,
    };
    let twice = agent_recertify(&registry.app, &registry.admin, &agent.id.to_string(), &act).await;
    assert_eq!(error_kind(twice), ErrorKind::Conflict);
}

async fn what_others_approve_meanwhile_stays(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    let review = break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Third", "1.0")))
        .await;
    let newer = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    people.approve(&registry, &newer).await;
    let late = review_approve(&registry.app, &people.ann, review.id, &decision(&review)).await;
    assert!(late.unwrap_err().public.contains("withdrawn"));
    advance_hours(&registry, 25).await;
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Third", "1.0"))
    );
    registry.assert_index_matches_database().await;
    // A new generation of the domain has no approvals, of before the glass neither.
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Fourth", "1.0")))
        .await;
    let question = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    let new = NewGeneration {
        reason: "sold".into(),
    };
    a2a_registry_core::domains::ownership_generation::domain_new_generation(
        &registry.app,
        &registry.admin,
        "a.dev",
        &new,
    )
    .await
    .unwrap();
    advance_hours(&registry, 25).await;
    let after = registry.agent("a.dev").await;
    assert_eq!(
        (after.lifecycle.as_str(), after.approved_version),
        ("pending", None)
    );
    assert_eq!(registry.public_card_bytes(agent).await, None);
}

async fn what_changes_meanwhile_is_decided_against_what_returns(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    // A small change against what is served so is served by rule, and goes with it.
    let small = String::from_utf8(card_bytes("Other", "1.0")).unwrap();
    let small = small.replace("1.0.0", "1.0.1").into_bytes();
    registry
        .crawl_domain("a.dev", OriginResponse::Card(small.clone()))
        .await;
    assert_eq!(registry.public_card_bytes(agent).await, Some(small));
    let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.to_string()).await;
    assert!(shown.unwrap().break_glass.is_some());
    advance_hours(&registry, 24).await;
    assert_eq!(registry.public_card_bytes(agent).await, None);
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    let again = open_review_of_kind(&registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    assert_eq!(
        again.change_class.as_ref().map(|class| class.as_str()),
        Some("critical")
    );
    assert_eq!(again.previous, question.previous);
    registry.assert_index_matches_database().await;
    // Where the origin has returned to what was approved, that is served.
    let review = break_glass_on(&registry, &registry.admin, &again)
        .await
        .unwrap();
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Echo", "1.0")))
        .await;
    review_reject(&registry.app, &people.ann, review.id, &decision(&review))
        .await
        .unwrap();
    assert!(registry.holds(agent).await.is_empty());
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Echo", "1.0"))
    );
    assert_eq!(
        open_review_of_kind(&registry, agent, ReviewKind::Admission).await,
        None
    );
    registry.assert_index_matches_database().await;
}

async fn an_agent_held_for_recertification_is_served_for_a_day(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        require_two_approvals(config);
        config.governance.recertify_after = Some(30);
    })
    .await;
    let people = Curators::create(&registry).await;
    let agent = registry
        .register_with_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let first = registry.find_open_review(agent.id).await.unwrap();
    people.approve(&registry, &first).await;
    advance_hours(&registry, 16 * 24).await;
    advance_hours(&registry, 14 * 24).await;
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    let question = open_review_of_kind(&registry, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    advance_hours(&registry, 23).await;
    assert!(registry.public_card_bytes(agent.id).await.is_some());
    advance_hours(&registry, 1).await;
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    let shown = agent_show_checked(&registry.app, &registry.admin, &agent.id.to_string()).await;
    assert_eq!(shown.unwrap().decision.rules, ["person"]);
    let again = open_review_of_kind(&registry, agent.id, ReviewKind::Recertification)
        .await
        .unwrap();
    people.approve(&registry, &again).await;
    assert!(registry.public_card_bytes(agent.id).await.is_some());
    registry.assert_index_matches_database().await;
}

async fn a_hold_of_a_change_is_not_resumed_alone(url: &str) {
    let registry = InProcessRegistry::with_config(url, require_two_approvals).await;
    let people = Curators::create(&registry).await;
    let admin = create_account(&registry, "admin2", Role::Admin).await;
    let (agent, question) = publish_critical_change(&registry, &people).await;
    let id = agent.to_string();
    let act = |hold| Act {
        reason: "it is fine".into(),
        hold: Some(hold),
    };
    for one in [&people.ann, &registry.admin, &admin] {
        let refused = agent_resume(&registry.app, one, &id, &act(Hold::CriticalChange)).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
    }
    let refused = agent_resume(&registry.app, &people.ann, &id, &act(Hold::CriticalChange)).await;
    assert!(
        refused
            .unwrap_err()
            .public
            .contains(&question.id.to_string())
    );
    // A change that was refused keeps its hold; two approve what is served, and with that lift it.
    review_reject(
        &registry.app,
        &people.ann,
        question.id,
        &decision(&question),
    )
    .await
    .unwrap();
    let refused = agent_resume(&registry.app, &people.ann, &id, &act(Hold::CriticalChange)).await;
    assert!(refused.unwrap_err().public.contains("agent recertify"));
    let act = Act {
        reason: "serve what was approved".into(),
        hold: None,
    };
    let review = agent_recertify(&registry.app, &people.ann, &id, &act)
        .await
        .unwrap();
    assert_eq!(review.approvals_needed, 2);
    people.approve(&registry, &review).await;
    assert!(registry.holds(agent).await.is_empty());
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Echo", "1.0"))
    );
    registry.assert_index_matches_database().await;
}

/// Two processes end the same break-glass, while others confirm it: one of the three does.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_and_a_late_confirmation_end_it_once() {
    let database = Database::postgres().await;
    let registry = InProcessRegistry::with_config(database.url(), |config| {
        config.governance.deciders.critical = 2;
        config.governance.deciders.first = 1;
    })
    .await;
    let people = Curators::create(&registry).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    let question = registry.find_open_review(agent.id).await.unwrap();
    let review = break_glass_on(&registry, &registry.admin, &question)
        .await
        .unwrap();
    review_approve(&registry.app, &people.ann, review.id, &decision(&review))
        .await
        .unwrap();
    let other = registry.second_process().await;
    registry.advance(Duration::hours(24));
    let last = decision(&review);
    let (one, two, late) = futures::join!(
        expire_break_glasses(&registry.app),
        expire_break_glasses(&other.app),
        review_approve(&registry.app, &people.ben, review.id, &last)
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(error_kind(late), ErrorKind::Conflict);
    assert_eq!(registry.holds(agent.id).await, ["critical_change"]);
    let admissions =
        crate::recertification::reviews_of_kind(&registry, agent.id, ReviewKind::Admission).await;
    let open = admissions
        .iter()
        .filter(|one| one.state == ReviewState::Open);
    assert_eq!(open.count(), 1);
}
