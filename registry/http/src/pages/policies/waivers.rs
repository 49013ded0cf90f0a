//! Waivers page, and the forms that grant and end a waiver.

use std::collections::{BTreeMap, BTreeSet};

use a2a_registry_api::limits::{MAX_REASON, MAX_WAIVER_DAYS};
use a2a_registry_api::{NewWaiver, Waiver};
use a2a_registry_core::agents::agent_names::{AgentNameView, load_agent_names};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::policies::waivers::{
    WaiverQuery, end_active_waiver, load_active_waiver, waiver_grant, waiver_list,
};
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::problems::problem::Problem;
use crate::requests::auth::{Approve, Curate, SeeAll};
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::query;
use crate::requests::visitor::{PermittedVisitor, Visitor};

/// Filters in the page's query. Empty ones, which forms send, count as absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WaiverListParams {
    agent: String,
    policy: String,
    ended: String,
    page_token: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GrantWaiverForm {
    agent: String,
    policy: String,
    digest: String,
    days: String,
    reason: String,
}

impl FormFields for GrantWaiverForm {}

#[derive(Debug, Deserialize)]
pub(crate) struct EndWaiverForm {
    id: Uuid,
    #[serde(default)]
    confirm: Confirmation,
}

impl FormFields for EndWaiverForm {}

#[derive(Template)]
#[template(path = "waivers.html")]
struct WaiversPage {
    frame: Frame,
    now: Timestamp,
    filters: WaiverListParams,
    /// Agents and policies of the waivers, to choose from: each agent's id with its name.
    agents: BTreeMap<String, String>,
    policies: BTreeSet<String>,
    /// Waivers, each with its agent.
    waivers: Vec<(Waiver, AgentNameView)>,
    next: Option<String>,
    ends: bool,
    /// Error of a rejected grant, with the input.
    refused: Option<(String, GrantWaiverForm)>,
}

