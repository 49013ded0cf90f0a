//! Notices by mail on both databases, against an SMTP server of the tests.

use a2a_registry_core::config::MailTls;
use a2a_registry_core::hooks::mail_links::{mail_link_confirm, mail_link_end};
use reqwest::Method;
use serde_json::json;

use super::*;
use crate::page_journeys::PageVisitor;
use crate::support::api::ApiResponse;
use crate::support::both_databases;
use crate::support::database::Database;
use crate::support::mail_server::{MailServer, ReceivedMail};
use crate::support::setup::RegistrySetup;
use crate::support::tls::Authority;

both_databases!(
    an_address_confirms_gets_digests_and_ends_them,
    an_account_gets_one_mail_an_hour,
    a_digest_has_all_notices_about_an_agent,
    nobody_can_be_flooded_with_confirmations,
    a_mail_server_that_is_down_is_tried_for_three_days,
    a_refused_recipient_is_tried_again_and_not_quoted,
    what_is_hidden_changes_no_mail,
    a_card_cannot_write_headers_or_lines
);

const ADDRESS: &str = "ann@example.com";

struct MailStage {
    registry: InProcessRegistry,
    server: MailServer,
    reader: Caller,
    _key: NamedTempFile,
}

fn set_mail_server(config: &mut Config, server: &MailServer) {
    config.mail.host = "127.0.0.1".into();
    config.mail.port = server.port();
    config.mail.from = "Registry <registry@example.com>".into();
    config.mail.tls = MailTls::None;
}

fn new_hook(name: &str, address: &str, filter: HookFilter) -> NewHook {
    NewHook {
        name: name.into(),
        url: format!("mailto:{address}").into(),
        format: None,
        filter,
    }
}

/// Hook and code of the link in a mail.
fn link_parts(mail: &ReceivedMail) -> (Uuid, String) {
    let link = mail.link();
    let (rest, code) = link.rsplit_once('/').unwrap();
    let (_, hook) = rest.rsplit_once('/').unwrap();
    (hook.parse().unwrap(), code.to_owned())
}

impl MailStage {
    async fn new(url: &str) -> Self {
        let (server, key) = (MailServer::start().await, key_file());
        let registry = InProcessRegistry::with_config(url, |config| {
            set_mail_server(config, &server);
            config.secrets.key_file = Some(key.path().to_owned());
        })
        .await;
        Self {
            reader: caller(&registry, "reader", Role::Reader).await,
            registry,
            server,
            _key: key,
        }
    }

    /// A hook whose reader has confirmed it.
    async fn hook(&self, name: &str, filter: HookFilter) -> Uuid {
        let app = &self.registry.app;
        self.registry.catch_up().await;
        let new = new_hook(name, ADDRESS, filter);
        let made = hook_create(app, &self.reader, &new).await.unwrap();
        assert_eq!(made.hook.state, HookState::Unconfirmed);
        let (id, code) = link_parts(&self.server.mails().pop().unwrap());
        assert_eq!(id, made.hook.id);
        mail_link_confirm(app, id, &code).await.unwrap();
        id
    }

    /// Queues what has happened, sends what is due, and returns the texts of the new mails.
    async fn deliver(&self) -> Vec<String> {
        let before = self.server.mails().len();
        deliver_from(&self.registry).await;
        let new = self.server.mails().split_off(before);
        new.iter().map(ReceivedMail::text).collect()
    }

    /// Publishes an agent; only before the clock has moved, when nothing else is to be visited.
    async fn publish(&self, domain: &str) -> Uuid {
        let card = card_bytes(domain, "Is told.");
        self.registry.register_approved_card(domain, &card).await.id
    }

    async fn change(&self, domain: &str, about: &str) {
        change_card(&self.registry, domain, about).await;
    }
}

