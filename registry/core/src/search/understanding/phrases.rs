//! The table of phrases that stand for a filter.
//!
//! A pattern is a row of places, separated by spaces. A place has alternatives (`a|b`), in which `_` stands for a
//! space and `$NAME` for a list of [`WORD_LISTS`]. `?` after a place makes it optional. A first or last place in
//! brackets must match beside the phrase, but does not belong to it, and punctuation may separate it. A pattern that
//! begins with `,` matches only after punctuation, and one that begins with `^` only at the beginning of the text. One
//! that ends in `.` matches only at the end of a clause, and one that ends in `*` whatever follows it; any other must
//! be followed by a word that does not change its meaning.
//!
//! A phrase is here only if people who write it mean the filter, whatever the rest of the text is about: `streaming`
//! alone may be about films, and `without a password` about a document.

use a2a_registry_domain::facet::Facet;

/// A phrase of the table: its patterns, the filter, and its value.
pub(super) type PhraseRow = (&'static str, Facet, &'static str);

/// Lists of alternatives, by name.
pub(super) static WORD_LISTS: [(&str, &str); 18] = [
    (
        "$AGENT",
        "agent|agents|assistant|assistants|bot|bots|agenten|agente|agentes",
    ),
    ("$A", "a|an|any|the|some|my|your|eine|einen|una|un|une"),
    // Words before what qualifies an agent.
    (
        "$FIND",
        "a|an|any|all|the|some|find|show|list|me|for|need|want|only|which|are|there",
    ),
    // Words between the agent, or the beginning of a clause, and a verb.
    (
        "$SUBJECT",
        "agent|agents|assistant|assistants|bot|bots|that|which|who|it|and|also|can|must|should",
    ),
    (
        "$LOGIN",
        "login|logins|log_in|log-in|logging_in|sign_in|sign-in|signin|signing_in|sign_up|sign-up|signup|signing_up|\
         authentication|auth|api_key|api_keys|api-key|api-keys|apikey|apikeys",
    ),
    (
        "$OHNE",
        "anmeldung|login|authentifizierung|einloggen|anmelden|api-schlüssel|api-key",
    ),
    (
        "$SIN",
        "login|autenticación|autenticacion|iniciar_sesión|iniciar_sesion|inicio_de_sesión|inicio_de_sesion|\
         clave_de_api|clave_api",
    ),
    (
        "$SANS",
        "authentification|login|clé_api|cle_api|clé_d'api|s'authentifier|se_connecter_à_un_compte",
    ),
    ("$OAUTH", "oauth_2.0|oauth_2|oauth2.0|oauth2|oauth"),
    ("$KEY", "api_key|api_keys|api-key|api-keys|apikey"),
    (
        "$TAKES",
        "supports|supporting|uses|requires|requiring|needs|accepts|offers",
    ),
    ("$WITH", "with|using|via|mit|con|avec"),
    ("$JSONRPC", "json-rpc|jsonrpc|json_rpc"),
    ("$REST", "http+json|http/json|http_json"),
    ("$IMAGES", "images|image_files|pictures|photos"),
    ("$VIDEOS", "videos|video_files|video"),
    ("$DOMAIN", "domain|domains"),
    // What may stand before a version of the protocol.
    (
        "$BEFORE",
        "agent|agents|assistant|assistants|bot|bots|with|on|over|for|in|of|by|using|speaks|speaking|supports|\
         supporting|and|the|a2a",
    ),
];

