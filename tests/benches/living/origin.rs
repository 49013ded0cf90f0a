//! Static servers in processes of their own: the origin of all cards, which change on request, and a bare server.

use std::net::TcpListener;
use std::sync::RwLock;
use std::time::Duration;

use actix_web::http::header::{self, HeaderValue};
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use serde_json::{Value, json};

use super::cards::revised;
use super::child_process::{Child, limit_open_files, next_request, send_reply};
use crate::bare_server::BareServer;
use crate::generator::CardGenerator;

/// How long an idle connection stays open: longer than the crawler keeps it.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// The origin of all cards.
pub struct CardOrigin {
    child: Child,
    /// Its port on this machine, under every name.
    pub port: u16,
}

impl CardOrigin {
    /// Serves this number of cards, each under its number as its path.
    pub fn start(cards: usize, seed: u64) -> Self {
        let (child, first) = Child::start("origin", &json!({"cards": cards, "seed": seed}));
        let port = first["port"].as_u64().unwrap();
        Self {
            child,
            port: u16::try_from(port).unwrap(),
        }
    }

    /// Changes a card.
    pub fn change_card(&mut self, card: usize) {
        self.child.send_request(&json!({"change": card}));
    }
}

/// The cards, each with the number of its changes.
type RevisedCards = RwLock<Vec<(u32, Bytes)>>;

/// Runs the origin until the parent ends it.
pub fn run_card_origin(settings: &Value) {
    limit_open_files(None);
    let generator = CardGenerator::new(settings["seed"].as_u64().unwrap());
    let count = settings["cards"].as_u64().unwrap();
    let bodies = (0..count).map(|index| (0, Bytes::from(generator.card(index))));
    let cards = web::Data::new(RevisedCards::new(bodies.collect()));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let registry = cards.clone();
    std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            HttpServer::new(move || {
                App::new()
                    .app_data(registry.clone())
                    .route("/{index}", web::get().to(card))
            })
            .workers(1)
            .keep_alive(KEEP_ALIVE)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run()
            .await
        })
    });
    send_reply(&json!({"port": port}));
    while let Some(request) = next_request() {
        let index = request["change"].as_u64().unwrap();
        let mut cards = cards.write().unwrap();
        let one = &mut cards[usize::try_from(index).unwrap()];
        one.0 += 1;
        one.1 = revised(generator, index, one.0).into();
        send_reply(&json!({}));
    }
}

async fn card(
    request: HttpRequest,
    index: web::Path<usize>,
    cards: web::Data<RevisedCards>,
) -> HttpResponse {
    let known = cards.read().unwrap().get(*index).cloned();
    let Some((revision, bytes)) = known else {
        return HttpResponse::NotFound().finish();
    };
    let tag = HeaderValue::try_from(format!("\"{index}-{revision}\"")).unwrap();
    let mut answer = if request.headers().get(header::IF_NONE_MATCH) == Some(&tag) {
        HttpResponse::NotModified().finish()
    } else {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, "application/json"))
            .body(bytes)
    };
    answer.headers_mut().insert(header::ETAG, tag);
    answer
}

/// Runs a bare server of the bodies in a file until the parent ends it.
pub fn run_bare(settings: &Value) {
    let file = std::fs::read(settings["bodies"].as_str().unwrap()).unwrap();
    let bodies: Vec<String> = serde_json::from_slice(&file).unwrap();
    let bodies = bodies.into_iter().map(Bytes::from).collect();
    let bare = BareServer::start(bodies, None).unwrap();
    send_reply(&json!({"address": bare.address.to_string()}));
    while next_request().is_some() {}
}
