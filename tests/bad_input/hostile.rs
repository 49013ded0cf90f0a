//! A card with an injection attempt in every member.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::CARD;
use crate::support::origin::{Origin, OriginReply};
use crate::support::page_snippet::page_snippet;
use crate::support::program::{FinishedProgram, Program, registry_command};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// Text that ends string literals in shell, Python, JavaScript and HTML, runs commands, and has terminal control
/// sequences.
const EVIL: &str = "x'; $(id) `id` \"; <script>alert(1)</script> </code></pre> ${id} %s \
                    \u{1b}[31m\u{1b}]0;owned\u{7} \u{9b}2J \u{202e}evil\u{2066} \u{200b} \0 \r\n--\t\\";

/// Characters that must not reach a page, terminal or log unescaped.
const RAW: [char; 8] = [
    '\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\0', '\u{8}',
];

/// A card with [`EVIL`] in every member, of an agent at that address.
fn card(address: &str) -> Value {
    let skill = |at: usize| {
        json!({
            "id": format!("{at} {EVIL}"), "name": EVIL, "description": EVIL, "tags": [EVIL],
            "examples": [EVIL], "inputModes": [EVIL], "outputModes": [EVIL],
        })
    };
    json!({
        "name": format!("Evil {EVIL}"), "description": EVIL, "version": EVIL,
        "provider": {"organization": EVIL, "url": format!("javascript:alert('{EVIL}')")},
        "iconUrl": "javascript:alert(1)",
        "documentationUrl": format!("https://docs.example/\"onclick=alert(1)'{EVIL}"),
        "capabilities": {"extensions": [{"uri": EVIL, "description": EVIL, "params": {EVIL: EVIL}}]},
        "defaultInputModes": [EVIL, "text/plain"], "defaultOutputModes": [EVIL],
        "supportedInterfaces": [
            {"url": format!("{address}/rpc/';$(id)?x=';$(id)"), "protocolBinding": "JSONRPC",
             "protocolVersion": "1.0", "tenant": EVIL},
            {"url": EVIL, "protocolBinding": EVIL, "protocolVersion": EVIL, "tenant": EVIL},
        ],
        "skills": [skill(1), skill(2)],
        "securitySchemes": {
            EVIL: {"apiKeySecurityScheme": {"location": "query", "name": EVIL, "description": EVIL}},
        },
        "securityRequirements": [{"schemes": {EVIL: {"list": [EVIL]}}}],
        "signatures": [{"protected": EVIL, "signature": EVIL, "header": {EVIL: EVIL}}],
        EVIL: {EVIL: [EVIL]},
    })
}

/// The agent's response, with [`EVIL`] as its text.
fn hostile_response() -> String {
    let message = json!({"messageId": EVIL, "role": "ROLE_AGENT", "parts": [{"text": EVIL}]});
    json!({"jsonrpc": "2.0", "id": 1, "result": {"message": message}}).to_string()
}

fn assert_tame(what: &str, text: &str) {
    for character in RAW {
        assert!(
            !text.contains(character),
            "{what} shows {character:?}: {text:?}"
        );
    }
}

struct HostileAgent {
    origin: Origin,
    registry: ServingRegistry,
    agent: String,
    domain: String,
}

impl HostileAgent {
    async fn new() -> Self {
        let setup = RegistrySetup::new()
            .approve_all()
            .with_config_lines("[log]\nfilter = \"debug\"");
        let registry = setup.start().await;
        let origin = Origin::start();
        let address = origin.url("");
        origin.set_reply(CARD, OriginReply::json(card(&address).to_string()));
        origin.set_reply("/rpc/';$(id)", OriginReply::json(hostile_response()));
        let agent = registry.publish(&origin.url(CARD)).await;
        let domain = origin.address().to_string();
        Self {
            origin,
            registry,
            agent,
            domain,
        }
    }

    async fn get_page(&self, path: &str) -> String {
        let answer = self.registry.api.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe-inline"), "{policy}");
        answer.text()
    }

    async fn command(&self, arguments: &[&str]) -> FinishedProgram {
        let mut command = registry_command(arguments);
        command
            .args(["--registry", &self.registry.api.url])
            .args(["--token", crate::support::setup::ADMIN_TOKEN]);
        Program::run(command).await
    }
}

/// The exact bytes are stored and served nevertheless.
#[tokio::test]
async fn a_hostile_card_is_served_byte_for_byte() {
    let hostile = HostileAgent::new().await;
    let path = format!("/v1/agents/{}/card", hostile.agent);
    let bytes = card(&hostile.origin.url("")).to_string();
    let card = hostile.registry.api.get(&path).await;
    assert_eq!(card.text(), bytes);
    assert_eq!(card.headers["x-content-type-options"], "nosniff");
    assert_eq!(hostile.registry.api.search("q=evil").await["total"], 1);
    hostile
        .registry
        .api
        .search("q=evil&facets=tag,skill,provider,auth,input_mode")
        .await;
}

#[tokio::test]
async fn pages_escape_a_hostile_card() {
    let hostile = HostileAgent::new().await;
    let agent = format!("/agents/{}/", hostile.agent);
    let domain = format!("/domains/{}", hostile.domain);
    for path in [
        "/",
        "/?q=evil",
        "/?q=%27%3B%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        &agent,
        &domain,
    ] {
        let page = hostile.get_page(path).await;
        assert_tame(path, &page);
        for markup in [
            "<script>",
            "</script> </code>",
            "alert(1)</script>",
            "\"onclick",
            "javascript:",
        ] {
            // As text it is harmless, as the target of a link it is not.
            let shown = if markup == "javascript:" {
                page.contains("href=\"javascript:") || page.contains("src=\"javascript:")
            } else {
                page.contains(markup)
            };
            assert!(!shown, "{path} shows {markup}: {page}");
        }
    }
}

