//! The metadata of a provider (OpenID Connect Discovery, RFC 8414) and its keys.

use std::sync::Arc;

use a2a_card::{KeySet, MAX_KEY_SET_BYTES};
use a2a_crawler::fetch::{Fetcher, GetOptions};
use a2a_crawler::foreign_text::{MAX_DETAIL, escape_invisible};
use serde::Deserialize;
use url::Url;

/// Maximum size of the document, in bytes.
const MAX_METADATA_BYTES: usize = 64 * 1024;

/// The members of the document that the registry uses.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProviderMetadata {
    pub issuer: String,
    pub authorization_endpoint: Option<Url>,
    pub token_endpoint: Option<Url>,
    pub userinfo_endpoint: Option<Url>,
    pub jwks_uri: Url,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Debug)]
pub(super) struct ProviderMetadataAndKeys {
    pub metadata: ProviderMetadata,
    pub keys: KeySet,
}

/// Fetches the document and keys of a provider. Redirects are not followed: only the issuer's URL identifies it.
pub(super) async fn fetch_provider_metadata(
    fetcher: &Fetcher,
    issuer: &str,
) -> Result<Arc<ProviderMetadataAndKeys>, String> {
    let address = discovery_url(issuer)?;
    let metadata_json = fetch_bytes(fetcher, &address, MAX_METADATA_BYTES).await?;
    let metadata: ProviderMetadata = serde_json::from_slice(&metadata_json)
        .map_err(|error| format!("{address} is not the metadata of a provider: {error}"))?;
    if metadata.issuer != issuer {
        return Err(format!(
            "{address} is the metadata of another issuer: {}",
            escape_invisible(&metadata.issuer, MAX_DETAIL)
        ));
    }
    for endpoint in [&metadata.authorization_endpoint, &metadata.token_endpoint] {
        if let Some(Err(refusal)) = endpoint
            .as_ref()
            .map(|url| fetcher.guard().check_parsed_url(url.clone()))
        {
            return Err(format!("an endpoint in {address} is rejected: {refusal}"));
        }
    }
    let keys = fetch_bytes(fetcher, &metadata.jwks_uri, MAX_KEY_SET_BYTES).await?;
    let keys =
        KeySet::from_jwks(&keys).map_err(|error| format!("{}: {error}", metadata.jwks_uri))?;
    if keys.is_empty() {
        return Err(format!("{} has no usable key", metadata.jwks_uri));
    }
    Ok(Arc::new(ProviderMetadataAndKeys { metadata, keys }))
}

/// The URL of the document of an issuer.
pub(super) fn discovery_url(issuer: &str) -> Result<Url, String> {
    let address = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    Url::parse(&address).map_err(|error| error.to_string())
}

async fn fetch_bytes(fetcher: &Fetcher, address: &Url, body: usize) -> Result<Vec<u8>, String> {
    let options = GetOptions {
        max_redirects: 0,
        max_body_bytes: body,
        ..GetOptions::default()
    };
    match fetcher.get(address, &options).await.result {
        Ok(answer) if answer.status == 200 => Ok(answer.body),
        Ok(answer) => Err(format!("{address} responded with status {}", answer.status)),
        Err(error) => Err(format!("{address} could not be fetched: {error}")),
    }
}
