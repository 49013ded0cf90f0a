//! Registrants of sources, and sources of card versions.

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::lifecycle::{Lifecycle, Visibility};
use a2a_registry_domain::source::SourceKind;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, ExprTrait as _, OnConflict, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, Select, TryInsertResult,
};
use uuid::Uuid;

use super::accounts::{unset_id, without_id};
use super::agents::agent_holds_subquery;
use super::bulk_rows::{lock_for_update, pad_keys};
use super::entity::queries::rows_where_in;
use super::entity::{agent, domain, source, source_registrant, version, version_source};
use super::{Executor, StoreError, WriteTransaction};

/// The registrants of these sources, oldest registration first.
pub async fn registrants_of_sources(
    db: &impl Executor,
    sources: &[i64],
) -> Result<Vec<source_registrant::Model>, StoreError> {
    let query = source_registrant::Entity::find().order_by_asc(source_registrant::Column::Id);
    rows_where_in(db, query, source_registrant::Column::SourceId, sources).await
}

/// The accounts that registered a live source of an agent. Sources of an unknown kind are ignored.
pub async fn registrant_accounts_of_agent(
    db: &impl Executor,
    agent: Uuid,
) -> Result<Vec<Uuid>, StoreError> {
    let kinds = SourceKind::ALL.iter().map(|kind| kind.as_str());
    let live_sources = Query::select()
        .column(source::Column::Id)
        .from(source::Entity)
        .and_where(source::Column::AgentId.eq(agent))
        .and_where(source::Column::EndedAt.is_null())
        .and_where(source::Column::Kind.is_in(kinds))
        .take();
    Ok(source_registrant::Entity::find()
        .select_only()
        .column(source_registrant::Column::AccountId)
        .distinct()
        .filter(source_registrant::Column::SourceId.in_subquery(live_sources))
        .filter(source_registrant::Column::AccountId.is_not_null())
        .into_tuple()
        .all(db.connection())
        .await?)
}

pub async fn version_sources_by_version(
    db: &impl Executor,
    versions: &[Uuid],
) -> Result<Vec<version_source::Model>, StoreError> {
    let query = version_source::Entity::find().order_by_asc(version_source::Column::SourceId);
    rows_where_in(db, query, version_source::Column::VersionId, versions).await
}

