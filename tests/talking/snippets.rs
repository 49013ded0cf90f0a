//! The snippets on an agent's page, run as pasted for each protocol version and binding that has snippets.

use std::path::Path;

use futures::future::join_all;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::streams::{Binding, StreamingAgent};
use super::{CARD, card};
use crate::support::origin::{Origin, OriginReply};
use crate::support::page_snippet::page_snippet;
use crate::support::program::{Program, join_lines};
use crate::support::sdk::Sdk;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;
use crate::support::{registry_binary, required_variable};

/// The languages of the snippets that an agent's page has.
fn languages(streamer: &StreamingAgent) -> &'static [&'static str] {
    match (streamer.sdk, streamer.binding) {
        (_, Binding::Grpc) => &["send"],
        (Sdk::OwnV01, _) => &["curl", "send"],
        _ => &["curl", "python", "javascript", "send"],
    }
}

/// A card in the form of the SDK's generation that names one interface alone; JSON-RPC agents have their own.
fn only(streamer: &StreamingAgent) -> Option<Origin> {
    let (url, binding) = streamer.single_interface()?;
    let origin = Origin::start();
    let card = match streamer.sdk {
        Sdk::Py03 => {
            let mut old = card(&json!([]));
            old.as_object_mut().unwrap().remove("supportedInterfaces");
            old["protocolVersion"] = "0.3.0".into();
            old["url"] = url.into();
            old["preferredTransport"] = binding.into();
            old
        }
        _ => card(&json!([{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}])),
    };
    origin.set_reply(CARD, OriginReply::json(card.to_string()));
    Some(origin)
}

pub(super) async fn each_snippet_runs_as_pasted(streamers: &[StreamingAgent]) {
    let registry = RegistrySetup::new().approve_all().start().await;
    let cells = streamers.iter().filter(|streamer| {
        let sdk = streamer.sdk;
        matches!(sdk, Sdk::OwnV01 | Sdk::Py02 | Sdk::Py03 | Sdk::Py1)
    });
    join_all(cells.map(|streamer| run_all(streamer, &registry))).await;
}

async fn run_all(streamer: &StreamingAgent, registry: &ServingRegistry) {
    let name = streamer.name();
    let origin = only(streamer);
    let url = origin
        .as_ref()
        .map_or_else(|| streamer.card.clone(), |origin| origin.url(CARD));
    let agent = registry.publish(&url).await;
    let page = registry.api.get(&format!("/agents/{agent}/")).await.text();
    let (found, languages) = (page.matches("id=\"panel-").count(), languages(streamer));
    assert_eq!(found, languages.len(), "{name}: {page}");
    for language in languages {
        let code = page_snippet(&page, language);
        let folder = TempDir::new().unwrap();
        let finished = Program::run(command(streamer.sdk, language, &code, folder.path())).await;
        assert!(finished.status.success(), "{name}: {code}: {finished:#?}");
        let example = if origin.is_some() {
            "Hello! What can you do?"
        } else {
            "hello"
        };
        let answer = streamer.sdk.reply_to(example);
        let said = join_lines(&finished.stdout);
        assert!(said.contains(&answer), "{name}: {code}: {finished:#?}");
    }
}

/// Runs a snippet in an empty folder, with the SDK that its page says to install.
fn command(sdk: Sdk, language: &str, code: &str, folder: &Path) -> Command {
    let file = |name: &str| {
        let file = folder.join(name);
        std::fs::write(&file, code).unwrap();
        file
    };
    let mut command = match language {
        "python" => {
            let mut python = Command::new(required_variable(match sdk {
                Sdk::Py02 => "A2A_REGISTRY_TEST_PY02",
                Sdk::Py03 => "A2A_REGISTRY_TEST_PY03",
                _ => "A2A_REGISTRY_TEST_PY1",
            }));
            python.args(["-B", "-W", "ignore"]).arg(file("snippet.py"));
            python
        }
        "javascript" => {
            let modules = required_variable("A2A_REGISTRY_TEST_NODE");
            let installed = match sdk {
                Sdk::Py1 => "@a2a-js/sdk",
                _ => "a2a-js-sdk-0.3",
            };
            let scope = folder.join("node_modules/@a2a-js");
            std::fs::create_dir_all(&scope).unwrap();
            std::os::unix::fs::symlink(Path::new(&modules).join(installed), scope.join("sdk"))
                .unwrap();
            let mut node = Command::new("node");
            node.arg(file("snippet.mjs"));
            node
        }
        _ => {
            let mut shell = Command::new("sh");
            let program = registry_binary().parent().unwrap().to_owned();
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path = std::iter::once(program).chain(std::env::split_paths(&path));
            shell
                .arg(file("snippet.sh"))
                .env("PATH", std::env::join_paths(path).unwrap());
            shell
        }
    };
    command.current_dir(folder);
    command
}
