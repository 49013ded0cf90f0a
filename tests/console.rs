//! The console on an agent's page, in a real browser: conversations with agents, failures, hostile cards and answers.

mod browser_failures;
mod content_security_policy;
mod credentials;
mod hostile;
mod interface_matrix;

use std::path::Path;

use serde_json::{Value, json};
use thirtyfour::{By, WebElement};

use crate::page_journeys::PageVisitor;
use crate::support::browser::Browser;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::poll_until_deadline;
use crate::support::serving_registry::ServingRegistry;

/// Path of a card.
const CARD: &str = "/card.json";
/// Path of an answer to a call.
const RPC: &str = "/rpc";

/// A visitor of agents' pages who talks to the agents there.
struct ConsoleUser {
    visitor: PageVisitor,
}

/// The last answer in the conversation, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ConsoleTurn {
    /// `agent`, `failed` or `note`.
    who: String,
    /// The class of a failure.
    failure: String,
    text: String,
    /// Names and types of the files in it, and the text of each.
    files: Vec<(String, String, String)>,
    /// Whether another message can be sent.
    idle: bool,
    turns: usize,
}

/// Reads the last turn, with its files.
const READ: &str = "
    const done = arguments[arguments.length - 1];
    (async () => {
        const log = document.getElementById('console-log');
        const turn = log.lastElementChild;
        const links = [...log.querySelectorAll('a[download]')];
        // All of it is what the page shows at one moment: reading a file takes longer.
        const shown = {
            who: turn?.className.replace('turn ', '') ?? '',
            failure: turn?.dataset.failure ?? '',
            text: turn?.innerText ?? '',
            idle: !document.getElementById('console-send').disabled,
            turns: log.children.length,
        };
        const files = await Promise.all(links.map(async (link) => {
            const content = window.consoleBlobs?.get(link.href);
            return [link.download, content?.type ?? '', content ? await content.text() : ''];
        }));
        done({ ...shown, files });
    })();";

/// Keeps the content of each file that the page offers, which its policy lets no script of a test fetch.
const KEEP_FILES: &str = "
    window.consoleBlobs = new Map();
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
        const address = create.call(URL, blob);
        window.consoleBlobs.set(address, blob);
        return address;
    };";

impl ConsoleUser {
    async fn open_browser(registry: &ServingRegistry) -> Self {
        Self::with_browser(registry, Browser::open().await)
    }

    fn with_browser(registry: &ServingRegistry, browser: Browser) -> Self {
        Self {
            visitor: PageVisitor::with_browser(&registry.api.url, browser),
        }
    }

    /// Opens the page of an agent.
    async fn open(&self, agent: &str) {
        self.visitor.visit(&format!("/agents/{agent}/")).await;
        self.visitor.find("#console[data-ready]").await;
        self.run(KEEP_FILES).await;
    }

    async fn run(&self, script: &str) -> Value {
        let page = self.visitor.browser.page();
        let answer = page.execute(script, Vec::new()).await.unwrap();
        answer.json().clone()
    }

    async fn find(&self, name: &str) -> WebElement {
        self.visitor.find(&format!("#console-{name}")).await
    }

    /// Chooses the interface whose description has these words.
    async fn choose(&self, words: &str) {
        let page = self.visitor.browser.page();
        let options = page.find_all(By::Css("#console-interface option")).await;
        for option in options.unwrap() {
            if option.text().await.unwrap().contains(words) {
                option.click().await.unwrap();
                return;
            }
        }
        panic!(
            "no interface has {words}: {}",
            self.visitor.visible_text().await
        );
    }

    async fn stream(&self, is: bool) {
        let check = self.find("stream").await;
        if check.is_selected().await.unwrap() != is {
            check.click().await.unwrap();
        }
    }

