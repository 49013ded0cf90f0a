//! Agents and clients from `tests/interop`: built on third-party SDKs, and our own for dialects that no SDK speaks.

use std::path::Path;

use tokio::process::Command;

use super::program::Program;
use super::required_variable;

/// An SDK on which an agent and a client in `tests/interop` are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// No SDK: our own agent that speaks protocol 0.1 over JSON-RPC, card only at `agent.json`.
    OwnV01,
    /// No SDK: our own agent written after the a2a-protocol skill, over JSON-RPC and HTTP+JSON, card in `snake_case`.
    A2aProtocolSkill,
    /// No SDK: our own agent after `PromptKit`, over JSON-RPC, card only at `agent.json` and without an address.
    PromptKit,
    /// Python `a2a-sdk` 0.2.16: protocol 0.2 over JSON-RPC, card only at `agent.json`.
    Py02,
    /// Python `a2a-sdk` 0.3.26: protocol 0.3 over JSON-RPC, HTTP+JSON and gRPC, card at both paths.
    Py03,
    /// Python `a2a-sdk` 1.3.0: protocol 1.0 over JSON-RPC, HTTP+JSON and gRPC.
    Py1,
    /// Python `fasta2a` 2.1.1: protocol 1.0 over JSON-RPC.
    Fasta2a,
    /// JavaScript `@a2a-js/sdk` 0.3.14: protocol 0.3 over JSON-RPC, HTTP+JSON and gRPC.
    Node03,
    /// JavaScript `@a2a-js/sdk` 1.3.0: protocol 1.0 over JSON-RPC, HTTP+JSON and gRPC.
    Node,
}

impl Sdk {
    /// The SDKs whose clients read cards from the registry.
    pub const ALL: [Self; 4] = [Self::Py02, Self::Py03, Self::Py1, Self::Node];

