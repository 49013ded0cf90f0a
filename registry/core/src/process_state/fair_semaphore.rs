//! A semaphore whose permits go to the callers one after the other: one that asks for many waits for its own, and delays
//! another caller by one permit at most.
//!
//! What waits is a future, or work for a thread. Work that ends is followed on the same thread by the next: were a thread
//! woken for each, processors would be idle between two of them although others wait.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::visibility::caller::CallerKey;

/// The most searches that wait for a thread, and for the encoder; further ones get 503.
pub const MAX_WAITING: usize = 256;
/// The most of them of one caller; further ones get 429.
pub const MAX_WAITING_PER_CALLER: usize = 64;

/// Why a request may not wait for a permit, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFull {
    /// As many requests of the caller wait as one caller may have waiting, or more than others have in the full queue.
    CallerLimit,
    /// As many requests wait as may in all.
    TotalLimit,
}

/// A bounded number of permits, and the requests that wait for one.
#[derive(Debug)]
pub struct FairSemaphore {
    /// The most requests that wait.
    max_waiting: usize,
    /// The most requests of one caller that wait.
    max_waiting_per_caller: usize,
    state: Mutex<FairSemaphoreState>,
}

#[derive(Debug)]
struct FairSemaphoreState {
    /// Unused permits; while there are any, no request waits.
    free_permits: usize,
    /// How many permits each caller has. A caller without one has no entry.
    used_by_caller: HashMap<CallerKey, usize>,
    /// The callers that wait, the one that has waited longest for a permit first. One without a waiting request has no entry.
    waiting: VecDeque<WaitingCaller>,
}

#[derive(Debug)]
struct WaitingCaller {
    key: CallerKey,
    requests: VecDeque<WaitingRequest>,
}

#[derive(Debug)]
enum WaitingRequest {
    /// A future, which gets the permit.
    Permit(oneshot::Sender<FairPermit>),
    /// Work that is done under the permit.
    Work(Box<dyn QueuedWork>),
}

impl WaitingRequest {
    fn is_cancelled(&self) -> bool {
        match self {
            Self::Permit(request) => request.is_closed(),
            Self::Work(work) => work.is_cancelled(),
        }
    }
}

pub trait QueuedWork: Send {
    /// Whether nobody waits for its result any more.
    fn is_cancelled(&self) -> bool;

    fn run(self: Box<Self>);
}

impl fmt::Debug for dyn QueuedWork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("QueuedWork")
    }
}

/// A permit, which the next request gets when this is dropped.
#[derive(Debug)]
pub struct FairPermit {
    semaphore: Arc<FairSemaphore>,
    /// Whose permit it is; `None` once another request has it.
    key: Option<CallerKey>,
}

impl FairSemaphore {
    /// So many permits, for which at most `max_waiting` requests wait, at most `max_waiting_per_caller` of them of one
    /// caller.
    pub fn new(permits: usize, max_waiting: usize, max_waiting_per_caller: usize) -> Arc<Self> {
        Arc::new(Self {
            max_waiting,
            max_waiting_per_caller,
            state: Mutex::new(FairSemaphoreState {
                free_permits: permits,
                used_by_caller: HashMap::new(),
                waiting: VecDeque::new(),
            }),
        })
    }

    /// Waits for a permit of the caller. Dropping the future gives up the position in the queue.
    ///
    /// # Errors
    /// Where too many requests wait already, or while this one waits another caller takes its place in the full queue.
    pub async fn acquire(self: &Arc<Self>, key: CallerKey) -> Result<FairPermit, QueueFull> {
        let (request, permit) = oneshot::channel();
        if self
            .enqueue(key, WaitingRequest::Permit(request))?
            .is_some()
        {
            return Ok(self.permit(key));
        }
        permit.await.map_err(|_| QueueFull::CallerLimit)
    }

