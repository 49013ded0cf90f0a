//! The registry's API as calls.

use a2a_card::ConversionTarget;
use a2a_registry_api::{
    Account, AccountList, AccountPatch, Act, Agent, AgentPatch, BulkDecision, BulkOutcome,
    BulkRegistration, BulkRegistrationOutcome, Collection, CollectionContent, CollectionList,
    CreatedFeed, CreatedToken, Deprecate, Diff, DomainList, DomainPatch, DomainView, FindingList,
    Group, GroupList, GroupMembers, Lookup, Me, NewAccount, NewComment, NewGeneration,
    NewOwnerVouch, NewReport, NewSavedSearch, NewToken, Recrawl, RecrawlAccepted, Registration,
    ReportAccepted, Review, ReviewComment, ReviewDecision, ReviewDetail, ReviewList, ReviewPatch,
    SavedSearch, SavedSearchList, Seen, SessionList, Similar, TokenList, Transfer, Verification,
    VersionList, Vouch, Waiting,
};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_server::search::query::SearchQuery;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::client::{Client, RegistryResponse, segment};
use super::refusal::ClientError;

/// Result of a call.
pub type CallResult<T> = Result<RegistryResponse<T>, ClientError>;

pub(super) fn page(size: Option<u32>, token: Option<&str>) -> String {
    let size = size.map(|size| ("page_size", size.to_string()));
    let token = token.map(|token| ("page_token", token.to_owned()));
    encode(&size.into_iter().chain(token).collect::<Vec<_>>())
}

