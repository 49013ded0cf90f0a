//! Policies: the time until a new set decides and until one changed policy does, the cost for searches meanwhile, after
//! it and with the policies of twenty groups, and the time of one decision in the process.
//!
//! `BENCH_AGENTS` (100000) agents are generated and ingested first, and `BENCH_POLICIES` (200) make a set.
//! `BENCH_QUERIES` (500) distinct queries make one run of a side, and `BENCH_PAIRS` (5) runs of each side are taken in
//! turns.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{NewPolicies, NewPolicy};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::policies::sets::policies_put;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::search::indexing::{apply_next_events, rebuild_index};
use a2a_registry_core::search::policy_rollout::roll_out_newest_policies;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::{Caller, CallerAccount, Credential};
use a2a_registry_domain::role::{Role, Roles};
use a2a_registry_policy::{Action, AgentAttributes, PolicySet, PolicyText, Principal};
use uuid::Uuid;

use super::bench_registry::BenchRegistry;
use super::generator::CardGenerator;
use super::report::{median, print_comparison, print_figure, print_header, size_from_env};

/// Groups that policies name.
const GROUPS: usize = 20;
/// Seconds for which searches are counted beside nothing.
const CALM_SECONDS: u64 = 3;

/// A source of queries that returns none twice.
struct QuerySource {
    generator: CardGenerator,
    next: AtomicUsize,
}

impl QuerySource {
    fn query(&self) -> SearchQuery {
        let number = self.next.fetch_add(1, Ordering::Relaxed) as u64;
        SearchQuery {
            q: Some(self.generator.query(number, 3)),
            ..SearchQuery::default()
        }
    }
}

/// Somebody with these roles, in these groups.
fn caller(role: Role, groups: &[String]) -> Caller {
    let roles: Roles = [role].into_iter().collect();
    Caller {
        network: None,
        account: Some(CallerAccount {
            id: Uuid::from_u128(7),
            name: "somebody".into(),
            scopes: roles.scopes(),
            roles,
            groups: Vec::new(),
            group_names: groups.to_vec(),
            credential: Credential::Token(Uuid::from_u128(8)),
        }),
    }
}

/// A set of policies with conditions, each about one of the groups, beside a permit for everybody.
fn policies(count: usize) -> Vec<PolicyText> {
    let mut texts = vec![PolicyText {
        id: "everybody".into(),
        text: "permit (principal, action, resource);".into(),
    }];
    for number in 1..count {
        let group = number % GROUPS;
        let condition = match number % 4 {
            0 => format!("resource.domain like \"*{number}.agents.test*\""),
            1 => "resource.auth.contains(\"none\") && resource.trust >= 3".to_owned(),
            2 => format!("resource.labels.contains(\"team={number}\")"),
            _ => format!("resource.tags.contains(\"t{number}\") || resource.has_error"),
        };
        texts.push(PolicyText {
            id: format!("p{number}"),
            text: format!(
                "forbid (principal in Group::\"g{group}\", action, resource) when {{ {condition} }};"
            ),
        });
    }
    texts
}

async fn put(app: &AppContext, texts: &[PolicyText]) {
    let one = |text: &PolicyText| NewPolicy {
        id: text.id.clone(),
        text: text.text.clone(),
    };
    let new = NewPolicies {
        policies: texts.iter().map(one).collect(),
        reason: "a bench".into(),
        ..NewPolicies::default()
    };
    let admin = caller(Role::Admin, &[]);
    policies_put(app, &admin, &new, &IfMatch::default())
        .await
        .unwrap();
}

/// Puts the newest set in force; returns how long that took.
async fn applied(app: &AppContext) -> Duration {
    let began = Instant::now();
    while apply_next_events(app).await.unwrap() {}
    assert!(roll_out_newest_policies(app, || false).await.unwrap());
    began.elapsed()
}