    /// Has work of the caller done on a thread of the runtime under a permit, as soon as there is one. Where another caller
    /// takes its place in the full queue, it is dropped.
    pub fn spawn_work(
        self: &Arc<Self>,
        key: CallerKey,
        work: Box<dyn QueuedWork>,
    ) -> Result<(), QueueFull> {
        if let Some(WaitingRequest::Work(work)) = self.enqueue(key, WaitingRequest::Work(work))? {
            self.permit(key).start(work);
        }
        Ok(())
    }

    /// Uses a free permit for a request, which is returned, or has it wait in the queue.
    fn enqueue(
        &self,
        key: CallerKey,
        request: WaitingRequest,
    ) -> Result<Option<WaitingRequest>, QueueFull> {
        let mut state = self.lock_state();
        if state.free_permits > 0 {
            state.free_permits -= 1;
            *state.used_by_caller.entry(key).or_default() += 1;
            return Ok(Some(request));
        }
        if state.waiting_count() >= self.max_waiting
            || state.caller_waiting_count(key) >= self.max_waiting_per_caller
        {
            state.remove_cancelled();
        }
        if state.caller_waiting_count(key) >= self.max_waiting_per_caller {
            return Err(QueueFull::CallerLimit);
        }
        if state.waiting_count() >= self.max_waiting && !state.evict_newest_request(key) {
            return Err(QueueFull::TotalLimit);
        }
        match state.waiting.iter_mut().find(|caller| caller.key == key) {
            Some(caller) => caller.requests.push_back(request),
            None => state.waiting.push_back(WaitingCaller {
                key,
                requests: VecDeque::from([request]),
            }),
        }
        Ok(None)
    }

    /// The permit that the state counts for this caller already.
    fn permit(self: &Arc<Self>, key: CallerKey) -> FairPermit {
        FairPermit {
            semaphore: Arc::clone(self),
            key: Some(key),
        }
    }

    /// No code panics while it is locked, so a poisoned lock is consistent.
    fn lock_state(&self) -> MutexGuard<'_, FairSemaphoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FairSemaphoreState {
    fn waiting_count(&self) -> usize {
        self.waiting
            .iter()
            .map(|caller| caller.requests.len())
            .sum()
    }

    fn caller_waiting_count(&self, key: CallerKey) -> usize {
        let caller = self.waiting.iter().find(|caller| caller.key == key);
        caller.map_or(0, |caller| caller.requests.len())
    }

    fn remove_cancelled(&mut self) {
        for caller in &mut self.waiting {
            caller.requests.retain(|request| !request.is_cancelled());
        }
        self.waiting.retain(|caller| !caller.requests.is_empty());
    }

    /// Makes room in the full queue for a request of a caller: drops the newest request of the caller with the most, if that
    /// one has at least two more. Returns whether there is room.
    fn evict_newest_request(&mut self, key: CallerKey) -> bool {
        let own = self.caller_waiting_count(key);
        let callers = self.waiting.iter_mut();
        match callers.max_by_key(|caller| caller.requests.len()) {
            Some(most) if most.requests.len() >= own + 2 => most.requests.pop_back().is_some(),
            _ => false,
        }
    }

    /// Takes a permit back from a caller, and counts it for the next request, if there is one.
    fn release(&mut self, key: CallerKey) -> Option<(CallerKey, WaitingRequest)> {
        // The permit still counts here, so that who has just had one comes after who has none.
        let next = self.next_request();
        if let Some(used) = self.used_by_caller.get_mut(&key) {
            *used -= 1;
            if *used == 0 {
                self.used_by_caller.remove(&key);
            }
        }
        match &next {
            Some((key, _)) => *self.used_by_caller.entry(*key).or_default() += 1,
            None => self.free_permits += 1,
        }
        next
    }

