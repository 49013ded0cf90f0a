//! Recertification: an approval ends, and the content is approved again or the agent is put on hold, on both engines
//! (docs/govern/recertification.md).

use a2a_registry_api::{Act, Review, ReviewDecision};
use a2a_registry_core::config::Config;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::decisions::{review_approve, review_reject};
use a2a_registry_core::reviews::inbox::load_inbox;
use a2a_registry_core::reviews::list::{ReviewListFilter, review_list};
use a2a_registry_core::reviews::recertification::{advance_approval_terms, agent_recertify};
use a2a_registry_core::reviews::resume::agent_resume;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use time::Duration;
use uuid::Uuid;

use crate::reviews::{create_account, decision};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::database::Database;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

both_databases!(
    an_approval_that_nobody_gives_again_ends,
    an_approval_given_again_early_begins_a_new_term,
    a_term_that_is_set_later_gives_notice_first,
    small_changes_lengthen_no_term,
    an_approved_change_begins_a_new_term,
    what_a_person_approved_long_ago_is_not_approved_any_more,
    refusing_holds_at_once_and_can_be_taken_up_again,
    under_four_eyes_nobody_gives_their_own_approval_again,
    another_digest_gives_no_approval_again,
    more_agents_than_one_batch_are_passed,
    one_agent_whose_term_cannot_pass_stops_no_other
);

const TERM: i64 = 30;

fn set_month_term(config: &mut Config) {
    config.governance.recertify_after = Some(30);
}

/// The open review of a kind about an agent.
pub(crate) async fn open_review_of_kind(
    registry: &InProcessRegistry,
    agent: Uuid,
    kind: ReviewKind,
) -> Option<Review> {
    let mut open = reviews_of_kind(registry, agent, kind).await;
    open.retain(|review| review.state == ReviewState::Open);
    assert!(open.len() <= 1, "{open:?}");
    open.pop()
}

/// Every review of a kind about an agent, oldest first.
pub(crate) async fn reviews_of_kind(
    registry: &InProcessRegistry,
    agent: Uuid,
    kind: ReviewKind,
) -> Vec<Review> {
    let wanted = ReviewListFilter {
        kind: Some(kind),
        ..ReviewListFilter::default()
    };
    let page = PageRequest {
        page_size: Some(100),
        ..PageRequest::default()
    };
    let list = review_list(&registry.app, &registry.admin, &wanted, &page).await;
    let mut all = list.unwrap().reviews;
    all.retain(|review| review.agent == agent);
    all
}

async fn recertification(registry: &InProcessRegistry, agent: Uuid) -> Option<Review> {
    open_review_of_kind(registry, agent, ReviewKind::Recertification).await
}

async fn advance_days(registry: &InProcessRegistry, days: i64) {
    registry.advance(Duration::days(days));
    advance_approval_terms(&registry.app).await.unwrap();
}

async fn approval_end(registry: &InProcessRegistry, agent: Uuid) -> Timestamp {
    let shown = agent_show_checked(&registry.app, &registry.admin, &agent.to_string()).await;
    shown.unwrap().decision.expires_at.unwrap()
}

fn with_version(version: &str) -> Vec<u8> {
    let text = String::from_utf8(card_bytes("Echo", "1.0")).unwrap();
    text.replace("1.0.0", version).into_bytes()
}

