//! Rows that policies evaluate, without what they do not need.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::bulk_rows::pad_keys;
use super::entity::version;
use super::{Executor, StoreError};

/// The versions with these ids, in no order. Their key sets and the results of their signatures are empty, because
/// reading these takes time, and without `with_cards` so are the cards and their findings, which take most of it.
pub async fn versions_for_policies(
    db: &impl Executor,
    ids: &[Uuid],
    with_cards: bool,
) -> Result<Vec<version::Model>, StoreError> {
    use version::Column as C;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let kept = [
        C::Id,
        C::AgentId,
        C::Digest,
        C::ContentDigest,
        C::Signing,
        C::Signature,
        C::Thumbprints,
        C::WireFamily,
        C::HasError,
        C::Derivation,
        C::ObservedAt,
        C::ChangeClass,
        C::State,
        C::EverApproved,
        C::Repeats,
        C::Standing,
    ];
    let mut query = version::Entity::find().select_only().columns(kept);
    for left_out in ["key_sets", "verdicts"] {
        query = query.expr_as(Expr::val(""), left_out);
    }
    query = match with_cards {
        true => query.columns([C::Model, C::Findings]),
        false => query
            .expr_as(Expr::val(""), "model")
            .expr_as(Expr::val(""), "findings"),
    };
    Ok(query
        .filter(C::Id.is_in(pad_keys(ids)))
        .into_model::<version::Model>()
        .all(db.connection())
        .await?)
}
