//! Personal data of an account: its feed, whose address is a secret, and its saved searches.

use a2a_registry_api::limits::MAX_SAVED_SEARCHES;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use super::client::assert_printed;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// A text that is no part of a feed's markup, however it is written.
const HOSTILE: &str = "</content><script>alert(1)</script>&amp;]]>\u{202e}\u{fffe}";

/// The path of a feed's address.
fn path_of(registry: &ServingRegistry, address: &str) -> String {
    let path = address.find("/feeds/").map(|at| address[at..].to_owned());
    path.unwrap_or_else(|| panic!("{address} of {}", registry.url))
}

/// Has somebody else's parser read a feed; returns the titles of its entries.
async fn titles(events: &str) -> Vec<String> {
    let script = "import sys, xml.etree.ElementTree as t\n\
                  n = '{http://www.w3.org/2005/Atom}'\n\
                  f = t.fromstring(sys.argv[1].encode())\n\
                  assert f.tag == n + 'feed' and f.find(n + 'id').text and f.find(n + 'updated').text\n\
                  ids = [e.find(n + 'id').text for e in f.findall(n + 'entry')]\n\
                  assert len(ids) == len(set(ids))\n\
                  [print(e.find(n + 'title').text) for e in f.findall(n + 'entry')]\n";
    let mut python = Command::new("python3");
    python.args(["-c", script, events]);
    let read = Program::run(python).await;
    assert_eq!(read.status.code(), Some(0), "{read:?}\n{events}");
    read.stdout
}

#[tokio::test]
async fn a_feed_tells_no_more_than_the_token_that_made_it_may_see() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.register(&origin.url("/a.json")).await;
    registry
        .wait_for_open_review(|review| review.name == "Echo")
        .await;
    let made_with = async |scopes: Value| {
        let body = json!({"account": "cur", "role": "curator", "name": "feed", "scopes": scopes});
        let made = registry
            .admin_request(Method::POST, "/v1/tokens")
            .json(&body);
        let made: Value = made.send().await.unwrap().json().await.unwrap();
        let secret = made["secret"].as_str().unwrap().to_owned();
        let request = registry.request(Method::POST, "/v1/me/feed");
        let made = request.bearer_auth(&secret).send().await.unwrap();
        assert_eq!(made.status(), 201);
        let made: Value = made.json().await.unwrap();
        path_of(&registry, made["url"].as_str().unwrap())
    };
    let narrow = made_with(json!(["register"])).await;
    assert!(titles(&registry.get(&narrow).await.text()).await.is_empty());
    let sees = made_with(json!(["read"])).await;
    assert!(titles(&registry.get(&sees).await.text()).await.is_empty());
    let decides = made_with(json!(["curate"])).await;
    assert_eq!(titles(&registry.get(&decides).await.text()).await.len(), 1);
    assert_eq!(registry.get(&narrow).await.status, 404, "one at a time");
}

#[tokio::test]
async fn a_feed_tells_its_account_and_is_opened_by_its_secret_alone() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let publisher = registry.create_token("pub", "publisher").await;
    let body = json!({"card_url": origin.url("/a.json")});
    let register = registry.request(Method::POST, "/v1/domains");
    let register = register.bearer_auth(&publisher).json(&body).send().await;
    assert_eq!(register.unwrap().status(), 202);
    let review = registry
        .wait_for_open_review(|review| review.name == "Echo")
        .await;

    let made = registry.run_admin_command(&["waiting", "--new-feed"]).await;
    let curators = path_of(&registry, &join_lines(&made.stdout));
    let request = registry.request(Method::POST, "/v1/me/feed");
    let made = request.bearer_auth(&publisher).send().await.unwrap();
    assert_eq!(made.status(), 201);
    assert_eq!(made.headers()["cache-control"], "no-store");
    let made: Value = made.json().await.unwrap();
    let own = path_of(&registry, made["url"].as_str().unwrap());

    let events = registry.get(&curators).await;
    assert_eq!(
        events.headers["content-type"],
        "application/atom+xml; charset=utf-8"
    );
    assert_eq!(events.headers["cache-control"], "private, no-cache");
    let waiting = titles(&events.text()).await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert!(
        waiting[0].starts_with("Review to decide: Echo at"),
        "{waiting:?}"
    );
    assert!(titles(&registry.get(&own).await.text()).await.is_empty());

    let id = review.id.to_string();
    registry
        .run_admin_command(&["review", "comment", &id, HOSTILE])
        .await;
    let reject = [
        "review",
        "reject",
        &id,
        "--digest",
        &review.digest,
        "--reason",
        HOSTILE,
    ];
    assert_printed(&registry.run_admin_command(&reject).await, "rejected");
    let events = registry.get(&own).await.text();
    let told = titles(&events).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().any(|one| one.starts_with("Rejected:")),
        "{told:?}"
    );
    assert!(
        !events.contains("<script>") && !events.contains('\u{202e}'),
        "{events}"
    );
    assert!(
        titles(&registry.get(&curators).await.text())
            .await
            .is_empty(),
        "decided"
    );

    // The secret opens the feed and nothing else, and only the newest one does.
    let secret = own.trim_start_matches("/feeds/").to_owned();
    let as_token = registry.request(Method::GET, "/v1/me").bearer_auth(&secret);
    assert_eq!(as_token.send().await.unwrap().status(), 401);
    let request = registry.request(Method::POST, "/v1/me/feed");
    let newer: Value = request
        .bearer_auth(&publisher)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let newer = path_of(&registry, newer["url"].as_str().unwrap());
    for gone in [own.as_str(), "/feeds/", "/feeds/x", &format!("{newer}x")] {
        assert_eq!(registry.get(gone).await.status, 404, "{gone}");
    }
    assert_eq!(registry.get(&newer).await.status, 200);
    let disable = registry
        .run_admin_command(&["account", "disable", "pub"])
        .await;
    assert_printed(&disable, "pub");
    assert_eq!(registry.get(&newer).await.status, 404, "a disabled account");
    let enable = registry
        .run_admin_command(&["account", "enable", "pub"])
        .await;
    assert_printed(&enable, "pub");
    assert_eq!(
        registry.get(&newer).await.status,
        404,
        "it has ended for good"
    );
    let ended = registry.run_admin_command(&["waiting", "--end-feed"]).await;
    assert_printed(&ended, "the feed has ended");
    assert_eq!(registry.get(&curators).await.status, 404);
    let again = registry.run_admin_command(&["waiting", "--end-feed"]).await;
    assert_exit(&again, 1, "You do not have a feed");
}

