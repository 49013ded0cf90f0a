//! Tests of the event log, as pages and as a stream, over real sockets.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_api::{AccountPatch, NewToken, Registration};
use a2a_registry_core::accounts::account_operations::account_patch;
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::accounts::tokens::{token_create, token_revoke};
use a2a_registry_core::domains::register;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::precondition::IfMatch;
use a2a_registry_core::providers::{AccountGrant, GrantRejection, TokenSubject};
use a2a_registry_domain::role::Role;
use actix_web::test::TestRequest;
use futures::StreamExt;
use time::OffsetDateTime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::tests::{ADMIN, Registry, bearer};

/// Timeout of every wait, longer than any step takes: only a failing test reaches it.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Served {
    pub(super) address: SocketAddr,
    shutdown: CancellationToken,
    running: JoinHandle<std::io::Result<()>>,
}

pub(super) fn serve(registry: &Registry) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let context = Arc::clone(&registry.state.context);
    let running = crate::serve::run_server(
        context,
        listener,
        shutdown.clone(),
        Arc::new(Metrics::new()),
    );
    Served {
        address,
        shutdown,
        running: tokio::spawn(running),
    }
}

impl Served {
    async fn open(&self, query: &str) -> reqwest::Response {
        self.open_with(ADMIN, query).await
    }

    async fn open_with(&self, token: &str, query: &str) -> reqwest::Response {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        client
            .get(format!("http://{}/v1/events{query}", self.address))
            .header("accept", "text/event-stream")
            .header("accept-encoding", "gzip")
            .bearer_auth(token)
            .send()
            .await
            .unwrap()
    }

    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(LIMIT, self.running)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

/// Reads until the text has arrived.
async fn read_until(
    stream: &mut (impl futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin),
    wanted: &str,
) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let part = tokio::time::timeout(LIMIT, stream.next()).await.unwrap();
        text += std::str::from_utf8(&part.expect("the stream goes on").unwrap()).unwrap();
    }
    text
}

async fn register(registry: &Registry, port: u16) {
    let what = Registration {
        card_url: Some(format!("http://127.0.0.1:{port}/card.json")),
        ..Registration::default()
    };
    register::register_domain(registry.context(), &registry.admin().await, &what)
        .await
        .unwrap();
}

#[actix_web::test]
async fn a_stream_tells_what_happens_and_goes_on_where_it_ended() {
    let registry = Registry::new().await;
    let served = serve(&registry);
    register(&registry, 9).await;
    let answer = served.open("").await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert!(!answer.headers().contains_key("content-encoding"));
    let mut stream = answer.bytes_stream();
    let before = read_until(&mut stream, "127.0.0.1:9\"").await;
    assert!(before.contains("event: domain.registered\n"), "{before}");
    register(&registry, 10).await;
    let live = read_until(&mut stream, "127.0.0.1:10\"").await;
    assert!(!live.contains("127.0.0.1:9\""), "{live}");
    let last = live
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap()
        .to_owned();

    let page = registry
        .ask(bearer(
            TestRequest::get().uri(&format!("/v1/events?after={last}")),
            ADMIN,
        ))
        .await;
    assert_eq!(
        page.json()["events"].as_array().unwrap().len(),
        0,
        "{page:?}"
    );
    register(&registry, 11).await;
    let mut resumed = served.open(&format!("?after={last}")).await.bytes_stream();
    let next = read_until(&mut resumed, "127.0.0.1:11\"").await;
    assert!(!next.contains("127.0.0.1:10\""), "{next}");
    drop(resumed);

    // Shutting down ends the open stream, then the server.
    served.stop().await;
    while let Some(part) = tokio::time::timeout(LIMIT, stream.next()).await.unwrap() {
        part.unwrap();
    }
}

/// How a token loses its access.
#[derive(Debug, Clone, Copy)]
enum End {
    Revoked,
    Expired,
    /// Its account is disabled.
    Disabled,
    /// Its account may no longer read events.
    Demoted,
    /// Newer claims of the identity provider do not let its account in.
    Left,
    /// The identity provider has not confirmed its account for too long.
    Absent,
}

