//! A virtual crawl of any size; prints all of its figures.
//!
//! `CRAWL_DOMAINS` (2000) and `CRAWL_DAYS` (30) set its size, `CRAWL_DATABASE` its database (default: SQLite in a
//! temporary folder), `CRAWL_STEP` (30) the seconds by which time advances in one step, `CRAWL_CONCURRENCY` (512) the
//! maximum number of concurrent visits, `CRAWL_SEED` (1) the seed of the origins, and `CRAWL_HOURLY` (120) the number
//! of origins in a thousand that send `max-age=3600`.

#[path = "../virtual_crawl/mod.rs"]
mod simulation;

use simulation::{CrawlScenario, crawl};
use time::Duration;

use super::report::size_from_env;

pub async fn run() {
    let scenario = CrawlScenario {
        database: std::env::var("CRAWL_DATABASE").ok(),
        domains: size_from_env("CRAWL_DOMAINS", 2_000) as u64,
        days: size_from_env("CRAWL_DAYS", 30) as i64,
        step: Duration::seconds(size_from_env("CRAWL_STEP", 30) as i64),
        concurrency: size_from_env("CRAWL_CONCURRENCY", 512),
        seed: size_from_env("CRAWL_SEED", 1) as u64,
        hourly: size_from_env("CRAWL_HOURLY", 120) as u64,
    };
    println!("{scenario:?}");
    println!("{}", crawl(&scenario).await);
}
