//! A gRPC server that returns what a test wrote down, one reply for each call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::Reason;
use h2::server::{SendResponse, handshake};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::codegen::http::{HeaderMap, Request, Response};

/// The reply to one call.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    end: End,
}

#[derive(Debug, Clone)]
enum End {
    /// Trailers with this status and message.
    Status(i32, String),
    /// The body ends without trailers.
    Plain,
    /// The stream is reset.
    Reset,
}

impl Reply {
    /// Messages of 1.0's protobuf package in the JSON form, and the status OK.
    pub fn messages(kind: &str, documents: &[Value]) -> Self {
        let frames = documents.iter().flat_map(|document| {
            let message = DynamicMessage::deserialize(descriptor(kind), document).unwrap();
            let bytes = message.encode_to_vec();
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            [&[0][..], &length, &bytes].concat()
        });
        Self::frames(frames.collect())
    }

    /// Frames as they are, and the status OK.
    pub fn frames(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            content_type: "application/grpc",
            body,
            end: End::Status(0, String::new()),
        }
    }

    /// A status other than OK.
    pub fn status(code: i32, message: &str) -> Self {
        Self {
            end: End::Status(code, message.to_owned()),
            ..Self::frames(Vec::new())
        }
    }

    /// A response that is not one of gRPC.
    pub fn http(status: u16, content_type: &'static str, body: &str) -> Self {
        Self {
            status,
            content_type,
            body: body.into(),
            end: End::Plain,
        }
    }

    /// The same, but the body ends too early, without a status.
    pub fn without_trailers(self) -> Self {
        let end = End::Plain;
        Self { end, ..self }
    }

    /// Nothing but the head, after which the stream is reset.
    pub fn reset() -> Self {
        Self {
            end: End::Reset,
            ..Self::frames(Vec::new())
        }
    }
}

/// A call that arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    body: Vec<u8>,
}

impl Seen {
    /// The message of the call, in the JSON form.
    pub fn document(&self, kind: &str) -> Value {
        let message = DynamicMessage::decode(descriptor(kind), &self.body[5..]).unwrap();
        serde_json::to_value(message).unwrap()
    }
}

/// The running server; dropping it ends it.
pub struct Server {
    pub base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Server {
    pub async fn start<const N: usize>(replies: [Reply; N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (seen, replies) = (Arc::clone(&kept), Arc::clone(&replies));
                tokio::spawn(async move {
                    // A client that speaks TLS does not get past the handshake.
                    let Ok(mut connection) = handshake(socket).await else {
                        return;
                    };
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        let reply = replies.lock().unwrap().pop_front();
                        tokio::spawn(serve(request, respond, Arc::clone(&seen), reply));
                    }
                });
            }
        });
        Self { base, seen, task }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    request: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    seen: Arc<Mutex<Vec<Seen>>>,
    reply: Option<Reply>,
) {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(data)) = incoming.data().await {
        let _ = incoming.flow_control().release_capacity(data.len());
        body.extend_from_slice(&data);
    }
    seen.lock().unwrap().push(Seen {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body,
    });
    let Some(reply) = reply else {
        return respond.send_reset(Reason::REFUSED_STREAM);
    };
    let response = Response::builder()
        .status(reply.status)
        .header("content-type", reply.content_type)
        .body(())
        .unwrap();
    let mut out = respond.send_response(response, false).unwrap();
    let _ = out.send_data(reply.body.into(), matches!(reply.end, End::Plain));
    match reply.end {
        End::Plain => {}
        End::Reset => out.send_reset(Reason::INTERNAL_ERROR),
        End::Status(code, message) => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", code.to_string().parse().unwrap());
            trailers.insert("grpc-message", message.parse().unwrap());
            let _ = out.send_trailers(trailers);
        }
    }
}

fn descriptor(kind: &str) -> MessageDescriptor {
    let pool = DescriptorPool::decode(&include_bytes!("../../proto/lf.a2a.v1.binpb")[..]).unwrap();
    let name = format!("lf.a2a.v1.{kind}");
    pool.get_message_by_name(&name).unwrap()
}
