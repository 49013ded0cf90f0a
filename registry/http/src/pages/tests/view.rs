//! Tests of the content of pages for benign agents.

use std::collections::BTreeMap;

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Agent, Facet, FacetValue};
use a2a_registry_core::config::Config;
use a2a_registry_core::search::registry_stats::RegistryStats;
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::timestamp::MINUTE;
use askama::Template;

use crate::pages::agent::diff::DiffPage;
use crate::pages::agent::{AgentPage, AgentPageData};
use crate::pages::domains::lint_form::LintFormView;
use crate::pages::domains::register::RegisterPage;
use crate::pages::domains::{DomainAgentRow, DomainPage};
use crate::pages::frame::{Frame, FrameAccount};
use crate::pages::search::SearchPage;
use crate::pages::search::home::HomePage;
use crate::pages::tests::markup::{Page, split};
use crate::pages::tests::samples::{self, NOW, REGISTRY};
use crate::requests::visitor::Visitor;

fn frame(here: &'static str) -> Frame {
    Frame::new(&Config::default(), here)
}

fn query(address: &str) -> SearchQuery {
    serde_html_form::from_str(address).unwrap()
}

fn found(address: &str) -> String {
    let query = query(address);
    let word = query.q.clone().unwrap_or_default();
    let travel = samples::card(&samples::travel());
    let mut weather = samples::hit(&samples::card(&samples::weather()), 2, &word);
    weather.summary.domain = "weather.example.org".into();
    weather.summary.trust.level = None;
    weather.summary.liveness.state = a2a_registry_domain::lifecycle::LivenessState::Stale.into();
    let list = samples::list(vec![samples::hit(&travel, 1, &word), weather], 1247);
    SearchPage::new(
        frame("search"),
        &query,
        Ok(samples::found(list)),
        REGISTRY,
        NOW,
    )
    .1
    .render()
    .unwrap()
}

fn agent(document: &serde_json::Value) -> String {
    agent_page(samples::agent(
        samples::card(document),
        "Looked at with the travel team; scopes are fine.",
    ))
}

fn agent_page(agent: Agent) -> String {
    let material = AgentPageData {
        agent,
        versions: Ok(samples::versions("")),
        findings: Some(samples::findings(
            "Give the skill at least one tag, so that it is found by it.",
        )),
        similar: Some(samples::similar(&samples::weather())),
        background: samples::background(""),
        governed: None,
        call_denial_reason: None,
        is_snake_case: false,
    };
    AgentPage::new(frame("agent"), material, &samples::config(), NOW)
        .render()
        .unwrap()
}

fn domain() -> String {
    let view = samples::domain("The card has not changed since the last look.");
    let names = vec![DomainAgentRow {
        id: view.agents[0].to_string(),
        name: "Northwind Travel Desk".to_owned(),
        description: "Plans trips from the first idea to the boarding pass.".to_owned(),
        review: None,
        lifecycle: Some(ShownLifecycle::Approved),
    }];
    DomainPage::new(frame("domain"), view, names, None, NOW)
        .render()
        .unwrap()
}

fn diff() -> String {
    DiffPage::new(
        frame("agent"),
        samples::diff("the address decides whom callers talk to"),
        NOW,
    )
    .render()
    .unwrap()
}

fn linted() -> String {
    let lint = LintFormView {
        card: "{\"name\": \"Echo\"}".to_owned(),
        problem: None,
        result: Some(samples::linted("serve the card over https")),
    };
    RegisterPage::with_lint(&Config::default(), &Visitor::default(), lint)
        .render()
        .unwrap()
}

fn links(page: &Page) -> Vec<&str> {
    page.tags
        .iter()
        .filter(|tag| tag.name == "a")
        .filter_map(|tag| tag.get("href"))
        .collect()
}