    async fn fill(&self, name: &str, text: &str) {
        let field = self.find(name).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Sends a message, and does not wait for the answer.
    async fn say(&self, text: &str) {
        self.fill("text", text).await;
        self.find("send").await.click().await.unwrap();
    }

    async fn attach(&self, file: &Path) {
        let field = self.find("files").await;
        field.send_keys(file.to_str().unwrap()).await.unwrap();
    }

    /// Reads the last turn of the conversation.
    async fn read_last_turn(&self) -> ConsoleTurn {
        let page = self.visitor.browser.page();
        let read = page.execute_async(READ, Vec::new()).await.unwrap();
        let read = read.json().clone();
        let text = |name: &str| read[name].as_str().unwrap().to_owned();
        let files = read["files"].as_array().unwrap().iter().map(|file| {
            let member = |at: usize| file[at].as_str().unwrap().to_owned();
            (member(0), member(1), member(2))
        });
        ConsoleTurn {
            who: text("who"),
            failure: text("failure"),
            text: text("text"),
            files: files.collect(),
            idle: read["idle"].as_bool().unwrap(),
            turns: usize::try_from(read["turns"].as_u64().unwrap()).unwrap(),
        }
    }

    /// Waits until the last turn has what is looked for.
    async fn until(&self, what: &str, wanted: impl Fn(&ConsoleTurn) -> bool) -> ConsoleTurn {
        let found =
            poll_until_deadline(async || Some(self.read_last_turn().await).filter(&wanted)).await;
        match found {
            Some(shown) => shown,
            None => panic!(
                "{what} is not shown: {:#?}\n{:?}\n{}",
                self.read_last_turn().await,
                self.visitor.browser.take_log_messages().await,
                self.visitor
                    .find("#console-wire")
                    .await
                    .inner_html()
                    .await
                    .unwrap()
            ),
        }
    }

    /// Sends a message, waits until the exchange is over, and returns the last turn.
    async fn ask(&self, text: &str) -> ConsoleTurn {
        let before = self.read_last_turn().await.turns;
        self.say(text).await;
        let over = |shown: &ConsoleTurn| shown.idle && shown.turns > before + 1;
        self.until(&format!("the answer to {text}"), over).await
    }

    /// Sends a message that fails, and returns the class of the failure.
    async fn fails(&self, text: &str) -> String {
        self.say(text).await;
        let failed = self
            .until("a failure", |shown| shown.idle && shown.who == "failed")
            .await;
        failed.failure
    }

    /// The text of the traffic.
    async fn traffic(&self) -> String {
        let text = self
            .run("return document.getElementById('console-wire').textContent")
            .await;
        text.as_str().unwrap().to_owned()
    }

    async fn close(self) {
        self.visitor.browser.close().await;
    }
}

/// A card with these interfaces and security members.
fn card(interfaces: &Value, security: &Value) -> String {
    let mut card = json!({
        "name": "Talker",
        "description": "Talks.",
        "version": "1.0.0",
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", "name": "Talk", "description": "Talks.", "tags": ["talk"]}],
    });
    for (name, value) in security.as_object().into_iter().flatten() {
        card[name] = value.clone();
    }
    card.to_string()
}

/// An interface for 1.0 over JSON-RPC.
fn rpc(url: &str) -> Value {
    json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"})
}

/// A reply that pages of every origin may read, preflights included.
fn open_to_pages(reply: OriginReply) -> OriginReply {
    reply
        .with_header("access-control-allow-origin", "*")
        .with_header("access-control-allow-headers", "*, authorization")
        .with_header("access-control-allow-methods", "*")
}

/// A stream of these events over JSON-RPC.
fn stream(events: &[Value]) -> OriginReply {
    let event = |event: &Value| {
        let response = json!({"jsonrpc": "2.0", "id": 1, "result": event});
        format!("data: {response}\n\n")
    };
    sse(&events.iter().map(event).collect::<String>())
}

/// A stream with this text.
fn sse(text: &str) -> OriginReply {
    open_to_pages(OriginReply::json(text).with_header("content-type", "text/event-stream"))
}

/// A message of the agent with these parts.
fn message(parts: &Value) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}})
}

/// Publishes a card at an origin of its own, which is returned with the agent's id.
async fn publish(registry: &ServingRegistry, card: String) -> (Origin, String) {
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card));
    let agent = registry.publish(&origin.url(CARD)).await;
    (origin, agent)
}
