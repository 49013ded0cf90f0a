//! Catalog that this registry publishes: one document for ARD and AI Catalog, the same for every caller.

use a2a_crawler::catalog::is_publisher_domain;
use a2a_registry_api::ard::{Entry, REGISTRY_TYPE};
use a2a_registry_core::agents::catalog_entry::{any_catalog_entry_filter, urn_publisher};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::database_health::require_recent_database_contact;
use a2a_registry_core::error::{AppError, Result};
use a2a_registry_core::process_state::cached_catalog::CachedCatalog;
use a2a_registry_core::protocol_versions;
use a2a_registry_core::search_pool::run_search;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_search::{AgentListRequest, ListSortKey, ListSortValue};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use url::Url;

use crate::ard::{ard_base_url, load_complete_entries, require_ard_enabled};

/// Maximum number of agents in the catalog, the most recently changed ones. The API, which is the first catalog entry,
/// finds all.
const MAX_AGENTS: usize = 1000;
/// Maximum number of bytes of all entries, so that crawlers can read the catalog: this registry's accepts 1 MiB.
const MAX_ENTRY_BYTES: usize = 900 * 1024;
/// Maximum number of bytes of the rows that are read for the catalog.
const MAX_ROW_BYTES: usize = 16 * 1024 * 1024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CatalogDocument {
    spec_version: &'static str,
    host: CatalogHost,
    entries: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CatalogHost {
    display_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    documentation_url: String,
}

/// Catalog of the public agents, rebuilt when the index has changed.
pub(crate) async fn published_catalog(context: &AppContext) -> Result<CachedCatalog> {
    require_ard_enabled(context)?;
    require_recent_database_contact(context)?;
    let labels = Caller::default().labels(&context.policy_sets.enforced_set());
    let key = format!(
        "{} {} {}",
        context.index.generation(),
        context.index.overlay_version(),
        labels.join(" ")
    );
    let mut cached = context.cached_catalog.lock().await;
    if let Some(catalog) = cached.as_ref().filter(|kept| kept.key == key) {
        return Ok(catalog.clone());
    }
    let mut request = AgentListRequest {
        visible_to: labels,
        sort_order: vec![(ListSortKey::Updated, true)],
        limit: MAX_AGENTS,
        max_bytes: Some(MAX_ROW_BYTES),
        ..AgentListRequest::default()
    };
    request.filters.exact.push(any_catalog_entry_filter());
    let page = run_search(context, &Caller::default(), move |index| {
        index.list_agents(&request)
    })
    .await?;
    let newest = page.rows.first().and_then(|row| row.position.first());
    let changed_at = match newest {
        Some(ListSortValue::Time(time)) => Timestamp(*time),
        _ => Timestamp(0),
    };
    let mut entries: Vec<Entry> = registry_entry(context).into_iter().collect();
    entries.extend(take_entries_within_limit(
        load_complete_entries(context, &page.rows).await?,
    ));
    let document = CatalogDocument {
        spec_version: protocol_versions::AI_CATALOG_VERSION,
        host: catalog_host(context),
        entries,
    };
    let body = serde_json::to_vec(&document).map_err(|error| {
        AppError::internal(format!("the catalog cannot be serialized: {error}"))
    })?;
    let hash = HEXLOWER.encode(digest(&SHA256, &body).as_ref());
    let catalog = CachedCatalog {
        key,
        body: body.into(),
        tag: format!("\"{hash}\""),
        changed_at,
    };
    *cached = Some(catalog.clone());
    Ok(catalog)
}

/// Takes the first entries that fit into [`MAX_ENTRY_BYTES`].
fn take_entries_within_limit(entries: Vec<Entry>) -> impl Iterator<Item = Entry> {
    let mut bytes = 0;
    entries.into_iter().take_while(move |entry| {
        bytes += serde_json::to_vec(entry).map_or(0, |entry| entry.len() + 1);
        bytes <= MAX_ENTRY_BYTES
    })
}

fn public_host(context: &AppContext) -> Option<String> {
    let url = Url::parse(&context.config().public_url()).ok()?;
    url.host_str().map(str::to_owned)
}

fn catalog_host(context: &AppContext) -> CatalogHost {
    let url = context.config().public_url();
    CatalogHost {
        display_name: "A2A registry".to_owned(),
        identifier: public_host(context)
            .filter(|host| is_publisher_domain(host))
            .map(|host| format!("did:web:{host}")),
        documentation_url: format!("{url}/about"),
    }
}

/// Entry of the registry's own API; `None` if its host cannot be part of an identifier, such as an IPv6 address.
fn registry_entry(context: &AppContext) -> Option<Entry> {
    let identifier = format!("urn:air:{}:registry:main", public_host(context)?);
    urn_publisher(&identifier)?;
    Some(Entry {
        identifier,
        display_name: "A2A registry".to_owned(),
        media_type: REGISTRY_TYPE.to_owned(),
        url: format!("{}/", ard_base_url(context)),
        description: Some("Finds agents by what they can do.".to_owned()),
        representative_queries: vec![
            "search for an agent by skill".to_owned(),
            "which agents may be used here?".to_owned(),
        ],
        ..Entry::default()
    })
}
