//! Hostile answers: markup is shown as text, and endless, huge or broken answers are shown in part or rejected.

use serde_json::{Value, json};

use super::{ConsoleUser, RPC, card, message, open_to_pages, publish, rpc, sse, stream};
use crate::support::origin::{Origin, OriginReply};
use crate::support::setup::RegistrySetup;

/// The bounds of `web/static/console.js`.
const EVENT: usize = 4 * 1024 * 1024;
const RESPONSE: usize = 32 * 1024 * 1024;
const EVENTS: usize = 10_000;
const TEXT: usize = 50_000;
const LINES: usize = 500;
const TRAFFIC: u64 = 200;
const TRAFFIC_TEXT: usize = 4_000;
const TURNS: usize = 200;
const ID: usize = 1_000;
const FILES: usize = 5 * 1024 * 1024;

const MARKUP: &str = "<img src=x onerror=\"window.ran=1\"><script>window.ran=1</script> \u{202e}gnihton\u{200b} javascript:window.ran=1";

/// A message of this many characters as an event over JSON-RPC, as long as that.
fn event_of(length: usize) -> String {
    let event = |text: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "result": message(&json!([{"text": text}]))}).to_string()
    };
    let frame = event("").len();
    event(&"x".repeat(length - frame))
}

fn many(count: usize, state: &str) -> Vec<Value> {
    let status =
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": state}}});
    vec![status; count]
}

#[tokio::test]
async fn hostile_answers_are_shown_as_text_and_within_bounds() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let agent = Origin::start();
    let interfaces = json!([rpc(&agent.url(RPC))]);
    let (_card, id) = publish(&registry, card(&interfaces, &json!({}))).await;
    let talker = ConsoleUser::open_browser(&registry).await;
    talker.open(&id).await;

    // Markup in every place that shows a text.
    let file = json!({"raw": "PGI-", "filename": format!("../../{MARKUP}.html"), "mediaType": "text/html"});
    let parts = json!([
        {"text": MARKUP}, {"data": {MARKUP: MARKUP}}, file, {"raw": "!", "filename": MARKUP},
        {"url": "javascript:window.ran=1", "filename": MARKUP}, {"url": "https://a.example/x"}, {MARKUP: 1}, null,
    ]);
    let artifact = json!({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "name": MARKUP, "parts": parts}}});
    let status = json!({"statusUpdate": {"taskId": "t", "status": {"state": MARKUP, "message": {"parts": parts}}}});
    let end = json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_FAILED"}}});
    agent.set_reply(RPC, stream(&[artifact, status, end]));
    let shown = talker.ask(MARKUP).await;
    assert!(shown.text.contains("<img src=x"), "{shown:?}");
    assert!(
        shown.text.contains("⟦U+202E⟧") && !shown.text.contains('\u{202e}'),
        "{shown:?}"
    );
    for (name, kind, _) in &shown.files {
        assert_eq!(kind, "application/octet-stream");
        assert!(
            !name.contains(['/', '<', '>', '"', '\u{202e}', ':']),
            "{name}"
        );
    }
    let made = talker
        .run(
            "const links = [...document.querySelectorAll('#console-log a')].map((a) => a.protocol);
            return [window.ran ?? null, document.querySelectorAll('#console img, #console script').length, links];",
        )
        .await;
    assert_eq!(
        made,
        json!([null, 0, ["blob:", "https:", "blob:", "https:"]])
    );

    // A text, and the lines of an answer, at their bounds and one beyond.
    for (length, more) in [(TEXT, None), (TEXT + 1, Some("… (1 more characters)"))] {
        agent.set_reply(
            RPC,
            stream(&[message(&json!([{"text": "y".repeat(length)}]))]),
        );
        let shown = talker.ask("long").await;
        assert_eq!(shown.text.matches('y').count(), TEXT);
        assert_eq!(
            more.is_some_and(|more| shown.text.contains(more)),
            more.is_some()
        );
    }
    for lines in [LINES, LINES + 1] {
        agent.set_reply(
            RPC,
            stream(&[message(&json!(vec![json!({"text": "z"}); lines]))]),
        );
        let shown = talker.ask("lines").await;
        assert_eq!(shown.text.matches('z').count(), LINES);
        assert_eq!(shown.text.contains("More than 500 lines"), lines > LINES);
    }

    // An event, a stream and a number of events at their bounds and beyond.
    agent.set_reply(RPC, sse(&format!("data: {}\n\n", event_of(EVENT))));
    assert_eq!(talker.ask("large").await.who, "agent");
    agent.set_reply(RPC, sse(&format!("data: {}\n\n", event_of(EVENT + 9))));
    assert_eq!(talker.fails("too large").await, "size");
    agent.set_reply(
        RPC,
        sse(&format!("data: {}\n\n", event_of(10 * 1024 * 1024))),
    );
    assert_eq!(talker.fails("much too large").await, "size");
    agent.set_reply(RPC, open_to_pages(OriginReply::json(event_of(EVENT + 9))));
    assert_eq!(talker.fails("too large at once").await, "size");
    let padding = format!(": {}\n", "p".repeat(1_000_000 - 3));
    agent.set_reply(RPC, sse(&padding.repeat(RESPONSE / 1_000_000 + 1)));
    assert_eq!(talker.fails("too long").await, "size");
    let endless = many(EVENTS, "TASK_STATE_WORKING");
    let done = many(1, "TASK_STATE_COMPLETED");
    agent.set_reply(RPC, stream(&[&endless[1..], &done[..]].concat()));
    assert_eq!(talker.ask("many").await.who, "agent");
    agent.set_reply(RPC, stream(&[&endless[..], &done[..]].concat()));
    assert_eq!(talker.fails("too many").await, "size");

    // The traffic has a bound too: the oldest entries are gone, and each is shortened.
    let wire = talker
        .run(
            "const entries = [...document.querySelectorAll('#console-wire pre')];
            return [entries.length, Math.max(...entries.map((entry) => entry.textContent.length))];",
        )
        .await;
    assert_eq!(wire[0], TRAFFIC, "{wire}");
    assert!(
        wire[1].as_u64().unwrap() < TRAFFIC_TEXT as u64 + 40,
        "{wire}"
    );
    talker.close().await;
    registry.stop().await;
}

