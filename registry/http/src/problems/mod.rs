//! Problem documents (RFC 9457): every kind of problem, and the conversion of errors to responses.

pub mod problem;
pub mod problem_kinds;
pub mod protocol_errors;