    /// The next request: the oldest one of the caller that has the fewest permits, and of such callers of the one that has
    /// waited longest, which then comes after all others.
    fn next_request(&mut self) -> Option<(CallerKey, WaitingRequest)> {
        self.remove_cancelled();
        let used =
            |caller: &WaitingCaller| self.used_by_caller.get(&caller.key).copied().unwrap_or(0);
        let callers = self.waiting.iter().enumerate();
        let (index, _) = callers.min_by_key(|&(_, caller)| used(caller))?;
        let mut caller = self.waiting.remove(index)?;
        let request = caller.requests.pop_front()?;
        let key = caller.key;
        if !caller.requests.is_empty() {
            self.waiting.push_back(caller);
        }
        Some((key, request))
    }
}

impl FairPermit {
    /// Does this work on a thread of the runtime, and after it the work that waits for the permit.
    fn start(mut self, work: Box<dyn QueuedWork>) {
        let run = move || {
            let mut next = Some(work);
            while let Some(work) = next {
                work.run();
                next = self.hand_over();
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(run)),
            Err(_) => run(),
        }
    }

    /// Gives the permit to the next request whose client still waits, else keeps it free. Where work is next, it is returned,
    /// and this is its permit.
    fn hand_over(&mut self) -> Option<Box<dyn QueuedWork>> {
        let key = self.key.take()?;
        let (key, request) = self.semaphore.lock_state().release(key)?;
        match request {
            // The lock is free again here: where the client has just gone, the permit is dropped, which passes it on once
            // more.
            WaitingRequest::Permit(request) => {
                drop(request.send(self.semaphore.permit(key)));
                None
            }
            WaitingRequest::Work(work) => {
                self.key = Some(key);
                Some(work)
            }
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if let Some(work) = self.hand_over() {
            let permit = Self {
                semaphore: Arc::clone(&self.semaphore),
                key: self.key.take(),
            };
            permit.start(work);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::net::IpAddr;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn caller(last: u8) -> CallerKey {
        CallerKey::Network(Some(IpAddr::from([192, 0, 2, last])))
    }

    /// A request for a permit.
    type Request = std::pin::Pin<Box<dyn Future<Output = Result<FairPermit, QueueFull>>>>;

    fn poll(request: &mut Request) -> Poll<Result<FairPermit, QueueFull>> {
        request
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Requests that wait, each with the caller that it is of.
    struct WaitingRequests(Vec<(u8, Request)>);

    impl WaitingRequests {
        /// Adds another request of that caller; the reason if it may not even wait.
        fn add(&mut self, semaphore: &Arc<FairSemaphore>, last: u8) -> Result<(), QueueFull> {
            let semaphore = Arc::clone(semaphore);
            let mut request: Request =
                Box::pin(async move { semaphore.acquire(caller(last)).await });
            match poll(&mut request) {
                Poll::Pending => self.0.push((last, request)),
                Poll::Ready(outcome) => return outcome.map(|_| ()),
            }
            Ok(())
        }

        /// Removes the request that has got a permit: at most one has.
        fn take_ready(&mut self) -> Option<(u8, FairPermit)> {
            let mut ready = None;
            self.0.retain_mut(|(last, request)| match poll(request) {
                Poll::Pending => true,
                Poll::Ready(permit) => {
                    assert!(ready.is_none(), "one permit was given to two requests");
                    ready = Some((*last, permit.unwrap()));
                    false
                }
            });
            ready
        }
    }

    /// A permit of the caller, of which one is free.
    fn acquire_free(semaphore: &Arc<FairSemaphore>, last: u8) -> FairPermit {
        let acquired = pin!(semaphore.acquire(caller(last)));
        match acquired.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit.unwrap(),
            Poll::Pending => panic!("no permit is free"),
        }
    }

    /// The callers in the order in which their requests get the one permit that goes round, beginning with this one.
    fn order(mut waiting: WaitingRequests, first: FairPermit) -> Vec<u8> {
        let mut order = Vec::new();
        let mut permit = Some(first);
        while let Some(running) = permit.take() {
            drop(running);
            if let Some((last, next)) = waiting.take_ready() {
                order.push(last);
                permit = Some(next);
            }
        }
        assert!(waiting.0.is_empty());
        order
    }

    /// Asserts that all permits are free again, and that nothing else is left.
    fn assert_unused(semaphore: &FairSemaphore, permits: usize) {
        let state = semaphore.lock_state();
        let left = (
            state.free_permits,
            state.used_by_caller.len(),
            state.waiting.len(),
        );
        assert_eq!(left, (permits, 0, 0));
    }

    #[test]
    fn one_caller_delays_another_by_one_permit() {
        let semaphore = FairSemaphore::new(1, 256, 64);
        let running = acquire_free(&semaphore, 1);
        let mut waiting = WaitingRequests(Vec::new());
        for _ in 0..64 {
            waiting.add(&semaphore, 1).unwrap();
        }
        waiting.add(&semaphore, 2).unwrap();
        waiting.add(&semaphore, 3).unwrap();
        waiting.add(&semaphore, 3).unwrap();
        let order = order(waiting, running);
        assert_eq!(order.len(), 67);
        // The first caller has had its permit, though it waits longest for the next one.
        assert_eq!(order[..6], [2, 1, 3, 1, 3, 1]);
        assert_unused(&semaphore, 1);
    }

    /// One caller has both permits and waits for more of them; the first that it releases is another caller's.
    #[test]
    fn a_caller_without_a_permit_comes_before_one_that_has_some() {
        let semaphore = FairSemaphore::new(2, 256, 64);
        let [first, second] = [(); 2].map(|()| acquire_free(&semaphore, 1));
        let mut waiting = WaitingRequests(Vec::new());
        for last in [1, 1, 2, 2] {
            waiting.add(&semaphore, last).unwrap();
        }
        drop(first);
        let (last, of_second) = waiting.take_ready().unwrap();
        assert_eq!(last, 2);
        // Both have one now, so the one that has waited longest is next.
        drop(second);
        let (last, of_first) = waiting.take_ready().unwrap();
        assert_eq!(last, 1);
        drop(of_first);
        for expected in [2, 1] {
            let (last, permit) = waiting.take_ready().unwrap();
            assert_eq!(last, expected);
            drop(permit);
        }
        drop(of_second);
        assert_unused(&semaphore, 2);
    }

    #[test]
    fn a_caller_has_a_share_of_the_queue_and_a_cancelled_request_has_none() {
        let semaphore = FairSemaphore::new(1, 4, 2);
        let running = acquire_free(&semaphore, 0);
        let mut waiting = WaitingRequests(Vec::new());
        for last in [1, 1] {
            waiting.add(&semaphore, last).unwrap();
        }
        assert_eq!(waiting.add(&semaphore, 1), Err(QueueFull::CallerLimit));
        for last in [2, 3] {
            waiting.add(&semaphore, last).unwrap();
        }
        assert_eq!(waiting.add(&semaphore, 2), Err(QueueFull::TotalLimit));
        // Clients that have gone count neither for their caller nor for all.
        drop(waiting.0.remove(0));
        drop(waiting.0.remove(1));
        waiting.add(&semaphore, 1).unwrap();
        waiting.add(&semaphore, 4).unwrap();
        assert_eq!(waiting.add(&semaphore, 3), Err(QueueFull::TotalLimit));
        assert_eq!(order(waiting, running), [1, 3, 4, 1]);
        assert_unused(&semaphore, 1);
    }

    /// A few callers cannot keep all others out of the queue.
    #[test]
    fn a_full_queue_has_room_for_a_caller_with_fewer_requests() {
        let semaphore = FairSemaphore::new(1, 4, 4);
        let running = acquire_free(&semaphore, 0);
        let mut waiting = WaitingRequests(Vec::new());
        for last in [1, 1, 1, 1, 2] {
            waiting.add(&semaphore, last).unwrap();
        }
        // The newest request of the first caller was dropped.
        let (last, mut dropped) = waiting.0.remove(3);
        assert_eq!(last, 1);
        let refused = poll(&mut dropped);
        assert!(matches!(refused, Poll::Ready(Err(QueueFull::CallerLimit))));
        waiting.add(&semaphore, 3).unwrap();
        let (last, mut dropped) = waiting.0.remove(2);
        assert_eq!(last, 1);
        assert!(poll(&mut dropped).is_ready());
        // No caller takes a place of another that has not more than one request more.
        assert_eq!(waiting.add(&semaphore, 2), Err(QueueFull::TotalLimit));
        assert_eq!(order(waiting, running), [1, 2, 3, 1]);
        assert_unused(&semaphore, 1);
    }

    /// Work of a test.
    struct TestWork<F> {
        work: F,
        is_cancelled: bool,
    }

    impl<F: FnOnce() + Send> QueuedWork for TestWork<F> {
        fn is_cancelled(&self) -> bool {
            self.is_cancelled
        }

        fn run(self: Box<Self>) {
            let Self { work, .. } = *self;
            work();
        }
    }

    fn work(work: impl FnOnce() + Send + 'static) -> Box<dyn QueuedWork> {
        Box::new(TestWork {
            work,
            is_cancelled: false,
        })
    }

    fn cancelled(work: impl FnOnce() + Send + 'static) -> Box<dyn QueuedWork> {
        Box::new(TestWork {
            work,
            is_cancelled: true,
        })
    }

    #[tokio::test]
    async fn work_that_waits_follows_on_the_same_thread() {
        let semaphore = FairSemaphore::new(1, 256, 64);
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let (threads, ran) = std::sync::mpsc::channel();
        let note = |threads: &std::sync::mpsc::Sender<_>| {
            let threads = threads.clone();
            move || threads.send(std::thread::current().id()).unwrap()
        };
        let first = note(&threads);
        let first = work(move || {
            begun.recv().unwrap();
            first();
        });
        semaphore.spawn_work(caller(1), first).unwrap();
        let unwanted = cancelled(|| panic!("work that nobody waits for was done"));
        semaphore.spawn_work(caller(2), unwanted).unwrap();
        semaphore
            .spawn_work(caller(3), work(note(&threads)))
            .unwrap();
        begin.send(()).unwrap();
        drop(semaphore.acquire(caller(4)).await.unwrap());
        let ran: Vec<_> = ran.try_iter().collect();
        assert_eq!(ran.len(), 2);
        assert_eq!(ran[0], ran[1]);
        assert_unused(&semaphore, 1);
    }

    #[tokio::test]
    async fn work_that_panics_passes_its_permit_on() {
        let semaphore = FairSemaphore::new(1, 256, 64);
        let (done, is_done) = oneshot::channel();
        let panics = work(|| panic!("work that goes wrong"));
        semaphore.spawn_work(caller(1), panics).unwrap();
        let after = work(move || done.send(()).unwrap());
        semaphore.spawn_work(caller(1), after).unwrap();
        is_done.await.unwrap();
        drop(semaphore.acquire(caller(1)).await.unwrap());
        assert_unused(&semaphore, 1);
    }

    #[test]
    fn a_permit_whose_client_has_gone_goes_to_the_next() {
        let semaphore = FairSemaphore::new(1, 5, 5);
        let running = acquire_free(&semaphore, 0);
        let mut waiting = WaitingRequests(Vec::new());
        for last in 1..=3 {
            waiting.add(&semaphore, last).unwrap();
        }
        // The first has its permit, and its client goes before it sees it.
        drop(running);
        drop(waiting.0.remove(0));
        let (last, permit) = waiting.take_ready().unwrap();
        assert_eq!(last, 2);
        assert_eq!(order(waiting, permit), [3]);
        assert_unused(&semaphore, 1);
    }
}