async fn an_address_confirms_gets_digests_and_ends_them(url: &str) {
    let stage = MailStage::new(url).await;
    let (app, reader) = (&stage.registry.app, &stage.reader);
    let new = new_hook("all", ADDRESS, kinds(&SIGHT));
    let made = hook_create(app, reader, &new).await.unwrap();
    assert_eq!((made.secret, made.public_key), (None, None));
    assert_eq!(made.hook.format, HookFormat::Mail);
    assert_eq!(made.hook.target.as_deref(), Some("mailto:***@example.com"));
    let asked = stage.server.mails().pop().unwrap();
    assert_eq!(asked.recipient, ADDRESS);
    let (id, code) = link_parts(&asked);
    stage.publish("early.agents-test.com").await;
    assert!(stage.deliver().await.is_empty(), "nobody has confirmed it");
    for (id, code) in [(id, "guessed"), (Uuid::from_u128(1), code.as_str())] {
        for refused in [
            mail_link_confirm(app, id, code).await,
            mail_link_end(app, id, code).await,
        ] {
            assert_eq!(refused.unwrap_err().kind, ErrorKind::NotFound);
        }
    }
    mail_link_confirm(app, id, &code).await.unwrap();
    let mut agents = Vec::new();
    for name in ["one", "two", "three"] {
        agents.push(stage.publish(&format!("{name}.agents-test.com")).await);
    }
    let mails = stage.deliver().await;
    assert_eq!(mails.len(), 1, "{mails:?}");
    for agent in &agents {
        let page = format!("{}/agents/{agent}/", app.config().public_url());
        assert!(mails[0].contains(&page), "{page}: {}", mails[0]);
    }
    assert_eq!(mails[0].matches("\n- ").count() + 1, agents.len());
    let digest = stage.server.mails().pop().unwrap();
    assert_eq!(link_parts(&digest), (id, code.clone()));
    let one_click = digest.header("list-unsubscribe-post");
    assert_eq!(one_click, Some("List-Unsubscribe=One-Click"));
    // What waits when the reader ends them is not sent.
    stage.publish("late.agents-test.com").await;
    queue_from(&stage.registry).await;
    mail_link_end(app, id, &code).await.unwrap();
    stage.registry.advance(Duration::days(1));
    assert!(stage.deliver().await.is_empty());
    let shown = hook_show(app, reader, id).await.unwrap();
    assert_eq!((shown.state, shown.waiting), (HookState::Ended.into(), 0));
    // The link of before begins nothing again.
    mail_link_confirm(app, id, &code).await.unwrap();
    let shown = hook_show(app, reader, id).await.unwrap();
    assert_eq!(shown.state, HookState::Ended);
    let refused = hook_rotate(app, reader, id).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
}

async fn an_account_gets_one_mail_an_hour(url: &str) {
    let stage = MailStage::new(url).await;
    stage.hook("first", kinds(&SIGHT)).await;
    stage.hook("second", kinds(&SIGHT)).await;
    // SQLite serves one process.
    let other = match url.starts_with("postgres") {
        true => Some(stage.registry.second_process().await),
        false => None,
    };
    stage.publish("one.agents-test.com").await;
    assert_eq!(stage.deliver().await.len(), 1);
    // Neither another hook of the account nor another process sends meanwhile.
    stage.publish("two.agents-test.com").await;
    assert!(stage.deliver().await.is_empty());
    if let Some(other) = &other {
        other.catch_up().await;
        assert!(lease_due_hook(&other.app).await.unwrap().is_none());
    }
    stage.registry.advance(Duration::minutes(59));
    assert!(stage.deliver().await.is_empty());
    for agents in [2, 1] {
        stage.registry.advance(Duration::hours(1));
        let mails = stage.deliver().await;
        assert_eq!(mails.len(), 1);
        let told = mails[0].matches("appeared").count();
        assert_eq!(told, agents, "{}", mails[0]);
    }
    stage.registry.advance(Duration::hours(1));
    assert!(stage.deliver().await.is_empty());
}

/// Two processes lease hooks of one account at the same time. If they locked the hooks in different orders, PostgreSQL
/// would end one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_one_sends_the_mail() {
    let database = Database::postgres().await;
    let stage = MailStage::new(database.url()).await;
    for name in ["first", "second"] {
        stage.hook(name, kinds(&SIGHT)).await;
    }
    let other = stage.registry.second_process().await;
    stage.publish("one.agents-test.com").await;
    queue_from(&stage.registry).await;
    let app = &stage.registry.app;
    for _ in 0..10 {
        let (one, two) = tokio::join!(lease_due_hook(app), lease_due_hook(&other.app));
        let leased = [one.unwrap(), two.unwrap()];
        let leased: Vec<_> = leased.into_iter().flatten().collect();
        assert_eq!(leased.len(), 1, "{leased:?}");
        end_hook_lease(app, &leased[0]).await.unwrap();
        stage.registry.advance(Duration::hours(2));
    }
}

