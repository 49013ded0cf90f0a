//! Identifiers, and the source of randomness for identifiers and secrets.

use ring::rand::{SecureRandom, SystemRandom};
use uuid::Uuid;

use super::timestamp::Timestamp;

/// A source of random bytes, injected so that tests can make identifiers predictable.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    fn fill(&self, buffer: &mut [u8]);
}

#[derive(Debug)]
pub struct SystemEntropy(SystemRandom);

impl Default for SystemEntropy {
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Entropy for SystemEntropy {
    /// Ends the process if the operating system provides no randomness: otherwise secrets could be guessed.
    #[expect(
        clippy::disallowed_methods,
        reason = "no secret can be made, and none may be made up"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        if self.0.fill(buffer).is_err() {
            tracing::error!("the operating system provides no randomness; the process ends");
            std::process::abort();
        }
    }
}

/// A new `UUIDv7` for this time (RFC 9562 section 5.7).
pub fn new_uuid(now: Timestamp, entropy: &dyn Entropy) -> Uuid {
    let mut random = [0; 10];
    entropy.fill(&mut random);
    let millis = u64::try_from(now.to_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// A random 64-bit number, such as a lease number.
pub fn random_u64(entropy: &dyn Entropy) -> u64 {
    let mut random = [0; 8];
    entropy.fill(&mut random);
    u64::from_le_bytes(random)
}

/// A random number in `0..1`, for jitter.
pub fn random_fraction(entropy: &dyn Entropy) -> f64 {
    let mut random = [0; 4];
    entropy.fill(&mut random);
    f64::from(u32::from_le_bytes(random)) / (f64::from(u32::MAX) + 1.0)
}
