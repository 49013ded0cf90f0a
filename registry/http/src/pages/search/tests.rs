//! Tests of the search page with score explanations.
#![allow(clippy::unwrap_used)]

use a2a_registry_api::AgentList;
use a2a_registry_core::config::Config;
use a2a_registry_domain::timestamp::Timestamp;
use askama::Template;
use serde_json::json;

use crate::pages::frame::Frame;
use crate::pages::search::{
    AgentListWithFilterNames, FilterValueNames, SearchPage, parse_search_page_query,
};

/// Page for a query string, with one hit whose score is explained.
fn page(address: &str) -> String {
    render(address, list())
}

/// List with this hit.
fn list() -> AgentList {
    let mut explanation = json!({"value": 0.5, "description": "the <best> skill"});
    for _ in 0..20 {
        explanation = json!({
            "value": 2.25, "description": "sum of:", "context": ["Term=\"flight\""],
            "details": [explanation],
        });
    }
    let hit = json!({
        "id": "00000000-0000-0000-0000-000000000007",
        "name": "Trip Planner",
        "domain": "travel.example",
        "interfaces": [],
        "capabilities": {
            "streaming": false, "push_notifications": false, "extended_agent_card": false, "extensions": [],
        },
        "skills": [],
        "tags": ["travel"],
        "auth": [],
        "labels": {},
        "trust": {"level": null, "domain": "unverified", "signature": "unsigned"},
        "lifecycle": "approved",
        "visibility": "public",
        "liveness": {"state": "fresh"},
        "card_digest": "sha256:0",
        "links": {"self": "", "card": "", "page": "", "resolver": ""},
        "score": 2.75,
        "duplicates": {"count": 3, "agents": ["00000000-0000-0000-0000-000000000008"]},
        "explain": {
            "value": 2.75, "description": "sum of:",
            "summary": ["name contains \"flight\" (2.75 of 2.75)"],
            "details": [explanation, {"value": 0.5, "description": "the <best> skill"}],
        },
    });
    serde_json::from_value(json!({
        "agents": [hit],
        "total": 40,
        "total_fitting": 40,
        "facets": {"tag": {"values": [{"value": "travel", "count": 40}], "other_count": 0}},
        "facets_count": "total_fitting",
        "order": "relevance",
        "mode": "lexical",
        "hints": [],
        "next_page_token": "t.k",
    }))
    .unwrap()
}

/// Page for a query string and its result.
fn render(address: &str, list: AgentList) -> String {
    let query = parse_search_page_query(address).unwrap();
    let frame = Frame::new(&Config::default(), "search");
    let (_, page) = SearchPage::new(
        frame,
        &query,
        Ok(AgentListWithFilterNames {
            list,
            names: FilterValueNames::default(),
        }),
        "https://registry.example.com",
        Timestamp(0),
    );
    page.render().unwrap()
}

#[test]
fn an_explained_search_stays_explained_wherever_its_links_lead() {
    let html = page("q=flights&auth=none&explain=true");
    let searches: Vec<&str> = html
        .split("href=\"")
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| link.starts_with("/?"))
        .collect();
    assert!(searches.len() > 5, "{searches:?}");
    for link in searches {
        assert!(link.contains("explain=true"), "{link}");
    }
    assert!(html.contains("page_token=t.k"));
    let carried = "<input type=\"hidden\" name=\"explain\" value=\"true\">";
    assert!(html.contains(carried), "the form keeps it too: {html}");
    assert!(!page("q=flights").contains("explain"));
}

#[test]
fn the_parts_of_a_score_are_shown_and_end_somewhere() {
    let html = page("q=flights&explain=true");
    assert!(
        html.contains("<summary>Why this result</summary>"),
        "{html}"
    );
    assert!(
        html.contains("<span class=\"n\">2.750</span> in total"),
        "{html}"
    );
    assert!(html.contains("<span class=\"n\">0.500</span> the &#60;best&#62; skill"));
    assert!(html.contains("Term=&#34;flight&#34;"));
    assert!(html.contains("level-8") && !html.contains("level-9"));
    // Unless all parts are requested, the reasons are in words only.
    let html = page("q=flights");
    assert!(html.contains("<summary>Why this result</summary>"));
    assert!(html.contains("<li>name contains &#34;flight&#34; (2.75 of 2.75)</li>"));
    assert!(!html.contains("level-1") && !html.contains("in total"));
}

/// Renders a list of so many matches and so many that fit, with hits that have these marks.
fn render_marked(address: &str, marks: &[bool], total: u64, total_fitting: u64) -> String {
    let mut list = list();
    let hit = list.agents[0].clone();
    list.agents = vec![hit; marks.len()];
    for (hit, weak) in list.agents.iter_mut().zip(marks) {
        hit.matched.weak = *weak;
    }
    (list.total, list.total_fitting) = (total, total_fitting);
    if address.contains("fitting=false") {
        list.facets_count = "total".to_owned();
    }
    list.next_page_token = None;
    render(address, list)
}