#[tokio::test]
async fn broken_and_foreign_answers_are_refused_in_words() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let agent = Origin::start();
    let interfaces = json!([rpc(&agent.url(RPC))]);
    let (_card, id) = publish(&registry, card(&interfaces, &json!({}))).await;
    let talker = ConsoleUser::open_browser(&registry).await;
    talker.open(&id).await;
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": message(&json!([{"text": "fine"}]))})
        .to_string();
    // Every form of line ends, comments, other fields, an event in several lines, and a byte order mark.
    let (head, tail) = result.split_at(result.find(':').unwrap() + 1);
    for text in [
        format!("\u{feff}: hello\r\nevent: message\r\nid: 7\r\nretry: 1\r\ndata:{result}\r\n\r\n"),
        format!("data: {result}\r\r"),
        format!("data: {head}\ndata: {tail}\n\n"),
        format!("\n\n\ndata: {result}\n\n: end"),
    ] {
        agent.set_reply(RPC, sse(&text));
        let shown = talker.ask("hello").await;
        assert!(shown.text.contains("fine"), "{text}: {shown:?}");
    }
    let named = |length: usize| {
        let id = "i".repeat(length);
        let status = json!({"state": "TASK_STATE_COMPLETED"});
        stream(&[json!({"task": {"id": id, "contextId": id, "status": status}})])
    };
    agent.set_reply(RPC, named(ID));
    assert_eq!(talker.ask("hello").await.who, "agent");
    let rpc_error =
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "<b>no such task"}});
    for (reply, failure, words) in [
        (named(ID + 1), "answer", "more than 1000 characters"),
        (sse("data: {\n\n"), "answer", "not JSON"),
        (sse("data: []\n\n"), "answer", "not an answer"),
        (
            sse("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"),
            "answer",
            "not an answer",
        ),
        (
            sse(&format!("data: {result}")),
            "answer",
            "without an answer",
        ),
        (sse(""), "answer", "without an answer"),
        (
            sse(&format!(
                "data: {}\n\n",
                result.replace("\"id\":1", "\"id\":2")
            )),
            "answer",
            "instead of call 1",
        ),
        (
            sse(&format!("data: {rpc_error}\n\n")),
            "refused",
            "(-32001): <b>no such task",
        ),
        (
            open_to_pages(OriginReply::html("<h1>Hello</h1>")),
            "answer",
            "<h1>Hello",
        ),
        (
            open_to_pages(OriginReply::json(rpc_error.to_string())),
            "refused",
            "-32001",
        ),
        (
            open_to_pages(OriginReply::status(429)),
            "refused",
            "too many requests",
        ),
    ] {
        agent.set_reply(RPC, reply);
        assert_eq!(talker.fails("hello").await, failure, "{words}");
        let shown = talker.read_last_turn().await;
        assert!(shown.text.contains(words), "{words}: {shown:?}");
    }

    // Whatever came back, each of these messages was sent once.
    let sent = agent.requests_to(RPC);
    let posts = sent.iter().filter(|request| request.method == "POST");
    assert_eq!(posts.count(), 4 + 1 + 11);
    let before = sent.len();
    let folder = tempfile::TempDir::new().unwrap();
    let large = folder.path().join("large");
    std::fs::write(&large, vec![0; FILES + 1]).unwrap();
    talker.attach(&large).await;
    assert_eq!(talker.fails("too large").await, "files");
    talker
        .run("document.getElementById('console-files').value = ''")
        .await;
    assert_eq!(talker.fails(" ").await, "empty");
    assert_eq!(agent.requests_to(RPC).len(), before);

    // A stream that never ends is left when the user says so.
    let working = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}});
    let stalled = OriginReply::stalled(&format!("data: {working}\n\n"));
    agent.set_reply(
        RPC,
        open_to_pages(stalled.with_header("content-type", "text/event-stream")),
    );
    talker.say("endless").await;
    talker
        .until("the task", |shown| shown.text.contains("working"))
        .await;
    let canceled = json!({"jsonrpc": "2.0", "id": 1, "result": {"id": "t", "status": {"state": "TASK_STATE_CANCELED"}}});
    agent.set_reply(RPC, open_to_pages(OriginReply::json(canceled.to_string())));
    talker.find("cancel").await.click().await.unwrap();
    let over = |shown: &super::ConsoleTurn| shown.idle && shown.text.contains("canceled");
    talker.until("the end", over).await;

    // The conversation has a bound: its oldest turns go.
    agent.set_reply(RPC, open_to_pages(OriginReply::json(result)));
    talker.stream(false).await;
    let filled = "const log = document.getElementById('console-log');
        const one = log.lastElementChild;
        while (log.children.length < 200) { log.append(one.cloneNode(true)); }";
    talker.run(filled).await;
    talker.say("one more").await;
    let shown = talker
        .until("the answer", |shown| {
            shown.idle && shown.text.contains("fine")
        })
        .await;
    assert_eq!(shown.turns, TURNS);
    talker.close().await;
    registry.stop().await;
}
