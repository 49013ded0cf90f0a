//! Agent names on the command line: a name means exactly that agent, never a similar or neighbouring one.

use serde_json::Value;

use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Finished, Program, assert_ended, text};
use crate::support::sdk::Sdk;
use crate::support::serving::ServingRegistry;
use crate::support::setup::Setup;

/// The card of an agent with this endpoint URL.
fn answering(name: &str, url: &str) -> String {
    card(name, "repeat").replace("https://echo.agents.dev/a2a", url)
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

async fn lifecycle(served: &ServingRegistry, id: &str) -> String {
    let agent: Value = served.read(&format!("/v1/agents/{id}")).await;
    agent["lifecycle"].as_str().unwrap().to_owned()
}

fn no(finished: &Finished) {
    assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
    assert_eq!(text(&finished.stdout), "", "{finished:#?}");
}

#[tokio::test]
async fn a_url_means_the_card_at_it_or_nothing() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    let endpoint = origin.url("/talk");
    origin.answer("/a.json", OriginReply::json(answering("First", &endpoint)));
    served.register(&origin.url("/a.json")).await;
    let id = served.found("q=first").await.summary.id.to_string();
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
            no(&served.run(&act).await);
        }
        assert_eq!(lifecycle(&served, &id).await, "approved", "{near}");
    }
    assert!(origin.requests("/talk").is_empty(), "nothing was sent");
    no(&served
        .run(&["show", &origin.url("/nothing-here.json")])
        .await);
    // An agent that merely claims this endpoint may be shown, but is not meant by it.
    let shown = served.run(&["show", &endpoint]).await;
    assert_ended(&shown, 0, "");
    let suspend = ["agent", "suspend", &endpoint, "--reason", "x"];
    assert_ended(&served.run(&suspend).await, 1, &id);
    let exact = origin.url("/a.json");
    let suspend = ["agent", "suspend", &exact, "--reason", "x"];
    assert_ended(&served.run(&suspend).await, 0, "");
    assert_eq!(lifecycle(&served, &id).await, "suspended");
    // The suspended agent is no longer listed, and its URL still means it.
    let resume = ["agent", "resume", &exact, "--reason", "x"];
    assert_ended(&served.run(&resume).await, 0, "");
}

/// A URL without a path means the agent that was registered by the same URL.
#[tokio::test]
async fn a_url_without_a_path_means_the_agent_it_registered() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    origin.answer(
        "/.well-known/agent-card.json",
        OriginReply::json(card("Own", "own")),
    );
    origin.answer("/other.json", OriginReply::json(card("Other", "other")));
    let bare = origin.url("");
    let register = ["register", &bare, &origin.url("/other.json")];
    assert_ended(&served.run(&register).await, 0, "");
    let old_path = origin.url("/.well-known/agent.json");
    for name in [&bare, &format!("{bare}/"), &old_path] {
        let shown = served.run(&["show", name, "--json"]).await;
        let shown: Value = serde_json::from_str(&text(&shown.stdout)).unwrap();
        assert_eq!(shown["name"], "Own", "{name}");
    }
}

/// Right after registering no agent is listed, and each URL means its own agent nevertheless.
#[tokio::test]
async fn a_url_means_its_own_agent_before_that_is_listed() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    let names = ["alpha", "beta", "gamma"];
    let urls = names.map(|name| {
        let path = format!("/{name}.json");
        origin.answer(&path, OriginReply::json(card(name, name)));
        origin.url(&path)
    });
    let mut register = vec!["register"];
    register.extend(urls.iter().map(String::as_str));
    assert_ended(&served.run(&register).await, 0, "");
    for (name, url) in names.iter().zip(&urls) {
        let shown = served.run(&["show", url, "--json"]).await;
        let shown: Value = serde_json::from_str(&text(&shown.stdout)).unwrap();
        assert_eq!(shown["name"], *name);
        no(&Program::run(served.anonymous(&["show", url])).await);
    }
}

