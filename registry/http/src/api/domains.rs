//! Handlers for registering and managing domains.

use a2a_registry_api::limits::{MAX_REGISTRATIONS_BODY_BYTES, PublicJwk};
use a2a_registry_api::{
    BulkRegistration, BulkRegistrationOutcome, DomainList, DomainPatch, DomainView, Erasure,
    NewEndpointVouch, NewGeneration, NewOwnerVouch, NewSourceCredential, Recrawl, RecrawlAccepted,
    Registration, RegistrationOutcome, SourceCredentialView, Transfer, Verification, Vouch,
};
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::domains::register_bulk::{RegisteredSources, register_bulk};
use a2a_registry_core::domains::{
    actions as domains, endpoint_permission, enrolled_keys, erasure, owner_actions, owner_vouch,
    ownership_generation, source_credential, verify, withdrawal,
};
use a2a_registry_core::error::Result;
use a2a_registry_core::paging::PageRequest;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, delete, get, patch, post, put};

use crate::answers::response::{self, HandlerResult};
use crate::problems::problem::Problem;
use crate::requests::auth::{
    Administer, Anyone, AnyoneAsking, Read, Register, Registrant, Require,
};
use crate::requests::body::{JsonBody, LimitedJsonBody, OptionalJsonBody};
use crate::requests::path_parameters::{DomainRef, Kid, SourceRef};
use crate::requests::query::Query;

/// Register a domain, or one card by its URL
///
/// The first crawl has started when the response is sent. A token is required unless the registry is open.
#[utoipa::path(
    request_body = Registration,
    security((), ("token" = [])),
    responses(
        (status = 202, description = "The domain, with challenges to prove its ownership", body = DomainView),
        (status = 403, description = "The role of the account does not allow it, the domain is on the list of denied \
            domains (`domain-denied`), or a limit is reached (`limit-reached`)"),
        (status = 409, description = "The domain is disputed and cannot be changed until the dispute is settled"),
        (status = 422, description = "The registry cannot fetch from this address; nothing was stored"),
        (status = 429, description = "Too many anonymous changes within a minute"),
    )
)]
#[post("/v1/domains")]
pub async fn domain_register(
    caller: Registrant,
    registration: JsonBody<Registration>,
) -> HandlerResult {
    let domain = register_domain(&caller.context, &caller, &registration.0).await?;
    response::json_response(StatusCode::ACCEPTED, &domain)
}

/// Register several domains and cards
///
/// Each registration is accepted or rejected independently, as if it were sent alone, and counts against every limit.
/// If some are rejected or the database fails, the others are still registered; repeating the request gives the same
/// results. The first crawls share the crawler with the visits that other accounts have requested.
#[utoipa::path(
    request_body = BulkRegistration,
    responses((status = 200, description = "One result for each registration", body = BulkRegistrationOutcome))
)]
#[post("/v1/domains:register")]
pub async fn domain_register_all(
    caller: Require<Register>,
    body: LimitedJsonBody<BulkRegistration, MAX_REGISTRATIONS_BODY_BYTES>,
) -> HandlerResult {
    let registrations = body.0.registrations;
    let results = register_bulk(&caller.context, &caller, &registrations).await?;
    let outcomes = registrations.into_iter().zip(results);
    let outcome = |(registration, result): (Registration, Result<_>)| match result {
        Ok(RegisteredSources { domain, sources }) => RegistrationOutcome {
            registration,
            status: StatusCode::ACCEPTED.as_u16(),
            domain: Some(domain),
            sources,
            problem: None,
        },
        Err(error) => {
            let problem = Problem::from(error).to_outcome_problem();
            RegistrationOutcome {
                registration,
                status: problem.status,
                domain: None,
                sources: Vec::new(),
                problem: Some(problem),
            }
        }
    };
    let outcomes = outcomes.map(outcome).collect();
    response::json_response(StatusCode::OK, &BulkRegistrationOutcome { outcomes })
}

/// List domains by name
///
/// Callers with full access see all domains, others only their own.
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of domains", body = DomainList))
)]
#[get("/v1/domains")]
pub async fn domain_list(caller: Require<Read>, page: Query<PageRequest>) -> HandlerResult {
    let domains = domains::domain_list(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &domains)
}

