//! Client commands, in the order in which a curator uses them.

use a2a_registry_api::{AgentList, Diff, DomainView, ReviewList, VersionList};
use reqwest::StatusCode;
use serde::de::DeserializeOwned;

use crate::support::cards::card;
use crate::support::http;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Finished, Program, assert_ended, text};
use crate::support::serving::ServingRegistry;
use crate::support::setup::Setup;

fn json<T: DeserializeOwned>(finished: &Finished) -> T {
    serde_json::from_str(&text(&finished.stdout))
        .unwrap_or_else(|error| panic!("{error}: {finished:#?}"))
}

/// Checks that a command succeeded and printed these words.
pub(super) fn assert_printed(finished: &Finished, said: &str) {
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert!(
        text(&finished.stdout).contains(said),
        "{said}: {finished:#?}"
    );
}

/// An origin with a card at `/a.json`, registered and waiting for a decision; and the id of its review.
async fn waiting(served: &ServingRegistry, name: &str, skill: &str) -> (Origin, String) {
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card(name, skill)));
    let url = origin.url("/a.json");
    let registered = served.run(&["register", &url]).await;
    assert_printed(&registered, &format!("found {name}"));
    assert_printed(&registered, "pending; approve it with `");
    let said = text(&registered.stdout);
    let (_, review) = said.split_once("review approve ").unwrap();
    let (review, _) = review.split_once(' ').unwrap();
    (origin, review.to_owned())
}

