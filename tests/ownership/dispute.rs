//! A domain that several accounts have proved equally well: all of them see the dispute, and none may change the
//! domain.

use a2a_registry_api::{
    Act, AgentPatch, Deprecate, DomainPatch, DomainView, Registration, Transfer,
};
use a2a_registry_core::agents::lifecycle_actions::{
    agent_deprecate, agent_retire, agent_undeprecate,
};
use a2a_registry_core::domains::actions::domain_list;
use a2a_registry_core::domains::enrolled_keys::{key_enrol, key_withdraw};
use a2a_registry_core::domains::owner_actions::{domain_patch, domain_transfer};
use a2a_registry_core::domains::register;
use a2a_registry_core::domains::withdrawal::{domain_delete, source_withdraw};
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::lifecycle::{Lifecycle, Visibility};
use serde_json::json;
use uuid::Uuid;

use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::in_process_registry::agent_patch;

/// A domain with an agent that `acme` has registered and proved, and `rival` has proved as well.
struct DisputedDomain {
    setup: OwnershipSetup,
    acme: Caller,
    rival: Caller,
    agent: Uuid,
    /// The standing records of both accounts.
    records: [String; 2],
}

impl DisputedDomain {
    async fn new(url: &str) -> Self {
        let setup = OwnershipSetup::new(url).await;
        let (acme, agent) = setup.prove_with_agent().await;
        let rival = setup.create_publisher("rival").await;
        let theirs = setup.register(&rival, DOMAIN).await;
        let ours = setup.domain_view(&acme).await;
        let records = [ours, theirs].map(|view| view.challenges[0].value.clone().unwrap());
        setup.place_records(STANDING, records.iter().map(String::as_str));
        setup.verify(&rival).await.unwrap();
        assert_eq!(setup.state().await, "disputed");
        Self {
            setup,
            acme,
            rival,
            agent,
            records,
        }
    }

    async fn list(&self, caller: &Caller) -> Vec<String> {
        let page = PageRequest::default();
        let list = domain_list(&self.setup.registry.app, caller, &page).await;
        let domains = list.unwrap().domains;
        domains.into_iter().map(|view| view.domain).collect()
    }

    async fn register(&self, caller: &Caller, what: Registration) -> Result<DomainView, AppError> {
        register::register_domain(&self.setup.registry.app, caller, &what).await
    }

    /// The errors of every act that an owner may do.
    async fn writes(&self, caller: &Caller) -> Vec<AppError> {
        let app = &self.setup.registry.app;
        let agent = self.agent.to_string();
        let patch = DomainPatch {
            contact: Some("mailto:ops@rival.example".into()),
            opt_out: None,
            ..DomainPatch::default()
        };
        let to = Transfer {
            account: "rival".into(),
        };
        let act = Act {
            reason: "mine".into(),
            hold: None,
        };
        let gone = Deprecate {
            reason: "mine".into(),
            ..Deprecate::default()
        };
        let narrow = AgentPatch {
            visibility: Some(Visibility::Internal),
            labels: None,
            ..AgentPatch::default()
        };
        let shown = self.setup.domain_view(&self.setup.registry.admin).await;
        let source = &shown.sources[0].id;
        vec![
            source_withdraw(app, caller, DOMAIN, source)
                .await
                .unwrap_err(),
            domain_patch(app, caller, DOMAIN, &patch).await.unwrap_err(),
            domain_transfer(app, caller, DOMAIN, &to).await.unwrap_err(),
            domain_delete(app, caller, DOMAIN).await.unwrap_err(),
            key_enrol(app, caller, DOMAIN, "k1", &json!({}))
                .await
                .unwrap_err(),
            key_withdraw(app, caller, DOMAIN, "k1").await.unwrap_err(),
            agent_patch(app, caller, &agent, &narrow).await.unwrap_err(),
            agent_deprecate(app, caller, &agent, &gone)
                .await
                .unwrap_err(),
            agent_undeprecate(app, caller, &agent, &act)
                .await
                .unwrap_err(),
            agent_retire(app, caller, &agent, &act).await.unwrap_err(),
        ]
    }
}

both_databases!(
    both_parties_get_the_reason_for_each_refusal,
    both_parties_see_the_same,
    a_disputed_domain_accepts_no_registration,
    a_dispute_outlasts_an_opt_out,
    a_dispute_is_decided_for_either_party
);

/// Each party gets an error that names the dispute and how it ends, for every act.
async fn both_parties_get_the_reason_for_each_refusal(url: &str) {
    let disputed = DisputedDomain::new(url).await;
    for party in [&disputed.acme, &disputed.rival] {
        for refused in disputed.writes(party).await {
            assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
            assert!(refused.public.contains("is disputed"), "{}", refused.public);
            assert!(
                refused.public.contains("The dispute ends when"),
                "{}",
                refused.public
            );
        }
    }
    let setup = &disputed.setup;
    let view = setup.domain_view(&setup.registry.admin).await;
    assert_eq!(
        (view.contact, view.keys.len(), view.generation),
        (None, 0, 1)
    );
    assert_eq!(
        setup.registry.agent(DOMAIN).await.lifecycle,
        Lifecycle::Approved
    );
    // A stranger is no party, and does not learn whose agent it is.
    let stranger = setup.create_publisher("stranger").await;
    for refused in disputed.writes(&stranger).await {
        assert_eq!(refused.kind, ErrorKind::NotFound, "{refused:?}");
    }
}

