//! Flags of the audit log, as kube-apiserver has them (k8s.io/apiserver pkg/server/options/audit.go).

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use drydock_server::audit::{AuditDestination, Mode, Options, file};

/// What is logged of requests, and where.
#[derive(Clone, Debug, Args)]
pub struct AuditFlags {
    /// File with the audit policy (audit.k8s.io/v1); without it nothing is logged but what --audit-direct-requests asks for
    #[arg(long, value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// File for the audit log, '-' for stdout; nothing is logged without it
    #[arg(long, value_name = "FILE")]
    pub audit_log_path: Option<PathBuf>,
    /// Also log the metadata of writes, and of requests refused with 401 or 403, that did not come through a front proxy and
    /// that the policy does not log
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true",
          requires_if("true", "audit_log_path"))]
    pub audit_direct_requests: bool,
    /// Days to keep rotated audit log files; 0 keeps them forever
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    pub audit_log_maxage: u32,
    /// Most rotated audit log files to keep; 0 keeps all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub audit_log_maxbackup: u32,
    /// Megabytes at which the audit log file is rotated; 0 never rotates it
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub audit_log_maxsize: u32,
    /// Compress rotated audit log files with gzip
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_compress: bool,
    /// blocking: a response waits until its event is written; batch: an event is dropped if the buffer is full;
    /// blocking-strict: like blocking, and a request that cannot be logged is refused
    #[arg(long, value_name = "MODE", default_value = "blocking", value_parser = one_of(Mode::NAMES))]
    pub audit_log_mode: Mode,
    /// Most events that wait to be written in mode batch
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub audit_log_batch_buffer_size: usize,
    /// Truncate events that exceed --audit-log-truncate-max-event-size: leave out their bodies
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_truncate_enabled: bool,
    /// Most bytes of an event
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    pub audit_log_truncate_max_event_size: usize,
}

impl AuditFlags {
    /// Returns the options of the audit log.
    pub fn options(&self) -> Options {
        let out = self.audit_log_path.clone().map(|path| match path.to_str() {
            Some("-") => AuditDestination::Stdout,
            _ => AuditDestination::File(file::Options {
                path,
                max_age: self.audit_log_maxage,
                max_backups: self.audit_log_maxbackup,
                max_size: self.audit_log_maxsize,
                compress: self.audit_log_compress,
            }),
        });
        Options {
            policy_file: self.audit_policy_file.clone(),
            out,
            direct_requests: self.audit_direct_requests,
            mode: self.audit_log_mode,
            buffer: self.audit_log_batch_buffer_size,
            longest: self.audit_log_truncate_enabled.then_some(self.audit_log_truncate_max_event_size),
        }
    }
}

/// Returns a parser that accepts one of these names.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    names: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.map(|(name, _)| name)).try_map(move |given| {
        let found = names.iter().find(|(name, _)| *name == given);
        found.map(|(_, value)| *value).ok_or_else(|| format!("{given:?} is none of them"))
    })
}