/// Claims about a curator who is admitted or not.
pub(super) fn watcher(issued_at: i64, is_let_in: bool) -> TokenSubject {
    let refusal = GrantRejection {
        text: "not let in".into(),
        ends_access: true,
    };
    let entry = AccountGrant {
        account_name: "watcher".into(),
        groups: None,
        roles: [Role::Curator].into_iter().collect(),
    };
    TokenSubject {
        issuer: "https://login.example".into(),
        subject: "1".into(),
        issued_at,
        grant: is_let_in.then_some(entry).ok_or(refusal),
    }
}

/// A stream ends with its token and sends no event after that, whether busy or idle.
async fn a_stream_ends_with_its_token(end: End, busy: bool) {
    let clock = Arc::new(MovedClock(Mutex::new(SystemClock.now())));
    let registry = Registry::by(clock.clone(), |config| {
        config.identity.max_absence = 2;
    })
    .await;
    let served = serve(&registry);
    let admin = registry.admin().await;
    let issued_at = clock.now().unix_timestamp();
    resolve_subject_account(registry.context(), &watcher(issued_at, true))
        .await
        .unwrap();
    let days = match end {
        End::Absent => 3,
        _ => 1,
    };
    let new = NewToken {
        account: "watcher".into(),
        name: "stream".into(),
        expires_in_days: Some(days),
        ..NewToken::default()
    };
    let token = token_create(registry.context(), &admin, &new)
        .await
        .unwrap();
    let mut stream = served.open_with(&token.secret, "").await.bytes_stream();
    read_until(&mut stream, "token.created").await;
    match end {
        End::Revoked => {
            let revoked = token_revoke(registry.context(), &admin, token.token.id).await;
            revoked.unwrap();
        }
        End::Disabled | End::Demoted => {
            let disabled = matches!(end, End::Disabled).then_some(true);
            let roles = matches!(end, End::Demoted).then(|| vec![Role::Publisher]);
            let patch = AccountPatch {
                disabled,
                roles,
                groups: None,
            };
            let seen = IfMatch::default();
            let changed = account_patch(registry.context(), &admin, "watcher", &patch, &seen).await;
            changed.unwrap();
        }
        End::Expired => *clock.0.lock().unwrap() += Duration::from_secs(24 * 3600),
        End::Absent => *clock.0.lock().unwrap() += Duration::from_secs(2 * 24 * 3600),
        End::Left => {
            let left = watcher(issued_at + 1, false);
            resolve_subject_account(registry.context(), &left)
                .await
                .unwrap_err();
        }
    }
    // On an idle stream no event triggers the check, so the stream itself must check.
    let write = async {
        let mut port = 1;
        while busy && port < 1000 {
            port += 1;
            register(&registry, port).await;
        }
        std::future::pending::<()>().await
    };
    let rest = async {
        let mut rest = String::new();
        while let Some(part) = stream.next().await {
            rest += std::str::from_utf8(&part.unwrap()).unwrap();
        }
        rest
    };
    let rest = tokio::select! {
        rest = tokio::time::timeout(LIMIT, rest) => rest.unwrap(),
        () = write => unreachable!("it goes on for ever"),
    };
    assert!(!rest.contains("domain.registered"), "{end:?}: {rest}");
    served.stop().await;
}

#[actix_web::test]
async fn a_busy_stream_ends_with_its_token() {
    a_stream_ends_with_its_token(End::Revoked, true).await;
    a_stream_ends_with_its_token(End::Expired, true).await;
    a_stream_ends_with_its_token(End::Disabled, true).await;
    a_stream_ends_with_its_token(End::Demoted, true).await;
    a_stream_ends_with_its_token(End::Left, true).await;
    a_stream_ends_with_its_token(End::Absent, true).await;
}

