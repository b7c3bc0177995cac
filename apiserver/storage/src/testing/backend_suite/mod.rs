//! The behaviours of a [`Backend`](crate::backend::Backend).

pub mod compaction;
pub mod fences;
pub mod harness;
pub mod reads;
pub mod watches;
pub mod writes;

/// Generates one test for each behaviour of a backend; `$start` returns a store and a value that keeps it alive.
#[macro_export]
macro_rules! backend_behaviours {
    ($start:path) => {
        $crate::backend_behaviours! { $start;
            writes: every_write_gets_the_next_revision, an_empty_store_has_a_valid_revision,
                a_write_is_read_back_whole, an_empty_value_is_not_a_delete,
                create_conflicts_with_what_exists, update_conflicts_with_a_newer_write,
                update_conflicts_with_nothing, delete_conflicts_with_a_newer_write,
                deleting_nothing_takes_no_revision, a_key_can_be_created_again_after_its_delete,
                a_value_too_large_is_refused_and_nothing_written, of_racing_creates_one_wins,
                racing_updates_lose_nothing;
            reads: a_key_is_read_as_it_was_at_a_revision, a_range_is_in_key_order_and_half_open,
                a_prefix_of_any_text_selects_just_what_starts_with_it, an_empty_range_is_empty,
                a_range_leaves_out_what_was_deleted, pages_at_one_revision_make_the_whole_of_that_revision,
                a_range_longer_than_any_page_is_whole, a_revision_of_the_future_is_refused,
                revision_zero_is_no_revision, reads_never_go_back;
            fences: a_write_is_made_only_while_its_guard_stands,
                a_newer_term_ends_the_older_one_on_every_replica, writers_have_terms_of_their_own,
                of_terms_that_begin_at_once_the_newest_stays,
                a_term_begins_at_most_a_day_ahead_or_directly_above_the_newest,
                a_writer_whose_term_is_reset_begins_with_any_on_every_replica;
            compaction: the_boundary_is_readable_and_below_it_nothing, compaction_keeps_what_is_alive,
                compacting_again_or_below_changes_nothing, compacting_the_future_is_refused,
                a_watch_that_starts_below_the_boundary_fails,
                a_watch_from_the_boundary_sees_the_delete_that_stands_there,
                a_delete_is_forgotten_by_the_next_compaction, a_running_watch_loses_nothing_to_compaction,
                two_replicas_take_turns_and_keep_an_interval;
            watches: history_is_told_in_order, what_happens_later_is_told_in_order,
                a_watch_resumes_after_any_revision, a_watch_tells_of_its_keys_only,
                events_carry_what_was_before, a_watch_of_the_future_waits_for_it,
                progress_comes_after_the_events_up_to_it, progress_is_told_to_every_watch,
                progress_is_told_where_nothing_happens, one_store_serves_many_watches_the_same,
                a_watch_of_no_keys_does_not_disturb, concurrent_writers_lose_no_event,
                a_watch_that_is_not_read_holds_up_nobody_and_loses_nothing,
                an_event_is_durable_and_readable_when_it_is_told;
        }
    };
    ($start:path; $($group:ident: $($name:ident),+;)+) => {
        $(mod $group {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (store, _alive) = $start().await;
                $crate::testing::backend_suite::$group::$name(store).await;
            })+
        })+
    };
}
