//! Whether the registry is well, and what keeps it so.

pub mod housekeeping;
pub mod readiness;
pub mod routes;
pub mod upkeep;
