//! Client commands, in the order in which a curator uses them.

use a2a_registry_api::{AgentList, Diff, DomainView, ReviewList, VersionList};
use reqwest::StatusCode;
use serde::de::DeserializeOwned;

use crate::support::cards::card_json;
use crate::support::http_client;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{FinishedProgram, Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

fn json<T: DeserializeOwned>(finished: &FinishedProgram) -> T {
    serde_json::from_str(&join_lines(&finished.stdout))
        .unwrap_or_else(|error| panic!("{error}: {finished:#?}"))
}

/// Checks that a command succeeded and printed these words.
pub(super) fn assert_printed(finished: &FinishedProgram, said: &str) {
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert!(
        join_lines(&finished.stdout).contains(said),
        "{said}: {finished:#?}"
    );
}

/// An origin with a card at `/a.json`, registered and waiting for a decision; and the id of its review.
async fn register_pending(registry: &ServingRegistry, name: &str, skill: &str) -> (Origin, String) {
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json(name, skill)));
    let url = origin.url("/a.json");
    let registered = registry.run_admin_command(&["register", &url]).await;
    assert_printed(&registered, &format!("found {name}"));
    assert_printed(&registered, "pending; approve it with `");
    let said = join_lines(&registered.stdout);
    let (_, review) = said.split_once("review approve ").unwrap();
    let (review, _) = review.split_once(' ').unwrap();
    (origin, review.to_owned())
}

