//! A registry that serves on a real port, and what a test asks of it.

use std::fmt::Write as _;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use super::exchange::{Document, Tap};
use super::program::{Finished, Program, registry};
use super::{DEADLINE, http};

/// The admin token of every registry that a test starts.
pub const ADMIN: &str = "the-token-of-the-tests-0123456789abcdef";

/// How a registry is to be started.
#[derive(Debug, Clone)]
pub struct Setup {
    folder: PathBuf,
    arguments: Vec<String>,
    configuration: String,
}

impl Setup {
    /// A registry with its data in that folder, which may crawl loopback origins.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            arguments: Vec::new(),
            configuration: "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\n\
                            allow_ports = \"any\"\n"
                .to_owned(),
        }
    }

    /// On this database instead of SQLite in the folder.
    #[must_use]
    pub fn database(self, url: &str) -> Self {
        self.argument("--database").argument(url)
    }

    /// With a further argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// With further lines of configuration, in a section of their own.
    #[must_use]
    pub fn configure(mut self, lines: &str) -> Self {
        writeln!(self.configuration, "{lines}").unwrap();
        self
    }

    /// With exactly these lines of configuration.
    #[must_use]
    pub fn only(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.configuration);
        self
    }

    /// The folder its data lie in.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The command that starts it.
    pub fn command(&self) -> Command {
        let file = self.folder.join("registry.toml");
        std::fs::write(&file, &self.configuration).unwrap();
        let mut command = registry(["serve"]);
        if !self.arguments.iter().any(|argument| argument == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command
            .arg("--config")
            .arg(file)
            .arg("--data-dir")
            .arg(self.data())
            .args(&self.arguments)
            .env("A2A_REGISTRY_BOOTSTRAP_TOKEN", ADMIN);
        command
    }

    /// Starts it and waits until it listens. It is asked through a [`Tap`], which is its public address where it is
    /// given no other.
    pub async fn start(&self) -> Serving {
        let tap = Tap::new().await;
        let mut command = self.command();
        let named = |text: &str| text.contains("public-url") || text.contains("public_url");
        if !self.arguments.iter().any(|argument| named(argument)) && !named(&self.configuration) {
            command.env("A2A_REGISTRY__SERVER__PUBLIC_URL", tap.url());
        }
        let mut serving = Serving::from(command).await;
        serving.api = serving.api.through(tap);
        serving
    }

    /// Starts one that does not get as far as to serve.
    ///
    /// # Panics
    ///
    /// When it ends otherwise than with exit code 2 and one line of complaint, which is the answer.
    pub async fn refused(&self) -> String {
        let ended = Program::run(self.command()).await;
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
        let [line] = ended.stderr.as_slice() else {
            panic!("one line was expected: {ended:?}");
        };
        line.clone()
    }
}

/// A registry in a process of its own.
pub struct Serving {
    /// Its process.
    pub program: Program,
    /// How it is asked.
    pub api: Api,
}

impl Serving {
    /// Starts what `command` starts and waits until it listens. It is asked directly: for tests of connections
    /// themselves.
    pub async fn from(command: Command) -> Self {
        let program = Program::start(command);
        let url = program
            .find(|line| line.strip_prefix("listening on ").map(str::to_owned))
            .await;
        Self {
            program,
            api: Api::at(&url),
        }
    }

    /// Asks it to end, and checks that it ended in order.
    pub async fn stop(self) -> Finished {
        let ended = self.program.terminate().await;
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        ended
    }
}

/// A registry as those who ask it see it.
#[derive(Debug, Clone)]
pub struct Api {
    /// Where it is asked, without a slash at the end.
    pub url: String,
    /// What reads along, where something does.
    pub tap: Option<Tap>,
    client: Client,
}

