//! Rate limit of anonymous writes, by address.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, ErrorKind, Result};
use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::limits::client_address::client_network;

/// Maximum number of stored addresses or other keys. If more keys write within one minute, all must wait.
const MAX_KEYS: usize = 100_000;

type GovernorLimiter<K> =
    RateLimiter<K, DashMapStateStore<K>, LimiterClock, NoOpMiddleware<LimiterInstant>>;

/// Rate limiter with a bounded number of keys. It uses monotonic time: setting the clock back must not make a caller
/// wait for a year.
pub struct KeyedRateLimiter<K: LimitKey> {
    limiter: GovernorLimiter<K>,
    ticks: LimiterClock,
    max_keys: usize,
}

pub trait LimitKey: Hash + Eq + Clone {}

impl<K: Hash + Eq + Clone> LimitKey for K {}

impl<K: LimitKey> std::fmt::Debug for KeyedRateLimiter<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedLimit")
            .field("keys", &self.limiter.len())
            .finish_non_exhaustive()
    }
}

impl<K: LimitKey> KeyedRateLimiter<K> {
    pub fn new(quota: Quota, context: &Arc<AppContext>) -> Self {
        let context = Arc::clone(context);
        let ticks = move || u64::try_from(context.monotonic_time().as_micros()).unwrap_or(u64::MAX);
        Self::with_clock(quota, MAX_KEYS, ticks)
    }

    fn with_clock(
        quota: Quota,
        max_keys: usize,
        microseconds: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let ticks = LimiterClock(Arc::new(microseconds));
        let limiter = RateLimiter::new(quota, DashMapStateStore::default(), ticks.clone());
        Self {
            limiter,
            ticks,
            max_keys,
        }
    }

    /// Admits a request, or returns the number of seconds until the next one is admitted.
    pub fn admit(&self, key: &K) -> Result<(), u32> {
        if self.limiter.len() >= self.max_keys {
            self.limiter.retain_recent();
            if self.limiter.len() >= self.max_keys {
                return Err(60);
            }
        }
        self.limiter.check_key(key).map_err(|refusal| {
            let wait = refusal.wait_time_from(self.ticks.now());
            // The quota keeps the value between 1 and 60, so the cast is lossless.
            (wait.as_secs_f64().ceil() as u32).max(1)
        })
    }
}

/// Counts anonymous writes by address.
#[derive(Debug)]
pub struct AnonymousWriteLimit(KeyedRateLimiter<IpAddr>);

impl AnonymousWriteLimit {
    pub fn new(context: &Arc<AppContext>) -> Self {
        let per_minute = context.config().limits.anonymous_writes_per_minute;
        Self(KeyedRateLimiter::new(per_minute_quota(per_minute), context))
    }

    pub fn admit(&self, address: IpAddr) -> Result<()> {
        self.0
            .admit(&client_network(address))
            .map_err(rate_limit_error)
    }
}

fn per_minute_quota(per_minute: u32) -> Quota {
    Quota::per_minute(NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN))
}

fn rate_limit_error(seconds: u32) -> AppError {
    AppError {
        retry_after: Some(seconds),
        ..AppError::new(
            ErrorKind::TooManyRequests,
            format!(
                "Too many anonymous changes from this address. Wait {seconds} seconds, or use a token."
            ),
        )
    }
}

/// Adapts the registry's monotonic clock to the limiter.
#[derive(Clone)]
struct LimiterClock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock for LimiterClock {
    type Instant = LimiterInstant;

    fn now(&self) -> LimiterInstant {
        LimiterInstant(Duration::from_micros((self.0)()))
    }
}

/// Time since an arbitrary start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LimiterInstant(Duration);

impl Reference for LimiterInstant {
    fn duration_since(&self, earlier: Self) -> governor::nanos::Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, duration: governor::nanos::Nanos) -> Self {
        Self(self.0.saturating_sub(duration.into()))
    }
}

impl std::ops::Add<governor::nanos::Nanos> for LimiterInstant {
    type Output = Self;

    fn add(self, other: governor::nanos::Nanos) -> Self {
        Self(self.0.saturating_add(other.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn limit(per_minute: u32, max: usize) -> (AnonymousWriteLimit, Arc<AtomicU64>) {
        let now = Arc::new(AtomicU64::new(1_700_000_000_000_000));
        let read = Arc::clone(&now);
        (
            AnonymousWriteLimit(KeyedRateLimiter::with_clock(
                per_minute_quota(per_minute),
                max,
                move || read.load(Ordering::Relaxed),
            )),
            now,
        )
    }

    #[test]
    fn the_next_write_waits_and_then_is_admitted() {
        let (limit, now) = limit(30, 10);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        for _ in 0..30 {
            limit.admit(address).unwrap();
        }
        assert_eq!(
            limit.admit(address).unwrap_err().kind,
            ErrorKind::TooManyRequests
        );
        limit.admit("192.0.2.2".parse().unwrap()).unwrap();
        now.fetch_add(2_000_000, Ordering::Relaxed);
        limit.admit(address).unwrap();
        assert!(limit.admit(address).is_err());
    }

    #[test]
    fn addresses_are_forgotten_so_that_their_number_is_bounded() {
        let (limit, now) = limit(1, 3);
        for last in 1..=3 {
            limit.admit(IpAddr::from([192, 0, 2, last])).unwrap();
        }
        assert!(limit.admit(IpAddr::from([192, 0, 2, 4])).is_err());
        // An address is dropped a minute after it could write again.
        now.fetch_add(121_000_000, Ordering::Relaxed);
        limit.admit(IpAddr::from([192, 0, 2, 4])).unwrap();
        assert_eq!(limit.0.limiter.len(), 1);
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let (limit, _) = limit(1, 10);
        limit.admit("2001:db8::1".parse().unwrap()).unwrap();
        assert!(limit.admit("2001:db8::2".parse().unwrap()).is_err());
        limit.admit("2001:db8:0:1::1".parse().unwrap()).unwrap();
    }
}
