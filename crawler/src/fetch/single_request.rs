//! One request on one connection, with the parts common to all requests: limits, check of the peer, body.

use std::net::IpAddr;

use reqwest::{RequestBuilder, Response};
use time::OffsetDateTime;
use tokio::time::Instant;
use url::Url;

use super::phase::{self, TimedOutPhase};
use super::{FetchError, FetchLimits, FetchRecord, Fetcher, HttpResponse, body, error};
use crate::AttemptOutcome;

/// Facts known so far about a fetch, kept outside its future so that a timeout does not lose them.
#[derive(Debug, Default)]
pub(super) struct FetchProgress {
    status: Option<u16>,
    address: Option<IpAddr>,
}

impl FetchProgress {
    pub(super) const fn address(&self) -> Option<IpAddr> {
        self.address
    }
}

#[derive(Debug)]
pub(super) struct FetchStart {
    started_at: OffsetDateTime,
    start_instant: Instant,
}

impl FetchStart {
    pub fn into_record(
        self,
        url: &Url,
        result: Result<HttpResponse, FetchError>,
        progress: &FetchProgress,
    ) -> FetchRecord {
        FetchRecord {
            started_at: self.started_at,
            url: url.clone(),
            elapsed: self.start_instant.elapsed(),
            result: result.map_err(|error| FetchError {
                status: progress.status,
                address: progress.address,
                ..error
            }),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Maximum size of the body for status 200 in bytes; a larger body is a failure.
    pub success_bytes: usize,
    /// Maximum size in bytes of the body for any other status, which explains the error; a larger or broken one is
    /// dropped.
    pub error_bytes: usize,
}

impl Fetcher {
    pub(super) fn new_fetch_start(&self) -> FetchStart {
        FetchStart {
            started_at: self.clock.now(),
            start_instant: Instant::now(),
        }
    }

    /// Runs a fetch, and fails if it does not complete within [`FetchLimits::total`].
    pub(super) async fn run_with_total_timeout<T>(
        &self,
        start: &FetchStart,
        fetch: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        tokio::time::timeout_at(start.start_instant + self.limits.total, fetch)
            .await
            .unwrap_or_else(|_| {
                Err(FetchError::new(
                    AttemptOutcome::Timeout,
                    &format!("the fetch did not complete within {:?}", self.limits.total),
                ))
            })
    }

    /// Sends one request on one connection and reads the head of the response. The guard has already checked its URL.
    pub(super) async fn send_request(
        &self,
        request: RequestBuilder,
        progress: &mut FetchProgress,
    ) -> Result<Response, FetchError> {
        let response = phase::run_with_phase_limits(&self.limits, request.send())
            .await
            .map_err(|elapsed| self.timeout_error(elapsed))?
            .map_err(|error| self.record_local_failure(error::classify_request_error(&error)))?;
        let peer = response.remote_addr();
        progress.address = peer.map(|peer| peer.ip());
        // The final check of the target uses the connected address, not the DNS answer.
        let peer = peer.ok_or_else(|| {
            FetchError::new(
                AttemptOutcome::Refused,
                "the address that responded is unknown, so it cannot be checked",
            )
        })?;
        self.guard.check_peer(response.url(), peer)?;
        progress.status = Some(response.status().as_u16());
        if response.headers().len() > self.limits.header_fields {
            return Err(FetchError::new(
                AttemptOutcome::BadBody,
                &format!(
                    "the response has more than {} header fields",
                    self.limits.header_fields
                ),
            ));
        }
        Ok(response)
    }

    fn timeout_error(&self, elapsed: TimedOutPhase) -> FetchError {
        match elapsed {
            TimedOutPhase::Connect => error::connect_timeout_error(),
            TimedOutPhase::FirstByte => FetchError::new(
                AttemptOutcome::Timeout,
                &format!(
                    "the server did not begin to respond within {:?}",
                    self.limits.first_byte
                ),
            ),
        }
    }

    /// Reads the rest of a response; `tls` says whether every redirect came over valid TLS.
    pub(super) async fn read_response(
        &self,
        mut response: Response,
        body_limits: BodyLimits,
        tls: bool,
        progress: &FetchProgress,
    ) -> Result<HttpResponse, FetchError> {
        let url = response.url().clone();
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let limits = |body: usize| FetchLimits {
            body_bytes: body.min(self.limits.body_bytes),
            ..self.limits
        };
        let body = match status {
            200 => body::read_body(response, &headers, &limits(body_limits.success_bytes)).await?,
            _ if body_limits.error_bytes == 0 => Vec::new(),
            _ => body::read_body(response, &headers, &limits(body_limits.error_bytes))
                .await
                .unwrap_or_default(),
        };
        Ok(HttpResponse {
            url,
            status,
            headers,
            body,
            address: progress.address,
            over_tls: tls,
        })
    }
}
