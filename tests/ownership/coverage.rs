//! What a domain's proof covers, by every way in which a source comes in (model.md section 4): a stranger gets nothing
//! listed under, named by, or levelled by another's domain.

use std::collections::BTreeMap;

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry::api::{
    DomainView, NewGeneration, NewToken, Registration, SourceView, Transfer, Vouch,
};
use a2a_registry::app::Caller;
use a2a_registry::config::{Config, Registration as WhoRegisters};
use a2a_registry::domain::admission::DomainPattern;
use a2a_registry::domain::coverage::Coverage::{self, Covered, Nomination};
use a2a_registry::domain::role::Role;
use a2a_registry::store::entity::source;
use time::Duration;

use super::House;
use crate::support::both_databases;
use crate::support::stage::{Answer, Read, card};

const URL: &str = "/cards/x.json";
const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// Who acts.
#[derive(Debug, Clone, Copy)]
enum Who {
    Owner,
    Heir,
    Stranger,
    Partner,
    Curator,
    Anyone,
    AdminApproving,
}

/// What happens, one after the other.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Somebody registers the domain, or a card of it by its path.
    Domain(Who),
    Card(Who, &'static str),
    /// Somebody places a record and has it looked for, with that policy.
    Prove(Who, &'static str),
    /// The owner proves another host.
    ProveOther(&'static str),
    /// An admin says that the other host has another owner now; or its owner deletes it.
    OtherIsAnothers(&'static str),
    DeleteOther(&'static str),
    /// The record is gone until the proof ends.
    Lapse,
    /// Given away to the heir.
    Transfer,
    /// An admin's word, for an account's sources too where one is named.
    Vouch(Option<&'static str>),
    /// The catalog names the card from now on, or does not; or one that another host answers does.
    Catalog(bool),
    CatalogOfAnotherHost,
    /// The card lies on that host, and whatever names it names it there.
    LiesAt(&'static str),
    /// The card's path redirects there.
    Redirect(&'static str),
    /// Whatever is due is visited.
    Visit,
    /// Everything is looked at in full.
    Look,
}
use Step::{
    Card, Catalog, CatalogOfAnotherHost, DeleteOther, Domain, Lapse, LiesAt, Look, OtherIsAnothers,
    Prove, ProveOther, Redirect, Transfer as Give, Visit, Vouch as Word,
};
use Who::{AdminApproving, Anyone, Curator, Heir, Owner, Partner, Stranger};

/// What becomes of the card: coverage, lifecycle, the rule that decided, level, and whether it has a URN.
type Becomes = (Coverage, &'static str, &'static str, &'static str, bool);

const OWN: Becomes = (Covered, "approved", "verified_domain", "L1", true);
const WAITS: Becomes = (Nomination, "pending", "no_rule", "L0", false);

/// A way in which a source comes in: its name, where the card lies, what happens, and what becomes of it.
type Way = (&'static str, &'static str, &'static [Step], Becomes);

const EXACT: Step = Prove(Owner, "exact");

const WAYS: &[Way] = &[
    (
        "bare domain by a stranger, then proved",
        WELL_KNOWN,
        &[Domain(Stranger), Visit, EXACT],
        OWN,
    ),
    (
        "bare domain by the owner, then by a stranger",
        WELL_KNOWN,
        &[EXACT, Domain(Stranger), Visit],
        OWN,
    ),
    (
        "well-known path by a stranger, then proved",
        WELL_KNOWN,
        &[Card(Stranger, WELL_KNOWN), Visit, EXACT],
        OWN,
    ),
    (
        "well-known path of an unproved domain",
        WELL_KNOWN,
        &[Card(Stranger, WELL_KNOWN), Visit],
        (Covered, "pending", "no_rule", "L0", false),
    ),
    (
        "card URL by a stranger, proved before",
        URL,
        &[EXACT, Card(Stranger, URL), Visit],
        WAITS,
    ),
    (
        "card URL by a stranger, proved afterwards",
        URL,
        &[Card(Stranger, URL), Visit, EXACT],
        WAITS,
    ),
    (
        "card URL by the owner before proving",
        URL,
        &[Card(Owner, URL), Visit, EXACT],
        OWN,
    ),
    (
        "card URL by the owner after proving",
        URL,
        &[EXACT, Card(Owner, URL), Visit],
        OWN,
    ),
    (
        "the same URL by both, the stranger first",
        URL,
        &[EXACT, Card(Stranger, URL), Visit, Card(Owner, URL)],
        OWN,
    ),
    (
        "the same URL by both, the owner first",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Card(Stranger, URL), Look],
        OWN,
    ),
    (
        "by a curator",
        URL,
        &[EXACT, Card(Curator, URL), Visit],
        (Nomination, "approved", "verified_domain", "L0", false),
    ),
    (
        "by a curator, then by the owner",
        URL,
        &[EXACT, Card(Curator, URL), Visit, Card(Owner, URL)],
        OWN,
    ),
    (
        "by an account vouched for",
        URL,
        &[
            Domain(Stranger),
            Word(Some("partner")),
            Card(Partner, URL),
            Visit,
        ],
        (Nomination, "approved", "verified_domain", "L0", false),
    ),
    (
        "by an account vouched for afterwards",
        URL,
        &[Card(Partner, URL), Visit, Word(Some("partner"))],
        (Nomination, "approved", "verified_domain", "L0", false),
    ),
    (
        "by another account than the one vouched for",
        URL,
        &[
            Domain(Stranger),
            Word(Some("partner")),
            Card(Stranger, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "under a vouch that names nobody",
        URL,
        &[Domain(Partner), Word(None), Card(Partner, URL), Visit],
        WAITS,
    ),
    (
        "well-known path under a vouch",
        WELL_KNOWN,
        &[Domain(Stranger), Word(None), Visit],
        (Covered, "approved", "verified_domain", "L0", false),
    ),
    (
        "named by the catalog before",
        URL,
        &[EXACT, Catalog(true), Visit, Card(Stranger, URL), Look, Look],
        OWN,
    ),
    (
        "named by the catalog afterwards",
        URL,
        &[
            EXACT,
            Visit,
            Card(Stranger, URL),
            Visit,
            Catalog(true),
            Look,
        ],
        OWN,
    ),
    (
        "named by the catalog and dropped again",
        URL,
        &[
            EXACT,
            Visit,
            Card(Stranger, URL),
            Visit,
            Catalog(true),
            Look,
            Catalog(false),
            Look,
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "named by a catalog of another host",
        URL,
        &[
            EXACT,
            CatalogOfAnotherHost,
            Visit,
            Card(Stranger, URL),
            Look,
            Look,
        ],
        WAITS,
    ),
    (
        "catalog entry on another host",
        URL,
        &[LiesAt("other-{}"), EXACT, Catalog(true), Visit, Look, Look],
        WAITS,
    ),
    (
        "catalog entry on another host of the same account",
        URL,
        &[
            LiesAt("other-{}"),
            EXACT,
            ProveOther("other-{}"),
            Catalog(true),
            Visit,
            Look,
            Look,
        ],
        WAITS,
    ),
    (
        "redirect within the host",
        URL,
        &[EXACT, Redirect("/elsewhere.json"), Card(Owner, URL), Visit],
        OWN,
    ),
    (
        "redirect to www",
        URL,
        &[
            EXACT,
            Redirect("https://www.{}/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "redirect to www under a record for subdomains",
        URL,
        &[
            Prove(Owner, "subdomains"),
            Redirect("https://www.{}/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        OWN,
    ),
    (
        "redirect to www, the record for subdomains later",
        URL,
        &[
            EXACT,
            Redirect("https://www.{}/x.json"),
            Card(Owner, URL),
            Visit,
            Prove(Owner, "subdomains"),
        ],
        OWN,
    ),
    (
        "redirect to a port of the host",
        URL,
        &[
            Prove(Owner, "subdomains"),
            Redirect("https://{}:8443/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "redirect to plain http",
        URL,
        &[EXACT, Redirect("http://{}/x.json"), Card(Owner, URL), Visit],
        WAITS,
    ),
    (
        "redirect to a host of the same account",
        URL,
        &[
            EXACT,
            ProveOther("other-{}"),
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        OWN,
    ),
    (
        "redirect to a host that the account proves later",
        URL,
        &[
            EXACT,
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
            ProveOther("other-{}"),
        ],
        OWN,
    ),
    (
        "redirect to a host of the same account that gets another owner",
        URL,
        &[
            EXACT,
            ProveOther("other-{}"),
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
            OtherIsAnothers("other-{}"),
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "redirect to a host of the same account that is deleted",
        URL,
        &[
            EXACT,
            ProveOther("other-{}"),
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
            DeleteOther("other-{}"),
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "redirect to a stranger's host",
        URL,
        &[
            EXACT,
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "redirect of the well-known path to a stranger's host",
        WELL_KNOWN,
        &[
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            EXACT,
            Visit,
        ],
        WAITS,
    ),
    (
        "a stranger's URL that redirects to a stranger's host",
        URL,
        &[
            EXACT,
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            Card(Stranger, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "a card that begins to redirect to a stranger's host",
        URL,
        &[
            EXACT,
            Card(Owner, URL),
            Visit,
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            Look,
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "approved with the registration",
        URL,
        &[EXACT, Card(AdminApproving, URL), Visit],
        (Nomination, "approved", "person", "L0", false),
    ),
    (
        "transfer to another account",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Give, Prove(Heir, "exact")],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "transfer, and the heir registers it too",
        URL,
        &[
            EXACT,
            Card(Owner, URL),
            Visit,
            Give,
            Prove(Heir, "exact"),
            Card(Heir, URL),
        ],
        OWN,
    ),
    (
        "transfer of the well-known path",
        WELL_KNOWN,
        &[EXACT, Visit, Give, Prove(Heir, "exact")],
        OWN,
    ),
    (
        "lapse",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Lapse],
        (Nomination, "approved", "verified_domain", "L0", true),
    ),
    (
        "lapse, and proved again",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Lapse, EXACT],
        OWN,
    ),
    (
        "lapse, and proved by somebody else",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Lapse, Prove(Heir, "exact")],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
];

/// The same where anyone may register.
const OPEN: &[Way] = &[
    (
        "card URL by anyone",
        URL,
        &[EXACT, Card(Anyone, URL), Visit],
        WAITS,
    ),
    (
        "bare domain by anyone, then proved",
        WELL_KNOWN,
        &[Domain(Anyone), Visit, EXACT],
        OWN,
    ),
];

/// The same where everything is approved.
const APPROVE_ALL: &[Way] = &[(
    "card URL by a stranger",
    URL,
    &[EXACT, Card(Stranger, URL), Visit],
    (Nomination, "approved", "approve_all", "L0", false),
)];

/// The same where the domain is on `allow_domains`.
const ALLOWED: &[Way] = &[
    (
        "card URL by a stranger",
        URL,
        &[Card(Stranger, URL), Visit],
        WAITS,
    ),
    (
        "card URL by a curator",
        URL,
        &[Card(Curator, URL), Visit],
        (Nomination, "approved", "allow_domains", "L0", false),
    ),
    (
        "well-known path by a stranger",
        WELL_KNOWN,
        &[Domain(Stranger), Visit],
        (Covered, "approved", "allow_domains", "L0", false),
    ),
    (
        "named by the catalog",
        URL,
        &[Catalog(true), Domain(Stranger), Visit, Look],
        (Covered, "approved", "allow_domains", "L0", false),
    ),
];

/// The accounts of a house, and what each row's domain serves.
struct Scene<'a> {
    house: &'a House,
    accounts: BTreeMap<&'static str, Caller>,
    domain: String,
    path: &'static str,
    named: bool,
    catalog_elsewhere: bool,
    redirect: Option<String>,
    lies_at: &'static str,
}

impl Scene<'_> {
    fn caller(&self, who: Who) -> Caller {
        match who {
            Owner => self.accounts["owner"].clone(),
            Heir => self.accounts["heir"].clone(),
            Stranger => self.accounts["stranger"].clone(),
            Partner => self.accounts["partner"].clone(),
            Curator => self.accounts["curator"].clone(),
            AdminApproving => self.house.stage.admin.clone(),
            Anyone => Caller {
                network: Some([192, 0, 2, 7].into()),
                ..Caller::default()
            },
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.domain)
    }

    /// Where the card lies.
    fn card_url(&self) -> String {
        let host = self.lies_at.replace("{}", &self.domain);
        format!("https://{host}{}", self.path)
    }

    fn answer(&self, source: &source::Model) -> Answer {
        let path = source.url.split_once(&self.domain).unwrap().1;
        let asked = match source.kind.as_str() {
            "well_known" => WELL_KNOWN,
            _ => path,
        };
        let bytes = || card("Travel", &self.domain);
        let entries = vec![("x".to_owned(), self.card_url())];
        match source.kind.as_str() {
            "ard" if self.catalog_elsewhere => {
                Answer::CatalogOf(entries, "https://evil.agents-elsewhere.com/ard.json".into())
            }
            "ard" if self.named => Answer::Catalog(entries, Read::Whole),
            "ard" => Answer::Catalog(Vec::new(), Read::Whole),
            "ai_catalog" => Answer::Fails(NotFound),
            _ if asked != self.path => Answer::NotModified,
            _ => match &self.redirect {
                Some(to) => Answer::Redirected(bytes(), to.clone()),
                None => Answer::Card(bytes()),
            },
        }
    }

    async fn register(&self, who: Who, domain: Option<String>, url: Option<String>) -> DomainView {
        let what = Registration {
            domain,
            card_url: url,
            approve: matches!(who, AdminApproving),
        };
        self.house
            .stage
            .app
            .register(&self.caller(who), &what)
            .await
            .unwrap()
    }

    async fn prove(&self, who: Who, domain: &str, policy: &str) {
        let view = self.register(who, Some(domain.to_owned()), None).await;
        let value = view.challenges[0].value.clone().unwrap();
        let value = value.replace("policy=exact", &format!("policy={policy}"));
        self.house
            .place(view.challenges[0].name.as_ref().unwrap(), &value);
        let app = &self.house.stage.app;
        let found = app.domain_verify(&self.caller(who), domain).await.unwrap();
        assert_eq!(
            found.domain.state, "verified",
            "{domain}: {:#?}",
            found.checks
        );
    }

    async fn take(&mut self, step: Step) {
        let stage = &self.house.stage;
        match step {
            Domain(who) => drop(self.register(who, Some(self.domain.clone()), None).await),
            Card(who, path) => drop(self.register(who, None, Some(self.url(path))).await),
            Prove(who, policy) => self.prove(who, &self.domain, policy).await,
            ProveOther(name) => {
                let other = name.replace("{}", &self.domain);
                self.prove(Owner, &other, "exact").await;
            }
            OtherIsAnothers(name) => {
                let other = name.replace("{}", &self.domain);
                let why = NewGeneration {
                    reason: "sold".into(),
                };
                let app = &stage.app;
                app.domain_new_generation(&stage.admin, &other, &why)
                    .await
                    .unwrap();
            }
            Lapse => {
                self.house.remove(&format!("_a2a-registry.{}", self.domain));
                for _ in 0..5 {
                    stage.advance(Duration::hours(27));
                    self.house.looks().await;
                }
                let view = stage
                    .app
                    .domain_show(&stage.admin, &self.domain)
                    .await
                    .unwrap();
                assert_eq!(view.state, "lapsed");
            }
            Give => {
                let to = Transfer {
                    account: "heir".into(),
                };
                stage
                    .app
                    .domain_transfer(&self.caller(Owner), &self.domain, &to)
                    .await
                    .unwrap();
            }
            Word(account) => {
                let word = Vouch {
                    reason: "known".into(),
                    account: account.map(str::to_owned),
                };
                stage
                    .app
                    .domain_vouch(&stage.admin, &self.domain, &word)
                    .await
                    .unwrap();
            }
            DeleteOther(name) => {
                let other = name.replace("{}", &self.domain);
                let app = &stage.app;
                app.domain_delete(&self.caller(Owner), &other)
                    .await
                    .unwrap();
            }
            Catalog(named) => self.named = named,
            LiesAt(host) => self.lies_at = host,
            CatalogOfAnotherHost => self.catalog_elsewhere = true,
            Redirect(to) => {
                let to = to.replace("{}", &self.domain);
                let to = if to.starts_with('/') {
                    self.url(&to)
                } else {
                    to
                };
                self.redirect = Some(to);
            }
            Visit => {
                stage.advance(Duration::minutes(2));
                stage
                    .visit(|source| {
                        if source.url.contains(&self.domain) && !source.url.contains("other-") {
                            self.answer(source)
                        } else {
                            Answer::NotModified
                        }
                    })
                    .await;
            }
            Look => {
                stage
                    .look_at(&self.domain, |source| self.answer(source))
                    .await
            }
        }
    }

    /// What became of the card that the row is about.
    async fn becomes(&self) -> (Coverage, String, String, String, bool) {
        let stage = &self.house.stage;
        let view = stage
            .app
            .domain_show(&stage.admin, &self.domain)
            .await
            .unwrap();
        let kinds: &[&str] = if self.path == WELL_KNOWN {
            &["well_known"]
        } else {
            &["url", "entry"]
        };
        let here = |source: &&SourceView| {
            kinds.contains(&source.kind.as_str())
                && (self.path == WELL_KNOWN || source.url == self.card_url())
        };
        let sources: Vec<&SourceView> = view.sources.iter().filter(here).collect();
        let agent = sources.iter().find_map(|source| source.agent);
        let agent = agent.unwrap_or_else(|| panic!("{} feeds nobody: {view:#?}", self.domain));
        let shown = stage
            .app
            .agent_show(&stage.admin, &agent.to_string())
            .await
            .unwrap();
        let row = stage
            .agents()
            .await
            .into_iter()
            .find(|row| row.id == agent)
            .unwrap();
        (
            sources[0].coverage,
            row.lifecycle,
            shown.decision.rules.join(" "),
            shown.hit.summary.trust.level.unwrap_or_default(),
            row.urn.is_some(),
        )
    }
}

async fn house(url: &str, configure: impl FnOnce(&mut Config)) -> House {
    let stage = crate::support::stage::Stage::with(url, configure).await;
    House::on(stage, a2a_crawler::guard::GuardConfig::default())
}

async fn go_through(house: &House, ways: &[Way], prefix: &str) {
    let mut accounts = BTreeMap::new();
    for name in ["owner", "heir", "stranger", "partner", "curator"] {
        let role = if name == "curator" {
            Role::Curator
        } else {
            Role::Publisher
        };
        let new = NewToken {
            account: name.into(),
            role: Some(role),
            name: "a test".into(),
            expires_in_days: None,
        };
        let app = &house.stage.app;
        let made = app.token_create(&house.stage.admin, &new).await.unwrap();
        accounts.insert(name, app.authenticate(&made.secret).await.unwrap());
    }
    let mut wrong = Vec::new();
    for (number, (name, path, steps, expected)) in ways.iter().enumerate() {
        let mut scene = Scene {
            house,
            accounts: accounts.clone(),
            domain: format!("{prefix}{number}.agents-test.com"),
            path,
            named: false,
            catalog_elsewhere: false,
            redirect: None,
            lies_at: "{}",
        };
        for step in *steps {
            scene.take(*step).await;
        }
        let became = scene.becomes().await;
        let (coverage, lifecycle, rule, level, urn) = became.clone();
        if (
            coverage,
            lifecycle.as_str(),
            rule.as_str(),
            level.as_str(),
            urn,
        ) != *expected
        {
            wrong.push(format!("{name}: {became:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    house.stage.index_equals_database().await;
}

both_databases! {
    /// Every way in which a source comes in, with what becomes of what it brings.
    async fn only_what_a_proof_covers_has_what_the_domain_gives(url: &str) {
        go_through(&house(url, |_| ()).await, WAYS, "way").await;
    }

    /// The same where anyone may register.
    async fn anyones_word_covers_nothing(url: &str) {
        let open = |config: &mut Config| config.governance.registration = WhoRegisters::Open;
        go_through(&house(url, open).await, OPEN, "open").await;
    }

    /// The same where everything is approved.
    async fn approving_all_covers_nothing(url: &str) {
        let all = |config: &mut Config| config.governance.approve_all = true;
        go_through(&house(url, all).await, APPROVE_ALL, "all").await;
    }

    /// The same where the domains are allowed without a proof.
    async fn an_allowed_domain_is_allowed_its_own(url: &str) {
        let allow = |config: &mut Config| {
            config.governance.allow_domains = vec![DomainPattern("*.agents-test.com".into())];
        };
        go_through(&house(url, allow).await, ALLOWED, "allowed").await;
    }

    /// A stranger who nominates a copy of the owner's card first keeps an agent of its own, and whatever becomes of that,
    /// the owner's is not touched by it.
    async fn a_copy_that_was_there_first_keeps_nothing(url: &str) {
        let house = house(url, |_| ()).await;
        let (owner, stranger) = (house.account("owner").await, house.account("stranger").await);
        let domain = "copied.agents-test.com";
        let copy = Registration {
            card_url: Some(format!("https://{domain}/uploads/copy.json")),
            ..Registration::default()
        };
        let stage = &house.stage;
        let own = card("Travel", "Books flights");
        stage.app.register(&stranger, &copy).await.unwrap();
        stage.visit(|_| Answer::Card(own.clone())).await;
        let nominated = stage.agent(domain).await;
        stage.reject(nominated.id).await;
        let view = house.register(&owner, domain).await;
        stage.advance(Duration::minutes(2));
        stage.visit(|_| Answer::Card(own.clone())).await;
        house.place_standing(&view);
        stage.app.domain_verify(&owner, domain).await.unwrap();
        let of_slot = async |slot: &str| {
            let all = stage.agents().await;
            all.into_iter().find(|row| row.slot == slot).unwrap()
        };
        let first = of_slot("well-known").await;
        assert_ne!(first.id, nominated.id);
        assert_eq!((first.lifecycle.as_str(), first.urn.is_some()), ("approved", true));
        assert_eq!(stage.served(first.id).await, Some(own.clone()));
        // The copy changes, as little as it may.
        let other = card("Travel", "Books flights of somebody else");
        stage.look_at(domain, |source| {
            Answer::Card(if source.kind == "url" { other.clone() } else { own.clone() })
        }).await;
        assert_eq!(stage.served(first.id).await, Some(own));
        let copy = stage.agents().await.into_iter().find(|row| row.id == nominated.id).unwrap();
        assert_eq!((copy.lifecycle.as_str(), copy.urn), ("pending", None));
        stage.index_equals_database().await;
        assert_eq!(stage.found_by_anyone().await, [first.id].into());
    }
}
