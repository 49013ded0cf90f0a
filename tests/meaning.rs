//! Semantic search in the whole registry, with a scripted encoder whose vectors are defined here. Encoders of real
//! models have tests of their own.

mod languages;
mod pages;
mod program;
mod progress;
mod replicas;

use std::sync::{Arc, Mutex};

use a2a_registry_api::search_query::SearchQuery;
use a2a_registry_api::{Act, AgentList};
use a2a_registry_core::agents::lifecycle_actions::agent_suspend;
use a2a_registry_core::embeddings::embedding_progress;
use a2a_registry_core::embeddings::model_indexer::{
    EmbeddingStepResult, ModelIndexer, open_model_indexer, purge_unused_models, run_embedding_step,
};
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_embed::{EmbedError, Embedder, ModelIdentity, TextKind};
use a2a_registry_store::vectors;
use async_trait::async_trait;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::in_process_registry::{InProcessRegistry, OriginResponse, card_bytes};

/// Words of three topics; a text without any of them has another meaning.
const TOPICS: [&[&str]; 3] = [
    &["currency", "exchange", "money", "cash", "abroad"],
    &["flight", "flights", "journey", "plane", "travel"],
    &["poem", "poems", "verse", "rhyme"],
];

/// Behaviour of the scripted encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncoderBehaviour {
    Working,
    Busy,
    Away,
    /// Takes every text and never answers.
    Silent,
    /// Refuses texts that contain "unspeakable".
    RefusesSome,
    /// Refuses every text.
    RefusesAll,
}

/// An encoder that knows [`TOPICS`], and records the texts it gets.
#[derive(Debug)]
struct ScriptedEncoder {
    model: ModelIdentity,
    /// Rotation of the topics' dimensions, so that the vectors of two models differ.
    turn: usize,
    behaviour: Mutex<EncoderBehaviour>,
    asked: Mutex<Vec<(String, TextKind)>>,
}

impl ScriptedEncoder {
    fn new(id: &str, turn: usize) -> Arc<Self> {
        let model = ModelIdentity {
            id: id.into(),
            name: format!("the {id} model"),
            dimensions: 8,
        };
        Arc::new(Self {
            model,
            turn,
            behaviour: Mutex::new(EncoderBehaviour::Working),
            asked: Mutex::default(),
        })
    }

