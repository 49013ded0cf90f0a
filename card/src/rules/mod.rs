//! Rules that the reader and conversions check. The rules of the linter and of verified signatures are beside their
//! checks.

mod conversion;
mod reading;

pub(crate) use conversion::*;
pub(crate) use reading::*;
