//! Handlers for hooks and watched agents.

use a2a_registry_api::limits::PageSize;
use a2a_registry_api::{
    CreatedHook, Hook, HookConfirmation, HookDeliveryList, HookList, HookReplay, HookReplayed,
    HookTest, NewHook, WatchList, deserialize_nonempty_parameter,
};
use a2a_registry_core::agents::views::require_visible_agent;
use a2a_registry_core::hooks::{actions, views, watches};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_domain::hook::DeliveryState;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, delete, get, post, put};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Read, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::{AgentRef, HookId};
use crate::requests::query::Query;

/// Query parameters that choose hooks.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct HookQuery {
    /// Whether to list the hooks of all accounts, for admins.
    all: bool,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<PageSize>, inline)]
    page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    page_token: Option<String>,
}

/// Query parameters that choose deliveries.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryQuery {
    /// Only deliveries in this state.
    #[param(inline)]
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    state: Option<DeliveryState>,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<PageSize>, inline)]
    page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    page_token: Option<String>,
}

/// List hooks, the newest first
///
/// Lists the hooks of the caller or, for admins with `all`, the hooks of all accounts.
#[utoipa::path(
    params(HookQuery),
    responses((status = 200, description = "A page of hooks", body = HookList))
)]
#[get("/v1/hooks")]
pub async fn hook_list(caller: Require<Read>, query: Query<HookQuery>) -> HandlerResult {
    let HookQuery {
        all,
        page_size,
        page_token,
    } = query.0;
    let page = PageRequest {
        page_size,
        page_token,
    };
    let list = views::hook_list(&caller.context, &caller, all, &page).await?;
    response::json_response(StatusCode::OK, &list)
}

/// Create a hook
///
/// The registry sends a challenge to the URL. The receiver returns it in its response, as text or as the member
/// `challenge`, or a person sends it to `:confirm`. The keys appear only in this response. Deliveries are signed
/// according to Standard Webhooks. A mail address gets a link, whose page confirms the hook.
#[utoipa::path(
    request_body = NewHook,
    responses(
        (status = 201, description = "The hook, with its keys", body = CreatedHook),
        (status = 409, description = "The caller has a hook of this name, or the registry lacks a key or a mail server"),
    )
)]
#[post("/v1/hooks")]
pub async fn hook_create(caller: Require<Read>, new: JsonBody<NewHook>) -> HandlerResult {
    let hook = actions::hook_create(&caller.context, &caller, &new.0).await?;
    response::uncached_json(StatusCode::CREATED, &hook)
}

/// Show a hook
#[utoipa::path(responses((status = 200, description = "The hook", body = Hook)))]
#[get("/v1/hooks/{hook}")]
pub async fn hook_show(caller: Require<Read>, hook: HookId) -> HandlerResult {
    let hook = views::hook_show(&caller.context, &caller, hook.0).await?;
    response::json_response(StatusCode::OK, &hook)
}

/// Delete a hook, with its deliveries
#[utoipa::path(responses((status = 204, description = "The hook is deleted")))]
#[delete("/v1/hooks/{hook}")]
pub async fn hook_delete(caller: Require<Read>, hook: HookId) -> HandlerResult {
    actions::hook_delete(&caller.context, &caller, hook.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Confirm a hook by the challenge that its receiver got
#[utoipa::path(
    request_body = HookConfirmation,
    responses(
        (status = 200, description = "The hook", body = Hook),
        (status = 409, description = "The registry has lost the key of the hook"),
    )
)]
#[post("/v1/hooks/{hook}:confirm")]
pub async fn hook_confirm(
    caller: Require<Read>,
    hook: HookId,
    confirmation: JsonBody<HookConfirmation>,
) -> HandlerResult {
    let hook = actions::hook_confirm(&caller.context, &caller, hook.0, &confirmation.0).await?;
    response::json_response(StatusCode::OK, &hook)
}

