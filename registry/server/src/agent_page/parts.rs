//! The parts of an agent's page, formatted for the template.

use a2a_registry_api::{Agent, BreakGlass, Deprecation, HoldView as Hold, Version, VersionList};
use a2a_registry_domain::lifecycle::Hold as HoldKind;
use a2a_registry_domain::timestamp::Timestamp;

use crate::agent_page::is_listed;
use crate::pages::moment::TimeView;
use crate::pages::text;
use crate::pages::text::{BLOCK, LINE};

/// The deprecation of the agent.
pub(crate) struct DeprecationView {
    pub message: String,
    pub since: TimeView,
    pub sunset: Option<TimeView>,
    /// Whether that time has passed.
    pub has_passed: bool,
    pub replacement: Option<String>,
}

/// A hold on the agent.
pub(crate) struct HoldView {
    pub hold: String,
    /// What ends it, for one that does not say so itself.
    pub meaning: &'static str,
    pub reason: String,
    pub since: TimeView,
}

/// The newest versions of the card.
pub(crate) struct VersionsView {
    pub versions: Vec<VersionView>,
    pub more: bool,
    /// Whether clients get the served one.
    pub is_listed: bool,
}

/// One version of the card.
pub(crate) struct VersionView {
    pub digest: String,
    pub short: String,
    pub link: String,
    pub observed: TimeView,
    pub state: String,
    pub change: String,
    /// The page of what changed since the version before; `None` for the first one.
    pub diff: Option<String>,
    pub family: String,
    pub served: bool,
    pub signature: String,
    pub signature_reason: String,
}

impl DeprecationView {
    pub fn new(deprecation: &Deprecation, now: Timestamp) -> Self {
        Self {
            message: text::block(&deprecation.message, BLOCK),
            since: TimeView::new(deprecation.since, now),
            sunset: TimeView::maybe(deprecation.sunset, now),
            has_passed: deprecation.has_passed(now),
            replacement: deprecation.replacement.map(|agent| agent.to_string()),
        }
    }
}

/// An approval of one account alone.
pub(crate) struct GlassView {
    pub by: String,
    pub reason: String,
    pub at: TimeView,
    pub until: TimeView,
}

impl GlassView {
    pub fn maybe(broken: Option<&BreakGlass>, now: Timestamp) -> Option<Self> {
        broken.map(|broken| Self {
            by: text::line(&broken.by, LINE),
            reason: text::block(&broken.reason, BLOCK),
            at: TimeView::new(broken.at, now),
            until: TimeView::new(broken.until, now),
        })
    }
}

impl HoldView {
    pub fn new(hold: &Hold, now: Timestamp) -> Self {
        Self {
            hold: text::line(hold.hold.as_str(), LINE),
            meaning: match hold.hold.known() {
                Some(HoldKind::Policy) => {
                    "A policy does not admit what this agent shows. The hold ends with other content or other policies, or when a curator waives the policy for this content."
                }
                _ => "",
            },
            reason: text::block(&hold.reason, BLOCK),
            since: TimeView::new(hold.since, now),
        }
    }
}

impl VersionsView {
    /// The view of the newest versions of an agent, at most `most` of those in the list. Each is compared with the one
    /// after it in the list, so the list has one more where there are more.
    pub fn new(list: &VersionList, agent: &Agent, most: usize, now: Timestamp) -> Self {
        let id = agent.hit.summary.id.to_string();
        let before = list.versions.iter().skip(1).map(Some).chain([None]);
        let pairs = list.versions.iter().zip(before).take(most);
        Self {
            more: list.next_page_token.is_some() || list.versions.len() > most,
            versions: pairs
                .map(|(version, before)| VersionView::new(version, before, &id, now))
                .collect(),
            is_listed: is_listed(agent),
        }
    }
}

impl VersionView {
    fn new(version: &Version, before: Option<&Version>, agent: &str, now: Timestamp) -> Self {
        let digest = text::line(&version.digest, LINE);
        let diff = |before: &Version| {
            let (from, to) = (
                text::segment(&before.digest),
                text::segment(&version.digest),
            );
            format!("/agents/{agent}/diff?from={from}&to={to}")
        };
        Self {
            short: short(&digest),
            link: format!(
                "/v1/agents/{agent}/card?version={}",
                text::segment(&version.digest)
            ),
            digest,
            observed: TimeView::new(version.observed_at, now),
            state: text::line(version.state.as_str(), LINE),
            change: match &version.change_class {
                Some(class) => text::line(class.as_str(), LINE),
                None => "first card".to_owned(),
            },
            diff: before.map(diff),
            family: text::line(&version.wire_family, 20),
            served: version.served,
            signature: text::line(version.signature_verdict.state.as_str(), LINE),
            signature_reason: text::line(&version.signature_verdict.reason, 500),
        }
    }
}

/// The first digits of a digest, which tell the versions of one agent apart.
pub(crate) fn short(digest: &str) -> String {
    digest.chars().skip("sha256:".len()).take(12).collect()
}
