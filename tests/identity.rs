//! Signing in with a real identity provider, and its access tokens: who is admitted, with which role, and what is
//! rejected.

mod access_tokens;
mod attempts;
mod browser_sign_in;
mod departures;
mod log_of_a_run;
mod provider_callbacks;
mod rejected_sign_ins;
mod selected_groups;
mod subjects;

use serde_json::{Value, json};

use crate::support::identity_provider::IdentityProvider;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// Who may enter, and as what.
const STAFF: &str = "require = { claim = \"groups\", values = [\"staff\", \"robots\"] }\n\
    roles = { leads = [\"curator\"], robots = [\"publisher\"] }";

/// A registry with one provider, `corp`, which knows a few people and services.
async fn with_corp() -> (IdentityProvider, ServingRegistry) {
    with_corp_in(RegistrySetup::new()).await
}

/// The same registry of this setup.
async fn with_corp_in(setup: RegistrySetup) -> (IdentityProvider, ServingRegistry) {
    let corp = IdentityProvider::start(setup.scratch_folder(), "corp").await;
    corp.set_parts(json!({
        "people": {
            "ann": {"preferred_username": "ann", "groups": ["staff", "leads"]},
            "bob": {"preferred_username": "bob", "groups": ["staff"]},
            "eve": {"preferred_username": "admin", "groups": ["visitors"]},
        },
        "services": {"pipeline": {"groups": ["robots"]}, "stranger": {"groups": []}},
    }))
    .await;
    let setup = setup
        .allow_loopback_identity()
        .add_identity_provider("corp", &corp, STAFF);
    let registry = setup.start().await;
    corp.allow_callback_of(&registry.url, "corp").await;
    (corp, registry)
}

/// The account of that name, as an admin sees it.
async fn account(registry: &ServingRegistry, name: &str) -> Value {
    registry
        .read_as_admin(&format!("/v1/accounts/{name}"))
        .await
}

/// Changes an account as an admin.
async fn patch(registry: &ServingRegistry, name: &str, change: Value) {
    let path = format!("/v1/accounts/{name}");
    let request = registry.admin_request(reqwest::Method::PATCH, &path);
    let answer = request.json(&change).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}
