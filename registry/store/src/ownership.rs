//! Challenges, proofs, and the results of checks.

use std::ops::RangeInclusive;

use a2a_registry_domain::ownership::{DomainState, ProofOutcome};
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::accounts::{unset_id, without_id};
use super::bulk_rows::lock_for_update;
use super::entity::queries::rows_where_in;
use super::entity::{challenge, domain, enrolled_key, owner_fingerprint, proof, proof_check};
use super::{Executor, StoreError, WriteTransaction};

const MAX_STORED_CHECKS: u64 = 20;

pub async fn challenges_by_domain(
    db: &impl Executor,
    domains: &[i64],
) -> Result<Vec<challenge::Model>, StoreError> {
    let query = challenge::Entity::find().order_by_asc(challenge::Column::Id);
    rows_where_in(db, query, challenge::Column::DomainId, domains).await
}

pub async fn live_challenges_by_account(
    db: &impl Executor,
    account: Uuid,
    now: i64,
    limit: u64,
) -> Result<Vec<challenge::Model>, StoreError> {
    Ok(challenge::Entity::find()
        .filter(challenge::Column::AccountId.eq(account))
        .filter(challenge::Column::ExpiresAt.gt(now))
        .order_by_asc(challenge::Column::Id)
        .limit(limit)
        .all(db.connection())
        .await?)
}

pub async fn proof_checks_by_domain(
    db: &impl Executor,
    domains: &[i64],
) -> Result<Vec<proof_check::Model>, StoreError> {
    let query = proof_check::Entity::find().order_by_desc(proof_check::Column::Id);
    rows_where_in(db, query, proof_check::Column::DomainId, domains).await
}

/// The owner fingerprints of these domains, from the last check that found a proof.
pub async fn owner_fingerprints_by_domain(
    db: &impl Executor,
    domains: &[i64],
) -> Result<Vec<owner_fingerprint::Model>, StoreError> {
    let query = owner_fingerprint::Entity::find();
    rows_where_in(db, query, owner_fingerprint::Column::DomainId, domains).await
}

pub async fn enrolled_keys_by_domain(
    db: &impl Executor,
    domains: &[i64],
) -> Result<Vec<enrolled_key::Model>, StoreError> {
    let query = enrolled_key::Entity::find().order_by_asc(enrolled_key::Column::Kid);
    rows_where_in(db, query, enrolled_key::Column::DomainId, domains).await
}

/// The distinct times of an account's failed checks of a domain within `period`, oldest first.
pub async fn failed_check_times(
    db: &impl Executor,
    domain: i64,
    actor: &str,
    period: RangeInclusive<Timestamp>,
) -> Result<Vec<i64>, StoreError> {
    let rows = proof_check::Entity::find()
        .filter(proof_check::Column::DomainId.eq(domain))
        .filter(proof_check::Column::Actor.eq(actor))
        .filter(proof_check::Column::At.gt(period.start().0))
        .filter(proof_check::Column::At.lte(period.end().0))
        .order_by_asc(proof_check::Column::At)
        .all(db.connection())
        .await?;
    let mut times: Vec<i64> = rows.iter().map(|row| row.at).collect();
    times.dedup();
    times.retain(|at| {
        rows.iter()
            .filter(|row| row.at == *at)
            .all(|row| row.outcome != ProofOutcome::Held)
    });
    Ok(times)
}

impl WriteTransaction {
    /// Inserts challenges; each replaces the account's earlier challenge of that domain.
    pub async fn upsert_challenges(&self, rows: Vec<challenge::Model>) -> Result<(), StoreError> {
        let rows = rows.into_iter().map(|row| {
            without_id(row, |active: &mut challenge::ActiveModel| {
                active.id = unset_id()
            })
        });
        let known =
            OnConflict::columns([challenge::Column::DomainId, challenge::Column::AccountId])
                .update_columns([challenge::Column::Nonce, challenge::Column::ExpiresAt])
                .to_owned();
        self.insert_rows(rows, Some(known)).await
    }

    /// Inserts checks of a domain, and deletes all but the newest checks made before `since`.
    pub async fn insert_and_trim_checks(
        &self,
        domain: i64,
        rows: Vec<proof_check::Model>,
        since: i64,
    ) -> Result<(), StoreError> {
        let rows = rows.into_iter().map(|row| {
            without_id(row, |active: &mut proof_check::ActiveModel| {
                active.id = unset_id()
            })
        });
        self.insert_rows(rows, None).await?;
        let oldest = proof_check::Entity::find()
            .filter(proof_check::Column::DomainId.eq(domain))
            .order_by_desc(proof_check::Column::Id)
            .offset(MAX_STORED_CHECKS - 1)
            .limit(1)
            .one(self.connection())
            .await?;
        if let Some(oldest) = oldest {
            // Checks of the last hour stay, because failed ones are counted.
            proof_check::Entity::delete_many()
                .filter(proof_check::Column::DomainId.eq(domain))
                .filter(proof_check::Column::Id.lt(oldest.id))
                .filter(proof_check::Column::At.lt(since))
                .exec(self.connection())
                .await?;
        }
        Ok(())
    }

    pub async fn update_proof(&self, row: &proof::Model) -> Result<(), StoreError> {
        let rows = proof::Entity::update_many()
            .set(proof::ActiveModel {
                place: Set(row.place.clone()),
                nonce: Set(row.nonce.clone()),
                held_at: Set(row.held_at),
                absent_since: Set(row.absent_since),
                absent_looks: Set(row.absent_looks),
                ended_at: Set(row.ended_at),
                zone: Set(row.zone.clone()),
                vouched_account: Set(row.vouched_account),
                reason: Set(row.reason.clone()),
                ..Default::default()
            })
            .filter(proof::Column::Id.eq(row.id));
        self.update_rows(rows).await
    }

