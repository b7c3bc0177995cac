//! Limits the log lines of one kind per minute. A kind is one place in the code (a tracing callsite), because clients
//! that cause the lines can choose their content, but not where they are logged.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Lines of one kind are counted over this time.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of errors or warnings of one kind in a window.
const WARNINGS: u32 = 60;
/// Maximum number of infos of one kind in a window. It is higher because a drain logs at least one for each request.
const INFOS: u32 = 600;
/// Maximum number of kinds that wait to be reported. The code logs in fewer places.
const QUEUE: usize = 4096;
/// Maximum bytes of a message that are repeated in the report about its kind.
const SAMPLE: usize = 120;

/// Leaves out lines of a kind beyond its limit. Lines of the levels debug and trace are never left out: an operator has
/// turned them on.
///
/// Every thread that logs takes the lock of `windows`: nothing is formatted or written while it is held.
pub(super) struct Limit {
    windows: Arc<Mutex<Windows>>,
    exceeded: SyncSender<(Identifier, Instant)>,
}

impl Limit {
    /// Starts the thread that reports what was left out; it sleeps while nothing is.
    pub(super) fn start() -> Self {
        let windows = Arc::<Mutex<Windows>>::default();
        let (exceeded, told) = sync_channel(QUEUE);
        let shared = windows.clone();
        // If the thread cannot be started, lines are limited but not reported.
        let _ = std::thread::Builder::new().name("log-limit".to_owned()).spawn(move || tell(&shared, &told));
        Self { windows, exceeded }
    }
}

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let Some(most) = most(metadata) else { return true };
        let verdict = lock(&self.windows).take(metadata.callsite(), most, Instant::now());
        match verdict {
            Verdict::Write => true,
            Verdict::LeaveOut => false,
            Verdict::LeaveOutFirst { until } => {
                // This formats the event, which runs foreign code that may itself log or panic.
                let kind = LineSite::of(event);
                lock(&self.windows).describe(metadata.callsite(), kind);
                // If the queue is full, the report is lost; the limit holds.
                let _ = self.exceeded.try_send((metadata.callsite(), until));
                false
            }
        }
    }
}

/// Returns the maximum number of lines of a kind in a window; `None` if there is no limit.
fn most(metadata: &Metadata<'_>) -> Option<u32> {
    // The reports of this module need no limit.
    if metadata.target() == module_path!() {
        return None;
    }
    match *metadata.level() {
        Level::ERROR | Level::WARN => Some(WARNINGS),
        Level::INFO => Some(INFOS),
        _ => None,
    }
}

/// Reports each kind that exceeded its limit, at the end of its window.
fn tell(windows: &Mutex<Windows>, exceeded: &Receiver<(Identifier, Instant)>) {
    let mut waiting = HashMap::<Identifier, Instant>::new();
    loop {
        let next = waiting.values().min().copied();
        let more = match next {
            None => exceeded.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => exceeded.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        match more {
            Ok((kind, until)) => drop(waiting.insert(kind, until)),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let now = Instant::now();
                let over = waiting.extract_if(|_, until| *until <= now).map(|(kind, _)| kind);
                for kind in over.collect::<Vec<_>>() {
                    let closed = lock(windows).close(&kind);
                    report(closed);
                }
            }
        }
    }
}

fn report(closed: Option<Window>) {
    if let Some(Window { left_out, kind: Some(kind), .. }) = closed {
        let LineSite { target, line, message } = kind;
        let seconds = WINDOW.as_secs();
        tracing::warn!(left_out, seconds, target, line, like = message, "lines of one kind were left out");
    }
}

/// The window of each kind that was logged.
#[derive(Default)]
struct Windows(HashMap<Identifier, Window>);

struct Window {
    until: Instant,
    written: u32,
    left_out: u64,
    kind: Option<LineSite>,
}

/// How a report names a kind of line.
struct LineSite {
    target: &'static str,
    line: Option<u32>,
    message: String,
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Write,
    LeaveOut,
    /// The first line that is left out of a window, which ends at `until`.
    LeaveOutFirst {
        until: Instant,
    },
}

impl Windows {
    fn take(&mut self, kind: Identifier, most: u32, now: Instant) -> Verdict {
        let fresh = || Window { until: now + WINDOW, written: 0, left_out: 0, kind: None };
        let window = match self.0.entry(kind) {
            Entry::Occupied(known) if known.get().until > now => known.into_mut(),
            // If lines were left out, the thread closes the window and reports them.
            Entry::Occupied(known) if known.get().left_out > 0 => {
                let window = known.into_mut();
                (window.until, window.written) = (now + WINDOW, 0);
                window
            }
            Entry::Occupied(mut known) => {
                known.insert(fresh());
                known.into_mut()
            }
            Entry::Vacant(place) => place.insert(fresh()),
        };
        if window.written < most {
            window.written += 1;
            return Verdict::Write;
        }
        window.left_out += 1;
        if window.left_out == 1 { Verdict::LeaveOutFirst { until: window.until } } else { Verdict::LeaveOut }
    }

