//! Userinfo (OpenID Connect): claims that a provider does not put into identity tokens but returns for the access
//! token of a sign-in.

use a2a_crawler::fetch::{BearerToken, GetOptions};
use serde_json::{Map, Value};
use url::Url;

use crate::error::Result;
use crate::providers::IdentityProvider;
use crate::providers::token_rejection::{TokenRejection, token_rejection_error};
use crate::providers::token_subject::non_null_claim;

const MAX_RESPONSE_BYTES: usize = 64 * 1024;

impl IdentityProvider {
    /// Whether a claim is missing on which admission or groups depend.
    pub(super) fn lacks_needed_claims(&self, claims: &Map<String, Value>) -> bool {
        let required = self.config.require.as_ref().map(|require| &require.claim);
        let mut needed = required.into_iter().chain([&self.config.groups_claim]);
        needed.any(|name| non_null_claim(claims, name).is_none())
    }

    /// Adds the provider's claims about the same subject; those of the identity token take precedence.
    pub(super) async fn fetch_and_add_userinfo(
        &self,
        claims: &mut Map<String, Value>,
        endpoint: &Url,
        access_token: &str,
    ) -> Result<()> {
        let bearer = BearerToken::new(access_token).map_err(|_| {
            self.unavailable_error("its access token cannot be sent in a header".into())
        })?;
        let options = GetOptions {
            max_redirects: 0,
            max_body_bytes: MAX_RESPONSE_BYTES,
            bearer: Some(&bearer),
            ..GetOptions::default()
        };
        let response = self.fetcher.get(endpoint, &options).await.result;
        let response = response.map_err(|error| self.unavailable_error(error.detail))?;
        if response.status != 200 {
            let status = response.status;
            return Err(
                self.unavailable_error(format!("{endpoint} responded with status {status}"))
            );
        }
        let userinfo: Map<String, Value> =
            serde_json::from_slice(&response.body).map_err(|_| {
                self.unavailable_error(format!("{endpoint} did not send a JSON object"))
            })?;
        // Userinfo is about another person if the access token was replaced on the way.
        if userinfo
            .get("sub")
            .is_none_or(|sub| Some(sub) != claims.get("sub"))
        {
            return Err(token_rejection_error("sign-in", TokenRejection::Subject));
        }
        for (name, value) in userinfo {
            if non_null_claim(claims, &name).is_none() {
                claims.insert(name, value);
            }
        }
        Ok(())
    }
}
