//! A registry that is served by the real program, and the commands that speak to it.

use std::path::Path;

use a2a_registry_api::{AgentList, DomainView, Hit};
use reqwest::{Method, RequestBuilder};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::exchange::Tap;
use super::program::{Finished, Program, registry};
use super::serving::{ADMIN, Serving, Setup};
use super::{DEADLINE, http};

/// A registry on a free loopback port, with a data folder of its own. Dropping it kills it.
pub struct Served {
    /// Its URL, without a slash at the end.
    pub url: String,
    /// Its process.
    pub program: Program,
    /// What reads along with everything it is asked.
    pub tap: Option<Tap>,
    folder: TempDir,
}

impl Served {
    /// Starts a registry that may fetch from this machine, with these further arguments, and waits
    /// until it listens.
    ///
    /// # Panics
    ///
    /// When it does not come up; with what it printed.
    pub async fn start(arguments: &[&str]) -> Self {
        Self::set_up(|setup| setup, arguments).await
    }

    /// Starts a registry whose set-up is changed before, with these arguments.
    ///
    /// # Panics
    ///
    /// As [`Served::start`].
    pub async fn set_up(change: impl FnOnce(Setup) -> Setup, arguments: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut setup = change(Setup::new(folder.path()));
        for argument in arguments {
            setup = setup.argument(argument);
        }
        let Serving { program, api } = setup.start().await;
        Self {
            url: api.url,
            tap: api.tap,
            program,
            folder,
        }
    }

    /// Its data folder.
    pub fn data_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// A folder for files of the test, which goes away with the registry.
    pub fn scratch(&self) -> &Path {
        self.folder.path()
    }

    /// A client command that speaks to this registry as its admin.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.anonymous(arguments);
        command.env("A2A_REGISTRY_TOKEN", ADMIN);
        command
    }

    /// A client command that speaks to this registry without a token.
    pub fn anonymous(&self, arguments: &[&str]) -> Command {
        let mut command = registry(arguments);
        command.env("A2A_REGISTRY_URL", &self.url);
        command
    }

    /// Runs a client command as the admin, to its end.
    pub async fn run(&self, arguments: &[&str]) -> Finished {
        Program::run(self.command(arguments)).await
    }

    /// A request to a path of this registry as its admin.
    pub fn admin(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(ADMIN)
    }

    /// A request to a path of this registry as anyone.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        http().request(method, format!("{}{path}", self.url))
    }

    /// What the admin is answered at a path, which must be a success.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> T {
        let answer = self.admin(Method::GET, path).send().await.unwrap();
        let status = answer.status();
        let body = answer.bytes().await.unwrap();
        assert!(
            status.is_success(),
            "{path}: {status}: {}",
            String::from_utf8_lossy(&body)
        );
        serde_json::from_slice(&body).unwrap()
    }

    /// Makes a token of an account with that role, and gives its secret.
    pub async fn token(&self, account: &str, role: &str) -> String {
        let body = json!({"account": account, "role": role, "name": "a test"});
        let request = self.admin(Method::POST, "/v1/tokens").json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 201, "{account}");
        let created: Value = answer.json().await.unwrap();
        created["secret"].as_str().unwrap().to_owned()
    }

    /// Registers the card at a URL as the admin.
    pub async fn register(&self, card_url: &str) -> DomainView {
        let request = self.admin(Method::POST, "/v1/domains");
        let answer = request.json(&json!({"card_url": card_url})).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 202, "{card_url}");
        answer.json().await.unwrap()
    }

    /// Asks the search again and again until it gives an agent, and gives the first one.
    ///
    /// # Panics
    ///
    /// When it has given none at [`DEADLINE`].
    pub async fn found(&self, query: &str) -> Hit {
        let path = format!("/v1/agents?{query}");
        let search = async {
            loop {
                let list: AgentList = self.read(&path).await;
                if let Some(hit) = list.agents.into_iter().next() {
                    return hit;
                }
            }
        };
        match timeout(DEADLINE, search).await {
            Ok(hit) => hit,
            Err(_) => {
                let ready: Value = self.read("/readyz").await;
                let domains: Value = self.read("/v1/domains?page_size=100").await;
                panic!("{query} finds nothing; {ready:#}; {domains:#}");
            }
        }
    }
}

/// The text of lines that a program printed.
pub fn text(lines: &[String]) -> String {
    lines.join("\n")
}

/// Checks how a program ended: its exit code, and that it said at most one line about it, which
/// contains `words`.
pub fn ended(finished: &Finished, code: i32, words: &str) {
    assert_eq!(finished.status.code(), Some(code), "{finished:#?}");
    assert!(text(&finished.stderr).contains(words), "{finished:#?}");
    if code == 2 {
        assert_eq!(finished.stderr.len(), 1, "{finished:#?}");
        assert!(finished.stderr[0].starts_with("a2a-registry: "));
    }
}

/// The text of a card without findings, of an agent with one skill.
pub fn card(name: &str, skill: &str) -> String {
    let card = json!({
        "protocolVersion": "0.3.0",
        "name": name,
        "description": format!("{name} is good at {skill}"),
        "url": "https://echo.agents.dev/a2a",
        "version": "1.0.0",
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": skill,
            "name": skill,
            "description": format!("Does {skill}"),
            "tags": [skill],
            "examples": ["please"],
        }],
    });
    // Spaces and an end of line, so that whoever writes the card anew is found out.
    format!("{card:#}\n \n")
}
