//! What pages say about versions and trust is true of those that they show.

use a2a_registry_api::Version;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use askama::Template;

use crate::agent_page::diff::DiffPage;
use crate::config::Config;
use crate::pages::frame::Frame;
use crate::pages::tests::markup::{Page, split};
use crate::pages::tests::samples;
use crate::pages::tests::samples::NOW;

/// The page that compares the newest version with the one before, where the newest is in that state.
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
    split(&DiffPage::new(frame, &material, NOW).render().unwrap())
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
        (Pending, Approved, Critical, "nothing is served until then."),
        (Pending, Approved, High, "stays served meanwhile."),
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
            "Another version came before anybody decided.",
        ),
        (Approved, Approved, Low, "without a review."),
    ] {
        let page = compared(newest, before, class);
        let case = format!("{newest:?} after {before:?}, {class:?}");
        assert!(page.text.contains(wanted), "{case}: {}", page.text);
        let waits = newest == Pending;
        let claims = ["nothing is served", "served meanwhile", "It needs"];
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
