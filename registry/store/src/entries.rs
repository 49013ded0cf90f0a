//! Entries of catalogs that are no cards.

use std::collections::{HashMap, HashSet};

use sea_orm::sea_query::{Condition, Expr, LikeExpr, OnConflict, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select,
};
use uuid::Uuid;

use super::entity::{domain, entry, source};
use super::rows::can_be_stored;
use super::{Handle, StoreError, Write};

/// Most ids in one statement.
const IDS: usize = 1_000;

/// Which entries are wanted. Only those that may be shown are found.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    /// Words in lower case that all have to occur.
    pub words: Vec<String>,
    /// The media types, without parameters; empty for any.
    pub media_types: Vec<String>,
    /// The domain whose catalog lists it.
    pub domain: Option<String>,
}

/// The entries of these domains, registries too, whether they may be shown or not, by identifier of the row.
pub async fn entries_of(
    on: &impl Handle,
    domains: &[i64],
) -> Result<Vec<entry::Model>, StoreError> {
    if domains.is_empty() {
        return Ok(Vec::new());
    }
    Ok(entry::Entity::find()
        .filter(entry::Column::DomainId.is_in(domains.iter().copied()))
        .order_by_asc(entry::Column::Id)
        .all(on.connection())
        .await?)
}

/// The entries with these identifiers, of any domain, each with that domain.
pub async fn entries_named(
    on: &impl Handle,
    identifiers: &[String],
) -> Result<Vec<(entry::Model, domain::Model)>, StoreError> {
    let names = identifiers.iter().filter(|name| can_be_stored(name));
    let rows = entry::Entity::find()
        .filter(entry::Column::Identifier.is_in(names.cloned()))
        .all(on.connection())
        .await?;
    with_domains(on, rows).await
}

/// Entries whose verification ended at that time or before, by id.
pub async fn entries_expired(
    on: &impl Handle,
    now: i64,
    limit: u64,
) -> Result<Vec<entry::Model>, StoreError> {
    let query = entry::Entity::find()
        .filter(entry::Column::VerifiedUntil.lte(now))
        .order_by_asc(entry::Column::Id)
        .limit(limit);
    Ok(query.all(on.connection()).await?)
}

