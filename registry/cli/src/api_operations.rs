//! Operations of the registry's API: a table with one row for each, from which the client's methods are generated.

use std::fmt::Display;

use a2a_card::ConversionTarget;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{
    Account, AccountList, AccountPatch, Act, Agent, AgentPatch, BulkDecision, BulkOutcome,
    BulkRegistration, BulkRegistrationOutcome, Collection, CollectionContent, CollectionList,
    CreatedFeed, CreatedHook, CreatedToken, DecisionRequest, Deprecate, Diff, DomainList,
    DomainPatch, DomainView, DryRun, EndpointView, Erasure, EventList, FindingList, Group,
    GroupList, GroupMembers, Hook, HookConfirmation, HookDeliveryList, HookList, HookReplay,
    HookReplayed, HookTest, LoginExchange, Lookup, Me, NewAccount, NewComment, NewEndpointVouch,
    NewGeneration, NewHook, NewOwnerVouch, NewPolicies, NewReport, NewSavedSearch,
    NewSourceCredential, NewToken, NewWaiver, Policies, PoliciesAccepted, PolicyCaseResults,
    PolicyCases, PolicyDecision, PolicyHistory, PreviewJob, RecordedDecision, Recrawl,
    RecrawlAccepted, Registration, ReportAccepted, Review, ReviewComment, ReviewDecision,
    ReviewDetail, ReviewList, ReviewPatch, SavedSearch, SavedSearchList, Seen, SessionList,
    Similar, SourceCredentialView, TokenList, Transfer, Verification, VersionList, Vouch, Waiting,
    Waiver, WaiverList, WatchList,
};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::client::{Client, RegistryResponse, RequestMethod, encode_path_segment};
use super::client_error::{ClientError, not_found_as_none};
use super::hook;
use super::list_format::PageArgs;
use super::waiver;

pub type RegistryResponseResult<T> = Result<RegistryResponse<T>, ClientError>;

/// Generates a method for each row. Brackets hold path parameters, which are escaped; parentheses hold the input to
/// send; the type behind the arrow is parsed from the response body, which is otherwise ignored.
macro_rules! calls {
    ($(
        $name:ident $([$($part:ident: $kind:ty),+])? $(($input:ty))?: $verb:ident $path:literal $(=> $answer:ty)?;
    )+) => {
        impl Client {
            $(call! { $name[$($($part: $kind),+)?] $(($input))?: $verb $path $(=> $answer)? })+
        }

        #[cfg(test)]
        const ROWS: &[(RequestMethod, &str)] = &[$((RequestMethod::$verb, $path)),+];
    };
}

macro_rules! call {
    ($name:ident[$($part:ident: $kind:ty),*] $(($input:ty))?: $verb:ident $path:literal) => {
        pub async fn $name(&self, $($part: $kind,)* $(input: &$input)?) -> Result<(), ClientError> {
            $(let $part = encode_path_segment($part);)*
            let call = self.build_call(RequestMethod::$verb, format!($path)) $(.with_input::<$input>(input)?)?;
            call.send_for_bytes().await.map(drop)
        }
    };
    ($name:ident[$($part:ident: $kind:ty),*] $(($input:ty))?: $verb:ident $path:literal => $answer:ty) => {
        pub async fn $name(&self, $($part: $kind,)* $(input: &$input)?) -> RegistryResponseResult<$answer> {
            $(let $part = encode_path_segment($part);)*
            let call = self.build_call(RequestMethod::$verb, format!($path)) $(.with_input::<$input>(input)?)?;
            call.send_for_json().await
        }
    };
}

