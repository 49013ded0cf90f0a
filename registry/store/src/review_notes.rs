//! What people write about reviews: approvals, comments and reports.

use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{
    ColumnTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::entity::queries::rows_where_in;
use super::entity::{agent_report, review, review_approval, review_comment};
use super::{Executor, StoreError, WriteTransaction};

pub async fn approvals_by_review(
    db: &impl Executor,
    reviews: &[Uuid],
) -> Result<Vec<review_approval::Model>, StoreError> {
    let query = review_approval::Entity::find()
        .order_by_asc(review_approval::Column::At)
        .order_by_asc(review_approval::Column::AccountId);
    rows_where_in(db, query, review_approval::Column::ReviewId, reviews).await
}

pub async fn comments_by_review(
    db: &impl Executor,
    review: Uuid,
) -> Result<Vec<review_comment::Model>, StoreError> {
    Ok(review_comment::Entity::find()
        .filter(review_comment::Column::ReviewId.eq(review))
        .order_by_asc(review_comment::Column::Id)
        .all(db.connection())
        .await?)
}

/// Comments on reviews of these agents after `since`, newest first, each with the agent; not those by `except_author`.
pub async fn comments_on_agents_since(
    db: &impl Executor,
    agents: &[Uuid],
    since: i64,
    except_author: Uuid,
    limit: u64,
) -> Result<Vec<(review_comment::Model, Uuid)>, StoreError> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let reviews_of_agents = Query::select()
        .column(review::Column::Id)
        .from(review::Entity)
        .and_where(review::Column::AgentId.is_in(agents.iter().copied()))
        .take();
    let comments = review_comment::Entity::find()
        .filter(review_comment::Column::ReviewId.in_subquery(reviews_of_agents))
        .filter(review_comment::Column::At.gt(since))
        .filter(review_comment::Column::AuthorId.ne(except_author))
        .order_by_desc(review_comment::Column::Id)
        .limit(limit)
        .all(db.connection())
        .await?;
    let ids: Vec<Uuid> = comments.iter().map(|comment| comment.review_id).collect();
    let reviews = review::Entity::find()
        .filter(review::Column::Id.is_in(ids))
        .all(db.connection())
        .await?;
    let found = comments.into_iter().filter_map(|comment| {
        let of = reviews.iter().find(|one| one.id == comment.review_id)?;
        Some((comment, of.agent_id))
    });
    Ok(found.collect())
}

pub async fn comment_count_by_review(db: &impl Executor, review: Uuid) -> Result<u64, StoreError> {
    Ok(review_comment::Entity::find()
        .filter(review_comment::Column::ReviewId.eq(review))
        .count(db.connection())
        .await?)
}

pub async fn reports_by_review(
    db: &impl Executor,
    review: Uuid,
) -> Result<Vec<agent_report::Model>, StoreError> {
    Ok(agent_report::Entity::find()
        .filter(agent_report::Column::ReviewId.eq(review))
        .order_by_asc(agent_report::Column::Id)
        .all(db.connection())
        .await?)
}

pub async fn report_count_by_review(db: &impl Executor, review: Uuid) -> Result<u64, StoreError> {
    Ok(agent_report::Entity::find()
        .filter(agent_report::Column::ReviewId.eq(review))
        .count(db.connection())
        .await?)
}

/// The number of reports after `since` by an account, or from a network if there is no account.
pub async fn report_count_by_reporter(
    db: &impl Executor,
    account: Option<Uuid>,
    network: Option<&str>,
    since: i64,
) -> Result<u64, StoreError> {
    use agent_report::Column as C;
    let query = agent_report::Entity::find().filter(C::At.gt(since));
    let query = match (account, network) {
        (Some(account), _) => query.filter(C::AccountId.eq(account)),
        (None, Some(network)) => query.filter(C::Network.eq(network)),
        (None, None) => query
            .filter(C::AccountId.is_null())
            .filter(C::Network.is_null()),
    };
    Ok(query.count(db.connection()).await?)
}

impl WriteTransaction {
    /// Inserts an approval, or updates the reason and time of the account's existing one.
    pub async fn upsert_review_approval(
        &self,
        row: review_approval::Model,
    ) -> Result<(), StoreError> {
        use review_approval::Column as C;
        let conflict = OnConflict::columns([C::ReviewId, C::AccountId])
            .update_columns([C::Reason, C::At, C::Counted])
            .to_owned();
        self.insert_rows([row.into_active_model()], Some(conflict))
            .await
    }

    /// Records which approvals of a decided review counted: those by these accounts.
    pub async fn record_counted_approvals(
        &self,
        review: Uuid,
        accounts: &[Uuid],
    ) -> Result<(), StoreError> {
        use review_approval::Column as C;
        for counted in [false, true] {
            let update = review_approval::Entity::update_many()
                .col_expr(C::Counted, Expr::value(counted))
                .filter(C::ReviewId.eq(review));
            let update = match counted {
                true => update.filter(C::AccountId.is_in(accounts.iter().copied())),
                false => update,
            };
            update.exec(self.connection()).await?;
        }
        Ok(())
    }

    pub async fn delete_review_approval(
        &self,
        review: Uuid,
        account: Uuid,
    ) -> Result<bool, StoreError> {
        let outcome = review_approval::Entity::delete_by_id((review, account))
            .exec(self.connection())
            .await?;
        Ok(outcome.rows_affected > 0)
    }

    pub async fn insert_review_comment(
        &self,
        row: review_comment::Model,
    ) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }

    pub async fn insert_agent_report(&self, row: agent_report::Model) -> Result<(), StoreError> {
        self.insert_rows([row.into_active_model()], None).await
    }
}
