//! Chooses the credentials for a card, and where each of them is sent.

use a2a_card::{AgentCard, AuthRequirements, AuthScheme, SchemeKind, auth_requirements};

/// Longest name of a header, a cookie or a query parameter for a key, in bytes.
const NAME: usize = 200;

/// A credential in a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
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
pub enum Obstacle<'a> {
    /// The key belongs at a place that HTTP does not have, or that the card does not name.
    NoPlace,
    /// A client certificate, which is not part of a request.
    Certificate,
    /// A scheme of the card's own, with its label.
    Unknown(&'a str),
    /// A name that the card does not describe.
    Unexplained,
}

/// The credentials that a caller has.
#[derive(Debug, Clone)]
pub enum Means<'a> {
    /// Any that can be named: the caller reads how to call, and gets what is required. So an alternative that
    /// requires nothing is preferred to all others, and schemes that a card only declares count as required.
    Nameable,
    /// These, and no others. They were given for this agent, so they are used wherever the card mentions them;
    /// schemes that a card only declares do not exclude a caller.
    Given(Given<'a>),
}

/// The credentials given for a call.
#[derive(Debug, Clone, Default)]
pub struct Given<'a> {
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
    With(Vec<Credential>),
    /// Without any credentials at all.
    Free,
    /// Not with the caller's credentials, but with one of these alternatives, which are empty if unreadable.
    Closed(Vec<Vec<AuthScheme<'a>>>),
}

/// Chooses how a caller with these credentials authenticates: by the first alternative that they meet, in the card's
/// order. One that they may meet comes after those that they certainly meet.
pub fn choose_credentials<'a>(card: &'a AgentCard, means: &Means<'_>) -> CredentialChoice<'a> {
    let AuthRequirements {
        alternatives,
        required,
        unreadable,
    } = auth_requirements(card);
    let free = !required || alternatives.iter().any(Vec::is_empty);
    let mut asking = alternatives;
    asking.retain(|alternative| !alternative.is_empty());
    let is_free = match means {
        Means::Nameable if unreadable => return CredentialChoice::Closed(Vec::new()),
        Means::Nameable if asking.is_empty() || (required && free) => {
            return CredentialChoice::Free;
        }
        Means::Nameable => false,
        Means::Given(given) => {
            if !required {
                asking.clear();
            }
            // It is unknown whether an unreadable requirement is met; given credentials are assumed to meet it.
            free && (given.is_something() || !unreadable)
        }
    };
    let first = |guess| asking.iter().find_map(|one| met(one, means, guess));
    if let Some(credentials) = first(false).or_else(|| first(true)) {
        return CredentialChoice::With(credentials);
    }
    if is_free {
        CredentialChoice::Free
    } else {
        CredentialChoice::Closed(asking)
    }
}

/// The credentials to send for an alternative, if it is met. With `guess`, so is a scheme in an unknown form.
fn met(alternative: &[AuthScheme<'_>], means: &Means<'_>, guess: bool) -> Option<Vec<Credential>> {
    let mut credentials = Vec::new();
    for asked in alternative {
        let credential = match means {
            Means::Nameable => credential(asked).ok()?,
            Means::Given(given) => given.meets(asked, guess)?,
        };
        if let Some(credential) = credential
            && !credentials.contains(&credential)
        {
            credentials.push(credential);
        }
    }
    Some(credentials)
}

impl Given<'_> {
    fn is_something(&self) -> bool {
        self.bearer || self.api_key || self.basic || self.certificate || !self.headers.is_empty()
    }

    fn by_hand(&self, header: &str) -> bool {
        let same = |name: &&str| name.eq_ignore_ascii_case(header);
        self.headers.iter().any(same)
    }

    /// The credential to send for a scheme, if it needs one that was not set by hand; `None` if it is not met.
    fn meets(&self, asked: &AuthScheme<'_>, guess: bool) -> Option<Option<Credential>> {
        let found = match credential(asked) {
            Ok(None) => return Some(None),
            Ok(Some(found)) => found,
            // The connection presents it, so the request needs nothing.
            Err(Obstacle::Certificate) => return self.certificate.then_some(None),
            Err(obstacle) => return self.guessed(obstacle).filter(|_| guess),
        };
        let (header, given) = match &found {
            Credential::Bearer => (Some("authorization"), self.bearer),
            Credential::Authorization => (Some("authorization"), self.basic && is_basic(asked)),
            Credential::HeaderKey(name) => (Some(name.as_str()), self.api_key),
            Credential::CookieKey(_) => (Some("cookie"), self.api_key),
            Credential::QueryKey(_) => (None, self.api_key),
        };
        if header.is_some_and(|name| self.by_hand(name)) {
            return Some(None);
        }
        given.then_some(Some(found))
    }

    /// The credential to send for a scheme in an unknown form: a token may meet it, and so may a header set by hand.
    fn guessed(&self, obstacle: Obstacle<'_>) -> Option<Option<Credential>> {
        match obstacle {
            Obstacle::Certificate => None,
            Obstacle::Unknown(_) | Obstacle::Unexplained
                if self.bearer && !self.by_hand("authorization") =>
            {
                Some(Some(Credential::Bearer))
            }
            _ => (!self.headers.is_empty()).then_some(None),
        }
    }
}