/// The phrases with a fixed value. No phrase sets the lifecycle or the liveness: a value of these would also find
/// agents that a search without them leaves out.
pub(super) static PHRASES: &[PhraseRow] = &[
    // Authentication.
    (
        "without|no $A? $LOGIN required|needed|necessary?",
        Facet::Auth,
        "none",
    ),
    (
        "no|without $LOGIN required|needed|necessary *",
        Facet::Auth,
        "none",
    ),
    (
        "without $A? need_to|need_for|needing_to|having_to|needing|requiring $A? $LOGIN|authenticate",
        Facet::Auth,
        "none",
    ),
    (
        "no need_to|need_for $A? $LOGIN|authenticate",
        Facet::Auth,
        "none",
    ),
    (
        "needs|need|needing|requires|require|requiring no $LOGIN",
        Facet::Auth,
        "none",
    ),
    (
        "does_not|doesn't|doesnt|do_not|don't|dont need|require|ask_for $A? $LOGIN",
        Facet::Auth,
        "none",
    ),
    (
        "no-login|no-auth|no-signup|no-sign-up|login-free|auth-free *",
        Facet::Auth,
        "none",
    ),
    ("ohne $A? $OHNE", Facet::Auth, "none"),
    (
        "keine anmeldung|authentifizierung nötig|notwendig|erforderlich?",
        Facet::Auth,
        "none",
    ),
    ("sin $A? $SIN", Facet::Auth, "none"),
    ("sans $A? $SANS", Facet::Auth, "none"),
    (
        "$WITH|$TAKES $OAUTH authentication|authorization|support?",
        Facet::Auth,
        "oauth2",
    ),
    (
        "[that|which|who|agents] support|use|require|accept $OAUTH",
        Facet::Auth,
        "oauth2",
    ),
    (
        "secured|protected by|with|through $OAUTH",
        Facet::Auth,
        "oauth2",
    ),
    (
        "$WITH|$TAKES $A? $KEY authentication?",
        Facet::Auth,
        "apiKey",
    ),
    (
        "[that|which|who|agents] support|use|require|accept|take $A? $KEY",
        Facet::Auth,
        "apiKey",
    ),
    (
        "$WITH|$TAKES openid_connect|oidc authentication|support?",
        Facet::Auth,
        "openIdConnect",
    ),
    (
        "$WITH|$TAKES|over mtls|mutual_tls|mutual-tls authentication|support?",
        Facet::Auth,
        "mutualTLS",
    ),
    (
        "$WITH|$TAKES $A? bearer_token|bearer_tokens|bearer_auth|bearer_authentication",
        Facet::Auth,
        "http:bearer",
    ),
    (
        "$WITH|$TAKES $A? basic_auth|basic_authentication",
        Facet::Auth,
        "http:basic",
    ),
    // Bindings.
    (
        "speaks|speaking|talks|talking|over|via|supports|supporting|spricht|über|habla|parle grpc",
        Facet::Binding,
        "GRPC",
    ),
    (
        "[that|which|who|can|agents] speak|talk|support|use grpc",
        Facet::Binding,
        "GRPC",
    ),
    (
        "[$AGENT] with|using|on $A? grpc interface|binding|transport|endpoint?",
        Facet::Binding,
        "GRPC",
    ),
    (
        "with|has|having $A? grpc interface|binding|transport|endpoint",
        Facet::Binding,
        "GRPC",
    ),
    ("grpc [agent|agents]", Facet::Binding, "GRPC"),
    (
        "speaks|speaking|talks|talking|over|via|supports|supporting $JSONRPC",
        Facet::Binding,
        "JSONRPC",
    ),
    (
        "[that|which|who|can|agents] speak|talk|support|use $JSONRPC",
        Facet::Binding,
        "JSONRPC",
    ),
    (
        "speaks|speaking|talks|talking|over|via|supports|supporting $REST",
        Facet::Binding,
        "HTTP+JSON",
    ),
    ("speaks|speaking rest", Facet::Binding, "HTTP+JSON"),
    // Capabilities.
    (
        "[$AGENT] with|mit|con|avec streaming",
        Facet::Capability,
        "streaming",
    ),
    ("[$AGENT] streaming .", Facet::Capability, "streaming"),
    (
        "[$AGENT] that|which|who support|supports|offer|offers|can_do streaming",
        Facet::Capability,
        "streaming",
    ),
    (
        "[$AGENT] that|which|who can? stream|streams .",
        Facet::Capability,
        "streaming",
    ),
    ("^ streaming [agent|agents]", Facet::Capability, "streaming"),
    (
        "[$FIND] streaming [agent|agents]",
        Facet::Capability,
        "streaming",
    ),
    (
        "supports|supporting|capable_of streaming .",
        Facet::Capability,
        "streaming",
    ),
    (
        "with|has|having|offers|supports streaming support|responses|answers|replies",
        Facet::Capability,
        "streaming",
    ),
    (
        "streams|stream its|the|their? answers|answer|responses|response|replies|output|results",
        Facet::Capability,
        "streaming",
    ),
    (
        "[$AGENT] with|mit push_notifications|push-notifications",
        Facet::Capability,
        "push_notifications",
    ),
    (
        "supports|supporting push_notifications|push-notifications .",
        Facet::Capability,
        "push_notifications",
    ),
    (
        "[$AGENT] that|which|who support|supports|offer|offers push_notifications",
        Facet::Capability,
        "push_notifications",
    ),
    (
        "with|has|having|offers push_notification|push_notifications support",
        Facet::Capability,
        "push_notifications",
    ),
    (
        "with|has|having|supports|offers $A? extended card|agent_card",
        Facet::Capability,
        "extended_agent_card",
    ),
    // Media types.
    (
        "accepts|accepting $IMAGES|image_input as_input?",
        Facet::InputMode,
        "image/*",
    ),
    ("[$SUBJECT] accept $IMAGES", Facet::InputMode, "image/*"),
    (
        "with|supports|takes image_input|image_inputs",
        Facet::InputMode,
        "image/*",
    ),
    ("takes|reads $IMAGES as_input", Facet::InputMode, "image/*"),
    (
        "accepts|accepting audio|audio_files|audio_input as_input?",
        Facet::InputMode,
        "audio/*",
    ),
    (
        "[$SUBJECT] accept audio|audio_files",
        Facet::InputMode,
        "audio/*",
    ),
    (
        "with|supports|takes audio_input|audio_inputs",
        Facet::InputMode,
        "audio/*",
    ),
    (
        "accepts|accepting $VIDEOS|video_input as_input?",
        Facet::InputMode,
        "video/*",
    ),
    ("[$SUBJECT] accept $VIDEOS", Facet::InputMode, "video/*"),
    (
        "accepts|accepting pdf|pdfs|pdf_files as_input?",
        Facet::InputMode,
        "application/pdf",
    ),
    (
        "[$SUBJECT] accept pdf|pdfs|pdf_files",
        Facet::InputMode,
        "application/pdf",
    ),
    (
        "accepts|accepting json|json_input as_input?",
        Facet::InputMode,
        "application/json",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output $IMAGES",
        Facet::OutputMode,
        "image/*",
    ),
    (
        "returning|outputting $IMAGES|image_output",
        Facet::OutputMode,
        "image/*",
    ),
    (", returns|outputs $IMAGES", Facet::OutputMode, "image/*"),
    (
        "with|supports image_output|image_outputs",
        Facet::OutputMode,
        "image/*",
    ),
    (
        "responds|answers|replies with|in images|pictures",
        Facet::OutputMode,
        "image/*",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output audio|audio_files",
        Facet::OutputMode,
        "audio/*",
    ),
    (
        "returning|outputting audio|audio_files",
        Facet::OutputMode,
        "audio/*",
    ),
    (
        ", returns|outputs audio|audio_files",
        Facet::OutputMode,
        "audio/*",
    ),
    (
        "with|supports audio_output|audio_outputs",
        Facet::OutputMode,
        "audio/*",
    ),
    (
        "responds|answers|replies with|in audio",
        Facet::OutputMode,
        "audio/*",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output $VIDEOS",
        Facet::OutputMode,
        "video/*",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output pdf|pdfs|pdf_files",
        Facet::OutputMode,
        "application/pdf",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output json",
        Facet::OutputMode,
        "application/json",
    ),
    // Trust and signatures.
    (
        "from|of|on|at|with|under $A? proved|proven|verified $DOMAIN",
        Facet::Trust,
        "L1",
    ),
    (
        "from|of|with $A? domain that|which is|was|has_been proved|proven|verified",
        Facet::Trust,
        "L1",
    ),
    ("whose domain is proved|proven|verified", Facet::Trust, "L1"),
    (
        "domain-verified|domain-proved [agent|agents]",
        Facet::Trust,
        "L1",
    ),
    (
        "von|mit einer? verifizierten|bestätigten|geprüften domain",
        Facet::Trust,
        "L1",
    ),
    (
        "de|con un dominio verificado|comprobado",
        Facet::Trust,
        "L1",
    ),
    ("d'un|avec_un domaine vérifié|verifie", Facet::Trust, "L1"),
    (
        "unsigned [agent|agents|agent_card|agent_cards]",
        Facet::Signature,
        "unsigned",
    ),
    (
        "[$AGENT] that_are|that_is|which_are|which_is? unsigned .",
        Facet::Signature,
        "unsigned",
    ),
    (", unsigned .", Facet::Signature, "unsigned"),
    (
        "[$AGENT] that|which|who? is|are? not signed .",
        Facet::Signature,
        "unsigned",
    ),
    (
        "[$AGENT] without $A? signature|signatures .",
        Facet::Signature,
        "unsigned",
    ),
    (
        "signed [agent|agents|agent_card|agent_cards]",
        Facet::Signature,
        "valid",
    ),
    ("[$AGENT] signed .", Facet::Signature, "valid"),
    (", signed .", Facet::Signature, "valid"),
    (
        "[$AGENT] that|which|who is|are|must_be cryptographically? signed .",
        Facet::Signature,
        "valid",
    ),
    (
        "[$AGENT] that|which|who is|are signed by its|their|the domain|publisher|owner|provider",
        Facet::Signature,
        "valid",
    ),
    (
        "[$AGENT] with $A? valid? signature|signatures|signed_card|signed_cards .",
        Facet::Signature,
        "valid",
    ),
    (
        "with $A? signed agent_card|agent_cards",
        Facet::Signature,
        "valid",
    ),
    ("whose card|cards is|are signed", Facet::Signature, "valid"),
];

