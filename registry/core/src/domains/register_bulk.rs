//! Registration in bulk: many domains and card URLs in one request, each with its own result.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_api::limits::MAX_BULK_REGISTRATIONS;
use a2a_registry_api::{Registration, SourceView};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::domains;

use crate::commit::admission_policies::load_admission_policies;
use crate::commit::committed_changes::CommittedChanges;
use crate::commit::publish::await_searchable_agents;
use crate::context::AppContext;
use crate::domains::domain_rows::DomainRows;
use crate::domains::presenter::DomainPresenter;
use crate::domains::register::{check_registration, enforce_register_policy};
use crate::domains::register_batch::{
    CheckedRegistration, accepted_registrations, write_registrations,
};
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// The result of one registration of a bulk: the domain, and the sources that it named.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredSources {
    pub domain: String,
    /// The sources as the caller sees them.
    pub sources: Vec<SourceView>,
}

/// Maximum number of registrations that a bulk writes in one transaction, for which other writes wait.
const BATCH_SIZE: usize = 100;

/// Registers many domains and card URLs in order, each as if it were sent alone. A refused one does not stop the
/// others. If the database fails later, what was already written stays; sending the bulk again gets the same results.
pub async fn register_bulk(
    context: &AppContext,
    caller: &Caller,
    registrations: &[Registration],
) -> Result<Vec<Result<RegisteredSources>>> {
    caller.require_permission(Permission::Register)?;
    if !(1..=MAX_BULK_REGISTRATIONS).contains(&registrations.len()) {
        return Err(AppError::invalid(
            "/registrations",
            format!("a request has 1 to {MAX_BULK_REGISTRATIONS} registrations"),
        ));
    }
    let set = load_admission_policies(context, &context.store).await?;
    let mut results = Vec::with_capacity(registrations.len());
    let mut visible_changes = Vec::new();
    let mut database_error: Option<AppError> = None;
    for chunk in registrations.chunks(BATCH_SIZE) {
        // If the database fails now, it would fail for all that follow too, after another wait for each.
        if let Some(error) = &database_error {
            results.extend(chunk.iter().map(|_| Err(error.clone())));
            continue;
        }
        let checked: Vec<_> = chunk
            .iter()
            .map(|one| {
                let admitted = check_registration(context, caller, one)?;
                enforce_register_policy(context, caller, &set, &admitted)?;
                Ok(admitted)
            })
            .collect();
        let registered = register_chunk(context, caller, checked, &mut visible_changes).await;
        let mut errors = registered.iter().filter_map(|one| one.as_ref().err());
        database_error = errors.find(|error| error.is_database_failure()).cloned();
        results.extend(registered);
    }
    let shown: Vec<&CommittedChanges> = visible_changes.iter().collect();
    await_searchable_agents(context, &shown).await;
    Ok(results)
}

/// Writes the admitted registrations together, or one by one if that fails, so that an unreadable row affects only its
/// own registration.
async fn register_chunk(
    context: &AppContext,
    caller: &Caller,
    chunk: Vec<Result<CheckedRegistration>>,
    visible_changes: &mut Vec<CommittedChanges>,
) -> Vec<Result<RegisteredSources>> {
    let mut refusals = Vec::with_capacity(chunk.len());
    let mut admitted = Vec::with_capacity(chunk.len());
    for registration in chunk {
        refusals.push(registration.as_ref().err().cloned());
        admitted.extend(registration.ok());
    }
    let mut written =
        write_admitted_registrations(context, caller, &admitted, visible_changes).await;
    if written.len() > 1 && written.iter().all(is_batch_failure) {
        written.clear();
        for one in &admitted {
            let alone = std::slice::from_ref(one);
            written.extend(
                write_admitted_registrations(context, caller, alone, visible_changes).await,
            );
        }
    }
    let mut written = written.into_iter();
    let no_result = || {
        Err(AppError::internal(
            "a registration has no result".to_owned(),
        ))
    };
    let results = refusals.into_iter().map(|refusal| match refusal {
        Some(error) => Err(error),
        None => written.next().unwrap_or_else(no_result),
    });
    results.collect()
}

/// Whether a registration failed for a reason that may come from another one in its transaction.
fn is_batch_failure(result: &Result<RegisteredSources>) -> bool {
    let error = result.as_ref().err();
    error.is_some_and(|error| error.internal.is_some() && !error.is_database_failure())
}

async fn write_admitted_registrations(
    context: &AppContext,
    caller: &Caller,
    admitted: &[CheckedRegistration],
    visible_changes: &mut Vec<CommittedChanges>,
) -> Vec<Result<RegisteredSources>> {
    if admitted.is_empty() {
        return Vec::new();
    }
    let fail_all = |error: AppError| -> Vec<Result<RegisteredSources>> {
        admitted.iter().map(|_| Err(error.clone())).collect()
    };
    let written = match write_registrations(context, caller, admitted, true).await {
        Ok(written) => written,
        Err(error) => return fail_all(error),
    };
    visible_changes.extend(written.visible_changes);
    let mut views = match load_registered_sources(context, caller, admitted, &written.results).await
    {
        Ok(views) => views.into_iter(),
        Err(error) => return fail_all(error),
    };
    let results = written.results.into_iter().map(|result| {
        result?;
        let gone = || AppError::not_found("The domain is no longer registered.");
        views.next().flatten().ok_or_else(gone)
    });
    results.collect()
}

/// Loads the sources of each written registration; `None` if its domain was deleted since.
async fn load_registered_sources(
    context: &AppContext,
    caller: &Caller,
    admitted: &[CheckedRegistration],
    results: &[Result<i64>],
) -> Result<Vec<Option<RegisteredSources>>> {
    let ids: BTreeSet<i64> = accepted_registrations(admitted, results)
        .map(|(_, id)| id)
        .collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    let rows = domains::domains_by_ids(&context.store, &ids).await?;
    let mut domain_rows = DomainRows::load(context, caller, &rows).await?;
    let mut attempts = std::mem::take(&mut domain_rows.attempts);
    let mut views = HashMap::new();
    for row in &rows {
        let presenter = DomainPresenter::new(context, caller, row, &domain_rows);
        views.insert(row.id, (&row.name, presenter.sources(&mut attempts)));
    }
    let view = |(registration, id): (&CheckedRegistration, i64)| {
        let (domain, sources) = views.get(&id)?;
        let is_registered = |source: &&SourceView| {
            let mut all = registration.target.sources.iter();
            source.own && all.any(|(kind, url)| source.kind == *kind && source.url == *url)
        };
        Some(RegisteredSources {
            domain: (*domain).clone(),
            sources: sources.iter().filter(is_registered).cloned().collect(),
        })
    };
    Ok(accepted_registrations(admitted, results)
        .map(view)
        .collect())
}
