//! Which interface a snippet speaks to, how, and with which credentials.

use a2a_card::{AgentCard, Interface, SchemeKind, has_unread_demand};
use url::Url;

use crate::pages::text;

/// Characters of an example prompt that is short enough to be the message of a snippet.
const EXAMPLE: usize = 160;
/// Bytes of an address that a snippet holds.
const ADDRESS: usize = 1_000;
/// Bytes of a tenant, or of a header's or parameter's name, that a snippet holds.
const NAME: usize = 200;
/// How many required extensions are named.
const EXTENSIONS: usize = 5;

/// A way of speaking A2A: a binding and a generation of shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// 1.0 over JSON-RPC.
    V1JsonRpc,
    /// 1.0 over HTTP+JSON.
    V1Rest,
    /// 0.3 over JSON-RPC.
    V03JsonRpc,
    /// 0.2 over JSON-RPC; the shapes of 0.3, but an SDK of its own.
    V02JsonRpc,
}

impl Dialect {
    /// The dialect in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::V1JsonRpc => "A2A 1.0 over JSON-RPC",
            Self::V1Rest => "A2A 1.0 over HTTP+JSON",
            Self::V03JsonRpc => "A2A 0.3 over JSON-RPC",
            Self::V02JsonRpc => "A2A 0.2 over JSON-RPC",
        }
    }

    /// Whether the shapes are those of 1.0.
    pub const fn is_v1(self) -> bool {
        matches!(self, Self::V1JsonRpc | Self::V1Rest)
    }
}

/// Something a caller must bring; snippets take it from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// `Authorization: Bearer`.
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

impl Credential {
    /// The environment variable that holds it, and what is to be put in.
    pub fn variables(&self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Bearer => ("A2A_TOKEN", "the access token"),
            Self::Authorization => (
                "A2A_AUTHORIZATION",
                "the whole value of the Authorization header",
            ),
            Self::HeaderKey(_) | Self::CookieKey(_) | Self::QueryKey(_) => {
                ("A2A_API_KEY", "the API key")
            }
        })
    }
}

/// What a snippet does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How to speak.
    pub dialect: Dialect,
    /// To which address.
    pub url: Url,
    /// The tenant to copy into requests.
    pub tenant: Option<String>,
    /// What to bring.
    pub credentials: Vec<Credential>,
    /// What to say: an example of the card's where it has a short one.
    pub message: String,
    /// What a snippet cannot do, in words made for a page.
    pub notes: Vec<String>,
}

/// Why there are no snippets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlan {
    /// The card lists no interface.
    #[error("The card lists no interface, so the agent cannot be called.")]
    NoInterface,
    /// None of the interfaces is spoken here.
    #[error(
        "None of the interfaces is JSON-RPC (0.2, 0.3, 1.0) or HTTP+JSON (1.0) at a web address; \
         use a client that speaks one of those listed below."
    )]
    NoneSpoken,
}

/// The first interface of the card, in its own order, that the snippets speak; dated ones before undated.
///
/// # Errors
/// Where there is none.
pub(crate) fn plan(card: &AgentCard) -> Result<Plan, NoPlan> {
    if card.interfaces.is_empty() {
        return Err(NoPlan::NoInterface);
    }
    let (dated, undated): (Vec<_>, Vec<_>) = card
        .interfaces
        .iter()
        .partition(|interface| interface.protocol_version.is_some());
    let (dialect, url, tenant) = dated
        .into_iter()
        .chain(undated)
        .find_map(|interface| {
            Some((
                dialect(interface)?,
                address(&interface.url)?,
                tenant(interface)?,
            ))
        })
        .ok_or(NoPlan::NoneSpoken)?;
    let mut notes = Vec::new();
    let credentials = credentials(card, &mut notes);
    required_extensions(card, &mut notes);
    Ok(Plan {
        dialect,
        url,
        tenant,
        credentials,
        message: message(card),
        notes,
    })
}

fn dialect(interface: &Interface) -> Option<Dialect> {
    let binding = interface.binding.trim();
    let json_rpc = binding.eq_ignore_ascii_case("JSONRPC");
    let rest = binding.eq_ignore_ascii_case("HTTP+JSON");
    let version = interface.protocol_version.as_deref().map(|version| {
        let mut parts = version.trim().split('.');
        (parts.next().unwrap_or_default(), parts.next())
    });
    match version {
        Some(("1", _)) if json_rpc => Some(Dialect::V1JsonRpc),
        Some(("1", _)) if rest => Some(Dialect::V1Rest),
        Some(("0", Some("3"))) if json_rpc => Some(Dialect::V03JsonRpc),
        Some(("0", Some("2"))) if json_rpc => Some(Dialect::V02JsonRpc),
        // Only cards before 0.2.5 may leave the version out.
        None if json_rpc => Some(Dialect::V02JsonRpc),
        None if rest => Some(Dialect::V1Rest),
        _ => None,
    }
}

/// The address in its normal form, which is plain ASCII.
fn address(url: &str) -> Option<Url> {
    let url = Url::parse(&text::web_address(url)?).ok()?;
    (url.as_str().len() <= ADDRESS).then_some(url)
}

