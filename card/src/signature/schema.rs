//! Schemas of the signed forms: known members, their types, and when a default counts as absent (1.0 §4.4, §4.5,
//! §8.4.1; for 0.3 as the Python SDK 0.3 reads it).

#[derive(Debug)]
pub(super) enum Kind {
    Text,
    Flag,
    /// Any JSON object, whatever its members.
    Json,
    /// An object with these members.
    Message(&'static [Member]),
    /// A list of these.
    List(&'static Kind),
    /// An object with any names and these values.
    Map(&'static Kind),
    /// An object whose member `type` determines its other members. The type itself is not in the payload: the SDK
    /// drops values that equal the default of the class that it chose by it.
    Typed(&'static [(&'static str, &'static [Member])]),
}

/// When a member is in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// REQUIRED: the strict form keeps it even if it is empty.
    Required,
    /// `optional`: kept if it is set, even to the default.
    Optional,
    /// Any other: the default counts as absent.
    Implicit,
    /// One of several alternatives, of which at most one is set.
    Variant,
    /// This text counts as absent.
    Default(&'static str),
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) presence: Presence,
}

const fn member(name: &'static str, presence: Presence, kind: Kind) -> Member {
    Member {
        name,
        kind,
        presence,
    }
}

const fn required(name: &'static str, kind: Kind) -> Member {
    member(name, Presence::Required, kind)
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    member(name, Presence::Optional, kind)
}

const fn implicit(name: &'static str, kind: Kind) -> Member {
    member(name, Presence::Implicit, kind)
}

const fn variant(name: &'static str, members: &'static [Member]) -> Member {
    member(name, Presence::Variant, Kind::Message(members))
}

const TEXTS: Kind = Kind::List(&Kind::Text);
const SCOPES: Kind = Kind::Map(&Kind::Text);
const REQUIREMENTS: Kind = Kind::List(&Kind::Message(&[implicit(
    "schemes",
    Kind::Map(&Kind::Message(&[implicit("list", TEXTS)])),
)]));

/// `AgentCard` of 1.0, without `signatures`.
pub(super) static CARD_1_0: &[Member] = &[
    required("name", Kind::Text),
    required("description", Kind::Text),
    required(
        "supportedInterfaces",
        Kind::List(&Kind::Message(&[
            required("url", Kind::Text),
            required("protocolBinding", Kind::Text),
            implicit("tenant", Kind::Text),
            required("protocolVersion", Kind::Text),
        ])),
    ),
    implicit(
        "provider",
        Kind::Message(&[
            required("url", Kind::Text),
            required("organization", Kind::Text),
        ]),
    ),
    required("version", Kind::Text),
    optional("documentationUrl", Kind::Text),
    required(
        "capabilities",
        Kind::Message(&[
            optional("streaming", Kind::Flag),
            optional("pushNotifications", Kind::Flag),
            implicit(
                "extensions",
                Kind::List(&Kind::Message(&[
                    implicit("uri", Kind::Text),
                    implicit("description", Kind::Text),
                    implicit("required", Kind::Flag),
                    implicit("params", Kind::Json),
                ])),
            ),
            optional("extendedAgentCard", Kind::Flag),
        ]),
    ),
    implicit(
        "securitySchemes",
        Kind::Map(&Kind::Message(SECURITY_SCHEME_1_0)),
    ),
    implicit("securityRequirements", REQUIREMENTS),
    required("defaultInputModes", TEXTS),
    required("defaultOutputModes", TEXTS),
    required(
        "skills",
        Kind::List(&Kind::Message(&[
            required("id", Kind::Text),
            required("name", Kind::Text),
            required("description", Kind::Text),
            required("tags", TEXTS),
            implicit("examples", TEXTS),
            implicit("inputModes", TEXTS),
            implicit("outputModes", TEXTS),
            implicit("securityRequirements", REQUIREMENTS),
        ])),
    ),
    optional("iconUrl", Kind::Text),
];

static SECURITY_SCHEME_1_0: &[Member] = &[
    variant(
        "apiKeySecurityScheme",
        &[
            implicit("description", Kind::Text),
            required("location", Kind::Text),
            required("name", Kind::Text),
        ],
    ),
    variant(
        "httpAuthSecurityScheme",
        &[
            implicit("description", Kind::Text),
            required("scheme", Kind::Text),
            implicit("bearerFormat", Kind::Text),
        ],
    ),
    variant(
        "oauth2SecurityScheme",
        &[
            implicit("description", Kind::Text),
            required("flows", Kind::Message(FLOWS_1_0)),
            implicit("oauth2MetadataUrl", Kind::Text),
        ],
    ),
    variant(
        "openIdConnectSecurityScheme",
        &[
            implicit("description", Kind::Text),
            required("openIdConnectUrl", Kind::Text),
        ],
    ),
    variant("mtlsSecurityScheme", &[implicit("description", Kind::Text)]),
];

static FLOWS_1_0: &[Member] = &[
    variant(
        "authorizationCode",
        &[
            required("authorizationUrl", Kind::Text),
            required("tokenUrl", Kind::Text),
            implicit("refreshUrl", Kind::Text),
            required("scopes", SCOPES),
            implicit("pkceRequired", Kind::Flag),
        ],
    ),
    variant(
        "clientCredentials",
        &[
            required("tokenUrl", Kind::Text),
            implicit("refreshUrl", Kind::Text),
            required("scopes", SCOPES),
        ],
    ),
    variant(
        "implicit",
        &[
            implicit("authorizationUrl", Kind::Text),
            implicit("refreshUrl", Kind::Text),
            implicit("scopes", SCOPES),
        ],
    ),
    variant(
        "password",
        &[
            implicit("tokenUrl", Kind::Text),
            implicit("refreshUrl", Kind::Text),
            implicit("scopes", SCOPES),
        ],
    ),
    variant(
        "deviceCode",
        &[
            required("deviceAuthorizationUrl", Kind::Text),
            required("tokenUrl", Kind::Text),
            implicit("refreshUrl", Kind::Text),
            required("scopes", SCOPES),
        ],
    ),
];

const INTERFACE_0_3: &[Member] = &[
    optional("transport", Kind::Text),
    optional("url", Kind::Text),
];
const SECURITY_0_3: Kind = Kind::List(&Kind::Map(&TEXTS));

/// `AgentCard` of 0.3, without `signatures`.
pub(super) static CARD_0_3: &[Member] = &[
    optional(
        "additionalInterfaces",
        Kind::List(&Kind::Message(INTERFACE_0_3)),
    ),
    optional(
        "capabilities",
        Kind::Message(&[
            optional(
                "extensions",
                Kind::List(&Kind::Message(&[
                    optional("description", Kind::Text),
                    optional("params", Kind::Json),
                    optional("required", Kind::Flag),
                    optional("uri", Kind::Text),
                ])),
            ),
            optional("pushNotifications", Kind::Flag),
            optional("stateTransitionHistory", Kind::Flag),
            optional("streaming", Kind::Flag),
        ]),
    ),
    optional("defaultInputModes", TEXTS),
    optional("defaultOutputModes", TEXTS),
    optional("description", Kind::Text),
    optional("documentationUrl", Kind::Text),
    optional("iconUrl", Kind::Text),
    optional("name", Kind::Text),
    member(
        "preferredTransport",
        Presence::Default("JSONRPC"),
        Kind::Text,
    ),
    member("protocolVersion", Presence::Default("0.3.0"), Kind::Text),
    optional(
        "provider",
        Kind::Message(&[
            optional("organization", Kind::Text),
            optional("url", Kind::Text),
        ]),
    ),
    optional("security", SECURITY_0_3),
    optional("securitySchemes", Kind::Map(&SECURITY_SCHEME_0_3)),
    optional(
        "skills",
        Kind::List(&Kind::Message(&[
            optional("description", Kind::Text),
            optional("examples", TEXTS),
            optional("id", Kind::Text),
            optional("inputModes", TEXTS),
            optional("name", Kind::Text),
            optional("outputModes", TEXTS),
            optional("security", SECURITY_0_3),
            optional("tags", TEXTS),
        ])),
    ),
    optional("supportsAuthenticatedExtendedCard", Kind::Flag),
    optional("url", Kind::Text),
    optional("version", Kind::Text),
];

static SECURITY_SCHEME_0_3: Kind = Kind::Typed(&[
    (
        "apiKey",
        &[
            optional("description", Kind::Text),
            optional("in", Kind::Text),
            optional("name", Kind::Text),
        ],
    ),
    (
        "http",
        &[
            optional("bearerFormat", Kind::Text),
            optional("description", Kind::Text),
            optional("scheme", Kind::Text),
        ],
    ),
    (
        "oauth2",
        &[
            optional("description", Kind::Text),
            optional("flows", Kind::Message(FLOWS_0_3)),
            optional("oauth2MetadataUrl", Kind::Text),
        ],
    ),
    (
        "openIdConnect",
        &[
            optional("description", Kind::Text),
            optional("openIdConnectUrl", Kind::Text),
        ],
    ),
    ("mutualTLS", &[optional("description", Kind::Text)]),
]);

static FLOWS_0_3: &[Member] = &[
    optional(
        "authorizationCode",
        Kind::Message(&[
            optional("authorizationUrl", Kind::Text),
            optional("refreshUrl", Kind::Text),
            optional("scopes", SCOPES),
            optional("tokenUrl", Kind::Text),
        ]),
    ),
    optional(
        "clientCredentials",
        Kind::Message(&[
            optional("refreshUrl", Kind::Text),
            optional("scopes", SCOPES),
            optional("tokenUrl", Kind::Text),
        ]),
    ),
    optional(
        "implicit",
        Kind::Message(&[
            optional("authorizationUrl", Kind::Text),
            optional("refreshUrl", Kind::Text),
            optional("scopes", SCOPES),
        ]),
    ),
    optional(
        "password",
        Kind::Message(&[
            optional("refreshUrl", Kind::Text),
            optional("scopes", SCOPES),
            optional("tokenUrl", Kind::Text),
        ]),
    ),
];