async fn a_digest_has_all_notices_about_an_agent(url: &str) {
    let mut stage = MailStage::new(url).await;
    stage.reader = caller(&stage.registry, "curator", Role::Curator).await;
    let filter = kinds(&[NoticeKind::ReviewWaits, NoticeKind::AgentAppeared]);
    stage.hook("all", filter).await;
    stage.publish("one.agents-test.com").await;
    let mails = stage.deliver().await;
    assert_eq!(mails.len(), 1, "{mails:?}");
    for told in ["waits for a review", "appeared"] {
        assert!(mails[0].contains(told), "{told}: {}", mails[0]);
    }
}

async fn nobody_can_be_flooded_with_confirmations(url: &str) {
    let stage = MailStage::new(url).await;
    let app = &stage.registry.app;
    let create = async |caller: &Caller, address: &str| {
        let new = new_hook("x", address, kinds(&SIGHT));
        let made = hook_create(app, caller, &new).await.unwrap().hook;
        hook_delete(app, caller, made.id).await.unwrap();
        made.last_error
    };
    for address in ["ann@example.com", "Ann@example.com", "ann+x@Example.com"] {
        assert_eq!(create(&stage.reader, address).await, None, "{address}");
    }
    let other = caller(&stage.registry, "other", Role::Reader).await;
    let refused = create(&other, ADDRESS).await.unwrap();
    assert!(refused.starts_with("too many mails"), "{refused}");
    assert_eq!(stage.server.mails().len(), 3);
    stage.registry.advance(Duration::hours(6));
    assert_eq!(create(&other, ADDRESS).await, None);
    assert!(create(&other, ADDRESS).await.is_some());
    // Ten at once from one account, to whomever; the other one has asked twice since.
    let mut sent = 0;
    for number in 0..20 {
        let address = format!("u{number}@example.com");
        sent += usize::from(create(&stage.reader, &address).await.is_none());
    }
    assert_eq!(sent, 10);
    for bad in ["ann@example.com?bcc=bob@example.com", "ann@x\r\ny", ""] {
        let new = new_hook("bad", bad, kinds(&SIGHT));
        let refused = hook_create(app, &stage.reader, &new).await.unwrap_err();
        assert_eq!(refused.members[0].0, "/url", "{bad:?}");
    }
}

async fn a_mail_server_that_is_down_is_tried_for_three_days(url: &str) {
    let stage = MailStage::new(url).await;
    let (app, reader) = (&stage.registry.app, &stage.reader);
    let id = stage.hook("all", kinds(&SIGHT)).await;
    let agent = stage.publish("new.agents-test.com").await;
    stage.server.set_down(true);
    let before = stage.server.connections();
    stage.deliver().await;
    // What comes later is in the same mail.
    stage.publish("later.agents-test.com").await;
    for _ in 0..8 {
        stage.registry.advance(Duration::minutes(30));
        assert!(stage.deliver().await.is_empty());
    }
    assert!(stage.server.connections() > before + 3);
    let shown = hook_show(app, reader, id).await.unwrap();
    assert!(shown.failing_since.is_some() && shown.last_error.is_some());
    stage.server.set_down(false);
    stage.registry.advance(Duration::hours(12));
    let mails = stage.deliver().await;
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].matches("appeared").count(), 2, "{}", mails[0]);
    stage.server.set_down(true);
    stage.change("new.agents-test.com", "Is changed.").await;
    for _ in 0..100 {
        stage.registry.advance(Duration::hours(1));
        stage.deliver().await;
    }
    let shown = hook_show(app, reader, id).await.unwrap();
    assert_eq!((shown.waiting, shown.dead), (0, 1));
    stage.server.set_down(false);
    assert_eq!(hook_replay(app, reader, id, None).await.unwrap(), 1);
    stage.registry.advance(Duration::hours(13));
    let mails = stage.deliver().await;
    assert!(mails.len() == 1 && mails[0].contains(&agent.to_string()));
}

