//! Visits: leases, spacing, limits of address blocks, and the circuit breaker.

pub mod leasing;
pub mod networks;
pub mod outage;

use a2a_registry_domain::timestamp::SECOND;

/// The pause between two visits of a host, outside `allow_networks`.
pub const SPACING: i64 = 60 * SECOND;
