//! Authorization by handler argument types: a handler with a [`Require`] argument is called only if the caller has the
//! permission.

use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use a2a_registry_core::accounts::authentication::{TOKEN_PREFIX, authenticate_token};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{CredentialRefusal, Result};
use a2a_registry_core::providers::IdentityProviders;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use futures::FutureExt;
use futures::future::{Either, LocalBoxFuture};

use crate::limits::client_address::{client_address, client_network};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::refusal_recording::record_credential_refusal;
use crate::requests::request_span::record_caller;
use crate::requests::server_state::server_state;

/// Reader of public cards: like [`Anyone`], except that a foreign `Authorization` is ignored. SDKs send the header
/// that is meant for one agent to every host that the same HTTP client calls.
#[derive(Debug, Clone)]
pub struct PublicCardCaller(pub Caller);

/// Marks a request whose `Authorization` is ignored.
#[derive(Debug, Clone, Copy)]
pub struct IgnoredAuthorization;

/// Like [`Anyone`], for a response that only accounts with the permission get in full.
#[derive(Debug, Clone, Copy)]
pub struct PermissionCheck<P> {
    pub is_permitted: bool,
    permission: PhantomData<P>,
}

pub trait RequiredPermission: 'static {
    const PERMISSION: Permission;
}

macro_rules! needed {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl RequiredPermission for $name {
            const PERMISSION: Permission = Permission::$name;
        }
    )+};
}

needed! {
    /// [`Permission::Read`], which every account has, unless the scopes of its token exclude it.
    Read
    Register
    SeeAll
    Curate
    Approve
    ReadEvents
    ReadAccounts
    Administer
    Decide
}

/// Future of an extractor, ready immediately or after reading the accounts.
type ExtractorFuture<T> =
    Either<Ready<Result<T, Problem>>, LocalBoxFuture<'static, Result<T, Problem>>>;

/// Bearer token of a request. Rejects an `Authorization` that is not a bearer token, and more than one.
pub fn bearer_token(request: &HttpRequest) -> Result<Option<&str>, Problem> {
    bearer_token_in(request, &header::AUTHORIZATION).map_err(|()| {
        Problem::new(
            &problem_kinds::UNAUTHENTICATED,
            "Authorization must be a single bearer token: send it once, as `Authorization: Bearer …`.",
        )
        .with_refusal(CredentialRefusal::NoToken)
    })
}

/// Bearer token in a header; an error if the header is anything else, or there is more than one.
pub(crate) fn bearer_token_in<'a>(
    request: &'a HttpRequest,
    name: &header::HeaderName,
) -> Result<Option<&'a str>, ()> {
    let mut lines = request.headers().get_all(name);
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    let token = line.to_str().ok().and_then(|line| {
        let (scheme, token) = line.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    });
    match (token, lines.next()) {
        (Some(token), None) => Ok(Some(token)),
        _ => Err(()),
    }
}

/// Authenticates the sender of a request by the secret of a token or by an access token. Rejections are recorded.
pub(crate) async fn authenticate_request(
    request: &HttpRequest,
    token: &str,
) -> Result<Caller, Problem> {
    let authenticated = authenticate_token(&server_state(request)?.context, token).await;
    authenticated
        .map_err(Problem::from)
        .inspect(|caller| record_caller(request, caller))
        .inspect_err(|problem| record_credential_refusal(request, problem))
}

/// Authenticates the caller, and passes it to `authorize` to accept or reject.
fn extract_caller<T: 'static>(
    request: &HttpRequest,
    authorize: impl FnOnce(Caller, &HttpRequest) -> Result<T, Problem> + 'static,
) -> ExtractorFuture<T> {
    let token = match bearer_token(request) {
        Ok(Some(token)) => token.to_owned(),
        Ok(None) => {
            let caller = with_client_network(request, Caller::default()).map_err(Problem::from);
            return Either::Left(ready(caller.and_then(|caller| authorize(caller, request))));
        }
        Err(problem) => {
            record_credential_refusal(request, &problem);
            return Either::Left(ready(Err(problem)));
        }
    };
    let request = request.clone();
    let authentication = async move {
        let caller = authenticate_request(&request, &token).await?;
        request
            .extensions_mut()
            .insert(AuthenticatedCaller(caller.clone()));
        authorize(caller, &request)
    };
    Either::Right(authentication.boxed_local())
}

/// Caller of a request that was authorized by its headers.
struct AuthenticatedCaller(Caller);

/// Authorizes a request again once its body has arrived, which a client can delay: a token revoked meanwhile, or an
/// account disabled or with changed roles, takes effect at the end of the request.
pub(crate) async fn recheck_authorization(request: &HttpRequest) -> Result<(), Problem> {
    let earlier_caller = request
        .extensions()
        .get::<AuthenticatedCaller>()
        .map(|judged| judged.0.clone());
    let (Some(earlier_caller), Some(token)) = (earlier_caller, bearer_token(request)?) else {
        return Ok(());
    };
    let caller = authenticate_request(request, token).await?;
    if caller == earlier_caller {
        return Ok(());
    }
    Err(Problem::new(
        &problem_kinds::UNAUTHENTICATED,
        "The permissions of this token changed while the request was being sent. Nothing was done. Send the request \
         again.",
    ))
}

