//! Similar agents and weak matches, as the command line shows them.

use a2a_registry_api::{AgentList, ReviewDetail, Similar};
use reqwest::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// The card of an agent with this description, at an endpoint of its own.
fn about(name: &str, description: &str) -> String {
    let endpoint = format!("https://{}.agents.dev/a2a", name.to_lowercase());
    let card = card_json(name, "skill").replace("https://echo.agents.dev/a2a", &endpoint);
    let mut card: serde_json::Value = serde_json::from_str(&card).unwrap();
    card["description"] = description.into();
    card.to_string()
}

/// Registers the card, and approves it through the queue; returns the agent's id.
async fn list(
    registry: &ServingRegistry,
    origin: &Origin,
    name: &str,
    description: &str,
) -> String {
    let path = format!("/{name}.json");
    origin.set_reply(&path, OriginReply::json(about(name, description)));
    registry.register(&origin.url(&path)).await;
    let review = registry.wait_for_open_review(|_| true).await.id.to_string();
    let approve = ["review", "approve", &review, "--reason", "a test"];
    assert_exit(&registry.run_admin_command(&approve).await, 0, "");
    let hit = registry.wait_for_hit(&format!("q={name}")).await;
    hit.summary.id.to_string()
}

#[tokio::test]
async fn similar_agents_are_shown_of_an_agent_and_in_its_review() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let trip = list(&registry, &origin, "Trip", "Books flights and trains").await;
    let alone = registry
        .run_admin_command(&["show", &trip, "--similar"])
        .await;
    assert_exit(&alone, 1, "no listed agent is similar to it");
    let similar = format!("/v1/agents/{trip}/similar");
    let before = registry
        .admin_request(Method::GET, &similar)
        .send()
        .await
        .unwrap();
    assert_eq!(before.status(), StatusCode::OK);
    let tag = before.headers()[ETAG].clone();
    let again = registry
        .admin_request(Method::GET, &similar)
        .header(IF_NONE_MATCH, &tag);
    let again = again.send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let cached = again.headers()[CACHE_CONTROL].to_str().unwrap();
    assert!(
        cached.contains("no-cache") || cached.contains("private"),
        "{cached}"
    );

    let wings = list(&registry, &origin, "Wings", "Books cheap flights").await;
    let changed = registry
        .admin_request(Method::GET, &similar)
        .header(IF_NONE_MATCH, &tag);
    let changed = changed.send().await.unwrap();
    assert_eq!(changed.status(), StatusCode::OK, "another agent is similar");
    let changed: Similar = changed.json().await.unwrap();
    assert_eq!(changed.agents.len(), 1);

    let shown = registry
        .run_admin_command(&["show", &trip, "--similar"])
        .await;
    assert_exit(&shown, 0, "compared by words");
    let line = format!("similar: Wings ({wings}) of {}, trust ", origin.address());
    assert!(join_lines(&shown.stdout).contains(&line), "{shown:#?}");
    let json = registry
        .run_admin_command(&["show", &trip, "--similar", "--json"])
        .await;
    let json: Similar = serde_json::from_str(&join_lines(&json.stdout)).unwrap();
    assert_eq!(json, changed);

    // What waits for a decision is compared with what is listed, its own duplicate included.
    let other = Origin::start();
    let copy = OriginReply::json(about("Trip", "Books flights and trains"));
    other.set_reply("/copy.json", copy);
    registry.register(&other.url("/copy.json")).await;
    let review = registry.wait_for_open_review(|_| true).await.id.to_string();
    let parts = [
        line.as_str(),
        "duplicates: 1",
        &format!("duplicate: {trip}"),
    ];
    // What waits is compared as soon as the index has it.
    eventually("the review names similar agents", || async {
        let shown = registry
            .run_admin_command(&["review", "show", &review])
            .await;
        assert_exit(&shown, 0, "");
        let said = join_lines(&shown.stdout);
        parts.iter().all(|part| said.contains(part)).then_some(())
    })
    .await;
    let detail: ReviewDetail = registry
        .read_as_admin(&format!("/v1/reviews/{review}"))
        .await;
    assert_eq!(detail.similar.len(), 1);
    let page = registry.admin_request(Method::GET, &format!("/agents/{trip}/"));
    let page = page.send().await.unwrap().text().await.unwrap();
    let link = format!("<a href=\"/agents/{wings}/\"");
    let section = page.split_once("id=\"similar\"").unwrap().1;
    assert!(section.contains(&link), "{section}");
}

