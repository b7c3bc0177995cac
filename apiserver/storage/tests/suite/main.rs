//! The behaviour of a backend, written once and run on each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod harness;
mod writes;

/// Makes one test of each behaviour; `$start` gives a store and what keeps it alive.
macro_rules! behaviours {
    ($start:path) => {
        behaviours! { $start;
            writes: every_write_gets_the_next_revision, an_empty_store_has_a_valid_revision,
                a_write_is_read_back_whole, an_empty_value_is_not_a_delete,
                create_conflicts_with_what_exists, update_conflicts_with_a_newer_write,
                update_conflicts_with_nothing, delete_conflicts_with_a_newer_write,
                deleting_nothing_takes_no_revision, a_key_can_be_created_again_after_its_delete,
                a_value_too_large_is_refused_and_nothing_written, of_racing_creates_one_wins,
                racing_updates_lose_nothing;
        }
    };
    ($start:path; $($group:ident: $($name:ident),+;)+) => {
        $(mod $group {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (store, _alive) = $start().await;
                crate::$group::$name(store).await;
            })+
        })+
    };
}

mod sqlite;
