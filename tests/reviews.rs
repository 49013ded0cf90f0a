//! Reviews that several people decide: approvals, four-eyes, comments, reports, and waiting lists, on both engines.

use a2a_registry_api::limits::{
    MAX_COMMENT, MAX_COMMENTS_PER_REVIEW, MAX_DAILY_REPORTS, MAX_DECISIONS, MAX_INBOX_ENTRIES,
};
use a2a_registry_api::{
    AccountPatch, BulkDecision, BulkDecisionItem, NewAccount, NewComment, NewReport, NewToken,
    Registration, Review, ReviewDecision, Seen,
};
use a2a_registry_core::accounts::account_operations::{account_create, account_patch};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::Config;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::reviews::bulk::review_decide_all;
use a2a_registry_core::reviews::decisions::{approval_withdraw, review_approve, review_reject};
use a2a_registry_core::reviews::inbox::{load_inbox, mark_news_read};
use a2a_registry_core::reviews::list::{ReviewListFilter, review_list, review_show};
use a2a_registry_core::reviews::notes::comment_add;
use a2a_registry_core::reviews::reports::report_agent;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::role::Role;
use a2a_registry_store::entity::{review, review_approval};
use a2a_registry_store::reviews::review_by_id;
use futures::future::join_all;
use time::Duration;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

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

