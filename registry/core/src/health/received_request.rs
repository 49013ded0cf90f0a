//! How a request arrived at this process, so that a proxy in front of it can be checked.

use std::time::Duration;

use a2a_registry_store::settings::setting_value;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::AppContext;

/// Time limit for reading the identifier, after the caller was authenticated: probes expect a response within two
/// seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// Setting that identifies a database, and so the registry of all processes that share it.
pub const DATABASE_ID_SETTING: &str = "identity";

/// How a request arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceivedRequest {
    /// Identifier of the registry, which all its processes share; null if the database does not respond.
    pub registry: Option<String>,
    /// Address of the client, as limits and the log use it.
    pub client: Option<String>,
    /// Address at the other end of the connection: that of the proxy, if there is one.
    pub peer: Option<String>,
    /// True if `server.trusted_proxies` contains the peer.
    pub trusted: bool,
    /// Host in the request, with its port if it has one.
    pub host: Option<String>,
    /// `X-Forwarded-For` as received.
    pub forwarded_for: Option<String>,
    /// `X-Forwarded-Host` as received.
    pub forwarded_host: Option<String>,
    /// `X-Forwarded-Proto` as received.
    pub forwarded_proto: Option<String>,
}

/// The identifier of the registry; `None` if the database does not respond in time.
pub async fn read_registry_id(context: &AppContext) -> Option<String> {
    let read = setting_value(&context.store, DATABASE_ID_SETTING);
    let value = tokio::time::timeout(READ_TIMEOUT, read).await;
    value.ok()?.ok()?
}