/// Show a domain
#[utoipa::path(
    security((), ("token" = [])),
    responses(
        (status = 200, description = "The domain", body = DomainView,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/domains/{domain}")]
pub async fn domain_show(request: HttpRequest, caller: Anyone, domain: DomainRef) -> HandlerResult {
    let domain = domains::domain_show(&caller.context, &caller, &domain.0).await?;
    response::json_with_etag(&request, &domain)
}

/// Vouch for a domain
///
/// The admission rules may then decide about the cards at the host's well-known paths and in its catalogs and, with
/// `account`, about the card URLs that this account registers for the host. Vouching does not change the owner.
#[utoipa::path(
    request_body = Vouch,
    responses(
        (status = 200, description = "The updated domain", body = DomainView),
    )
)]
#[post("/v1/domains/{domain}:vouch")]
pub async fn domain_vouch(
    caller: Require<Administer>,
    domain: DomainRef,
    vouch: JsonBody<Vouch>,
) -> HandlerResult {
    let domain = domains::vouch_for_domain(&caller.context, &caller, &domain.0, &vouch.0).await?;
    response::json_response(StatusCode::OK, &domain)
}

/// Vouch for an account as owner of a host that cannot be proved
///
/// The account gets the permissions of an owner until the vouch expires or is ended, or the same host name on port 443
/// is proved. The vouch does not prove the domain: it gives no trust level and no URN. Vouching for the same account
/// again replaces reason and expiry.
#[utoipa::path(
    request_body = NewOwnerVouch,
    responses(
        (status = 200, description = "The updated domain", body = DomainView),
        (status = 409, description = "The domain can be proved, its host name is already proved, or an admin vouches \
        for another account"),
    )
)]
#[put("/v1/domains/{domain}/owner-vouch")]
pub async fn owner_vouch_set(
    caller: Require<Administer>,
    domain: DomainRef,
    vouch: JsonBody<NewOwnerVouch>,
) -> HandlerResult {
    let domain =
        owner_vouch::vouch_for_domain_owner(&caller.context, &caller, &domain.0, &vouch.0).await?;
    response::json_response(StatusCode::OK, &domain)
}

/// End the vouch for an account as owner of a host
#[utoipa::path(
    responses((status = 204, description = "The vouch has ended"))
)]
#[delete("/v1/domains/{domain}/owner-vouch")]
pub async fn owner_vouch_end(caller: Require<Administer>, domain: DomainRef) -> HandlerResult {
    owner_vouch::withdraw_owner_vouch(&caller.context, &caller, &domain.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Vouch for the endpoints of a host
///
/// The registry may then check whether the agents with an interface on exactly this scheme, host and port answer, if
/// checks are enabled, and gateways may ask about such an agent by its URL (`/v1/decide`). The vouch ends with the
/// domain or a new generation of it.
#[utoipa::path(
    request_body = NewEndpointVouch,
    responses((status = 200, description = "The updated domain", body = DomainView))
)]
#[put("/v1/domains/{domain}/endpoint-vouch")]
pub async fn endpoint_vouch_set(
    caller: Require<Administer>,
    domain: DomainRef,
    vouch: JsonBody<NewEndpointVouch>,
) -> HandlerResult {
    let context = &caller.context;
    let domain =
        endpoint_permission::vouch_for_endpoints(context, &caller, &domain.0, &vouch.0).await?;
    response::json_response(StatusCode::OK, &domain)
}

/// End the vouch for the endpoints of a host
#[utoipa::path(
    responses((status = 204, description = "The vouch has ended"))
)]
#[delete("/v1/domains/{domain}/endpoint-vouch")]
pub async fn endpoint_vouch_end(caller: Require<Administer>, domain: DomainRef) -> HandlerResult {
    endpoint_permission::withdraw_endpoint_vouch(&caller.context, &caller, &domain.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Check the caller's proofs of a domain now
///
/// For curators, the proofs of all accounts are checked. The response has one entry per check, with the expected text
/// and the text that was found.
#[utoipa::path(
    responses(
        (status = 200, description = "Results of the checks, and the updated domain", body = Verification),
        (status = 409, description = "The domain cannot be proved: only host names on port 443 can"),
        (status = 429, description = "Five checks have failed within an hour"),
    )
)]
#[post("/v1/domains/{domain}:verify")]
pub async fn domain_verify(caller: Require<Register>, domain: DomainRef) -> HandlerResult {
    let verification = verify::domain_verify(&caller.context, &caller, &domain.0).await?;
    response::json_response(StatusCode::OK, &verification)
}

