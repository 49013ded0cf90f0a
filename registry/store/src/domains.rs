//! Domains, their proofs and sources.

use std::collections::HashMap;

use a2a_registry_domain::source::SourceKind;
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, Expr, Func, OnConflict, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::accounts::{unset_id, without_id};
use super::bulk_rows::{is_storable_text, lock_for_update, pad_keys};
use super::entity::{agent, domain, fetch_attempt, proof, source, source_registrant};
use super::{Executor, StoreError, WriteTransaction};

/// The live domain of that name; inside a write, locked until it ends.
pub async fn domain_by_name(
    db: &impl Executor,
    name: &str,
) -> Result<Option<domain::Model>, StoreError> {
    if !is_storable_text(name) {
        return Ok(None);
    }
    let query = domain::Entity::find()
        .filter(domain::Column::Name.eq(name))
        .filter(domain::Column::DeletedAt.is_null());
    Ok(lock_for_update(db, query).one(db.connection()).await?)
}

/// The domains with these keys, in no order, deleted ones included.
pub async fn domains_by_ids(
    db: &impl Executor,
    ids: &[i64],
) -> Result<Vec<domain::Model>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(domain::Entity::find()
        .filter(domain::Column::Id.is_in(pad_keys(ids)))
        .all(db.connection())
        .await?)
}

/// A page of live domains by name, after `after`. With an account, only the domains that it has registered or owns at
/// this time, and the disputed ones that it has proved.
pub async fn live_domains_page(
    db: &impl Executor,
    account: Option<Uuid>,
    now: Timestamp,
    after: Option<&str>,
    limit: u64,
) -> Result<Vec<domain::Model>, StoreError> {
    let mut query = domain::Entity::find()
        .filter(domain::Column::DeletedAt.is_null())
        .order_by_asc(domain::Column::Name)
        .limit(limit);
    if let Some(account) = account {
        let proved_domains = Query::select()
            .column(proof::Column::DomainId)
            .from(proof::Entity)
            .and_where(proof::Column::AccountId.eq(account))
            .and_where(proof::Column::EndedAt.is_null())
            .take();
        let in_dispute = Condition::all()
            .add(domain::Column::OwnerId.is_null())
            .add(domain::Column::Id.in_subquery(proved_domains));
        // As `domain::Model::vouched_owner_at` decides for one row.
        let has_owner_vouch = Condition::all()
            .add(domain::Column::OwnerId.is_null())
            .add(domain::Column::VouchedOwner.eq(account))
            .add(domain::Column::VouchedUntil.gt(now.0));
        let registered_sources = Query::select()
            .column(source_registrant::Column::SourceId)
            .from(source_registrant::Entity)
            .and_where(source_registrant::Column::AccountId.eq(account))
            .take();
        let registered_domains = Query::select()
            .column(source::Column::DomainId)
            .from(source::Entity)
            .and_where(source::Column::Id.in_subquery(registered_sources))
            .take();
        let belongs_to_account = Condition::any()
            .add(domain::Column::AccountId.eq(account))
            .add(domain::Column::Id.in_subquery(registered_domains))
            .add(domain::Column::OwnerId.eq(account))
            .add(has_owner_vouch)
            .add(in_dispute);
        query = query.filter(belongs_to_account);
    }
    if let Some(after) = after {
        query = query.filter(domain::Column::Name.gt(after));
    }
    Ok(query.all(db.connection()).await?)
}

/// The number of live domains that an account has registered.
pub async fn domain_count_by_registrant(
    db: &impl Executor,
    account: Uuid,
) -> Result<u64, StoreError> {
    use sea_orm::PaginatorTrait;
    Ok(domain::Entity::find()
        .filter(domain::Column::AccountId.eq(account))
        .filter(domain::Column::DeletedAt.is_null())
        .count(db.connection())
        .await?)
}

/// The earliest visit time that spacing allows for each of these hosts that was registered before and deleted.
pub async fn earliest_visits_after_deletion(
    db: &impl Executor,
    names: &[&str],
) -> Result<HashMap<String, i64>, StoreError> {
    let spacings: Vec<(String, Option<i64>)> = domain::Entity::find()
        .select_only()
        .column(domain::Column::Name)
        .column_as(domain::Column::NotBefore.max(), "rest")
        .filter(domain::Column::Name.is_in(names.iter().copied()))
        .filter(domain::Column::DeletedAt.is_not_null())
        .group_by(domain::Column::Name)
        .into_tuple()
        .all(db.connection())
        .await?;
    let rests = spacings.into_iter();
    Ok(rests
        .filter_map(|(name, rest)| Some((name, rest?)))
        .collect())
}

/// The live sources of these domains, oldest first.
pub async fn live_sources_by_domain(
    db: &impl Executor,
    domain_ids: &[i64],
) -> Result<Vec<source::Model>, StoreError> {
    if domain_ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(source::Entity::find()
        .filter(source::Column::DomainId.is_in(pad_keys(domain_ids)))
        .filter(source::Column::EndedAt.is_null())
        .order_by_asc(source::Column::Id)
        .all(db.connection())
        .await?)
}

