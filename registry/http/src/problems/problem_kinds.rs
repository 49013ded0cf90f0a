//! List of all kinds of problems: the slug in `type`, status, title, and what to do. `GET /problems/{slug}` shows the
//! same text.

use actix_web::http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub struct ProblemKind {
    /// Last segment of the document's `type`.
    pub slug: &'static str,
    pub status: StatusCode,
    pub title: &'static str,
    /// Meaning of the problem and what to do, in a few sentences.
    pub explanation: &'static str,
}

macro_rules! problem_kinds {
    ($($name:ident = $status:ident $slug:literal $title:literal $explanation:literal;)+) => {
        $(
            #[doc = $title]
            pub static $name: ProblemKind = ProblemKind {
                slug: $slug,
                status: StatusCode::$status,
                title: $title,
                explanation: $explanation,
            };
        )+

        /// All kinds, ordered by status.
        pub static ALL: &[&ProblemKind] = &[$(&$name),+];
    };
}

problem_kinds! {
    INVALID_REQUEST = BAD_REQUEST "invalid-request" "The request is not valid"
        "A parameter or a member of the body is missing, unknown, of the wrong type or out of range. \
        `errors` names each one by a pointer into the body, or by the parameter's name.";
    BROKEN_PATH = BAD_REQUEST "broken-path" "The path is not properly escaped"
        "The path contains a percent sign that is not followed by two hexadecimal digits, or bytes that are \
        not UTF-8, or U+0000. Escape each segment of the path once: a slash inside an identifier is %2F.";
    NOT_JSON = BAD_REQUEST "not-json" "The card is not JSON"
        "The card is not JSON in UTF-8. The detail names the line and column of the error. \
        Correct the document there and send it again.";
    UNAUTHENTICATED = UNAUTHORIZED "unauthenticated" "A token is required"
        "The request requires a token, but has none, or one that is unknown, revoked or expired. \
        Send it as `Authorization: Bearer` followed by the token.";
    FORBIDDEN = FORBIDDEN "forbidden" "The account may not do this"
        "The token is valid, but the roles of its account or its scopes do not allow the request. Use a token with \
         the scope, or ask an admin for the role.";
    FORM_REFUSED = FORBIDDEN "form-refused" "The form was not sent from this registry"
        "Forms are accepted only from a page of this registry, in the browser and session for which the page was \
         rendered. Reload the page, and submit its form again.";
    SIGN_IN_REFUSED = FORBIDDEN "sign-in-refused" "You cannot sign in over this connection"
        "A token must not be sent over plain HTTP, because it could be intercepted. Sign in over HTTPS at the \
         registry's \
        public URL, or on the registry's own machine at a loopback address. The API and the command line are not \
        affected.";
    DOMAIN_DENIED = FORBIDDEN "domain-denied" "The domain is not admitted"
        "The operator of this registry has put the domain on its list of denied domains. Nothing was stored.";
    POLICY_DENIED = FORBIDDEN "policy-denied" "A policy does not allow this"
        "The policies of this registry do not allow the account to do this. Nothing was stored. An admin of the \
         registry can identify the policy and change it.";
    LIMIT_REACHED = FORBIDDEN "limit-reached" "A limit is reached"
        "The account, the domain or the registry has reached a limit, which the detail names. Remove some items, \
         wait if the detail says so, or ask the operator whether the limit can be raised.";
    NOT_FOUND = NOT_FOUND "not-found" "Not found"
        "Nothing exists at this URL, or your account may not see it: the response is the same in both cases. \
        Try again with the token of an account with more permissions.";
    WRONG_METHOD = METHOD_NOT_ALLOWED "wrong-method" "The method is not allowed"
        "The path exists, but does not support this method. The header `Allow` lists the \
        supported methods.";
    NOT_ACCEPTABLE = NOT_ACCEPTABLE "not-acceptable" "No acceptable encoding"
        "`Accept-Encoding` excludes every content coding that the registry supports, including `identity`.";
    REQUEST_TIMEOUT = REQUEST_TIMEOUT "request-timeout" "The request took too long to arrive"
        "The body did not arrive in time. Send it again over a faster connection.";
    CONFLICT = CONFLICT "conflict" "The request conflicts with the current state"
        "The resource has changed meanwhile, or its state does not allow the request. Read it \
        again before you retry.";
    CHANGED_MEANWHILE = PRECONDITION_FAILED "changed-meanwhile" "The resource was changed by someone else"
        "`If-Match` does not match the current state, so nothing was changed. Read the resource again before you \
         retry.";
    TOO_LARGE = PAYLOAD_TOO_LARGE "too-large" "The request is too large"
        "The body exceeds the size that the operator allows for a JSON request, or an agent card exceeds 1 MiB.";
    WRONG_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE "wrong-media-type" "The body is not sent as JSON"
        "Send JSON without content coding and with the header `Content-Type: application/json`.";
    TARGET_REFUSED = UNPROCESSABLE_ENTITY "target-refused" "The registry cannot fetch from this address"
        "The address is private, not secured, on an unusual port or otherwise not allowed for this \
        registry. Nothing was stored. An operator can allow networks, names, ports and plain \
        HTTP in the section `[crawler]` of the configuration.";
    NOT_A_CARD = UNPROCESSABLE_ENTITY "not-a-card" "The document is not an agent card"
        "The document is JSON, but not an agent card of any protocol version: an agent card is an object with the \
         agent's `name`, nested at most 64 levels deep.";
    NO_PERMIT = UNPROCESSABLE_ENTITY "no-permit" "The policies do not permit anyone to find an agent"
        "A set without an enforced permit for `discover` hides every agent from everyone except its owner, curators, \
         auditors \
        and admins. Nothing was changed. Keep a permit in the set, such as the template `everybody`, or confirm with \
        `allow_no_permit`.";
    PREVIEW_NEEDED = PRECONDITION_REQUIRED "preview-needed" "A preview of these policies is required"
        "The set hides every listed agent from every kind of caller, so it is accepted only after a preview. \
        Nothing was changed. Request a preview of exactly these policies, and send its `token` as `preview` within an \
        hour.";
    TOO_MANY_REQUESTS = TOO_MANY_REQUESTS "too-many-requests" "Too many requests"
        "A limit on requests is reached: on anonymous changes from one IP address, sign-ins, reports, failed proof \
         checks, open streams, waiting searches or unread responses. The detail says which. Wait for the number of \
         seconds in `Retry-After`. A token ends the limit on anonymous changes.";
    INTERNAL = INTERNAL_SERVER_ERROR "internal" "Internal error of the registry"
        "The error is in the registry, not in the request. The registry's log has details under the id in the \
        header `X-Request-Id`.";
    UNAVAILABLE = SERVICE_UNAVAILABLE "unavailable" "Temporarily unavailable"
        "The database or the index is unavailable, or the registry is overloaded. Retry after the number of seconds in \
        `Retry-After`. If the database became unavailable during a change, check whether the change was made before \
        you repeat it.";
    READ_ONLY = SERVICE_UNAVAILABLE "read-only" "The database is read-only"
        "Reads work but writes fail, for example because the disk is full. Try again later.";
    NOT_READY = SERVICE_UNAVAILABLE "not-ready" "This process is not ready"
        "One of the checks in `checks` fails. Do not send requests to this process until it is ready.";
}

pub fn problem_kind_by_slug(slug: &str) -> Option<&'static ProblemKind> {
    ALL.iter().copied().find(|kind| kind.slug == slug)
}

/// Problem kind for a status without a problem document.
pub fn problem_kind_by_status(status: StatusCode) -> &'static ProblemKind {
    let exact = ALL.iter().copied().find(|kind| kind.status == status);
    exact.unwrap_or(if status.is_server_error() {
        &INTERNAL
    } else {
        &INVALID_REQUEST
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slug_is_one_of_its_kind_and_every_kind_an_error() {
        for (index, kind) in ALL.iter().enumerate() {
            assert!(
                kind.status.is_client_error() || kind.status.is_server_error(),
                "{kind:?}"
            );
            assert!(
                ALL[..index].iter().all(|other| other.slug != kind.slug),
                "{}",
                kind.slug
            );
            assert!(
                kind.slug
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            );
            assert_eq!(problem_kind_by_slug(kind.slug), Some(*kind));
        }
    }
}
