//! Tests that run snippets with the programs they are written for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use a2a_card::AgentCard;
use a2a_client::route_selection::{
    AvailableCredentials, CredentialChoice, ProvidedCredentialKinds, callable_routes,
    choose_credentials,
};
use serde_json::{Value, json};

use super::spec::choose_snippet_spec;
use super::*;
use crate::text::quote;

const PLACE: AgentUrls<'_> = AgentUrls {
    agent: "0193f00d-7000-8000-0000-000000000007",
    resolver: "https://registry.example.com/agents/0193f00d-7000-8000-0000-000000000007/",
    registry: "https://registry.example.com",
};

/// Texts with a special meaning in one language or another.
fn nasty() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        "plain text",
        "'",
        "\"",
        "\\",
        "\\\\'\"",
        "$(id)",
        "`id`",
        "${HOME} $HOME",
        "!! !x",
        "%s %n %%",
        "-n",
        "--",
        "a\nb",
        "\n",
        "\n\n",
        "a\n\n",
        "\na",
        "\r",
        "a\r\nb\r\n",
        "\t",
        "\u{1b}[2J\u{1b}]0;x\u{7}",
        "\u{1b}[201~; id",
        "\u{202e}abc\u{202c}",
        "zero\u{200b}width",
        "\u{feff}bom",
        "\u{2028}\u{2029}",
        "\u{7f}\u{80}\u{9b}",
        "é 東京 👩\u{200d}🚀",
        "\u{e0041}\u{10ffff}",
        "</script><script>alert(1)//",
        "*?[a]{b,c}~#;|&<>()",
        "'; $(id) <script>",
        "\\u0041 \\x41 \\101 \\N{DIGIT ONE}",
        "{}{{x}}",
        "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}",
        "-\u{1b}",
        "'\u{1b}'\\%!\"`$(id)",
        "\u{1b}\n",
        "\n\u{1b}",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    texts.push((1..=0x2ff).filter_map(char::from_u32).collect());
    texts.push(format!("{}\u{1b}'", "x'\\\"$`!".repeat(500)));
    texts
}

/// Runs a program with that input; `None` if the program is not installed.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<Output> {
    let mut child = match Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{program}: {error}"),
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Some(output)
}

fn succeeds(program: &str, arguments: &[&str], input: &str) -> Option<Vec<u8>> {
    let output = run(program, arguments, input)?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaint.is_empty(),
        "{program}: {complaint}\n{input}"
    );
    Some(output.stdout)
}

/// A script that prints every literal's value, each followed by a mark that no text contains.
fn round_trip(
    program: &str,
    arguments: &[&str],
    script: impl Fn(&str) -> String,
    literals: &[String],
) {
    let input: String = literals.iter().map(|literal| script(literal)).collect();
    let Some(out) = succeeds(program, arguments, &input) else {
        return;
    };
    let out = String::from_utf8(out).unwrap();
    let values: Vec<&str> = out.split("\u{f8f0}END").collect();
    assert_eq!(values.len(), literals.len() + 1);
    for ((value, text), literal) in values.iter().zip(nasty()).zip(literals) {
        let text = if program.ends_with("sh") {
            text.replace('\0', "\u{fffd}")
        } else {
            text
        };
        assert_eq!(*value, text, "{program}: {literal}");
    }
}

#[test]
fn a_shell_word_stands_for_the_text_and_nothing_else() {
    let words: Vec<String> = nasty().iter().map(|text| quote::shell_word(text)).collect();
    for shell in ["sh", "bash", "dash", "zsh"] {
        round_trip(
            shell,
            &["-s"],
            |word| format!("printf '%s\\357\\243\\260END' {word}\n"),
            &words,
        );
    }
}

#[test]
fn a_python_literal_stands_for_the_text_and_nothing_else() {
    let literals: Vec<String> = nasty()
        .iter()
        .map(|text| quote::python_string(text))
        .collect();
    let script = |literal: &str| {
        format!("import sys; sys.stdout.buffer.write({literal}.encode() + b'\\xef\\xa3\\xb0END')\n")
    };
    round_trip("python3", &["-"], script, &literals);
}

#[test]
fn a_javascript_literal_stands_for_the_text_and_nothing_else() {
    let literals: Vec<String> = nasty()
        .iter()
        .map(|text| quote::javascript_string(text))
        .collect();
    let script = |literal: &str| format!("process.stdout.write({literal} + '\\uf8f0END');\n");
    round_trip("node", &["-"], script, &literals);
}

