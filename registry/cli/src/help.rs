//! `--help`: the commands by what people want to do, an example for each, and only the options that count for it.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};

use super::Cli;

/// A command and an example of it, without the program's name.
type CommandExample = (&'static str, &'static str);

/// Groups of commands, in the order in which people meet them. A test compares them with the commands that exist.
const GROUPS: [(&str, &[CommandExample]); 5] = [
    (
        "Use agents",
        &[
            ("search", "search \"book flights\" --tag travel"),
            ("show", "show travel.example.com --card"),
            ("send", "send travel.example.com \"Two seats to Tokyo\""),
            ("task", "task list travel.example.com"),
            ("check", "check travel.example.com"),
            ("credentials", "credentials add travel.example.com"),
            ("watch", "watch travel.example.com"),
            (
                "hook",
                "hook create trips https://ops.example.com/agents --search travel",
            ),
            ("mcp", "mcp --registry https://registry.example.com"),
            ("login", "login --registry https://registry.example.com"),
            ("logout", "logout --registry https://registry.example.com"),
            ("whoami", "whoami"),
        ],
    ),
    (
        "Publish agents",
        &[
            ("register", "register travel.example.com"),
            ("domain", "domain verify travel.example.com"),
            ("lint", "lint agent-card.json"),
            (
                "sign",
                "sign agent-card.json --key key.pem --jku https://travel.example.com/keys.json --jwks keys.json",
            ),
            ("waiting", "waiting"),
        ],
    ),
    (
        "Curate",
        &[
            ("review", "review list"),
            (
                "agent",
                "agent suspend travel.example.com --reason \"wrong prices\"",
            ),
            ("collection", "collection list"),
            ("policy", "policy show"),
            ("waiver", "waiver list"),
            ("events", "events --kind agent.approved"),
        ],
    ),
    (
        "Operate a registry",
        &[
            ("demo", "demo"),
            ("serve", "serve --local"),
            ("account", "account create ada --role publisher"),
            ("group", "group set travel-team ada grace"),
            ("token", "token create --account ada --role publisher"),
            ("session", "session list"),
            ("doctor", "doctor --config registry.toml"),
            ("backup", "backup /var/backups/registry"),
            ("restore", "restore /var/backups/registry"),
            ("export", "export > registry.jsonl"),
            ("import", "import registry.jsonl --dry-run"),
            ("migrate", "migrate --config registry.toml"),
            ("reindex", "reindex"),
            ("model", "model status"),
        ],
    ),
    (
        "Tools",
        &[
            ("openapi", "openapi > openapi.json"),
            (
                "completions",
                "completions bash > /etc/bash_completion.d/a2a-registry",
            ),
        ],
    ),
];

/// Commands that call no registry, with their subcommands.
const LOCAL_COMMANDS: [&str; 11] = [
    "backup",
    "completions",
    "demo",
    "lint",
    "man",
    "migrate",
    "model",
    "openapi",
    "restore",
    "serve",
    "sign",
];
/// Options for calls of a registry.
const CALL_OPTIONS: [&str; 3] = ["registry", "token", "registry_timeout"];

const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The complete help that these arguments ask for; `None` if they ask for none.
pub fn requested_help(arguments: &[OsString]) -> Option<clap::Error> {
    help_command().try_get_matches_from(arguments).err()
}

fn help_command() -> Command {
    let command = Cli::command();
    let listing = grouped_listing(&command);
    let mut command = command
        .help_template(TEMPLATE)
        .before_help(listing)
        .mut_subcommands(add_example);
    // Global options reach the subcommands when these are built.
    command.build();
    command
        .mut_subcommands(|below| hide_call_options_if(below, &LOCAL_COMMANDS))
        .mut_subcommand("token", |below| {
            below.mut_subcommands(|below| hide_call_options_if(below, &["reset-admin"]))
        })
}

fn hide_call_options_if(command: Command, names: &[&str]) -> Command {
    match names.contains(&command.get_name()) {
        true => hide_call_options(command),
        false => command,
    }
}

fn hide_call_options(command: Command) -> Command {
    command
        .mut_args(
            |argument| match CALL_OPTIONS.contains(&argument.get_id().as_str()) {
                true => argument.hide(true),
                false => argument,
            },
        )
        .mut_subcommands(hide_call_options)
}

fn add_example(command: Command) -> Command {
    let mut examples = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
    match examples.find(|(name, _)| *name == command.get_name()) {
        Some((_, example)) => command.after_help(format!("Example: a2a-registry {example}")),
        None => command,
    }
}

/// The commands by group, each with the first sentence about it, and an example of each group.
fn grouped_listing(command: &Command) -> String {
    let mut listing = String::new();
    for (title, commands) in GROUPS {
        listing.push_str(&format!("{title}:\n"));
        for (name, _) in commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            listing.push_str(&format!("  {name:<12} {about}\n"));
        }
        if let Some((_, example)) = commands.first() {
            listing.push_str(&format!("  Example: a2a-registry {example}\n"));
        }
        listing.push('\n');
    }
    listing
        .push_str("`a2a-registry COMMAND --help` shows the options of a command, with an example.");
    listing
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn help(line: &str) -> String {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        requested_help(&arguments).unwrap().to_string()
    }

    #[test]
    fn every_visible_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name))
            .collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let visible = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn every_example_is_understood() {
        for (name, example) in GROUPS.iter().flat_map(|(_, commands)| commands.iter()) {
            let example = example.split(" > ").next().unwrap();
            let words = example.split('"').enumerate().flat_map(|(place, part)| {
                let words: Vec<&str> = match place % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                };
                words
            });
            let line = std::iter::once("a2a-registry").chain(words);
            let parsed = Cli::command().try_get_matches_from(line);
            assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
            assert_eq!(example.split(' ').next().unwrap(), *name);
            let help = help(&format!("a2a-registry {name} --help"));
            assert!(help.contains("Example: a2a-registry "), "{help}");
        }
    }

    #[test]
    fn options_of_calls_are_shown_where_they_count() {
        for line in ["lint", "serve", "model install", "token reset-admin"] {
            let help = help(&format!("a2a-registry {line} --help"));
            assert!(!help.contains("--registry-timeout"), "{line}: {help}");
        }
        for line in ["search", "domain show", "token create", "reindex"] {
            let help = help(&format!("a2a-registry {line} --help"));
            assert!(help.contains("--registry-timeout"), "{line}: {help}");
        }
        let all = help("a2a-registry --help");
        for (title, _) in GROUPS {
            assert!(all.contains(title), "{all}");
        }
        assert!(
            all.contains("Exit codes:") && all.contains("--registry"),
            "{all}"
        );
    }
}
