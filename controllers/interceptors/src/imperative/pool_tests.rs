//! Which eviction is next, and what must not delay the others.

#![allow(clippy::unwrap_used)]

use super::*;

const QUICK: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(40);

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, name)
}

/// Submits `count` pods of a budget.
fn submit(pool: &mut EvictionPool, namespace: &str, budget: &str, pods: usize) {
    for pod in 0..pods {
        pool.submit(&key(namespace, budget), key(namespace, &format!("{budget}{pod}")));
    }
}

/// Takes all that may be in flight.
fn taken(pool: &mut EvictionPool) -> Vec<ObjectKey> {
    std::iter::from_fn(|| pool.take(Instant::now())).collect()
}

fn of(taken: &[ObjectKey], namespace: &str) -> usize {
    taken.iter().filter(|key| &*key.namespace == namespace).count()
}

#[test]
fn budgets_of_a_namespace_take_turns() {
    let mut pool = EvictionPool::default();
    submit(&mut pool, "ns", "a", 3);
    submit(&mut pool, "ns", "b", 1);
    let order: Vec<String> = taken(&mut pool).iter().map(|key| key.name.to_string()).collect();
    assert_eq!(order, ["a0", "b0", "a1", "a2"]);
}

/// A tenant with 1,000 budgets got 1,000 turns for each turn of a tenant with one.
#[test]
fn namespaces_take_turns_however_many_budgets_each_has() {
    let mut pool = EvictionPool::default();
    (0..1_000).for_each(|budget| submit(&mut pool, "many", &format!("{budget}-"), 1));
    submit(&mut pool, "one", "b", 30);
    let first = taken(&mut pool);
    assert_eq!((first.len(), of(&first, "one"), of(&first[..10], "one")), (64, 30, 5));
}

/// The reserve: all slots were taken for up to 45 s each by evictions of one namespace.
#[test]
fn a_namespace_that_finds_all_slots_taken_gets_some_of_a_reserve() {
    let mut pool = EvictionPool::default();
    submit(&mut pool, "loud", "b", 500);
    assert_eq!(taken(&mut pool).len(), 64, "a namespace alone has all");
    for (namespace, slots) in [("second", 8), ("third", 4), ("fourth", 2), ("fifth", 1)] {
        submit(&mut pool, namespace, "b", 500);
        let more = taken(&mut pool);
        assert_eq!((more.len(), of(&more, namespace)), (slots, slots), "{namespace}");
    }
}

#[test]
fn what_is_freed_is_shared_until_all_have_the_same() {
    let mut pool = EvictionPool::default();
    submit(&mut pool, "a", "b", 5_000);
    let mut in_flight = VecDeque::from(taken(&mut pool));
    submit(&mut pool, "b", "b", 5_000);
    for _ in 0..2_000 {
        in_flight.extend(taken(&mut pool));
        pool.finish(&in_flight.pop_front().unwrap(), false, QUICK, Instant::now());
    }
    let in_flight = Vec::from(in_flight);
    let (a, b) = (of(&in_flight, "a"), of(&in_flight, "b"));
    assert!(a.abs_diff(b) <= 8 && (60..=80).contains(&(a + b)), "{a} and {b}");
}

/// Each slow answer lowered the limit of all namespaces to 0.7 of it. A tenant who keeps writing to his
/// budgets makes his evictions slow, because each loses its race inside the host: they left 4 slots for
/// the cluster, and occupied these.
#[test]
fn slow_answers_slow_the_namespace_that_they_are_about_and_no_other() {
    let (mut pool, mut now) = (EvictionPool::default(), Instant::now());
    submit(&mut pool, "slow", "b", 500);
    for _ in 0..20 {
        now += Duration::from_secs(2);
        for key in taken(&mut pool) {
            pool.finish(&key, false, LONG, now);
        }
    }
    submit(&mut pool, "slow", "c", 500);
    submit(&mut pool, "quick", "b", 500);
    let taken = taken(&mut pool);
    assert_eq!((of(&taken, "slow"), of(&taken, "quick")), (4, 60));
}

/// Those that wait for a budget leave the pool meanwhile.
#[test]
fn a_namespace_that_comes_back_is_as_slow_as_it_was_and_few_are_remembered() {
    let (mut pool, now) = (EvictionPool::default(), Instant::now());
    for namespace in (0..300).map(|i| i.to_string()).chain(["slow".to_owned()]) {
        submit(&mut pool, &namespace, "b", 1);
        let key = taken(&mut pool).pop().unwrap();
        pool.finish(&key, false, LONG, now);
    }
    assert_eq!((pool.namespaces.len(), pool.rested.len()), (0, MAX_RESTED_NAMESPACES));
    submit(&mut pool, "slow", "b", 100);
    assert_eq!(taken(&mut pool).len(), 44);
    submit(&mut pool, "quick", "b", 100);
    let key = taken(&mut pool).pop().unwrap();
    pool.finish(&key, false, QUICK, now);
    assert!(!pool.rested.contains_key("quick"));
}

#[test]
fn a_host_that_asks_to_send_less_is_sent_less_of_all() {
    let mut pool = EvictionPool::default();
    submit(&mut pool, "a", "b", 200);
    let key = pool.take(Instant::now()).unwrap();
    pool.finish(&key, true, QUICK, Instant::now());
    submit(&mut pool, "b", "b", 200);
    assert_eq!(taken(&mut pool).len(), 44);
    assert_eq!(pool.load(), (44, 355, 44));
}

#[test]
fn no_more_are_in_flight_than_the_limit() {
    let mut pool = EvictionPool::default();
    submit(&mut pool, "ns", "a", 100);
    let first = taken(&mut pool);
    assert_eq!(first.len(), 64);
    pool.finish(&first[0], false, QUICK, Instant::now());
    assert_eq!(taken(&mut pool).len(), 1);
    assert_eq!(pool.load(), (64, 35, 64));
}

#[test]
fn more_namespaces_than_slots_share_the_slots() {
    let mut pool = EvictionPool::default();
    (0..1_000).for_each(|namespace| submit(&mut pool, &namespace.to_string(), "b", 3));
    assert_eq!(taken(&mut pool).len(), 64);
}

#[test]
fn request_that_waits_is_not_queued_twice() {
    let mut pool = EvictionPool::default();
    submit(&mut pool, "ns", "a", 1);
    submit(&mut pool, "ns", "a", 1);
    pool.submit(&key("ns", "b"), key("ns", "a0"));
    assert_eq!(taken(&mut pool).len(), 1);
}

#[test]
fn pause_holds_everything_until_its_end() {
    let (mut pool, now) = (EvictionPool::default(), Instant::now());
    submit(&mut pool, "ns", "a", 1);
    pool.pause(now + Duration::from_secs(3));
    pool.pause(now + Duration::from_secs(1));
    assert!(pool.take(now + Duration::from_secs(2)).is_none());
    assert!(pool.take(now + Duration::from_secs(3)).is_some());
}
