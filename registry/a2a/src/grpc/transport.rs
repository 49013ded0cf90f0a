//! Carries the frames of gRPC over the HTTP client of all other calls.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf as _;
use http_body_util::BodyExt as _;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use url::Url;

use crate::CallError;
use crate::http_session::HttpSession;

#[derive(Clone)]
pub(super) struct GrpcTransport {
    session: HttpSession,
    server: Url,
    token: Option<String>,
    display_url: String,
}

impl GrpcTransport {
    /// The server at an address, of which only scheme, host and port are used: the path of a call is that of its
    /// method.
    pub fn new(
        session: HttpSession,
        server: Url,
        token: Option<String>,
        display_url: String,
    ) -> Self {
        Self {
            session,
            server,
            token,
            display_url,
        }
    }

    async fn send_request(
        self,
        request: http::Request<Body>,
    ) -> Result<http::Response<reqwest::Body>, CallError> {
        let (head, body) = request.into_parts();
        // Every call of the protocol has one message, which is complete before it is sent.
        let body = body
            .collect()
            .await
            .map_err(|error| CallError::NotGrpcEncodable {
                reason: error.to_string(),
            })?;
        let mut url = self.server;
        url.set_path(head.uri.path());
        url.set_query(None);
        url.set_fragment(None);
        let mut body = body.aggregate();
        let (body, token) = (body.copy_to_bytes(body.remaining()), self.token.as_deref());
        let sent = self
            .session
            .send_grpc_frames(url, head.headers, body, token, &self.display_url);
        Ok(sent.await?.into())
    }
}

impl Service<http::Request<Body>> for GrpcTransport {
    type Response = http::Response<reqwest::Body>;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, CallError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.clone().send_request(request))
    }
}
