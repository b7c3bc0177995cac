//! Open streams, counted for each user, and the questions that are reviewed for as long as they are open.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tonic::Status;

use super::ending::Ending;
use super::reviews::Question;

/// Open streams of one user (a [flow](crate::user::User::flow)).
pub(super) const MAX_STREAMS: usize = 4096;
/// Different questions that are reviewed for the open streams of one user.
pub(super) const MAX_QUESTIONS: usize = 512;
/// How long reviews of a question may be refused because its user has too many of them, before its streams end: a user
/// cannot keep a stream open by asking too much.
const THROTTLED: Duration = Duration::from_secs(30);

/// What tells one question from another.
pub(super) type Key = [u8; 32];

/// The open streams of one server.
#[derive(Default)]
pub(super) struct Streams {
    state: Mutex<State>,
    /// A question is due earlier than all others.
    pub(super) earlier: Notify,
}

#[derive(Default)]
struct State {
    /// Users without open streams are not listed.
    users: HashMap<String, Counts>,
    questions: HashMap<Key, Entry>,
    /// When each question has to be asked again that is not being asked.
    schedule: BTreeSet<(Instant, Key)>,
    /// Number of the newest stream.
    newest: u64,
}

#[derive(Default)]
struct Counts {
    streams: usize,
    questions: usize,
}

struct Entry {
    question: Arc<Question>,
    /// Who asked it first.
    user: String,
    /// When it has to be asked again; `None` while it is being asked.
    due: Option<Instant>,
    /// Since when reviews are refused because the user has too many of them; none if the newest answer is the host's.
    throttled: Option<Instant>,
    streams: HashMap<u64, Arc<Ending>>,
}

/// A stream that is counted and reviewed until this is dropped.
pub(super) struct OpenStream {
    streams: Arc<Streams>,
    user: String,
    number: u64,
    keys: Vec<Key>,
}

impl Streams {
    /// Counts a stream of `user`, which `ending` ends. Each question comes with the time until which its answer is known.
    ///
    /// # Errors
    /// 429 if the user has too many open streams or different questions.
    pub(super) fn open(
        self: &Arc<Self>,
        user: &str,
        questions: Vec<(Question, Instant)>,
        ending: &Arc<Ending>,
    ) -> Result<OpenStream, ApiError> {
        let keyed: Vec<_> = questions.into_iter().map(|(it, due)| (it.key(), it, due)).collect();
        let state = &mut *self.state.lock();
        let new = keyed.iter().filter(|(key, ..)| !state.questions.contains_key(key)).count();
        state.check(user, new)?;
        state.newest += 1;
        let (number, keys) = (state.newest, keyed.iter().map(|(key, ..)| *key).collect());
        let mut stream = OpenStream { streams: self.clone(), user: user.to_owned(), number, keys };
        stream.keys.sort_unstable();
        stream.keys.dedup();
        state.users.entry(user.to_owned()).or_default().streams += 1;
        for (key, question, due) in keyed {
            state.add(key, question, due, user).streams.insert(number, ending.clone());
        }
        self.earlier.notify_one();
        Ok(stream)
    }

    /// The questions that are due, to be asked now, and when the next one is due. Each of them has to be
    /// [answered](Self::answered).
    pub(super) fn take_due(&self, now: Instant) -> (Vec<(Key, Arc<Question>)>, Option<Instant>) {
        let state = &mut *self.state.lock();
        let mut due = Vec::new();
        while let Some((at, key)) = state.schedule.first().copied() {
            if at > now {
                return (due, Some(at));
            }
            state.schedule.remove(&(at, key));
            if let Some(entry) = state.questions.get_mut(&key) {
                entry.due = None;
                due.push((key, entry.question.clone()));
            }
        }
        (due, None)
    }

    /// The answer to a question is yes, and it is asked again when that is `due`.
    pub(super) fn held(&self, key: &Key, due: Instant) {
        if let Some(entry) = self.state.lock().questions.get_mut(key) {
            entry.throttled = None;
        }
        self.answered(key, Ok(due));
    }