/// The interface's tenant; `None` where it is too long for a snippet.
#[expect(
    clippy::option_option,
    reason = "outside: whether it fits; inside: whether there is one"
)]
fn tenant(interface: &Interface) -> Option<Option<String>> {
    let tenant = interface.tenant.clone().filter(|tenant| !tenant.is_empty());
    tenant
        .as_ref()
        .is_none_or(|tenant| tenant.len() <= NAME)
        .then_some(tenant)
}

/// What to bring for the first alternative that a snippet can meet. Where one asks for nothing, nothing.
fn credentials(card: &AgentCard, notes: &mut Vec<String>) -> Vec<Credential> {
    if has_unread_demand(card) {
        notes.push(
            "The snippets leave out the credentials that the card asks for: it describes them in a form that is not \
             understood."
                .to_owned(),
        );
        return Vec::new();
    }
    if card
        .security
        .iter()
        .any(|alternative| alternative.schemes.is_empty())
    {
        return Vec::new();
    }
    let mut first_problem = None;
    let alternatives: Vec<Vec<Option<&SchemeKind>>> = if card.security.is_empty() {
        // Cards that declare schemes without requiring one mean that one is needed.
        card.security_schemes
            .iter()
            .map(|scheme| vec![Some(&scheme.kind)])
            .collect()
    } else {
        let kinds = |names: &[(String, Vec<String>)]| {
            names.iter().map(|(name, _)| kind(card, name)).collect()
        };
        card.security
            .iter()
            .map(|alternative| kinds(&alternative.schemes))
            .collect()
    };
    for alternative in &alternatives {
        let met: Result<Vec<_>, String> =
            alternative.iter().map(|kind| credential(*kind)).collect();
        match met {
            Ok(credentials) => {
                let mut found: Vec<Credential> = Vec::new();
                for credential in credentials.into_iter().flatten() {
                    if !found
                        .iter()
                        .any(|other| other.variables() == credential.variables())
                    {
                        found.push(credential);
                    }
                }
                return found;
            }
            Err(problem) => {
                first_problem.get_or_insert(problem);
            }
        }
    }
    notes.extend(first_problem);
    Vec::new()
}

fn kind<'a>(card: &'a AgentCard, name: &str) -> Option<&'a SchemeKind> {
    let scheme = card
        .security_schemes
        .iter()
        .find(|scheme| scheme.name == name)?;
    Some(&scheme.kind)
}

/// What one scheme asks for: nothing, a credential, or something a snippet cannot give.
fn credential(kind: Option<&SchemeKind>) -> Result<Option<Credential>, String> {
    let leaves_out = |what: &str| {
        Err(format!(
            "The snippets leave out what the card asks for: {what}."
        ))
    };
    match kind {
        Some(SchemeKind::None) => Ok(None),
        Some(SchemeKind::Http { scheme, .. }) if !scheme.eq_ignore_ascii_case("bearer") => {
            Ok(Some(Credential::Authorization))
        }
        Some(
            SchemeKind::Http { .. } | SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. },
        ) => Ok(Some(Credential::Bearer)),
        Some(SchemeKind::ApiKey {
            location,
            parameter,
        }) => match location.as_str() {
            "header" if is_token(parameter) => Ok(Some(Credential::HeaderKey(parameter.clone()))),
            "cookie" if is_token(parameter) => Ok(Some(Credential::CookieKey(parameter.clone()))),
            "query" if !parameter.is_empty() && parameter.len() <= NAME => {
                Ok(Some(Credential::QueryKey(parameter.clone())))
            }
            _ => leaves_out("an API key at a place that HTTP does not know"),
        },
        Some(SchemeKind::MutualTls) => leaves_out("a client certificate (mutual TLS)"),
        Some(SchemeKind::Other { label }) => leaves_out(&format!(
            "“{}”, a scheme of its own",
            text::line(label, text::LINE)
        )),
        None => leaves_out("a scheme that it does not explain"),
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

fn required_extensions(card: &AgentCard, notes: &mut Vec<String>) {
    let required: Vec<&str> = card
        .capabilities
        .extensions
        .iter()
        .filter(|extension| extension.required)
        .map(|extension| extension.uri.as_str())
        .collect();
    for uri in required.iter().take(EXTENSIONS) {
        notes.push(format!(
            "The agent requires the protocol extension {}, which the snippets do not speak.",
            text::line(uri, text::LINE)
        ));
    }
    if required.len() > EXTENSIONS {
        notes.push(format!(
            "It requires {} more extensions.",
            required.len() - EXTENSIONS
        ));
    }
}

/// The first example of the card's that fits into a line.
fn message(card: &AgentCard) -> String {
    card.skills
        .iter()
        .flat_map(|skill| &skill.examples)
        .map(|example| example.trim())
        .find(|example| {
            !example.is_empty() && example.chars().count() <= EXAMPLE && !example.contains('\n')
        })
        .unwrap_or("Hello! What can you do?")
        .to_owned()
}
