//! Starts with admission rules that differ from those of the last start.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::child_process::wait_until_idle;
use super::registry::RegistryProcess;
use super::tables::{Target, figure_row, tell};
use crate::bench_registry::SUFFIX;

/// How long rules may take to be applied everywhere.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// The time between two lines about decisions.
const STEP: Duration = Duration::from_secs(30);

/// Starts a registry with each change of the rules, and measures when it listens, when it is ready, what it still shows that
/// the rules forbid, and when every decision is made. The folder holds this number of agents, all approved by
/// `--approve-all`.
pub fn measure_rule_changes(folder: &Path, agents: u64) -> Vec<Vec<String>> {
    let denied = format!("*.{SUFFIX}:*");
    let all = json!({"approve_all": true});
    let none = json!({"approve_all": false});
    let deny = json!({"approve_all": true, "deny": [denied]});
    let mut rows = Vec::new();
    for (what, settings, shown) in [
        ("unchanged", &all, agents),
        ("--approve-all removed", &none, 0),
        ("--approve-all added", &all, agents),
        ("deny_domains of all agents added", &deny, 0),
        ("deny_domains removed", &all, agents),
    ] {
        rows.extend(start(folder, what, settings, shown));
    }
    rows
}

/// Starts with these settings, after which this number of agents has to be shown.
#[expect(
    clippy::disallowed_methods,
    reason = "an orchestrator looks at times whether a process is ready"
)]
fn start(folder: &Path, what: &str, settings: &Value, shown: u64) -> Vec<Vec<String>> {
    let registry = RegistryProcess::start(folder, settings);
    let mut seen_first = None;
    let wait = |goal: &str, done: &mut dyn FnMut() -> bool| {
        tell(&format!("rules {what}: waiting until {goal}"));
        let (began, mut told) = (Instant::now(), Instant::now());
        while !done() {
            if told.elapsed() > STEP {
                told = Instant::now();
                let shown = found(&registry);
                assert!(began.elapsed() < PATIENCE, "{what}: not {goal}: {shown:?}");
                tell(&format!("rules {what}: it shows {shown:?} agents"));
            }
            std::thread::sleep(LOOK);
        }
        registry.began.elapsed().as_secs_f64()
    };
    let ready = wait("it is ready", &mut || {
        // A search that is refused shows nothing, and the next one is the first.
        if seen_first.is_none() {
            seen_first = found(&registry);
        }
        registry.is_ready()
    });
    let seen_first = seen_first.or_else(|| found(&registry));
    let goal = format!("it shows {shown} agents");
    wait(&goal, &mut || found(&registry) == Some(shown));
    // Decisions about agents that are hidden already show by nothing else.
    tell("waiting until it is idle");
    wait_until_idle(registry.child.id());
    let decided = registry.began.elapsed().as_secs_f64();
    let listening = registry.listening.as_secs_f64();
    registry.stop();
    let label = |part: &str| format!("start, rules {what}: {part}");
    let mut rows = vec![
        figure_row(
            &label("listening after"),
            listening,
            "s",
            Target::AtMost(1.0),
        ),
        figure_row(&label("ready after"), ready, "s", Target::AtMost(5.0)),
        figure_row(
            &label("everything decided after"),
            decided,
            "s",
            Target::None,
        ),
    ];
    if shown == 0 {
        let forbidden = seen_first.expect("a ready registry answers searches") as f64;
        rows.push(figure_row(
            &label("forbidden agents that the first search shows"),
            forbidden,
            "",
            Target::AtMost(0.0),
        ));
    }
    rows
}

/// The number of agents that anybody finds; `None` while searches are refused.
fn found(registry: &RegistryProcess) -> Option<u64> {
    let (status, page) =
        super::http::call(registry.address, "GET", "/v1/agents?page_size=1", "", "");
    (status == 200).then(|| page["total"].as_u64()).flatten()
}
