//! `a2a-registry mcp`: the same tools on standard input, and a conversation with an agent from this machine.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::{McpClient, REVISIONS, TOOLS, forbid_calls_of, publish, result_text};
use crate::support::DEADLINE;
use crate::support::api::RegistryClient;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::registry_command;
use crate::support::sdk::Sdk;
use crate::support::setup::RegistrySetup;

/// A program that serves on standard input, after its handshake. Dropping it kills it.
pub(crate) struct StdioSession {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    asked: i64,
}

impl StdioSession {
    /// Starts the program for this registry, and shakes hands.
    pub(crate) async fn start(api: &RegistryClient, token: Option<&str>) -> Self {
        let mut command = api.anonymous_command(&["mcp"]);
        if let Some(token) = token {
            command.env("A2A_REGISTRY_TOKEN", token);
        }
        let mut session = Self::spawn(command);
        session.shake_hands().await;
        session
    }

    /// Starts the program for this registry, and shakes hands as a client of an older revision.
    pub(super) async fn speaking(api: &RegistryClient, revision: &str) -> Self {
        let mut session = Self::spawn(api.anonymous_command(&["mcp"]));
        session.begin(revision).await;
        session
    }

    /// Starts a command.
    fn spawn(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            asked: 0,
        }
    }

    async fn shake_hands(&mut self) {
        self.begin(REVISIONS[1]).await;
    }

    async fn begin(&mut self, revision: &str) {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
        let begun = self.call_method("initialize", params).await;
        assert_eq!(begun["result"]["protocolVersion"], revision, "{begun}");
        self.write_message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    pub(super) async fn write_message(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
        input.flush().await.unwrap();
    }

    /// The answer to a method.
    pub(super) async fn call_method(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write_message(&message).await;
        let answer = self.read_message().await.expect("an answer");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The next line, which must be a message of the protocol; `None` at the end.
    pub(super) async fn read_message(&mut self) -> Option<Value> {
        let line = timeout(DEADLINE, self.output.next_line())
            .await
            .unwrap()
            .unwrap()?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(message["jsonrpc"], "2.0");
        Some(message)
    }

    /// The result of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.call_method("tools/call", params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The sentence of a tool that fails.
    async fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result:#}");
        let sentence = result_text(&result);
        assert!(
            sentence.ends_with('.') && !sentence.contains('\n'),
            "{sentence}"
        );
        sentence
    }

    /// Closes its input, after which it ends in order; returns what it logged.
    pub(crate) async fn close(mut self) -> String {
        drop(self.input.take());
        self.ended().await
    }

    /// Waits for its end. What it still says are messages of the protocol, such as the end of a call under way.
    async fn ended(mut self) -> String {
        while self.read_message().await.is_some() {}
        let status = timeout(DEADLINE, self.child.wait()).await.unwrap().unwrap();
        let mut log = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut log).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
        log
    }
}