/// The live sources of these agents, oldest first.
pub async fn live_sources_by_agent(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<source::Model>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    Ok(source::Entity::find()
        .filter(source::Column::AgentId.is_in(pad_keys(agents)))
        .filter(source::Column::EndedAt.is_null())
        .order_by_asc(source::Column::Id)
        .all(db.connection())
        .await?)
}

/// The sources of a domain that ended with their agents.
pub async fn sources_of_retired_agents(
    db: &impl Executor,
    domain_id: i64,
) -> Result<Vec<source::Model>, StoreError> {
    let retired_agents = Query::select()
        .column(agent::Column::Id)
        .from(agent::Entity)
        .and_where(agent::Column::DomainId.eq(domain_id))
        .and_where(agent::Column::RetiredAt.is_not_null())
        .take();
    Ok(source::Entity::find()
        .filter(source::Column::DomainId.eq(domain_id))
        .filter(source::Column::EndedAt.is_not_null())
        .filter(source::Column::AgentId.in_subquery(retired_agents))
        .all(db.connection())
        .await?)
}

/// The valid proofs of these domains.
pub async fn valid_proofs_by_domain(
    db: &impl Executor,
    domain_ids: &[i64],
) -> Result<Vec<proof::Model>, StoreError> {
    if domain_ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(proof::Entity::find()
        .filter(proof::Column::DomainId.is_in(pad_keys(domain_ids)))
        .filter(proof::Column::EndedAt.is_null())
        .order_by_asc(proof::Column::Id)
        .all(db.connection())
        .await?)
}

