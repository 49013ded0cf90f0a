//! What a conversion notices: what it had to put in, and what the other version cannot say.

use crate::rule::Rule;
use crate::rule::Severity::{Error, Info, Warning};

pub(crate) const CONVERT_NO_ADDRESS: Rule = Rule::new(
    "convert.no-address",
    Error,
    "1.0 §4.4.6, 0.3 §5.5",
    "an address at which the agent can be called",
    "no version has a valid card without one; publish the agent's address",
);
pub(crate) const CONVERT_PROTOCOL: Rule = Rule::new(
    "convert.protocol",
    Warning,
    "1.0 §3.6",
    "an agent that speaks the protocol version its card is written in",
    "call the agent by the protocol version that its interfaces name: converting a card changes no agent",
);
pub(crate) const CONVERT_NO_CLIENT: Rule = Rule::new(
    "convert.no-client",
    Error,
    "1.0 §3.6, §5.8",
    "an interface that clients of the version can call",
    "read the original, and call the agent by a client of the protocol version and binding found there",
);
pub(crate) const CONVERT_RAISED: Rule = Rule::new(
    "convert.version-raised",
    Warning,
    "1.0 §3.6",
    "agents of 0.3 or newer",
    "read the original for the version it declares; agents of 0.2 understand the requests of 0.3",
);
pub(crate) const CONVERT_VERSION: Rule = Rule::new(
    "convert.version-assumed",
    Warning,
    "1.0 §3.6",
    "interfaces that name their protocol version",
    "publish the version; the one given was told from the form of the card",
);
pub(crate) const CONVERT_INTERFACE: Rule = Rule::new(
    "convert.interface",
    Warning,
    "0.3 §5.6",
    "one protocol version for all addresses of a 0.3 card",
    "read the original or the 1.0 form for the addresses left out, which speak another version",
);
pub(crate) const CONVERT_TENANT: Rule = Rule::new(
    "convert.tenant",
    Warning,
    "1.0 §8.3.2",
    "addresses that need no tenant",
    "read the original or the 1.0 form: a 0.3 card cannot name the tenant a caller has to send",
);
pub(crate) const CONVERT_DEFAULT: Rule = Rule::new(
    "convert.default",
    Warning,
    "1.0 §4.4, 0.3 §5.5",
    "the members that the version requires",
    "publish the member; what stands there now says nothing the card did not say",
);
pub(crate) const CONVERT_MODE: Rule = Rule::new(
    "convert.mode",
    Warning,
    "1.0 §4.4.1",
    "modes as media types",
    "write a media type; the mode is left out",
);
pub(crate) const CONVERT_STATE_HISTORY: Rule = Rule::new(
    "convert.state-history",
    Info,
    "1.0 §4.4.3",
    "capabilities that 1.0 knows",
    "nothing to do: 1.0 dropped `stateTransitionHistory`",
);
pub(crate) const CONVERT_SCHEME: Rule = Rule::new(
    "convert.scheme",
    Error,
    "1.0 §4.5.1",
    "one of the five kinds of security scheme, with a place for its key that clients know",
    "describe the scheme; requirements go on naming it, so that the card does not look open",
);
pub(crate) const CONVERT_SCHEME_ASSUMED: Rule = Rule::new(
    "convert.scheme-assumed",
    Warning,
    "1.0 §4.5",
    "security schemes that say all a caller has to know",
    "publish the missing member; what stands there now is a guess and the scheme's description says so",
);
pub(crate) const CONVERT_FLOW: Rule = Rule::new(
    "convert.flow",
    Warning,
    "1.0 §4.5.7, 0.3 §5.5.3",
    "OAuth flows that the version knows, complete; in 1.0 one for each scheme",
    "read the original, or publish one scheme for each flow with all its addresses",
);
pub(crate) const CONVERT_SECURITY: Rule = Rule::new(
    "convert.security",
    Error,
    "1.0 §4.4.1",
    "security that can be read",
    "read the original: the converted card may look open, though the agent is not",
);
pub(crate) const CONVERT_UNKNOWN: Rule = Rule::new(
    "convert.unknown-member",
    Info,
    "1.0 §4.4.1",
    "members that the version knows",
    "read the original for the member; an extension could carry it",
);
pub(crate) const CONVERT_UNSIGNED: Rule = Rule::new(
    "convert.unsigned",
    Info,
    "1.0 §8.4",
    "signatures with the bytes they were made for",
    "verify the original: its signatures do not cover a converted card",
);

/// All of them.
pub(crate) static CONVERSION: &[Rule] = &[
    CONVERT_NO_ADDRESS,
    CONVERT_PROTOCOL,
    CONVERT_NO_CLIENT,
    CONVERT_RAISED,
    CONVERT_VERSION,
    CONVERT_INTERFACE,
    CONVERT_TENANT,
    CONVERT_DEFAULT,
    CONVERT_MODE,
    CONVERT_STATE_HISTORY,
    CONVERT_SCHEME,
    CONVERT_SCHEME_ASSUMED,
    CONVERT_FLOW,
    CONVERT_SECURITY,
    CONVERT_UNKNOWN,
    CONVERT_UNSIGNED,
];
