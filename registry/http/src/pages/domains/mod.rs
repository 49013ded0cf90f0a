//! Domain page: the domain's sources, their results, and how to prove the domain.

pub mod credential_form;
pub mod lint_form;
pub mod my_domains;
pub mod owner_vouch;
pub mod parts;
pub mod progress;
pub mod register;
pub mod withdrawal;

use std::collections::HashMap;

use a2a_crawler::foreign_text::MAX_SUMMARY;
use a2a_registry_api::limits::{MAX_CREDENTIAL_CHARS, MAX_REASON, MAX_VOUCH_DAYS};
use a2a_registry_api::{DomainView, SourceView};
use a2a_registry_core::agents::views::{agent_show, caller_owns_agent};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::error::{ErrorKind, Result};
use a2a_registry_core::text::{self, ADDRESS, BLOCK, LINE};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::source::SourceState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::reviews::open_reviews_by_agent;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use credential_form::{CredentialFormView, KINDS};
use owner_vouch::OwnerVouchFormView;
use parts::AgentLinkView;
use progress::DomainProgressView;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::{moment, trust};
use crate::requests::auth::Register;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::DomainRef;
use crate::requests::visitor::Visitor;

/// Maximum number of page reloads while the first visit is in progress, one every two seconds.
const MAX_RELOADS: u32 = 20;
pub(crate) const NEW: SourceState = SourceState::New;
/// Maximum number of proofs, challenges, sources and agents on the page.
const LIST: usize = 60;

#[derive(Template)]
#[template(path = "domain.html")]
pub(crate) struct DomainPage {
    frame: Frame,
    now: Timestamp,
    view: DomainView,
    standing: DomainProgressView,
    /// Form for admins, if the host cannot be proved.
    owner_vouch_form: Option<OwnerVouchFormView>,
    /// Form for those who may set credentials of sources.
    credential_form: Option<CredentialFormView>,
    verify: String,
    /// Reason why the domain cannot be proved, unless a step shows it or an admin vouches for the owner.
    no_challenge: Option<String>,
    agents: Vec<AgentLinkView>,
    /// Reasons why parts of the domain are not listed, for callers who may see them.
    not_listed: Vec<String>,
    /// Whether the first visit is in progress.
    waiting: bool,
    /// Set if the page is the response to a registration.
    registered_now: Option<RegistrationNotice>,
}

#[derive(Debug, Clone)]
pub(crate) struct DomainAgentRow {
    pub id: String,
    pub name: String,
    pub description: String,
    /// Lifecycle; `None` if this build does not know it.
    pub lifecycle: Option<ShownLifecycle>,
    /// Page of the agent's open review, for callers who may see it.
    pub review: Option<String>,
}

/// Notice for a visitor who has just registered the domain.
struct RegistrationNotice {
    /// Whether no source has been fetched yet.
    under_way: bool,
    /// Public page of the domain, visible once an agent of the domain is listed.
    link: String,
    /// Command that shows the details to the registering account.
    command: String,
}

/// Page for a domain that does not exist or is hidden; both look the same.
#[derive(Template)]
#[template(path = "nothing.html")]
struct UnknownDomainPage {
    frame: Frame,
    domain: String,
    waiting: bool,
    command: String,
}

/// Shows a domain. `?wait=N` makes the page reload itself while the first visit is in progress.
pub(crate) async fn show_domain(
    context: web::Data<AppContext>,
    visitor: Visitor,
    DomainRef(domain): DomainRef,
    request: HttpRequest,
) -> HttpResponse {
    let frame = Frame::for_visitor(&context.config(), "domain", &visitor);
    let caller = &visitor.caller;
    let reload_count = parse_page_reload_count(request.query_string());
    match domain_show(&context, caller, &domain).await {
        Ok(view) => {
            let page = DomainPage::load(&context, &visitor, view, reload_count).await;
            crate::pages::render_page(StatusCode::OK, &page)
        }
        Err(error) if error.kind == ErrorKind::NotFound => {
            let registry = context.config().public_url();
            crate::pages::render_page(
                StatusCode::NOT_FOUND,
                &UnknownDomainPage::new(frame, &domain, reload_count, &registry),
            )
        }
        Err(error) => crate::pages::problems::framed_error_page(frame, error),
    }
}

/// Form that starts a check of the domain's proofs; it has no fields.
#[derive(Deserialize)]
pub(crate) struct VerifyDomainForm {}

impl FormFields for VerifyDomainForm {}