pub(super) fn encode(pairs: &[(&str, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

impl Client {
    /// Registers a domain or a card.
    ///
    /// # Errors
    /// As every call here: see [`ClientError`].
    pub async fn register(&self, what: &Registration) -> CallResult<DomainView> {
        self.post("/v1/domains", what).await
    }

    /// Registers domains and cards, each of which has a result of its own.
    pub async fn register_all(
        &self,
        what: &BulkRegistration,
    ) -> CallResult<BulkRegistrationOutcome> {
        self.post("/v1/domains:register", what).await
    }

    /// One domain.
    pub async fn domain(&self, domain: &str) -> CallResult<DomainView> {
        self.get(&format!("/v1/domains/{}", segment(domain)), "")
            .await
    }

    /// A page of domains.
    pub async fn domains(&self, size: Option<u32>, token: Option<&str>) -> CallResult<DomainList> {
        self.get("/v1/domains", &page(size, token)).await
    }

    /// Vouches for a host, and for a registrant of it, as an admin.
    pub async fn vouch(
        &self,
        domain: &str,
        reason: &str,
        account: Option<&str>,
    ) -> CallResult<DomainView> {
        let body = Vouch {
            reason: reason.to_owned(),
            account: account.map(str::to_owned),
        };
        self.post(&format!("/v1/domains/{}:vouch", segment(domain)), &body)
            .await
    }

    /// Vouches for an account as owner of a host, as an admin.
    pub async fn vouch_for_owner(
        &self,
        domain: &str,
        vouch: &NewOwnerVouch,
    ) -> CallResult<DomainView> {
        let path = format!("/v1/domains/{}/owner-vouch", segment(domain));
        self.put(&path, vouch).await
    }

    /// Ends the vouch for an account as owner of a host.
    pub async fn end_owner_vouch(&self, domain: &str) -> Result<(), ClientError> {
        let path = format!("/v1/domains/{}/owner-vouch", segment(domain));
        self.delete(&path).await
    }

    /// Checks the caller's proofs of a domain.
    pub async fn verify(&self, domain: &str) -> CallResult<Verification> {
        let path = format!("/v1/domains/{}:verify", segment(domain));
        self.post(&path, &serde_json::json!({})).await
    }

    /// Transfers a domain to another account.
    pub async fn transfer(&self, domain: &str, account: &str) -> CallResult<DomainView> {
        let body = Transfer {
            account: account.to_owned(),
        };
        let path = format!("/v1/domains/{}:transfer", segment(domain));
        self.post(&path, &body).await
    }

    /// Changes the contact or the opt-out of a domain.
    pub async fn patch_domain(&self, domain: &str, patch: &DomainPatch) -> CallResult<DomainView> {
        self.patch(&format!("/v1/domains/{}", segment(domain)), patch)
            .await
    }

    /// Enrols a key for a domain's cards.
    pub async fn enrol_key(&self, domain: &str, kid: &str, jwk: &Value) -> CallResult<DomainView> {
        let path = format!("/v1/domains/{}/keys/{}", segment(domain), segment(kid));
        self.put(&path, jwk).await
    }

    /// Withdraws an enrolled key.
    pub async fn withdraw_key(&self, domain: &str, kid: &str) -> Result<(), ClientError> {
        let path = format!("/v1/domains/{}/keys/{}", segment(domain), segment(kid));
        self.delete(&path).await
    }

    /// Starts a new generation of a domain, which has a new owner.
    pub async fn new_generation(&self, domain: &str, reason: &str) -> CallResult<DomainView> {
        let body = NewGeneration {
            reason: reason.to_owned(),
        };
        let path = format!("/v1/domains/{}:new-generation", segment(domain));
        self.post(&path, &body).await
    }

    /// Requests an immediate crawl.
    pub async fn recrawl(&self, domain: &str, full: bool) -> CallResult<RecrawlAccepted> {
        let path = format!("/v1/domains/{}:recrawl", segment(domain));
        self.post(&path, &Recrawl { full }).await
    }

    /// Deletes a domain; its agents retire.
    pub async fn delete_domain(&self, domain: &str) -> Result<(), ClientError> {
        self.delete(&format!("/v1/domains/{}", segment(domain)))
            .await
    }

    /// Withdraws the caller's registration of one source.
    ///
    /// # Errors
    /// `Refused` if it is the last registration of an approved agent's source, for example.
    pub async fn delete_source(&self, domain: &str, source: &str) -> Result<(), ClientError> {
        let (domain, source) = (segment(domain), segment(source));
        self.delete(&format!("/v1/domains/{domain}/sources/{source}"))
            .await
    }

    /// Searches. The answer is read as a list of whole hits unless `fields` leaves some of their usual members out.
    pub async fn search<T: DeserializeOwned>(&self, query: &SearchQuery) -> CallResult<T> {
        let query = serde_html_form::to_string(query)
            .map_err(|error| ClientError::Failed(format!("the search cannot be sent: {error}")))?;
        self.get("/v1/agents", &query).await
    }

    /// One agent.
    pub async fn agent(&self, id: Uuid) -> CallResult<Agent> {
        self.get(&format!("/v1/agents/{id}"), "").await
    }

    /// An agent's approved card, byte for byte.
    pub async fn card(&self, id: Uuid) -> Result<Bytes, ClientError> {
        self.get_bytes(&format!("/v1/agents/{id}/card"), "").await
    }

    /// A stored version of an agent's card by its digest, byte for byte.
    pub async fn card_version(&self, id: Uuid, digest: &str) -> Result<Bytes, ClientError> {
        let query = encode(&[("version", digest.to_owned())]);
        self.get_bytes(&format!("/v1/agents/{id}/card"), &query)
            .await
    }

    /// An agent's approved card in the form of another protocol version, and the rules of conversions that were
    /// broken by it.
    pub async fn card_as(
        &self,
        id: Uuid,
        target: ConversionTarget,
    ) -> Result<(Bytes, Vec<String>), ClientError> {
        let query = encode(&[("as", target.to_string())]);
        let path = format!("/v1/agents/{id}/card?{query}");
        let (bytes, losses) = self
            .get_bytes_and_header(&path, "a2a-registry-conversion")
            .await?;
        let losses = losses.unwrap_or_default();
        let rules = losses.split(',').map(str::trim);
        let rules = rules.filter(|rule| !rule.is_empty()).map(str::to_owned);
        Ok((bytes, rules.collect()))
    }

    /// What changed between two versions of an agent's card, each by its digest; the newest one against the
    /// served one where none is given.
    pub async fn diff(&self, id: Uuid, from: Option<&str>, to: Option<&str>) -> CallResult<Diff> {
        let query: Vec<_> = [("from", from), ("to", to)]
            .into_iter()
            .filter_map(|(name, digest)| Some((name, digest?.to_owned())))
            .collect();
        self.get(&format!("/v1/agents/{id}/diff"), &encode(&query))
            .await
    }

    /// An agent's stored versions.
    pub async fn versions(&self, id: Uuid, token: Option<&str>) -> CallResult<VersionList> {
        self.get(
            &format!("/v1/agents/{id}/versions"),
            &page(Some(100), token),
        )
        .await
    }

    /// The agents that are similar to an agent.
    pub async fn similar(&self, id: Uuid) -> CallResult<Similar> {
        self.get(&format!("/v1/agents/{id}/similar"), "").await
    }

    /// An agent's findings.
    pub async fn findings(&self, id: Uuid) -> CallResult<FindingList> {
        self.get(&format!("/v1/agents/{id}/findings"), "").await
    }

    /// An act on an agent: `suspend`, `resume`, `undeprecate` or `retire`.
    pub async fn act(&self, id: Uuid, verb: &str, act: &Act) -> CallResult<Agent> {
        self.post(&format!("/v1/agents/{id}:{verb}"), act).await
    }

    /// Opens a review of the content that an agent serves.
    pub async fn recertify(&self, id: Uuid, act: &Act) -> CallResult<Review> {
        self.post(&format!("/v1/agents/{id}:recertify"), act).await
    }

    /// Deprecates an agent.
    pub async fn deprecate(&self, id: Uuid, what: &Deprecate) -> CallResult<Agent> {
        self.post(&format!("/v1/agents/{id}:deprecate"), what).await
    }

    /// The agents behind a card's or an endpoint's address, a host, a digest or a name: `url`, `digest` or `name` is the key.
    pub async fn lookup(&self, key: &str, value: &str) -> CallResult<Lookup> {
        self.get("/v1/agents:lookup", &encode(&[(key, value.to_owned())]))
            .await
    }

    /// A page of reviews that fit these parameters.
    pub async fn reviews(
        &self,
        mut query: Vec<(&'static str, String)>,
        size: Option<u32>,
        token: Option<&str>,
    ) -> CallResult<ReviewList> {
        query.extend(size.map(|size| ("page_size", size.to_string())));
        query.extend(token.map(|token| ("page_token", token.to_owned())));
        self.get("/v1/reviews", &encode(&query)).await
    }

    /// Decides several reviews.
    pub async fn decide_all(&self, what: &BulkDecision) -> CallResult<BulkOutcome> {
        self.post("/v1/reviews:decide", what).await
    }

    /// Takes back the caller's approval of a review.
    pub async fn withdraw_approval(&self, id: Uuid) -> CallResult<Review> {
        self.delete_for(&format!("/v1/reviews/{id}/approval")).await
    }

    /// Comments on a review.
    pub async fn comment(&self, id: Uuid, text: &str) -> CallResult<ReviewComment> {
        let new = NewComment {
            text: text.to_owned(),
        };
        self.post(&format!("/v1/reviews/{id}/comments"), &new).await
    }

    /// Sets who is to decide a review, and by when.
    pub async fn patch_review(&self, id: Uuid, patch: &ReviewPatch) -> CallResult<Review> {
        self.patch(&format!("/v1/reviews/{id}"), patch).await
    }

    /// Reports an agent.
    pub async fn report(&self, id: Uuid, new: &NewReport) -> CallResult<ReportAccepted> {
        self.post(&format!("/v1/agents/{id}:report"), new).await
    }

    /// Changes an agent apart from its card.
    pub async fn patch_agent(&self, id: Uuid, patch: &AgentPatch) -> CallResult<Agent> {
        self.patch(&format!("/v1/agents/{id}"), patch).await
    }

    /// What waits for the caller.
    pub async fn waiting(&self) -> CallResult<Waiting> {
        self.get("/v1/me/waiting", "").await
    }

    /// Notes up to when the caller has seen its news.
    pub async fn seen(&self, at: Timestamp) -> Result<(), ClientError> {
        self.post_for_nothing("/v1/me:seen", &Seen { at }).await
    }

    /// One review.
    pub async fn review(&self, id: Uuid) -> CallResult<ReviewDetail> {
        self.get(&format!("/v1/reviews/{id}"), "").await
    }

    /// Decides a review: `approve` or `reject`.
    pub async fn decide(
        &self,
        id: Uuid,
        verb: &str,
        decision: &ReviewDecision,
    ) -> CallResult<Review> {
        self.post(&format!("/v1/reviews/{id}:{verb}"), decision)
            .await
    }

    /// A page of tokens.
    pub async fn tokens(&self, size: Option<u32>, token: Option<&str>) -> CallResult<TokenList> {
        self.get("/v1/tokens", &page(size, token)).await
    }

    /// A page of sessions.
    pub async fn sessions(
        &self,
        size: Option<u32>,
        token: Option<&str>,
    ) -> CallResult<SessionList> {
        self.get("/v1/sessions", &page(size, token)).await
    }

    /// Revokes a session.
    pub async fn revoke_session(&self, id: Uuid) -> Result<(), ClientError> {
        self.delete(&format!("/v1/sessions/{id}")).await
    }

    /// The caller.
    pub async fn me(&self) -> CallResult<Me> {
        self.get("/v1/me", "").await
    }

    /// A page of accounts.
    pub async fn accounts(
        &self,
        size: Option<u32>,
        token: Option<&str>,
    ) -> CallResult<AccountList> {
        self.get("/v1/accounts", &page(size, token)).await
    }

    /// One account, by its name or id.
    pub async fn account(&self, account: &str) -> CallResult<Account> {
        self.get(&format!("/v1/accounts/{}", segment(account)), "")
            .await
    }

    /// Creates an account.
    pub async fn create_account(&self, new: &NewAccount) -> CallResult<Account> {
        self.post("/v1/accounts", new).await
    }

    /// Changes an account.
    pub async fn patch_account(&self, account: &str, patch: &AccountPatch) -> CallResult<Account> {
        self.patch(&format!("/v1/accounts/{}", segment(account)), patch)
            .await
    }

    /// A page of groups.
    pub async fn groups(&self, size: Option<u32>, token: Option<&str>) -> CallResult<GroupList> {
        self.get("/v1/groups", &page(size, token)).await
    }

    /// One group.
    pub async fn group(&self, name: &str) -> CallResult<Group> {
        self.get(&format!("/v1/groups/{}", segment(name)), "").await
    }

    /// Sets the members of a group.
    pub async fn put_group(&self, name: &str, members: &GroupMembers) -> CallResult<Group> {
        self.put(&format!("/v1/groups/{}", segment(name)), members)
            .await
    }

    /// Deletes a group.
    pub async fn delete_group(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/v1/groups/{}", segment(name))).await
    }

    /// Saves a search under a name.
    pub async fn save_search(&self, name: &str, query: &SearchQuery) -> CallResult<SavedSearch> {
        let query = serde_html_form::to_string(query)
            .map_err(|error| ClientError::Failed(format!("the search cannot be sent: {error}")))?;
        let new = NewSavedSearch {
            name: name.to_owned(),
            query,
        };
        self.post("/v1/searches", &new).await
    }

    /// The caller's saved searches.
    pub async fn saved_searches(&self) -> CallResult<SavedSearchList> {
        self.get("/v1/searches", "").await
    }

    /// Gives the caller's feed a new address.
    pub async fn renew_feed(&self) -> CallResult<CreatedFeed> {
        self.post_bare("/v1/me/feed").await
    }

    /// Ends the caller's feed.
    pub async fn end_feed(&self) -> Result<(), ClientError> {
        self.delete("/v1/me/feed").await
    }

    /// The collections that the caller may see.
    pub async fn collections(&self) -> CallResult<CollectionList> {
        self.get("/v1/collections", "").await
    }

    /// One collection.
    pub async fn collection(&self, name: &str) -> CallResult<Collection> {
        self.get(&format!("/v1/collections/{}", segment(name)), "")
            .await
    }

    /// One collection with its entity tag; `None` if there is none that the caller may see.
    pub async fn collection_if_any(
        &self,
        name: &str,
    ) -> Result<Option<(Collection, String)>, ClientError> {
        let path = format!("/v1/collections/{}", segment(name));
        let (raw, tag) = match self.get_bytes_and_header(&path, "etag").await {
            Ok(found) => found,
            Err(ClientError::Refused { problem, .. }) if problem.status == 404 => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = serde_json::from_slice(&raw).map_err(|error| {
            ClientError::Failed(format!("the collection cannot be read: {error}"))
        })?;
        Ok(Some((found, tag.unwrap_or_default())))
    }

    /// Sets what a collection consists of, if it still is in the state with this entity tag.
    pub async fn put_collection(
        &self,
        name: &str,
        content: &CollectionContent,
        tag: Option<&str>,
    ) -> CallResult<Collection> {
        let path = format!("/v1/collections/{}", segment(name));
        match tag {
            Some(tag) => self.put_if(&path, content, tag).await,
            None => self.put(&path, content).await,
        }
    }

    /// Deletes a collection.
    pub async fn delete_collection(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&format!("/v1/collections/{}", segment(name)))
            .await
    }

    /// Creates a token.
    pub async fn create_token(&self, new: &NewToken) -> CallResult<CreatedToken> {
        self.post("/v1/tokens", new).await
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, id: Uuid) -> Result<(), ClientError> {
        self.delete(&format!("/v1/tokens/{id}")).await
    }

    /// Requests a rebuild of the index.
    pub async fn reindex(&self) -> Result<(), ClientError> {
        self.post_only("/v1/reindex").await
    }

    /// Whether the registry can do its work: the answer of `/readyz`.
    ///
    /// # Errors
    /// Where nothing answers.
    pub async fn readiness(&self) -> Result<(u16, Option<Value>), ClientError> {
        let (status, body) = self.probe("/readyz").await?;
        Ok((status, serde_json::from_slice(&body).ok()))
    }
}