#[tokio::test]
async fn a_card_goes_from_registered_to_retired() {
    let served = Setup::new().start().await;
    let (origin, review) = waiting(&served, "Echo", "repeat").await;

    let before = Program::run(served.anonymous(&["search", "repeat"])).await;
    assert_ended(&before, 1, "no agent matches");
    let list: ReviewList = json(&served.run(&["review", "list", "--json"]).await);
    assert_eq!(list.reviews.len(), 1);
    assert_eq!(list.reviews[0].id.to_string(), review);
    assert_printed(&served.run(&["review", "list"]).await, &review);
    assert_printed(
        &served.run(&["review", "show", &review]).await,
        "first card",
    );

    let stale = format!("sha256:{}", "0".repeat(64));
    let decide = ["review", "approve", &review, "--reason", "known people"];
    let wrong = [&decide[..], &["--digest", &stale]].concat();
    assert_ended(&served.run(&wrong).await, 2, "");
    assert_printed(&served.run(&decide).await, "is approved");
    let again = served.run(&["review", "list"]).await;
    assert_ended(&again, 1, "no review is open");

    let hit = served.found("q=repeat").await;
    let id = hit.summary.id.to_string();
    let found = Program::run(served.anonymous(&["search", "repeat"])).await;
    assert_printed(&found, &id);
    let listed = served.run(&["search", "--json", "--skill", "repeat"]).await;
    let listed: AgentList = json(&listed);
    assert_eq!(
        (listed.total, listed.agents[0].summary.id),
        (1, hit.summary.id)
    );
    let named = ["search", "--json", "--fields", "name,links", "repeat"];
    let named: serde_json::Value = json(&served.run(&named).await);
    let members = named["agents"][0].as_object().unwrap().keys();
    let members: std::collections::BTreeSet<&str> = members.map(String::as_str).collect();
    assert_eq!(
        members.into_iter().collect::<Vec<_>>(),
        ["id", "links", "name"]
    );
    let unread = served.run(&["search", "--fields", "name"]).await;
    assert_ended(&unread, 2, "give --json as well");

    assert_printed(&served.run(&["show", &id]).await, "rule");
    assert_printed(&served.run(&["show", &origin.url("/a.json")]).await, &id);
    let versions = served.run(&["show", &id, "--versions", "--json"]).await;
    let versions: VersionList = json(&versions);
    assert_eq!(versions.versions.len(), 1);
    assert_printed(
        &served.run(&["show", &id, "--versions"]).await,
        &versions.versions[0].digest,
    );
    // The card contains an endpoint on another domain.
    assert_printed(
        &served.run(&["show", &id, "--findings"]).await,
        "endpoint.other-domain",
    );
    let written = served.command(&["show", &id, "--card"]).output().await;
    let written = written.unwrap();
    assert!(written.status.success());
    assert_eq!(written.stdout, card("Echo", "repeat").into_bytes());
    let convert = ["show", &id, "--card", "--as", "1.0"];
    let converted = served.command(&convert).output().await.unwrap();
    let losses = String::from_utf8_lossy(&converted.stderr);
    assert!(losses.contains("convert."), "{losses}");
    let converted = a2a_card::parse(&converted.stdout).unwrap();
    assert_eq!(converted.family, a2a_card::Family::V1_0);
    assert_eq!(converted.card.name, "Echo");
    assert_ended(
        &served.run(&["show", &id, "--card", "--as", "0.9"]).await,
        2,
        "0.9",
    );

    let suspend = ["agent", "suspend", &id, "--reason", "complaints"];
    assert_printed(
        &served.run(&suspend).await,
        "is suspended (on hold: operator)",
    );
    let gone = Program::run(served.anonymous(&["search", "repeat"])).await;
    assert_ended(&gone, 1, "no agent matches");
    let hidden = Program::run(served.anonymous(&["show", &id])).await;
    assert_ended(&hidden, 1, &id);
    assert_printed(&served.run(&["show", &id]).await, "on hold: operator");
    let resume = ["agent", "resume", &id, "--reason", "settled"];
    assert_printed(&served.run(&resume).await, "is approved");
    served.found("q=repeat").await;
    let deprecate = ["agent", "deprecate", &id, "--message", "use the new one"];
    let sunset = [&deprecate[..], &["--date", "2099-01-31"]].concat();
    assert_printed(&served.run(&sunset).await, "is deprecated: use the new one");
    served.found("q=repeat&lifecycle=deprecated").await;
    let shown = served.run(&["show", &id]).await;
    // Times are for people; `--json` has them in RFC 3339.
    let is_exact = |line: &String| line.contains('T') && line.ends_with('Z');
    assert!(!shown.stdout.iter().any(is_exact), "{shown:#?}");
    let seen = shown
        .stdout
        .iter()
        .find(|line| line.starts_with("last seen"));
    assert!(
        seen.is_some_and(|line| line.ends_with(" UTC")),
        "{shown:#?}"
    );
    assert_printed(
        &shown,
        "use the new one; may stop working after 2099-01-31 00:00:00 UTC",
    );
    let found = Program::run(served.anonymous(&["search", "repeat"])).await;
    assert_printed(&found, "deprecated: use the new one");
    let page = served.request(reqwest::Method::GET, &format!("/agents/{id}/"));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("use the new one"), "{page}");
    let hits = served.request(reqwest::Method::GET, "/?q=repeat");
    let hits = hits.send().await.unwrap().text().await.unwrap();
    assert!(hits.contains("use the new one"), "{hits}");
    let back = ["agent", "undeprecate", &id, "--reason", "a mistake"];
    assert_printed(&served.run(&back).await, "is approved");
    assert_printed(&served.run(&deprecate).await, "is deprecated");

    // Without a terminal no confirmation is possible, so without `--yes` the command does nothing.
    let retire = ["agent", "retire", &id, "--reason", "over"];
    let asked = served.run(&retire).await;
    assert_ended(&asked, 2, "--yes");
    for named in ["Echo", &id, &origin.address().to_string()] {
        assert!(asked.stderr[0].contains(named), "{named}: {asked:#?}");
    }
    assert_printed(&served.run(&["show", &id]).await, "deprecated");
    let retired = served.run(&[&retire[..], &["--yes"]].concat()).await;
    assert_printed(&retired, "is retired");
    assert_ended(&retired, 0, "retiring Echo of");
    assert_ended(&served.run(&back).await, 2, "retired");
    let gone = Program::run(served.anonymous(&["search", "repeat"])).await;
    assert_ended(&gone, 1, "no agent matches");
    assert_ended(&served.run(&resume).await, 2, "retired");
}

