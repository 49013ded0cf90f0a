//! Signing in to agents at a real authorization server, and at malicious ones.

mod browser_user;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::CARD;
use super::credentials::{CliUser, SECRET, agent, authorization, messages, set_card};
use super::terminal::at_a_terminal_in;
use crate::support::identity_provider::IdentityProvider;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines};
use browser_user::BrowserUser;

/// The secret that the provider of the tests knows its services by.
const CLIENT_SECRET: &str = "the-secret-of-a-service";

const DISCOVERY: &str = "/.well-known/openid-configuration";

/// A provider that knows ann and a service, and the folder with its data.
async fn provider() -> (IdentityProvider, TempDir) {
    let folder = TempDir::new().unwrap();
    let provider = IdentityProvider::start(folder.path(), "login").await;
    let people = json!({"ann": {"preferred_username": "ann"}});
    let parts = json!({"people": people, "services": {"pipeline": {"groups": []}}});
    provider.set_parts(parts).await;
    (provider, folder)
}

fn openid(issuer: &str) -> Value {
    json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": format!("{issuer}{DISCOVERY}")}})
}

fn client_credentials(token: &str) -> Value {
    json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": token, "scopes": {}}}}})
}

/// `credentials add` for this agent, with these flags.
fn add<'a>(url: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["credentials", "add", "--direct", url];
    words.extend(flags);
    words
}

/// What is kept of the sign-in to this agent.
fn sign_in(user: &CliUser, agent: &Origin) -> Value {
    let kept = user.stored_credentials();
    kept["agents"][agent.url("")]["sign_in"].clone()
}

/// The token that is kept for this agent.
fn stored_token(user: &CliUser, agent: &Origin) -> String {
    let kept = sign_in(user, agent);
    kept["access_token"].as_str().unwrap().to_owned()
}

/// Makes the token for this agent one that has to be renewed.
fn age(user: &CliUser, agent: &Origin) {
    let origin = agent.url("");
    user.edit_credentials(|kept| kept["agents"][origin.as_str()]["sign_in"]["renew_at"] = json!(1));
}

/// Sends a message with the kept token, which shows nowhere, nor do the secrets behind it.
async fn assert_token_is_sent(user: &CliUser, agent: &Origin) {
    let before = sign_in(user, agent);
    let url = agent.url(CARD);
    let mut command = user.command(&["send", "--direct", &url, "hi"]);
    command.env("RUST_LOG", "trace");
    let finished = Program::run(command).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    let expected = format!("Bearer {}", stored_token(user, agent));
    assert_eq!(authorization(agent), Some(expected));
    let printed = join_lines(&finished.stderr);
    assert!(printed.contains("TRACE"), "nothing was logged");
    for kept in [before, sign_in(user, agent)] {
        for secret in ["access_token", "refresh_token", "client_secret"] {
            // The tokens of scripted servers are too short to be told from other words.
            let secret = kept[secret].as_str().filter(|secret| secret.len() > 8);
            assert!(
                secret.is_none_or(|secret| !printed.contains(secret)),
                "{printed}"
            );
        }
    }
}

#[tokio::test]
async fn a_service_signs_in_for_itself_where_its_user_confirmed() {
    let (login, _folder) = provider().await;
    let user = CliUser::new();
    let agent = agent(&client_credentials(&format!("{}/token", login.issuer)));
    let url = agent.url(CARD);
    let secret = format!("@{}", user.file("secret", CLIENT_SECRET));
    let flags = ["--client-id", "pipeline", "--client-secret", &secret];
    assert_exit(&user.send_message(&agent).await, 2, "credentials add");
    // Nobody can be asked here.
    let refused = user.run(&add(&url, &flags)).await;
    let advice = format!("--confirm-token-endpoint {}", login.issuer);
    assert_exit(&refused, 2, &advice);
    assert!(!user.path().exists());

    let mut confirmed = add(&url, &flags);
    confirmed.extend(["--confirm-token-endpoint", &login.issuer]);
    let mut command = user.command(&confirmed);
    command.env("RUST_LOG", "trace");
    let finished = Program::run(command).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    let printed = [&finished.stdout[..], &finished.stderr].concat().join("\n");
    assert!(printed.contains("TRACE"), "nothing was logged");
    for hidden in [CLIENT_SECRET, &stored_token(&user, &agent)] {
        assert!(!printed.contains(hidden), "{hidden} in {printed}");
    }
    assert_token_is_sent(&user, &agent).await;
    let first = stored_token(&user, &agent);
    assert_token_is_sent(&user, &agent).await;
    assert_eq!(stored_token(&user, &agent), first);
    // Without a refresh token the service signs in again.
    age(&user, &agent);
    assert_token_is_sent(&user, &agent).await;
    assert_ne!(stored_token(&user, &agent), first);
    // The address was confirmed for this agent, so it is not asked for again.
    let again = user.run(&add(&url, &flags)).await;
    assert_eq!(again.status.code(), Some(0), "{again:#?}");
    let listed = user.run(&["credentials", "list"]).await;
    assert!(join_lines(&listed.stdout).contains(&format!("{}/token", login.issuer)));
}

