//! The signature verdict of a card, in every view of it, and its consequences.

use a2a_crawler::ReferencedKeySet;
use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Registration, ReviewDetail, SignatureVerdict, Vouch};
use a2a_registry_core::agents::diff::{VersionDiffQuery, agent_diff};
use a2a_registry_core::agents::views::{FindingsQuery, agent_findings, agent_versions};
use a2a_registry_core::config::Config;
use a2a_registry_core::crawl::derivation::rederive_version_page;
use a2a_registry_core::domains::actions::vouch_for_domain;
use a2a_registry_core::domains::enrolled_keys::key_enrol;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::reviews::list::review_show;
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::review::ChangeClass;
use a2a_registry_domain::signature::SignatureState::{self, Invalid, Unknown, Unsigned, Untrusted};
use a2a_registry_store::entity::version;
use sea_orm::ActiveValue::Set;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::signer::CardSigner;

pub(super) const DOMAIN: &str = "verdicts.agents-test.com";
pub(super) const JKU: &str = "https://verdicts.agents-test.com/keys.json";

pub(super) async fn agent_verdict(registry: &InProcessRegistry, agent: Uuid) -> SignatureVerdict {
    let view = agent_show_checked(&registry.app, &registry.admin, &agent.to_string()).await;
    view.unwrap().signature_verdict
}

/// The verdict of each version, newest first.
pub(super) async fn version_verdicts(
    registry: &InProcessRegistry,
    agent: Uuid,
) -> Vec<SignatureVerdict> {
    let page = PageRequest::default();
    let list = agent_versions(&registry.app, &registry.admin, &agent.to_string(), &page).await;
    let versions = list.unwrap().versions.into_iter();
    versions.map(|version| version.signature_verdict).collect()
}

pub(super) async fn signature_states(
    registry: &InProcessRegistry,
    agent: Uuid,
) -> Vec<SignatureState> {
    let verdicts = version_verdicts(registry, agent).await.into_iter();
    verdicts
        .map(|verdict| verdict.state.known_value().unwrap())
        .collect()
}

/// The rules that a version violates, each with its severity.
pub(super) async fn findings(
    registry: &InProcessRegistry,
    agent: Uuid,
    version: Option<&str>,
) -> Vec<(String, String)> {
    let query = FindingsQuery {
        version: version.map(str::to_owned),
    };
    let list = agent_findings(&registry.app, &registry.admin, &agent.to_string(), &query)
        .await
        .unwrap();
    if let Some(version) = version {
        assert_eq!(list.digest, version);
    }
    let findings = list.findings.into_iter();
    findings
        .map(|finding| (finding.rule, finding.severity))
        .collect()
}

pub(super) fn has(findings: &[(String, String)], rule: &str, severity: &str) -> bool {
    findings.contains(&(rule.to_owned(), severity.to_owned()))
}

async fn in_review(registry: &InProcessRegistry, agent: Uuid) -> ReviewDetail {
    let id = registry
        .find_open_review(agent)
        .await
        .expect("the agent has an open review")
        .id;
    review_show(&registry.app, &registry.admin, id)
        .await
        .unwrap()
}

pub(super) async fn enrol(registry: &InProcessRegistry, signer: &CardSigner) {
    key_enrol(&registry.app, &registry.admin, DOMAIN, "k1", &signer.jwk())
        .await
        .unwrap();
}

pub(super) async fn vouch(registry: &InProcessRegistry) {
    let vouch = Vouch {
        reason: "known people".into(),
        account: None,
    };
    vouch_for_domain(&registry.app, &registry.admin, DOMAIN, &vouch)
        .await
        .unwrap();
}

/// An agent of a domain that an admin vouches for, with its signer and its card.
async fn vouched_for(url: &str) -> (InProcessRegistry, CardSigner, Vec<u8>, Uuid) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    registry.register_domain(DOMAIN).await;
    vouch(&registry).await;
    let real = signer.sign(&card_bytes("Signed", "Vouched for"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(real.clone(), signer.fetched_key_set()),
        )
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    (registry, signer, real, agent)
}

/// A change of the configuration.
type ConfigChange = fn(&mut Config);

