//! Handlers for the caller's account, accounts and groups.

use a2a_registry_api::{
    Account, AccountList, AccountPatch, Group, GroupList, GroupMembers, Me, NewAccount,
};
use a2a_registry_core::accounts::{account_operations, groups};
use a2a_registry_core::paging::PageRequest;
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, delete, get, patch, post, put};

use crate::answers::conditional_response::IfMatchHeader;
use crate::answers::response::{self, HandlerResult};
use crate::requests::auth::{Administer, ReadAccounts, Require, SignedIn};
use crate::requests::body::JsonBody;
use crate::requests::path_parameters::{AccountRef, GroupRef};
use crate::requests::query::Query;

/// Show the calling account
#[utoipa::path(
    tag = "accounts",
    responses((status = 200, description = "The caller's account, groups and token", body = Me))
)]
#[get("/v1/me")]
pub async fn me(caller: SignedIn) -> HandlerResult {
    let me = account_operations::me(&caller.context, &caller).await?;
    response::json_response(StatusCode::OK, &me)
}

/// List accounts, newest first
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of accounts", body = AccountList))
)]
#[get("/v1/accounts")]
pub async fn account_list(
    caller: Require<ReadAccounts>,
    page: Query<PageRequest>,
) -> HandlerResult {
    let accounts = account_operations::account_list(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &accounts)
}

/// Create an account
#[utoipa::path(
    request_body = NewAccount,
    responses(
        (status = 201, description = "The account", body = Account),
        (status = 409, description = "The name is taken, or a group does not exist"),
    )
)]
#[post("/v1/accounts")]
pub async fn account_create(
    caller: Require<Administer>,
    new: JsonBody<NewAccount>,
) -> HandlerResult {
    let account = account_operations::account_create(&caller.context, &caller, &new.0).await?;
    response::json_response(StatusCode::CREATED, &account)
}

/// Show an account
#[utoipa::path(
    responses(
        (status = 200, description = "The account", body = Account,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/accounts/{account}")]
pub async fn account_show(
    request: HttpRequest,
    caller: Require<ReadAccounts>,
    account: AccountRef,
) -> HandlerResult {
    let account = account_operations::account_show(&caller.context, &caller, &account.0).await?;
    response::json_with_etag(&request, &account)
}

/// Change the roles or groups of an account, or disable it
///
/// Absent members stay unchanged. Without `If-Match` the change applies to the current state of the account.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to change")),
    request_body = AccountPatch,
    responses(
        (status = 200, description = "The changed account", body = Account,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 409, description = "No enabled admin would be left, or a group does not exist"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[patch("/v1/accounts/{account}")]
pub async fn account_patch(
    caller: Require<Administer>,
    account: AccountRef,
    patch: JsonBody<AccountPatch>,
    if_match: IfMatchHeader,
) -> HandlerResult {
    let changed = account_operations::account_patch(
        &caller.context,
        &caller,
        &account.0,
        &patch.0,
        &if_match.0,
    )
    .await?;
    response::changed_resource_response(&changed)
}

/// List groups, newest first
#[utoipa::path(
    params(PageRequest),
    responses((status = 200, description = "A page of groups", body = GroupList))
)]
#[get("/v1/groups")]
pub async fn group_list(caller: Require<ReadAccounts>, page: Query<PageRequest>) -> HandlerResult {
    let groups = groups::group_list(&caller.context, &caller, &page.0).await?;
    response::json_response(StatusCode::OK, &groups)
}

/// Show a group of the origin `admin`
#[utoipa::path(
    responses(
        (status = 200, description = "The group", body = Group,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 304, description = "Not modified since the `ETag` in `If-None-Match`",
         headers(("ETag" = String, description = "Changes when the response changes"))),
    )
)]
#[get("/v1/groups/{group}")]
pub async fn group_show(
    request: HttpRequest,
    caller: Require<ReadAccounts>,
    group: GroupRef,
) -> HandlerResult {
    let group = groups::group_show(&caller.context, &caller, &group.0).await?;
    response::json_with_etag(&request, &group)
}

/// Set the members of a group, creating the group if needed
///
/// Without `If-Match` the change applies to the current state of the group.
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to change")),
    request_body = GroupMembers,
    responses(
        (status = 200, description = "The group", body = Group,
         headers(("ETag" = String, description = "Changes when the response changes"))),
        (status = 409, description = "An account does not exist"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[put("/v1/groups/{group}")]
pub async fn group_put(
    caller: Require<Administer>,
    group: GroupRef,
    members: JsonBody<GroupMembers>,
    if_match: IfMatchHeader,
) -> HandlerResult {
    let group =
        groups::group_put(&caller.context, &caller, &group.0, &members.0, &if_match.0).await?;
    response::changed_resource_response(&group)
}

/// Delete a group but keep its accounts
#[utoipa::path(
    params(("If-Match" = Option<String>, Header, description = "`ETag` of the state to delete")),
    responses(
        (status = 204, description = "The group is deleted"),
        (status = 412, description = "`If-Match` does not match the current state"),
    )
)]
#[delete("/v1/groups/{group}")]
pub async fn group_delete(
    caller: Require<Administer>,
    group: GroupRef,
    if_match: IfMatchHeader,
) -> HandlerResult {
    groups::group_delete(&caller.context, &caller, &group.0, &if_match.0).await?;
    Ok(HttpResponse::NoContent().finish())
}
