//! Signing in for an agent: access tokens by OAuth 2 (RFC 6749, 7636, 8252, 8414, 8628) and `OpenID` Connect
//! discovery.
//!
//! A card must not decide where a user signs in. So nothing here sends a secret to an address of a card by itself:
//! [`oauth_schemes`] lists what the card says, the caller has the user confirm the addresses, and gives the confirmed
//! [`OauthEndpoints`] to an [`AuthorizationServer`]. Addresses are https, or http on this machine; redirects are not
//! followed, responses are at most [`MAX_RESPONSE_BYTES`] bytes, and each request ends after [`REQUEST_TIMEOUT`]. The
//! caller handles files, terminals and browsers. The identity token of `OpenID` Connect is not read: it is for the
//! agent.

mod authorization_server;
mod card_schemes;
mod endpoint_client;
mod error;
mod loopback_redirect;
mod server_metadata;

pub use authorization_server::{
    AuthorizationServer, DeviceAuthorization, OauthClientConfig, TokenSet,
};
pub use card_schemes::{GrantType, OauthFlow, OauthScheme, oauth_schemes};
pub use endpoint_client::{MAX_RESPONSE_BYTES, REQUEST_TIMEOUT, parse_oauth_url};
pub use error::OauthError;
pub use loopback_redirect::{LoopbackRedirect, SIGN_IN_TIMEOUT};
pub use server_metadata::{OauthEndpoints, OauthMetadataKind, OauthServerMetadata};
