//! Collections on the command line and on their pages.

use serde_json::{Value, json};

use super::client::assert_printed;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{assert_exit, join_lines};
use crate::support::setup::RegistrySetup;

#[tokio::test]
async fn a_collection_is_set_searched_and_deleted() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let id = registry.publish(&origin.url("/a.json")).await;
    let none = registry.run_admin_command(&["collection", "list"]).await;
    assert_exit(&none, 1, "no collection");
    let without = registry
        .run_admin_command(&["collection", "set", "echoes"])
        .await;
    assert_exit(&without, 2, "needs --filter");
    let filter = format!("domain:{}", origin.address());
    let set = ["collection", "set", "echoes", "--filter", &filter];
    assert_printed(
        &registry.run_admin_command(&set).await,
        "shown to     everybody",
    );
    let found = registry
        .run_admin_command(&["search", "--collection", "echoes"])
        .await;
    assert_printed(&found, "Echo");
    let page = registry.get("/collections/echoes").await.text();
    assert!(page.contains("1 agent</a>"), "{page}");
    assert!(
        !page.contains("<form class=\"card form\""),
        "signed out: {page}"
    );
    let page = registry.get(&format!("/agents/{id}/")).await.text();
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
        &registry.run_admin_command(&narrow).await,
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
    let described = registry.run_admin_command(&described).await;
    let described: Value = serde_json::from_str(&join_lines(&described.stdout)).unwrap();
    assert_eq!(described["audience"], json!([]));
    assert_eq!(described["filter"], json!(filter));
    assert_eq!(described["owners"], json!(["admin"]));
    assert_eq!(registry.get("/collections/echoes").await.status, 404);
    let page = registry.get(&format!("/agents/{id}/")).await.text();
    assert!(!page.contains("echoes"), "{page}");
    let unknown = registry
        .run_admin_command(&["search", "--collection", "nosuch"])
        .await;
    assert_exit(
        &unknown,
        2,
        "There is no collection nosuch that you may see",
    );
    let words = ["collection", "set", "echoes", "--filter", "just words"];
    let words = registry.run_admin_command(&words).await;
    assert_exit(&words, 2, "no words");
    let list = registry.run_admin_command(&["collection", "list"]).await;
    assert!(
        join_lines(&list.stdout).contains("owners and curators"),
        "{list:?}"
    );
    assert_printed(
        &registry
            .run_admin_command(&["collection", "rm", "echoes"])
            .await,
        "is deleted",
    );
    let gone = registry
        .run_admin_command(&["collection", "show", "echoes"])
        .await;
    assert_exit(&gone, 1, "does not exist");
}

#[tokio::test]
async fn a_collection_that_somebody_has_changed_is_not_overwritten() {
    let registry = RegistrySetup::new().start().await;
    let path = "/v1/collections/tax";
    let put = async |tag: Option<&str>, filter: &str| {
        let request = registry.admin_request(reqwest::Method::PUT, path);
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
    let seen = registry.get_as_admin(path).await;
    assert_eq!(seen.headers["etag"], tag.as_str());
    assert_eq!(put(Some(&tag), "tag:duty").await.status(), 200);
    assert_eq!(put(Some(&tag), "tag:late").await.status(), 412);
    let delete = registry.admin_request(reqwest::Method::DELETE, path);
    let delete = delete.header("if-match", &tag).send().await.unwrap();
    assert_eq!(delete.status(), 412);
    let now: Value = registry.read_as_admin(path).await;
    assert_eq!(now["filter"], "tag:duty");
}
