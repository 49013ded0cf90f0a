//! Entries of catalogs that are no agents, as documents of the index. They carry a label that no caller has
//! ([`ENTRIES`](crate::caller::ENTRIES)), so nothing but a door that adds it can find or count them.

use a2a_registry_api::ard::{Entry, Publisher, TrustManifest};
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::Action;
use a2a_registry_search::{Document, MAX_VALUE_BYTES};
use a2a_registry_store::Handle;
use a2a_registry_store::entity::{domain, entry};
use a2a_registry_store::entries::{entries_by_ids, entries_walk};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::caller::ENTRIES;
use crate::catalog_entry::{attributes, publisher_of};
use crate::context::Context;
use crate::error::AppError;
use crate::policy_labels::evaluated;
use crate::visibility::entry_is_shown;

/// Most tags, capabilities and questions of an entry that are searched and filtered by.
const MAX_LISTED: usize = 64;

/// The documents of those of these entries that are shown.
pub(crate) async fn entry_documents(
    context: &Context,
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<Document>, AppError> {
    let rows = entries_by_ids(on, ids).await?;
    shown_documents(context, rows)
}

/// The documents of the next entries by id that are shown, and the id to continue after; `None` at the end.
pub(crate) async fn entry_documents_walk(
    context: &Context,
    after: Option<Uuid>,
    limit: u64,
) -> Result<(Vec<Document>, Option<Uuid>), AppError> {
    let rows = entries_walk(&context.store, after, limit).await?;
    let last = rows.last().map(|(row, _)| row.id);
    Ok((shown_documents(context, rows)?, last))
}

fn shown_documents(
    context: &Context,
    rows: Vec<(entry::Model, domain::Model)>,
) -> Result<Vec<Document>, AppError> {
    let now = context.now();
    let shown = rows
        .iter()
        .filter(|(row, of)| !row.registry && entry_is_shown(row, of, now));
    shown
        .filter_map(|(row, of)| document(context, row, of).transpose())
        .collect::<Result<_, _>>()
}

/// The labels of an entry that is shown. Policies are about agents; an entry is only marked as evaluated under each set, so
/// that a set is not taken for one that has not seen every document.
pub(crate) fn labels(context: &Context) -> Vec<String> {
    let sets = context.policies.evaluated();
    let sets = sets.filter(|set| !set.is_plain(Action::Discover));
    let marks = sets.map(|set| evaluated(&set));
    [ENTRIES.to_owned()].into_iter().chain(marks).collect()
}

/// The document of an entry; `None` where ARD has no place for its content: a URL, or an object.
fn document(
    context: &Context,
    row: &entry::Model,
    of: &domain::Model,
) -> Result<Option<Document>, AppError> {
    let raw: Map<String, Value> = serde_json::from_str(&row.raw).unwrap_or_default();
    let entry = ard_entry(row, of, &raw);
    if entry.url.is_empty() && !entry.data.as_ref().is_some_and(Value::is_object) {
        return Ok(None);
    }
    let hit = serde_json::to_vec(&entry).map_err(|error| {
        AppError::internal(format!("an entry cannot be written as JSON: {error}"))
    })?;
    Ok(Some(Document {
        id: row.id,
        entry: hit.clone(),
        hit,
        identifier: row.identifier.clone(),
        attributes: attributes(&entry),
        name: row.display_name.clone(),
        description: row.description.clone().unwrap_or_default(),
        domain: of.name.clone(),
        other_texts: entry.representative_queries.clone(),
        tags: entry.tags.clone(),
        skill_ids: entry.capabilities.clone(),
        lifecycle: ShownLifecycle::Approved.as_str().to_owned(),
        liveness: LivenessState::Fresh.as_str().to_owned(),
        visible_to: labels(context),
        created_at: row.created_at,
        updated_at: row.updated_at.unwrap_or(row.changed_at),
        ..Document::default()
    }))
}

/// The entry as ARD shows it: what its publisher says, and in `metadata` and `trustManifest` what the registry knows of it,
/// which no publisher can say for itself.
fn ard_entry(row: &entry::Model, of: &domain::Model, raw: &Map<String, Value>) -> Entry {
    let publisher = publisher_of(&row.identifier).unwrap_or_default();
    let identity = format!("did:web:{publisher}");
    let named = raw.get("publisher").and_then(|one| one.get("displayName"));
    let digest = raw.get("digest").and_then(Value::as_str);
    Entry {
        identifier: row.identifier.clone(),
        display_name: row.display_name.clone(),
        media_type: row.media_type.clone(),
        url: row.url.clone().unwrap_or_default(),
        data: raw
            .get("data")
            .filter(|data| !data.is_null() && row.url.is_none())
            .cloned(),
        description: row.description.clone(),
        version: row.version.clone(),
        updated_at: row.updated_at.map(|at| Timestamp(at).to_rfc3339()),
        digest: digest.map(str::to_owned),
        tags: texts(raw, "tags"),
        capabilities: texts(raw, "capabilities"),
        representative_queries: questions(raw),
        publisher: Some(Publisher {
            identifier: identity.clone(),
            display_name: named.and_then(Value::as_str).map_or_else(
                || publisher.to_owned(),
                |name| name.chars().take(200).collect(),
            ),
        }),
        trust_manifest: Some(TrustManifest {
            identity,
            identity_type: Some("did".to_owned()),
            attestations: Vec::new(),
        }),
        metadata: metadata(row, of, raw),
    }
}

/// The publisher's metadata as far as it is flat, and then the registry's own.
fn metadata(
    row: &entry::Model,
    of: &domain::Model,
    raw: &Map<String, Value>,
) -> Map<String, Value> {
    let theirs = raw.get("metadata").and_then(Value::as_object);
    let is_flat = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    let mut metadata: Map<String, Value> = theirs
        .into_iter()
        .flatten()
        .filter(|(_, value)| is_flat(value))
        .take(MAX_LISTED)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in [
        ("reviewed", Value::Bool(false)),
        ("authority", Value::String(row.authority.clone())),
        ("listedBy", Value::String(of.name.clone())),
    ] {
        metadata.insert(name.to_owned(), value);
    }
    metadata
}

/// The texts in a list, once each.
fn texts(raw: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = raw.get(name).and_then(Value::as_array);
    let mut texts: Vec<String> = Vec::new();
    for text in list.into_iter().flatten().filter_map(Value::as_str) {
        let fits = !text.is_empty() && text.len() <= MAX_VALUE_BYTES;
        if fits && texts.len() < MAX_LISTED && !texts.iter().any(|known| known == text) {
            texts.push(text.to_owned());
        }
    }
    texts
}

/// Two to five questions, as ARD 0.9 asks for; none if there are fewer.
fn questions(raw: &Map<String, Value>) -> Vec<String> {
    let mut all = texts(raw, "representativeQueries");
    all.truncate(5);
    if all.len() < 2 { Vec::new() } else { all }
}