    fn behave(&self, behaviour: EncoderBehaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    /// The texts of one kind since the last call.
    fn take_texts(&self, kind: TextKind) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap();
        let (of_kind, others) = asked.drain(..).partition(|(_, other)| *other == kind);
        *asked = others;
        of_kind
            .into_iter()
            .map(|(text, _): (String, _)| text)
            .collect()
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let text = text.to_lowercase();
        let words: Vec<&str> = text
            .split(|letter: char| !letter.is_alphanumeric())
            .collect();
        let mut vector = vec![0.0; self.model.dimensions];
        for (topic, known) in TOPICS.iter().enumerate() {
            let count = words.iter().filter(|word| known.contains(word)).count();
            vector[(topic + self.turn) % self.model.dimensions] = count as f32;
        }
        if vector.iter().all(|value| *value == 0.0) {
            vector[self.model.dimensions - 1] = 1.0;
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter().map(|value| value / length).collect()
    }
}

#[async_trait]
impl Embedder for ScriptedEncoder {
    fn model_identity(&self) -> &ModelIdentity {
        &self.model
    }

    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        let behaviour = *self.behaviour.lock().unwrap();
        match behaviour {
            EncoderBehaviour::RefusesSome
                if !texts.iter().any(|text| text.contains("unspeakable")) => {}
            EncoderBehaviour::RefusesSome | EncoderBehaviour::RefusesAll => {
                return Err(EmbedError::Failed("it choked".into()));
            }
            EncoderBehaviour::Working => {}
            EncoderBehaviour::Busy => return Err(EmbedError::Busy),
            EncoderBehaviour::Away => {
                return Err(EmbedError::Unavailable("it was unplugged".into()));
            }
            EncoderBehaviour::Silent => std::future::pending().await,
        }
        let mut asked = self.asked.lock().unwrap();
        asked.extend(texts.iter().map(|text| (text.clone(), kind)));
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// A registry whose searches wait for the encoder for as long as a test runs.
async fn patient(url: &str) -> InProcessRegistry {
    InProcessRegistry::with_config(url, |config| config.search.embed_timeout = 600_000).await
}

async fn open(registry: &InProcessRegistry, encoder: &Arc<ScriptedEncoder>) -> ModelIndexer {
    let encoder: Arc<dyn Embedder> = Arc::clone(encoder) as _;
    open_model_indexer(&registry.app, encoder).await.unwrap()
}

/// Lets a model embed every agent.
async fn finish(registry: &InProcessRegistry, embedding: &mut ModelIndexer) {
    while run_embedding_step(&registry.app, embedding).await.unwrap() != EmbeddingStepResult::Idle {
    }
}

async fn search_with_mode(registry: &InProcessRegistry, q: &str, mode: Option<&str>) -> AgentList {
    let query = SearchQuery {
        q: Some(q.into()),
        mode: mode.map(str::to_owned),
        ..SearchQuery::default()
    };
    registry.search_all(&Caller::default(), &query).await
}

fn hit_ids(list: &AgentList) -> Vec<Uuid> {
    list.agents.iter().map(|hit| hit.summary.id).collect()
}

/// The hits that are not weak; the weak ones come after them.
fn good(list: &AgentList) -> Vec<Uuid> {
    let weak = list.agents.iter().position(|hit| hit.matched.weak);
    let good = weak.unwrap_or(list.agents.len());
    assert!(list.agents[good..].iter().all(|hit| hit.matched.weak));
    hit_ids(list)[..good].to_vec()
}

/// Three approved agents of three topics; their ids.
async fn three(registry: &InProcessRegistry) -> [Uuid; 3] {
    let bank = registry
        .register_approved_card(
            "bank.agents-test.com",
            &card_bytes("Bureau", "Currency exchange"),
        )
        .await;
    let travel = registry
        .register_approved_card(
            "travel.agents-test.com",
            &card_bytes("Wings", "Books flights"),
        )
        .await;
    let poet = registry
        .register_approved_card(
            "poet.agents-test.com",
            &card_bytes("Bard", "Writes poems on request"),
        )
        .await;
    registry.catch_up().await;
    [bank.id, travel.id, poet.id]
}

const QUESTION: &str = "somebody who brings my cash along when I go abroad";

both_databases!(
    semantic_search_finds_agents_without_a_shared_word,
    a_changed_agent_is_found_by_its_new_text,
    a_hidden_agent_is_not_found_by_semantic_search,
    a_restart_embeds_nothing_again,
    vectors_of_other_texts_serve_until_all_are_made_anew,
    a_question_that_nothing_fits_says_so,
    a_misspelled_question_is_encoded_as_it_was_meant,
    a_silent_encoder_turns_a_search_into_full_text,
    unreadable_vectors_turn_a_search_into_full_text,
    a_failed_embedding_step_is_retried,
    one_refused_text_does_not_stop_the_others,
    pages_do_not_mix_scores,
    a_changed_model_takes_over_when_it_is_ready,
    a_model_is_calibrated_from_the_agents
);

/// A query without a word of a card finds it in semantic mode, and finds nothing in full-text mode.
async fn semantic_search_finds_agents_without_a_shared_word(url: &str) {
    let registry = patient(url).await;
    let [bank, ..] = three(&registry).await;
    let before = search_with_mode(&registry, QUESTION, None).await;
    assert_eq!(
        (before.mode.as_str(), hit_ids(&before)),
        ("lexical", vec![])
    );
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    // Until every agent is embedded nothing changes.
    let none = search_with_mode(&registry, QUESTION, Some("semantic")).await;
    assert_eq!((none.mode.as_str(), hit_ids(&none)), ("lexical", vec![]));
    finish(&registry, &mut embedding).await;
    for mode in [None, Some("hybrid"), Some("semantic")] {
        let found = search_with_mode(&registry, QUESTION, mode).await;
        assert_eq!(
            (found.mode.as_str(), good(&found)),
            (mode.unwrap_or("hybrid"), vec![bank])
        );
        // Of so few agents none is cut off.
        assert_eq!(found.total, 3);
    }
    let lexical = search_with_mode(&registry, QUESTION, Some("lexical")).await;
    assert_eq!(
        (lexical.mode.as_str(), hit_ids(&lexical)),
        ("lexical", vec![])
    );
    // A query is embedded once, for all modes.
    assert_eq!(encoder.take_texts(TextKind::Query), [QUESTION]);
    let bad = SearchQuery {
        q: Some("x".into()),
        mode: Some("magic".into()),
        ..SearchQuery::default()
    };
    assert!(
        search_agents(&registry.app, &Caller::default(), &bad)
            .await
            .is_err()
    );
    let progress = embedding_progress(&registry.app);
    assert_eq!(
        (progress.len(), progress[0].agents, progress[0].serving),
        (1, 3, true)
    );
}

/// New, changed and removed agents are found in their current state; an unchanged agent is not embedded again.
async fn a_changed_agent_is_found_by_its_new_text(url: &str) {
    let registry = patient(url).await;
    let [bank, travel, poet] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    encoder.take_texts(TextKind::Card);

    let late = registry
        .register_approved_card(
            "late.agents-test.com",
            &card_bytes("Mint", "Money for travellers"),
        )
        .await;
    registry
        .crawl_domain(
            "travel.agents-test.com",
            OriginResponse::Card(card_bytes("Wings", "Recites verse and rhyme")),
        )
        .await;
    registry.approve_open_review(travel).await;
    registry.catch_up().await;
    finish(&registry, &mut embedding).await;
    let made = encoder.take_texts(TextKind::Card);
    let of = |word: &str| made.iter().filter(|text| text.contains(word)).count();
    assert_eq!(
        (
            of("Money for travellers"),
            of("Recites verse"),
            of("Currency"),
            of("poems")
        ),
        (2, 2, 0, 0),
        "whole and by its description: {made:?}"
    );
    let mut rich = good(&search_with_mode(&registry, QUESTION, None).await);
    rich.sort_unstable();
    let mut expected = vec![bank, late.id];
    expected.sort_unstable();
    assert_eq!(rich, expected);
    let poets = good(
        &search_with_mode(
            &registry,
            "say something nice to my mother in a rhyme",
            Some("semantic"),
        )
        .await,
    );
    assert!(
        poets.contains(&travel) && poets.contains(&poet),
        "{poets:?}"
    );

    let act = Act {
        reason: "not now".into(),
        hold: None,
    };
    agent_suspend(&registry.app, &registry.admin, &bank.to_string(), &act)
        .await
        .unwrap();
    registry.catch_up().await;
    finish(&registry, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&registry, QUESTION, None).await),
        [late.id]
    );
    let kept = vectors::vectorized_agent_count(&registry.store, "first")
        .await
        .unwrap();
    assert_eq!(kept, 4);
}

