//! The story of one agent: held by a policy, approved under four-eyes, waived, changed, served by one account alone,
//! confirmed by others, held again, and recertified. On SQLite the steps are made on the pages, in browsers with and
//! without script; on PostgreSQL by calls of the application.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use a2a_registry_api::{NewAccount, NewToken, Registration, Review, ReviewDecision};
use a2a_registry_core::accounts::account_operations::account_create;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::domains::register::register_domain;
use a2a_registry_core::error::ErrorKind;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::policies::policy_job::run_policy_job_once;
use a2a_registry_core::policies::waivers::waiver_grant;
use a2a_registry_core::reviews::break_glass::approve_by_break_glass;
use a2a_registry_core::reviews::break_glass_expiry::expire_break_glasses;
use a2a_registry_core::reviews::decisions::review_approve;
use a2a_registry_core::reviews::inbox::load_inbox;
use a2a_registry_core::reviews::recertification::advance_approval_terms;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Role;
use a2a_registry_server::serve;
use a2a_registry_store::events::events_after;
use serde_json::{Value, json};
use thirtyfour::extensions::query::ElementQueryable as _;
use thirtyfour::{By, WebElement};
use time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admission_policies::{OPEN, apply_policies, digest_shown, waiver};
use crate::page_quality::{AXE, axe, pictures};
use crate::recertification::open_review_of_kind;
use crate::reviews::decision;
use crate::support::browser::Browser;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};
use crate::support::polling::poll_until_deadline;
use crate::support::{DEADLINE, both_databases, http_client};

both_databases!(an_agent_is_approved_held_confirmed_and_recertified);

const DOMAIN: &str = "story.dev";

/// Pause between two polls of a browser, which sends no events.
const POLL_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A registry whose clock the test moves, with or without its pages.
struct GovernanceStory {
    registry: InProcessRegistry,
    site: Option<PageServer>,
}

/// A server of the registry's pages.
struct PageServer {
    url: String,
    end: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

impl GovernanceStory {
    async fn begin(database: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let registry = InProcessRegistry::with_config(database, |config| {
            config.server.public_url.clone_from(&url);
            config.governance.four_eyes = true;
            config.governance.deciders.critical = 2;
            config.governance.recertify_after = Some(90);
        })
        .await;
        let site = database.starts_with("sqlite").then(|| {
            let end = CancellationToken::new();
            let app = Arc::clone(&registry.app);
            let served = serve::run_server(app, listener, end.clone(), Arc::new(Metrics::new()));
            PageServer {
                url,
                end,
                server: tokio::spawn(served),
            }
        });
        Self { registry, site }
    }

    /// Somebody with a token that outlasts the story, and a browser where there are pages.
    async fn somebody(&self, name: &str, roles: &[Role], with_script: bool) -> Participant {
        let (app, admin) = (&self.registry.app, &self.registry.admin);
        let new = NewAccount {
            name: name.into(),
            roles: roles.to_vec(),
            groups: Vec::new(),
        };
        account_create(app, admin, &new).await.unwrap();
        let new = NewToken {
            account: name.into(),
            name: "the story".into(),
            expires_in_days: Some(365),
            ..NewToken::default()
        };
        let token = token_create(app, admin, &new).await.unwrap().secret;
        let person = match &self.site {
            Some(site) => Some(BrowserUser::signed_in(&site.url, &token, with_script).await),
            None => None,
        };
        Participant {
            caller: authenticate_token(app, &token).await.unwrap(),
            token,
            person,
        }
    }

    /// The card that anybody is served; a search, the agent, its card and its page agree on whether there is one.
    async fn public_card(&self, agent: Uuid) -> Option<Vec<u8>> {
        let registry = &self.registry;
        registry.catch_up().await;
        let card = registry.public_card_bytes(agent).await;
        let found = registry.publicly_found_ids().await.contains(&agent);
        let shown = agent_show_checked(&registry.app, &Caller::default(), &agent.to_string()).await;
        assert_eq!((found, shown.is_ok()), (card.is_some(), card.is_some()));
        if let Some(site) = &self.site {
            let page = http_client()
                .get(format!("{}/agents/{agent}/", site.url))
                .send();
            assert_eq!(page.await.unwrap().status().is_success(), card.is_some());
        }
        card
    }

    async fn pass(&self, days: i64) {
        let app = &self.registry.app;
        self.registry.advance(Duration::days(days));
        expire_break_glasses(app).await.unwrap();
        advance_approval_terms(app).await.unwrap();
        run_policy_job_once(app, || false).await.unwrap();
    }

    /// What happened to the agent, in order.
    async fn acts(&self, agent: Uuid) -> Vec<EventKind> {
        let page = events_after(&self.registry.store, 0, 1000).await.unwrap();
        let of_it = page.iter().filter(|event| event.agent_id == Some(agent));
        of_it.map(|event| event.kind().unwrap()).collect()
    }