#[tokio::test]
async fn a_card_goes_from_registered_to_retired() {
    let registry = RegistrySetup::new().start().await;
    let (origin, review) = register_pending(&registry, "Echo", "repeat").await;

    let before = Program::run(registry.anonymous_command(&["search", "repeat"])).await;
    assert_exit(&before, 1, "no agent matches");
    let list: ReviewList = json(
        &registry
            .run_admin_command(&["review", "list", "--json"])
            .await,
    );
    assert_eq!(list.reviews.len(), 1);
    assert_eq!(list.reviews[0].id.to_string(), review);
    assert_printed(
        &registry.run_admin_command(&["review", "list"]).await,
        &review,
    );
    assert_printed(
        &registry
            .run_admin_command(&["review", "show", &review])
            .await,
        "first card",
    );

    let stale = format!("sha256:{}", "0".repeat(64));
    let decide = ["review", "approve", &review, "--reason", "known people"];
    let wrong = [&decide[..], &["--digest", &stale]].concat();
    assert_exit(&registry.run_admin_command(&wrong).await, 2, "");
    assert_printed(&registry.run_admin_command(&decide).await, "is approved");
    let again = registry.run_admin_command(&["review", "list"]).await;
    assert_exit(&again, 1, "no review is open");

    let hit = registry.wait_for_hit("q=repeat").await;
    let id = hit.summary.id.to_string();
    let found = Program::run(registry.anonymous_command(&["search", "repeat"])).await;
    assert_printed(&found, &id);
    let listed = registry
        .run_admin_command(&["search", "--json", "--skill", "repeat"])
        .await;
    let listed: AgentList = json(&listed);
    assert_eq!(
        (listed.total, listed.agents[0].summary.id),
        (1, hit.summary.id)
    );
    let named = ["search", "--json", "--fields", "name,links", "repeat"];
    let named: serde_json::Value = json(&registry.run_admin_command(&named).await);
    let members = named["agents"][0].as_object().unwrap().keys();
    let members: std::collections::BTreeSet<&str> = members.map(String::as_str).collect();
    assert_eq!(
        members.into_iter().collect::<Vec<_>>(),
        ["id", "links", "name"]
    );
    let unread = registry
        .run_admin_command(&["search", "--fields", "name"])
        .await;
    assert_exit(&unread, 2, "add --json");

    assert_printed(&registry.run_admin_command(&["show", &id]).await, "rule");
    assert_printed(
        &registry
            .run_admin_command(&["show", &origin.url("/a.json")])
            .await,
        &id,
    );
    let versions = registry
        .run_admin_command(&["show", &id, "--versions", "--json"])
        .await;
    let versions: VersionList = json(&versions);
    assert_eq!(versions.versions.len(), 1);
    assert_printed(
        &registry
            .run_admin_command(&["show", &id, "--versions"])
            .await,
        &versions.versions[0].digest,
    );
    // The card contains an endpoint on another domain.
    assert_printed(
        &registry
            .run_admin_command(&["show", &id, "--findings"])
            .await,
        "endpoint.other-domain",
    );
    let written = registry
        .admin_command(&["show", &id, "--card"])
        .output()
        .await;
    let written = written.unwrap();
    assert!(written.status.success());
    assert_eq!(written.stdout, card_json("Echo", "repeat").into_bytes());
    let convert = ["show", &id, "--card", "--as", "1.0"];
    let converted = registry.admin_command(&convert).output().await.unwrap();
    let losses = String::from_utf8_lossy(&converted.stderr);
    assert!(losses.contains("convert."), "{losses}");
    let converted = a2a_card::parse_card(&converted.stdout).unwrap();
    assert_eq!(converted.family, a2a_card::CardFamily::V1_0);
    assert_eq!(converted.card.name, "Echo");
    assert_exit(
        &registry
            .run_admin_command(&["show", &id, "--card", "--as", "0.9"])
            .await,
        2,
        "0.9",
    );

    let suspend = ["agent", "suspend", &id, "--reason", "complaints"];
    assert_printed(
        &registry.run_admin_command(&suspend).await,
        "is suspended (on hold: operator)",
    );
    let gone = Program::run(registry.anonymous_command(&["search", "repeat"])).await;
    assert_exit(&gone, 1, "no agent matches");
    let hidden = Program::run(registry.anonymous_command(&["show", &id])).await;
    assert_exit(&hidden, 1, &id);
    assert_printed(
        &registry.run_admin_command(&["show", &id]).await,
        "on hold: operator",
    );
    let resume = ["agent", "resume", &id, "--reason", "settled"];
    assert_printed(&registry.run_admin_command(&resume).await, "is approved");
    registry.wait_for_hit("q=repeat").await;
    let deprecate = ["agent", "deprecate", &id, "--message", "use the new one"];
    let sunset = [&deprecate[..], &["--date", "2099-01-31"]].concat();
    assert_printed(
        &registry.run_admin_command(&sunset).await,
        "is deprecated: use the new one",
    );
    registry.wait_for_hit("q=repeat&lifecycle=deprecated").await;
    let shown = registry.run_admin_command(&["show", &id]).await;
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
    let found = Program::run(registry.anonymous_command(&["search", "repeat"])).await;
    assert_printed(&found, "deprecated: use the new one");
    let page = registry.request(reqwest::Method::GET, &format!("/agents/{id}/"));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("use the new one"), "{page}");
    let hits = registry.request(reqwest::Method::GET, "/?q=repeat");
    let hits = hits.send().await.unwrap().text().await.unwrap();
    assert!(hits.contains("use the new one"), "{hits}");
    let back = ["agent", "undeprecate", &id, "--reason", "a mistake"];
    assert_printed(&registry.run_admin_command(&back).await, "is approved");
    assert_printed(
        &registry.run_admin_command(&deprecate).await,
        "is deprecated",
    );

    // Without a terminal no confirmation is possible, so without `--yes` the command does nothing.
    let retire = ["agent", "retire", &id, "--reason", "over"];
    let asked = registry.run_admin_command(&retire).await;
    assert_exit(&asked, 2, "--yes");
    for named in ["Echo", &id, &origin.address().to_string()] {
        assert!(asked.stderr[0].contains(named), "{named}: {asked:#?}");
    }
    assert_printed(
        &registry.run_admin_command(&["show", &id]).await,
        "deprecated",
    );
    let retired = registry
        .run_admin_command(&[&retire[..], &["--yes"]].concat())
        .await;
    assert_printed(&retired, "is retired");
    assert_exit(&retired, 0, "retiring Echo of");
    assert_exit(&registry.run_admin_command(&back).await, 2, "retired");
    let gone = Program::run(registry.anonymous_command(&["search", "repeat"])).await;
    assert_exit(&gone, 1, "no agent matches");
    assert_exit(&registry.run_admin_command(&resume).await, 2, "retired");
}