/// Seconds that a run of distinct queries takes.
async fn time_searches(
    app: &AppContext,
    caller: &Caller,
    queries: &QuerySource,
    count: usize,
) -> f64 {
    let began = Instant::now();
    for _ in 0..count {
        black_box(search_agents(app, caller, &queries.query()).await.unwrap());
    }
    began.elapsed().as_secs_f64()
}

/// Runs `work` beside so many endless searches; returns what it returns, and the searches per second and their p99.
async fn beside_searches<T>(
    app: &Arc<AppContext>,
    queries: &Arc<QuerySource>,
    searchers: usize,
    work: impl Future<Output = T>,
) -> (T, f64, f64) {
    let stop = Arc::new(AtomicBool::new(false));
    let searchers: Vec<_> = (0..searchers)
        .map(|_| {
            let (app, queries, stop) = (Arc::clone(app), Arc::clone(queries), Arc::clone(&stop));
            tokio::spawn(searching(app, queries, stop))
        })
        .collect();
    let began = Instant::now();
    let done = work.await;
    let seconds = began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for searcher in searchers {
        took.extend(searcher.await.unwrap());
    }
    (done, took.len() as f64 / seconds, p99(took))
}

/// Puts these policies in force beside nothing, beside searches at half load and at full load, each time as another
/// set, and prints how long that takes and what it costs the searches.
async fn time_switches(
    app: &Arc<AppContext>,
    queries: &Arc<QuerySource>,
    what: &str,
    sets: [Vec<PolicyText>; 3],
) {
    let [alone, half, full] = sets;
    put(app, &alone).await;
    print_figure(
        &format!("{what} decides after, s"),
        format!("{:.2}", applied(app).await.as_secs_f64()),
    );
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    for (load, searchers, set) in [("half", cores.div_ceil(2), half), ("full", 2 * cores, full)] {
        let calm = tokio::time::sleep(Duration::from_secs(CALM_SECONDS));
        let ((), calm_rate, calm_p99) = beside_searches(app, queries, searchers, calm).await;
        put(app, &set).await;
        let (took, rate, p99) = beside_searches(app, queries, searchers, applied(app)).await;
        print_figure(
            &format!(
                "{what} at {load} load, s; searches meanwhile, share of their rate; p99, and calm, ms"
            ),
            format!(
                "{:.2}; {:.2}; {p99:.1}, {calm_p99:.1}",
                took.as_secs_f64(),
                rate / calm_rate
            ),
        );
    }
}

/// The same policies with one of them changed: about a fact of its rows, or about what its card says.
fn with_changed_policy(count: usize, variant: usize, reads_card: bool) -> Vec<PolicyText> {
    let mut texts = policies(count);
    let condition = match reads_card {
        true => format!("resource.tags.contains(\"changed{variant}\")"),
        false => format!("resource.labels.contains(\"changed={variant}\")"),
    };
    texts[1].text =
        format!("forbid (principal in Group::\"g1\", action, resource) when {{ {condition} }};");
    texts
}

/// Other policies throughout: each has another name.
fn renamed_policies(count: usize, variant: usize) -> Vec<PolicyText> {
    let renamed = policies(count).into_iter().map(|policy| PolicyText {
        id: format!("{}-{variant}", policy.id),
        ..policy
    });
    renamed.collect()
}

/// Searches until told to stop; returns the time of each in milliseconds.
async fn searching(
    app: Arc<AppContext>,
    queries: Arc<QuerySource>,
    stop: Arc<AtomicBool>,
) -> Vec<f64> {
    let nobody = Caller::default();
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        black_box(
            search_agents(&app, &nobody, &queries.query())
                .await
                .unwrap(),
        );
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    took
}

fn p99(mut took: Vec<f64>) -> f64 {
    took.sort_unstable_by(f64::total_cmp);
    took.get(took.len() * 99 / 100).copied().unwrap_or_default()
}

