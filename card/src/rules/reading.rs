//! Rules that the reader of cards checks.

use crate::rule::rule_table;

rule_table! {
    /// All of these rules.
    READING:

    FINDINGS_CUT = "findings.cut", Warning, "registry",
        "at most 1 000 findings for one card",
        "fix the findings shown, then check the card again";
    JSON_BOM = "json.bom", Warning, "RFC 8259 §8.1",
        "JSON without a byte order mark",
        "save the card as UTF-8 without a byte order mark";
    JSON_SURROGATE = "json.surrogate", Error, "RFC 7493 §2.1",
        "surrogates in pairs only",
        "write the whole character, or both halves of its escape";
    JSON_NUMBER_HUGE = "json.number-huge", Error, "RFC 7493 §2.2",
        "numbers that a double can hold",
        "write the number as text";
    JSON_NUMBER_INEXACT = "json.number-inexact", Warning, "RFC 7493 §2.2",
        "numbers that a double holds exactly as written",
        "write the number as text, or with fewer digits";
    JSON_DUPLICATE = "json.duplicate-name", Error, "RFC 7493 §2.3",
        "every member name once in an object",
        "remove one of the two members: parsers disagree about which one counts";
    TEXT_NUL = "text.nul", Error, "registry",
        "text without U+0000",
        "remove the character; it is read as U+FFFD";
    TEXT_HIDDEN = "text.hidden", Warning, "registry",
        "text without control, bidirectional, zero-width or tag characters",
        "remove the invisible characters";
    TEXT_TOO_LONG = "text.too-long", Warning, "registry",
        "names up to 1 024 characters, addresses up to 4 096, prose up to 16 384",
        "shorten it; longer text is cut, and a longer address is ignored";
    LIST_CUT = "list.cut", Warning, "registry",
        "lists up to 1 000 elements",
        "shorten the list; further elements are not read";
    MEMBER_TYPE = "member.type", Error, "1.0 §4.4",
        "members of the type that the specification defines",
        "write the value with the type that the specification defines; as it is, it is not read";
    MEMBER_COERCED = "member.coerced", Warning, "1.0 §4.4",
        "members of the type that the specification defines",
        "write the value with the type that the specification defines; it is understood, but strict clients refuse it";
    MEMBER_NULL = "member.null", Info, "1.0 §5.7",
        "optional members left out rather than null",
        "leave the member out";
    MEMBER_SNAKE = "member.snake-case", Warning, "1.0 §5.5",
        "member names in camelCase",
        "rename the snake_case members to camelCase";
    MEMBER_TWICE = "member.two-spellings", Warning, "1.0 §5.5",
        "a single spelling of each member",
        "remove the snake_case spelling; the camelCase one counts";
    CARD_NESTED = "card.nested", Error, "1.0 §4.4.1",
        "the members of the card at the top level of the document",
        "move the members of the nested object to the top level";
    CARD_NAME = "card.name", Error, "1.0 §4.4.1",
        "the agent's name in `name`",
        "rename the member to `name`";
    CARD_NO_ADDRESS = "card.no-address", Error, "1.0 §4.4.6",
        "an address at which the agent can be called",
        "add `supportedInterfaces` (1.0) or `url` (0.x)";
    VERSION_UNREADABLE = "protocol-version.unreadable", Error, "1.0 §3.6",
        "a protocol version of the form Major.Minor",
        "write `1.0`, or `0.3.0` in an older card";
    VERSION_PATCH = "protocol-version.patch", Info, "1.0 §3.6",
        "interface versions without a patch number",
        "write Major.Minor only, such as `1.0`";
    INTERFACE_URL = "interface.url", Error, "1.0 §4.4.6",
        "an address in every interface",
        "add the interface's `url`; without one the interface is ignored";
    INTERFACE_MEMBER = "interface.member", Error, "1.0 §4.4.6",
        "the binding in `protocolBinding`",
        "rename the member to `protocolBinding` (1.0) or `transport` (0.3 additionalInterfaces)";
    BINDING_SPELLING = "interface.binding-spelling", Warning, "1.0 §5.8",
        "`JSONRPC`, `GRPC` or `HTTP+JSON`, in exactly this spelling",
        "use the exact spelling: some clients compare case-sensitively";
    BINDING_UNKNOWN = "interface.binding-unknown", Info, "1.0 §5.8",
        "one of the core bindings, or a URI for a custom one",
        "name a custom binding by a URI";
    PROVIDER_TEXT = "provider.text", Warning, "1.0 §4.4.2",
        "a provider object with `organization` and `url`",
        "write `{\"organization\": …, \"url\": …}`";
    PROVIDER_NAME = "provider.name", Warning, "1.0 §4.4.2",
        "the provider's name in `organization`",
        "rename `name` to `organization`";
    CAPABILITIES_LIST = "capabilities.list", Error, "1.0 §4.4.3",
        "capabilities as an object",
        "write `{\"streaming\": true, …}` and move what the agent can do to `skills`";
    CAPABILITIES_NAME = "capabilities.name", Warning, "1.0 §4.4.3",
        "the names `streaming`, `pushNotifications`, `extendedAgentCard`",
        "rename the member";
    CAPABILITIES_TOOLS = "capabilities.tools", Warning, "1.0 §4.4.5",
        "what the agent can do in `skills`",
        "move this list to the card's own `skills`; it is read as skills here too, but clients do not read it";
    SKILLS_ELSEWHERE = "skill.elsewhere", Warning, "1.0 §4.4.5",
        "what the agent can do in `skills`",
        "move this list to `skills`; it is read as skills because there are no others, and clients do not read it";
    EXTENSION_URI = "extension.uri", Error, "1.0 §4.4.4",
        "a `uri` in every extension",
        "add the extension's `uri`; without one the extension is ignored";
    SKILL_TEXT = "skill.text", Error, "1.0 §4.4.5",
        "skills as objects",
        "write an object with id, name, description and tags";
    SKILL_SHAPE = "skill.list", Error, "1.0 §4.4.5",
        "skills as a list",
        "write a list of skill objects";
    SKILL_NAMELESS = "skill.nameless", Error, "1.0 §4.4.5",
        "an id and a name in every skill",
        "add `id` and `name`; a skill with neither is ignored";
    SKILL_ID = "skill.id", Error, "1.0 §4.4.5",
        "an id in every skill",
        "add `id`; meanwhile the name is used as the id";
    SKILL_NAME = "skill.name", Error, "1.0 §4.4.5",
        "a name in every skill",
        "add `name`; meanwhile the id is used as the name";
    MODE = "mode.not-media-type", Warning, "1.0 §4.4.1",
        "modes as media types",
        "write a media type, such as `text/plain` or `application/json`";
    MODES_SHAPE = "mode.list", Warning, "1.0 §4.4.1",
        "modes as a list of media types",
        "write a list, such as `[\"text/plain\"]`";
    SCHEME_LIST = "scheme.list", Error, "1.0 §4.5.1",
        "security schemes as an object by name",
        "write `{\"<name>\": {…}}`";
    SCHEME_KIND = "scheme.kind", Error, "1.0 §4.5.1",
        "one of the five kinds of security scheme",
        "use apiKey, http, oauth2, openIdConnect or mutualTLS";
    SCHEME_LOCATION = "scheme.location", Warning, "1.0 §4.5.2",
        "an API key in `header`, `query` or `cookie`, in exactly this spelling",
        "write one of these three words in lower case, in `location` (1.0) or `in` (0.x)";
    SCHEME_UNREADABLE = "scheme.unreadable", Error, "1.0 §4.5.1",
        "a security scheme object",
        "describe the scheme with an object; as it is, it is ignored";
    SECURITY_SHAPE = "security.shape", Error, "1.0 §4.4.1",
        "requirements as a list of objects",
        "write `[{\"schemes\": {\"<name>\": {\"list\": []}}}]` (1.0) or `[{\"<name>\": []}]` (0.x)";
    AUTHENTICATION_LATE = "authentication.with-schemes", Warning, "0.2 §5.5",
        "either `authentication` (0.1) or `securitySchemes` (0.2 and later)",
        "remove `authentication`; it is ignored beside `securitySchemes`";
    SECURITY_ELSEWHERE = "security.elsewhere", Warning, "1.0 §4.4.1",
        "the credentials that callers need in `securitySchemes` and `securityRequirements`",
        "describe them there; clients do not read this member, and would call without credentials";
    SIGNATURES_SHAPE = "signature.list", Error, "1.0 §4.4.7",
        "signatures as a list of objects",
        "write `[{\"protected\": …, \"signature\": …}]`";
}
