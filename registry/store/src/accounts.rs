//! Accounts and their tokens.

use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::{Expr, Func, LockType};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait,
};
use uuid::Uuid;

use a2a_registry_domain::role::Role;

use super::connect::advisory_lock;
use super::entity::queries::page_before;
use super::entity::{account, token};
use super::rows::{MAX_VALUES, can_be_stored, padded};
use super::{Handle, StoreError, Write};

const ACCOUNTS_LOCK: i64 = 0x6132_6172_0003;

pub async fn account_by_name(
    on: &impl Handle,
    name: &str,
) -> Result<Option<account::Model>, StoreError> {
    if !can_be_stored(name) {
        return Ok(None);
    }
    Ok(account::Entity::find()
        .filter(account::Column::Name.eq(name))
        .one(on.connection())
        .await?)
}

pub async fn accounts_by_ids(
    on: &impl Handle,
    ids: &[Uuid],
) -> Result<Vec<account::Model>, StoreError> {
    let mut found = Vec::new();
    for ids in ids.chunks(MAX_VALUES) {
        let query = account::Entity::find().filter(account::Column::Id.is_in(padded(ids)));
        found.extend(query.all(on.connection()).await?);
    }
    Ok(found)
}

pub async fn accounts_by_names(
    on: &impl Handle,
    names: &[String],
) -> Result<Vec<account::Model>, StoreError> {
    if names.is_empty() || names.iter().any(|name| !can_be_stored(name)) {
        return Ok(Vec::new());
    }
    Ok(account::Entity::find()
        .filter(account::Column::Name.is_in(names))
        .all(on.connection())
        .await?)
}

/// The names of accounts that equal one of these lower-case names, ignoring case and surrounding blanks.
pub async fn account_names_among(
    on: &impl Handle,
    names: &[&str],
) -> Result<Vec<String>, StoreError> {
    Ok(account::Entity::find()
        .select_only()
        .column(account::Column::Name)
        .filter(is_among(account::Column::Name, names))
        .order_by_asc(account::Column::Name)
        .into_tuple()
        .all(on.connection())
        .await?)
}

/// Whether the text of a column equals one of these lower-case texts, ignoring case and surrounding blanks.
pub(super) fn is_among(column: impl ColumnTrait, names: &[&str]) -> Expr {
    let trimmed = Func::cust("trim").arg(Expr::col(column));
    sea_orm::ExprTrait::is_in(Func::lower(trimmed), names.iter().copied())
}

/// The token with this hash, and its account. The caller checks whether it has expired.
pub async fn token_by_hash(
    on: &impl Handle,
    hash: &str,
) -> Result<Option<(token::Model, account::Model)>, StoreError> {
    let token = token::Entity::find()
        .filter(token::Column::Hash.eq(hash))
        .one(on.connection())
        .await?;
    with_account(on, token, |token| token.account_id).await
}

/// A row with the account that it belongs to, if both exist.
pub(super) async fn with_account<M>(
    on: &impl Handle,
    row: Option<M>,
    account_of: fn(&M) -> Uuid,
) -> Result<Option<(M, account::Model)>, StoreError> {
    let Some(row) = row else {
        return Ok(None);
    };
    let account = account::Entity::find_by_id(account_of(&row))
        .one(on.connection())
        .await?;
    Ok(account.map(|account| (row, account)))
}

pub async fn token_by_id(on: &impl Handle, id: Uuid) -> Result<Option<token::Model>, StoreError> {
    Ok(token::Entity::find_by_id(id).one(on.connection()).await?)
}

/// The number of an account's tokens that have not expired, apart from the bootstrap token.
pub async fn token_count(on: &impl Handle, account: Uuid, now: i64) -> Result<u64, StoreError> {
    let live = Condition::any()
        .add(token::Column::ExpiresAt.is_null())
        .add(token::Column::ExpiresAt.gt(now));
    Ok(token::Entity::find()
        .filter(token::Column::AccountId.eq(account))
        .filter(token::Column::Bootstrap.eq(false))
        .filter(live)
        .count(on.connection())
        .await?)
}

