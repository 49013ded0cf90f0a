//! API tokens of accounts.

pub mod people;
pub mod sessions;

use a2a_registry_api::{CreatedToken, LoginExchange, NewToken, TokenList};
use a2a_registry_core::accounts::login_codes::exchange_login_code;
use a2a_registry_core::accounts::tokens;
use a2a_registry_core::paging::PageRequest;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, delete, get, post};

use crate::answers::response::{self, HandlerResult};
use crate::problems::problem::Problem;
use crate::requests::auth::{AnyoneWriting, Read, Require};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::TokenId;
use crate::requests::query::Query;
use crate::requests::refusal_recording::record_credential_refusal;

/// Create a token
///
/// The secret appears only in this response; the registry stores its hash. Accounts create their own tokens; admins
/// create tokens for any account.
#[utoipa::path(
    request_body = NewToken,
    responses(
        (status = 201, description = "The token, with its secret", body = CreatedToken),
        (status = 409, description = "The account is disabled, or its roles do not allow it"),
    )
)]
#[post("/v1/tokens")]
pub async fn token_create(caller: Require<Read>, new: JsonBody<NewToken>) -> HandlerResult {
    let token = tokens::token_create(&caller.context, &caller, &new.0).await?;
    response::uncached_json(StatusCode::CREATED, &token)
}

/// Exchange the code of a login for a token
///
/// The last step of `a2a-registry login`: an account has allowed the token in the browser. A code is valid for ten
/// minutes and one exchange, and only with the verifier of its login. The secret appears only in this response.
#[utoipa::path(
    request_body = LoginExchange,
    security((), ("token" = [])),
    responses(
        (status = 201, description = "The token, with its secret", body = CreatedToken),
        (status = 401, description = "The code is unknown, was used, or has expired"),
        (status = 409, description = "The account is disabled, or its roles do not allow it"),
        (status = 429, description = "Too many anonymous changes within a minute"),
    )
)]
#[post("/v1/tokens:exchange")]
pub async fn login_exchange(
    caller: AnyoneWriting,
    request: HttpRequest,
    exchange: JsonBody<LoginExchange>,
) -> HandlerResult {
    let created = exchange_login_code(&caller.context, &exchange.0).await;
    let created = created
        .map_err(Problem::from)
        .inspect_err(|problem| record_credential_refusal(&request, problem))?;
    response::uncached_json(StatusCode::CREATED, &created)
}

/// List tokens, newest first
///
/// Admins see all tokens, other callers only their own.
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of tokens", body = TokenList))
)]
#[get("/v1/tokens")]
pub async fn token_list(caller: Require<Read>, page: Query<PageRequest>) -> HandlerResult {
    let tokens = tokens::token_list(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &tokens)
}

/// Revoke a token
///
/// Accounts revoke their own tokens, using a token with at least the same scopes; admins revoke any token.
#[utoipa::path(
    responses(
        (status = 204, description = "The token is revoked"),
        (status = 409, description = "The token is the last admin access"),
    )
)]
#[delete("/v1/tokens/{token}")]
pub async fn token_revoke(caller: Require<Read>, token: TokenId) -> HandlerResult {
    tokens::token_revoke(&caller.context, &caller, token.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
