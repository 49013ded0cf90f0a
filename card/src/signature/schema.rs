//! Schemas of the signed forms: known members, their types, and when a default counts as absent (1.0 §4.4, §4.5,
//! §8.4.1; for 0.3 as the Python SDK 0.3 reads it).

#[derive(Debug)]
pub(super) enum SchemaFieldType {
    Text,
    Bool,
    /// Any JSON object, whatever its members.
    AnyObject,
    /// An object with these members.
    Message(&'static [SchemaField]),
    /// A list of values of this type.
    List(&'static SchemaFieldType),
    /// An object with any names and values of this type.
    Map(&'static SchemaFieldType),
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
    pub(super) field_type: SchemaFieldType,
    pub(super) presence: FieldPresence,
}

const fn new_schema_field(
    name: &'static str,
    presence: FieldPresence,
    kind: SchemaFieldType,
) -> SchemaField {
    SchemaField {
        name,
        field_type: kind,
        presence,
    }
}

const fn required_schema_field(name: &'static str, kind: SchemaFieldType) -> SchemaField {
    new_schema_field(name, FieldPresence::Required, kind)
}

const fn optional_schema_field(name: &'static str, kind: SchemaFieldType) -> SchemaField {
    new_schema_field(name, FieldPresence::Optional, kind)
}

const fn implicit_schema_field(name: &'static str, kind: SchemaFieldType) -> SchemaField {
    new_schema_field(name, FieldPresence::Implicit, kind)
}

const fn variant_schema_field(name: &'static str, fields: &'static [SchemaField]) -> SchemaField {
    new_schema_field(
        name,
        FieldPresence::Variant,
        SchemaFieldType::Message(fields),
    )
}

const TEXT_LIST: SchemaFieldType = SchemaFieldType::List(&SchemaFieldType::Text);
const SCOPE_MAP: SchemaFieldType = SchemaFieldType::Map(&SchemaFieldType::Text);
const REQUIREMENT_LIST: SchemaFieldType =
    SchemaFieldType::List(&SchemaFieldType::Message(&[implicit_schema_field(
        "schemes",
        SchemaFieldType::Map(&SchemaFieldType::Message(&[implicit_schema_field(
            "list", TEXT_LIST,
        )])),
    )]));

/// `AgentCard` of 1.0, without `signatures`.
pub(super) static CARD_FIELDS_1_0: &[SchemaField] = &[
    required_schema_field("name", SchemaFieldType::Text),
    required_schema_field("description", SchemaFieldType::Text),
    required_schema_field(
        "supportedInterfaces",
        SchemaFieldType::List(&SchemaFieldType::Message(&[
            required_schema_field("url", SchemaFieldType::Text),
            required_schema_field("protocolBinding", SchemaFieldType::Text),
            implicit_schema_field("tenant", SchemaFieldType::Text),
            required_schema_field("protocolVersion", SchemaFieldType::Text),
        ])),
    ),
    implicit_schema_field(
        "provider",
        SchemaFieldType::Message(&[
            required_schema_field("url", SchemaFieldType::Text),
            required_schema_field("organization", SchemaFieldType::Text),
        ]),
    ),
    required_schema_field("version", SchemaFieldType::Text),
    optional_schema_field("documentationUrl", SchemaFieldType::Text),
    required_schema_field(
        "capabilities",
        SchemaFieldType::Message(&[
            optional_schema_field("streaming", SchemaFieldType::Bool),
            optional_schema_field("pushNotifications", SchemaFieldType::Bool),
            implicit_schema_field(
                "extensions",
                SchemaFieldType::List(&SchemaFieldType::Message(&[
                    implicit_schema_field("uri", SchemaFieldType::Text),
                    implicit_schema_field("description", SchemaFieldType::Text),
                    implicit_schema_field("required", SchemaFieldType::Bool),
                    implicit_schema_field("params", SchemaFieldType::AnyObject),
                ])),
            ),
            optional_schema_field("extendedAgentCard", SchemaFieldType::Bool),
        ]),
    ),
    implicit_schema_field(
        "securitySchemes",
        SchemaFieldType::Map(&SchemaFieldType::Message(SECURITY_SCHEME_FIELDS_1_0)),
    ),
    implicit_schema_field("securityRequirements", REQUIREMENT_LIST),
    required_schema_field("defaultInputModes", TEXT_LIST),
    required_schema_field("defaultOutputModes", TEXT_LIST),
    required_schema_field(
        "skills",
        SchemaFieldType::List(&SchemaFieldType::Message(&[
            required_schema_field("id", SchemaFieldType::Text),
            required_schema_field("name", SchemaFieldType::Text),
            required_schema_field("description", SchemaFieldType::Text),
            required_schema_field("tags", TEXT_LIST),
            implicit_schema_field("examples", TEXT_LIST),
            implicit_schema_field("inputModes", TEXT_LIST),
            implicit_schema_field("outputModes", TEXT_LIST),
            implicit_schema_field("securityRequirements", REQUIREMENT_LIST),
        ])),
    ),
    optional_schema_field("iconUrl", SchemaFieldType::Text),
];

static SECURITY_SCHEME_FIELDS_1_0: &[SchemaField] = &[
    variant_schema_field(
        "apiKeySecurityScheme",
        &[
            implicit_schema_field("description", SchemaFieldType::Text),
            required_schema_field("location", SchemaFieldType::Text),
            required_schema_field("name", SchemaFieldType::Text),
        ],
    ),
    variant_schema_field(
        "httpAuthSecurityScheme",
        &[
            implicit_schema_field("description", SchemaFieldType::Text),
            required_schema_field("scheme", SchemaFieldType::Text),
            implicit_schema_field("bearerFormat", SchemaFieldType::Text),
        ],
    ),
    variant_schema_field(
        "oauth2SecurityScheme",
        &[
            implicit_schema_field("description", SchemaFieldType::Text),
            required_schema_field("flows", SchemaFieldType::Message(FLOW_FIELDS_1_0)),
            implicit_schema_field("oauth2MetadataUrl", SchemaFieldType::Text),
        ],
    ),
    variant_schema_field(
        "openIdConnectSecurityScheme",
        &[
            implicit_schema_field("description", SchemaFieldType::Text),
            required_schema_field("openIdConnectUrl", SchemaFieldType::Text),
        ],
    ),
    variant_schema_field(
        "mtlsSecurityScheme",
        &[implicit_schema_field("description", SchemaFieldType::Text)],
    ),
];

static FLOW_FIELDS_1_0: &[SchemaField] = &[
    variant_schema_field(
        "authorizationCode",
        &[
            required_schema_field("authorizationUrl", SchemaFieldType::Text),
            required_schema_field("tokenUrl", SchemaFieldType::Text),
            implicit_schema_field("refreshUrl", SchemaFieldType::Text),
            required_schema_field("scopes", SCOPE_MAP),
            implicit_schema_field("pkceRequired", SchemaFieldType::Bool),
        ],
    ),
    variant_schema_field(
        "clientCredentials",
        &[
            required_schema_field("tokenUrl", SchemaFieldType::Text),
            implicit_schema_field("refreshUrl", SchemaFieldType::Text),
            required_schema_field("scopes", SCOPE_MAP),
        ],
    ),
    variant_schema_field(
        "implicit",
        &[
            implicit_schema_field("authorizationUrl", SchemaFieldType::Text),
            implicit_schema_field("refreshUrl", SchemaFieldType::Text),
            implicit_schema_field("scopes", SCOPE_MAP),
        ],
    ),
    variant_schema_field(
        "password",
        &[
            implicit_schema_field("tokenUrl", SchemaFieldType::Text),
            implicit_schema_field("refreshUrl", SchemaFieldType::Text),
            implicit_schema_field("scopes", SCOPE_MAP),
        ],
    ),
    variant_schema_field(
        "deviceCode",
        &[
            required_schema_field("deviceAuthorizationUrl", SchemaFieldType::Text),
            required_schema_field("tokenUrl", SchemaFieldType::Text),
            implicit_schema_field("refreshUrl", SchemaFieldType::Text),
            required_schema_field("scopes", SCOPE_MAP),
        ],
    ),
];

const INTERFACE_FIELDS_0_3: &[SchemaField] = &[
    optional_schema_field("transport", SchemaFieldType::Text),
    optional_schema_field("url", SchemaFieldType::Text),
];
const REQUIREMENT_LIST_0_3: SchemaFieldType =
    SchemaFieldType::List(&SchemaFieldType::Map(&TEXT_LIST));

/// `AgentCard` of 0.3, without `signatures`.
pub(super) static CARD_FIELDS_0_3: &[SchemaField] = &[
    optional_schema_field(
        "additionalInterfaces",
        SchemaFieldType::List(&SchemaFieldType::Message(INTERFACE_FIELDS_0_3)),
    ),
    optional_schema_field(
        "capabilities",
        SchemaFieldType::Message(&[
            optional_schema_field(
                "extensions",
                SchemaFieldType::List(&SchemaFieldType::Message(&[
                    optional_schema_field("description", SchemaFieldType::Text),
                    optional_schema_field("params", SchemaFieldType::AnyObject),
                    optional_schema_field("required", SchemaFieldType::Bool),
                    optional_schema_field("uri", SchemaFieldType::Text),
                ])),
            ),
            optional_schema_field("pushNotifications", SchemaFieldType::Bool),
            optional_schema_field("stateTransitionHistory", SchemaFieldType::Bool),
            optional_schema_field("streaming", SchemaFieldType::Bool),
        ]),
    ),
    optional_schema_field("defaultInputModes", TEXT_LIST),
    optional_schema_field("defaultOutputModes", TEXT_LIST),
    optional_schema_field("description", SchemaFieldType::Text),
    optional_schema_field("documentationUrl", SchemaFieldType::Text),
    optional_schema_field("iconUrl", SchemaFieldType::Text),
    optional_schema_field("name", SchemaFieldType::Text),
    new_schema_field(
        "preferredTransport",
        FieldPresence::Default("JSONRPC"),
        SchemaFieldType::Text,
    ),
    new_schema_field(
        "protocolVersion",
        FieldPresence::Default("0.3.0"),
        SchemaFieldType::Text,
    ),
    optional_schema_field(
        "provider",
        SchemaFieldType::Message(&[
            optional_schema_field("organization", SchemaFieldType::Text),
            optional_schema_field("url", SchemaFieldType::Text),
        ]),
    ),
    optional_schema_field("security", REQUIREMENT_LIST_0_3),
    optional_schema_field(
        "securitySchemes",
        SchemaFieldType::Map(&SECURITY_SCHEME_TYPE_0_3),
    ),
    optional_schema_field(
        "skills",
        SchemaFieldType::List(&SchemaFieldType::Message(&[
            optional_schema_field("description", SchemaFieldType::Text),
            optional_schema_field("examples", TEXT_LIST),
            optional_schema_field("id", SchemaFieldType::Text),
            optional_schema_field("inputModes", TEXT_LIST),
            optional_schema_field("name", SchemaFieldType::Text),
            optional_schema_field("outputModes", TEXT_LIST),
            optional_schema_field("security", REQUIREMENT_LIST_0_3),
            optional_schema_field("tags", TEXT_LIST),
        ])),
    ),
    optional_schema_field("supportsAuthenticatedExtendedCard", SchemaFieldType::Bool),
    optional_schema_field("url", SchemaFieldType::Text),
    optional_schema_field("version", SchemaFieldType::Text),
];

static SECURITY_SCHEME_TYPE_0_3: SchemaFieldType = SchemaFieldType::Typed(&[
    (
        "apiKey",
        &[
            optional_schema_field("description", SchemaFieldType::Text),
            optional_schema_field("in", SchemaFieldType::Text),
            optional_schema_field("name", SchemaFieldType::Text),
        ],
    ),
    (
        "http",
        &[
            optional_schema_field("bearerFormat", SchemaFieldType::Text),
            optional_schema_field("description", SchemaFieldType::Text),
            optional_schema_field("scheme", SchemaFieldType::Text),
        ],
    ),
    (
        "oauth2",
        &[
            optional_schema_field("description", SchemaFieldType::Text),
            optional_schema_field("flows", SchemaFieldType::Message(FLOW_FIELDS_0_3)),
            optional_schema_field("oauth2MetadataUrl", SchemaFieldType::Text),
        ],
    ),
    (
        "openIdConnect",
        &[
            optional_schema_field("description", SchemaFieldType::Text),
            optional_schema_field("openIdConnectUrl", SchemaFieldType::Text),
        ],
    ),
    (
        "mutualTLS",
        &[optional_schema_field("description", SchemaFieldType::Text)],
    ),
]);

static FLOW_FIELDS_0_3: &[SchemaField] = &[
    optional_schema_field(
        "authorizationCode",
        SchemaFieldType::Message(&[
            optional_schema_field("authorizationUrl", SchemaFieldType::Text),
            optional_schema_field("refreshUrl", SchemaFieldType::Text),
            optional_schema_field("scopes", SCOPE_MAP),
            optional_schema_field("tokenUrl", SchemaFieldType::Text),
        ]),
    ),
    optional_schema_field(
        "clientCredentials",
        SchemaFieldType::Message(&[
            optional_schema_field("refreshUrl", SchemaFieldType::Text),
            optional_schema_field("scopes", SCOPE_MAP),
            optional_schema_field("tokenUrl", SchemaFieldType::Text),
        ]),
    ),
    optional_schema_field(
        "implicit",
        SchemaFieldType::Message(&[
            optional_schema_field("authorizationUrl", SchemaFieldType::Text),
            optional_schema_field("refreshUrl", SchemaFieldType::Text),
            optional_schema_field("scopes", SCOPE_MAP),
        ]),
    ),
    optional_schema_field(
        "password",
        SchemaFieldType::Message(&[
            optional_schema_field("refreshUrl", SchemaFieldType::Text),
            optional_schema_field("scopes", SCOPE_MAP),
            optional_schema_field("tokenUrl", SchemaFieldType::Text),
        ]),
    ),
];
