//! Policy sets as they are kept, and the one that is shipped.

use a2a_registry_policy::{PolicySet, PolicyText};
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::{Handle, policies};

use crate::error::AppError;

/// The policies of a registry in which nobody has written any: everybody finds and calls every agent that visibility and
/// holds leave to them.
fn shipped() -> Vec<PolicyText> {
    vec![PolicyText {
        id: "everybody".to_owned(),
        text: "// Whoever may see an agent finds it and may call it.\npermit (principal, action, resource);\n"
            .to_owned(),
    }]
}

/// The policies of a kept set.
pub(crate) fn written(row: &policy_set::Model) -> Result<Vec<PolicyText>, AppError> {
    serde_json::from_str(&row.policies).map_err(|error| {
        AppError::internal(format!("policy set {} is broken: {error}", row.number))
    })
}

/// The set with the highest number, compiled; the shipped one has the number 0.
///
/// # Errors
/// Where the database fails, or this version of the program cannot compile it.
pub(crate) async fn newest_set(on: &impl Handle) -> Result<PolicySet, AppError> {
    let newest = policies::policy_set_newest(on).await?;
    compiled(newest.as_ref())
}

/// The number of a kept set.
pub(crate) fn number_of(row: &policy_set::Model) -> u64 {
    u64::try_from(row.number).unwrap_or(0)
}

/// A kept set, compiled; the shipped one without.
///
/// # Errors
/// Where this version of the program cannot compile it.
pub(crate) fn compiled(row: Option<&policy_set::Model>) -> Result<PolicySet, AppError> {
    let (number, texts) = match row {
        Some(row) => (number_of(row), written(row)?),
        None => (0, shipped()),
    };
    PolicySet::compile(number, &texts).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        AppError::internal(format!(
            "policy set {number} cannot be compiled: {}",
            faults.join("; ")
        ))
    })
}