calls! {
    register(Registration): Post "/v1/domains" => DomainView;
    register_all(BulkRegistration): Post "/v1/domains:register" => BulkRegistrationOutcome;
    domains(PageArgs): Get "/v1/domains" => DomainList;
    domain[name: &str]: Get "/v1/domains/{name}" => DomainView;
    patch_domain[name: &str](DomainPatch): Patch "/v1/domains/{name}" => DomainView;
    delete_domain[name: &str]: Delete "/v1/domains/{name}";
    delete_source[name: &str, source: &str]: Delete "/v1/domains/{name}/sources/{source}";
    set_credential[name: &str, source: &str](NewSourceCredential):
        Put "/v1/domains/{name}/sources/{source}/credential" => SourceCredentialView;
    remove_credential[name: &str, source: &str]: Delete "/v1/domains/{name}/sources/{source}/credential";
    vouch[name: &str](Vouch): Post "/v1/domains/{name}:vouch" => DomainView;
    vouch_for_owner[name: &str](NewOwnerVouch): Put "/v1/domains/{name}/owner-vouch" => DomainView;
    end_owner_vouch[name: &str]: Delete "/v1/domains/{name}/owner-vouch";
    vouch_for_endpoints[name: &str](NewEndpointVouch): Put "/v1/domains/{name}/endpoint-vouch" => DomainView;
    end_endpoint_vouch[name: &str]: Delete "/v1/domains/{name}/endpoint-vouch";
    verify[name: &str](Value): Post "/v1/domains/{name}:verify" => Verification;
    transfer[name: &str](Transfer): Post "/v1/domains/{name}:transfer" => DomainView;
    enrol_key[name: &str, kid: &str](Value): Put "/v1/domains/{name}/keys/{kid}" => DomainView;
    withdraw_key[name: &str, kid: &str]: Delete "/v1/domains/{name}/keys/{kid}";
    erase_domain[name: &str](Erasure): Post "/v1/domains/{name}:erase";
    new_generation[name: &str](NewGeneration): Post "/v1/domains/{name}:new-generation" => DomainView;
    recrawl[name: &str](Recrawl): Post "/v1/domains/{name}:recrawl" => RecrawlAccepted;

    lookup([(&str, &str)]): Get "/v1/agents:lookup" => Lookup;
    agent[id: impl Display]: Get "/v1/agents/{id}" => Agent;
    versions[id: Uuid](PageArgs): Get "/v1/agents/{id}/versions" => VersionList;
    diff[id: Uuid]([(&str, Option<&str>)]): Get "/v1/agents/{id}/diff" => Diff;
    similar[id: Uuid]: Get "/v1/agents/{id}/similar" => Similar;
    findings[id: Uuid]: Get "/v1/agents/{id}/findings" => FindingList;
    endpoint[id: Uuid]: Get "/v1/agents/{id}/endpoint" => EndpointView;
    patch_agent[id: Uuid](AgentPatch): Patch "/v1/agents/{id}" => Agent;
    act[id: Uuid, verb: &str](Act): Post "/v1/agents/{id}:{verb}" => Agent;
    recertify[id: Uuid](Act): Post "/v1/agents/{id}:recertify" => Review;
    deprecate[id: Uuid](Deprecate): Post "/v1/agents/{id}:deprecate" => Agent;
    report[id: Uuid](NewReport): Post "/v1/agents/{id}:report" => ReportAccepted;

    reviews([(&str, String)]): Get "/v1/reviews" => ReviewList;
    review[id: Uuid]: Get "/v1/reviews/{id}" => ReviewDetail;
    patch_review[id: Uuid](ReviewPatch): Patch "/v1/reviews/{id}" => Review;
    decide[id: Uuid, verb: &str](ReviewDecision): Post "/v1/reviews/{id}:{verb}" => Review;
    decide_all(BulkDecision): Post "/v1/reviews:decide" => BulkOutcome;
    withdraw_approval[id: Uuid]: Delete "/v1/reviews/{id}/approval" => Review;
    comment[id: Uuid](NewComment): Post "/v1/reviews/{id}/comments" => ReviewComment;

    me: Get "/v1/me" => Me;
    waiting: Get "/v1/me/waiting" => Waiting;
    seen(Seen): Post "/v1/me:seen";
    renew_feed: Post "/v1/me/feed" => CreatedFeed;
    end_feed: Delete "/v1/me/feed";
    hooks(hook::ListHooksArgs): Get "/v1/hooks" => HookList;
    create_hook(NewHook): Post "/v1/hooks" => CreatedHook;
    hook[id: Uuid]: Get "/v1/hooks/{id}" => Hook;
    delete_hook[id: Uuid]: Delete "/v1/hooks/{id}";
    confirm_hook[id: Uuid](HookConfirmation): Post "/v1/hooks/{id}:confirm" => Hook;
    test_hook[id: Uuid]: Post "/v1/hooks/{id}:test" => HookTest;
    rotate_hook[id: Uuid]: Post "/v1/hooks/{id}:rotate" => CreatedHook;
    replay_hook[id: Uuid](HookReplay): Post "/v1/hooks/{id}:replay" => HookReplayed;
    hook_deliveries[id: Uuid](hook::ListDeliveriesArgs): Get "/v1/hooks/{id}/deliveries" => HookDeliveryList;
    watches: Get "/v1/me/watches" => WatchList;
    watch[id: Uuid]: Put "/v1/agents/{id}/watch" => WatchList;
    unwatch[id: Uuid]: Delete "/v1/agents/{id}/watch";
    save_search(NewSavedSearch): Post "/v1/searches" => SavedSearch;
    saved_searches: Get "/v1/searches" => SavedSearchList;

    tokens(PageArgs): Get "/v1/tokens" => TokenList;
    create_token(NewToken): Post "/v1/tokens" => CreatedToken;
    exchange_login(LoginExchange): Post "/v1/tokens:exchange" => CreatedToken;
    revoke_token[id: Uuid]: Delete "/v1/tokens/{id}";
    sessions(PageArgs): Get "/v1/sessions" => SessionList;
    revoke_session[id: Uuid]: Delete "/v1/sessions/{id}";
    accounts(PageArgs): Get "/v1/accounts" => AccountList;
    account[name_or_id: &str]: Get "/v1/accounts/{name_or_id}" => Account;
    create_account(NewAccount): Post "/v1/accounts" => Account;
    patch_account[name_or_id: &str](AccountPatch): Patch "/v1/accounts/{name_or_id}" => Account;
    groups(PageArgs): Get "/v1/groups" => GroupList;
    group[name: &str]: Get "/v1/groups/{name}" => Group;
    put_group[name: &str](GroupMembers): Put "/v1/groups/{name}" => Group;
    delete_group[name: &str]: Delete "/v1/groups/{name}";
    collections: Get "/v1/collections" => CollectionList;
    collection[name: &str]: Get "/v1/collections/{name}" => Collection;
    delete_collection[name: &str]: Delete "/v1/collections/{name}";

    policy_set([(&str, Option<u64>)]): Get "/v1/policies" => Policies;
    policy_history(PageArgs): Get "/v1/policies/history" => PolicyHistory;
    start_policy_preview(NewPolicies): PostRead "/v1/policies/previews" => PreviewJob;
    policy_preview_job[preview: &str]: Get "/v1/policies/previews/{preview}" => PreviewJob;
    cancel_policy_preview[preview: &str]: Delete "/v1/policies/previews/{preview}";
    test_policies(PolicyCases): PostRead "/v1/policies:test" => PolicyCaseResults;
    policy_dry_run[policy: &str]: Get "/v1/policies/{policy}/dry-run" => DryRun;
    policy_decision(DecisionRequest): PostRead "/v1/decide" => PolicyDecision;
    recorded_decision[id: &str]: Get "/v1/decisions/{id}" => RecordedDecision;
    waivers(waiver::ListWaiversArgs): Get "/v1/waivers" => WaiverList;
    grant_waiver(NewWaiver): Post "/v1/waivers" => Waiver;
    end_waiver[id: &str]: Delete "/v1/waivers/{id}";

    events([(&str, String)]): Get "/v1/events" => EventList;
    reindex: Post "/v1/reindex";
}

