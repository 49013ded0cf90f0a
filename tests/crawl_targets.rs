//! Targets of the virtual crawl, at a size that fits every test run.

use time::Duration;

use crate::virtual_crawl::{CrawlScenario, crawl};

/// Thirty days of two thousand domains on SQLite. Few of them have an hour's `max-age`, to save time; the bench
/// `virtual_crawl` has the full population. Ten visits in five minutes cannot be as even as thousands, so the peak may
/// be some visits higher here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_days_of_two_thousand_domains() {
    let figures = crawl(&CrawlScenario {
        database: None,
        domains: 2_000,
        days: 30,
        step: Duration::seconds(300),
        concurrency: 256,
        seed: 1,
        hourly: 20,
    })
    .await;
    println!("{figures}");
    assert_eq!(figures.violations(), 0, "{figures}");
    assert!(figures.fresh >= 0.999, "{figures}");
    assert!(
        f64::from(figures.peak) <= figures.mean * 1.2 + 4.0 * figures.mean.sqrt(),
        "{figures}"
    );
    // Full fetches, one per week and source, cannot be answered by 304 (docs/develop/model.md#crawl-schedule).
    assert!(
        figures.not_modified_share_of_conditional() >= 0.95,
        "{figures}"
    );
    assert!(figures.fetches > 30 * 2_000, "{figures}");
}