/// The entries with these ids, each with its domain.
pub async fn entries_by_ids(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<(entry::Model, domain::Model)>, StoreError> {
    let mut rows = Vec::new();
    for ids in ids.chunks(IDS) {
        let query = entry::Entity::find().filter(entry::Column::Id.is_in(ids.iter().copied()));
        rows.extend(query.all(on.connection()).await?);
    }
    with_domains(on, rows).await
}

/// A page of all entries, registries too, after `after`, by id.
pub async fn entries_walk(
    on: &impl Handle,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<(entry::Model, domain::Model)>, StoreError> {
    let mut query = entry::Entity::find()
        .order_by_asc(entry::Column::Id)
        .limit(limit);
    if let Some(after) = after {
        query = query.filter(entry::Column::Id.gt(after));
    }
    let rows = query.all(on.connection()).await?;
    with_domains(on, rows).await
}

/// A page of the entries that may be shown at that time, after `after`, by id.
pub async fn entries_page(
    on: &impl Handle,
    filter: &EntryFilter,
    now: i64,
    after: Option<Uuid>,
    limit: u64,
) -> Result<Vec<(entry::Model, domain::Model)>, StoreError> {
    let mut asked = filter.words.iter().chain(&filter.media_types);
    if !asked.all(|text| can_be_stored(text)) || !filter.domain.iter().all(|one| can_be_stored(one))
    {
        return Ok(Vec::new());
    }
    let mut query = shown(now)
        .filter(entry::Column::Registry.eq(false))
        .order_by_asc(entry::Column::Id)
        .limit(limit);
    if let Some(after) = after {
        query = query.filter(entry::Column::Id.gt(after));
    }
    for word in &filter.words {
        query = query.filter(like(entry::Column::Words, &format!("%{}%", escaped(word))));
    }
    if !filter.media_types.is_empty() {
        let mut any = Condition::any();
        for kind in &filter.media_types {
            let with_parameters = format!("{};%", escaped(kind));
            any = any
                .add(entry::Column::MediaType.eq(kind.as_str()))
                .add(like(entry::Column::MediaType, &with_parameters));
        }
        query = query.filter(any);
    }
    if let Some(name) = &filter.domain {
        let of = Query::select()
            .column(domain::Column::Id)
            .from(domain::Entity)
            .and_where(domain::Column::Name.eq(name.as_str()))
            .take();
        query = query.filter(entry::Column::DomainId.in_subquery(of));
    }
    let rows = query.all(on.connection()).await?;
    with_domains(on, rows).await
}

/// The registries that may be asked to be peers: listed by domains whose entries may be shown at that time, by id.
pub async fn registry_candidates(
    on: &impl Handle,
    now: i64,
    limit: u64,
) -> Result<Vec<(entry::Model, domain::Model)>, StoreError> {
    let query = shown(now)
        .filter(entry::Column::Registry.eq(true))
        .order_by_asc(entry::Column::Id)
        .limit(limit);
    let rows = query.all(on.connection()).await?;
    with_domains(on, rows).await
}

/// The URLs of these catalogs, by their keys.
pub async fn catalog_urls(
    on: &impl Handle,
    ids: &[i64],
) -> Result<HashMap<i64, String>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found: Vec<(i64, String)> = source::Entity::find()
        .select_only()
        .columns([source::Column::Id, source::Column::Url])
        .filter(source::Column::Id.is_in(ids.iter().copied()))
        .into_tuple()
        .all(on.connection())
        .await?;
    Ok(found.into_iter().collect())
}

/// The number of all entries.
pub async fn entries_count(on: &impl Handle) -> Result<u64, StoreError> {
    Ok(entry::Entity::find().count(on.connection()).await?)
}

/// Whether a column is like a pattern, in which [`escaped`] texts stand for themselves.
fn like(column: entry::Column, pattern: &str) -> SimpleExpr {
    use sea_orm::sea_query::ExprTrait as _;
    Expr::col(column).like(LikeExpr::new(pattern).escape('\\'))
}

/// A text as part of a pattern.
fn escaped(text: &str) -> String {
    let letters = text.chars().flat_map(|letter| {
        let special = matches!(letter, '%' | '_' | '\\');
        special.then_some('\\').into_iter().chain([letter])
    });
    letters.collect()
}

/// The entries of proved domains that have not opted out and are not denied, as far as their authority still counts. The
/// same rule for one row is `visibility::entry_is_shown` of the server.
fn shown(now: i64) -> Select<entry::Entity> {
    let standing = Query::select()
        .column(domain::Column::Id)
        .from(domain::Entity)
        .and_where(domain::Column::State.eq("verified"))
        .and_where(domain::Column::OwnerId.is_not_null())
        .and_where(domain::Column::OptedOutBy.is_null())
        .and_where(domain::Column::DeletedAt.is_null())
        .take();
    let counts = Condition::any()
        .add(entry::Column::VerifiedUntil.is_null())
        .add(entry::Column::VerifiedUntil.gt(now));
    entry::Entity::find()
        .filter(entry::Column::DomainId.in_subquery(standing))
        .filter(entry::Column::Denied.eq(false))
        .filter(counts)
}

/// Joins entries with their domains, in the entries' order.
async fn with_domains(
    on: &impl Handle,
    rows: Vec<entry::Model>,
) -> Result<Vec<(entry::Model, domain::Model)>, StoreError> {
    let ids: HashSet<i64> = rows.iter().map(|row| row.domain_id).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let domains = domain::Entity::find()
        .filter(domain::Column::Id.is_in(ids))
        .all(on.connection())
        .await?;
    let of = |row: &entry::Model| domains.iter().find(|one| one.id == row.domain_id).cloned();
    Ok(rows
        .into_iter()
        .filter_map(|row| of(&row).map(|domain| (row, domain)))
        .collect())
}

impl Write {
    /// Adds entries, or replaces those with their ids.
    pub async fn entries_put(&self, rows: Vec<entry::Model>) -> Result<(), StoreError> {
        use entry::Column as C;
        if rows.is_empty() {
            return Ok(());
        }
        let conflict = OnConflict::column(C::Id)
            .update_columns([
                C::CatalogId,
                C::ListedAs,
                C::MediaType,
                C::Registry,
                C::DisplayName,
                C::Description,
                C::Version,
                C::UpdatedAt,
                C::Url,
                C::Raw,
                C::Words,
                C::Authority,
                C::Verification,
                C::VerifiedUntil,
                C::Denied,
                C::UnlistedSince,
                C::UnlistedLooks,
                C::ChangedAt,
            ])
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    /// Deletes these entries.
    pub async fn entries_delete(&self, ids: &[Uuid]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        entry::Entity::delete_many()
            .filter(entry::Column::Id.is_in(ids.iter().copied()))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Sets whether these entries are of a denied domain.
    pub async fn entries_set_denied(&self, ids: &[Uuid], denied: bool) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        entry::Entity::update_many()
            .col_expr(entry::Column::Denied, Expr::value(denied))
            .filter(entry::Column::Id.is_in(ids.iter().copied()))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Has a domain's catalogs fetched in full at this time, those at registered URLs included; with `read_only` only those
    /// that were read before. Returns whether there are any.
    pub async fn catalogs_want_full(
        &self,
        domain: i64,
        at: i64,
        read_only: bool,
    ) -> Result<bool, StoreError> {
        use a2a_registry_domain::source::SourceKind;
        use source::Column as C;
        let kinds = SourceKind::CATALOGS.map(SourceKind::as_str);
        let listing = Query::select()
            .column(C::CatalogId)
            .from(source::Entity)
            .and_where(C::DomainId.eq(domain))
            .and_where(C::CatalogId.is_not_null())
            .and_where(C::EndedAt.is_null())
            .take();
        let catalogs = Condition::any()
            .add(C::Kind.is_in(kinds))
            .add(C::Id.in_subquery(listing));
        let mut update = source::Entity::update_many()
            .col_expr(C::FullWanted, Expr::value(true))
            .col_expr(C::NextDueAt, Expr::value(at))
            .filter(C::DomainId.eq(domain))
            .filter(catalogs)
            .filter(C::EndedAt.is_null());
        if read_only {
            update = update.filter(C::LastSuccessAt.is_not_null());
        }
        let updated = update.exec(self.connection()).await?;
        Ok(updated.rows_affected > 0)
    }
}
