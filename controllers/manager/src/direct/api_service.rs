//! What the APIService of our kinds says of the server behind it: its Service, and the CA of its certificate.

use std::fmt;

use drydock_api::{GROUP, VERSION};
use drydock_logging::WatchFailures;
use drydock_serving::host::ServiceRef;
use futures::StreamExt;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceSpec};
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tracing::warn;

/// The port of an APIService that names none.
const HTTPS: u16 = 443;

/// The server behind an APIService, which can be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerifiedServer {
    /// Its Service.
    pub(super) service: ServiceRef,
    /// CAs of its certificate (PEM).
    pub(super) ca_bundle: Vec<u8>,
}

/// Why the APIService leads to no server that can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoServer {
    /// It has not been read yet.
    Unread,
    /// There is none.
    Missing,
    /// The host serves the kinds itself.
    Local,
    /// `insecureSkipTLSVerify`: the aggregator does not verify the server, and we send no token to one that is not
    /// verified.
    Insecure,
    /// There is no `caBundle`.
    NoBundle,
}

impl NoServer {
    /// The name in metrics, label `reason`.
    pub(super) const NAME: &str = "apiservice";
}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = name();
        match self {
            Self::Unread => write!(f, "APIService {name} has not been read yet"),
            Self::Missing => write!(f, "there is no APIService {name}"),
            Self::Local => write!(f, "APIService {name} names no Service"),
            Self::Insecure => write!(f, "APIService {name} has insecureSkipTLSVerify"),
            Self::NoBundle => write!(f, "APIService {name} has no caBundle"),
        }
    }
}

impl VerifiedServer {
    /// Reads the server off an APIService.
    fn of(api_service: Option<&APIService>) -> Result<Self, NoServer> {
        let spec = api_service.and_then(|it| it.spec.as_ref()).ok_or(NoServer::Missing)?;
        let service = service(spec).ok_or(NoServer::Local)?;
        if spec.insecure_skip_tls_verify == Some(true) {
            return Err(NoServer::Insecure);
        }
        let ca_bundle = spec.ca_bundle.as_ref().map(|bundle| bundle.0.clone()).unwrap_or_default();
        if ca_bundle.is_empty() { Err(NoServer::NoBundle) } else { Ok(Self { service, ca_bundle }) }
    }
}

fn service(spec: &APIServiceSpec) -> Option<ServiceRef> {
    let service = spec.service.as_ref()?;
    Some(ServiceRef {
        namespace: service.namespace.clone()?,
        name: service.name.clone()?,
        port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(HTTPS),
    })
}

/// Tells what the APIService says, and what it says after each change. While the host cannot be asked, what was known
/// stays.
pub(super) async fn follow(api: Api<APIService>, tell: impl Fn(Result<VerifiedServer, NoServer>)) {
    let only = watcher::Config::default().fields(&format!("metadata.name={}", name()));
    let mut events = watcher(api, only).default_backoff().boxed();
    let (mut failures, mut is_there) = (WatchFailures::default(), false);
    while let Some(event) = events.next().await {
        if let Some(error) = failures.take_in(&event) {
            warn!(error, "cannot follow APIService {}; trying again", name());
        }
        match event {
            Ok(Event::Init) => is_there = false,
            Ok(Event::InitApply(api_service) | Event::Apply(api_service)) => {
                is_there = true;
                tell(VerifiedServer::of(Some(&api_service)));
            }
            Ok(Event::InitDone) if is_there => {}
            Ok(Event::InitDone | Event::Delete(_)) => tell(VerifiedServer::of(None)),
            Err(_) => {}
        }
    }
}

/// The name of the APIService of our kinds.
fn name() -> String {
    format!("{VERSION}.{GROUP}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn server(spec: &Value) -> Result<VerifiedServer, NoServer> {
        let mut whole = json!({"groupPriorityMinimum": 1, "versionPriority": 1});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let object = json!({"metadata": {"name": "v1alpha1.coordination.k8s.io"}, "spec": whole});
        VerifiedServer::of(Some(&serde_json::from_value(object).unwrap()))
    }

    #[test]
    fn a_server_is_named_by_its_service_and_verified_by_the_bundle() {
        let found = server(&json!({"service": {"name": "a", "namespace": "n"}, "caBundle": "QUI="})).unwrap();
        assert_eq!(found.service.url(), "https://a.n.svc:443");
        assert_eq!(found.ca_bundle, b"AB");
        let service = json!({"name": "a", "namespace": "n", "port": 8443});
        let found = server(&json!({"service": service, "caBundle": "QUI="})).unwrap();
        assert_eq!(found.service.url(), "https://a.n.svc:8443");
    }

    /// A token must not be shown to whoever answers at the Service's address.
    #[test]
    fn a_server_that_cannot_be_verified_is_left_to_the_aggregator() {
        let service = json!({"name": "a", "namespace": "n"});
        let insecure = json!({"service": service, "insecureSkipTLSVerify": true, "caBundle": "QUI="});
        assert_eq!(server(&insecure), Err(NoServer::Insecure));
        assert_eq!(server(&json!({ "service": service })), Err(NoServer::NoBundle));
        assert_eq!(server(&json!({})), Err(NoServer::Local));
        assert_eq!(VerifiedServer::of(None), Err(NoServer::Missing));
    }
}