/// Transfer a domain to another account
///
/// Allowed for the owner and for curators. The new owner must publish a proof of its own.
#[utoipa::path(
    request_body = Transfer,
    responses(
        (status = 200, description = "The updated domain", body = DomainView),
        (status = 409, description = "The domain is disputed and cannot be changed until the dispute is settled"),
    )
)]
#[post("/v1/domains/{domain}:transfer")]
pub async fn domain_transfer(
    caller: Require<Register>,
    domain: DomainRef,
    transfer: JsonBody<Transfer>,
) -> HandlerResult {
    let domain =
        owner_actions::domain_transfer(&caller.context, &caller, &domain.0, &transfer.0).await?;
    response::json_response(StatusCode::OK, &domain)
}

/// Start a new generation of a domain after a change of ownership
///
/// Its proofs, challenges, enrolled keys and pinned keys are removed, and every agent needs a new approval.
#[utoipa::path(
    request_body = NewGeneration,
    responses((status = 200, description = "The updated domain", body = DomainView))
)]
#[post("/v1/domains/{domain}:new-generation")]
pub async fn domain_new_generation(
    caller: Require<Administer>,
    domain: DomainRef,
    body: JsonBody<NewGeneration>,
) -> HandlerResult {
    let domain =
        ownership_generation::domain_new_generation(&caller.context, &caller, &domain.0, &body.0)
            .await?;
    response::json_response(StatusCode::OK, &domain)
}

/// Delete a domain, and erase the cards of its agents
///
/// The stored bytes, parsed cards and vectors of all its agents are deleted, retired ones included. Bytes that an
/// agent of another domain also uses are kept, and events keep the digests. A domain that was deleted before can be
/// erased too.
#[utoipa::path(
    request_body = Erasure,
    responses(
        (status = 204, description = "The domain is erased"),
        (status = 409, description = "One of its agents has an open review or a hold, or the domain is disputed"),
    )
)]
#[post("/v1/domains/{domain}:erase")]
pub async fn domain_erase(
    caller: Require<Administer>,
    domain: DomainRef,
    body: JsonBody<Erasure>,
) -> HandlerResult {
    erasure::domain_erase(&caller.context, &caller, &domain.0, &body.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Change a domain's contact, or opt out
///
/// Allowed for the owner and for curators.
#[utoipa::path(
    request_body = DomainPatch,
    responses(
        (status = 200, description = "The updated domain", body = DomainView),
        (status = 409, description = "The domain is disputed, or has opted out by its own DNS record"),
    )
)]
#[patch("/v1/domains/{domain}")]
pub async fn domain_patch(
    caller: Require<Register>,
    domain: DomainRef,
    patch: JsonBody<DomainPatch>,
) -> HandlerResult {
    let domain = owner_actions::domain_patch(&caller.context, &caller, &domain.0, &patch.0).await?;
    response::json_response(StatusCode::OK, &domain)
}

/// Enrol a key that signs the cards of a domain
///
/// Allowed for the owner and for curators. The body is the public key as a JWK (RFC 7517).
#[utoipa::path(
    request_body = PublicJwk,
    responses(
        (status = 200, description = "The updated domain", body = DomainView),
        (status = 403, description = "The role of the account does not allow it, or the domain has reached its limit of \
            keys (`limit-reached`)"),
        (status = 409, description = "The domain is disputed and cannot be changed until the dispute is settled"),
    )
)]
#[put("/v1/domains/{domain}/keys/{kid}")]
pub async fn key_enrol(
    caller: Require<Register>,
    domain: DomainRef,
    kid: Kid,
    jwk: JsonBody<serde_json::Value>,
) -> HandlerResult {
    let domain =
        enrolled_keys::key_enrol(&caller.context, &caller, &domain.0, &kid.0, &jwk.0).await?;
    response::json_response(StatusCode::OK, &domain)
}

