//! The options that every such server has (k8s.io/apiserver pkg/server/options, RecommendedOptions), by the names
//! that operators of Kubernetes know.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drydock_serving::serve::Bounds;
use drydock_serving::tls::CertificateSource;
use drydock_storage::location::StorageLocation;

use crate::api_group::Identity;
use crate::audit;

/// Everything that a server is built from, except the kinds.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the server calls itself.
    pub identity: Identity<'static>,
    /// Where it listens: --bind-address, --secure-port.
    pub address: SocketAddr,
    /// The certificate that it shows to clients.
    pub serving: CertificateSource,
    /// How it reaches the host.
    pub host: HostFiles,
    /// Which CAs and headers it trusts in place of the host's ConfigMap.
    pub trust: Trust,
    /// Where objects are stored.
    pub storage: Arc<dyn StorageLocation>,
    /// --max-requests-inflight
    pub max_requests_inflight: usize,
    /// --max-mutating-requests-inflight
    pub max_mutating_requests_inflight: usize,
    /// --controller-users: names of users.
    pub controller_users: Vec<String>,
    /// --api-audiences: the audiences that a token must be for; empty for the host's own.
    pub api_audiences: Vec<String>,
    /// --max-connections-per-address
    pub max_connections_per_address: usize,
    /// --request-timeout
    pub request_timeout: Duration,
    /// --audit-policy-file and its like.
    pub audit: audit::Options,
    /// --shutdown-delay-duration
    pub shutdown_delay: Duration,
}

/// Kubeconfig files; the in-cluster configuration if absent.
#[derive(Clone, Debug, Default)]
pub struct HostFiles {
    /// --kubeconfig
    pub kubeconfig: Option<PathBuf>,
    /// --authentication-kubeconfig, for TokenReviews; `kubeconfig` if absent.
    pub authentication: Option<PathBuf>,
    /// --authorization-kubeconfig, for SubjectAccessReviews; `kubeconfig` if absent.
    pub authorization: Option<PathBuf>,
}

/// The CAs and headers that are trusted. The host's ConfigMap gives what is absent here.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// --client-ca-file
    pub client_ca_file: Option<PathBuf>,
    /// --requestheader-client-ca-file
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// --requestheader-allowed-names
    pub allowed_names: Vec<String>,
    /// --requestheader-username-headers
    pub username_headers: Vec<String>,
    /// --requestheader-uid-headers
    pub uid_headers: Vec<String>,
    /// --requestheader-group-headers
    pub group_headers: Vec<String>,
    /// --requestheader-extra-headers-prefix
    pub extra_headers_prefix: Vec<String>,
}

impl Options {
    /// Options of a server that listens on `address` and generates its certificate in `cert_dir`. Options that
    /// kube-apiserver also has get its defaults.
    pub fn new(
        identity: Identity<'static>,
        address: SocketAddr,
        cert_dir: PathBuf,
        storage: Arc<dyn StorageLocation>,
    ) -> Self {
        Self {
            identity,
            address,
            serving: CertificateSource { files: None, cert_dir, names: Vec::new() },
            host: HostFiles::default(),
            trust: Trust::default(),
            storage,
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            controller_users: Vec::new(),
            api_audiences: Vec::new(),
            max_connections_per_address: Bounds::CONNECTIONS_PER_ADDRESS,
            request_timeout: Duration::from_secs(60),
            audit: audit::Options::default(),
            shutdown_delay: Duration::ZERO,
        }
    }
}
