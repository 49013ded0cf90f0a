//! The page of what changed between two versions of an agent's card, with the importance of each change.

use a2a_registry_api::{Change, Diff, Version, VersionList};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use serde_json::Value;

use super::parts::short;
use crate::agents::diff::{DiffQuery, agent_diff};
use crate::agents::views::{agent_show, agent_versions};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;
use crate::http::path::AgentRef;
use crate::http::query;
use crate::http::visitor::Visitor;
use crate::pages::frame::Frame;
use crate::pages::moment::TimeView;
use crate::pages::text;
use crate::pages::text::{ADDRESS, LINE};
use crate::pages::trust::Badge;
use crate::paging::PageRequest;

/// Versions to choose from.
const VERSIONS: u32 = 50;
/// Characters of a value on each side of a change.
const VALUE: usize = 1_500;

/// The page.
#[derive(Template)]
#[template(path = "diff.html")]
pub(crate) struct DiffPage {
    frame: Frame,
    name: String,
    agent: String,
    /// The two versions, or one if it is the first.
    from: Option<VersionView>,
    to: VersionView,
    class: Badge,
    /// What the importance means for these two versions.
    importance: &'static str,
    changes: Vec<ChangeView>,
    cut: bool,
    versions: Vec<ChoiceView>,
    api: String,
}

/// One of the two versions.
struct VersionView {
    short: String,
    digest: String,
    link: String,
    /// When it was first fetched, and its state, if it is among the versions to choose from.
    known: Option<(TimeView, String)>,
}

/// A version to choose.
struct ChoiceView {
    digest: String,
    label: String,
    is_from: bool,
    is_to: bool,
}

/// One change.
pub(crate) struct ChangeView {
    pub pointer: String,
    /// `added`, `removed` or `changed`.
    pub kind: &'static str,
    pub before: Option<String>,
    pub after: Option<String>,
    pub class: Badge,
    pub reason: String,
}

/// The data of the page.
pub(crate) struct DiffMaterial {
    /// The name of the agent.
    pub name: String,
    /// Its id.
    pub agent: String,
    /// The changes.
    pub diff: Diff,
    /// The newest versions that the caller may see.
    pub versions: VersionList,
}

/// Shows what changed between `?from=` and `?to=`, as `GET /v1/agents/{agent}/diff` chooses them.
pub(crate) async fn show(
    context: web::Data<Context>,
    visitor: Visitor,
    AgentRef(agent): AgentRef,
    request: HttpRequest,
) -> HttpResponse {
    let frame = Frame::of(context.config(), "agent", &visitor);
    let caller = &visitor.caller;
    match material(&context, caller, &agent, request.query_string()).await {
        Ok(material) => {
            let page = DiffPage::new(frame, &material, context.now());
            crate::pages::page(StatusCode::OK, &page)
        }
        Err(error) => crate::pages::problems::problem(frame, error),
    }
}

async fn material(
    context: &Context,
    caller: &Caller,
    agent: &str,
    query: &str,
) -> Result<DiffMaterial, AppError> {
    let query = read(query)?;
    let first = PageRequest {
        page_size: Some(VERSIONS),
        page_token: None,
    };
    let (shown, diff, versions) = futures::join!(
        agent_show(context, caller, agent),
        agent_diff(context, caller, agent, &query),
        agent_versions(context, caller, agent, &first),
    );
    let summary = shown?.hit.summary;
    Ok(DiffMaterial {
        name: summary.name,
        agent: summary.id.to_string(),
        diff: diff?,
        versions: versions?,
    })
}

/// The query of the page's address. An empty member, which a form may send, is none.
fn read(query: &str) -> Result<DiffQuery, AppError> {
    let invalid = |text: String| AppError::invalid("/", text);
    if query.len() > ADDRESS {
        return Err(invalid("The address is too long.".to_owned()));
    }
    let query: DiffQuery = query::read(query).map_err(|problem| invalid(problem.to_string()))?;
    let given = |digest: Option<String>| digest.filter(|digest| !digest.is_empty());
    Ok(DiffQuery {
        from: given(query.from),
        to: given(query.to),
    })
}

impl DiffPage {
    /// The page at `now`.
    pub(crate) fn new(frame: Frame, material: &DiffMaterial, now: Timestamp) -> Self {
        let DiffMaterial {
            name,
            agent,
            diff,
            versions,
        } = material;
        let versions = &versions.versions;
        let side = |digest: &str| VersionView::new(digest, agent, versions, now);
        let (from, to) = (text::segment(&diff.from), text::segment(&diff.to));
        Self {
            frame,
            name: text::line(name, LINE),
            from: (diff.from != diff.to).then(|| side(&diff.from)),
            to: side(&diff.to),
            class: class_badge(&diff.change_class),
            importance: importance(diff, versions),
            changes: diff.changes.iter().map(ChangeView::new).collect(),
            cut: diff.cut,
            versions: versions
                .iter()
                .map(|version| ChoiceView::new(version, diff, now))
                .collect(),
            api: format!("/v1/agents/{agent}/diff?from={from}&to={to}"),
            agent: agent.clone(),
        }
    }
}

