//! The behaviours of a [`Storage`](crate::storage::Storage), for the store and for the cache over each backend,
//! and for another version than the stored one.

mod harness;
pub mod lists;
mod other_version;
pub mod property;
pub mod reads;
pub mod watches;
pub mod writes;

pub use harness::{Fixture, Follower, WATCH_DEADLINE, all, even, object, read_value};
pub use other_version::on_other_version;

use std::sync::Arc;

use crate::backend::Backend;
use crate::cache::{Config, WatchCache};
use crate::store::Store;

/// Generates one test for each behaviour of a storage; `$start` returns a [`Fixture`] and a value that keeps it alive.
#[macro_export]
macro_rules! storage_behaviours {
    ($start:path) => {
        $crate::storage_behaviours! { $start;
            writes: a_created_object_reads_back_with_its_revision, a_name_is_taken_once,
                what_was_never_written_is_not_found, the_present_state_is_replaced, an_equal_object_is_not_written,
                a_conflict_carries_the_newest_state, an_equal_object_conflicts_with_a_newer_one,
                a_conflict_with_a_deletion_carries_nothing, an_object_that_was_created_anew_is_a_conflict,
                a_write_whose_guard_has_changed_is_not_made, an_object_that_is_too_large_is_given_back,
                a_delete_leaves_nothing_and_returns_the_last_state, racing_writes_lose_nothing,
                own_writes_are_read_back_at_once;
            reads: damaged_bytes_are_an_error_and_not_a_panic, exact_reads_show_the_past,
                a_revision_from_the_future_is_too_large, not_older_than_sees_at_least_that_revision,
                a_compacted_revision_is_expired_or_right;
            lists: an_empty_list_has_a_revision, a_list_is_in_key_order_and_within_its_namespace,
                a_single_object_is_a_list_of_one, pages_are_consistent_while_others_write,
                a_selection_fills_its_pages, remaining_is_known_without_a_selection,
                a_prefix_is_not_mistaken_for_a_longer_name, exact_lists_show_the_past,
                more_than_one_batch_is_one_list;
            watches: changes_come_in_order_once_each, a_watch_resumes_after_any_revision,
                initial_events_end_with_a_bookmark, entering_and_leaving_the_selection,
                a_watch_of_one_namespace_sees_nothing_else, a_watch_of_one_object_sees_nothing_else,
                a_deletion_carries_the_last_state_at_its_revision, progress_is_never_ahead,
                progress_is_not_behind_what_was_delivered,
                a_watch_from_the_future_waits, other_resources_move_progress_but_send_nothing,
                a_change_whose_state_before_is_compacted_ends_a_watch, a_compacted_start_is_expired,
                many_initial_events_come_whole;
            property: a_watcher_that_applies_its_events_has_the_list;
        }
    };
    ($start:path; $($group:ident: $($name:ident),+;)+) => {
        $(mod $group {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (fixture, _alive) = $start().await;
                $crate::testing::storage_suite::$group::$name(fixture).await;
            })+
        })+
    };
}

/// The store alone.
pub fn on_store(backend: Arc<dyn Backend>) -> Fixture {
    let store = Store::new(backend.clone(), "test.example", "widgets");
    Fixture { storage: Arc::new(store), backend }
}

/// The cache over the store.
pub async fn on_cache(backend: Arc<dyn Backend>) -> Fixture {
    let store = Store::new(backend.clone(), "test.example", "widgets");
    let freshness = std::time::Duration::from_millis(500);
    let cache = WatchCache::start(store, Config { freshness, ..Config::default() });
    cache.wait_until_ready().await;
    Fixture { storage: Arc::new(cache), backend }
}
