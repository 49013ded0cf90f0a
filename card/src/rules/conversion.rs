//! Rules that conversions check: what they had to add, and what the other version cannot express.

use crate::rule::rule_table;

rule_table! {
    /// All of these rules.
    CONVERSION:

    CONVERT_NO_ADDRESS = "convert.no-address", Error, "1.0 §4.4.6, 0.3 §5.5",
        "an address at which the agent can be called",
        "add the agent's address; no version allows a card without one";
    CONVERT_PROTOCOL = "convert.protocol", Warning, "1.0 §3.6",
        "a card written in the protocol version that the agent speaks",
        "call the agent with the protocol version that its interfaces name: converting the card does not change the agent";
    CONVERT_NO_CLIENT = "convert.no-client", Error, "1.0 §3.6, §5.8",
        "an interface that clients of this version can call",
        "read the original card, and use a client for the protocol version and binding given there";
    CONVERT_RAISED = "convert.version-raised", Warning, "1.0 §3.6",
        "agents of 0.3 or newer",
        "read the original card for the declared version; agents of 0.2 understand requests of 0.3";
    CONVERT_VERSION = "convert.version-assumed", Warning, "1.0 §3.6",
        "interfaces that name their protocol version",
        "add the version; this one was inferred from the form of the card";
    CONVERT_INTERFACE = "convert.interface", Warning, "0.3 §5.6",
        "one protocol version for all addresses of a 0.3 card",
        "read the original card or its 1.0 form for the omitted addresses, which speak another version";
    CONVERT_TENANT = "convert.tenant", Warning, "1.0 §8.3.2",
        "addresses that need no tenant",
        "read the original card or its 1.0 form: a 0.3 card cannot name the tenant that a caller has to send";
    CONVERT_DEFAULT = "convert.default", Warning, "1.0 §4.4, 0.3 §5.5",
        "the members that the version requires",
        "add the member; a placeholder without information is used meanwhile";
    CONVERT_MODE = "convert.mode", Warning, "1.0 §4.4.1",
        "modes as media types",
        "write a media type; the mode is omitted";
    CONVERT_STATE_HISTORY = "convert.state-history", Info, "1.0 §4.4.3",
        "capabilities that 1.0 knows",
        "nothing to do: 1.0 dropped `stateTransitionHistory`";
    CONVERT_SCHEME = "convert.scheme", Error, "1.0 §4.5.1",
        "one of the five kinds of security scheme, with a known location of its key",
        "describe the scheme; requirements still name it, so that clients do not assume that the agent needs no \
         credentials";
    CONVERT_SCHEME_ASSUMED = "convert.scheme-assumed", Warning, "1.0 §4.5",
        "security schemes with everything that a caller has to know",
        "add the missing member; a guess is used meanwhile, as the scheme's description says";
    CONVERT_FLOW = "convert.flow", Warning, "1.0 §4.5.7, 0.3 §5.5.3",
        "complete OAuth flows that the version knows; in 1.0 one in each scheme",
        "read the original card, or publish one scheme for each flow with all its addresses";
    CONVERT_SECURITY = "convert.security", Error, "1.0 §4.4.1",
        "security members that can be read",
        "read the original card: the converted one may seem to need no credentials, though the agent needs them";
    CONVERT_UNKNOWN = "convert.unknown-member", Info, "1.0 §4.4.1",
        "members that the version knows",
        "read the member in the original card; an extension could carry it";
    CONVERT_UNSIGNED = "convert.unsigned", Info, "1.0 §8.4",
        "signatures of the bytes that were signed",
        "verify the original card: its signatures do not cover the converted one";
}
