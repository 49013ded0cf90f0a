//! Rules that reading a card checks.

use crate::rule::Rule;
use crate::rule::Severity::{Error, Info, Warning};

pub(crate) const FINDINGS_CUT: Rule = Rule::new(
    "findings.cut",
    Warning,
    "registry",
    "at most 1 000 findings for one card",
    "fix the findings shown, then check the card again",
);
pub(crate) const JSON_BOM: Rule = Rule::new(
    "json.bom",
    Warning,
    "RFC 8259 §8.1",
    "JSON without a byte order mark",
    "save the card as UTF-8 without a byte order mark",
);
pub(crate) const JSON_SURROGATE: Rule = Rule::new(
    "json.surrogate",
    Error,
    "RFC 7493 §2.1",
    "surrogates in pairs only",
    "write the whole character, or both halves of its escape",
);
pub(crate) const JSON_NUMBER_HUGE: Rule = Rule::new(
    "json.number-huge",
    Error,
    "RFC 7493 §2.2",
    "numbers that a double can hold",
    "write the number as text",
);
pub(crate) const JSON_NUMBER_INEXACT: Rule = Rule::new(
    "json.number-inexact",
    Warning,
    "RFC 7493 §2.2",
    "numbers that a double holds exactly as written",
    "write the number as text, or with fewer digits",
);
pub(crate) const JSON_DUPLICATE: Rule = Rule::new(
    "json.duplicate-name",
    Error,
    "RFC 7493 §2.3",
    "every member name once in an object",
    "remove one of the two members: readers disagree which one counts",
);
pub(crate) const TEXT_NUL: Rule = Rule::new(
    "text.nul",
    Error,
    "registry",
    "text without U+0000",
    "remove the character; it is read as U+FFFD",
);
pub(crate) const TEXT_HIDDEN: Rule = Rule::new(
    "text.hidden",
    Warning,
    "registry",
    "text without control, bidirectional, zero-width or tag characters",
    "remove the invisible characters",
);
pub(crate) const TEXT_TOO_LONG: Rule = Rule::new(
    "text.too-long",
    Warning,
    "registry",
    "names up to 1 024 characters, addresses up to 4 096, prose up to 16 384",
    "shorten it; longer text is cut, and a longer address is ignored",
);
pub(crate) const LIST_CUT: Rule = Rule::new(
    "list.cut",
    Warning,
    "registry",
    "lists up to 1 000 elements",
    "shorten the list; further elements are not read",
);
pub(crate) const MEMBER_TYPE: Rule = Rule::new(
    "member.type",
    Error,
    "1.0 §4.4",
    "members of the type that the specification defines",
    "write the value with the type that the specification defines; as it is, it is not read",
);
pub(crate) const MEMBER_COERCED: Rule = Rule::new(
    "member.coerced",
    Warning,
    "1.0 §4.4",
    "members of the type that the specification defines",
    "write the value with the type that the specification defines; it is understood, but strict clients refuse it",
);
pub(crate) const MEMBER_NULL: Rule = Rule::new(
    "member.null",
    Info,
    "1.0 §5.7",
    "optional members left out rather than null",
    "leave the member out",
);
pub(crate) const MEMBER_SNAKE: Rule = Rule::new(
    "member.snake-case",
    Warning,
    "1.0 §5.5",
    "member names in camelCase",
    "rename the snake_case members to camelCase",
);
pub(crate) const MEMBER_TWICE: Rule = Rule::new(
    "member.two-spellings",
    Warning,
    "1.0 §5.5",
    "a single spelling of each member",
    "remove the snake_case spelling; the camelCase one counts",
);
pub(crate) const CARD_NESTED: Rule = Rule::new(
    "card.nested",
    Error,
    "1.0 §4.4.1",
    "the members of the card at the top level of the document",
    "move the members of the nested object to the top level",
);
pub(crate) const CARD_NAME: Rule = Rule::new(
    "card.name",
    Error,
    "1.0 §4.4.1",
    "the agent's name in `name`",
    "rename the member to `name`",
);
pub(crate) const CARD_NO_ADDRESS: Rule = Rule::new(
    "card.no-address",
    Error,
    "1.0 §4.4.6",
    "an address at which the agent can be called",
    "add `supportedInterfaces` (1.0) or `url` (0.x)",
);
pub(crate) const VERSION_UNREADABLE: Rule = Rule::new(
    "protocol-version.unreadable",
    Error,
    "1.0 §3.6",
    "a protocol version of the form Major.Minor",
    "write `1.0`, or `0.3.0` in an older card",
);
pub(crate) const VERSION_PATCH: Rule = Rule::new(
    "protocol-version.patch",
    Info,
    "1.0 §3.6",
    "interface versions without a patch number",
    "write Major.Minor only, such as `1.0`",
);
pub(crate) const INTERFACE_URL: Rule = Rule::new(
    "interface.url",
    Error,
    "1.0 §4.4.6",
    "an address in every interface",
    "add the interface's `url`; without one the interface is ignored",
);
pub(crate) const INTERFACE_MEMBER: Rule = Rule::new(
    "interface.member",
    Error,
    "1.0 §4.4.6",
    "the binding in `protocolBinding`",
    "rename the member to `protocolBinding` (1.0) or `transport` (0.3 additionalInterfaces)",
);
pub(crate) const BINDING_SPELLING: Rule = Rule::new(
    "interface.binding-spelling",
    Warning,
    "1.0 §5.8",
    "`JSONRPC`, `GRPC` or `HTTP+JSON`, in exactly this spelling",
    "use the exact spelling: some clients compare case-sensitively",
);
pub(crate) const BINDING_UNKNOWN: Rule = Rule::new(
    "interface.binding-unknown",
    Info,
    "1.0 §5.8",
    "one of the core bindings, or a URI for a custom one",
    "name a custom binding by a URI",
);
pub(crate) const PROVIDER_TEXT: Rule = Rule::new(
    "provider.text",
    Warning,
    "1.0 §4.4.2",
    "a provider object with `organization` and `url`",
    "write `{\"organization\": …, \"url\": …}`",
);
pub(crate) const PROVIDER_NAME: Rule = Rule::new(
    "provider.name",
    Warning,
    "1.0 §4.4.2",
    "the provider's name in `organization`",
    "rename `name` to `organization`",
);
pub(crate) const CAPABILITIES_LIST: Rule = Rule::new(
    "capabilities.list",
    Error,
    "1.0 §4.4.3",
    "capabilities as an object",
    "write `{\"streaming\": true, …}` and move what the agent can do to `skills`",
);
pub(crate) const CAPABILITIES_NAME: Rule = Rule::new(
    "capabilities.name",
    Warning,
    "1.0 §4.4.3",
    "the names `streaming`, `pushNotifications`, `extendedAgentCard`",
    "rename the member",
);
pub(crate) const CAPABILITIES_TOOLS: Rule = Rule::new(
    "capabilities.tools",
    Warning,
    "1.0 §4.4.5",
    "what the agent can do in `skills`",
    "move this list to the card's own `skills`; it is read as skills here too, but clients do not read it",
);
pub(crate) const SKILLS_ELSEWHERE: Rule = Rule::new(
    "skill.elsewhere",
    Warning,
    "1.0 §4.4.5",
    "what the agent can do in `skills`",
    "move this list to `skills`; it is read as skills because there are no others, and clients do not read it",
);
pub(crate) const EXTENSION_URI: Rule = Rule::new(
    "extension.uri",
    Error,
    "1.0 §4.4.4",
    "a `uri` in every extension",
    "add the extension's `uri`; without one the extension is ignored",
);
pub(crate) const SKILL_TEXT: Rule = Rule::new(
    "skill.text",
    Error,
    "1.0 §4.4.5",
    "skills as objects",
    "write an object with id, name, description and tags",
);
pub(crate) const SKILL_SHAPE: Rule = Rule::new(
    "skill.list",
    Error,
    "1.0 §4.4.5",
    "skills as a list",
    "write a list of skill objects",
);
pub(crate) const SKILL_NAMELESS: Rule = Rule::new(
    "skill.nameless",
    Error,
    "1.0 §4.4.5",
    "an id and a name in every skill",
    "add `id` and `name`; a skill with neither is ignored",
);
pub(crate) const SKILL_ID: Rule = Rule::new(
    "skill.id",
    Error,
    "1.0 §4.4.5",
    "an id in every skill",
    "add `id`; meanwhile the name is used as the id",
);
pub(crate) const SKILL_NAME: Rule = Rule::new(
    "skill.name",
    Error,
    "1.0 §4.4.5",
    "a name in every skill",
    "add `name`; meanwhile the id is used as the name",
);
pub(crate) const MODE: Rule = Rule::new(
    "mode.not-media-type",
    Warning,
    "1.0 §4.4.1",
    "modes as media types",
    "write a media type, such as `text/plain` or `application/json`",
);
pub(crate) const MODES_SHAPE: Rule = Rule::new(
    "mode.list",
    Warning,
    "1.0 §4.4.1",
    "modes as a list of media types",
    "write a list, such as `[\"text/plain\"]`",
);
pub(crate) const SCHEME_LIST: Rule = Rule::new(
    "scheme.list",
    Error,
    "1.0 §4.5.1",
    "security schemes as an object by name",
    "write `{\"<name>\": {…}}`",
);
pub(crate) const SCHEME_KIND: Rule = Rule::new(
    "scheme.kind",
    Error,
    "1.0 §4.5.1",
    "one of the five kinds of security scheme",
    "use apiKey, http, oauth2, openIdConnect or mutualTLS",
);
pub(crate) const SCHEME_LOCATION: Rule = Rule::new(
    "scheme.location",
    Warning,
    "1.0 §4.5.2",
    "an API key in `header`, `query` or `cookie`, in exactly this spelling",
    "write one of these three words in lower case, in `location` (1.0) or `in` (0.x)",
);
pub(crate) const SCHEME_UNREADABLE: Rule = Rule::new(
    "scheme.unreadable",
    Error,
    "1.0 §4.5.1",
    "a security scheme object",
    "describe the scheme with an object; as it is, it is ignored",
);
pub(crate) const SECURITY_SHAPE: Rule = Rule::new(
    "security.shape",
    Error,
    "1.0 §4.4.1",
    "requirements as a list of objects",
    "write `[{\"schemes\": {\"<name>\": {\"list\": []}}}]` (1.0) or `[{\"<name>\": []}]` (0.x)",
);
pub(crate) const AUTHENTICATION_LATE: Rule = Rule::new(
    "authentication.with-schemes",
    Warning,
    "0.2 §5.5",
    "either `authentication` (0.1) or `securitySchemes` (0.2 and later)",
    "remove `authentication`; it is ignored beside `securitySchemes`",
);
pub(crate) const SECURITY_ELSEWHERE: Rule = Rule::new(
    "security.elsewhere",
    Warning,
    "1.0 §4.4.1",
    "the credentials that callers need in `securitySchemes` and `securityRequirements`",
    "describe them there; clients do not read this member, and would call without credentials",
);
pub(crate) const SIGNATURES_SHAPE: Rule = Rule::new(
    "signature.list",
    Error,
    "1.0 §4.4.7",
    "signatures as a list of objects",
    "write `[{\"protected\": …, \"signature\": …}]`",
);