/// An agent that the caller may not see is not found in semantic mode either, and no part of a response depends on it.
async fn a_hidden_agent_is_not_found_by_semantic_search(url: &str) {
    let registry = patient(url).await;
    let waiting = registry
        .register_with_card(
            "bank.agents-test.com",
            &card_bytes("Bureau", "Currency exchange"),
        )
        .await;
    registry.catch_up().await;
    let mut embedding = open(&registry, &ScriptedEncoder::new("first", 0)).await;
    finish(&registry, &mut embedding).await;
    let nothing = search_with_mode(&registry, QUESTION, Some("semantic")).await;
    assert_eq!((nothing.mode.as_str(), nothing.total), ("semantic", 0));
    let query = SearchQuery {
        q: Some(QUESTION.into()),
        lifecycle: vec!["pending".into()],
        ..SearchQuery::default()
    };
    assert_eq!(
        hit_ids(&registry.search_all(&registry.admin, &query).await),
        [waiting.id]
    );
    assert_eq!(
        registry.search_all(&Caller::default(), &query).await.total,
        0
    );
}

/// Vectors are stored: a new process embeds no text again and gives the same results, and so does one whose first pass
/// was interrupted.
async fn a_restart_embeds_nothing_again(url: &str) {
    let registry = patient(url).await;
    three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    assert!(matches!(
        run_embedding_step(&registry.app, &mut embedding)
            .await
            .unwrap(),
        EmbeddingStepResult::Progress(3)
    ));
    assert!(!embedding.is_complete());
    drop(embedding);
    assert_eq!(
        encoder.take_texts(TextKind::Card).len(),
        9,
        "two texts per card and one per skill"
    );

    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    let before = search_with_mode(&registry, QUESTION, None).await;
    drop(embedding);
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    let embedding = open(&registry, &encoder).await;
    assert!(embedding.is_complete());
    assert_eq!(
        hit_ids(&search_with_mode(&registry, QUESTION, None).await),
        hit_ids(&before)
    );
    assert_eq!(encoder.take_texts(TextKind::Card), [""; 0]);
}