/// Checks the proofs of a domain, and shows the domain with the results.
pub(crate) async fn verify_domain(
    DomainRef(domain): DomainRef,
    form: PermittedForm<Register, VerifyDomainForm>,
) -> HandlerResult {
    domain_verify(&form.context, &form.visitor.caller, &domain).await?;
    let here = format!("/domains/{}#ownership", text::path_segment(&domain));
    Ok(crate::pages::see_other(&here))
}

/// Page of a domain that this caller has just registered.
pub(crate) async fn registered_domain_page(
    context: &AppContext,
    caller: &Caller,
    view: DomainView,
    under_way: bool,
) -> HttpResponse {
    let frame = Frame::new(&context.config(), "register");
    let agent_rows = load_domain_agent_rows(context, caller, &view, LIST).await;
    let registered_now = RegistrationNotice {
        under_way,
        link: format!("/domains/{}?wait=1", text::path_segment(&view.domain)),
        command: domain_show_command(&view.domain, &context.config().public_url()),
    };
    let mut page = DomainPage::new(frame, view, agent_rows, None, context.now());
    page.registered_now = Some(registered_now);
    crate::pages::render_page(StatusCode::OK, &page)
}

fn domain_show_command(domain: &str, registry: &str) -> String {
    format!(
        "a2a-registry domain show {} \\\n  --registry {} --token \"$A2A_REGISTRY_TOKEN\"",
        a2a_registry_core::text::quote::shell_word(domain),
        a2a_registry_core::text::quote::shell_word(registry)
    )
}

/// Loads the domain's agents that this caller may see. They come from the database, because the index may not yet have
/// an agent that the first visit has just found.
async fn load_domain_agent_rows(
    context: &AppContext,
    caller: &Caller,
    view: &DomainView,
    limit: usize,
) -> Vec<DomainAgentRow> {
    let mut agent_rows = Vec::new();
    let ids: Vec<Uuid> = view.agents.iter().take(limit).copied().collect();
    let reviews = find_open_reviews(context, caller, &ids).await;
    let reviews = reviews.unwrap_or_default();
    for id in ids {
        let review = reviews.get(&id).map(|review| format!("/reviews/{review}"));
        let id = id.to_string();
        if let Ok(agent) = agent_show(context, caller, &id).await {
            let summary = agent.hit.summary;
            agent_rows.push(DomainAgentRow {
                id,
                name: summary.name,
                description: summary.description.unwrap_or_default(),
                lifecycle: summary.lifecycle.known_value(),
                review,
            });
        }
    }
    agent_rows
}

/// Finds the open reviews of these agents' cards that the caller may see.
async fn find_open_reviews(
    context: &AppContext,
    caller: &Caller,
    agents: &[Uuid],
) -> Result<HashMap<Uuid, Uuid>> {
    let mut review_by_agent = HashMap::new();
    if caller.account.is_none() {
        return Ok(review_by_agent);
    }
    let rows = agents_by_ids(&context.store, agents).await?;
    for review in open_reviews_by_agent(&context.store, agents).await? {
        let row = rows.iter().find(|row| row.id == review.agent_id);
        let Some(row) = row.filter(|_| review.kind == ReviewKind::Admission) else {
            continue;
        };
        if caller.has_permission(Permission::SeeAll)
            || caller_owns_agent(context, caller, row).await?
        {
            review_by_agent.insert(row.id, review.id);
        }
    }
    Ok(review_by_agent)
}

/// Parses the number of reloads so far; `None` if the page does not wait.
fn parse_page_reload_count(query: &str) -> Option<u32> {
    query.strip_prefix("wait=")?.parse().ok()
}

/// Makes the page reload again, unless it has reached [`MAX_RELOADS`].
fn schedule_page_reload(frame: &mut Frame, domain: &str, reload_count: Option<u32>) -> bool {
    let Some(count) = reload_count.filter(|count| (1..=MAX_RELOADS).contains(count)) else {
        return false;
    };
    frame.refresh = Some(format!(
        "/domains/{}?wait={}",
        text::path_segment(domain),
        count + 1
    ));
    true
}

impl UnknownDomainPage {
    fn new(mut frame: Frame, domain: &str, reload_count: Option<u32>, registry: &str) -> Self {
        let waiting = schedule_page_reload(&mut frame, domain, reload_count);
        Self {
            frame,
            domain: text::single_line(domain, LINE),
            waiting,
            command: domain_show_command(domain, registry),
        }
    }
}

