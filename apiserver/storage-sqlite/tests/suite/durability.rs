//! Acknowledged writes survive a process that is killed (from etcd's history: an acknowledged write lost in a crash
//! of a single node; a revision that went back after a crash in compaction).
//!
//! The test runs itself as a child that writes and prints each acknowledged revision, kills it with SIGKILL in the
//! middle, and opens the file again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use drydock_storage::backend::{Revision, prefix_range};
use drydock_storage::testing::backend_suite::harness::*;
use drydock_storage_sqlite::{SqliteBackend, SqliteOptions};

/// Environment variable with the path of the child's file.
const FILE: &str = "DRYDOCK_SUITE_CRASH_FILE";
/// Environment variable that makes the child compact while it writes.
const COMPACT: &str = "DRYDOCK_SUITE_CRASH_COMPACT";

/// Not a test of its own: the child process runs it. Without a file it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_child_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let store: Store = Arc::new(SqliteBackend::open(path, SqliteOptions::default()).unwrap());
    let compact = std::env::var_os(COMPACT).is_some();
    let writers = (0..8).map(|writer| tokio::spawn(write_forever(store.clone(), writer, compact)));
    futures::future::join_all(writers.collect::<Vec<_>>()).await;
}

async fn write_forever(store: Store, writer: usize, compact: bool) {
    let mut busy = None;
    for n in 0_u64.. {
        let kept = format!("/kept/{writer}/{n}");
        let at = create(&store, &kept, &kept).await;
        println!("ack {} {kept}", at.0);
        let at = committed(cas(&store, &format!("/busy/{writer}"), busy, value(n.to_string())).await);
        println!("ack {} /busy/{writer}", at.0);
        busy = Some(at);
        if compact && writer == 0 {
            store.compact(at).await.unwrap();
        }
    }
}

fn child(path: &Path, compact: bool) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "durability::the_child_writes_until_it_is_killed", "--nocapture"]);
    command.env(FILE, path).stdout(Stdio::piped()).stderr(Stdio::null());
    if compact {
        command.env(COMPACT, "1");
    }
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Lets a child acknowledge `count` writes, kills it, and returns all that it acknowledged.
fn crash(path: &Path, count: usize, compact: bool) -> Vec<(u64, String)> {
    let (mut process, output) = child(path, compact);
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        // What is left in the pipe was written, and so acknowledged, before the child was killed.
        acknowledged.extend(line.ok().as_deref().and_then(acknowledgement));
        if acknowledged.len() == count {
            process.kill().unwrap();
        }
    }
    process.wait().unwrap();
    assert!(acknowledged.len() >= count, "the child ended early");
    acknowledged
}

/// Parses an acknowledgement; `None` for a line of the test runner, and for one that was cut off.
fn acknowledgement(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_once("ack ")?.1.split(' ');
    let revision = words.next()?.parse().ok()?;
    Some((revision, words.next()?.to_owned()))
}

async fn crashes(compact: bool) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut highest = 0;
    for round in 0..6 {
        let acknowledged = crash(&path, 50 + 37 * round, compact);
        let store: Store = Arc::new(SqliteBackend::open(&path, SqliteOptions::default()).unwrap());
        let current = store.current_revision().await.unwrap();
        for (revision, key) in &acknowledged {
            assert!(*revision > highest, "revision {revision} was given out before");
            assert!(current.0 >= *revision, "{current:?} is before the acknowledged {revision}");
            let (pair, _) = store.get(key, None).await.unwrap();
            let pair = pair.unwrap_or_else(|| panic!("{key} at {revision} is lost"));
            assert!(pair.mod_revision.0 >= *revision);
            if key.starts_with("/kept") && pair.mod_revision.0 == *revision {
                assert_eq!(pair.value, key.as_bytes());
            }
        }
        check_log(&store, current, compact).await;
        // The next child creates the same keys again.
        clear(&store).await;
        highest = store.current_revision().await.unwrap().0;
    }
}

/// A watch of the whole log has no gap and no event twice.
async fn check_log(store: &Store, current: Revision, compact: bool) {
    if compact {
        return;
    }
    let mut watch = Watch::start(store, "/", Revision(1)).await;
    let events = watch.events(usize::try_from(current.0 - 1).unwrap()).await;
    let revisions: Vec<_> = events.iter().map(|event| event.revision.0).collect();
    assert_eq!(revisions, (2..=current.0).collect::<Vec<_>>());
}

async fn clear(store: &Store) {
    for pair in store.range(prefix_range("/"), 0, None).await.unwrap().items {
        delete(store, &pair.key, pair.mod_revision).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_kill_9() {
    crashes(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_revision_never_goes_back_when_killed_in_compaction() {
    crashes(true).await;
}
