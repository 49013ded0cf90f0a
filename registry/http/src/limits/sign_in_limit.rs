//! Rate limits of sign-ins, by address and by account.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, CredentialRefusal, ErrorKind, Result};
use governor::Quota;
use uuid::Uuid;

use crate::limits::anonymous_write_limit::KeyedRateLimiter;
use crate::limits::client_address::client_network;

/// Maximum attempts per minute from one address, and maximum identity provider responses.
const MAX_PER_ADDRESS: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
/// Maximum sessions per minute started by one account.
const MAX_PER_ACCOUNT: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// Counts sign-in attempts in this process.
#[derive(Debug)]
pub struct SignInLimit {
    addresses: KeyedRateLimiter<IpAddr>,
    responses: KeyedRateLimiter<IpAddr>,
    accounts: KeyedRateLimiter<Uuid>,
}

impl SignInLimit {
    pub fn new(context: &Arc<AppContext>) -> Self {
        Self {
            addresses: KeyedRateLimiter::new(Quota::per_minute(MAX_PER_ADDRESS), context),
            responses: KeyedRateLimiter::new(Quota::per_minute(MAX_PER_ADDRESS), context),
            accounts: KeyedRateLimiter::new(Quota::per_minute(MAX_PER_ACCOUNT), context),
        }
    }

    pub fn admit_address(&self, address: IpAddr) -> Result<()> {
        let admitted = self.addresses.admit(&client_network(address));
        admitted.map_err(|seconds| rate_limit_error("from this address", seconds))
    }

    /// Counts an identity provider response that arrives from a browser at this address.
    pub fn admit_provider_response(&self, address: IpAddr) -> Result<()> {
        let admitted = self.responses.admit(&client_network(address));
        admitted.map_err(|seconds| rate_limit_error("from this address", seconds))
    }

    pub fn admit_account(&self, account: Uuid) -> Result<()> {
        let admitted = self.accounts.admit(&account);
        admitted.map_err(|seconds| rate_limit_error("of this account", seconds))
    }
}

fn rate_limit_error(origin: &str, seconds: u32) -> AppError {
    AppError {
        retry_after: Some(seconds),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!("Too many sign-in attempts {origin}. Wait {seconds} seconds."),
        )
    }
    .with_refusal(CredentialRefusal::TooMany)
}
