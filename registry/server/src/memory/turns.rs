//! Turns at something that few can use at once, given to callers one after the other: one that asks for many waits for its
//! own, and delays another caller by one turn at most.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::caller::CallerKey;

/// Why there is no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// As many requests of the caller wait as one caller may have waiting.
    Own,
    /// As many requests wait as may in all.
    All,
}

/// A bounded number of turns at once, and the requests that wait for one.
#[derive(Debug)]
pub(crate) struct FairTurns {
    /// The most requests that wait.
    waiting: usize,
    /// The most requests of one caller that wait.
    waiting_per_caller: usize,
    state: Mutex<TurnState>,
}

#[derive(Debug)]
struct TurnState {
    /// Turns that nobody has; while there are any, nobody waits.
    free: usize,
    /// The callers that wait, in the order of their next turns. One without a waiting request has no entry.
    callers: VecDeque<WaitingCaller>,
}

#[derive(Debug)]
struct WaitingCaller {
    key: CallerKey,
    /// Its requests, the oldest first. One whose client has gone is closed.
    requests: VecDeque<oneshot::Sender<Turn>>,
}

/// A turn, which the next caller gets when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<FairTurns>);

impl FairTurns {
    /// So many turns at once, for which at most `waiting` requests wait, at most `waiting_per_caller` of them of one caller.
    pub(crate) fn new(turns: usize, waiting: usize, waiting_per_caller: usize) -> Arc<Self> {
        Arc::new(Self {
            waiting,
            waiting_per_caller,
            state: Mutex::new(TurnState {
                free: turns,
                callers: VecDeque::new(),
            }),
        })
    }

    /// Waits for a turn of the caller. Dropping the future gives the place in the queue up.
    ///
    /// # Errors
    /// Where too many requests wait already.
    pub(crate) async fn take(self: &Arc<Self>, key: CallerKey) -> Result<Turn, NoTurn> {
        let Some(turn) = self.enqueue(key)? else {
            return Ok(Turn(Arc::clone(self)));
        };
        // A request that still waits is never dropped from the queue.
        turn.await.map_err(|_| NoTurn::All)
    }

    /// Takes a free turn (`None`), or waits in the queue.
    fn enqueue(&self, key: CallerKey) -> Result<Option<oneshot::Receiver<Turn>>, NoTurn> {
        let mut state = self.state();
        if state.free > 0 {
            state.free -= 1;
            return Ok(None);
        }
        if state.waiting() >= self.waiting || state.waiting_of(key) >= self.waiting_per_caller {
            state.forget_gone();
        }
        if state.waiting_of(key) >= self.waiting_per_caller {
            return Err(NoTurn::Own);
        }
        if state.waiting() >= self.waiting {
            return Err(NoTurn::All);
        }
        let (request, turn) = oneshot::channel();
        match state.callers.iter_mut().find(|caller| caller.key == key) {
            Some(caller) => caller.requests.push_back(request),
            None => state.callers.push_back(WaitingCaller {
                key,
                requests: VecDeque::from([request]),
            }),
        }
        Ok(Some(turn))
    }

