//! Accounts and their tokens.

use sea_orm::ActiveValue::NotSet;
use sea_orm::sea_query::{Expr, Func, LockType};
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, QueryTrait,
};
use uuid::Uuid;

use a2a_registry_domain::role::Role;

use super::bulk_rows::{MAX_BOUND_VALUES, is_storable_text, pad_keys};
use super::connection::take_advisory_lock;
use super::entity::queries::page_before;
use super::entity::{account, token};
use super::{Executor, StoreError, WriteTransaction};

const ACCOUNTS_LOCK: i64 = 0x6132_6172_0003;

pub async fn account_by_name(
    db: &impl Executor,
    name: &str,
) -> Result<Option<account::Model>, StoreError> {
    if !is_storable_text(name) {
        return Ok(None);
    }
    Ok(account::Entity::find()
        .filter(account::Column::Name.eq(name))
        .one(db.connection())
        .await?)
}

pub async fn accounts_by_ids(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<account::Model>, StoreError> {
    let mut accounts = Vec::new();
    for ids in ids.chunks(MAX_BOUND_VALUES) {
        let query = account::Entity::find().filter(account::Column::Id.is_in(pad_keys(ids)));
        accounts.extend(query.all(db.connection()).await?);
    }
    Ok(accounts)
}

pub async fn accounts_by_names(
    db: &impl Executor,
    names: &[String],
) -> Result<Vec<account::Model>, StoreError> {
    if names.is_empty() || names.iter().any(|name| !is_storable_text(name)) {
        return Ok(Vec::new());
    }
    Ok(account::Entity::find()
        .filter(account::Column::Name.is_in(names))
        .all(db.connection())
        .await?)
}

/// The names of accounts that equal one of these lower-case names, ignoring case and surrounding blanks.
pub async fn account_names_matching(
    db: &impl Executor,
    names: &[&str],
) -> Result<Vec<String>, StoreError> {
    Ok(account::Entity::find()
        .select_only()
        .column(account::Column::Name)
        .filter(any_name_condition(account::Column::Name, names))
        .order_by_asc(account::Column::Name)
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// Whether the text of a column equals one of these lower-case texts, ignoring case and surrounding blanks.
pub(super) fn any_name_condition(column: impl ColumnTrait, names: &[&str]) -> Expr {
    let trimmed = Func::cust("trim").arg(Expr::col(column));
    sea_orm::ExprTrait::is_in(Func::lower(trimmed), names.iter().copied())
}

/// The token with this hash, and its account. The caller checks whether it has expired.
pub async fn token_by_hash(
    db: &impl Executor,
    hash: &str,
) -> Result<Option<(token::Model, account::Model)>, StoreError> {
    let token = token::Entity::find()
        .filter(token::Column::Hash.eq(hash))
        .one(db.connection())
        .await?;
    pair_with_account(db, token, |token| token.account_id).await
}

/// A row and its account, if both exist.
pub(super) async fn pair_with_account<M>(
    db: &impl Executor,
    row: Option<M>,
    account_of: fn(&M) -> Uuid,
) -> Result<Option<(M, account::Model)>, StoreError> {
    let Some(row) = row else {
        return Ok(None);
    };
    let account = account::Entity::find_by_id(account_of(&row))
        .one(db.connection())
        .await?;
    Ok(account.map(|account| (row, account)))
}

pub async fn token_by_id(db: &impl Executor, id: Uuid) -> Result<Option<token::Model>, StoreError> {
    Ok(token::Entity::find_by_id(id).one(db.connection()).await?)
}

/// The number of an account's tokens that have not expired, apart from the bootstrap token.
pub async fn live_account_token_count(
    db: &impl Executor,
    account: Uuid,
    now: i64,
) -> Result<u64, StoreError> {
    let live = Condition::any()
        .add(token::Column::ExpiresAt.is_null())
        .add(token::Column::ExpiresAt.gt(now));
    Ok(token::Entity::find()
        .filter(token::Column::AccountId.eq(account))
        .filter(token::Column::Bootstrap.eq(false))
        .filter(live)
        .count(db.connection())
        .await?)
}

/// Tokens with ids below `before`, newest first: those of `account`, or all if it is `None`.
pub async fn token_page(
    db: &impl Executor,
    account: Option<Uuid>,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<token::Model>, StoreError> {
    use token::Column as C;
    let query = token::Entity::find();
    let own = query.apply_if(account, |query, of| query.filter(C::AccountId.eq(of)));
    let page = page_before(own, C::Id, before, limit);
    Ok(page.all(db.connection()).await?)
}

pub async fn account_page(
    db: &impl Executor,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<account::Model>, StoreError> {
    let page = page_before(account::Entity::find(), account::Column::Id, before, limit);
    Ok(page.all(db.connection()).await?)
}

pub async fn enabled_accounts_by_role(
    db: &impl Executor,
    role: Role,
) -> Result<Vec<account::Model>, StoreError> {
    Ok(account::Entity::find()
        .filter(account::Column::Role.eq(role.as_str()))
        .filter(account::Column::DisabledAt.is_null())
        .filter(account::Column::AccessEndedAt.is_null())
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Locks accounts, groups and tokens until the write ends, so that counts and comparisons made before a change
    /// still hold when it is made, and processes that start together create the first account once.
    pub async fn lock_accounts(&self) -> Result<(), StoreError> {
        if self.locks_rows() {
            take_advisory_lock(self.connection(), ACCOUNTS_LOCK).await?;
        }
        Ok(())
    }

    /// Serializes writes that count an account's registrations. Must be called before any domain is locked. Other
    /// writes can still insert rows that refer to the account.
    pub async fn lock_account(&self, id: Uuid) -> Result<(), StoreError> {
        if self.locks_rows() {
            account::Entity::find_by_id(id)
                .lock(LockType::NoKeyUpdate)
                .one(self.connection())
                .await?;
        }
        Ok(())
    }

    pub async fn insert_account(&self, row: account::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    /// Updates an account's roles and whether it may be used.
    pub async fn update_account_access(&self, row: &account::Model) -> Result<(), StoreError> {
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

    /// Records the time up to which an account has read the news of its agents; never moves back.
    pub async fn mark_news_read(&self, account: Uuid, at: i64) -> Result<(), StoreError> {
        let older = Condition::any()
            .add(account::Column::NewsSeenAt.is_null())
            .add(account::Column::NewsSeenAt.lt(at));
        let rows = account::Entity::update_many()
            .col_expr(account::Column::NewsSeenAt, Expr::value(at))
            .filter(account::Column::Id.eq(account))
            .filter(older);
        self.update_rows(rows).await
    }

    pub async fn record_token_use(&self, id: Uuid, used_at: i64) -> Result<(), StoreError> {
        let rows = token::Entity::update_many()
            .col_expr(token::Column::LastUsedAt, Expr::value(used_at))
            .filter(token::Column::Id.eq(id));
        self.update_rows(rows).await
    }

    /// Deletes an account's tokens that expire by `expired_by`, or all if it is `None`. The bootstrap token stays.
    pub async fn delete_account_tokens(
        &self,
        account: Uuid,
        expired_by: Option<i64>,
    ) -> Result<u64, StoreError> {
        let mut query = token::Entity::delete_many()
            .filter(token::Column::AccountId.eq(account))
            .filter(token::Column::Bootstrap.eq(false));
        if let Some(by) = expired_by {
            query = query.filter(token::Column::ExpiresAt.lte(by));
        }
        Ok(query.exec(self.connection()).await?.rows_affected)
    }

    pub async fn insert_token(&self, row: token::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    pub async fn delete_token(&self, id: Uuid) -> Result<bool, StoreError> {
        let outcome = token::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    pub async fn delete_other_bootstrap_tokens(&self, keep_hash: &str) -> Result<(), StoreError> {
        let rows = token::Entity::delete_many()
            .filter(token::Column::Bootstrap.eq(true))
            .filter(token::Column::Hash.ne(keep_hash));
        self.delete_rows(rows).await
    }
}

pub async fn has_bootstrap_token(db: &impl Executor) -> Result<bool, StoreError> {
    let row = token::Entity::find()
        .filter(token::Column::Bootstrap.eq(true))
        .one(db.connection())
        .await?;
    Ok(row.is_some())
}

/// The row without its key, for tables whose keys the database assigns.
pub(super) fn without_id<M, A>(row: M, clear_id: impl FnOnce(&mut A)) -> A
where
    M: IntoActiveModel<A>,
    A: sea_orm::ActiveModelTrait,
{
    let mut active = row.into_active_model();
    clear_id(&mut active);
    active
}

pub(super) fn unset_id() -> sea_orm::ActiveValue<i64> {
    NotSet
}
