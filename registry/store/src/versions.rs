//! Stored versions of cards, and their bytes.

use a2a_registry_domain::coverage::CoverageLevel;
use a2a_registry_domain::review::VersionState;
use a2a_registry_domain::signature::SignatureState;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockBehavior, LockType, OnConflict, Query};
use sea_orm::{
    ColumnTrait, EntityTrait, FromQueryResult, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::bulk_rows::{is_storable_text, pad_keys};
use super::entity::{agent, card_body, version, version_source};
use super::{Executor, StoreError, StoreErrorKind, StoredEnum, WriteTransaction};

/// Maximum number of stored versions of one agent, besides the approved, the newest and the pending one.
pub const MAX_VERSIONS_PER_AGENT: u64 = 200;

/// The derivation number of a version that the same build must derive again.
pub const UNDERIVED: i32 = 0;

/// Maximum number of card bodies of long-retired agents that are deleted at once.
pub const BODY_DELETE_BATCH: u64 = 500;

/// The versions with these ids, in no order.
pub async fn versions_by_ids(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<version::Model>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(version::Entity::find()
        .filter(version::Column::Id.is_in(pad_keys(ids)))
        .all(db.connection())
        .await?)
}

/// The key of a version, without the card itself.
#[derive(Debug, Clone, FromQueryResult)]
pub struct VersionSummary {
    pub id: Uuid,
    pub agent_id: Uuid,
    pub digest: String,
    /// The digest of the canonical form without signatures.
    pub content_digest: String,
    pub signing: String,
    /// The state of its signatures without a proof of the domain.
    pub signature: StoredEnum<SignatureState>,
    /// The thumbprints of the keys with which its signatures verify, with spaces between.
    pub thumbprints: String,
    pub state: StoredEnum<VersionState>,
    pub observed_at: i64,
    /// The coverage of the source that served it.
    pub standing: StoredEnum<CoverageLevel>,
}

impl VersionSummary {
    /// Whether both have the same content and signatures (docs/develop/model.md#two-digests).
    pub fn has_same_content(&self, other: &Self) -> bool {
        (&self.content_digest, &self.signing) == (&other.content_digest, &other.signing)
    }
}

/// The keys of these versions, in no order.
pub async fn version_summaries(
    db: &impl Executor,
    ids: &[Uuid],
) -> Result<Vec<VersionSummary>, StoreError> {
    use version::Column as C;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    Ok(version::Entity::find()
        .select_only()
        .columns([
            C::Id,
            C::AgentId,
            C::Digest,
            C::ContentDigest,
            C::Signing,
            C::Signature,
            C::Thumbprints,
            C::State,
            C::ObservedAt,
            C::Standing,
        ])
        .filter(C::Id.is_in(pad_keys(ids)))
        .into_model::<VersionSummary>()
        .all(db.connection())
        .await?)
}

/// The newest version of an agent with these bytes.
pub async fn version_by_digest(
    db: &impl Executor,
    agent: Uuid,
    digest: &str,
) -> Result<Option<version::Model>, StoreError> {
    if !is_storable_text(digest) {
        return Ok(None);
    }
    Ok(version::Entity::find()
        .filter(version::Column::AgentId.eq(agent))
        .filter(version::Column::Digest.eq(digest))
        .order_by_desc(version::Column::Id)
        .one(db.connection())
        .await?)
}

/// Versions of an agent with ids below `before`, newest first; without `include_unapproved` only those that were ever
/// approved.
pub async fn version_page(
    db: &impl Executor,
    agent: Uuid,
    include_unapproved: bool,
    before: Option<Uuid>,
    limit: u64,
) -> Result<Vec<version::Model>, StoreError> {
    let mut query = version::Entity::find()
        .filter(version::Column::AgentId.eq(agent))
        .order_by_desc(version::Column::Id)
        .limit(limit);
    if !include_unapproved {
        query = query.filter(version::Column::EverApproved.eq(true));
    }
    if let Some(before) = before {
        query = query.filter(version::Column::Id.lt(before));
    }
    Ok(query.all(db.connection()).await?)
}

/// A page of versions with an older derivation number.
pub async fn versions_below_derivation(
    db: &impl Executor,
    derivation: i32,
    limit: u64,
) -> Result<Vec<version::Model>, StoreError> {
    Ok(version::Entity::find()
        .filter(version::Column::Derivation.lt(derivation))
        // Versions that are to be verified again come before those of an older build.
        .order_by_asc(version::Column::Derivation)
        .order_by_asc(version::Column::Id)
        .limit(limit)
        .all(db.connection())
        .await?)
}

/// The key sets that verified the signatures of these versions, as JSON, in no order.
pub async fn key_sets_by_version(
    db: &impl Executor,
    versions: &[Uuid],
) -> Result<Vec<(Uuid, String)>, StoreError> {
    if versions.is_empty() {
        return Ok(Vec::new());
    }
    Ok(version::Entity::find()
        .select_only()
        .columns([version::Column::Id, version::Column::KeySets])
        .filter(version::Column::Id.is_in(pad_keys(versions)))
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// The agents among these with more than [`MAX_VERSIONS_PER_AGENT`] stored versions.
pub async fn agents_over_version_limit(
    db: &impl Executor,
    agents: &[Uuid],
) -> Result<Vec<Uuid>, StoreError> {
    use version::Column as C;
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let max_versions = i64::try_from(MAX_VERSIONS_PER_AGENT).unwrap_or(i64::MAX);
    Ok(version::Entity::find()
        .select_only()
        .column(C::AgentId)
        .filter(C::AgentId.is_in(pad_keys(agents)))
        .group_by(C::AgentId)
        .having(Expr::col(C::Id).count().gt(max_versions))
        .into_tuple()
        .all(db.connection())
        .await?)
}

/// The bytes with this digest; `None` if they are not stored. Card bytes are read in this way only, so that only bytes
/// that were approved are used.
///
/// # Errors
/// [`StoreErrorKind::DigestMismatch`] if the stored bytes do not match the digest, which is then recorded in
/// [`Executor::damaged_bodies`].
pub async fn body_by_digest(
    db: &impl Executor,
    digest: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let row = card_body::Entity::find_by_id(digest)
        .one(db.connection())
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    if a2a_card::bytes_digest(&row.bytes) != digest {
        db.damaged_bodies().record(digest);
        return Err(StoreError::digest_mismatch(digest));
    }
    db.damaged_bodies().remove(digest);
    Ok(Some(row.bytes))
}

/// The bytes with this digest; `None` if they are missing or damaged, for callers that can do without them.
pub async fn intact_body_by_digest(
    db: &impl Executor,
    digest: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    match body_by_digest(db, digest).await {
        Err(error) if matches!(error.kind(), StoreErrorKind::DigestMismatch(_)) => Ok(None),
        outcome => outcome,
    }
}

/// The digests of up to `limit` stored bodies after this one, in order.
pub async fn body_digests_after(
    db: &impl Executor,
    after: &str,
    limit: u64,
) -> Result<Vec<String>, StoreError> {
    Ok(card_body::Entity::find()
        .select_only()
        .column(card_body::Column::Digest)
        .filter(card_body::Column::Digest.gt(after))
        .order_by_asc(card_body::Column::Digest)
        .limit(limit)
        .into_tuple()
        .all(db.connection())
        .await?)
}

pub async fn body_count(db: &impl Executor) -> Result<u64, StoreError> {
    Ok(card_body::Entity::find().count(db.connection()).await?)
}

/// The ids of up to `limit` versions after this one that have these bytes, with their agents, in order.
pub async fn versions_with_body(
    db: &impl Executor,
    digest: &str,
    after: Uuid,
    limit: u64,
) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
    Ok(version::Entity::find()
        .select_only()
        .columns([version::Column::Id, version::Column::AgentId])
        .filter(version::Column::Digest.eq(digest))
        .filter(version::Column::Id.gt(after))
        .order_by_asc(version::Column::Id)
        .limit(limit)
        .into_tuple()
        .all(db.connection())
        .await?)
}

impl WriteTransaction {
    /// Inserts bytes under their digests. Existing bytes are overwritten, which repairs damaged ones. No other write
    /// can delete these bytes until the write ends.
    pub async fn upsert_bodies(&self, mut rows: Vec<card_body::Model>) -> Result<(), StoreError> {
        // In one order everywhere, so that two writers with the same bytes never wait for each other.
        rows.sort_unstable_by(|one, other| one.digest.cmp(&other.digest));
        rows.dedup_by(|one, other| one.digest == other.digest);
        // The update also locks the row: otherwise another writer could drop the bytes as unused before this one
        // commits.
        let mut conflict = OnConflict::column(card_body::Column::Digest);
        conflict.update_column(card_body::Column::Bytes);
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            Some(conflict),
        )
        .await
    }

    pub async fn insert_versions(&self, rows: Vec<version::Model>) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.insert_rows(
            rows.into_iter().map(IntoActiveModel::into_active_model),
            None,
        )
        .await
    }

    /// Replaces the columns derived from a version's bytes, but not its state and its count of repeats, which other
    /// writes may have changed since the row was read.
    pub async fn update_derived_version_columns(
        &self,
        row: version::Model,
    ) -> Result<(), StoreError> {
        self.pending_changes.mark_agents([&row.agent_id]);
        version::Entity::update_many()
            .set(version::ActiveModel {
                content_digest: Set(row.content_digest),
                signing: Set(row.signing),
                signature: Set(row.signature),
                key_sets: Set(row.key_sets),
                thumbprints: Set(row.thumbprints),
                verdicts: Set(row.verdicts),
                wire_family: Set(row.wire_family),
                model: Set(row.model),
                findings: Set(row.findings),
                has_error: Set(row.has_error),
                derivation: Set(row.derivation),
                ..Default::default()
            })
            .filter(version::Column::Id.eq(row.id))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Marks the signed versions of these agents, except `except_version`, to be verified again: they are derived
    /// again as if no build had derived them yet. Returns their number.
    pub async fn mark_for_reverification(
        &self,
        agents: &[Uuid],
        except_version: Option<Uuid>,
    ) -> Result<u64, StoreError> {
        use version::Column as C;
        if agents.is_empty() {
            return Ok(0);
        }
        let mut marked = version::Entity::update_many()
            .col_expr(C::Derivation, Expr::value(UNDERIVED))
            .filter(C::AgentId.is_in(pad_keys(agents)))
            .filter(C::Signature.ne(SignatureState::Unsigned.as_str()));
        if let Some(but) = except_version {
            marked = marked.filter(C::Id.ne(but));
        }
        Ok(marked.exec(self.connection()).await?.rows_affected)
    }

    /// Sets the state of versions; an approval is recorded permanently.
    pub async fn set_version_states(
        &self,
        ids: &[Uuid],
        state: VersionState,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut change = version::ActiveModel {
            state: Set(state.into()),
            ..Default::default()
        };
        if state == VersionState::Approved {
            change.ever_approved = Set(true);
        }
        version::Entity::update_many()
            .set(change)
            .filter(version::Column::Id.is_in(pad_keys(ids)))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Counts another fetch of different bytes with the same content.
    pub async fn increment_version_repeats(&self, ids: &[Uuid]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        version::Entity::update_many()
            .col_expr(
                version::Column::Repeats,
                Expr::col(version::Column::Repeats).add(1),
            )
            .filter(version::Column::Id.is_in(pad_keys(ids)))
            .exec(self.connection())
            .await?;
        Ok(())
    }

    /// Deletes the oldest versions of an agent beyond [`MAX_VERSIONS_PER_AGENT`], never one of `keep`. Bytes stay if
    /// another version has them.
    pub async fn trim_versions(&self, agent: Uuid, keep: &[Uuid]) -> Result<(), StoreError> {
        use version::Column as C;
        #[derive(FromQueryResult)]
        struct OldVersionRow {
            id: Uuid,
            digest: String,
        }
        let old: Vec<OldVersionRow> = version::Entity::find()
            .select_only()
            .columns([C::Id, C::Digest])
            .filter(C::AgentId.eq(agent))
            .order_by_desc(C::Id)
            .offset(MAX_VERSIONS_PER_AGENT)
            .limit(MAX_VERSIONS_PER_AGENT)
            .into_model::<OldVersionRow>()
            .all(self.connection())
            .await?;
        let dropped: Vec<OldVersionRow> = old
            .into_iter()
            .filter(|row| !keep.contains(&row.id))
            .collect();
        if dropped.is_empty() {
            return Ok(());
        }
        version_source::Entity::delete_many()
            .filter(version_source::Column::VersionId.is_in(dropped.iter().map(|row| row.id)))
            .exec(self.connection())
            .await?;
        version::Entity::delete_many()
            .filter(C::Id.is_in(dropped.iter().map(|row| row.id)))
            .exec(self.connection())
            .await?;
        self.delete_unused_bodies(dropped.into_iter().map(|row| row.digest).collect())
            .await
    }

    /// Deletes bytes that only agents retired by this time have, up to [`BODY_DELETE_BATCH`]; returns their number.
    /// Bytes that were ever approved stay: the event of the approval, which is never deleted, names their digest.
    pub async fn delete_retired_bodies(&self, retired_by: i64) -> Result<u64, StoreError> {
        let versions = |keeps_bytes: bool| {
            let is_retired = agent::Column::RetiredAt.lte(retired_by);
            let is_not_retired = agent::Column::RetiredAt
                .is_null()
                .or(agent::Column::RetiredAt.gt(retired_by));
            Query::select()
                .column((version::Entity, version::Column::Digest))
                .from(version::Entity)
                .inner_join(
                    agent::Entity,
                    Expr::col((agent::Entity, agent::Column::Id))
                        .equals((version::Entity, version::Column::AgentId)),
                )
                .and_where(if keeps_bytes {
                    is_not_retired.or(version::Column::EverApproved.eq(true))
                } else {
                    is_retired
                })
                .and_where(
                    Expr::col((version::Entity, version::Column::Digest))
                        .equals((card_body::Entity, card_body::Column::Digest)),
                )
                .take()
        };
        let mut old = card_body::Entity::find()
            .select_only()
            .column(card_body::Column::Digest)
            .filter(Expr::exists(versions(false)))
            .filter(Expr::exists(versions(true)).not())
            .limit(BODY_DELETE_BATCH);
        if self.locks_rows() {
            // Bytes that another write has just inserted are locked by it, and skipped.
            old = old.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        let old: Vec<String> = old.into_tuple().all(self.connection()).await?;
        if old.is_empty() {
            return Ok(0);
        }
        let dropped = card_body::Entity::delete_many()
            .filter(card_body::Column::Digest.is_in(old))
            .exec(self.connection())
            .await?;
        Ok(dropped.rows_affected)
    }

    /// Deletes those of these bytes that no version has. Bytes that another write has just inserted count as used:
    /// that write has locked the row, and it is skipped.
    async fn delete_unused_bodies(&self, digests: Vec<String>) -> Result<(), StoreError> {
        let mut candidates = card_body::Entity::find()
            .select_only()
            .column(card_body::Column::Digest)
            .filter(card_body::Column::Digest.is_in(digests));
        if self.locks_rows() {
            candidates = candidates.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        }
        let candidates: Vec<String> = candidates.into_tuple().all(self.connection()).await?;
        self.delete_bodies_without_version(candidates).await?;
        Ok(())
    }
}
