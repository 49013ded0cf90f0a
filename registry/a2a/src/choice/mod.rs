//! Decides from its card alone how an agent is called: at which interface, in which form, and with which credentials.
//!
//! Nothing here uses the network or contains a secret, so calling an agent and explaining how to call it share the
//! decision: [`send_text`](crate::send_text) and the snippets on an agent's page. They differ in their [`Means`].

mod credential_choice;
mod filter;
mod interface;

pub(crate) use credential_choice::is_basic;
pub use credential_choice::{
    Credential, CredentialChoice, Given, Means, Obstacle, choose_credentials, credential,
    key_place, takes_key, takes_token,
};
pub use filter::InterfaceFilter;
use interface::grpc_address;
pub(crate) use interface::with_skill_forms;
pub use interface::{Dialect, NoRoute, Route, routes};