/// The second party sees what the first one sees, also in its list, as long as the dispute lasts.
async fn both_parties_see_the_same(url: &str) {
    let disputed = DisputedDomain::new(url).await;
    let setup = &disputed.setup;
    setup.registry.advance(time::Duration::minutes(1));
    let [mut first, mut second] = [
        setup.domain_view(&disputed.acme).await,
        setup.domain_view(&disputed.rival).await,
    ];
    assert_ne!(
        first.challenges, second.challenges,
        "each party has challenges of its own"
    );
    first.challenges.clear();
    second.challenges.clear();
    assert_eq!(first, second);
    assert_eq!(second.agents, [disputed.agent]);
    assert!(
        second
            .not_listed
            .iter()
            .any(|reason| reason.contains("two accounts have proved")),
        "{second:#?}"
    );
    assert!(
        second
            .sources
            .iter()
            .any(|source| source.last_attempt.is_some())
    );
    for party in [&disputed.acme, &disputed.rival] {
        assert_eq!(disputed.list(party).await, [DOMAIN]);
    }
    // An account with a weaker proof is no longer a party, and sees what every registrant sees.
    setup.place_record(STANDING, &disputed.records[0]);
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(
        setup.domain_view(&disputed.acme).await.owner.as_deref(),
        Some("acme")
    );
    let outside = setup.domain_view(&disputed.rival).await;
    assert_eq!((outside.owner, outside.not_listed.len()), (None, 0));
    assert!(
        outside.sources.iter().all(|source| source.own),
        "{:#?}",
        outside.sources
    );
    assert_eq!(disputed.list(&disputed.rival).await, [DOMAIN]);
}

/// Nothing is added to a disputed domain, by its parties or by strangers; callers who may decide the dispute may add.
async fn a_disputed_domain_accepts_no_registration(url: &str) {
    let disputed = DisputedDomain::new(url).await;
    let setup = &disputed.setup;
    let before = setup.domain_view(&setup.registry.admin).await.sources.len();
    let stranger = setup.create_publisher("stranger").await;
    let card = || Registration {
        card_url: Some(format!("https://{DOMAIN}/more.json")),
        ..Registration::default()
    };
    for caller in [&disputed.acme, &disputed.rival, &stranger] {
        for what in [
            card(),
            Registration {
                domain: Some(DOMAIN.into()),
                ..Registration::default()
            },
        ] {
            let refused = disputed.register(caller, what).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
            assert!(refused.public.contains("is disputed"), "{}", refused.public);
        }
    }
    assert_eq!(
        setup.domain_view(&setup.registry.admin).await.sources.len(),
        before
    );
    let view = disputed
        .register(&setup.registry.admin, card())
        .await
        .unwrap();
    assert_eq!(
        view.sources.len(),
        1,
        "sources from before are not the caller's"
    );
    assert_eq!(
        setup.domain_view(&setup.registry.admin).await.sources.len(),
        before + 1
    );
    // Once settled, the domain takes registrations of its owner again.
    setup.place_record(STANDING, &disputed.records[1]);
    for _ in 0..4 {
        setup.next_day().await;
    }
    assert_eq!(setup.state().await, "verified");
    disputed.register(&disputed.rival, card()).await.unwrap();
}

/// Opting out does not settle a dispute: its parties still see it.
async fn a_dispute_outlasts_an_opt_out(url: &str) {
    let disputed = DisputedDomain::new(url).await;
    let setup = &disputed.setup;
    let set = |opt_out| DomainPatch {
        contact: None,
        opt_out: Some(opt_out),
        ..DomainPatch::default()
    };
    domain_patch(
        &setup.registry.app,
        &setup.registry.admin,
        DOMAIN,
        &set(true),
    )
    .await
    .unwrap();
    assert_eq!(setup.state().await, "opted_out");
    for party in [&disputed.acme, &disputed.rival] {
        let refused = domain_patch(&setup.registry.app, party, DOMAIN, &set(false))
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
    }
    domain_patch(
        &setup.registry.app,
        &setup.registry.admin,
        DOMAIN,
        &set(false),
    )
    .await
    .unwrap();
    assert_eq!(setup.state().await, "disputed");
}

/// A curator decides for either party, the first or the second, and the daily check leaves the decision although both
/// records still exist. The losing party reopens the dispute only by requesting a check of its own.
async fn a_dispute_is_decided_for_either_party(url: &str) {
    let disputed = DisputedDomain::new(url).await;
    let setup = &disputed.setup;
    let (app, admin) = (&setup.registry.app, &setup.registry.admin);
    let parties = [
        ("acme", &disputed.acme, &disputed.rival),
        ("rival", &disputed.rival, &disputed.acme),
    ];
    for (winner, own, other) in parties {
        let to = Transfer {
            account: winner.into(),
        };
        let view = domain_transfer(app, admin, DOMAIN, &to).await.unwrap();
        assert_eq!(
            (view.state.as_str(), view.owner.as_deref()),
            ("verified", Some(winner))
        );
        assert_eq!(
            setup.registry.agent(DOMAIN).await.lifecycle,
            Lifecycle::Approved
        );
        assert_eq!(setup.next_day().await, "verified");
        assert_eq!(setup.domain_view(own).await.owner.as_deref(), Some(winner));
        domain_patch(app, own, DOMAIN, &DomainPatch::default())
            .await
            .unwrap();
        setup.verify(other).await.unwrap();
        assert_eq!(setup.state().await, "disputed");
    }
}
