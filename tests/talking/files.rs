//! Files and data to agents on the SDKs and back.

use std::fs;

use futures::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::card_of;
use super::raw::{RawReply, RawServer};
use super::streams::{Binding, StreamingAgent};
use crate::support::program::{Program, assert_exit, registry_command};
use crate::support::sdk::Sdk;

pub(super) async fn files_and_data_come_back_as_they_were_sent(streamers: &[StreamingAgent]) {
    let folder = TempDir::new().unwrap();
    let (picture, text) = (
        folder.path().join("shell.png"),
        folder.path().join("shell.txt"),
    );
    fs::write(&picture, (0..=255).collect::<Vec<u8>>()).unwrap();
    fs::write(&text, "a shell").unwrap();
    let (picture, text, folder) = (&picture, &text, folder.path());
    join_all(
        streamers
            .iter()
            .enumerate()
            .map(|(nth, streamer)| async move {
                let StreamingAgent { sdk, card, .. } = streamer;
                // Over HTTP+JSON and gRPC the SDK of 0.3 takes the bytes of a file for UTF-8, and breaks the stream at others.
                let file = match (sdk, streamer.binding) {
                    (Sdk::Py03, Binding::HttpJson | Binding::Grpc) => text,
                    _ => picture,
                };
                // The protobuf forms of the JavaScript SDK of 0.3 have no names of files.
                let name = match (sdk, streamer.binding) {
                    (Sdk::Node03, Binding::HttpJson | Binding::Grpc) => "file-1".as_ref(),
                    _ => file.file_name().unwrap(),
                };
                let out = folder.join(nth.to_string());
                let mut send = registry_command([
                    "send",
                    "--direct",
                    card,
                    "give it back",
                    "--data",
                    r#"{"days": [1]}"#,
                ]);
                send.arg("--file").arg(file).arg("--out").arg(&out);
                let finished = Program::run(send).await;
                assert_eq!(
                    finished.status.code(),
                    Some(0),
                    "{}: {finished:#?}",
                    streamer.name()
                );
                let saved = fs::read(out.join(name)).unwrap();
                assert_eq!(saved, fs::read(file).unwrap(), "{}", streamer.name());
                let data = fs::read(out.join("data-2.json")).unwrap();
                let data: Value = serde_json::from_slice(&data).unwrap();
                assert_eq!(data["days"][0].as_f64(), Some(1.0), "{sdk:?}: {data}");
                assert_eq!(fs::read_dir(&out).unwrap().count(), 2, "{sdk:?}");
            }),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_agents_do_not_leave_the_folder() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("in/here");
    let absolute = folder.path().join("absolute.txt");
    let parts: Vec<Value> = [
        "../up.txt",
        "../../up.txt",
        absolute.to_str().unwrap(),
        "..",
        "a\u{1b}[2Jb",
        "up.txt",
    ]
    .iter()
    .map(|name| json!({"raw": "aGk=", "filename": name}))
    .chain([
        json!({"url": "http://127.0.0.1:1/x", "filename": "far.txt"}),
        json!({"raw": "!"}),
    ])
    .collect();
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}}});
    let server = RawServer::start(vec![RawReply::events(&[answer])]).await;
    let origin = card_of(&server.base, "JSONRPC", "1.0");
    let mut send = registry_command(["send", "--direct", &origin.url(super::CARD), "hi", "--out"]);
    send.arg(&out);
    let finished = Program::run(send).await;
    assert_eq!(finished.status.code(), Some(0), "{finished:#?}");
    let mut names: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "a__2Jb",
            "absolute.txt",
            "file-4",
            "up-2.txt",
            "up-3.txt",
            "up.txt"
        ]
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(folder.path().join("in")).unwrap().count(), 1);
    let said = finished.stderr.join("\n");
    assert!(
        said.contains("not fetched: far.txt") && said.contains("not saved: file-8"),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "{said:?}");

    // What cannot be read is said before anything is sent.
    for wrong in [["--data", "{"], ["--file", "/nowhere/at/all"]] {
        let mut send = registry_command(["send", "--direct", &origin.url(super::CARD)]);
        send.args(wrong);
        assert_exit(&Program::run(send).await, 2, wrong[1]);
    }
    assert_eq!(server.seen().len(), 1);
}
