//! Which credentials a card asks for, and where each of them goes.

use a2a_card::{AgentCard, AskedScheme, Demand, SchemeKind, demand};

/// Bytes of the name of a header, a cookie or a query parameter that a key is put into.
const NAME: usize = 200;

/// Something a caller sends to be let in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A token after `Authorization: Bearer`.
    Bearer,
    /// The whole `Authorization` header of another HTTP scheme.
    Authorization,
    /// A key in a header of that name, which is a valid one.
    HeaderKey(String),
    /// A key in a cookie of that name, which is a valid one.
    CookieKey(String),
    /// A key in a query parameter.
    QueryKey(String),
}

/// Why nothing can be named that meets a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle<'a> {
    /// A key at a place that HTTP does not know, or that the card does not name.
    NoPlace,
    /// A client certificate, which is no part of a request.
    Certificate,
    /// A scheme of the card's own, by its label.
    Unknown(&'a str),
    /// A name that the card does not explain.
    Unexplained,
}

/// What a caller has.
#[derive(Debug, Clone)]
pub enum Means<'a> {
    /// Whatever can be named: the caller reads how to call, and gets what is needed. So an alternative that
    /// asks for nothing is taken before all others, and schemes that a card only declares are taken to be
    /// required.
    Nameable,
    /// These, and no others. They were given for this agent, so they are used where the card has a use for
    /// them; schemes that a card only declares keep nobody out.
    Given(Given<'a>),
}

/// What was given to make a call with.
#[derive(Debug, Clone, Default)]
pub struct Given<'a> {
    /// Whether there is a token.
    pub bearer: bool,
    /// Whether there is a key.
    pub api_key: bool,
    /// Names of the headers that are set by hand. One that a scheme asks for meets it.
    pub headers: Vec<&'a str>,
}

/// How a caller gets in.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry<'a> {
    /// With these credentials, each once; what is set by hand is not among them.
    With(Vec<Credential>),
    /// Without any.
    Free,
    /// Not with what the caller has: these are the alternatives that ask for something, none where the
    /// card's demand cannot be read.
    Closed(Vec<Vec<AskedScheme<'a>>>),
}

/// How a caller with these means gets in: by the first alternative that they meet, in the card's order; one
/// that they may meet, for all that can be told, comes after those that they surely meet.
pub fn entry<'a>(card: &'a AgentCard, means: &Means<'_>) -> Entry<'a> {
    let Demand {
        alternatives,
        required,
        unread,
    } = demand(card);
    let free = !required || alternatives.iter().any(Vec::is_empty);
    let mut asking = alternatives;
    asking.retain(|alternative| !alternative.is_empty());
    let is_free = match means {
        Means::Nameable if unread => return Entry::Closed(Vec::new()),
        Means::Nameable if asking.is_empty() || (required && free) => return Entry::Free,
        Means::Nameable => false,
        Means::Given(given) => {
            if !required {
                asking.clear();
            }
            // Of a demand that cannot be read nobody knows whether it is met; what is given is taken to be it.
            free && (given.is_something() || !unread)
        }
    };
    let first = |guess| asking.iter().find_map(|one| met(one, means, guess));
    if let Some(credentials) = first(false).or_else(|| first(true)) {
        return Entry::With(credentials);
    }
    if is_free {
        Entry::Free
    } else {
        Entry::Closed(asking)
    }
}

/// What is sent for an alternative; `None` where the means do not meet it. With `guess`, what a scheme asks for
/// in no known way is taken to be among them.
fn met(alternative: &[AskedScheme<'_>], means: &Means<'_>, guess: bool) -> Option<Vec<Credential>> {
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
        self.bearer || self.api_key || !self.headers.is_empty()
    }

    fn by_hand(&self, header: &str) -> bool {
        let same = |name: &&str| name.eq_ignore_ascii_case(header);
        self.headers.iter().any(same)
    }

    /// What is to be sent for a scheme, where anything is besides what is set by hand; `None` where it is not
    /// met.
    fn meets(&self, asked: &AskedScheme<'_>, guess: bool) -> Option<Option<Credential>> {
        let found = match credential(asked) {
            Ok(None) => return Some(None),
            Ok(Some(found)) => found,
            Err(obstacle) => return self.guessed(obstacle).filter(|_| guess),
        };
        let (header, given) = match &found {
            Credential::Bearer => (Some("authorization"), self.bearer),
            Credential::Authorization => (Some("authorization"), false),
            Credential::HeaderKey(name) => (Some(name.as_str()), self.api_key),
            Credential::CookieKey(_) => (Some("cookie"), self.api_key),
            Credential::QueryKey(_) => (None, self.api_key),
        };
        if header.is_some_and(|name| self.by_hand(name)) {
            return Some(None);
        }
        given.then_some(Some(found))
    }

    /// The same for a scheme that asks in no known way: a token may meet it, where it may be one, and so may a
    /// header set by hand.
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

/// What a caller sends for one scheme, as far as the card says; `None` where it asks for nothing.
///
/// # Errors
/// Why nothing can be named that meets it.
pub fn credential<'a>(asked: &'a AskedScheme<'_>) -> Result<Option<Credential>, Obstacle<'a>> {
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

/// Where a key goes; `None` for another kind of scheme, and for a place that HTTP does not know.
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

/// Whether a name may stand in a header (RFC 9110 section 5.6.2).
fn is_token(name: &str) -> bool {
    let special = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.len() <= NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || special(byte))
}
