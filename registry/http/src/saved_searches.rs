//! Saved searches: words and filters that an account keeps under a name.

use a2a_registry_api::limits::{MAX_SAVED_SEARCHES, MAX_SEARCH_TEXT};
use a2a_registry_api::{NewSavedSearch, SavedSearch, SavedSearchList};
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, ErrorKind, Result};
use a2a_registry_core::names::check_name;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::search::within::Within;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::ids::new_id;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::saved_search;
use a2a_registry_store::saved_searches::saved_searches_of;
use uuid::Uuid;

use crate::problems::problem::Problem;
use crate::requests::query;

pub async fn saved_search_list(context: &Context, caller: &Caller) -> Result<SavedSearchList> {
    let account = caller.demand(Permission::Read)?;
    let mut rows = saved_searches_of(&context.store, account.id).await?;
    rows.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(SavedSearchList {
        searches: rows.into_iter().map(view).collect(),
    })
}

/// Saves a search; one that the account has saved under the same name is replaced.
pub async fn saved_search_put(
    context: &Context,
    caller: &Caller,
    new: &NewSavedSearch,
) -> Result<SavedSearch> {
    let account = caller.demand(Permission::Read)?;
    check_name("/name", &new.name)?;
    let query = checked(context, caller, &new.query).await?;
    let write = context.store.write().await?;
    // Concurrent saves are counted one after the other.
    write.accounts_lock().await?;
    let known = saved_searches_of(&write, account.id).await?;
    let same = known.iter().find(|row| row.name == new.name);
    if same.is_none() && known.len() >= MAX_SAVED_SEARCHES {
        return Err(AppError::limit_reached(format!(
            "You have {MAX_SAVED_SEARCHES} saved searches; delete some first."
        )));
    }
    let now = context.now();
    let row = saved_search::Model {
        id: same.map_or_else(|| new_id(now, context.entropy.as_ref()), |row| row.id),
        account_id: account.id,
        name: new.name.clone(),
        query,
        created_at: same.map_or(now.0, |row| row.created_at),
    };
    write.saved_search_put(row.clone()).await?;
    write.commit().await?;
    Ok(view(row))
}

pub async fn saved_search_delete(context: &Context, caller: &Caller, id: Uuid) -> Result<()> {
    let account = caller.demand(Permission::Read)?;
    let write = context.store.write().await?;
    if !write.saved_search_delete(account.id, id).await? {
        return Err(AppError::no_saved_search(id));
    }
    Ok(write.commit().await?)
}

fn view(row: saved_search::Model) -> SavedSearch {
    SavedSearch {
        id: row.id,
        name: row.name,
        query: row.query,
        created_at: Timestamp(row.created_at),
    }
}

/// The parameters of a search in one form, if it is valid now; without its page and the choice of shown members.
async fn checked(context: &Context, caller: &Caller, text: &str) -> Result<String> {
    let invalid = |detail: String| AppError::invalid("/query", detail);
    if text.chars().count() > MAX_SEARCH_TEXT {
        return Err(invalid(format!("at most {MAX_SEARCH_TEXT} characters")));
    }
    let read: Result<SearchQuery, Problem> = query::read(text.trim_start_matches('?'));
    let mut search = read.map_err(|problem| invalid(problem.to_string()))?;
    search.page_token = None;
    search.page_size = None;
    search.fields = Vec::new();
    let limits = &context.config.limits;
    let usable = async {
        search.mode(context.meanings.serves())?;
        search.request(limits)?;
        Within::load(context, caller, &search.collection).await
    };
    usable.await.map_err(|error| match error.kind {
        ErrorKind::Invalid => invalid(error.public),
        _ => error,
    })?;
    serde_html_form::to_string(&search).map_err(|error| invalid(error.to_string()))
}