/// The attempts of these sources, newest first.
pub async fn fetch_attempts_of_sources(
    db: &impl Executor,
    source_ids: &[i64],
) -> Result<Vec<fetch_attempt::Model>, StoreError> {
    if source_ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(fetch_attempt::Entity::find()
        .filter(fetch_attempt::Column::SourceId.is_in(source_ids.iter().copied()))
        .order_by_desc(fetch_attempt::Column::Number)
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Inserts a domain, whose key the database assigns. If another write has registered that name meanwhile, returns
    /// that domain.
    pub async fn insert_domain(&self, row: domain::Model) -> Result<domain::Model, StoreError> {
        let name = row.name.clone();
        self.insert_domains(vec![row]).await?;
        domain_by_name(self, &name).await?.ok_or_else(|| {
            StoreError::other(format!(
                "the domain {name} disappeared while it was inserted"
            ))
        })
    }

    /// Inserts domains, whose keys the database assigns. A name that another write has registered meanwhile is
    /// skipped. Callers must pass the rows in the order of names, because two writes that insert the same names wait
    /// for each other.
    pub async fn insert_domains(&self, rows: Vec<domain::Model>) -> Result<(), StoreError> {
        let conflict = OnConflict::column(domain::Column::Name)
            .target_and_where(domain::Column::DeletedAt.is_null())
            .do_nothing()
            .to_owned();
        let rows = rows.into_iter().map(|row| {
            without_id(row, |active: &mut domain::ActiveModel| {
                active.id = unset_id()
            })
        });
        self.insert_rows(rows, Some(conflict)).await
    }

    /// Deletes domains that this write has inserted and not used.
    pub async fn undo_domain_inserts(&self, ids: &[i64]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        domain::Entity::delete_many()
            .filter(domain::Column::Id.is_in(ids.iter().copied()))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Inserts a source, whose key the database assigns.
    pub async fn insert_source(&self, row: source::Model) -> Result<source::Model, StoreError> {
        self.pending_changes.mark_domains([row.domain_id]);
        let active = without_id(row, |active: &mut source::ActiveModel| {
            active.id = unset_id()
        });
        Ok(source::Entity::insert(active)
            .exec_with_returning(self.connection())
            .await?)
    }

    pub async fn insert_proof(&self, row: proof::Model) -> Result<(), StoreError> {
        let active = without_id(row, |active: &mut proof::ActiveModel| {
            active.id = unset_id()
        });
        proof::Entity::insert(active)
            .exec_without_returning(self.connection())
            .await?;
        Ok(())
    }

    /// Makes the next visit of a domain due at this time, unless it is due earlier: a caller waits for it.
    pub async fn bring_visit_forward(&self, id: i64, at: i64) -> Result<(), StoreError> {
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                visit_due_at: Set(Some(at)),
                visit_interval_us: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(id))
            .filter(
                Condition::any()
                    .add(domain::Column::VisitDueAt.is_null())
                    .add(domain::Column::VisitDueAt.gt(at)),
            )
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Records that a visit was requested while one was under way.
    pub async fn request_followup_visit(&self, id: i64, at: i64) -> Result<(), StoreError> {
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                wanted_at: Set(Some(at)),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Makes the next fetch of a domain's sources unconditional; returns for how many sources this is new.
    pub async fn force_full_fetch(&self, domain: i64) -> Result<u64, StoreError> {
        let updated = source::Entity::update_many()
            .col_expr(source::Column::FullWanted, Expr::value(true))
            .filter(source::Column::DomainId.eq(domain))
            .filter(source::Column::EndedAt.is_null())
            .filter(source::Column::FullWanted.eq(false))
            .exec(self.connection())
            .await?;
        Ok(updated.rows_affected)
    }

    /// Makes the catalogs of a domain that were read before due at this time with an unconditional fetch, including
    /// those at registered URLs; returns whether there are any.
    pub async fn force_full_catalog_fetch(&self, domain: i64, at: i64) -> Result<bool, StoreError> {
        use source::Column as C;
        let kinds = SourceKind::CATALOGS.map(SourceKind::as_str);
        let listing_catalogs = Query::select()
            .column(C::CatalogId)
            .from(source::Entity)
            .and_where(C::DomainId.eq(domain))
            .and_where(C::CatalogId.is_not_null())
            .and_where(C::EndedAt.is_null())
            .take();
        let catalogs = Condition::any()
            .add(C::Kind.is_in(kinds))
            .add(C::Id.in_subquery(listing_catalogs));
        let updated = source::Entity::update_many()
            .col_expr(C::FullWanted, Expr::value(true))
            .col_expr(C::NextDueAt, Expr::value(at))
            .filter(C::DomainId.eq(domain))
            .filter(catalogs)
            .filter(C::EndedAt.is_null())
            .filter(C::LastSuccessAt.is_not_null())
            .exec(self.connection())
            .await?;
        Ok(updated.rows_affected > 0)
    }

    /// Makes the next visit of a domain and all its sources due at this time. The planned times of the sources are
    /// stored.
    pub async fn make_domain_due(&self, id: i64, at: i64) -> Result<(), StoreError> {
        self.pending_changes.mark_domains([id]);
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                visit_due_at: Set(Some(at)),
                visit_interval_us: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        source::Entity::update_many()
            .col_expr(
                source::Column::PlannedAt,
                Func::coalesce([
                    Expr::col(source::Column::PlannedAt),
                    Expr::col(source::Column::NextDueAt),
                ])
                .into(),
            )
            .col_expr(source::Column::NextDueAt, Expr::value(at))
            .filter(source::Column::DomainId.eq(id))
            .filter(source::Column::EndedAt.is_null())
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Ends the sources of these agents.
    pub async fn end_sources_of_agents(&self, agents: &[Uuid], at: i64) -> Result<(), StoreError> {
        if agents.is_empty() {
            return Ok(());
        }
        self.pending_changes.mark_agents(agents);
        source::Entity::update_many()
            .col_expr(source::Column::EndedAt, Expr::value(at))
            .filter(source::Column::AgentId.is_in(agents.iter().copied()))
            .filter(source::Column::EndedAt.is_null())
            .exec(self.connection())
            .await?;
        Ok(())
    }

    pub async fn end_source(&self, id: i64, at: i64) -> Result<(), StoreError> {
        self.pending_changes.mark_everything();
        source::Entity::update_many()
            .col_expr(source::Column::EndedAt, Expr::value(at))
            .filter(source::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Changes the URL of a source to one that no live source of the same kind in its domain has.
    pub async fn set_source_url(&self, id: i64, url: &str) -> Result<(), StoreError> {
        self.pending_changes.mark_everything();
        source::Entity::update_many()
            .col_expr(source::Column::Url, Expr::value(url))
            .filter(source::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Sets the account that approves a source's first card.
    pub async fn set_source_preapproval(&self, id: i64, account: Uuid) -> Result<(), StoreError> {
        source::Entity::update_many()
            .col_expr(source::Column::ApproveAs, Expr::value(account))
            .filter(source::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Clears the accounts that approve the first cards of a domain's sources.
    pub async fn clear_preapprovals(&self, domain: i64) -> Result<(), StoreError> {
        source::Entity::update_many()
            .col_expr(source::Column::ApproveAs, Expr::value(Option::<Uuid>::None))
            .filter(source::Column::DomainId.eq(domain))
            .filter(source::Column::ApproveAs.is_not_null())
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Ends a domain with its visits, sources and proofs; its name can be registered again.
    pub async fn end_domain(&self, id: i64, at: i64) -> Result<(), StoreError> {
        self.pending_changes.mark_domains([id]);
        domain::Entity::update_many()
            .set(domain::ActiveModel {
                deleted_at: Set(Some(at)),
                visit_due_at: Set(None),
                check_due_at: Set(None),
                lease: Set(None),
                leased_until: Set(None),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(id))
            .exec(self.connection())
            .await?;
        source::Entity::update_many()
            .col_expr(source::Column::EndedAt, Expr::value(at))
            .filter(source::Column::DomainId.eq(id))
            .filter(source::Column::EndedAt.is_null())
            .exec(self.connection())
            .await?;
        proof::Entity::update_many()
            .col_expr(proof::Column::EndedAt, Expr::value(at))
            .filter(proof::Column::DomainId.eq(id))
            .filter(proof::Column::EndedAt.is_null())
            .exec(self.connection())
            .await?;
        Ok(())
    }
}