impl DomainPage {
    async fn load(
        context: &AppContext,
        visitor: &Visitor,
        view: DomainView,
        reload_count: Option<u32>,
    ) -> Self {
        let frame = Frame::for_visitor(&context.config(), "domain", visitor);
        let names = load_domain_agent_rows(context, &visitor.caller, &view, LIST).await;
        let form = OwnerVouchFormView::for_caller(&view, &visitor.caller);
        let credential_form = CredentialFormView::for_caller(&view, &visitor.caller);
        let mut page = Self::new(frame, view, names, reload_count, context.now());
        page.owner_vouch_form = form;
        page.credential_form = credential_form;
        let mut steps = page.standing.steps.iter_mut();
        if let (Some(form), Some(step)) =
            (&page.owner_vouch_form, steps.find(|step| step.impossible))
        {
            step.link = Some(("#vouch-for-owner".to_owned(), form.summary));
        }
        page
    }

    pub(crate) fn new(
        mut frame: Frame,
        view: DomainView,
        agent_rows: Vec<DomainAgentRow>,
        reload_count: Option<u32>,
        now: Timestamp,
    ) -> Self {
        // Attempts are hidden from some callers, but the state of a source is not.
        let under_way = view.sources.iter().any(|source| source.state == NEW);
        let waiting = (under_way || view.agents.is_empty())
            && schedule_page_reload(&mut frame, &view.domain, reload_count);
        let mut standing = DomainProgressView::new(&view, &agent_rows);
        if let (false, Some(approval)) = (view.not_listed.is_empty(), standing.steps.last_mut()) {
            // The reasons are a list of their own.
            approval.text.clear();
        }
        let agents = view.agents.iter().take(LIST);
        let not_listed = view.not_listed.iter().take(LIST);
        Self {
            frame,
            now,
            waiting,
            no_challenge: view
                .no_challenge
                .as_deref()
                .filter(|_| standing.steps.is_empty() && view.owner_vouch.is_none())
                .map(|reason| text::single_line(reason, ADDRESS)),
            standing,
            registered_now: None,
            owner_vouch_form: None,
            credential_form: None,
            verify: format!(
                "a2a-registry domain verify {}",
                a2a_registry_core::text::quote::shell_word(&view.domain)
            ),
            not_listed: not_listed
                .map(|reason| text::single_line(&remove_agent_ids(reason, &view.agents), BLOCK))
                .collect(),
            agents: agents
                .map(|id| AgentLinkView::new(&id.to_string(), &agent_rows))
                .collect(),
            view,
        }
    }

    /// Sources where nothing is published, or all others, up to the limit of the page.
    fn sources(&self, are_absent: bool) -> Vec<&SourceView> {
        let is_wanted = |source: &&SourceView| (source.state == SourceState::Absent) == are_absent;
        let wanted = self.view.sources.iter().filter(is_wanted);
        wanted.take(LIST).collect()
    }

    /// Whether there are fetch results that this caller may not see.
    fn hides_fetch_results(&self) -> bool {
        self.sources(false).into_iter().any(|source| {
            let is_fetched = source.state != NEW && source.state != SourceState::Recorded;
            is_fetched && parts::latest_fetch_attempts(source).is_empty()
        })
    }
}

/// Removes the ids after the names of these agents from a sentence, because they do not help people.
fn remove_agent_ids(sentence: &str, agents: &[Uuid]) -> String {
    let mut ids = agents.iter().map(|id| format!(" ({id})"));
    match ids.find(|id| sentence.contains(id)) {
        Some(id) => sentence.replacen(&id, "", 1),
        None => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reloads_itself_so_often_and_no_more() {
        assert_eq!(parse_page_reload_count("wait=3"), Some(3));
        for other in ["", "wait=", "wait=-1", "wait=1&x", "wait=99999999999"] {
            assert_eq!(parse_page_reload_count(other), None, "{other}");
        }
        let mut frame = Frame::new(&a2a_registry_core::config::Config::default(), "domain");
        assert!(schedule_page_reload(
            &mut frame,
            "a.example:8443",
            Some(MAX_RELOADS)
        ));
        let last = format!("/domains/a.example:8443?wait={}", MAX_RELOADS + 1);
        assert_eq!(frame.refresh.as_deref(), Some(last.as_str()));
        assert!(!schedule_page_reload(
            &mut frame,
            "a.example",
            Some(MAX_RELOADS + 1)
        ));
        assert!(!schedule_page_reload(&mut frame, "a.example", Some(0)));
    }
}