#[actix_web::test]
async fn a_silent_stream_ends_with_its_token() {
    a_stream_ends_with_its_token(End::Revoked, false).await;
    a_stream_ends_with_its_token(End::Expired, false).await;
    a_stream_ends_with_its_token(End::Disabled, false).await;
    a_stream_ends_with_its_token(End::Demoted, false).await;
    a_stream_ends_with_its_token(End::Left, false).await;
    a_stream_ends_with_its_token(End::Absent, false).await;
}

/// A clock that tests set manually.
#[derive(Debug)]
struct MovedClock(Mutex<OffsetDateTime>);

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().unwrap()
    }
}

#[actix_web::test]
async fn the_number_of_streams_is_bounded_for_all_and_for_one_account() {
    let registry = Registry::with(|config| config.limits.streams = 2).await;
    let curator = registry.token(Role::Curator).await;
    let third = registry.admin_alone().await;
    let served = serve(&registry);
    let open = served.open("").await;
    assert_eq!(open.status(), 200);
    // One account may use a tenth of the permits, at least one, so it cannot exhaust those of others.
    let own = served.open("").await;
    let other = served.open_with(&curator, "").await;
    assert_eq!((own.status().as_u16(), other.status().as_u16()), (429, 200));
    let refused = served.open_with(&third, "").await;
    assert_eq!(refused.status(), 503);
    for answer in [own, refused] {
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert!(answer.headers().contains_key("retry-after"));
    }
    // Pages of events are still served.
    let page = registry
        .ask(bearer(TestRequest::get().uri("/v1/events"), ADMIN))
        .await;
    assert_eq!(page.status, 200);
    drop((open, other));
    for token in [ADMIN, &third] {
        let again = async { while served.open_with(token, "").await.status() != 200 {} };
        tokio::time::timeout(LIMIT, again).await.unwrap();
    }
    served.stop().await;
}

#[actix_web::test]
async fn a_stream_tells_only_what_its_filter_selects() {
    let registry = Registry::new().await;
    let served = serve(&registry);
    register(&registry, 9).await;
    let filter = "?kind=domain.registered&domain=127.0.0.1:10&domain=127.0.0.1:11";
    let mut stream = served.open(filter).await.bytes_stream();
    for port in [10, 12, 11] {
        register(&registry, port).await;
    }
    let told = read_until(&mut stream, "127.0.0.1:11\"").await;
    assert!(told.contains("127.0.0.1:10\""), "{told}");
    for other in ["127.0.0.1:9\"", "127.0.0.1:12\""] {
        assert!(!told.contains(other), "{told}");
    }
    drop(stream);
    served.stop().await;
}

#[actix_web::test]
async fn streams_take_no_pages_and_no_nonsense() {
    let registry = Registry::new().await;
    let stream = |query: &str| {
        bearer(TestRequest::get().uri(&format!("/v1/events{query}")), ADMIN)
            .insert_header(("accept", "text/event-stream"))
    };
    let paged = registry
        .ask(stream("?page_size=5"))
        .await
        .problem(400, "invalid-request");
    assert_eq!(paged["errors"][0]["pointer"], "/page_size");
    for of_pages in [
        "account=ada",
        "since=2027-01-01T00:00:00Z",
        "newest_first=true",
    ] {
        let refused = registry.ask(stream(&format!("?{of_pages}"))).await;
        let problem = refused.problem(400, "invalid-request");
        let name = of_pages.split('=').next().unwrap();
        assert_eq!(problem["errors"][0]["pointer"], format!("/{name}"));
    }
    let many = format!("?{}", "domain=a.example&".repeat(51));
    let refused = registry.ask(stream(many.trim_end_matches('&'))).await;
    let problem = refused.problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/domain");
    registry
        .ask(stream("").insert_header(("last-event-id", "x")))
        .await
        .problem(400, "invalid-request");
    let head = registry
        .ask(stream("").method(actix_web::http::Method::HEAD))
        .await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}
