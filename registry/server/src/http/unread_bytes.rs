//! The bytes of responses that clients have not read yet, bounded for each address: a client that requests much and reads
//! slowly must not fill the memory.
//!
//! A large response is handed to its connection in pieces, so that no connection has a copy of the whole. Bytes that
//! several responses share, because they are kept in a cache, are counted once for an address.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready as poll_ready};

use actix_web::Error;
use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use bytes::Bytes;
use pin_project_lite::pin_project;

use crate::http::auth::state;
use crate::http::client_address::{client_address, network};
use crate::http::problem::Problem;
use crate::http::problem_kinds;

/// Responses of at most so many bytes are not counted: a connection holds about as much of any response, and connections are
/// bounded themselves.
pub const SMALL_BYTES: usize = 64 * 1024;
/// Bytes of a response that a connection takes at once.
const PIECE_BYTES: usize = 32 * 1024;
/// Seconds after which a refused request may be repeated.
const RETRY_AFTER: u32 = 5;

/// The large responses under way, by the address that reads them.
#[derive(Debug)]
pub struct UnreadBytes {
    most: usize,
    /// An address that reads nothing has no entry, so there are never more than connections.
    by_address: Mutex<HashMap<IpAddr, UnreadOfAddress>>,
}

#[derive(Debug, Default)]
struct UnreadOfAddress {
    bytes: usize,
    /// How many responses have the same bytes.
    responses: HashMap<BufferKey, usize>,
}

/// Where the bytes of a response are in memory, and how many they are.
type BufferKey = (usize, usize);

/// A large response that is being read, counted until this is dropped.
struct LargeBody {
    rest: Bytes,
    buffer: BufferKey,
    address: IpAddr,
    unread: Arc<UnreadBytes>,
}

impl UnreadBytes {
    /// At most so many megabytes for one address.
    pub fn new(megabytes: u64) -> Arc<Self> {
        let most = megabytes.saturating_mul(1024 * 1024);
        Arc::new(Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            by_address: Mutex::default(),
        })
    }

    /// Counts a response for its reader; `None` where its address has as many unread bytes as it may. An address without
    /// any may read a response of any size.
    fn admit(self: &Arc<Self>, address: IpAddr, bytes: &Bytes) -> Option<LargeBody> {
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

/// The layer that counts large responses. It is inside of the compression, which would hide the size of the buffers.
#[derive(Debug, Clone, Copy)]
pub struct UnreadLimit;

impl<S, B> Transform<S, ServiceRequest> for UnreadLimit
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = LimitedService<S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        ready(Ok(LimitedService { service }))
    }
}

/// A service whose large responses are counted.
#[derive(Debug)]
pub struct LimitedService<S> {
    service: S,
}

impl<S, B> Service<ServiceRequest> for LimitedService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = LimitedResponse<S::Future>;

    forward_ready!(service);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        LimitedResponse {
            inner: self.service.call(request),
        }
    }
}

pin_project! {
    /// The future of a response.
    #[derive(Debug)]
    pub struct LimitedResponse<F> {
        #[pin]
        inner: F,
    }
}

impl<F, B> Future for LimitedResponse<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    B: MessageBody + 'static,
{
    type Output = Result<ServiceResponse<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = poll_ready!(self.project().inner.poll(context))?;
        Poll::Ready(Ok(match answer.response().body().size() {
            BodySize::Sized(bytes) if bytes > SMALL_BYTES as u64 => limit_response(answer),
            _ => answer.map_into_left_body(),
        }))
    }
}

/// Counts a large response for the address of its reader, or refuses it.
fn limit_response<B: MessageBody + 'static>(
    answer: ServiceResponse<B>,
) -> ServiceResponse<EitherBody<B>> {
    let request = answer.request();
    let Ok(state) = state(request) else {
        return answer.map_into_left_body();
    };
    let unread = Arc::clone(&state.unread);
    let trusted = &state.context.config().server.trusted_proxies;
    let Some(address) = client_address(request, trusted).map(network) else {
        return answer.map_into_left_body();
    };
    let (request, response) = answer.into_parts();
    let (response, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => {
            return ServiceResponse::new(request, response.set_body(EitherBody::left(body)));
        }
    };
    match unread.admit(address, &bytes) {
        Some(body) => {
            let body = EitherBody::right(BoxBody::new(body));
            ServiceResponse::new(request, response.set_body(body))
        }
        None => {
            let problem = Problem::new(
                &problem_kinds::TOO_MANY_REQUESTS,
                "Your address has too many unread bytes of earlier responses. Read those first, then try again.",
            );
            let refusal = ServiceResponse::from_err(problem.retry_after(RETRY_AFTER), request);
            refusal.map_into_right_body()
        }
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
