//! Credentials go where the card says, and are asked for before anything is sent.

use a2a_card::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme};
use a2a_client::{BasicLogin, CallError, ClientCertificate, SendOptions, send_text};
use serde_json::json;

use super::card;
use super::scripted::{ReceivedRequest, Scripted, ScriptedAnswer};
use super::tokens::Tokens;

fn secured(url: &str, schemes: &[(&str, SchemeKind)], alternatives: &[&[&str]]) -> AgentCard {
    let mut card = card(url, "JSONRPC", Some("1.0"));
    card.security_schemes = schemes
        .iter()
        .map(|(name, kind)| SecurityScheme {
            name: (*name).to_owned(),
            kind: kind.clone(),
            description: None,
        })
        .collect();
    card.security = alternatives
        .iter()
        .map(|names| SecurityRequirement {
            schemes: names
                .iter()
                .map(|name| ((*name).to_owned(), Vec::new()))
                .collect(),
        })
        .collect();
    card
}

fn http(scheme: &str) -> SchemeKind {
    SchemeKind::Http {
        scheme: scheme.to_owned(),
        bearer_format: None,
    }
}

fn key(location: &str, parameter: &str) -> SchemeKind {
    SchemeKind::ApiKey {
        location: location.to_owned(),
        parameter: parameter.to_owned(),
    }
}

fn with(change: impl FnOnce(&mut SendOptions)) -> SendOptions {
    let mut options = SendOptions::new("m");
    change(&mut options);
    options
}

