//! The traces of refused tokens in the log, the metrics and the events of a running registry.

use reqwest::Method;
use serde_json::json;

use crate::support::setup::RegistrySetup;

/// A token that nobody has.
const UNKNOWN: &str = "a2ar_a-token-that-this-registry-never-made";

#[tokio::test]
async fn refused_tokens_are_logged_in_few_lines_and_none_is_lost_at_the_end() {
    let setup = RegistrySetup::new();
    let registry = setup.start_without_proxy().await;
    for _ in 0..50 {
        let request = registry.request(Method::GET, "/v1/me").bearer_auth(UNKNOWN);
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
    let metric = "sign_in_refusals_total{reason=\"unknown_token\"}";
    assert_eq!(registry.metric_value(metric).await, 50);
    let ended = registry.stop().await;
    let lines = ended
        .stderr
        .iter()
        .filter(|line| line.contains(" sign_in: "));
    let lines: Vec<&String> = lines.collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in &lines[..3] {
        let told = [
            "WARN",
            "unknown_token",
            "127.0.0.1",
            "unknown or has expired",
        ];
        assert!(told.iter().all(|words| line.contains(words)), "{line}");
    }
    let told = ["127.0.0.0/24", "more=47", "unknown_token"];
    assert!(
        told.iter().all(|words| lines[3].contains(words)),
        "{lines:?}"
    );
    assert!(ended.stderr.iter().all(|line| !line.contains(UNKNOWN)));

    let registry = setup.start_without_proxy().await;
    let events = registry
        .get_as_admin("/v1/events?page_size=100")
        .await
        .expect_status(200);
    let all = events["events"].as_array().unwrap().iter();
    let refused: Vec<_> = all
        .filter(|event| event["kind"] == "sign_in.refused")
        .collect();
    assert_eq!(refused.len(), 1, "{events}");
    assert_eq!(refused[0]["subject"], "127.0.0.0/24");
    assert_eq!(refused[0]["data"]["count"], 50);
    assert_eq!(refused[0]["data"]["reasons"], json!({"unknown_token": 50}));
    registry.stop().await;
}
