//! Reading, modelling and linting cards, against building a JSON tree of the same bytes.
//!
//! The cards are those of the folder `cards` in `A2A_REGISTRY_SHARED`, or without that folder generated ones.
//! `BENCH_PAIRS` (9) is how often both sides take turns, `BENCH_MILLIS` (200) how long one turn lasts at least.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a bench fails by panicking, and its figures are rough"
)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use a2a_card::{MAX_CARD_BYTES, all_findings, parse_card};
use serde_json::{Value, json};

/// Reading and linting may take so many times what the tree alone takes.
const LIMIT: f64 = 5.0;

/// A byte of the largest card may take so many times what a byte of a small card of its kind takes, beyond
/// what the tree's bytes do.
const GROWTH_LIMIT: f64 = 2.0;

/// Makes a card of about so many bytes.
type CardOfSize = fn(usize) -> Vec<u8>;

/// What a turn does with a card.
type Measured = fn(&[u8]);

fn main() {
    let (origin, cards) = corpus();
    println!("{} cards of {origin}", cards.len());
    println!(
        "{:<34} {:>9} {:>9} {:>8} {:>8} {:>6} {:>6}",
        "", "ours", "tree", "ours", "tree", "", ""
    );
    println!(
        "{:<34} {:>9} {:>9} {:>8} {:>8} {:>6} {:>6}",
        "", "cards/s", "cards/s", "ns/byte", "ns/byte", "ratio", "limit"
    );
    compare("read, model and lint", &cards, whole, Some(LIMIT));
    compare("read and model", &cards, reading, None);
    for (name, card) in shapes() {
        let small = compare(&format!("{name}, small"), &[card(1 << 12)], whole, None);
        let large = card(MAX_CARD_BYTES);
        assert!(large.len() > MAX_CARD_BYTES / 2, "{name}: {}", large.len());
        let large = compare(&format!("{name}, 1 MiB"), &[large], whole, None);
        let (growth, bare) = (large.0 / small.0, large.1 / small.1);
        // What a tree of this size costs in caches and pages, both sides pay.
        let mark = missed(growth / bare.max(1.0), Some(GROWTH_LIMIT));
        println!("  its bytes take {growth:.2} times as long, in the tree {bare:.2} times{mark}");
    }
}

/// Everything that is done with a card once it has been fetched.
fn whole(bytes: &[u8]) {
    let parsed = black_box(parse_card(bytes)).unwrap();
    black_box(all_findings(&parsed, bytes));
}

fn reading(bytes: &[u8]) {
    black_box(parse_card(bytes)).unwrap();
}

fn tree(bytes: &[u8]) {
    black_box(serde_json::from_slice::<Value>(bytes)).unwrap();
}

/// Lets both sides take turns, prints the pair with the median ratio, and gives both sides' nanoseconds a byte.
fn compare(what: &str, cards: &[Vec<u8>], ours: Measured, limit: Option<f64>) -> (f64, f64) {
    for card in cards {
        ours(card);
        tree(card);
    }
    let mut pairs: Vec<(f64, f64)> = (0..size("BENCH_PAIRS", 9))
        .map(|_| (turn(cards, ours), turn(cards, tree)))
        .collect();
    pairs.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let (ours, bare) = pairs[pairs.len() / 2];
    let bytes: usize = cards.iter().map(Vec::len).sum();
    let a_byte = |seconds: f64| seconds * 1e9 / bytes as f64;
    let a_second = |seconds: f64| cards.len() as f64 / seconds;
    let ratio = ours / bare;
    let wanted = limit.map_or_else(String::new, |limit| format!("{limit:.2}"));
    println!(
        "{what:<34} {:>9.0} {:>9.0} {:>8.2} {:>8.2} {ratio:>6.2} {wanted:>6}{}",
        a_second(ours),
        a_second(bare),
        a_byte(ours),
        a_byte(bare),
        missed(ratio, limit)
    );
    (a_byte(ours), a_byte(bare))
}

/// The mark of a missed limit.
fn missed(figure: f64, limit: Option<f64>) -> &'static str {
    if limit.is_some_and(|limit| figure > limit) {
        " missed"
    } else {
        ""
    }
}

