//! Challenges, proofs, and the results of checks.

use std::ops::RangeInclusive;

use a2a_registry_domain::ownership::{DomainState, ProofOutcome};
use a2a_registry_domain::timestamp::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{ColumnTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::accounts::{unnumbered, unset};
use super::entity::queries::rows_with;
use super::entity::{challenge, domain, enrolled_key, owner_marks, proof, proof_check};
use super::rows::locked;
use super::{Handle, StoreError, Write};

const KEPT_CHECKS: u64 = 20;

pub async fn challenges_of(
    on: &impl Handle,
    domains: &[i64],
) -> Result<Vec<challenge::Model>, StoreError> {
    let query = challenge::Entity::find().order_by_asc(challenge::Column::Id);
    rows_with(on, query, challenge::Column::DomainId, domains).await
}

pub async fn challenges_by(
    on: &impl Handle,
    account: Uuid,
    now: i64,
    limit: u64,
) -> Result<Vec<challenge::Model>, StoreError> {
    Ok(challenge::Entity::find()
        .filter(challenge::Column::AccountId.eq(account))
        .filter(challenge::Column::ExpiresAt.gt(now))
        .order_by_asc(challenge::Column::Id)
        .limit(limit)
        .all(on.connection())
        .await?)
}

pub async fn checks_of(
    on: &impl Handle,
    domains: &[i64],
) -> Result<Vec<proof_check::Model>, StoreError> {
    let query = proof_check::Entity::find().order_by_desc(proof_check::Column::Id);
    rows_with(on, query, proof_check::Column::DomainId, domains).await
}

/// The owner marks of these domains, from the last check that found a proof.
pub async fn owner_marks_of(
    on: &impl Handle,
    domains: &[i64],
) -> Result<Vec<owner_marks::Model>, StoreError> {
    let query = owner_marks::Entity::find();
    rows_with(on, query, owner_marks::Column::DomainId, domains).await
}

pub async fn enrolled_of(
    on: &impl Handle,
    domains: &[i64],
) -> Result<Vec<enrolled_key::Model>, StoreError> {
    let query = enrolled_key::Entity::find().order_by_asc(enrolled_key::Column::Kid);
    rows_with(on, query, enrolled_key::Column::DomainId, domains).await
}

/// The times of an account's failed checks of a domain within `within`, each once, oldest first.
pub async fn failed_checks(
    on: &impl Handle,
    domain: i64,
    actor: &str,
    within: RangeInclusive<Timestamp>,
) -> Result<Vec<i64>, StoreError> {
    let rows = proof_check::Entity::find()
        .filter(proof_check::Column::DomainId.eq(domain))
        .filter(proof_check::Column::Actor.eq(actor))
        .filter(proof_check::Column::At.gt(within.start().0))
        .filter(proof_check::Column::At.lte(within.end().0))
        .order_by_asc(proof_check::Column::At)
        .all(on.connection())
        .await?;
    let mut moments: Vec<i64> = rows.iter().map(|row| row.at).collect();
    moments.dedup();
    moments.retain(|at| {
        rows.iter()
            .filter(|row| row.at == *at)
            .all(|row| row.outcome != ProofOutcome::Held)
    });
    Ok(moments)
}

impl Write {
    /// Inserts challenges; each replaces the account's earlier challenge of that domain.
    pub async fn challenges_put(&self, rows: Vec<challenge::Model>) -> Result<(), StoreError> {
        let rows = rows.into_iter().map(|row| {
            unnumbered(row, |active: &mut challenge::ActiveModel| {
                active.id = unset()
            })
        });
        let known =
            OnConflict::columns([challenge::Column::DomainId, challenge::Column::AccountId])
                .update_columns([challenge::Column::Nonce, challenge::Column::ExpiresAt])
                .to_owned();
        self.insert_rows(rows, Some(known)).await
    }

    /// Inserts checks of a domain, and deletes all but the newest checks made before `since`.
    pub async fn checks_insert(
        &self,
        domain: i64,
        rows: Vec<proof_check::Model>,
        since: i64,
    ) -> Result<(), StoreError> {
        let rows = rows.into_iter().map(|row| {
            unnumbered(row, |active: &mut proof_check::ActiveModel| {
                active.id = unset()
            })
        });
        self.insert_rows(rows, None).await?;
        let oldest = proof_check::Entity::find()
            .filter(proof_check::Column::DomainId.eq(domain))
            .order_by_desc(proof_check::Column::Id)
            .offset(KEPT_CHECKS - 1)
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

    pub async fn proof_update(&self, row: &proof::Model) -> Result<(), StoreError> {
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
    pub async fn domain_update(&self, row: &domain::Model) -> Result<(), StoreError> {
        self.changed.domains([row.id]);
        let rows = domain::Entity::update_many()
            .set(domain::ActiveModel {
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

    pub async fn challenge_end(&self, domain: i64, account: Uuid) -> Result<(), StoreError> {
        let rows = challenge::Entity::delete_many()
            .filter(challenge::Column::DomainId.eq(domain))
            .filter(challenge::Column::AccountId.eq(account));
        self.delete_rows(rows).await
    }

    /// Makes a domain's next check due at this time, if the domain is checked at all.
    pub async fn domain_check_soon(&self, id: i64, at: i64) -> Result<(), StoreError> {
        let rows = domain::Entity::update_many()
            .col_expr(domain::Column::CheckDueAt, Expr::value(at))
            .filter(domain::Column::Id.eq(id))
            .filter(domain::Column::CheckDueAt.gt(at));
        self.update_rows(rows).await
    }

    /// Makes the next checks of unproved hosts below a name, of those the account has registered, due at this time.
    pub async fn checks_soon_below(
        &self,
        zone: &str,
        account: Uuid,
        at: i64,
    ) -> Result<(), StoreError> {
        use domain::Column as C;
        let claimed = Query::select()
            .column(challenge::Column::DomainId)
            .from(challenge::Entity)
            .and_where(challenge::Column::AccountId.eq(account))
            .take();
        let below = domain::Entity::find()
            .filter(C::Id.in_subquery(claimed))
            .filter(C::Name.ends_with(format!(".{zone}")))
            .filter(C::State.ne(DomainState::Verified.as_str()))
            .filter(C::CheckDueAt.gt(at))
            .filter(C::DeletedAt.is_null())
            .order_by_asc(C::Id);
        // Locked in the order of all writes: the update alone would lock in any order, and could deadlock.
        let below = locked(self, below).all(self.connection()).await?;
        let rows = domain::Entity::update_many()
            .col_expr(C::CheckDueAt, Expr::value(at))
            .filter(C::Id.is_in(below.iter().map(|row| row.id)));
        self.update_rows(rows).await
    }

    pub async fn owner_marks_keep(&self, row: owner_marks::Model) -> Result<(), StoreError> {
        use owner_marks::Column as C;
        self.changed.domains([row.domain_id]);
        let known = OnConflict::column(C::DomainId)
            .update_columns([C::NameServers, C::TlsKey, C::CardKeys, C::SeenAt])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(known))
            .await
    }

    pub async fn owner_marks_end(&self, domain: i64) -> Result<(), StoreError> {
        self.changed.domains([domain]);
        owner_marks::Entity::delete_by_id(domain)
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Inserts an enrolled key of a domain, or replaces the key with the same `kid`.
    pub async fn key_enrol(&self, row: enrolled_key::Model) -> Result<(), StoreError> {
        use enrolled_key::Column as C;
        self.changed.domains([row.domain_id]);
        let active = unnumbered(row, |active: &mut enrolled_key::ActiveModel| {
            active.id = unset()
        });
        let known = OnConflict::columns([C::DomainId, C::Kid])
            .update_columns([C::Thumbprint, C::Jwk, C::Actor, C::CreatedAt])
            .to_owned();
        self.insert_rows([active], Some(known)).await
    }

    pub async fn key_withdraw(&self, domain: i64, kid: &str) -> Result<bool, StoreError> {
        self.changed.domains([domain]);
        let outcome = enrolled_key::Entity::delete_many()
            .filter(enrolled_key::Column::DomainId.eq(domain))
            .filter(enrolled_key::Column::Kid.eq(kid))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    /// Stops visits to a domain until one is made due again.
    pub async fn domain_rest(&self, id: i64) -> Result<(), StoreError> {
        let rows = domain::Entity::update_many()
            .col_expr(domain::Column::VisitDueAt, Expr::value(Option::<i64>::None))
            .filter(domain::Column::Id.eq(id));
        self.update_rows(rows).await
    }
}
