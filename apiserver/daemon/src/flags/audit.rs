//! Flags of the audit log, as kube-apiserver has them (k8s.io/apiserver pkg/server/options/audit.go).

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use drydock_server::audit::{Format, Mode, Options, Out, file};

/// What is logged of requests, and where.
#[derive(Clone, Debug, Args)]
pub struct AuditFlags {
    /// Policy of the audit log (audit.k8s.io/v1); nothing is logged without one
    #[arg(long, value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
    /// File of the audit log, '-' for stdout; nothing is logged without one
    #[arg(long, value_name = "FILE")]
    pub audit_log_path: Option<PathBuf>,
    /// Days that files of the audit log are kept which have been turned over; 0 is for ever
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    pub audit_log_maxage: u32,
    /// Files of the audit log that are kept which have been turned over; 0 is all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub audit_log_maxbackup: u32,
    /// Megabytes after which the file of the audit log is turned over; 0 is never
    #[arg(long, value_name = "MB", default_value_t = 100)]
    pub audit_log_maxsize: u32,
    /// Whether files of the audit log that have been turned over are compressed
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_compress: bool,
    /// How events are written: json, or legacy for one line of text each
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = one_of(Format::NAMES))]
    pub audit_log_format: Format,
    /// Whether answers wait for their events (blocking), or events that find the buffer full are lost (batch);
    /// blocking-strict refuses requests that cannot be logged
    #[arg(long, value_name = "MODE", default_value = "blocking", value_parser = one_of(Mode::NAMES))]
    pub audit_log_mode: Mode,
    /// Events that may wait to be written
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub audit_log_batch_buffer_size: usize,
    /// Whether events that are too long are cut short: their bodies are left out
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub audit_log_truncate_enabled: bool,
    /// Bytes of an event that are not too long
    #[arg(long, value_name = "BYTES", default_value_t = 102_400)]
    pub audit_log_truncate_max_event_size: usize,
}

impl AuditFlags {
    /// What they ask for.
    pub fn options(&self) -> Options {
        let out = self.audit_log_path.clone().map(|path| match path.to_str() {
            Some("-") => Out::Stdout,
            _ => Out::File(file::Options {
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
            format: self.audit_log_format,
            mode: self.audit_log_mode,
            buffer: self.audit_log_batch_buffer_size,
            longest: self.audit_log_truncate_enabled.then_some(self.audit_log_truncate_max_event_size),
        }
    }
}

/// Takes one of these names.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    names: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.map(|(name, _)| name)).try_map(move |given| {
        let found = names.iter().find(|(name, _)| *name == given);
        found.map(|(_, value)| *value).ok_or_else(|| format!("{given:?} is none of them"))
    })
}