pub(crate) static READING: &[Rule] = &[
    FINDINGS_CUT,
    JSON_BOM,
    JSON_SURROGATE,
    JSON_NUMBER_HUGE,
    JSON_NUMBER_INEXACT,
    JSON_DUPLICATE,
    TEXT_NUL,
    TEXT_HIDDEN,
    TEXT_TOO_LONG,
    LIST_CUT,
    MEMBER_TYPE,
    MEMBER_COERCED,
    MEMBER_NULL,
    MEMBER_SNAKE,
    MEMBER_TWICE,
    CARD_NESTED,
    CARD_NAME,
    CARD_NO_ADDRESS,
    VERSION_UNREADABLE,
    VERSION_PATCH,
    INTERFACE_URL,
    INTERFACE_MEMBER,
    BINDING_SPELLING,
    BINDING_UNKNOWN,
    PROVIDER_TEXT,
    PROVIDER_NAME,
    CAPABILITIES_LIST,
    CAPABILITIES_NAME,
    CAPABILITIES_TOOLS,
    SKILLS_ELSEWHERE,
    EXTENSION_URI,
    SKILL_TEXT,
    SKILL_SHAPE,
    SKILL_NAMELESS,
    SKILL_ID,
    SKILL_NAME,
    MODE,
    MODES_SHAPE,
    SCHEME_LIST,
    SCHEME_KIND,
    SCHEME_LOCATION,
    SCHEME_UNREADABLE,
    SECURITY_SHAPE,
    AUTHENTICATION_LATE,
    SECURITY_ELSEWHERE,
    SIGNATURES_SHAPE,
];