async fn a_refused_recipient_is_tried_again_and_not_quoted(url: &str) {
    let stage = MailStage::new(url).await;
    let (app, reader) = (&stage.registry.app, &stage.reader);
    let id = stage.hook("all", kinds(&SIGHT)).await;
    stage.publish("new.agents-test.com").await;
    for (answer, status) in [
        ("451 4.7.1 <ann@example.com> is greylisted", 451),
        ("550 5.1.1 <ann@example.com> is unknown", 550),
    ] {
        stage.server.set_refusal(Some(answer));
        stage.registry.advance(Duration::hours(1));
        assert!(stage.deliver().await.is_empty());
        let page = PageRequest::default();
        let shown = hook_deliveries(app, reader, id, None, &page).await.unwrap();
        assert_eq!(shown.deliveries[0].status, Some(status));
        let error = hook_show(app, reader, id).await.unwrap().last_error;
        let expected = format!("the mail server answered with {status}");
        assert_eq!(error, Some(expected));
    }
    // A request to confirm that is refused is said until another one is taken.
    let new = new_hook("other", "bob@example.com", kinds(&SIGHT));
    let other = hook_create(app, reader, &new).await.unwrap().hook;
    assert!(other.last_error.is_some());
    stage.server.set_refusal(None);
    stage.registry.advance(Duration::hours(1));
    assert_eq!(stage.deliver().await.len(), 1);
    hook_test(app, reader, other.id).await.unwrap();
    let shown = hook_show(app, reader, other.id).await.unwrap();
    assert_eq!(shown.last_error, None);
}

/// The same story with and without an agent that the reader may not see.
async fn what_is_hidden_changes_no_mail(url: &str) {
    let stage = MailStage::new(url).await;
    let (app, admin) = (&stage.registry.app, &stage.registry.admin);
    let hidden = stage.publish("hidden.agents-test.com").await.to_string();
    stage.publish("seen.agents-test.com").await;
    let restricted = AgentPatch {
        visibility: Some(Visibility::Restricted),
        ..AgentPatch::default()
    };
    agent_patch(app, admin, &hidden, &restricted).await.unwrap();
    stage.hook("all", HookFilter::default()).await;
    let mut texts = Vec::new();
    for happens in [true, false] {
        if happens {
            stage.change("hidden.agents-test.com", "Is changed.").await;
            agent_retire(app, admin, &hidden, &act()).await.unwrap();
        }
        stage.registry.advance(Duration::hours(2));
        let about = format!("After {happens}.");
        stage.change("seen.agents-test.com", &about).await;
        let mails = stage.deliver().await;
        assert_eq!(mails.len(), 1, "{mails:?}");
        // Only the time differs, up to here.
        let (_, text) = mails[0].split_once(" UTC: ").unwrap();
        texts.push(text.to_owned());
        stage.registry.advance(Duration::hours(2));
        assert!(stage.deliver().await.is_empty());
    }
    assert_eq!(texts[0], texts[1]);
}

async fn a_card_cannot_write_headers_or_lines(url: &str) {
    let stage = MailStage::new(url).await;
    stage.hook("all", kinds(&SIGHT)).await;
    stage.publish("plain.agents-test.com").await;
    stage.deliver().await;
    let plain = stage.server.mails().pop().unwrap();
    let name =
        "Loud\r\nBcc: bob@example.com\r\n\r\n.\r\nMAIL FROM:<x@y>\u{202e} https://evil.example";
    let card = card_bytes(name, "Is loud.");
    let domain = "loud.agents-test.com";
    stage.registry.register_approved_card(domain, &card).await;
    stage.registry.advance(Duration::hours(2));
    stage.deliver().await;
    let loud = stage.server.mails().pop().unwrap();
    assert_eq!(loud.header_names(), plain.header_names());
    assert_eq!(loud.header("subject"), plain.header("subject"));
    assert_eq!(loud.recipient, ADDRESS);
    let text = loud.text();
    assert!(text.lines().next().unwrap().contains("bob@example.com"));
    assert_eq!(text.lines().count(), plain.text().lines().count());
    assert!(!text.contains("https://evil") && !text.contains('\u{202e}'));
}

