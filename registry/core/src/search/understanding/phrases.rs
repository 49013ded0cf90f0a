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

use a2a_registry_domain::facet::Facet::{
    self, Auth, Binding, Capability, InputMode, OutputMode, Signature, Trust,
};

/// A phrase of the table: its patterns, the filter, and its value.
pub(super) type PhraseRow = (&'static str, Facet, &'static str);

/// Lists of alternatives, by name.
pub(super) static WORD_LISTS: [(&str, &str); 19] = [
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
    // What a task may be done without too, as in `open a file without a password`.
    (
        "$ACCOUNT",
        "account|accounts|token|tokens|credentials|registration|password|key|keys",
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
        Auth,
        "none",
    ),
    (
        "no|without $LOGIN required|needed|necessary *",
        Auth,
        "none",
    ),
    (
        "without $A? need_to|need_for|needing_to|having_to|needing|requiring $A? $LOGIN|authenticate",
        Auth,
        "none",
    ),
    ("no need_to|need_for $A? $LOGIN|authenticate", Auth, "none"),
    (
        "needs|need|needing|requires|require|requiring no $LOGIN|$ACCOUNT",
        Auth,
        "none",
    ),
    (
        "does_not|doesn't|doesnt|do_not|don't|dont need|require|ask_for $A? $LOGIN",
        Auth,
        "none",
    ),
    ("no $ACCOUNT required|needed|necessary", Auth, "none"),
    ("without $A account .", Auth, "none"),
    (
        "no-login|no-auth|no-signup|no-sign-up|login-free|auth-free *",
        Auth,
        "none",
    ),
    ("ohne $A? $OHNE", Auth, "none"),
    (
        "keine anmeldung|authentifizierung nötig|notwendig|erforderlich?",
        Auth,
        "none",
    ),
    ("sin $A? $SIN", Auth, "none"),
    ("sans $A? $SANS", Auth, "none"),
    (
        "$WITH|$TAKES $OAUTH authentication|authorization|support?",
        Auth,
        "oauth2",
    ),
    (
        "[that|which|who|agents] support|use|require|accept $OAUTH",
        Auth,
        "oauth2",
    ),
    ("secured|protected by|with|through $OAUTH", Auth, "oauth2"),
    ("$WITH|$TAKES $A? $KEY authentication?", Auth, "apiKey"),
    (
        "[that|which|who|agents] support|use|require|accept|take $A? $KEY",
        Auth,
        "apiKey",
    ),
    (
        "$WITH|$TAKES openid_connect|oidc authentication|support?",
        Auth,
        "openIdConnect",
    ),
    (
        "$WITH|$TAKES|over mtls|mutual_tls|mutual-tls authentication|support?",
        Auth,
        "mutualTLS",
    ),
    (
        "$WITH|$TAKES $A? bearer_token|bearer_tokens|bearer_auth|bearer_authentication",
        Auth,
        "http:bearer",
    ),
    (
        "$WITH|$TAKES $A? basic_auth|basic_authentication",
        Auth,
        "http:basic",
    ),
    // Bindings.
    (
        "speaks|speaking|talks|talking|over|via|supports|supporting|spricht|über|habla|parle grpc",
        Binding,
        "GRPC",
    ),
    (
        "[that|which|who|can|agents] speak|talk|support|use grpc",
        Binding,
        "GRPC",
    ),
    (
        "[$AGENT] with|using|on $A? grpc interface|binding|transport|endpoint?",
        Binding,
        "GRPC",
    ),
    (
        "with|has|having $A? grpc interface|binding|transport|endpoint",
        Binding,
        "GRPC",
    ),
    ("grpc [agent|agents]", Binding, "GRPC"),
    ("grpc binding|transport", Binding, "GRPC"),
    ("$JSONRPC binding|transport", Binding, "JSONRPC"),
    ("$REST binding|transport", Binding, "HTTP+JSON"),
    (
        "speaks|speaking|talks|talking|over|via|supports|supporting $JSONRPC",
        Binding,
        "JSONRPC",
    ),
    (
        "[that|which|who|can|agents] speak|talk|support|use $JSONRPC",
        Binding,
        "JSONRPC",
    ),
    (
        "speaks|speaking|talks|talking|over|via|supports|supporting $REST",
        Binding,
        "HTTP+JSON",
    ),
    ("speaks|speaking rest", Binding, "HTTP+JSON"),
    // Capabilities.
    (
        "[$AGENT] with|mit|con|avec streaming",
        Capability,
        "streaming",
    ),
    ("[$AGENT] streaming .", Capability, "streaming"),
    (", with streaming .", Capability, "streaming"),
    (
        ", with push_notifications .",
        Capability,
        "push_notifications",
    ),
    (
        "[$AGENT] that|which|who support|supports|offer|offers|can_do streaming",
        Capability,
        "streaming",
    ),
    (
        "[$AGENT] that|which|who can? stream|streams .",
        Capability,
        "streaming",
    ),
    ("^ streaming [agent|agents]", Capability, "streaming"),
    ("[$FIND] streaming [agent|agents]", Capability, "streaming"),
    (
        "supports|supporting|capable_of streaming .",
        Capability,
        "streaming",
    ),
    (
        "with|has|having|offers|supports streaming support|responses|answers|replies",
        Capability,
        "streaming",
    ),
    (
        "streams|stream its|the|their? answers|answer|responses|response|replies|output|results",
        Capability,
        "streaming",
    ),
    (
        "[$AGENT] with|mit push_notifications|push-notifications",
        Capability,
        "push_notifications",
    ),
    (
        "supports|supporting push_notifications|push-notifications .",
        Capability,
        "push_notifications",
    ),
    (
        "[$AGENT] that|which|who support|supports|offer|offers push_notifications",
        Capability,
        "push_notifications",
    ),
    (
        "with|has|having|offers push_notification|push_notifications support",
        Capability,
        "push_notifications",
    ),
    (
        "with|has|having|supports|offers $A? extended card|agent_card",
        Capability,
        "extended_agent_card",
    ),
    // Media types.
    (
        "accepts|accepting $IMAGES|image_input as_input?",
        InputMode,
        "image/*",
    ),
    ("[$SUBJECT] accept $IMAGES", InputMode, "image/*"),
    (
        "with|supports|takes image_input|image_inputs",
        InputMode,
        "image/*",
    ),
    ("takes|reads $IMAGES as_input", InputMode, "image/*"),
    (
        "accepts|accepting audio|audio_files|audio_input as_input?",
        InputMode,
        "audio/*",
    ),
    ("[$SUBJECT] accept audio|audio_files", InputMode, "audio/*"),
    (
        "with|supports|takes audio_input|audio_inputs",
        InputMode,
        "audio/*",
    ),
    (
        "accepts|accepting $VIDEOS|video_input as_input?",
        InputMode,
        "video/*",
    ),
    ("[$SUBJECT] accept $VIDEOS", InputMode, "video/*"),
    (
        "accepts|accepting|takes pdf|pdfs|pdf_files as_input?",
        InputMode,
        "application/pdf",
    ),
    (
        "[$SUBJECT] accept pdf|pdfs|pdf_files",
        InputMode,
        "application/pdf",
    ),
    (
        "accepts|accepting|takes csv|csv_files as_input?",
        InputMode,
        "text/csv",
    ),
    (
        "accepts|accepting|takes json|json_input as_input?",
        InputMode,
        "application/json",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output $IMAGES",
        OutputMode,
        "image/*",
    ),
    (
        "returning|outputting $IMAGES|image_output",
        OutputMode,
        "image/*",
    ),
    (", returns|outputs $IMAGES", OutputMode, "image/*"),
    (
        "with|supports image_output|image_outputs",
        OutputMode,
        "image/*",
    ),
    (
        "responds|answers|replies with|in images|pictures",
        OutputMode,
        "image/*",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output audio|audio_files",
        OutputMode,
        "audio/*",
    ),
    (
        "returning|outputting audio|audio_files",
        OutputMode,
        "audio/*",
    ),
    (", returns|outputs audio|audio_files", OutputMode, "audio/*"),
    (
        "with|supports audio_output|audio_outputs",
        OutputMode,
        "audio/*",
    ),
    (
        "responds|answers|replies with|in audio",
        OutputMode,
        "audio/*",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output $VIDEOS",
        OutputMode,
        "video/*",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output pdf|pdfs|pdf_files",
        OutputMode,
        "application/pdf",
    ),
    (
        "[$SUBJECT] returns|return|outputs|output json",
        OutputMode,
        "application/json",
    ),
    // Trust and signatures.
    (
        "from|of|on|at|with|under $A? proved|proven|verified $DOMAIN",
        Trust,
        "L1",
    ),
    (
        "from|of|with $A? domain that|which is|was|has_been proved|proven|verified",
        Trust,
        "L1",
    ),
    ("whose domain is proved|proven|verified", Trust, "L1"),
    ("domain-verified|domain-proved [agent|agents]", Trust, "L1"),
    (
        "von|mit einer? verifizierten|bestätigten|geprüften domain",
        Trust,
        "L1",
    ),
    ("de|con un dominio verificado|comprobado", Trust, "L1"),
    ("d'un|avec_un domaine vérifié|verifie", Trust, "L1"),
    (
        "unsigned [agent|agents|agent_card|agent_cards]",
        Signature,
        "unsigned",
    ),
    (
        "[$AGENT] that_are|that_is|which_are|which_is? unsigned .",
        Signature,
        "unsigned",
    ),
    (", unsigned .", Signature, "unsigned"),
    (
        "[$AGENT] that|which|who? is|are? not signed .",
        Signature,
        "unsigned",
    ),
    (
        "[$AGENT] without $A? signature|signatures .",
        Signature,
        "unsigned",
    ),
    (
        "signed [agent|agents|agent_card|agent_cards]",
        Signature,
        "valid",
    ),
    ("[$AGENT] signed .", Signature, "valid"),
    (", signed .", Signature, "valid"),
    (
        "[$AGENT] that|which|who is|are|must_be cryptographically? signed .",
        Signature,
        "valid",
    ),
    (
        "[$AGENT] that|which|who is|are signed by its|their|the domain|publisher|owner|provider",
        Signature,
        "valid",
    ),
    (
        "[$AGENT] with $A? valid? signature|signatures|signed_card|signed_cards .",
        Signature,
        "valid",
    ),
    ("with $A? signed agent_card|agent_cards", Signature, "valid"),
    ("whose card|cards is|are signed", Signature, "valid"),
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
