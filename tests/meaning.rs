//! Semantic search in the whole registry, with a scripted encoder whose meanings are defined here. Encoders of real
//! models have tests of their own.

mod pages;
mod program;

use std::sync::{Arc, Mutex};

use a2a_registry_api::{Act, AgentList};
use a2a_registry_core::agents::acts::agent_suspend;
use a2a_registry_core::meaning::embedding::{
    Embedding, EmbeddingStep, embedding_open, embedding_step, models_forget_but,
};
use a2a_registry_core::meaning::meaning_progress;
use a2a_registry_core::search::query::SearchQuery;
use a2a_registry_core::search::search;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_embed::{EmbedError, Embedder, ModelInfo, TextKind};
use a2a_registry_store::vectors;
use async_trait::async_trait;
use uuid::Uuid;

use crate::support::both_databases;
use crate::support::stage::{OriginAnswer, Stage, card};

/// Words of three topics; a text without any of them has another meaning.
const TOPICS: [&[&str]; 3] = [
    &["currency", "exchange", "money", "cash", "abroad"],
    &["flight", "flights", "journey", "plane", "travel"],
    &["poem", "poems", "verse", "rhyme"],
];

/// Behaviour of the scripted encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
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
struct Scripted {
    model: ModelInfo,
    /// Rotation of the topics' dimensions, so that the vectors of two models differ.
    turn: usize,
    behaviour: Mutex<Behaviour>,
    asked: Mutex<Vec<(String, TextKind)>>,
}

impl Scripted {
    fn new(id: &str, turn: usize) -> Arc<Self> {
        let model = ModelInfo {
            id: id.into(),
            name: format!("the {id} model"),
            dimensions: 8,
        };
        Arc::new(Self {
            model,
            turn,
            behaviour: Mutex::new(Behaviour::Working),
            asked: Mutex::default(),
        })
    }

