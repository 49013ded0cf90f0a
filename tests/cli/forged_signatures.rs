//! A forged card under a real signature, over real sockets: the approver sees the signature verdict.

use a2a_registry_api::{Agent, AgentList, FindingList, ReviewDetail};
use a2a_registry_domain::signature::SignatureState;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::setup::RegistrySetup;
use crate::support::signer::CardSigner;

#[tokio::test]
async fn an_approver_sees_that_a_card_is_forged() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    let signer = CardSigner::new(&origin.url("/keys.json"));
    let keys = signer.fetched_key_set().result.unwrap();
    origin.set_reply("/keys.json", OriginReply::json(keys));
    let real = signer.sign(card_json("Echo", "repeat").as_bytes());
    origin.set_reply("/a.json", OriginReply::json(real.clone()));
    registry.register(&origin.url("/a.json")).await;
    let review = registry.wait_for_open_review(|_| true).await;
    assert_eq!(review.signature_verdict.state, SignatureState::Untrusted);
    let id = review.id.to_string();
    let approve = ["review", "approve", &id, "--reason", "known people"];
    assert_exit(
        &registry.run_admin_command(&approve).await,
        0,
        "its signature is untrusted",
    );
    let hit = registry.wait_for_hit("q=repeat").await;
    let agent = hit.summary.id.to_string();

    let mut forgery: serde_json::Value = serde_json::from_slice(&real).unwrap();
    forgery["description"] = json!("Repeats what it is told, to somebody else");
    origin.set_reply("/a.json", OriginReply::json(forgery.to_string()));
    let domain = origin.address().to_string();
    let recrawl = ["domain", "recrawl", "--full", &domain];
    assert_exit(&registry.run_admin_command(&recrawl).await, 0, "");
    let review = registry.wait_for_open_review(|_| true).await.id.to_string();

    let shown = registry
        .run_admin_command(&["review", "show", &review])
        .await;
    assert_eq!(shown.status.code(), Some(0), "{shown:#?}");
    let said = join_lines(&shown.stdout);
    for part in [
        "critical",
        "domain's proofs:",
        "a nomination: no proof of the domain covers it",
        "signature: invalid: The signature does not match",
        "invalid: key k1, algorithm EdDSA, thumbprint ",
        &format!("from {}", origin.url("/keys.json")),
        "interface ",
        "access:",
        "finding: error signature.invalid /signatures/0",
        "/description",
        "to somebody else",
        "card:",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("same keys"), "{said}");

    let detail: ReviewDetail = registry
        .read_as_admin(&format!("/v1/reviews/{review}"))
        .await;
    assert_eq!(
        detail.review.signature_verdict.state,
        SignatureState::Invalid
    );
    assert_eq!(
        detail.card_text.as_deref(),
        Some(forgery.to_string().as_str())
    );
    let json = registry
        .run_admin_command(&["review", "show", &review, "--json"])
        .await;
    let json: ReviewDetail = serde_json::from_str(&join_lines(&json.stdout)).unwrap();
    assert_eq!(json, detail);

    // Findings are those of the requested version, and an unknown parameter is an error.
    let path = |version: &str| format!("/v1/agents/{agent}/findings?version={version}");
    let broken = |list: &FindingList| {
        list.findings
            .iter()
            .any(|one| one.rule == "signature.invalid")
    };
    let of_forgery: FindingList = registry.read_as_admin(&path(&detail.review.digest)).await;
    assert!(broken(&of_forgery) && of_forgery.digest == detail.review.digest);
    let of_real: FindingList = registry
        .read_as_admin(&path(&a2a_card::bytes_digest(&real)))
        .await;
    assert!(!broken(&of_real) && of_real.digest == a2a_card::bytes_digest(&real));
    let wrong = format!("/v1/agents/{agent}/findings?digest=1");
    let wrong = registry
        .admin_request(Method::GET, &wrong)
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    let unseen = registry
        .admin_request(Method::GET, &path("sha256:no"))
        .send()
        .await
        .unwrap();
    assert_eq!(unseen.status(), StatusCode::NOT_FOUND);

    let page = registry
        .admin_request(Method::GET, &format!("/agents/{agent}/"))
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains("kid <code>k1</code>"), "{page}");
    let nominated = "a nomination: no proof of the domain covers it";
    assert!(page.contains(nominated), "{page}");
    let shown = registry.run_admin_command(&["show", &agent]).await;
    assert!(join_lines(&shown.stdout).contains(nominated), "{shown:#?}");

    let reject = ["review", "reject", &review, "--reason", "not theirs"];
    assert_exit(
        &registry.run_admin_command(&reject).await,
        0,
        "its signature is invalid",
    );
    origin.set_reply("/a.json", OriginReply::json(real));
    assert_exit(&registry.run_admin_command(&recrawl).await, 0, "");
    registry.wait_for_hit("signature=untrusted").await;
    let search = [
        "search",
        "--json",
        "--signature",
        "untrusted",
        "--facets",
        "signature",
    ];
    let found = Program::run(registry.anonymous_command(&search)).await;
    let found: AgentList = serde_json::from_str(&join_lines(&found.stdout)).unwrap();
    assert_eq!(found.total, 1);
    assert_eq!(found.facets["signature"].values[0].value, "untrusted");
    assert_exit(
        &registry
            .run_admin_command(&["search", "--signature", "good"])
            .await,
        2,
        "is not one of unsigned, valid",
    );
    let agent: Agent = registry.read_as_admin(&format!("/v1/agents/{agent}")).await;
    assert_eq!(agent.signature_verdict.state, SignatureState::Untrusted);
}
