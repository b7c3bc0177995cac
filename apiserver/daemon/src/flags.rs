//! The flags, with the names of Kubernetes' flags where there are such.

mod audit;
mod data;
mod storage;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use drydock_api::eviction_request::interceptors;
use drydock_command::logs::Verbosity;
use drydock_command::{FlagsRefusal, duration};
use drydock_serving::serve::Bounds;

use audit::AuditFlags;
pub use data::{Backup, Check, DataCommand, FencingTokensFlags, Migrate, Reclaim, Restore, Store};
use storage::StorageFlags;

/// Users who delete the objects of others: among them the namespace controller and the garbage collector.
const UNNAMED_REVIEW_USERS: [&str; 2] =
    ["system:kube-controller-manager", "system:serviceaccounts:kube-system"];

/// Serves coordination.k8s.io/v1alpha1 EvictionRequest and NodeMaintenance as an aggregated API.
#[derive(Clone, Debug, Parser)]
#[command(name = "drydock-apiserver", version, args_conflicts_with_subcommands = true)]
pub struct Flags {
    /// Work on the stored data instead of serving
    #[command(subcommand)]
    pub command: Option<DataCommand>,

    /// YAML file of flags, as `bind-address: 127.0.0.1`; a flag on the command line wins
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// Port to serve HTTPS on
    #[arg(long, value_name = "PORT", default_value_t = 8443)]
    pub secure_port: u16,
    /// Serving certificate (PEM); without it, one is made in --cert-dir
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of --tls-cert-file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Folder for the certificate that is made without --tls-cert-file: ca.crt, ca.key, tls.crt, tls.key
    #[arg(long, value_name = "DIR", default_value = "drydock-certs")]
    pub cert_dir: PathBuf,
    /// Names and IP addresses in the certificate that is made in --cert-dir, beside localhost; can be repeated
    #[arg(long, value_name = "NAME", default_values_t = default_sans())]
    pub tls_san: Vec<String>,

    /// How much the log shows.
    #[command(flatten)]
    pub verbosity: Verbosity,

