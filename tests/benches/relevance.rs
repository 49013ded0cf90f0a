//! Relevance of search results, compared with SQLite's FTS5 over the same texts.
//!
//! Real cards are read from `A2A_REGISTRY_SHARED/cards`; `BENCH_SEEDS` (5) is the number of different choices of
//! held-out examples. Every query is run in full-text, hybrid and semantic mode, with the sentence encoder in the folder
//! that `A2A_REGISTRY_TEST_MODEL` names, else with the built-in one. `A2A_REGISTRY_RELEVANCE_MISSES` prints every query
//! whose first hit is wrong.
//!
//! `BENCH_SETS` names the collections to run, separated by commas: `own`, `languages`, `held-out`, and of the questions
//! to real cards `tuned-on` and `set-aside` (halves of the older ones), `filters`, `short`, `messy`, `unanswerable` and
//! `embarrassing`. `BENCH_HALF` is `tune`, `aside` or `both` (the default): whoever tunes the ranking prints
//! `BENCH_HALF=tune` alone, which leaves out `set-aside` and the other half of each newer set. `own`, `languages`,
//! `held-out` and `embarrassing` have no halves.

#[path = "../relevance/mod.rs"]
pub mod relevance_collections;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use a2a_registry_embed::Embedder;
use relevance_collections::everyday_questions::{
    EmbarrassingQuery, answerable_question_sets, embarrassing_queries, everyday_question_cards,
    unanswerable_questions,
};
use relevance_collections::{
    JudgedQuery, QueryHalf, RelevanceScore, RelevanceTrial, held_out, languages, own_collection,
    real_card_questions,
};

use super::report::size_from_env;

/// The modes of a search.
const MODES: [&str; 3] = ["lexical", "hybrid", "semantic"];
/// Characters of a query or name in the table of embarrassing queries.
const COLUMN_CHARS: usize = 38;

pub async fn run() {
    let model: Arc<dyn Embedder> = super::bench_encoder::open_encoder();
    if is_wanted("own") {
        let own = own_collection();
        print_scores(&own.cards, &[("Our own queries", &own.queries)], &model).await;
    }
    if is_wanted("languages") {
        let some = languages();
        let title = "Cards and questions in nine languages";
        print_scores(&some.cards, &[(title, &some.queries)], &model).await;
    }
    let Some(shared) = std::env::var_os("A2A_REGISTRY_SHARED") else {
        println!("SKIPPED: A2A_REGISTRY_SHARED names no folder with real cards");
        return;
    };
    let folder = Path::new(&shared).join("cards");
    print_real(&folder, &model).await;
    for seed in 1..=size_from_env("BENCH_SEEDS", 5) as u64 {
        if is_wanted("held-out") {
            let title = format!("Held-out examples of real cards, seed {seed}, by half");
            let held_out = held_out(&folder, seed);
            print_scores(&held_out.cards, &[(&title, &held_out.queries)], &model).await;
        }
    }
}

/// Prints the scores of the questions to real cards, by half.
async fn print_real(folder: &Path, model: &Arc<dyn Embedder>) {
    let answerable = answerable_lists(folder);
    let unanswerable = unanswerable_lists();
    let wants_embarrassing = is_wanted("embarrassing");
    if answerable.is_empty() && unanswerable.is_empty() && !wants_embarrassing {
        return;
    }
    let cards = everyday_question_cards(folder);
    let trial = RelevanceTrial::new(&cards, Some(Arc::clone(model))).await;
    for mode in MODES {
        let mut all = RelevanceScore::default();
        for (title, queries) in &answerable {
            let found = trial.run_queries(queries, mode).await;
            println!("{title}, {mode}\n{found}");
            let (ours, _) = found.totals();
            all.answered += ours.answered;
            all.weakly_answered += ours.weakly_answered;
        }
        if !answerable.is_empty() {
            println!(
                "Right answers marked weak in all sets above, {mode}: {} of {}\n",
                all.weakly_answered, all.answered
            );
        }
        for (title, queries) in &unanswerable {
            let counts = count_nothing_fits(&trial, queries, mode).await;
            println!("{title}, {mode}\n{counts}");
        }
        if wants_embarrassing {
            print_embarrassing(&trial, mode).await;
        }
    }
    trial.close().await;
}

/// The titles and questions of the wanted sets and halves that some card answers.
fn answerable_lists(folder: &Path) -> Vec<(String, Vec<JudgedQuery>)> {
    let real = real_card_questions(folder);
    let older = [
        (
            "tuned-on",
            QueryHalf::Tune,
            "Questions to real cards, tuned on",
            real.tuned_on,
        ),
        (
            "set-aside",
            QueryHalf::Aside,
            "Questions to real cards, set aside",
            real.set_aside,
        ),
    ];
    let halves = wanted_halves();
    let mut lists = Vec::new();
    for (set, half, title, queries) in older {
        if is_wanted(set) && halves.contains(&half) {
            lists.push((title.to_owned(), queries));
        }
    }
    for set in answerable_question_sets() {
        if is_wanted(set.name) {
            for half in &halves {
                let title = format!("{}, {}", set.title, half_name(*half));
                lists.push((title, set.queries_in_half(*half)));
            }
        }
    }
    lists
}

