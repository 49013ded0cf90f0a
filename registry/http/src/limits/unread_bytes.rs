//! The bytes of responses that clients have not read yet, bounded for each address: a client that requests much and
//! reads slowly must not fill the memory.
//!
//! A large response is handed to its connection in pieces, so that no connection has a copy of the whole. Cached bytes
//! that several responses share are counted once for an address.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;

/// Bytes of a response that a connection takes at once.
const PIECE_BYTES: usize = 32 * 1024;

/// The large responses in progress, by the address that reads them.
#[derive(Debug)]
pub struct UnreadBytes {
    most: usize,
    /// An address that reads nothing has no entry, so there are never more entries than connections.
    by_address: Mutex<HashMap<IpAddr, UnreadOfAddress>>,
}

#[derive(Debug, Default)]
struct UnreadOfAddress {
    bytes: usize,
    /// How many responses have the same bytes.
    responses: HashMap<BufferKey, usize>,
}

/// The address and length of a response's bytes in memory.
type BufferKey = (usize, usize);

/// A large response that is being read, counted until this is dropped.
pub struct LargeBody {
    rest: Bytes,
    buffer: BufferKey,
    address: IpAddr,
    unread: Arc<UnreadBytes>,
}

impl UnreadBytes {
    /// At most this many megabytes for one address.
    pub fn new(megabytes: u64) -> Arc<Self> {
        let most = megabytes.saturating_mul(1024 * 1024);
        Arc::new(Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            by_address: Mutex::default(),
        })
    }

    /// Counts a response for its reader; `None` if its address has reached the limit of unread bytes. An address
    /// without any may read a response of any size.
    pub fn admit(self: &Arc<Self>, address: IpAddr, bytes: &Bytes) -> Option<LargeBody> {
        let buffer = (bytes.as_ptr() as usize, bytes.len());
        let mut all = self.by_address();
        let of_address = all.entry(address).or_default();
        match of_address.responses.get_mut(&buffer) {
            Some(count) => *count += 1,
            None => {
                let sum = of_address.bytes.saturating_add(bytes.len());
                if sum > self.most && of_address.bytes > 0 {
                    return None;
                }
                of_address.bytes = sum;
                of_address.responses.insert(buffer, 1);
            }
        }
        drop(all);
        Some(LargeBody {
            rest: bytes.clone(),
            buffer,
            address,
            unread: Arc::clone(self),
        })
    }

    /// The unread bytes of an address.
    #[cfg(test)]
    fn bytes_of(&self, address: IpAddr) -> usize {
        self.by_address().get(&address).map_or(0, |one| one.bytes)
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, UnreadOfAddress>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LargeBody {
    fn drop(&mut self) {
        let mut all = self.unread.by_address();
        let Some(of_address) = all.get_mut(&self.address) else {
            return;
        };
        if let Some(count) = of_address.responses.get_mut(&self.buffer) {
            *count -= 1;
            if *count == 0 {
                of_address.responses.remove(&self.buffer);
                of_address.bytes = of_address.bytes.saturating_sub(self.buffer.1);
            }
        }
        if of_address.responses.is_empty() {
            all.remove(&self.address);
        }
    }
}

impl MessageBody for LargeBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.rest.len() as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let piece = self.rest.len().min(PIECE_BYTES);
        let piece = (piece > 0).then(|| self.rest.split_to(piece));
        Poll::Ready(piece.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const MEGABYTE: usize = 1024 * 1024;

    #[test]
    fn an_address_has_its_bytes_and_shared_ones_count_once() {
        let unread = UnreadBytes::new(3);
        let reader = |last| IpAddr::from([192, 0, 2, last]);
        let response = || Bytes::from(vec![b'x'; 2 * MEGABYTE]);
        let cached = response();
        let shared: Vec<_> = (0..50)
            .map(|_| unread.admit(reader(1), &cached).unwrap())
            .collect();
        assert_eq!(unread.bytes_of(reader(1)), 2 * MEGABYTE);
        assert!(unread.admit(reader(1), &response()).is_none());
        assert!(unread.admit(reader(2), &response()).is_some());
        drop(shared);
        assert!(unread.by_address().is_empty());
        // An address without unread bytes may read a response of any size.
        let large = Bytes::from(vec![b'x'; 5 * MEGABYTE]);
        assert!(unread.admit(reader(1), &large).is_some());
        assert!(unread.by_address().is_empty());
    }

    #[test]
    fn a_response_comes_whole_in_pieces() {
        let unread = UnreadBytes::new(1);
        let whole: Vec<u8> = (0..100_003_u32).map(|place| place as u8).collect();
        let bytes = Bytes::from(whole.clone());
        let mut body = unread.admit(IpAddr::from([192, 0, 2, 1]), &bytes).unwrap();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut read = Vec::new();
        while let Poll::Ready(Some(Ok(piece))) = Pin::new(&mut body).poll_next(&mut context) {
            assert!(piece.len() <= PIECE_BYTES);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, whole);
    }
}
