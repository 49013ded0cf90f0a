//! Groups of accounts. Each has an origin, which decides its members.

use std::collections::HashMap;

use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::accounts::any_name_condition;
use super::bulk_rows::{MAX_BOUND_VALUES, is_storable_text};
use super::entity::queries::{page_before, rows_where_in};
use super::entity::{account_group, agent, collection, group_member};
use super::{Executor, StoreError, WriteTransaction};

/// The origin of groups that admins maintain.
pub const ADMIN_ORIGIN: &str = "admin";

pub async fn group_by_name(
    db: &impl Executor,
    origin: &str,
    name: &str,
) -> Result<Option<account_group::Model>, StoreError> {
    if !is_storable_text(name) {
        return Ok(None);
    }
    Ok(account_group::Entity::find()
        .filter(account_group::Column::Origin.eq(origin))
        .filter(account_group::Column::Name.eq(name))
        .one(db.connection())
        .await?)
}

/// The groups with one of these names, of any origin.
pub async fn groups_by_names(
    db: &impl Executor,
    names: &[String],
) -> Result<Vec<account_group::Model>, StoreError> {
    let storable = names.iter().filter(|name| is_storable_text(name));
    let names: Vec<String> = storable.cloned().collect();
    let query = account_group::Entity::find();
    rows_where_in(db, query, account_group::Column::Name, &names).await
}

pub async fn group_page(
    db: &impl Executor,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<account_group::Model>, StoreError> {
    let query = account_group::Entity::find();
    let page = page_before(query, account_group::Column::Id, before, limit);
    Ok(page.all(db.connection()).await?)
}

pub async fn group_count_by_origin(db: &impl Executor, origin: &str) -> Result<u64, StoreError> {
    Ok(account_group::Entity::find()
        .filter(account_group::Column::Origin.eq(origin))
        .count(db.connection())
        .await?)
}

/// The names of an origin's groups that equal one of these lower-case names, ignoring case and surrounding blanks.
pub async fn group_names_matching(
    db: &impl Executor,
    origin: &str,
    names: &[&str],
) -> Result<Vec<String>, StoreError> {
    Ok(account_group::Entity::find()
        .select_only()
        .column(account_group::Column::Name)
        .filter(account_group::Column::Origin.eq(origin))
        .filter(any_name_condition(account_group::Column::Name, names))
        .order_by_asc(account_group::Column::Name)
        .into_tuple()
        .all(db.connection())
        .await?)
}

pub async fn groups_by_origin(
    db: &impl Executor,
    origin: &str,
) -> Result<Vec<account_group::Model>, StoreError> {
    Ok(account_group::Entity::find()
        .filter(account_group::Column::Origin.eq(origin))
        .all(db.connection())
        .await?)
}

/// The groups with these ids, by origin and name.
pub async fn groups_by_ids(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<account_group::Model>, StoreError> {
    let query = account_group::Entity::find()
        .order_by_asc(account_group::Column::Origin)
        .order_by_asc(account_group::Column::Name);
    rows_where_in(db, query, account_group::Column::Id, ids).await
}

pub async fn group_member_ids(
    db: &impl Executor,
    group: Uuid,
    limit: u64,
) -> Result<Vec<Uuid>, StoreError> {
    Ok(group_member::Entity::find()
        .select_only()
        .column(group_member::Column::AccountId)
        .filter(group_member::Column::GroupId.eq(group))
        .order_by_asc(group_member::Column::AccountId)
        .limit(limit)
        .into_tuple()
        .all(db.connection())
        .await?)
}

pub async fn group_member_count(db: &impl Executor, group: Uuid) -> Result<u64, StoreError> {
    Ok(group_member::Entity::find()
        .filter(group_member::Column::GroupId.eq(group))
        .count(db.connection())
        .await?)
}

pub async fn is_group_empty(db: &impl Executor, group: Uuid) -> Result<bool, StoreError> {
    let member = group_member::Entity::find()
        .filter(group_member::Column::GroupId.eq(group))
        .one(db.connection())
        .await?;
    Ok(member.is_none())
}

/// Whether the audience of an agent or a collection includes a group.
pub async fn any_audience_has_group(db: &impl Executor, group: Uuid) -> Result<bool, StoreError> {
    let group = group.to_string();
    let agent = agent::Entity::find()
        .filter(agent::Column::Audience.contains(&group))
        .one(db.connection())
        .await?;
    if agent.is_some() {
        return Ok(true);
    }
    let collection = collection::Entity::find()
        .filter(collection::Column::Audience.contains(&group))
        .one(db.connection())
        .await?;
    Ok(collection.is_some())
}

/// The groups of these accounts, by origin and name, each with the account.
pub async fn groups_by_account(
    db: &impl Executor,
    accounts: &[Uuid],
) -> Result<Vec<(Uuid, account_group::Model)>, StoreError> {
    let mut accounts_by_group: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
    for chunk in accounts.chunks(MAX_BOUND_VALUES) {
        let members = group_member::Entity::find()
            .filter(group_member::Column::AccountId.is_in(chunk.iter().copied()))
            .all(db.connection())
            .await?;
        for member in members {
            let of_it = accounts_by_group.entry(member.group_id).or_default();
            of_it.push(member.account_id);
        }
    }
    let ids: Vec<Uuid> = accounts_by_group.keys().copied().collect();
    let mut groups = Vec::with_capacity(ids.len());
    for some in ids.chunks(MAX_BOUND_VALUES) {
        groups.extend(groups_by_ids(db, some).await?);
    }
    groups
        .sort_unstable_by(|one, other| (&one.origin, &one.name).cmp(&(&other.origin, &other.name)));
    let pair_with_accounts = |group: account_group::Model| {
        let members = accounts_by_group.remove(&group.id).unwrap_or_default();
        members
            .into_iter()
            .map(move |account| (account, group.clone()))
    };
    Ok(groups.into_iter().flat_map(pair_with_accounts).collect())
}

impl WriteTransaction {
    pub async fn insert_group(&self, row: account_group::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    pub async fn delete_group(&self, id: Uuid) -> Result<(), StoreError> {
        group_member::Entity::delete_many()
            .filter(group_member::Column::GroupId.eq(id))
            .exec(self.connection())
            .await?;
        account_group::Entity::delete_by_id(id)
            .exec(self.connection())
            .await?;
        Ok(())
    }

    pub async fn insert_group_members(
        &self,
        rows: Vec<group_member::Model>,
    ) -> Result<(), StoreError> {
        let rows = rows.into_iter().map(IntoActiveModel::into_active_model);
        self.insert_rows(rows, None).await
    }

    pub async fn delete_group_members(
        &self,
        group: Uuid,
        accounts: &[Uuid],
    ) -> Result<(), StoreError> {
        for some in accounts.chunks(MAX_BOUND_VALUES - 1) {
            group_member::Entity::delete_many()
                .filter(group_member::Column::GroupId.eq(group))
                .filter(group_member::Column::AccountId.is_in(some.iter().copied()))
                .exec(self.connection())
                .await?;
        }
        Ok(())
    }
}
