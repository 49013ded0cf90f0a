//! Parsing of arguments: accepted, or rejected in one line.

use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn the_definition_holds_together() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_of_the_contract_is_understood() {
    for line in [
        "a2a-registry demo --listen 127.0.0.1:0",
        "a2a-registry serve --config f.toml --data-dir d --roles api,crawler --approve-all",
        "a2a-registry serve --print-config",
        "a2a-registry serve --local --listen 127.0.0.1:0",
        "a2a-registry login --scope read --scope curate --expires 7 --browser",
        "a2a-registry logout --registry https://a.example",
        "a2a-registry serve --print-config=commented",
        "a2a-registry register a.example http://b.example/card.json --approve",
        "a2a-registry register -f names.txt --no-wait --json",
        "a2a-registry domain show a.example",
        "a2a-registry domain show a.example --attempts --json",
        "a2a-registry domain list --limit 5",
        "a2a-registry domain vouch a.example --reason known",
        "a2a-registry domain vouch a.example:8443 --reason known --account acme",
        "a2a-registry domain vouch a.example:8443 --reason known --owner acme --expires 30",
        "a2a-registry domain vouch a.example:8443 --end-owner",
        "a2a-registry domain vouch a.example:8443 --reason known --endpoints",
        "a2a-registry domain vouch a.example:8443 --end-endpoints",
        "a2a-registry domain set a.example --endpoint-checks false",
        "a2a-registry domain verify a.example",
        "a2a-registry domain transfer a.example --account acme",
        "a2a-registry domain set a.example --contact mailto:ops@a.example",
        "a2a-registry domain set a.example --opt-out true",
        "a2a-registry domain key a.example k1 --jwk jwks.json",
        "a2a-registry domain key a.example k1 --withdraw",
        "a2a-registry domain recrawl a.example --full",
        "a2a-registry domain rm a.example",
        "a2a-registry --json search book flights --tag travel --tag air --trust L1 --facets tag,provider",
        "a2a-registry search",
        "a2a-registry show a.example --card",
        "a2a-registry show a.example --registry http://127.0.0.1:1 --token t",
        "a2a-registry send a.example hello --bearer t --header X-A:b --timeout 5",
        "a2a-registry send a.example --file a.pdf --file b.png --data {} --out d",
        "a2a-registry send a.example hi --binding HTTP+JSON --protocol-version 1.0 --tenant t --extension urn:x",
        "a2a-registry send a.example hello --task t-1 --context c-1 --idle-timeout 5",
        "a2a-registry task get a.example t-1 --direct --json",
        "a2a-registry task list a.example --state input-required --limit 5 --context c",
        "a2a-registry task cancel a.example t-1 --strict",
        "a2a-registry task subscribe a.example t-1 --timeout 3600",
        "a2a-registry send a.example hi --bearer @t --api-key @- --basic ann --password @p --cert c --key k",
        "a2a-registry credentials add a.example --direct --client-id c --client-secret @s --flow device --scope s",
        "a2a-registry credentials add a.example --browser --confirm-token-endpoint https://l.example --scheme o",
        "a2a-registry credentials list --json",
        "a2a-registry credentials remove https://a.example",
        "a2a-registry domain credential set a.example https://a.example/card.json --secret-file -",
        "a2a-registry domain credential set a.example 1f --kind client_credentials --secret-file s --token-url u",
        "a2a-registry domain credential show a.example --json",
        "a2a-registry domain credential remove a.example 1f",
        "a2a-registry lint -",
        "a2a-registry review list --state all",
        "a2a-registry review approve 01890a5d-ac96-774b-bcce-b302099a8057 --reason fine",
        "a2a-registry agent resume a.example --reason fine --hold key_changed",
        "a2a-registry agent retire a.example --reason gone",
        "a2a-registry agent derive-queries a.example --off",
        "a2a-registry export --json",
        "a2a-registry import export.jsonl --dry-run --no-wait",
        "a2a-registry search --all --fields name --json",
        "a2a-registry token create ci --account ci --role publisher --expires-in-days 30",
        "a2a-registry token reset-admin --data-dir d",
        "a2a-registry model install m --data-dir d",
        "a2a-registry model install o/m --trust-on-first-use --hub https://h.example --hub-token @t",
        "a2a-registry model status --config f.toml --json",
        "a2a-registry migrate --database postgres://127.0.0.1/r",
        "a2a-registry reindex",
        "a2a-registry backup b --with-secrets --data-dir d",
        "a2a-registry restore b --compare-with old.sqlite --yes --json",
        "a2a-registry openapi",
        "a2a-registry doctor",
        "a2a-registry completions bash",
        "a2a-registry man d",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
}

#[test]
fn misuse_is_one_line_that_names_what_is_wrong() {
    for (line, named) in [
        ("a2a-registry search --lmit 3", "--lmit"),
        ("a2a-registry search --limit 101", "101"),
        ("a2a-registry search --all --limit 5", "--limit"),
        ("a2a-registry import", "FILE"),
        ("a2a-registry agent suspend a.example", "--reason"),
        ("a2a-registry register", "NAME|URL"),
        ("a2a-registry send a.example hi --cert c", "--key"),
        ("a2a-registry send a.example hi --password @p", "--basic"),
        (
            "a2a-registry credentials add a --confirm-token-endpoint l",
            "https://HOST",
        ),
        (
            "a2a-registry domain credential set a.example 1f --secret hush",
            "--secret",
        ),
        (
            "a2a-registry domain credential set a.example 1f --kind cookie --secret-file s",
            "bearer, basic, header, client_credentials",
        ),
        ("a2a-registry lint", "FILE|URL|-"),
        ("a2a-registry model install", "FOLDER"),
        ("a2a-registry review approve x --reason y", "x"),
        (
            "a2a-registry token create n --role king",
            "reader, publisher, curator, auditor, admin",
        ),
        ("a2a-registry serve --roles cook", "cook"),
        (
            "a2a-registry show a.example --card --versions",
            "--versions",
        ),
    ] {
        let error = parse(line)
            .err()
            .map(|error| usage_error_line(&error.to_string()))
            .unwrap_or_default();
        assert!(error.contains(named), "{line}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.ends_with("see --help"), "{error}");
    }
}

/// Commands that use a data folder must not create a registry there. An end-to-end test
/// (`commands_on_a_data_folder_begin_no_registry`) checks this for each of these.
#[test]
fn the_commands_on_a_data_folder_are_known() {
    fn collect(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let mut arguments = command.get_arguments();
        if arguments.any(|argument| argument.get_id() == "data_dir") {
            found.push(path.trim_start().to_owned());
        }
        for below in command.get_subcommands() {
            collect(below, &format!("{path} {}", below.get_name()), found);
        }
    }
    let mut found = Vec::new();
    collect(&Cli::command(), "", &mut found);
    found.sort();
    let expected = [
        "backup",
        "demo",
        "doctor",
        "migrate",
        "model install",
        "model status",
        "reindex",
        "restore",
        "serve",
        "token reset-admin",
    ];
    assert_eq!(found, expected);
}

#[test]
fn every_visible_command_has_a_manual_page() {
    fn collect(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        found.push(format!("{path}.1"));
        let below = command.get_subcommands();
        for below in below.filter(|below| !below.is_hide_set()) {
            collect(below, &format!("{path}-{}", below.get_name()), found);
        }
    }
    let mut expected = Vec::new();
    collect(&Cli::command(), "a2a-registry", &mut expected);
    expected.sort();

    let folder = tempfile::tempdir().unwrap();
    let line = format!("a2a-registry man {}", folder.path().display());
    let Ok(Command::Man(arguments)) = parse(&line).map(|cli| cli.command) else {
        panic!("{line}");
    };
    maintenance::write_manual_pages(&arguments).unwrap();
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut written: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(written, expected);
    let page = std::fs::read_to_string(folder.path().join("a2a-registry-search.1")).unwrap();
    assert!(page.contains("A2A_REGISTRY_TOKEN"), "{page}");
}