/// The titles and questions of the wanted halves that no card answers.
fn unanswerable_lists() -> Vec<(String, Vec<JudgedQuery>)> {
    let set = unanswerable_questions();
    if !is_wanted(set.name) {
        return Vec::new();
    }
    let list = |half| {
        let title = format!("{}, {}", set.title, half_name(half));
        (title, set.queries_in_half(half))
    };
    wanted_halves().into_iter().map(list).collect()
}

/// The halves that `BENCH_HALF` names.
fn wanted_halves() -> Vec<QueryHalf> {
    match std::env::var("BENCH_HALF").as_deref() {
        Ok("tune") => vec![QueryHalf::Tune],
        Ok("aside") => vec![QueryHalf::Aside],
        Ok("both") | Err(_) => vec![QueryHalf::Tune, QueryHalf::Aside],
        Ok(other) => panic!("BENCH_HALF must be tune, aside or both, not {other:?}"),
    }
}

fn half_name(half: QueryHalf) -> &'static str {
    match half {
        QueryHalf::Tune => "tuned on",
        QueryHalf::Aside => "set aside",
    }
}

/// Whether `BENCH_SETS` names this collection, or is not set.
fn is_wanted(set: &str) -> bool {
    std::env::var("BENCH_SETS").map_or(true, |wanted| wanted.split(',').any(|one| one == set))
}

/// Prints the scores of several lists of queries to the same cards, in every mode.
async fn print_scores(
    cards: &[Vec<u8>],
    lists: &[(&str, &Vec<JudgedQuery>)],
    model: &Arc<dyn Embedder>,
) {
    let trial = RelevanceTrial::new(cards, Some(Arc::clone(model))).await;
    for (title, queries) in lists {
        for mode in MODES {
            let found = trial.run_queries(queries, mode).await;
            println!("{title}, {mode}\n{found}");
        }
    }
    trial.close().await;
}

/// How many unanswerable queries of each kind end in "nothing fits": without a hit that is not weak.
#[derive(Debug, Default)]
struct NothingFitsCounts(BTreeMap<String, (usize, usize)>);

impl fmt::Display for NothingFitsCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>4} {:>12} {:>6}",
            "", "", "nothing fits", "share"
        )?;
        let counts = self.0.values();
        let all = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let kinds = self.0.iter().map(|(kind, counts)| (kind.as_str(), *counts));
        for (kind, (unfitting, queries)) in kinds.chain([("all", all)]) {
            let share = unfitting as f64 / queries.max(1) as f64;
            writeln!(f, "{kind:<16} {queries:>4} {unfitting:>12} {share:>6.3}")?;
        }
        Ok(())
    }
}

/// Runs unanswerable queries. With `A2A_REGISTRY_RELEVANCE_MISSES` set, prints those with a hit that is not weak.
async fn count_nothing_fits(
    trial: &RelevanceTrial,
    queries: &[JudgedQuery],
    mode: &str,
) -> NothingFitsCounts {
    let misses = std::env::var_os("A2A_REGISTRY_RELEVANCE_MISSES").is_some();
    let mut counts = NothingFitsCounts::default();
    for judged in queries {
        let (hits, _) = trial.search(&judged.query, mode).await;
        let fitting = hits.iter().find(|hit| !hit.is_weak);
        if let Some(hit) = fitting.filter(|_| misses) {
            println!(
                "{mode} {}: {:?}\n  wanted nothing\n  got {:?}",
                judged.kind, judged.query, hit.name
            );
        }
        let (unfitting, queries) = counts.0.entry(judged.kind.clone()).or_default();
        *unfitting += usize::from(fitting.is_none());
        *queries += 1;
    }
    counts
}

/// Prints the first hit of every embarrassing query, whether it is marked weak, and whether that is right.
async fn print_embarrassing(trial: &RelevanceTrial, mode: &str) {
    println!("Embarrassing queries, {mode}");
    let width = COLUMN_CHARS;
    println!("{:<width$} {:<width$} {:<4}", "query", "first hit", "weak");
    let queries = embarrassing_queries();
    let mut right = 0;
    for embarrassing in &queries {
        let (hits, _) = trial.search(&embarrassing.query, mode).await;
        let first = hits.first();
        let is_weak = first.is_some_and(|hit| hit.is_weak);
        let name = first.map_or("", |hit| hit.name.as_str());
        let fitting = first.filter(|hit| !hit.is_weak);
        let is_right = accepts(embarrassing, fitting.map(|hit| hit.name.as_str()));
        right += usize::from(is_right);
        println!(
            "{:<width$} {:<width$} {:<4} {}",
            shortened(&embarrassing.query),
            shortened(name),
            if is_weak { "weak" } else { "" },
            if is_right { "right" } else { "wrong" },
        );
    }
    println!("right: {right} of {}\n", queries.len());
}

/// Whether this first hit that fits, or the absence of one, is right.
fn accepts(embarrassing: &EmbarrassingQuery, first_fitting: Option<&str>) -> bool {
    match first_fitting {
        Some(name) => embarrassing.expect.contains(name),
        None => embarrassing.may_find_nothing,
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(COLUMN_CHARS) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}
