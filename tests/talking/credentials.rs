//! Credentials that a user passes or stores: where they are sent, and where they never appear.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::terminal::at_a_terminal_in;
use super::{CARD, card};
use crate::support::origin::{Origin, OriginReply, ReceivedRequest, ResponseGate};
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};
use crate::support::tls::{Authority, TlsFront};

/// What no output and no list of processes may show.
pub const SECRET: &str = "s3cret-of-the-tests";

/// A user with a folder of their own for credentials.
pub struct CliUser {
    folder: TempDir,
}

impl CliUser {
    pub fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// A command of this user.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = registry_command(arguments);
        command.env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    /// Runs a command of this user to its end.
    pub async fn run(&self, arguments: &[&str]) -> FinishedProgram {
        Program::run(self.command(arguments)).await
    }

    /// Sends a message to the agent at an origin.
    pub async fn send_message(&self, agent: &Origin) -> FinishedProgram {
        self.run(&["send", "--direct", &agent.url(CARD), "hi"])
            .await
    }

    /// A file of this user with that content, which only the user can read; as it is given to a flag.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The credentials file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("a2a-registry/credentials.json")
    }

    /// What the credentials file contains.
    pub fn stored_credentials(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap()
    }

    /// Changes the credentials file by hand.
    pub fn edit_credentials(&self, change: impl FnOnce(&mut Value)) {
        let mut kept = self.stored_credentials();
        change(&mut kept);
        fs::write(self.path(), kept.to_string()).unwrap();
    }
}

/// The response of an agent that says hello.
pub fn hello() -> OriginReply {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]});
    OriginReply::json(
        json!({"jsonrpc": "2.0", "id": 1, "result": {"message": message}}).to_string(),
    )
}

/// An agent at `/rpc` with a card that requires this scheme.
pub fn agent(scheme: &Value) -> Origin {
    let origin = Origin::start();
    let interface = origin.url("/rpc");
    set_card(&origin, &interface, scheme);
    origin.set_reply("/rpc", hello());
    origin
}

/// Replaces the card.
pub fn set_card(origin: &Origin, interface: &str, scheme: &Value) {
    let mut card =
        card(&json!([{"url": interface, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]));
    card["securitySchemes"] = json!({"login": scheme});
    card["securityRequirements"] = json!([{"schemes": {"login": {"list": []}}}]);
    origin.set_reply(CARD, OriginReply::json(card.to_string()));
}

/// Replaces the card by one that requires nothing.
fn set_open_card(origin: &Origin) {
    let interface = origin.url("/rpc");
    let card =
        card(&json!([{"url": interface, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]));
    origin.set_reply(CARD, OriginReply::json(card.to_string()));
}

fn bearer() -> Value {
    json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}})
}

fn basic() -> Value {
    json!({"httpAuthSecurityScheme": {"scheme": "Basic"}})
}

fn key(location: &str) -> Value {
    json!({"apiKeySecurityScheme": {"location": location, "name": "X-Key"}})
}

/// The requests with a message.
pub fn messages(agent: &Origin) -> Vec<ReceivedRequest> {
    agent.requests_to("/rpc")
}

/// How the last message was authenticated.
pub fn authorization(agent: &Origin) -> Option<String> {
    let last = messages(agent).pop().unwrap();
    last.header("authorization").map(str::to_owned)
}

fn printed_text(finished: &FinishedProgram) -> String {
    format!(
        "{}\n{}",
        join_lines(&finished.stdout),
        join_lines(&finished.stderr)
    )
}

