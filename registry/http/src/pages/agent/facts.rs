//! Facts about an agent that the page's template cannot derive, and the report contact.

use a2a_registry_api::{Agent, Summary, Version, VersionList};
use a2a_registry_core::text::{self, ADDRESS, LINE};
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::signature::SignatureState;

use crate::pages::trust::{self, Badge};

pub(super) const SIGNATURES: usize = 20;
pub(super) const PROOFS: usize = 10;
pub(super) const VERSIONS: usize = 10;

/// Contact for reports about an agent.
pub(super) struct ReportContactView {
    pub address: String,
    /// Whether the contact is a web page, not a mail address.
    pub web: bool,
}

/// Badges for the lifecycle and visibility of an agent, unless they are the defaults.
pub(super) fn status_badges(agent: &Summary) -> Vec<Badge> {
    let lifecycle = agent
        .lifecycle
        .known_value()
        .and_then(trust::lifecycle_badge);
    let visibility = agent
        .visibility
        .known_value()
        .and_then(trust::visibility_badge);
    lifecycle.into_iter().chain(visibility).collect()
}

/// Explanation of a hold whose name does not say what ends it.
pub(super) fn hold_meaning(hold: &OpenEnum<Hold>) -> Option<&'static str> {
    (*hold == Hold::Policy).then_some(
        "A policy does not admit the content of this agent. The hold ends when the content or the policies change, or \
         when a curator waives the policy for this content.",
    )
}

/// First versions of a list, each with its previous version. The list has one extra version if there are more.
pub(super) fn versions_with_earlier(
    list: &VersionList,
) -> impl Iterator<Item = (&Version, Option<&Version>)> {
    let earlier = list.versions.iter().skip(1).map(Some).chain([None]);
    list.versions.iter().zip(earlier).take(VERSIONS)
}

pub(super) fn change_class_text(version: &Version) -> String {
    match &version.change_class {
        Some(class) => text::single_line(class.as_str(), LINE),
        None => "first card".to_owned(),
    }
}

pub(super) fn signature_meaning(agent: &Agent) -> &'static str {
    let state = &agent.hit.summary.trust.signature;
    match state.known_value() {
        // The card has signature entries, so "not signed" would be wrong; the reason follows.
        Some(SignatureState::Unsigned) if !agent.card.signatures.is_empty() => {
            "none: the entries are not valid signatures"
        }
        _ => trust::signature_meaning(state),
    }
}

pub(super) fn signature_tone(state: &OpenEnum<SignatureState>) -> &'static str {
    match state.known_value() {
        Some(SignatureState::Valid) => "good",
        Some(SignatureState::Invalid) => "bad",
        Some(SignatureState::Unknown) => "warn",
        Some(SignatureState::Untrusted | SignatureState::Unsigned) | None => "plain",
    }
}

impl ReportContactView {
    /// The operator's contact, with the agent's page in the mail subject; `None` without a contact.
    pub fn new(contact: &str, page: &str) -> Option<Self> {
        if let Some(mail) = contact.strip_prefix("mailto:") {
            let subject = serde_html_form::to_string([("subject", format!("Report of {page}"))]);
            let subject = subject.ok()?.replace('+', "%20");
            let mark = if mail.contains('?') { '&' } else { '?' };
            let address = format!("mailto:{mail}{mark}{subject}");
            return (address.len() <= ADDRESS && !mail.is_empty()).then_some(Self {
                address,
                web: false,
            });
        }
        let address = text::safe_web_url(contact)?;
        Some(Self { address, web: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_reported_to_the_operators_contact() {
        let page = "https://registry.example.com/agents/a/";
        let report = |contact: &str| ReportContactView::new(contact, page);
        let mail = report("mailto:ops@registry.example.com").map(|one| (one.address, one.web));
        let address = "mailto:ops@registry.example.com?subject=Report%20of%20https%3A%2F%2Fregistry.example.com%2Fagents%2Fa%2F";
        assert_eq!(mail, Some((address.to_owned(), false)));
        let mail = report("mailto:ops@a.example?cc=b@a.example").map(|one| one.address);
        assert!(mail.is_some_and(|mail| mail.contains("?cc=b@a.example&subject=")));
        let web = report("https://registry.example.com/abuse").map(|one| (one.address, one.web));
        assert_eq!(
            web,
            Some(("https://registry.example.com/abuse".to_owned(), true))
        );
        for none in [
            "",
            "mailto:",
            "javascript:alert(1)",
            "ops@registry.example.com",
        ] {
            assert!(report(none).is_none(), "{none}");
        }
    }
}