/// The card with one member changed and its signatures unchanged: a forgery.
fn forged(bytes: &[u8], member: &str, value: Value) -> Vec<u8> {
    let mut card: Value = serde_json::from_slice(bytes).unwrap();
    card[member] = value;
    serde_json::to_vec(&card).unwrap()
}

fn away(signer: &CardSigner) -> ReferencedKeySet {
    ReferencedKeySet {
        result: Err("the server answered 503".into()),
        ..signer.fetched_key_set()
    }
}

pub(super) fn foreign(signer: &CardSigner) -> ReferencedKeySet {
    ReferencedKeySet {
        result: Err("`jku` is not on this origin".into()),
        is_foreign: true,
        ..signer.fetched_key_set()
    }
}

both_databases!(
    every_view_shows_the_verdict,
    an_unsigned_card_is_reported_as_unsigned,
    no_rule_admits_an_invalid_signature,
    a_forgery_shows_in_every_view,
    unreachable_keys_do_not_help_a_forger,
    a_missing_key_identifier_is_reported,
    invalid_signatures_approved_by_an_older_build_are_put_on_hold,
    a_first_signature_by_a_bound_key_is_a_low_change,
    agents_are_found_by_their_signature_state,
    cards_signed_with_an_sdk_are_verified
);

/// Agent, versions and review show the same verdict of a version: state, key, key source and reason.
async fn every_view_shows_the_verdict(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    registry.register_domain(DOMAIN).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(
                signer.sign(&card_bytes("Signed", "Vouched for")),
                signer.fetched_key_set(),
            ),
        )
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    let verdict = agent_verdict(&registry, agent).await;
    assert_eq!(verdict.state, Untrusted);
    assert!(
        verdict.reason.contains("not enrolled"),
        "{}",
        verdict.reason
    );
    let [one] = &verdict.signatures[..] else {
        panic!("{verdict:?}")
    };
    assert_eq!(one.kid.as_deref(), Some("k1"));
    assert_eq!(one.alg.as_deref(), Some("EdDSA"));
    assert_eq!(one.key_from.as_deref(), Some(JKU));
    assert_eq!(
        one.key_thumbprint.as_deref(),
        Some(registry.agent(DOMAIN).await.pins.as_str())
    );
    assert_eq!(one.verdict, Untrusted);
    assert_eq!(
        version_verdicts(&registry, agent).await,
        std::slice::from_ref(&verdict)
    );
    assert_eq!(
        registry
            .find_open_review(agent)
            .await
            .unwrap()
            .signature_verdict,
        verdict
    );
    assert_eq!(
        in_review(&registry, agent).await.review.signature_verdict,
        verdict
    );
}

/// An unsigned card is reported as unsigned.
async fn an_unsigned_card_is_reported_as_unsigned(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let agent = registry
        .register_approved_card(DOMAIN, &card_bytes("Plain", "By nobody"))
        .await
        .id;
    let verdict = agent_verdict(&registry, agent).await;
    assert_eq!(verdict.state, Unsigned);
    assert!(verdict.signatures.is_empty() && !verdict.reason.is_empty());
}

/// Under any admission rule, a card with an invalid signature waits for a person, and a decision made with that
/// knowledge is kept.
async fn no_rule_admits_an_invalid_signature(url: &str) {
    let vouched = |_: &mut Config| ();
    let allowed = |config: &mut Config| {
        config.governance.allow_domains = vec![DomainPattern("*.agents-test.com".into())]
    };
    let all = |config: &mut Config| config.governance.approve_all = true;
    let configurations: [(&str, ConfigChange); 3] =
        [("vouched", vouched), ("allowed", allowed), ("all", all)];
    let mut registry = InProcessRegistry::new(url).await;
    for (place, (name, configure)) in configurations.into_iter().enumerate() {
        registry = registry
            .restart(|config| {
                config.governance = Config::default().governance;
                configure(config);
            })
            .await;
        for (number, approve) in [false, true].into_iter().enumerate() {
            let domain = format!("d{place}{number}.agents-test.com");
            let what = Registration {
                domain: Some(domain.clone()),
                approve,
                ..Registration::default()
            };
            register_domain(&registry.app, &registry.admin, &what)
                .await
                .unwrap();
            let vouch = Vouch {
                reason: "known people".into(),
                account: None,
            };
            vouch_for_domain(&registry.app, &registry.admin, &domain, &vouch)
                .await
                .unwrap();
            let signer = CardSigner::new(JKU);
            let bytes = forged(
                &signer.sign(&card_bytes("Signed", "Once")),
                "description",
                json!("Changed since"),
            );
            registry
                .crawl_domain(
                    &domain,
                    OriginResponse::SignedCard(bytes.clone(), signer.fetched_key_set()),
                )
                .await;
            let agent = registry.agent(&domain).await.id;
            assert_eq!(
                registry.public_card_bytes(agent).await,
                None,
                "{name}, approve: {approve}"
            );
            assert_eq!(agent_verdict(&registry, agent).await.state, Invalid);
            assert!(
                has(
                    &findings(&registry, agent, None).await,
                    "signature.invalid",
                    "error"
                ),
                "{name}"
            );
            registry.approve_open_review(agent).await;
            assert_eq!(
                registry.public_card_bytes(agent).await,
                Some(bytes.clone()),
                "{name}"
            );
            registry
                .crawl_domain(
                    &domain,
                    OriginResponse::SignedCard(bytes.clone(), signer.fetched_key_set()),
                )
                .await;
            assert_eq!(
                registry.public_card_bytes(agent).await,
                Some(bytes),
                "{name}: a person has approved this verdict"
            );
        }
    }
    registry.assert_index_matches_database().await;
}