/// The owner, scheme and name of each live domain that one of these accounts has proved.
pub async fn domains_by_owner(
    db: &impl Executor,
    owners: &[Uuid],
) -> Result<Vec<(Uuid, String, String)>, StoreError> {
    use domain::Column as C;
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    Ok(domain::Entity::find()
        .select_only()
        .columns([C::OwnerId, C::Scheme, C::Name])
        .filter(C::OwnerId.is_in(pad_keys(owners)))
        .filter(C::State.eq("verified"))
        .filter(C::DeletedAt.is_null())
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// Whether an account has registered a source of a domain and not withdrawn it, even if the source has ended since.
pub async fn has_registered_source(
    db: &impl Executor,
    domain: i64,
    account: Uuid,
) -> Result<bool, StoreError> {
    let domain_sources = Query::select()
        .column(source::Column::Id)
        .from(source::Entity)
        .and_where(source::Column::DomainId.eq(domain))
        .take();
    let found = source_registrant::Entity::find()
        .filter(source_registrant::Column::AccountId.eq(account))
        .filter(source_registrant::Column::SourceId.in_subquery(domain_sources))
        .one(db.connection())
        .await?;
    Ok(found.is_some())
}

/// The ended sources of these domains that an account still has registered, each with the time of registration.
pub async fn registered_ended_sources(
    db: &impl Executor,
    domains: &[i64],
    account: Uuid,
) -> Result<Vec<(source::Model, i64)>, StoreError> {
    let own_sources = Query::select()
        .column(source_registrant::Column::SourceId)
        .from(source_registrant::Entity)
        .and_where(source_registrant::Column::AccountId.eq(account))
        .take();
    let ended = source::Entity::find()
        .filter(source::Column::DomainId.is_in(pad_keys(domains)))
        .filter(source::Column::EndedAt.is_not_null())
        .filter(source::Column::Id.in_subquery(own_sources))
        .all(db.connection())
        .await?;
    let ids: Vec<i64> = ended.iter().map(|source| source.id).collect();
    let registrants = registrants_of_sources(db, &ids).await?;
    let registered = ended.into_iter().filter_map(|source| {
        let mut all = registrants.iter();
        let own = all.find(|one| one.source_id == source.id && one.account_id == Some(account))?;
        Some((source, own.registered_at))
    });
    Ok(registered.collect())
}

/// The number of card sources that an account has registered, each URL once: live ones, and ended ones of domains that
/// are not its own. Otherwise the remaining allowance would reveal that a hidden agent has ended a source.
pub async fn source_count_by_registrant(
    db: &impl Executor,
    account: Uuid,
) -> Result<u64, StoreError> {
    let not_held_by_account = |column: domain::Column| {
        let condition = Condition::any().add(column.is_null());
        condition.add(column.ne(account))
    };
    let other_domains = Query::select()
        .column(domain::Column::Id)
        .from(domain::Entity)
        .and_where(domain::Column::DeletedAt.is_null())
        .cond_where(not_held_by_account(domain::Column::AccountId))
        .cond_where(not_held_by_account(domain::Column::OwnerId))
        .cond_where(not_held_by_account(domain::Column::VouchedOwner))
        .take();
    let counted = Condition::any()
        .add(source::Column::EndedAt.is_null())
        .add(source::Column::DomainId.in_subquery(other_domains));
    let own = source_registrant::Column::AccountId.eq(account);
    Ok(select_card_sources_by_registrant(own)
        .filter(counted)
        .select_only()
        .columns([
            source::Column::DomainId,
            source::Column::Kind,
            source::Column::Url,
        ])
        .distinct()
        .count(db.connection())
        .await?)
}

/// The number of live card sources registered from a network without an account that have no publicly listed agent. An
/// approved but hidden agent counts as pending, so that the count does not reveal it to the nominator.
pub async fn pending_nomination_count(
    db: &impl Executor,
    network: &str,
) -> Result<u64, StoreError> {
    let listed = [Lifecycle::Approved, Lifecycle::Deprecated].map(Lifecycle::as_str);
    let approved = Query::select()
        .column(agent::Column::Id)
        .from(agent::Entity)
        .and_where(agent::Column::ApprovedVersion.is_not_null())
        .and_where(agent::Column::Lifecycle.is_in(listed))
        .and_where(agent::Column::Visibility.eq(Visibility::Public.as_str()))
        .and_where(Expr::exists(agent_holds_subquery(None)).not())
        .take();
    let is_pending = Condition::any()
        .add(source::Column::AgentId.is_null())
        .add(source::Column::AgentId.not_in_subquery(approved));
    let own = source_registrant::Column::Network.eq(network);
    Ok(select_card_sources_by_registrant(own)
        .filter(source::Column::EndedAt.is_null())
        .filter(is_pending)
        .count(db.connection())
        .await?)
}

/// The card sources registered by this caller, ended ones included.
fn select_card_sources_by_registrant(registrant_condition: SimpleExpr) -> Select<source::Entity> {
    let own_sources = Query::select()
        .column(source_registrant::Column::SourceId)
        .from(source_registrant::Entity)
        .and_where(registrant_condition)
        .take();
    let catalogs = SourceKind::CATALOGS.map(SourceKind::as_str);
    source::Entity::find()
        .filter(source::Column::Id.in_subquery(own_sources))
        .filter(source::Column::Kind.is_not_in(catalogs))
}

/// The domains with a source whose card was served by that origin after a redirect.
pub async fn domain_ids_by_answering_origin(
    db: &impl Executor,
    origin: &str,
) -> Result<Vec<i64>, StoreError> {
    let answered_sources = Query::select()
        .column(version_source::Column::SourceId)
        .from(version_source::Entity)
        .and_where(version_source::Column::AnsweredBy.eq(origin))
        .take();
    Ok(source::Entity::find()
        .select_only()
        .column(source::Column::DomainId)
        .distinct()
        .filter(source::Column::Id.in_subquery(answered_sources))
        .filter(source::Column::EndedAt.is_null())
        .order_by_asc(source::Column::DomainId)
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// The live domains with these keys, ordered by key and locked until the write ends.
pub async fn lock_domains(
    write: &WriteTransaction,
    ids: &[i64],
) -> Result<Vec<domain::Model>, StoreError> {
    let query = domain::Entity::find()
        .filter(domain::Column::Id.is_in(ids.iter().copied()))
        .filter(domain::Column::DeletedAt.is_null())
        .order_by_asc(domain::Column::Id);
    Ok(lock_for_update(write, query)
        .all(write.connection())
        .await?)
}

pub async fn domain_ids_by_name(
    db: &impl Executor,
    names: &[&str],
) -> Result<Vec<i64>, StoreError> {
    Ok(domain::Entity::find()
        .select_only()
        .column(domain::Column::Id)
        .filter(domain::Column::Name.is_in(names.iter().copied()))
        .filter(domain::Column::DeletedAt.is_null())
        .into_tuple()
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Inserts a registrant; returns whether it is new.
    pub async fn insert_registrant(
        &self,
        row: source_registrant::Model,
    ) -> Result<bool, StoreError> {
        // A registrant without an account sees no more than before.
        if row.account_id.is_some() {
            self.pending_changes.mark_everything();
        }
        let active = without_id(row, |active: &mut source_registrant::ActiveModel| {
            active.id = unset_id();
        });
        let outcome = source_registrant::Entity::insert(active)
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .try_insert()
            .exec_without_returning(self.connection())
            .await?;
        Ok(matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0))
    }

    pub async fn delete_source_registrations(
        &self,
        sources: &[i64],
        account: Uuid,
    ) -> Result<(), StoreError> {
        self.pending_changes.mark_everything();
        let rows = source_registrant::Entity::delete_many()
            .filter(source_registrant::Column::SourceId.is_in(sources.iter().copied()))
            .filter(source_registrant::Column::AccountId.eq(account));
        self.delete_rows(rows).await
    }

    pub async fn upsert_version_sources(
        &self,
        rows: Vec<version_source::Model>,
    ) -> Result<(), StoreError> {
        use version_source::Column as C;
        let conflict = OnConflict::columns([C::VersionId, C::SourceId])
            .update_column(C::AnsweredBy)
            .to_owned();
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, Some(conflict)).await
    }

    pub async fn set_version_coverage(
        &self,
        version: Uuid,
        coverage_level: CoverageLevel,
    ) -> Result<(), StoreError> {
        let rows = version::Entity::update_many()
            .set(version::ActiveModel {
                standing: Set(coverage_level.into()),
                ..Default::default()
            })
            .filter(version::Column::Id.eq(version));
        self.update_rows(rows).await
    }

    /// Detaches these sources from their agents until their next card, which is fetched unconditionally. An approval
    /// given with the registration ends too.
    pub async fn detach_sources(&self, ids: &[i64]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.pending_changes.mark_everything();
        let rows = source::Entity::update_many()
            .col_expr(source::Column::AgentId, Expr::value(Option::<Uuid>::None))
            .col_expr(source::Column::ApproveAs, Expr::value(Option::<Uuid>::None))
            .col_expr(source::Column::FullWanted, Expr::value(true))
            .filter(source::Column::Id.is_in(ids.iter().copied()));
        self.update_rows(rows).await
    }
}
