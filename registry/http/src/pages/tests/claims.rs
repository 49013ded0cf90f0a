//! Tests that statements about versions and trust are true for the shown agent.

use a2a_registry_api::{DomainView, Version};
use a2a_registry_core::config::Config;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use askama::Template;

use crate::pages::agent::diff::DiffPage;
use crate::pages::agent::{AgentPage, AgentPageData};
use crate::pages::domains::DomainPage;
use crate::pages::frame::Frame;
use crate::pages::tests::markup::{Page, split};
use crate::pages::tests::samples::{self, NOW};

/// Page that compares the newest version, in the given state, with the previous one.
fn compared(
    newest: VersionState,
    before: VersionState,
    class: impl Into<OpenEnum<ChangeClass>>,
) -> Page {
    let mut material = samples::diff("");
    material.diff.change_class = class.into();
    let states = [newest, before];
    let versions: &mut Vec<Version> = &mut material.versions.versions;
    for (version, state) in versions.iter_mut().zip(states) {
        version.state = state.into();
    }
    let frame = Frame::new(&Config::default(), "agent");
    split(&DiffPage::new(frame, material, NOW).render().unwrap())
}

/// Agent page with this change to the data.
fn agent(change: impl FnOnce(&mut AgentPageData)) -> Page {
    let mut material = AgentPageData {
        agent: samples::agent(samples::card(&samples::travel()), ""),
        versions: Ok(samples::versions("")),
        findings: Some(samples::findings("write `1.0` instead")),
        similar: None,
        background: samples::background(""),
        governed: None,
        call_denial_reason: None,
        is_snake_case: false,
    };
    change(&mut material);
    let frame = Frame::new(&Config::default(), "agent");
    let page = AgentPage::new(frame, material, &samples::config(), NOW);
    split(&page.render().unwrap())
}

#[test]
fn a_comparison_says_what_is_true_of_its_two_versions() {
    use ChangeClass::{Critical, High, Low};
    use VersionState::{Approved, Pending, Rejected, Superseded};
    for (newest, before, class, wanted) in [
        (Approved, Approved, Critical, "Both versions are approved."),
        (Approved, Approved, High, "Both versions are approved."),
        (
            Approved,
            Superseded,
            Critical,
            "The newer version is approved.",
        ),
        (Pending, Approved, Critical, "No card is served until then."),
        (Pending, Approved, High, "is served until then."),
        (
            Rejected,
            Approved,
            Critical,
            "The newer version was rejected.",
        ),
        (
            Superseded,
            Approved,
            High,
            "A newer version replaced it before a decision.",
        ),
        (Approved, Approved, Low, "without a review."),
    ] {
        let page = compared(newest, before, class);
        let case = format!("{newest:?} after {before:?}, {class:?}");
        assert!(page.text.contains(wanted), "{case}: {}", page.text);
        let waits = newest == Pending;
        let claims = ["No card is served", "is served until", "This change needs"];
        let claimed = claims.iter().any(|claim| page.text.contains(claim));
        assert_eq!(claimed, waits, "{case}: {}", page.text);
    }
}

#[test]
fn the_class_of_each_change_claims_nothing_about_a_decision() {
    let page = compared(
        VersionState::Approved,
        VersionState::Approved,
        ChangeClass::Critical,
    );
    let titles = page.tags.iter().filter_map(|tag| tag.get("title"));
    assert!(titles.into_iter().all(|title| !title.contains("served")));
}

#[test]
fn an_agent_without_a_level_says_why_also_where_its_owner_is_proved() {
    let why = "none: the card was not fetched over valid TLS";
    let proved = agent(|material| material.agent.hit.summary.trust.level = None);
    for wanted in [
        "owner proved",
        why,
        "does not prove that the card arrived unchanged",
    ] {
        assert!(proved.text.contains(wanted), "{wanted}: {}", proved.text);
    }
    let badge = proved
        .tags
        .iter()
        .find(|tag| tag.get("href") == Some("/about#trust"));
    let title = badge.and_then(|badge| badge.get("title"));
    let title = title.unwrap_or_default();
    assert!(title.starts_with("No trust level: "), "{title}");

    let unproved = agent(|material| {
        let trust = &mut material.agent.hit.summary.trust;
        trust.level = None;
        trust.domain = a2a_registry_domain::ownership::DomainState::Unverified.into();
    });
    assert!(unproved.text.contains(why), "{}", unproved.text);
    assert!(!unproved.text.contains("arrived unchanged"));

    let usual = agent(|_| {});
    let level = "L1: The domain's owner has proved control over it.";
    assert!(usual.text.contains(level), "{}", usual.text);
    assert!(!usual.text.contains("not fetched over valid TLS"));
}

#[test]
fn a_card_with_broken_signatures_is_not_called_unsigned() {
    let broken = agent(|material| {
        let mut document = samples::travel();
        document["signatures"] = serde_json::json!([{"protected": "?", "signature": "?"}]);
        material.agent.card = samples::card(&document);
        material.agent.hit.summary.trust.signature = SignatureState::Unsigned.into();
    });
    let wanted = "none: the entries are not valid signatures";
    assert!(broken.text.contains(wanted), "{}", broken.text);
    assert!(!broken.text.contains("the card is not signed"));
}

#[test]
fn what_stands_in_backticks_is_code_and_a_single_one_stays() {
    let page = agent(|material| {
        material.agent.security = vec!["Send `a` or `b".to_owned(), "Nothing".to_owned()];
    });
    assert!(page.text.contains("Send a or `b."), "{}", page.text);
    assert!(page.text.contains("write 1.0 instead"), "{}", page.text);
}

#[test]
fn many_findings_are_folded_behind_the_first() {
    let page = agent(|material| {
        let list = material.findings.as_mut().unwrap();
        list.findings = vec![list.findings[0].clone(); 30];
    });
    let (first, folded) = page.text.split_once("20 more").unwrap();
    assert_eq!(first.matches("skill.tags.empty").count(), 5);
    assert_eq!(folded.matches("skill.tags.empty").count(), 20);
    assert!(page.text.contains("5 are left out here: all findings."));
}

#[test]
fn results_that_are_not_shown_are_mentioned_once() {
    let mut view = samples::domain("");
    let fetched = view.sources[0].clone();
    view.sources = vec![fetched; 3];
    let sentence = "Only accounts that registered the domain see the results";
    let page = |view: &DomainView| {
        let frame = Frame::new(&Config::default(), "domain");
        let page = DomainPage::new(frame, view.clone(), Vec::new(), None, NOW);
        split(&page.render().unwrap())
    };
    assert!(!page(&view).text.contains(sentence));
    for source in &mut view.sources {
        source.last_attempt = None;
        source.attempts.clear();
    }
    assert_eq!(page(&view).text.matches(sentence).count(), 1);
}
