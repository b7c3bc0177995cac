//! Converts the events of a watcher.

use std::collections::VecDeque;
use std::sync::Arc;
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
            let bytes = object_of(&event).map_or(0, |stored| stored.json_len());
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
        events.append(&mut self.converted);
        Poll::Ready(true)
    }

    fn progress(&self) -> Revision {
        if self.waiting.is_empty() { self.inner.progress() } else { self.sent }
    }

    fn pinned(&self) -> Option<Arc<dyn Pinned>> {
        self.inner.pinned()
    }
}

fn object_of(event: &WatchEvent) -> Option<&Arc<Stored>> {
    match event {
        WatchEvent::Added(stored) | WatchEvent::Modified(stored) | WatchEvent::Deleted(stored) => {
            Some(stored)
        }
        WatchEvent::Bookmark { .. } | WatchEvent::Failed(_) => None,
    }
}
