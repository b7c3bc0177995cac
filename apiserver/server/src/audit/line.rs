//! An event as a line (kube-apiserver --audit-log-format).

use super::counts::AuditMetrics;
use super::event::{Event, UserInfo};

/// How an event is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditFormat {
    /// A line of JSON.
    #[default]
    Json,
    /// A line for people (k8s.io/apiserver pkg/audit/format.go).
    Legacy,
}

impl AuditFormat {
    /// Both, by the name that the flag takes.
    pub const NAMES: [(&'static str, Self); 2] = [("json", Self::Json), ("legacy", Self::Legacy)];

    /// The line, with its end.
    fn line(self, event: &Event) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Json => event.json(),
            Self::Legacy => Ok(legacy(event).into_bytes()),
        }
    }
}

/// Annotation of an event whose bodies were left out because it was too long.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// Makes the lines of a log.
pub(super) struct AuditLines {
    pub(super) format: AuditFormat,
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
        let line = self.format.line(event);
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

fn legacy(event: &Event) -> String {
    let user = &event.user;
    let (name, groups) = match user.username.as_str() {
        "" => ("<none>", "<none>".to_owned()),
        name if user.groups.is_empty() => (name, "<none>".to_owned()),
        name => (name, quoted(user)),
    };
    let (as_user, as_groups) = match &event.impersonated_user {
        None => ("<self>", "<lookup>".to_owned()),
        Some(user) => (user.username.as_str(), quoted(user)),
    };
    let namespace = event.object_ref.as_ref().map(|object| object.namespace.as_str());
    let namespace = namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("<none>");
    let response =
        event.response_status.as_ref().map_or_else(|| "<deferred>".to_owned(), |r| r.code.to_string());
    let ip = event.source_ips.first().map_or("<unknown>", String::as_str);
    let (time, id, stage) = (event.request_received_timestamp, &event.audit_id, event.stage);
    let (method, agent, uri) = (&event.verb, &event.user_agent, &event.request_uri);
    format!(
        "{time} AUDIT: id={id:?} stage=\"{stage:?}\" ip={ip:?} method={method:?} user={name:?} groups={groups:?} as={as_user:?} asgroups={as_groups:?} user-agent={agent:?} namespace={namespace:?} uri={uri:?} response=\"{response}\"\n"
    )
}

fn quoted(user: &UserInfo) -> String {
    let quoted: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
    quoted.join(",")
}