impl VersionView {
    fn new(digest: &str, agent: &str, versions: &[Version], now: Timestamp) -> Self {
        let known = versions.iter().find(|version| version.digest == digest);
        let shown = text::line(digest, LINE);
        Self {
            short: short(&shown),
            digest: shown,
            link: format!("/v1/agents/{agent}/card?version={}", text::segment(digest)),
            known: known.map(|version| {
                let state = text::line(version.state.as_str(), LINE);
                (TimeView::new(version.observed_at, now), state)
            }),
        }
    }
}

impl ChoiceView {
    fn new(version: &Version, diff: &Diff, now: Timestamp) -> Self {
        let observed = TimeView::new(version.observed_at, now);
        let served = if version.served { ", served" } else { "" };
        let digest = text::line(&version.digest, LINE);
        Self {
            // The end is cut off on a phone, so that it starts with what tells versions apart.
            label: format!("{}{served} · {}", short(&digest), observed.shown),
            digest,
            is_from: version.digest == diff.from,
            is_to: version.digest == diff.to,
        }
    }
}

impl ChangeView {
    /// A change as it is shown.
    pub(crate) fn new(change: &Change) -> Self {
        Self {
            pointer: match change.pointer.as_str() {
                "" => "the whole card".to_owned(),
                pointer => text::line(pointer, 300),
            },
            kind: match (&change.before, &change.after) {
                (None, Some(_)) => "added",
                (Some(_), None) => "removed",
                _ => "changed",
            },
            before: change.before.as_ref().map(shown),
            after: change.after.as_ref().map(shown),
            class: class_badge(&change.class),
            reason: text::line(&change.reason, 500),
        }
    }
}

/// A value as JSON, on several lines where it has members.
fn shown(value: &Value) -> String {
    let json = serde_json::to_string_pretty(value);
    text::block(&json.unwrap_or_default(), VALUE)
}

/// What the importance of a comparison means for its two versions: what waits for a review, and what was decided.
fn importance(diff: &Diff, versions: &[Version]) -> &'static str {
    let class = diff.change_class.known();
    if !matches!(class, Some(ChangeClass::High | ChangeClass::Critical)) {
        return class_meaning(class);
    }
    let sides = [&diff.from, &diff.to];
    let compared: Vec<&Version> = versions
        .iter()
        .filter(|version| sides.contains(&&version.digest))
        .collect();
    let newer = compared.iter().max_by_key(|version| version.observed_at);
    let newer = newer.and_then(|version| version.state.known());
    let are_approved = compared.len() == 2
        && compared
            .iter()
            .all(|version| version.state == VersionState::Approved);
    match newer {
        Some(VersionState::Approved) if are_approved => {
            "A change like this needs a review. Both versions are approved."
        }
        Some(VersionState::Approved) => {
            "A change like this needs a review. The newer version is approved."
        }
        Some(VersionState::Rejected) => {
            "A change like this needs a review. The newer version was rejected."
        }
        Some(VersionState::Superseded) => {
            "A change like this needs a review. Another version came before anybody decided."
        }
        Some(VersionState::Pending) if class == Some(ChangeClass::Critical) => {
            "It needs a review; nothing is served until then."
        }
        Some(VersionState::Pending) => {
            "It needs a review; the version before stays served meanwhile."
        }
        None => class_meaning(class),
    }
}

/// What a class of change means, whatever was decided on it.
const fn class_meaning(class: Option<ChangeClass>) -> &'static str {
    match class {
        Some(ChangeClass::None) => "No client could notice it.",
        Some(ChangeClass::Low) => "A rule may accept a change like this without a review.",
        Some(ChangeClass::High | ChangeClass::Critical) => "A change like this needs a review.",
        None => "Only a later version of this registry knows this class.",
    }
}

/// The badge of the importance of a change.
pub(crate) fn class_badge(class: &OpenEnum<ChangeClass>) -> Badge {
    let tone = match class.known() {
        Some(ChangeClass::None | ChangeClass::Low) | None => "plain",
        Some(ChangeClass::High) => "warn",
        Some(ChangeClass::Critical) => "bad",
    };
    Badge {
        label: text::line(class.as_str(), LINE),
        meaning: class_meaning(class.known()).to_owned(),
        tone,
        link: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn empty_members_of_the_form_are_none_and_others_are_refused() {
        let query = read("from=&to=sha256%3Aab").unwrap();
        assert_eq!((query.from, query.to.as_deref()), (None, Some("sha256:ab")));
        assert_eq!(read("").unwrap(), DiffQuery::default());
        for bad in [
            "form=a",
            "from=a&from=b",
            "to=%zz",
            &format!("to={}", "a".repeat(ADDRESS)),
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
