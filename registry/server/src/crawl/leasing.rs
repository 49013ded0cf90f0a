//! Leases of due visits, except first visits of domains that have opted out.

use a2a_registry_store::StoreError;
use a2a_registry_store::entity::{domain, source};

use crate::context::Context;
use crate::ownership::first_check::visits_permitted;
use crate::visits::leasing::visits_due;

/// Leases due visits for `lease_us` microseconds, each with its due sources. The visits of a domain without a source to
/// fetch end; a first visit is made only if the domain has not opted out.
///
/// # Errors
/// [`StoreError`] where the visits cannot be read or leased.
pub async fn visits_lease(
    context: &Context,
    limit: usize,
    lease_us: i64,
) -> Result<Vec<(domain::Model, Vec<source::Model>)>, StoreError> {
    let leased = visits_due(context, limit, lease_us).await?;
    visits_permitted(context, leased).await
}
