//! Actions of an owner: managing agents, opting out, transferring a domain, enrolling keys.

use a2a_card::{ProtectedHeader, SigningKey};
use a2a_crawler::dns::TxtLookup;
use a2a_registry_api::{Act, AgentPatch, DomainPatch, Recrawl, Registration, Transfer};
use a2a_registry_core::agents::lifecycle_actions::{
    agent_deprecate, agent_retire, agent_suspend, agent_undeprecate,
};
use a2a_registry_core::domains::actions::domain_recrawl;
use a2a_registry_core::domains::enrolled_keys::{key_enrol, key_withdraw};
use a2a_registry_core::domains::owner_actions::{domain_patch, domain_transfer};
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_domain::lifecycle::{Lifecycle, Visibility};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use time::Duration;
use uuid::Uuid;

use super::{DOMAIN, OwnershipSetup, STANDING, moved};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{OriginResponse, agent_patch, card_bytes};

both_databases!(
    a_domain_opts_out_by_its_own_record,
    an_owner_manages_its_agents,
    an_owner_opts_out_and_in,
    a_domain_is_transferred,
    an_owner_enrols_its_keys,
    a_card_names_its_owner,
    a_new_generation_needs_every_decision_again
);

/// `policy=none` is honoured for every account, proved or not, and ends with the record.
async fn a_domain_opts_out_by_its_own_record(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let agent = setup
        .registry
        .register_approved_card(DOMAIN, &card_bytes("Travel", "Books flights"))
        .await
        .id;
    setup.place_record(STANDING, "any.registry.example; policy=none");
    assert_eq!(
        setup.next_day().await,
        "unverified",
        "the record addresses another registry"
    );
    setup.place_record(STANDING, "127.0.0.1:8080; policy=none");
    assert_eq!(setup.next_day().await, "opted_out");
    assert_eq!(setup.registry.holds(agent).await, ["opted_out"]);
    assert_eq!(setup.registry.public_card_bytes(agent).await, None);
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        0,
        "an opted-out domain is not visited"
    );
    let admin = &setup.registry.admin;
    let again = Registration {
        domain: Some(DOMAIN.into()),
        ..Registration::default()
    };
    let refused = register_domain(&setup.registry.app, admin, &again)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::DomainDenied);
    let refused = domain_recrawl(&setup.registry.app, admin, DOMAIN, &Recrawl::default())
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::DomainDenied);
    setup.registry.assert_index_matches_database().await;

    setup
        .names
        .set_texts(STANDING, TxtLookup::Failed("SERVFAIL".into()));
    assert_eq!(
        setup.next_day().await,
        "opted_out",
        "a failed query does not end the opt-out"
    );
    setup.remove(STANDING);
    assert_eq!(setup.next_day().await, "unverified");
    assert!(setup.registry.holds(agent).await.is_empty());
    setup.registry.advance(Duration::minutes(1));
    assert_eq!(
        setup
            .registry
            .run_due_visits(|_| OriginResponse::NotModified)
            .await,
        1
    );
    setup.registry.assert_index_matches_database().await;
}

/// An owner of a proved domain manages it and its agents; a stranger may not.
async fn an_owner_manages_its_agents(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let stranger = setup.create_publisher("stranger").await;
    let app = &setup.registry.app;
    let id = agent.to_string();
    let contact = |text: &str| DomainPatch {
        contact: Some(text.into()),
        opt_out: None,
        ..DomainPatch::default()
    };
    let act = Act {
        reason: "moved".into(),
        hold: None,
    };
    let narrow = |visibility| AgentPatch {
        visibility: Some(visibility),
        labels: None,
        ..AgentPatch::default()
    };
    for refused in [
        domain_patch(app, &stranger, DOMAIN, &contact(""))
            .await
            .unwrap_err(),
        agent_deprecate(app, &stranger, &id, &moved())
            .await
            .unwrap_err(),
        agent_retire(app, &stranger, &id, &act).await.unwrap_err(),
        agent_patch(app, &stranger, &id, &narrow(Visibility::Internal))
            .await
            .unwrap_err(),
        agent_suspend(app, &owner, &id, &act).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind, ErrorKind::Forbidden, "{refused:?}");
    }
    let view = domain_patch(app, &owner, DOMAIN, &contact("mailto:ops@acme.example"))
        .await
        .unwrap();
    assert_eq!(view.contact.as_deref(), Some("mailto:ops@acme.example"));
    for bad in [
        "javascript:alert(1)",
        "ops",
        &format!("https://{}", "x".repeat(400)),
    ] {
        let refused = domain_patch(app, &owner, DOMAIN, &contact(bad))
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid, "{bad}");
    }
    let agent = agent_patch(app, &owner, &id, &narrow(Visibility::Internal))
        .await
        .unwrap();
    assert_eq!(agent.hit.summary.visibility, Visibility::Internal);
    setup.registry.catch_up().await;
    assert!(setup.registry.publicly_found_ids().await.is_empty());
    let wider = agent_patch(app, &owner, &id, &narrow(Visibility::Public))
        .await
        .unwrap_err();
    assert_eq!(wider.kind, ErrorKind::Forbidden);
    agent_patch(app, &setup.registry.admin, &id, &narrow(Visibility::Public))
        .await
        .unwrap();
    let labels = AgentPatch {
        visibility: None,
        labels: Some([("tier".into(), "gold".into())].into()),
        ..AgentPatch::default()
    };
    assert_eq!(
        agent_patch(app, &owner, &id, &labels)
            .await
            .unwrap_err()
            .kind,
        ErrorKind::Forbidden
    );
    let labelled = agent_patch(app, &setup.registry.admin, &id, &labels)
        .await
        .unwrap();
    assert_eq!(labelled.hit.summary.labels["tier"], "gold");
    agent_deprecate(app, &owner, &id, &moved()).await.unwrap();
    setup.registry.assert_index_matches_database().await;
    agent_retire(app, &owner, &id, &act).await.unwrap();
    assert!(
        setup
            .registry
            .public_card_bytes(id.parse().unwrap())
            .await
            .is_none()
    );
}

