//! A client in another language, written only from the standard, with a token and without.

use serde_json::Value;
use tokio::process::Command;

use super::{AGENTS, ArdRegistry, urn};
use crate::support::database::Database;
use crate::support::program::Program;

/// The client, which needs nothing but Python's own library.
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/ard_client.py");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_standard_finds_pages_filters_counts_and_retrieves() {
    let database = Database::sqlite();
    let registry = ArdRegistry::new(database.url()).await;
    for who in &registry.identities {
        let mut command = Command::new("python3");
        command.args([CLIENT, &registry.api.url, "parcel tracking"]);
        command.args(&who.token);
        let ended = Program::run(command).await;
        let told: Value = serde_json::from_str(&ended.stdout.join("\n"))
            .unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!(told["errors"], serde_json::json!([]), "{}", who.name);
        let list =
            |name: &str| -> Vec<String> { serde_json::from_value(told[name].clone()).unwrap() };
        assert_eq!(list("listed"), registry.visible(who), "{}", who.name);
        assert!(told["pages"].as_u64().unwrap() > 2);
        let mut filtered = list("filtered");
        filtered.sort_unstable();
        let visible = registry.visible(who);
        let expected: Vec<String> = (0..AGENTS.len())
            .filter(|number| {
                number.is_multiple_of(2)
                    && AGENTS[*number].2.contains(&"logistics")
                    && AGENTS[*number].3 > 0
            })
            .map(urn)
            .filter(|urn| visible.contains(urn))
            .collect();
        assert_eq!(filtered, expected, "{}", who.name);
        assert!(list("found").iter().all(|urn| visible.contains(urn)));
    }
    registry.stop().await;
}
