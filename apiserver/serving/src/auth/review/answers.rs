//! A cache of the host's answers. Its capacity is shared: when it is full, the payer whose answers weigh most loses the
//! oldest of them, so that no payer pushes out the answers of payers who have less.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::payer::Payer;
use super::singleflight::ReviewKey;

/// Each full KiB of a key and its answer counts as one more answer.
const KIB: usize = 1024;

/// How much is remembered, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLimits {
    /// Maximum answers; one whose key and answer have `n` KiB counts as `1 + n`.
    pub(crate) most: usize,
    /// How long an answer is served without asking again.
    pub(crate) fresh: Duration,
    /// How long an answer is known at all: after `fresh` it only names the user of the token.
    pub(crate) kept: Duration,
}

/// Remembered answers, each counted for the payer whose review it was.
pub(crate) struct Answers<V> {
    room: CacheLimits,
    entries: HashMap<ReviewKey, RememberedAnswer<V>>,
    shares: HashMap<Payer, PayerShare>,
    by_weight: BTreeSet<(usize, Payer)>,
    weight: usize,
    /// Number of the newest entry.
    newest: u64,
}

struct RememberedAnswer<V> {
    answer: V,
    at: Instant,
    number: u64,
    weight: usize,
    payer: Payer,
}

/// The answers of one payer, by number: the oldest first.
#[derive(Default)]
struct PayerShare {
    weight: usize,
    by_age: BTreeMap<u64, ReviewKey>,
}

impl<V> Answers<V> {
    pub(crate) fn new(room: CacheLimits) -> Self {
        Self {
            room,
            entries: HashMap::new(),
            shares: HashMap::new(),
            by_weight: BTreeSet::new(),
            weight: 0,
            newest: 0,
        }
    }

    /// The answer, and whether it is fresh.
    pub(crate) fn get(&self, key: &[u8], now: Instant) -> Option<(&V, bool)> {
        let entry = self.entries.get(key)?;
        let age = now.saturating_duration_since(entry.at);
        (age < self.room.kept).then_some((&entry.answer, age < self.room.fresh))
    }

    /// Until when the answer is fresh, if it is remembered.
    pub(crate) fn fresh_until(&self, key: &[u8]) -> Option<Instant> {
        self.entries.get(key).map(|entry| entry.at + self.room.fresh)
    }

    /// Remembers an answer that takes `bytes` of memory and counts for `payer`.
    pub(crate) fn put(&mut self, key: ReviewKey, answer: V, bytes: usize, payer: Payer, now: Instant) {
        self.remove(&key);
        self.remove_expired(&payer, now);
        let weight = 1 + (key.len() + bytes) / KIB;
        while self.weight + weight > self.room.most && self.remove_one() {}
        self.newest += 1;
        let number = self.newest;
        self.change(&payer, |share| {
            share.weight += weight;
            share.by_age.insert(number, key.clone());
        });
        self.weight += weight;
        self.entries.insert(key, RememberedAnswer { answer, at: now, number, weight, payer });
    }

