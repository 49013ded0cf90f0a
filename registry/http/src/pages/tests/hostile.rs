//! Tests that card texts are always rendered as text.

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{BreakGlass, Deprecation};
use a2a_registry_core::config::Config;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::search::registry_stats::RegistryStats;
use a2a_registry_core::text::is_hidden_char;
use a2a_registry_domain::open_enum::OpenEnum;
use actix_web::http::StatusCode;
use askama::Template;

use crate::pages::agent::diff::DiffPage;
use crate::pages::agent::{AgentPage, AgentPageData};
use crate::pages::domains::lint_form::LintFormView;
use crate::pages::domains::register::RegisterPage;
use crate::pages::domains::{DomainAgentRow, DomainPage};
use crate::pages::frame::Frame;
use crate::pages::problems::ProblemPage;
use crate::pages::search::SearchPage;
use crate::pages::search::home::HomePage;
use crate::pages::tests::markup::{Page, Tag, split};
use crate::pages::tests::samples::{self, HOSTILE, NOW, REGISTRY};
use crate::problems::problem::Problem;
use crate::requests::visitor::Visitor;

/// Every element our templates write.
const ELEMENTS: [&str; 64] = [
    "html", "head", "meta", "title", "link", "script", "body", "a", "p", "strong", "b", "code",
    "header", "div", "img", "span", "nav", "main", "footer", "article", "section", "h1", "h2",
    "h3", "ul", "ol", "li", "form", "label", "input", "button", "small", "bdi", "mark", "aside",
    "details", "summary", "pre", "time", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th",
    "h4", "td", "caption", "br", "i", "em", "hr", "abbr", "kbd", "samp", "svg", "rect", "del",
    "ins", "select", "option", "textarea",
];

/// Every attribute our templates write.
const ATTRIBUTES: [&str; 55] = [
    "lang",
    "charset",
    "name",
    "content",
    "http-equiv",
    "rel",
    "href",
    "type",
    "src",
    "defer",
    "class",
    "id",
    "role",
    "alt",
    "width",
    "height",
    "dir",
    "title",
    "action",
    "method",
    "for",
    "value",
    "maxlength",
    "autocomplete",
    "placeholder",
    "hidden",
    "tabindex",
    "datetime",
    "checked",
    "scope",
    "required",
    "inputmode",
    "autocapitalize",
    "spellcheck",
    "aria-label",
    "aria-current",
    "aria-hidden",
    "aria-describedby",
    "aria-live",
    "open",
    "colspan",
    "data-complete",
    "headers",
    "viewBox",
    "preserveAspectRatio",
    "x",
    "y",
    "rows",
    "selected",
    "data-shape",
    "data-console",
    "data-kind",
    "data-user",
    "multiple",
    "disabled",
];

fn frame() -> Frame {
    Frame::new(&Config::default(), "search")
}

pub fn hostile_agent(text: &str) -> AgentPage {
    let mut agent = samples::agent(samples::card(&samples::hostile(text)), text);
    agent.holds = vec![samples::hold(text)];
    agent.security.push(text.into());
    agent.decision.by = text.into();
    agent.decision.rules = vec![text.into()];
    let summary = &mut agent.hit.summary;
    summary.urn = Some(text.into());
    summary.domain = text.into();
    summary.labels.insert(text.into(), text.into());
    summary.trust.level = Some(OpenEnum::from_text(text.into()));
    summary.trust.domain = OpenEnum::from_text(text.into());
    summary.trust.signature = OpenEnum::from_text(text.into());
    summary.liveness.state = OpenEnum::from_text(text.into());
    summary.endpoint.state = OpenEnum::from_text(text.into());
    summary.endpoint.checked_on = Some(text.into());
    summary.lifecycle = OpenEnum::from_text(text.into());
    agent.decision.state = OpenEnum::from_text(text.into());
    summary.liveness.reason = Some(text.into());
    summary.card_digest = text.into();
    summary.links.origin = Some(text.into());
    summary.deprecation = Some(Deprecation {
        message: text.into(),
        since: NOW,
        replacement: None,
        sunset: Some(NOW),
    });
    agent.holds[0].hold = OpenEnum::from_text(text.into());
    agent.break_glass = Some(BreakGlass {
        by: text.into(),
        reason: text.into(),
        at: NOW,
        until: NOW,
    });
    let mut versions = samples::versions(text);
    versions.versions[0].digest = text.into();
    versions.versions[0].wire_family = text.into();
    versions.versions[0].state = OpenEnum::from_text(text.into());
    versions.versions[0].change_class = Some(OpenEnum::from_text(text.into()));
    let mut findings = samples::findings(text);
    findings.findings[0].rule = text.into();
    findings.findings[0].pointer = text.into();
    findings.findings[0].severity = text.into();
    let material = AgentPageData {
        agent,
        versions: Ok(versions),
        findings: Some(findings),
        similar: Some(samples::similar(&samples::hostile(text))),
        background: samples::background(text),
        governed: None,
        call_denial_reason: None,
        is_snake_case: false,
    };
    AgentPage::new(frame(), material, &Config::default(), NOW)
}

