//! A thread pool with a limited queue that skips jobs whose callers no longer wait.
//!
//! The work may use rayon, as arithmetic libraries do: each thread is the only one of its own rayon pool, so parallel
//! work stays on it and the process-wide pool is never started. A thread runs one long rayon job instead of one per
//! queued job: otherwise it could begin the next job while it waits for parts of the current one.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::EmbedError;
use super::error::ModelError;

const STOPPING_MESSAGE: &str = "it is stopping";

/// A pool of threads for one kind of work. Dropping it ends them after their current job.
pub(super) struct JobPool<I, O> {
    shared: Arc<PoolShared<I, O>>,
    /// Ends the threads when dropped, without waiting for them.
    _threads: Vec<rayon::ThreadPool>,
}

struct PoolShared<I, O> {
    state: Mutex<JobQueue<I, O>>,
    job_ready: Condvar,
    max_waiting: usize,
}

struct JobQueue<I, O> {
    jobs: VecDeque<PoolJob<I, O>>,
    stopping: bool,
}

struct PoolJob<I, O> {
    input: I,
    result_sender: oneshot::Sender<Result<O, EmbedError>>,
}

impl<I: Send + 'static, O: Send + 'static> JobPool<I, O> {
    /// Starts `threads` threads called `name-0`, `name-1`, …, with a queue of at most `max_waiting` jobs. `work` gets
    /// a job and a function that tells whether its caller has stopped waiting.
    pub fn start(
        name: &'static str,
        threads: NonZeroUsize,
        max_waiting: NonZeroUsize,
        work: impl Fn(I, &dyn Fn() -> bool) -> Result<O, EmbedError> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        let shared = Arc::new(PoolShared {
            state: Mutex::new(JobQueue {
                jobs: VecDeque::new(),
                stopping: false,
            }),
            job_ready: Condvar::new(),
            max_waiting: max_waiting.get(),
        });
        let work = Arc::new(work);
        let threads = (0..threads.get()).map(|index| {
            let thread = single_thread_pool(format!("{name}-{index}"))?;
            let (shared, work) = (shared.clone(), work.clone());
            thread.spawn(move || {
                while let Some(job) = shared.next_job() {
                    shared.run_job(job, &*work);
                }
            });
            Ok(thread)
        });
        Ok(Self {
            _threads: threads.collect::<Result<_, ModelError>>()?,
            shared,
        })
    }

    /// Queues a job. Dropping the future cancels a job that has not started.
    pub async fn submit(&self, input: I) -> Result<O, EmbedError> {
        let (result_sender, result_receiver) = oneshot::channel();
        {
            let mut state = self.shared.lock_state();
            if state.jobs.len() >= self.shared.max_waiting {
                // Jobs whose callers no longer wait do not count.
                state.jobs.retain(|job| !job.result_sender.is_closed());
            }
            if state.jobs.len() >= self.shared.max_waiting {
                return Err(EmbedError::Busy);
            }
            state.jobs.push_back(PoolJob {
                input,
                result_sender,
            });
        }
        self.shared.job_ready.notify_one();
        result_receiver
            .await
            .unwrap_or_else(|_| Err(EmbedError::Unavailable(STOPPING_MESSAGE.to_owned())))
    }
}

impl<I, O> PoolShared<I, O> {
    /// The queue. No code panics while it is locked, so a poisoned lock is consistent.
    fn lock_state(&self) -> MutexGuard<'_, JobQueue<I, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job whose caller still waits; `None` when the pool ends.
    fn next_job(&self) -> Option<PoolJob<I, O>> {
        let mut state = self.lock_state();
        loop {
            if state.stopping {
                return None;
            }
            match state.jobs.pop_front() {
                Some(job) if job.result_sender.is_closed() => {}
                Some(job) => return Some(job),
                None => {
                    state = self
                        .job_ready
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn run_job(
        &self,
        job: PoolJob<I, O>,
        work: &impl Fn(I, &dyn Fn() -> bool) -> Result<O, EmbedError>,
    ) {
        let PoolJob {
            input,
            result_sender: answer,
        } = job;
        let is_abandoned = || answer.is_closed();
        // A panic of a library over one text must not end the thread: rayon would end the process.
        let result = catch_unwind(AssertUnwindSafe(|| work(input, &is_abandoned)));
        let result = result.unwrap_or_else(|_| {
            Err(EmbedError::Failed(
                "it panicked while encoding a text".to_owned(),
            ))
        });
        // The caller may no longer wait for it.
        let _ = answer.send(result);
    }
}

impl<I, O> Drop for JobPool<I, O> {
    fn drop(&mut self) {
        // Callers borrow the pool, so none is waiting anymore.
        self.shared.lock_state().stopping = true;
        self.shared.job_ready.notify_all();
    }
}

pub(super) fn single_thread_pool(name: String) -> Result<rayon::ThreadPool, ModelError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(move |_| name.clone())
        .build()
        .map_err(|error| ModelError::Threads(error.to_string()))
}