/// Withdraw an enrolled key
#[utoipa::path(
    responses(
        (status = 204, description = "The key is withdrawn"),
        (status = 409, description = "The domain is disputed and cannot be changed until the dispute is settled"),
    )
)]
#[delete("/v1/domains/{domain}/keys/{kid}")]
pub async fn key_withdraw(caller: Require<Register>, domain: DomainRef, kid: Kid) -> HandlerResult {
    enrolled_keys::key_withdraw(&caller.context, &caller, &domain.0, &kid.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Crawl a domain as soon as the rate limits allow
#[utoipa::path(
    request_body(content = Option<Recrawl>, description = "Optional"),
    security((), ("token" = [])),
    responses(
        (status = 202, description = "Time of the crawl", body = RecrawlAccepted),
        (status = 403, description = "The token does not allow it"),
        (status = 429, description = "Too many anonymous changes within a minute"),
    )
)]
#[post("/v1/domains/{domain}:recrawl")]
pub async fn domain_recrawl(
    caller: AnyoneAsking,
    domain: DomainRef,
    body: OptionalJsonBody<Recrawl>,
) -> HandlerResult {
    let accepted = domains::domain_recrawl(&caller.context, &caller, &domain.0, &body.0).await?;
    response::json_response(StatusCode::ACCEPTED, &accepted)
}

/// Delete a domain and retire its agents
#[utoipa::path(
    responses(
        (status = 204, description = "The domain is deleted"),
        (status = 409, description = "The domain is disputed and cannot be changed until the dispute is settled"),
    )
)]
#[delete("/v1/domains/{domain}")]
pub async fn domain_delete(caller: Require<Register>, domain: DomainRef) -> HandlerResult {
    withdrawal::domain_delete(&caller.context, &caller, &domain.0).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Set the credential of a source
///
/// Allowed for the owner of the domain, proved or vouched for, and for admins. The credential is stored encrypted, sent
/// to the origin of the source only, over https and never after a redirect, and never shown again. It replaces the
/// earlier one, and ends when the domain gets another owner or none. Agents found with it start as
/// `internal`.
#[utoipa::path(
    request_body = NewSourceCredential,
    responses(
        (status = 200, description = "The credential, without its secret", body = SourceCredentialView),
        (status = 409, description = "The registry has no key to encrypt it with, the source is not served over https, \
            or the domain is disputed"),
    )
)]
#[put("/v1/domains/{domain}/sources/{source}/credential")]
pub async fn source_credential_set(
    caller: Require<Register>,
    domain: DomainRef,
    source: SourceRef,
    credential: JsonBody<NewSourceCredential>,
) -> HandlerResult {
    let (domain, source) = (&domain.0, &source.0);
    let set = source_credential::set_source_credential(
        &caller.context,
        &caller,
        domain,
        source,
        &credential.0,
    );
    response::json_response(StatusCode::OK, &set.await?)
}

/// Remove the credential of a source
///
/// Allowed for the owner of the domain and for admins. The source is fetched without a credential from then on.
#[utoipa::path(
    responses(
        (status = 204, description = "The credential is removed"),
        (status = 409, description = "The domain is disputed and cannot be changed until the dispute is settled"),
    )
)]
#[delete("/v1/domains/{domain}/sources/{source}/credential")]
pub async fn source_credential_remove(
    caller: Require<Register>,
    domain: DomainRef,
    source: SourceRef,
) -> HandlerResult {
    let (domain, source) = (&domain.0, &source.0);
    source_credential::remove_source_credential(&caller.context, &caller, domain, source).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Withdraw the caller's registration of a source
///
/// Withdrawing the last registration removes the source, and is not possible for the source of an approved agent.
#[utoipa::path(
    responses(
        (status = 204, description = "The registration is withdrawn"),
        (status = 409, description = "This is the last registration of an approved agent's source, or the domain is \
        disputed"),
    )
)]
#[delete("/v1/domains/{domain}/sources/{source}")]
pub async fn source_withdraw(
    caller: Require<Register>,
    domain: DomainRef,
    source: SourceRef,
) -> HandlerResult {
    withdrawal::source_withdraw(&caller.context, &caller, &domain.0, &source.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