    async fn finish(self, people: [Participant; 3]) {
        for person in people.into_iter().filter_map(|one| one.person) {
            assert_eq!(
                person.browser.take_log_messages().await,
                Vec::<String>::new()
            );
            person.browser.close().await;
        }
        if let Some(site) = self.site {
            site.end.cancel();
            site.server.await.unwrap().unwrap();
        }
    }
}

/// Somebody who acts on the pages, or by the acts themselves where there are no pages.
struct Participant {
    caller: Caller,
    token: String,
    person: Option<BrowserUser>,
}

impl Participant {
    async fn register(&self, registry: &InProcessRegistry) {
        let Some(person) = &self.person else {
            let what = Registration {
                domain: Some(DOMAIN.into()),
                ..Registration::default()
            };
            register_domain(&registry.app, &self.caller, &what)
                .await
                .unwrap();
            return;
        };
        person.visit("/register").await;
        person.type_text("#target", DOMAIN).await;
        person.click("#register button").await;
        person.wait_for_texts(&[DOMAIN]).await;
    }

    async fn approve(&self, registry: &InProcessRegistry, review: &Review, reason: &str) {
        let Some(person) = &self.person else {
            let decision = decided(review, reason);
            let approved = review_approve(&registry.app, &self.caller, review.id, &decision).await;
            approved.unwrap();
            return;
        };
        person.opens(review).await;
        person.type_text("#reason", reason).await;
        person.click("#decide button[value='approve']").await;
        person.wait_for_texts(&[reason]).await;
    }

    async fn break_glass(&self, registry: &InProcessRegistry, review: &Review, reason: &str) {
        let Some(person) = &self.person else {
            let decision = decided(review, reason);
            let broken =
                approve_by_break_glass(&registry.app, &self.caller, review.id, &decision).await;
            assert_eq!(broken.unwrap().kind, ReviewKind::BreakGlass);
            return;
        };
        person.opens(review).await;
        person
            .wait_for_texts(&["Under four-eyes", "Break the glass"])
            .await;
        person.click("#break > summary").await;
        person.type_text("#break-reason", reason).await;
        person.click("#break button").await;
        let alone = "pia has approved this alone";
        person.wait_for_texts(&["Break-glass", alone, reason]).await;
    }

    /// Waives the policy for what the agent shows.
    async fn waive(&self, registry: &InProcessRegistry, agent: Uuid, reason: &str) {
        let Some(person) = &self.person else {
            let digest = digest_shown(registry, agent).await;
            let waiver = waiver(agent, "no-tests", &digest);
            waiver_grant(&registry.app, &self.caller, &waiver)
                .await
                .unwrap();
            return;
        };
        person.visit(&format!("/agents/{agent}/")).await;
        person.wait_for_texts(&["no-tests", "On hold"]).await;
        person.click("#waive > summary").await;
        person.type_text("#waive-reason", reason).await;
        person.click("#waive button").await;
        person.wait_for_texts(&["waived", reason]).await;
    }

    /// What the page at that path says, where there are pages.
    async fn assert_page_shows(&self, path: &str, words: &[&str]) {
        if let Some(person) = &self.person {
            person.visit(path).await;
            person.wait_for_texts(words).await;
        }
    }

    /// Begins another session: the last one has ended while days passed.
    async fn sign_in_again(&self) {
        if let Some(person) = &self.person {
            person.sign_in(&self.token).await;
        }
    }
}

fn decided(review: &Review, reason: &str) -> ReviewDecision {
    ReviewDecision {
        reason: reason.into(),
        ..decision(review)
    }
}

/// A person who is signed in, in a browser.
struct BrowserUser {
    url: String,
    browser: Browser,
}

impl BrowserUser {
    async fn signed_in(url: &str, token: &str, with_script: bool) -> Self {
        let browser = Browser::open().await;
        if !with_script {
            browser.disable_scripts().await;
        }
        let person = Self {
            url: url.to_owned(),
            browser,
        };
        person.sign_in(token).await;
        person
    }

    async fn sign_in(&self, token: &str) {
        self.visit("/sign-in").await;
        self.type_text("#token", token).await;
        self.click("#sign-in button").await;
        self.find("#sessions, nav a[href='/account']").await;
    }

    async fn visit(&self, path: &str) {
        let url = format!("{}{path}", self.url);
        self.browser.page().goto(url).await.unwrap();
    }

    /// Opens a review from the queue of its kind, where it is the only one.
    async fn opens(&self, review: &Review) {
        self.visit(&format!("/reviews?kind={}", review.kind)).await;
        self.click(&format!("a[href^='/reviews/{}']", review.id))
            .await;
    }