#[tokio::test]
async fn a_person_signs_in_with_a_browser_that_comes_back_to_this_machine() {
    let (login, folder) = provider().await;
    let user = CliUser::new();
    let agent = agent(&openid(&login.issuer));
    let url = agent.url(CARD);
    // A browser that only notes where it is sent.
    let visited = folder.path().join("visited");
    let opener = folder.path().join("xdg-open");
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" > {visited:?}.new && mv {visited:?}.new {visited:?}\n"
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let flags = [
        "--client-id",
        "cli",
        "--browser",
        "--confirm-token-endpoint",
        &login.issuer,
    ];
    let mut command = user.command(&add(&url, &flags));
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.path().display()));
    let program = Program::start(command);
    let address = program
        .wait_for_match(|line| line.strip_prefix("sign in at ").map(str::to_owned))
        .await;
    assert!(address.starts_with(&login.issuer), "{address}");
    assert!(address.contains("code_challenge_method=S256"), "{address}");
    // Somebody else's code, which a page on this machine might try to plant.
    let sent: url::Url = address.parse().unwrap();
    let back = sent.query_pairs().find(|(name, _)| name == "redirect_uri");
    let back = back.unwrap().1.into_owned();
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    let mut eve = BrowserUser::new();
    let (status, _) = eve
        .get(&format!(
            "{back}?code=evil&state=guessed&iss={}",
            login.issuer
        ))
        .await;
    assert_eq!(status, 400);
    let page = BrowserUser::new().signs_in(&address, "ann").await;
    assert!(page.contains("You are signed in"), "{page}");
    let finished = program.wait_for_end().await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_eq!(std::fs::read_to_string(&visited).unwrap(), address);
    assert_token_is_sent(&user, &agent).await;

    // The provider takes a refresh token once, so of several commands at once one renews the token for all.
    let first = stored_token(&user, &agent);
    age(&user, &agent);
    let sent = futures::future::join_all((0..4).map(|_| user.send_message(&agent))).await;
    for finished in sent {
        assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    }
    let kept = sign_in(&user, &agent);
    assert_ne!(stored_token(&user, &agent), first);
    let renewed = Some(format!("Bearer {}", stored_token(&user, &agent)));
    let sent = messages(&agent);
    for request in &sent[sent.len() - 4..] {
        assert_eq!(request.header("authorization"), renewed.as_deref());
    }
    // A refresh token that the provider has taken back ends the sign-in, in one line.
    let origin = agent.url("");
    user.edit_credentials(|file| {
        let sign_in = &mut file["agents"][origin.as_str()]["sign_in"];
        *sign_in = kept;
        sign_in["refresh_token"] = json!(SECRET);
        sign_in["renew_at"] = json!(1);
    });
    let before = messages(&agent).len();
    let ended = user.send_message(&agent).await;
    assert_exit(&ended, 2, "invalid_grant");
    assert!(
        join_lines(&ended.stderr).contains("again with `credentials add`"),
        "{ended:#?}"
    );
    assert!(!join_lines(&ended.stderr).contains(SECRET), "{ended:#?}");
    assert_eq!(messages(&agent).len(), before);
}