async fn an_approval_that_nobody_gives_again_ends(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let end = Timestamp::from(registry.now() + Duration::days(TERM));
    assert_eq!(approval_end(&registry, agent.id).await, end);
    advance_days(&registry, TERM - 15).await;
    assert!(recertification(&registry, agent.id).await.is_none());
    advance_days(&registry, 1).await;
    let review = recertification(&registry, agent.id).await.unwrap();
    assert_eq!(
        (review.due, review.submitter.as_deref()),
        (Some(end), Some("admin"))
    );
    assert!(registry.public_card_bytes(agent.id).await.is_some());
    advance_days(&registry, 13).await;
    assert!(registry.holds(agent.id).await.is_empty());
    advance_days(&registry, 1).await;
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
    registry.assert_index_matches_database().await;
    // Passing again changes nothing.
    advance_days(&registry, 1).await;
    let all = reviews_of_kind(&registry, agent.id, ReviewKind::Recertification).await;
    assert_eq!(all.len(), 1);
    // The hold is lifted by nothing but the approval.
    let act = Act {
        reason: "please".into(),
        hold: Some("recertify".parse().unwrap()),
    };
    let resumed = agent_resume(&registry.app, &registry.admin, &agent.id.to_string(), &act).await;
    assert_eq!(resumed.unwrap_err().kind, ErrorKind::Conflict);
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Echo", "1.0")))
        .await;
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    let approved = review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await;
    assert_eq!(approved.unwrap().state, ReviewState::Approved);
    assert!(registry.holds(agent.id).await.is_empty());
    assert!(registry.public_card_bytes(agent.id).await.is_some());
    let end = Timestamp::from(registry.now() + Duration::days(TERM));
    assert_eq!(approval_end(&registry, agent.id).await, end);
    registry.assert_index_matches_database().await;
}

async fn an_approval_given_again_early_begins_a_new_term(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    advance_days(&registry, TERM - 10).await;
    let review = recertification(&registry, agent.id).await.unwrap();
    review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
    let end = Timestamp::from(registry.now() + Duration::days(TERM));
    assert_eq!(approval_end(&registry, agent.id).await, end);
    advance_days(&registry, 12).await;
    assert!(recertification(&registry, agent.id).await.is_none());
    assert!(registry.public_card_bytes(agent.id).await.is_some());
}

async fn a_term_that_is_set_later_gives_notice_first(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    advance_days(&registry, 400).await;
    let shown = agent_show_checked(&registry.app, &registry.admin, &agent.id.to_string()).await;
    assert_eq!(shown.unwrap().decision.expires_at, None);
    let registry = registry.restart(set_month_term).await;
    advance_days(&registry, 0).await;
    assert!(recertification(&registry, agent.id).await.is_some());
    let end = Timestamp::from(registry.now() + Duration::days(14));
    assert_eq!(approval_end(&registry, agent.id).await, end);
    advance_days(&registry, 13).await;
    assert!(registry.holds(agent.id).await.is_empty());
    // Switched off again, nothing more ends; what is asked stays asked.
    let registry = registry
        .restart(|config| config.governance.recertify_after = None)
        .await;
    advance_days(&registry, 100).await;
    assert!(registry.holds(agent.id).await.is_empty());
    let review = recertification(&registry, agent.id).await.unwrap();
    review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
}

async fn small_changes_lengthen_no_term(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let agent = registry
        .register_approved_card("a.dev", &with_version("1.0.0"))
        .await;
    let mut end = approval_end(&registry, agent.id).await;
    for (number, days) in [10, 6, 9].into_iter().enumerate() {
        advance_days(&registry, days).await;
        // Announced two minutes late, it ends that much later, so that the notice is long enough.
        let announced = approval_end(&registry, agent.id).await;
        assert!(announced >= end && announced.0 - end.0 <= 2 * MINUTE);
        end = announced;
        let newer = with_version(&format!("1.0.{}", number + 1));
        registry
            .crawl_domain("a.dev", OriginResponse::Card(newer.clone()))
            .await;
        assert_eq!(registry.public_card_bytes(agent.id).await, Some(newer));
        assert_eq!(approval_end(&registry, agent.id).await, end);
    }
    // The review is about what is served, whoever had approved the older content.
    let reviews = reviews_of_kind(&registry, agent.id, ReviewKind::Recertification).await;
    let states: Vec<ReviewState> = reviews
        .iter()
        .filter_map(|one| one.state.known_value())
        .collect();
    assert_eq!(
        states,
        [
            ReviewState::Superseded,
            ReviewState::Superseded,
            ReviewState::Open
        ]
    );
    let served = registry.versions(agent.id).await.pop().unwrap().digest;
    assert_eq!((&reviews[2].digest, reviews[2].due), (&served, Some(end)));
    advance_days(&registry, 5).await;
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    let hidden = with_version("2.0.0");
    registry
        .crawl_domain("a.dev", OriginResponse::Card(hidden))
        .await;
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    let old = review_approve(
        &registry.app,
        &registry.admin,
        reviews[2].id,
        &decision(&reviews[2]),
    )
    .await;
    assert_eq!(old.unwrap_err().kind, ErrorKind::Conflict);
    let review = recertification(&registry, agent.id).await.unwrap();
    review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
    assert!(registry.public_card_bytes(agent.id).await.is_some());
}