/// A change is shown to the approver before the decision, and to no other caller.
#[tokio::test]
async fn a_change_is_shown_before_it_is_decided_on() {
    let registry = RegistrySetup::new().start().await;
    let (origin, review) = register_pending(&registry, "Echo", "repeat").await;
    let decide = ["review", "approve", &review, "--reason", "known people"];
    assert_printed(&registry.run_admin_command(&decide).await, "is approved");
    let id = registry
        .wait_for_hit("q=repeat")
        .await
        .summary
        .id
        .to_string();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "shout")));
    let domain = origin.address().to_string();
    assert_printed(
        &registry
            .run_admin_command(&["domain", "recrawl", &domain])
            .await,
        "",
    );
    let review = registry.wait_for_open_review(|_| true).await.id.to_string();
    assert_printed(
        &registry
            .run_admin_command(&["review", "show", &review])
            .await,
        "high",
    );

    let said = registry.run_admin_command(&["show", &id, "--diff"]).await;
    assert_printed(&said, "/description");
    assert_exit(&said, 0, "is of class high");
    let diff: Diff = json(
        &registry
            .run_admin_command(&["show", &id, "--diff", "--json"])
            .await,
    );
    assert_eq!(diff.change_class.as_str(), "high");
    assert!(
        diff.changes
            .iter()
            .any(|change| change.pointer == "/description")
    );
    let (from, to) = (diff.from.as_str(), diff.to.as_str());
    let back = ["show", &id, "--diff", "--from", to, "--to", from, "--json"];
    let back: Diff = json(&registry.run_admin_command(&back).await);
    assert_eq!((back.from.as_str(), back.to.as_str()), (to, from));
    let hidden =
        Program::run(registry.anonymous_command(&["show", &id, "--diff", "--to", to])).await;
    assert_exit(&hidden, 1, "");
    let nothing = Program::run(registry.anonymous_command(&["show", &id, "--diff"])).await;
    assert_exit(&nothing, 0, "is of class none");
    // Rejecting the change leaves what was approved, and says so.
    let reject = ["review", "reject", &review, "--reason", "not so"];
    let rejected = registry.run_admin_command(&reject).await;
    let said = format!(
        "the changed card of Echo ({id}) is rejected; the card approved before stays listed ({from})"
    );
    assert_printed(&rejected, &said);
    registry.wait_for_hit("q=repeat").await;
}

#[tokio::test]
async fn a_rejected_card_is_never_shown() {
    let registry = RegistrySetup::new().start().await;
    let (_origin, review) = register_pending(&registry, "Spam", "shout").await;
    let reject = ["review", "reject", &review, "--reason", "spam"];
    let rejected = registry.run_admin_command(&reject).await;
    assert_printed(&rejected, "is rejected; no card of the agent is served");
    let gone = Program::run(registry.anonymous_command(&["search", "shout"])).await;
    assert_exit(&gone, 1, "no agent matches");
    let again = registry.run_admin_command(&reject).await;
    assert_eq!(again.status.code(), Some(2), "{again:#?}");
    let rejected = registry
        .run_admin_command(&["review", "list", "--state", "rejected"])
        .await;
    assert_printed(&rejected, "Spam");
    assert_exit(
        &registry
            .run_admin_command(&["review", "list", "--state", "lost"])
            .await,
        2,
        "--state",
    );
}

