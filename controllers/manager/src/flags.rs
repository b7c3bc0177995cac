//! Flags, by the names that operators of Kubernetes know.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, Args, Parser, Subcommand};
use drydock_api::eviction_request::interceptors;
use drydock_command::logs::Verbosity;
use drydock_command::{FlagsRefusal, duration};
use drydock_controller_command::{LeaderElectionFlags, SecurePortFlags};

use crate::controllers;

/// Runs the controllers of coordination.k8s.io/v1alpha1 EvictionRequest and NodeMaintenance.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "drydock-controller-manager",
    version,
    args_conflicts_with_subcommands = true,
    mut_args(own_help)
)]
pub struct Flags {
    /// Do something else instead of running the controllers
    #[command(subcommand)]
    pub command: Option<ManagerCommand>,

    /// YAML file of flags, as `bind-address: 127.0.0.1`; a flag on the command line wins
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How much the log shows.
    #[command(flatten)]
    pub verbosity: Verbosity,

    /// Kubeconfig of the host cluster; in-cluster configuration if absent
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Send requests for EvictionRequests and NodeMaintenances straight to the API server, at the Service that their APIService names, instead of through the host's aggregator, which is used while that fails
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub direct_to_apiservice: bool,
    /// File with the bearer token that --direct-to-apiservice shows to the API server, read again as it is renewed: for an audience of the API server's --api-audiences, as of a projected volume
    #[arg(long, value_name = "FILE")]
    pub apiservice_token_file: Option<PathBuf>,

    /// Controllers to run: '*' for all, 'name' for one, '-name' for all but one
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*", value_parser = controller,
          allow_hyphen_values = true)]
    pub controllers: Vec<String>,

    /// The lease.
    #[command(flatten)]
    pub lease: LeaderElectionFlags,
    /// The port for probes and scrapers.
    #[command(flatten)]
    pub port: SecurePortFlags,

    /// Longest time without a heartbeat before an interceptor is passed over; must equal the API server's
    #[arg(long, value_name = "DURATION", default_value = "20m", value_parser = duration)]
    pub heartbeat_deadline: Duration,
    /// Interceptor names under k8s.io that are allowed beside the built-in ones; must equal the API server's
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = interceptors::parse_reserved_name)]
    pub allowed_interceptor_names: Vec<String>,
    /// Built-in interceptor names under k8s.io that other programs serve, as surge.coordination.k8s.io; a pod's interceptors of the other built-in names are left out, as nobody would answer
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = interceptors::parse_built_in_name)]
    pub served_interceptor_names: Vec<String>,
    /// Longest time that the pod's own interceptors may keep it together, however they report, over all its EvictionRequests of a drain; 0 sets no bound. Beyond it, the pod is evicted within its budgets
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = duration)]
    pub max_interception: Duration,
    /// How long a finished EvictionRequest is kept while requesters stay in it; 0 keeps it forever. A namespace keeps at most 5000
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub eviction_request_retention: Duration,
    /// How long the EvictionRequest of an evicted pod is kept for its owner, if an event reported a blocker or a foreign interceptor was active; 0 keeps it no longer than others
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub blocked_request_retention: Duration,
    /// Aggregate the metrics of EvictionRequests by namespace
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub aggregate_request_metrics: bool,
    /// Write the node condition MaintenancePlanned for maintenances in stage Idle
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub advertise_planned: bool,
}

/// What a person runs.
#[derive(Clone, Debug, Subcommand)]
pub enum ManagerCommand {
    /// Removes Drydock from a cluster, as the user of a kubeconfig, and leaves each node as it was before its maintenance, and each Deployment and autoscaler with the number that it had before a surge. It may be run again, also after parts were removed by hand or when it was interrupted. The objects of the embedded store go with its volume
    Remove(RemoveFlags),
    /// Ends the turns of the interceptors that the pods of a NodeMaintenance name, as the user of a kubeconfig, who needs the ClusterRoles drydock:maintainer and drydock:skip-interceptors: the pods that it asks to leave now are evicted, within their budgets, without what the interceptors would have done for them. It prints a line for each turn. Pods that are asked later keep their turns: run it again
    EndTurns(EndTurnsFlags),
}

/// Flags of `end-turns`.
#[derive(Clone, Debug, Args)]
pub struct EndTurnsFlags {
    /// Name of the NodeMaintenance
    #[arg(value_name = "MAINTENANCE")]
    pub maintenance: String,
    /// Print which turns would be ended, and end none
    #[arg(long)]
    pub dry_run: bool,
    /// The cluster and its user.
    #[command(flatten)]
    pub person: PersonFlags,
}

/// Flags that name a cluster, and a user there.
#[derive(Clone, Debug, Args)]
pub struct PersonFlags {
    /// Kubeconfig of the cluster; if absent, the files that KUBECONFIG names, or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; the current one if absent
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// Flags of `remove`.
#[derive(Clone, Debug, Args)]
pub struct RemoveFlags {
    /// Print what would be changed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The cluster and its user.
    #[command(flatten)]
    pub person: PersonFlags,
}

impl Flags {
    /// Reads the command line and the file that --config names.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, FlagsRefusal> {
        drydock_command::read(arguments, Self::contradiction)
    }

    /// The file with the token for the API server, if requests go straight to it.
    pub fn direct_token_file(&self) -> Option<&Path> {
        self.apiservice_token_file.as_deref().filter(|_| self.direct_to_apiservice)
    }