/// After an upgrade that encodes other texts of an agent, the stored vectors are searched until those of the new texts are
/// there for all, and then they are gone.
async fn vectors_of_other_texts_serve_until_all_are_made_anew(url: &str) {
    let registry = patient(url).await;
    let [bank, ..] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    finish(&registry, &mut open(&registry, &encoder).await).await;
    let mut rows = vectors::vectors_page(&registry.store, "first", None)
        .await
        .unwrap();
    let current: Vec<String> = rows.iter().map(|row| row.text_digest.clone()).collect();
    for row in &mut rows {
        row.text_digest = "0".repeat(64);
    }
    let write = registry.store.begin_write().await.unwrap();
    write.upsert_vectors(rows).await.unwrap();
    write.commit().await.unwrap();
    encoder.take_texts(TextKind::Card);

    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    let mut embedding = open(&registry, &encoder).await;
    assert!(!embedding.is_complete());
    let found = search_with_mode(&registry, QUESTION, None).await;
    assert_eq!((found.mode.as_str(), good(&found)), ("hybrid", vec![bank]));
    finish(&registry, &mut embedding).await;
    assert!(embedding.is_complete());
    assert_eq!(encoder.take_texts(TextKind::Card).len(), 9);
    let rows = vectors::vectors_page(&registry.store, "first", None).await;
    let digests: Vec<String> = rows
        .unwrap()
        .into_iter()
        .map(|row| row.text_digest)
        .collect();
    assert_eq!(digests, current);
    assert!(open(&registry, &encoder).await.is_complete());
    assert_eq!(encoder.take_texts(TextKind::Card), [""; 0]);
}

/// Where no agent fits a question, a hint says so, and what is somewhat near is listed as weak.
async fn a_question_that_nothing_fits_says_so(url: &str) {
    let registry = patient(url).await;
    for number in 0..3 {
        let domain = format!("keeper{number}.agents-test.com");
        let about = card_bytes("Keeper", "An agent for the book keeping of shops");
        registry.register_approved_card(&domain, &about).await;
    }
    registry.catch_up().await;
    let encoder = ScriptedEncoder::new("first", 0);
    for mode in ["lexical", "hybrid", "semantic"] {
        if mode == "hybrid" {
            finish(&registry, &mut open(&registry, &encoder).await).await;
        }
        let question = "find me an agent that can book a flight";
        let found = search_with_mode(&registry, question, Some(mode)).await;
        assert_eq!((found.mode.as_str(), found.total), (mode, 3));
        assert!(good(&found).is_empty() && found.total_fitting == 0);
        assert_eq!(found.hints[0].kind, "only_weak");
        let query = SearchQuery {
            q: Some(question.into()),
            mode: Some(mode.to_owned()),
            fitting: Some(true),
            ..SearchQuery::default()
        };
        let fitting = registry.search_all(&Caller::default(), &query).await;
        assert_eq!((fitting.total, fitting.agents.len()), (3, 0));
        assert_eq!(fitting.facets_count, "total_fitting");
    }
    // What merely asks for an agent has no part in the meaning.
    assert_eq!(encoder.take_texts(TextKind::Query), ["book a flight"]);
    let wings = card_bytes("Wings", "Books flights");
    let wings = registry
        .register_approved_card("wings.agents-test.com", &wings)
        .await;
    registry.catch_up().await;
    let found = search_with_mode(&registry, "an agent to book a flight", Some("lexical")).await;
    assert_eq!((good(&found), found.total), (vec![wings.id], 4));
    assert!(found.hints.is_empty());
}

/// The encoder gets the words that typing errors stand for, and the answer says which.
async fn a_misspelled_question_is_encoded_as_it_was_meant(url: &str) {
    let registry = patient(url).await;
    let [bank, ..] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    finish(&registry, &mut open(&registry, &encoder).await).await;
    let found = search_with_mode(&registry, "change my curency", None).await;
    assert_eq!((found.mode.as_str(), hit_ids(&found)[0]), ("hybrid", bank));
    assert_eq!(encoder.take_texts(TextKind::Query), ["change my currency"]);
    let hints: Vec<(&str, &str)> = found
        .hints
        .iter()
        .map(|hint| (hint.kind.as_str(), hint.text.as_str()))
        .collect();
    let said = "\"curency\" may be misspelled: \"currency\" was searched too.";
    assert_eq!(hints, [("corrected", said)]);
}