    /// Forgets the answer, if it is remembered.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        let Some(RememberedAnswer { weight, payer, number, .. }) = self.entries.remove(key) else { return };
        self.weight -= weight;
        self.change(&payer, |share| {
            share.weight -= weight;
            share.by_age.remove(&number);
        });
    }

    fn change(&mut self, payer: &Payer, change: impl FnOnce(&mut PayerShare)) {
        let share = self.shares.entry(payer.clone()).or_default();
        self.by_weight.remove(&(share.weight, payer.clone()));
        change(share);
        if share.weight == 0 {
            self.shares.remove(payer);
        } else {
            self.by_weight.insert((share.weight, payer.clone()));
        }
    }

    /// Forgets the answers of `payer` that are no longer kept.
    fn remove_expired(&mut self, payer: &Payer, now: Instant) {
        while let Some(key) = self.oldest_of(payer) {
            if self.get(&key, now).is_some() {
                return;
            }
            self.remove(&key);
        }
    }

    /// Forgets the oldest answer of the payer whose answers weigh most; returns whether there was one.
    fn remove_one(&mut self) -> bool {
        let heaviest = self.by_weight.last().map(|(_, payer)| payer.clone());
        let key = heaviest.and_then(|payer| self.oldest_of(&payer));
        key.map(|key| self.remove(&key)).is_some()
    }

    fn oldest_of(&self, payer: &Payer) -> Option<ReviewKey> {
        self.shares.get(payer)?.by_age.first_key_value().map(|(_, key)| key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHE_LIMITS: CacheLimits =
        CacheLimits { most: 100, fresh: Duration::from_secs(10), kept: Duration::from_secs(60) };

    fn key(text: &str) -> ReviewKey {
        text.as_bytes().into()
    }

    fn flow(name: &str) -> Payer {
        Payer::User(name.into())
    }

    #[test]
    fn one_callers_answers_do_not_push_out_anothers() {
        let (mut answers, now) = (Answers::new(CACHE_LIMITS), Instant::now());
        for i in 0..40 {
            answers.put(key(&format!("ann {i}")), i, 0, flow("ann"), now);
        }
        for i in 0..10_000 {
            answers.put(key(&format!("bob {i}")), i, 0, flow("bob"), now);
        }
        assert!((0..40).all(|i| answers.get(format!("ann {i}").as_bytes(), now) == Some((&i, true))));
        assert_eq!((answers.entries.len(), answers.weight), (100, 100));
        assert!(answers.get(b"bob 9999", now).is_some());
    }

    #[test]
    fn whoever_is_alone_has_all_the_room() {
        let (mut answers, now) = (Answers::new(CACHE_LIMITS), Instant::now());
        for i in 0..100 {
            answers.put(key(&format!("{i}")), i, 0, flow("ann"), now);
        }
        assert!((0..100).all(|i| answers.get(format!("{i}").as_bytes(), now).is_some()));
    }

    #[test]
    fn an_answer_is_right_for_a_while_and_known_for_longer() {
        let (mut answers, now) = (Answers::new(CACHE_LIMITS), Instant::now());
        answers.put(key("a"), 1, 0, flow("ann"), now);
        assert_eq!(answers.get(b"a", now + Duration::from_secs(9)), Some((&1, true)));
        assert_eq!(answers.get(b"a", now + Duration::from_secs(10)), Some((&1, false)));
        assert_eq!(answers.get(b"a", now + Duration::from_secs(60)), None);
        answers.put(key("b"), 2, 0, flow("ann"), now + Duration::from_secs(60));
        assert_eq!((answers.entries.len(), answers.shares.len(), answers.by_weight.len()), (1, 1, 1));
    }

    #[test]
    fn an_answer_that_comes_again_takes_no_more_room() {
        let (mut answers, now) = (Answers::new(CACHE_LIMITS), Instant::now());
        for i in 0..1000 {
            answers.put(key("a"), i, 0, flow(&format!("{}", i % 7)), now);
        }
        assert_eq!(
            (answers.weight, answers.shares.len(), answers.get(b"a", now)),
            (1, 1, Some((&999, true)))
        );
        assert!(answers.shares.values().all(|share| share.by_age.len() == 1));
        answers.remove(b"a");
        assert!(answers.shares.is_empty() && answers.by_weight.is_empty() && answers.weight == 0);
    }

    /// A thousand denials with a reason of 1 MB each counted like a thousand without one.
    #[test]
    fn a_long_key_or_answer_counts_as_many() {
        let now = Instant::now();
        for (length, bytes) in [(9 * KIB, 0), (1, 9 * KIB), (5 * KIB, 4 * KIB)] {
            let mut answers = Answers::new(CACHE_LIMITS);
            for i in 0..100 {
                answers.put(key(&format!("{i:02}{}", "x".repeat(length - 1))), i, bytes, flow("ann"), now);
            }
            assert_eq!((answers.entries.len(), answers.weight), (10, 100));
        }
    }
}
