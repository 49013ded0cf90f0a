//! The manual as a registry serves it, and the commands and settings in its examples.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use a2a_registry_core::config::Config;
use reqwest::Method;

use crate::support::program::{Program, registry_command};
use crate::support::setup::RegistrySetup;

/// The values of an attribute in a page.
fn attribute_values<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    let values = page.split(start.as_str()).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

/// Every page, picture and anchor to which the manual links exists as it is served.
#[tokio::test]
async fn every_link_of_the_manual_leads_somewhere() {
    let registry = RegistrySetup::new().start_without_proxy().await;
    let mut anchors = BTreeMap::<String, BTreeSet<String>>::new();
    let mut links = BTreeSet::new();
    let mut waiting = vec!["/manual/".to_owned()];
    while let Some(path) = waiting.pop() {
        let answer = registry.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let is_page = answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/html");
        let text = answer.text().await.unwrap();
        let page = if is_page { text.as_str() } else { "" };
        let ids = attribute_values(page, "id");
        let ids: BTreeSet<String> = ids.into_iter().map(str::to_owned).collect();
        anchors.insert(path, ids);
        let targets = [
            attribute_values(page, "href"),
            attribute_values(page, "src"),
        ]
        .concat();
        for target in targets
            .into_iter()
            .filter(|target| target.starts_with("/manual/"))
        {
            let page = target.split('#').next().unwrap().to_owned();
            links.insert(target.to_owned());
            if !anchors.contains_key(&page) && !waiting.contains(&page) {
                waiting.push(page);
            }
        }
    }
    for link in links {
        let (page, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
        assert!(
            anchor.is_empty() || anchors[page].contains(anchor),
            "{link}"
        );
    }
    assert!(anchors.len() > 50, "{anchors:?}");
    registry.stop().await;
}

/// The blocks of code of this language in the manual, each with the path of its file.
fn code_blocks(language: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut folders = vec![folder];
    let mut blocks = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).unwrap();
                let fenced = text.split("```").skip(1).step_by(2);
                let wanted = fenced.filter_map(|block| {
                    let (kind, code) = block.split_once('\n')?;
                    (kind == language).then(|| (path.display().to_string(), code.to_owned()))
                });
                blocks.extend(wanted);
            }
        }
    }
    blocks
}

/// The words of a line of a shell up to its comment, with operators such as `|` as words of their own.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        let last = words.last_mut().unwrap();
        match (letter, quote) {
            ('#', None) if last.is_empty() => break,
            (_, Some(mark)) if letter == mark => quote = None,
            (_, Some(_)) => last.push(letter),
            ('"' | '\'', None) => quote = Some(letter),
            (' ', None) => words.push(String::new()),
            ('|' | '>' | '<' | ';' | '&', None) => {
                words.extend([letter.to_string(), String::new()])
            }
            _ => last.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The arguments of each call of the program in a block of shell commands.
fn program_calls(block: &str) -> Vec<Vec<String>> {
    let joined = block.replace("\\\n", " ");
    let mut calls = Vec::new();
    for line in joined.lines() {
        let words = shell_words(line);
        let commands = words.split(|word| ["|", ";", "&"].contains(&word.as_str()));
        for command in commands {
            let program = command.iter().rposition(|word| word == "a2a-registry");
            // A word before the program is a variable, or `sudo` with its options.
            let begins = program.filter(|at| {
                let before = &command[..*at];
                *at == 0 || before[0] == "sudo" || before.iter().all(|word| word.contains('='))
            });
            if let Some(at) = begins {
                let arguments = &command[at + 1..];
                let arguments = arguments.split(|word| word == ">" || word == "<").next();
                calls.push(arguments.unwrap_or_default().to_vec());
            }
        }
    }
    calls
}

#[test]
fn calls_are_found_in_blocks_of_shell_commands() {
    let block = "curl x | a2a-registry lint - > out.txt   # a2a-registry no\n\
                 sudo -u a2a-registry a2a-registry backup /b \\\n    --config \"a b.toml\"\n\
                 docker build -t a2a-registry dist\nA=1 a2a-registry whoami\n";
    assert_eq!(
        program_calls(block),
        [
            vec!["lint", "-"],
            vec!["backup", "/b", "--config", "a b.toml"],
            vec!["whoami"]
        ]
    );
}

/// Every command and option in the manual exists. The tests of each subject run them against a registry; calls of
/// other programs are not run, because they belong to the reader's system.
#[tokio::test]
async fn the_program_knows_every_command_of_the_manual() {
    let mut calls = 0;
    for (file, block) in code_blocks("sh") {
        for mut arguments in program_calls(&block) {
            let line = arguments.join(" ");
            // Help is printed when this is reached, so nothing is done, and what a reader fills in may be left open.
            arguments.push("--help".to_owned());
            let finished = Program::run(registry_command(&arguments)).await;
            let errors = finished.stderr.join("\n");
            for unknown in [
                "unexpected argument",
                "unrecognized subcommand",
                "invalid subcommand",
            ] {
                assert!(!errors.contains(unknown), "{file}: {line}: {errors}");
            }
            calls += 1;
        }
    }
    assert!(calls > 80, "{calls}");
}

/// Examples that begin with a section of the configuration can be loaded.
#[test]
fn settings_in_the_manual_are_known() {
    let mut examples = 0;
    for (file, block) in code_blocks("toml") {
        let mut lines = block.lines().map(str::trim);
        let begins = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        if begins.is_some_and(|line| line.starts_with('[') && !line.starts_with("[[")) {
            let config = toml::from_str::<Config>(&block);
            assert!(config.is_ok(), "{file}: {:?}\n{block}", config.err());
            examples += 1;
        }
    }
    assert!(examples > 5, "{examples}");
}