    /// Kubeconfig of the host cluster; in-cluster configuration if absent
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Kubeconfig for TokenReviews; --kubeconfig if absent
    #[arg(long, value_name = "FILE")]
    pub authentication_kubeconfig: Option<PathBuf>,
    /// Kubeconfig for SubjectAccessReviews; --kubeconfig if absent
    #[arg(long, value_name = "FILE")]
    pub authorization_kubeconfig: Option<PathBuf>,
    /// CA bundle for client certificates (PEM); the host's if absent
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// CA bundle for the certificates of front proxies (PEM); the host's if absent
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// Common names allowed in a front proxy's certificate; the host's if absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub requestheader_allowed_names: Vec<String>,
    /// Request headers that hold the user's name; the host's if absent
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub requestheader_username_headers: Vec<String>,
    /// Request headers that hold the user's UID; the host's if absent
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub requestheader_uid_headers: Vec<String>,
    /// Request headers that hold the user's groups; the host's if absent
    #[arg(long, value_name = "HEADERS", value_delimiter = ',')]
    pub requestheader_group_headers: Vec<String>,
    /// Prefixes of request headers that hold the user's extra fields; the host's if absent
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',')]
    pub requestheader_extra_headers_prefix: Vec<String>,
    /// Audiences for bearer tokens: the host's TokenReview must confirm one of them; the host's own audience if absent
    #[arg(long, value_name = "AUDIENCES", value_delimiter = ',')]
    pub api_audiences: Vec<String>,

    /// Where objects are kept
    #[command(flatten)]
    pub storage: StorageFlags,
    /// Most bytes of objects and history in the embedded store: beyond it creates are refused, and deletes still work; 0 is no limit
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 30)]
    pub quota_backend_bytes: u64,

    /// Longest time without a heartbeat before an interceptor is passed over; must equal the controller manager's
    #[arg(long, value_name = "DURATION", default_value = "20m", value_parser = duration)]
    pub heartbeat_deadline: Duration,
    /// Interceptor names under k8s.io that are allowed beside the built-in ones; must equal the controller manager's
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = interceptors::parse_reserved_name)]
    pub allowed_interceptor_names: Vec<String>,
    /// Require that who writes an EvictionRequest may delete its pod
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub require_pod_delete_permission: bool,
    /// Users and groups, beside --controller-users, whose access is reviewed for all pods of a namespace first, and by pod name only if that is denied; user system:kube-controller-manager and group system:serviceaccounts:kube-system if absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub unnamed_review_users: Option<Vec<String>>,

    /// Seats for requests in flight, added to those of --max-mutating-requests-inflight: a request takes 1, a large one up to 10; no limit if either is 0
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub max_requests_inflight: usize,
    /// Seats added to those of --max-requests-inflight; no limit if either is 0
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub max_mutating_requests_inflight: usize,
    /// Users in the controllers' priority level, with 30% of the seats guaranteed. Only they and system:masters can write with a fencing token; name the controller manager here. Each access of theirs is reviewed without namespace and name first, then without a name, and by name only if both are denied: the host's authorizer is trusted to deny them nothing by name that it allows in general
    #[arg(long, value_name = "USERS", value_delimiter = ',')]
    pub controller_users: Vec<String>,
    /// Most connections from one address, or one IPv6 /64, without an authenticated request; a new one beyond it closes one that is idle
    #[arg(long, value_name = "N", default_value_t = Bounds::CONNECTIONS_PER_ADDRESS)]
    pub max_connections_per_address: usize,
    /// Longest time for a request that is not a stream; Drydock's controllers wait 75s for an answer
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub request_timeout: Duration,
    /// The audit log
    #[command(flatten)]
    pub audit: AuditFlags,
    /// Time at shutdown between becoming unready and refusing connections
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub shutdown_delay_duration: Duration,
}

impl Flags {
    /// Reads the command line and the file that --config names.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, FlagsRefusal> {
        drydock_command::read(arguments, Self::contradiction)
    }

    /// Returns the address to listen on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind_address, self.secure_port)
    }

    /// Returns the users and groups for whom the host is asked first without the name of a pod.
    pub fn unnamed_review_users(&self) -> Vec<String> {
        let usual = || UNNAMED_REVIEW_USERS.map(str::to_owned).to_vec();
        self.unnamed_review_users.clone().unwrap_or_else(usual)
    }

    /// Returns what is wrong with the flags, if anything.
    fn contradiction(&self) -> Option<&'static str> {
        if let Some(command) = &self.command {
            return command.contradiction();
        }
        self.heartbeat_deadline.is_zero().then_some("--heartbeat-deadline must be positive")
    }
}

