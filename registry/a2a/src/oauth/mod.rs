//! Signing in for an agent: access tokens by OAuth 2 (RFC 6749, 7636, 8252, 8414, 8628) and `OpenID` Connect discovery.
//!
//! A card is not to be trusted with what a user signs in to. So nothing here sends a secret to an address of a card by
//! itself: [`sign_ins`] lists what the card says, the caller has the user confirm the addresses, and gives the
//! confirmed [`Endpoints`] to a [`Provider`]. Addresses are https, or http on this machine; redirects are not followed,
//! responses are at most [`ANSWER_LIMIT`] bytes, and each request ends after [`REQUEST_LIMIT`]. Files, terminals and
//! browsers are the caller's. The identity token of `OpenID` Connect is not read: it is for the agent.

mod declared;
mod document;
mod endpoint;
mod error;
mod provider;
mod redirect;

pub use declared::{DeclaredFlow, Grant, SignIn, sign_ins};
pub use document::{DocumentKind, Endpoints, ProviderDocument};
pub use endpoint::{ANSWER_LIMIT, REQUEST_LIMIT, endpoint};
pub use error::OauthError;
pub use provider::{DeviceSignIn, OauthClient, Provider, TokenSet};
pub use redirect::{LoopbackRedirect, WAIT_LIMIT};