#[test]
fn a_json_literal_stands_for_the_text_and_nothing_else() {
    for text in nasty() {
        let literal = quote::json_string(&text);
        assert_eq!(
            serde_json::from_str::<String>(&literal).unwrap(),
            text,
            "{literal}"
        );
    }
}

#[test]
fn no_literal_hides_a_character() {
    for text in nasty() {
        let single_line = [
            quote::python_string(&text),
            quote::javascript_string(&text),
            quote::json_string(&text),
        ];
        for literal in single_line {
            assert!(
                !literal.chars().any(crate::text::is_hidden_char),
                "{literal:?}"
            );
        }
        let word = quote::shell_word(&text);
        let hidden = word
            .chars()
            .find(|c| crate::text::is_hidden_char(*c) && *c != '\n');
        assert_eq!(hidden, None, "{word:?}");
        // A line feed is quoted only at the very end, where a substitution would drop it.
        let inner = word.trim_end_matches(['\n', '\'']);
        assert!(!inner.contains('\n'), "{word:?}");
    }
}

fn card(interfaces: Value, schemes: Value, security: Value, examples: &[&str]) -> AgentCard {
    let document = json!({
        "name": "A", "description": "d", "version": "1", "capabilities": {},
        "supportedInterfaces": interfaces, "securitySchemes": schemes, "securityRequirements": security,
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "d", "tags": [], "examples": examples}],
    });
    a2a_card::parse_card(&serde_json::to_vec(&document).unwrap())
        .unwrap()
        .card
}

fn interface(binding: &str, version: &str, tenant: &str) -> Value {
    let mut interface = json!({
        "url": "https://a.example/p'a\"t$(id)h/?q=[1-3]&x='",
        "protocolBinding": binding, "protocolVersion": version,
    });
    if !tenant.is_empty() {
        interface["tenant"] = tenant.into();
    }
    interface
}

/// Snippets for every protocol binding, kind of credential and special text, each with its card.
fn every_kind() -> Vec<Snippets> {
    let dialects = [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("JSONRPC", "0.3"),
        ("JSONRPC", "0.2"),
    ];
    let schemes = json!({
        "bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
        "basic": {"httpAuthSecurityScheme": {"scheme": "basic"}},
        "header": {"apiKeySecurityScheme": {"location": "header", "name": "X-K'e`y$!%"}},
        "cookie": {"apiKeySecurityScheme": {"location": "cookie", "name": "k'e`y$!"}},
        "query": {"apiKeySecurityScheme": {"location": "query", "name": "k'e\"y $(id)\u{202e}{}"}},
    });
    let mut all = Vec::new();
    for (binding, version) in dialects {
        for scheme in ["", "bearer", "basic", "header", "cookie", "query"] {
            let security = if scheme.is_empty() {
                json!([])
            } else {
                json!([{"schemes": {scheme: {}}}])
            };
            let schemes = if scheme.is_empty() {
                json!({})
            } else {
                schemes.clone()
            };
            let card = card(
                json!([interface(binding, version, "t'e\"n$(id)\u{1b}")]),
                schemes,
                security,
                &["'; $(id) <script> \" \\ \u{202e}!"],
            );
            all.push(build_snippets(&card, PLACE).unwrap());
        }
    }
    for text in nasty() {
        let card = card(
            json!([interface("JSONRPC", "1.0", "")]),
            json!({}),
            json!([]),
            &[&text],
        );
        all.push(build_snippets(&card, PLACE).unwrap());
    }
    all
}

fn codes(id: &str) -> Vec<String> {
    let of = |all: Snippets| {
        all.snippets
            .into_iter()
            .find(|snippet| snippet.id == id)
            .unwrap()
            .code
    };
    every_kind().into_iter().map(of).collect()
}