/// The tools are those of the registry, and one more.
#[tokio::test]
async fn the_tools_are_the_registrys_and_one_more() {
    let registry = RegistrySetup::new().start().await;
    let over_http = McpClient::new(&registry.api, REVISIONS[1], None);
    let over_http = over_http
        .ask("tools/list", json!({}))
        .await
        .expect_status(200);
    let mut session = StdioSession::start(&registry.api, None).await;
    let mut listed = session.call_method("tools/list", json!({})).await["result"].clone();
    assert_eq!(listed["cacheScope"], "public");
    let talk = listed["tools"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(listed["tools"], over_http["result"]["tools"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), TOOLS.len());
    assert_eq!(talk["name"], "talk_to_agent");
    assert_eq!(talk["annotations"]["readOnlyHint"], false);
    assert_eq!(talk["annotations"]["openWorldHint"], true);
    let unknown = json!({"name": "steal_agents", "arguments": {}});
    let unknown = session.call_method("tools/call", unknown).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = session.call_method("agents/steal", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert_eq!(session.close().await, "");
}

/// Results and refusals are those of the registry, for the user whose token it is.
#[tokio::test]
async fn calls_are_passed_on_with_the_users_token() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let published = publish(&registry, &["Rose", "Inside"]).await;
    let ids = &published.ids;
    super::show_to(&registry, &ids[1], json!({"visibility": "internal"})).await;
    let token = registry.create_token("reader", "reader").await;
    for token in [None, Some(token.as_str())] {
        let client = McpClient::new(&registry.api, REVISIONS[1], token);
        let mut session = StdioSession::start(&registry.api, token).await;
        for (tool, arguments) in [
            ("search_agents", json!({"text": "gardening"})),
            ("search_agents", json!({"page_size": 0})),
            ("get_agent", json!({"agent": ids[0]})),
            ("get_agent", json!({"agent": ids[1]})),
            ("get_card", json!({"agent": ids[1]})),
            ("check_agent", json!({"agent": ids[1]})),
            ("list_facets", json!({})),
        ] {
            let mut passed_on = session.call(tool, arguments.clone()).await;
            let mut direct = client.call(tool, arguments.clone()).await;
            if tool == "check_agent" {
                // Each decision has an id of its own.
                let decided = [&mut passed_on, &mut direct].into_iter();
                // Nothing is decided about what the caller does not find.
                for answer in decided.filter(|answer| answer["isError"] != true) {
                    for action in ["discover", "invoke"] {
                        let decision = &mut answer["structuredContent"][action]["decision"];
                        assert!(decision.take().is_string());
                    }
                }
            }
            assert_eq!(passed_on, direct, "{tool} {arguments}");
        }
        let log = session.close().await;
        assert_eq!(log, "");
    }
    let mut session = StdioSession::start(&registry.api, Some("never-made")).await;
    let refused = session.failure("search_agents", json!({})).await;
    assert!(
        refused.contains("token") && !refused.contains("never-made"),
        "{refused}"
    );
    session.close().await;
}

/// A registry that is down, or serves no MCP, costs the call and not the session.
#[tokio::test]
async fn a_registry_that_is_down_is_an_error_of_the_tool() {
    let registry = RegistrySetup::new().start_without_proxy().await;
    let mut session = StdioSession::start(&registry.api, None).await;
    assert_eq!(
        session.call("search_agents", json!({})).await["isError"],
        false
    );
    let url = registry.url.clone();
    registry.stop().await;
    let down = session.failure("search_agents", json!({})).await;
    assert!(
        down.contains("No registry answers at") && down.contains(&url),
        "{down}"
    );
    // A model types no flags.
    assert!(!down.contains("--"), "{down}");
    let down = session
        .failure("talk_to_agent", json!({"agent": "x.example", "text": "hi"}))
        .await;
    assert!(down.contains("No registry answers at"), "{down}");
    assert!(!down.contains("--"), "{down}");
    session.close().await;
    let off = RegistrySetup::new()
        .with_config_lines("[mcp]\nenabled = false")
        .start()
        .await;
    let mut session = StdioSession::start(&off.api, None).await;
    let refused = session.failure("search_agents", json!({})).await;
    assert!(refused.contains("`mcp.enabled`"), "{refused}");
    session.close().await;
}

/// The tools of a registry only read, so that a call without an answer has changed nothing.
#[tokio::test]
async fn a_proxy_that_gives_up_is_an_error_of_the_tool() {
    let proxy = Origin::start();
    proxy.set_reply("/mcp", OriginReply::html("late").with_status(504));
    let mut command = registry_command(["mcp"]);
    command.args(["--registry", proxy.url("").trim_end_matches('/')]);
    let mut session = StdioSession::spawn(command);
    session.shake_hands().await;
    let late = session.failure("search_agents", json!({})).await;
    assert!(late.contains("HTTP 504"), "{late}");
    assert!(!late.contains("may have been made"), "{late}");
    session.close().await;
}

/// It ends in order when it is asked to, also before anything was said and while an agent is waited for.
#[tokio::test]
async fn it_ends_in_order_when_asked_to() {
    let registered = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let silent = Origin::start();
    silent.set_reply("/a2a", OriginReply::stalled("{"));
    let bytes =
        card_json("Rose", "gardening").replace("https://echo.agents.dev/a2a", &silent.url("/a2a"));
    origin.set_reply("/rose.json", OriginReply::json(bytes));
    let id = registered.publish(&origin.url("/rose.json")).await;
    let terminate = |session: &StdioSession| {
        let id = i32::try_from(session.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    };
    let session = StdioSession::start(&registered.api, None).await;
    terminate(&session);
    session.ended().await;
    let mut session = StdioSession::start(&registered.api, None).await;
    let params = json!({"name": "talk_to_agent", "arguments": {"agent": id, "text": "hello"}});
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params});
    session.write_message(&call).await;
    silent.wait_for_request("/a2a", 1).await;
    terminate(&session);
    session.ended().await;
    let mut unbegun = StdioSession::spawn(registered.anonymous_command(&["mcp"]));
    drop(unbegun.input.take());
    unbegun.ended().await;
}

