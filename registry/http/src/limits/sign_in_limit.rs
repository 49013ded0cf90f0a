//! The rate limits of signing in, by address and by account.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, ErrorKind, RefusalReason, Result};
use governor::Quota;
use uuid::Uuid;

use crate::limits::anonymous_write_limit::KeyedLimit;
use crate::limits::client_address::network;

/// Attempts of one address in a minute, and answers of identity providers.
const PER_ADDRESS: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
/// Sessions begun by one account in a minute.
const PER_ACCOUNT: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

/// Counts attempts to sign in, in this process.
#[derive(Debug)]
pub struct SignInLimit {
    addresses: KeyedLimit<IpAddr>,
    answers: KeyedLimit<IpAddr>,
    accounts: KeyedLimit<Uuid>,
}

impl SignInLimit {
    pub fn new(context: &Arc<Context>) -> Self {
        Self {
            addresses: KeyedLimit::new(Quota::per_minute(PER_ADDRESS), context),
            answers: KeyedLimit::new(Quota::per_minute(PER_ADDRESS), context),
            accounts: KeyedLimit::new(Quota::per_minute(PER_ACCOUNT), context),
        }
    }

    pub fn admit_address(&self, address: IpAddr) -> Result<()> {
        let admitted = self.addresses.admit(&network(address));
        admitted.map_err(|seconds| refused("from this address", seconds))
    }

    /// Counts an answer of an identity provider from a browser at that address.
    pub fn admit_answer(&self, address: IpAddr) -> Result<()> {
        let admitted = self.answers.admit(&network(address));
        admitted.map_err(|seconds| refused("from this address", seconds))
    }

    pub fn admit_account(&self, account: Uuid) -> Result<()> {
        let admitted = self.accounts.admit(&account);
        admitted.map_err(|seconds| refused("of this account", seconds))
    }
}

fn refused(whose: &str, seconds: u32) -> AppError {
    AppError {
        retry_after: Some(seconds),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!("Too many attempts to sign in {whose}; wait {seconds} seconds."),
        )
    }
    .refused(RefusalReason::TooMany)
}
