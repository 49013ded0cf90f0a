//! Rules that reading and conversions check. The linter's rules are in its own table, those about verified signatures
//! beside the code that verifies.

mod conversion;
mod reading;

pub(crate) use conversion::*;
pub(crate) use reading::*;