    /// Updates a domain's state, owner, owner vouch, generation, contact, opt-out, and the time of its next check.
    pub async fn set_domain_ownership(&self, row: &domain::Model) -> Result<(), StoreError> {
        self.pending_changes.mark_domains([row.id]);
        let rows = domain::Entity::update_many()
            .set(domain::ActiveModel {
                scheme: Set(row.scheme.clone()),
                state: Set(row.state.clone()),
                generation: Set(row.generation),
                generation_since: Set(row.generation_since),
                account_id: Set(row.account_id),
                owner_id: Set(row.owner_id),
                dns_proved: Set(row.dns_proved),
                proof_methods: Set(row.proof_methods.clone()),
                contact: Set(row.contact.clone()),
                opted_out_by: Set(row.opted_out_by.clone()),
                lapsed_at: Set(row.lapsed_at),
                check_due_at: Set(row.check_due_at),
                vouched_owner: Set(row.vouched_owner),
                vouched_since: Set(row.vouched_since),
                vouched_until: Set(row.vouched_until),
                vouched_by: Set(row.vouched_by.clone()),
                vouched_reason: Set(row.vouched_reason.clone()),
                ..Default::default()
            })
            .filter(domain::Column::Id.eq(row.id));
        self.update_rows(rows).await
    }

    pub async fn delete_challenge(&self, domain: i64, account: Uuid) -> Result<(), StoreError> {
        let rows = challenge::Entity::delete_many()
            .filter(challenge::Column::DomainId.eq(domain))
            .filter(challenge::Column::AccountId.eq(account));
        self.delete_rows(rows).await
    }

    /// Makes a domain's next check due at this time, if the domain is checked at all.
    pub async fn bring_check_forward(&self, id: i64, at: i64) -> Result<(), StoreError> {
        let rows = domain::Entity::update_many()
            .col_expr(domain::Column::CheckDueAt, Expr::value(at))
            .filter(domain::Column::Id.eq(id))
            .filter(domain::Column::CheckDueAt.gt(at));
        self.update_rows(rows).await
    }

    /// Makes the next checks of unproved hosts below a name due at this time, if the account has registered them.
    pub async fn bring_zone_checks_forward(
        &self,
        zone: &str,
        account: Uuid,
        at: i64,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let challenged_domains = Query::select()
            .column(challenge::Column::DomainId)
            .from(challenge::Entity)
            .and_where(challenge::Column::AccountId.eq(account))
            .take();
        let domains_below = domain::Entity::find()
            .filter(C::Id.in_subquery(challenged_domains))
            .filter(C::Name.ends_with(format!(".{zone}")))
            .filter(C::State.ne(DomainState::Verified.as_str()))
            .filter(C::CheckDueAt.gt(at))
            .filter(C::DeletedAt.is_null())
            .order_by_asc(C::Id);
        // Locked in the order of all writes: the update alone would lock in any order, and could deadlock.
        let below = lock_for_update(self, domains_below)
            .all(self.connection())
            .await?;
        let rows = domain::Entity::update_many()
            .col_expr(C::CheckDueAt, Expr::value(at))
            .filter(C::Id.is_in(below.iter().map(|row| row.id)));
        self.update_rows(rows).await
    }

    pub async fn upsert_owner_fingerprint(
        &self,
        row: owner_fingerprint::Model,
    ) -> Result<(), StoreError> {
        use owner_fingerprint::Column as C;
        self.pending_changes.mark_domains([row.domain_id]);
        let known = OnConflict::column(C::DomainId)
            .update_columns([C::NameServers, C::TlsKey, C::CardKeys, C::SeenAt])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(known))
            .await
    }

    pub async fn delete_owner_fingerprint(&self, domain: i64) -> Result<(), StoreError> {
        self.pending_changes.mark_domains([domain]);
        owner_fingerprint::Entity::delete_by_id(domain)
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Inserts an enrolled key of a domain, or replaces the key with the same `kid`.
    pub async fn enroll_key(&self, row: enrolled_key::Model) -> Result<(), StoreError> {
        use enrolled_key::Column as C;
        self.pending_changes.mark_domains([row.domain_id]);
        let active = without_id(row, |active: &mut enrolled_key::ActiveModel| {
            active.id = unset_id()
        });
        let known = OnConflict::columns([C::DomainId, C::Kid])
            .update_columns([C::Thumbprint, C::Jwk, C::Actor, C::CreatedAt])
            .to_owned();
        self.insert_rows([active], Some(known)).await
    }

    pub async fn withdraw_key(&self, domain: i64, kid: &str) -> Result<bool, StoreError> {
        self.pending_changes.mark_domains([domain]);
        let outcome = enrolled_key::Entity::delete_many()
            .filter(enrolled_key::Column::DomainId.eq(domain))
            .filter(enrolled_key::Column::Kid.eq(kid))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Stops visits to a domain until one is made due again.
    pub async fn pause_visits(&self, id: i64) -> Result<(), StoreError> {
        let rows = domain::Entity::update_many()
            .col_expr(domain::Column::VisitDueAt, Expr::value(Option::<i64>::None))
            .filter(domain::Column::Id.eq(id));
        self.update_rows(rows).await
    }
}