#[test]
fn shell_snippets_pass_what_they_should_and_run_nothing_else() {
    // Shell functions replace the programs: they print their arguments one by one.
    let show = "curl() { printf '%s\\0' \"$@\"; }\nrun() { printf '%s\\0' \"$@\"; }\n";
    let keys = "A2A_TOKEN=T'K A2A_API_KEY='K Y' A2A_AUTHORIZATION='Basic x'\n".replace("T'K", "TK");
    for (number, code) in codes("curl").iter().enumerate() {
        succeeds("sh", &["-n"], code).unwrap();
        let out = succeeds("sh", &["-s"], &format!("{}{keys}{code}\n", show)).unwrap();
        let out = String::from_utf8(out).unwrap();
        let arguments: Vec<&str> = out.split('\0').collect();
        assert_eq!(arguments[0], "-gsS");
        assert!(
            arguments[1].starts_with("https://a.example/p'a%22t$(id)h/"),
            "{number}: {}",
            arguments[1]
        );
        let at = arguments
            .iter()
            .position(|argument| *argument == "-d")
            .unwrap();
        let body: Value = serde_json::from_str(arguments[at + 1]).unwrap();
        let message = body
            .pointer("/params/message")
            .or_else(|| body.get("message"))
            .unwrap();
        assert!(message["parts"][0]["text"].is_string(), "{number}");
        assert_eq!(arguments[at + 2..], [""], "{number}: nothing follows");
    }
    for code in codes("send") {
        succeeds("sh", &["-n"], &code).unwrap();
        let called = code.replacen("a2a-registry", "run", 1);
        let out = succeeds("sh", &["-s"], &format!("{show}{keys}{called}\n")).unwrap();
        let out = String::from_utf8(out).unwrap();
        let arguments: Vec<&str> = out.trim_end_matches('\0').split('\0').collect();
        assert_eq!(
            arguments[..3],
            ["send", "--registry", PLACE.registry],
            "{code}"
        );
        assert_eq!(arguments[arguments.len() - 2], PLACE.agent, "{code}");
    }
}

#[test]
fn python_and_javascript_snippets_parse() {
    let separator = "\n#----#\n";
    let programs = codes("python").join(separator);
    let check = "import ast,sys\nfor p in sys.stdin.read().split('\\n#----#\\n'): ast.parse(p)";
    succeeds("python3", &["-c", check], &programs);
    // Creating a module from a text parses it, and runs and loads nothing.
    let check = "const vm = require('node:vm'), fs = require('node:fs');\n\
        for (const code of JSON.parse(fs.readFileSync(0, 'utf8'))) new vm.SourceTextModule(code);";
    let programs = serde_json::to_string(&codes("javascript")).unwrap();
    let arguments = ["--no-warnings", "--experimental-vm-modules", "-e", check];
    succeeds("node", &arguments, &programs);
}

fn argument(code: &str, option: &str) -> Vec<String> {
    let show = "curl() { printf '%s\\0' \"$@\"; }\nA2A_TOKEN=TK A2A_API_KEY='K Y' A2A_AUTHORIZATION='Basic x'\n";
    let out = succeeds("sh", &["-s"], &format!("{show}{code}\n")).unwrap();
    let out = String::from_utf8(out).unwrap();
    let arguments: Vec<&str> = out.split('\0').collect();
    let pairs = arguments.windows(2).filter(|pair| pair[0] == option);
    pairs.map(|pair| pair[1].to_owned()).collect()
}

fn curl(card: &AgentCard) -> String {
    build_snippets(card, PLACE).unwrap().snippets.remove(0).code
}

#[test]
fn each_dialect_is_spoken_in_its_own_shapes() {
    let body = |card: &AgentCard| -> Value {
        serde_json::from_str(&argument(&curl(card), "-d").remove(0)).unwrap()
    };
    let open = |interfaces: Value| card(interfaces, json!({}), json!([]), &["Hi"]);

    let v1 = open(json!([interface("JSONRPC", "1.0", "acme")]));
    let sent = body(&v1);
    assert_eq!(sent["method"], "SendMessage");
    assert_eq!(sent["params"]["tenant"], "acme");
    assert_eq!(sent["params"]["message"]["role"], "ROLE_USER");
    assert_eq!(sent["params"]["message"]["parts"], json!([{"text": "Hi"}]));
    assert!(argument(&curl(&v1), "-H").contains(&"A2A-Version: 1.0".to_owned()));

    let rest = open(json!([interface("HTTP+JSON", "1.0", "acme/x")]));
    assert_eq!(body(&rest)["message"]["parts"], json!([{"text": "Hi"}]));
    assert!(
        curl(&rest).contains("/acme%2Fx/message:send?q="),
        "{}",
        curl(&rest)
    );
    assert!(argument(&curl(&rest), "-H").contains(&"A2A-Version: 1.0".to_owned()));

    for version in ["0.3", "0.2"] {
        let old = open(json!([interface("JSONRPC", version, "")]));
        assert_eq!(body(&old)["method"], "message/send");
        assert_eq!(
            body(&old)["params"]["message"]["parts"],
            json!([{"kind": "text", "text": "Hi"}])
        );
        assert_eq!(
            argument(&curl(&old), "-H"),
            ["Content-Type: application/json"]
        );
    }
}

