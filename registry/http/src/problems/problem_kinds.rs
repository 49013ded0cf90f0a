//! Every kind of problem in one list: the slug in its `type`, its status, its title and what to do about it. `GET
//! /problems/{slug}` shows the same text.

use actix_web::http::StatusCode;

#[derive(Debug, PartialEq, Eq)]
pub struct ProblemKind {
    /// The last part of the document's `type`.
    pub slug: &'static str,
    pub status: StatusCode,
    pub title: &'static str,
    /// What it means and what to do, in a few sentences.
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

        /// Every kind, in the order of its status.
        pub static ALL: &[&ProblemKind] = &[$(&$name),+];
    };
}

problem_kinds! {
    INVALID_REQUEST = BAD_REQUEST "invalid-request" "The request cannot be understood"
        "A parameter or a member of the body is missing, unknown, of the wrong type or out of its range. \
         `errors` names each by its pointer: into the body, or the parameter's name.";
    BROKEN_PATH = BAD_REQUEST "broken-path" "The path is not properly escaped"
        "The path holds a percent sign that is not followed by two hexadecimal digits, or bytes that are \
         not UTF-8, or U+0000. Escape each part of the path once: a slash inside an identifier is %2F.";
    NOT_JSON = BAD_REQUEST "not-json" "The card is not JSON"
        "The text that was sent as a card is not JSON in UTF-8. The detail names the line and column at which reading \
         stopped; correct the document there and send it again.";
    UNAUTHENTICATED = UNAUTHORIZED "unauthenticated" "A token is needed"
        "The request needs a token and carried none, or carried one that is unknown, revoked or past its \
         end. Send it as `Authorization: Bearer` followed by the token.";
    FORBIDDEN = FORBIDDEN "forbidden" "The account may not do this"
        "The token is good, and the roles of its account or its own scopes do not allow the request.";
    FORM_REFUSED = FORBIDDEN "form-refused" "The form was not sent from here"
        "A form is taken only from a page of this registry, in the browser and session that the page was made for. \
         Reload the page, and send its form again.";
    SIGN_IN_REFUSED = FORBIDDEN "sign-in-refused" "Nobody can sign in over this connection"
        "A token must not travel over plain HTTP: others on the way could read it. Sign in over HTTPS at the registry's \
         public address, or on the registry's own machine at a loopback address. The API and the command line are not \
         affected.";
    DOMAIN_DENIED = FORBIDDEN "domain-denied" "The domain is not admitted"
        "The operator of this registry has put the domain on its list of denied domains. Nothing was stored.";
    POLICY_DENIED = FORBIDDEN "policy-denied" "A policy does not allow this"
        "The policies of this registry do not let the account do this. Nothing was stored. Its admin can say which policy it \
         is, and change it.";
    LIMIT_REACHED = FORBIDDEN "limit-reached" "A limit is reached"
        "The account or the domain already has as many of these as the operator allows. Remove some, or \
         ask the operator to raise the limit.";
    NOT_FOUND = NOT_FOUND "not-found" "Not found"
        "Nothing has this address, or your account may not see it: the response is the same in both cases. \
         Try again with the token of an account that may see more.";
    WRONG_METHOD = METHOD_NOT_ALLOWED "wrong-method" "The method does not fit this address"
        "There is something at this address, but not for this method. The header `Allow` lists the \
         methods it takes.";
    NOT_ACCEPTABLE = NOT_ACCEPTABLE "not-acceptable" "No acceptable form"
        "`Accept-Encoding` excludes every content coding the registry has, the plain one included.";
    REQUEST_TIMEOUT = REQUEST_TIMEOUT "request-timeout" "The request took too long to arrive"
        "The body was not complete in time. Send it again over a faster connection.";
    CONFLICT = CONFLICT "conflict" "The request does not fit the present state"
        "What the request is about has changed since, or is not in a state that allows it. Look at it \
         again and decide anew.";
    CHANGED_MEANWHILE = PRECONDITION_FAILED "changed-meanwhile" "Somebody else has changed it"
        "`If-Match` names another state than the present one, so nothing was changed. Read it again, and decide anew.";
    TOO_LARGE = PAYLOAD_TOO_LARGE "too-large" "The request is too large"
        "The body holds more bytes than the operator allows for a JSON request, or an agent card more than 1 MiB.";
    WRONG_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE "wrong-media-type" "The body is not sent as JSON"
        "Send JSON without content coding, and say so: `Content-Type: application/json`.";
    TARGET_REFUSED = UNPROCESSABLE_ENTITY "target-refused" "The registry does not fetch from there"
        "The address is private, not secured, on an unusual port or otherwise outside of what this \
         registry may reach. Nothing was stored. An operator can admit networks, names, ports and plain \
         HTTP in the section `[crawler]` of the configuration.";
    NOT_A_CARD = UNPROCESSABLE_ENTITY "not-a-card" "The document is not an agent card"
        "The document is JSON, but no agent card of any protocol version: an agent card is an object with the agent's \
         `name`, nested at most 64 levels deep.";
    NO_PERMIT = UNPROCESSABLE_ENTITY "no-permit" "The policies permit nobody to find an agent"
        "A set without an enforced permit about `discover` hides every agent from everybody but its owner, curators, auditors \
         and admins. Nothing was changed. Keep a permit in the set, such as the template `everybody`, or say with \
         `allow_no_permit` that this is what you want.";
    PREVIEW_NEEDED = PRECONDITION_REQUIRED "preview-needed" "The preview of these policies comes first"
        "The set hides every listed agent from every kind of caller, so it is accepted only from who has seen its preview. \
         Nothing was changed. Ask for the preview of exactly these policies, and send its `token` as `preview` within an hour.";
    TOO_MANY_REQUESTS = TOO_MANY_REQUESTS "too-many-requests" "Too many requests"
        "This address has made more changes without a token than are allowed in a minute. Wait for as \
         many seconds as `Retry-After` says, or use a token.";
    INTERNAL = INTERNAL_SERVER_ERROR "internal" "The registry made a mistake"
        "This is a fault of the registry and not of the request. Its log says more, under the id in the \
         header `X-Request-Id`.";
    UNAVAILABLE = SERVICE_UNAVAILABLE "unavailable" "Not now"
        "The database or the index is away, or too much is under way. Try again after as many seconds as `Retry-After` says. \
         Where the database went away during a change, it may have been made or not: look before you repeat it.";
    READ_ONLY = SERVICE_UNAVAILABLE "read-only" "The database takes no writes"
        "Reading works and changing does not, as with a full disk. Try again later.";
    NOT_READY = SERVICE_UNAVAILABLE "not-ready" "This process is not ready"
        "One of the checks in `checks` fails, so that this process should be sent no requests for now.";
}

pub fn kind_by_slug(slug: &str) -> Option<&'static ProblemKind> {
    ALL.iter().copied().find(|kind| kind.slug == slug)
}

/// The kind for a status that carries no document of its own.
pub fn kind_by_status(status: StatusCode) -> &'static ProblemKind {
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
            assert_eq!(kind_by_slug(kind.slug), Some(*kind));
        }
    }
}
