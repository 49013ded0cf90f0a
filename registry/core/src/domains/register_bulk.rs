//! Registration in bulk: many domains and card URLs in one request, each answered by itself.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_api::limits::MAX_REGISTRATIONS;
use a2a_registry_api::{Registration, SourceView};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::domains;

use crate::commit::admitting::admitting_set;
use crate::commit::publish::searchable;
use crate::commit::touched::Touched;
use crate::context::Context;
use crate::domains::register::{admit, refuse_by_policy};
use crate::domains::register_batch::{AdmittedRegistration, write_batch, written_registrations};
use crate::domains::rows::DomainRows;
use crate::domains::shown::ShownDomain;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// The result of one registration of a bulk: the domain, and the sources that it named.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredSources {
    pub domain: String,
    /// As the caller sees them.
    pub sources: Vec<SourceView>,
}

/// Registrations of a bulk that are written in one transaction. Other writes wait for no more than these.
const BATCH: usize = 100;

/// Registers many domains and card URLs, each as if it were sent alone and in their order. A refused one does not stop
/// the others, and what was written stays if the database fails later: sent again, it gets the same results.
pub async fn register_all(
    context: &Context,
    caller: &Caller,
    all: &[Registration],
) -> Result<Vec<Result<RegisteredSources>>> {
    caller.demand(Permission::Register)?;
    if !(1..=MAX_REGISTRATIONS).contains(&all.len()) {
        return Err(AppError::invalid(
            "/registrations",
            format!("a request has 1 to {MAX_REGISTRATIONS} registrations"),
        ));
    }
    let set = admitting_set(context, &context.store).await?;
    let mut results = Vec::with_capacity(all.len());
    let mut shown = Vec::new();
    let mut failed: Option<AppError> = None;
    for part in all.chunks(BATCH) {
        // What the database refuses now it would refuse for all that follow, after another wait for each.
        if let Some(error) = &failed {
            results.extend(part.iter().map(|_| Err(error.clone())));
            continue;
        }
        let part: Vec<_> = part
            .iter()
            .map(|one| {
                let admitted = admit(context, caller, one)?;
                refuse_by_policy(context, caller, &set, &admitted)?;
                Ok(admitted)
            })
            .collect();
        let registered = register_part(context, caller, part, &mut shown).await;
        let mut errors = registered.iter().filter_map(|one| one.as_ref().err());
        failed = errors.find(|error| error.is_of_database()).cloned();
        results.extend(registered);
    }
    let shown: Vec<&Touched> = shown.iter().collect();
    searchable(context, &shown).await;
    Ok(results)
}

/// Writes the admitted registrations together, or one by one if that fails, so that an unreadable row affects only
/// itself.
async fn register_part(
    context: &Context,
    caller: &Caller,
    part: Vec<Result<AdmittedRegistration>>,
    shown: &mut Vec<Touched>,
) -> Vec<Result<RegisteredSources>> {
    let mut refused = Vec::with_capacity(part.len());
    let mut admitted = Vec::with_capacity(part.len());
    for one in part {
        refused.push(one.as_ref().err().cloned());
        admitted.extend(one.ok());
    }
    let mut written = register_admitted(context, caller, &admitted, shown).await;
    if written.len() > 1 && written.iter().all(is_broken) {
        written.clear();
        for one in &admitted {
            let alone = std::slice::from_ref(one);
            written.extend(register_admitted(context, caller, alone, shown).await);
        }
    }
    let mut written = written.into_iter();
    let lost = || {
        Err(AppError::internal(
            "a registration has no result".to_owned(),
        ))
    };
    let results = refused.into_iter().map(|refusal| match refusal {
        Some(error) => Err(error),
        None => written.next().unwrap_or_else(lost),
    });
    results.collect()
}

/// Whether a registration failed for a reason that may come from another one in its transaction.
fn is_broken(result: &Result<RegisteredSources>) -> bool {
    let error = result.as_ref().err();
    error.is_some_and(|error| error.internal.is_some() && !error.is_of_database())
}

async fn register_admitted(
    context: &Context,
    caller: &Caller,
    admitted: &[AdmittedRegistration],
    shown: &mut Vec<Touched>,
) -> Vec<Result<RegisteredSources>> {
    if admitted.is_empty() {
        return Vec::new();
    }
    let failed = |error: AppError| -> Vec<Result<RegisteredSources>> {
        admitted.iter().map(|_| Err(error.clone())).collect()
    };
    let written = match write_batch(context, caller, admitted, true).await {
        Ok(written) => written,
        Err(error) => return failed(error),
    };
    shown.extend(written.shown);
    let mut views = match registered_sources(context, caller, admitted, &written.results).await {
        Ok(views) => views.into_iter(),
        Err(error) => return failed(error),
    };
    let results = written.results.into_iter().map(|result| {
        result?;
        let gone = || AppError::not_found("The domain is no longer registered.");
        views.next().flatten().ok_or_else(gone)
    });
    results.collect()
}

/// For each written registration its sources; `None` if its domain has ended since.
async fn registered_sources(
    context: &Context,
    caller: &Caller,
    admitted: &[AdmittedRegistration],
    results: &[Result<i64>],
) -> Result<Vec<Option<RegisteredSources>>> {
    let ids: BTreeSet<i64> = written_registrations(admitted, results)
        .map(|(_, id)| id)
        .collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    let rows = domains::domains_by_ids(&context.store, &ids).await?;
    let mut known = DomainRows::load(context, caller, &rows).await?;
    let mut attempts = std::mem::take(&mut known.attempts);
    let mut views = HashMap::new();
    for row in &rows {
        let shown = ShownDomain::of(context, caller, row, &known);
        views.insert(row.id, (&row.name, shown.sources(&mut attempts)));
    }
    let view = |(registration, id): (&AdmittedRegistration, i64)| {
        let (domain, sources) = views.get(&id)?;
        let named = |source: &&SourceView| {
            let mut all = registration.target.sources.iter();
            source.own && all.any(|(kind, url)| source.kind == *kind && source.url == *url)
        };
        Some(RegisteredSources {
            domain: (*domain).clone(),
            sources: sources.iter().filter(named).cloned().collect(),
        })
    };
    Ok(written_registrations(admitted, results).map(view).collect())
}
