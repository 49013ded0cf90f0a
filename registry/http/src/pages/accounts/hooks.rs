//! Page of the visitor's hooks with their last deliveries, and of the watched agents; and the forms that change them.

use a2a_registry_api::{
    CreatedHook, Hook, HookConfirmation, HookDelivery, HookFilter, NewHook, SavedSearch,
};
use a2a_registry_core::agents::views::require_visible_agent_record;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::hooks::{actions, views, watches};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::hook::{HookFormat, NoticeKind};
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::{moment, render_page, see_other, stay_on_page};
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::visitor::{PermittedVisitor, Visitor};
use crate::saved_searches::saved_search_list;

/// Deliveries of each hook on the page.
const DELIVERIES: u32 = 10;
/// Watched agents on the page.
const WATCHED: usize = 50;

#[derive(Template)]
#[template(path = "hooks.html")]
struct HooksPage {
    frame: Frame,
    now: Timestamp,
    /// Hooks, each with its last deliveries.
    hooks: Vec<(Hook, Vec<HookDelivery>)>,
    /// Watched agents that the visitor sees, each with its name.
    watched: Vec<(Uuid, String)>,
    searches: Vec<SavedSearch>,
    /// Secret and public key of a new hook, which are shown once.
    made: Option<(String, String)>,
    /// What became of a form.
    said: Option<String>,
    problem: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NewHookForm {
    name: String,
    url: String,
    format: String,
    kind: Vec<NoticeKind>,
    watched: String,
    search: String,
}

impl FormFields for NewHookForm {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HookActionForm {
    id: String,
    act: String,
    challenge: String,
    confirm: Confirmation,
}

impl FormFields for HookActionForm {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WatchForm {
    agent: String,
    end: String,
}

impl FormFields for WatchForm {}

pub(crate) async fn show_hooks(visitor: PermittedVisitor<Read>) -> HandlerResult {
    let page = HooksPage::load(&visitor.context, &visitor).await?;
    Ok(render_page(StatusCode::OK, &page))
}

/// Creates a hook, and shows its keys. An error is shown above the forms.
pub(crate) async fn create_hook_from_form(form: PermittedForm<Read, NewHookForm>) -> HandlerResult {
    let fields = &form.fields;
    let new = NewHook {
        name: fields.name.trim().to_owned(),
        url: fields.url.trim().to_owned().into(),
        format: fields.format.parse::<HookFormat>().ok(),
        filter: HookFilter {
            kinds: fields.kind.iter().map(|kind| (*kind).into()).collect(),
            watched: !fields.watched.is_empty(),
            search: fields.search.parse().ok(),
            ..HookFilter::default()
        },
    };
    let created = actions::hook_create(&form.context, &form.visitor.caller, &new).await;
    let mut page = HooksPage::load(&form.context, &form.visitor).await?;
    let status = match created {
        Ok(CreatedHook {
            secret, public_key, ..
        }) => {
            page.made = secret.zip(public_key);
            StatusCode::CREATED
        }
        Err(error) => page.show_error(error),
    };
    Ok(render_page(status, &page))
}

/// Confirms, tests, replays or deletes a hook.
pub(crate) async fn submit_hook_action(form: PermittedForm<Read, HookActionForm>) -> HandlerResult {
    let (context, caller) = (&form.context, &form.visitor.caller);
    if form.fields.act.is_empty() {
        return Ok(stay_on_page());
    }
    let id = form.fields.id.parse();
    let id: Uuid = id.map_err(|_| AppError::no_hook(&form.fields.id))?;
    if form.fields.act == "delete" && !form.fields.confirm.is_given() {
        let hook = views::hook_show(context, caller, id).await?;
        let page = deletion_confirmation_page(context, &form.visitor, &hook);
        return Ok(render_page(StatusCode::OK, &page));
    }
    let done = perform_hook_action(&form, id).await;
    let mut page = HooksPage::load(context, &form.visitor).await?;
    let status = match done {
        Ok(said) => {
            page.said = Some(text::single_line(&said, BLOCK));
            StatusCode::OK
        }
        Err(error) => page.show_error(error),
    };
    Ok(render_page(status, &page))
}

async fn perform_hook_action(
    form: &PermittedForm<Read, HookActionForm>,
    id: Uuid,
) -> Result<String> {
    let (context, caller) = (&form.context, &form.visitor.caller);
    match form.fields.act.as_str() {
        "confirm" => {
            let confirmation = HookConfirmation {
                challenge: form.fields.challenge.clone(),
            };
            let hook = actions::hook_confirm(context, caller, id, &confirmation).await?;
            Ok(format!("The hook {} is {}.", hook.name, hook.state))
        }
        "test" => {
            let test = actions::hook_test(context, caller, id).await?;
            Ok(match test.error {
                None => "The test was delivered.".to_owned(),
                Some(error) => format!("Not confirmed or not delivered: {error}"),
            })
        }
        "replay" => {
            let count = actions::hook_replay(context, caller, id, None).await?;
            Ok(format!("{count} deliveries are sent again."))
        }
        "delete" => {
            actions::hook_delete(context, caller, id).await?;
            Ok("The hook is deleted.".to_owned())
        }
        _ => Err(AppError::invalid("/act", "this is not an action")),
    }
}

fn deletion_confirmation_page(context: &AppContext, visitor: &Visitor, hook: &Hook) -> ConfirmPage {
    let name = text::single_line(&hook.name, LINE);
    ConfirmPage {
        frame: Frame::for_visitor(&context.config(), "account", visitor),
        losses: vec![format!(
            "The hook {name}, with {} deliveries that wait and {} that were given up",
            hook.waiting, hook.dead
        )],
        title: format!("Delete the hook {name}"),
        action: "/account/hooks/act".to_owned(),
        fields: vec![("id", hook.id.to_string()), ("act", "delete".to_owned())],
        button: "Delete the hook",
        back: "/account/hooks".to_owned(),
    }
}

/// Watches an agent, or stops that, and redirects to where the form was.
pub(crate) async fn submit_watch(form: PermittedForm<Read, WatchForm>) -> HandlerResult {
    let (context, caller) = (&form.context, &form.visitor.caller);
    let WatchForm { agent, end } = &form.fields;
    let id = agent.parse();
    let id: Uuid = id.map_err(|_| AppError::no_agent(agent))?;
    if end.is_empty() {
        watches::watch_agent(context, caller, agent).await?;
        return Ok(see_other(&format!("/agents/{id}/#watch")));
    }
    watches::unwatch_agent(context, caller, id).await?;
    Ok(see_other("/account/hooks#watched"))
}

impl HooksPage {
    async fn load(context: &AppContext, visitor: &Visitor) -> Result<Self> {
        let caller = &visitor.caller;
        let list = views::hook_list(context, caller, false, &PageRequest::default()).await?;
        let page = PageRequest {
            page_size: Some(DELIVERIES),
            page_token: None,
        };
        let mut hooks = Vec::with_capacity(list.hooks.len());
        for hook in list.hooks {
            let sent = views::hook_deliveries(context, caller, hook.id, None, &page).await?;
            hooks.push((hook, sent.deliveries));
        }
        let mut watched = Vec::new();
        for agent in watches::watch_list(context, caller).await?.agents {
            // One that disappeared is not shown.
            let seen = require_visible_agent_record(context, caller, &agent.to_string()).await;
            watched.extend(seen.map(|seen| (agent, text::single_line(&seen.card.name, LINE))));
            if watched.len() == WATCHED {
                break;
            }
        }
        Ok(Self {
            frame: Frame::for_visitor(&context.config(), "account", visitor),
            now: context.now(),
            hooks,
            watched,
            searches: saved_search_list(context, caller).await?.searches,
            made: None,
            said: None,
            problem: None,
        })
    }

    /// Shows an error above the forms; returns its status.
    fn show_error(&mut self, error: AppError) -> StatusCode {
        let problem = Problem::from(error);
        crate::pages::log_problem(&problem);
        self.problem = Some(text::single_line(&problem.to_string(), BLOCK));
        problem.kind().status
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pages::tests::api_samples::{AT, ID, admin_frame, hook, read};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| {
            let delivery = json!({
                "id": ID, "kind": text, "subject": text, "at": AT, "state": text, "attempts": 1,
                "due_at": AT, "status": 500, "error": text,
            });
            let search = json!({"id": ID, "name": text, "query": "q=a", "created_at": AT});
            HooksPage {
                frame: admin_frame("account"),
                now: NOW,
                hooks: vec![(read(hook(text)), vec![read(delivery)])],
                watched: Vec::new(),
                searches: vec![read(search)],
                made: None,
                said: None,
                problem: None,
            }
        });
    }
}