#[tokio::test]
async fn a_person_signs_in_at_another_device() {
    let (login, _folder) = provider().await;
    let user = CliUser::new();
    let agent = agent(&openid(&login.issuer));
    let url = agent.url(CARD);
    let flags = [
        "--client-id",
        "cli",
        "--flow",
        "device",
        "--confirm-token-endpoint",
        &login.issuer,
    ];
    let program = Program::start(user.command(&add(&url, &flags)));
    let (place, code) = program
        .wait_for_match(|line| {
            let rest = line.strip_prefix("sign in at ")?;
            let (place, code) = rest.split_once(" with the code ")?;
            Some((place.to_owned(), code.to_owned()))
        })
        .await;
    let page = BrowserUser::new()
        .signs_in(&format!("{place}?user_code={code}"), "ann")
        .await;
    assert!(page.contains("Success"), "{page}");
    let finished = program.wait_for_end().await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_token_is_sent(&user, &agent).await;
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let (login, _folder) = provider().await;
    let user = CliUser::new();
    let agent = agent(&client_credentials(&format!("{}/token", login.issuer)));
    let url = agent.url(CARD);
    let secret = format!("@{}", user.file("secret", CLIENT_SECRET));
    let flags = [
        "--client-id",
        "pipeline",
        "--client-secret",
        &secret,
        "--confirm-token-endpoint",
        &login.issuer,
    ];
    assert_eq!(user.run(&add(&url, &flags)).await.status.code(), Some(0));
    let first = stored_token(&user, &agent);
    agent.set_reply("/rpc", OriginReply::status(401));
    let refused = user.send_message(&agent).await;
    assert_exit(&refused, 2, "the agent refused the credentials (HTTP 401)");
    let sent = messages(&agent);
    let sent: Vec<_> = sent
        .iter()
        .map(|request| request.header("authorization").unwrap())
        .collect();
    assert_eq!(
        sent,
        [
            format!("Bearer {first}"),
            format!("Bearer {}", stored_token(&user, &agent))
        ]
    );
    assert_ne!(first, stored_token(&user, &agent));
}

