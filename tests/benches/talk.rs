//! The A2A client: messages and events of streams per second over JSON-RPC, against bare loops with the same HTTP
//! library that read the same bytes as JSON, and the time from the start of `send` as a process to its first byte at
//! the agent.
//!
//! `BENCH_MESSAGES` (5000) messages and `BENCH_EVENTS` (50000) events make one run of a side, and `BENCH_PAIRS` (7)
//! runs of each side are taken in turns; `BENCH_STARTS` (30) processes are started, of the program that
//! `A2A_REGISTRY_BIN` names, or else of the one beside this bench.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use a2a_client::{AgentClient, Message, SendOptions, StreamEventContent};
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpResponse, HttpServer};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::report::{median, print_comparison, print_figure, print_header, size_from_env};

/// Events of one stream.
const EVENTS: usize = 1_000;
/// Bytes in which a stream is sent, as a server with a buffer does.
const CHUNK: usize = 16 * 1024;

/// What the agent answers with.
struct CannedResponses {
    message: Bytes,
    stream: Vec<Bytes>,
    /// Told of each message.
    arrived: Sender<Instant>,
}

pub fn run() {
    let (sender, arrived) = channel();
    let base = serve(sender);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
    let agent = agent(&base);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let pairs = size_from_env("BENCH_PAIRS", 7);

    print_header("the client against a bare loop", "1/s");
    let messages = size_from_env("BENCH_MESSAGES", 5_000);
    let runs = (0..pairs).map(|_| {
        let ours = rate(messages, || runtime.block_on(send(&agent, messages)));
        let bare = rate(messages, || {
            runtime.block_on(bare_send(&client, &base, messages))
        });
        (ours, bare)
    });
    compare("messages over JSON-RPC", runs.collect());
    let streams = size_from_env("BENCH_EVENTS", 50_000).div_ceil(EVENTS);
    let events = streams * (EVENTS + 2);
    let runs = (0..pairs).map(|_| {
        let ours = rate(events, || runtime.block_on(stream(&agent, streams)));
        let bare = rate(events, || {
            runtime.block_on(bare_stream(&client, &base, streams))
        });
        (ours, bare)
    });
    compare("events of streams over JSON-RPC", runs.collect());

    while arrived.try_recv().is_ok() {}
    let Some(program) = program() else {
        println!("\nno program was built beside this bench, so its start was not measured");
        return;
    };
    let starts = (0..size_from_env("BENCH_STARTS", 30)).map(|_| {
        let begun = Instant::now();
        let status = Command::new(&program)
            .args(["send", "--direct", &format!("{base}/card.json"), "hi"])
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        arrived.recv().unwrap().duration_since(begun).as_secs_f64() * 1e3
    });
    println!();
    let starts = format!("{:.1} ms", median(starts.collect()));
    print_figure("start of send to its message at the agent", starts);
}

fn compare(what: &str, runs: Vec<(f64, f64)>) {
    let ratio = median(runs.iter().map(|(ours, bare)| ours / bare).collect());
    let ours = median(runs.iter().map(|(ours, _)| *ours).collect());
    let bare = median(runs.iter().map(|(_, bare)| *bare).collect());
    print_comparison(what, ours, bare, ratio, Some(0.8));
}

fn rate(count: usize, work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    count as f64 / begun.elapsed().as_secs_f64()
}

/// The program to start: the one that is named, or the one that was built beside this bench.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("A2A_REGISTRY_BIN") {
        return Some(named.into());
    }
    let beside = std::env::current_exe().ok()?;
    let program = beside.parent()?.parent()?.join("a2a-registry");
    program.is_file().then_some(program)
}

fn agent(base: &str) -> AgentClient {
    let card = card(base).to_string();
    let card = a2a_card::parse_card(card.as_bytes()).unwrap().card;
    AgentClient::new(&card, &SendOptions::new("unused")).unwrap()
}

async fn send(agent: &AgentClient, count: usize) {
    for _ in 0..count {
        let answer = agent
            .send_message(&Message::from_text("m", "hello"))
            .await
            .unwrap();
        assert_eq!(answer.text, "the answer");
    }
}