/// The one request that a send with these options makes.
async fn sent(
    schemes: &[(&str, SchemeKind)],
    alternatives: &[&[&str]],
    options: &SendOptions,
) -> ReceivedRequest {
    let server = Scripted::start([ScriptedAnswer::json(
        &json!({"result": {"message": {"parts": [{"text": "hi"}]}}}),
    )])
    .await;
    send_text(&secured(&server.base, schemes, alternatives), "hi", options)
        .await
        .unwrap();
    server.stop().await.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_into_the_authorization_header() {
    let options = with(|options| options.bearer_token = Some("t0ken".to_owned()));
    let oauth = SchemeKind::Oauth2 {
        flows: json!({}),
        metadata_url: None,
    };
    let oidc = SchemeKind::OpenIdConnect {
        url: "https://h/".to_owned(),
    };
    for kind in [http("bearer"), oauth, oidc] {
        let seen = sent(&[("auth", kind)], &[&["auth"]], &options).await;
        assert_eq!(seen.header("authorization"), Some("Bearer t0ken"));
    }
    let unasked = sent(&[], &[], &options).await;
    assert_eq!(unasked.header("authorization"), Some("Bearer t0ken"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_where_the_scheme_says() {
    let options = with(|options| options.api_key = Some("k&y".to_owned()));
    let header = sent(&[("k", key("header", "X-Key"))], &[&["k"]], &options).await;
    assert_eq!(header.header("x-key"), Some("k&y"));
    let query = sent(&[("k", key("query", "key"))], &[&["k"]], &options).await;
    assert_eq!(query.path_and_query, "/?key=k%26y");
    let cookie = sent(&[("k", key("cookie", "session"))], &[&["k"]], &options).await;
    assert_eq!(cookie.header("cookie"), Some("session=k&y"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_alternative_that_can_be_met_is_taken() {
    let schemes = [("token", http("bearer")), ("key", key("header", "X-Key"))];
    let options = with(|options| options.api_key = Some("k".to_owned()));
    let seen = sent(&schemes, &[&["token"], &[], &["key"]], &options).await;
    assert_eq!(
        (seen.header("x-key"), seen.header("authorization")),
        (Some("k"), None)
    );
    let both = with(|options| {
        options.api_key = Some("k".to_owned());
        options.bearer_token = Some("t".to_owned());
    });
    let seen = sent(&schemes, &[&["token", "key"]], &both).await;
    assert_eq!(
        (seen.header("x-key"), seen.header("authorization")),
        (Some("k"), Some("Bearer t"))
    );
    let nobody = sent(&schemes, &[&["token"], &[]], &SendOptions::new("m")).await;
    assert_eq!(nobody.header("authorization"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_and_a_password_go_as_http_basic() {
    let login = |user: &str, password: &str| {
        with(|options| {
            options.basic_login = Some(BasicLogin {
                user: user.to_owned(),
                password: password.to_owned(),
            });
        })
    };
    let scheme = [("auth", http("Basic"))];
    let seen = sent(&scheme, &[&["auth"]], &login("Aladdin", "open sesame")).await;
    let expected = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_eq!(seen.header("authorization"), expected);
    let unasked = sent(&[], &[], &login("Aladdin", "open sesame")).await;
    assert_eq!(unasked.header("authorization"), expected);
    // In UTF-8, as RFC 7617 has it.
    let seen = sent(&scheme, &[&["auth"]], &login("test", "123\u{a3}")).await;
    assert_eq!(seen.header("authorization"), Some("Basic dGVzdDoxMjPCow=="));
    let server = Scripted::start([]).await;
    let card = secured(&server.base, &scheme, &[&["auth"]]);
    for (user, password) in [("a:b", "c"), ("a\nb", "c"), ("a", "s3cret\0")] {
        let error = send_text(&card, "hi", &login(user, password)).await;
        let error = error.unwrap_err();
        assert_eq!(error, CallError::InvalidBasicLogin);
        assert!(!error.to_string().contains("s3cret"));
    }
    // A password is no token, and no token is a password.
    let bearer = secured(&server.base, &[("auth", http("bearer"))], &[&["auth"]]);
    let token = with(|options| options.bearer_token = Some("t".to_owned()));
    for (card, options) in [(&bearer, login("a", "b")), (&card, token)] {
        let error = send_text(card, "hi", &options).await.unwrap_err();
        assert!(
            matches!(error, CallError::CredentialsRequired { .. }),
            "{error}"
        );
    }
    assert!(server.stop().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_given_by_hand_meets_what_it_names_and_replaces_what_is_set() {
    let basic = with(|options| {
        options.headers = vec![("Authorization".to_owned(), "Basic eDp5".to_owned())]
    });
    let seen = sent(&[("auth", http("basic"))], &[&["auth"]], &basic).await;
    assert_eq!(seen.header("authorization"), Some("Basic eDp5"));
    let other =
        with(|options| options.headers = vec![("A2A-Version".to_owned(), "1.1".to_owned())]);
    let seen = sent(&[], &[], &other).await;
    assert_eq!(
        seen.headers
            .iter()
            .filter(|(name, _)| name == "a2a-version")
            .count(),
        1
    );
    assert_eq!(seen.header("a2a-version"), Some("1.1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_credentials_are_named_with_their_flag_before_anything_is_sent() {
    let server = Scripted::start([]).await;
    for (kind, needed, hint) in [
        (http("bearer"), "a bearer token", "--bearer"),
        (http("basic"), "HTTP basic authentication", "--basic USER"),
        (
            key("query", "key"),
            "an API key in the query key",
            "--api-key",
        ),
        (
            SchemeKind::Oauth2 {
                flows: json!({}),
                metadata_url: None,
            },
            "an OAuth 2 access token",
            "credentials add",
        ),
        (
            SchemeKind::MutualTls,
            "a client certificate",
            "--cert FILE --key FILE",
        ),
        (
            SchemeKind::Other {
                label: "dance".to_owned(),
            },
            "dance",
            "--header",
        ),
    ] {
        let card = secured(&server.base, &[("auth", kind)], &[&["auth"]]);
        let error = send_text(&card, "hi", &SendOptions::new("m"))
            .await
            .unwrap_err();
        let CallError::CredentialsRequired {
            needed: said,
            hint: flag,
        } = &error
        else {
            panic!("{error:?}")
        };
        assert!(said.contains(needed) && flag.contains(hint), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    let undeclared = secured(&server.base, &[], &[&["auth"]]);
    let error = send_text(&undeclared, "hi", &SendOptions::new("m"))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("auth, which the card does not describe"),
        "{error}"
    );

    let options = with(|options| options.api_key = Some("k".to_owned()));
    let error = send_text(&card(&server.base, "JSONRPC", Some("1.0")), "hi", &options).await;
    assert_eq!(error.unwrap_err(), CallError::NoApiKeyScheme);
    let broken = with(|options| options.bearer_token = Some("a\nb".to_owned()));
    let error = send_text(&card(&server.base, "JSONRPC", Some("1.0")), "hi", &broken)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CallError::BadHeader { .. }) && !error.to_string().contains("a\nb"),
        "{error}"
    );
    assert!(server.stop().await.is_empty());
}

#[test]
fn no_debug_output_shows_a_credential() {
    let options = with(|options| {
        options.bearer_token = Some("s3cret".to_owned());
        options.api_key = Some("s3cret".to_owned());
        options.headers = vec![("X-Token".to_owned(), "s3cret".to_owned())];
        options.basic_login = Some(BasicLogin {
            user: "ann".to_owned(),
            password: "s3cret".to_owned(),
        });
        options.certificate = Some(ClientCertificate {
            chain: b"s3cret".to_vec(),
            key: b"s3cret".to_vec(),
        });
        options.token_source = Some(Tokens::of(&["s3cret"]));
    });
    let shown = format!("{options:?}");
    assert!(
        shown.contains("X-Token") && shown.contains("ann") && !shown.contains("s3cret"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_whether_credentials_are_missing_or_wrong() {
    let unauthorized = ScriptedAnswer::new(401, "application/json", r#"{"error":"invalid_token"}"#)
        .with("www-authenticate", "Bearer realm=\"agents\"");
    let server = Scripted::start([
        unauthorized.clone(),
        unauthorized,
        ScriptedAnswer::new(403, "text/plain", "not you"),
    ])
    .await;
    let spoken = card(&server.base, "JSONRPC", Some("1.0"));
    let error = send_text(&spoken, "hi", &SendOptions::new("m"))
        .await
        .unwrap_err();
    let CallError::CredentialsRequired { needed, hint } = &error else {
        panic!("{error:?}")
    };
    assert!(
        needed.contains("HTTP 401 and requires Bearer realm=\"agents\"")
            && hint.contains("--bearer"),
        "{error}"
    );

    let options = with(|options| options.bearer_token = Some("s3cret".to_owned()));
    let error = send_text(&spoken, "hi", &options).await.unwrap_err();
    assert!(
        matches!(&error, CallError::CredentialsRejected { status, .. } if status == "HTTP 401"),
        "{error:?}"
    );
    assert!(!error.to_string().contains("s3cret"));
    let error = send_text(&spoken, "hi", &options).await.unwrap_err();
    let CallError::CredentialsRejected { status, detail } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (status.as_str(), detail.as_str()),
        ("HTTP 403", ": not you")
    );
    server.stop().await;
}