fn default_sans() -> Vec<String> {
    vec!["drydock-apiserver.drydock-system.svc".to_owned()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_command::manual::in_manifest;

    use super::*;

    fn read(arguments: &[&str]) -> Result<Flags, String> {
        let all = std::iter::once("drydock-apiserver").chain(arguments.iter().copied());
        Flags::read(all.map(OsString::from)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_deadline_of_nothing_is_refused() {
        assert!(read(&["--heartbeat-deadline=0"]).unwrap_err().contains("--heartbeat-deadline must be"));
        assert_eq!(read(&["--heartbeat-deadline=1m30s"]).unwrap().heartbeat_deadline.as_secs(), 90);
    }

    #[test]
    fn a_switch_may_stand_alone() {
        assert!(read(&["--require-pod-delete-permission"]).unwrap().require_pod_delete_permission);
        assert!(!read(&["--require-pod-delete-permission=false"]).unwrap().require_pod_delete_permission);
    }

    #[test]
    fn the_hosts_controllers_are_asked_about_without_a_name_unless_others_are_named() {
        let names = |arguments: &[&str]| read(arguments).unwrap().unnamed_review_users();
        assert_eq!(names(&["--controller-users=a,b"]), UNNAMED_REVIEW_USERS);
        assert_eq!(names(&["--controller-users=a", "--unnamed-review-users=c,d"]), ["c", "d"]);
        assert_eq!(names(&["--unnamed-review-users="]), [""]);
    }

    #[test]
    fn the_reference_in_deploy_is_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/flags/drydock-apiserver.md");
        drydock_command::manual::check_reference::<Flags>(file.as_ref()).unwrap();
    }

    #[test]
    fn only_names_under_k8s_io_need_to_be_allowed() {
        let names = read(&["--allowed-interceptor-names=a.k8s.io,b.c.k8s.io"]).unwrap();
        assert_eq!(names.allowed_interceptor_names, ["a.k8s.io", "b.c.k8s.io"]);
        assert!(read(&["--allowed-interceptor-names=a.example.com"]).unwrap_err().contains("under k8s.io"));
    }

    #[test]
    fn the_flags_of_deploy_are_taken() {
        let base = in_manifest(include_str!("../../../deploy/base/apiserver.yaml"));
        let overlays = [
            include_str!("../../../deploy/overlays/sqlite/flags.yaml"),
            include_str!("../../../deploy/overlays/etcd/flags.yaml"),
        ];
        for overlay in overlays.map(in_manifest) {
            let flags = [base.as_slice(), &overlay].concat();
            assert!(!base.is_empty() && !overlay.is_empty() && read(&flags).is_ok(), "{:?}", read(&flags));
        }
    }

    #[test]
    fn an_unknown_flag_is_named() {
        assert!(read(&["--secure-prot=1"]).unwrap_err().contains("--secure-prot"));
    }

    #[test]
    fn the_audit_log_is_asked_for_as_kubernetes_is_asked() {
        let options = read(&["--audit-log-path=-", "--audit-log-mode=batch"]).unwrap().audit.options();
        assert!(matches!(options.out, Some(drydock_server::audit::AuditDestination::Stdout)));
        assert_eq!(options.mode, drydock_server::audit::Mode::Batch);
        assert!(read(&["--audit-direct-requests"]).unwrap_err().contains("--audit-log-path"));
        let direct = read(&["--audit-direct-requests", "--audit-log-path=-"]).unwrap().audit.options();
        assert!(direct.direct_requests && !options.direct_requests);
        assert!(read(&["--audit-log-mode=never"]).unwrap_err().contains("blocking-strict"));
        assert!(read(&["--audit-log-maxsize=-1"]).unwrap_err().contains("--audit-log-maxsize"));
    }

    #[test]
    fn work_on_the_data_has_flags_of_its_own() {
        let read = |arguments: &[&str]| read(arguments).map(|flags| flags.command);
        let backup = read(&["backup", "--data-dir=d", "copy.db"]).unwrap();
        assert!(matches!(backup, Some(DataCommand::Backup(flags)) if flags.data_dir.file().starts_with("d")));
        assert!(read(&["backup"]).unwrap_err().contains("<FILE>"));
        assert!(read(&["backup", "--secure-port=1", "copy.db"]).unwrap_err().contains("--secure-port"));
        assert!(read(&["migrate", "--to=etcd"]).unwrap_err().contains("--etcd-servers"));
        assert!(read(&["migrate", "--etcd-servers=http://a"]).unwrap_err().contains("--to <STORE>"));
        assert!(read(&["fencing-tokens", "--reset"]).unwrap_err().contains("--reset <USER>"));
        assert!(read(&["check"]).unwrap().is_some() && read(&[]).unwrap().is_none());
    }

    #[test]
    fn a_certificate_needs_its_key() {
        assert!(read(&["--tls-cert-file=a"]).unwrap_err().contains("--tls-private-key-file"));
    }
}