#[tokio::test]
async fn refused_names_get_one_line_and_the_rest_is_registered() {
    // This server may not fetch from loopback addresses.
    let strict = RegistrySetup::with_default_config().start().await;
    for target in [
        "http://127.0.0.1:9/a.json",
        "https://10.0.0.1/a.json",
        "localhost",
    ] {
        let refused = strict.run_admin_command(&["register", target]).await;
        assert_exit(&refused, 1, target);
        assert_eq!(refused.stderr.len(), 1, "{refused:#?}");
        let raw = strict
            .run_admin_command(&["register", "--json", target])
            .await;
        assert_eq!(raw.status.code(), Some(1), "{raw:#?}");
        let problem: serde_json::Value = json(&raw);
        assert_eq!(problem["type"], "/problems/target-refused");
    }

    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("First", "one")));
    origin.set_reply("/b.json", OriginReply::json(card_json("Second", "two")));
    let names = format!(
        "# ours\n{}\n\nhttp://user@127.0.0.1/a.json\n  {}\n",
        origin.url("/a.json"),
        origin.url("/b.json")
    );
    let file = registry.setup.scratch_folder().join("names");
    std::fs::write(&file, &names).unwrap();
    let file = file.to_str().unwrap();
    let mixed = registry.run_admin_command(&["register", "-f", file]).await;
    assert_exit(&mixed, 1, "user@127.0.0.1");
    // Both URLs are on one domain, and each agent is printed once.
    for found in ["found First", "found Second"] {
        let printed = join_lines(&mixed.stdout).matches(found).count();
        assert_eq!(printed, 1, "{mixed:#?}");
    }
    let piped = registry.admin_command(&["register", "--json", "-f", "-"]);
    let piped = Program::run_with_input(piped, names.as_bytes()).await;
    let domain = origin.address().to_string();
    let lines = piped.stdout.iter();
    let registered = lines.filter_map(|line| serde_json::from_str::<DomainView>(line).ok());
    assert_eq!(registered.filter(|view| view.domain == domain).count(), 2);
    assert_exit(
        &registry
            .run_admin_command(&["register", "-f", "/no/file"])
            .await,
        2,
        "/no/file",
    );

    let missing = registry
        .run_admin_command(&["register", &origin.url("/c.json")])
        .await;
    assert_eq!(missing.status.code(), Some(1), "{missing:#?}");
    assert!(join_lines(&missing.stdout).contains("no card yet (not_found)"));

    // A URL without a card sets the exit code, even if other URLs bring cards.
    let both = ["register", &origin.url("/a.json"), &origin.url("/c.json")];
    let both = registry.run_admin_command(&both).await;
    assert_eq!(both.status.code(), Some(1), "{both:#?}");
    assert!(
        join_lines(&both.stdout).contains("found First"),
        "{both:#?}"
    );
}

#[tokio::test]
async fn a_domain_is_shown_vouched_for_visited_and_removed() {
    let registry = RegistrySetup::new().start().await;
    let (origin, _) = register_pending(&registry, "Echo", "repeat").await;
    let domain = origin.address().to_string();
    assert_printed(
        &registry.run_admin_command(&["domain", "list"]).await,
        &domain,
    );
    let show = ["domain", "show", &domain];
    assert_printed(
        &registry.run_admin_command(&show).await,
        &origin.url("/a.json"),
    );
    assert_exit(
        &Program::run(registry.anonymous_command(&show)).await,
        1,
        "",
    );
    let vouch = ["domain", "vouch", &domain, "--reason", "our own machine"];
    assert_printed(
        &registry.run_admin_command(&vouch).await,
        &format!("{domain} is now verified"),
    );
    assert_printed(&registry.run_admin_command(&show).await, "operator since ");
    registry.create_token("acme", "publisher").await;
    let owner = ["domain", "vouch", &domain, "--owner", "acme"];
    let owner = [&owner[..], &["--reason", "ticket 7"]].concat();
    assert_printed(
        &registry.run_admin_command(&owner).await,
        "acme may act as owner of",
    );
    assert_printed(
        &registry.run_admin_command(&show).await,
        "acme (vouched for by an admin until ",
    );
    let end = ["domain", "vouch", &domain, "--end-owner"];
    assert_printed(
        &registry.run_admin_command(&end).await,
        "The owner vouch of",
    );
    assert_exit(
        &registry.run_admin_command(&end).await,
        1,
        "has no owner vouch",
    );
    let beyond = [&owner[..], &["--expires", "30", "--json"]].concat();
    assert_printed(
        &registry.run_admin_command(&beyond).await,
        "\"owner_vouch\"",
    );
    let recrawl = ["domain", "recrawl", "--full", &domain];
    assert_printed(&registry.run_admin_command(&recrawl).await, &domain);
    origin.wait_for_request("/a.json", 2).await;
    let remove = ["domain", "rm", &domain];
    assert_exit(&registry.run_admin_command(&remove).await, 2, "--yes");
    assert_printed(&registry.run_admin_command(&show).await, &domain);
    let removed = registry
        .run_admin_command(&[&remove[..], &["--yes"]].concat())
        .await;
    assert_printed(&removed, "is removed");
    assert_exit(&registry.run_admin_command(&show).await, 1, "");
    let none = registry.run_admin_command(&["domain", "list"]).await;
    assert_exit(&none, 1, "no registered domain is visible");
}

