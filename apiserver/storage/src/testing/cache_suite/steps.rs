//! Other tasks run while many objects are decoded for a selection. Regression: a whole namespace was decoded in one
//! poll.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use futures::poll;

use super::{Setup, setup, small};
use crate::backend::{Backend, Revision};
use crate::cache::Config;
use crate::storage::{ReadAt, Scope, UnlimitedMemory, WatchEvent, WatchFrom};
use crate::testing::storage_suite::{all, object, read_value};
use crate::work_meter::STEP;

/// Number of objects, and bytes of each: four of them make a step.
const OBJECTS: u64 = 40;
const BYTES: usize = STEP / 4;

/// Creates the objects. Returns the revision before the last one.
async fn lay_in(setup: &Setup) -> Revision {
    let mut revisions = Vec::new();
    for number in 0..OBJECTS {
        let key = format!("a/{number:02}");
        let mut object = object(&key, number);
        object.0.insert("padding".to_owned(), "x".repeat(BYTES).into());
        revisions
            .push(setup.fixture.storage.create(&key, object, Default::default()).await.unwrap().revision);
    }
    revisions[revisions.len() - 2]
}

/// Returns a scope of the objects with this value, and the number of objects that it decodes.
fn with_value(value: u64) -> (Scope, Arc<AtomicUsize>) {
    let decoded = Arc::new(AtomicUsize::new(0));
    let counted = decoded.clone();
    let scope = Scope::all().matching(&["spec.value"], move |object| {
        counted.fetch_add(1, SeqCst);
        read_value(object) == value
    });
    (scope, decoded)
}

pub async fn while_a_list_is_made(backend: Arc<dyn Backend>) {
    // With a ring of one event, older states are read from the store.
    let setup = setup(backend, Config { ring_events: 1, ..small() }).await;
    let past = lay_in(&setup).await;
    let last = setup.fixture.set("a/39", 1).await;
    setup.seen(last).await;
    for at in [ReadAt::Latest, ReadAt::Exact(past)] {
        let ((scope, decoded), options, mut most) = (with_value(7), all(at), 0);
        let mut memory = UnlimitedMemory;
        let mut list = pin!(setup.fixture.storage.list(&scope, &options, &mut memory));
        let page = loop {
            let before = decoded.load(SeqCst);
            let polled = poll!(list.as_mut());
            most = most.max(decoded.load(SeqCst) - before);
            match polled {
                Poll::Ready(page) => break page.unwrap(),
                Poll::Pending => tokio::task::yield_now().await,
            }
        };
        assert_eq!((page.items.iter().count(), decoded.load(SeqCst) >= 39), (1, true), "{at:?}");
        assert!(most <= 5, "{most} objects were decoded at once for {at:?}");
    }
}

pub async fn while_a_watch_is_told_of_little(backend: Arc<dyn Backend>) {
    let setup = setup(backend, small()).await;
    let start = setup.fixture.create("b", 7).await;
    lay_in(&setup).await;
    let last = setup.fixture.create("c", 7).await;
    setup.seen(last).await;
    for (from, told) in [(WatchFrom::InitialEvents(ReadAt::Latest), 3), (WatchFrom::After(start), 2)] {
        let (scope, decoded) = with_value(7);
        let mut watcher = setup.fixture.storage.watch(scope, from).await.unwrap();
        let (mut events, mut before, mut most) = (VecDeque::new(), 0, 0);
        let is_object = |event: &&WatchEvent| matches!(event, WatchEvent::Added(_));
        while events.iter().filter(is_object).count() < told {
            if poll!(pin!(poll_fn(|context| watcher.poll_next(context, &mut events)))).is_pending() {
                most = most.max(decoded.load(SeqCst) - before);
                before = decoded.load(SeqCst);
                tokio::task::yield_now().await;
            }
        }
        most = most.max(decoded.load(SeqCst) - before);
        assert!(decoded.load(SeqCst) as u64 > OBJECTS);
        assert!(most <= 5, "{most} objects were decoded at once for {from:?}");
    }
}