/// A change is shown to the approver before the decision, and to no other caller.
#[tokio::test]
async fn a_change_is_shown_before_it_is_decided_on() {
    let served = Setup::new().start().await;
    let (origin, review) = waiting(&served, "Echo", "repeat").await;
    let decide = ["review", "approve", &review, "--reason", "known people"];
    assert_printed(&served.run(&decide).await, "is approved");
    let id = served.found("q=repeat").await.summary.id.to_string();
    origin.answer("/a.json", OriginReply::json(card("Echo", "shout")));
    let domain = origin.address().to_string();
    assert_printed(&served.run(&["domain", "recrawl", &domain]).await, "");
    let review = served.open_review(|_| true).await.id.to_string();
    assert_printed(&served.run(&["review", "show", &review]).await, "high");

    let said = served.run(&["show", &id, "--diff"]).await;
    assert_printed(&said, "/description");
    assert_ended(&said, 0, "is of class high");
    let diff: Diff = json(&served.run(&["show", &id, "--diff", "--json"]).await);
    assert_eq!(diff.change_class.as_str(), "high");
    assert!(
        diff.changes
            .iter()
            .any(|change| change.pointer == "/description")
    );
    let (from, to) = (diff.from.as_str(), diff.to.as_str());
    let back = ["show", &id, "--diff", "--from", to, "--to", from, "--json"];
    let back: Diff = json(&served.run(&back).await);
    assert_eq!((back.from.as_str(), back.to.as_str()), (to, from));
    let hidden = Program::run(served.anonymous(&["show", &id, "--diff", "--to", to])).await;
    assert_ended(&hidden, 1, "");
    let nothing = Program::run(served.anonymous(&["show", &id, "--diff"])).await;
    assert_ended(&nothing, 0, "is of class none");
    // Rejecting the change leaves what was approved, and says so.
    let reject = ["review", "reject", &review, "--reason", "not so"];
    let rejected = served.run(&reject).await;
    let said = format!(
        "the changed card of Echo ({id}) is rejected; the card approved before stays listed ({from})"
    );
    assert_printed(&rejected, &said);
    served.found("q=repeat").await;
}

#[tokio::test]
async fn a_rejected_card_is_never_shown() {
    let served = Setup::new().start().await;
    let (_origin, review) = waiting(&served, "Spam", "shout").await;
    let reject = ["review", "reject", &review, "--reason", "spam"];
    let rejected = served.run(&reject).await;
    assert_printed(&rejected, "is rejected; no card of the agent is served");
    let gone = Program::run(served.anonymous(&["search", "shout"])).await;
    assert_ended(&gone, 1, "no agent matches");
    let again = served.run(&reject).await;
    assert_eq!(again.status.code(), Some(2), "{again:#?}");
    let rejected = served.run(&["review", "list", "--state", "rejected"]).await;
    assert_printed(&rejected, "Spam");
    assert_ended(
        &served.run(&["review", "list", "--state", "lost"]).await,
        2,
        "--state",
    );
}