#[tokio::test]
async fn a_bare_host_with_several_agents_lists_them() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    let endpoint = origin.url("/talk");
    let host = origin.address().to_string();
    origin.answer("/a.json", OriginReply::json(answering("First", &endpoint)));
    served.register(&origin.url("/a.json")).await;
    let first = served.found("q=first").await.summary.id.to_string();
    assert_ended(&served.run(&["show", &host]).await, 0, "");

    origin.answer("/b.json", OriginReply::json(answering("Second", &endpoint)));
    served.register(&origin.url("/b.json")).await;
    let second = served.found("q=second").await.summary.id.to_string();
    // An agent that is not listed counts as a candidate too.
    let suspend = ["agent", "suspend", &second, "--reason", "x"];
    assert_ended(&served.run(&suspend).await, 0, "");
    let mut commands = acts(&host).to_vec();
    commands.push(vec!["show", &host]);
    for command in commands {
        let asked = served.run(&command).await;
        no(&asked);
        for named in [&first, &second, "First", "Second", "the one you mean"] {
            assert!(text(&asked.stderr).contains(named), "{named}: {asked:#?}");
        }
        let asked = served.run(&[&command[..], &["--json"]].concat()).await;
        assert_eq!(asked.status.code(), Some(1), "{asked:#?}");
        let answer: Value = serde_json::from_str(&text(&asked.stdout)).unwrap();
        let ids = answer["agents"].as_array().unwrap().iter();
        let mut ids: Vec<_> = ids.map(|agent| agent["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        let mut both = [first.as_str(), &second];
        both.sort_unstable();
        assert_eq!(ids, both);
        assert_eq!(answer["total"], 2);
    }
    assert!(origin.requests("/talk").is_empty(), "nothing was sent");
    assert_eq!(lifecycle(&served, &first).await, "approved");
}

/// Attack: a card with another agent's address in it does not become the agent meant by that address.
#[tokio::test]
async fn a_card_that_claims_anothers_address_is_not_meant_by_it() {
    let served = Setup::new().approve_all().start().await;
    let (victim, other) = (Origin::start(), Origin::start());
    let claimed = victim.url("/card.json");
    let mut claim: Value = serde_json::from_str(&answering("Other", &claimed)).unwrap();
    claim["additionalInterfaces"] =
        serde_json::json!([{"url": other.url("/talk"), "transport": "JSONRPC"}]);
    other.answer("/a.json", OriginReply::json(claim.to_string()));
    served.register(&other.url("/a.json")).await;
    let id = served.found("q=other").await.summary.id.to_string();
    let host = victim.address().to_string();
    for name in [&claimed, &host] {
        for act in acts(name) {
            no(&served.run(&act).await);
        }
    }
    assert!(other.requests("/talk").is_empty() && victim.requests("/card.json").is_empty());
    assert_eq!(lifecycle(&served, &id).await, "approved");
    // If the address is also the URL of a card, that card is meant.
    victim.answer(
        "/card.json",
        OriginReply::json(answering("Victim", &claimed)),
    );
    served.register(&claimed).await;
    let own = served.found("q=victim").await.summary.id.to_string();
    for name in [&claimed, &host] {
        let shown = served.run(&["show", name, "--json"]).await;
        let shown: Value = serde_json::from_str(&text(&shown.stdout)).unwrap();
        assert_eq!(shown["id"], own.as_str());
    }
}

/// A whole name that only one agent has is enough to show it and to talk to it, and not to act on it.
#[tokio::test]
async fn a_whole_name_means_the_only_agent_that_has_it() {
    let served = Setup::new().approve_all().start().await;
    let sdk = Sdk::Py1;
    let agent = sdk.agent().await;
    served.register(&agent.card_url(sdk)).await;
    let skill = format!("skill={}", sdk.skill());
    let id = served.found(&skill).await.summary.id.to_string();
    let name = sdk.agent_name();
    for written in [name.to_owned(), name.to_uppercase(), format!(" {name} ")] {
        let sent = served.run(&["send", &written, "hello"]).await;
        assert_ended(&sent, 0, &id);
        assert_eq!(text(&sent.stdout), sdk.answer_to("hello"));
        let listed = served.run(&["task", "list", &written]).await;
        assert_ne!(listed.status.code(), Some(2), "{listed:#?}");
        assert!(text(&listed.stderr).contains(&id), "{listed:#?}");
        let shown = served.run(&["show", &written]).await;
        assert_ended(&shown, 0, "");
        assert!(text(&shown.stdout).contains(&id), "{shown:#?}");
    }
    for act in acts(name).iter().take(4) {
        assert_ended(&served.run(act).await, 2, "no id, URN, host or card URL");
    }
    assert_eq!(lifecycle(&served, &id).await, "approved");

    // Attack: cards may have any name, that of another agent and that of a host.
    let origin = Origin::start();
    let endpoint = origin.url("/talk");
    for (path, name) in [
        ("/b.json", name.to_lowercase()),
        ("/c.json", "payments.example.com".to_owned()),
    ] {
        origin.answer(path, OriginReply::json(answering(&name, &endpoint)));
        served.register(&origin.url(path)).await;
    }
    let second = served.found("q=shell&skill=repeat").await;
    let second = second.summary.id.to_string();
    for command in [vec!["send", name, "a secret"], vec!["show", name]] {
        let asked = served.run(&command).await;
        no(&asked);
        for named in [&id, &second, "the one you mean"] {
            assert!(text(&asked.stderr).contains(named), "{named}: {asked:#?}");
        }
    }
    for unknown in ["payments.example.com", "Shell", "shell sort"] {
        no(&served.run(&["send", unknown, "a secret"]).await);
    }
    assert!(origin.requests("/talk").is_empty(), "nothing was sent");
}