    fn describe(&mut self, of: Identifier, kind: LineSite) {
        if let Some(window) = self.0.get_mut(&of) {
            window.kind = Some(kind);
        }
    }

    /// Removes the window of a kind and returns it.
    fn close(&mut self, kind: &Identifier) -> Option<Window> {
        self.0.remove(kind)
    }
}

impl LineSite {
    fn of(event: &Event<'_>) -> Self {
        let mut message = Message(String::new());
        event.record(&mut message);
        let Message(mut text) = message;
        text.truncate(text.floor_char_boundary(SAMPLE));
        let metadata = event.metadata();
        Self { target: metadata.target(), line: metadata.line(), message: text }
    }
}

/// The text of an event's message.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

fn lock(windows: &Mutex<Windows>) -> std::sync::MutexGuard<'_, Windows> {
    windows.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tracing::callsite::Callsite;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn kind() -> Identifier {
        struct Here;
        impl Callsite for Here {
            fn set_interest(&self, _: tracing::subscriber::Interest) {}
            fn metadata(&self) -> &Metadata<'_> {
                unreachable!()
            }
        }
        static HERE: Here = Here;
        Identifier(&HERE)
    }

    #[test]
    fn a_kind_of_line_is_written_so_often_and_then_counted() {
        let (mut windows, now) = (Windows::default(), Instant::now());
        let verdicts = (0..100).map(|_| windows.take(kind(), 3, now)).collect::<Vec<_>>();
        assert_eq!(verdicts[..3], [Verdict::Write, Verdict::Write, Verdict::Write]);
        assert_eq!(verdicts[3], Verdict::LeaveOutFirst { until: now + WINDOW });
        assert!(verdicts[4..].iter().all(|verdict| *verdict == Verdict::LeaveOut));
        assert_eq!(windows.close(&kind()).map(|window| window.left_out), Some(97));
        assert_eq!(windows.take(kind(), 3, now), Verdict::Write);
    }

    #[test]
    fn a_window_that_nobody_closed_ends_by_itself_and_keeps_its_count() {
        let (mut windows, now) = (Windows::default(), Instant::now());
        let later = now + WINDOW;
        for _ in 0..5 {
            windows.take(kind(), 3, now);
        }
        assert_eq!(windows.take(kind(), 3, later), Verdict::Write);
        assert_eq!(windows.close(&kind()).map(|window| window.left_out), Some(2));
    }

    /// Sends whether the lock is free while this is formatted.
    struct Shown(Arc<Mutex<Windows>>, SyncSender<bool>);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let _ = self.1.try_send(self.0.try_lock().is_ok());
            f.write_str("shown")
        }
    }

    /// Regression: a value that logged or panicked while it was formatted for a line that was left out caused a
    /// deadlock.
    #[test]
    fn no_event_is_formatted_under_the_lock() {
        let (limit, (free, was_free)) = (Limit::start(), sync_channel(QUEUE));
        let shown = Shown(limit.windows.clone(), free);
        // No other layer formats the lines, so only those that are left out are formatted.
        let subscriber = tracing_subscriber::registry().with(limit);
        tracing::subscriber::with_default(subscriber, || {
            (0..=WARNINGS).for_each(|_| tracing::warn!("{shown}"));
        });
        assert_eq!(was_free.try_iter().collect::<Vec<_>>(), [true]);
    }

    /// Regression: while a report was written to stderr, no thread could log.
    #[test]
    fn no_line_is_written_under_the_lock() {
        let (windows, (free, was_free)) = (Arc::<Mutex<Windows>>::default(), sync_channel(QUEUE));
        let (exceeded, told) = sync_channel(QUEUE);
        let now = Instant::now();
        lock(&windows).take(kind(), 0, now);
        lock(&windows).describe(kind(), LineSite { target: "here", line: None, message: "much".to_owned() });
        exceeded.send((kind(), now)).unwrap();
        let shown = Shown(windows.clone(), free);
        let writer = tracing_subscriber::fmt::layer().with_writer(move || {
            let _ = shown.1.try_send(shown.0.try_lock().is_ok());
            std::io::sink()
        });
        std::thread::spawn(move || {
            let subscriber = tracing_subscriber::registry().with(writer);
            tracing::subscriber::with_default(subscriber, || tell(&windows, &told));
        });
        assert_eq!(was_free.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