/// A pasted snippet runs its own code, and no code from the card.
#[tokio::test]
async fn snippets_run_no_code_of_a_hostile_card() {
    let hostile = HostileAgent::new().await;
    let page = hostile
        .get_page(&format!("/agents/{}/", hostile.agent))
        .await;
    let curl = page_snippet(&page, "curl");
    assert_tame("the curl snippet", &curl);
    assert!(curl.starts_with("curl "), "{curl}");

    let folder = TempDir::new().unwrap();
    let ran = folder.path().join("ran");
    let file = folder.path().join("snippet.sh");
    let mut script = String::new();
    // Commands that the card could run are replaced by functions that leave a trace; `curl` prints its arguments.
    for name in ["id", "script", "alert", "evil"] {
        writeln!(script, "{name}() {{ echo {name} >>'{}'; }}", ran.display()).unwrap();
    }
    script.push_str("curl() { printf '[%s]\\n' \"$@\"; }\nA2A_API_KEY=key\n");
    script.push_str(&curl);
    std::fs::write(&file, script).unwrap();
    let shell = |option: Option<&str>| {
        let mut shell = Command::new("sh");
        shell.args(option).arg(&file).current_dir(folder.path());
        Program::run(shell)
    };
    let parsed = shell(Some("-n")).await;
    assert!(parsed.status.success(), "{parsed:?}: {curl}");
    let done = shell(None).await;
    assert!(
        done.status.success() && done.stderr.is_empty(),
        "{done:?}: {curl}"
    );
    assert!(!ran.exists(), "{:?}: {curl}", std::fs::read_to_string(&ran));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(
        done.stdout.iter().any(|line| line.contains("$(id)")),
        "{done:?}"
    );

    // The same substitution, unquoted, leaves a trace: the replaced functions work.
    std::fs::write(
        &file,
        format!("id() {{ echo id >>'{}'; }}\necho \"$(id)\"", ran.display()),
    )
    .unwrap();
    shell(None).await;
    assert!(ran.exists());

    let python = page_snippet(&page, "python");
    assert_tame("the Python snippet", &python);
    let file = folder.path().join("snippet.py");
    std::fs::write(&file, &python).unwrap();
    let mut check = Command::new("python3");
    check
        .args(["-B", "-W", "error", "-c", PYTHON_CALLS])
        .arg(&file);
    let calls = Program::run(check).await;
    assert!(calls.status.success(), "{calls:?}: {python}");
    for name in ["alert", "id"] {
        assert!(
            !calls.stdout.iter().any(|line| line == name),
            "{name}: {python}"
        );
    }

    let javascript = page_snippet(&page, "javascript");
    assert_tame("the JavaScript snippet", &javascript);
    let file = folder.path().join("snippet.mjs");
    std::fs::write(&file, &javascript).unwrap();
    let mut check = Command::new("node");
    check.arg("--check").arg(&file);
    let checked = Program::run(check).await;
    assert!(checked.status.success(), "{checked:?}: {javascript}");
}

/// Python program that prints the name of every function that a file calls by its bare name.
const PYTHON_CALLS: &str = "import ast, sys
for node in ast.walk(ast.parse(open(sys.argv[1], encoding='utf-8').read())):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        print(node.func.id)";

#[tokio::test]
async fn terminal_output_escapes_a_hostile_card() {
    let hostile = HostileAgent::new().await;
    let agent = hostile.agent.as_str();
    for arguments in [
        &["search", "evil"][..],
        &["search", "evil", "--json"],
        &["show", agent],
        &["show", agent, "--versions"],
        &["domain", "show", &hostile.domain],
        &["send", agent, "hello", "--api-key", "key"],
    ] {
        let finished = hostile.command(arguments).await;
        assert_eq!(
            finished.status.code(),
            Some(0),
            "{arguments:?}: {finished:?}"
        );
        let shown = [finished.stdout, finished.stderr].concat().join("\n");
        // JSON is for programs; it escapes control characters only.
        if arguments.contains(&"--json") {
            assert!(!shown.contains(['\u{1b}', '\0', '\u{7}']), "{shown:?}");
        } else {
            assert_tame(&format!("{arguments:?}"), &shown);
        }
    }
    // The agent got the message, with the key where the card requires it, and nothing else.
    let asked = hostile.origin.wait_for_request("/rpc/';$(id)", 1).await;
    assert_eq!(asked.method, "POST");

    let lint = Program::run(registry_command(["lint", &hostile.origin.url(CARD)])).await;
    assert_tame("lint", &[lint.stdout, lint.stderr].concat().join("\n"));
}

#[tokio::test]
async fn the_log_escapes_a_hostile_card() {
    let hostile = HostileAgent::new().await;
    let agent = format!("/v1/agents/{}", hostile.agent);
    hostile.registry.api.get(&agent).await;
    hostile
        .registry
        .api
        .get("/v1/agents?q=%1B%5B31m%E2%80%AE%00")
        .await;
    hostile
        .registry
        .api
        .get("/v1/agents/%1B%5B31m%E2%80%AE")
        .await;
    let redirect = OriginReply::redirect("http://[\u{9b}31m/'; $(id)");
    hostile.origin.set_reply(CARD, redirect);
    hostile.registry.api.recrawl_and_wait(&hostile.domain).await;
    hostile
        .get_page(&format!("/domains/{}", hostile.domain))
        .await;
    let ended = hostile.registry.stop().await;
    assert!(ended.stderr.len() > 3, "nothing was logged: {ended:?}");
    for line in ended.stdout.iter().chain(&ended.stderr) {
        assert_tame("the log", line);
        assert!(
            !line.trim_start().starts_with("--"),
            "a forged line: {line}"
        );
    }
}
