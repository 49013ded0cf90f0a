//! Policy templates by name.

/// The templates: each is a valid policy whose first line describes it.
pub const TEMPLATES: [(&str, &str); 10] = [
    (
        "allow-list-domains",
        include_str!("../templates/allow-list-domains.cedar"),
    ),
    (
        "demand-enrolled-key",
        include_str!("../templates/demand-enrolled-key.cedar"),
    ),
    (
        "demand-strong-auth",
        include_str!("../templates/demand-strong-auth.cedar"),
    ),
    ("deny-tag", include_str!("../templates/deny-tag.cedar")),
    ("everybody", include_str!("../templates/everybody.cedar")),
    (
        "hold-instructing-texts",
        include_str!("../templates/hold-instructing-texts.cedar"),
    ),
    (
        "internal-endpoints",
        include_str!("../templates/internal-endpoints.cedar"),
    ),
    (
        "quarantine-unsponsored",
        include_str!("../templates/quarantine-unsponsored.cedar"),
    ),
    (
        "registration",
        include_str!("../templates/registration.cedar"),
    ),
    (
        "signed-in-only",
        include_str!("../templates/signed-in-only.cedar"),
    ),
];