    /// Returns the error about flags that contradict each other, if some do.
    fn contradiction(&self) -> Option<&'static str> {
        if self.direct_to_apiservice && self.apiservice_token_file.is_none() {
            return Some("--direct-to-apiservice needs --apiservice-token-file");
        }
        let is_zero = self.heartbeat_deadline.is_zero();
        self.lease.contradiction().or(is_zero.then_some("--heartbeat-deadline must be positive"))
    }
}

/// The help of a shared flag that means more here.
fn own_help(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "leader_elect_resource_namespace" => arg.help("Namespace of the Lease, and of Drydock's own pods"),
        _ => arg,
    }
}

fn controller(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('-').unwrap_or(text);
    if text == "*" || controllers::names().any(|known| known == name) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "there is no such controller; there are {}",
        controllers::names().collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(arguments: &[&str]) -> Result<Flags, String> {
        let all = std::iter::once("drydock-controller-manager").chain(arguments.iter().copied());
        Flags::read(all.map(OsString::from)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_reference_in_deploy_is_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/flags/drydock-controller-manager.md");
        drydock_command::manual::check_reference::<Flags>(file.as_ref()).unwrap();
    }

    #[test]
    fn the_flags_of_deploy_are_taken() {
        let manifests = [
            include_str!("../../../deploy/base/controller-manager.yaml"),
            include_str!("../../../deploy/components/surge/kustomization.yaml"),
        ];
        for manifest in manifests {
            let flags = drydock_command::manual::in_manifest(manifest);
            assert!(!flags.is_empty() && read(&flags).is_ok(), "{:?}", read(&flags));
        }
    }

    #[test]
    fn a_removal_has_flags_of_its_own() {
        let removal = |arguments: &[&str]| match read(arguments).unwrap().command {
            Some(ManagerCommand::Remove(flags)) => flags,
            _ => panic!("no removal"),
        };
        assert!(!removal(&["remove"]).dry_run);
        let flags = removal(&["remove", "--dry-run", "--kubeconfig=f", "--context=c"]);
        let PersonFlags { kubeconfig, context } = flags.person;
        assert!(flags.dry_run && kubeconfig == Some("f".into()) && context == Some("c".into()));
        for wrong in [&["remove", "--leader-elect"][..], &["remove", "now"], &["--leader-elect", "remove"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_end_of_turns_needs_the_name_of_a_maintenance() {
        let end = |arguments: &[&str]| match read(arguments).unwrap().command {
            Some(ManagerCommand::EndTurns(flags)) => flags,
            _ => panic!("no end of turns"),
        };
        let flags = end(&["end-turns", "rack-7", "--dry-run"]);
        assert!(flags.dry_run && flags.maintenance == "rack-7" && flags.person.context.is_none());
        for wrong in [&["end-turns"][..], &["end-turns", "a", "b"], &["--leader-elect", "end-turns", "a"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    /// A name that nobody could have given an interceptor, or that needs no flag, is a mistake of the admin.
    #[test]
    fn names_that_are_served_are_built_in_ones() {
        let served = |names: &str| read(&[&format!("--served-interceptor-names={names}")]);
        let flags = served("surge.coordination.k8s.io,kubelet.k8s.io").unwrap();
        assert_eq!(flags.served_interceptor_names, ["surge.coordination.k8s.io", "kubelet.k8s.io"]);
        for wrong in ["surge", "a.example.com", "node-doctor.k8s.io"] {
            assert!(served(wrong).unwrap_err().contains("built-in"), "{wrong}");
        }
        assert!(read(&[]).unwrap().max_interception.is_zero(), "nobody who works is interrupted by default");
    }

    #[test]
    fn an_unknown_flag_is_named() {
        assert!(read(&["--leader-elekt"]).unwrap_err().contains("--leader-elekt"));
    }

    #[test]
    fn a_switch_may_stand_alone() {
        assert!(read(&["--leader-elect"]).unwrap().lease.leader_elect);
        assert!(!read(&["--leader-elect=false"]).unwrap().lease.leader_elect);
        assert!(read(&["--advertise-planned"]).unwrap().advertise_planned);
    }

    #[test]
    fn the_direct_route_needs_a_token_and_is_taken_when_asked_for() {
        assert!(read(&["--direct-to-apiservice"]).unwrap_err().contains("--apiservice-token-file"));
        let file = |arguments: &[&str]| read(arguments).unwrap().direct_token_file().map(Path::to_owned);
        let given = "--apiservice-token-file=token";
        assert_eq!(file(&["--direct-to-apiservice", given]), Some("token".into()));
        assert_eq!(file(&["--direct-to-apiservice=false", given]), None);
    }

    #[test]
    fn an_unknown_controller_is_refused_and_the_known_are_listed() {
        let why = read(&["--controllers=evictionrequests"]).unwrap_err();
        assert!(why.contains("evictionrequest,"), "{why}");
        assert!(read(&["--controllers=*,-daemonset-eviction"]).is_ok());
    }

    #[test]
    fn a_lease_must_outlast_its_holder() {
        assert!(read(&["--leader-elect-lease-duration=10s"]).unwrap_err().contains("must be longer"));
    }

    #[test]
    fn zero_turns_the_retention_off() {
        let flags = read(&["--eviction-request-retention=0"]).unwrap();
        assert_eq!(flags.eviction_request_retention, Duration::ZERO);
    }
}