pub async fn run() {
    let agents = size_from_env("BENCH_AGENTS", 100_000);
    let count = size_from_env("BENCH_QUERIES", 500);
    let generator = CardGenerator::new(size_from_env("BENCH_SEED", 1) as u64);
    let stock = BenchRegistry::new().await;
    stock.add_sources(agents, 1, 80).await;
    stock.fill(|index| generator.card(index)).await;
    rebuild_index(&stock.app, || false).await.unwrap();
    let app = &stock.app;
    let queries = Arc::new(QuerySource {
        generator,
        next: AtomicUsize::new(0),
    });
    let policy_count = size_from_env("BENCH_POLICIES", 200);
    println!("\n{agents} agents, {policy_count} policies, {GROUPS} groups");
    decisions(policy_count);

    let member = caller(Role::Reader, &["g1".to_owned(), "g2".to_owned()]);
    let mut without = Vec::new();
    time_searches(app, &member, &queries, count).await;
    for _ in 0..size_from_env("BENCH_PAIRS", 5) {
        without.push(count as f64 / time_searches(app, &member, &queries, count).await);
    }

    let whole = [1, 2, 3].map(|variant| renamed_policies(policy_count, variant));
    time_switches(app, &queries, "a whole new set", whole).await;
    put(app, &policies(policy_count)).await;
    applied(app).await;
    for (what, reads_card) in [
        ("one changed policy about labels", false),
        ("one changed policy about tags", true),
    ] {
        let changed =
            [1, 2, 3].map(|variant| with_changed_policy(policy_count, variant, reads_card));
        time_switches(app, &queries, what, changed).await;
    }
    let bytes = app.index.rule_label_bytes() as f64 / agents as f64;
    print_figure("labels by policies, bytes an agent", format!("{bytes:.0}"));

    let switched = count as f64 / time_searches(app, &member, &queries, count).await;
    print_figure(
        "searches on the index that the switches have left, queries/s",
        format!("{switched:.0}"),
    );
    rebuild_index(app, || false).await.unwrap();

    let unbound = caller(Role::Curator, &[]);
    let (mut with, mut beside) = (Vec::new(), Vec::new());
    time_searches(app, &member, &queries, count).await;
    for _ in 0..size_from_env("BENCH_PAIRS", 5) {
        with.push(count as f64 / time_searches(app, &member, &queries, count).await);
        beside.push(count as f64 / time_searches(app, &unbound, &queries, count).await);
    }
    print_header(
        "distinct searches of a member of two groups, one at a time",
        "queries/s",
    );
    let with = median(with);
    let against = [
        (
            "three words, OR; bare: a curator, whom none binds",
            median(beside),
            Some(0.9),
        ),
        (
            "the same; bare: before any policy was made",
            median(without),
            None,
        ),
    ];
    for (what, bare, target) in against {
        print_comparison(what, with, bare, with / bare, target);
    }
    stock.close().await;
}

/// One decision by the sets: the policies that match the agent are known.
fn decisions(policy_count: usize) {
    let set = PolicySet::compile(1, &policies(policy_count)).unwrap();
    let facts = AgentAttributes {
        auth: vec!["none".into()],
        trust: 1,
        ..AgentAttributes::default()
    };
    let principal = Principal {
        account: Some("somebody".into()),
        groups: vec!["g1".into(), "g2".into()],
    };
    let began = Instant::now();
    let rounds = 200;
    for round in 0..rounds {
        // Equal values would share a result.
        let facts = AgentAttributes {
            domain: format!("d{round}.example"),
            tags: vec![format!("t{round}")],
            provider: format!("p{round}"),
            labels: vec![format!("l={round}")],
            ..facts.clone()
        };
        black_box(set.match_agent(Action::Discover, black_box(&facts)));
    }
    let evaluated = began.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    print_figure(
        "one agent evaluated under all, us",
        format!("{evaluated:.0}"),
    );
    let matches = set.match_agent(Action::Invoke, &facts);
    let none = BTreeSet::new();
    let mut took = Vec::new();
    for _ in 0..10_000 {
        let began = Instant::now();
        black_box(set.decide(Action::Invoke, black_box(&principal), &matches, &none));
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    print_figure(
        "a decision in the process, median, us",
        format!("{:.2}", median(took)),
    );
}