#[tokio::test]
async fn weak_matches_stand_behind_a_line_of_their_own() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    list(
        &registry,
        &origin,
        "Wings",
        "Books a flight to Lisbon for the whole team",
    )
    .await;
    for name in ["Ledger", "Payroll", "Harbour"] {
        let description = format!("{name} for the whole team of an office");
        list(&registry, &origin, name, &description).await;
    }
    let question = "book a flight to Lisbon for the team";
    let shown = Program::run(registry.anonymous_command(&["search", question])).await;
    assert_exit(&shown, 0, "");
    let said = join_lines(&shown.stdout);
    let (good, weak) = said.split_once("Weak matches:\n").unwrap();
    assert!(good.contains("Wings") && !good.contains("Ledger"), "{said}");
    assert!(weak.contains("Ledger") && !weak.contains("Wings"), "{said}");
    let json = Program::run(registry.anonymous_command(&["search", "--json", question])).await;
    let json: AgentList = serde_json::from_str(&join_lines(&json.stdout)).unwrap();
    let weak: Vec<bool> = json.agents.iter().map(|hit| hit.matched.weak).collect();
    assert_eq!(weak, [false, true, true, true]);
    assert_eq!((json.total, json.total_fitting), (4, 1));
    assert_eq!(json.facets_count, "total");
    assert!(join_lines(&shown.stderr).contains("4 of 4; fitting well: 1"));
    // What fits alone, with its facets.
    let arguments = ["search", "--fitting", "--facets", "domain", question];
    let fitting = Program::run(registry.anonymous_command(&arguments)).await;
    assert_exit(&fitting, 0, "1 of 1 that fit well");
    let said = join_lines(&fitting.stdout);
    assert!(said.contains("Wings") && !said.contains("Ledger"), "{said}");
    assert!(
        said.lines()
            .any(|line| line.starts_with("domain:") && line.ends_with(" 1")),
        "{said}"
    );
    // The page has the same numbers, and the weaker results behind a link.
    let page = async |address: &str| {
        let page = registry.admin_request(Method::GET, address);
        page.send().await.unwrap().text().await.unwrap()
    };
    let address = format!("/?q={}", question.replace(' ', "+"));
    let html = page(&address).await;
    assert!(html.contains("<strong>1</strong> agent"), "{html}");
    assert!(html.contains("Wings") && !html.contains("Ledger"), "{html}");
    let link = format!("{address}&#38;fitting=false\">3 weaker results</a>");
    assert!(html.contains(&link), "{html}");
    let html = page(&format!("{address}&fitting=false")).await;
    assert!(html.contains("<strong>4</strong> agents"), "{html}");
    let (good, weak) = html.split_once("<h2>Weaker results</h2>").unwrap();
    assert!(good.contains("Wings") && weak.contains("Ledger"), "{html}");
    assert!(weak.contains("Only the 1 that fits"), "{html}");
    // Where nothing fits, the page is not empty.
    let html = page(&format!("{address}+-Wings")).await;
    assert!(html.contains("<strong>0</strong> agents"), "{html}");
    let (_, weak) = html.split_once("<h2>Weaker results</h2>").unwrap();
    assert!(weak.contains(">Ledger</a>"), "{html}");
    assert!(!weak.contains(">Wings</a>"), "{html}");
}

/// What a query was taken for is told in the answer, on the page and on the command line.
#[tokio::test]
async fn a_query_that_was_read_differently_is_told_of() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let description = "Makes slides of the quarterly figures of a savanna";
    list(&registry, &origin, "Zebra", description).await;
    for (query, encoded, kind, told) in [
        (
            "slides \"figures quarterly\"",
            "slides%20%22figures%20quarterly%22",
            "quotation",
            "the words were searched without the quotes",
        ),
        ("savannna", "savannna", "corrected", "may be misspelled"),
        ("???", "%3F%3F%3F", "no_words", "no letters or digits"),
    ] {
        let answer: AgentList = registry
            .read_as_admin(&format!("/v1/agents?q={encoded}"))
            .await;
        assert_eq!(answer.total, 1, "{query}");
        let kinds: Vec<&str> = answer.hints.iter().map(|hint| hint.kind.as_str()).collect();
        assert_eq!(kinds, [kind], "{query}");
        let page = registry.admin_request(Method::GET, &format!("/?q={encoded}"));
        let page = page.send().await.unwrap().text().await.unwrap();
        assert!(page.contains(told), "{query}");
        let shown = Program::run(registry.anonymous_command(&["search", query])).await;
        assert_exit(&shown, 0, told);
    }
}