pub(crate) async fn create_account(registry: &InProcessRegistry, name: &str, role: Role) -> Caller {
    let new = NewAccount {
        name: name.into(),
        roles: vec![role],
        groups: Vec::new(),
    };
    account_create(&registry.app, &registry.admin, &new)
        .await
        .unwrap();
    let token = NewToken {
        account: name.into(),
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

pub(crate) fn decision(review: &Review) -> ReviewDecision {
    ReviewDecision {
        digest: review.digest.clone(),
        reason: "looks right".into(),
    }
}

/// Sorts names, because the registry's clock stops and gives them no order by time.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

fn two_deciders(config: &mut Config) {
    config.governance.deciders.first = 2;
}

/// A review of the first card of a domain.
async fn opened(registry: &InProcessRegistry, domain: &str) -> Review {
    let agent = registry
        .register_with_card(domain, &card_bytes("Echo", "1.0"))
        .await;
    registry.find_open_review(agent.id).await.unwrap()
}

async fn the_last_of_two_approvals_decides(url: &str) {
    let registry = InProcessRegistry::with_config(url, two_deciders).await;
    let (ann, ben) = (
        create_account(&registry, "ann", Role::Curator).await,
        create_account(&registry, "ben", Role::Curator).await,
    );
    let review = opened(&registry, "a.dev").await;
    assert_eq!(review.approvals_needed, 2);
    let first = review_approve(&registry.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(first.state, ReviewState::Open);
    assert_eq!(first.approvals.len(), 1);
    assert!(first.approvals[0].counts && first.decided_at.is_none());
    assert_eq!(registry.public_card_bytes(review.agent).await, None);
    let again = review_approve(&registry.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::Conflict);
    let second = review_approve(&registry.app, &ben, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(second.state, ReviewState::Approved);
    assert_eq!(sorted(second.deciders), ["ann", "ben"]);
    assert!(registry.public_card_bytes(review.agent).await.is_some());
}

async fn a_decider_who_is_disabled_meanwhile_does_not_count(url: &str) {
    let registry = InProcessRegistry::with_config(url, two_deciders).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let ben = create_account(&registry, "ben", Role::Curator).await;
    let cleo = create_account(&registry, "cleo", Role::Curator).await;
    let review = opened(&registry, "a.dev").await;
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
        let made = review_approve(&registry.app, curator, review.id, &decision(&review))
            .await
            .unwrap();
        assert_eq!(made.state, ReviewState::Open);
        let name = &curator.account.as_ref().unwrap().name;
        let seen = IfMatch::default();
        account_patch(&registry.app, &registry.admin, name, &patch, &seen)
            .await
            .unwrap();
    }
    let third = review_approve(&registry.app, &cleo, review.id, &decision(&review))
        .await
        .unwrap();
    assert_eq!(third.state, ReviewState::Open);
    let counting = third.approvals.iter().filter(|one| one.counts);
    let counting: Vec<&str> = counting.map(|one| one.account.as_str()).collect();
    assert_eq!((third.approvals.len(), counting), (3, vec!["cleo"]));
    // A caller whose account was disabled after it was authenticated decides nothing either.
    let late = review_reject(&registry.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Forbidden);
    let last = review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await
    .unwrap();
    assert_eq!(last.state, ReviewState::Approved);
    assert_eq!(sorted(last.deciders), ["admin", "cleo"]);
}

async fn two_curators_who_decide_at_once_decide_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let ben = create_account(&registry, "ben", Role::Curator).await;
    let review = opened(&registry, "a.dev").await;
    let decision = decision(&review);
    let (one, other) = futures::join!(
        review_approve(&registry.app, &ann, review.id, &decision),
        review_reject(&registry.app, &ben, review.id, &decision)
    );
    let lost = match (one, other) {
        (Ok(_), Err(lost)) | (Err(lost), Ok(_)) => lost,
        both => panic!("{both:?}"),
    };
    assert_eq!(lost.kind, ErrorKind::Conflict);
}

async fn an_approval_can_be_taken_back(url: &str) {
    let registry = InProcessRegistry::with_config(url, two_deciders).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let review = opened(&registry, "a.dev").await;
    let none = approval_withdraw(&registry.app, &ann, review.id).await;
    assert_eq!(none.unwrap_err().kind, ErrorKind::Conflict);
    review_approve(&registry.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    let back = approval_withdraw(&registry.app, &ann, review.id)
        .await
        .unwrap();
    assert!(back.approvals.is_empty());
    let other = review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await;
    assert_eq!(other.unwrap().state, ReviewState::Open);
    // One rejection decides, whatever approvals there are.
    let rejected = review_reject(&registry.app, &ann, review.id, &decision(&review)).await;
    let rejected = rejected.unwrap();
    assert_eq!(rejected.state, ReviewState::Rejected);
    assert_eq!(rejected.deciders, ["ann"]);
}

async fn under_four_eyes_nobody_decides_on_what_is_their_own(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.governance.four_eyes = true).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    // The admin, a curator too, has registered it.
    let review = opened(&registry, "a.dev").await;
    for attempt in [
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
        assert_eq!(attempt.unwrap_err().kind, ErrorKind::Forbidden);
    }
    let shown = review_show(&registry.app, &registry.admin, review.id).await;
    assert!(shown.unwrap().cannot_decide.is_some());
    let waits = |who: Caller| {
        let app = registry.app.clone();
        async move { load_inbox(&app, &who).await.unwrap().reviews.len() }
    };
    assert_eq!(waits(registry.admin.clone()).await, 0);
    assert_eq!(waits(ann.clone()).await, 1);
    let approved = review_approve(&registry.app, &ann, review.id, &decision(&review)).await;
    assert_eq!(approved.unwrap().state, ReviewState::Approved);
}

/// Every answer to a decision has the card that is served after it, and says so.
async fn a_decision_says_what_is_served(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let first = opened(&registry, "a.dev").await;
    let agent = first.agent;
    let told = |review: &Review| {
        let served = review.served.clone().unwrap();
        let words = review.served_clause();
        (served.digest, served.listed, words)
    };
    let (digest, listed, words) = told(&first);
    assert_eq!((digest, listed), (None, false));
    assert!(words.contains("no card of the agent is served"), "{words}");
    let (digest, listed, words) = told(&registry.approve_open_review(agent).await);
    assert_eq!((digest.as_ref(), listed), (Some(&first.digest), true));
    assert!(words.contains("this card is served"), "{words}");

    let changed = card_bytes("Echo", "2.0");
    registry
        .crawl_domain("a.dev", OriginResponse::Card(changed))
        .await;
    let rejected = registry.reject_open_review(agent).await;
    assert_eq!(rejected.state, ReviewState::Rejected);
    let (digest, listed, words) = told(&rejected);
    assert_eq!((digest.as_ref(), listed), (Some(&first.digest), true));
    assert!(
        words.contains("the card approved before stays listed"),
        "{words}"
    );
    assert_eq!(rejected.subject_phrase(), "the changed card of Echo");
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(card_bytes("Echo", "1.0"))
    );

    // A report that is rejected puts the agent on hold, whose card is not listed then.
    let report = NewReport {
        reason: "It lies.".into(),
        contact: String::new(),
    };
    report_agent(
        &registry.app,
        &Caller::default(),
        &agent.to_string(),
        &report,
    )
    .await
    .unwrap();
    let reported = registry.find_open_review(agent).await.unwrap();
    let item = BulkDecisionItem {
        review: reported.id,
        digest: reported.digest,
        approve: false,
        reason: "so it does".into(),
    };
    let decisions = BulkDecision {
        decisions: vec![item],
    };
    let mut made = review_decide_all(&registry.app, &registry.admin, &decisions)
        .await
        .unwrap();
    let held = made.pop().unwrap().1.unwrap();
    let (digest, listed, words) = told(&held);
    assert_eq!((digest.as_ref(), listed), (Some(&first.digest), false));
    assert!(words.contains("approved card is not listed"), "{words}");
    assert_eq!(held.subject_phrase(), "the reported card of Echo");
    assert_eq!(registry.public_card_bytes(agent).await, None);
}

async fn a_card_that_changes_meanwhile_is_not_approved(url: &str) {
    let registry = InProcessRegistry::with_config(url, two_deciders).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let review = opened(&registry, "a.dev").await;
    review_approve(&registry.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Echo", "2.0")))
        .await;
    let stale = review_approve(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await;
    assert_eq!(stale.unwrap_err().kind, ErrorKind::Conflict);
    let newer = registry.find_open_review(review.agent).await.unwrap();
    assert!(newer.id != review.id && newer.approvals.is_empty());
    let older_digest =
        review_approve(&registry.app, &registry.admin, newer.id, &decision(&review)).await;
    assert_eq!(older_digest.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(registry.public_card_bytes(review.agent).await, None);
}

async fn one_stale_digest_among_fifty_stops_none_of_the_others(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let mut decisions = Vec::new();
    for number in 0..MAX_DECISIONS {
        let review = opened(&registry, &format!("a{number}.dev")).await;
        decisions.push(BulkDecisionItem {
            review: review.id,
            digest: review.digest,
            approve: true,
            reason: "a batch".into(),
        });
    }
    decisions[17].digest = format!("sha256:{}", "0".repeat(64));
    let mut what = BulkDecision { decisions };
    let results = review_decide_all(&registry.app, &registry.admin, &what)
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
    let too_many = review_decide_all(&registry.app, &registry.admin, &what).await;
    assert_eq!(too_many.unwrap_err().kind, ErrorKind::Invalid);
}

async fn a_stranger_does_not_see_that_a_review_exists(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let stranger = create_account(&registry, "stranger", Role::Publisher).await;
    let auditor = create_account(&registry, "auditor", Role::Auditor).await;
    let review = opened(&registry, "a.dev").await;
    let missing = uuid::Uuid::from_u128(7);
    let of = |id: uuid::Uuid| {
        let (app, stranger) = (registry.app.clone(), stranger.clone());
        async move { review_show(&app, &stranger, id).await.unwrap_err() }
    };
    let (hidden, none) = (of(review.id).await, of(missing).await);
    assert_eq!(hidden.kind, ErrorKind::NotFound);
    assert_eq!(
        hidden.public.replace(&review.id.to_string(), ""),
        none.public.replace(&missing.to_string(), "")
    );
    let text = NewComment { text: "hm".into() };
    let comment = comment_add(&registry.app, &stranger, review.id, &text).await;
    assert_eq!(comment.unwrap_err().kind, ErrorKind::NotFound);
    let comment = comment_add(&registry.app, &auditor, review.id, &text).await;
    assert_eq!(comment.unwrap_err().kind, ErrorKind::Forbidden);
    let page = PageRequest::default();
    let listed = |caller: Caller| {
        let (app, page) = (registry.app.clone(), page.clone());
        async move {
            let all = ReviewListFilter::default();
            let list = review_list(&app, &caller, &all, &page).await.unwrap();
            list.reviews.len()
        }
    };
    assert_eq!(listed(stranger).await, 0);
    assert_eq!(listed(auditor).await, 1);
}

async fn comments_are_kept_as_they_were_written(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let review = opened(&registry, "a.dev").await;
    let hostile = "<script>alert(1)</script> \u{202e}txt.exe\u{2066}";
    let add = |text: String| {
        let (app, admin) = (registry.app.clone(), registry.admin.clone());
        async move { comment_add(&app, &admin, review.id, &NewComment { text }).await }
    };
    assert_eq!(add(hostile.into()).await.unwrap().text, hostile);
    for bad in [" ".into(), "a\0b".into(), "é".repeat(MAX_COMMENT + 1)] {
        assert_eq!(add(bad).await.unwrap_err().kind, ErrorKind::Invalid);
    }
    add("é".repeat(MAX_COMMENT)).await.unwrap();
    let rest = (2..MAX_COMMENTS_PER_REVIEW).map(|number| add(number.to_string()));
    assert!(join_all(rest).await.iter().all(Result::is_ok));
    let full = add("one more".into()).await;
    assert_eq!(full.unwrap_err().kind, ErrorKind::LimitReached);
    let shown = review_show(&registry.app, &registry.admin, review.id)
        .await
        .unwrap();
    assert_eq!(shown.comments.len() as u64, MAX_COMMENTS_PER_REVIEW);
    assert!(shown.comments.iter().any(|one| one.text == hostile));
}

async fn a_report_hides_nothing_and_its_review_can(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let reader = create_account(&registry, "reader", Role::Reader).await;
    let agent = registry
        .register_approved_card("a.dev", &card_bytes("Echo", "1.0"))
        .await;
    let report = |caller: Caller, agent: String| {
        let app = registry.app.clone();
        let new = NewReport {
            reason: "It answers nonsense.".into(),
            contact: "mailto:me@b.example".into(),
        };
        async move { report_agent(&app, &caller, &agent, &new).await }
    };
    let id = agent.id.to_string();
    for caller in [reader.clone(), Caller::default()] {
        report(caller, id.clone()).await.unwrap();
    }
    registry.catch_up().await;
    assert!(registry.publicly_found_ids().await.contains(&agent.id));
    let wanted = ReviewListFilter {
        kind: Some(ReviewKind::Report),
        ..ReviewListFilter::default()
    };
    let page = PageRequest::default();
    let list = review_list(&registry.app, &registry.admin, &wanted, &page).await;
    let review = list.unwrap().reviews.pop().unwrap();
    let shown = review_show(&registry.app, &registry.admin, review.id)
        .await
        .unwrap();
    assert_eq!(shown.reports.len(), 2);
    // The stopped clock gives both the same time.
    let reporters = shown
        .reports
        .iter()
        .map(|report| report.reporter.as_deref());
    assert!(
        reporters.clone().any(|one| one == Some("reader"))
            && reporters.clone().any(|one| one.is_none())
    );
    // A change of the card leaves it open.
    registry
        .crawl_domain("a.dev", OriginResponse::Card(card_bytes("Echo", "2.0")))
        .await;
    let rejected = review_reject(
        &registry.app,
        &registry.admin,
        review.id,
        &decision(&review),
    )
    .await;
    assert_eq!(rejected.unwrap().state, ReviewState::Rejected);
    assert_eq!(registry.holds(agent.id).await, ["operator"]);
    assert!(!registry.publicly_found_ids().await.contains(&agent.id));
    // Hidden from who reports now, as if it did not exist.
    let hidden = report(Caller::default(), id.clone()).await.unwrap_err();
    assert_eq!(hidden.kind, ErrorKind::NotFound);
    for _ in 2..=MAX_DAILY_REPORTS {
        report(registry.admin.clone(), id.clone()).await.unwrap();
    }
    report(registry.admin.clone(), id.clone()).await.unwrap();
    let limited = report(registry.admin.clone(), id.clone())
        .await
        .unwrap_err();
    assert_eq!(limited.kind, ErrorKind::TooManyRequests);
    registry.advance(Duration::days(1));
    report(registry.admin.clone(), id).await.unwrap();
}

async fn owners_are_told_of_decisions_once(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let review = opened(&registry, "a.dev").await;
    let text = NewComment {
        text: "Why?".into(),
    };
    comment_add(&registry.app, &ann, review.id, &text)
        .await
        .unwrap();
    review_reject(&registry.app, &ann, review.id, &decision(&review))
        .await
        .unwrap();
    let told = load_inbox(&registry.app, &registry.admin).await.unwrap();
    let kinds: Vec<&str> = told.news.iter().map(|one| one.kind.as_str()).collect();
    assert!(kinds.contains(&"rejected") && kinds.contains(&"comment"));
    let rejected = told.news.iter().find(|one| one.kind == "rejected").unwrap();
    assert_eq!(rejected.text.as_deref(), Some("looks right"));
    mark_news_read(&registry.app, &registry.admin, &Seen { at: told.at })
        .await
        .unwrap();
    assert!(
        load_inbox(&registry.app, &registry.admin)
            .await
            .unwrap()
            .news
            .is_empty()
    );
    assert!(
        load_inbox(&registry.app, &ann)
            .await
            .unwrap()
            .news
            .is_empty()
    );
    // A time to come hides no news to come.
    let later = Seen {
        at: told.at.plus_micros(1_000_000_000),
    };
    mark_news_read(&registry.app, &registry.admin, &later)
        .await
        .unwrap();
    let seen = load_inbox(&registry.app, &registry.admin)
        .await
        .unwrap()
        .seen_at;
    assert_eq!(seen, Some(told.at));
}

/// As many copies of a review, all older than any that is opened.
async fn older_copies(
    registry: &InProcessRegistry,
    of: &Review,
    set: impl Fn(&mut review::Model),
) -> Vec<Uuid> {
    let row = review_by_id(&registry.store, of.id).await.unwrap().unwrap();
    let first = (of.id.as_u128() & u128::from(u64::MAX)) * 1000;
    let copies: Vec<review::Model> = (0..2 * MAX_INBOX_ENTRIES as u128)
        .map(|number| {
            let id = Uuid::from_u128(first + number);
            let mut copy = review::Model { id, ..row.clone() };
            set(&mut copy);
            copy
        })
        .collect();
    let ids = copies.iter().map(|copy| copy.id).collect();
    let write = registry.store.begin_write().await.unwrap();
    write.upsert_reviews(copies).await.unwrap();
    write.commit().await.unwrap();
    ids
}

async fn what_waits_is_found_behind_hundreds_that_others_decide(url: &str) {
    let registry = InProcessRegistry::with_config(url, |config| {
        two_deciders(config);
        config.governance.four_eyes = true;
    })
    .await;
    let ann = create_account(&registry, "ann", Role::Curator).await;
    let ben = create_account(&registry, "ben", Role::Curator).await;
    let (ann_id, ben_id) = (
        ann.require_account().unwrap().id,
        ben.require_account().unwrap().id,
    );
    let what = Registration {
        domain: Some("ann.dev".into()),
        ..Registration::default()
    };
    register_domain(&registry.app, &ann, &what).await.unwrap();
    let card_of = |_: &_| OriginResponse::Card(card_bytes("Own", "1.0"));
    assert_eq!(registry.run_due_visits(card_of).await, 1);
    let own = registry.agent("ann.dev").await;
    let own = registry.find_open_review(own.id).await.unwrap();
    let bens = opened(&registry, "ben.dev").await;
    let approved = opened(&registry, "approved.dev").await;
    let free = opened(&registry, "free.dev").await;
    older_copies(&registry, &own, |_| ()).await;
    let assigned = older_copies(&registry, &bens, |copy| copy.assignee = Some(ben_id)).await;
    let done = older_copies(&registry, &approved, |_| ()).await;
    let write = registry.store.begin_write().await.unwrap();
    for review_id in done.iter().chain([&bens.id, &approved.id]) {
        let row = review_approval::Model {
            review_id: *review_id,
            account_id: ann_id,
            reason: "looks right".into(),
            at: 1,
            counted: None,
        };
        write.upsert_review_approval(row).await.unwrap();
    }
    write.commit().await.unwrap();
    let of_ann = load_inbox(&registry.app, &ann).await.unwrap().reviews;
    let of_ann: Vec<Uuid> = of_ann.iter().map(|one| one.id).collect();
    assert_eq!(of_ann, [free.id]);
    // Ben has more than are shown, and no review less for what is Ann's.
    let of_ben = load_inbox(&registry.app, &ben).await.unwrap().reviews;
    assert_eq!(of_ben.len(), MAX_INBOX_ENTRIES);
    let soonest = older_copies(&registry, &free, |copy| copy.due_at = Some(5)).await;
    let of_ben = load_inbox(&registry.app, &ben).await.unwrap().reviews;
    assert!(of_ben.iter().all(|one| soonest.contains(&one.id)));
    assert!(!assigned.contains(&of_ben[0].id), "the soonest due first");
}
