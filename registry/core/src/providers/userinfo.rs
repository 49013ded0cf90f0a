//! Claims that a provider does not write into identity tokens, but returns for the access token of a sign-in (OpenID
//! Connect's userinfo endpoint).

use a2a_crawler::fetch::{Bearer, GetOptions};
use serde_json::{Map, Value};
use url::Url;

use crate::error::Result;
use crate::providers::Provider;
use crate::providers::holder::claim;
use crate::providers::refused::{Refused, refused};

const MAX_ANSWER: usize = 64 * 1024;

impl Provider {
    /// Whether a claim is missing that admission or groups depend on.
    pub(super) fn lacks_claims(&self, claims: &Map<String, Value>) -> bool {
        let required = self.config.require.as_ref().map(|require| &require.claim);
        let mut needed = required.into_iter().chain([&self.config.groups_claim]);
        needed.any(|name| claim(claims, name).is_none())
    }

    /// Adds the provider's claims about the same subject; those of the identity token take precedence.
    pub(super) async fn add_userinfo(
        &self,
        claims: &mut Map<String, Value>,
        endpoint: &Url,
        access_token: &str,
    ) -> Result<()> {
        let bearer = Bearer::new(access_token)
            .map_err(|_| self.away("it has sent an access token that cannot be sent".into()))?;
        let options = GetOptions {
            redirects: 0,
            body: MAX_ANSWER,
            bearer: Some(&bearer),
            ..GetOptions::default()
        };
        let answer = self.fetcher.get(endpoint, &options).await.answer;
        let answer = answer.map_err(|error| self.away(error.detail))?;
        if answer.status != 200 {
            let status = answer.status;
            return Err(self.away(format!("{endpoint} responded with status {status}")));
        }
        let told: Map<String, Value> = serde_json::from_slice(&answer.body)
            .map_err(|_| self.away(format!("{endpoint} has sent no JSON object")))?;
        // It may be about another person if an access token was swapped on the way.
        if told
            .get("sub")
            .is_none_or(|sub| Some(sub) != claims.get("sub"))
        {
            return Err(refused("sign-in", Refused::Subject));
        }
        for (name, value) in told {
            if claim(claims, &name).is_none() {
                claims.insert(name, value);
            }
        }
        Ok(())
    }
}
