//! The table of docs/develop/benches.md#at-a-glance, measured again on the release build and printed as Markdown, to
//! be pasted.
//!
//! Builds the program as a user does, starts it and measures it while it is idle; then runs the benches `cards`,
//! `search`, `engines` and `crawl`, one after another, and takes the rows from their output, which is copied to
//! standard error. Nothing else should run meanwhile.
//!
//! `FIGURES` (`cards,search,engines,crawl,million,idle`) names the rows to measure; a million agents take a quarter of
//! an hour and 10 GB of disk. `FIGURES_IDLE` (30) is the number of seconds after which the program counts as idle.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::report::{median, size_from_env};

/// Starts of the program, each in a folder of its own and then once more in it.
const STARTS: usize = 5;

const MEGABYTE: f64 = 1_000_000.0;

pub fn run() {
    let wanted = std::env::var("FIGURES");
    let wanted = wanted.unwrap_or_else(|_| "cards,search,engines,crawl,million,idle".to_owned());
    let mut rows = Vec::new();
    for name in wanted.split(',') {
        rows.extend(match name {
            "cards" => cards(&BenchOutput::of("cards", &[])),
            "search" => search(&BenchOutput::of("search", &[])),
            "engines" => engines(&BenchOutput::of("engines", &[])),
            "crawl" => crawl(&BenchOutput::of("crawl", &[])),
            "million" => million(&BenchOutput::of("search", &[("BENCH_AGENTS", "1000000")])),
            "idle" => idle(&release_binary()),
            other => panic!("FIGURES names {other:?}, which is no row"),
        });
    }
    println!("| what | registry | against |\n|---|---|---|");
    for [what, registry, against] in rows {
        let against = match against.is_empty() {
            true => String::new(),
            false => format!(" {against}"),
        };
        println!("| {what} | {registry} |{against} |");
    }
}

/// A row of the table.
type FigureRow = [String; 3];

fn row(what: &str, registry: String, against: String) -> FigureRow {
    [what.to_owned(), registry, against]
}

/// What a bench has printed.
struct BenchOutput(Vec<String>);