    /// Gives a turn to the next request whose client still waits, else keeps it free.
    fn pass_on(self: &Arc<Self>) {
        let next = {
            let mut state = self.state();
            let next = state.next();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        // Where its client has just gone, the turn ends here, which passes it on again.
        drop(next.map(|request| request.send(Turn(Arc::clone(self)))));
    }

    /// No code panics while it is locked, so a poisoned lock is consistent.
    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnState {
    fn waiting(&self) -> usize {
        self.callers
            .iter()
            .map(|caller| caller.requests.len())
            .sum()
    }

    fn waiting_of(&self, key: CallerKey) -> usize {
        let caller = self.callers.iter().find(|caller| caller.key == key);
        caller.map_or(0, |caller| caller.requests.len())
    }

    /// Removes the requests whose clients have gone.
    fn forget_gone(&mut self) {
        for caller in &mut self.callers {
            caller.requests.retain(|request| !request.is_closed());
        }
        self.callers.retain(|caller| !caller.requests.is_empty());
    }

    /// The next request: the oldest one of the caller whose turn it is, which then comes after all others.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(mut caller) = self.callers.pop_front() {
            while let Some(request) = caller.requests.pop_front() {
                if request.is_closed() {
                    continue;
                }
                if !caller.requests.is_empty() {
                    self.callers.push_back(caller);
                }
                return Some(request);
            }
        }
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.pass_on();
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

    /// A request for a turn.
    type Request = std::pin::Pin<Box<dyn Future<Output = Result<Turn, NoTurn>>>>;

    /// Requests that wait, each with the caller that it is of.
    struct Waiting(Vec<(u8, Request)>);

    impl Waiting {
        /// Another request of that caller; the reason if it may not even wait.
        fn ask(&mut self, turns: &Arc<FairTurns>, last: u8) -> Result<(), NoTurn> {
            let turns = Arc::clone(turns);
            let mut request = Box::pin(async move { turns.take(caller(last)).await });
            match request
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Pending => self.0.push((last, request)),
                Poll::Ready(outcome) => return outcome.map(|_| ()),
            }
            Ok(())
        }

        /// The request that has got a turn: at most one has.
        fn served(&mut self) -> Option<(u8, Turn)> {
            let mut served = None;
            let mut context = Context::from_waker(Waker::noop());
            self.0.retain_mut(
                |(last, request)| match request.as_mut().poll(&mut context) {
                    Poll::Pending => true,
                    Poll::Ready(turn) => {
                        assert!(served.is_none(), "one turn was given to two requests");
                        served = Some((*last, turn.unwrap()));
                        false
                    }
                },
            );
            served
        }
    }

    /// The only turn of these, which is free.
    fn only(turns: &Arc<FairTurns>) -> Turn {
        let taken = pin!(turns.take(caller(0)));
        match taken.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn.unwrap(),
            Poll::Pending => panic!("no turn is free"),
        }
    }

    /// The callers in the order in which their requests get their turns, one after the other.
    fn order(mut waiting: Waiting, first: Turn) -> Vec<u8> {
        let mut order = Vec::new();
        let mut turn = Some(first);
        while let Some(running) = turn.take() {
            drop(running);
            if let Some((last, next)) = waiting.served() {
                order.push(last);
                turn = Some(next);
            }
        }
        assert!(waiting.0.is_empty());
        order
    }

    #[test]
    fn one_caller_delays_another_by_one_turn() {
        let turns = FairTurns::new(1, 256, 64);
        let running = only(&turns);
        let mut waiting = Waiting(Vec::new());
        for _ in 0..64 {
            waiting.ask(&turns, 1).unwrap();
        }
        waiting.ask(&turns, 2).unwrap();
        waiting.ask(&turns, 3).unwrap();
        waiting.ask(&turns, 3).unwrap();
        let order = order(waiting, running);
        assert_eq!(order.len(), 67);
        assert_eq!(order[..6], [1, 2, 3, 1, 3, 1]);
    }

    #[test]
    fn a_caller_has_a_share_of_the_queue_and_a_gone_request_has_none() {
        let turns = FairTurns::new(1, 5, 2);
        let running = only(&turns);
        let mut waiting = Waiting(Vec::new());
        for last in [1, 1, 2, 2] {
            waiting.ask(&turns, last).unwrap();
        }
        assert_eq!(waiting.ask(&turns, 1), Err(NoTurn::Own));
        waiting.ask(&turns, 3).unwrap();
        assert_eq!(waiting.ask(&turns, 4), Err(NoTurn::All));
        // Clients that have gone count neither for their caller nor for all.
        drop(waiting.0.remove(0));
        drop(waiting.0.remove(1));
        waiting.ask(&turns, 1).unwrap();
        waiting.ask(&turns, 4).unwrap();
        assert_eq!(waiting.ask(&turns, 5), Err(NoTurn::All));
        assert_eq!(order(waiting, running), [1, 2, 3, 4, 1]);
        let state = turns.state();
        assert_eq!((state.free, state.callers.len()), (1, 0));
    }

    #[test]
    fn a_turn_that_nobody_takes_goes_to_the_next() {
        let turns = FairTurns::new(1, 5, 5);
        let running = only(&turns);
        let mut waiting = Waiting(Vec::new());
        for last in 1..=3 {
            waiting.ask(&turns, last).unwrap();
        }
        // The first has its turn, and its client goes before it sees it.
        drop(running);
        drop(waiting.0.remove(0));
        let (last, turn) = waiting.served().unwrap();
        assert_eq!(last, 2);
        assert_eq!(order(waiting, turn), [3]);
        assert_eq!(turns.state().free, 1);
    }
}
