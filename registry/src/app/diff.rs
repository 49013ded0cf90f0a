//! How two contents of an agent's card differ, and how much that matters (model.md section 5).

use a2a_card::{CardDiff, diff};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{App, AppError, Caller};
use crate::api::{Change, Diff};
use crate::domain::review::ChangeClass;
use crate::domain::role::Permission;
use crate::store::entity::{body, version};
use crate::store::versions::{self, VersionKey};
use crate::store::{Handle, StoreError};

/// Which two versions of a card are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct DiffQuery {
    /// The digest of the older version. Where absent: the one that is served, or where that is `to` the one
    /// before it, as far as the caller may see it.
    pub from: Option<String>,
    /// The digest of the newer version; the newest one the caller may see where absent.
    pub to: Option<String>,
}

impl App {
    /// What changed between two versions of an agent's card, member by member. The first version is compared
    /// with itself.
    ///
    /// # Errors
    /// `NotFound` where there is no such agent or version, or none the caller may see.
    pub async fn agent_diff(
        &self,
        caller: &Caller,
        agent: &str,
        query: &DiffQuery,
    ) -> Result<Diff, AppError> {
        let row = self.agent_visible(caller, agent).await?;
        let all = caller.may(Permission::SeeAll) || self.owns(caller, &row);
        let named = async |digest: &str| {
            versions::version_by_digest(&self.store, row.id, digest)
                .await?
                .filter(|version| all || version.ever_approved)
                .ok_or_else(|| AppError::not_found("version"))
        };
        let newest_before = async |before| {
            let page = versions::version_page(&self.store, row.id, all, before, 1).await?;
            Ok::<_, AppError>(page.into_iter().next())
        };
        let to = match &query.to {
            Some(digest) => named(digest).await?,
            None => newest_before(None)
                .await?
                .ok_or_else(|| AppError::not_found("version"))?,
        };
        let from = match (&query.from, row.approved_version) {
            (Some(digest), _) => Some(named(digest).await?),
            (None, Some(served)) if served != to.id => {
                let served = versions::versions_by_ids(&self.store, &[served]).await?;
                served.into_iter().next()
            }
            (None, _) => newest_before(Some(to.id)).await?,
        };
        self.diff_of(from.as_ref().unwrap_or(&to), &to).await
    }

    async fn diff_of(&self, from: &version::Model, to: &version::Model) -> Result<Diff, AppError> {
        let before = versions::body_by_digest(&self.store, &from.digest).await?;
        let after = versions::body_by_digest(&self.store, &to.digest).await?;
        let (Some(before), Some(after)) = (before, after) else {
            return Err(AppError::not_found("version"));
        };
        let difference = self.difference(&before, &after);
        Ok(Diff {
            from: from.digest.clone(),
            to: to.digest.clone(),
            change_class: change_class(difference.as_ref(), &from.signature, &to.signature),
            changes: difference
                .iter()
                .flat_map(|difference| &difference.changes)
                .map(Change::from)
                .collect(),
            cut: difference.is_some_and(|difference| difference.cut),
        })
    }

    /// How much a card has changed against another version of it. Bytes that are not among `fresh`, which the
    /// same write keeps, are read through `on`.
    ///
    /// # Errors
    /// Where the database fails.
    pub(super) async fn change_between(
        &self,
        on: &impl Handle,
        before: &VersionKey,
        after: &VersionKey,
        fresh: &[body::Model],
    ) -> Result<ChangeClass, StoreError> {
        if before.is_like(after) {
            return Ok(ChangeClass::None);
        }
        let mut bodies = Vec::with_capacity(2);
        for key in [before, after] {
            bodies.extend(bytes_of(on, &key.digest, fresh).await?);
        }
        Ok(match bodies.as_slice() {
            [old, new] => {
                let difference = self.difference(old, new);
                change_class(difference.as_ref(), &before.signature, &after.signature)
            }
            _ => ChangeClass::High,
        })
    }

    /// What changed; `None` where this build does not read one of the two.
    fn difference(&self, before: &[u8], after: &[u8]) -> Option<CardDiff> {
        diff(before, after, Some(&self.owner_extension())).ok()
    }

    /// The extension by which an owner proves a card to be theirs (model.md section 4).
    pub(super) fn owner_extension(&self) -> String {
        format!("{}/ext/owner/v1", self.config.public_url())
    }
}

/// The class of a change of a card whose signatures were found to be in these states.
fn change_class(
    difference: Option<&CardDiff>,
    signed_before: &str,
    signed_after: &str,
) -> ChangeClass {
    let verified = |state: &str| matches!(state, "valid" | "untrusted");
    // What nobody vouches for any more is not what was approved, though no member tells of it.
    if verified(signed_before) && matches!(signed_after, "invalid" | "unsigned") {
        return ChangeClass::Critical;
    }
    // A card that this build reads no more cannot be compared, and is looked at by a person.
    difference.map_or(ChangeClass::High, |difference| difference.class.into())
}

/// The bytes with that digest: of those that are about to be kept, or of those that are.
///
/// # Errors
/// Where the database fails.
pub(super) async fn bytes_of(
    on: &impl Handle,
    digest: &str,
    fresh: &[body::Model],
) -> Result<Option<Vec<u8>>, StoreError> {
    match fresh.iter().find(|body| body.digest == digest) {
        Some(body) => Ok(Some(body.bytes.clone())),
        None => versions::body_by_digest(on, digest).await,
    }
}
