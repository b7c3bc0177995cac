//! Open streams, counted for each user, and the questions that are reviewed for as long as they are open.

mod schedule;
#[cfg(test)]
pub(super) use schedule::RETRY;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use schedule::Schedule;
use tokio::sync::Notify;

use super::body::Ending;
use super::recheck::{RecheckResult, StreamCondition};

/// The key of a question: equal questions have equal keys.
pub(super) type Key = [u8; 32];

/// The open streams of one server.
#[derive(Default)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// Notified when a question may be due earlier than all others.
    pub(super) earlier: Notify,
}

#[derive(Default)]
struct State {
    counts: StreamCounts,
    schedule: Schedule,
    /// Number of the newest stream.
    newest: u64,
}

/// A stream that is counted and reviewed until this is dropped.
pub(super) struct OpenStream {
    streams: Arc<Streams>,
    user: String,
    number: u64,
    keys: Vec<Key>,
}

impl Streams {
    /// Counts a stream of `user`, which `ending` ends. Each question comes with the time until which its answer is
    /// known.
    ///
    /// # Errors
    /// 429 if the user has too many open streams or different questions.
    pub(super) fn open(
        self: &Arc<Self>,
        user: &str,
        questions: Vec<(StreamCondition, Instant)>,
        ending: &Arc<Ending>,
    ) -> Result<OpenStream, ApiError> {
        let keyed: Vec<_> = questions.into_iter().map(|(it, due)| (it.key(), it, due)).collect();
        let State { counts, schedule, newest } = &mut *self.state.lock();
        let new = keyed.iter().filter(|(key, ..)| !schedule.has(key)).count();
        counts.check(user, new)?;
        *newest += 1;
        let (number, keys) = (*newest, keyed.iter().map(|(key, ..)| *key).collect());
        let mut stream = OpenStream { streams: self.clone(), user: user.to_owned(), number, keys };
        stream.keys.sort_unstable();
        stream.keys.dedup();
        counts.change(user, |count| count.streams += 1);
        for (key, question, due) in keyed {
            if !schedule.has(&key) {
                counts.change(user, |count| count.questions += 1);
            }
            schedule.add(key, question, due, user).insert(number, ending.clone());
        }
        self.earlier.notify_one();
        Ok(stream)
    }

    /// The questions that are due, to be asked now, and when the next one is due. The answer to each of them has to be
    /// [settled](Self::settle).
    pub(super) fn take_due(&self, now: Instant) -> (Vec<(Key, Arc<StreamCondition>)>, Option<Instant>) {
        self.state.lock().schedule.take_due(now)
    }

    /// Takes in the answer to a question: it is asked again later, or its streams end.
    pub(super) fn settle(&self, key: &Key, answer: RecheckResult, now: Instant) {
        let ended = {
            let State { counts, schedule, .. } = &mut *self.state.lock();
            let ended = schedule.settle(key, answer, now);
            if let Some((entry, _)) = &ended {
                counts.change(&entry.user, |count| count.questions -= 1);
            }
            ended
        };
        self.earlier.notify_one();
        if let Some((entry, status)) = ended {
            entry.streams.values().for_each(|stream| stream.end(status.clone()));
        }
    }

    /// Open streams and different questions.
    #[cfg(test)]
    pub(super) fn count(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.counts.streams(), state.schedule.len())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        // Dropped without the lock: a waker may be the last thing that holds a task.
        let mut removed = Vec::new();
        let State { counts, schedule, .. } = &mut *self.streams.state.lock();
        counts.change(&self.user, |count| count.streams -= 1);
        for key in &self.keys {
            let (ending, entry) = schedule.leave(key, self.number);
            if let Some(entry) = &entry {
                counts.change(&entry.user, |count| count.questions -= 1);
            }
            removed.push((ending, entry));
        }
    }
}

/// Open streams of one user (a [flow](drydock_serving::request::user::User::flow)).
const MAX_STREAMS: usize = 4096;
/// Different questions that are reviewed for the open streams of one user.
const MAX_QUESTIONS: usize = 512;

/// What each user has; users who have nothing are not listed.
#[derive(Default)]
struct StreamCounts(HashMap<String, StreamCount>);

/// What one user has.
#[derive(Default)]
struct StreamCount {
    streams: usize,
    questions: usize,
}

impl StreamCounts {
    /// Refuses one more stream, with so many new questions, to a user who has too many.
    fn check(&self, user: &str, new: usize) -> Result<(), ApiError> {
        let (streams, questions) = self.0.get(user).map_or((0, 0), |user| (user.streams, user.questions));
        if streams >= MAX_STREAMS {
            let why = format!("a user may have {MAX_STREAMS} open streams: close some of them");
            return Err(ApiError::too_many_requests(why, 10));
        }
        if questions + new > MAX_QUESTIONS {
            let why = format!(
                "the open streams of a user may need {MAX_QUESTIONS} different access reviews: close some of them, or \
                 watch all namespaces in one stream"
            );
            return Err(ApiError::too_many_requests(why, 10));
        }
        Ok(())
    }

    /// Changes what a user has.
    fn change(&mut self, user: &str, change: impl FnOnce(&mut StreamCount)) {
        if !self.0.contains_key(user) {
            self.0.insert(user.to_owned(), StreamCount::default());
        }
        let Some(count) = self.0.get_mut(user) else { return };
        change(count);
        if count.streams + count.questions == 0 {
            self.0.remove(user);
        }
    }

    /// Open streams of all users.
    #[cfg(test)]
    fn streams(&self) -> usize {
        self.0.values().map(|user| user.streams).sum()
    }
}

#[cfg(test)]
mod tests;
