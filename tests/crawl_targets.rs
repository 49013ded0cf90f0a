//! The targets of the virtual crawl, at the size that every run of the tests can afford.

use time::Duration;

use crate::virtual_crawl::{Scenario, crawl};

/// Thirty days of two thousand domains on SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_days_of_two_thousand_domains() {
    let figures = crawl(&Scenario {
        database: None,
        domains: 2_000,
        days: 30,
        step: Duration::seconds(150),
        concurrency: 256,
        seed: 1,
    })
    .await;
    println!("{figures}");
    assert_eq!(figures.violations(), 0, "{figures}");
    assert!(figures.fresh >= 0.999, "{figures}");
    assert!(figures.peak_to_mean() <= 1.2, "{figures}");
    assert!(figures.not_modified_share() >= 0.95, "{figures}");
    assert!(figures.memory <= 512 * 1024 * 1024, "{figures}");
    assert!(figures.looks > 30 * 2_000, "{figures}");
}
