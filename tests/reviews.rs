//! Reviews that several people decide: approvals, four-eyes, comments, reports, and what waits for whom, on both engines.

use a2a_registry_api::limits::{
    MAX_COMMENT, MAX_COMMENTS, MAX_DECISIONS, MAX_REPORTS_A_DAY, MAX_WAITING,
};
use a2a_registry_api::{
    AccountPatch, BulkDecision, BulkDecisionItem, NewAccount, NewComment, NewReport, NewToken,
    Registration, Review, ReviewDecision, Seen,
};
use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::accounts::people::{account_create, account_patch};
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Config;
use a2a_registry_core::domains::register::register;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::Precondition;
use a2a_registry_core::reviews::bulk::review_decide_all;
use a2a_registry_core::reviews::deciding::{approval_withdraw, review_approve, review_reject};
use a2a_registry_core::reviews::notes::comment_add;
use a2a_registry_core::reviews::queue::{ReviewsWanted, review_list, review_show};
use a2a_registry_core::reviews::reporting::agent_report;
use a2a_registry_core::reviews::waiting::{news_seen, waiting};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::{review, review_approval};
use a2a_registry_store::reviews::review_by_id;
use futures::future::join_all;
use time::Duration;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

both_databases!(
    the_last_of_two_approvals_decides,
    a_decider_who_is_disabled_meanwhile_does_not_count,
    two_curators_who_decide_at_once_decide_once,
    an_approval_can_be_taken_back,
    under_four_eyes_nobody_decides_on_what_is_their_own,
    a_card_that_changes_meanwhile_is_not_approved,
    a_decision_says_what_is_served,
    one_stale_digest_among_fifty_stops_none_of_the_others,
    a_stranger_does_not_see_that_a_review_exists,
    comments_are_kept_as_they_were_written,
    a_report_hides_nothing_and_its_review_can,
    owners_are_told_of_decisions_once,
    what_waits_is_found_behind_hundreds_that_others_decide
);

pub(crate) async fn account(stage: &Stage, name: &str, role: Role) -> Caller {
    let new = NewAccount {
        name: name.into(),
        roles: vec![role],
        groups: Vec::new(),
    };
    account_create(&stage.app, &stage.admin, &new)
        .await
        .unwrap();
    let token = NewToken {
        account: name.into(),
        name: "a test".into(),
        ..NewToken::default()
    };
    let token = token_create(&stage.app, &stage.admin, &token)
        .await
        .unwrap();
    authenticate(&stage.app, &token.secret).await.unwrap()
}

pub(crate) fn decision(review: &Review) -> ReviewDecision {
    ReviewDecision {
        digest: review.digest.clone(),
        reason: "looks right".into(),
    }
}

/// The clock of the stage stands still, so that names have no order by time.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

fn two_deciders(config: &mut Config) {
    config.governance.deciders.first = 2;
}

/// A review of the first card of a domain.
async fn opened(stage: &Stage, domain: &str) -> Review {
    let agent = stage.publish(domain, &card("Echo", "1.0")).await;
    stage.open_review(agent.id).await.unwrap()
}