#[test]
fn the_headline_counts_what_fits_and_a_link_leads_to_the_rest() {
    let html = render_marked("q=flights&tag=travel&page_token=t", &[false], 78, 1);
    assert!(html.contains("<strong>1</strong> agent<"), "{html}");
    let link = "<a href=\"/?q=flights&#38;tag=travel&#38;fitting=false\">77 weaker results</a>";
    assert!(html.contains(link), "{html}");
    assert!(!html.contains("Weaker results") && !html.contains("Only the"));
    // Where nothing fits, the first weaker results are listed, with a link where there are more.
    let html = render_marked("q=flights", &[true, true], 3, 0);
    assert!(html.contains("<strong>0</strong> agents<"), "{html}");
    assert!(html.contains("<h2>Weaker results</h2>"), "{html}");
    assert!(
        html.contains("fitting=false\">3 weaker results</a>"),
        "{html}"
    );
    for address in ["q=flights", "q=flights&sort=name"] {
        let html = render_marked(address, &[true], 1, 0);
        assert!(html.contains("<h2>Weaker results</h2>"), "{html}");
        assert!(!html.contains("fitting="), "{html}");
    }
    // Where everything fits, there is no link.
    let html = render_marked("q=flights", &[false], 40, 40);
    assert!(
        !html.contains("weaker") && !html.contains("fitting="),
        "{html}"
    );
}

#[test]
fn weaker_results_stand_below_a_heading_and_the_others_are_a_link_away() {
    let hit = "<li class=\"hit\">";
    let html = render_marked("q=flights&fitting=false", &[false, true, true], 3, 1);
    assert!(html.contains("<strong>3</strong> agents<"), "{html}");
    let (good, weak) = html.split_once("<h2>Weaker results</h2>").unwrap();
    assert_eq!(
        (good.matches(hit).count(), weak.matches(hit).count()),
        (1, 2)
    );
    assert!(weak.contains("<a href=\"/?q=flights\">Only the 1 that fits</a>"));
    // Filters and orders keep the list of all, and the form for another text does not.
    assert!(html.contains("sort=name&#38;fitting=false"), "{html}");
    assert!(!html.contains("name=\"fitting\""), "{html}");
    // In the order by name, weak matches keep their position.
    let html = render_marked("q=flights&sort=name&fitting=false", &[true, false], 2, 1);
    assert!(!html.contains("Weaker results"), "{html}");
    assert_eq!(html.matches(hit).count(), 2, "{html}");
    // Nothing that fits is no link.
    let html = render_marked("q=flights&fitting=false", &[true], 1, 0);
    assert!(!html.contains("Only the"), "{html}");
}

#[test]
fn duplicates_are_folded_by_default_and_a_link_unfolds_them() {
    let html = page("q=flights");
    let link = "<a href=\"/?q=flights&#38;group=none\">3 more</a> at other addresses";
    assert!(html.contains(link), "{html}");
    assert!(!html.contains("group=content"));
    // Expanded duplicates stay expanded.
    let unfolded = page("q=flights&group=none");
    let carried = "<input type=\"hidden\" name=\"group\" value=\"none\">";
    assert!(unfolded.contains(carried), "{unfolded}");
}

#[test]
fn what_was_understood_can_be_taken_back() {
    let understood = |text: &str, parts: &[(&str, &str, &str)]| {
        let parts = parts.iter().map(|(text, parameter, value)| {
            json!({"text": text, "parameter": parameter, "value": value})
        });
        let parts: Vec<serde_json::Value> = parts.collect();
        let mut list = list();
        list.understood = serde_json::from_value(json!({"q": text, "parts": parts})).unwrap();
        list
    };
    let one = understood("weather", &[("without login", "auth", "none")]);
    let html = render("q=weather+without+login&tag=x", one);
    assert!(html.contains("from “<bdi>without login</bdi>”"), "{html}");
    let as_text = "href=\"/?q=weather+without+login&#38;tag=x&#38;understand=false\"";
    assert!(html.contains(as_text), "{html}");
    let unfiltered =
        "href=\"/?q=weather+without+login&#38;understand=false\">Remove all filters</a>";
    assert!(html.contains(unfiltered), "{html}");
    // The other parts become filters of the address.
    let both = understood(
        "weather -acme",
        &[
            ("without login", "auth", "none"),
            ("not acme", "q", "-acme"),
        ],
    );
    let html = render("q=weather+without+login%2C+not+acme", both);
    for link in [
        "href=\"/?q=weather+without+login+-acme&#38;understand=false\"",
        "href=\"/?q=weather+not+acme&#38;auth=none&#38;understand=false\"",
    ] {
        assert!(html.contains(link), "{link}: {html}");
    }
    assert!(html.contains("<span class=\"kind\">Without</span> <bdi>acme</bdi>"));
    assert!(!html.contains("Use phrases as filters again"));
    let several = understood(
        "weather -acme -zeta",
        &[("not acme or zeta", "q", "-acme -zeta")],
    );
    let html = render("q=weather+not+acme+or+zeta", several);
    assert!(html.contains("<bdi>acme, zeta</bdi>"), "{html}");
    // A new text is understood again.
    let html = render("q=weather+without+login&understand=false", list());
    assert!(!html.contains("name=\"understand\""), "{html}");
    // Without words that are left there is no relevance to order by.
    let html = render(
        "q=agents+without+login",
        understood("", &[("without login", "auth", "none")]),
    );
    assert!(!html.contains(">Best match</a>"), "{html}");
}
