//! Numbers of policy sets: each new set has the next one, and the newest set gets another when collections change that
//! it asks about, so that every process evaluates agents under a number in the same way.

use a2a_registry_domain::event::EventKind;
use a2a_registry_policy::PolicyText;
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::{Write, policies};
use serde_json::json;

use crate::collection_filters::collections_to_keep;
use crate::commit::ledger::Ledger;
use crate::error::AppError;
use crate::policy_sets::{number_of, written};

#[derive(Debug)]
pub struct MadeSet<'a> {
    pub policies: &'a [PolicyText],
    pub asks_about_collections: bool,
    pub author: &'a str,
    pub reason: &'a str,
}

/// Adds a policy set after the set `newest`, and returns its number. The caller holds the lock of policies.
pub async fn add_set(
    write: &Write,
    ledger: &mut Ledger<'_>,
    newest: u64,
    made: MadeSet<'_>,
) -> Result<u64, AppError> {
    let collections = match made.asks_about_collections {
        true => {
            write.collections_lock().await?;
            Some(collections_to_keep(write).await?)
        }
        false => None,
    };
    let number = newest + 1;
    let policies = serde_json::to_string(made.policies)
        .map_err(|error| AppError::internal(error.to_string()))?;
    write
        .policy_set_insert(policy_set::Model {
            number: i64::try_from(number).unwrap_or(i64::MAX),
            policies,
            collections,
            author: made.author.to_owned(),
            reason: made.reason.to_owned(),
            created_at: ledger.now().0,
        })
        .await?;
    let data = json!({"number": number, "policies": made.policies.len(), "reason": made.reason});
    ledger.event(EventKind::PolicySet, number, made.author, data);
    Ok(number)
}

/// Gives the newest policy set another number if this write changes the collections that it asks about. The caller
/// holds the locks of policies and of collections.
pub async fn follow_collections(
    write: &Write,
    ledger: &mut Ledger<'_>,
    author: &str,
    reason: &str,
) -> Result<(), AppError> {
    let newest = policies::policy_set_newest(write).await?;
    let Some(newest) = newest.filter(|set| set.collections.is_some()) else {
        return Ok(());
    };
    if newest.collections == Some(collections_to_keep(write).await?) {
        return Ok(());
    }
    let made = MadeSet {
        policies: &written(&newest)?,
        asks_about_collections: true,
        author,
        reason,
    };
    add_set(write, ledger, number_of(&newest), made).await?;
    Ok(())
}