#[tokio::test]
async fn the_person_at_the_terminal_decides_where_the_sign_in_goes() {
    let elsewhere = Origin::start();
    let issued = json!({"access_token": "t", "token_type": "Bearer"});
    elsewhere.set_reply("/token", OriginReply::json(issued.to_string()));
    let user = CliUser::new();
    let mut scheme = client_credentials(&elsewhere.url("/token"));
    let flow = &mut scheme["oauth2SecurityScheme"]["flows"]["clientCredentials"];
    flow["scopes"] = json!({"all\u{1b}[2J": "Everything."});
    let agent = agent(&scheme);
    let url = agent.url(CARD);
    let secret = format!("@{}", user.file("secret", CLIENT_SECRET));
    let flags = ["--client-id", "pipeline", "--client-secret", &secret];
    let configuration = user.path();
    let configuration = configuration.ancestors().nth(2).unwrap();
    let words = add(&url, &flags);
    let no = at_a_terminal_in(configuration, &["[y/N] ", "n\n"], &words).await;
    assert_eq!(no.status.code(), Some(1), "{no:#?}");
    let shown = join_lines(&no.stdout);
    assert!(
        shown.contains(&elsewhere.url("/token")) && shown.contains("\\u{1b}[2J"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(elsewhere.requests_to("/token").is_empty());
    let yes = at_a_terminal_in(configuration, &["[y/N] ", "y\n"], &words).await;
    assert_eq!(yes.status.code(), Some(0), "{yes:#?}");
    assert_eq!(elsewhere.requests_to("/token").len(), 1);
    assert_token_is_sent(&user, &agent).await;

    // A card that names another place afterwards is asked about again, and gets nothing meanwhile.
    let other = Origin::start();
    other.set_reply("/token", OriginReply::json(issued.to_string()));
    set_card(
        &agent,
        &agent.url("/rpc"),
        &client_credentials(&other.url("/token")),
    );
    let before = messages(&agent).len();
    assert_exit(
        &user.send_message(&agent).await,
        2,
        "names another sign-in address",
    );
    assert_exit(&user.run(&words).await, 2, "--confirm-token-endpoint");
    age(&user, &agent);
    assert_exit(
        &user.send_message(&agent).await,
        2,
        "names another sign-in address",
    );
    assert_eq!(messages(&agent).len(), before);
    assert!(other.requests_to("/token").is_empty());
    // Nor does the card of another agent that names the confirmed place.
    let second = super::credentials::agent(&scheme);
    let second_url = second.url(CARD);
    assert_exit(
        &user.run(&add(&second_url, &flags)).await,
        2,
        "--confirm-token-endpoint",
    );
    assert_eq!(elsewhere.requests_to("/token").len(), 1);
}

#[tokio::test]
async fn servers_that_point_elsewhere_get_nothing() {
    let evil = Origin::start();
    let issued = json!({"access_token": "t", "token_type": "Bearer"}).to_string();
    evil.set_reply("/token", OriginReply::json(issued.clone()));
    let login = Origin::start();
    let confirmed = login.url("");
    let document = |issuer: &str, token: &str| {
        let document = json!({"issuer": issuer, "token_endpoint": token, "authorization_endpoint": login.url("/authorize"),
            "device_authorization_endpoint": login.url("/device")});
        login.set_reply(DISCOVERY, OriginReply::json(document.to_string()));
    };
    let user = CliUser::new();
    let secret = format!("@{}", user.file("secret", CLIENT_SECRET));
    let flags = [
        "--client-id",
        "pipeline",
        "--client-secret",
        &secret,
        "--flow",
        "client",
        "--confirm-token-endpoint",
        &confirmed,
    ];
    let refused = async |scheme: Value, words: &str| {
        let agent = agent(&scheme);
        let url = agent.url(CARD);
        let finished = user.run(&add(&url, &flags)).await;
        assert_exit(&finished, 2, words);
        assert!(!user.path().exists() || user.stored_credentials()["agents"] == json!({}));
    };
    let discovered = || openid(&confirmed);
    document(&evil.url(""), &login.url("/token"));
    refused(discovered(), "is not the metadata address of its issuer").await;
    document(&login.url(""), &evil.url("/token"));
    refused(discovered(), "--confirm-token-endpoint").await;
    document(&login.url(""), "http://login.example/token");
    refused(discovered(), "must be https").await;
    login.set_reply(DISCOVERY, OriginReply::redirect(&evil.url(DISCOVERY)));
    refused(discovered(), "which is not followed").await;
    login.set_reply(DISCOVERY, OriginReply::endless());
    refused(discovered(), "longer than 65536 bytes").await;
    assert!(login.requests_to("/token").is_empty());

    login.set_reply("/token", OriginReply::redirect(&evil.url("/token")));
    refused(
        client_credentials(&login.url("/token")),
        "which is not followed",
    )
    .await;
    assert_eq!(login.requests_to("/token").len(), 1);
    refused(
        client_credentials(&evil.url("/token")),
        "--confirm-token-endpoint",
    )
    .await;
    refused(
        client_credentials("http://login.example/token"),
        "must be https",
    )
    .await;
    refused(openid("http://login.example"), "must be https").await;
    let arrived = evil.subscribe_requests().borrow().clone();
    assert!(arrived.is_empty(), "{arrived:#?}");
}

#[tokio::test]
async fn the_metadata_of_an_authorization_server_is_read() {
    const METADATA: &str = "/.well-known/oauth-authorization-server";
    let login = Origin::start();
    let document = json!({"issuer": login.url(""), "token_endpoint": login.url("/token"),
        "token_endpoint_auth_methods_supported": ["client_secret_post"]});
    login.set_reply(METADATA, OriginReply::json(document.to_string()));
    let issued = json!({"access_token": "t", "token_type": "Bearer"});
    login.set_reply("/token", OriginReply::json(issued.to_string()));
    let scheme =
        json!({"oauth2SecurityScheme": {"flows": {}, "oauth2MetadataUrl": login.url(METADATA)}});
    let agent = agent(&scheme);
    let user = CliUser::new();
    let secret = format!("@{}", user.file("secret", CLIENT_SECRET));
    let (url, origin) = (agent.url(CARD), login.url(""));
    let flags = [
        "--client-id",
        "pipeline",
        "--client-secret",
        &secret,
        "--confirm-token-endpoint",
        &origin,
    ];
    let finished = user.run(&add(&url, &flags)).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    assert_token_is_sent(&user, &agent).await;
    // The server wants the secret in the body, and the document was asked for without any.
    let asked = [login.requests_to(METADATA), login.requests_to("/token")].concat();
    assert_eq!(asked.len(), 2);
    assert!(
        asked
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
}

#[tokio::test]
async fn what_a_server_says_to_the_person_is_made_visible() {
    let login = Origin::start();
    let begun = json!({"device_code": "d", "user_code": "A\u{1b}[2JB", "expires_in": 600,
        "verification_uri": "https://l.example/\u{202e}device"});
    login.set_reply("/device", OriginReply::json(begun.to_string()));
    let denied = json!({"error": "access_denied", "error_description": "no\u{1b}[31m\nreally"});
    let denied = OriginReply::json(denied.to_string());
    login.set_reply("/token", denied.with_status(400));
    let flow =
        json!({"deviceAuthorizationUrl": login.url("/device"), "tokenUrl": login.url("/token")});
    let agent = agent(&json!({"oauth2SecurityScheme": {"flows": {"deviceCode": flow}}}));
    let (url, origin) = (agent.url(CARD), login.url(""));
    let flags = ["--client-id", "cli", "--confirm-token-endpoint", &origin];
    let user = CliUser::new();
    let finished = user.run(&add(&url, &flags)).await;
    assert_eq!(finished.status.code(), Some(1), "{finished:#?}");
    let said = join_lines(&finished.stderr);
    assert!(
        said.contains("A\\u{1b}[2JB") && said.contains("\\u{202e}device"),
        "{said}"
    );
    assert!(
        said.contains("access_denied: no\\u{1b}[31m really"),
        "{said}"
    );
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
    assert!(!user.path().exists());
}