#[test]
fn the_sdk_is_of_the_cards_generation() {
    let installs = |version: &str| -> Vec<String> {
        let card = card(
            json!([interface("JSONRPC", version, "")]),
            json!({}),
            json!([]),
            &[],
        );
        build_snippets(&card, PLACE)
            .unwrap()
            .snippets
            .into_iter()
            .map(|snippet| snippet.install)
            .collect()
    };
    assert_eq!(
        installs("1.0")[1..3],
        [
            "pip install 'a2a-sdk>=1.3,<2' httpx",
            "npm install @a2a-js/sdk@^1.3.0"
        ]
    );
    assert_eq!(
        installs("0.3")[1..3],
        [
            "pip install 'a2a-sdk>=0.3.26,<0.4' httpx",
            "npm install @a2a-js/sdk@0.3.14"
        ]
    );
    assert_eq!(
        installs("0.2")[1..3],
        [
            "pip install 'a2a-sdk==0.2.16' httpx",
            "npm install @a2a-js/sdk@0.3.14"
        ]
    );
}

#[test]
fn credentials_go_where_the_card_asks() {
    let with = |scheme: Value| {
        card(
            json!([interface("JSONRPC", "1.0", "")]),
            json!({"s": scheme}),
            json!([{"schemes": {"s": {}}}]),
            &[],
        )
    };
    let headers = |scheme: Value| argument(&curl(&with(scheme)), "-H");
    let bearer = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}});
    assert!(headers(bearer).contains(&"Authorization: Bearer TK".to_owned()));
    let oauth = json!({"oauth2SecurityScheme": {"flows": {}}});
    assert!(headers(oauth).contains(&"Authorization: Bearer TK".to_owned()));
    let basic = json!({"httpAuthSecurityScheme": {"scheme": "basic"}});
    assert!(headers(basic).contains(&"Authorization: Basic x".to_owned()));
    let header = json!({"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}});
    assert!(headers(header).contains(&"X-Key: K Y".to_owned()));
    let cookie = json!({"apiKeySecurityScheme": {"location": "cookie", "name": "sid"}});
    assert!(headers(cookie).contains(&"Cookie: sid=K Y".to_owned()));
    let query = json!({"apiKeySecurityScheme": {"location": "query", "name": "a&b"}});
    let code = curl(&with(query));
    assert!(code.contains("&a%26b='\"$A2A_API_KEY\""), "{code}");
    // A name that is not a valid header name means that nothing is sent, and gives a note.
    let broken =
        with(json!({"apiKeySecurityScheme": {"location": "header", "name": "X\r\nEvil: 1"}}));
    let made = build_snippets(&broken, PLACE).unwrap();
    assert!(
        !made.snippets[0].code.contains("Evil") && made.notes.len() == 1,
        "{made:?}"
    );
}

#[test]
fn the_cards_order_decides_between_what_is_spoken() {
    let open = |interfaces: Value| card(interfaces, json!({}), json!([]), &[]);
    let chosen = choose_snippet_spec(&open(json!([
        interface("GRPC", "1.0", ""),
        interface("HTTP+JSON", "1.0", ""),
        interface("JSONRPC", "1.0", "")
    ])));
    assert_eq!(
        chosen.unwrap().route.protocol_binding,
        ProtocolBinding::V1Rest
    );
    // An agent with only gRPC is called only by this program's own client.
    let bare =
        json!([{"url": "desk.example:443", "protocolBinding": "GRPC", "protocolVersion": "0.3"}]);
    let made = build_snippets(&open(bare), PLACE).unwrap();
    assert_eq!(made.url, "https://desk.example/");
    assert_eq!(made.dialect, "A2A 0.3 over gRPC");
    let [only] = made.snippets.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!((only.id, made.notes.len()), ("send", 1));
    let nowhere = json!([{"url": "javascript:alert(1)", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    assert_eq!(
        choose_snippet_spec(&open(nowhere)).unwrap_err(),
        SnippetUnavailable::NoSupportedInterface
    );
    assert_eq!(
        choose_snippet_spec(&AgentCard {
            name: "A".into(),
            ..AgentCard::default()
        })
        .unwrap_err(),
        SnippetUnavailable::NoInterface
    );
    let long = format!("https://a.example/{}", "a".repeat(2_000));
    let long = json!([{"url": long, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    assert_eq!(
        choose_snippet_spec(&open(long)).unwrap_err(),
        SnippetUnavailable::NoSupportedInterface
    );
}

#[test]
fn an_alternative_that_can_be_met_is_taken_and_an_open_door_before_all() {
    let schemes = json!({"tls": {"mtlsSecurityScheme": {}}, "token": {"httpAuthSecurityScheme": {"scheme": "bearer"}}});
    let asked = |security: Value| {
        choose_snippet_spec(&card(
            json!([interface("JSONRPC", "1.0", "")]),
            schemes.clone(),
            security,
            &[],
        ))
        .unwrap()
    };
    let either = asked(json!([{"schemes": {"tls": {}}}, {"schemes": {"token": {}}}]));
    assert_eq!(
        (either.credentials, either.notes.len()),
        (vec![CredentialPlacement::Bearer], 0)
    );
    let both = asked(json!([{"schemes": {"tls": {}, "token": {}}}]));
    assert_eq!(both.notes.len(), 1, "{:?}", both.notes);
    let open = asked(json!([{"schemes": {"token": {}}}, {"schemes": {}}]));
    assert_eq!((open.credentials, open.notes.len()), (vec![], 0));
    let unread = json!({"name": "A", "url": "https://a.example", "auth_required": true});
    let unread = a2a_card::parse_card(unread.to_string().as_bytes()).unwrap();
    let unread = choose_snippet_spec(&unread.card).unwrap();
    assert_eq!(unread.credentials, []);
    assert!(
        unread.notes[0].contains("not understood"),
        "{:?}",
        unread.notes
    );
}

/// Every kind of credential that a card can require: a token, a key and a custom header.
fn everything() -> AvailableCredentials<'static> {
    AvailableCredentials::Provided(ProvidedCredentialKinds {
        bearer: true,
        api_key: true,
        headers: Vec::new(),
        ..ProvidedCredentialKinds::default()
    })
}

#[test]
fn a_snippet_calls_as_send_does() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../card/tests/data");
    let mut compared = 0;
    for family in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(family.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let Ok(parsed) = a2a_card::parse_card(&std::fs::read(&path).unwrap()) else {
                continue;
            };
            let card = parsed.card;
            let (Ok(shown), Ok(sent)) = (choose_snippet_spec(&card), callable_routes(&card)) else {
                assert!(callable_routes(&card).is_err(), "{path:?}");
                continue;
            };
            // Interfaces that only some snippets support come last in all of them.
            let web = sent.iter().find(|route| !route.protocol_binding.is_grpc());
            assert_eq!(&shown.route, web.unwrap_or(&sent[0]), "{path:?}");
            compared += 1;
            // If the card leaves a choice, or describes its requirement in an unknown form, a page has less to send.
            let asked = choose_credentials(&card, &AvailableCredentials::AnyDescribable);
            if let (CredentialChoice::Placements(named), CredentialChoice::Placements(given)) =
                (asked, choose_credentials(&card, &everything()))
            {
                assert_eq!(shown.credentials, named, "{path:?}");
                assert_eq!(named, given, "{path:?}");
            }
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn one_key_goes_to_every_place_the_card_names() {
    let schemes = json!({
        "a": {"apiKeySecurityScheme": {"location": "header", "name": "X-A"}},
        "b": {"apiKeySecurityScheme": {"location": "query", "name": "b"}},
        "c": {"apiKeySecurityScheme": {"location": "query", "name": "c d"}},
    });
    let asked = card(
        json!([interface("JSONRPC", "1.0", "")]),
        schemes,
        json!([{"schemes": {"a": {}, "b": {}, "c": {}}}]),
        &[],
    );
    let made = build_snippets(&asked, PLACE).unwrap();
    assert_eq!(made.variables.len(), 1, "{:?}", made.variables);
    let code = &made.snippets[0].code;
    assert!(argument(code, "-H").contains(&"X-A: K Y".to_owned()));
    assert!(
        code.contains("&b='\"$A2A_API_KEY\"'&c+d='\"$A2A_API_KEY\""),
        "{code}"
    );
    assert_eq!(made.snippets[3].code.matches("A2A_AGENT_KEY=").count(), 1);
}

#[test]
fn a_scheme_that_is_named_and_not_declared_is_what_its_name_says() {
    let asked = |name: &str| {
        let security = json!([{"schemes": {name: {}}}]);
        let interfaces = json!([interface("JSONRPC", "1.0", "")]);
        choose_snippet_spec(&card(interfaces, json!({}), security, &[])).unwrap()
    };
    let bearer = asked("bearer");
    assert_eq!(
        (bearer.credentials, bearer.notes.len()),
        (vec![CredentialPlacement::Bearer], 0)
    );
    let own = asked("dance");
    assert_eq!((own.credentials.len(), own.notes.len()), (0, 1));
}
