//! The audit log: who asked for what, and how it ended, in audit.k8s.io/v1 events, as a policy file selects them
//! (k8s.io/apiserver pkg/audit, pkg/endpoints/filters/audit.go).
//!
//! ```text
//!   chain ──▶ AuditContext ──event──▶ Log (queue, thread) ──line──▶ file, rotated │ stdout
//!               ▲ user, decision, bodies, annotations
//! ```
//!
//! Without a policy, and without what is asked for of direct requests, an audit context is empty: its methods do nothing.

mod body;
mod context;
mod counts;
mod direct;
mod event;
pub mod file;
pub(crate) mod headers;
pub mod log;
pub mod policy;
pub mod policy_file;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use drydock_serving::request::info::RequestInfo;
use http::Request;

pub use context::AuditContext;
pub use counts::AuditMetrics;
pub use log::Mode;
pub use policy::{AuditPolicy, AuditStage, Level};

use direct::RefusalBudget;
use drydock_serving::auth::authn::Peer;
use event::AuditLines;
use log::AuditLog;

/// What an operator asks for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policy; without one nothing is logged but direct requests, if that is asked for.
    pub policy_file: Option<PathBuf>,
    /// Where the log goes; without it nothing is logged.
    pub out: Option<AuditDestination>,
    /// Whether direct requests are logged of which the policy logs nothing: writes, and what is refused. A request is direct
    /// if it came through no front proxy, whose own log would have it.
    pub direct_requests: bool,
    /// Whether answers wait for it.
    pub mode: Mode,
    /// How many events may wait to be written.
    pub buffer: usize,
    /// Maximum bytes of an event. The bodies of a longer one are left out; if it is still longer, so is the event.
    pub longest: Option<usize>,
}

impl Default for Options {
    /// Nothing is logged; the other options have kube-apiserver's defaults.
    fn default() -> Self {
        Self {
            policy_file: None,
            out: None,
            direct_requests: false,
            mode: Mode::Blocking,
            buffer: 10_000,
            longest: None,
        }
    }
}

/// Where the log goes.
#[derive(Clone, Debug)]
pub enum AuditDestination {
    /// Standard output.
    Stdout,
    /// A file.
    File(file::Options),
}

/// Logs requests by a policy.
pub struct Audit {
    policy: AuditPolicy,
    logs_direct_requests: bool,
    refusals: RefusalBudget,
    lines: AuditLines,
    log: AuditLog,
    counts: AuditMetrics,
}

/// Why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The policy.
    #[error("loading audit policy file: {0}")]
    Policy(String),
    /// The file of the log.
    #[error("--audit-log-path: {0}: {1}")]
    Log(String, #[source] io::Error),
}

impl Audit {
    /// Reads the policy and opens the log; `None` if there is nothing to do.
    ///
    /// # Errors
    /// What cannot be read or opened.
    pub fn open(options: &Options, counts: AuditMetrics) -> Result<Option<Arc<Self>>, OpenError> {
        let policy = options.policy_file.as_deref().map(policy_file::load).transpose();
        let policy = policy.map_err(OpenError::Policy)?;
        let Some(out) = &options.out else { return Ok(None) };
        let (name, out) = match out {
            AuditDestination::Stdout => ("-".to_owned(), Ok(Box::new(io::stdout()) as Box<dyn Write + Send>)),
            AuditDestination::File(file) => {
                let rotating = file::Rotating::open(file.clone());
                (file.path.display().to_string(), rotating.map(|out| Box::new(out) as _))
            }
        };
        let out = out.map_err(|error| OpenError::Log(name.clone(), error))?;
        let Some(policy) = policy.or_else(|| options.direct_requests.then(AuditPolicy::default)) else {
            tracing::info!("No audit policy file provided, no events will be recorded for log backend");
            return Ok(None);
        };
        let log = AuditLog::start(out, options.mode, options.buffer, counts.clone());
        let log = log.map_err(|error| OpenError::Log(name, error))?;
        let lines = AuditLines { longest: options.longest, counts: counts.clone() };
        Ok(Some(Arc::new(Self {
            policy,
            logs_direct_requests: options.direct_requests,
            refusals: RefusalBudget::default(),
            lines,
            log,
            counts,
        })))
    }

    /// Begins the audit context of a request.
    pub fn context(
        self: &Arc<Self>,
        request: &Request<Body>,
        info: &RequestInfo,
        audit_id: &str,
        peer: &Peer,
    ) -> AuditContext {
        AuditContext::begin(self.clone(), request, info, audit_id, peer)
    }

    /// Whether a refused request may be logged; counts it as lost if not.
    fn has_room_for_refusal(&self, is_stranger: bool) -> bool {
        let has_room = self.log.has_room_for_refusals() && self.refusals.take(is_stranger);
        if !has_room {
            self.counts.error("buffered");
        }
        has_room
    }

    /// Waits until everything so far has been written.
    pub async fn flush(&self) {
        self.log.flush().await;
    }
}