/// A busy, absent or silent encoder turns a search into full text, without an error, and the result is not cached.
async fn a_silent_encoder_turns_a_search_into_full_text(url: &str) {
    let registry =
        InProcessRegistry::with_config(url, |config| config.search.embed_timeout = 1).await;
    let [bank, ..] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    let question = format!("{QUESTION} by plane");
    for behaviour in [
        EncoderBehaviour::Busy,
        EncoderBehaviour::Away,
        EncoderBehaviour::Silent,
    ] {
        encoder.behave(behaviour);
        let found = search_with_mode(&registry, &question, Some("hybrid")).await;
        assert_eq!(
            (found.mode.as_str(), hit_ids(&found)),
            ("lexical", vec![]),
            "{behaviour:?}"
        );
    }
    encoder.behave(EncoderBehaviour::Working);
    let registry = registry
        .restart(|config| config.search.embed_timeout = 600_000)
        .await;
    registry.catch_up().await;
    let embedding = open(&registry, &encoder).await;
    assert!(embedding.is_complete());
    let found = search_with_mode(&registry, &question, Some("hybrid")).await;
    assert_eq!(
        (found.mode.as_str(), found.agents[0].summary.id),
        ("hybrid", bank)
    );
}

/// Unreadable vectors turn a search into full text as well.
async fn unreadable_vectors_turn_a_search_into_full_text(url: &str) {
    let registry = patient(url).await;
    let [_, travel, _] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    let question = "who books flights abroad";
    let found = search_with_mode(&registry, question, None).await;
    assert_eq!(found.mode, "hybrid");
    let folder = registry.app.config().store.data_dir.join("vectors");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = std::fs::File::options()
            .write(true)
            .open(entry.unwrap().path());
        file.unwrap().set_len(0).unwrap();
    }
    for mode in [None, Some("semantic")] {
        let found = search_with_mode(&registry, &format!("{question} please"), mode).await;
        assert_eq!(
            (found.mode.as_str(), hit_ids(&found)),
            ("lexical", vec![travel]),
            "{mode:?}"
        );
    }
}

/// A failed step is tried again, and loses nothing.
async fn a_failed_embedding_step_is_retried(url: &str) {
    let registry = patient(url).await;
    let [bank, ..] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    encoder.behave(EncoderBehaviour::Away);
    let mut embedding = open(&registry, &encoder).await;
    assert!(
        run_embedding_step(&registry.app, &mut embedding)
            .await
            .is_err()
    );
    assert_eq!(
        vectors::vectorized_agent_count(&registry.store, "first")
            .await
            .unwrap(),
        0
    );
    encoder.behave(EncoderBehaviour::Working);
    finish(&registry, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&registry, QUESTION, None).await),
        [bank]
    );
}

/// A text that the encoder refuses does not keep others from being embedded; an encoder that refuses every text is
/// broken, and no text is blamed for that.
async fn one_refused_text_does_not_stop_the_others(url: &str) {
    let registry = patient(url).await;
    let bad = registry
        .register_approved_card(
            "bad.agents-test.com",
            &card_bytes("Bad", "An unspeakable poem"),
        )
        .await;
    let [bank, ..] = three(&registry).await;
    let encoder = ScriptedEncoder::new("first", 0);
    encoder.behave(EncoderBehaviour::RefusesAll);
    let mut embedding = open(&registry, &encoder).await;
    assert!(
        run_embedding_step(&registry.app, &mut embedding)
            .await
            .is_err()
    );
    assert_eq!(
        vectors::vectorized_agent_count(&registry.store, "first")
            .await
            .unwrap(),
        0
    );
    encoder.behave(EncoderBehaviour::RefusesSome);
    finish(&registry, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&registry, QUESTION, None).await),
        [bank]
    );
    assert_eq!(embedding_progress(&registry.app)[0].agents, 3);
    // The agent is recorded as having no vector, and is tried again only when its text changes.
    let again = open(&registry, &encoder).await;
    assert!(again.is_complete());
    encoder.behave(EncoderBehaviour::Working);
    registry
        .crawl_domain(
            "bad.agents-test.com",
            OriginResponse::Card(card_bytes("Bad", "A poem")),
        )
        .await;
    registry.approve_open_review(bad.id).await;
    registry.catch_up().await;
    finish(&registry, &mut embedding).await;
    assert_eq!(embedding_progress(&registry.app)[0].agents, 4);
}