    fn behave(&self, behaviour: Behaviour) {
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
impl Embedder for Scripted {
    fn model(&self) -> &ModelInfo {
        &self.model
    }

    async fn embed(&self, texts: Vec<String>, kind: TextKind) -> Result<Vec<Vec<f32>>, EmbedError> {
        let behaviour = *self.behaviour.lock().unwrap();
        match behaviour {
            Behaviour::RefusesSome if !texts.iter().any(|text| text.contains("unspeakable")) => {}
            Behaviour::RefusesSome | Behaviour::RefusesAll => {
                return Err(EmbedError::Failed("it choked".into()));
            }
            Behaviour::Working => {}
            Behaviour::Busy => return Err(EmbedError::Busy),
            Behaviour::Away => return Err(EmbedError::Away("it was unplugged".into())),
            Behaviour::Silent => std::future::pending().await,
        }
        let mut asked = self.asked.lock().unwrap();
        asked.extend(texts.iter().map(|text| (text.clone(), kind)));
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// A registry whose searches wait for the encoder for as long as a test runs.
async fn patient(url: &str) -> Stage {
    Stage::with(url, |config| config.search.embed_timeout = 600_000).await
}

async fn open(stage: &Stage, encoder: &Arc<Scripted>) -> Embedding {
    let encoder: Arc<dyn Embedder> = Arc::clone(encoder) as _;
    embedding_open(&stage.app, encoder).await.unwrap()
}

/// Lets a model embed every agent.
async fn finish(stage: &Stage, embedding: &mut Embedding) {
    while embedding_step(&stage.app, embedding).await.unwrap() != EmbeddingStep::Done {}
}

async fn search_with_mode(stage: &Stage, q: &str, mode: Option<&str>) -> AgentList {
    let query = SearchQuery {
        q: Some(q.into()),
        mode: mode.map(str::to_owned),
        ..SearchQuery::default()
    };
    stage.found(&Caller::default(), &query).await
}

fn ids(list: &AgentList) -> Vec<Uuid> {
    list.agents.iter().map(|hit| hit.summary.id).collect()
}

/// The hits that are not weak; the weak ones come after them.
fn good(list: &AgentList) -> Vec<Uuid> {
    let weak = list.agents.iter().position(|hit| hit.matched.weak);
    let good = weak.unwrap_or(list.agents.len());
    assert!(list.agents[good..].iter().all(|hit| hit.matched.weak));
    ids(list)[..good].to_vec()
}

/// Three approved agents of three topics; their ids.
async fn three(stage: &Stage) -> [Uuid; 3] {
    let bank = stage
        .publish_approved("bank.agents-test.com", &card("Bureau", "Currency exchange"))
        .await;
    let travel = stage
        .publish_approved("travel.agents-test.com", &card("Wings", "Books flights"))
        .await;
    let poet = stage
        .publish_approved(
            "poet.agents-test.com",
            &card("Bard", "Writes poems on request"),
        )
        .await;
    stage.settle().await;
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
    let stage = patient(url).await;
    let [bank, ..] = three(&stage).await;
    let before = search_with_mode(&stage, QUESTION, None).await;
    assert_eq!((before.mode.as_str(), ids(&before)), ("lexical", vec![]));
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    // Until every agent is embedded nothing changes.
    let none = search_with_mode(&stage, QUESTION, Some("semantic")).await;
    assert_eq!((none.mode.as_str(), ids(&none)), ("lexical", vec![]));
    finish(&stage, &mut embedding).await;
    for mode in [None, Some("hybrid"), Some("semantic")] {
        let found = search_with_mode(&stage, QUESTION, mode).await;
        assert_eq!(
            (found.mode.as_str(), good(&found)),
            (mode.unwrap_or("hybrid"), vec![bank])
        );
        // Of so few agents none is cut off.
        assert_eq!(found.total, 3);
    }
    let lexical = search_with_mode(&stage, QUESTION, Some("lexical")).await;
    assert_eq!((lexical.mode.as_str(), ids(&lexical)), ("lexical", vec![]));
    // A query is embedded once, for all modes.
    assert_eq!(encoder.take_texts(TextKind::Query), [QUESTION]);
    let bad = SearchQuery {
        q: Some("x".into()),
        mode: Some("magic".into()),
        ..SearchQuery::default()
    };
    assert!(search(&stage.app, &Caller::default(), &bad).await.is_err());
    let progress = meaning_progress(&stage.app);
    assert_eq!(
        (progress.len(), progress[0].agents, progress[0].serving),
        (1, 3, true)
    );
}

/// New, changed and removed agents are found in their current state; an unchanged agent is not embedded again.
async fn a_changed_agent_is_found_by_its_new_text(url: &str) {
    let stage = patient(url).await;
    let [bank, travel, poet] = three(&stage).await;
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    encoder.take_texts(TextKind::Card);

    let late = stage
        .publish_approved(
            "late.agents-test.com",
            &card("Mint", "Money for travellers"),
        )
        .await;
    stage
        .crawl(
            "travel.agents-test.com",
            OriginAnswer::Card(card("Wings", "Recites verse and rhyme")),
        )
        .await;
    stage.approve(travel).await;
    stage.settle().await;
    finish(&stage, &mut embedding).await;
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
    let mut rich = good(&search_with_mode(&stage, QUESTION, None).await);
    rich.sort_unstable();
    let mut expected = vec![bank, late.id];
    expected.sort_unstable();
    assert_eq!(rich, expected);
    let poets = good(
        &search_with_mode(
            &stage,
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
    agent_suspend(&stage.app, &stage.admin, &bank.to_string(), &act)
        .await
        .unwrap();
    stage.settle().await;
    finish(&stage, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&stage, QUESTION, None).await),
        [late.id]
    );
    let kept = vectors::vectors_count(&stage.store, "first").await.unwrap();
    assert_eq!(kept, 4);
}

/// An agent that the caller may not see is not found in semantic mode either, and no part of a response depends on it.
async fn a_hidden_agent_is_not_found_by_semantic_search(url: &str) {
    let stage = patient(url).await;
    let waiting = stage
        .publish("bank.agents-test.com", &card("Bureau", "Currency exchange"))
        .await;
    stage.settle().await;
    let mut embedding = open(&stage, &Scripted::new("first", 0)).await;
    finish(&stage, &mut embedding).await;
    let nothing = search_with_mode(&stage, QUESTION, Some("semantic")).await;
    assert_eq!((nothing.mode.as_str(), nothing.total), ("semantic", 0));
    let query = SearchQuery {
        q: Some(QUESTION.into()),
        lifecycle: vec!["pending".into()],
        ..SearchQuery::default()
    };
    assert_eq!(ids(&stage.found(&stage.admin, &query).await), [waiting.id]);
    assert_eq!(stage.found(&Caller::default(), &query).await.total, 0);
}

/// Vectors are stored: a new process embeds no text again and gives the same results, and so does one whose first pass
/// was interrupted.
async fn a_restart_embeds_nothing_again(url: &str) {
    let stage = patient(url).await;
    three(&stage).await;
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    assert!(matches!(
        embedding_step(&stage.app, &mut embedding).await.unwrap(),
        EmbeddingStep::More(3)
    ));
    assert!(!embedding.is_complete());
    drop(embedding);
    assert_eq!(
        encoder.take_texts(TextKind::Card).len(),
        9,
        "two texts per card and one per skill"
    );

    let stage = stage.restart(|_| ()).await;
    stage.settle().await;
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    let before = search_with_mode(&stage, QUESTION, None).await;
    drop(embedding);
    let stage = stage.restart(|_| ()).await;
    stage.settle().await;
    let embedding = open(&stage, &encoder).await;
    assert!(embedding.is_complete());
    assert_eq!(
        ids(&search_with_mode(&stage, QUESTION, None).await),
        ids(&before)
    );
    assert_eq!(encoder.take_texts(TextKind::Card), [""; 0]);
}

/// After an upgrade that encodes other texts of an agent, the stored vectors are searched until those of the new texts are
/// there for all, and then they are gone.
async fn vectors_of_other_texts_serve_until_all_are_made_anew(url: &str) {
    let stage = patient(url).await;
    let [bank, ..] = three(&stage).await;
    let encoder = Scripted::new("first", 0);
    finish(&stage, &mut open(&stage, &encoder).await).await;
    let mut rows = vectors::vectors_walk(&stage.store, "first", None)
        .await
        .unwrap();
    let current: Vec<String> = rows.iter().map(|row| row.text_digest.clone()).collect();
    for row in &mut rows {
        row.text_digest = "0".repeat(64);
    }
    let write = stage.store.write().await.unwrap();
    write.vectors_put(rows).await.unwrap();
    write.commit().await.unwrap();
    encoder.take_texts(TextKind::Card);

    let stage = stage.restart(|_| ()).await;
    stage.settle().await;
    let mut embedding = open(&stage, &encoder).await;
    assert!(!embedding.is_complete());
    let found = search_with_mode(&stage, QUESTION, None).await;
    assert_eq!((found.mode.as_str(), good(&found)), ("hybrid", vec![bank]));
    finish(&stage, &mut embedding).await;
    assert!(embedding.is_complete());
    assert_eq!(encoder.take_texts(TextKind::Card).len(), 9);
    let rows = vectors::vectors_walk(&stage.store, "first", None).await;
    let digests: Vec<String> = rows
        .unwrap()
        .into_iter()
        .map(|row| row.text_digest)
        .collect();
    assert_eq!(digests, current);
    assert!(open(&stage, &encoder).await.is_complete());
    assert_eq!(encoder.take_texts(TextKind::Card), [""; 0]);
}

/// Where no agent fits a question, a hint says so, and what is somewhat near is listed as weak.
async fn a_question_that_nothing_fits_says_so(url: &str) {
    let stage = patient(url).await;
    for number in 0..3 {
        let domain = format!("keeper{number}.agents-test.com");
        let about = card("Keeper", "An agent for the book keeping of shops");
        stage.publish_approved(&domain, &about).await;
    }
    stage.settle().await;
    let encoder = Scripted::new("first", 0);
    for mode in ["lexical", "hybrid", "semantic"] {
        if mode == "hybrid" {
            finish(&stage, &mut open(&stage, &encoder).await).await;
        }
        let question = "find me an agent that can book a flight";
        let found = search_with_mode(&stage, question, Some(mode)).await;
        assert_eq!((found.mode.as_str(), found.total), (mode, 3));
        assert!(good(&found).is_empty());
        assert_eq!(found.hints[0].kind, "only_weak");
    }
    // What merely asks for an agent has no part in the meaning.
    assert_eq!(encoder.take_texts(TextKind::Query), ["book a flight"]);
    let wings = card("Wings", "Books flights");
    let wings = stage
        .publish_approved("wings.agents-test.com", &wings)
        .await;
    stage.settle().await;
    let found = search_with_mode(&stage, "an agent to book a flight", Some("lexical")).await;
    assert_eq!((good(&found), found.total), (vec![wings.id], 4));
    assert!(found.hints.is_empty());
}

/// A busy, absent or silent encoder turns a search into full text, without an error, and the result is not cached.
async fn a_silent_encoder_turns_a_search_into_full_text(url: &str) {
    let stage = Stage::with(url, |config| config.search.embed_timeout = 1).await;
    let [bank, ..] = three(&stage).await;
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    let question = format!("{QUESTION} by plane");
    for behaviour in [Behaviour::Busy, Behaviour::Away, Behaviour::Silent] {
        encoder.behave(behaviour);
        let found = search_with_mode(&stage, &question, Some("hybrid")).await;
        assert_eq!(
            (found.mode.as_str(), ids(&found)),
            ("lexical", vec![]),
            "{behaviour:?}"
        );
    }
    encoder.behave(Behaviour::Working);
    let stage = stage
        .restart(|config| config.search.embed_timeout = 600_000)
        .await;
    stage.settle().await;
    let embedding = open(&stage, &encoder).await;
    assert!(embedding.is_complete());
    let found = search_with_mode(&stage, &question, Some("hybrid")).await;
    assert_eq!(
        (found.mode.as_str(), found.agents[0].summary.id),
        ("hybrid", bank)
    );
}

/// Unreadable vectors turn a search into full text as well.
async fn unreadable_vectors_turn_a_search_into_full_text(url: &str) {
    let stage = patient(url).await;
    let [_, travel, _] = three(&stage).await;
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    let question = "who books flights abroad";
    let found = search_with_mode(&stage, question, None).await;
    assert_eq!(found.mode, "hybrid");
    let folder = stage.app.config().store.data_dir.join("vectors");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = std::fs::File::options()
            .write(true)
            .open(entry.unwrap().path());
        file.unwrap().set_len(0).unwrap();
    }
    for mode in [None, Some("semantic")] {
        let found = search_with_mode(&stage, &format!("{question} please"), mode).await;
        assert_eq!(
            (found.mode.as_str(), ids(&found)),
            ("lexical", vec![travel]),
            "{mode:?}"
        );
    }
}

/// A failed step is tried again, and loses nothing.
async fn a_failed_embedding_step_is_retried(url: &str) {
    let stage = patient(url).await;
    let [bank, ..] = three(&stage).await;
    let encoder = Scripted::new("first", 0);
    encoder.behave(Behaviour::Away);
    let mut embedding = open(&stage, &encoder).await;
    assert!(embedding_step(&stage.app, &mut embedding).await.is_err());
    assert_eq!(
        vectors::vectors_count(&stage.store, "first").await.unwrap(),
        0
    );
    encoder.behave(Behaviour::Working);
    finish(&stage, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&stage, QUESTION, None).await),
        [bank]
    );
}

/// A text that the encoder refuses does not keep others from being embedded; an encoder that refuses every text is
/// broken, and no text is blamed for that.
async fn one_refused_text_does_not_stop_the_others(url: &str) {
    let stage = patient(url).await;
    let bad = stage
        .publish_approved("bad.agents-test.com", &card("Bad", "An unspeakable poem"))
        .await;
    let [bank, ..] = three(&stage).await;
    let encoder = Scripted::new("first", 0);
    encoder.behave(Behaviour::RefusesAll);
    let mut embedding = open(&stage, &encoder).await;
    assert!(embedding_step(&stage.app, &mut embedding).await.is_err());
    assert_eq!(
        vectors::vectors_count(&stage.store, "first").await.unwrap(),
        0
    );
    encoder.behave(Behaviour::RefusesSome);
    finish(&stage, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&stage, QUESTION, None).await),
        [bank]
    );
    assert_eq!(meaning_progress(&stage.app)[0].agents, 3);
    // The agent is recorded as having no vector, and is tried again only when its text changes.
    let again = open(&stage, &encoder).await;
    assert!(again.is_complete());
    encoder.behave(Behaviour::Working);
    stage
        .crawl(
            "bad.agents-test.com",
            OriginAnswer::Card(card("Bad", "A poem")),
        )
        .await;
    stage.approve(bad.id).await;
    stage.settle().await;
    finish(&stage, &mut embedding).await;
    assert_eq!(meaning_progress(&stage.app)[0].agents, 4);
}