/// A server that hides its encryption, and one that another authority vouches for, get neither password nor mail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mails_are_sent_over_verified_tls_alone() {
    crate::support::install_tls();
    let (own, other) = (Authority::new("Mail"), Authority::new("Other mail"));
    let new_file = || NamedTempFile::new().unwrap();
    let (mut certificate, mut password, key) = (new_file(), new_file(), key_file());
    certificate.write_all(&own.pem()).unwrap();
    writeln!(password, "hush").unwrap();
    let good = MailServer::start_with(Some(&own.identity("127.0.0.1"))).await;
    let stripped = MailServer::start().await;
    let foreign = MailServer::start_with(Some(&other.identity("127.0.0.1"))).await;
    let mut errors = Vec::new();
    for server in [&good, &stripped, &foreign] {
        let database = Database::sqlite();
        let registry = InProcessRegistry::with_config(database.url(), |config| {
            set_mail_server(config, server);
            config.mail.tls = MailTls::StartTls;
            config.mail.extra_ca = vec![certificate.path().to_owned()];
            config.mail.username = "registry".into();
            config.mail.password_file = Some(password.path().to_owned());
            config.secrets.key_file = Some(key.path().to_owned());
        })
        .await;
        let new = new_hook("all", ADDRESS, kinds(&SIGHT));
        let made = hook_create(&registry.app, &registry.admin, &new).await;
        errors.push(made.unwrap().hook.last_error);
    }
    assert_eq!(errors[0], None);
    let mails = good.mails();
    let expected = data_encoding::BASE64.encode(b"\0registry\0hush");
    assert_eq!(mails[0].credentials, Some(expected));
    assert!(mails[0].is_encrypted);
    for (server, error) in [(&stripped, &errors[1]), (&foreign, &errors[2])] {
        let error = error.as_deref().unwrap();
        assert!(
            error.starts_with("the mail server cannot be used"),
            "{error}"
        );
        assert!(server.mails().is_empty());
    }
    assert!(errors[1].as_deref().unwrap().contains("STARTTLS"));
}

/// The page of the link, and the one click of a program for mails, without a session or a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_confirms_and_ends_mails_on_a_page() {
    let server = MailServer::start().await;
    let lines = format!(
        "[mail]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nfrom = \"registry@example.com\"",
        server.port()
    );
    let registry = RegistrySetup::new().with_config_lines(&lines).start().await;
    let new = json!({"name": "mine", "url": format!("mailto:{ADDRESS}")});
    let made = registry.post_as_admin("/v1/hooks", &new).await;
    let made = made.expect_status(201);
    assert_eq!(
        (&made["format"], &made["secret"]),
        (&json!("mail"), &Value::Null)
    );
    let link = server.mails().pop().unwrap().link();
    let path = link.strip_prefix(&registry.url).unwrap().to_owned();
    let hook = format!("/v1/hooks/{}", made["id"].as_str().unwrap());
    let state = async || registry.get_as_admin(&hook).await.expect_status(200)["state"].take();
    // Programs that look at links change nothing.
    let page = registry.get(&path).await;
    assert!(page.text().contains("Send them to me"), "{}", page.text());
    let reader = PageVisitor::open(&registry.url, true).await;
    reader.visit(&path).await;
    reader.check_and_capture("mail-link").await;
    reader.finish("").await;
    assert_eq!(state().await, "unconfirmed");
    let confirm = registry.request(Method::POST, &format!("{path}/confirm"));
    let confirmed = ApiResponse::send(confirm).await;
    assert_eq!(confirmed.status, 200);
    assert!(!confirmed.text().contains("Send them to me"));
    assert_eq!(state().await, "active");
    let body = "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n";
    let one_click = registry
        .request(Method::POST, &path)
        .header("content-type", "multipart/form-data; boundary=x")
        .body(body);
    assert_eq!(ApiResponse::send(one_click).await.status, 200);
    assert_eq!(state().await, "ended");
    let missing = registry.get(&format!("{path}x")).await;
    assert_eq!(missing.status, 404);
    let ended = registry.stop().await;
    let code = path.rsplit('/').next().unwrap();
    let logged = [ended.stdout, ended.stderr].concat();
    assert!(
        logged
            .iter()
            .all(|line| !line.contains(code) && !line.contains(ADDRESS))
    );
}
