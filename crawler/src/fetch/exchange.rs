//! One request on one connection, and what every way of asking shares: the limits, the check of the peer, the body.

use std::net::IpAddr;

use reqwest::{RequestBuilder, Response};
use time::OffsetDateTime;
use tokio::time::Instant;
use url::Url;

use super::phase::{self, Elapsed};
use super::{FetchError, FetchLimits, Fetched, Fetcher, HttpResponse, body, failure};
use crate::AttemptOutcome;

/// What is known of a fetch so far, kept outside of it so that a timeout does not lose it.
#[derive(Debug, Default)]
pub(super) struct Trail {
    status: Option<u16>,
    address: Option<IpAddr>,
}

/// A fetch that has begun.
#[derive(Debug)]
pub(super) struct FetchStart {
    at: OffsetDateTime,
    started: Instant,
}

impl FetchStart {
    /// Puts what came of it together.
    pub fn end(
        self,
        url: &Url,
        answer: Result<HttpResponse, FetchError>,
        trail: &Trail,
    ) -> Fetched {
        Fetched {
            at: self.at,
            url: url.clone(),
            elapsed: self.started.elapsed(),
            answer: answer.map_err(|error| FetchError {
                status: trail.status,
                address: trail.address,
                ..error
            }),
        }
    }
}

/// How many bytes of an answer's body are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Of a 200; a larger one is a failure.
    pub body: usize,
    /// Of any other answer, which says little more than why; a larger one, or one that breaks off, counts as none.
    pub reason: usize,
}

impl Fetcher {
    /// The clocks of a fetch start.
    pub(super) fn begin(&self) -> FetchStart {
        FetchStart {
            at: self.clock.now(),
            started: Instant::now(),
        }
    }

    /// Runs a fetch, and gives up when it is not complete within [`FetchLimits::total`].
    pub(super) async fn in_time<T>(
        &self,
        begun: &FetchStart,
        fetch: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        tokio::time::timeout_at(begun.started + self.limits.total, fetch)
            .await
            .unwrap_or_else(|_| {
                Err(FetchError::new(
                    AttemptOutcome::Timeout,
                    &format!("the fetch was not complete within {:?}", self.limits.total),
                ))
            })
    }

    /// One request on one connection, to the head of its answer. Its URL has passed the guard.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        trail: &mut Trail,
    ) -> Result<Response, FetchError> {
        let response = phase::with_limits(&self.limits, request.send())
            .await
            .map_err(|elapsed| self.late(elapsed))?
            .map_err(|error| failure::classify(&error))?;
        trail.status = Some(response.status().as_u16());
        trail.address = response.remote_addr().map(|peer| peer.ip());
        // The last word on where we are: not what DNS said, but who is at the other end.
        let peer = trail.address.ok_or_else(|| {
            FetchError::new(
                AttemptOutcome::Refused,
                "nobody knows which address has answered",
            )
        })?;
        self.guard.check_address(peer)?;
        if response.headers().len() > self.limits.headers {
            return Err(FetchError::new(
                AttemptOutcome::BadBody,
                &format!(
                    "the answer has more than {} header fields",
                    self.limits.headers
                ),
            ));
        }
        Ok(response)
    }

    fn late(&self, elapsed: Elapsed) -> FetchError {
        match elapsed {
            Elapsed::Connect => failure::no_connection_in_time(),
            Elapsed::FirstByte => FetchError::new(
                AttemptOutcome::Timeout,
                &format!(
                    "the server did not begin to answer within {:?}",
                    self.limits.first_byte
                ),
            ),
        }
    }

    /// Reads the rest of an answer; `tls` says whether every hop came over valid TLS.
    pub(super) async fn answer(
        &self,
        mut response: Response,
        most: BodyLimits,
        tls: bool,
        trail: &Trail,
    ) -> Result<HttpResponse, FetchError> {
        let url = response.url().clone();
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let limits = |body: usize| FetchLimits {
            body: body.min(self.limits.body),
            ..self.limits
        };
        let body = match status {
            200 => body::read(response, &headers, &limits(most.body)).await?,
            _ if most.reason == 0 => Vec::new(),
            _ => body::read(response, &headers, &limits(most.reason))
                .await
                .unwrap_or_default(),
        };
        Ok(HttpResponse {
            url,
            status,
            headers,
            body,
            address: trail.address,
            tls,
        })
    }
}
