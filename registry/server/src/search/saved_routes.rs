//! Handlers of saved searches, of the API and of pages.

use a2a_registry_api::{NewSavedSearch, SavedSearch, SavedSearchList};
use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, delete, get, post, web};
use serde::Deserialize;

use crate::context::Context;
use crate::error::AppError;
use crate::http::answer;
use crate::http::auth::{Read, Require};
use crate::http::body::Body;
use crate::http::forms::{FormFields, FormOf};
use crate::http::path::SearchId;
use crate::http::problem::Problem;
use crate::http::state::State;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::page;
use crate::pages::text::{self, BLOCK, LINE};
use crate::search::page::searched;
use crate::search::saved;

/// List the caller's saved searches
#[utoipa::path(
    tag = "agents",
    responses((status = 200, description = "The saved searches, by name", body = SavedSearchList))
)]
#[get("/v1/searches")]
pub async fn saved_search_list(
    caller: Require<Read>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let list = saved::saved_search_list(&state.context, &caller).await?;
    answer::json(StatusCode::OK, &list)
}

/// Save a search
///
/// A search that the caller has saved under the same name is replaced.
#[utoipa::path(
    tag = "agents",
    request_body = NewSavedSearch,
    responses((status = 201, description = "The saved search", body = SavedSearch))
)]
#[post("/v1/searches")]
pub async fn saved_search_put(
    caller: Require<Read>,
    new: Body<NewSavedSearch>,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let made = saved::saved_search_put(&state.context, &caller, &new.0).await?;
    answer::json(StatusCode::CREATED, &made)
}

/// Delete a saved search
#[utoipa::path(
    tag = "agents",
    responses((status = 204, description = "The saved search is deleted"))
)]
#[delete("/v1/searches/{search}")]
pub async fn saved_search_delete(
    caller: Require<Read>,
    search: SearchId,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    saved::saved_search_delete(&state.context, &caller, search.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SaveForm {
    name: String,
    query: String,
}

impl FormFields for SaveForm {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeleteForm {
    id: String,
    confirm: Confirmation,
}

impl FormFields for DeleteForm {}

/// Saves a search for the signed-in visitor, and goes to the account; an error is shown above the form, which keeps its
/// input.
pub(crate) async fn save(
    context: web::Data<Context>,
    form: FormOf<Read, SaveForm>,
) -> Result<HttpResponse, Problem> {
    let new = NewSavedSearch {
        name: form.fields.name.trim().to_owned(),
        query: form.fields.query.clone(),
    };
    let saved = saved::saved_search_put(&context, &form.visitor.caller, &new).await;
    let problem = match saved {
        Ok(_) => return Ok(to_account()),
        Err(error) => Problem::from(error),
    };
    let (_, found) = searched(&context, &form.visitor, &new.query).await;
    let Some(found) = found.with_save_refused(&problem, form.fields.name) else {
        return Err(problem);
    };
    crate::pages::log(&problem);
    Ok(page(problem.kind().status, &found))
}

/// Deletes a saved search of the signed-in visitor, once confirmed.
pub(crate) async fn forget(
    context: web::Data<Context>,
    form: FormOf<Read, DeleteForm>,
) -> Result<HttpResponse, Problem> {
    let missing = || AppError::no_saved_search(&form.fields.id);
    let id = form.fields.id.parse().map_err(|_| missing())?;
    let caller = &form.visitor.caller;
    if form.fields.confirm.is_given() {
        saved::saved_search_delete(&context, caller, id).await?;
        return Ok(to_account());
    }
    let own = saved::saved_search_list(&context, caller).await?.searches;
    let search = own.into_iter().find(|search| search.id == id);
    let search = search.ok_or_else(missing)?;
    let name = text::line(&search.name, LINE);
    let confirmation = ConfirmPage {
        frame: Frame::of(context.config(), "account", &form.visitor),
        title: format!("Delete the saved search {name}"),
        losses: vec![text::line(
            &format!("The saved search {name}: {}", search.query),
            BLOCK,
        )],
        action: "/account/searches/delete".to_owned(),
        fields: vec![("id", id.to_string())],
        button: "Delete the saved search",
        back: "/account#searches".to_owned(),
    };
    Ok(page(StatusCode::OK, &confirmation))
}

fn to_account() -> HttpResponse {
    HttpResponse::SeeOther()
        .insert_header((LOCATION, "/account#searches"))
        .finish()
}