    /// Prefix of the names of its files and of its agent's replies.
    pub fn file_prefix(self) -> &'static str {
        match self {
            Self::OwnV01 => "v01",
            Self::A2aProtocolSkill => "skill",
            Self::PromptKit => "promptkit",
            Self::Py02 => "py02",
            Self::Py03 => "py03",
            Self::Py1 => "py1",
            Self::Fasta2a => "fasta2a",
            Self::Node03 => "node03",
            Self::Node => "node",
        }
    }

    /// The id of its agent's only skill, which no other agent has.
    pub fn skill_id(self) -> &'static str {
        match self {
            Self::OwnV01 => "play-radio",
            Self::A2aProtocolSkill => "carry-letters",
            Self::PromptKit => "whisper-lines",
            Self::Py02 => "write-haiku",
            Self::Py03 => "forecast-tides",
            Self::Py1 => "sort-seashells",
            Self::Fasta2a => "unroll-ferns",
            Self::Node03 => "build-organs",
            Self::Node => "tune-pianos",
        }
    }

    /// The name on its agent's card.
    pub fn agent_name(self) -> &'static str {
        match self {
            Self::OwnV01 => "Attic radio",
            Self::A2aProtocolSkill => "Snail mail",
            Self::PromptKit => "Prompt prompter",
            Self::Py02 => "Haiku house",
            Self::Py03 => "Tide table",
            Self::Py1 => "Shell sorter",
            Self::Fasta2a => "Fast fern",
            Self::Node03 => "Organ builder",
            Self::Node => "Piano tuner",
        }
    }

    /// The file name under `/.well-known/` at which its agent serves the card and its client fetches it.
    pub fn card_file_name(self) -> &'static str {
        match self {
            Self::OwnV01 | Self::PromptKit | Self::Py02 => "agent.json",
            _ => "agent-card.json",
        }
    }

    /// Its agent's reply to `text`.
    pub fn reply_to(self, text: &str) -> String {
        format!("{} heard {text}", self.file_prefix())
    }

    /// Starts its agent on a free port and waits until it serves.
    ///
    /// # Panics
    ///
    /// If `tests/run` has not prepared the SDK, or the agent does not start.
    pub async fn start_agent(self) -> SdkAgent {
        self.start_agent_on(0).await
    }

    /// Starts its agent on a given port, for example that of an earlier process.
    ///
    /// # Panics
    ///
    /// Like [`Sdk::start_agent`].
    pub async fn start_agent_on(self, port: u16) -> SdkAgent {
        self.start_agent_with(&[&port.to_string()]).await
    }

    /// Starts its agent, which must be one in Python, on a free port, and allows CORS requests from every origin.
    ///
    /// # Panics
    ///
    /// Like [`Sdk::start_agent`].
    pub async fn start_cors_agent(self) -> SdkAgent {
        self.start_agent_with(&["0", "cors"]).await
    }

    async fn start_agent_with(self, arguments: &[&str]) -> SdkAgent {
        let mut command = self.script_command("agent");
        command.args(arguments);
        let program = Program::start(command);
        let base = program
            .wait_for_match(|line| line.strip_prefix("READY ").map(str::to_owned))
            .await;
        let grpc = match self {
            Self::OwnV01
            | Self::A2aProtocolSkill
            | Self::PromptKit
            | Self::Py02
            | Self::Fasta2a => None,
            Self::Py03 | Self::Py1 | Self::Node03 | Self::Node => {
                let address =
                    program.wait_for_match(|line| line.strip_prefix("GRPC ").map(str::to_owned));
                Some(address.await)
            }
        };
        SdkAgent {
            base_url: base,
            grpc_address: grpc,
            program,
        }
    }

    /// Runs its client, which loads the card below `base` (with or without a trailing slash) with the SDK's own
    /// resolver and sends `text` to the agent that the card names. Returns the name on the card and the agent's reply.
    ///
    /// # Panics
    ///
    /// If the client fails; the message has its output.
    pub async fn run_client(self, base: &str, text: &str) -> ClientResult {
        let mut command = self.script_command("client");
        command.arg(base).arg(text);
        let finished = Program::run(command).await;
        let said = |mark: &str| {
            let mut lines = finished.stdout.iter();
            lines.find_map(|line| line.strip_prefix(mark).map(str::to_owned))
        };
        match (finished.status.success(), said("CARD "), said("ANSWER ")) {
            (true, Some(agent_name), Some(answer)) => ClientResult {
                agent_name,
                reply: answer,
            },
            _ => panic!(
                "the {} client got no response: {finished:#?}",
                self.file_prefix()
            ),
        }
    }

    /// The command of this SDK's script for a role; the role is the end of the script's name.
    pub fn script_command(self, role: &str) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop");
        let mut command = match self {
            // Our own agents need only a server library.
            Self::OwnV01 | Self::A2aProtocolSkill | Self::PromptKit | Self::Py02 => {
                python_command("A2A_REGISTRY_TEST_PY02")
            }
            Self::Py03 => python_command("A2A_REGISTRY_TEST_PY03"),
            Self::Py1 | Self::Fasta2a => python_command("A2A_REGISTRY_TEST_PY1"),
            Self::Node03 | Self::Node => {
                let mut node = Command::new("node");
                node.env("NODE_PATH", required_variable("A2A_REGISTRY_TEST_NODE"));
                node
            }
        };
        let ending = match self {
            Self::Node03 | Self::Node => "cjs",
            _ => "py",
        };
        command.arg(folder.join(format!("{}_{role}.{ending}", self.file_prefix())));
        command
    }
}

/// A Python that writes no byte code beside the scripts and prints without delay.
fn python_command(interpreter: &str) -> Command {
    let mut command = Command::new(required_variable(interpreter));
    command.args(["-B", "-u", "-W", "ignore"]);
    command
}

/// The result of an SDK's client.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientResult {
    /// The name on the card that its resolver loaded.
    pub agent_name: String,
    /// The text of the agent's reply.
    pub reply: String,
}

/// A running agent; dropping it ends it.
pub struct SdkAgent {
    /// Its base URL, without a slash at the end.
    pub base_url: String,
    /// Host and port of its gRPC without TLS, if it speaks gRPC.
    pub grpc_address: Option<String>,
    /// Its process.
    pub program: Program,
}

impl SdkAgent {
    /// The URL of its card.
    pub fn card_url(&self, sdk: Sdk) -> String {
        format!("{}/.well-known/{}", self.base_url, sdk.card_file_name())
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        url::Url::parse(&self.base_url).unwrap().port().unwrap()
    }
}
