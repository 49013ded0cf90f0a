//! Change of owner: the name servers, TLS key and card keys of a domain have all changed
//! (docs/publish/prove.md#a-domain-changes-hands).

use a2a_registry_api::{Event, OwnerFingerprint};
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::load_events_after;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;

use super::tls_site::TlsSite;
use super::{DOMAIN, OwnershipSetup, STANDING};
use crate::support::both_databases;
use crate::support::in_process_registry::{OriginResponse, card_bytes};
use crate::support::signer::CardSigner;

const ZONE: &str = "agents-test.com";
const JKU: &str = "https://travel.agents-test.com/keys.json";

/// A proved domain on its own site, with one agent whose card is signed.
struct OwnedDomain {
    setup: OwnershipSetup,
    site: TlsSite,
    owner: Caller,
    signer: CardSigner,
}

impl OwnedDomain {
    async fn new(url: &str) -> Option<Self> {
        let site = TlsSite::on_443().await?;
        let setup = OwnershipSetup::at_site(url, &site).await;
        setup
            .names
            .set_name_servers(ZONE, ["ns1.first.example", "ns2.first.example"]);
        let owner = setup.create_publisher("acme").await;
        let view = setup.register(&owner, DOMAIN).await;
        setup.place_standing_record(&view);
        let owned = Self {
            setup,
            site,
            owner,
            signer: CardSigner::new(JKU),
        };
        owned.signed_by(&owned.signer).await;
        owned.setup.verify(&owned.owner).await.unwrap();
        assert_eq!(owned.setup.state().await, "verified");
        Some(owned)
    }

    /// Signs the card with that key.
    async fn signed_by(&self, signer: &CardSigner) {
        let bytes = signer.sign(&card_bytes("Travel", "Books flights"));
        let answer = OriginResponse::SignedCard(bytes, signer.fetched_key_set());
        self.setup.registry.crawl_domain(DOMAIN, answer).await;
    }

    async fn fingerprint(&self) -> OwnerFingerprint {
        let view = self.setup.domain_view(&self.setup.registry.admin).await;
        view.known_by.unwrap()
    }

    async fn generation(&self) -> i64 {
        self.setup
            .domain_view(&self.setup.registry.admin)
            .await
            .generation
    }
}

both_databases!(
    an_owner_may_change_its_fingerprint_part_by_part,
    a_wholly_changed_fingerprint_ends_the_generation,
    the_next_owner_begins_its_own_generation
);

/// Changes while the proof holds are the owner's own, as long as one part of the fingerprint stays.
async fn an_owner_may_change_its_fingerprint_part_by_part(url: &str) {
    let Some(owned) = OwnedDomain::new(url).await else {
        return;
    };
    let setup = &owned.setup;
    let first = owned.fingerprint().await;
    assert_eq!(
        first.name_servers,
        ["ns1.first.example", "ns2.first.example"]
    );
    assert_eq!((first.tls_key.is_some(), first.card_keys.len()), (true, 1));
    assert_eq!(
        setup.domain_view(&Caller::default()).await.known_by,
        None,
        "the fingerprint is hidden from strangers"
    );

    owned.site.change_key();
    setup.names.set_name_servers(ZONE, ["ns.second.example"]);
    assert_eq!(setup.next_day().await, "verified");
    let second = owned.fingerprint().await;
    assert_eq!(second.name_servers, ["ns.second.example"]);
    assert_ne!(second.tls_key, first.tls_key);
    assert_eq!(second.card_keys, first.card_keys);

    // The last of the first fingerprint's parts changes, and two of the second one's stay.
    owned.signed_by(&CardSigner::new(JKU)).await;
    assert_eq!(setup.next_day().await, "verified");
    assert_ne!(owned.fingerprint().await.card_keys, first.card_keys);
    assert_eq!(owned.generation().await, 1);
    assert!(
        setup
            .registry
            .holds(setup.registry.agent(DOMAIN).await.id)
            .await
            .is_empty()
    );
}