async fn an_approved_change_begins_a_new_term(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    advance_days(&registry, TERM - 5).await;
    let open = recertification(&registry, agent.id).await.unwrap();
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Echo", "2.0")))
        .await;
    let change = open_review_of_kind(&registry, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    assert!(
        recertification(&registry, agent.id).await.is_some(),
        "beside the change"
    );
    review_approve(
        &registry.app,
        &registry.admin,
        change.id,
        &decision(&change),
    )
    .await
    .unwrap();
    let end = Timestamp::from(registry.now() + Duration::days(TERM));
    assert_eq!(approval_end(&registry, agent.id).await, end);
    let late = review_approve(&registry.app, &registry.admin, open.id, &decision(&open)).await;
    assert!(late.unwrap_err().public.contains("withdrawn"));
    advance_days(&registry, 10).await;
    assert!(registry.public_card_bytes(agent.id).await.is_some());
}

async fn what_a_person_approved_long_ago_is_not_approved_any_more(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let (old, new) = (card_bytes("Echo", "1.0"), card_bytes("Echo", "2.0"));
    let agent = registry.register_approved_card("a.dev", &old).await;
    advance_days(&registry, 20).await;
    registry
        .crawl_domain("a.dev", OriginResponse::Card(new.clone()))
        .await;
    let change = open_review_of_kind(&registry, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    review_approve(
        &registry.app,
        &registry.admin,
        change.id,
        &decision(&change),
    )
    .await
    .unwrap();
    let end = approval_end(&registry, agent.id).await;
    // The older decision still holds, and begins no term.
    registry
        .crawl_domain("a.dev", OriginResponse::Card(old.clone()))
        .await;
    assert_eq!(
        registry.public_card_bytes(agent.id).await.as_ref(),
        Some(&old)
    );
    assert_eq!(approval_end(&registry, agent.id).await, end);
    registry
        .crawl_domain("a.dev", OriginResponse::Card(new.clone()))
        .await;
    advance_days(&registry, 11).await;
    registry
        .crawl_domain("a.dev", OriginResponse::Card(old))
        .await;
    assert_eq!(registry.public_card_bytes(agent.id).await, Some(new));
    assert!(
        open_review_of_kind(&registry, agent.id, ReviewKind::Admission)
            .await
            .is_some()
    );
}

async fn refusing_holds_at_once_and_can_be_taken_up_again(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    advance_days(&registry, TERM - 10).await;
    let review = recertification(&registry, agent.id).await.unwrap();
    review_reject(&registry.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
    let told = load_inbox(&registry.app, &registry.admin)
        .await
        .unwrap()
        .news;
    assert!(
        told.iter()
            .any(|one| one.kind == "rejected" && one.by == "ann")
    );
    // Nobody is asked again by time alone.
    advance_days(&registry, 40).await;
    assert!(recertification(&registry, agent.id).await.is_none());
    let act = Act {
        reason: "the owner has explained it".into(),
        hold: None,
    };
    let id = agent.id.to_string();
    let stranger = create_account(&registry, "stranger", Role::Publisher).await;
    let refused = agent_recertify(&registry.app, &stranger, &id, &act).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
    let again = agent_recertify(&registry.app, &ann, &id, &act)
        .await
        .unwrap();
    let twice = agent_recertify(&registry.app, &ann, &id, &act).await;
    assert_eq!(twice.unwrap_err().kind, ErrorKind::Conflict);
    review_approve(&registry.app, &ann, again.id, &decision(&again))
        .await
        .unwrap();
    assert!(registry.public_card_bytes(agent.id).await.is_some());
    registry.assert_index_matches_database().await;
}

async fn under_four_eyes_nobody_gives_their_own_approval_again(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        config.governance.four_eyes = true;
        set_month_term(config);
    })
    .await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let agent = registry
        .register_with_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let first = registry.find_open_review(agent.id).await.unwrap();
    review_approve(&registry.app, &ann, first.id, &decision(&first))
        .await
        .unwrap();
    advance_days(&registry, TERM).await;
    let review = recertification(&registry, agent.id).await.unwrap();
    // The admin, a curator too, has registered the agent.
    for own in [
        review_approve(
            &registry.app,
            &registry.admin,
            review.id,
            &decision(&review),
        )
        .await,
        review_reject(
            &registry.app,
            &registry.admin,
            review.id,
            &decision(&review),
        )
        .await,
    ] {
        assert_eq!(own.unwrap_err().kind, ErrorKind::Forbidden);
    }
    let by_ann = review_approve(&registry.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(by_ann.unwrap().state, ReviewState::Approved);
}

async fn another_digest_gives_no_approval_again(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    advance_days(&registry, TERM - 5).await;
    let review = recertification(&registry, agent.id).await.unwrap();
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Other", "1.0")))
        .await;
    let other = open_review_of_kind(&registry, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    let wrong = ReviewDecision {
        digest: other.digest,
        reason: "either".into(),
    };
    let mixed = review_approve(&registry.app, &registry.admin, review.id, &wrong).await;
    assert_eq!(mixed.unwrap_err().kind, ErrorKind::Conflict);
    // The served content may be approved again while the change waits, which keeps its hold.
    review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
    assert_eq!(registry.holds(agent.id).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent.id).await, None);
}

async fn more_agents_than_one_batch_are_passed(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    for number in 0..101 {
        registry.register_domain(&format!("a{number}.dev")).await;
    }
    registry
        .run_due_visits(|_| OriginResponse::Card(card_bytes("Echo", "1.0")))
        .await;
    let agents = registry.agents().await;
    for agent in &agents {
        registry.approve_open_review(agent.id).await;
    }
    advance_days(&registry, TERM - 14).await;
    advance_days(&registry, 14).await;
    for agent in &agents {
        assert_eq!(registry.holds(agent.id).await, ["recertify"]);
    }
}

async fn one_agent_whose_term_cannot_pass_stops_no_other(url: &str) {
    let registry = InProcessRegistry::with_config(url, set_month_term).await;
    let stuck = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let fine = registry
        .register_approved_card("b.dev", &card_bytes("Echo", "1.0"))
        .await;
    registry.advance(Duration::days(TERM - 14));
    registry
        .reject_row_updates("agents", "domain", "a.dev")
        .await;
    assert!(advance_approval_terms(&registry.app).await.is_err());
    assert!(recertification(&registry, stuck.id).await.is_none());
    assert!(recertification(&registry, fine.id).await.is_some());
    registry.allow_row_updates("agents").await;
    advance_approval_terms(&registry.app).await.unwrap();
    assert!(recertification(&registry, stuck.id).await.is_some());
}

/// Two processes let the same approvals end at the same time: each agent is put on hold once.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_end_an_approval_once() {
    let database = Database::postgres().await;
    let registry = InProcessRegistry::with_config(database.url(), set_month_term).await;
    let mut agents = Vec::new();
    for number in 0..20 {
        let domain = format!("a{number}.dev");
        agents.push(
            registry
                .register_approved_card(&domain, &card_bytes("Echo", "1.0"))
                .await
                .id,
        );
    }
    let other = registry.second_process().await;
    for days in [TERM - 14, 14] {
        registry.advance(Duration::days(days));
        let (one, two) = futures::join!(
            advance_approval_terms(&registry.app),
            advance_approval_terms(&other.app)
        );
        one.unwrap();
        two.unwrap();
    }
    for agent in agents {
        let all = reviews_of_kind(&registry, agent, ReviewKind::Recertification).await;
        assert_eq!(all.len(), 1);
        assert_eq!(registry.holds(agent).await, ["recertify"]);
        let shown = agent_show_checked(&other.app, &Caller::default(), &agent.to_string()).await;
        assert_eq!(shown.unwrap_err().kind, ErrorKind::NotFound);
    }
}
