//! Credentials of sources on the domain's page and on the command line, and in what the operator reads.

use serde_json::Value;

use crate::policy_pages::{PageSession, assert_shows};
use crate::support::api::ApiResponse;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};
use crate::support::tls::{Authority, TlsFront};

const SECRET: &str = "hush-0123456789";
const PATH: &str = "/card.json";

/// A registry, and an origin with TLS whose card at [`PATH`] is registered.
struct GatewaySetup {
    registry: ServingRegistry,
    origin: Origin,
    card_url: String,
    /// `host:port` of the origin.
    domain: String,
    _front: TlsFront,
}

impl GatewaySetup {
    async fn start() -> Self {
        let setup = RegistrySetup::with_default_config();
        let authority = Authority::new("the tests' own");
        let trusted = setup.scratch_folder().join("authority.pem");
        std::fs::write(&trusted, authority.pem()).unwrap();
        let origin = Origin::start();
        let identity = authority.identity("127.0.0.1");
        let front = TlsFront::bind(([127, 0, 0, 1], 0).into(), identity, &origin)
            .await
            .unwrap();
        let registry = setup
            .with_config_lines(&format!(
                "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_ports = \"any\"\nextra_ca = [{trusted:?}]\n\
                 [log]\nfilter = \"debug\"\n"
            ))
            .start()
            .await;
        origin.set_reply(PATH, OriginReply::status(401));
        let card_url = front.url(PATH);
        let domain = registry.register(&card_url).await.domain;
        Self {
            registry,
            origin,
            card_url,
            domain,
            _front: front,
        }
    }

    async fn source(&self) -> Value {
        let path = format!("/v1/domains/{}", self.domain);
        let view = self.registry.get_as_admin(&path).await.expect_status(200);
        view["sources"][0].clone()
    }

    async fn wait_for_header(&self, name: &str, value: &str) {
        eventually("the crawler sends the credential", || async {
            let requests = self.origin.requests_to(PATH);
            let mut sent = requests.iter().filter_map(|request| request.header(name));
            sent.any(|sent| sent == value).then_some(())
        })
        .await;
    }

    /// Ends the registry, whose log at its most detailed has no secret.
    async fn stop(self) {
        let ended = self.registry.stop().await;
        let log = format!("{ended:?}");
        assert!(!log.contains("hush"), "the log has a secret");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_is_set_and_removed_on_the_domains_page() {
    let setup = GatewaySetup::start().await;
    let registry = &setup.registry;
    let token = registry.create_token("acme", "publisher").await;
    let acme = PageSession::sign_in(registry, &token).await;
    let admin = PageSession::sign_in(registry, ADMIN_TOKEN).await;
    let page = format!("/domains/{}", setup.domain);
    let form = format!("{page}/credential");
    assert_shows(&admin.get(&page).await, 200, &["id=\"credential\""]);

    let id = setup.source().await["id"].as_str().unwrap().to_owned();
    let fields = [
        ("source", id.as_str()),
        ("kind", "header"),
        ("name", "Host"),
        ("secret", SECRET),
    ];
    assert_eq!(acme.post(&form, &fields).await.0, 404);
    let refused = admin.post(&form, &fields).await;
    let kept = ["cannot hold a credential", "value=\"Host\"", "open"];
    assert_shows(&refused, 400, &kept);
    assert!(!refused.1.contains(SECRET), "{}", refused.1);

    setup
        .origin
        .set_reply(PATH, OriginReply::json(card_json("Echo", "repeat")));
    let accepted = [fields[0], fields[1], ("name", "X-Api-Key"), fields[3]];
    assert_eq!(admin.post(&form, &accepted).await.0, 303);
    setup.wait_for_header("x-api-key", SECRET).await;
    let shown = admin.get(&page).await;
    let words = [
        "Fetched with a header field, set by ",
        "Remove a credential",
    ];
    assert_shows(&shown, 200, &words);
    assert!(!shown.1.contains(SECRET), "{}", shown.1);

    let remove = format!("{form}/remove");
    let unconfirmed = admin.post(&remove, &[fields[0]]).await;
    assert_shows(&unconfirmed, 400, &["Select the checkbox"]);
    let confirmed = [fields[0], ("confirmed", "yes")];
    assert_eq!(admin.post(&remove, &confirmed).await.0, 303);
    assert_eq!(admin.post(&remove, &confirmed).await.0, 404);
    assert!(setup.source().await["credential"].is_null());
    setup.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_reads_a_secret_from_standard_input_and_shows_it_nowhere() {
    let setup = GatewaySetup::start().await;
    let registry = &setup.registry;
    setup
        .origin
        .set_reply(PATH, OriginReply::json(card_json("Echo", "repeat")));
    let (domain, url) = (setup.domain.as_str(), setup.card_url.as_str());
    let words = [
        "domain",
        "credential",
        "set",
        domain,
        url,
        "--secret-file",
        "-",
    ];
    let command = registry.admin_command(&words);
    let set = Program::run_with_input(command, format!("{SECRET}\n").as_bytes()).await;
    assert_exit(&set, 0, "");
    setup
        .wait_for_header("authorization", &format!("Bearer {SECRET}"))
        .await;
    let id = setup.source().await["id"].as_str().unwrap().to_owned();
    for arguments in [
        vec!["domain", "credential", "show", domain],
        vec!["domain", "credential", "show", domain, "--json"],
        vec!["domain", "show", domain],
        vec!["export", "--json"],
    ] {
        let shown = registry.run_admin_command(&arguments).await;
        assert_exit(&shown, 0, "");
        assert!(!format!("{shown:?}").contains("hush"), "{shown:?}");
        let said = format!("{}{}", join_lines(&shown.stdout), join_lines(&shown.stderr));
        let expected = match arguments[0] {
            "export" => "1 sources have a credential",
            _ => "bearer",
        };
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let data = registry.setup.data_folder().to_str().unwrap().to_owned();
    let doctor = registry
        .run_admin_command(&["doctor", "--data-dir", &data])
        .await;
    let said = join_lines(&doctor.stdout);
    assert!(
        said.contains("ok   secrets key: decrypts all 1 credentials"),
        "{said}"
    );

    let remove = ["domain", "credential", "remove", domain, &id];
    assert_exit(&registry.run_admin_command(&remove).await, 0, "");
    let again = registry.run_admin_command(&remove).await;
    assert_ne!(again.status.code(), Some(0), "{again:?}");
    setup.stop().await;
}

/// The answer of the API names the member and never repeats a value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_repeats_no_secret() {
    let setup = GatewaySetup::start().await;
    let registry = &setup.registry;
    let id = setup.source().await["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/domains/{}/sources/{id}/credential", setup.domain);
    for body in [
        r#"{"kind": "bearer", "secret": 123450000}"#.to_owned(),
        format!(r#"{{"kind": "bearer", "secret": ["{SECRET}"]}}"#),
        format!(r#"{{"kind": "bearer", "secret": "{SECRET} {SECRET}"}}"#),
        format!(r#"{{"kind": "header", "name": "Cookie", "secret": "{SECRET}"}}"#),
        r#"{"kind": "cookie", "secret": "x"}"#.to_owned(),
    ] {
        let put = registry.admin_request(reqwest::Method::PUT, &path);
        let put = put.header("content-type", "application/json").body(body);
        let answer = ApiResponse::send(put).await;
        let text = answer.text();
        assert!(answer.status.is_client_error(), "{text}");
        assert!(
            !text.contains("hush") && !text.contains("123450000"),
            "{text}"
        );
    }
    setup.stop().await;
}