/// An owner opts its domain out and in again by itself.
async fn an_owner_opts_out_and_in(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let set = |opt_out| DomainPatch {
        contact: None,
        opt_out: Some(opt_out),
        ..DomainPatch::default()
    };
    let app = &setup.registry.app;
    let view = domain_patch(app, &owner, DOMAIN, &set(true)).await.unwrap();
    assert_eq!(view.state.as_str(), "opted_out");
    assert_eq!(setup.registry.public_card_bytes(agent).await, None);
    assert_eq!(
        setup.next_day().await,
        "opted_out",
        "an owner's opt-out needs no record"
    );
    let view = domain_patch(app, &owner, DOMAIN, &set(false))
        .await
        .unwrap();
    assert_eq!(
        (view.state.as_str(), view.owner.as_deref()),
        ("verified", Some("acme"))
    );
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    setup.registry.assert_index_matches_database().await;
}

/// A transferred domain is the other account's to prove; the old record no longer counts.
async fn a_domain_is_transferred(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let heir = setup.create_publisher("heir").await;
    let app = &setup.registry.app;
    let to = |name: &str| Transfer {
        account: name.into(),
    };
    let refused = domain_transfer(app, &owner, DOMAIN, &to("nobody"))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid);
    domain_transfer(app, &owner, DOMAIN, &to("heir"))
        .await
        .unwrap();
    assert_eq!(setup.state().await, "lapsed");
    assert_eq!(
        setup.next_day().await,
        "lapsed",
        "the former owner's record proves nothing"
    );
    let view = setup.domain_view(&heir).await;
    setup.place_standing_record(&view);
    setup.verify(&heir).await.unwrap();
    assert_eq!(
        setup.domain_view(&heir).await.owner.as_deref(),
        Some("heir")
    );
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    assert_eq!(
        domain_patch(app, &owner, DOMAIN, &DomainPatch::default())
            .await
            .unwrap_err()
            .kind,
        ErrorKind::Forbidden
    );
}

/// An enrolled key verifies cards whose signatures name no key set, and raises the level of trust; once revoked it does
/// neither.
async fn an_owner_enrols_its_keys(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let (owner, agent) = setup.prove_with_agent().await;
    let app = &setup.registry.app;
    let random = SystemRandom::new();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let key = SigningKey::from_bytes(pkcs8.as_ref(), &random).unwrap();
    let jwks: serde_json::Value = serde_json::from_str(&key.public_jwks("k1")).unwrap();
    let stranger = setup.create_publisher("stranger").await;
    let refused = key_enrol(app, &stranger, DOMAIN, "k1", &jwks["keys"][0])
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    for bad in [
        serde_json::json!({}),
        serde_json::json!("k"),
        serde_json::json!({"kty": "oct", "k": "AAAA"}),
    ] {
        let refused = key_enrol(app, &owner, DOMAIN, "k1", &bad)
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid, "{bad}");
    }
    let view = key_enrol(app, &owner, DOMAIN, "k1", &jwks["keys"][0])
        .await
        .unwrap();
    assert_eq!(view.keys[0].kid, "k1");

    let header = ProtectedHeader {
        kid: "k1".into(),
        jku: None,
    };
    let bytes = a2a_card::sign_card(
        &card_bytes("Travel", "Books flights"),
        &key,
        &header,
        &random,
    )
    .unwrap();
    let trust = async || {
        let shown = agent_show_checked(app, &setup.registry.admin, &agent.to_string())
            .await
            .unwrap();
        let trust = shown.hit.summary.trust;
        (
            trust
                .level
                .map(|level| level.to_string())
                .unwrap_or_default(),
            trust.signature.to_string(),
        )
    };
    setup
        .registry
        .crawl_domain(DOMAIN, OriginResponse::Card(bytes.clone()))
        .await;
    if setup.registry.find_open_review(agent).await.is_some() {
        setup.registry.approve_open_review(agent).await;
    }
    assert_eq!(trust().await, ("L3".into(), "valid".into()));
    setup.registry.assert_index_matches_database().await;
    key_withdraw(app, &owner, DOMAIN, "k1").await.unwrap();
    assert_eq!(
        key_withdraw(app, &owner, DOMAIN, "k1")
            .await
            .unwrap_err()
            .kind,
        ErrorKind::NotFound
    );
    setup.registry.assert_index_matches_database().await;
    assert_ne!(trust().await.0, "L3");
}

