//! Forms that save a search on the search page and delete one on the account page.

use a2a_registry_api::{NewSavedSearch, SavedSearch};
use a2a_registry_core::error::AppError;
use a2a_registry_core::text::{self, BLOCK, LINE};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::pages::render_page;
use crate::pages::search::build_search_page;
use crate::problems::problem::Problem;
use crate::requests::auth::Read;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::saved_searches as saved;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SaveSearchForm {
    name: String,
    query: String,
    confirm: Confirmation,
}

impl FormFields for SaveSearchForm {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeleteSavedSearchForm {
    id: String,
    confirm: Confirmation,
}

impl FormFields for DeleteSavedSearchForm {}

/// Saves a search for the signed-in visitor, and redirects to the account; asks first if another search has that name.
/// An error is shown above the form, which keeps its input.
pub(crate) async fn submit_saved_search(
    form: PermittedForm<Read, SaveSearchForm>,
) -> HandlerResult {
    let new = NewSavedSearch {
        name: form.fields.name.trim().to_owned(),
        query: form.fields.query.clone(),
    };
    if !form.fields.confirm.is_given()
        && let Some(page) = confirm_replacement(&form, &new).await?
    {
        return Ok(render_page(StatusCode::OK, &page));
    }
    let saved = saved::saved_search_put(&form.context, &form.visitor.caller, &new).await;
    let problem = match saved {
        Ok(_) => return Ok(redirect_to_saved_searches()),
        Err(error) => Problem::from(error),
    };
    let (_, found) = build_search_page(&form.context, &form.visitor, &new.query).await;
    let Some(found) = found.with_save_error(&problem, form.fields.name) else {
        return Err(problem);
    };
    crate::pages::log_problem(&problem);
    Ok(render_page(problem.kind().status, &found))
}

/// The page that asks before another search of the same name is lost; `None` if there is none.
async fn confirm_replacement(
    form: &PermittedForm<Read, SaveSearchForm>,
    new: &NewSavedSearch,
) -> Result<Option<ConfirmPage>, Problem> {
    let own = saved::saved_search_list(&form.context, &form.visitor.caller).await?;
    let mut own = own.searches.into_iter();
    let lost = own.find(|search| search.name == new.name && search.query != new.query);
    Ok(lost.map(|lost| ConfirmPage {
        frame: Frame::for_visitor(&form.context.config(), "search", &form.visitor),
        title: format!(
            "Replace the saved search {}",
            text::single_line(&lost.name, LINE)
        ),
        losses: vec![saved_search_line(&lost)],
        action: "/account/searches".to_owned(),
        fields: vec![("name", new.name.clone()), ("query", new.query.clone())],
        button: "Replace the saved search",
        back: format!("/?{}", new.query),
    }))
}

fn saved_search_line(search: &SavedSearch) -> String {
    let name = text::single_line(&search.name, LINE);
    text::single_line(&format!("The saved search {name}: {}", search.query), BLOCK)
}

/// Deletes a saved search of the signed-in visitor after confirmation.
pub(crate) async fn submit_saved_search_deletion(
    form: PermittedForm<Read, DeleteSavedSearchForm>,
) -> HandlerResult {
    let missing = || AppError::no_saved_search(&form.fields.id);
    let id = form.fields.id.parse().map_err(|_| missing())?;
    let caller = &form.visitor.caller;
    if form.fields.confirm.is_given() {
        saved::saved_search_delete(&form.context, caller, id).await?;
        return Ok(redirect_to_saved_searches());
    }
    let own = saved::saved_search_list(&form.context, caller)
        .await?
        .searches;
    let search = own.into_iter().find(|search| search.id == id);
    let search = search.ok_or_else(missing)?;
    let name = text::single_line(&search.name, LINE);
    let confirmation = ConfirmPage {
        frame: Frame::for_visitor(&form.context.config(), "account", &form.visitor),
        title: format!("Delete the saved search {name}"),
        losses: vec![saved_search_line(&search)],
        action: "/account/searches/delete".to_owned(),
        fields: vec![("id", id.to_string())],
        button: "Delete the saved search",
        back: "/account#searches".to_owned(),
    };
    Ok(render_page(StatusCode::OK, &confirmation))
}

fn redirect_to_saved_searches() -> HttpResponse {
    crate::pages::see_other("/account#searches")
}
