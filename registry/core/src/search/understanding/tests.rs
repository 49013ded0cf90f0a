//! Which words of a question are understood, and which stay text.
#![allow(clippy::unwrap_used)]

use super::words::MAX_QUESTION_WORDS;
use super::*;

fn asking(text: &str) -> SearchQuery {
    SearchQuery {
        q: Some(text.to_owned()),
        ..SearchQuery::default()
    }
}

fn understood(text: &str) -> Option<UnderstoodQuery> {
    understand_query(&asking(text), &LimitsConfig::default())
}

/// What is left of a text, and each part as `parameter=value`.
fn read(text: &str) -> (String, Vec<String>) {
    match understood(text) {
        None => (text.to_owned(), Vec::new()),
        Some(read) => {
            let parts = read.understood.parts.iter();
            let parts = parts.map(|part| format!("{}={}", part.parameter, part.value));
            (read.understood.q, parts.collect())
        }
    }
}

#[test]
fn explicit_phrases_are_filters() {
    for (text, rest, parts) in [
        (
            "weather agent without login",
            "weather agent",
            &["auth=none"][..],
        ),
        ("weather without a login", "weather", &["auth=none"]),
        (
            "translate letters, no API key",
            "translate letters",
            &["auth=none"],
        ),
        (
            "translate letters (no api-key required)",
            "translate letters",
            &["auth=none"],
        ),
        (
            "I need a weather agent with no authentication",
            "I need a weather agent",
            &["auth=none"],
        ),
        (
            "weather agent that doesn’t require an API key",
            "weather agent",
            &["auth=none"],
        ),
        (
            "plan trips without having to sign in",
            "plan trips",
            &["auth=none"],
        ),
        (
            "an image generator without signing up",
            "an image generator",
            &["auth=none"],
        ),
        (
            "no-login image generator",
            "image generator",
            &["auth=none"],
        ),
        ("Wetter ohne Anmeldung", "Wetter", &["auth=none"]),
        (
            "traductor sin inicio de sesión",
            "traductor",
            &["auth=none"],
        ),
        ("météo sans clé d'API", "météo", &["auth=none"]),
        (
            "calendar agent with OAuth",
            "calendar agent",
            &["auth=oauth2"],
        ),
        (
            "calendar agent with OAuth 2.0",
            "calendar agent",
            &["auth=oauth2"],
        ),
        (
            "calendar agent that supports OAuth2",
            "calendar agent",
            &["auth=oauth2"],
        ),
        ("calendar secured by oauth", "calendar", &["auth=oauth2"]),
        (
            "stock quotes with an API key",
            "stock quotes",
            &["auth=apiKey"],
        ),
        (
            "payroll with OpenID Connect",
            "payroll",
            &["auth=openIdConnect"],
        ),
        ("payroll over mTLS", "payroll", &["auth=mutualTLS"]),
        (
            "an agent that speaks gRPC and plans routes",
            "an agent and plans routes",
            &["binding=GRPC"],
        ),
        (
            "route planning over gRPC",
            "route planning",
            &["binding=GRPC"],
        ),
        (
            "gRPC agents for routes",
            "agents for routes",
            &["binding=GRPC"],
        ),
        ("routes over JSON-RPC", "routes", &["binding=JSONRPC"]),
        ("routes via HTTP+JSON", "routes", &["binding=HTTP+JSON"]),
        (
            "transcription agent with streaming",
            "transcription agent",
            &["capability=streaming"],
        ),
        (
            "transcription agent that supports streaming",
            "transcription agent",
            &["capability=streaming"],
        ),
        (
            "transcription that streams its results",
            "transcription",
            &["capability=streaming"],
        ),
        (
            "streaming agents for transcription",
            "agents for transcription",
            &["capability=streaming"],
        ),
        (
            "parcel agent with push notifications",
            "parcel agent",
            &["capability=push_notifications"],
        ),
        (
            "parcels, supports push notifications",
            "parcels",
            &["capability=push_notifications"],
        ),
        (
            "weather agent, version 0.3",
            "weather agent",
            &["protocol_version=0.3"],
        ),
        (
            "weather agent version 0.3",
            "weather agent",
            &["protocol_version=0.3"],
        ),
        (
            "weather agents speaking protocol 1.0",
            "weather agents",
            &["protocol_version=1.0"],
        ),
        ("weather for A2A v0.3", "weather", &["protocol_version=0.3"]),
        (
            "plant identification that accepts images",
            "plant identification",
            &["input_mode=image/*"],
        ),
        (
            "accepts images of receipts",
            "of receipts",
            &["input_mode=image/*"],
        ),
        (
            "agents which accept audio and write minutes",
            "agents and write minutes",
            &["input_mode=audio/*"],
        ),
        (
            "reading aloud, returns audio",
            "reading aloud",
            &["output_mode=audio/*"],
        ),
        (
            "an agent that draws and returns images",
            "an agent that draws",
            &["output_mode=image/*"],
        ),
        (
            "summaries that accepts PDFs",
            "summaries",
            &["input_mode=application/pdf"],
        ),
        (
            "weather agent, signed",
            "weather agent",
            &["signature=valid"],
        ),
        (
            "a weather agent that is signed",
            "a weather agent",
            &["signature=valid"],
        ),
        (
            "signed agents for invoices",
            "agents for invoices",
            &["signature=valid"],
        ),
        ("unsigned agents", "", &["signature=unsigned"]),
        (
            "weather agents that are unsigned",
            "weather agents",
            &["signature=unsigned"],
        ),
        (
            "weather agents that are not signed",
            "weather agents",
            &["signature=unsigned"],
        ),
        ("tax agent from a proved domain", "tax agent", &["trust=L1"]),
        (
            "tax advice, from a verified domain",
            "tax advice",
            &["trust=L1"],
        ),
        (
            "tax advice with trust level at least L2",
            "tax advice",
            &["trust=L2"],
        ),
        ("find me agents without login", "", &["auth=none"]),
        (
            "weather agent without login, over gRPC and with streaming support",
            "weather agent",
            &["auth=none", "binding=GRPC", "capability=streaming"],
        ),
        (
            "help desk, not zendesk",
            "help desk -zendesk",
            &["q=-zendesk"],
        ),
        (
            "help desk not Zendesk",
            "help desk -Zendesk",
            &["q=-Zendesk"],
        ),
        (
            "help desk but not zendesk for small teams",
            "help desk for small teams -zendesk",
            &["q=-zendesk"],
        ),
        (
            "calendar but not google calendar",
            "calendar -\"google calendar\"",
            &["q=-\"google calendar\""],
        ),
        ("payments except paypal", "payments -paypal", &["q=-paypal"]),
        (
            "editor for Python but not C++, C",
            "editor for Python C -C++",
            &["q=-C++"],
        ),
        ("games in Unity, not C#", "games in Unity -C#", &["q=-C#"]),
        (
            "search hotels excluding booking.com",
            "search hotels -booking.com",
            &["q=-booking.com"],
        ),
        (
            "crm other than salesforce or hubspot",
            "crm -salesforce -hubspot",
            &["q=-salesforce -hubspot"],
        ),
        ("weather not from acme", "weather -acme", &["q=-acme"]),
        ("not zendesk", "-zendesk", &["q=-zendesk"]),
        (
            "help desk without login but not zendesk",
            "help desk -zendesk",
            &["auth=none", "q=-zendesk"],
        ),
        ("pagos excepto paypal", "pagos -paypal", &["q=-paypal"]),
        (
            "no login required recipe agent",
            "recipe agent",
            &["auth=none"],
        ),
        (
            "something that summarises PDFs and needs no API key",
            "something that summarises PDFs",
            &["auth=none"],
        ),
        (
            "agents that work without login",
            "agents that work",
            &["auth=none"],
        ),
        (
            "tax help not using turbotax",
            "tax help -turbotax",
            &["q=-turbotax"],
        ),
        (
            "cheap flights but not ryanair",
            "cheap flights -ryanair",
            &["q=-ryanair"],
        ),
        (
            "support agent not intercom, not zendesk",
            "support agent -intercom -zendesk",
            &["q=-intercom", "q=-zendesk"],
        ),
        (
            "an agent that is signed by its domain",
            "",
            &["signature=valid"],
        ),
        ("trust level L3 payroll", "payroll", &["trust=L3"]),
        ("A2A 1.0 weather", "weather", &["protocol_version=1.0"]),
        (
            "text to speech with audio output",
            "text to speech",
            &["output_mode=audio/*"],
        ),
        ("which agents speak gRPC?", "", &["binding=GRPC"]),
        (
            "an echo agent that needs no token",
            "an echo agent",
            &["auth=none"],
        ),
        (
            "write letters, no account required",
            "write letters",
            &["auth=none"],
        ),
        (
            "book a flight without an account",
            "book a flight",
            &["auth=none"],
        ),
        ("routes, JSON-RPC binding", "routes", &["binding=JSONRPC"]),
        (
            "houses in Spain, with streaming",
            "houses in Spain",
            &["capability=streaming"],
        ),
        (
            "demand forecast, takes CSV",
            "demand forecast",
            &["input_mode=text/csv"],
        ),
    ] {
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        assert_eq!(read(text), (rest.to_owned(), parts), "{text}");
    }
}

