//! The list of entries.

use std::collections::HashMap;

use a2a_registry_api::limits::PageSize;
use a2a_registry_api::{EntryList, EntryVerification, EntryView, Hint};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{domain, entry};
use a2a_registry_store::entries::{EntryFilter, catalog_urls, entries_page};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::caller::Caller;
use crate::context::Context;
use crate::database::demand_database;
use crate::entry_rows::keeps_entries;
use crate::error::AppError;
use crate::paging::{cut, not_empty, page_size};

/// Most words of a query.
const MAX_WORDS: usize = 16;
/// Most types of a query.
const MAX_TYPES: usize = 20;

/// Which entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct EntryQuery {
    /// Words that all have to occur in identifier, name or description; at most 16.
    pub q: Option<String>,
    /// Media types without parameters, of which one has to be the entry's; at most 20.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    pub media_type: Vec<String>,
    /// The domain whose catalog lists it.
    pub domain: Option<String>,
    /// Entries on the page, at most 100; by default 20.
    #[serde(deserialize_with = "not_empty")]
    #[param(value_type = Option<PageSize>, inline)]
    pub page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    pub page_token: Option<String>,
}

/// Lists the entries that may be shown, in the order in which they were first seen. Everybody sees the same.
///
/// # Errors
/// `Invalid` for a bad parameter; `Unavailable` while the database does not respond.
pub async fn entry_list(
    context: &Context,
    caller: &Caller,
    query: &EntryQuery,
) -> Result<EntryList, AppError> {
    let size = page_size(query.page_size)?;
    let filter = filter(context, query)?;
    let canonical = format!("entries {filter:?}");
    let after: Option<Uuid> = match &query.page_token {
        Some(token) => Some(context.signer.position(&canonical, caller, token)?),
        None => None,
    };
    if !keeps_entries(context.config()) {
        let text = "This registry keeps no entries beside agents: `[ard] entries` is off.";
        return Ok(EntryList {
            entries: Vec::new(),
            hints: vec![Hint {
                kind: "off".to_owned(),
                text: text.to_owned(),
                hidden: None,
            }],
            next_page_token: None,
        });
    }
    demand_database(context)?;
    let now = context.now();
    let limit = size as u64 + 1;
    let mut rows = entries_page(&context.store, &filter, now.0, after, limit).await?;
    let more = cut(&mut rows, size);
    let last = rows.last().filter(|_| more).map(|(row, _)| row.id);
    let catalogs: Vec<i64> = rows.iter().map(|(row, _)| row.catalog_id).collect();
    let catalogs = catalog_urls(&context.store, &catalogs).await?;
    let views = rows.into_iter();
    Ok(EntryList {
        entries: views.map(|(row, of)| view(row, of, &catalogs)).collect(),
        hints: Vec::new(),
        next_page_token: last.and_then(|id| context.signer.token(&canonical, caller, &id)),
    })
}

/// The filter of a query.
fn filter(context: &Context, query: &EntryQuery) -> Result<EntryFilter, AppError> {
    let text = query.q.as_deref().unwrap_or_default().to_lowercase();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let most = context.config.limits.query_chars;
    if words.len() > MAX_WORDS || text.chars().count() > most {
        let detail = format!("q has at most {MAX_WORDS} words and {most} characters");
        return Err(AppError::invalid("/q", detail));
    }
    if query.media_type.len() > MAX_TYPES {
        let detail = format!("at most {MAX_TYPES} types are asked for at once");
        return Err(AppError::invalid("/type", detail));
    }
    if query.media_type.iter().any(|one| one.trim().contains(' ')) {
        let detail = "a media type has no space; write its + as %2B";
        return Err(AppError::invalid("/type", detail));
    }
    let types = query.media_type.iter();
    Ok(EntryFilter {
        words,
        media_types: types.map(|one| one.trim().to_ascii_lowercase()).collect(),
        domain: query.domain.as_deref().map(str::to_lowercase),
    })
}

fn view(row: entry::Model, of: domain::Model, catalogs: &HashMap<i64, String>) -> EntryView {
    let verification = row.verification.as_deref();
    let verification =
        verification.and_then(|kept| serde_json::from_str::<KeptVerification>(kept).ok());
    EntryView {
        catalog: catalogs.get(&row.catalog_id).cloned().unwrap_or_default(),
        identifier: row.identifier,
        listed_as: row.listed_as,
        media_type: row.media_type,
        display_name: row.display_name,
        description: row.description,
        version: row.version,
        updated_at: row.updated_at.map(Timestamp),
        url: row.url,
        reviewed: false,
        domain: of.name,
        authority: row.authority,
        verification: verification.map(KeptVerification::view),
        created_at: Timestamp(row.created_at),
        changed_at: Timestamp(row.changed_at),
        entry: serde_json::from_str(&row.raw).unwrap_or_default(),
    }
}

/// The result of verifying a manifest, as it is kept.
#[derive(Deserialize)]
struct KeptVerification {
    result: String,
    profile: String,
    signer: Option<String>,
    fault: Option<String>,
    at: i64,
}

impl KeptVerification {
    fn view(self) -> EntryVerification {
        EntryVerification {
            result: self.result,
            profile: self.profile,
            signer: self.signer,
            fault: self.fault,
            at: Timestamp(self.at),
        }
    }
}
