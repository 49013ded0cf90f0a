//! Recertification: an approval ends, and the content is approved again or goes, on both engines (docs/governance.md).

use a2a_registry_api::{Act, Review, ReviewDecision};
use a2a_registry_core::config::Config;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::deciding::{review_approve, review_reject};
use a2a_registry_core::reviews::queue::{ReviewsWanted, review_list};
use a2a_registry_core::reviews::recertification::{agent_recertify, pass_terms};
use a2a_registry_core::reviews::resuming::agent_resume;
use a2a_registry_core::reviews::waiting::waiting;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::{MINUTE, Timestamp};
use time::Duration;
use uuid::Uuid;

use crate::reviews::{account, decision};
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::shown::agent_show;
use crate::support::stage::{OriginAnswer, Stage, card};

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

fn of_a_month(config: &mut Config) {
    config.governance.recertify_after = Some(30);
}

/// The open review of a kind about an agent.
pub(crate) async fn open_of(stage: &Stage, agent: Uuid, kind: ReviewKind) -> Option<Review> {
    let mut open = all_of(stage, agent, kind).await;
    open.retain(|review| review.state == ReviewState::Open);
    assert!(open.len() <= 1, "{open:?}");
    open.pop()
}

/// Every review of a kind about an agent, oldest first.
pub(crate) async fn all_of(stage: &Stage, agent: Uuid, kind: ReviewKind) -> Vec<Review> {
    let wanted = ReviewsWanted {
        kind: Some(kind),
        ..ReviewsWanted::default()
    };
    let page = PageRequest {
        page_size: Some(100),
        ..PageRequest::default()
    };
    let list = review_list(&stage.app, &stage.admin, &wanted, &page).await;
    let mut all = list.unwrap().reviews;
    all.retain(|review| review.agent == agent);
    all
}

async fn recertification(stage: &Stage, agent: Uuid) -> Option<Review> {
    open_of(stage, agent, ReviewKind::Recertification).await
}

async fn pass(stage: &Stage, days: i64) {
    stage.advance(Duration::days(days));
    pass_terms(&stage.app).await.unwrap();
}

async fn ends(stage: &Stage, agent: Uuid) -> Timestamp {
    let shown = agent_show(&stage.app, &stage.admin, &agent.to_string()).await;
    shown.unwrap().decision.expires_at.unwrap()
}

fn with_version(version: &str) -> Vec<u8> {
    let text = String::from_utf8(card("Echo", "1.0")).unwrap();
    text.replace("1.0.0", version).into_bytes()
}

async fn an_approval_that_nobody_gives_again_ends(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    let end = Timestamp::from(stage.now() + Duration::days(TERM));
    assert_eq!(ends(&stage, agent.id).await, end);
    pass(&stage, TERM - 15).await;
    assert!(recertification(&stage, agent.id).await.is_none());
    pass(&stage, 1).await;
    let review = recertification(&stage, agent.id).await.unwrap();
    assert_eq!(
        (review.due, review.submitter.as_deref()),
        (Some(end), Some("admin"))
    );
    assert!(stage.served(agent.id).await.is_some());
    pass(&stage, 13).await;
    assert!(stage.holds(agent.id).await.is_empty());
    pass(&stage, 1).await;
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    assert_eq!(stage.served(agent.id).await, None);
    stage.index_equals_database().await;
    // Passing again changes nothing.
    pass(&stage, 1).await;
    let all = all_of(&stage, agent.id, ReviewKind::Recertification).await;
    assert_eq!(all.len(), 1);
    // The hold is lifted by nothing but the approval.
    let act = Act {
        reason: "please".into(),
        hold: Some("recertify".parse().unwrap()),
    };
    let resumed = agent_resume(&stage.app, &stage.admin, &agent.id.to_string(), &act).await;
    assert_eq!(resumed.unwrap_err().kind, ErrorKind::Conflict);
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Echo", "1.0")))
        .await;
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    let approved = review_approve(&stage.app, &stage.admin, review.id, &decision(&review)).await;
    assert_eq!(approved.unwrap().state, ReviewState::Approved);
    assert!(stage.holds(agent.id).await.is_empty());
    assert!(stage.served(agent.id).await.is_some());
    let end = Timestamp::from(stage.now() + Duration::days(TERM));
    assert_eq!(ends(&stage, agent.id).await, end);
    stage.index_equals_database().await;
}

