//! While so many fetches fail at once that the fault is likely ours, failures conclude nothing.

use std::collections::BTreeSet;

use a2a_crawler::AttemptOutcome::{Gone, NotFound, Timeout};
use a2a_registry::store::domains;
use time::Duration;

use crate::support::both_databases;
use crate::support::stage::{Answer, Stage, card};

const DOMAINS: usize = 40;

fn name(number: usize) -> String {
    format!("d{number}.agents-test.com")
}

/// A stage with that many approved agents, each on a domain of its own.
async fn crowd(url: &str) -> Stage {
    let stage = Stage::with(url, |config| config.governance.approve_all = true).await;
    for number in 0..DOMAINS {
        stage.register(&name(number)).await;
    }
    let made = stage
        .visit(|source| Answer::Card(card(&source.url, "Is there")))
        .await;
    assert_eq!(made, DOMAINS);
    stage
}

async fn states(stage: &Stage) -> BTreeSet<String> {
    stage
        .agents()
        .await
        .into_iter()
        .map(|row| row.liveness)
        .collect()
}

fn only(state: &str) -> BTreeSet<String> {
    BTreeSet::from([state.to_owned()])
}

both_databases! {
    /// Days without a network: every look is recorded, and no agent is stale, gone or retired for that. One
    /// that was on its way out before is where it was, and goes on from there.
    async fn an_outage_of_ours_freezes_verdicts(url: &str) {
        let stage = crowd(url).await;
        stage.look(&name(0), Answer::Fails(Gone)).await;
        stage.advance(Duration::hours(2));
        stage.look(&name(0), Answer::Fails(Gone)).await;
        assert_eq!(stage.agent(&name(0)).await.liveness, "gone");
        stage.advance(Duration::days(29));
        assert_eq!(stage.app.crawl_braked_since(), None);

        let mut looks = 0;
        for _ in 0..12 {
            looks += stage.visit(|_| Answer::Fails(NotFound)).await;
            assert!(stage.app.crawl_braked_since().is_some());
            stage.advance(Duration::hours(6));
        }
        assert!(looks >= DOMAINS * 8, "they are tried again soon: {looks}");
        let row = domains::domain_by_name(&stage.store, &name(1)).await.unwrap().unwrap();
        let sources = domains::sources_of(&stage.store, &[row.id]).await.unwrap();
        let attempts = domains::attempts_of(&stage.store, &[sources[0].id]).await.unwrap();
        assert!(attempts.len() > 8 && attempts[0].outcome == "not_found");
        let left: Vec<_> = stage.agents().await.into_iter().filter(|row| row.liveness != "fresh").collect();
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].liveness.as_str(), left[0].retired_at), ("gone", None));
        let readiness = stage.app.readiness().await;
        let crawler = readiness.checks.iter().find(|check| check.name == "crawler").unwrap();
        assert!(crawler.ok && crawler.detail.contains("frozen since"), "{crawler:?}");

        // The network is back: the first look that fails after that is a first look.
        let away = format!("https://{}/", name(1));
        let answer = |source: &a2a_registry::store::entity::source::Model| match source.url.as_str() {
            url if url == away => Answer::Fails(NotFound),
            url if url == format!("https://{}/", name(0)) => Answer::Fails(Gone),
            _ => Answer::NotModified,
        };
        stage.visit(answer).await;
        assert_eq!(stage.app.crawl_braked_since(), None);
        stage.advance(Duration::hours(2));
        stage.visit(answer).await;
        assert_eq!(stage.agent(&name(1)).await.liveness, "stale");
        assert!(stage.agents().await.iter().any(|row| row.retired_at.is_some()), "{}", name(0));
        stage.index_equals_database().await;
    }

    /// A process that starts in the middle of an outage knows of it, and one that starts later knows that it is over.
    async fn an_outage_outlives_a_restart(url: &str) {
        let stage = crowd(url).await;
        stage.advance(Duration::days(2));
        stage.visit(|_| Answer::Fails(NotFound)).await;
        let since = stage.app.crawl_braked_since();
        assert!(since.is_some());
        let stage = stage.restart(|_| ()).await;
        assert_eq!(stage.app.crawl_braked_since(), None, "it does not crawl yet, and would never see the end");
        stage.app.resume_outage();
        assert_eq!(stage.app.crawl_braked_since(), since);
        for _ in 0..8 {
            stage.advance(Duration::hours(6));
            stage.visit(|_| Answer::Fails(NotFound)).await;
        }
        assert_eq!(states(&stage).await, only("fresh"), "nothing was concluded");
        let stage = stage.restart(|_| ()).await;
        stage.app.resume_outage();
        assert_eq!(stage.app.crawl_braked_since(), since, "it was noted that it goes on");

        stage.advance(Duration::hours(6));
        stage.visit(|_| Answer::NotModified).await;
        assert_eq!(stage.app.crawl_braked_since(), None);
        let stage = stage.restart(|_| ()).await;
        stage.app.resume_outage();
        assert_eq!(stage.app.crawl_braked_since(), None);
        // What nobody has confirmed for days is not believed.
        stage.advance(Duration::days(1));
        stage.visit(|_| Answer::Fails(NotFound)).await;
        assert!(stage.app.crawl_braked_since().is_some());
        stage.advance(Duration::days(3));
        let stage = stage.restart(|_| ()).await;
        stage.app.resume_outage();
        assert_eq!(stage.app.crawl_braked_since(), None);
    }

    /// A few origins that fail are their own fault.
    async fn what_a_tenth_does_is_believed(url: &str) {
        let stage = crowd(url).await;
        stage.advance(Duration::days(2));
        let failing: BTreeSet<String> = (0..DOMAINS / 10).map(|number| format!("https://{}/", name(number))).collect();
        stage.visit(|source| match failing.contains(&source.url) {
            true => Answer::Fails(Timeout),
            false => Answer::NotModified,
        }).await;
        assert_eq!(stage.app.crawl_braked_since(), None);
        let stale = stage.agents().await.iter().filter(|row| row.liveness == "stale").count();
        assert_eq!(stale, DOMAINS / 10);
        assert_eq!(states(&stage).await.len(), 2);
        stage.visit(|_| Answer::NotModified).await;
        stage.advance(Duration::days(2));
        stage.visit(|_| Answer::NotModified).await;
        assert_eq!(states(&stage).await, only("fresh"));
    }
}