#[test]
fn a_facet_puts_its_filter_in_and_takes_it_out() {
    let html = found("q=flights&tag=travel&page_token=old");
    let page = split(&html);
    let links = links(&page);
    assert!(
        links.contains(&"/?q=flights&tag=travel&tag=weather"),
        "{links:?}"
    );
    assert!(
        links.contains(&"/?q=flights"),
        "the chosen tag goes out again: {links:?}"
    );
    assert!(
        links.contains(&"/?q=flights&tag=travel&binding=HTTP%2BJSON"),
        "{links:?}"
    );
    assert!(
        links.contains(&"/?q=flights&tag=travel&trust=L1"),
        "{links:?}"
    );
    assert!(
        links.contains(&"/?q=flights&tag=travel&page_token=eyJ2IjoxfQ.c2lnbmF0dXJl"),
        "{links:?}"
    );
    assert!(
        !links.iter().any(|link| link.contains("trust=none")),
        "none is no filter"
    );
    let hidden: Vec<_> = page
        .tags
        .iter()
        .filter(|tag| tag.get("type") == Some("hidden"))
        .collect();
    assert_eq!(hidden.len(), 1, "the form carries the filter, not the page");
    assert_eq!(hidden[0].get("value"), Some("travel"));
}

#[test]
fn what_matched_is_marked() {
    let html = found("q=flights");
    assert!(
        html.contains("Book <mark>flights</mark>"),
        "in the skill's name"
    );
    assert!(
        html.contains("finds and books <mark>flights</mark>"),
        "in the description"
    );
    assert!(html.contains("1\u{202f}247"), "with the exact total");
}

/// Clients get no card of an agent on hold, although one of its versions is approved.
#[test]
fn a_version_is_served_while_its_agent_is_listed() {
    let served = "title=\"Clients get this version\">served";
    let approved = "title=\"Clients get no version while the agent is not listed\">approved";
    let listed = agent(&samples::travel());
    assert!(listed.contains(served) && !listed.contains(approved));
    let mut held = samples::agent(samples::card(&samples::travel()), "");
    held.hit.summary.lifecycle = ShownLifecycle::Suspended.into();
    let held = agent_page(held);
    assert!(held.contains(approved) && !held.contains(served), "{held}");
}

/// Code in a sentence is rendered as code everywhere on the page.
#[test]
fn no_backtick_of_a_sentence_is_left_on_the_page_of_a_domain() {
    let mut view = samples::domain("x");
    view.challenges.clear();
    view.state = DomainState::Unverified.into();
    view.owner_vouch = None;
    view.no_challenge = Some("An admin vouches: `a2a-registry domain vouch x`.".to_owned());
    let waits = format!(
        "Agent \"Echo\" ({}) waits for its approval.",
        view.agents[0]
    );
    view.not_listed = vec!["Remove the record (`policy=none`).".to_owned(), waits];
    let html = DomainPage::new(frame("domain"), view, Vec::new(), None, NOW)
        .render()
        .unwrap();
    assert!(!html.contains('`'), "{html}");
    let named = "Agent \"Echo\" waits for its approval.";
    assert!(split(&html).text.contains(named), "{html}");
    for code in ["a2a-registry domain vouch x", "policy=none"] {
        assert!(
            html.contains(&format!("<code>{code}</code>")),
            "{code}: {html}"
        );
    }
}

#[test]
fn an_empty_registry_says_how_to_fill_it_and_an_unlucky_search_how_to_widen_it() {
    let nothing = || Ok(samples::found(samples::list(Vec::new(), 0)));
    let who = FrameAccount {
        name: "admin".to_owned(),
        form_token: String::new(),
        sees_all: true,
        reads_events: true,
        reads_accounts: true,
        administers: true,
        may_register: true,
        curates: true,
    };
    let signed_in = || Frame {
        who: Some(who.clone()),
        ..frame("search")
    };
    let render = |address: &str| {
        SearchPage::new(signed_in(), &query(address), nothing(), REGISTRY, NOW)
            .1
            .render()
            .unwrap()
    };
    let empty = split(&render(""));
    assert!(
        empty.code[0].starts_with("a2a-registry register agents.example.com"),
        "{:?}",
        empty.code
    );
    assert!(
        empty.code[1].contains("'https://registry.example.com/v1/domains'"),
        "{:?}",
        empty.code
    );
    let unlucky = split(&render("q=x&tag=a&auth=oauth2"));
    let links = links(&unlucky);
    for wider in ["/?q=x&tag=a", "/?q=x&auth=oauth2", "/?q=x"] {
        assert!(links.contains(&wider), "{wider}: {links:?}");
    }
}