#[test]
fn what_is_uncertain_stays_text() {
    for text in [
        "streaming movies",
        "streaming",
        "video streaming service",
        "movies, streaming",
        "set up a data pipeline with streaming to kafka",
        "signed",
        "signed contracts",
        "review signed agent agreements",
        "send a signed card to my mother",
        "contracts that must be signed",
        "sign language",
        "image generator",
        "generate images",
        "take photos of plants",
        "accepts payments",
        "accepts video calls",
        "tax returns pdf",
        "returns and refunds",
        "push the door",
        "send push notifications to customers",
        "mobile app with push notifications for shipments",
        "version control",
        "migrate to version 1.0",
        "upgrade to langchain version 0.3",
        "http protocol 1.0",
        "fix my login",
        "no login page found",
        "fix the error no authentication header",
        "open a pdf without a password",
        "help me with OAuth",
        "debug my login with OAuth",
        "login with oauth or with an api key",
        "with oauth/oidc",
        "grpc",
        "design a gRPC interface",
        "prefer exercise over rest",
        "domain verification",
        "send email from a verified domain",
        "register a domain",
        "not only translate but also summarise",
        "including but not limited to hotels",
        "why is my printer not working",
        "boiler water not hot",
        "the agent should not store data",
        "to be or not to be",
        "whether to fly or not",
        "not sure what to cook",
        "recipes without nuts",
        "book flights except on mondays",
        "hotels but not too expensive",
        "every fruit except ripe green apples",
        "agents that do not support streaming",
        "agents without streaming",
        "does not accept images",
        "weather without login or with OAuth",
        "\"without login\"",
        "weather \"agent without login\"",
        "weather “without login”",
        "weather -\"without login\"",
        "-without login",
        "weather AND without login",
        "a\"b \"d without login e\"",
        "without \"login\"",
        // A quotation that is left open would take in what is appended.
        "not from zendesk, \"help desk",
        "live streaming agent",
        "agent for streaming movies",
        "build with streaming services",
        "hotel without a credit card",
        "implement oauth login",
        "news not in english",
        "translate but not literally",
        "why not zendesk",
        "flights not cancelled",
        "is it safe to not wear a helmet",
        "kubernetes version 1.0 agent",
        "version 0.3",
        "buy a car without registration",
        "explain account statements without an account number",
        "charts without spreadsheets",
        "forge a token without a valid signature",
        "streaming hotel booking",
        "https://weather.example/without login",
        "with\u{200b}out login",
        "without, login",
        "",
        "🚀",
    ] {
        assert_eq!(understood(text), None, "{text}: {:?}", read(text));
    }
}