/// Pages of a full-text list stay full text when a model comes in between, and a semantic list that cannot be
/// continued starts anew and reports that.
async fn pages_do_not_mix_scores(url: &str) {
    let stage = patient(url).await;
    three(&stage).await;
    let question = "exchange flights and poems for anything else";
    let page = async |stage: &Stage, token: Option<String>| {
        let query = SearchQuery {
            q: Some(question.into()),
            page_size: Some(1),
            page_token: token,
            ..SearchQuery::default()
        };
        let bytes = search(&stage.app, &Caller::default(), &query)
            .await
            .unwrap();
        serde_json::from_slice::<AgentList>(&bytes).unwrap()
    };
    let encoder = Scripted::new("first", 0);
    let first = page(&stage, None).await;
    assert_eq!((first.mode.as_str(), first.total), ("lexical", 3));
    // The model is ready now.
    let stage = stage.restart(|_| ()).await;
    stage.settle().await;
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    drop(embedding);
    let mut shown = ids(&first);
    let mut token = first.next_page_token.clone();
    while let Some(next) = token {
        let list = page(&stage, Some(next)).await;
        assert_eq!((list.mode.as_str(), list.total), ("lexical", 3));
        shown.extend(ids(&list));
        token = list.next_page_token;
    }
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), 3);

    let hybrid = page(&stage, None).await;
    assert_eq!(hybrid.mode, "hybrid");
    let stage = stage.restart(|_| ()).await;
    stage.settle().await;
    let resumed = page(&stage, hybrid.next_page_token).await;
    assert_eq!(
        (resumed.mode.as_str(), resumed.order.as_str()),
        ("lexical", "resumed")
    );
    assert_eq!(ids(&resumed), ids(&first));
}