#[tokio::test]
async fn a_search_is_saved_and_made_again() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.publish(&origin.url("/a.json")).await;
    let domain = origin.address().to_string();
    let save = [
        "search", "--save", "echoes", "--domain", &domain, "--limit", "5",
    ];
    assert_printed(&registry.run_admin_command(&save).await, "Echo");
    let saved = registry
        .run_admin_command(&["search", "--saved", "echoes"])
        .await;
    assert_printed(&saved, "Echo");
    let as_text = registry
        .run_admin_command(&["search", "--saved", "echoes", "--no-understand"])
        .await;
    assert_printed(&as_text, "Echo");
    let more = registry
        .run_admin_command(&["search", "--saved", "echoes", "--tag", "x"])
        .await;
    assert_exit(&more, 2, "omit words and filters");
    let none = registry
        .run_admin_command(&["search", "--saved", "nosuch"])
        .await;
    assert_exit(&none, 1, "no saved search with the name nosuch");
    let list: Value = registry.read_as_admin("/v1/searches").await;
    assert_eq!(
        list["searches"][0]["query"],
        format!("domain={}", domain.replace(':', "%3A"))
    );

    let reader = registry.create_token("ann", "reader").await;
    let ask = |method, path: &str| registry.request(method, path).bearer_auth(&reader);
    let others = ask(Method::GET, "/v1/searches").send().await.unwrap();
    let others: Value = others.json().await.unwrap();
    assert_eq!(
        others["searches"],
        json!([]),
        "another account's are its own"
    );
    let id = list["searches"][0]["id"].as_str().unwrap();
    let path = format!("/v1/searches/{id}");
    let stranger = ask(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(stranger.status(), 404);
    let post = async |name: &str, query: &str| {
        let body = json!({"name": name, "query": query});
        let answer = ask(Method::POST, "/v1/searches").json(&body);
        answer.send().await.unwrap().status().as_u16()
    };
    for (name, query) in [
        ("a", "nosuch=1"),
        ("a", "collection=nosuch"),
        ("a", "trust=L9"),
        ("a", "sort=up"),
        ("a<b", "q=x"),
        ("", "q=x"),
        ("a", &format!("q={}", "x".repeat(5000))),
    ] {
        assert_eq!(post(name, query).await, 400, "{name}: {query}");
    }
    for number in 0..MAX_SAVED_SEARCHES {
        assert_eq!(post(&format!("s{number}"), "q=x&page_size=3").await, 201);
    }
    assert_eq!(post("one more", "q=x").await, 403);
    assert_eq!(post("s1", "q=y").await, 201, "one that exists is replaced");
    let all = ask(Method::GET, "/v1/searches").send().await.unwrap();
    let all: Value = all.json().await.unwrap();
    assert_eq!(
        all["searches"].as_array().unwrap().len(),
        MAX_SAVED_SEARCHES
    );
    let first = all["searches"].as_array().unwrap();
    let s1 = first.iter().find(|one| one["name"] == "s1").unwrap();
    assert_eq!(s1["query"], "q=y");
    let delete = registry
        .admin_request(Method::DELETE, &path)
        .send()
        .await
        .unwrap();
    assert_eq!(delete.status(), 204);
}
