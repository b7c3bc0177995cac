//! The questions of open streams, and when each is asked again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tonic::Status;

use super::Key;
use crate::grpc::body::Ending;
use crate::grpc::recheck::{RecheckResult, StreamCondition};

/// Pause after a review that could not be made.
pub(in crate::grpc) const RETRY: Duration = Duration::from_secs(2);
/// How long reviews of a question may be refused because its user has too many of them, before its streams end: a user
/// cannot keep a stream open by asking too much.
pub(super) const THROTTLED: Duration = Duration::from_secs(30);
const ENDED: &str = "the rights of this stream could not be reviewed, as its user has too many access reviews: close some \
                     streams and open this one again";

/// The questions, each of which is in the schedule or is being asked.
#[derive(Default)]
pub(super) struct Schedule {
    questions: HashMap<Key, ScheduledQuestion>,
    /// When each question that is not being asked has to be asked again.
    times: BTreeSet<(Instant, Key)>,
}

/// A question.
pub(super) struct ScheduledQuestion {
    question: Arc<StreamCondition>,
    /// The user that asked it first.
    pub(super) user: String,
    /// When it has to be asked again; `None` while it is being asked.
    due: Option<Instant>,
    /// Since when reviews are refused because the user has too many of them; `None` if the newest answer is the
    /// host's.
    throttled: Option<Instant>,
    pub(super) streams: HashMap<u64, Arc<Ending>>,
}

impl Schedule {
    pub(super) fn has(&self, key: &Key) -> bool {
        self.questions.contains_key(key)
    }

    /// Adds a question, or makes a known one due at the earlier of both times. Returns its streams. A new question
    /// counts for `user`.
    pub(super) fn add(
        &mut self,
        key: Key,
        question: StreamCondition,
        due: Instant,
        user: &str,
    ) -> &mut HashMap<u64, Arc<Ending>> {
        let Self { questions, times } = self;
        let entry = questions.entry(key).or_insert_with(|| {
            times.insert((due, key));
            let (question, user) = (Arc::new(question), user.to_owned());
            ScheduledQuestion { question, user, due: Some(due), throttled: None, streams: HashMap::new() }
        });
        if let Some(known) = entry.due.filter(|known| due < *known) {
            times.remove(&(known, key));
            times.insert((due, key));
            entry.due = Some(due);
        }
        &mut entry.streams
    }

    /// The questions that are due, to be asked now, and when the next one is due.
    pub(super) fn take_due(&mut self, now: Instant) -> (Vec<(Key, Arc<StreamCondition>)>, Option<Instant>) {
        let mut due = Vec::new();
        while let Some((at, key)) = self.times.first().copied() {
            if at > now {
                return (due, Some(at));
            }
            self.times.remove(&(at, key));
            if let Some(entry) = self.questions.get_mut(&key) {
                entry.due = None;
                due.push((key, entry.question.clone()));
            }
        }
        (due, None)
    }

    /// Takes in an answer: the question is asked again later, or removed with the status that ends its streams.
    pub(super) fn settle(
        &mut self,
        key: &Key,
        answer: RecheckResult,
        now: Instant,
    ) -> Option<(ScheduledQuestion, Status)> {
        let entry = self.questions.get_mut(key)?;
        let due = match answer {
            RecheckResult::Holds(until) => {
                entry.throttled = None;
                until
            }
            RecheckResult::Unknown => now + RETRY,
            RecheckResult::Throttled => {
                let since = *entry.throttled.get_or_insert(now);
                if now.duration_since(since) >= THROTTLED {
                    return Some((self.remove(key)?, Status::resource_exhausted(ENDED)));
                }
                now + RETRY
            }
            // A stream that is opened from here on is a question of its own.
            RecheckResult::Refused(status) => return Some((self.remove(key)?, status)),
        };
        if let Some(before) = entry.due.replace(due) {
            self.times.remove(&(before, *key));
        }
        self.times.insert((due, *key));
        None
    }

    /// Removes a stream from a question, and the question with its last stream.
    pub(super) fn leave(
        &mut self,
        key: &Key,
        stream: u64,
    ) -> (Option<Arc<Ending>>, Option<ScheduledQuestion>) {
        let Some(entry) = self.questions.get_mut(key) else { return (None, None) };
        let ending = entry.streams.remove(&stream);
        let is_last = entry.streams.is_empty();
        (ending, if is_last { self.remove(key) } else { None })
    }

    fn remove(&mut self, key: &Key) -> Option<ScheduledQuestion> {
        let entry = self.questions.remove(key)?;
        if let Some(due) = entry.due {
            self.times.remove(&(due, *key));
        }
        Some(entry)
    }

    /// How many questions there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert!(self.times.len() <= self.questions.len());
        self.questions.len()
    }
}