fn hostile_diff(text: &str) -> DiffPage {
    let mut material = samples::diff(text);
    material.name = text.into();
    material.diff.from = text.into();
    material.diff.change_class = OpenEnum::from_text(text.into());
    let change = &mut material.diff.changes[0];
    change.pointer = text.into();
    change.before = Some(serde_json::json!([text]));
    change.after = Some(serde_json::json!({text: text}));
    change.class = OpenEnum::from_text(text.into());
    material.versions.versions[1].digest = text.into();
    material.versions.versions[1].state = OpenEnum::from_text(text.into());
    DiffPage::new(frame(), material, NOW)
}

fn hostile_lint(text: &str) -> RegisterPage {
    let mut linted = samples::linted(text);
    linted.name = text.into();
    linted.wire_family = text.into();
    linted.reason = text.into();
    let finding = &mut linted.findings[0];
    finding.rule = text.into();
    finding.pointer = text.into();
    finding.severity = text.into();
    let lint = LintFormView {
        card: text.into(),
        problem: Some(a2a_registry_core::text::single_line(text, 1_000)),
        result: Some(linted),
    };
    RegisterPage::with_lint(&Config::default(), &Visitor::default(), lint)
}

/// Query with this text in every parameter, within the maximum URL length.
fn hostile_query(text: &str) -> SearchQuery {
    let text: String = text.chars().take(150).collect();
    SearchQuery {
        q: Some(text.clone()),
        tag: vec![text.clone()],
        provider: vec![text.clone()],
        trust: Some(text.clone()),
        sort: Some(text.clone()),
        page_token: Some(text),
        ..SearchQuery::default()
    }
}

fn hostile_search(text: &str) -> SearchPage {
    let query = hostile_query(text);
    let card = samples::card(&samples::hostile(text));
    let mut hit = samples::hit(&card, 1, "<script>");
    hit.summary.domain = text.into();
    let mut list = samples::list(vec![hit], 1);
    for facet in list.facets.values_mut() {
        facet.values[0].value = text.into();
    }
    list.next_page_token = Some(text.into());
    let part = |parameter: &str| a2a_registry_api::UnderstoodPart {
        text: text.into(),
        parameter: parameter.into(),
        value: text.into(),
    };
    list.understood = Some(a2a_registry_api::Understood {
        q: text.into(),
        parts: vec![part("auth"), part("q"), part(text)],
    });
    list.hints.push(a2a_registry_api::Hint {
        kind: text.into(),
        text: text.into(),
        hidden: None,
    });
    list.hints.push(a2a_registry_api::Hint {
        kind: "filter".into(),
        text: text.into(),
        hidden: Some(1),
    });
    SearchPage::new(frame(), &query, Ok(samples::found(list)), REGISTRY, NOW).1
}

fn hostile_home(text: &str) -> HomePage {
    let card = samples::card(&samples::hostile(text));
    let mut hit = samples::hit(&card, 1, "");
    hit.summary.domain = text.into();
    hit.summary.auth = vec![text.into(); 5];
    let mut list = samples::list(vec![hit], 1);
    for facet in list.facets.values_mut() {
        facet.values[0].value = text.into();
    }
    HomePage::new(
        frame(),
        Some(RegistryStats::new(list, 1, Some(NOW))),
        REGISTRY,
        NOW,
    )
}