/// An account that a card names in the owner extension manages that agent, and no other, as long as the domain is
/// unproved.
async fn a_card_names_its_owner(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let [author, other] = [
        setup.create_publisher("author").await,
        setup.create_publisher("other").await,
    ];
    let app = &setup.registry.app;
    let named = |account: &str| {
        let mut value: serde_json::Value =
            serde_json::from_slice(&card_bytes("Shared", "Hosted with others")).unwrap();
        value["capabilities"]["extensions"] = serde_json::json!([{
            "uri": "http://127.0.0.1:8080/ext/owner/v1",
            "params": {"account": account},
        }]);
        value.to_string().into_bytes()
    };
    let author_id = author.account.as_ref().unwrap().id;
    let uri = format!("http://127.0.0.1:8080/accounts/{author_id}");
    let agent = setup
        .registry
        .register_approved_card(DOMAIN, &named(&uri))
        .await
        .id
        .to_string();
    assert_eq!(
        agent_deprecate(app, &other, &agent, &moved())
            .await
            .unwrap_err()
            .kind,
        ErrorKind::Forbidden
    );
    agent_deprecate(app, &author, &agent, &moved())
        .await
        .unwrap();
    let act = Act {
        reason: "moved".into(),
        hold: None,
    };
    agent_undeprecate(app, &author, &agent, &act).await.unwrap();
    // The extension proves the card, but not the domain.
    assert_eq!(setup.state().await, "unverified");
    assert_eq!(
        domain_patch(app, &author, DOMAIN, &DomainPatch::default())
            .await
            .unwrap_err()
            .kind,
        ErrorKind::Forbidden
    );
    // A proof of the domain is worth more.
    let view = setup.register(&other, DOMAIN).await;
    setup.place_standing_record(&view);
    setup.verify(&other).await.unwrap();
    assert_eq!(
        agent_retire(app, &author, &agent, &act)
            .await
            .unwrap_err()
            .kind,
        ErrorKind::Forbidden
    );
    setup.registry.assert_index_matches_database().await;
    agent_retire(app, &other, &agent, &act).await.unwrap();
    // Accounts that do not exist, and accounts of other registries, count as none.
    for (number, wrong) in [
        uri.replace("127.0.0.1", "elsewhere"),
        format!("{uri}0"),
        Uuid::nil().to_string(),
    ]
    .iter()
    .enumerate()
    {
        let domain = format!("wrong{number}.agents-test.com");
        let agent = setup
            .registry
            .register_with_card(&domain, &named(wrong))
            .await;
        assert_eq!((agent.claimed_by, agent.owner_id), (None, None), "{wrong}");
    }
}

/// A new owner starts a new generation: nothing of the old one counts, not even decisions by persons.
async fn a_new_generation_needs_every_decision_again(url: &str) {
    let setup = OwnershipSetup::new(url).await;
    let app = &setup.registry.app;
    let bytes = card_bytes("Travel", "Books flights");
    let agent = setup
        .registry
        .register_approved_card(DOMAIN, &bytes)
        .await
        .id;
    let owner = setup.create_publisher("acme").await;
    let view = setup.register(&owner, DOMAIN).await;
    setup.place_standing_record(&view);
    setup.verify(&owner).await.unwrap();
    setup.remove(STANDING);
    let why = |reason: &str| a2a_registry_api::NewGeneration {
        reason: reason.into(),
    };
    let refused = domain_new_generation(app, &owner, DOMAIN, &why("mine"))
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    setup.registry.advance(Duration::seconds(1));
    let view = domain_new_generation(app, &setup.registry.admin, DOMAIN, &why("sold"))
        .await
        .unwrap();
    assert_eq!(
        (view.generation, view.state.as_str(), view.proofs.len()),
        (2, "unverified", 0)
    );
    assert_eq!(setup.registry.public_card_bytes(agent).await, None);
    assert_eq!(
        setup.registry.agent(DOMAIN).await.lifecycle,
        Lifecycle::Pending
    );
    assert!(
        view.not_listed
            .iter()
            .any(|reason| reason.contains("waits for its first approval")),
        "{view:#?}"
    );
    setup.registry.assert_index_matches_database().await;
    // Even content that a person had approved waits again, also after the next fetch.
    setup
        .registry
        .crawl_domain(DOMAIN, OriginResponse::Card(bytes))
        .await;
    assert_eq!(setup.registry.public_card_bytes(agent).await, None);
    setup.registry.approve_open_review(agent).await;
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    setup.registry.assert_index_matches_database().await;
}
