//! An event as a line of JSON (kube-apiserver --audit-log-format=json).

use super::counts::AuditMetrics;
use super::event::Event;

/// Annotation of an event whose bodies were left out because it was too long.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// Makes the lines of a log.
pub(super) struct AuditLines {
    /// Maximum bytes of an event.
    pub(super) longest: Option<usize>,
    pub(super) counts: AuditMetrics,
}

impl AuditLines {
    /// The event's line; without its bodies if it is too long, and none at all if it still is (k8s.io/apiserver
    /// plugin/pkg/audit/truncate).
    pub(super) fn of(&self, event: &mut Event) -> Option<Vec<u8>> {
        let line = self.whole(event)?;
        let fits = |line: &Vec<u8>| self.longest.is_none_or(|longest| line.len() <= longest);
        if fits(&line) {
            return Some(line);
        }
        self.bare(event).filter(fits).or_else(|| {
            self.counts.error("truncate");
            let id = &event.audit_id;
            tracing::error!(audit_id = id, "event is too large even after truncating");
            None
        })
    }

    fn whole(&self, event: &Event) -> Option<Vec<u8>> {
        let line = event.json();
        line.inspect_err(|error| {
            self.counts.error("log");
            tracing::error!(%error, "Error in audit plugin 'log' affecting 1 audit events");
        })
        .ok()
    }

    fn bare(&self, event: &mut Event) -> Option<Vec<u8>> {
        let bodies = (event.request_object.take(), event.response_object.take());
        event.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        let line = self.whole(event);
        (event.request_object, event.response_object) = bodies;
        event.annotations.remove(TRUNCATED);
        line
    }
}
