//! Pages show the names of skills, which facets count by their ids.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::assert_exit;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// The page at that path, as everybody sees it.
async fn page_text(registry: &ServingRegistry, path: &str) -> String {
    let page = registry.request(Method::GET, path).send().await.unwrap();
    assert_eq!(page.status(), 200, "{path}");
    page.text().await.unwrap()
}

/// The label of the link of this class that leads to the agents with a skill.
fn label(page: &str, class: &str, id: &str) -> Option<String> {
    let start = format!("<a class=\"{class}\"");
    let links = page.split(&start).skip(1);
    let mut links = links.filter_map(|link| link.split_once('>'));
    let (_, content) = links.find(|(tag, _)| tag.contains(&format!("skill={id}")))?;
    let (_, label) = content.split_once("<bdi>")?;
    Some(label.split_once("</bdi>")?.0.to_owned())
}

#[tokio::test]
async fn facets_and_the_first_page_show_names_of_skills() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let publish = async |path: &str, agent: &str, id: &str, skill: &str| {
        let named = format!("\"name\": \"{skill}\"");
        let card = card_json(agent, id).replace(&format!("\"name\": \"{id}\""), &named);
        origin.set_reply(path, OriginReply::json(card));
        registry.register(&origin.url(path)).await;
        let query = format!("q={agent}");
        registry.wait_for_hit(&query).await.summary.id.to_string()
    };
    publish("/a.json", "Firstling", "s-17", "Book <flights>").await;
    publish("/b.json", "Secondary", "plan_trips", "plan_trips").await;
    let expected = [
        ("s-17", "Book &#60;flights&#62;"),
        // Where a card names none, the id stands for it.
        ("plan_trips", "plan trips"),
    ];
    for (path, class) in [("/", "chip"), ("/?sort=name", "value")] {
        let shown = page_text(&registry, path).await;
        for (id, name) in expected {
            let label = label(&shown, class, id);
            assert_eq!(label.as_deref(), Some(name), "{path} {id}: {shown}");
        }
    }
    // The name of a skill of an agent that a caller does not see is not shown to it.
    let hidden = publish("/c.json", "Thirdly", "s-17", "Board the secret plane").await;
    let hide = ["agent", "visibility", &hidden, "internal"];
    assert_exit(&registry.run_admin_command(&hide).await, 0, "");
    for path in ["/", "/?sort=name"] {
        let shown = page_text(&registry, path).await;
        assert!(!shown.contains("secret plane"), "{path}: {shown}");
        assert!(shown.contains("Book &#60;flights&#62;"), "{path}: {shown}");
    }
}

/// Of many skills a hit shows only some. Where that of the agent that changed last does not name one, another agent does.
#[tokio::test]
async fn a_skill_that_the_newest_agent_does_not_show_is_named_by_another_one() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    let others = (0..12).map(|number| {
        json!({
            "id": format!("o-{number}"), "name": format!("Other {number}"), "description": "Something else",
            "tags": ["other"],
        })
    });
    let others: Vec<Value> = others.collect();
    for (path, agent, name, before) in [
        ("/a.json", "Firstling", "Book flights", &others[..0]),
        ("/b.json", "Manifold", "Rent planes", &others[..]),
    ] {
        let mut card: Value = serde_json::from_str(&card_json(agent, "s-17")).unwrap();
        let mut skill = card["skills"][0].take();
        skill["name"] = json!(name);
        card["skills"] = [before, &[skill]].concat().into();
        origin.set_reply(path, OriginReply::json(card.to_string()));
        registry.register(&origin.url(path)).await;
        registry.wait_for_hit(&format!("q={agent}")).await;
    }
    let shown = page_text(&registry, "/?sort=name").await;
    let label = label(&shown, "value", "s-17");
    assert_eq!(label.as_deref(), Some("Book flights"), "{shown}");
}
