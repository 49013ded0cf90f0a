//! Agent names on the command line: a name means exactly that agent, never a similar or neighbouring one.

use serde_json::Value;

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, assert_exit, join_lines};
use crate::support::sdk::Sdk;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// The card of an agent with this endpoint URL.
fn card_with_endpoint(name: &str, url: &str) -> String {
    card_json(name, "repeat").replace("https://echo.agents.dev/a2a", url)
}

/// All commands that act on an agent or send to it.
fn acts<'a>(name: &'a str) -> [Vec<&'a str>; 5] {
    let act = |verb: &'a str| vec!["agent", verb, name, "--reason", "a test"];
    let mut retire = act("retire");
    retire.push("--yes");
    [
        act("suspend"),
        act("deprecate"),
        act("undeprecate"),
        retire,
        vec!["send", name, "a secret", "--bearer", "S"],
    ]
}

async fn lifecycle(registry: &ServingRegistry, id: &str) -> String {
    let agent: Value = registry.read_as_admin(&format!("/v1/agents/{id}")).await;
    agent["lifecycle"].as_str().unwrap().to_owned()
}

fn assert_negative(finished: &FinishedProgram) {
    assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
    assert_eq!(join_lines(&finished.stdout), "", "{finished:#?}");
}

#[tokio::test]
async fn a_url_means_the_card_at_it_or_nothing() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let endpoint = origin.url("/talk");
    origin.set_reply(
        "/a.json",
        OriginReply::json(card_with_endpoint("First", &endpoint)),
    );
    registry.register(&origin.url("/a.json")).await;
    let id = registry
        .wait_for_hit("q=first")
        .await
        .summary
        .id
        .to_string();
    let host = origin.address();
    for near in [
        origin.url("/nothing-here.json"),
        origin.url("/"),
        origin.url("/a.json?x=1"),
        origin.url("/A.json"),
        format!("https://{host}/a.json"),
        endpoint.clone(),
    ] {
        for act in acts(&near) {
            assert_negative(&registry.run_admin_command(&act).await);
        }
        assert_eq!(lifecycle(&registry, &id).await, "approved", "{near}");
    }
    assert!(origin.requests_to("/talk").is_empty(), "nothing was sent");
    assert_negative(
        &registry
            .run_admin_command(&["show", &origin.url("/nothing-here.json")])
            .await,
    );
    // An agent that merely claims this endpoint may be shown, but is not meant by it.
    let shown = registry.run_admin_command(&["show", &endpoint]).await;
    assert_exit(&shown, 0, "");
    let suspend = ["agent", "suspend", &endpoint, "--reason", "x"];
    assert_exit(&registry.run_admin_command(&suspend).await, 1, &id);
    let exact = origin.url("/a.json");
    let suspend = ["agent", "suspend", &exact, "--reason", "x"];
    assert_exit(&registry.run_admin_command(&suspend).await, 0, "");
    assert_eq!(lifecycle(&registry, &id).await, "suspended");
    // The suspended agent is no longer listed, and its URL still means it.
    let resume = ["agent", "resume", &exact, "--reason", "x"];
    assert_exit(&registry.run_admin_command(&resume).await, 0, "");
}

/// A URL without a path means the agent that was registered by the same URL.
#[tokio::test]
async fn a_url_without_a_path_means_the_agent_it_registered() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply(
        "/.well-known/agent-card.json",
        OriginReply::json(card_json("Own", "own")),
    );
    origin.set_reply(
        "/other.json",
        OriginReply::json(card_json("Other", "other")),
    );
    let bare = origin.url("");
    let register = ["register", &bare, &origin.url("/other.json")];
    assert_exit(&registry.run_admin_command(&register).await, 0, "");
    let old_path = origin.url("/.well-known/agent.json");
    for name in [&bare, &format!("{bare}/"), &old_path] {
        let shown = registry.run_admin_command(&["show", name, "--json"]).await;
        let shown: Value = serde_json::from_str(&join_lines(&shown.stdout)).unwrap();
        assert_eq!(shown["name"], "Own", "{name}");
    }
}

/// Right after registering no agent is listed, and each URL means its own agent nevertheless.
#[tokio::test]
async fn a_url_means_its_own_agent_before_that_is_listed() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let names = ["alpha", "beta", "gamma"];
    let urls = names.map(|name| {
        let path = format!("/{name}.json");
        origin.set_reply(&path, OriginReply::json(card_json(name, name)));
        origin.url(&path)
    });
    let mut register = vec!["register"];
    register.extend(urls.iter().map(String::as_str));
    assert_exit(&registry.run_admin_command(&register).await, 0, "");
    for (name, url) in names.iter().zip(&urls) {
        let shown = registry.run_admin_command(&["show", url, "--json"]).await;
        let shown: Value = serde_json::from_str(&join_lines(&shown.stdout)).unwrap();
        assert_eq!(shown["name"], *name);
        assert_negative(&Program::run(registry.anonymous_command(&["show", url])).await);
    }
}

