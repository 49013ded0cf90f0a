//! Limits the response bytes that clients have not read yet, for each address: a client that requests much and reads
//! slowly must not fill the memory.
//!
//! A large response is passed to its connection in chunks, so that no connection holds a copy of the whole. Cached
//! bytes that several responses share are counted once per address.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;

/// Number of response bytes that a connection takes at once.
const CHUNK_BYTES: usize = 32 * 1024;

/// Tracks the large responses in progress, by client address.
#[derive(Debug)]
pub struct UnreadBytesLimiter {
    max_per_address: usize,
    /// An address that reads nothing has no entry, so there are never more entries than connections.
    by_address: Mutex<HashMap<IpAddr, AddressUnreadBytes>>,
}

#[derive(Debug, Default)]
struct AddressUnreadBytes {
    bytes: usize,
    /// Number of responses that share the same bytes.
    responses: HashMap<BufferKey, usize>,
}

/// Memory address and length of a response's bytes.
type BufferKey = (usize, usize);

/// Large response in progress, counted until dropped.
pub struct CountedBody {
    remaining: Bytes,
    buffer: BufferKey,
    address: IpAddr,
    limiter: Arc<UnreadBytesLimiter>,
}

impl UnreadBytesLimiter {
    /// Allows at most this many megabytes per address.
    pub fn new(megabytes: u64) -> Arc<Self> {
        let max_bytes = megabytes.saturating_mul(1024 * 1024);
        Arc::new(Self {
            max_per_address: usize::try_from(max_bytes).unwrap_or(usize::MAX),
            by_address: Mutex::default(),
        })
    }

    /// Counts a response for the client address; `None` if the address has reached the limit of unread bytes. An
    /// address without unread bytes may read a response of any size.
    pub fn admit(self: &Arc<Self>, address: IpAddr, bytes: &Bytes) -> Option<CountedBody> {
        let buffer = (bytes.as_ptr() as usize, bytes.len());
        let mut usages = self.lock_by_address();
        let usage = usages.entry(address).or_default();
        match usage.responses.get_mut(&buffer) {
            Some(count) => *count += 1,
            None => {
                let sum = usage.bytes.saturating_add(bytes.len());
                if sum > self.max_per_address && usage.bytes > 0 {
                    return None;
                }
                usage.bytes = sum;
                usage.responses.insert(buffer, 1);
            }
        }
        drop(usages);
        Some(CountedBody {
            remaining: bytes.clone(),
            buffer,
            address,
            limiter: Arc::clone(self),
        })
    }

    /// Number of unread bytes of an address.
    #[cfg(test)]
    fn count_unread_bytes(&self, address: IpAddr) -> usize {
        self.lock_by_address()
            .get(&address)
            .map_or(0, |one| one.bytes)
    }

    fn lock_by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, AddressUnreadBytes>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        let mut usages = self.limiter.lock_by_address();
        let Some(usage) = usages.get_mut(&self.address) else {
            return;
        };
        if let Some(count) = usage.responses.get_mut(&self.buffer) {
            *count -= 1;
            if *count == 0 {
                usage.responses.remove(&self.buffer);
                usage.bytes = usage.bytes.saturating_sub(self.buffer.1);
            }
        }
        if usage.responses.is_empty() {
            usages.remove(&self.address);
        }
    }
}

impl MessageBody for CountedBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.remaining.len() as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let length = self.remaining.len().min(CHUNK_BYTES);
        let chunk = (length > 0).then(|| self.remaining.split_to(length));
        Poll::Ready(chunk.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const MEGABYTE: usize = 1024 * 1024;

    #[test]
    fn an_address_has_its_bytes_and_shared_ones_count_once() {
        let unread = UnreadBytesLimiter::new(3);
        let reader = |last| IpAddr::from([192, 0, 2, last]);
        let response = || Bytes::from(vec![b'x'; 2 * MEGABYTE]);
        let cached = response();
        let shared: Vec<_> = (0..50)
            .map(|_| unread.admit(reader(1), &cached).unwrap())
            .collect();
        assert_eq!(unread.count_unread_bytes(reader(1)), 2 * MEGABYTE);
        assert!(unread.admit(reader(1), &response()).is_none());
        assert!(unread.admit(reader(2), &response()).is_some());
        drop(shared);
        assert!(unread.lock_by_address().is_empty());
        // An address without unread bytes may read a response of any size.
        let large = Bytes::from(vec![b'x'; 5 * MEGABYTE]);
        assert!(unread.admit(reader(1), &large).is_some());
        assert!(unread.lock_by_address().is_empty());
    }

    #[test]
    fn a_response_comes_whole_in_pieces() {
        let unread = UnreadBytesLimiter::new(1);
        let whole: Vec<u8> = (0..100_003_u32).map(|place| place as u8).collect();
        let bytes = Bytes::from(whole.clone());
        let mut body = unread.admit(IpAddr::from([192, 0, 2, 1]), &bytes).unwrap();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut read = Vec::new();
        while let Poll::Ready(Some(Ok(piece))) = Pin::new(&mut body).poll_next(&mut context) {
            assert!(piece.len() <= CHUNK_BYTES);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, whole);
    }
}