/// Calls that need more than a row.
impl Client {
    /// Searches. `T` is a list of complete hits unless `fields` omits some of their members.
    pub async fn search<T: DeserializeOwned>(
        &self,
        query: &SearchQuery,
    ) -> RegistryResponseResult<T> {
        let call = self.build_call(RequestMethod::Get, "/v1/agents".to_owned());
        call.with_input(query)?.send_for_json().await
    }

    /// Approved card of an agent, byte for byte.
    pub async fn card(&self, id: Uuid) -> Result<Bytes, ClientError> {
        let call = self.build_call(RequestMethod::Get, format!("/v1/agents/{id}/card"));
        call.send_for_bytes().await
    }

    /// Stored version of an agent's card by its digest, byte for byte.
    pub async fn card_version(&self, id: Uuid, digest: &str) -> Result<Bytes, ClientError> {
        let call = self.build_call(RequestMethod::Get, format!("/v1/agents/{id}/card"));
        call.with_input(&[("version", digest)])?
            .send_for_bytes()
            .await
    }

    /// Approved card of an agent, converted to another protocol version, and the conversion rules that it broke.
    pub async fn converted_card(
        &self,
        id: Uuid,
        target: ConversionTarget,
    ) -> Result<(Bytes, Vec<String>), ClientError> {
        let call = self.build_call(RequestMethod::Get, format!("/v1/agents/{id}/card"));
        let call = call.with_input(&[("as", target.to_string())])?;
        let (bytes, losses) = call
            .send_for_bytes_and_header("a2a-registry-conversion")
            .await?;
        let losses = losses.unwrap_or_default();
        let rules = losses.split(',').map(str::trim);
        let rules = rules.filter(|rule| !rule.is_empty()).map(str::to_owned);
        Ok((bytes, rules.collect()))
    }

