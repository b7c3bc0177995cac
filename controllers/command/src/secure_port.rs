//! The port that serves probes and metrics by HTTPS.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use drydock_runtime::ControllerContext;
use drydock_runtime::lease::LeaseHandle;
use drydock_runtime::metrics::router;
use drydock_serving::auth::delegated::DelegatedAuth;
use drydock_serving::health::Health;
use drydock_serving::metrics_port::{self, BoundPort, ServedPaths};
use drydock_serving::tasks::ProgramTasks;
use drydock_serving::tls::CertificateSource;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// Flags of the port, as Kubernetes' own controllers have them (k8s.io/apiserver pkg/server/options/serving.go).
#[derive(Clone, Debug, Args)]
pub struct SecurePortFlags {
    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub bind_address: IpAddr,
    /// Port to serve /healthz, /livez, /readyz and /metrics on, by HTTPS; 0 serves nothing
    #[arg(long, value_name = "PORT", default_value_t = 8444)]
    pub secure_port: u16,
    /// Serving certificate (PEM); without it, one is made in --cert-dir
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of --tls-cert-file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Folder for the certificate that is made without --tls-cert-file: ca.crt, ca.key, tls.crt, tls.key
    #[arg(long, value_name = "DIR", default_value = "drydock-manager-certs")]
    pub cert_dir: PathBuf,
    /// Audiences for bearer tokens: the host's TokenReview must confirm one of them; the host's own audience if absent
    #[arg(long, value_name = "AUDIENCES", value_delimiter = ',')]
    pub api_audiences: Vec<String>,
}

impl SecurePortFlags {
    /// Binds the port, whose certificate `tasks` keep fresh; nothing if --secure-port is 0.
    ///
    /// # Errors
    /// The address is taken, or the certificate cannot be used; the error names the flag.
    pub async fn bind(&self, tasks: &ProgramTasks) -> anyhow::Result<Option<BoundPort>> {
        match self.address() {
            Some(address) => metrics_port::bind(address, &self.certificate(), tasks).await.map(Some),
            None => Ok(None),
        }
    }

    /// Serves a port until the process ends, if it is bound. It is ready when `is_synced` returns true, unless the API server
    /// refuses the writes of this process. Callers are reviewed by `reviews`.
    pub fn serve(
        &self,
        port: Option<BoundPort>,
        is_synced: impl Fn() -> bool + Send + Sync + 'static,
        context: &ControllerContext,
        reviews: Client,
    ) {
        let Some(port) = port else { return };
        let health = health(is_synced, context.lease.clone());
        let auth = DelegatedAuth::new(reviews).for_audiences(self.api_audiences.clone());
        let paths = ServedPaths { health, auth, metrics: router(context.metrics.clone()) };
        tokio::spawn(metrics_port::serve(port, paths, CancellationToken::new()));
    }

    fn address(&self) -> Option<SocketAddr> {
        (self.secure_port != 0).then(|| SocketAddr::new(self.bind_address, self.secure_port))
    }

    fn certificate(&self) -> CertificateSource {
        let address = Some(self.bind_address).filter(|address| !address.is_unspecified());
        CertificateSource {
            files: self.tls_cert_file.clone().zip(self.tls_private_key_file.clone()),
            cert_dir: self.cert_dir.clone(),
            names: address.iter().map(IpAddr::to_string).collect(),
        }
    }
}

/// A process that lost its lease ends by itself, so one that answers is alive.
fn health(is_synced: impl Fn() -> bool + Send + Sync + 'static, lease: LeaseHandle) -> Health {
    let ready = move || if is_synced() { Ok(()) } else { Err("caches are not complete yet".to_owned()) };
    let may_write = move || match lease.refused_token() {
        None => Ok(()),
        Some(refused) => Err(format!(
            "the API server refuses the writes of this term of the lease, {}: the newest one is {}",
            refused.term, refused.newest
        )),
    };
    let health = Health::default().live("ping", Arc::new(|| Ok(()))).ready("caches", Arc::new(ready));
    health.ready("fencing-token", Arc::new(may_write))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use drydock_runtime::clock::Clock;
    use drydock_serving::request::query::Query;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        port: SecurePortFlags,
    }

    #[tokio::test]
    async fn port_zero_serves_nothing() {
        let flags = Program::try_parse_from(["program", "--secure-port=0"]).unwrap().port;
        assert!(flags.bind(&ProgramTasks::new(CancellationToken::new())).await.unwrap().is_none());
    }

    /// Regression: a manager whose writes were all refused was ready.
    #[test]
    fn a_process_whose_writes_are_refused_is_alive_and_not_ready() {
        let of = |lease| health(|| true, lease);
        assert!(of(LeaseHandle::unelected(Clock::SYSTEM)).is_ready());
        assert!(of(LeaseHandle::pending(Clock::SYSTEM)).is_ready(), "a standby");
        let refused = of(LeaseHandle::refused(Clock::SYSTEM));
        assert!(!refused.is_ready());
        let status = |path| refused.answer(path, &Query::default()).unwrap().status().as_u16();
        assert_eq!(
            (status("/livez"), status("/readyz/caches"), status("/readyz/fencing-token")),
            (200, 200, 500)
        );
    }

    #[test]
    fn a_certificate_is_made_for_the_address_unless_it_is_every_one() {
        let names = |address: &str| {
            let flag = format!("--bind-address={address}");
            Program::try_parse_from(["program", &flag]).unwrap().port.certificate().names
        };
        assert_eq!((names("10.0.0.1"), names("0.0.0.0")), (vec!["10.0.0.1".to_owned()], vec![]));
    }
}