/// Tokens with ids below `before`, newest first: those of the account `of`, or all.
pub async fn token_page(
    on: &impl Handle,
    of: Option<Uuid>,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<token::Model>, StoreError> {
    use token::Column as C;
    let query = token::Entity::find();
    let own = query.apply_if(of, |query, of| query.filter(C::AccountId.eq(of)));
    let page = page_before(own, C::Id, before, limit);
    Ok(page.all(on.connection()).await?)
}

pub async fn account_page(
    on: &impl Handle,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<account::Model>, StoreError> {
    let page = page_before(account::Entity::find(), account::Column::Id, before, limit);
    Ok(page.all(on.connection()).await?)
}

pub async fn accounts_enabled_as(
    on: &impl Handle,
    role: Role,
) -> Result<Vec<account::Model>, StoreError> {
    Ok(account::Entity::find()
        .filter(account::Column::Role.eq(role.as_str()))
        .filter(account::Column::DisabledAt.is_null())
        .filter(account::Column::AccessEndedAt.is_null())
        .all(on.connection())
        .await?)
}

impl Write {
    /// Locks accounts, groups and tokens until the write ends, so that counts and comparisons made before a change
    /// still hold when it is made, and processes that start together create the first account once.
    pub async fn accounts_lock(&self) -> Result<(), StoreError> {
        if self.locks_rows() {
            advisory_lock(self.connection(), ACCOUNTS_LOCK).await?;
        }
        Ok(())
    }

    /// Serializes the writes that count an account's registrations. Taken before any domain is locked. Rows that refer
    /// to the account may still be inserted.
    pub async fn account_lock(&self, id: Uuid) -> Result<(), StoreError> {
        if self.locks_rows() {
            account::Entity::find_by_id(id)
                .lock(LockType::NoKeyUpdate)
                .one(self.connection())
                .await?;
        }
        Ok(())
    }

    pub async fn account_insert(&self, row: account::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Updates an account's roles and whether it may be used.
    pub async fn account_update(&self, row: &account::Model) -> Result<(), StoreError> {
        let rows = account::Entity::update_many()
            .col_expr(account::Column::Role, Expr::value(row.role.as_str()))
            .col_expr(account::Column::Roles, Expr::value(row.roles.clone()))
            .col_expr(account::Column::DisabledAt, Expr::value(row.disabled_at))
            .col_expr(
                account::Column::ClaimsValidAt,
                Expr::value(row.claims_valid_at),
            )
            .col_expr(
                account::Column::AccessEndedAt,
                Expr::value(row.access_ended_at),
            )
            .filter(account::Column::Id.eq(row.id));
        self.update_rows(rows).await
    }

    /// Notes how far an account has seen the news of its agents; never moves back.
    pub async fn news_seen(&self, account: Uuid, at: i64) -> Result<(), StoreError> {
        let older = Condition::any()
            .add(account::Column::NewsSeenAt.is_null())
            .add(account::Column::NewsSeenAt.lt(at));
        let rows = account::Entity::update_many()
            .col_expr(account::Column::NewsSeenAt, Expr::value(at))
            .filter(account::Column::Id.eq(account))
            .filter(older);
        self.update_rows(rows).await
    }

    pub async fn token_used(&self, id: Uuid, hour: i64) -> Result<(), StoreError> {
        let rows = token::Entity::update_many()
            .col_expr(token::Column::LastUsedAt, Expr::value(hour))
            .filter(token::Column::Id.eq(id));
        self.update_rows(rows).await
    }

    /// Removes an account's tokens that have expired by `by`, or all where it is `None`. The bootstrap token stays.
    pub async fn tokens_end(&self, account: Uuid, by: Option<i64>) -> Result<u64, StoreError> {
        let mut query = token::Entity::delete_many()
            .filter(token::Column::AccountId.eq(account))
            .filter(token::Column::Bootstrap.eq(false));
        if let Some(by) = by {
            query = query.filter(token::Column::ExpiresAt.lte(by));
        }
        Ok(query.exec(self.connection()).await?.rows_affected)
    }

    pub async fn token_insert(&self, row: token::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    pub async fn token_delete(&self, id: Uuid) -> Result<bool, StoreError> {
        let outcome = token::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    pub async fn token_delete_bootstrap(&self, keep_hash: &str) -> Result<(), StoreError> {
        let rows = token::Entity::delete_many()
            .filter(token::Column::Bootstrap.eq(true))
            .filter(token::Column::Hash.ne(keep_hash));
        self.delete_rows(rows).await
    }
}

pub async fn token_has_bootstrap(on: &impl Handle) -> Result<bool, StoreError> {
    let row = token::Entity::find()
        .filter(token::Column::Bootstrap.eq(true))
        .one(on.connection())
        .await?;
    Ok(row.is_some())
}

/// The row without its key, for tables whose keys the database assigns.
pub(super) fn unnumbered<M, A>(row: M, unset: impl FnOnce(&mut A)) -> A
where
    M: IntoActiveModel<A>,
    A: sea_orm::ActiveModelTrait,
{
    let mut active = row.into_active_model();
    unset(&mut active);
    active
}

pub(super) fn unset() -> sea_orm::ActiveValue<i64> {
    NotSet
}