/// Lines that are no messages are passed over, and a line without end is not kept.
#[tokio::test]
async fn lines_that_are_no_messages_harm_nothing() {
    let registered = RegistrySetup::new().start().await;
    let mut session = StdioSession::start(&registered.api, None).await;
    let input = session.input.as_mut().unwrap();
    input
        .write_all(b"nonsense\n\n{\"half\n\xff\xfe\n")
        .await
        .unwrap();
    input.write_all(&vec![b'x'; 3 * 1024 * 1024]).await.unwrap();
    input.write_all(b"\n").await.unwrap();
    let listed = session.call_method("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    session.close().await;
}

/// One message to an agent, and the next in the same conversation.
#[tokio::test]
async fn an_agent_is_talked_to_from_this_machine() {
    let registered = RegistrySetup::new().approve_all().start().await;
    for sdk in [Sdk::Py03, Sdk::Py1] {
        let agent = sdk.start_agent().await;
        let id = registered.publish(&agent.card_url(sdk)).await;
        let mut session = StdioSession::start(&registered.api, None).await;
        let listed = session.call_method("tools/list", json!({})).await;
        let talk = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        let schema = jsonschema::draft202012::new(&talk["outputSchema"]).unwrap();
        let said = json!({"agent": id, "text": "hello"});
        let result = session.call("talk_to_agent", said.clone()).await;
        assert_eq!(result["isError"], false, "{result:#}");
        let answer = &result["structuredContent"];
        schema.validate(answer).unwrap();
        assert_eq!(answer["text"], sdk.reply_to("hello"), "{result:#}");
        let shown = result_text(&result);
        assert!(shown.contains("never as instructions"), "{shown}");
        assert!(shown.ends_with(&sdk.reply_to("hello")), "{shown}");
        let asked = session
            .call("talk_to_agent", json!({"agent": id, "text": "ask me"}))
            .await;
        // Clients that know no structured results read in the text how to go on.
        let shown = result_text(&asked);
        let asked = &asked["structuredContent"];
        assert_eq!(asked["state"], "input-required", "{asked:#}");
        for name in ["task_id", "context_id"] {
            let id = asked[name].as_str().unwrap();
            assert!(
                shown.contains(&format!("The {name} is \"{id}\".")),
                "{shown}"
            );
        }
        let more = json!({
            "agent": id, "text": "the blue one",
            "task_id": asked["task_id"], "context_id": asked["context_id"],
        });
        let result = session.call("talk_to_agent", more).await;
        assert_eq!(
            result["structuredContent"]["text"],
            sdk.reply_to("the blue one"),
            "{result:#}"
        );
        for wrong in [
            json!({"agent": id}),
            json!({"agent": id, "text": " "}),
            json!({"agent": id, "text": "a", "token": "x"}),
        ] {
            let sentence = session.failure("talk_to_agent", wrong.clone()).await;
            assert!(sentence.contains("argument"), "{wrong}: {sentence}");
        }
        session.close().await;
    }
}

/// Nothing is sent to an agent that the user may not call, or whose card changed since it was approved.
#[tokio::test]
async fn nothing_is_sent_to_an_agent_that_something_speaks_against() {
    let registered = RegistrySetup::new().start().await;
    let agent = Origin::start();
    agent.set_reply("/a2a", OriginReply::status(500));
    let published = |words: &str| {
        let bytes = card_json("Rose", "gardening")
            .replace("https://echo.agents.dev/a2a", &agent.url("/a2a"));
        OriginReply::json(bytes.replace("Rose is good", words))
    };
    agent.set_reply("/rose.json", published("Rose is good"));
    registered.register(&agent.url("/rose.json")).await;
    let review = registered.wait_for_open_review(|_| true).await;
    let decision = json!({"digest": review.digest, "reason": "a test"});
    let path = format!("/v1/reviews/{}:approve", review.id);
    registered
        .post_as_admin(&path, &decision)
        .await
        .expect_status(200);
    let id = registered
        .wait_for_hit("q=gardening")
        .await
        .summary
        .id
        .to_string();
    let token = registered.create_token("reader", "reader").await;
    let said = json!({"agent": id, "text": "hello"});
    let mut session = StdioSession::start(&registered.api, Some(&token)).await;
    // So far nothing speaks against it: the message is sent, and the agent fails.
    session.failure("talk_to_agent", said.clone()).await;
    let sent = agent.requests_to("/a2a").len();
    assert!(sent > 0);
    forbid_calls_of(&registered, "reader").await;
    crate::support::polling::eventually("the new set decides", async || {
        let check = McpClient::new(&registered.api, REVISIONS[0], Some(&token));
        let check = check.structured("check_agent", json!({"agent": id})).await;
        (check["invoke"]["allowed"] == false).then_some(())
    })
    .await;
    let refused = session.failure("talk_to_agent", said.clone()).await;
    assert!(refused.starts_with("Nothing was sent to"), "{refused}");
    assert!(refused.contains("may not be called by you"), "{refused}");
    session.close().await;
    agent.set_reply("/rose.json", published("Rose is very good"));
    let domain = agent.address().to_string();
    registered.recrawl_and_wait(&domain).await;
    // A curator sees that another version waits.
    let curator = registered.create_token("curator", "curator").await;
    let mut session = StdioSession::start(&registered.api, Some(&curator)).await;
    let refused = session.failure("talk_to_agent", said).await;
    assert!(refused.contains("has changed its card"), "{refused}");
    assert!(!refused.contains("--diff"), "{refused}");
    let log = session.close().await;
    assert_eq!(
        agent.requests_to("/a2a").len(),
        sent,
        "nothing more was sent"
    );
    for secret in [&token, &curator] {
        assert!(!log.contains(secret.as_str()));
    }
}

/// Credentials are those of the user's file, and no variable and no argument gives others.
#[tokio::test]
async fn credentials_come_from_the_users_file_alone() {
    let registered = RegistrySetup::new().approve_all().start().await;
    let agent = Origin::start();
    agent.set_reply("/a2a", OriginReply::status(500));
    let mut card: Value = serde_json::from_str(&card_json("Rose", "gardening")).unwrap();
    card["url"] = json!(agent.url("/a2a"));
    card["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
    card["security"] = json!([{"token": []}]);
    agent.set_reply("/rose.json", OriginReply::json(card.to_string()));
    let id = registered.publish(&agent.url("/rose.json")).await;
    let home = TempDir::new().unwrap();
    let said = json!({"agent": id, "text": "hello"});
    let start = || {
        let mut command = registry_command(["mcp"]);
        command
            .env("A2A_REGISTRY_URL", &registered.url)
            .env("A2A_AGENT_TOKEN", "of-a-variable")
            .env("XDG_CONFIG_HOME", home.path());
        StdioSession::spawn(command)
    };
    let mut session = start();
    session.shake_hands().await;
    let refused = session.failure("talk_to_agent", said.clone()).await;
    assert!(!refused.contains("of-a-variable"), "{refused}");
    let keep = format!("credentials add {id}` in a terminal");
    assert!(refused.contains(&keep), "{refused}");
    assert!(!refused.contains("--"), "{refused}");
    session.close().await;
    assert!(
        agent.requests_to("/a2a").is_empty(),
        "nothing was sent without the credentials"
    );
    let mut keep =
        registered.anonymous_command(&["credentials", "add", &id, "--bearer", "of-the-file"]);
    keep.env("XDG_CONFIG_HOME", home.path());
    let kept = crate::support::program::Program::run(keep).await;
    assert!(kept.status.success(), "{kept:#?}");
    let mut session = start();
    session.shake_hands().await;
    session.failure("talk_to_agent", said).await;
    let log = session.close().await;
    let sent = agent.requests_to("/a2a");
    assert_eq!(sent[0].header("authorization"), Some("Bearer of-the-file"));
    assert!(!log.contains("of-the-file"), "{log}");
}

/// A gRPC agent without TLS is called where the user has allowed it, and a model cannot allow it.
#[tokio::test]
async fn plaintext_is_for_the_user_to_allow() {
    let registered = RegistrySetup::new().approve_all().start().await;
    let sdk = Sdk::Py1;
    let agent = sdk.start_agent().await;
    let mut card: Value = serde_json::from_str(&card_json("Rose", "gardening")).unwrap();
    let members = card.as_object_mut().unwrap();
    members.retain(|name, _| name != "url" && name != "protocolVersion");
    // As cards name gRPC interfaces: a host and a port, without a scheme.
    card["supportedInterfaces"] =
        json!([{"url": agent.grpc_address, "protocolBinding": "GRPC", "protocolVersion": "1.0"}]);
    let origin = Origin::start();
    origin.set_reply("/rose.json", OriginReply::json(card.to_string()));
    let id = registered.publish(&origin.url("/rose.json")).await;
    let said = json!({"agent": id, "text": "hello"});
    let mut session = StdioSession::start(&registered.api, None).await;
    let refused = session.failure("talk_to_agent", said.clone()).await;
    assert!(refused.contains("`mcp --plaintext`"), "{refused}");
    session.close().await;
    let mut session = StdioSession::spawn(registered.anonymous_command(&["mcp", "--plaintext"]));
    session.shake_hands().await;
    let result = session.call("talk_to_agent", said).await;
    let answer = &result["structuredContent"]["text"];
    assert_eq!(*answer, sdk.reply_to("hello"), "{result:#}");
    session.close().await;
}
