//! The log backend: a thread of its own that writes lines, in the order in which they come through a bounded queue
//! (k8s.io/apiserver plugin/pkg/audit/log, plugin/pkg/audit/buffered).

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::counts::AuditMetrics;

/// Whether answers wait for their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They do not; events that find the queue full are lost, and counted.
    Batch,
    /// They do.
    #[default]
    Blocking,
    /// They do, and a request that cannot be logged when it comes is refused.
    BlockingStrict,
}

impl Mode {
    /// Every mode, by the name that the flag takes.
    pub const NAMES: [(&'static str, Self); 3] =
        [("batch", Self::Batch), ("blocking", Self::Blocking), ("blocking-strict", Self::BlockingStrict)];
}

/// Writes lines.
#[derive(Clone)]
pub struct AuditLog {
    lines: mpsc::Sender<QueuedLine>,
    /// Permits for lines that wait for room in the queue although no answer waits for them.
    waiting: Arc<Semaphore>,
    places: u32,
    mode: Mode,
    counts: AuditMetrics,
}

enum QueuedLine {
    Line {
        line: Vec<u8>,
        written: Option<oneshot::Sender<bool>>,
    },
    /// Answered once everything before it has been written.
    Flush(oneshot::Sender<()>),
}

impl AuditLog {
    /// Starts the thread that writes to `out`, with a queue of `buffer` lines. As many more lines, whose answers
    /// have been sent already, may wait for room in it.
    pub fn start(
        out: impl Write + Send + 'static,
        mode: Mode,
        buffer: usize,
        counts: AuditMetrics,
    ) -> io::Result<Self> {
        let places = u32::try_from(buffer.max(1)).unwrap_or(u32::MAX);
        let (lines, queue) = mpsc::channel(buffer.max(1));
        let waiting = Arc::new(Semaphore::new(buffer.max(1)));
        let writer = Writer { out: Box::new(out), counts: counts.clone() };
        thread::Builder::new().name("audit-log".to_owned()).spawn(move || writer.run(queue))?;
        Ok(Self { lines, waiting, places, mode, counts })
    }

    /// Writes a line, as the mode says; `false` if the request must be refused.
    pub async fn write(&self, line: Vec<u8>) -> bool {
        if self.mode == Mode::Batch {
            self.queue(line);
            return true;
        }
        let (written, answer) = oneshot::channel();
        let entry = QueuedLine::Line { line, written: Some(written) };
        let written = self.lines.send(entry).await.is_ok() && answer.await.unwrap_or(false);
        written || self.mode == Mode::Blocking
    }

    /// Writes a line whose answer has been sent already, so that nothing waits for it. If there is not even room to
    /// wait, the line is lost, and counted.
    pub fn write_later(&self, line: Vec<u8>) {
        let full = match self.lines.try_send(QueuedLine::Line { line, written: None }) {
            Ok(()) => return,
            Err(TrySendError::Full(entry)) if self.mode != Mode::Batch => entry,
            Err(_) => return self.lost(),
        };
        let place = self.waiting.clone().try_acquire_owned();
        let (Ok(runtime), Ok(place)) = (Handle::try_current(), place) else { return self.lost() };
        let lines = self.lines.clone();
        runtime.spawn(async move {
            let sent = lines.send(full).await;
            drop(place);
            sent.is_ok()
        });
    }

    /// Whether the queue has room for a refused request. Refusals may fill half of a queue that loses what it has no room for.
    pub fn has_room_for_refusals(&self) -> bool {
        self.mode != Mode::Batch || 2 * self.lines.capacity() > self.lines.max_capacity()
    }

    /// Waits until all lines so far have been written, including those that wait for room in the queue.
    pub async fn flush(&self) {
        drop(self.waiting.acquire_many(self.places).await);
        let (flushed, answer) = oneshot::channel();
        if self.lines.send(QueuedLine::Flush(flushed)).await.is_ok() {
            let _ = answer.await;
        }
    }

    fn queue(&self, line: Vec<u8>) {
        if self.lines.try_send(QueuedLine::Line { line, written: None }).is_err() {
            self.lost();
        }
    }

    fn lost(&self) {
        self.counts.error("buffered");
        tracing::error!(
            "Error in audit plugin 'buffered' affecting 1 audit events: audit buffer queue blocked"
        );
    }
}

struct Writer {
    out: Box<dyn Write + Send>,
    counts: AuditMetrics,
}

impl Writer {
    fn run(mut self, mut queue: mpsc::Receiver<QueuedLine>) {
        while let Some(entry) = queue.blocking_recv() {
            match entry {
                QueuedLine::Line { line, written } => {
                    let well = self.write(&line);
                    written.map(|written| written.send(well));
                }
                QueuedLine::Flush(flushed) => {
                    let well = self.out.flush();
                    self.report(well);
                    let _ = flushed.send(());
                }
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> bool {
        let well = self.out.write_all(line);
        self.report(well)
    }

    /// Logs and counts what could not be written.
    fn report(&self, well: io::Result<()>) -> bool {
        if let Err(error) = &well {
            self.counts.error("log");
            tracing::error!(%error, "Error in audit plugin 'log' affecting 1 audit events");
        }
        well.is_ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use prometheus_client::registry::Registry;

    use super::*;

    /// Lines in memory.
    #[derive(Clone, Default)]
    struct Memory(Arc<parking_lot::Mutex<Vec<u8>>>);

    impl Memory {
        fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock()).into_owned()
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Nothing can be written.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_answer_that_waits_finds_its_line_written() {
        let out = Memory::default();
        let log = AuditLog::start(out.clone(), Mode::Blocking, 1, AuditMetrics::default()).unwrap();
        assert!(log.write(b"one\n".to_vec()).await);
        assert_eq!(out.text(), "one\n");
    }

    #[tokio::test]
    async fn lines_that_nothing_waits_for_are_written_by_the_flush() {
        for mode in [Mode::Batch, Mode::Blocking] {
            let out = Memory::default();
            let log = AuditLog::start(out.clone(), mode, 4, AuditMetrics::default()).unwrap();
            log.write_later(b"one\n".to_vec());
            tokio::task::yield_now().await;
            assert!(log.write(b"two\n".to_vec()).await);
            log.flush().await;
            assert_eq!(out.text(), "one\ntwo\n", "{mode:?}");
        }
    }

    /// Each line used to wait in a task of its own, which no bound counted and a flush overtook.
    #[tokio::test]
    async fn lines_that_nothing_waits_for_are_bounded_and_flushed() {
        let (out, counts) = (Memory::default(), AuditMetrics::default());
        let log = AuditLog::start(out.clone(), Mode::Blocking, 2, counts.clone()).unwrap();
        let blocked = out.0.lock();
        for _ in 0..100 {
            log.write_later(b"line\n".to_vec());
        }
        drop(blocked);
        log.flush().await;
        let written = out.text().lines().count();
        // As many as fit in the queue, as many as wait for it, and what the thread had taken.
        assert!((4..=5).contains(&written), "{written}");
        let (mut registry, mut shown) = (Registry::default(), String::new());
        counts.register(&mut registry);
        prometheus_client::encoding::text::encode(&mut shown, &registry).unwrap();
        let lost = format!("apiserver_audit_error_total{{plugin=\"buffered\"}} {}", 100 - written);
        assert!(shown.lines().any(|line| line == lost), "{lost} is not in {shown}");
    }

    /// Strangers' requests, each refused, could fill the queue, and then the events of all others were lost.
    #[tokio::test]
    async fn what_is_refused_takes_half_of_the_queue_at_most() {
        let (out, counts) = (Memory::default(), AuditMetrics::default());
        let log = AuditLog::start(out.clone(), Mode::Batch, 8, counts).unwrap();
        let blocked = out.0.lock();
        let refusals = (0..100).filter(|_| log.has_room_for_refusals()).map(|_| log.queue(b"no\n".to_vec()));
        // The thread may have taken one of them.
        assert!((4..=5).contains(&refusals.count()));
        (0..3).for_each(|_| log.queue(b"yes\n".to_vec()));
        drop(blocked);
        log.flush().await;
        assert!(out.text().ends_with("yes\nyes\nyes\n"), "{}", out.text());
    }

    #[tokio::test]
    async fn a_full_disk_refuses_requests_in_strict_mode_alone() {
        for (_, mode) in Mode::NAMES {
            let log = AuditLog::start(Full, mode, 4, AuditMetrics::default()).unwrap();
            assert_eq!(log.write(b"one\n".to_vec()).await, mode != Mode::BlockingStrict);
        }
    }
}