#[tokio::test]
async fn refused_names_get_one_line_and_the_rest_is_registered() {
    // This server may not fetch from loopback addresses.
    let strict = Setup::bare().start().await;
    for target in [
        "http://127.0.0.1:9/a.json",
        "https://10.0.0.1/a.json",
        "localhost",
    ] {
        let refused = strict.run(&["register", target]).await;
        assert_ended(&refused, 1, target);
        assert_eq!(refused.stderr.len(), 1, "{refused:#?}");
        let raw = strict.run(&["register", "--json", target]).await;
        assert_eq!(raw.status.code(), Some(1), "{raw:#?}");
        let problem: serde_json::Value = json(&raw);
        assert_eq!(problem["type"], "/problems/target-refused");
    }

    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("First", "one")));
    origin.answer("/b.json", OriginReply::json(card("Second", "two")));
    let names = format!(
        "# ours\n{}\n\nhttp://user@127.0.0.1/a.json\n  {}\n",
        origin.url("/a.json"),
        origin.url("/b.json")
    );
    let file = served.setup.scratch().join("names");
    std::fs::write(&file, &names).unwrap();
    let file = file.to_str().unwrap();
    let mixed = served.run(&["register", "-f", file]).await;
    assert_ended(&mixed, 1, "user@127.0.0.1");
    // Both URLs are on one domain, and each agent is printed once.
    for found in ["found First", "found Second"] {
        let printed = text(&mixed.stdout).matches(found).count();
        assert_eq!(printed, 1, "{mixed:#?}");
    }
    let piped = served.command(&["register", "--json", "-f", "-"]);
    let piped = Program::run_with_input(piped, names.as_bytes()).await;
    let domain = origin.address().to_string();
    let lines = piped.stdout.iter();
    let registered = lines.filter_map(|line| serde_json::from_str::<DomainView>(line).ok());
    assert_eq!(registered.filter(|view| view.domain == domain).count(), 2);
    assert_ended(
        &served.run(&["register", "-f", "/no/file"]).await,
        2,
        "/no/file",
    );

    let missing = served.run(&["register", &origin.url("/c.json")]).await;
    assert_eq!(missing.status.code(), Some(1), "{missing:#?}");
    assert!(text(&missing.stdout).contains("no card yet (not_found)"));

    // A URL without a card sets the exit code, even if other URLs bring cards.
    let both = ["register", &origin.url("/a.json"), &origin.url("/c.json")];
    let both = served.run(&both).await;
    assert_eq!(both.status.code(), Some(1), "{both:#?}");
    assert!(text(&both.stdout).contains("found First"), "{both:#?}");
}

#[tokio::test]
async fn a_domain_is_shown_vouched_for_visited_and_removed() {
    let served = Setup::new().start().await;
    let (origin, _) = waiting(&served, "Echo", "repeat").await;
    let domain = origin.address().to_string();
    assert_printed(&served.run(&["domain", "list"]).await, &domain);
    let show = ["domain", "show", &domain];
    assert_printed(&served.run(&show).await, &origin.url("/a.json"));
    assert_ended(&Program::run(served.anonymous(&show)).await, 1, "");
    let vouch = ["domain", "vouch", &domain, "--reason", "our own machine"];
    assert_printed(
        &served.run(&vouch).await,
        &format!("{domain} is now verified"),
    );
    assert_printed(&served.run(&show).await, "operator since ");
    served.token("acme", "publisher").await;
    let owner = ["domain", "vouch", &domain, "--owner", "acme"];
    let owner = [&owner[..], &["--reason", "ticket 7"]].concat();
    assert_printed(&served.run(&owner).await, "acme may act as owner of");
    assert_printed(
        &served.run(&show).await,
        "acme (vouched for by an admin until ",
    );
    let end = ["domain", "vouch", &domain, "--end-owner"];
    assert_printed(&served.run(&end).await, "The owner vouch of");
    assert_ended(&served.run(&end).await, 1, "has no owner vouch");
    let beyond = [&owner[..], &["--expires", "30", "--json"]].concat();
    assert_printed(&served.run(&beyond).await, "\"owner_vouch\"");
    let recrawl = ["domain", "recrawl", "--full", &domain];
    assert_printed(&served.run(&recrawl).await, &domain);
    origin.arrived("/a.json", 2).await;
    let remove = ["domain", "rm", &domain];
    assert_ended(&served.run(&remove).await, 2, "--yes");
    assert_printed(&served.run(&show).await, &domain);
    let removed = served.run(&[&remove[..], &["--yes"]].concat()).await;
    assert_printed(&removed, "is removed");
    assert_ended(&served.run(&show).await, 1, "");
    let none = served.run(&["domain", "list"]).await;
    assert_ended(&none, 1, "no domain is registered");
}

