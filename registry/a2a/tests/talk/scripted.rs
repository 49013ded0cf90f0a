//! A server that answers with what a test wrote down, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use serde_json::Value;

/// One answer.
#[derive(Debug, Clone)]
pub struct ScriptedAnswer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: web::Bytes,
}

impl ScriptedAnswer {
    pub fn json(document: &Value) -> Self {
        Self::new(200, "application/json", document.to_string())
    }

    pub fn new(status: u16, content_type: &str, body: impl Into<web::Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type", content_type.to_owned())],
            body: body.into(),
        }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What a request was.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path_and_query: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct ServerScript {
    answers: Mutex<VecDeque<ScriptedAnswer>>,
    seen: Mutex<Vec<ReceivedRequest>>,
}

/// The running server.
pub struct Scripted {
    pub base: String,
    script: Arc<ServerScript>,
    handle: ServerHandle,
}

impl Scripted {
    /// Starts a server that gives these answers in order, and 500 once they are used up.
    pub async fn start(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        let script = Arc::new(ServerScript {
            answers: Mutex::new(answers.into_iter().collect()),
            seen: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&script));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .default_service(web::to(answer))
        })
        .workers(1)
        .disable_signals()
        .bind("127.0.0.1:0")
        .unwrap();
        let base = format!("http://{}", server.addrs()[0]);
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Self {
            base,
            script,
            handle,
        }
    }

    /// What was asked, once the server has stopped.
    pub async fn stop(self) -> Vec<ReceivedRequest> {
        self.handle.stop(false).await;
        self.script.seen.lock().unwrap().clone()
    }
}

async fn answer(
    script: web::Data<ServerScript>,
    request: HttpRequest,
    body: web::Bytes,
) -> HttpResponse {
    script.seen.lock().unwrap().push(ReceivedRequest {
        method: request.method().to_string(),
        path_and_query: request.uri().to_string(),
        headers: request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let Some(answer) = script.answers.lock().unwrap().pop_front() else {
        return HttpResponse::InternalServerError().body("the script has no further answer");
    };
    let mut response = HttpResponse::build(StatusCode::from_u16(answer.status).unwrap());
    for (name, value) in answer.headers {
        response.insert_header((name, value));
    }
    response.body(answer.body)
}