async fn the_last_of_two_approvals_decides(url: &str) {
    let stage = Stage::with(url, two_deciders).await;
    let (ann, ben) = (
        account(&stage, "ann", Role::Curator).await,
        account(&stage, "ben", Role::Curator).await,
    );
    let review = opened(&stage, "a.dev").await;
    assert_eq!(review.approvals_needed, 2);
    let first = review_approve(&stage.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(first.state, ReviewState::Open);
    assert_eq!(first.approvals.len(), 1);
    assert!(first.approvals[0].counts && first.decided_at.is_none());
    assert_eq!(stage.served(review.agent).await, None);
    let again = review_approve(&stage.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::Conflict);
    let second = review_approve(&stage.app, &ben, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(second.state, ReviewState::Approved);
    assert_eq!(sorted(second.deciders), ["ann", "ben"]);
    assert!(stage.served(review.agent).await.is_some());
}

async fn a_decider_who_is_disabled_meanwhile_does_not_count(url: &str) {
    let stage = Stage::with(url, two_deciders).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let ben = account(&stage, "ben", Role::Curator).await;
    let cleo = account(&stage, "cleo", Role::Curator).await;
    let review = opened(&stage, "a.dev").await;
    for curator in [&ann, &ben] {
        let patch = if curator == &ann {
            AccountPatch {
                disabled: Some(true),
                ..AccountPatch::default()
            }
        } else {
            AccountPatch {
                roles: Some(vec![Role::Reader]),
                ..AccountPatch::default()
            }
        };
        let made = review_approve(&stage.app, curator, review.id, &decision(&review))
            .await
            .unwrap();
        assert_eq!(made.state, ReviewState::Open);
        let name = &curator.account.as_ref().unwrap().name;
        let seen = Precondition::default();
        account_patch(&stage.app, &stage.admin, name, &patch, &seen)
            .await
            .unwrap();
    }
    let third = review_approve(&stage.app, &cleo, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(third.state, ReviewState::Open);
    let counting = third.approvals.iter().filter(|one| one.counts);
    let counting: Vec<&str> = counting.map(|one| one.account.as_str()).collect();
    assert_eq!((third.approvals.len(), counting), (3, vec!["cleo"]));
    // A caller whose account was disabled after it was authenticated decides nothing either.
    let late = review_reject(&stage.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Forbidden);
    let last = review_approve(&stage.app, &stage.admin, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(last.state, ReviewState::Approved);
    assert_eq!(sorted(last.deciders), ["admin", "cleo"]);
}

async fn two_curators_who_decide_at_once_decide_once(url: &str) {
    let stage = Stage::new(url).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let ben = account(&stage, "ben", Role::Curator).await;
    let review = opened(&stage, "a.dev").await;
    let decision = decision(&review);
    let (one, other) = futures::join!(
        review_approve(&stage.app, &ann, review.id, &decision),
        review_reject(&stage.app, &ben, review.id, &decision)
    );
    let lost = match (one, other) {
        (Ok(_), Err(lost)) | (Err(lost), Ok(_)) => lost,
        both => panic!("{both:?}"),
    };
    assert_eq!(lost.kind, ErrorKind::Conflict);
}

async fn an_approval_can_be_taken_back(url: &str) {
    let stage = Stage::with(url, two_deciders).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let review = opened(&stage, "a.dev").await;
    let none = approval_withdraw(&stage.app, &ann, review.id).await;
    assert_eq!(none.unwrap_err().kind, ErrorKind::Conflict);
    review_approve(&stage.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    let back = approval_withdraw(&stage.app, &ann, review.id)
        .await
        .unwrap();
    assert!(back.approvals.is_empty());
    let other = review_approve(&stage.app, &stage.admin, review.id, &decision(&review)).await;
    assert_eq!(other.unwrap().state, ReviewState::Open);
    // One rejection decides, whatever approvals there are.
    let rejected = review_reject(&stage.app, &ann, review.id, &decision(&review)).await;
    let rejected = rejected.unwrap();
    assert_eq!(rejected.state, ReviewState::Rejected);
    assert_eq!(rejected.deciders, ["ann"]);
}

async fn under_four_eyes_nobody_decides_on_what_is_their_own(url: &str) {
    let stage = Stage::with(url, |config| config.governance.four_eyes = true).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    // The admin, a curator too, has registered it.
    let review = opened(&stage, "a.dev").await;
    for attempt in [
        review_approve(&stage.app, &stage.admin, review.id, &decision(&review)).await,
        review_reject(&stage.app, &stage.admin, review.id, &decision(&review)).await,
    ] {
        assert_eq!(attempt.unwrap_err().kind, ErrorKind::Forbidden);
    }
    let shown = review_show(&stage.app, &stage.admin, review.id).await;
    assert!(shown.unwrap().cannot_decide.is_some());
    let waits = |who: Caller| {
        let app = stage.app.clone();
        async move { waiting(&app, &who).await.unwrap().reviews.len() }
    };
    assert_eq!(waits(stage.admin.clone()).await, 0);
    assert_eq!(waits(ann.clone()).await, 1);
    let approved = review_approve(&stage.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(approved.unwrap().state, ReviewState::Approved);
}

/// Every answer to a decision has the card that is served after it, and says so.
async fn a_decision_says_what_is_served(url: &str) {
    let stage = Stage::new(url).await;
    let first = opened(&stage, "a.dev").await;
    let agent = first.agent;
    let told = |review: &Review| {
        let served = review.served.clone().unwrap();
        let words = review.served_clause();
        (served.digest, served.listed, words)
    };
    let (digest, listed, words) = told(&first);
    assert_eq!((digest, listed), (None, false));
    assert!(words.contains("no card of the agent is served"), "{words}");
    let (digest, listed, words) = told(&stage.approve(agent).await);
    assert_eq!((digest.as_ref(), listed), (Some(&first.digest), true));
    assert!(words.contains("this card is served"), "{words}");

    let changed = card("Echo", "2.0");
    stage.crawl("a.dev", OriginAnswer::Card(changed)).await;
    let rejected = stage.reject(agent).await;
    assert_eq!(rejected.state, ReviewState::Rejected);
    let (digest, listed, words) = told(&rejected);
    assert_eq!((digest.as_ref(), listed), (Some(&first.digest), true));
    assert!(
        words.contains("the card approved before stays listed"),
        "{words}"
    );
    assert_eq!(rejected.subject(), "the changed card of Echo");
    assert_eq!(stage.served(agent).await, Some(card("Echo", "1.0")));

    // A report that is rejected puts the agent on hold, whose card is not listed then.
    let report = NewReport {
        reason: "It lies.".into(),
        contact: String::new(),
    };
    agent_report(&stage.app, &Caller::default(), &agent.to_string(), &report)
        .await
        .unwrap();
    let reported = stage.open_review(agent).await.unwrap();
    let item = BulkDecisionItem {
        review: reported.id,
        digest: reported.digest,
        approve: false,
        reason: "so it does".into(),
    };
    let decisions = BulkDecision {
        decisions: vec![item],
    };
    let mut made = review_decide_all(&stage.app, &stage.admin, &decisions)
        .await
        .unwrap();
    let held = made.pop().unwrap().1.unwrap();
    let (digest, listed, words) = told(&held);
    assert_eq!((digest.as_ref(), listed), (Some(&first.digest), false));
    assert!(words.contains("approved card is not listed"), "{words}");
    assert_eq!(held.subject(), "the reported card of Echo");
    assert_eq!(stage.served(agent).await, None);
}

async fn a_card_that_changes_meanwhile_is_not_approved(url: &str) {
    let stage = Stage::with(url, two_deciders).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let review = opened(&stage, "a.dev").await;
    review_approve(&stage.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Echo", "2.0")))
        .await;
    let stale = review_approve(&stage.app, &stage.admin, review.id, &decision(&review)).await;
    assert_eq!(stale.unwrap_err().kind, ErrorKind::Conflict);
    let newer = stage.open_review(review.agent).await.unwrap();
    assert!(newer.id != review.id && newer.approvals.is_empty());
    let older_digest = review_approve(&stage.app, &stage.admin, newer.id, &decision(&review)).await;
    assert_eq!(older_digest.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(stage.served(review.agent).await, None);
}

async fn one_stale_digest_among_fifty_stops_none_of_the_others(url: &str) {
    let stage = Stage::new(url).await;
    let mut decisions = Vec::new();
    for number in 0..MAX_DECISIONS {
        let review = opened(&stage, &format!("a{number}.dev")).await;
        decisions.push(BulkDecisionItem {
            review: review.id,
            digest: review.digest,
            approve: true,
            reason: "a batch".into(),
        });
    }
    decisions[17].digest = format!("sha256:{}", "0".repeat(64));
    let mut what = BulkDecision { decisions };
    let results = review_decide_all(&stage.app, &stage.admin, &what)
        .await
        .unwrap();
    for (at, (id, result)) in results.iter().enumerate() {
        assert_eq!(*id, what.decisions[at].review);
        match result {
            Ok(review) => assert_eq!(review.state, ReviewState::Approved),
            Err(error) => assert_eq!((at, error.kind), (17, ErrorKind::Conflict)),
        }
    }
    assert!(results[17].1.is_err());
    what.decisions.push(what.decisions[0].clone());
    let too_many = review_decide_all(&stage.app, &stage.admin, &what).await;
    assert_eq!(too_many.unwrap_err().kind, ErrorKind::Invalid);
}

async fn a_stranger_does_not_see_that_a_review_exists(url: &str) {
    let stage = Stage::new(url).await;
    let stranger = account(&stage, "stranger", Role::Publisher).await;
    let auditor = account(&stage, "auditor", Role::Auditor).await;
    let review = opened(&stage, "a.dev").await;
    let missing = uuid::Uuid::from_u128(7);
    let of = |id: uuid::Uuid| {
        let (app, stranger) = (stage.app.clone(), stranger.clone());
        async move { review_show(&app, &stranger, id).await.unwrap_err() }
    };
    let (hidden, none) = (of(review.id).await, of(missing).await);
    assert_eq!(hidden.kind, ErrorKind::NotFound);
    assert_eq!(
        hidden.public.replace(&review.id.to_string(), ""),
        none.public.replace(&missing.to_string(), "")
    );
    let text = NewComment { text: "hm".into() };
    let comment = comment_add(&stage.app, &stranger, review.id, &text).await;
    assert_eq!(comment.unwrap_err().kind, ErrorKind::NotFound);
    let comment = comment_add(&stage.app, &auditor, review.id, &text).await;
    assert_eq!(comment.unwrap_err().kind, ErrorKind::Forbidden);
    let page = PageRequest::default();
    let listed = |caller: Caller| {
        let (app, page) = (stage.app.clone(), page.clone());
        async move {
            let all = ReviewsWanted::default();
            let list = review_list(&app, &caller, &all, &page).await.unwrap();
            list.reviews.len()
        }
    };
    assert_eq!(listed(stranger).await, 0);
    assert_eq!(listed(auditor).await, 1);
}

async fn comments_are_kept_as_they_were_written(url: &str) {
    let stage = Stage::new(url).await;
    let review = opened(&stage, "a.dev").await;
    let hostile = "<script>alert(1)</script> \u{202e}txt.exe\u{2066}";
    let add = |text: String| {
        let (app, admin) = (stage.app.clone(), stage.admin.clone());
        async move { comment_add(&app, &admin, review.id, &NewComment { text }).await }
    };
    assert_eq!(add(hostile.into()).await.unwrap().text, hostile);
    for bad in [" ".into(), "a\0b".into(), "é".repeat(MAX_COMMENT + 1)] {
        assert_eq!(add(bad).await.unwrap_err().kind, ErrorKind::Invalid);
    }
    add("é".repeat(MAX_COMMENT)).await.unwrap();
    let rest = (2..MAX_COMMENTS).map(|number| add(number.to_string()));
    assert!(join_all(rest).await.iter().all(Result::is_ok));
    let full = add("one more".into()).await;
    assert_eq!(full.unwrap_err().kind, ErrorKind::LimitReached);
    let shown = review_show(&stage.app, &stage.admin, review.id)
        .await
        .unwrap();
    assert_eq!(shown.comments.len() as u64, MAX_COMMENTS);
    assert!(shown.comments.iter().any(|one| one.text == hostile));
}

async fn a_report_hides_nothing_and_its_review_can(url: &str) {
    let stage = Stage::new(url).await;
    let reader = account(&stage, "reader", Role::Reader).await;
    let agent = stage.publish_approved("a.dev", &card("Echo", "1.0")).await;
    let report = |caller: Caller, agent: String| {
        let app = stage.app.clone();
        let new = NewReport {
            reason: "It answers nonsense.".into(),
            contact: "mailto:me@b.example".into(),
        };
        async move { agent_report(&app, &caller, &agent, &new).await }
    };
    let id = agent.id.to_string();
    for caller in [reader.clone(), Caller::default()] {
        report(caller, id.clone()).await.unwrap();
    }
    stage.settle().await;
    assert!(stage.found_by_anyone().await.contains(&agent.id));
    let wanted = ReviewsWanted {
        kind: Some(ReviewKind::Report),
        ..ReviewsWanted::default()
    };
    let page = PageRequest::default();
    let list = review_list(&stage.app, &stage.admin, &wanted, &page).await;
    let review = list.unwrap().reviews.pop().unwrap();
    let shown = review_show(&stage.app, &stage.admin, review.id)
        .await
        .unwrap();
    assert_eq!(shown.reports.len(), 2);
    // Both were made at the same time of the stage's clock.
    let reporters = shown
        .reports
        .iter()
        .map(|report| report.reporter.as_deref());
    assert!(
        reporters.clone().any(|one| one == Some("reader"))
            && reporters.clone().any(|one| one.is_none())
    );
    // A change of the card leaves it open.
    stage
        .crawl("a.dev", OriginAnswer::Card(card("Echo", "2.0")))
        .await;
    let rejected = review_reject(&stage.app, &stage.admin, review.id, &decision(&review)).await;
    assert_eq!(rejected.unwrap().state, ReviewState::Rejected);
    assert_eq!(stage.holds(agent.id).await, ["operator"]);
    assert!(!stage.found_by_anyone().await.contains(&agent.id));
    // Hidden from who reports now, as if it did not exist.
    let hidden = report(Caller::default(), id.clone()).await.unwrap_err();
    assert_eq!(hidden.kind, ErrorKind::NotFound);
    for _ in 2..=MAX_REPORTS_A_DAY {
        report(stage.admin.clone(), id.clone()).await.unwrap();
    }
    report(stage.admin.clone(), id.clone()).await.unwrap();
    let limited = report(stage.admin.clone(), id.clone()).await.unwrap_err();
    assert_eq!(limited.kind, ErrorKind::TooManyRequests);
    stage.advance(Duration::days(1));
    report(stage.admin.clone(), id).await.unwrap();
}

async fn owners_are_told_of_decisions_once(url: &str) {
    let stage = Stage::new(url).await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let review = opened(&stage, "a.dev").await;
    let text = NewComment {
        text: "Why?".into(),
    };
    comment_add(&stage.app, &ann, review.id, &text)
        .await
        .unwrap();
    review_reject(&stage.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    let told = waiting(&stage.app, &stage.admin).await.unwrap();
    let kinds: Vec<&str> = told.news.iter().map(|one| one.kind.as_str()).collect();
    assert!(kinds.contains(&"rejected") && kinds.contains(&"comment"));
    let rejected = told.news.iter().find(|one| one.kind == "rejected").unwrap();
    assert_eq!(rejected.text.as_deref(), Some("looks right"));
    news_seen(&stage.app, &stage.admin, &Seen { at: told.at })
        .await
        .unwrap();
    assert!(
        waiting(&stage.app, &stage.admin)
            .await
            .unwrap()
            .news
            .is_empty()
    );
    assert!(waiting(&stage.app, &ann).await.unwrap().news.is_empty());
    // A time to come hides no news to come.
    let later = Seen {
        at: told.at.plus(1_000_000_000),
    };
    news_seen(&stage.app, &stage.admin, &later).await.unwrap();
    let seen = waiting(&stage.app, &stage.admin).await.unwrap().seen_at;
    assert_eq!(seen, Some(told.at));
}

/// As many copies of a review, all older than any that is opened.
async fn older_copies(stage: &Stage, of: &Review, set: impl Fn(&mut review::Model)) -> Vec<Uuid> {
    let row = review_by_id(&stage.store, of.id).await.unwrap().unwrap();
    let first = (of.id.as_u128() & u128::from(u64::MAX)) * 1000;
    let copies: Vec<review::Model> = (0..2 * MAX_WAITING as u128)
        .map(|number| {
            let id = Uuid::from_u128(first + number);
            let mut copy = review::Model { id, ..row.clone() };
            set(&mut copy);
            copy
        })
        .collect();
    let ids = copies.iter().map(|copy| copy.id).collect();
    let write = stage.store.write().await.unwrap();
    write.reviews_put(copies).await.unwrap();
    write.commit().await.unwrap();
    ids
}

async fn what_waits_is_found_behind_hundreds_that_others_decide(url: &str) {
    let stage = Stage::with(url, |config| {
        two_deciders(config);
        config.governance.four_eyes = true;
    })
    .await;
    let ann = account(&stage, "ann", Role::Curator).await;
    let ben = account(&stage, "ben", Role::Curator).await;
    let (ann_id, ben_id) = (ann.account().unwrap().id, ben.account().unwrap().id);
    let what = Registration {
        domain: Some("ann.dev".into()),
        ..Registration::default()
    };
    register(&stage.app, &ann, &what).await.unwrap();
    let card_of = |_: &_| OriginAnswer::Card(card("Own", "1.0"));
    assert_eq!(stage.visit(card_of).await, 1);
    let own = stage.agent("ann.dev").await;
    let own = stage.open_review(own.id).await.unwrap();
    let bens = opened(&stage, "ben.dev").await;
    let approved = opened(&stage, "approved.dev").await;
    let free = opened(&stage, "free.dev").await;
    older_copies(&stage, &own, |_| ()).await;
    let assigned = older_copies(&stage, &bens, |copy| copy.assignee = Some(ben_id)).await;
    let done = older_copies(&stage, &approved, |_| ()).await;
    let write = stage.store.write().await.unwrap();
    for review_id in done.iter().chain([&bens.id, &approved.id]) {
        let row = review_approval::Model {
            review_id: *review_id,
            account_id: ann_id,
            reason: "looks right".into(),
            at: 1,
            counted: None,
        };
        write.approval_put(row).await.unwrap();
    }
    write.commit().await.unwrap();
    let of_ann = waiting(&stage.app, &ann).await.unwrap().reviews;
    let of_ann: Vec<Uuid> = of_ann.iter().map(|one| one.id).collect();
    assert_eq!(of_ann, [free.id]);
    // Ben has more than are shown, and no review less for what is Ann's.
    let of_ben = waiting(&stage.app, &ben).await.unwrap().reviews;
    assert_eq!(of_ben.len(), MAX_WAITING);
    let soonest = older_copies(&stage, &free, |copy| copy.due_at = Some(5)).await;
    let of_ben = waiting(&stage.app, &ben).await.unwrap().reviews;
    assert!(of_ben.iter().all(|one| soonest.contains(&one.id)));
    assert!(!assigned.contains(&of_ben[0].id), "the soonest due first");
}