/// A forged card with the signatures of the real one is put on hold at once. Every view of the forged version shows
/// that, while the real version keeps its verdict and findings.
async fn a_forgery_shows_in_every_view(url: &str) {
    let (registry, signer, real, agent) = vouched_for(url).await;
    assert_eq!(registry.public_card_bytes(agent).await, Some(real.clone()));
    // By its content alone this would be a change of class low.
    let forgery = forged(&real, "version", json!("1.0.1"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(forgery.clone(), signer.fetched_key_set()),
        )
        .await;
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    assert_eq!(
        signature_states(&registry, agent).await,
        [Invalid, Untrusted]
    );

    let [real, forgery] = [real, forgery].map(|bytes| a2a_card::bytes_digest(&bytes));
    assert!(has(
        &findings(&registry, agent, Some(&forgery)).await,
        "signature.invalid",
        "error"
    ));
    assert!(!has(
        &findings(&registry, agent, Some(&real)).await,
        "signature.invalid",
        "error"
    ));
    let query = |digest: &str| FindingsQuery {
        version: Some(digest.to_owned()),
    };
    let name = agent.to_string();
    let missing = agent_findings(&registry.app, &registry.admin, &name, &query("sha256:no")).await;
    assert_eq!(missing.unwrap_err().kind, ErrorKind::NotFound);

    let diff = agent_diff(
        &registry.app,
        &registry.admin,
        &agent.to_string(),
        &VersionDiffQuery::default(),
    )
    .await
    .unwrap();
    assert_eq!(
        (diff.from.as_str(), diff.to.as_str()),
        (real.as_str(), forgery.as_str())
    );
    assert_eq!(diff.change_class, ChangeClass::Critical);
    assert_eq!(diff.changes[0].pointer, "/signatures");
    assert!(diff.changes[0].reason.contains("invalid"), "{diff:?}");
    assert!(
        diff.changes
            .iter()
            .all(|change| !change.reason.contains("same keys")),
        "{diff:?}"
    );

    let detail = in_review(&registry, agent).await;
    assert_eq!(
        detail.review.change_class,
        Some(ChangeClass::Critical.into())
    );
    assert_eq!(detail.review.signature_verdict.state, Invalid);
    let [one] = &detail.review.signature_verdict.signatures[..] else {
        panic!("{detail:?}")
    };
    assert!(one.reason.contains("does not match"), "{one:?}");
    assert_eq!(
        one.key_from.as_deref(),
        Some(JKU),
        "the key set has the named key"
    );
    assert!(
        detail
            .findings
            .iter()
            .any(|finding| finding.rule == "signature.invalid")
    );
    assert_eq!(detail.diff, Some(diff));
    assert!(detail.card_text.unwrap().contains("1.0.1"));
    assert_eq!(
        detail.interfaces[0].url,
        "https://endpoint.example.net/a2a/v1"
    );
    assert!(!detail.security.is_empty() && !detail.auth.is_empty());
    assert_eq!(detail.domain_proofs.state.as_str(), "verified");
    assert_eq!(detail.domain_proofs.proofs[0].method.as_str(), "operator");
    registry.assert_index_matches_database().await;
}

/// Attack: blocking access to the keys gains nothing. The last known keys of the same key set still verify, and a card
/// that was approved while no key was known is put on hold once its signature is found invalid.
async fn unreachable_keys_do_not_help_a_forger(url: &str) {
    let (registry, signer, real, agent) = vouched_for(url).await;
    let forgery = forged(&real, "version", json!("1.0.1"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(forgery.clone(), away(&signer)),
        )
        .await;
    assert_eq!(
        signature_states(&registry, agent).await,
        [Invalid, Untrusted]
    );
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    // Removing the key from the key set does not help either.
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(
                forged(&real, "version", json!("1.0.2")),
                CardSigner::new(JKU).fetched_key_set_as("k2"),
            ),
        )
        .await;
    assert_eq!(signature_states(&registry, agent).await[0], Unknown);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    assert_eq!(
        registry.find_open_review(agent).await.unwrap().change_class,
        Some(ChangeClass::Critical.into())
    );
    // The approved version loses its key as well, and its domain is vouched for nevertheless: the forgery is not
    // approved just because both verdicts are unknown.
    rederive_version_page(&registry.app).await.unwrap();
    assert_eq!(
        signature_states(&registry, agent).await,
        [Unknown, Unknown, Unknown]
    );
    key_enrol(
        &registry.app,
        &registry.admin,
        DOMAIN,
        "k9",
        &CardSigner::new(JKU).jwk(),
    )
    .await
    .unwrap();
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(
                forged(&real, "version", json!("1.0.3")),
                CardSigner::new(JKU).fetched_key_set_as("k2"),
            ),
        )
        .await;
    assert_eq!(registry.public_card_bytes(agent).await, None);
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    let diff = agent_diff(
        &registry.app,
        &registry.admin,
        &agent.to_string(),
        &VersionDiffQuery::default(),
    )
    .await
    .unwrap();
    assert_eq!(diff.change_class, ChangeClass::Critical);

    let late = "late.agents-test.com";
    registry.register_domain(late).await;
    registry
        .crawl_domain(
            late,
            OriginResponse::SignedCard(forgery.clone(), away(&signer)),
        )
        .await;
    let agent = registry.agent(late).await.id;
    registry.approve_open_review(agent).await;
    assert_eq!(
        registry.public_card_bytes(agent).await,
        Some(forgery.clone())
    );
    assert_eq!(signature_states(&registry, agent).await, [Unknown]);
    registry
        .crawl_domain(
            late,
            OriginResponse::SignedCard(forgery, signer.fetched_key_set()),
        )
        .await;
    assert_eq!(version_verdicts(&registry, agent).await[0].state, Invalid);
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(registry.public_card_bytes(agent).await, None);
    registry.assert_index_matches_database().await;
}