/// The credential to send for one scheme, according to the card; `None` if it requires nothing.
pub fn credential<'a>(asked: &'a AuthScheme<'_>) -> Result<Option<Credential>, Obstacle<'a>> {
    match asked.kind.as_deref() {
        Some(SchemeKind::None) => Ok(None),
        Some(SchemeKind::Http { scheme, .. }) if !scheme.eq_ignore_ascii_case("bearer") => {
            Ok(Some(Credential::Authorization))
        }
        Some(
            SchemeKind::Http { .. } | SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. },
        ) => Ok(Some(Credential::Bearer)),
        Some(kind @ SchemeKind::ApiKey { .. }) => {
            key_place(kind).map(Some).ok_or(Obstacle::NoPlace)
        }
        Some(SchemeKind::MutualTls) => Err(Obstacle::Certificate),
        Some(SchemeKind::Other { label }) => Err(Obstacle::Unknown(label)),
        None => Err(Obstacle::Unexplained),
    }
}

/// Whether a scheme is HTTP Basic (RFC 7617).
pub(crate) fn is_basic(asked: &AuthScheme<'_>) -> bool {
    matches!(asked.kind.as_deref(), Some(SchemeKind::Http { scheme, .. }) if scheme.eq_ignore_ascii_case("basic"))
}

/// Whether a card mentions a scheme that takes a token, or may take one, or requires nothing.
pub fn takes_token(card: &AgentCard) -> bool {
    let AuthRequirements {
        alternatives,
        required,
        ..
    } = auth_requirements(card);
    let schemes = || alternatives.iter().flatten().map(credential);
    let takes_one = |scheme| {
        matches!(
            scheme,
            Ok(Some(Credential::Bearer)) | Err(Obstacle::Unknown(_) | Obstacle::Unexplained)
        )
    };
    !required || schemes().all(|scheme| scheme == Ok(None)) || schemes().any(takes_one)
}

/// Whether a card names a place for an API key.
pub fn takes_key(card: &AgentCard) -> bool {
    let mut schemes = card.security_schemes.iter();
    schemes.any(|scheme| key_place(&scheme.kind).is_some())
}

/// Where a key is sent; `None` for another kind of scheme, and for a place that HTTP does not have.
pub fn key_place(kind: &SchemeKind) -> Option<Credential> {
    let SchemeKind::ApiKey {
        location,
        parameter,
    } = kind
    else {
        return None;
    };
    let name = || parameter.clone();
    match location.as_str() {
        "header" if is_token(parameter) => Some(Credential::HeaderKey(name())),
        "cookie" if is_token(parameter) => Some(Credential::CookieKey(name())),
        "query" if !parameter.is_empty() && parameter.len() <= NAME => {
            Some(Credential::QueryKey(name()))
        }
        _ => None,
    }
}

/// Whether a name is a valid header name (RFC 9110 section 5.6.2).
fn is_token(name: &str) -> bool {
    let special = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.len() <= NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}