    async fn find(&self, selector: &str) -> WebElement {
        let found = self.browser.page().query(By::Css(selector));
        let found = found.wait(DEADLINE, POLL_PAUSE).first().await;
        match found {
            Ok(found) => found,
            Err(error) => panic!("{selector}: {error}\n{}", self.text().await),
        }
    }

    async fn click(&self, selector: &str) {
        self.find(selector).await.click().await.unwrap();
    }

    async fn type_text(&self, selector: &str, text: &str) {
        self.find(selector).await.send_keys(text).await.unwrap();
    }

    async fn text(&self) -> String {
        match self.browser.page().find(By::Css("body")).await {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    /// Waits until all of these words are visible.
    async fn wait_for_texts(&self, words: &[&str]) {
        let seen = poll_until_deadline(async || {
            let text = self.text().await;
            words.iter().all(|word| text.contains(word)).then_some(())
        });
        assert!(seen.await.is_some(), "{words:?}:\n{}", self.text().await);
    }

    /// Checks the page that is open with axe, on a phone and on a desktop, in light and dark, and takes its pictures.
    async fn is_sound(&self, name: &str) {
        for theme in ["light", "dark"] {
            self.browser.set_color_scheme(theme).await;
            for (width, height) in [(390, 844), (1280, 800)] {
                self.browser.emulate_screen_size(width, height).await;
                let page = self.browser.page();
                let needed =
                    page.execute("return document.documentElement.scrollWidth", Vec::new());
                let needed: u32 = needed.await.unwrap().convert().unwrap();
                assert!(needed <= width, "{name}: {needed} of {width} pixels");
                page.execute(axe(), Vec::new()).await.unwrap();
                let found = page.execute_async(AXE, Vec::new()).await.unwrap();
                assert_eq!(*found.json(), json!([]), "{name} at {width}, {theme}");
                let file: PathBuf = pictures().join(format!("{name}-{width}-{theme}.png"));
                self.browser.capture_full_page(&file).await;
            }
        }
        self.browser.emulate_screen_size(1280, 900).await;
    }
}

/// The glass is broken: whoever looks at the agent or at the confirmation that is asked for sees by whom and why.
async fn the_broken_glass_is_shown(
    story: &GovernanceStory,
    ben: &Participant,
    agent: Uuid,
    asked: &Review,
) {
    let (Some(site), Some(person)) = (&story.site, &ben.person) else {
        return;
    };
    person.visit(&format!("/agents/{agent}/")).await;
    let alone = "pia has approved this card alone";
    person.wait_for_texts(&["Break-glass", alone]).await;
    person.is_sound("agent-break-glass").await;
    let path = "/v1/reviews?kind=break_glass&state=open";
    let list = http_client().get(format!("{}{path}", site.url));
    let list = list.bearer_auth(&ben.token).send().await.unwrap();
    let list: Value = list.json().await.unwrap();
    assert_eq!(list["reviews"][0]["id"], asked.id.to_string());
    person.visit("/reviews?kind=break_glass").await;
    person.wait_for_texts(&["break-glass"]).await;
    person.opens(asked).await;
    person
        .wait_for_texts(&["Without a confirmation by others"])
        .await;
    person.is_sound("review-break-glass").await;
}

async fn an_agent_is_approved_held_confirmed_and_recertified(url: &str) {
    let story = GovernanceStory::begin(url).await;
    let (registry, app) = (&story.registry, &story.registry.app);
    let everything = [Role::Publisher, Role::Curator, Role::Admin];
    let pia = story.somebody("pia", &everything, false).await;
    let ann = story.somebody("ann", &[Role::Curator], false).await;
    let ben = story.somebody("ben", &[Role::Curator], true).await;
    let forbids = "forbid (principal, action == Action::\"admit\", resource) when { resource.tags.contains(\"tests\") };";
    apply_policies(registry, &[OPEN, ("no-tests", forbids)]).await;

    // Pia registers her domain, and the card comes in: a policy forbids what it offers.
    pia.register(registry).await;
    let first = card_bytes("Echo", "1.0");
    registry
        .run_due_visits(|_| OriginResponse::Card(first.clone()))
        .await;
    let agent = registry.agent(DOMAIN).await.id;
    let page = format!("/agents/{agent}/");
    assert_eq!(registry.holds(agent).await, ["policy"]);
    assert_eq!(story.public_card(agent).await, None);
    pia.assert_page_shows(&page, &["On hold", "policy", "no-tests"])
        .await;

    // Four eyes: Pia has registered it, so others decide; the policy holds it until one of them waives it.
    let digest = digest_shown(registry, agent).await;
    let own = waiver_grant(app, &pia.caller, &waiver(agent, "no-tests", &digest)).await;
    assert_eq!(own.unwrap_err().kind, ErrorKind::Forbidden);
    let review = open_review_of_kind(registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    let own = review_approve(app, &pia.caller, review.id, &decision(&review)).await;
    assert_eq!(own.unwrap_err().kind, ErrorKind::Forbidden);
    let path = format!("/reviews/{}", review.id);
    pia.assert_page_shows(&path, &["Under four-eyes"]).await;
    ann.approve(registry, &review, "we know the owner").await;
    assert_eq!(story.public_card(agent).await, None);
    ann.waive(registry, agent, "until the audit").await;
    assert_eq!(story.public_card(agent).await, Some(first));

    // The card changes critically: nobody finds the agent any more.
    let other = card_bytes("Other", "1.0");
    registry
        .crawl_domain(DOMAIN, OriginResponse::Card(other.clone()))
        .await;
    assert_eq!(registry.holds(agent).await, ["critical_change"]);
    assert_eq!(story.public_card(agent).await, None);
    pia.assert_page_shows(&page, &["critical_change"]).await;

    // Pia alone serves it for a day, and two others confirm that.
    let change = open_review_of_kind(registry, agent, ReviewKind::Admission)
        .await
        .unwrap();
    pia.break_glass(registry, &change, "the old one leaks <b>")
        .await;
    // The waiver was for other content.
    assert_eq!(registry.holds(agent).await, ["policy"]);
    ann.waive(registry, agent, "the new one too").await;
    assert_eq!(story.public_card(agent).await, Some(other.clone()));
    let alone = "pia has approved this card alone";
    pia.assert_page_shows(&page, &["Break-glass", alone]).await;
    let asked = open_review_of_kind(registry, agent, ReviewKind::BreakGlass)
        .await
        .unwrap();
    the_broken_glass_is_shown(&story, &ben, agent, &asked).await;
    ann.approve(registry, &asked, "it is what we wanted").await;
    ben.approve(registry, &asked, "so do I").await;
    assert_eq!(
        open_review_of_kind(registry, agent, ReviewKind::BreakGlass).await,
        None
    );
    ben.assert_page_shows(&page, &["Other"]).await;
    if let Some(person) = &ben.person {
        assert!(!person.text().await.contains("Break-glass"));
    }
    story.pass(2).await;
    assert_eq!(story.public_card(agent).await, Some(other.clone()));

    // The waiver expires, and the policy bites; then the policy is taken back.
    story.pass(30).await;
    assert_eq!(registry.holds(agent).await, ["policy"]);
    assert_eq!(story.public_card(agent).await, None);
    ann.sign_in_again().await;
    let ended = ["the new one too", "ended"];
    ann.assert_page_shows("/waivers?ended=true", &ended).await;
    apply_policies(registry, &[OPEN]).await;
    assert_eq!(story.public_card(agent).await, Some(other.clone()));

    // The approval ends undecided, and the agent goes; approving what is served brings it back.
    story.pass(44).await;
    let kind = ReviewKind::Recertification;
    let again = open_review_of_kind(registry, agent, kind).await.unwrap();
    assert_eq!(load_inbox(app, &ann.caller).await.unwrap().reviews.len(), 1);
    story.pass(14).await;
    assert_eq!(registry.holds(agent).await, ["recertify"]);
    assert_eq!(story.public_card(agent).await, None);
    ann.sign_in_again().await;
    ann.assert_page_shows(&page, &["recertify"]).await;
    ann.approve(registry, &again, "still good").await;
    assert_eq!(open_review_of_kind(registry, agent, kind).await, None);
    assert_eq!(story.public_card(agent).await, Some(other));
    let told = load_inbox(app, &pia.caller).await.unwrap().news;
    // Her own act is no news for her.
    assert_eq!(told.iter().filter(|one| one.kind == "approved").count(), 3);
    assert_eq!(
        story.acts(agent).await,
        [
            EventKind::AgentDiscovered,
            EventKind::AgentHeld,
            EventKind::AgentApproved,
            EventKind::WaiverGranted,
            EventKind::AgentReleased,
            EventKind::AgentChanged,
            EventKind::AgentHeld,
            EventKind::AgentReleased,
            EventKind::AgentApproved,
            EventKind::AgentBreakGlass,
            EventKind::AgentHeld,
            EventKind::WaiverGranted,
            EventKind::AgentReleased,
            EventKind::AgentApproved,
            EventKind::WaiverEnded,
            EventKind::AgentHeld,
            EventKind::WaiverEnded,
            EventKind::AgentReleased,
            EventKind::AgentHeld,
            EventKind::AgentReleased,
            EventKind::AgentApproved,
        ]
    );
    registry.assert_index_matches_database().await;
    story.finish([pia, ann, ben]).await;
}
