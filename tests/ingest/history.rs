//! What is kept of a source's past, and what time takes away.

use a2a_crawler::AttemptOutcome::{Gone, NotACard, TlsInvalid};
use a2a_registry::app::BODY_RETENTION;
use a2a_registry::store::{crawl, domains, versions};
use time::Duration;

use crate::support::both_databases;
use crate::support::stage::{Answer, Stage, card};

const DOMAIN: &str = "past.agents-test.com";

both_databases! {
    /// Every look counts for its day, and ninety days are kept and shown.
    async fn totals_are_kept_by_the_day(url: &str) {
        let stage = Stage::new(url).await;
        stage.publish_approved(DOMAIN, &card("Past", "Has one")).await;
        stage.look(DOMAIN, Answer::NotModified).await;
        stage.look(DOMAIN, Answer::Fails(NotACard)).await;
        let shown = stage.app.domain_show(&stage.admin, DOMAIN).await.unwrap();
        let today = &shown.sources[0].days;
        assert_eq!(today.len(), 1);
        assert_eq!((today[0].day.as_str(), today[0].looks, today[0].good), ("2026-11-18", 3, 2));
        for _ in 0..crawl::DAYS_PER_SOURCE + 5 {
            stage.advance(Duration::DAY);
            stage.look(DOMAIN, Answer::NotModified).await;
        }
        let row = domains::domain_by_name(&stage.store, DOMAIN).await.unwrap().unwrap();
        let sources = domains::sources_of(&stage.store, &[row.id]).await.unwrap();
        let kept = crawl::source_days_of(&stage.store, &[sources[0].id]).await.unwrap();
        assert_eq!(kept.len() as i32, crawl::DAYS_PER_SOURCE);
        assert!(kept.iter().all(|day| (day.looks, day.good) == (1, 1)));
        let today = stage.app.now().0.div_euclid(86_400_000_000) as i32;
        assert_eq!((kept[0].day, kept.last().unwrap().day), (today, today - crawl::DAYS_PER_SOURCE + 1));
        let shown = stage.app.domain_show(&stage.admin, DOMAIN).await.unwrap();
        assert_eq!(shown.sources[0].days.len() as i32, crawl::DAYS_PER_SOURCE);
    }

    /// Invalid TLS ends trust at once and the listing after a day; what comes next is a whole card over
    /// valid TLS, and trust is back.
    async fn invalid_tls_ends_trust_at_once(url: &str) {
        let stage = Stage::new(url).await;
        let bytes = card("Past", "Had a certificate");
        let agent = stage.publish_approved(DOMAIN, &bytes).await;
        assert!(agent.tls);
        stage.look(DOMAIN, Answer::Fails(TlsInvalid)).await;
        let row = stage.agent(DOMAIN).await;
        assert_eq!((row.tls, row.liveness.as_str()), (false, "stale"));
        stage.index_equals_database().await;
        assert_eq!(stage.found_by_anyone().await.len(), 1, "it is listed still");
        stage.advance(Duration::hours(25));
        let asked = std::cell::Cell::new(false);
        stage.visit(|source| {
            asked.set(asked.get() || (source.kind == "well_known" && source.full_wanted));
            Answer::Fails(TlsInvalid)
        }).await;
        assert!(asked.get(), "a 304 would not do");
        assert_eq!(stage.agent(DOMAIN).await.liveness, "gone");
        stage.index_equals_database().await;
        assert!(stage.found_by_anyone().await.is_empty());
        stage.look(DOMAIN, Answer::Card(bytes)).await;
        let row = stage.agent(DOMAIN).await;
        assert_eq!((row.tls, row.liveness.as_str()), (true, "fresh"));
        stage.index_equals_database().await;
    }

    /// A page where the card was keeps the last good card, with the reason, for as long as it lasts.
    async fn what_is_no_card_keeps_the_last_good_one(url: &str) {
        let stage = Stage::new(url).await;
        let bytes = card("Past", "Became a page");
        let agent = stage.publish_approved(DOMAIN, &bytes).await;
        for _ in 0..5 {
            stage.advance(Duration::days(20));
            stage.look(DOMAIN, Answer::Fails(NotACard)).await;
        }
        let row = stage.agent(DOMAIN).await;
        assert_eq!(row.liveness, "stale");
        assert!(row.liveness_reason.unwrap().contains("no card"));
        assert_eq!(stage.served(agent.id).await.as_ref(), Some(&bytes));
        stage.index_equals_database().await;
        assert_eq!(stage.found_by_anyone().await.len(), 1);
    }

    /// Ninety days after its end an agent's bytes go, unless another agent has them too; what it was and
    /// what was decided stays.
    async fn bytes_of_the_ended_go(url: &str) {
        let stage = Stage::new(url).await;
        let (own, common) = (card("Past", "Alone"), card("Past", "Common"));
        let ended = stage.publish_approved(DOMAIN, &own).await;
        stage.look(DOMAIN, Answer::Card(common.clone())).await;
        let other = stage.publish("other.agents-test.com", &common).await;
        stage.look(DOMAIN, Answer::Fails(Gone)).await;
        stage.advance(Duration::hours(2));
        stage.look(DOMAIN, Answer::Fails(Gone)).await;
        stage.advance(Duration::days(31));
        stage.look(DOMAIN, Answer::Fails(Gone)).await;
        let row = stage.agents().await.into_iter().find(|row| row.id == ended.id).unwrap();
        let left = Duration::microseconds(BODY_RETENTION);
        assert!(row.retired_at.is_some());
        let digest = |bytes: &[u8]| a2a_card::digest(bytes);
        let kept = async |bytes: &[u8]| {
            versions::body_by_digest(&stage.store, &digest(bytes)).await.unwrap().is_some()
        };
        stage.advance(left - Duration::SECOND);
        assert!(!stage.app.housekeep().await.unwrap());
        assert!(kept(&own).await && kept(&common).await);
        stage.advance(Duration::SECOND);
        assert!(!stage.app.housekeep().await.unwrap());
        assert!(!kept(&own).await, "nobody else has them");
        assert!(kept(&common).await, "{} has them", other.id);
        let digests: Vec<String> = stage.versions(ended.id).await.into_iter().map(|row| row.digest).collect();
        assert_eq!(digests, [digest(&own), digest(&common)]);
        assert!(!stage.reviews(ended.id).await.is_empty());
        assert_eq!(stage.served(ended.id).await, None);
    }
}