/// Three sources, one of which has a card: the reasons for the other two fit on a screen, and `--attempts` shows every
/// request.
#[tokio::test]
async fn a_domain_fits_one_screen_and_attempts_are_shown_on_request() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let reply = OriginReply::json(card_json("Echo", "repeat")).with_etag("\"1\"");
    let reply = reply.with_header("vary", "Accept-Language");
    let reply = reply.with_header("cache-control", "max-age=600");
    origin.set_reply("/a.json", reply);
    let domain = origin.address().to_string();
    assert_printed(
        &registry
            .run_admin_command(&["register", &origin.url("/a.json")])
            .await,
        "",
    );
    let json = registry
        .run_admin_command(&["domain", "show", &domain, "--json"])
        .await;
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
        let missing = registry
            .run_admin_command(&["register", &origin.url(path)])
            .await;
        assert_eq!(missing.status.code(), Some(1), "{missing:#?}");
    }
    let listed = registry.run_admin_command(&["domain", "list"]).await;
    assert_printed(&listed, "1 fresh, 2 stale");
    let shown = registry
        .run_admin_command(&["domain", "show", &domain])
        .await;
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

    let all = registry
        .run_admin_command(&["domain", "show", &domain, "--attempts"])
        .await;
    assert_printed(&all, " not_found 404 from 127.0.0.1");
    assert!(all.stdout.iter().filter(attempts).count() >= 3, "{all:#?}");
}

#[tokio::test]
async fn a_token_works_until_it_is_revoked() {
    let registry = RegistrySetup::new().start().await;
    let create = [
        "token",
        "create",
        "laptop",
        "--account",
        "ann",
        "--role",
        "curator",
    ];
    let made = registry.run_admin_command(&create).await;
    assert_eq!((made.status.code(), made.stdout.len()), (Some(0), 1));
    let secret = made.stdout[0].clone();
    assert!(!join_lines(&made.stderr).contains(&secret));

    let with_it = |arguments: &[&str]| {
        let mut command = registry.anonymous_command(arguments);
        command.args(["--token", &secret]);
        Program::run(command)
    };
    assert_exit(&with_it(&["review", "list"]).await, 1, "no review is open");
    assert_printed(&with_it(&["token", "list"]).await, "laptop");
    assert_exit(&with_it(&["account", "list"]).await, 2, "may not");
    let listed = registry.run_admin_command(&["token", "list"]).await;
    assert_printed(&listed, "laptop");
    assert!(!join_lines(&listed.stdout).contains(&secret));
    let line = listed.stdout.iter().find(|line| line.contains("laptop"));
    let id = line.unwrap().split_whitespace().next().unwrap().to_owned();
    assert_printed(
        &registry.run_admin_command(&["token", "revoke", &id]).await,
        "is revoked",
    );
    assert_exit(&with_it(&["review", "list"]).await, 2, "token");
    let asked = http_client().get(format!("{}/v1/reviews", registry.url));
    let asked = asked.bearer_auth(&secret).send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_missing_token_is_reported() {
    let registry = RegistrySetup::new().start().await;
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    for arguments in [
        &["register", "agents.example.com"][..],
        &["review", "list"],
        &["token", "list"],
        &["domain", "list"],
        &["domain", "vouch", "agents.example.com", "--reason", "x"],
        &["agent", "suspend", id, "--reason", "x"],
    ] {
        let refused = Program::run(registry.anonymous_command(arguments)).await;
        assert_exit(
            &refused,
            2,
            "Give a token with --token or in A2A_REGISTRY_TOKEN.",
        );
        // Who types a command sends no headers.
        let told = join_lines(&refused.stderr);
        assert!(!told.contains("Authorization"), "{told}");
    }
}