/// Phrases about a version of the protocol; `$VALUE` stands for its spellings.
pub(super) static VERSION_PATTERNS: [&str; 5] = [
    "a2a protocol|version|protocol_version? $VALUE *",
    "[$BEFORE] protocol version? $VALUE",
    ", protocol version? $VALUE",
    "[$AGENT] with|in|on|of|for? version $VALUE",
    ", version $VALUE .",
];
/// The versions of the protocol, each with its spellings.
pub(super) static VERSIONS: [(&str, &str); 4] = [
    ("0.1", "0.1|v0.1|0.1.0"),
    ("0.2", "0.2|v0.2|0.2.0"),
    ("0.3", "0.3|v0.3|0.3.0"),
    ("1.0", "1.0|v1.0|v1|1.0.0"),
];

/// Phrases about the lowest level of trust; `$VALUE` stands for its spelling.
pub(super) static TRUST_PATTERNS: [&str; 2] = [
    "trust_level|trust at_least|of? $VALUE or_higher|or_better|or_above|or_more? *",
    "at_least trust_level|trust $VALUE *",
];
/// The levels of trust, each with its spelling.
pub(super) static TRUST_LEVELS: [(&str, &str); 4] =
    [("L1", "l1"), ("L2", "l2"), ("L3", "l3"), ("L4", "l4")];
