//! Chooses the credentials for a card, and where each of them is sent.

use a2a_card::{AgentCard, AuthRequirements, AuthScheme, SchemeKind, auth_requirements};

/// Longest name of a header, a cookie or a query parameter for a key, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// A credential in a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CredentialPlacement {
    /// A token after `Authorization: Bearer`.
    Bearer,
    /// The whole `Authorization` header of another HTTP scheme.
    Authorization,
    /// A key in a header with this valid name.
    HeaderKey(String),
    /// A key in a cookie with this valid name.
    CookieKey(String),
    /// A key in a query parameter.
    QueryKey(String),
}

/// Why a scheme cannot be met by a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmetSchemeReason<'a> {
    /// The key belongs in a location that HTTP does not have, or that the card does not name.
    UnknownLocation,
    /// A client certificate, which is not part of a request.
    ClientCertificate,
    /// A scheme of the card's own, with its label.
    UnknownKind(&'a str),
    /// A name that the card does not describe.
    Undeclared,
}

/// The credentials that a caller has.
#[derive(Debug, Clone)]
pub enum AvailableCredentials<'a> {
    /// Any that can be described: the caller reads how to call the agent, and obtains what is required. So an
    /// alternative that requires nothing is preferred to all others, and schemes that a card only declares count as
    /// required.
    AnyDescribable,
    /// These, and no others. They were given for this agent, so they are used wherever the card mentions them;
    /// schemes that a card only declares do not exclude a caller.
    Provided(ProvidedCredentialKinds<'a>),
}

/// The credentials given for a call.
#[derive(Debug, Clone, Default)]
pub struct ProvidedCredentialKinds<'a> {
    /// Whether there is a token.
    pub bearer: bool,
    /// Whether there is a key.
    pub api_key: bool,
    /// Whether there are a user and a password for HTTP Basic.
    pub basic: bool,
    /// Whether there is a client certificate.
    pub certificate: bool,
    /// Names of the headers set by hand. One that a scheme requires counts as meeting it.
    pub headers: Vec<&'a str>,
}

/// How a caller can authenticate.
#[derive(Debug, Clone, PartialEq)]
pub enum CredentialChoice<'a> {
    /// With these credentials, without duplicates; those set by hand are not included.
    Placements(Vec<CredentialPlacement>),
    /// Without any credentials at all.
    NotRequired,
    /// Not with the caller's credentials, but with one of these alternatives, which are empty if unreadable.
    Unsatisfiable(Vec<Vec<AuthScheme<'a>>>),
}

/// Chooses how a caller with these credentials authenticates: by the first alternative that they meet, in the card's
/// order. One that they may meet comes after those that they certainly meet.
pub fn choose_credentials<'a>(
    card: &'a AgentCard,
    available: &AvailableCredentials<'_>,
) -> CredentialChoice<'a> {
    let AuthRequirements {
        alternatives,
        required,
        unreadable,
    } = auth_requirements(card);
    let allows_anonymous = !required || alternatives.iter().any(Vec::is_empty);
    let mut candidates = alternatives;
    candidates.retain(|alternative| !alternative.is_empty());
    let can_call_anonymously = match available {
        AvailableCredentials::AnyDescribable if unreadable => {
            return CredentialChoice::Unsatisfiable(Vec::new());
        }
        AvailableCredentials::AnyDescribable
            if candidates.is_empty() || (required && allows_anonymous) =>
        {
            return CredentialChoice::NotRequired;
        }
        AvailableCredentials::AnyDescribable => false,
        AvailableCredentials::Provided(given) => {
            if !required {
                candidates.clear();
            }
            // It is unknown whether an unreadable requirement is met; given credentials are assumed to meet it.
            allows_anonymous && (given.has_any() || !unreadable)
        }
    };
    let first = |guess| {
        candidates
            .iter()
            .find_map(|one| satisfy_security_alternative(one, available, guess))
    };
    if let Some(credentials) = first(false).or_else(|| first(true)) {
        return CredentialChoice::Placements(credentials);
    }
    if can_call_anonymously {
        CredentialChoice::NotRequired
    } else {
        CredentialChoice::Unsatisfiable(candidates)
    }
}

