//! Saved searches: texts and filters that an account stores under a name.

use a2a_registry_api::limits::{MAX_SAVED_SEARCH_CHARS, MAX_SAVED_SEARCHES};
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{NewSavedSearch, SavedSearch, SavedSearchList};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, ErrorKind, Result};
use a2a_registry_core::hooks::actions::require_unused_search;
use a2a_registry_core::name_rules::check_name;
use a2a_registry_core::search::collection_scope::CollectionScope;
use a2a_registry_core::search::query::{build_search_request, resolve_search_mode};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::identifiers::new_uuid;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::saved_search;
use a2a_registry_store::saved_searches::saved_searches_by_account;
use uuid::Uuid;

use crate::problems::problem::Problem;
use crate::requests::query;

pub async fn saved_search_list(context: &AppContext, caller: &Caller) -> Result<SavedSearchList> {
    let account = caller.require_permission(Permission::Read)?;
    let mut rows = saved_searches_by_account(&context.store, account.id).await?;
    rows.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(SavedSearchList {
        searches: rows.into_iter().map(saved_search_view).collect(),
    })
}

/// Saves a search, replacing one that the account has saved under the same name.
pub async fn saved_search_put(
    context: &AppContext,
    caller: &Caller,
    new: &NewSavedSearch,
) -> Result<SavedSearch> {
    let account = caller.require_permission(Permission::Read)?;
    check_name("/name", &new.name)?;
    let query = canonical_search_query(context, caller, &new.query).await?;
    let write = context.store.begin_write().await?;
    // The lock serializes concurrent saves for the count.
    write.lock_accounts().await?;
    let existing = saved_searches_by_account(&write, account.id).await?;
    let same = existing.iter().find(|row| row.name == new.name);
    if same.is_none() && existing.len() >= MAX_SAVED_SEARCHES {
        return Err(AppError::limit_reached(format!(
            "You have {MAX_SAVED_SEARCHES} saved searches, which is the maximum. Delete one first."
        )));
    }
    let now = context.now();
    let row = saved_search::Model {
        id: same.map_or_else(|| new_uuid(now, context.entropy.as_ref()), |row| row.id),
        account_id: account.id,
        name: new.name.clone(),
        query,
        created_at: same.map_or(now.0, |row| row.created_at),
    };
    write.upsert_saved_search(row.clone()).await?;
    // Hooks are told what the change of the search changes.
    write
        .request_hook_comparison(Some(account.id), now.0)
        .await?;
    write.commit().await?;
    Ok(saved_search_view(row))
}

pub async fn saved_search_delete(context: &AppContext, caller: &Caller, id: Uuid) -> Result<()> {
    let account = caller.require_permission(Permission::Read)?;
    let write = context.store.begin_write().await?;
    require_unused_search(&write, account.id, id).await?;
    if !write.delete_saved_search(account.id, id).await? {
        return Err(AppError::no_saved_search(id));
    }
    Ok(write.commit().await?)
}

fn saved_search_view(row: saved_search::Model) -> SavedSearch {
    SavedSearch {
        id: row.id,
        name: row.name,
        query: row.query,
        created_at: Timestamp(row.created_at),
    }
}

/// Canonical parameters of a search, without page and field selection. Fails if the search is not valid now.
async fn canonical_search_query(
    context: &AppContext,
    caller: &Caller,
    text: &str,
) -> Result<String> {
    let invalid = |detail: String| AppError::invalid("/query", detail);
    if text.chars().count() > MAX_SAVED_SEARCH_CHARS {
        return Err(invalid(format!(
            "must have at most {MAX_SAVED_SEARCH_CHARS} characters"
        )));
    }
    let read: Result<SearchQuery, Problem> = query::parse_query(text.trim_start_matches('?'));
    let mut search = read.map_err(|problem| invalid(problem.to_string()))?;
    search.page_token = None;
    search.page_size = None;
    search.fields = Vec::new();
    let limits = &context.config().limits;
    let validation = async {
        resolve_search_mode(&search, context.semantic_search.has_model())?;
        build_search_request(&search, limits)?;
        CollectionScope::load(context, caller, &search.collection).await
    };
    validation.await.map_err(|error| match error.kind {
        ErrorKind::Invalid => invalid(error.public),
        _ => error,
    })?;
    serde_html_form::to_string(&search).map_err(|error| invalid(error.to_string()))
}
