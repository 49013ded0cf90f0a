//! Output of `register` for each kind of target.

use serde_json::Value;

use super::client::assert_printed;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, join_lines};
use crate::support::setup::RegistrySetup;

/// Printed for each name: its own agent and no other, the agent's state and reason, its signature verdicts, and the
/// findings about its card.
#[tokio::test]
async fn register_reports_the_result_of_each_name() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("First", "one")));
    let broken = card_json("Second", "two").replace("\"version\": \"1.0.0\"", "\"version\": {}");
    origin.set_reply("/b.json", OriginReply::json(broken));
    let (first, second) = (origin.url("/a.json"), origin.url("/b.json"));
    assert_printed(
        &registry.run_admin_command(&["register", &first]).await,
        "found First",
    );
    let said = registry.run_admin_command(&["register", &second]).await;
    assert_printed(&said, "found Second");
    for words in [
        "pending; approve it with `",
        "waits for its first approval",
        "signature: unsigned: ",
        "findings: errors: 1, ",
    ] {
        assert_printed(&said, words);
    }
    assert!(!join_lines(&said.stdout).contains("First"), "{said:#?}");
    let approved = registry
        .run_admin_command(&["register", &first, "--approve"])
        .await;
    assert_printed(&approved, "found First");
    assert_printed(&approved, "errors: 0, ");
}

/// A limit ends a registration at once and is reported for each URL it affects; the others are reported as usual.
#[tokio::test]
async fn a_limit_is_reported_for_each_url_it_affects() {
    let limits = "[limits]\nagents_per_domain = 2\nagents_reserved = 0";
    let registry = RegistrySetup::new()
        .with_config_lines(limits)
        .approve_all()
        .start()
        .await;
    let origin = Origin::start();
    let names = ["one", "two", "three", "four"];
    let urls = names.map(|name| {
        let path = format!("/{name}.json");
        origin.set_reply(&path, OriginReply::json(card_json(name, name)));
        origin.url(&path)
    });
    let publisher = registry.create_token("ann", "publisher").await;
    let mut command = registry.anonymous_command(&["register", "--token", &publisher]);
    command.args(&urls);
    let said = Program::run(command).await;
    assert_eq!(said.status.code(), Some(1), "{said:#?}");
    for url in &urls[..2] {
        assert_reported(&said, url);
    }
    assert_eq!(said.stderr.len(), 2, "{said:#?}");
    for (url, line) in urls[2..].iter().zip(&said.stderr) {
        assert!(
            line.contains(url.as_str())
                && line.contains("has reached its limit of 2 agents registered by others"),
            "{line}"
        );
    }
}

/// Each name is reported, however many there are.
#[tokio::test]
async fn each_of_many_names_is_reported() {
    let limits = "[limits]\nagents_per_domain = 100";
    let registry = RegistrySetup::new()
        .with_config_lines(limits)
        .approve_all()
        .start()
        .await;
    let origin = Origin::start();
    let names: Vec<String> = (0..60).map(|number| format!("agent{number}")).collect();
    let urls: Vec<String> = names
        .iter()
        .map(|name| {
            let path = format!("/{name}.json");
            origin.set_reply(&path, OriginReply::json(card_json(name, name)));
            origin.url(&path)
        })
        .collect();
    let input = urls.join("\n");
    let said = Program::run_with_input(
        registry.admin_command(&["register", "-f", "-"]),
        input.as_bytes(),
    );
    let said = said.await;
    assert_eq!(said.status.code(), Some(0), "{said:#?}");
    for (name, url) in names.iter().zip(&urls) {
        assert_printed(&said, &format!("{url}: found {name} ("));
    }
}

/// Several names are sent together. Each line of `--json --no-wait` is the result of one of them, in their order.
#[tokio::test]
async fn names_in_bulk_have_a_line_each() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let (first, last) = (origin.url("/a.json"), origin.url("/b.json"));
    let input = format!("{first}\nhttp://user@127.0.0.1/a.json\n{last}\n");
    let command = registry.admin_command(&["register", "-f", "-", "--no-wait", "--json"]);
    let said = Program::run_with_input(command, input.as_bytes()).await;
    assert_eq!(said.status.code(), Some(1), "{said:#?}");
    let lines = said.stdout.iter().map(|line| serde_json::from_str(line));
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap();
    assert_eq!(lines.len(), 3, "{said:#?}");
    for (line, url) in [(&lines[0], &first), (&lines[2], &last)] {
        assert_eq!(line["registration"]["card_url"], url.as_str());
        assert_eq!(line["status"], 202);
        assert_eq!(line["sources"][0]["url"], url.as_str());
    }
    assert_eq!(lines[1]["status"], 422);
    assert_eq!(said.stderr.len(), 1, "{said:#?}");
}

/// Checks that the output reports an agent for a URL.
fn assert_reported(finished: &FinishedProgram, url: &str) {
    let found = format!("{url}: found ");
    assert!(
        join_lines(&finished.stdout).contains(&found),
        "{finished:#?}"
    );
}

/// A bare `host:port` means https, and the output says so, also if the same host is known over plain http.
#[tokio::test]
async fn a_bare_name_explains_how_to_write_plain_http() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let well_known = "/.well-known/agent-card.json";
    origin.set_reply(well_known, OriginReply::json(card_json("Own", "own")));
    let plain = origin.url("");
    let bare = plain.trim_start_matches("http://");
    let written = format!("register {}", origin.url(well_known));
    let check_advice = async || {
        let said = registry.run_admin_command(&["register", bare]).await;
        assert_eq!(said.status.code(), Some(1), "{said:#?}");
        let lines = join_lines(&said.stdout);
        assert!(
            lines.contains(&written) && !lines.contains("found"),
            "{lines}"
        );
    };
    check_advice().await;
    assert_printed(
        &registry.run_admin_command(&["register", &plain]).await,
        "found Own",
    );
    check_advice().await;
    // A URL with a scheme is taken literally.
    assert_printed(
        &registry.run_admin_command(&["register", &plain]).await,
        "found Own",
    );
}