/// The credentials to send for an alternative, if it is met. With `allow_guess`, a scheme in an unknown form is met
/// too.
fn satisfy_security_alternative(
    alternative: &[AuthScheme<'_>],
    available: &AvailableCredentials<'_>,
    allow_guess: bool,
) -> Option<Vec<CredentialPlacement>> {
    let mut credentials = Vec::new();
    for auth_scheme in alternative {
        let credential = match available {
            AvailableCredentials::AnyDescribable => scheme_placement(auth_scheme).ok()?,
            AvailableCredentials::Provided(given) => {
                given.satisfy_scheme(auth_scheme, allow_guess)?
            }
        };
        if let Some(credential) = credential
            && !credentials.contains(&credential)
        {
            credentials.push(credential);
        }
    }
    Some(credentials)
}

impl ProvidedCredentialKinds<'_> {
    fn has_any(&self) -> bool {
        self.bearer || self.api_key || self.basic || self.certificate || !self.headers.is_empty()
    }

    fn has_header(&self, header: &str) -> bool {
        let same = |name: &&str| name.eq_ignore_ascii_case(header);
        self.headers.iter().any(same)
    }

    /// The credential to send for a scheme, if it needs one that was not set by hand; `None` if it is not met.
    fn satisfy_scheme(
        &self,
        auth_scheme: &AuthScheme<'_>,
        allow_guess: bool,
    ) -> Option<Option<CredentialPlacement>> {
        let placement = match scheme_placement(auth_scheme) {
            Ok(None) => return Some(None),
            Ok(Some(found)) => found,
            // The connection presents it, so the request needs nothing.
            Err(UnmetSchemeReason::ClientCertificate) => return self.certificate.then_some(None),
            Err(obstacle) => return self.guess_placement(obstacle).filter(|_| allow_guess),
        };
        let (header, is_provided) = match &placement {
            CredentialPlacement::Bearer => (Some("authorization"), self.bearer),
            CredentialPlacement::Authorization => (
                Some("authorization"),
                self.basic && is_http_basic(auth_scheme),
            ),
            CredentialPlacement::HeaderKey(name) => (Some(name.as_str()), self.api_key),
            CredentialPlacement::CookieKey(_) => (Some("cookie"), self.api_key),
            CredentialPlacement::QueryKey(_) => (None, self.api_key),
        };
        if header.is_some_and(|name| self.has_header(name)) {
            return Some(None);
        }
        is_provided.then_some(Some(placement))
    }

    /// The credential to send for a scheme in an unknown form: a token may meet it, and so may a header set by hand.
    fn guess_placement(&self, unmet: UnmetSchemeReason<'_>) -> Option<Option<CredentialPlacement>> {
        match unmet {
            UnmetSchemeReason::ClientCertificate => None,
            UnmetSchemeReason::UnknownKind(_) | UnmetSchemeReason::Undeclared
                if self.bearer && !self.has_header("authorization") =>
            {
                Some(Some(CredentialPlacement::Bearer))
            }
            _ => (!self.headers.is_empty()).then_some(None),
        }
    }
}

/// The credential to send for one scheme, according to the card; `None` if it requires nothing.
pub fn scheme_placement<'a>(
    auth_scheme: &'a AuthScheme<'_>,
) -> Result<Option<CredentialPlacement>, UnmetSchemeReason<'a>> {
    match auth_scheme.kind.as_deref() {
        Some(SchemeKind::None) => Ok(None),
        Some(SchemeKind::Http { scheme, .. }) if !scheme.eq_ignore_ascii_case("bearer") => {
            Ok(Some(CredentialPlacement::Authorization))
        }
        Some(
            SchemeKind::Http { .. } | SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. },
        ) => Ok(Some(CredentialPlacement::Bearer)),
        Some(kind @ SchemeKind::ApiKey { .. }) => api_key_placement(kind)
            .map(Some)
            .ok_or(UnmetSchemeReason::UnknownLocation),
        Some(SchemeKind::MutualTls) => Err(UnmetSchemeReason::ClientCertificate),
        Some(SchemeKind::Other { label }) => Err(UnmetSchemeReason::UnknownKind(label)),
        None => Err(UnmetSchemeReason::Undeclared),
    }
}

/// Whether a scheme is HTTP Basic (RFC 7617).
pub(crate) fn is_http_basic(auth_scheme: &AuthScheme<'_>) -> bool {
    matches!(auth_scheme.kind.as_deref(), Some(SchemeKind::Http { scheme, .. }) if scheme.eq_ignore_ascii_case("basic"))
}

/// Whether a card mentions a scheme that takes a token, or may take one, or requires nothing.
pub fn card_accepts_token(card: &AgentCard) -> bool {
    let AuthRequirements {
        alternatives,
        required,
        ..
    } = auth_requirements(card);
    let schemes = || alternatives.iter().flatten().map(scheme_placement);
    let accepts_bearer = |scheme| {
        matches!(
            scheme,
            Ok(Some(CredentialPlacement::Bearer))
                | Err(UnmetSchemeReason::UnknownKind(_) | UnmetSchemeReason::Undeclared)
        )
    };
    !required || schemes().all(|scheme| scheme == Ok(None)) || schemes().any(accepts_bearer)
}

/// Whether a card names a location for an API key.
pub fn card_accepts_api_key(card: &AgentCard) -> bool {
    let mut schemes = card.security_schemes.iter();
    schemes.any(|scheme| api_key_placement(&scheme.kind).is_some())
}

/// Where a key is sent; `None` for another kind of scheme, and for a location that HTTP does not have.
pub fn api_key_placement(kind: &SchemeKind) -> Option<CredentialPlacement> {
    let SchemeKind::ApiKey {
        location,
        parameter,
    } = kind
    else {
        return None;
    };
    let name = || parameter.clone();
    match location.as_str() {
        "header" if is_header_name(parameter) => Some(CredentialPlacement::HeaderKey(name())),
        "cookie" if is_header_name(parameter) => Some(CredentialPlacement::CookieKey(name())),
        "query" if !parameter.is_empty() && parameter.len() <= MAX_NAME_BYTES => {
            Some(CredentialPlacement::QueryKey(name()))
        }
        _ => None,
    }
}

/// Whether a name is a valid header name (RFC 9110 section 5.6.2).
fn is_header_name(name: &str) -> bool {
    let special = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}
