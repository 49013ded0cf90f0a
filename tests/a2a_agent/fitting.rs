//! How many of the matches fit: what clients of A2A and of ARD are told of it, where no hint can be shown.

use reqwest::Method;
use serde_json::{Value, json};

use super::listening_registry::{ListeningRegistry, result_identifiers, task_text};
use crate::support::api::ApiResponse;
use crate::support::both_databases;

both_databases!(
    an_a2a_search_says_total_fitting,
    an_ard_search_says_how_many_fit_in_a_header
);

/// One agent books flights; the others share words with this question only.
const QUESTION: &str = "book a flight to Lisbon for the team";
/// What only one agent matches at all.
const EXACT: &str = "Lisbon";

async fn with_agents(url: &str) -> ListeningRegistry {
    let served = ListeningRegistry::new(url).await;
    let about = "Books a flight to Lisbon for the whole team";
    served.publish_with_urn("wings", "Wings", about).await;
    for (host, name) in [
        ("ledger", "Ledger"),
        ("payroll", "Payroll"),
        ("harbour", "Harbour"),
    ] {
        let about = format!("{name} for the whole team of an office");
        served.publish_with_urn(host, name, &about).await;
    }
    served
}

/// The total and the number of those that fit, as `/v1/agents` counts them.
async fn counts(served: &ListeningRegistry, text: &str) -> (u64, u64) {
    let path = format!("/v1/agents?q={}", text.replace(' ', "+"));
    let found = served.request(Method::GET, &path, None, None);
    let found = ApiResponse::send(found).await.expect_status(200);
    let count = |name: &str| found[name].as_u64().unwrap();
    (count("total"), count("total_fitting"))
}

async fn an_a2a_search_says_total_fitting(url: &str) {
    let served = with_agents(url).await;
    assert_eq!(counts(&served, QUESTION).await, (4, 1));
    let task = served.send_text(QUESTION).await;
    assert_eq!(result_identifiers(&task).len(), 4, "{task}");
    assert_eq!(
        task["artifacts"][0]["metadata"]["totalFitting"], 1,
        "{task}"
    );
    let said = task_text(&task);
    assert!(
        said.contains("1 of the matching agents fits well."),
        "{said}"
    );
    // Where all fit, there is nothing to say.
    assert_eq!(counts(&served, EXACT).await, (1, 1));
    let task = served.send_text(EXACT).await;
    assert_eq!(result_identifiers(&task).len(), 1, "{task}");
    let metadata = &task["artifacts"][0]["metadata"];
    assert_eq!(metadata["totalFitting"], Value::Null, "{task}");
    let said = task_text(&task);
    assert!(!said.contains("fits well"), "{said}");
    served.stop().await;
}

async fn an_ard_search_says_how_many_fit_in_a_header(url: &str) {
    let served = with_agents(url).await;
    for (text, results, fitting) in [(QUESTION, 4, "1"), (EXACT, 1, "1"), ("zeppelin", 0, "0")] {
        let body = json!({"query": {"text": text}, "federation": "none"});
        let search = served
            .request(Method::POST, "/ard/search", None, None)
            .json(&body);
        let answer = ApiResponse::send(search).await;
        assert_eq!(
            answer.headers["a2a-registry-total-fitting"], fitting,
            "{text}"
        );
        let page = answer.expect_status(200);
        assert_eq!(page["results"].as_array().unwrap().len(), results, "{page}");
    }
    served.stop().await;
}
