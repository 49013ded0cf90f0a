//! Access tokens that are obtained and renewed during a call.

use std::fmt;

use futures::future::BoxFuture;

/// The source of an agent's access tokens, such as a file with a refresh token.
///
/// The client asks it for a token before each request, and once more if the agent refuses a token with HTTP 401, since
/// such a request was certainly not accepted and may be sent again.
pub trait TokenSource: Send + Sync {
    /// The token for the next request. `rejected_token` is a token that the agent has refused: the source returns a
    /// newer one, or `None` if it has no other. An error has its reason in one line, without any secret.
    fn access_token<'a>(
        &'a self,
        rejected_token: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>>;
}

/// A user and a password for HTTP Basic (RFC 7617).
#[derive(Clone, PartialEq, Eq)]
pub struct BasicLogin {
    /// The user; it has no colon.
    pub user: String,
    /// The password, in clear text.
    pub password: String,
}

impl fmt::Debug for BasicLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A client certificate with its key, for agents that require mutual TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate and those of its issuers, in PEM.
    pub chain: Vec<u8>,
    /// The private key, in PEM.
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}
