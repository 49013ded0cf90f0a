//! Ctrl-C while an agent works.

use std::path::Path;

use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use super::streams::{Binding, StreamingAgent};
use crate::support::program::{
    FinishedProgram, Program, assert_exit, join_lines, registry_command,
};
use crate::support::registry_binary;
use crate::support::sdk::Sdk;

/// Python program that runs a command at a terminal. For each pair of arguments before `--` it waits until the first is
/// printed, and types the second; one that begins with `hidden ` is typed without that word, once the terminal shows
/// nothing of what is typed. It prints what the terminal shows, and ends with the command's exit code.
const AT_A_TERMINAL: &str = r#"
import os, pty, sys, termios, time
end = sys.argv.index("--")
script = sys.argv[1:end]
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[end + 1], sys.argv[end + 1:])
shown = b""
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    shown += more
    while script and script[0].encode() in shown:
        typed = script[1]
        while typed.startswith("hidden ") and termios.tcgetattr(terminal)[3] & termios.ECHO:
            time.sleep(0.01)
        os.write(terminal, typed.removeprefix("hidden ").encode())
        script = script[2:]
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

async fn at_a_terminal(script: &[&str], arguments: &[&str]) -> FinishedProgram {
    at_a_terminal_in(Path::new("/nowhere"), script, arguments).await
}

/// Runs the program at a terminal, with this folder for its configuration.
pub async fn at_a_terminal_in(
    configuration: &Path,
    script: &[&str],
    arguments: &[&str],
) -> FinishedProgram {
    let mut command = Command::new("python3");
    command.args(["-c", AT_A_TERMINAL]).args(script).arg("--");
    command.arg(registry_binary()).args(arguments);
    command.env("XDG_CONFIG_HOME", configuration);
    Program::run(command).await
}

pub(super) async fn text_is_printed_while_the_agent_works_and_an_interruption_leaves_the_task(
    streamers: &[StreamingAgent],
) {
    join_all(streamers.iter().map(|streamer| async move {
        let sent = registry_command(["send", "--direct", &streamer.card, "work for ever"]);
        let program = Program::start(sent);
        assert_eq!(
            program.wait_for_line("one").await,
            "one",
            "{}",
            streamer.name()
        );
        let id = i32::try_from(program.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
        let finished = program.wait_for_end().await;
        assert_eq!(finished.status.code(), Some(130), "{finished:#?}");
        let said = join_lines(&finished.stderr);
        assert!(said.contains("goes on at the agent"), "{finished:#?}");
    }))
    .await;
}

pub(super) async fn a_binding_is_chosen_among_those_of_the_card(streamers: &[StreamingAgent]) {
    let own_cards = streamers.iter().filter(|streamer| {
        streamer.binding == Binding::JsonRpc && Sdk::ALL.contains(&streamer.sdk)
    });
    join_all(own_cards.map(|streamer| async move {
        let (sdk, card) = (streamer.sdk, &streamer.card);
        for (binding, version) in [
            ("HTTP+JSON", "1.0"),
            ("jsonrpc", "1.0"),
            ("JSONRPC", "0.3"),
            ("GRPC", "1.0"),
        ] {
            let words = [
                "send",
                "--direct",
                card,
                "hi",
                "--binding",
                binding,
                "--protocol-version",
                version,
                "--plaintext",
            ];
            let finished = Program::run(registry_command(words)).await;
            let has = match sdk.file_prefix() {
                "py1" => version == "1.0" && binding != "GRPC",
                "node" => version == "1.0",
                "py03" => version == "0.3",
                _ => false,
            };
            let expected = if has { 0 } else { 2 };
            assert_eq!(
                finished.status.code(),
                Some(expected),
                "{sdk:?} {binding}: {finished:#?}"
            );
            if !has {
                assert!(
                    join_lines(&finished.stderr).contains("the card has JSONRPC"),
                    "{finished:#?}"
                );
            }
        }
        if sdk == Sdk::Node {
            // Its card names a bare host and port, which means TLS unless the user says otherwise.
            let words = ["send", "--direct", card, "hi", "--binding", "GRPC"];
            let finished = Program::run(registry_command(words)).await;
            assert_exit(&finished, 2, "no connection to https://127.0.0.1");
        }
    }))
    .await;
}

pub(super) async fn at_a_terminal_an_interruption_asks_before_it_cancels(
    streamers: &[StreamingAgent],
) {
    join_all(streamers.iter().map(|streamer| async move {
        let StreamingAgent { sdk, card, .. } = streamer;
        let send = ["send", "--direct", card, "work for ever"];
        let no = at_a_terminal(&["one\r\n", "\x03", "[y/N] ", "n\n"], &send).await;
        assert_eq!(no.status.code(), Some(130), "{sdk:?}: {no:#?}");
        assert!(
            join_lines(&no.stdout).contains("goes on at the agent"),
            "{no:#?}"
        );

        let yes = at_a_terminal(&["one\r\n", "\x03", "[y/N] ", "y\n"], &send).await;
        assert_eq!(yes.status.code(), Some(1), "{sdk:?}: {yes:#?}");
        let says = match sdk {
            Sdk::Fasta2a => "was asked to cancel task",
            _ => "is canceled",
        };
        assert!(join_lines(&yes.stdout).contains(says), "{sdk:?}: {yes:#?}");

        let twice = at_a_terminal(&["one\r\n", "\x03", "[y/N] ", "\x03"], &send).await;
        assert_eq!(twice.status.code(), Some(130), "{sdk:?}: {twice:#?}");
    }))
    .await;
}
