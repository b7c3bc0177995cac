//! What the cache guarantees beyond the behaviours of any storage.

pub mod failures;
mod gated_backend;
pub mod pins;
pub mod reads;
pub mod resumed;
pub mod steps;
pub mod wakeups;
pub mod watchers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use gated_backend::GatedBackend;

use crate::backend::{Backend, Revision};
use crate::cache::{Config, Metrics, WatchCache};
use crate::storage::{ReadAt, Scope, UnlimitedMemory};
use crate::store::Store;
use crate::testing::storage_suite::{Fixture, all};

/// Generates one test for each behaviour of the cache; `$start` returns a backend and a value that keeps it alive.
#[macro_export]
macro_rules! cache_behaviours {
    ($start:path) => {
        $crate::cache_behaviours! { $start;
            failures: a_broken_watch_is_resumed_and_no_watcher_notices,
                lost_history_fills_the_cache_anew_and_ends_its_watchers,
                a_backend_that_went_back_in_time_fills_the_cache_anew,
                an_unfilled_cache_refuses_what_it_cannot_serve_and_recovers,
                a_cache_of_which_a_part_has_ended_is_not_alive,
                a_damaged_object_is_told_of_and_nothing_beside_it_suffers,
                a_read_waits_no_longer_than_its_time_whatever_it_waits_for;
            pins: initial_events_go_on_from_the_ring_when_their_state_was_let_go,
                a_state_that_was_let_go_and_has_left_the_ring_is_expired;
            reads: consistent_reads_do_not_read_pairs_from_the_backend,
                exact_reads_and_pages_come_from_the_ring_while_it_holds_them,
                a_list_shows_the_snapshot_that_it_was_asked_for_however_late_it_is_read,
                objects_stay_decoded_until_enough_others_came_and_are_the_same_afterwards,
                readers_share_one_check_that_began_after_they_came,
                a_cache_that_has_fallen_behind_never_answers_a_consistent_read,
                an_event_of_an_own_write_is_not_decoded_again,
                a_list_that_is_not_in_memory_is_read_as_its_memory_budget_allows;
            resumed: a_hundred_watches_that_resume_are_one_watch_of_the_backend,
                history_from_before_the_cache_has_as_many_events_as_a_ring,
                history_from_before_the_cache_has_as_many_bytes_as_a_ring,
                below_a_ring_that_was_trimmed_nothing_is_read_again,
                a_watch_from_before_the_cache_and_the_compaction_is_expired,
                history_is_read_again_when_the_backend_breaks_off,
                more_history_than_is_worth_reading_is_not_read,
                a_damaged_value_of_the_past_ends_the_watches_of_its_namespace,
                a_watch_whose_objects_came_from_the_store_goes_on_with_the_cache,
                a_selection_of_nothing_is_evaluated_in_steps;
            steps: while_a_list_is_made, while_a_watch_is_told_of_little;
            wakeups: a_watcher_sleeps_through_what_does_not_concern_it,
                a_watcher_that_slept_through_more_than_the_ring_goes_on,
                a_watcher_that_was_woken_and_does_not_read_is_expired,
                an_index_changes_nothing_of_what_is_told;
            watchers: a_watcher_that_lags_reads_on_in_the_ring,
                a_watcher_is_expired_only_when_its_history_has_left_the_ring,
                a_watcher_at_the_edge_of_the_ring_goes_on, the_ring_is_bounded_in_bytes_too,
                deleted_objects_count_for_as_long_as_the_ring_has_them,
                dropping_the_cache_ends_its_watchers;
        }
    };
    ($start:path; $($group:ident: $($name:ident),+;)+) => {
        $(mod $group {
            $(#[tokio::test]
            async fn $name() {
                let (backend, _alive) = $start().await;
                $crate::testing::cache_suite::$group::$name(backend).await;
            })+
        })+
    };
}

/// A cache over a gate over a backend.
struct Setup {
    cache: Arc<WatchCache>,
    gate: Arc<GatedBackend>,
    fixture: Fixture,
}

/// A cache whose readers wait for it and for the backend as long as a test lasts.
fn small() -> Config {
    let minutes = Duration::from_secs(600);
    Config { freshness: minutes, patience: minutes, ..Config::default() }
}

/// A cache whose readers go to the store when it is behind. A test has it fall behind for longer than they wait.
fn impatient() -> Config {
    Config { freshness: Duration::from_millis(200), ..small() }
}

fn gated(backend: Arc<dyn Backend>) -> Arc<GatedBackend> {
    Arc::new(GatedBackend::new(backend))
}

fn cache_over(gate: Arc<GatedBackend>, config: Config) -> Setup {
    let cache = Arc::new(WatchCache::start(Store::new(gate.clone(), "test.example", "widgets"), config));
    let fixture = Fixture { storage: cache.clone(), backend: gate.clone() };
    Setup { cache, gate, fixture }
}

async fn setup(backend: Arc<dyn Backend>, config: Config) -> Setup {
    let setup = cache_over(gated(backend), config);
    setup.cache.wait_until_ready().await;
    setup
}

impl Setup {
    /// Waits until the cache has reached a revision.
    async fn seen(&self, revision: Revision) {
        let (scope, options) = (Scope::all(), all(ReadAt::NotOlderThan(revision)));
        loop {
            let listed = self.fixture.storage.list(&scope, &options, &mut UnlimitedMemory).await;
            // While the cache is behind, the store answers.
            if listed.is_ok() && self.metric(|metrics| &metrics.revision) >= revision.0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn metric(&self, which: impl Fn(&Metrics) -> &AtomicU64) -> u64 {
        which(&self.cache.metrics()).load(SeqCst)
    }
}