/// A key identifier that the key set lacks is reported, and one that is removed from the set removes the verdict of
/// every stored version.
async fn a_missing_key_identifier_is_reported(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    registry.register_domain(DOMAIN).await;
    let first = signer.sign(&card_bytes("Signed", "Vouched for"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(first, signer.fetched_key_set()),
        )
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    registry.approve_open_review(agent).await;
    let second = signer.sign(&card_bytes("Signed", "Vouched for again"));
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(second.clone(), signer.fetched_key_set()),
        )
        .await;
    registry.approve_open_review(agent).await;
    assert_eq!(
        signature_states(&registry, agent).await,
        [Untrusted, Untrusted]
    );

    let other = CardSigner::new(JKU).fetched_key_set_as("k2");
    registry
        .crawl_domain(DOMAIN, OriginResponse::SignedCard(second, other))
        .await;
    rederive_version_page(&registry.app).await.unwrap();
    let verdicts = version_verdicts(&registry, agent).await;
    assert_eq!(verdicts.len(), 2);
    for verdict in verdicts {
        assert_eq!(verdict.state, Unknown);
        for said in [JKU, "`k1`", "it has k2"] {
            assert!(verdict.reason.contains(said), "{said}: {}", verdict.reason);
        }
    }
    assert!(has(
        &findings(&registry, agent, None).await,
        "signature.unknown_kid",
        "warning"
    ));
    registry.assert_index_matches_database().await;
}