    /// Collection with its entity tag; `None` if the caller cannot see one of that name.
    pub async fn find_collection(
        &self,
        name: &str,
    ) -> Result<Option<(Collection, String)>, ClientError> {
        let call = self.build_call(
            RequestMethod::Get,
            format!("/v1/collections/{}", encode_path_segment(name)),
        );
        not_found_as_none(call.send_for_tagged().await)
    }

    /// Agent with its entity tag.
    pub async fn tagged_agent(&self, id: Uuid) -> Result<(Agent, String), ClientError> {
        let call = self.build_call(RequestMethod::Get, format!("/v1/agents/{id}"));
        call.send_for_tagged().await
    }

    /// Changes an agent, if its entity tag is still this one.
    pub async fn patch_tagged_agent(
        &self,
        id: Uuid,
        patch: &AgentPatch,
        tag: &str,
    ) -> RegistryResponseResult<Agent> {
        let call = self.build_call(RequestMethod::Patch, format!("/v1/agents/{id}"));
        let call = call.with_input(patch)?.with_header("If-Match", tag);
        call.send_for_json().await
    }

    /// Sets the content of a collection, if its entity tag is still this one.
    pub async fn put_collection(
        &self,
        name: &str,
        content: &CollectionContent,
        tag: Option<&str>,
    ) -> RegistryResponseResult<Collection> {
        let call = self.build_call(
            RequestMethod::Put,
            format!("/v1/collections/{}", encode_path_segment(name)),
        );
        let mut call = call.with_input(content)?;
        if let Some(tag) = tag {
            call = call.with_header("If-Match", tag);
        }
        call.send_for_json().await
    }

    /// Policy set by its number, the newest by default.
    pub async fn fetch_policy_set(&self, number: Option<u64>) -> RegistryResponseResult<Policies> {
        self.policy_set(&[("number", number)]).await
    }

    /// Creates a policy set, if the newest one still has this number.
    pub async fn put_policy_set(
        &self,
        new: &NewPolicies,
        base_number: u64,
    ) -> RegistryResponseResult<PoliciesAccepted> {
        let call = self.build_call(RequestMethod::Put, "/v1/policies".to_owned());
        let call = call
            .with_input(new)?
            .with_header("If-Match", &format!("\"{base_number}\""));
        call.send_for_json().await
    }

    /// Status and body of `/readyz`: whether the registry is ready.
    pub async fn readiness(&self) -> Result<(u16, Option<Value>), ClientError> {
        let (status, body) = self.fetch_status_and_body("/readyz").await?;
        Ok((status, serde_json::from_slice(&body).ok()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_http::routes::openapi::default_openapi_text;

    use super::*;

    /// Whether the path of a row matches that of an operation, whatever the parameters are called.
    fn is_path(row: &str, operation: &str) -> bool {
        let parts =
            |path: &str| -> Vec<String> { path.split(['/', ':']).map(str::to_owned).collect() };
        let (row, operation) = (parts(row), parts(operation));
        let mut both = row.iter().zip(&operation);
        row.len() == operation.len() && both.all(|(own, its)| own.starts_with('{') || own == its)
    }

    #[test]
    fn every_row_is_an_operation_of_the_api() {
        let document: Value = serde_json::from_str(&default_openapi_text()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        for (verb, row) in ROWS {
            let method = verb.http_method().as_str().to_lowercase();
            let mut operations = paths.iter().filter(|(path, _)| is_path(row, path));
            let is_known = operations.any(|(_, methods)| methods.get(&method).is_some());
            assert!(is_known, "{method} {row}");
        }
    }
}