#[test]
fn a_facet_with_one_value_is_hidden_unless_it_is_chosen_and_providers_keep_their_capitals() {
    let card = samples::card(&samples::travel());
    let mut list = samples::list(vec![samples::hit(&card, 1, "")], 2);
    let facet = |values: &[(&str, u64)]| Facet {
        values: values
            .iter()
            .map(|(value, count)| FacetValue {
                value: (*value).to_owned(),
                count: *count,
            })
            .collect(),
        other_count: 0,
    };
    list.facets = BTreeMap::from([
        ("tag".to_owned(), facet(&[("travel", 2)])),
        ("binding".to_owned(), facet(&[("GRPC", 2)])),
        (
            "provider".to_owned(),
            facet(&[("northwind travel", 1), ("other", 1)]),
        ),
    ]);
    let query = query("tag=travel&provider=Northwind+Travel");
    let (_, page) = SearchPage::new(
        frame("search"),
        &query,
        Ok(samples::found(list)),
        REGISTRY,
        NOW,
    );
    let html = page.render().unwrap();
    assert!(html.contains("<h2>Tag</h2>"), "it can be removed: {html}");
    assert!(
        !html.contains("<h2>Binding</h2>"),
        "it narrows nothing: {html}"
    );
    assert!(html.contains("<bdi>Northwind Travel</bdi>"), "{html}");
    assert!(!html.contains("<bdi>northwind travel</bdi>"), "{html}");
}

#[test]
fn the_first_page_says_what_is_in_the_registry() {
    let card = samples::card(&samples::travel());
    let list = samples::list(vec![samples::hit(&card, 1, "")], 1247);
    let overview = RegistryStats::new(list, 312, Some(NOW.plus_micros(-4 * MINUTE)));
    let html = HomePage::new(frame("search"), Some(overview), REGISTRY, NOW)
        .render()
        .unwrap();
    let page = split(&html);
    for wanted in [
        "1\u{202f}247 agents",
        "from 312 domains",
        "last crawled 4 minutes ago",
        "Northwind Travel Desk",
        "owner proved",
        "Bearer token",
    ] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    assert!(links(&page).contains(&"/?tag=travel"), "{html}");
}

#[test]
fn an_agent_page_shows_everything_with_its_reason() {
    let page = split(&agent(&samples::travel()));
    for wanted in [
        "Send a bearer token (JWT).",
        "Send an API key in the header X-Api-Key.",
        "Streams responses",
        "grpc.northwind.example:443",
        "maria, who was also the submitter",
        "Looked at with the travel team",
        "card fetched 4 min ago",
        "in 26 minutes",
        "Find me a flight from Berlin to Lisbon on Friday",
        "skill.tags.empty",
        "https://registry.example.com/agents/",
        "3 of 4 fetches of the card succeeded in the last 90 days; some failed on 1 day.",
        "proved by a DNS TXT record on 2025-12-23, 9 days ago",
        "Report this agent",
    ] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    let links = links(&page);
    for wanted in [
        "/about#trust",
        "#findings",
        "mailto:ops@registry.example.com?subject=Report%20of%20https%3A%2F%2Fregistry.example.com%2Fagents%2F0193f00d-7000-8000-0000-000000000007%2F",
    ] {
        assert!(links.contains(&wanted), "{wanted}: {links:?}");
    }
    let svg = page.tags.iter().find(|tag| tag.name == "svg").unwrap();
    assert_eq!(svg.get("role"), Some("img"));
    assert!(svg.get("aria-label").unwrap().starts_with("3 of 4 fetches"));
}

