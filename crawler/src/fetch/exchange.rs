//! One request on one connection, with what all requests share: the limits, the check of the peer, the body.

use std::net::IpAddr;

use reqwest::{RequestBuilder, Response};
use time::OffsetDateTime;
use tokio::time::Instant;
use url::Url;

use super::phase::{self, Elapsed};
use super::{FetchError, FetchLimits, Fetched, Fetcher, HttpResponse, body, failure};
use crate::AttemptOutcome;

/// The facts known so far about a fetch, kept outside of its future so that a timeout does not lose them.
#[derive(Debug, Default)]
pub(super) struct Trail {
    status: Option<u16>,
    address: Option<IpAddr>,
}

#[derive(Debug)]
pub(super) struct FetchStart {
    at: OffsetDateTime,
    started: Instant,
}

impl FetchStart {
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

#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Most bytes for status 200; a larger body is a failure.
    pub body: usize,
    /// Most bytes for any other status, where the body explains the error; a larger or broken one counts as none.
    pub reason: usize,
}

impl Fetcher {
    pub(super) fn begin(&self) -> FetchStart {
        FetchStart {
            at: self.clock.now(),
            started: Instant::now(),
        }
    }

    /// Runs a fetch, and fails when it is not complete within [`FetchLimits::total`].
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

    /// Sends one request on one connection and reads the head of the response. The guard has already checked its URL.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        trail: &mut Trail,
    ) -> Result<Response, FetchError> {
        let response = phase::with_limits(&self.limits, request.send())
            .await
            .map_err(|elapsed| self.late(elapsed))?
            .map_err(|error| self.note_failure(failure::classify(&error)))?;
        trail.address = response.remote_addr().map(|peer| peer.ip());
        // The final check of the target: not what DNS said, but which address is actually connected.
        let peer = trail.address.ok_or_else(|| {
            FetchError::new(
                AttemptOutcome::Refused,
                "the address that responded is unknown, so it cannot be checked",
            )
        })?;
        self.guard.check_address(peer)?;
        trail.status = Some(response.status().as_u16());
        if response.headers().len() > self.limits.headers {
            return Err(FetchError::new(
                AttemptOutcome::BadBody,
                &format!(
                    "the response has more than {} header fields",
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
                    "the server did not begin to respond within {:?}",
                    self.limits.first_byte
                ),
            ),
        }
    }

    /// Reads the rest of a response; `tls` says whether every redirect came over valid TLS.
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