async fn bare_send(client: &reqwest::Client, base: &str, count: usize) {
    for _ in 0..count {
        let answer = call(client, base, "SendMessage").await;
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        assert_eq!(answer["result"]["message"]["messageId"], "m");
    }
}

async fn stream(agent: &AgentClient, count: usize) {
    for _ in 0..count {
        let mut stream = agent
            .stream_message(&Message::from_text("m", "hello"))
            .await
            .unwrap();
        let mut pieces = 0;
        while let Some(event) = stream.next_event().await {
            pieces += usize::from(matches!(
                event.unwrap().kind,
                StreamEventContent::Artifact(_)
            ));
        }
        assert_eq!(pieces, EVENTS);
    }
}

async fn bare_stream(client: &reqwest::Client, base: &str, count: usize) {
    for _ in 0..count {
        let answer = call(client, base, "SendStreamingMessage").await;
        let (mut chunks, mut buffer, mut pieces) = (answer.bytes_stream(), Vec::new(), 0);
        while let Some(chunk) = chunks.next().await {
            buffer.extend_from_slice(&chunk.unwrap());
            let mut begin = 0;
            while let Some(end) = buffer[begin..].windows(2).position(|two| two == b"\n\n") {
                let data = buffer[begin..begin + end].strip_prefix(b"data: ").unwrap();
                let event: Value = serde_json::from_slice(data).unwrap();
                pieces += usize::from(event["result"]["artifactUpdate"].is_object());
                begin += end + 2;
            }
            buffer.drain(..begin);
        }
        assert_eq!(pieces, EVENTS);
    }
}

async fn call(client: &reqwest::Client, base: &str, method: &str) -> reqwest::Response {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message":
        {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}});
    let request = client.post(base).header("A2A-Version", "1.0").json(&body);
    request.send().await.unwrap()
}

/// Starts the agent on a thread of its own, and returns its address.
fn serve(arrived: Sender<Instant>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let card = card(&base).to_string();
    std::thread::spawn(move || {
        let serving = async move {
            HttpServer::new(move || {
                let card = card.clone();
                App::new()
                    .app_data(web::Data::new(answers(arrived.clone())))
                    .route("/", web::post().to(answer))
                    .route(
                        "/card.json",
                        web::get().to(move || std::future::ready(card.clone())),
                    )
            })
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run()
            .await
        };
        actix_web::rt::System::new().block_on(serving).unwrap();
    });
    base
}

async fn answer(body: Bytes, answers: web::Data<CannedResponses>) -> HttpResponse {
    let _ = answers.arrived.send(Instant::now());
    let streams = body.windows(13).any(|word| word == b"SendStreaming");
    if !streams {
        let mut response = HttpResponse::Ok();
        return response
            .content_type("application/json")
            .body(answers.message.clone());
    }
    let chunks: Vec<_> = answers
        .stream
        .iter()
        .cloned()
        .map(Ok::<_, std::io::Error>)
        .collect();
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .streaming(futures::stream::iter(chunks))
}

fn card(base: &str) -> Value {
    json!({
        "name": "Bench",
        "description": "Answers at once.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": format!("{base}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "S.", "tags": ["s"]}],
    })
}

fn answers(arrived: Sender<Instant>) -> CannedResponses {
    let wrapped = |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "the answer"}]}});
    let task =
        json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let piece = json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": true,
        "artifact": {"artifactId": "a", "parts": [{"text": "a few more words "}]}}});
    let end = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    let events = [&task]
        .into_iter()
        .chain(std::iter::repeat_n(&piece, EVENTS))
        .chain([&end]);
    let stream: String = events
        .map(|event| format!("data: {}\n\n", wrapped(event.clone())))
        .collect();
    CannedResponses {
        message: wrapped(message).to_string().into(),
        stream: stream
            .as_bytes()
            .chunks(CHUNK)
            .map(Bytes::copy_from_slice)
            .collect(),
        arrived,
    }
}