fn hostile_domain(text: &str) -> DomainPage {
    let mut view = samples::domain(text);
    view.domain = text.into();
    view.state = OpenEnum::from_text(text.into());
    view.proofs[0].method = OpenEnum::from_text(text.into());
    view.challenges[0].method = OpenEnum::from_text(text.into());
    view.challenges[0].name = Some(text.into());
    view.sources[0].url = text.into();
    view.sources[0].kind = OpenEnum::from_text(text.into());
    view.sources[0].state = OpenEnum::from_text(text.into());
    let last = view.sources[0].last_attempt.as_mut().unwrap();
    last.outcome = text.into();
    last.cache = Some(text.into());
    view.sources[1].last_attempt = None;
    let names = vec![DomainAgentRow {
        id: view.agents[0].to_string(),
        name: text.into(),
        description: text.into(),
        review: None,
        lifecycle: None,
    }];
    DomainPage::new(frame(), view, names, Some(1), NOW)
}

/// All pages with this text in every text field.
fn pages(text: &str) -> Vec<(&'static str, String)> {
    let failed = AppError::new(ErrorKind::Unavailable, text);
    let nothing = || samples::found(samples::list(Vec::new(), 0));
    let query = hostile_query(text);
    let refusal = Problem::from(AppError::new(ErrorKind::NotFound, text));
    let problem = ProblemPage::new(frame(), &refusal);
    let search = |answer| SearchPage::new(frame(), &query, answer, text, NOW).1;
    let empty = SearchPage::new(frame(), &SearchQuery::default(), Ok(nothing()), text, NOW);
    vec![
        ("agent", hostile_agent(text).render().unwrap()),
        ("search", hostile_search(text).render().unwrap()),
        ("nothing found", search(Ok(nothing())).render().unwrap()),
        ("failed search", search(Err(failed)).render().unwrap()),
        ("empty", empty.1.render().unwrap()),
        ("home", hostile_home(text).render().unwrap()),
        ("problem", problem.render().unwrap()),
        ("domain", hostile_domain(text).render().unwrap()),
        ("diff", hostile_diff(text).render().unwrap()),
        ("linted", hostile_lint(text).render().unwrap()),
        (
            "register",
            RegisterPage::new(&Config::default(), text, true, Some(text))
                .render()
                .unwrap(),
        ),
    ]
}

fn check(name: &str, page: &Page) {
    for tag in &page.tags {
        assert!(ELEMENTS.contains(&tag.name.as_str()), "{name}: {tag:?}");
        for (attribute, value) in &tag.attributes {
            assert!(ATTRIBUTES.contains(&attribute.as_str()), "{name}: {tag:?}");
            let address = matches!(attribute.as_str(), "href" | "src" | "action");
            let ours = value.starts_with(['/', '#']) && !value.starts_with("//");
            let web = value.starts_with("https://") || value.starts_with("http://");
            assert!(!address || ours || web, "{name}: {tag:?}");
            if address && web {
                assert_eq!(
                    tag.get("rel"),
                    Some("nofollow noopener noreferrer"),
                    "{name}: {tag:?}"
                );
            }
        }
    }
    let scripts = page.tags.iter().filter(|tag| tag.name == "script").count();
    let is_console = |tag: &Tag| {
        let source = tag.get("src").unwrap_or_default();
        source.starts_with("/static/console.js?")
    };
    let consoles = page.tags.iter().filter(|tag| is_console(tag)).count();
    assert_eq!(scripts, 1 + consoles, "{name}");
    assert!(consoles <= usize::from(name == "agent"), "{name}");
}

#[test]
fn hostile_text_stays_text_on_every_page() {
    for (name, html) in pages(HOSTILE) {
        let page = split(&html);
        check(name, &page);
        // The text itself must be visible.
        let shown = page.text.contains("<script>alert(1)</script>")
            || page
                .tags
                .iter()
                .any(|tag| tag.get("value").is_some_and(|v| v.contains("<script>")));
        assert!(shown || name == "empty", "{name}: the text is missing");
    }
}

