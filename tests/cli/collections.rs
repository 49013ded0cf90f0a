//! Collections on the command line and on their pages.

use serde_json::{Value, json};

use super::client::assert_printed;
use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{assert_ended, text};
use crate::support::setup::Setup;

#[tokio::test]
async fn a_collection_is_set_searched_and_deleted() {
    let served = Setup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    let id = served.publish(&origin.url("/a.json")).await;
    let none = served.run(&["collection", "list"]).await;
    assert_ended(&none, 1, "no collection");
    let without = served.run(&["collection", "set", "echoes"]).await;
    assert_ended(&without, 2, "needs --filter");
    let filter = format!("domain:{}", origin.address());
    let set = ["collection", "set", "echoes", "--filter", &filter];
    assert_printed(&served.run(&set).await, "shown to     everybody");
    let found = served.run(&["search", "--collection", "echoes"]).await;
    assert_printed(&found, "Echo");
    let page = served.get("/collections/echoes").await.text();
    assert!(page.contains("1 agent</a>"), "{page}");
    assert!(
        !page.contains("<form class=\"card form\""),
        "signed out: {page}"
    );
    let page = served.get(&format!("/agents/{id}/")).await.text();
    assert!(page.contains("href=\"/collections/echoes\""), "{page}");
    let narrow = [
        "collection",
        "set",
        "echoes",
        "--nobody",
        "--owner",
        "admin",
    ];
    assert_printed(
        &served.run(&narrow).await,
        "shown to     owners and curators",
    );
    // What is not given stays.
    let described = [
        "collection",
        "set",
        "echoes",
        "--description",
        "All that repeat",
        "--json",
    ];
    let described = served.run(&described).await;
    let described: Value = serde_json::from_str(&text(&described.stdout)).unwrap();
    assert_eq!(described["audience"], json!([]));
    assert_eq!(described["filter"], json!(filter));
    assert_eq!(described["owners"], json!(["admin"]));
    assert_eq!(served.get("/collections/echoes").await.status, 404);
    let page = served.get(&format!("/agents/{id}/")).await.text();
    assert!(!page.contains("echoes"), "{page}");
    let unknown = served.run(&["search", "--collection", "nosuch"]).await;
    assert_ended(
        &unknown,
        2,
        "There is no collection nosuch that you may see",
    );
    let words = ["collection", "set", "echoes", "--filter", "just words"];
    let words = served.run(&words).await;
    assert_ended(&words, 2, "no words");
    let list = served.run(&["collection", "list"]).await;
    assert!(
        text(&list.stdout).contains("owners and curators"),
        "{list:?}"
    );
    assert_printed(
        &served.run(&["collection", "rm", "echoes"]).await,
        "is deleted",
    );
    let gone = served.run(&["collection", "show", "echoes"]).await;
    assert_ended(&gone, 1, "does not exist");
}

#[tokio::test]
async fn a_collection_that_somebody_has_changed_is_not_overwritten() {
    let served = Setup::new().start().await;
    let path = "/v1/collections/tax";
    let put = async |tag: Option<&str>, filter: &str| {
        let request = served.as_admin(reqwest::Method::PUT, path);
        let request = match tag {
            Some(tag) => request.header("if-match", tag),
            None => request,
        };
        let content = json!({ "filter": filter });
        request.json(&content).send().await.unwrap()
    };
    let nothing = put(Some("*"), "tag:tax").await;
    assert_eq!(nothing.status(), 412, "there is none to change");
    let made = put(None, "tag:tax").await;
    assert_eq!(made.status(), 200);
    let tag = made.headers()["etag"].to_str().unwrap().to_owned();
    let seen = served.admin(path).await;
    assert_eq!(seen.headers["etag"], tag.as_str());
    assert_eq!(put(Some(&tag), "tag:duty").await.status(), 200);
    assert_eq!(put(Some(&tag), "tag:late").await.status(), 412);
    let delete = served.as_admin(reqwest::Method::DELETE, path);
    let delete = delete.header("if-match", &tag).send().await.unwrap();
    assert_eq!(delete.status(), 412);
    let now: Value = served.read(path).await;
    assert_eq!(now["filter"], "tag:duty");
}