    /// A question could not be asked because its user has too many reviews: it is asked again when it is `due`, or ends
    /// its streams when this has lasted too long.
    pub(super) fn throttled(&self, key: &Key, now: Instant, due: Instant) {
        let since = {
            let state = &mut *self.state.lock();
            state.questions.get_mut(key).map(|entry| *entry.throttled.get_or_insert(now))
        };
        let is_over = since.is_some_and(|since| now.duration_since(since) >= THROTTLED);
        let ended = || {
            let why = "the rights of this stream could not be reviewed, as its user has too many access reviews: close \
                       some streams and open this one again";
            Status::resource_exhausted(why)
        };
        self.answered(key, if is_over { Err(ended()) } else { Ok(due) });
    }

    /// A question has been asked: it is asked again when it is `due`, or ends its streams with a status.
    pub(super) fn answered(&self, key: &Key, outcome: Result<Instant, Status>) {
        let ended: Vec<_> = {
            let state = &mut *self.state.lock();
            match &outcome {
                Ok(due) => {
                    state.plan(key, *due);
                    Vec::new()
                }
                // A stream that is opened from here on is a question of its own.
                Err(_) => {
                    state.remove_question(key).into_iter().flat_map(|it| it.streams.into_values()).collect()
                }
            }
        };
        self.earlier.notify_one();
        if let Err(status) = outcome {
            ended.iter().for_each(|stream| stream.end(status.clone()));
        }
    }

    /// Open streams and different questions; each question is in the schedule or is being asked.
    #[cfg(test)]
    pub(super) fn count(&self) -> (usize, usize) {
        let state = self.state.lock();
        assert!(state.schedule.len() <= state.questions.len());
        (state.users.values().map(|user| user.streams).sum(), state.questions.len())
    }
}

impl State {
    fn check(&self, user: &str, new: usize) -> Result<(), ApiError> {
        let (streams, questions) = self.users.get(user).map_or((0, 0), |user| (user.streams, user.questions));
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

    /// The entry of a question, with the earlier one of two times at which it is due.
    fn add(&mut self, key: Key, question: Question, due: Instant, user: &str) -> &mut Entry {
        let Self { users, questions, schedule, .. } = self;
        let entry = questions.entry(key).or_insert_with(|| {
            users.entry(user.to_owned()).or_default().questions += 1;
            schedule.insert((due, key));
            let (question, user) = (Arc::new(question), user.to_owned());
            Entry { question, user, due: Some(due), throttled: None, streams: HashMap::new() }
        });
        if let Some(known) = entry.due.filter(|known| due < *known) {
            schedule.remove(&(known, key));
            schedule.insert((due, key));
            entry.due = Some(due);
        }
        entry
    }

    /// A question that has been asked is asked again at `due`.
    fn plan(&mut self, key: &Key, due: Instant) {
        let Some(entry) = self.questions.get_mut(key) else { return };
        if let Some(before) = entry.due.replace(due) {
            self.schedule.remove(&(before, *key));
        }
        self.schedule.insert((due, *key));
    }

    fn remove_question(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.questions.remove(key)?;
        if let Some(due) = entry.due {
            self.schedule.remove(&(due, *key));
        }
        self.change(&entry.user, |counts| counts.questions -= 1);
        Some(entry)
    }

    fn change(&mut self, user: &str, change: impl FnOnce(&mut Counts)) {
        let Some(counts) = self.users.get_mut(user) else { return };
        change(counts);
        if counts.streams + counts.questions == 0 {
            self.users.remove(user);
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        // Dropped without the lock: a waker may be the last thing that holds a task.
        let mut removed = Vec::new();
        let state = &mut *self.streams.state.lock();
        state.change(&self.user, |counts| counts.streams -= 1);
        for key in &self.keys {
            let Some(entry) = state.questions.get_mut(key) else { continue };
            removed.extend(entry.streams.remove(&self.number));
            if entry.streams.is_empty() {
                state.remove_question(key);
            }
        }
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