pub(crate) async fn show_waivers(
    visitor: PermittedVisitor<SeeAll>,
    request: HttpRequest,
) -> HandlerResult {
    let filters: WaiverListParams = query::parse_query(request.query_string())?;
    let page = WaiversPage::load(&visitor.context, &visitor, &filters).await?;
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

/// Grants a waiver, and redirects to the agent. An error is shown above the form, which keeps its input.
pub(crate) async fn submit_waiver(form: PermittedForm<Approve, GrantWaiverForm>) -> HandlerResult {
    let fields = form.fields;
    let new = NewWaiver {
        policy: fields.policy.clone(),
        agent: fields.agent.clone(),
        digest: fields.digest.clone(),
        reason: fields.reason.clone(),
        // An invalid number is rejected like 0.
        expires_in_days: fields.days.trim().parse().unwrap_or(0),
    };
    let granted = waiver_grant(&form.context, &form.visitor.caller, &new).await;
    let error = match granted {
        Ok(waiver) => {
            return Ok(crate::pages::see_other(&format!(
                "/agents/{}/#policies",
                waiver.agent
            )));
        }
        Err(error) => error,
    };
    let problem = Problem::from(error);
    crate::pages::log_problem(&problem);
    let filters = WaiverListParams {
        agent: fields.agent.clone(),
        ..WaiverListParams::default()
    };
    let mut page = WaiversPage::load(&form.context, &form.visitor, &filters).await?;
    page.refused = Some((text::single_line(&problem.to_string(), BLOCK), fields));
    Ok(crate::pages::render_page(problem.kind().status, &page))
}

/// Ends a waiver after confirmation, and redirects to the list.
pub(crate) async fn submit_waiver_end(form: PermittedForm<Curate, EndWaiverForm>) -> HandlerResult {
    let (caller, id) = (&form.visitor.caller, form.fields.id);
    if !form.fields.confirm.is_given() {
        let waiver = load_active_waiver(&form.context, caller, id).await?;
        let confirmation =
            waiver_end_confirmation_page(&form.context, &form.visitor, &waiver).await?;
        return Ok(crate::pages::render_page(StatusCode::OK, &confirmation));
    }
    end_active_waiver(&form.context, caller, id).await?;
    Ok(crate::pages::see_other("/waivers"))
}

async fn waiver_end_confirmation_page(
    context: &AppContext,
    visitor: &Visitor,
    waiver: &Waiver,
) -> Result<ConfirmPage> {
    let names = load_agent_names(context, vec![waiver.agent]).await?;
    let agent = AgentNameView::new(waiver.agent, &names).name;
    let policy = text::single_line(&waiver.policy, LINE);
    let expires = moment::format_to_minute(&waiver.expires_at);
    let granted = format!(
        "The waiver of {policy} for {agent}, granted by {} until {expires}: {}",
        waiver.approver, waiver.reason
    );
    let effect = match waiver.is_shown {
        true => format!(
            "{policy} applies to {agent} again immediately, with everything that it forbids."
        ),
        false => format!("{agent} has other effective content, to which {policy} applies anyway."),
    };
    Ok(ConfirmPage {
        frame: Frame::for_visitor(&context.config(), "policies", visitor),
        title: format!("End the waiver of {policy} for {agent}"),
        losses: vec![
            text::single_line(&granted, BLOCK),
            text::single_line(&effect, BLOCK),
        ],
        action: "/waivers/end".to_owned(),
        fields: vec![("id", waiver.id.to_string())],
        button: "End the waiver",
        back: "/waivers".to_owned(),
    })
}

impl WaiverListParams {
    fn to_query(&self) -> WaiverQuery {
        let given = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        WaiverQuery {
            agent: given(&self.agent),
            policy: given(&self.policy),
            ended: !self.ended.is_empty(),
            page_size: None,
            page_token: given(&self.page_token),
        }
    }

    fn next_link(&self, token: &str) -> Option<String> {
        let pairs = [
            ("agent", self.agent.as_str()),
            ("policy", &self.policy),
            ("ended", &self.ended),
            ("page_token", token),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        let given = serde_html_form::to_string(given.collect::<Vec<_>>());
        given.ok().map(|pairs| format!("/waivers?{pairs}"))
    }
}

impl WaiversPage {
    async fn load(
        context: &AppContext,
        visitor: &Visitor,
        filters: &WaiverListParams,
    ) -> Result<Self> {
        let caller = &visitor.caller;
        let list = waiver_list(context, caller, &filters.to_query()).await?;
        let agents = list.waivers.iter().map(|one| one.agent).collect();
        let names = load_agent_names(context, agents).await?;
        let listed_agents = list.waivers.iter().map(|one| {
            let name = AgentNameView::new(one.agent, &names).name;
            (one.agent.to_string(), name)
        });
        // What is chosen stays among the choices, under its identifier if nothing is listed.
        let chosen = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let chosen_agent =
            chosen(&filters.agent).map(|id| (id.clone(), text::single_line(&id, LINE)));
        let agents = chosen_agent.into_iter().chain(listed_agents).collect();
        let policies = list.waivers.iter().map(|one| one.policy.clone());
        let policies = policies.chain(chosen(&filters.policy)).collect();
        let named = |waiver: Waiver| {
            let agent = AgentNameView::new(waiver.agent, &names);
            (waiver, agent)
        };
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "policies", visitor),
            now: context.now(),
            filters: filters.clone(),
            agents,
            policies,
            next: list
                .next_page_token
                .as_deref()
                .and_then(|token| filters.next_link(token)),
            waivers: list.waivers.into_iter().map(named).collect(),
            ends: caller.has_permission(Permission::Curate),
            refused: None,
        })
    }

    fn end_text(waiver: &Waiver) -> String {
        let by = waiver.ended_by.as_deref().unwrap_or_default();
        let why = waiver.ended_reason.as_deref().unwrap_or_default();
        text::single_line(&format!("{why}, by {by}"), LINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, read, waiver};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| {
            let agent = AgentNameView {
                link: None,
                name: "Echo".to_owned(),
            };
            WaiversPage {
                frame: admin_frame("policies"),
                now: NOW,
                filters: WaiverListParams::default(),
                agents: BTreeMap::new(),
                policies: BTreeSet::new(),
                waivers: vec![(read(waiver(text)), agent)],
                next: None,
                ends: true,
                refused: None,
            }
        });
    }
}
