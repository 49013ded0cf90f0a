//! The registry's API as calls: policies, decisions and waivers.

use a2a_registry_api::{
    DecisionRequest, DryRun, NewPolicies, NewWaiver, Policies, PoliciesAccepted, PolicyCaseResults,
    PolicyCases, PolicyDecision, PolicyHistory, PolicyPreview, Waiver, WaiverList,
};

use super::calls::{CallResult, encode, page};
use super::client::{Client, segment};
use super::refusal::ClientError;

impl Client {
    /// A policy set, the newest by default.
    pub async fn policies(&self, number: Option<u64>) -> CallResult<Policies> {
        let number = number.map(|number| ("number", number.to_string()));
        let query = encode(&number.into_iter().collect::<Vec<_>>());
        self.get("/v1/policies", &query).await
    }

    /// A page of the policy sets that were made.
    pub async fn policy_history(
        &self,
        size: Option<u32>,
        token: Option<&str>,
    ) -> CallResult<PolicyHistory> {
        self.get("/v1/policies/history", &page(size, token)).await
    }

    /// Makes a policy set, if the newest one is still the one with this number.
    pub async fn put_policies(
        &self,
        new: &NewPolicies,
        newest: u64,
    ) -> CallResult<PoliciesAccepted> {
        self.put_if("/v1/policies", new, &format!("\"{newest}\""))
            .await
    }

    /// What policies would change.
    pub async fn preview_policies(&self, new: &NewPolicies) -> CallResult<PolicyPreview> {
        self.post_read("/v1/policies:preview", new).await
    }

    /// How policies decide cases.
    pub async fn test_policies(&self, cases: &PolicyCases) -> CallResult<PolicyCaseResults> {
        self.post_read("/v1/policies:test", cases).await
    }

    /// What a policy on a dry run would have changed.
    pub async fn policy_dry_run(&self, policy: &str) -> CallResult<DryRun> {
        self.get(&format!("/v1/policies/{}/dry-run", segment(policy)), "")
            .await
    }

    /// A page of waivers.
    pub async fn waivers(&self, filter: &[(&str, String)]) -> CallResult<WaiverList> {
        self.get("/v1/waivers", &encode(filter)).await
    }

    /// Grants a waiver.
    pub async fn grant_waiver(&self, new: &NewWaiver) -> CallResult<Waiver> {
        self.post("/v1/waivers", new).await
    }

    /// Ends a waiver.
    pub async fn end_waiver(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&format!("/v1/waivers/{}", segment(id))).await
    }

    /// Decides whether the caller may find or call an agent.
    pub async fn policy_decision(&self, request: &DecisionRequest) -> CallResult<PolicyDecision> {
        self.post_read("/v1/decide", request).await
    }
}
