//! The open files of a crawl of many domains under a small limit.

use std::time::{Duration, Instant};

use serde_json::json;

use super::origin::CardOrigin;
use super::registry::{RegistryProcess, SourceRange};
use super::tables::{Target, figure_row, tell};
use crate::report::size_from_env;

/// The limit of open files.
const LIMIT: u64 = 1_024;
/// Open files of a process beside those of its crawler: database, index, listener and threads.
const OTHER_FILES: f64 = 256.0;
/// Open connections of the crawler by default.
const CRAWLER_FILES: f64 = 256.0;
/// How long the crawl may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Crawls domains with one card each, and looks at the open files and the readiness meanwhile.
pub fn measure_open_files(seed: u64) -> Vec<Vec<String>> {
    let domains = size_from_env("BENCH_DOMAINS", 20_000);
    let origin = CardOrigin::start(domains, seed);
    let folder = tempfile::tempdir().unwrap();
    let mut registry = RegistryProcess::start(folder.path(), &json!({"open_files": LIMIT}));
    let idle = registry.child.open_files();
    registry.add(
        SourceRange {
            first: 0,
            domains,
            urls: 1,
            account: "",
        },
        &origin,
    );
    let began = Instant::now();
    let (mut most, mut looks, mut not_ready) = (idle, 0_u32, 0_u32);
    loop {
        let done = registry.settles_within(0);
        most = most.max(registry.child.open_files());
        looks += 1;
        if looks % 20_000 == 0 {
            tell(&format!("{domains} domains: {}", registry.outcomes()));
        }
        if looks % 50 == 0 && !registry.is_ready() {
            not_ready += 1;
        }
        if done || began.elapsed() > PATIENCE {
            break;
        }
    }
    let outcomes = registry.outcomes();
    let cards = outcomes["card"].as_u64().unwrap_or_default();
    let missed = domains as f64 - cards as f64;
    let label = |part: &str| format!("crawl of {domains} domains with {LIMIT} open files: {part}");
    println!("outcomes of the crawl: {outcomes}");
    drop(registry);
    vec![
        figure_row(
            &label("most open files"),
            most as f64,
            "",
            Target::AtMost(OTHER_FILES + CRAWLER_FILES),
        ),
        figure_row(
            &label("open files before it"),
            idle as f64,
            "",
            Target::None,
        ),
        figure_row(
            &label("agents without a card"),
            missed,
            "",
            Target::AtMost(0.0),
        ),
        figure_row(
            &label("looks at which it was not ready"),
            f64::from(not_ready),
            "",
            Target::AtMost(0.0),
        ),
    ]
}