#[tokio::test]
async fn a_bare_host_with_several_agents_lists_them() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let endpoint = origin.url("/talk");
    let host = origin.address().to_string();
    origin.set_reply(
        "/a.json",
        OriginReply::json(card_with_endpoint("First", &endpoint)),
    );
    registry.register(&origin.url("/a.json")).await;
    let first = registry
        .wait_for_hit("q=first")
        .await
        .summary
        .id
        .to_string();
    assert_exit(&registry.run_admin_command(&["show", &host]).await, 0, "");

    origin.set_reply(
        "/b.json",
        OriginReply::json(card_with_endpoint("Second", &endpoint)),
    );
    registry.register(&origin.url("/b.json")).await;
    let second = registry
        .wait_for_hit("q=second")
        .await
        .summary
        .id
        .to_string();
    // An agent that is not listed counts as a candidate too.
    let suspend = ["agent", "suspend", &second, "--reason", "x"];
    assert_exit(&registry.run_admin_command(&suspend).await, 0, "");
    let mut commands = acts(&host).to_vec();
    commands.push(vec!["show", &host]);
    for command in commands {
        let asked = registry.run_admin_command(&command).await;
        assert_negative(&asked);
        for named in [&first, &second, "First", "Second", "the one you mean"] {
            assert!(
                join_lines(&asked.stderr).contains(named),
                "{named}: {asked:#?}"
            );
        }
        let asked = registry
            .run_admin_command(&[&command[..], &["--json"]].concat())
            .await;
        assert_eq!(asked.status.code(), Some(1), "{asked:#?}");
        let answer: Value = serde_json::from_str(&join_lines(&asked.stdout)).unwrap();
        let ids = answer["agents"].as_array().unwrap().iter();
        let mut ids: Vec<_> = ids.map(|agent| agent["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        let mut both = [first.as_str(), &second];
        both.sort_unstable();
        assert_eq!(ids, both);
        assert_eq!(answer["total"], 2);
    }
    assert!(origin.requests_to("/talk").is_empty(), "nothing was sent");
    assert_eq!(lifecycle(&registry, &first).await, "approved");
}

/// Attack: a card with another agent's address in it does not become the agent meant by that address.
#[tokio::test]
async fn a_card_that_claims_anothers_address_is_not_meant_by_it() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let (victim, other) = (Origin::start(), Origin::start());
    let claimed = victim.url("/card.json");
    let mut claim: Value = serde_json::from_str(&card_with_endpoint("Other", &claimed)).unwrap();
    claim["additionalInterfaces"] =
        serde_json::json!([{"url": other.url("/talk"), "transport": "JSONRPC"}]);
    other.set_reply("/a.json", OriginReply::json(claim.to_string()));
    registry.register(&other.url("/a.json")).await;
    let id = registry
        .wait_for_hit("q=other")
        .await
        .summary
        .id
        .to_string();
    let host = victim.address().to_string();
    for name in [&claimed, &host] {
        for act in acts(name) {
            assert_negative(&registry.run_admin_command(&act).await);
        }
    }
    assert!(other.requests_to("/talk").is_empty() && victim.requests_to("/card.json").is_empty());
    assert_eq!(lifecycle(&registry, &id).await, "approved");
    // If the address is also the URL of a card, that card is meant.
    victim.set_reply(
        "/card.json",
        OriginReply::json(card_with_endpoint("Victim", &claimed)),
    );
    registry.register(&claimed).await;
    let own = registry
        .wait_for_hit("q=victim")
        .await
        .summary
        .id
        .to_string();
    for name in [&claimed, &host] {
        let shown = registry.run_admin_command(&["show", name, "--json"]).await;
        let shown: Value = serde_json::from_str(&join_lines(&shown.stdout)).unwrap();
        assert_eq!(shown["id"], own.as_str());
    }
}

/// A whole name that only one agent has is enough to show it and to talk to it, and not to act on it.
#[tokio::test]
async fn a_whole_name_means_the_only_agent_that_has_it() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let sdk = Sdk::Py1;
    let agent = sdk.start_agent().await;
    registry.register(&agent.card_url(sdk)).await;
    let skill = format!("skill={}", sdk.skill_id());
    let id = registry.wait_for_hit(&skill).await.summary.id.to_string();
    let name = sdk.agent_name();
    for written in [name.to_owned(), name.to_uppercase(), format!(" {name} ")] {
        let sent = registry
            .run_admin_command(&["send", &written, "hello"])
            .await;
        assert_exit(&sent, 0, &id);
        assert_eq!(join_lines(&sent.stdout), sdk.reply_to("hello"));
        let listed = registry
            .run_admin_command(&["task", "list", &written])
            .await;
        assert_ne!(listed.status.code(), Some(2), "{listed:#?}");
        assert!(join_lines(&listed.stderr).contains(&id), "{listed:#?}");
        let shown = registry.run_admin_command(&["show", &written]).await;
        assert_exit(&shown, 0, "");
        assert!(join_lines(&shown.stdout).contains(&id), "{shown:#?}");
    }
    for act in acts(name).iter().take(4) {
        assert_exit(
            &registry.run_admin_command(act).await,
            2,
            "not an id, URN, host or card URL",
        );
    }
    assert_eq!(lifecycle(&registry, &id).await, "approved");

    // Attack: cards may have any name, that of another agent and that of a host.
    let origin = Origin::start();
    let endpoint = origin.url("/talk");
    for (path, name) in [
        ("/b.json", name.to_lowercase()),
        ("/c.json", "payments.example.com".to_owned()),
    ] {
        origin.set_reply(
            path,
            OriginReply::json(card_with_endpoint(&name, &endpoint)),
        );
        registry.register(&origin.url(path)).await;
    }
    let second = registry.wait_for_hit("q=shell&skill=repeat").await;
    let second = second.summary.id.to_string();
    for command in [vec!["send", name, "a secret"], vec!["show", name]] {
        let asked = registry.run_admin_command(&command).await;
        assert_negative(&asked);
        for named in [&id, &second, "the one you mean"] {
            assert!(
                join_lines(&asked.stderr).contains(named),
                "{named}: {asked:#?}"
            );
        }
    }
    for unknown in ["payments.example.com", "Shell", "shell sort"] {
        assert_negative(
            &registry
                .run_admin_command(&["send", unknown, "a secret"])
                .await,
        );
    }
    assert!(origin.requests_to("/talk").is_empty(), "nothing was sent");
}