/// Send a test delivery or, while a hook is unconfirmed, the challenge again
#[utoipa::path(
    responses(
        (status = 200, description = "Result of the delivery", body = HookTest),
        (status = 409, description = "The receiver has ended the hook, or the registry has lost its key"),
    )
)]
#[post("/v1/hooks/{hook}:test")]
pub async fn hook_test(caller: Require<Read>, hook: HookId) -> HandlerResult {
    let tested = actions::hook_test(&caller.context, &caller, hook.0).await?;
    response::json_response(StatusCode::OK, &tested)
}

/// Give a hook new keys
///
/// For one day, deliveries are signed with the previous keys as well.
#[utoipa::path(
    responses(
        (status = 200, description = "The hook, with its new keys", body = CreatedHook),
        (status = 409, description = "The registry has lost the key of the hook, or it sends mails, which have none"),
    )
)]
#[post("/v1/hooks/{hook}:rotate")]
pub async fn hook_rotate(caller: Require<Read>, hook: HookId) -> HandlerResult {
    let hook = actions::hook_rotate(&caller.context, &caller, hook.0).await?;
    response::uncached_json(StatusCode::OK, &hook)
}

/// Send deliveries again
#[utoipa::path(
    request_body = HookReplay,
    responses(
        (status = 200, description = "How many are sent again", body = HookReplayed),
        (status = 409, description = "The hook is not active"),
    )
)]
#[post("/v1/hooks/{hook}:replay")]
pub async fn hook_replay(
    caller: Require<Read>,
    hook: HookId,
    replay: JsonBody<HookReplay>,
) -> HandlerResult {
    let delivery = replay.0.delivery;
    let deliveries = actions::hook_replay(&caller.context, &caller, hook.0, delivery).await?;
    response::json_response(StatusCode::OK, &HookReplayed { deliveries })
}

/// List the deliveries of a hook, the newest first
#[utoipa::path(
    params(DeliveryQuery),
    responses((status = 200, description = "A page of deliveries", body = HookDeliveryList))
)]
#[get("/v1/hooks/{hook}/deliveries")]
pub async fn hook_deliveries(
    caller: Require<Read>,
    hook: HookId,
    query: Query<DeliveryQuery>,
) -> HandlerResult {
    let DeliveryQuery {
        state,
        page_size,
        page_token,
    } = query.0;
    let page = PageRequest {
        page_size,
        page_token,
    };
    let list = views::hook_deliveries(&caller.context, &caller, hook.0, state, &page).await?;
    response::json_response(StatusCode::OK, &list)
}

/// List the agents that the caller watches
#[utoipa::path(
    tag = "hooks",
    responses((status = 200, description = "The watched agents", body = WatchList))
)]
#[get("/v1/me/watches")]
pub async fn watch_list(caller: Require<Read>) -> HandlerResult {
    let list = watches::watch_list(&caller.context, &caller).await?;
    response::json_response(StatusCode::OK, &list)
}

/// Watch an agent
///
/// The caller's hooks whose filter has `watched` then send notices about this agent too.
#[utoipa::path(
    tag = "hooks",
    responses(
        (status = 200, description = "The watched agents", body = WatchList),
        (status = 404, description = "The agent is not registered"),
    )
)]
#[put("/v1/agents/{agent}/watch")]
pub async fn agent_watch(caller: Require<Read>, agent: AgentRef) -> HandlerResult {
    let list = watches::watch_agent(&caller.context, &caller, &agent.0).await?;
    response::json_response(StatusCode::OK, &list)
}

/// Stop watching an agent
#[utoipa::path(
    tag = "hooks",
    responses((status = 204, description = "The agent is not watched"))
)]
#[delete("/v1/agents/{agent}/watch")]
pub async fn agent_unwatch(caller: Require<Read>, agent: AgentRef) -> HandlerResult {
    let id = match agent.0.parse() {
        Ok(id) => id,
        // An agent that disappeared is known by its id alone.
        Err(_) => {
            require_visible_agent(&caller.context, &caller, &agent.0)
                .await?
                .id
        }
    };
    watches::unwatch_agent(&caller.context, &caller, id).await?;
    Ok(HttpResponse::NoContent().finish())
}
