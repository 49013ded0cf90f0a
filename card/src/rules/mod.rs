//! The rules that reading and conversions watch over. Those of the linter stand in its own table, those about
//! verified signatures beside the code that judges them.

mod conversion;
mod reading;

pub(crate) use conversion::*;
pub(crate) use reading::*;