/// If the proof has lapsed and then the whole fingerprint changes, nothing of the old owner's counts any more.
async fn a_wholly_changed_fingerprint_ends_the_generation(url: &str) {
    let Some(owned) = OwnedDomain::new(url).await else {
        return;
    };
    let setup = &owned.setup;
    let agent = setup.registry.agent(DOMAIN).await;
    assert!(setup.registry.public_card_bytes(agent.id).await.is_some());
    setup.remove(STANDING);
    setup.names.set_name_servers(ZONE, ["ns.other.example"]);
    setup.next_day().await;
    owned.site.change_key();
    setup.next_day().await;
    assert_eq!(owned.generation().await, 1, "the card's key is the same");
    // A missing response is no change.
    setup.names.set(DOMAIN, []);
    owned.site.change_key();
    owned.signed_by(&CardSigner::new(JKU)).await;
    setup.next_day().await;
    assert_eq!(owned.generation().await, 1, "the TLS key cannot be fetched");

    setup.names.set(DOMAIN, [owned.site.address().ip()]);
    assert_eq!(setup.next_day().await, "unverified");
    let view = setup.domain_view(&setup.registry.admin).await;
    assert_eq!(
        (
            view.generation,
            view.proofs.len(),
            view.owner,
            view.known_by
        ),
        (2, 0, None, None)
    );
    let now = setup.registry.agent(DOMAIN).await;
    assert_eq!(
        (now.lifecycle.as_str(), now.approved_version, now.owner_id),
        ("pending", None, None)
    );
    assert_eq!(now.urn, agent.urn, "a name is never given to another agent");
    assert_eq!(setup.registry.public_card_bytes(agent.id).await, None);
    setup.registry.assert_index_matches_database().await;
    let events = load_events_after(
        &setup.registry.app,
        &setup.registry.admin,
        &EventFilter::default(),
        &mut 0,
        1000,
    )
    .await
    .unwrap();
    // Nobody asked for the review: the end of the generation opened it.
    let opened = |event: &&Event| event.kind == EventKind::ReviewOpened;
    assert_eq!(events.iter().rfind(opened).unwrap().actor, "system");
    let events: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::DomainGeneration)
        .collect();
    assert_eq!((events.len(), events[0].actor.as_str()), (1, "system"));
    assert!(
        events[0].data["reason"]
            .as_str()
            .unwrap()
            .contains("name servers"),
        "{:?}",
        events[0].data
    );
    // The generation ends once, and not again every day.
    setup.next_day().await;
    assert_eq!(owned.generation().await, 2);
}

/// An account that proves a domain once its whole fingerprint has changed owns it from then on; the old owner's record
/// does not count, although it still exists.
async fn the_next_owner_begins_its_own_generation(url: &str) {
    let Some(owned) = OwnedDomain::new(url).await else {
        return;
    };
    let setup = &owned.setup;
    let agent = setup.registry.agent(DOMAIN).await.id;
    let heir = setup.create_publisher("heir").await;
    let theirs = setup.register(&heir, DOMAIN).await;
    let values = [&setup.domain_view(&owned.owner).await, &theirs]
        .map(|view| view.challenges[0].value.clone().unwrap());
    let mut records = a2a_crawler::dns::TxtRecords::default();
    for value in &values {
        records.push([value.as_str()]);
    }
    setup
        .names
        .set_texts(STANDING, a2a_crawler::dns::TxtLookup::Records(records));
    setup.names.set_name_servers(ZONE, ["ns.other.example"]);
    owned.site.change_key();
    owned.signed_by(&CardSigner::new(JKU)).await;
    setup.next_day().await;

    let view = setup.domain_view(&setup.registry.admin).await;
    assert_eq!(
        (view.generation, view.state.as_str(), view.owner.as_deref()),
        (2, "verified", Some("heir"))
    );
    assert_eq!(view.known_by.unwrap().name_servers, ["ns.other.example"]);
    let refused: Vec<_> = view
        .checks
        .iter()
        .filter(|check| check.detail.contains("has a new owner"))
        .collect();
    assert_eq!(refused.len(), 1, "{:#?}", view.checks);
    assert_eq!(
        setup.registry.agent(DOMAIN).await.owner_id,
        heir.account.as_ref().map(|account| account.id)
    );
    setup.registry.assert_index_matches_database().await;
    // The admission rules decide anew, as for any proved domain.
    assert!(setup.registry.public_card_bytes(agent).await.is_some());
    assert_eq!(setup.next_day().await, "verified");
    assert_eq!(owned.generation().await, 2);
}