async fn an_approval_given_again_early_begins_a_new_term(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    pass(&stage, TERM - 10).await;
    let review = recertification(&stage, agent.id).await.unwrap();
    review_approve(&stage.app, &stage.admin, review.id, &decision(&review))
        .await
        .unwrap();
    let end = Timestamp::from(stage.now() + Duration::days(TERM));
    assert_eq!(ends(&stage, agent.id).await, end);
    pass(&stage, 12).await;
    assert!(recertification(&stage, agent.id).await.is_none());
    assert!(stage.served(agent.id).await.is_some());
}

async fn a_term_that_is_set_later_gives_notice_first(url: &str) {
    let stage = Stage::new(url).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    pass(&stage, 400).await;
    let shown = agent_show(&stage.app, &stage.admin, &agent.id.to_string()).await;
    assert_eq!(shown.unwrap().decision.expires_at, None);
    let stage = stage.restart(of_a_month).await;
    pass(&stage, 0).await;
    assert!(recertification(&stage, agent.id).await.is_some());
    let end = Timestamp::from(stage.now() + Duration::days(14));
    assert_eq!(ends(&stage, agent.id).await, end);
    pass(&stage, 13).await;
    assert!(stage.holds(agent.id).await.is_empty());
    // Switched off again, nothing more ends; what is asked stays asked.
    let stage = stage
        .restart(|config| config.governance.recertify_after = None)
        .await;
    pass(&stage, 100).await;
    assert!(stage.holds(agent.id).await.is_empty());
    let review = recertification(&stage, agent.id).await.unwrap();
    review_approve(&stage.app, &stage.admin, review.id, &decision(&review))
        .await
        .unwrap();
}

async fn small_changes_lengthen_no_term(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let agent = stage
        .publish_approved("a.dev", &with_version("1.0.0"))
        .await;
    let mut end = ends(&stage, agent.id).await;
    for (number, days) in [10, 6, 9].into_iter().enumerate() {
        pass(&stage, days).await;
        // Announced two minutes late, it ends that much later, so that the notice is long enough.
        let announced = ends(&stage, agent.id).await;
        assert!(announced >= end && announced.0 - end.0 <= 2 * MINUTE);
        end = announced;
        let newer = with_version(&format!("1.0.{}", number + 1));
        stage
            .crawl("a.dev", OriginAnswer::Card(newer.clone()))
            .await;
        assert_eq!(stage.served(agent.id).await, Some(newer));
        assert_eq!(ends(&stage, agent.id).await, end);
    }
    // The review is about what is served, whoever had approved the older content.
    let reviews = all_of(&stage, agent.id, ReviewKind::Recertification).await;
    let states: Vec<ReviewState> = reviews.iter().filter_map(|one| one.state.known()).collect();
    assert_eq!(
        states,
        [
            ReviewState::Superseded,
            ReviewState::Superseded,
            ReviewState::Open
        ]
    );
    let served = stage.versions(agent.id).await.pop().unwrap().digest;
    assert_eq!((&reviews[2].digest, reviews[2].due), (&served, Some(end)));
    pass(&stage, 5).await;
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    let hidden = with_version("2.0.0");
    stage.crawl("a.dev", OriginAnswer::Card(hidden)).await;
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    let old = review_approve(
        &stage.app,
        &stage.admin,
        reviews[2].id,
        &decision(&reviews[2]),
    )
    .await;
    assert_eq!(old.unwrap_err().kind, ErrorKind::Conflict);
    let review = recertification(&stage, agent.id).await.unwrap();
    review_approve(&stage.app, &stage.admin, review.id, &decision(&review))
        .await
        .unwrap();
    assert!(stage.served(agent.id).await.is_some());
}