#[test]
fn the_words_of_a_part_are_those_of_the_text() {
    let text = "Weather agent, that needs NO  API key - but not Zendesk!";
    let read = understood(text).unwrap();
    let parts = read.understood.parts.iter();
    let words: Vec<&str> = parts.map(|part| part.text.as_str()).collect();
    assert_eq!(words, ["needs NO  API key", "but not Zendesk"]);
    assert_eq!(read.query.understand, Some(false));
    assert_eq!(read.query.auth, ["none"]);
    assert_eq!(read.query.q.as_deref(), Some(&*read.understood.q));
    // What was understood once is not understood again.
    assert_eq!(
        understand_query(&read.query, &LimitsConfig::default()),
        None
    );
}

#[test]
fn the_caller_decides() {
    let text = "weather without login over gRPC";
    let limits = LimitsConfig::default();
    let off = SearchQuery {
        understand: Some(false),
        ..asking(text)
    };
    assert_eq!(understand_query(&off, &limits), None);
    // A filter of the request stays what it is, and the words for it stay text.
    let given = SearchQuery {
        auth: vec!["oauth2".to_owned()],
        ..asking(text)
    };
    let read = understand_query(&given, &limits).unwrap();
    assert_eq!(read.query.auth, ["oauth2"]);
    assert_eq!(read.query.binding, ["GRPC"]);
    assert_eq!(read.understood.q, "weather without login");
    // A search that has as many filters as it may have is not refused because of its words.
    for (count, expected) in [(18, 2), (19, 1), (20, 0), (21, 0)] {
        let full = SearchQuery {
            tag: vec!["x".to_owned(); count],
            ..asking(text)
        };
        let read = understand_query(&full, &limits);
        let parts = read.map_or(0, |read| read.understood.parts.len());
        assert_eq!(parts, expected, "{count}");
    }
}