/// An older build approved cards with invalid signatures by rule: such a card is put on hold when it is derived again,
/// but not one that a person approved.
async fn invalid_signatures_approved_by_an_older_build_are_put_on_hold(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    let bytes = forged(
        &signer.sign(&card_bytes("Signed", "Once")),
        "description",
        json!("Changed since"),
    );
    let mut agents = Vec::new();
    for (name, vouched) in [("rule", true), ("person", false)] {
        let domain = format!("{name}.agents-test.com");
        registry.register_domain(&domain).await;
        if vouched {
            let vouch = Vouch {
                reason: "known people".into(),
                account: None,
            };
            vouch_for_domain(&registry.app, &registry.admin, &domain, &vouch)
                .await
                .unwrap();
        }
        registry
            .crawl_domain(
                &domain,
                OriginResponse::SignedCard(bytes.clone(), away(&signer)),
            )
            .await;
        let agent = registry.agent(&domain).await.id;
        if !vouched {
            registry.approve_open_review(agent).await;
        }
        assert_eq!(
            registry.public_card_bytes(agent).await,
            Some(bytes.clone()),
            "{name}"
        );
        agents.push(agent);
    }
    let keys = String::from_utf8(signer.fetched_key_set().result.unwrap()).unwrap();
    crate::ingest::rederivation::age(
        &registry,
        version::ActiveModel {
            signature: Set(SignatureState::Invalid.into()),
            key_sets: Set(json!([{"url": JKU, "keys": keys}]).to_string()),
            ..Default::default()
        },
    )
    .await;
    assert_eq!(rederive_version_page(&registry.app).await.unwrap(), 2);
    assert_eq!(registry.public_card_bytes(agents[0]).await, None);
    assert_eq!(registry.holds(agents[0]).await, ["critical_change"]);
    assert_eq!(
        in_review(&registry, agents[0])
            .await
            .review
            .signature_verdict
            .state,
        Invalid
    );
    assert_eq!(
        registry.public_card_bytes(agents[1]).await,
        Some(bytes.clone())
    );
    registry.approve_open_review(agents[0]).await;
    assert_eq!(registry.public_card_bytes(agents[0]).await, Some(bytes));
    registry.assert_index_matches_database().await;
}

/// A first signature is of class low if its key is bound to the domain, and needs a review if not; an invalid signature
/// is never of class low.
async fn a_first_signature_by_a_bound_key_is_a_low_change(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    let plain = card_bytes("Signed", "At last");
    for (name, enrolled, broken) in [
        ("bound", true, false),
        ("unbound", false, false),
        ("broken", true, true),
    ] {
        let domain = format!("{name}.agents-test.com");
        let agent = registry.register_approved_card(&domain, &plain).await.id;
        if enrolled {
            key_enrol(&registry.app, &registry.admin, &domain, "k1", &signer.jwk())
                .await
                .unwrap();
        }
        let signed = match broken {
            false => signer.sign(&plain),
            true => forged(
                &signer.sign(&card_bytes("Signed", "Otherwise")),
                "description",
                json!("At last"),
            ),
        };
        registry
            .crawl_domain(
                &domain,
                OriginResponse::SignedCard(signed.clone(), signer.fetched_key_set()),
            )
            .await;
        let query = VersionDiffQuery {
            from: Some(a2a_card::bytes_digest(&plain)),
            to: None,
        };
        let diff = agent_diff(&registry.app, &registry.admin, &agent.to_string(), &query)
            .await
            .unwrap();
        if name == "bound" {
            assert_eq!(diff.change_class, ChangeClass::Low, "{diff:?}");
            assert_eq!(registry.public_card_bytes(agent).await, Some(signed));
            assert!(registry.find_open_review(agent).await.is_none());
        } else {
            assert_eq!(diff.change_class, ChangeClass::High, "{name}: {diff:?}");
            assert_eq!(
                registry.public_card_bytes(agent).await,
                Some(plain.clone()),
                "{name}"
            );
            let query = FindingsQuery {
                version: Some(a2a_card::bytes_digest(&signed)),
            };
            let unseen = agent_findings(
                &registry.app,
                &Caller::default(),
                &agent.to_string(),
                &query,
            )
            .await;
            assert_eq!(
                unseen.unwrap_err().kind,
                ErrorKind::NotFound,
                "{name}: nobody has approved it"
            );
            assert_eq!(
                registry.find_open_review(agent).await.unwrap().change_class,
                Some(ChangeClass::High.into())
            );
        }
    }
    registry.assert_index_matches_database().await;
}