/// Fails if a page has an invisible character.
fn check_visible(name: &str, page: &Page) {
    // Visitor input is returned to the input field unchanged.
    let inputs = page.tags.iter().filter(|tag| tag.name != "input");
    let attributes = inputs.flat_map(|tag| tag.attributes.iter().map(|(_, value)| value));
    for text in attributes.chain([&page.text]) {
        let hidden = text.chars().find(|c| is_hidden_char(*c) && *c != '\n');
        assert_eq!(hidden, None, "{name}: {text:?}");
    }
}

/// Fails if a page that is built from a hostile text shows it as markup, as a URL or with hidden characters. A text
/// has hidden characters if its template does not pass it to the functions that limit it.
pub(crate) fn assert_harmless<P: Template>(page: impl Fn(&str) -> P) {
    let html = page(HOSTILE).render().unwrap();
    let page = split(&html);
    check_visible("page", &page);
    let mut values = page.tags.iter().filter_map(|tag| tag.get("value"));
    let is_in_field = values.any(|value| value.contains("<script>"));
    let is_shown = page.text.contains("<script>alert(1)</script>") || is_in_field;
    assert!(is_shown, "{html}");
    for tag in &page.tags {
        assert!(tag.name != "script" || tag.get("src").is_some(), "{tag:?}");
        for (attribute, value) in &tag.attributes {
            assert!(!attribute.starts_with("on"), "{tag:?}");
            let is_address = matches!(attribute.as_str(), "href" | "src" | "action");
            let is_ours = value.starts_with(['/', '#']) && !value.starts_with("//");
            assert!(
                !is_address || is_ours || value.starts_with("https://"),
                "{tag:?}"
            );
        }
    }
}

#[test]
fn nothing_on_a_page_is_hidden_from_its_reader() {
    for (name, html) in pages(HOSTILE) {
        check_visible(name, &split(&html));
    }
}

#[test]
fn a_link_needs_an_address_of_the_web() {
    let page = split(&hostile_agent(HOSTILE).render().unwrap());
    let links: Vec<&str> = page.tags.iter().filter_map(|tag| tag.get("href")).collect();
    assert!(
        !links
            .iter()
            .any(|link| link.to_lowercase().contains("javascript:") && !link.starts_with('/'))
    );
    let good = samples::agent(samples::card(&samples::travel()), "");
    let versions = Ok(samples::versions(""));
    let material = AgentPageData {
        agent: good,
        versions,
        findings: None,
        similar: None,
        background: samples::background(""),
        governed: None,
        call_denial_reason: None,
        is_snake_case: false,
    };
    let page = split(
        &AgentPage::new(frame(), material, &Config::default(), NOW)
            .render()
            .unwrap(),
    );
    let outside = page
        .tags
        .iter()
        .find(|tag| tag.get("href") == Some("https://northwind.example/"));
    assert_eq!(
        outside.and_then(|tag| tag.get("rel")),
        Some("nofollow noopener noreferrer")
    );
}

#[test]
fn a_page_has_a_bounded_length_whatever_is_on_it() {
    let long = format!("<&'\"\u{202e}{}", "\u{202e}x".repeat(2_000));
    for (name, html) in pages(&long) {
        check(name, &split(&html));
        assert!(html.len() < 1_000_000, "{name}: {} bytes", html.len());
    }
    let mut document = samples::travel();
    let skill = document["skills"][0].clone();
    document["skills"] = vec![skill; 2_000].into();
    let interface = document["supportedInterfaces"][0].clone();
    document["supportedInterfaces"] = vec![interface; 2_000].into();
    let agent = samples::agent(samples::card(&document), "");
    let material = AgentPageData {
        agent,
        versions: Ok(samples::versions("")),
        findings: None,
        similar: None,
        background: samples::background(""),
        governed: None,
        call_denial_reason: None,
        is_snake_case: false,
    };
    let html = AgentPage::new(frame(), material, &Config::default(), NOW)
        .render()
        .unwrap();
    assert!(html.len() < 200_000, "{} bytes", html.len());
}

#[test]
fn a_failed_search_says_so_and_with_the_right_status() {
    let error = AppError::invalid("/q", "q has at most 512 characters");
    let (status, page) =
        SearchPage::new(frame(), &SearchQuery::default(), Err(error), REGISTRY, NOW);
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        page.render()
            .unwrap()
            .contains("q has at most 512 characters")
    );
}
