//! Flags, by the names that operators of Kubernetes know.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Parser};
use drydock_command::FlagsRefusal;
use drydock_command::logs::Verbosity;
use drydock_controller_command::{LeaderElectionFlags, SecurePortFlags};

/// Gives a Deployment at its PodDisruptionBudget one replica more before its pod is evicted.
#[derive(Clone, Debug, Parser)]
#[command(name = "drydock-surge-interceptor", version, mut_args(own_default))]
pub struct Flags {
    /// YAML file of flags, as `bind-address: 127.0.0.1`; a flag on the command line wins
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How much the log shows.
    #[command(flatten)]
    pub verbosity: Verbosity,

    /// Kubeconfig of the host cluster; in-cluster configuration if absent
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The lease.
    #[command(flatten)]
    pub lease: LeaderElectionFlags,
    /// The port for probes and scrapers.
    #[command(flatten)]
    pub port: SecurePortFlags,
}

impl Flags {
    /// Reads the command line and the file that --config names.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, FlagsRefusal> {
        drydock_command::read(arguments, |flags: &Self| flags.lease.contradiction())
    }
}

/// The default of a shared flag that is another one here.
fn own_default(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "leader_elect_resource_name" => arg.default_value("drydock-surge-interceptor"),
        "secure_port" => arg.default_value("8445"),
        "cert_dir" => arg.default_value("drydock-surge-certs"),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(arguments: &[&str]) -> Result<Flags, String> {
        let all = std::iter::once("drydock-surge-interceptor").chain(arguments.iter().copied());
        Flags::read(all.map(OsString::from)).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_reference_in_deploy_is_current() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/flags/drydock-surge-interceptor.md");
        drydock_command::manual::check_reference::<Flags>(file.as_ref()).unwrap();
    }

    #[test]
    fn the_flags_of_deploy_are_taken() {
        let flags =
            drydock_command::manual::in_manifest(include_str!("../../../deploy/components/surge/surge.yaml"));
        assert!(!flags.is_empty() && read(&flags).is_ok(), "{:?}", read(&flags));
    }

    #[test]
    fn a_lease_must_outlast_its_holder() {
        assert!(read(&["--leader-elect-lease-duration=10s"]).unwrap_err().contains("must be longer"));
    }
}