/// Whether a header has a token of this registry or an access token of a configured identity provider, valid or not.
fn carries_registry_token(request: &HttpRequest) -> bool {
    let providers = server_state(request)
        .map(|state| &state.context.providers)
        .ok();
    let lines = request.headers().get_all(header::AUTHORIZATION);
    lines
        .flat_map(|line| line.as_bytes().split(u8::is_ascii_whitespace))
        .any(|word| {
            let text = std::str::from_utf8(word).unwrap_or_default();
            let names = |providers: &IdentityProviders| providers.by_claimed_issuer(text).is_some();
            text.starts_with(TOKEN_PREFIX) || providers.is_some_and(names)
        })
}

/// Extracts the caller of a card request. Tokens without the prefix are older than the prefix, or chosen by an
/// operator; only a look-up distinguishes them from foreign tokens.
fn extract_public_card_caller(request: &HttpRequest) -> ExtractorFuture<PublicCardCaller> {
    if !request.headers().contains_key(header::AUTHORIZATION) {
        return Either::Left(ready(Ok(PublicCardCaller(Caller::default()))));
    }
    if carries_registry_token(request) {
        return extract_caller(request, |caller, _| Ok(PublicCardCaller(caller)));
    }
    let token = bearer_token(request).ok().flatten().map(str::to_owned);
    let request = request.clone();
    let extraction = async move {
        let recognized = match token {
            Some(token) => authenticate_token(&server_state(&request)?.context, &token)
                .await
                .ok(),
            None => None,
        };
        Ok(PublicCardCaller(recognized.unwrap_or_else(|| {
            request.extensions_mut().insert(IgnoredAuthorization);
            Caller::default()
        })))
    };
    Either::Right(extraction.boxed_local())
}

pub fn limit_anonymous_write(request: &HttpRequest, caller: &Caller) -> Result<()> {
    if caller.account.is_some() {
        return Ok(());
    }
    let state = server_state(request)?;
    match client_address(request, &state.context.config().server.trusted_proxies) {
        Some(address) => state.anonymous_write_limit.admit(address),
        None => Ok(()),
    }
}

/// Rejects a caller who may not register, and sets the network of an anonymous caller.
pub fn authorize_registration(request: &HttpRequest, caller: Caller) -> Result<Caller> {
    caller.require_registration_right(&server_state(request)?.context.config().governance)?;
    limit_anonymous_write(request, &caller)?;
    with_client_network(request, caller)
}

/// Sets the network of an anonymous caller.
pub(crate) fn with_client_network(request: &HttpRequest, caller: Caller) -> Result<Caller> {
    let config = server_state(request)?.context.config();
    let address = client_address(request, &config.server.trusted_proxies);
    Ok(Caller {
        network: address
            .map(client_network)
            .filter(|_| caller.account.is_none()),
        ..caller
    })
}

impl<P: RequiredPermission> FromRequest for PermissionCheck<P> {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        extract_caller(request, |caller, _| {
            Ok(Self {
                is_permitted: caller.has_permission(P::PERMISSION),
                permission: PhantomData,
            })
        })
    }
}

impl FromRequest for PublicCardCaller {
    type Error = Problem;
    type Future = ExtractorFuture<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        extract_public_card_caller(request)
    }
}

/// Defines extractors of the caller and the registry context. The closure after each name accepts or rejects the
/// caller.
macro_rules! callers {
    ($($(#[$meta:meta])* $name:ident $(<$permission:ident>)? = $judge:expr;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name$(<$permission>)? {
            pub(crate) caller: Caller,
            pub(crate) context: Arc<AppContext>,
            $(permission: PhantomData<$permission>,)?
        }

        impl$(<$permission>)? Deref for $name$(<$permission>)? {
            type Target = Caller;

            fn deref(&self) -> &Caller {
                &self.caller
            }
        }

        impl$(<$permission: RequiredPermission>)? FromRequest for $name$(<$permission>)? {
            type Error = Problem;
            type Future = ExtractorFuture<Self>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let judge: fn(Caller, &HttpRequest) -> Result<Caller, Problem> = $judge;
                extract_caller(request, move |caller, request| {
                    Ok(Self {
                        caller: judge(caller, request)?,
                        context: Arc::clone(&server_state(request)?.context),
                        $(permission: PhantomData::<$permission>,)?
                    })
                })
            }
        }
    )+};
}

callers! {
    /// Any caller, with or without a token. An invalid token is rejected even if none is required.
    Anyone = |caller, _| Ok(caller);
    /// Like [`Anyone`], for writes: anonymous writes are counted by address.
    AnyoneWriting = |caller, request| {
        limit_anonymous_write(request, &caller)?;
        Ok(caller)
    };
    /// A caller who may request a visit: anonymous callers, and accounts with [`Permission::Register`], so that a
    /// read-only token cannot change anything. Anonymous requests are counted by address.
    AnyoneAsking = |caller, request| {
        if caller.account.is_some() {
            caller.require_permission(Permission::Register)?;
        }
        limit_anonymous_write(request, &caller)?;
        Ok(caller)
    };
    /// A caller who may register: an account with the permission, or anyone in an open registry.
    Registrant = |caller, request| Ok(authorize_registration(request, caller)?);
    /// Any account, regardless of its permissions.
    SignedIn = |caller, _| {
        caller.require_account()?;
        Ok(caller)
    };
    /// An account with the permission.
    Require<P> = |caller, _| {
        caller.require_permission(P::PERMISSION)?;
        Ok(caller)
    };
}