#[tokio::test]
async fn secrets_come_from_files_variables_and_standard_input_and_show_nowhere() {
    let user = CliUser::new();
    let file = format!("@{}", user.file("secret", &format!("{SECRET}\n")));
    let basic_value = format!(
        "Basic {}",
        data_encoding::BASE64.encode(format!("ann:{SECRET}").as_bytes())
    );
    let bearer_value = format!("Bearer {SECRET}");
    for (scheme, flags, variable) in [
        (bearer(), &["--bearer", &file][..], None),
        (bearer(), &[], Some("A2A_AGENT_TOKEN")),
        (key("header"), &["--api-key", &file], None),
        (key("query"), &[], Some("A2A_AGENT_KEY")),
        (key("cookie"), &["--api-key", &file], None),
        (basic(), &["--basic", "ann", "--password", &file], None),
        (basic(), &["--basic", "ann"], Some("A2A_AGENT_PASSWORD")),
    ] {
        let agent = agent(&scheme);
        let gate = ResponseGate::default();
        agent.set_reply("/rpc", hello().gated_by(&gate));
        let url = agent.url(CARD);
        let mut command = user.command(&["send", "--direct", &url, "hi"]);
        command.args(flags).env("RUST_LOG", "trace");
        if let Some(variable) = variable {
            command.env(variable, SECRET);
        }
        let program = Program::start(command);
        let request = agent.wait_for_request("/rpc", 1).await;
        // As `ps` shows it to everybody.
        let listed = fs::read(format!("/proc/{}/cmdline", program.id())).unwrap();
        let listed = String::from_utf8(listed).unwrap();
        assert!(
            listed.contains("send") && !listed.contains(SECRET),
            "{listed}"
        );
        gate.open();
        let finished = program.wait_for_end().await;
        assert_eq!(finished.status.code(), Some(0), "{scheme}: {finished:#?}");
        let printed = printed_text(&finished);
        assert!(printed.contains("TRACE"), "nothing was logged");
        assert!(!printed.contains(SECRET), "{scheme}: {printed}");
        assert!(!printed.contains("visible to other users"), "{printed}");
        let header = |name: &str| request.header(name).map(str::to_owned);
        let (sent, expected) = match &scheme {
            scheme if *scheme == bearer() => (header("authorization"), bearer_value.clone()),
            scheme if *scheme == basic() => (header("authorization"), basic_value.clone()),
            scheme if *scheme == key("header") => (header("x-key"), SECRET.to_owned()),
            scheme if *scheme == key("query") => {
                (Some(request.query.clone()), format!("X-Key={SECRET}"))
            }
            _ => (header("cookie"), format!("X-Key={SECRET}")),
        };
        assert_eq!(sent, Some(expected), "{scheme}");
    }
}

#[tokio::test]
async fn a_secret_on_the_command_line_is_warned_of_once_and_a_missing_one_is_named() {
    let user = CliUser::new();
    let agent = agent(&bearer());
    let url = agent.url(CARD);
    let finished = user
        .run(&[
            "send",
            "--direct",
            &url,
            "hi",
            "--bearer",
            SECRET,
            "--api-key",
            SECRET,
        ])
        .await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    let warnings = finished.stderr.iter();
    let warnings: Vec<_> = warnings.filter(|line| line.contains("warning")).collect();
    assert_eq!(warnings.len(), 1, "{finished:#?}");
    assert!(
        warnings[0].contains("--bearer and --api-key") && !warnings[0].contains(SECRET),
        "{warnings:?}"
    );
    let before = messages(&agent).len();
    assert_exit(&user.send_message(&agent).await, 2, "use --bearer @FILE");
    let typo = user
        .run(&[
            "send",
            "--direct",
            &url,
            "hi",
            "--bearer",
            "@/nowhere/at/all",
        ])
        .await;
    assert_exit(&typo, 2, "--bearer: /nowhere/at/all cannot be read");
    let input = user.command(&["send", "--direct", &url, "hi", "--bearer", "@-"]);
    let finished = Program::run_with_input(input, b"from a pipe\n").await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(messages(&agent).len(), before + 1);
    assert_eq!(authorization(&agent).as_deref(), Some("Bearer from a pipe"));
    // Without a terminal nobody can be asked for the password.
    let asked = user
        .run(&["send", "--direct", &url, "hi", "--basic", "ann"])
        .await;
    assert_exit(&asked, 2, "--password @FILE or in A2A_AGENT_PASSWORD");
}

