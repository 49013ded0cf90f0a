//! Agents and reviews that a change of the admission rules may affect.

use std::collections::HashSet;

use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ReviewKind, ReviewState};
use a2a_registry_domain::signature::SignatureState;
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait as _, EntityTrait, FromQueryResult, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait,
};
use uuid::Uuid;

use super::agents::agent_holds_subquery;
use super::bulk_rows::MAX_BOUND_VALUES;
use super::entity::{agent, decision, domain, hold, review, version};
use super::{Executor, StoreError, StoredEnum, WriteTransaction};

const IDS_PER_STATEMENT: usize = MAX_BOUND_VALUES / 2;

#[derive(Debug, Clone, FromQueryResult)]
pub struct ApprovedAgent {
    pub id: Uuid,
    pub domain_id: i64,
    pub domain: String,
    pub approved_version: Option<Uuid>,
    pub newest_version: Option<Uuid>,
}

/// The facts about a card version that the shipped policies read.
#[derive(Debug, Clone, FromQueryResult)]
pub struct VersionAdmissionFacts {
    pub id: Uuid,
    pub has_error: bool,
    /// The signature state without a proof of the domain.
    pub signature: StoredEnum<SignatureState>,
    pub standing: StoredEnum<CoverageLevel>,
}

/// The agents whose served version was last approved by this rule, not counting temporary break-glass approvals.
pub async fn agents_approved_by_rule(
    db: &impl Executor,
    rule: Rule,
) -> Result<Vec<ApprovedAgent>, StoreError> {
    use agent::Column as C;
    use decision::Column as D;
    // Most registries have never approved anything by this rule; this read avoids a lookup for each agent.
    let any_decision: Option<i64> = decision::Entity::find()
        .select_only()
        .column(D::Id)
        .filter(D::Rule.eq(rule.as_str()))
        .limit(1)
        .into_tuple()
        .one(db.connection())
        .await?;
    if any_decision.is_none() {
        return Ok(Vec::new());
    }
    let latest_approval_rule = decision::Entity::find()
        .select_only()
        .column(D::Rule)
        .filter(Expr::col((decision::Entity, D::AgentId)).equals((agent::Entity, C::Id)))
        .filter(
            Expr::col((decision::Entity, D::VersionId)).equals((agent::Entity, C::ApprovedVersion)),
        )
        .filter(D::Approved.eq(true))
        .filter(D::Rule.ne(Rule::BreakGlass.as_str()))
        .order_by_desc(D::Id)
        .limit(1)
        .into_query();
    Ok(agent::Entity::find()
        .select_only()
        .columns([
            C::Id,
            C::DomainId,
            C::Domain,
            C::ApprovedVersion,
            C::NewestVersion,
        ])
        .filter(C::RetiredAt.is_null())
        .filter(C::ApprovedVersion.is_not_null())
        .filter(Expr::from(latest_approval_rule).eq(rule.as_str()))
        .into_model::<ApprovedAgent>()
        .all(db.connection())
        .await?)
}

/// The agents with this hold, each with its domain's name.
pub async fn agents_with_hold(
    db: &impl Executor,
    hold: Hold,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    let held_agents = Query::select()
        .column(hold::Column::AgentId)
        .from(hold::Entity)
        .and_where(hold::Column::Hold.eq(hold.as_str()))
        .take();
    agent_domains_where(db, agent::Column::Id.in_subquery(held_agents)).await
}

/// The agents without this hold that are not retired, each with its domain's name.
pub async fn agents_without_hold(
    db: &impl Executor,
    hold: Hold,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    // PostgreSQL would read all of a long `NOT IN` for each agent.
    let is_free = Expr::exists(agent_holds_subquery(Some(hold))).not();
    let free = agent::Column::RetiredAt.is_null().and(is_free);
    agent_domains_where(db, free).await
}

async fn agent_domains_where(
    db: &impl Executor,
    condition: SimpleExpr,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    Ok(agent::Entity::find()
        .select_only()
        .columns([agent::Column::Id, agent::Column::Domain])
        .filter(condition)
        .into_tuple()
        .all(db.connection())
        .await?)
}

pub async fn verified_domain_ids(db: &impl Executor) -> Result<HashSet<i64>, StoreError> {
    let ids: Vec<i64> = domain::Entity::find()
        .select_only()
        .column(domain::Column::Id)
        .filter(domain::Column::State.eq(DomainState::Verified.as_str()))
        .into_tuple()
        .all(db.connection())
        .await?;
    Ok(ids.into_iter().collect())
}

pub async fn version_admission_facts(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<VersionAdmissionFacts>, StoreError> {
    use version::Column as C;
    let mut facts = Vec::with_capacity(ids.len());
    for some in ids.chunks(IDS_PER_STATEMENT) {
        let query = version::Entity::find()
            .select_only()
            .columns([C::Id, C::HasError, C::Signature, C::Standing])
            .filter(C::Id.is_in(some.iter().copied()))
            .into_model::<VersionAdmissionFacts>();
        facts.extend(query.all(db.connection()).await?);
    }
    Ok(facts)
}

/// The number of open reviews of cards with ids above `after`.
pub async fn open_admission_review_count(
    db: &impl Executor,
    after: Option<Uuid>,
) -> Result<u64, StoreError> {
    use review::Column as C;
    Ok(review::Entity::find()
        .filter(C::State.eq(ReviewState::Open.as_str()))
        .filter(C::Kind.eq(ReviewKind::Admission.as_str()))
        .apply_if(after, |query, after| query.filter(C::Id.gt(after)))
        .count(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Puts any number of agents on hold in a few statements, without events: the caller must make sure that the index
    /// and caches stop showing them. An existing hold keeps its reason.
    pub async fn hold_agents(
        &self,
        ids: &[Uuid],
        hold: Hold,
        actor: &str,
        reason: &str,
        since: i64,
    ) -> Result<(), StoreError> {
        use hold::Column as H;
        if ids.is_empty() {
            return Ok(());
        }
        self.pending_changes.mark_everything();
        for chunk in ids.chunks(IDS_PER_STATEMENT) {
            let new_holds = Query::select()
                .column(agent::Column::Id)
                .expr(Expr::val(hold.as_str()))
                .expr(Expr::val(reason))
                .expr(Expr::val(actor))
                .expr(Expr::val(since))
                .from(agent::Entity)
                .and_where(agent::Column::Id.is_in(chunk.iter().copied()))
                .take();
            let conflict = OnConflict::columns([H::AgentId, H::Hold])
                .do_nothing()
                .to_owned();
            let mut insert = Query::insert();
            insert
                .into_table(hold::Entity)
                .columns([H::AgentId, H::Hold, H::Reason, H::Actor, H::Since])
                .select_from(new_holds)
                .map_err(|error| StoreError::other(error.to_string()))?
                .on_conflict(conflict);
            self.connection().execute(&insert).await?;
        }
        Ok(())
    }
}