/// How many seconds it takes to go through all cards once.
fn turn(cards: &[Vec<u8>], act: Measured) -> f64 {
    let least = Duration::from_millis(size("BENCH_MILLIS", 200) as u64);
    let start = Instant::now();
    let mut rounds = 0_u32;
    while start.elapsed() < least {
        for card in cards {
            act(black_box(card));
        }
        rounds += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(rounds)
}

/// A size from the environment, or what it is without.
fn size(variable: &str, without: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
        Err(_) => without,
    }
}

/// The cards to read, and where they come from.
fn corpus() -> (String, Vec<Vec<u8>>) {
    let shared = std::env::var_os("A2A_REGISTRY_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("cards");
    if !folder.is_dir() {
        let cards = (1..300).map(|skills| ordinary(skills % 20)).collect();
        return ("a generator".to_owned(), cards);
    }
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .collect();
    paths.sort();
    let mut cards: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    cards.retain(|card| parse_card(card).is_ok());
    (folder.display().to_string(), cards)
}

/// A card as many agents have it, with so many skills.
fn ordinary(skills: usize) -> Vec<u8> {
    let skills: Vec<Value> = (0..skills).map(skill).collect();
    let card = json!({
        "name": "Flight desk", "description": "Finds and books flights for people in a hurry.",
        "version": "1.4.2", "protocolVersion": "0.3.0", "url": "https://desk.agents.dev/a2a",
        "preferredTransport": "JSONRPC", "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": skills,
    });
    card.to_string().into_bytes()
}

/// An ordinary skill.
fn skill(number: usize) -> Value {
    json!({
        "id": format!("skill-{number}"), "name": format!("Skill {number}"),
        "description": "Looks for connections between two places and tells what they cost.",
        "tags": ["travel", "flights"], "examples": ["From Lyon to Oslo on Friday"],
    })
}

/// What a large card may be made of, as functions of about its size.
fn shapes() -> Vec<(&'static str, CardOfSize)> {
    fn filled(size: usize, member: &str, piece: impl Fn(usize) -> String) -> Vec<u8> {
        let mut card = format!(r#"{{"name":"A","url":"https://a.agents.dev/",{member}"#);
        let close = if member.ends_with('[') { "]}" } else { "}}" };
        for number in 0.. {
            let piece = piece(number);
            if card.len() + piece.len() + 3 > size {
                break;
            }
            if number > 0 {
                card.push(',');
            }
            card.push_str(&piece);
        }
        card.push_str(close);
        card.into_bytes()
    }
    vec![
        ("skills", |size| {
            filled(size, r#""skills":["#, |number| skill(number).to_string())
        }),
        ("skills that are texts", |size| {
            filled(size, r#""skills":["#, |number| format!("\"s{number}\""))
        }),
        ("own members", |size| {
            filled(size, r#""x":{"#, |number| {
                format!("\"own_member_{number}\":\"{number}\"")
            })
        }),
        ("numbers", |size| {
            filled(size, r#""x":["#, |number| format!("{number}.25"))
        }),
        ("one long text", |size| {
            let text = "Ordinary words, and some more of them. ".repeat(size / 39 - 4);
            format!(r#"{{"name":"A","url":"https://a.agents.dev/","description":"{text}"}}"#)
                .into_bytes()
        }),
        ("open braces", |size| {
            let text = "{ABC _< ".repeat(size / 8 - 16);
            format!(r#"{{"name":"A","url":"https://a.agents.dev/","description":"{text}"}}"#)
                .into_bytes()
        }),
        ("interfaces", |size| {
            filled(size, r#""supportedInterfaces":["#, |number| {
                json!({
                    "url": format!("https://{number}.agents.dev/a2a"), "protocolBinding": "JSONRPC",
                    "protocolVersion": "1.0",
                })
                .to_string()
            })
        }),
        ("security schemes", |size| {
            filled(size, r#""securitySchemes":{"#, |number| {
                format!(r#""s{number}":{{"type":"http","scheme":"bearer"}}"#)
            })
        }),
        ("duplicate members", |size| {
            filled(size, r#""x":{"#, |_| r#""a":1"#.to_owned())
        }),
        ("hidden text", |size| {
            filled(size, r#""x":["#, |_| "\"\u{202e}\"".to_owned())
        }),
    ]
}
