//! The thread pool with a bounded queue: jobs that wait, are rejected, or are abandoned.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use futures::FutureExt;

use super::*;
use crate::job_pool::JobPool;

const ONE: NonZeroUsize = NonZeroUsize::MIN;
const TWO: NonZeroUsize = ONE.saturating_add(1);

/// A pool whose thread reports each job it begins, and continues when it is allowed to.
struct Gated {
    pool: Arc<JobPool<u32, u32>>,
    begun: Receiver<u32>,
    go_on: Sender<()>,
}

fn gated(waiting: NonZeroUsize) -> Gated {
    let (begin, begun) = channel();
    let (go_on, gate) = channel();
    let gate = Mutex::new(gate);
    let pool = JobPool::start("test-gated", ONE, waiting, move |number: u32, given_up| {
        begin.send(number).unwrap();
        let _ = gate.lock().unwrap().recv();
        match given_up() {
            true => Err(EmbedError::Unavailable("gone".to_owned())),
            false => Ok(number * 2),
        }
    });
    Gated {
        pool: Arc::new(pool.unwrap()),
        begun,
        go_on,
    }
}

impl Gated {
    /// Submits a job in the background. The job waits or runs when this returns.
    fn ask(&self, number: u32) -> tokio::task::JoinHandle<Result<u32, EmbedError>> {
        let pool = self.pool.clone();
        let mut asking = Box::pin(async move { pool.submit(number).await });
        let first = (&mut asking).now_or_never();
        tokio::spawn(async move {
            match first {
                Some(answer) => answer,
                None => asking.await,
            }
        })
    }
}

#[tokio::test]
async fn one_more_than_may_wait_is_told_so() {
    let gated = gated(TWO);
    let first = gated.ask(1);
    assert_eq!(gated.begun.recv(), Ok(1));
    let waiting = [gated.ask(2), gated.ask(3)];
    assert_eq!(gated.pool.submit(4).await, Err(EmbedError::Busy));
    for _ in 0..3 {
        gated.go_on.send(()).unwrap();
    }
    assert_eq!(first.await.unwrap(), Ok(2));
    for (index, answer) in waiting.into_iter().enumerate() {
        assert_eq!(answer.await.unwrap(), Ok(4 + 2 * index as u32));
    }
}

#[tokio::test]
async fn who_has_gone_takes_no_place_and_no_work() {
    let gated = gated(TWO);
    let first = gated.ask(1);
    assert_eq!(gated.begun.recv(), Ok(1));
    for number in [2, 3] {
        let gone = gated.ask(number);
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
    }
    // No job was taken from the queue, and the queue has room.
    let third = gated.ask(4);
    for _ in 0..2 {
        gated.go_on.send(()).unwrap();
    }
    assert_eq!(first.await.unwrap(), Ok(2));
    assert_eq!(third.await.unwrap(), Ok(8));
    assert_eq!(gated.begun.try_iter().collect::<Vec<_>>(), [4]);
}

#[tokio::test]
async fn who_goes_while_the_work_is_done_is_noticed() {
    let (told, hears) = channel();
    let (begin, begun) = channel();
    let (go_on, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let pool = JobPool::start("test-gone", ONE, ONE, move |(): (), given_up| {
        begin.send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
        told.send(given_up()).unwrap();
        Ok(())
    });
    let pool = Arc::new(pool.unwrap());
    let asking = tokio::spawn({
        let pool = pool.clone();
        async move { pool.submit(()).await }
    });
    tokio::task::yield_now().await;
    begun.recv().unwrap();
    asking.abort();
    let _ = asking.await;
    go_on.send(()).unwrap();
    assert_eq!(hears.recv(), Ok(true));
}

#[tokio::test]
async fn a_panic_fails_one_request_and_no_other() {
    let pool = JobPool::start("test-panic", ONE, TWO, |number: u32, _| {
        assert!(number != 13, "unlucky");
        Ok(number)
    });
    let pool = pool.unwrap();
    assert!(matches!(pool.submit(13).await, Err(EmbedError::Failed(_))));
    assert_eq!(pool.submit(14).await, Ok(14));
}

/// Sends a message when it is dropped.
struct Farewell(Sender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn threads_end_when_the_pool_is_dropped() {
    let (ended, ends) = channel();
    let farewell = Farewell(ended);
    let (begin, begun) = channel();
    let (go_on, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let pool = JobPool::start("test-end", TWO, TWO, move |number: u32, given_up| {
        let _held_by_the_threads = &farewell;
        begin.send(number).unwrap();
        let _ = gate.lock().unwrap().recv();
        match given_up() {
            true => Err(EmbedError::Unavailable("stopping".to_owned())),
            false => Ok(number),
        }
    });
    let pool = pool.unwrap();
    // Polled once, the jobs are in the queue.
    let mut asking: Vec<_> = (0..4).map(|number| Box::pin(pool.submit(number))).collect();
    for asking in &mut asking[..2] {
        assert!(asking.now_or_never().is_none());
    }
    begun.recv().unwrap();
    begun.recv().unwrap();
    for asking in &mut asking[2..] {
        assert!(asking.now_or_never().is_none());
    }
    drop(asking);
    drop(pool);
    drop(go_on);
    // The threads share the work function, so it is dropped when the last thread ends.
    assert_eq!(ends.recv(), Ok(()));
}

#[tokio::test]
async fn queries_are_answered_while_cards_are_worked_on() {
    let cards = gated(ONE);
    let queries = JobPool::start("test-query", ONE, ONE, |number: u32, _| Ok(number + 1)).unwrap();
    let running = cards.ask(1);
    assert_eq!(cards.begun.recv(), Ok(1));
    let waiting = cards.ask(2);
    assert_eq!(cards.pool.submit(3).await, Err(EmbedError::Busy));
    // The card thread is blocked and its queue is full; neither affects a query.
    for number in 0..10 {
        assert_eq!(queries.submit(number).await, Ok(number + 1));
    }
    assert!(!running.is_finished() && !waiting.is_finished());
    cards.go_on.send(()).unwrap();
    cards.go_on.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Ok(2));
    assert_eq!(waiting.await.unwrap(), Ok(4));
}