/// The old model is used until the new one has embedded every agent; then the old vectors are deleted.
async fn a_changed_model_takes_over_when_it_is_ready(url: &str) {
    let stage = patient(url).await;
    let [bank, ..] = three(&stage).await;
    let (old, new) = (Scripted::new("old", 0), Scripted::new("new", 3));
    finish(&stage, &mut open(&stage, &old).await).await;
    let mut embedding = open(&stage, &new).await;
    assert_eq!(
        good(&search_with_mode(&stage, QUESTION, None).await),
        [bank]
    );
    assert_eq!(
        (
            old.take_texts(TextKind::Query).len(),
            new.take_texts(TextKind::Query).len()
        ),
        (1, 0)
    );
    finish(&stage, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&stage, QUESTION, None).await),
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
        !models_forget_but(&stage.app, &["new".into()])
            .await
            .unwrap()
    );
    stage.advance(time::Duration::hours(2));
    while models_forget_but(&stage.app, &["new".into()])
        .await
        .unwrap()
    {}
    assert_eq!(
        vectors::vectors_count(&stage.store, "old").await.unwrap(),
        0
    );
    assert_eq!(vectors::models(&stage.store).await.unwrap().len(), 1);
    assert_eq!(meaning_progress(&stage.app).len(), 1);
    assert_eq!(
        vectors::vectors_count(&stage.store, "new").await.unwrap(),
        3
    );
}