/// Three sources, one of which has a card: the reasons for the other two fit on a screen, and `--attempts` shows every
/// request.
#[tokio::test]
async fn a_domain_fits_one_screen_and_attempts_are_shown_on_request() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    let reply = OriginReply::json(card("Echo", "repeat")).etag("\"1\"");
    let reply = reply.header("vary", "Accept-Language");
    let reply = reply.header("cache-control", "max-age=600");
    origin.answer("/a.json", reply);
    let domain = origin.address().to_string();
    assert_printed(&served.run(&["register", &origin.url("/a.json")]).await, "");
    let json = served.run(&["domain", "show", &domain, "--json"]).await;
    let view: DomainView = self::json(&json);
    let url = origin.url("/a.json");
    let source = view.sources.iter().find(|source| source.url == url);
    let source = source.unwrap();
    let known = source.validators.unwrap();
    assert!(known.etag && !known.last_modified);
    let kept = (source.vary.as_deref(), source.max_age);
    assert_eq!(kept, (Some("accept-language"), Some(600)));
    let last = source.last_attempt.as_ref().unwrap();
    assert_eq!(last.cache.as_deref(), Some("whole"));

    for path in ["/b.json", "/c.json"] {
        let missing = served.run(&["register", &origin.url(path)]).await;
        assert_eq!(missing.status.code(), Some(1), "{missing:#?}");
    }
    let listed = served.run(&["domain", "list"]).await;
    assert_printed(&listed, "1 fresh, 2 stale");
    let shown = served.run(&["domain", "show", &domain]).await;
    for said in [
        "generation:",
        "next check:",
        "sends ETag",
        ": not_found 404, ",
    ] {
        assert_printed(&shown, said);
    }
    assert!(shown.stdout.len() <= 40, "{shown:#?}");
    let attempts = |line: &&String| line.starts_with("  ");
    let count = shown.stdout.iter().filter(attempts).count();
    assert_eq!(count, 0, "{shown:#?}");

    let all = served.run(&["domain", "show", &domain, "--attempts"]).await;
    assert_printed(&all, " not_found 404 from 127.0.0.1");
    assert!(all.stdout.iter().filter(attempts).count() >= 3, "{all:#?}");
}

#[tokio::test]
async fn a_token_works_until_it_is_revoked() {
    let served = Setup::new().start().await;
    let create = [
        "token",
        "create",
        "laptop",
        "--account",
        "ann",
        "--role",
        "curator",
    ];
    let made = served.run(&create).await;
    assert_eq!((made.status.code(), made.stdout.len()), (Some(0), 1));
    let secret = made.stdout[0].clone();
    assert!(!text(&made.stderr).contains(&secret));

    let with_it = |arguments: &[&str]| {
        let mut command = served.anonymous(arguments);
        command.args(["--token", &secret]);
        Program::run(command)
    };
    assert_ended(&with_it(&["review", "list"]).await, 1, "no review is open");
    assert_printed(&with_it(&["token", "list"]).await, "laptop");
    assert_ended(&with_it(&["account", "list"]).await, 2, "may not");
    let listed = served.run(&["token", "list"]).await;
    assert_printed(&listed, "laptop");
    assert!(!text(&listed.stdout).contains(&secret));
    let line = listed.stdout.iter().find(|line| line.contains("laptop"));
    let id = line.unwrap().split_whitespace().next().unwrap().to_owned();
    assert_printed(&served.run(&["token", "revoke", &id]).await, "is revoked");
    assert_ended(&with_it(&["review", "list"]).await, 2, "token");
    let asked = http().get(format!("{}/v1/reviews", served.url));
    let asked = asked.bearer_auth(&secret).send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_missing_token_is_reported() {
    let served = Setup::new().start().await;
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    for arguments in [
        &["register", "agents.example.com"][..],
        &["review", "list"],
        &["token", "list"],
        &["domain", "list"],
        &["domain", "vouch", "agents.example.com", "--reason", "x"],
        &["agent", "suspend", id, "--reason", "x"],
    ] {
        let refused = Program::run(served.anonymous(arguments)).await;
        assert_ended(
            &refused,
            2,
            "Give a token with --token or in A2A_REGISTRY_TOKEN.",
        );
        // Who types a command sends no headers.
        let told = text(&refused.stderr);
        assert!(!told.contains("Authorization"), "{told}");
    }
}
