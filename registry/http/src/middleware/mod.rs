//! Middleware around every request.

pub mod envelope;
pub mod request_id;
pub mod unread_limit;