/// Agents are found and counted by their signature state, and the index follows the enrolment of a key.
async fn agents_are_found_by_their_signature_state(url: &str) {
    let registry = InProcessRegistry::new(url).await;
    let signer = CardSigner::new(JKU);
    let plain = registry
        .register_approved_card("plain.agents-test.com", &card_bytes("Plain", "By nobody"))
        .await
        .id;
    registry.register_domain(DOMAIN).await;
    registry
        .crawl_domain(
            DOMAIN,
            OriginResponse::SignedCard(
                signer.sign(&card_bytes("Signed", "Vouched for")),
                signer.fetched_key_set(),
            ),
        )
        .await;
    let signed = registry.agent(DOMAIN).await.id;
    registry.approve_open_review(signed).await;
    registry.assert_index_matches_database().await;
    let found = async |states: &[&str]| {
        let query = SearchQuery {
            signature: states.iter().map(|state| (*state).to_owned()).collect(),
            facets: vec!["signature".into()],
            ..SearchQuery::default()
        };
        let list = registry.search_all(&Caller::default(), &query).await;
        let mut ids: Vec<Uuid> = list.agents.iter().map(|hit| hit.summary.id).collect();
        ids.sort_unstable();
        let facet = list.facets["signature"].values.iter();
        let mut counted: Vec<(String, u64)> =
            facet.map(|one| (one.value.clone(), one.count)).collect();
        counted.sort();
        (ids, counted)
    };
    let both = |first: &str| vec![(first.to_owned(), 1), ("untrusted".to_owned(), 1)];
    assert_eq!(found(&["untrusted"]).await.0, [signed]);
    assert_eq!(found(&["unsigned"]).await.0, [plain]);
    assert!(found(&["valid"]).await.0.is_empty());
    assert_eq!(found(&[]).await.1, both("unsigned"));
    let mut all = vec![plain, signed];
    all.sort_unstable();
    assert_eq!(found(&["unsigned", "untrusted"]).await.0, all);
    enrol(&registry, &signer).await;
    registry.catch_up().await;
    assert_eq!(found(&["valid"]).await.0, [signed]);
    let wrong = SearchQuery {
        signature: vec!["good".into()],
        ..SearchQuery::default()
    };
    let refused = search_agents(&registry.app, &Caller::default(), &wrong)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
}

/// Cards signed with a public SDK, and one that was changed afterwards.
async fn cards_signed_with_an_sdk_are_verified(url: &str) {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("A2A_REGISTRY_SHARED")
        .map_or_else(|| package.join("../../shared"), Into::into)
        .join("signed");
    let Ok(keys) = std::fs::read(folder.join("jwks.json")) else {
        eprintln!("SKIPPED: {} has no signed cards", folder.display());
        return;
    };
    let registry = InProcessRegistry::new(url).await;
    for (name, state) in [
        ("py1-signed", Untrusted),
        ("py03-signed", Untrusted),
        ("py1-tampered", Invalid),
    ] {
        let bytes = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
        let card = a2a_card::parse_card(&bytes).unwrap().card;
        let jku = a2a_card::unverified_signatures(&card)[0]
            .jku
            .clone()
            .unwrap_or_default();
        let found = ReferencedKeySet {
            url: jku,
            is_foreign: false,
            result: Ok(keys.clone()),
        };
        let domain = format!("{name}.agents-test.com");
        registry.register_domain(&domain).await;
        registry
            .crawl_domain(&domain, OriginResponse::SignedCard(bytes, found))
            .await;
        let agent = registry.agent(&domain).await.id;
        let verdict = agent_verdict(&registry, agent).await;
        assert_eq!(verdict.state, state, "{name}: {verdict:?}");
        assert_eq!(
            verdict.signatures[0].kid.as_deref(),
            Some("zoo-es256"),
            "{name}"
        );
        assert_eq!(
            verdict.signatures[0].alg.as_deref(),
            Some("ES256"),
            "{name}"
        );
    }
}
