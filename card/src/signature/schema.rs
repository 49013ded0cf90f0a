//! Schemas of the signed forms: known members, their types, and when a default counts as absent (1.0 §4.4, §4.5,
//! §8.4.1; for 0.3 as the Python SDK 0.3 reads it).

#[derive(Debug)]
pub(super) enum FieldType {
    Text,
    Bool,
    /// Any JSON object, whatever its members.
    AnyObject,
    /// An object with these members.
    Message(&'static [SchemaField]),
    /// A list of values of this type.
    List(&'static FieldType),
    /// An object with any names and values of this type.
    Map(&'static FieldType),
    /// An object whose member `type` determines its other members. The type itself is not in the payload: the SDK
    /// drops values that equal the default of the class selected by the type.
    Typed(&'static [(&'static str, &'static [SchemaField])]),
}

/// Condition under which a member is in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPresence {
    /// REQUIRED: the strict form keeps the member even if it is empty.
    Required,
    /// `optional`: the member is kept if it is set, even to the default.
    Optional,
    /// Any other: the default counts as absent.
    Implicit,
    /// One of several alternatives, of which at most one is set.
    Variant,
    /// This text counts as absent.
    Default(&'static str),
}

#[derive(Debug)]
pub(super) struct SchemaField {
    pub(super) name: &'static str,
    pub(super) field_type: FieldType,
    pub(super) presence: FieldPresence,
}

const fn field(name: &'static str, presence: FieldPresence, kind: FieldType) -> SchemaField {
    SchemaField {
        name,
        field_type: kind,
        presence,
    }
}

const fn required_field(name: &'static str, kind: FieldType) -> SchemaField {
    field(name, FieldPresence::Required, kind)
}

const fn optional_field(name: &'static str, kind: FieldType) -> SchemaField {
    field(name, FieldPresence::Optional, kind)
}

const fn implicit_field(name: &'static str, kind: FieldType) -> SchemaField {
    field(name, FieldPresence::Implicit, kind)
}

const fn variant_field(name: &'static str, fields: &'static [SchemaField]) -> SchemaField {
    field(name, FieldPresence::Variant, FieldType::Message(fields))
}

const TEXT_LIST: FieldType = FieldType::List(&FieldType::Text);
const SCOPE_MAP: FieldType = FieldType::Map(&FieldType::Text);
const REQUIREMENT_LIST: FieldType = FieldType::List(&FieldType::Message(&[implicit_field(
    "schemes",
    FieldType::Map(&FieldType::Message(&[implicit_field("list", TEXT_LIST)])),
)]));

/// `AgentCard` of 1.0, without `signatures`.
pub(super) static CARD_FIELDS_1_0: &[SchemaField] = &[
    required_field("name", FieldType::Text),
    required_field("description", FieldType::Text),
    required_field(
        "supportedInterfaces",
        FieldType::List(&FieldType::Message(&[
            required_field("url", FieldType::Text),
            required_field("protocolBinding", FieldType::Text),
            implicit_field("tenant", FieldType::Text),
            required_field("protocolVersion", FieldType::Text),
        ])),
    ),
    implicit_field(
        "provider",
        FieldType::Message(&[
            required_field("url", FieldType::Text),
            required_field("organization", FieldType::Text),
        ]),
    ),
    required_field("version", FieldType::Text),
    optional_field("documentationUrl", FieldType::Text),
    required_field(
        "capabilities",
        FieldType::Message(&[
            optional_field("streaming", FieldType::Bool),
            optional_field("pushNotifications", FieldType::Bool),
            implicit_field(
                "extensions",
                FieldType::List(&FieldType::Message(&[
                    implicit_field("uri", FieldType::Text),
                    implicit_field("description", FieldType::Text),
                    implicit_field("required", FieldType::Bool),
                    implicit_field("params", FieldType::AnyObject),
                ])),
            ),
            optional_field("extendedAgentCard", FieldType::Bool),
        ]),
    ),
    implicit_field(
        "securitySchemes",
        FieldType::Map(&FieldType::Message(SECURITY_SCHEME_FIELDS_1_0)),
    ),
    implicit_field("securityRequirements", REQUIREMENT_LIST),
    required_field("defaultInputModes", TEXT_LIST),
    required_field("defaultOutputModes", TEXT_LIST),
    required_field(
        "skills",
        FieldType::List(&FieldType::Message(&[
            required_field("id", FieldType::Text),
            required_field("name", FieldType::Text),
            required_field("description", FieldType::Text),
            required_field("tags", TEXT_LIST),
            implicit_field("examples", TEXT_LIST),
            implicit_field("inputModes", TEXT_LIST),
            implicit_field("outputModes", TEXT_LIST),
            implicit_field("securityRequirements", REQUIREMENT_LIST),
        ])),
    ),
    optional_field("iconUrl", FieldType::Text),
];

static SECURITY_SCHEME_FIELDS_1_0: &[SchemaField] = &[
    variant_field(
        "apiKeySecurityScheme",
        &[
            implicit_field("description", FieldType::Text),
            required_field("location", FieldType::Text),
            required_field("name", FieldType::Text),
        ],
    ),
    variant_field(
        "httpAuthSecurityScheme",
        &[
            implicit_field("description", FieldType::Text),
            required_field("scheme", FieldType::Text),
            implicit_field("bearerFormat", FieldType::Text),
        ],
    ),
    variant_field(
        "oauth2SecurityScheme",
        &[
            implicit_field("description", FieldType::Text),
            required_field("flows", FieldType::Message(FLOW_FIELDS_1_0)),
            implicit_field("oauth2MetadataUrl", FieldType::Text),
        ],
    ),
    variant_field(
        "openIdConnectSecurityScheme",
        &[
            implicit_field("description", FieldType::Text),
            required_field("openIdConnectUrl", FieldType::Text),
        ],
    ),
    variant_field(
        "mtlsSecurityScheme",
        &[implicit_field("description", FieldType::Text)],
    ),
];

static FLOW_FIELDS_1_0: &[SchemaField] = &[
    variant_field(
        "authorizationCode",
        &[
            required_field("authorizationUrl", FieldType::Text),
            required_field("tokenUrl", FieldType::Text),
            implicit_field("refreshUrl", FieldType::Text),
            required_field("scopes", SCOPE_MAP),
            implicit_field("pkceRequired", FieldType::Bool),
        ],
    ),
    variant_field(
        "clientCredentials",
        &[
            required_field("tokenUrl", FieldType::Text),
            implicit_field("refreshUrl", FieldType::Text),
            required_field("scopes", SCOPE_MAP),
        ],
    ),
    variant_field(
        "implicit",
        &[
            implicit_field("authorizationUrl", FieldType::Text),
            implicit_field("refreshUrl", FieldType::Text),
            implicit_field("scopes", SCOPE_MAP),
        ],
    ),
    variant_field(
        "password",
        &[
            implicit_field("tokenUrl", FieldType::Text),
            implicit_field("refreshUrl", FieldType::Text),
            implicit_field("scopes", SCOPE_MAP),
        ],
    ),
    variant_field(
        "deviceCode",
        &[
            required_field("deviceAuthorizationUrl", FieldType::Text),
            required_field("tokenUrl", FieldType::Text),
            implicit_field("refreshUrl", FieldType::Text),
            required_field("scopes", SCOPE_MAP),
        ],
    ),
];

const INTERFACE_FIELDS_0_3: &[SchemaField] = &[
    optional_field("transport", FieldType::Text),
    optional_field("url", FieldType::Text),
];
const REQUIREMENT_LIST_0_3: FieldType = FieldType::List(&FieldType::Map(&TEXT_LIST));

/// `AgentCard` of 0.3, without `signatures`.
pub(super) static CARD_FIELDS_0_3: &[SchemaField] = &[
    optional_field(
        "additionalInterfaces",
        FieldType::List(&FieldType::Message(INTERFACE_FIELDS_0_3)),
    ),
    optional_field(
        "capabilities",
        FieldType::Message(&[
            optional_field(
                "extensions",
                FieldType::List(&FieldType::Message(&[
                    optional_field("description", FieldType::Text),
                    optional_field("params", FieldType::AnyObject),
                    optional_field("required", FieldType::Bool),
                    optional_field("uri", FieldType::Text),
                ])),
            ),
            optional_field("pushNotifications", FieldType::Bool),
            optional_field("stateTransitionHistory", FieldType::Bool),
            optional_field("streaming", FieldType::Bool),
        ]),
    ),
    optional_field("defaultInputModes", TEXT_LIST),
    optional_field("defaultOutputModes", TEXT_LIST),
    optional_field("description", FieldType::Text),
    optional_field("documentationUrl", FieldType::Text),
    optional_field("iconUrl", FieldType::Text),
    optional_field("name", FieldType::Text),
    field(
        "preferredTransport",
        FieldPresence::Default("JSONRPC"),
        FieldType::Text,
    ),
    field(
        "protocolVersion",
        FieldPresence::Default("0.3.0"),
        FieldType::Text,
    ),
    optional_field(
        "provider",
        FieldType::Message(&[
            optional_field("organization", FieldType::Text),
            optional_field("url", FieldType::Text),
        ]),
    ),
    optional_field("security", REQUIREMENT_LIST_0_3),
    optional_field("securitySchemes", FieldType::Map(&SECURITY_SCHEME_TYPE_0_3)),
    optional_field(
        "skills",
        FieldType::List(&FieldType::Message(&[
            optional_field("description", FieldType::Text),
            optional_field("examples", TEXT_LIST),
            optional_field("id", FieldType::Text),
            optional_field("inputModes", TEXT_LIST),
            optional_field("name", FieldType::Text),
            optional_field("outputModes", TEXT_LIST),
            optional_field("security", REQUIREMENT_LIST_0_3),
            optional_field("tags", TEXT_LIST),
        ])),
    ),
    optional_field("supportsAuthenticatedExtendedCard", FieldType::Bool),
    optional_field("url", FieldType::Text),
    optional_field("version", FieldType::Text),
];

static SECURITY_SCHEME_TYPE_0_3: FieldType = FieldType::Typed(&[
    (
        "apiKey",
        &[
            optional_field("description", FieldType::Text),
            optional_field("in", FieldType::Text),
            optional_field("name", FieldType::Text),
        ],
    ),
    (
        "http",
        &[
            optional_field("bearerFormat", FieldType::Text),
            optional_field("description", FieldType::Text),
            optional_field("scheme", FieldType::Text),
        ],
    ),
    (
        "oauth2",
        &[
            optional_field("description", FieldType::Text),
            optional_field("flows", FieldType::Message(FLOW_FIELDS_0_3)),
            optional_field("oauth2MetadataUrl", FieldType::Text),
        ],
    ),
    (
        "openIdConnect",
        &[
            optional_field("description", FieldType::Text),
            optional_field("openIdConnectUrl", FieldType::Text),
        ],
    ),
    (
        "mutualTLS",
        &[optional_field("description", FieldType::Text)],
    ),
]);

static FLOW_FIELDS_0_3: &[SchemaField] = &[
    optional_field(
        "authorizationCode",
        FieldType::Message(&[
            optional_field("authorizationUrl", FieldType::Text),
            optional_field("refreshUrl", FieldType::Text),
            optional_field("scopes", SCOPE_MAP),
            optional_field("tokenUrl", FieldType::Text),
        ]),
    ),
    optional_field(
        "clientCredentials",
        FieldType::Message(&[
            optional_field("refreshUrl", FieldType::Text),
            optional_field("scopes", SCOPE_MAP),
            optional_field("tokenUrl", FieldType::Text),
        ]),
    ),
    optional_field(
        "implicit",
        FieldType::Message(&[
            optional_field("authorizationUrl", FieldType::Text),
            optional_field("refreshUrl", FieldType::Text),
            optional_field("scopes", SCOPE_MAP),
        ]),
    ),
    optional_field(
        "password",
        FieldType::Message(&[
            optional_field("refreshUrl", FieldType::Text),
            optional_field("scopes", SCOPE_MAP),
            optional_field("tokenUrl", FieldType::Text),
        ]),
    ),
];
