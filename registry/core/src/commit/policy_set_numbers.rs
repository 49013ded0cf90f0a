//! Numbers of policy sets: each new set has the next number. The newest set gets another number when collections that
//! it uses change, so that every process evaluates agents under a number in the same way.

use a2a_registry_domain::event::EventKind;
use a2a_registry_policy::PolicyText;
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::{WriteTransaction, policies};
use serde_json::json;

use crate::collection_filters::snapshot_collections;
use crate::commit::change_set::ChangeSet;
use crate::error::AppError;
use crate::policy_sets::age_progress::AgeProgress;
use crate::policy_sets::{parse_stored_policies, policy_set_number};

#[derive(Debug)]
pub struct NewPolicySet<'a> {
    pub policies: &'a [PolicyText],
    pub depends_on_collections: bool,
    pub author: &'a str,
    pub reason: &'a str,
}

/// Adds a policy set after the set `newest`, and returns its number. The caller holds the lock of policies.
pub async fn add_policy_set(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    newest: u64,
    new_set: NewPolicySet<'_>,
) -> Result<u64, AppError> {
    let collections = match new_set.depends_on_collections {
        true => {
            write.lock_collections().await?;
            Some(snapshot_collections(write).await?)
        }
        false => None,
    };
    let number = newest + 1;
    let policies = serde_json::to_string(new_set.policies)
        .map_err(|error| AppError::internal(error.to_string()))?;
    write
        .insert_policy_set(policy_set::Model {
            number: i64::try_from(number).unwrap_or(i64::MAX),
            policies,
            collections,
            author: new_set.author.to_owned(),
            reason: new_set.reason.to_owned(),
            created_at: change_set.now().0,
        })
        .await?;
    // Every process evaluates all agents under the new set, as of this moment or a later one.
    let known_ages = AgeProgress::lock(write).await?;
    AgeProgress::finished(known_ages.as_of.max(change_set.now()))
        .store(write)
        .await?;
    let data =
        json!({"number": number, "policies": new_set.policies.len(), "reason": new_set.reason});
    change_set.add_event(EventKind::PolicySet, number, new_set.author, data);
    Ok(number)
}

/// Gives the newest policy set another number if this write changes the collections that it uses. The caller holds the
/// locks of policies and of collections.
pub async fn renumber_newest_policy_set(
    write: &WriteTransaction,
    change_set: &mut ChangeSet<'_>,
    author: &str,
    reason: &str,
) -> Result<(), AppError> {
    let newest = policies::newest_policy_set(write).await?;
    let Some(newest) = newest.filter(|set| set.collections.is_some()) else {
        return Ok(());
    };
    if newest.collections == Some(snapshot_collections(write).await?) {
        return Ok(());
    }
    let new_set = NewPolicySet {
        policies: &parse_stored_policies(&newest)?,
        depends_on_collections: true,
        author,
        reason,
    };
    add_policy_set(write, change_set, policy_set_number(&newest), new_set).await?;
    Ok(())
}
