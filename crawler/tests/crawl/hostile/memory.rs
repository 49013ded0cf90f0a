//! Memory use of inputs 108 to 130, which are everything that a server may do and send.
//!
//! The system reports the peak memory of a whole process, and a test shares its process with others. So the fetches run
//! in a second process of this test program; servers and name server stay in the first, and their memory does not
//! count.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::fetch::{Fetcher, FetcherConfig};
use tokio::process::Command;
use url::Url;

use super::bombs::brotli_bomb;
use super::setup::{attempt, trap};
use super::transport::limits;
use super::wire::Wire;
use super::{config, payload, transport};
use crate::support::{Authority, NameServer, ScriptedReply, fetcher_with, resolver_at};

/// The test that the second process runs, by its libtest name.
const TEST: &str = "hostile::memory::no_input_takes_much_memory";
/// Variables for the second process: the name server, a certificate, and the inputs.
const NAMES: &str = "HOSTILE_NAMES";
const AUTHORITY: &str = "HOSTILE_AUTHORITY";
const INPUTS: &str = "HOSTILE_INPUTS";
/// Maximum memory of a fetch in bytes, with everything that is derived from its response.
const MOST_MEMORY: usize = 32 * 1024 * 1024;

/// One line of [`INPUTS`].
struct Input {
    url: Url,
    slow: bool,
    what: String,
}

impl Input {
    fn line(&self) -> String {
        format!("{} {} {}", self.url, self.slow, self.what)
    }

    fn read(line: &str) -> Self {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().unwrap();
        Self {
            url: next().parse().unwrap(),
            slow: next().parse().unwrap(),
            what: next().to_owned(),
        }
    }
}

/// Peak memory of this process so far, in bytes.
fn most_held() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<usize>().unwrap() * 1024
}

/// Makes the fetches one after another, so that each is compared with the peak of the fetches before it.
async fn fetch_all(inputs: &str) {
    let variable = |name| std::env::var(name).unwrap();
    let names: SocketAddr = variable(NAMES).parse().unwrap();
    let authority = variable(AUTHORITY).into_bytes();
    let fetcher = |slow| -> Fetcher {
        let config = FetcherConfig {
            extra_ca: vec![authority.clone()],
            ..config(limits(slow))
        };
        let resolver = resolver_at(names, Duration::from_secs(2));
        fetcher_with(config, Arc::new(resolver))
    };
    let (patient, hasty) = (fetcher(false), fetcher(true));
    let mut before = None;
    for input in inputs.lines().map(Input::read) {
        let fetcher = if input.slow { &hasty } else { &patient };
        drop(attempt(fetcher, &input.url, &input.what).await);
        // The first fetch is of an ordinary card, and sets up everything that all fetches share.
        let before = *before.get_or_insert_with(most_held);
        let taken = most_held() - before;
        eprintln!("{} {taken}", input.what);
        assert!(taken < MOST_MEMORY, "{}: {taken} bytes", input.what);
    }
    // Control: too much memory is noticed.
    let held = std::hint::black_box(vec![1_u8; 2 * MOST_MEMORY]);
    assert!(most_held() - before.unwrap() > MOST_MEMORY);
    drop(held);
}

/// Has the second process fetch from these servers one after another.
async fn have_fetched(wires: Vec<(String, bool, Wire)>) {
    let authority = Authority::new("memory");
    let names = NameServer::start(trap).await;
    let mut running = Vec::new();
    let mut lines = Vec::new();
    for (what, slow, wire) in wires {
        let server = wire.start(&authority, 0).await;
        let url = server.url.clone();
        lines.push(Input { url, slow, what }.line());
        running.push(server);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(NAMES, names.at.to_string())
        .env(AUTHORITY, String::from_utf8(authority.pem()).unwrap())
        .env(INPUTS, lines.join("\n"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "see above");
    // If the test were renamed without its constant, the second process would fetch nothing.
    assert!(names.asked() >= running.len());
}

fn usual_card() -> (String, bool, Wire) {
    let card = ScriptedReply::json(r#"{"name": "x", "url": "https://a.example/"}"#);
    ("a usual card".to_owned(), false, Wire::Plain(card))
}

#[tokio::test]
async fn no_input_takes_much_memory() {
    if let Ok(inputs) = std::env::var(INPUTS) {
        return fetch_all(&inputs).await;
    }
    let mut wires = vec![usual_card()];
    for case in payload::cases() {
        wires.push((case.what(), false, Wire::Plain(case.reply())));
    }
    for case in transport::cases() {
        wires.push((case.what(), case.slow, case.wire));
    }
    have_fetched(wires).await;
}

/// A variant of input 118: the decoder accepts windows of up to a gibibyte, and fills them.
#[tokio::test]
async fn a_window_that_is_none_takes_no_memory() {
    let bomb = ScriptedReply::new(200, "content-encoding: br\r\n", brotli_bomb(30, 64));
    let what = "a br bomb with a window that is none".to_owned();
    have_fetched(vec![usual_card(), (what, false, Wire::Plain(bomb))]).await;
}