#[test]
fn each_version_leads_to_what_changed_since_the_one_before() {
    let page = split(&agent(&samples::travel()));
    let diffs: Vec<&str> = links(&page)
        .into_iter()
        .filter(|link| link.contains("/diff?"))
        .collect();
    assert_eq!(
        diffs.len(),
        2,
        "the first version has none before it: {diffs:?}"
    );
    let versions = samples::versions("").versions;
    let (newest, older) = (&versions[0].digest, &versions[1].digest);
    assert!(
        diffs[0].ends_with(&format!("/diff?from={older}&to={newest}")),
        "{diffs:?}"
    );
}

#[test]
fn similar_agents_and_the_first_duplicates_are_linked() {
    let html = agent(&samples::travel());
    let page = split(&html);
    let section = &html[html.find("id=\"similar\"").unwrap()..html.find("id=\"raw\"").unwrap()];
    for told in ["12 other listed agents are", "in meaning", ">Weather</a>"] {
        assert!(section.contains(told), "{told}: {section}");
    }
    let links: Vec<&str> = links(&page)
        .into_iter()
        .filter(|link| section.contains(&format!("href=\"{link}\"")))
        .collect();
    for number in 20_u128..25 {
        let link = format!("/agents/{}/", uuid::Uuid::from_u128(number));
        assert!(links.contains(&link.as_str()), "{link}: {links:?}");
    }
    assert!(!section.contains("duplicate 6"), "{section}");
    assert!(links.contains(&"#similar") || html.contains("href=\"#similar\""));
}

#[test]
fn without_a_contact_nothing_offers_a_report() {
    let material = AgentPageData {
        agent: samples::agent(samples::card(&samples::travel()), ""),
        versions: Ok(samples::versions("")),
        findings: None,
        similar: None,
        background: samples::background(""),
        governed: None,
        call_denial_reason: None,
        is_snake_case: false,
    };
    let html = AgentPage::new(frame("agent"), material, &Config::default(), NOW)
        .render()
        .unwrap();
    assert!(!html.contains("Report this agent"));
}

#[test]
fn a_diff_shows_each_change_with_its_importance_and_both_sides() {
    let page = split(&diff());
    for wanted in [
        "/supportedInterfaces/0/url",
        "critical",
        "A change like this needs a review. The newer version is approved.",
        "https://old.northwind.example/rpc",
        "https://new.northwind.example/rpc",
        "the address decides whom callers talk to",
        "added",
        "low",
        "There are more changes than are listed.",
    ] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    let selected: Vec<_> = page
        .tags
        .iter()
        .filter(|tag| tag.name == "option" && tag.get("selected").is_some())
        .filter_map(|tag| tag.get("value"))
        .collect();
    let versions = samples::versions("").versions;
    assert_eq!(selected, [&versions[1].digest, &versions[0].digest]);
}

#[test]
fn a_linted_card_comes_back_with_its_findings_and_their_places() {
    let page = split(&linted());
    for wanted in [
        "1 warning.",
        "Read as the card of Echo, format 0.3",
        "endpoint.private",
        "line 3, column 10",
        "serve the card over https",
    ] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    assert_eq!(page.typed, "{\"name\": \"Echo\"}");
}

#[test]
fn everything_is_approved_here_stands_on_every_page() {
    let mut config = Config::default();
    config.governance.approve_all = true;
    let html = RegisterPage::new(&config, "", false, None)
        .render()
        .unwrap();
    assert!(html.contains("Everything is approved here."));
    let quiet = RegisterPage::new(&Config::default(), "", false, None)
        .render()
        .unwrap();
    assert!(!quiet.contains("Everything is approved here."));
}