/// With twenty agents or more the model's cutoff is calibrated from them, once, and stored.
async fn a_model_is_calibrated_from_the_agents(url: &str) {
    let stage = patient(url).await;
    for number in 0..24 {
        let about = ["Currency exchange", "Books flights", "Writes poems"][number % 3];
        stage
            .publish_approved(
                &format!("a{number}.agents-test.com"),
                &card(&format!("Agent {number}"), about),
            )
            .await;
    }
    stage.settle().await;
    let encoder = Scripted::new("first", 0);
    let mut embedding = open(&stage, &encoder).await;
    finish(&stage, &mut embedding).await;
    let cutoff = meaning_progress(&stage.app)[0].cutoff.unwrap();
    assert!((0.0..=1.0).contains(&cutoff), "{cutoff}");
    let kept = vectors::model(&stage.store, "first")
        .await
        .unwrap()
        .unwrap()
        .cutoff;
    assert_eq!(kept, Some(f64::from(cutoff)));
    encoder.take_texts(TextKind::Query);
    finish(&stage, &mut open(&stage, &encoder).await).await;
    assert_eq!(
        encoder.take_texts(TextKind::Query),
        [""; 0],
        "the calibration is stored"
    );
}

/// Two processes share their vectors.
#[tokio::test]
async fn two_processes_share_their_vectors() {
    let database = crate::support::database::Database::postgres().await;
    let stage = patient(database.url()).await;
    let [bank, ..] = three(&stage).await;
    let (one, two) = (Scripted::new("shared", 0), Scripted::new("shared", 0));
    finish(&stage, &mut open(&stage, &one).await).await;
    let beside = stage.beside().await;
    let mut embedding = open(&beside, &two).await;
    finish(&beside, &mut embedding).await;
    assert_eq!(
        good(&search_with_mode(&beside, QUESTION, None).await),
        [bank]
    );
    // Later changes are embedded by the first process to see them.
    let late = stage
        .publish_approved(
            "late.agents-test.com",
            &card("Mint", "Money for travellers"),
        )
        .await;
    for stage in [&stage, &beside] {
        stage.settle().await;
    }
    let mut first = open(&stage, &one).await;
    finish(&stage, &mut first).await;
    finish(&beside, &mut embedding).await;
    assert!(good(&search_with_mode(&beside, QUESTION, None).await).contains(&late.id));
    assert_eq!(two.take_texts(TextKind::Card), [""; 0]);
}
