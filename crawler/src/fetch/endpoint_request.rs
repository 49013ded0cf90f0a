//! Sends the request of an endpoint check, and reads the response.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::Body as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, TE};
use reqwest::{RequestBuilder, Response};
use url::Url;

use super::single_request::{BodyLimits, FetchProgress};
use super::{FetchError, FetchRecord, Fetcher, HttpResponse, error};
use crate::AttemptOutcome;

const JSON_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const GRPC_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

/// Maximum size in bytes of a response that is read: an error and a task without messages are much smaller.
pub const MAX_ENDPOINT_RESPONSE_BYTES: usize = 64 * 1024;

/// The request of an endpoint check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndpointRequest {
    pub url: Url,
    /// The body of a POST; `None` for a GET.
    pub body: Option<Vec<u8>>,
    /// Whether the request names version 1.0 of the protocol; without a version it counts as 0.3 (1.0 section 3.6).
    pub is_v1: bool,
    /// Whether it is a gRPC call, which needs HTTP/2.
    pub is_grpc: bool,
}

impl Fetcher {
    /// Sends one request and reads the response with any status, a redirect included. The headers of a gRPC response
    /// include its trailers.
    pub(crate) async fn send_endpoint_request(&self, request: &EndpointRequest) -> FetchRecord {
        let start = self.new_fetch_start();
        let mut progress = FetchProgress::default();
        let exchange = self.exchange_with_endpoint(request, &mut progress);
        let result = self.run_with_total_timeout(&start, exchange).await;
        start.into_record(&request.url, result, &progress)
    }

    async fn exchange_with_endpoint(
        &self,
        request: &EndpointRequest,
        progress: &mut FetchProgress,
    ) -> Result<HttpResponse, FetchError> {
        let over_tls = request.url.scheme() == "https";
        let sent = self.build_endpoint_request(request)?;
        let response = self.send_request(sent, progress).await?;
        if request.is_grpc {
            return read_grpc_response(response, over_tls, progress).await;
        }
        let limits = BodyLimits {
            success_bytes: MAX_ENDPOINT_RESPONSE_BYTES,
            error_bytes: MAX_ENDPOINT_RESPONSE_BYTES,
        };
        self.read_response(response, limits, over_tls, progress)
            .await
    }

    fn build_endpoint_request(
        &self,
        request: &EndpointRequest,
    ) -> Result<RequestBuilder, FetchError> {
        let url = self.guard.check_parsed_url(request.url.clone())?;
        let client = match request.is_grpc {
            true => self
                .client_parts
                .build_http2_client()
                .map_err(|error| FetchError::new(AttemptOutcome::Refused, &error.to_string()))?,
            false => self.client_for(&url).clone(),
        };
        let mut builder = match &request.body {
            None => client.get(url).header(ACCEPT, JSON_MEDIA_TYPE),
            Some(body) if request.is_grpc => client
                .post(url)
                .header(CONTENT_TYPE, GRPC_MEDIA_TYPE)
                .header(TE, "trailers")
                .body(body.clone()),
            Some(body) => client
                .post(url)
                .header(ACCEPT, JSON_MEDIA_TYPE)
                .header(CONTENT_TYPE, JSON_MEDIA_TYPE)
                .body(body.clone()),
        };
        if request.is_v1 {
            builder = builder.header("a2a-version", "1.0");
        }
        Ok(builder)
    }
}

/// Reads a gRPC response with its trailers, in which the status is.
async fn read_grpc_response(
    response: Response,
    over_tls: bool,
    progress: &FetchProgress,
) -> Result<HttpResponse, FetchError> {
    let url = response.url().clone();
    let status = response.status().as_u16();
    let (mut head, mut body) = hyper::Response::<reqwest::Body>::from(response).into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| error::classify_request_error(&error))?;
        match frame.into_data() {
            Ok(data) if bytes.len() + data.len() > MAX_ENDPOINT_RESPONSE_BYTES => {
                return Err(FetchError::new(
                    AttemptOutcome::BadBody,
                    &format!("the body is larger than {MAX_ENDPOINT_RESPONSE_BYTES} bytes"),
                ));
            }
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    head.headers.extend(trailers);
                }
            }
        }
    }
    Ok(HttpResponse {
        url,
        status,
        headers: head.headers,
        body: bytes,
        address: progress.address(),
        over_tls,
    })
}