/// Pages of a full-text list stay full text when a model comes in between, and a semantic list that cannot be
/// continued starts anew and reports that.
async fn pages_do_not_mix_scores(url: &str) {
    let registry = patient(url).await;
    three(&registry).await;
    let question = "exchange flights and poems for anything else";
    let page = async |registry: &InProcessRegistry, token: Option<String>| {
        let query = SearchQuery {
            q: Some(question.into()),
            page_size: Some(1),
            page_token: token,
            ..SearchQuery::default()
        };
        let bytes = search_agents(&registry.app, &Caller::default(), &query)
            .await
            .unwrap();
        serde_json::from_slice::<AgentList>(&bytes).unwrap()
    };
    let encoder = ScriptedEncoder::new("first", 0);
    let first = page(&registry, None).await;
    assert_eq!((first.mode.as_str(), first.total), ("lexical", 3));
    // The model is ready now.
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    drop(embedding);
    let mut shown = hit_ids(&first);
    let mut token = first.next_page_token.clone();
    while let Some(next) = token {
        let list = page(&registry, Some(next)).await;
        assert_eq!((list.mode.as_str(), list.total), ("lexical", 3));
        shown.extend(hit_ids(&list));
        token = list.next_page_token;
    }
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), 3);

    let hybrid = page(&registry, None).await;
    assert_eq!(hybrid.mode, "hybrid");
    let registry = registry.restart(|_| ()).await;
    registry.catch_up().await;
    let resumed = page(&registry, hybrid.next_page_token).await;
    assert_eq!(
        (resumed.mode.as_str(), resumed.order.as_str()),
        ("lexical", "resumed")
    );
    assert_eq!(hit_ids(&resumed), hit_ids(&first));
}

/// The old model is used until the new one has embedded every agent; then the old vectors are deleted.
async fn a_changed_model_takes_over_when_it_is_ready(url: &str) {
    let registry = patient(url).await;
    let [bank, ..] = three(&registry).await;
    let (old, new) = (
        ScriptedEncoder::new("old", 0),
        ScriptedEncoder::new("new", 3),
    );
    finish(&registry, &mut open(&registry, &old).await).await;
    let mut embedding = open(&registry, &new).await;
    assert_eq!(
        good(&search_with_mode(&registry, QUESTION, None).await),
        [bank]
    );
    assert_eq!(
        (
            old.take_texts(TextKind::Query).len(),
            new.take_texts(TextKind::Query).len()
        ),
        (1, 0)
    );
    finish(&registry, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&registry, QUESTION, None).await),
        [bank]
    );
    assert_eq!(
        (
            old.take_texts(TextKind::Query).len(),
            new.take_texts(TextKind::Query).len()
        ),
        (0, 1)
    );
    // Another process may still use the old model; an hour later none does.
    assert!(
        !purge_unused_models(&registry.app, &["new".into()])
            .await
            .unwrap()
    );
    registry.advance(time::Duration::hours(2));
    while purge_unused_models(&registry.app, &["new".into()])
        .await
        .unwrap()
    {}
    assert_eq!(
        vectors::vectorized_agent_count(&registry.store, "old")
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        vectors::embedding_models(&registry.store)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(embedding_progress(&registry.app).len(), 1);
    assert_eq!(
        vectors::vectorized_agent_count(&registry.store, "new")
            .await
            .unwrap(),
        3
    );
}

/// With twenty agents or more the model's cutoff is calibrated from them, once, and stored.
async fn a_model_is_calibrated_from_the_agents(url: &str) {
    let registry = patient(url).await;
    for number in 0..24 {
        let about = ["Currency exchange", "Books flights", "Writes poems"][number % 3];
        registry
            .register_approved_card(
                &format!("a{number}.agents-test.com"),
                &card_bytes(&format!("Agent {number}"), about),
            )
            .await;
    }
    registry.catch_up().await;
    let encoder = ScriptedEncoder::new("first", 0);
    let mut embedding = open(&registry, &encoder).await;
    finish(&registry, &mut embedding).await;
    let cutoff = embedding_progress(&registry.app)[0].cutoff.unwrap();
    assert!((0.0..=1.0).contains(&cutoff), "{cutoff}");
    let kept = vectors::embedding_model(&registry.store, "first")
        .await
        .unwrap()
        .unwrap()
        .cutoff;
    assert_eq!(kept, Some(f64::from(cutoff)));
    encoder.take_texts(TextKind::Query);
    finish(&registry, &mut open(&registry, &encoder).await).await;
    assert_eq!(
        encoder.take_texts(TextKind::Query),
        [""; 0],
        "the calibration is stored"
    );
}
