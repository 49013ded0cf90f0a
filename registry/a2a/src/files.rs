//! The files and data in an answer.

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use serde_json::Value;

use super::agent_response::{
    AgentResponse, BYTES_POINTERS, FILE_NAME_POINTERS, URL_POINTERS, first_text_at_pointers,
    part_media_type,
};
use super::route_selection::ProtocolBinding;

/// Maximum number of files and data values read from an answer, counted together.
pub const FILE_COUNT_LIMIT: usize = 100;

/// A file or a value in an answer. Name and media type are the agent's own, unchanged: a name may hold a path.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// Its name, if the agent gave one.
    pub name: Option<String>,
    /// Its media type, if the agent gave one.
    pub media_type: Option<String>,
    /// Its content, or its address.
    pub content: FileContent,
}

/// The content of a file in an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// The content as bytes.
    Bytes(Vec<u8>),
    /// A value of JSON.
    Data(Value),
    /// An address where the agent says that the file is. This client does not fetch it.
    Address(String),
    /// Text where base64 should be.
    Unreadable,
}

impl AgentResponse {
    /// The first [`FILE_COUNT_LIMIT`] files and data of the answer: in its artifacts, its message or its status.
    #[must_use]
    pub fn files(&self) -> Vec<AgentFile> {
        let artifacts = self.raw.get("artifacts").and_then(Value::as_array);
        let artifacts = artifacts.into_iter().flatten();
        let holders = artifacts
            .chain(self.raw.pointer("/status/message"))
            .chain(std::iter::once(&self.raw));
        let parts = holders.filter_map(|holder| {
            let list = ["parts", "content"]
                .iter()
                .find_map(|name| holder.get(*name));
            list?.as_array()
        });
        parts
            .flatten()
            .filter_map(|part| parse_file_part(part, self.protocol_binding))
            .take(FILE_COUNT_LIMIT)
            .collect()
    }
}

fn parse_file_part(part: &Value, protocol_binding: ProtocolBinding) -> Option<AgentFile> {
    let bytes = first_text_at_pointers(part, &BYTES_POINTERS);
    let address = first_text_at_pointers(part, &URL_POINTERS);
    let content = match (bytes, address) {
        (Some(text), _) => {
            decode_any_base64(text).map_or(FileContent::Unreadable, FileContent::Bytes)
        }
        (None, Some(address)) => FileContent::Address(address.to_owned()),
        (None, None) => {
            // 0.3's protobuf definition wraps a value once more.
            let data_pointer = match protocol_binding {
                ProtocolBinding::V0Rest | ProtocolBinding::V0Grpc => "/data/data",
                _ => "/data",
            };
            let data = part.pointer(data_pointer).filter(|data| !data.is_null())?;
            FileContent::Data(data.clone())
        }
    };
    Some(AgentFile {
        name: first_text_at_pointers(part, &FILE_NAME_POINTERS).map(str::to_owned),
        media_type: part_media_type(part).map(str::to_owned),
        content,
    })
}

/// Base64 in either alphabet, with padding or without it: protobuf's JSON form allows all four.
fn decode_any_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    [BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD]
        .iter()
        .find_map(|encoding| encoding.decode(text).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::route_selection::{AgentRoute, ProtocolBinding};

    fn files(raw: Value) -> Vec<AgentFile> {
        files_by(ProtocolBinding::V1JsonRpc, raw)
    }

    fn files_by(dialect: ProtocolBinding, raw: Value) -> Vec<AgentFile> {
        let route = AgentRoute {
            interface: a2a_card::Interface::default(),
            url: url::Url::parse("http://h/").expect("an address"),
            protocol_binding: dialect,
        };
        crate::agent_response::parse_send_result(raw, &route)
            .expect("an answer")
            .files()
    }

    #[test]
    fn files_are_read_in_the_forms_of_every_version() {
        let new = json!({"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"parts": [
            {"text": "no file"},
            {"raw": "+/8=", "filename": "a.bin", "mediaType": "image/png"},
            {"raw": "-_8"},
            {"url": "https://h/x", "filename": "../x"},
            {"data": {"days": 1}},
            {"raw": "no base64!"},
        ]}]}});
        let old = json!({"kind": "message", "parts": [
            {"kind": "text", "text": "no file"},
            {"kind": "file", "file": {"bytes": "+/8=", "name": "a.bin", "mimeType": "image/png"}},
            {"kind": "file", "file": {"bytes": "+/8"}},
            {"kind": "file", "file": {"uri": "https://h/x", "name": "../x"}},
            {"kind": "data", "data": {"days": 1}},
            {"kind": "file", "file": {"bytes": "no base64!"}},
        ]});
        let file = |name: Option<&str>, media_type: Option<&str>, content| AgentFile {
            name: name.map(str::to_owned),
            media_type: media_type.map(str::to_owned),
            content,
        };
        for raw in [new, old] {
            assert_eq!(
                files(raw),
                [
                    file(
                        Some("a.bin"),
                        Some("image/png"),
                        FileContent::Bytes(vec![0xfb, 0xff])
                    ),
                    file(None, None, FileContent::Bytes(vec![0xfb, 0xff])),
                    file(
                        Some("../x"),
                        None,
                        FileContent::Address("https://h/x".to_owned())
                    ),
                    file(None, None, FileContent::Data(json!({"days": 1}))),
                    file(None, None, FileContent::Unreadable),
                ]
            );
        }
        // The protobuf form of 0.3 calls parts `content`, and wraps data once more.
        let wrapped = json!({"message": {"content": [
            {"file": {"fileWithBytes": "+/8=", "name": "a.bin", "mimeType": "image/png"}},
            {"data": {"data": {"data": 1}}},
        ]}});
        assert_eq!(
            files_by(ProtocolBinding::V0Rest, wrapped),
            [
                file(
                    Some("a.bin"),
                    Some("image/png"),
                    FileContent::Bytes(vec![0xfb, 0xff])
                ),
                file(None, None, FileContent::Data(json!({"data": 1}))),
            ]
        );
        let many =
            json!({"kind": "message", "parts": vec![json!({"data": 1}); FILE_COUNT_LIMIT + 1]});
        assert_eq!(files(many).len(), FILE_COUNT_LIMIT);
    }
}
