//! A passive parser of HTTP/1.1: the requests and responses of one connection, from the bytes of both directions.

use std::collections::VecDeque;
use std::io::Read as _;

use super::{ObservedRequest, ObservedResponse};

/// The end of a message's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFraming {
    /// After this many bytes.
    Length(usize),
    /// At an empty chunk; this many bytes of the current chunk, with its line end, are still to come.
    Chunked(usize),
    /// At the end of the connection.
    Close,
}

/// One direction: received bytes that are not parsed yet, and the current body.
#[derive(Debug, Default)]
struct DirectionState {
    unparsed: Vec<u8>,
    body_framing: Option<BodyFraming>,
    body: Vec<u8>,
}

impl DirectionState {
    /// Parses more of the body; returns the whole body once it has ended.
    fn parse_body(&mut self) -> Result<Option<Vec<u8>>, ()> {
        loop {
            match self.body_framing {
                None => return Ok(None),
                Some(BodyFraming::Close) => {
                    self.body.append(&mut self.unparsed);
                    return Ok(None);
                }
                Some(BodyFraming::Length(left)) => {
                    let some = left.min(self.unparsed.len());
                    self.body.extend(self.unparsed.drain(..some));
                    if some < left {
                        self.body_framing = Some(BodyFraming::Length(left - some));
                        return Ok(None);
                    }
                    return Ok(Some(self.take_body()));
                }
                Some(BodyFraming::Chunked(0)) => {
                    let status = httparse::parse_chunk_size(&self.unparsed).map_err(|_| ())?;
                    let httparse::Status::Complete((head, size)) = status else {
                        return Ok(None);
                    };
                    let size = usize::try_from(size).map_err(|_| ())?;
                    if size == 0 {
                        // The registry sends no trailers, so an empty line ends the body.
                        if self.unparsed.len() < head + 2 {
                            return Ok(None);
                        }
                        self.unparsed.drain(..head + 2);
                        return Ok(Some(self.take_body()));
                    }
                    self.unparsed.drain(..head);
                    self.body_framing = Some(BodyFraming::Chunked(size + 2));
                }
                Some(BodyFraming::Chunked(left)) => {
                    let some = left.min(self.unparsed.len());
                    let ends = left.saturating_sub(2).min(some);
                    self.body.extend(self.unparsed.drain(..some).take(ends));
                    self.body_framing = Some(BodyFraming::Chunked(left - some));
                    if some < left {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn take_body(&mut self) -> Vec<u8> {
        self.body_framing = None;
        std::mem::take(&mut self.body)
    }
}

/// The parser of one connection. It stops at the first bytes that are not HTTP/1.1.
#[derive(Debug, Default)]
pub struct ConnectionParser {
    from_client: DirectionState,
    from_server: DirectionState,
    pending_requests: VecDeque<ObservedRequest>,
    pending_response: Option<ObservedResponse>,
    unreadable: bool,
}

const MAX_HEADERS: usize = 100;

fn header_pairs(parsed: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    parsed
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
        .collect()
}

fn body_framing(headers: &[(String, String)]) -> Option<BodyFraming> {
    let chunked = super::find_header(headers, "transfer-encoding")
        .is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"));
    if chunked {
        return Some(BodyFraming::Chunked(0));
    }
    let length = super::find_header(headers, "content-length")?;
    length.trim().parse().ok().map(BodyFraming::Length)
}

impl ConnectionParser {
    /// Parses bytes sent to the registry.
    pub fn parse_client_bytes(&mut self, bytes: &[u8]) {
        if self.unreadable {
            return;
        }
        self.from_client.unparsed.extend_from_slice(bytes);
        self.unreadable = self.parse_requests().is_err();
    }

    fn parse_requests(&mut self) -> Result<(), ()> {
        loop {
            if self.from_client.body_framing.is_some() {
                let Some(body) = self.from_client.parse_body()? else {
                    return Ok(());
                };
                // If the response came before the request was complete, the request is no longer in the queue.
                let request = self.pending_requests.back_mut().ok_or(())?;
                request.body = Some(body);
            }
            let mut parsed = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut head = httparse::Request::new(&mut parsed);
            let httparse::Status::Complete(length) =
                head.parse(&self.from_client.unparsed).map_err(|_| ())?
            else {
                return Ok(());
            };
            let request = ObservedRequest {
                method: head.method.unwrap_or_default().to_owned(),
                target: head.path.unwrap_or_default().to_owned(),
                headers: header_pairs(head.headers),
                body: None,
            };
            self.from_client.unparsed.drain(..length);
            self.from_client.body_framing =
                Some(body_framing(&request.headers).unwrap_or(BodyFraming::Length(0)));
            self.pending_requests.push_back(request);
        }
    }

    /// Parses bytes sent by the registry; returns the exchanges that they complete.
    pub fn parse_server_bytes(&mut self, bytes: &[u8]) -> Vec<(ObservedRequest, ObservedResponse)> {
        if self.unreadable {
            return Vec::new();
        }
        self.from_server.unparsed.extend_from_slice(bytes);
        let mut complete = Vec::new();
        self.unreadable = self.parse_responses(&mut complete).is_err();
        complete
    }

    fn parse_responses(
        &mut self,
        complete: &mut Vec<(ObservedRequest, ObservedResponse)>,
    ) -> Result<(), ()> {
        loop {
            if let Some(mut answer) = self.pending_response.take() {
                let Some(body) = self.from_server.parse_body()? else {
                    self.pending_response = Some(answer);
                    return Ok(());
                };
                answer.body = Some(decode_body(&answer, body)?);
                let request = self.pending_requests.pop_front().ok_or(())?;
                let early =
                    self.pending_requests.is_empty() && self.from_client.body_framing.is_some();
                complete.push((request, answer));
                if early {
                    return Err(());
                }
            }
            let mut parsed = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut head = httparse::Response::new(&mut parsed);
            let httparse::Status::Complete(length) =
                head.parse(&self.from_server.unparsed).map_err(|_| ())?
            else {
                return Ok(());
            };
            let answer = ObservedResponse {
                status: head.code.unwrap_or_default(),
                headers: header_pairs(head.headers),
                body: None,
            };
            self.from_server.unparsed.drain(..length);
            // A response without a parsed request, such as to bytes that are not HTTP.
            let request = self.pending_requests.front().ok_or(())?;
            if (100..200).contains(&answer.status) {
                continue;
            }
            if answer.media_type().as_deref() == Some("text/event-stream") {
                complete.push((request.clone(), answer));
                return Err(());
            }
            let bodiless = request.method == "HEAD" || matches!(answer.status, 204 | 304);
            self.from_server.body_framing = Some(if bodiless {
                BodyFraming::Length(0)
            } else {
                body_framing(&answer.headers).unwrap_or(BodyFraming::Close)
            });
            self.pending_response = Some(answer);
        }
    }

    /// Ends the connection, which completes a response whose body ends with it.
    pub fn finish(&mut self) -> Option<(ObservedRequest, ObservedResponse)> {
        let mut answer = self.pending_response.take()?;
        if self.unreadable || self.from_server.body_framing != Some(BodyFraming::Close) {
            return None;
        }
        answer.body = decode_body(&answer, self.from_server.take_body()).ok();
        Some((self.pending_requests.pop_front()?, answer))
    }
}

/// The body without its content coding.
fn decode_body(answer: &ObservedResponse, body: Vec<u8>) -> Result<Vec<u8>, ()> {
    let mut plain = Vec::new();
    let read = match answer.header("content-encoding") {
        _ if body.is_empty() => return Ok(body),
        None | Some("identity") => return Ok(body),
        Some("gzip") => flate2::read::GzDecoder::new(&*body).read_to_end(&mut plain),
        Some("br") => brotli::Decompressor::new(&*body, 4096).read_to_end(&mut plain),
        Some(_) => return Err(()),
    };
    read.map(|_| plain).map_err(|_| ())
}

#[test]
fn messages_are_read_however_their_bytes_arrive() {
    let up = "POST /v1/domains HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n\
              0\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\nHEAD /livez HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\n";
    let down = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                3\r\nok\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\nto the end";
    for step in [1, 2, 7, up.len().max(down.len())] {
        let mut conversation = ConnectionParser::default();
        for part in up.as_bytes().chunks(step) {
            conversation.parse_client_bytes(part);
        }
        let mut exchanges = Vec::new();
        for part in down.as_bytes().chunks(step) {
            exchanges.extend(conversation.parse_server_bytes(part));
        }
        exchanges.extend(conversation.finish());
        let received: Vec<_> = exchanges
            .iter()
            .map(|(request, answer)| {
                let text = |body: &Option<Vec<u8>>| {
                    String::from_utf8(body.clone().unwrap_or_default()).unwrap()
                };
                (
                    format!("{} {}", request.method, request.target),
                    text(&request.body),
                    answer.status,
                    text(&answer.body),
                )
            })
            .collect();
        let received: Vec<_> = received
            .iter()
            .map(|(line, body, status, text)| {
                (line.as_str(), body.as_str(), *status, text.as_str())
            })
            .collect();
        assert_eq!(
            received,
            [
                ("POST /v1/domains", "{\"a\":1}", 202, "{}"),
                ("GET /livez", "", 200, "ok\n"),
                ("HEAD /livez", "", 200, ""),
                ("GET /x", "", 404, "to the end"),
            ],
            "in steps of {step}"
        );
    }
}

#[test]
fn bytes_that_are_not_http_are_passed_on() {
    let mut conversation = ConnectionParser::default();
    conversation.parse_client_bytes(b"\x16\x03\x01 this is something else\r\n\r\n");
    assert!(conversation.unreadable);
    assert_eq!(
        conversation.parse_server_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        []
    );
    assert_eq!(conversation.finish(), None);
}