#[test]
fn a_part_becomes_text_again_and_the_others_become_parameters() {
    let query = asking("help desk without login, not zendesk, over gRPC");
    let read = understand_query(&query, &LimitsConfig::default()).unwrap();
    let without = |place: usize| query_with_part_as_text(&query, &read.understood, place);
    let first = without(0).unwrap();
    assert_eq!(first.q.as_deref(), Some("help desk without login -zendesk"));
    assert_eq!((first.auth.len(), first.binding.len()), (0, 1));
    let second = without(1).unwrap();
    assert_eq!(second.q.as_deref(), Some("help desk not zendesk"));
    assert_eq!((second.auth.len(), second.binding.len()), (1, 1));
    let third = without(2).unwrap();
    assert_eq!(third.q.as_deref(), Some("help desk over gRPC -zendesk"));
    assert_eq!(without(3), None);
    for changed in [first, second, third] {
        assert_eq!(changed.understand, Some(false));
    }
}

/// A caller may write anything; what is understood only narrows a search, and reading it is bounded.
#[test]
fn nothing_widens_a_search_and_long_texts_are_not_read() {
    for (_, facet, value) in phrases::PHRASES {
        assert!(
            !matches!(facet, Facet::Lifecycle | Facet::Liveness | Facet::Label),
            "{facet}"
        );
        assert!(
            facet
                .resolve_filter_values(vec![(*value).to_owned()])
                .is_ok(),
            "{facet} {value}"
        );
        let mut query = SearchQuery::default();
        set_filter(&mut query, *facet, (*value).to_owned());
        assert_eq!(query.filter_values(*facet), [*value]);
    }
    let limits = LimitsConfig {
        query_chars: 65_536,
        ..LimitsConfig::default()
    };
    let phrase = "weather without login ";
    let most = phrase.repeat(MAX_QUESTION_WORDS / 3);
    assert!(understand_query(&asking(&most), &limits).is_some());
    assert_eq!(understood(&most), None, "longer than a search text may be");
    for text in [
        phrase.repeat(500),
        "not a ".repeat(2_000),
        "without ".repeat(2_000),
        "no".repeat(5_000),
        "\"".repeat(10_000),
        "-\u{301}".repeat(5_000),
    ] {
        assert_eq!(understand_query(&asking(&text), &limits), None);
    }
    // The number of parts is bounded too, and a text never grows.
    let names: Vec<String> = ('a'..='z')
        .map(|letter| format!("not {letter}x,"))
        .collect();
    let text = names.join(" ");
    let read = understand_query(&asking(&text), &limits).unwrap();
    assert_eq!(read.understood.parts.len(), MAX_PARTS);
    assert!(read.understood.q.len() <= text.len());
    // Nor are there more excluded names than the query parser reads as such.
    let read = understand_query(&asking(&"not ax or bx or cx, ".repeat(4)), &limits).unwrap();
    assert_eq!(read.understood.parts.len(), 2);
}
