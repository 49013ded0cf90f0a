//! Decides from its card alone how an agent is called: at which interface, in which form, and with which credentials.
//!
//! Nothing here uses the network or contains a secret, so calling an agent and explaining how to call it share the
//! decision: [`send_text`](crate::send_text) and the snippets on an agent's page. They differ in their
//! [`AvailableCredentials`].

mod credential_selection;
mod filter;
mod interface;

pub(crate) use credential_selection::is_http_basic;
pub use credential_selection::{
    AvailableCredentials, CredentialChoice, CredentialPlacement, ProvidedCredentialKinds,
    UnmetSchemeReason, api_key_placement, card_accepts_api_key, card_accepts_token,
    choose_credentials, scheme_placement,
};
pub use filter::InterfacePreferences;
pub(crate) use interface::add_protocol_skill_routes;
use interface::grpc_url;
pub use interface::{AgentRoute, ProtocolBinding, RouteError, callable_routes};