#[tokio::test]
async fn a_variable_that_the_card_has_no_use_for_is_ignored_with_a_line() {
    let user = CliUser::new();
    let file = format!("@{}", user.file("secret", SECRET));
    let (open, with_key, with_basic) = (agent(&bearer()), agent(&key("header")), agent(&basic()));
    set_open_card(&open);
    let send = async |agent: &Origin, more: &[&str], variable: &str| {
        let url = agent.url(CARD);
        let words = [&["send", "--direct", &url, "hi"][..], more].concat();
        let mut command = user.command(&words);
        command.env(variable, "of-the-variable");
        Program::run(command).await
    };
    let basic = ["--basic", "ann", "--password", &file];
    for (agent, more, variable, line) in [
        (
            &open,
            &[][..],
            "A2A_AGENT_KEY",
            "does not say where to send an API key",
        ),
        (
            &with_key,
            &["--api-key", &file],
            "A2A_AGENT_TOKEN",
            "requires no token",
        ),
        (&with_basic, &basic, "A2A_AGENT_TOKEN", "requires no token"),
    ] {
        let sent = send(agent, more, variable).await;
        assert_eq!(sent.status.code(), Some(0), "{variable}: {sent:#?}");
        let expected = format!("{variable} is ignored: the card {line}");
        assert_eq!(sent.stderr, [expected], "{sent:#?}");
        let request = format!("{:?}", messages(agent));
        assert!(!request.contains("of-the-variable"), "{request}");
    }
    // A variable that applies is used, and what is given for this agent is never ignored.
    let sent = send(&with_key, &[], "A2A_AGENT_KEY").await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    let last = messages(&with_key).pop().unwrap();
    assert_eq!(last.header("x-key"), Some("of-the-variable"));
    let typed = send(&open, &["--api-key", &file], "A2A_AGENT_UNUSED").await;
    assert_exit(&typed, 2, "use --header");

    // A variable keeps no credentials away that apply, nor do those of another agent at the same origin.
    let url = with_basic.url(CARD);
    let kept = ["credentials", "add", "--direct", &url, "--api-key", &file];
    let kept = user.run(&[&kept[..], &basic].concat()).await;
    assert_eq!(kept.status.code(), Some(0), "{kept:#?}");
    let sent = send(&with_basic, &[], "A2A_AGENT_TOKEN").await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    let value = authorization(&with_basic).unwrap();
    assert!(value.starts_with("Basic "), "{value}");
    set_open_card(&with_basic);
    let sent = user.send_message(&with_basic).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
}

#[tokio::test]
async fn what_is_kept_stays_at_its_origin_wherever_a_relative_address_leads() {
    let user = CliUser::new();
    let token = format!("@{}", user.file("secret", SECRET));
    let (own, other) = (agent(&bearer()), agent(&bearer()));
    set_card(&own, "/rpc", &bearer());
    let url = own.url(CARD);
    let add = ["credentials", "add", "--direct", &url, "--bearer", &token];
    let kept = user.run(&add).await;
    assert_eq!(kept.status.code(), Some(0), "{kept:#?}");
    let sent = user.send_message(&own).await;
    assert_eq!(sent.status.code(), Some(0), "{sent:#?}");
    assert_eq!(authorization(&own), Some(format!("Bearer {SECRET}")));

    for address in [
        format!("//{}/rpc", other.address()),
        format!("{}/rpc", other.address()),
    ] {
        set_card(&own, &address, &bearer());
        assert_exit(&user.send_message(&own).await, 2, "--bearer @FILE");
    }
    assert!(messages(&other).is_empty());
}

