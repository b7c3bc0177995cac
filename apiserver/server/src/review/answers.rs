//! Answers of the host, remembered for a while. Room is shared: when there is none left, whoever has the most of it
//! loses their oldest answer, so that nobody pushes out the answers of those who have less.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::caller::Payer;
use super::flights::Key;

/// Every so many bytes of a key count as one more answer.
const BYTES: usize = 1024;

/// How much is remembered, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Answers.
    pub(crate) most: usize,
    /// An answer is right for so long,
    pub(crate) fresh: Duration,
    /// and known to have been right for so long.
    pub(crate) kept: Duration,
}

/// Remembered answers, each in the share of the payer who caused it.
pub(crate) struct Answers<V> {
    room: Room,
    entries: HashMap<Key, Entry<V>>,
    by_age: VecDeque<Stamp>,
    shares: HashMap<Payer, Share>,
    by_weight: BTreeSet<(usize, Payer)>,
    weight: usize,
    serial: u64,
}

/// An entry as it was put in; one that was put in again, or removed, has no stamp that is right.
type Stamp = (Key, u64);

struct Entry<V> {
    answer: V,
    at: Instant,
    serial: u64,
    weight: usize,
    payer: Payer,
}

#[derive(Default)]
struct Share {
    weight: usize,
    by_age: VecDeque<Stamp>,
}

impl<V> Answers<V> {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            room,
            entries: HashMap::new(),
            by_age: VecDeque::new(),
            shares: HashMap::new(),
            by_weight: BTreeSet::new(),
            weight: 0,
            serial: 0,
        }
    }

    /// The answer, and whether it is still right.
    pub(crate) fn get(&self, key: &[u8], now: Instant) -> Option<(&V, bool)> {
        let entry = self.entries.get(key)?;
        let age = now.saturating_duration_since(entry.at);
        (age < self.room.kept).then_some((&entry.answer, age < self.room.fresh))
    }

    /// Remembers an answer that `payer` caused.
    pub(crate) fn put(&mut self, key: Key, answer: V, payer: Payer, now: Instant) {
        self.remove(&key);
        self.forget_old(now);
        let weight = 1 + key.len() / BYTES;
        while self.weight + weight > self.room.most && self.forget_one() {}
        self.serial += 1;
        let stamp = (key.clone(), self.serial);
        self.by_age.push_back(stamp.clone());
        self.reweigh(&payer, |share| {
            share.weight += weight;
            share.by_age.push_back(stamp);
        });
        self.weight += weight;
        self.entries.insert(key, Entry { answer, at: now, serial: self.serial, weight, payer });
        self.drop_wrong_stamps();
    }

    /// Forgets the answer, if it is remembered.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        let Some(Entry { weight, payer, .. }) = self.entries.remove(key) else { return };
        self.weight -= weight;
        self.reweigh(&payer, |share| share.weight -= weight);
    }

    fn reweigh(&mut self, payer: &Payer, change: impl FnOnce(&mut Share)) {
        let share = self.shares.entry(payer.clone()).or_default();
        self.by_weight.remove(&(share.weight, payer.clone()));
        change(share);
        if share.weight == 0 {
            self.shares.remove(payer);
        } else {
            self.by_weight.insert((share.weight, payer.clone()));
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((key, serial)) = self.by_age.front() {
            let entry = self.entries.get(key).filter(|entry| entry.serial == *serial);
            if entry.is_some_and(|entry| now.saturating_duration_since(entry.at) < self.room.kept) {
                return;
            }
            if let Some((key, _)) = self.by_age.pop_front().filter(|_| entry.is_some()) {
                self.remove(&key);
            }
        }
    }

    /// Forgets the oldest answer of whoever has the most; returns whether there was one.
    fn forget_one(&mut self) -> bool {
        let Some((_, payer)) = self.by_weight.last().cloned() else { return false };
        let Some(share) = self.shares.get_mut(&payer) else { return false };
        while let Some((key, serial)) = share.by_age.pop_front() {
            if self.entries.get(&key).is_some_and(|entry| entry.serial == serial) {
                self.remove(&key);
                return true;
            }
        }
        false
    }

    /// Stamps are never more than a few times the entries.
    fn drop_wrong_stamps(&mut self) {
        let entries = &self.entries;
        let is_right = |(key, serial): &Stamp| entries.get(key).is_some_and(|entry| entry.serial == *serial);
        if self.by_age.len() > 2 * entries.len() + 64 {
            self.by_age.retain(is_right);
            self.shares.values_mut().for_each(|share| share.by_age.retain(is_right));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { most: 100, fresh: Duration::from_secs(10), kept: Duration::from_secs(60) };

    fn key(text: &str) -> Key {
        text.as_bytes().into()
    }

    fn flow(name: &str) -> Payer {
        Payer::Flow(name.into())
    }

    #[test]
    fn one_callers_answers_do_not_push_out_anothers() {
        let (mut answers, now) = (Answers::new(ROOM), Instant::now());
        for i in 0..40 {
            answers.put(key(&format!("ann {i}")), i, flow("ann"), now);
        }
        for i in 0..10_000 {
            answers.put(key(&format!("bob {i}")), i, flow("bob"), now);
        }
        assert!((0..40).all(|i| answers.get(format!("ann {i}").as_bytes(), now) == Some((&i, true))));
        assert_eq!((answers.entries.len(), answers.weight), (100, 100));
        assert!(answers.by_age.len() < 300 && answers.get(b"bob 9999", now).is_some());
    }

    #[test]
    fn whoever_is_alone_has_all_the_room() {
        let (mut answers, now) = (Answers::new(ROOM), Instant::now());
        for i in 0..100 {
            answers.put(key(&format!("{i}")), i, flow("ann"), now);
        }
        assert!((0..100).all(|i| answers.get(format!("{i}").as_bytes(), now).is_some()));
    }

    #[test]
    fn an_answer_is_right_for_a_while_and_known_for_longer() {
        let (mut answers, now) = (Answers::new(ROOM), Instant::now());
        answers.put(key("a"), 1, flow("ann"), now);
        assert_eq!(answers.get(b"a", now + Duration::from_secs(9)), Some((&1, true)));
        assert_eq!(answers.get(b"a", now + Duration::from_secs(10)), Some((&1, false)));
        assert_eq!(answers.get(b"a", now + Duration::from_secs(60)), None);
        answers.put(key("b"), 2, flow("bob"), now + Duration::from_secs(60));
        assert_eq!((answers.entries.len(), answers.shares.len(), answers.by_weight.len()), (1, 1, 1));
    }

    #[test]
    fn an_answer_that_comes_again_takes_no_more_room() {
        let (mut answers, now) = (Answers::new(ROOM), Instant::now());
        for i in 0..1000 {
            answers.put(key("a"), i, flow(&format!("{}", i % 7)), now);
        }
        assert_eq!(
            (answers.weight, answers.shares.len(), answers.get(b"a", now)),
            (1, 1, Some((&999, true)))
        );
        assert!(answers.by_age.len() <= 67);
        answers.remove(b"a");
        assert!(answers.shares.is_empty() && answers.by_weight.is_empty() && answers.weight == 0);
    }

    #[test]
    fn a_long_key_takes_the_room_of_many() {
        let (mut answers, now) = (Answers::new(ROOM), Instant::now());
        for i in 0..100 {
            answers.put(key(&format!("{i}{}", "x".repeat(9 * BYTES))), i, flow("ann"), now);
        }
        assert_eq!(answers.entries.len(), 10);
    }
}
