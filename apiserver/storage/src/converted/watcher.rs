//! Converts the events of a watcher.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use drydock_machinery::ApiError;

use super::Converter;
use crate::backend::Revision;
use crate::pinned::Pinned;
use crate::storage::{StorageError, Stored, WatchEvent, Watcher};
use crate::work_meter::WorkMeter;

/// A watcher whose objects are in the converter's version. An object that cannot be converted ends the watch.
pub(super) struct ConvertingWatcher {
    inner: Box<dyn Watcher>,
    converter: Arc<Converter>,
    /// Events that are not converted yet.
    waiting: VecDeque<WatchEvent>,
    /// Converted events of the same batch. A batch is handed on as a whole: [`Watcher::progress`] knows no revision
    /// in the middle of one.
    converted: VecDeque<WatchEvent>,
    /// Bytes of both, of the objects' JSON.
    batch_bytes: Arc<AtomicUsize>,
    /// What `inner` had sent before it sent this batch.
    sent: Revision,
    work: WorkMeter,
    /// Whether other tasks run before the next events are converted.
    yields: bool,
    has_failed: bool,
}

impl ConvertingWatcher {
    pub fn new(inner: Box<dyn Watcher>, converter: Arc<Converter>) -> Self {
        Self {
            inner,
            converter,
            waiting: VecDeque::new(),
            converted: VecDeque::new(),
            batch_bytes: Arc::default(),
            sent: Revision(0),
            work: WorkMeter::default(),
            yields: false,
            has_failed: false,
        }
    }

    /// Converts what waits, up to a step of work, so that other tasks of the thread run in between.
    fn convert(&mut self) {
        // Watchers that are further behind send several events at once, and no two send the same.
        let is_newest = self.waiting.len() == 1 && self.converted.is_empty();
        while let Some(event) = self.waiting.pop_front() {
            let bytes = json_len(&event);
            let event = self.convert_event(event, is_newest).unwrap_or_else(|error| {
                self.has_failed = true;
                self.waiting.clear();
                WatchEvent::Failed(StorageError::Refused(error))
            });
            self.converted.push_back(event);
            self.yields = self.work.count(bytes);
            if self.yields {
                break;
            }
        }
        let bytes = self.waiting.iter().chain(&self.converted).map(json_len).sum();
        self.batch_bytes.store(bytes, Relaxed);
    }

    fn convert_event(&self, event: WatchEvent, is_newest: bool) -> Result<WatchEvent, ApiError> {
        let converter = &self.converter;
        let convert = |stored: &Arc<Stored>| {
            let make = || converter.read(stored);
            if is_newest { converter.recent.of(stored, make) } else { make() }
        };
        Ok(match event {
            WatchEvent::Added(stored) => WatchEvent::Added(convert(&stored)?),
            WatchEvent::Modified(stored) => WatchEvent::Modified(convert(&stored)?),
            WatchEvent::Deleted(stored) => WatchEvent::Deleted(convert(&stored)?),
            other @ (WatchEvent::Bookmark { .. } | WatchEvent::Failed(_)) => other,
        })
    }
}

impl Watcher for ConvertingWatcher {
    fn poll_next(&mut self, context: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
        if self.has_failed {
            return Poll::Ready(false);
        }
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.waiting.is_empty() {
            self.sent = self.inner.progress();
            if !ready!(self.inner.poll_next(context, &mut self.waiting)) {
                return Poll::Ready(false);
            }
        }
        self.convert();
        if !self.waiting.is_empty() {
            self.yields = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.batch_bytes.store(0, Relaxed);
        events.append(&mut self.converted);
        Poll::Ready(true)
    }

    fn progress(&self) -> Revision {
        if self.waiting.is_empty() { self.inner.progress() } else { self.sent }
    }

    fn pinned(&self) -> Option<Arc<dyn Pinned>> {
        Some(Arc::new(PinnedBatch { inner: self.inner.pinned(), batch_bytes: self.batch_bytes.clone() }))
    }
}

/// What a converting watcher keeps in memory.
struct PinnedBatch {
    inner: Option<Arc<dyn Pinned>>,
    batch_bytes: Arc<AtomicUsize>,
}

impl Pinned for PinnedBatch {
    fn bytes(&self) -> usize {
        self.batch_bytes.load(Relaxed) + self.inner.as_ref().map_or(0, |inner| inner.bytes())
    }

    /// Releases what the watcher below keeps. The batch is converted to its end.
    fn release(&self) {
        if let Some(inner) = &self.inner {
            inner.release();
        }
    }
}

fn json_len(event: &WatchEvent) -> usize {
    match event {
        WatchEvent::Added(stored) | WatchEvent::Modified(stored) | WatchEvent::Deleted(stored) => {
            stored.json_len()
        }
        WatchEvent::Bookmark { .. } | WatchEvent::Failed(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::task::Waker;

    use drydock_machinery::Object;
    use drydock_machinery::kind::{Kind, Names};
    use drydock_machinery::schema::{Schema, Shape};
    use drydock_machinery::versions::Versions;
    use serde_json::json;

    use super::*;
    use crate::work_meter::STEP;

    struct Widget(Schema);

    const NAMES: Names = Names {
        group: "test.example",
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        singular: "widget",
        short_names: &[],
        categories: &[],
        namespaced: true,
    };

    impl Kind for Widget {
        fn names(&self) -> &Names {
            &NAMES
        }
        fn schema(&self) -> &Schema {
            &self.0
        }
    }

    /// Sends one batch.
    struct OneBatch(VecDeque<WatchEvent>);

    impl Watcher for OneBatch {
        fn poll_next(&mut self, _: &mut Context<'_>, events: &mut VecDeque<WatchEvent>) -> Poll<bool> {
            events.append(&mut self.0);
            Poll::Ready(true)
        }

        fn progress(&self) -> Revision {
            Revision(9)
        }

        fn pinned(&self) -> Option<Arc<dyn Pinned>> {
            None
        }
    }

    fn added(text: usize) -> WatchEvent {
        let object = json!({"metadata": {"name": "a"}, "spec": {"number": "x".repeat(text)}});
        let object = Object::from_json(object.to_string().as_bytes()).unwrap();
        WatchEvent::Added(Arc::new(Stored::new("a".to_owned(), object, Revision(1))))
    }

    #[test]
    fn a_batch_that_is_not_converted_yet_counts_as_memory_of_the_watch() {
        let versions =
            Arc::new(Versions::new(Arc::new(Widget(Schema::new("Anything.", Shape::Raw))) as Arc<dyn Kind>));
        let [stored, served] = [NAMES.api_version(), NAMES.api_version()];
        let converter = Arc::new(Converter { versions, stored, served, recent: Default::default() });
        let inner = OneBatch([STEP, STEP, 1].map(added).into());
        let mut watcher = ConvertingWatcher::new(Box::new(inner), converter);
        let (pinned, mut events) = (watcher.pinned().unwrap(), VecDeque::new());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pinned.bytes(), 0);
        assert!(watcher.poll_next(&mut context, &mut events).is_pending());
        assert!(pinned.bytes() > 2 * STEP, "{}", pinned.bytes());
        while events.is_empty() {
            let _ = watcher.poll_next(&mut context, &mut events);
        }
        assert_eq!((events.len(), pinned.bytes()), (3, 0));
    }
}