#[tokio::test]
async fn what_is_typed_at_the_terminal_is_not_shown() {
    let user = CliUser::new();
    let folder = user.folder.path();
    let agent = agent(&basic());
    let url = agent.url(CARD);
    let typed = format!("hidden {SECRET}\n");
    let send = ["send", "--direct", &url, "hi", "--basic", "ann"];
    let finished = at_a_terminal_in(folder, &["Password of ann: ", &typed], &send).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert!(!printed_text(&finished).contains(SECRET), "{finished:#?}");
    let expected = data_encoding::BASE64.encode(format!("ann:{SECRET}").as_bytes());
    assert_eq!(authorization(&agent), Some(format!("Basic {expected}")));

    // What the card requires is asked for, and kept.
    let script = ["User at ", "ann\n", "Password: ", &typed];
    let add = ["credentials", "add", "--direct", &url];
    let finished = at_a_terminal_in(folder, &script, &add).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert!(!printed_text(&finished).contains(SECRET), "{finished:#?}");
    assert_eq!(user.send_message(&agent).await.status.code(), Some(0));
    assert_eq!(authorization(&agent), Some(format!("Basic {expected}")));
    for (scheme, prompt) in [(bearer(), "Token for "), (key("header"), "API key for ")] {
        set_card(&agent, &agent.url("/rpc"), &scheme);
        let finished = at_a_terminal_in(folder, &[prompt, &typed], &add).await;
        assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
        assert!(!printed_text(&finished).contains(SECRET), "{finished:#?}");
        assert_eq!(user.send_message(&agent).await.status.code(), Some(0));
    }
    let last = messages(&agent).pop().unwrap();
    assert_eq!(last.header("x-key"), Some(SECRET));
    assert_eq!(
        last.header("authorization"),
        None,
        "the card wants the key alone"
    );
}

