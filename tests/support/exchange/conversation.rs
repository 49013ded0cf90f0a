//! Reads HTTP/1.1 in passing: the requests and responses of one connection, parsed from its bytes.

use std::collections::VecDeque;
use std::io::Read as _;

use super::{ObservedResponse, Request};

/// The end of a message's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// After this many bytes.
    Length(usize),
    /// At an empty chunk; this many bytes of the current chunk are missing, its line end included.
    Chunked(usize),
    /// At the end of the connection.
    Close,
}

/// One direction: received bytes that are not parsed yet, and the current body.
#[derive(Debug, Default)]
struct Direction {
    unread: Vec<u8>,
    under_way: Option<Framing>,
    body: Vec<u8>,
}

impl Direction {
    /// Parses more of the body; returns the whole body once it has ended.
    fn body(&mut self) -> Result<Option<Vec<u8>>, ()> {
        loop {
            match self.under_way {
                None => return Ok(None),
                Some(Framing::Close) => {
                    self.body.append(&mut self.unread);
                    return Ok(None);
                }
                Some(Framing::Length(left)) => {
                    let some = left.min(self.unread.len());
                    self.body.extend(self.unread.drain(..some));
                    if some < left {
                        self.under_way = Some(Framing::Length(left - some));
                        return Ok(None);
                    }
                    return Ok(Some(self.end()));
                }
                Some(Framing::Chunked(0)) => {
                    let status = httparse::parse_chunk_size(&self.unread).map_err(|_| ())?;
                    let httparse::Status::Complete((head, size)) = status else {
                        return Ok(None);
                    };
                    let size = usize::try_from(size).map_err(|_| ())?;
                    if size == 0 {
                        // The registry sends no trailers, so an empty line ends the body.
                        if self.unread.len() < head + 2 {
                            return Ok(None);
                        }
                        self.unread.drain(..head + 2);
                        return Ok(Some(self.end()));
                    }
                    self.unread.drain(..head);
                    self.under_way = Some(Framing::Chunked(size + 2));
                }
                Some(Framing::Chunked(left)) => {
                    let some = left.min(self.unread.len());
                    let ends = left.saturating_sub(2).min(some);
                    self.body.extend(self.unread.drain(..some).take(ends));
                    self.under_way = Some(Framing::Chunked(left - some));
                    if some < left {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn end(&mut self) -> Vec<u8> {
        self.under_way = None;
        std::mem::take(&mut self.body)
    }
}

/// One connection. From bytes that are not HTTP/1.1 on, it is no longer parsed.
#[derive(Debug, Default)]
pub struct Conversation {
    up: Direction,
    down: Direction,
    asked: VecDeque<Request>,
    answer: Option<ObservedResponse>,
    unreadable: bool,
}

const HEADERS: usize = 100;

fn headers(parsed: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    parsed
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), text(header.value)))
        .collect()
}

fn framing(headers: &[(String, String)]) -> Option<Framing> {
    let chunked = super::find(headers, "transfer-encoding")
        .is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"));
    if chunked {
        return Some(Framing::Chunked(0));
    }
    let length = super::find(headers, "content-length")?;
    length.trim().parse().ok().map(Framing::Length)
}

impl Conversation {
    /// Parses bytes sent to the registry.
    pub fn up(&mut self, bytes: &[u8]) {
        if self.unreadable {
            return;
        }
        self.up.unread.extend_from_slice(bytes);
        self.unreadable = self.requests().is_err();
    }

    fn requests(&mut self) -> Result<(), ()> {
        loop {
            if self.up.under_way.is_some() {
                let Some(body) = self.up.body()? else {
                    return Ok(());
                };
                // If the response came before the request was complete, the request is no longer in the queue.
                let request = self.asked.back_mut().ok_or(())?;
                request.body = Some(body);
            }
            let mut parsed = [httparse::EMPTY_HEADER; HEADERS];
            let mut head = httparse::Request::new(&mut parsed);
            let httparse::Status::Complete(length) = head.parse(&self.up.unread).map_err(|_| ())?
            else {
                return Ok(());
            };
            let request = Request {
                method: head.method.unwrap_or_default().to_owned(),
                target: head.path.unwrap_or_default().to_owned(),
                headers: headers(head.headers),
                body: None,
            };
            self.up.unread.drain(..length);
            self.up.under_way = Some(framing(&request.headers).unwrap_or(Framing::Length(0)));
            self.asked.push_back(request);
        }
    }

    /// Parses bytes sent by the registry; returns the exchanges that they complete.
    pub fn down(&mut self, bytes: &[u8]) -> Vec<(Request, ObservedResponse)> {
        if self.unreadable {
            return Vec::new();
        }
        self.down.unread.extend_from_slice(bytes);
        let mut complete = Vec::new();
        self.unreadable = self.answers(&mut complete).is_err();
        complete
    }

    fn answers(&mut self, complete: &mut Vec<(Request, ObservedResponse)>) -> Result<(), ()> {
        loop {
            if let Some(mut answer) = self.answer.take() {
                let Some(body) = self.down.body()? else {
                    self.answer = Some(answer);
                    return Ok(());
                };
                answer.body = Some(decoded(&answer, body)?);
                let request = self.asked.pop_front().ok_or(())?;
                let early = self.asked.is_empty() && self.up.under_way.is_some();
                complete.push((request, answer));
                if early {
                    return Err(());
                }
            }
            let mut parsed = [httparse::EMPTY_HEADER; HEADERS];
            let mut head = httparse::Response::new(&mut parsed);
            let httparse::Status::Complete(length) =
                head.parse(&self.down.unread).map_err(|_| ())?
            else {
                return Ok(());
            };
            let answer = ObservedResponse {
                status: head.code.unwrap_or_default(),
                headers: headers(head.headers),
                body: None,
            };
            self.down.unread.drain(..length);
            // A response without a parsed request, such as to bytes that are not HTTP.
            let request = self.asked.front().ok_or(())?;
            if (100..200).contains(&answer.status) {
                continue;
            }
            if answer.media_type().as_deref() == Some("text/event-stream") {
                complete.push((request.clone(), answer));
                return Err(());
            }
            let bodiless = request.method == "HEAD" || matches!(answer.status, 204 | 304);
            self.down.under_way = Some(if bodiless {
                Framing::Length(0)
            } else {
                framing(&answer.headers).unwrap_or(Framing::Close)
            });
            self.answer = Some(answer);
        }
    }

    /// Ends the connection, which completes a response whose body ends with it.
    pub fn closed(&mut self) -> Option<(Request, ObservedResponse)> {
        let mut answer = self.answer.take()?;
        if self.unreadable || self.down.under_way != Some(Framing::Close) {
            return None;
        }
        answer.body = decoded(&answer, self.down.end()).ok();
        Some((self.asked.pop_front()?, answer))
    }
}

/// The body without its content coding.
fn decoded(answer: &ObservedResponse, body: Vec<u8>) -> Result<Vec<u8>, ()> {
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
        let mut conversation = Conversation::default();
        for part in up.as_bytes().chunks(step) {
            conversation.up(part);
        }
        let mut exchanges = Vec::new();
        for part in down.as_bytes().chunks(step) {
            exchanges.extend(conversation.down(part));
        }
        exchanges.extend(conversation.closed());
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
    let mut conversation = Conversation::default();
    conversation.up(b"\x16\x03\x01 this is something else\r\n\r\n");
    assert!(conversation.unreadable);
    assert_eq!(conversation.down(b"HTTP/1.1 400 Bad Request\r\n\r\n"), []);
    assert_eq!(conversation.closed(), None);
}
