//! Flags, by the names that operators of Kubernetes know.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use drydock_command::logs::Verbosity;
use drydock_command::{FlagsRefusal, duration};
use drydock_serving::tls::CertificateSource;

/// Gives a Deployment at its PodDisruptionBudget one replica more before its pod is evicted.
#[derive(Clone, Debug, Parser)]
#[command(name = "drydock-surge-interceptor", version)]
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

    /// Act only while holding the Lease
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: bool,
    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "drydock-system")]
    pub leader_elect_resource_namespace: String,
    /// Name of the Lease
    #[arg(long, value_name = "NAME", default_value = "drydock-surge-interceptor")]
    pub leader_elect_resource_name: String,
    /// How long other candidates wait after the holder's last renewal
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long a holder that cannot renew the Lease continues to act
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub leader_elect_renew_deadline: Duration,
    /// Time between attempts to renew or acquire the Lease
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub leader_elect_retry_period: Duration,

    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// Port to serve /healthz, /livez, /readyz and /metrics on, by HTTPS; 0 serves nothing
    #[arg(long, value_name = "PORT", default_value_t = 8445)]
    pub secure_port: u16,
    /// Serving certificate (PEM); without it, one is made in --cert-dir
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of --tls-cert-file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Folder for the certificate that is made without --tls-cert-file: ca.crt, ca.key, tls.crt, tls.key
    #[arg(long, value_name = "DIR", default_value = "drydock-surge-certs")]
    pub cert_dir: PathBuf,
    /// Audiences for bearer tokens: the host's TokenReview must confirm one of them; the host's own audience if absent
    #[arg(long, value_name = "AUDIENCES", value_delimiter = ',')]
    pub api_audiences: Vec<String>,
}

impl Flags {
    /// Reads the command line and the file that --config names.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, FlagsRefusal> {
        drydock_command::read(arguments, Self::contradiction)
    }

    /// The address to listen on; none if --secure-port is 0.
    pub fn address(&self) -> Option<SocketAddr> {
        (self.secure_port != 0).then(|| SocketAddr::new(self.bind_address, self.secure_port))
    }

    /// The certificate to serve with.
    pub fn serving(&self) -> CertificateSource {
        let address = Some(self.bind_address).filter(|address| !address.is_unspecified());
        CertificateSource {
            files: self.tls_cert_file.clone().zip(self.tls_private_key_file.clone()),
            cert_dir: self.cert_dir.clone(),
            names: address.iter().map(IpAddr::to_string).collect(),
        }
    }

    /// Returns the error about flags that contradict each other, if some do.
    fn contradiction(&self) -> Option<&'static str> {
        if self.leader_elect_lease_duration <= self.leader_elect_renew_deadline {
            return Some("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline");
        }
        (self.leader_elect_renew_deadline <= self.leader_elect_retry_period)
            .then_some("--leader-elect-renew-deadline must be longer than --leader-elect-retry-period")
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
