//! How two contents of an agent's card differ, and how much that matters (docs/model.md#changes-and-reviews).

use a2a_card::{CardDiff, SignatureState, SignatureStates, diff_verified};
use serde::Deserialize;
use utoipa::IntoParams;

use super::signatures::{Judged, KeyBinding};
use super::{App, AppError, Caller};
use crate::api::{Change, Diff};
use crate::domain::review::ChangeClass;
use crate::domain::role::Permission;
use crate::domain::signature as domain;
use crate::store::entity::{agent, body, version};
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
        let all = caller.may(Permission::SeeAll) || self.owns(caller, &row).await?;
        let named = async |digest: &str| self.version_visible(caller, &row, digest).await;
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
        let binding = self.key_binding(row.domain_id).await?;
        let from = from.as_ref().unwrap_or(&to);
        self.diff_of(&row, from, &to, &binding).await
    }

    /// What changed between two versions, with what their signatures are worth today.
    pub(super) async fn diff_of(
        &self,
        agent: &agent::Model,
        from: &version::Model,
        to: &version::Model,
        binding: &KeyBinding,
    ) -> Result<Diff, AppError> {
        let before = versions::body_by_digest(&self.store, &from.digest).await?;
        let after = versions::body_by_digest(&self.store, &to.digest).await?;
        let (Some(before), Some(after)) = (before, after) else {
            return Err(AppError::not_found("version"));
        };
        let states = states(agent, binding, from.into(), to.into());
        let difference = self.difference(&before, &after, states);
        Ok(Diff {
            from: from.digest.clone(),
            to: to.digest.clone(),
            change_class: change_class(difference.as_ref(), states),
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
        agent: &agent::Model,
        before: &VersionKey,
        after: &VersionKey,
        binding: &KeyBinding,
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
                let states = states(agent, binding, before.into(), after.into());
                change_class(self.difference(old, new, states).as_ref(), states)
            }
            _ => ChangeClass::High,
        })
    }

    /// What changed; `None` where this build does not read one of the two.
    fn difference(&self, before: &[u8], after: &[u8], states: SignatureStates) -> Option<CardDiff> {
        diff_verified(before, after, Some(&self.owner_extension()), states).ok()
    }

    /// The extension by which an owner proves a card to be theirs (docs/ownership.md#proofs).
    pub(super) fn owner_extension(&self) -> String {
        format!("{}/ext/owner/v1", self.config.public_url())
    }
}

/// What the signatures of two versions are worth, each told by its kept state and the keys it verifies with. A card
/// that is known by a key was vouched for, though that key has left its key set since: whoever takes it out gains
/// nothing by that.
fn states(
    agent: &agent::Model,
    binding: &KeyBinding,
    before: Judged<'_>,
    after: Judged<'_>,
) -> SignatureStates {
    let before = match binding.state(before) {
        domain::SignatureState::Unknown if !agent.pins.is_empty() => {
            domain::SignatureState::Untrusted
        }
        before => before,
    };
    SignatureStates {
        before: before.into(),
        after: binding.state(after).into(),
    }
}

/// The class of a change of a card whose signatures were found to be in these states.
fn change_class(difference: Option<&CardDiff>, states: SignatureStates) -> ChangeClass {
    use SignatureState::{Untrusted, Valid};
    let verified = |state| matches!(state, Valid | Untrusted);
    match difference {
        Some(difference) => difference.class.into(),
        // A card that this build reads no more cannot be compared: a person decides, and before anything of it
        // is served where nobody vouches for it any more.
        None if verified(states.before) && !verified(states.after) => ChangeClass::Critical,
        None => ChangeClass::High,
    }
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
