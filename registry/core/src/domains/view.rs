//! The views of a domain for different callers (docs/publish/private-cards.md#who-sees-what-of-a-domain).

use std::collections::HashMap;

use a2a_registry_api::DomainView;
use a2a_registry_domain::source::SourceState;
use a2a_registry_store::entity::{domain, source};
use a2a_registry_store::{domains, visit_results};

use crate::context::AppContext;
use crate::domains::domain_rows::DomainRows;
use crate::domains::presenter::DomainPresenter;
use crate::domains::row_views::source_day_view;
use crate::error::{AppError, Result};
use crate::sources::public_source_id;
use crate::visibility::caller::Caller;

pub async fn domain_view(context: &AppContext, caller: &Caller, id: i64) -> Result<DomainView> {
    let rows = domains::domains_by_ids(&context.store, &[id]).await?;
    for row in &rows {
        row.state()?;
    }
    let (mut views, sources) = views_with_sources(context, caller, rows).await?;
    let view = views.pop();
    let mut view =
        view.ok_or_else(|| AppError::not_found("The domain is no longer registered."))?;
    let ids: Vec<i64> = sources.iter().map(|row| row.id).collect();
    let names: HashMap<String, i64> = sources
        .iter()
        .map(|source| (public_source_id(context, source), source.id))
        .collect();
    let days = visit_results::daily_totals_by_source(&context.store, &ids).await?;
    for source in view
        .sources
        .iter_mut()
        .filter(|one| one.state != SourceState::New && one.state != SourceState::Recorded)
    {
        let id = names.get(&source.id).copied();
        let of_source = days.iter().filter(|day| Some(day.source_id) == id);
        source.days.extend(of_source.map(source_day_view));
    }
    Ok(view)
}

/// Builds the views of domains; one whose state only a later build knows is left out and logged.
pub async fn domain_views(
    context: &AppContext,
    caller: &Caller,
    rows: Vec<domain::Model>,
) -> Result<Vec<DomainView>> {
    Ok(views_with_sources(context, caller, rows).await?.0)
}

/// Builds the views, and returns the live sources that they were made from.
async fn views_with_sources(
    context: &AppContext,
    caller: &Caller,
    mut rows: Vec<domain::Model>,
) -> Result<(Vec<DomainView>, Vec<source::Model>)> {
    rows.retain(|row| {
        let state = row.state();
        state
            .inspect_err(|error| tracing::error!(%error, "a domain cannot be read and is left out"))
            .is_ok()
    });
    let mut domain_rows = DomainRows::load(context, caller, &rows).await?;
    let mut attempts = std::mem::take(&mut domain_rows.attempts);
    let mut views = Vec::with_capacity(rows.len());
    for row in &rows {
        let presenter = DomainPresenter::new(context, caller, row, &domain_rows);
        views.push(presenter.view(&mut attempts).await?);
    }
    Ok((views, domain_rows.sources))
}

#[cfg(test)]
mod tests {
    use a2a_registry_api::KnownValidators;
    use a2a_registry_domain::source::SourceKind;
    use a2a_registry_domain::timestamp::Timestamp;
    use a2a_registry_store::entity::{fetch_attempt, source};

    use crate::domains::domain_access::DomainAccess;
    use crate::domains::row_views::source_view;
    use crate::sources::new_source_row;

    fn source() -> source::Model {
        let url = "https://a.example/card.json".to_owned();
        source::Model {
            validator_url: Some(url.clone()),
            etag: Some("\"1\"".into()),
            ..new_source_row(1, SourceKind::Url, url, Timestamp(0))
        }
    }

    fn attempt(outcome: &str) -> fetch_attempt::Model {
        fetch_attempt::Model {
            source_id: 1,
            place: 0,
            number: 0,
            at: 0,
            url: "https://a.example/card.json".into(),
            outcome: outcome.into(),
            status: None,
            address: Some("192.0.2.1".into()),
            detail: "a detail".into(),
            conditional: false,
            elapsed_ms: 42,
        }
    }

    #[test]
    fn an_attempt_shows_its_duration_and_the_use_of_the_cached_copy() {
        for (outcome, conditional, cache) in [
            ("not_modified", true, Some("revalidated")),
            ("card", true, Some("replaced")),
            ("card", false, Some("whole")),
            ("catalog", false, Some("whole")),
            ("timeout", true, None),
            ("of another version", false, None),
        ] {
            let attempt = fetch_attempt::Model {
                conditional,
                ..attempt(outcome)
            };
            let view = source_view(&source(), Some(vec![attempt]), DomainAccess::Owner);
            let last = view.last_attempt.map(|last| (last.cache, last.elapsed_ms));
            assert_eq!(last, Some((cache.map(str::to_owned), 42)), "{outcome}");
        }
    }

    #[test]
    fn validators_are_shown_to_callers_who_see_attempts() {
        let validators = |row: &source::Model, access| source_view(row, None, access).validators;
        let known = |etag, last_modified| {
            Some(KnownValidators {
                etag,
                last_modified,
            })
        };
        let mut row = source();
        assert_eq!(validators(&row, DomainAccess::Public), None);
        assert_eq!(validators(&row, DomainAccess::Owner), known(true, false));
        row.last_modified = Some("Sun, 06 Nov 1994 08:49:37 GMT".into());
        assert_eq!(validators(&row, DomainAccess::Curator), known(true, true));
        row.validator_url = None;
        assert_eq!(
            validators(&row, DomainAccess::Owner),
            known(false, false),
            "validators are not sent without the URL that gave them"
        );
    }
}