#[tokio::test]
async fn what_is_kept_goes_to_its_own_agent_alone_until_it_is_removed() {
    let user = CliUser::new();
    let (own, neighbour) = (agent(&bearer()), agent(&bearer()));
    let file = format!("@{}", user.file("secret", SECRET));
    let add = [
        "credentials",
        "add",
        "--direct",
        &own.url(CARD),
        "--bearer",
        &file,
    ];
    let finished = user.run(&add).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    let mode = fs::metadata(user.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(user.send_message(&own).await.status.code(), Some(0));
    assert_eq!(authorization(&own), Some(format!("Bearer {SECRET}")));

    let listed = user.run(&["credentials", "list"]).await;
    let listing = printed_text(&listed);
    assert!(
        listing.contains(&own.url("")) && listing.contains("token"),
        "{listing}"
    );
    assert!(!listing.contains(SECRET), "{listing}");
    let json = user.run(&["credentials", "list", "--json"]).await;
    assert!(!printed_text(&json).contains(SECRET), "{json:#?}");

    // Another port, another name of the same machine, and a card that only points there from elsewhere.
    assert_exit(
        &user.send_message(&neighbour).await,
        2,
        "use --bearer @FILE",
    );
    let port = own.address().port();
    set_card(
        &neighbour,
        &format!("http://localhost:{port}/rpc"),
        &bearer(),
    );
    assert_exit(
        &user.send_message(&neighbour).await,
        2,
        "use --bearer @FILE",
    );
    // The first interface decides; one at the agent's own origin after it gets nothing either.
    let interface =
        |url: String| json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let both = card(&json!([
        interface(neighbour.url("/rpc")),
        interface(own.url("/rpc"))
    ]));
    neighbour.set_reply(CARD, OriginReply::json(both.to_string()));
    neighbour.set_reply("/rpc", OriginReply::redirect(&own.url("/rpc")));
    assert_eq!(user.send_message(&neighbour).await.status.code(), Some(2));
    let asked = messages(&neighbour);
    assert!(
        asked
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
    assert_eq!(messages(&own).len(), 1);

    let removed = user.run(&["credentials", "remove", &own.url("/rpc")]).await;
    assert_eq!(removed.status.code(), Some(0), "{removed:#?}");
    assert!(!fs::read_to_string(user.path()).unwrap().contains(SECRET));
    assert_exit(&user.send_message(&own).await, 2, "use --bearer @FILE");
    let nothing = user.run(&["credentials", "remove", &own.url("")]).await;
    assert_exit(&nothing, 1, "no credentials are stored for");
    assert_eq!(
        user.run(&["credentials", "list"]).await.status.code(),
        Some(1)
    );
}

#[tokio::test]
async fn a_credentials_file_that_others_can_read_or_that_is_broken_is_refused() {
    let user = CliUser::new();
    let agent = agent(&bearer());
    let file = format!("@{}", user.file("secret", SECRET));
    let add = [
        "credentials",
        "add",
        "--direct",
        &agent.url(CARD),
        "--bearer",
        &file,
    ];
    user.run(&add).await;
    fs::set_permissions(user.path(), fs::Permissions::from_mode(0o644)).unwrap();
    assert_exit(&user.send_message(&agent).await, 2, "chmod 600");
    assert_exit(&user.run(&add).await, 2, "chmod 600");
    fs::set_permissions(user.path(), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(user.path(), format!("{{\"version\": 1, \"{SECRET}")).unwrap();
    for command in [&add[..], &["credentials", "list"]] {
        let refused = user.run(command).await;
        assert_exit(&refused, 2, "not a credentials file of this program");
        assert!(!printed_text(&refused).contains(SECRET), "{refused:#?}");
    }
    assert!(messages(&agent).is_empty());
    let left = fs::read_to_string(user.path()).unwrap();
    assert!(left.ends_with(SECRET), "{left}");
}

#[tokio::test]
async fn a_client_certificate_is_presented_to_the_agent() {
    let user = CliUser::new();
    let (servers, clients) = (Authority::new("of servers"), Authority::new("of clients"));
    let trusted = user.file("servers.pem", &String::from_utf8(servers.pem()).unwrap());
    let behind = Origin::start();
    behind.set_reply("/rpc", hello());
    let front = TlsFront::bind_mutual(servers.identity("127.0.0.1"), &clients, &behind).await;
    let host = Origin::start();
    set_card(
        &host,
        &front.url("/rpc"),
        &json!({"mtlsSecurityScheme": {}}),
    );
    let url = host.url(CARD);
    let files = |name: &str, authority: &Authority| {
        let (certificate, key) = authority.identity("ann").pem();
        let (cert, key) = (
            user.file(&format!("{name}.pem"), &certificate),
            user.file(&format!("{name}.key"), &key),
        );
        [cert, key]
    };
    let [cert, key] = files("ann", &clients);
    let run = async |cert: &str, key: &str| {
        let mut command =
            user.command(&["send", "--direct", &url, "hi", "--cert", cert, "--key", key]);
        command.env("SSL_CERT_FILE", &trusted);
        Program::run(command).await
    };
    let finished = run(&cert, &key).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(messages(&behind).len(), 1);

    assert_exit(
        &user.send_message(&host).await,
        2,
        "use --cert FILE --key FILE",
    );
    let [foreign, foreign_key] = files("eve", &servers);
    assert_eq!(run(&foreign, &foreign_key).await.status.code(), Some(2));
    assert_exit(&run(&foreign, &key).await, 2, "cannot be used");
    assert_exit(&run(&cert, &trusted).await, 2, "cannot be used");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    assert_exit(&run(&cert, &key).await, 2, "chmod 600");
    assert_eq!(messages(&behind).len(), 1);

    // Kept, the files are read for each command.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let add = [
        "credentials",
        "add",
        "--direct",
        &url,
        "--cert",
        &cert,
        "--key",
        &key,
    ];
    assert_eq!(user.run(&add).await.status.code(), Some(0));
    let mut command = user.command(&["send", "--direct", &url, "hi"]);
    command.env("SSL_CERT_FILE", &trusted);
    let finished = Program::run(command).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(messages(&behind).len(), 2);
}
