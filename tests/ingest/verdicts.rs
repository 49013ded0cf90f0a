//! What the verdict on a card's signatures says, on every view of it.

use a2a_registry::api::SignatureVerdict;
use a2a_registry::app::PageRequest;
use a2a_registry::domain::signature::SignatureState;

use crate::support::both_databases;
use crate::support::signer::Signer;
use crate::support::stage::{Answer, Stage, card};

const DOMAIN: &str = "verdicts.agents-test.com";
const JKU: &str = "https://verdicts.agents-test.com/keys.json";

async fn of_agent(stage: &Stage, agent: uuid::Uuid) -> SignatureVerdict {
    let view = stage.app.agent_show(&stage.admin, &agent.to_string()).await;
    view.unwrap().signature_verdict
}

/// Of each version, newest first.
async fn of_versions(stage: &Stage, agent: uuid::Uuid) -> Vec<SignatureVerdict> {
    let page = PageRequest::default();
    let list = stage
        .app
        .agent_versions(&stage.admin, &agent.to_string(), &page)
        .await;
    let versions = list.unwrap().versions.into_iter();
    versions.map(|version| version.signature_verdict).collect()
}

both_databases! {
    /// Agent, versions and review say the same of one version: state, key, where from and why.
    async fn every_view_has_the_verdict(url: &str) {
        let stage = Stage::new(url).await;
        let signer = Signer::new(JKU);
        stage.register(DOMAIN).await;
        stage.look(DOMAIN, Answer::Signed(signer.sign(&card("Signed", "Vouched for")), signer.found())).await;
        let agent = stage.agent(DOMAIN).await.id;
        let verdict = of_agent(&stage, agent).await;
        assert_eq!(verdict.state, SignatureState::Untrusted);
        assert!(verdict.reason.contains("not enrolled"), "{}", verdict.reason);
        let [one] = &verdict.signatures[..] else { panic!("{verdict:?}") };
        assert_eq!(one.kid.as_deref(), Some("k1"));
        assert_eq!(one.alg.as_deref(), Some("EdDSA"));
        assert_eq!(one.key_from.as_deref(), Some(JKU));
        assert_eq!(one.key_thumbprint.as_deref(), Some(stage.agent(DOMAIN).await.pins.as_str()));
        assert_eq!(one.verdict, SignatureState::Untrusted);
        assert_eq!(of_versions(&stage, agent).await, [verdict.clone()]);
        assert_eq!(stage.open_review(agent).await.unwrap().signature_verdict, verdict);
    }

    /// An unsigned card says so.
    async fn an_unsigned_card_says_so(url: &str) {
        let stage = Stage::new(url).await;
        let agent = stage.publish_approved(DOMAIN, &card("Plain", "By nobody")).await.id;
        let verdict = of_agent(&stage, agent).await;
        assert_eq!(verdict.state, SignatureState::Unsigned);
        assert!(verdict.signatures.is_empty() && !verdict.reason.is_empty());
    }
}