#[test]
fn a_form_that_failed_keeps_its_input_but_not_the_token() {
    let html = RegisterPage::new(
        &Config::default(),
        "10.0.0.1",
        true,
        Some("The address is private."),
    )
    .render()
    .unwrap();
    let page = split(&html);
    let input = |id: &str| {
        page.tags
            .iter()
            .find(|tag| tag.get("id") == Some(id))
            .unwrap()
    };
    assert_eq!(input("target").get("value"), Some("10.0.0.1"));
    assert_eq!(input("token").get("value"), None);
    assert_eq!(input("token").get("autocomplete"), Some("off"));
    assert!(input("approve").get("checked").is_some());
    assert!(page.text.contains("The address is private."));
}

#[test]
fn a_domain_page_shows_what_was_asked_and_what_came_of_it() {
    let page = split(&domain());
    for wanted in [
        "not modified",
        "HTTP 304",
        "Not fetched yet.",
        "Proved by the vouch of an admin of this registry on 2025-12-23 00:00 UTC, 9 days ago",
        "1 agent is listed.",
        "Where it stands",
        "Places where nothing is published (1)",
        "a2a-registry domain verify 'agents.northwind.example'",
        "agent catalog (ARD)",
        "nothing there",
        "Northwind Travel Desk",
    ] {
        assert!(page.text.contains(wanted), "{wanted}");
    }
}

#[test]
fn a_domain_page_shows_ten_attempts_of_a_source_and_how_it_fared_for_days() {
    let page = split(&domain());
    for wanted in [
        "Last fetched 4 minutes ago: not modified (HTTP 304), 180 ms, revalidated.",
        "1 hour ago: timeout, 10001 ms.",
        "39 of 40 fetches succeeded in the last 90 days.",
        "Refetched with conditional requests, by ETag.",
        "in 5 hours",
    ] {
        assert!(page.text.contains(wanted), "{wanted}: {}", page.text);
    }
    assert_eq!(page.text.matches("timeout").count(), 9, "{}", page.text);
}

/// Writes pages to a folder for inspection in a browser:
/// `A2A_PAGES=/tmp/pages cargo test -p a2a-registry pages_to_look_at -- --ignored`.
#[test]
#[ignore = "writes files to look at"]
fn pages_to_look_at() {
    let folder = std::path::PathBuf::from(std::env::var("A2A_PAGES").unwrap());
    let mut banner = Config::default();
    banner.governance.approve_all = true;
    let empty = SearchPage::new(
        Frame::new(&banner, "search"),
        &SearchQuery::default(),
        Ok(samples::found(samples::list(Vec::new(), 0))),
        REGISTRY,
        NOW,
    );
    let unlucky = SearchPage::new(
        frame("search"),
        &query("q=flihgts&tag=travel&protocol_version=1.0"),
        Ok(samples::found(samples::list(Vec::new(), 0))),
        REGISTRY,
        NOW,
    );
    let refused =
        "The address 10.0.0.1 is in a private network; allow it with [crawler] allow_networks.";
    let pages = [
        ("search", found("q=flights&tag=travel")),
        ("list", found("sort=name")),
        ("empty", empty.1.render().unwrap()),
        ("unlucky", unlucky.1.render().unwrap()),
        ("agent", agent(&samples::travel())),
        ("agent03", agent(&samples::weather())),
        (
            "hostile",
            crate::pages::tests::hostile::hostile_agent(samples::HOSTILE)
                .render()
                .unwrap(),
        ),
        ("domain", domain()),
        ("diff", diff()),
        ("linted", linted()),
        (
            "register",
            RegisterPage::new(&banner, "10.0.0.1", true, Some(refused))
                .render()
                .unwrap(),
        ),
    ];
    for (name, html) in pages {
        let local = html.replace("/static/", "static/");
        std::fs::write(folder.join(format!("{name}.html")), local).unwrap();
    }
}