impl Api {
    /// The registry there.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            tap: None,
            client: http(),
        }
    }

    /// The same registry, asked through that tap. One that is not asked in plain text is asked directly.
    #[must_use]
    pub fn through(mut self, tap: Tap) -> Self {
        if tap.lead_to(&self.url) {
            self.url = tap.url();
            self.tap = Some(tap);
        }
        self
    }

    /// A request that nobody has signed.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Asks as anyone.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// Asks as the admin.
    pub async fn admin(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path).bearer_auth(ADMIN)).await
    }

    /// Writes as the admin.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::to(
            self.request(Method::POST, path)
                .bearer_auth(ADMIN)
                .json(body),
        )
        .await
    }

    /// Registers a card's URL; gives the name of its domain.
    pub async fn register(&self, card_url: &str) -> String {
        let body = json!({"card_url": card_url});
        let domain = self.post("/v1/domains", &body).await.expect(202);
        domain["domain"].as_str().unwrap().to_owned()
    }

    /// Has a domain visited, and waits until the visit is in the books; gives the domain then.
    pub async fn recrawl(&self, domain: &str) -> Value {
        let path = format!("/v1/domains/{domain}");
        let last = |domain: &Value| {
            let source = &domain["sources"][0];
            let attempts = source["attempts"].as_array().map_or(0, Vec::len);
            // A clock that stands tells no two attempts apart; their number does.
            (source["last_attempt"].clone(), attempts)
        };
        let before = last(&self.admin(&path).await.expect(200));
        self.post(&format!("{path}:recrawl"), &json!({}))
            .await
            .expect(202);
        eventually("the visit is in the books", || async {
            let domain = self.admin(&path).await.expect(200);
            (last(&domain) != before).then_some(domain)
        })
        .await
    }

    /// What happens from now on, or after the event `after`.
    pub async fn events(&self, after: i64) -> Feed {
        let answer = self
            .request(Method::GET, &format!("/v1/events?after={after}"))
            .bearer_auth(ADMIN)
            .header("accept", "text/event-stream")
            // A stream has no end; each wait on it has.
            .timeout(Duration::from_secs(3600))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        Feed {
            answer,
            rest: String::new(),
        }
    }

    /// Waits until searches show everything up to that event.
    pub async fn indexed(&self, seq: i64) {
        eventually("the index has applied the event", || async {
            let ready: Value =
                serde_json::from_slice(&self.get("/readyz").await.body).unwrap_or_default();
            let checks = ready["checks"].as_array()?;
            let index = checks.iter().find(|check| check["name"] == "index")?;
            let detail = index["detail"].as_str()?;
            let applied = detail.strip_prefix("has applied every event up to ")?;
            (applied.parse::<i64>().ok()? >= seq).then_some(())
        })
        .await;
    }

    /// The hits of a search, which anyone makes.
    pub async fn search(&self, query: &str) -> Value {
        self.get(&format!("/v1/agents?{query}")).await.expect(200)
    }
}

/// Asks again and again until there is an answer. Each question is a round trip of its own, and
/// nothing else is done in between.
///
/// # Panics
///
/// When there is none at [`DEADLINE`].
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "never came to pass: {what}");
        tokio::task::yield_now().await;
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The answer to a request.
    pub async fn to(request: RequestBuilder) -> Self {
        let answer = request.send().await.unwrap();
        Self {
            status: answer.status(),
            headers: answer.headers().clone(),
            body: answer.bytes().await.unwrap().to_vec(),
        }
    }

    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// Its body as JSON, after a look at its status.
    pub fn expect(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status.as_u16(), status, "{text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Its problem document, which must be one in full.
    pub fn problem(&self, status: u16, slug: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(
            problem["type"],
            format!("/problems/{slug}").as_str(),
            "{problem}"
        );
        assert_eq!(problem["status"], status);
        for member in ["title", "detail", "instance"] {
            let text = problem[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{member} is missing: {problem}");
        }
        problem
    }
}

/// A stream of events under way.
pub struct Feed {
    answer: reqwest::Response,
    rest: String,
}

impl Feed {
    /// The next event.
    ///
    /// # Panics
    ///
    /// When the stream ends.
    pub async fn next(&mut self) -> Value {
        loop {
            while let Some(end) = self.rest.find("\n\n") {
                let frame: String = self.rest.drain(..end + 2).collect();
                let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(data) = data {
                    let event = serde_json::from_str(data).unwrap();
                    Document::of_this_build().judge_event(&event);
                    return event;
                }
            }
            let chunk = self.answer.chunk().await.unwrap();
            let chunk = chunk.expect("the event stream ended");
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Waits for an event of that kind, and gives it.
    ///
    /// # Panics
    ///
    /// When there is none at [`DEADLINE`]; with those that came.
    pub async fn until(&mut self, kind: &str) -> Value {
        self.until_one(kind, |_| true).await
    }

    /// Waits for an event of that kind with which something is the case, and gives it.
    ///
    /// # Panics
    ///
    /// As [`Feed::until`].
    pub async fn until_one(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        let found = timeout(DEADLINE, async {
            loop {
                let event = self.next().await;
                if event["kind"] == kind && wanted(&event) {
                    return event;
                }
                seen.push(event);
            }
        })
        .await;
        found.unwrap_or_else(|_| panic!("no such {kind}; these came: {seen:#?}"))
    }
}

/// The place of an event in the order.
pub fn seq(event: &Value) -> i64 {
    event["seq"].as_i64().unwrap()
}
