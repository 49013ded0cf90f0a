//! Carries the frames of gRPC over the HTTP client of all other calls.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf as _;
use http_body_util::BodyExt as _;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use url::Url;

use crate::TalkError;
use crate::exchange::Exchange;

#[derive(Clone)]
pub(super) struct Transport {
    exchange: Exchange,
    server: Url,
    token: Option<String>,
    shown: String,
}

impl Transport {
    /// The server at an address, of which only scheme, host and port count: the path of a call is that of its method.
    pub fn new(exchange: Exchange, server: Url, token: Option<String>, shown: String) -> Self {
        Self {
            exchange,
            server,
            token,
            shown,
        }
    }

    async fn carry(
        self,
        request: http::Request<Body>,
    ) -> Result<http::Response<reqwest::Body>, TalkError> {
        let (head, body) = request.into_parts();
        // Every call of the protocol has one message, which is complete before it is sent.
        let body = body.collect().await.map_err(|error| TalkError::NoForm {
            reason: error.to_string(),
        })?;
        let mut url = self.server;
        url.set_path(head.uri.path());
        url.set_query(None);
        url.set_fragment(None);
        let mut body = body.aggregate();
        let (body, token) = (body.copy_to_bytes(body.remaining()), self.token.as_deref());
        let sent = self
            .exchange
            .frames(url, head.headers, body, token, &self.shown);
        Ok(sent.await?.into())
    }
}

impl Service<http::Request<Body>> for Transport {
    type Response = http::Response<reqwest::Body>;
    type Error = TalkError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, TalkError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TalkError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.clone().carry(request))
    }
}
