//! Middleware around every request.

mod cors;
pub mod envelope;
pub mod request_id;
pub mod trace_span;
pub mod unread_limit;
