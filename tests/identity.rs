//! Signing in with a real identity provider, and its access tokens: who gets in, as what, and what gets nobody in.

mod access_tokens;
mod answers;
mod attempts;
mod journeys;
mod leavers;
mod refusals;
mod selected_groups;

use serde_json::{Value, json};

use crate::support::provider::IdentityProvider;
use crate::support::serving::ServingRegistry;
use crate::support::setup::Setup;

/// Who may enter, and as what.
const STAFF: &str = "require = { claim = \"groups\", values = [\"staff\", \"robots\"] }\n\
    roles = { leads = [\"curator\"], robots = [\"publisher\"] }";

/// A registry with one provider, `corp`, which knows a few people and services.
async fn with_corp() -> (IdentityProvider, ServingRegistry) {
    with_corp_in(Setup::new()).await
}

/// The same registry of this setup.
async fn with_corp_in(setup: Setup) -> (IdentityProvider, ServingRegistry) {
    let corp = IdentityProvider::start(setup.scratch(), "corp").await;
    corp.set(json!({
        "people": {
            "ann": {"preferred_username": "ann", "groups": ["staff", "leads"]},
            "bob": {"preferred_username": "bob", "groups": ["staff"]},
            "eve": {"preferred_username": "admin", "groups": ["visitors"]},
        },
        "services": {"pipeline": {"groups": ["robots"]}, "stranger": {"groups": []}},
    }))
    .await;
    let setup = setup.with_identity().provider("corp", &corp, STAFF);
    let served = setup.start().await;
    corp.admit(&served.url, "corp").await;
    (corp, served)
}

/// The account of that name, as an admin sees it.
async fn account(served: &ServingRegistry, name: &str) -> Value {
    served.read(&format!("/v1/accounts/{name}")).await
}

/// Changes an account as an admin.
async fn patch(served: &ServingRegistry, name: &str, change: Value) {
    let path = format!("/v1/accounts/{name}");
    let request = served.as_admin(reqwest::Method::PATCH, &path);
    let answer = request.json(&change).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}