impl BenchOutput {
    /// Runs a bench to its end.
    fn of(bench: &str, sizes: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(bench)
            .envs(sizes.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = lines.map(|line| {
            let line = line.unwrap();
            eprintln!("{line}");
            line
        });
        let lines = lines.collect();
        assert!(child.wait().unwrap().success(), "the bench {bench} failed");
        Self(lines)
    }

    /// The numbers of the last line with this label.
    fn numbers(&self, label: &str) -> Vec<f64> {
        let numbers = |line: &String| {
            let rest = line.strip_prefix(label)?;
            let fields = rest.starts_with(' ').then(|| rest.split_whitespace())?;
            let parsed = fields.map(|field| field.trim_end_matches('x').parse().ok());
            // A missed target is marked by a word behind the numbers.
            Some(parsed.map_while(|number| number).collect())
        };
        let found = self.0.iter().rev().find_map(numbers);
        found.unwrap_or_else(|| panic!("no line is labelled {label:?}"))
    }

    fn has(&self, label: &str) -> bool {
        self.0.iter().any(|line| line.starts_with(label))
    }
}

fn cards(output: &BenchOutput) -> Vec<FigureRow> {
    let numbers = output.numbers("200, 64 connections");
    vec![row(
        "card, 64 connections",
        rate(numbers[0]),
        format!("{:.2} of a bare server with the same bytes", numbers[2]),
    )]
}

fn search(output: &BenchOutput) -> Vec<FigureRow> {
    let cached = output.numbers("three words, OR");
    let alone = |share: &str| {
        let label = format!("no facets, {share}; bare: without facets");
        milliseconds(output.numbers(&label)[0])
    };
    vec![
        row(
            "cached search over 100 000 agents",
            rate(cached[0]),
            format!("{:.2} of a bare server with the same bytes", cached[2]),
        ),
        row(
            "distinct search, one connection",
            format!("p50 {} ms, p99 {} ms", alone("p50"), alone("p99")),
            String::new(),
        ),
    ]
}

fn engines(output: &BenchOutput) -> Vec<FigureRow> {
    // The columns are connections, searches a second, p50, p99 and how many times slower; the last row of each has many
    // connections.
    let slower = |engine: &str| output.numbers(engine)[4].round();
    let mut against = format!("{} times SQLite's FTS5", slower("SQLite FTS5"));
    if output.has("PostgreSQL full text") {
        let times = slower("PostgreSQL full text");
        against.push_str(&format!(", {times} times PostgreSQL's"));
    }
    vec![row(
        "ten best, total and one facet, many connections",
        rate(output.numbers("registry")[1]),
        against,
    )]
}

fn crawl(output: &BenchOutput) -> Vec<FigureRow> {
    let unchanged = output.numbers("whole way, unchanged cards (304)");
    let new = output.numbers("whole way, new cards");
    vec![row(
        "crawl, fetch to search index, unchanged and new cards",
        format!("{}, {}", rate(unchanged[0]), rate(new[0])),
        format!(
            "{:.2} and {:.2} of a bare fetch-and-parse loop",
            unchanged[2], new[2]
        ),
    )]
}

fn million(output: &BenchOutput) -> Vec<FigureRow> {
    vec![row(
        "a million agents",
        format!(
            "ready in {:.1} s, index rebuilt in {:.0} s",
            output.numbers("ready again after a restart, s")[0],
            output.numbers("index built from the database, s")[0]
        ),
        String::new(),
    )]
}

/// The program while nobody asks it for anything.
#[expect(
    clippy::disallowed_methods,
    reason = "memory at rest is measured after a time without requests"
)]
fn idle(binary: &Path) -> Vec<FigureRow> {
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let folder = tempfile::tempdir().unwrap();
        first.push(ServingProcess::start(binary, folder.path()).took);
        again.push(ServingProcess::start(binary, folder.path()).took);
    }
    let folder = tempfile::tempdir().unwrap();
    let serving = ServingProcess::start(binary, folder.path());
    std::thread::sleep(Duration::from_secs(size_from_env("FIGURES_IDLE", 30) as u64));
    let binary = std::fs::metadata(binary).unwrap().len() as f64;
    vec![
        row(
            "start to listening",
            format!(
                "{:.2} s with an empty data folder, {:.2} s again",
                median(first),
                median(again)
            ),
            String::new(),
        ),
        row(
            "idle",
            format!(
                "{:.0} MB of anonymous memory, {:.0} MB resident, a binary of {:.0} MB",
                serving.memory("RssAnon:"),
                serving.memory("VmRSS:"),
                binary / MEGABYTE
            ),
            String::new(),
        ),
    ]
}

/// A serving process, killed when it is dropped.
struct ServingProcess {
    child: Child,
    /// The seconds from its start until it listens.
    took: f64,
}

impl ServingProcess {
    fn start(binary: &Path, folder: &Path) -> Self {
        let began = Instant::now();
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("A2A_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--json", "--data-dir"])
            .arg(folder.join("data"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert!(line.contains("serving"), "{line:?}");
        Self {
            child,
            took: began.elapsed().as_secs_f64(),
        }
    }

    /// Its memory as the kernel reports it in that field, in MB.
    fn memory(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kibibytes = line.and_then(|line| line.split_whitespace().next());
        kibibytes.unwrap().parse::<f64>().unwrap() * 1_024.0 / MEGABYTE
    }
}

impl Drop for ServingProcess {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The program as `cargo build --release` makes it, beside this bench.
fn release_binary() -> PathBuf {
    let mut build = cargo(&["build", "--release", "--workspace", "--bins"]);
    assert!(build.status().unwrap().success(), "the build failed");
    let this = std::env::current_exe().unwrap();
    let folder = this.ancestors().nth(2).unwrap();
    folder.join("a2a-registry")
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    // Cargo describes the package of this bench in variables. Build scripts that read them would run again, and all that
    // depends on them would be built anew.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// A rate with its digits in groups of three.
fn rate(value: f64) -> String {
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&String::from_utf8_lossy(group));
    }
    text + "/s"
}

/// A time with two significant digits.
fn milliseconds(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}