async fn an_approved_change_begins_a_new_term(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    pass(&stage, TERM - 5).await;
    let open = recertification(&stage, agent.id).await.unwrap();
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Echo", "2.0")))
        .await;
    let change = open_of(&stage, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    assert!(
        recertification(&stage, agent.id).await.is_some(),
        "beside the change"
    );
    review_approve(&stage.app, &stage.admin, change.id, &decision(&change))
        .await
        .unwrap();
    let end = Timestamp::from(stage.now() + Duration::days(TERM));
    assert_eq!(ends(&stage, agent.id).await, end);
    let late = review_approve(&stage.app, &stage.admin, open.id, &decision(&open)).await;
    assert!(late.unwrap_err().public.contains("withdrawn"));
    pass(&stage, 10).await;
    assert!(stage.served(agent.id).await.is_some());
}

async fn what_a_person_approved_long_ago_is_not_approved_any_more(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let (old, new) = (card("Echo", "1.0"), card("Echo", "2.0"));
    let agent = stage.publish_approved("a.dev", &old).await;
    pass(&stage, 20).await;
    stage.crawl("a.dev", OriginAnswer::Card(new.clone())).await;
    let change = open_of(&stage, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    review_approve(&stage.app, &stage.admin, change.id, &decision(&change))
        .await
        .unwrap();
    let end = ends(&stage, agent.id).await;
    // The older decision still holds, and begins no term.
    stage.crawl("a.dev", OriginAnswer::Card(old.clone())).await;
    assert_eq!(stage.served(agent.id).await.as_ref(), Some(&old));
    assert_eq!(ends(&stage, agent.id).await, end);
    stage.crawl("a.dev", OriginAnswer::Card(new.clone())).await;
    pass(&stage, 11).await;
    stage.crawl("a.dev", OriginAnswer::Card(old)).await;
    assert_eq!(stage.served(agent.id).await, Some(new));
    assert!(
        open_of(&stage, agent.id, ReviewKind::Admission)
            .await
            .is_some()
    );
}

async fn refusing_holds_at_once_and_can_be_taken_up_again(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    pass(&stage, TERM - 10).await;
    let review = recertification(&stage, agent.id).await.unwrap();
    review_reject(&stage.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    assert_eq!(stage.served(agent.id).await, None);
    let told = waiting(&stage.app, &stage.admin).await.unwrap().news;
    assert!(
        told.iter()
            .any(|one| one.kind == "rejected" && one.by == "ann")
    );
    // Nobody is asked again by time alone.
    pass(&stage, 40).await;
    assert!(recertification(&stage, agent.id).await.is_none());
    let act = Act {
        reason: "the owner has explained it".into(),
        hold: None,
    };
    let id = agent.id.to_string();
    let stranger = account(&stage, "stranger", Role::Publisher).await;
    let refused = agent_recertify(&stage.app, &stranger, &id, &act).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Forbidden);
    let again = agent_recertify(&stage.app, &ann, &id, &act).await.unwrap();
    let twice = agent_recertify(&stage.app, &ann, &id, &act).await;
    assert_eq!(twice.unwrap_err().kind, ErrorKind::Conflict);
    review_approve(&stage.app, &ann, again.id, &decision(&again))
        .await
        .unwrap();
    assert!(stage.served(agent.id).await.is_some());
    stage.index_equals_database().await;
}

async fn under_four_eyes_nobody_gives_their_own_approval_again(url: &str) {
    let stage = Stage::with(url, |config| {
        config.governance.four_eyes = true;
        of_a_month(config);
    })
    .await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let agent = stage.publish("a.dev", &card("Echo", "1.0")).await;
    let first = stage.open_review(agent.id).await.unwrap();
    review_approve(&stage.app, &ann, first.id, &decision(&first))
        .await
        .unwrap();
    pass(&stage, TERM).await;
    let review = recertification(&stage, agent.id).await.unwrap();
    // The admin, a curator too, has registered the agent.
    for own in [
        review_approve(&stage.app, &stage.admin, review.id, &decision(&review)).await,
        review_reject(&stage.app, &stage.admin, review.id, &decision(&review)).await,
    ] {
        assert_eq!(own.unwrap_err().kind, ErrorKind::Forbidden);
    }
    let by_ann = review_approve(&stage.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(by_ann.unwrap().state, ReviewState::Approved);
}

async fn another_digest_gives_no_approval_again(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    pass(&stage, TERM - 5).await;
    let review = recertification(&stage, agent.id).await.unwrap();
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Other", "1.0")))
        .await;
    let other = open_of(&stage, agent.id, ReviewKind::Admission)
        .await
        .unwrap();
    let wrong = ReviewDecision {
        digest: other.digest,
        reason: "either".into(),
    };
    let mixed = review_approve(&stage.app, &stage.admin, review.id, &wrong).await;
    assert_eq!(mixed.unwrap_err().kind, ErrorKind::Conflict);
    // The served content may be approved again while the change waits, which keeps its hold.
    review_approve(&stage.app, &stage.admin, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(stage.holds(agent.id).await, ["critical_change"]);
    assert_eq!(stage.served(agent.id).await, None);
}

async fn more_agents_than_one_batch_are_passed(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    for number in 0..101 {
        stage.register(&format!("a{number}.dev")).await;
    }
    stage
        .visit(|_| OriginAnswer::Card(card("Echo", "1.0")))
        .await;
    let agents = stage.agents().await;
    for agent in &agents {
        stage.approve(agent.id).await;
    }
    pass(&stage, TERM - 14).await;
    pass(&stage, 14).await;
    for agent in &agents {
        assert_eq!(stage.holds(agent.id).await, ["recertify"]);
    }
}

async fn one_agent_whose_term_cannot_pass_stops_no_other(url: &str) {
    let stage = Stage::with(url, of_a_month).await;
    let stuck = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    let fine = stage.publish_approved("b.dev", &card("Echo", "1.0")).await;
    stage.advance(Duration::days(TERM - 14));
    stage.refuse_changes("agents", "domain", "a.dev").await;
    assert!(pass_terms(&stage.app).await.is_err());
    assert!(recertification(&stage, stuck.id).await.is_none());
    assert!(recertification(&stage, fine.id).await.is_some());
    stage.allow_changes("agents").await;
    pass_terms(&stage.app).await.unwrap();
    assert!(recertification(&stage, stuck.id).await.is_some());
}

/// Two processes let the same approvals end at the same time: each agent is put on hold once.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_end_an_approval_once() {
    let database = Database::postgres().await;
    let stage = Stage::with(database.url(), of_a_month).await;
    let mut agents = Vec::new();
    for number in 0..20 {
        let domain = format!("a{number}.dev");
        agents.push(
            stage
                .publish_approved(&domain, &card("Echo", "1.0"))
                .await
                .id,
        );
    }
    let other = stage.beside().await;
    for days in [TERM - 14, 14] {
        stage.advance(Duration::days(days));
        let (one, two) = futures::join!(pass_terms(&stage.app), pass_terms(&other.app));
        one.unwrap();
        two.unwrap();
    }
    for agent in agents {
        let all = all_of(&stage, agent, ReviewKind::Recertification).await;
        assert_eq!(all.len(), 1);
        assert_eq!(stage.holds(agent).await, ["recertify"]);
        let shown = agent_show(&other.app, &Caller::default(), &agent.to_string()).await;
        assert_eq!(shown.unwrap_err().kind, ErrorKind::NotFound);
    }
}
