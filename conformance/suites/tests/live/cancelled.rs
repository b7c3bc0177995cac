//! A tenant who cancels what they ask for. The host sends the requests of all users to us over one connection, which h2
//! ended when 21 requests had been cancelled before they were looked at: every watch of everybody broke.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use drydock_testkit::kinds::{node_maintenance, node_maintenances};
use drydock_testkit::wait::allowed;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{StreamExt, TryStreamExt};
use http::Request;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::api::{DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::shared::{LIMIT, Namespace, Shared, shared};

const BURSTS: usize = 30;
/// Streams that are cancelled together: the host grants a connection 100.
const BURST: usize = 90;
const OF_ANOTHER: &str = "beside-cancelled-requests";

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_who_cancels_interrupts_nobody() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("cancelled-requests").await?;
    let path = format!("/apis/coordination.k8s.io/v1alpha1/namespaces/{}/evictionrequests", namespace.name);
    let mut tenant = tenant(shared, &namespace).await?;
    namespace.kubectl.apply(&node_maintenance(OF_ANOTHER, "Idle", &["nowhere"])).await?;
    let maintenances = node_maintenances(&namespace.client);
    let watched = WatchParams::default().fields(&format!("metadata.name={OF_ANOTHER}"));
    let mut events = maintenances.watch(&watched, "0").await?.boxed();
    for round in 0..BURSTS {
        let ask = |_| tenant.send_request(get(&path));
        let mut asked: FuturesUnordered<_> = (0..BURST).map(ask).collect();
        // By the first answer the host has passed on the others too; they are cancelled here.
        let first = asked.next().await.context("an answer")??;
        assert_eq!(first.status(), 200);
        drop(asked);
        let noted = json!({"metadata": {"annotations": {"round": round.to_string()}}});
        maintenances.patch(OF_ANOTHER, &PatchParams::default(), &Patch::Merge(&noted)).await?;
        tokio::time::timeout(LIMIT, read_until(&mut events, &round.to_string()))
            .await
            .context("a silent watch")??;
    }
    namespace.kubectl.ok(&["delete", "nm", OF_ANOTHER]).await.map(drop)
}

/// Reads up to the event of a round; the watch must not end.
async fn read_until(
    events: &mut BoxStream<'_, kube::Result<WatchEvent<DynamicObject>>>,
    round: &str,
) -> Result<()> {
    loop {
        match events.try_next().await?.context("the watch ended")? {
            WatchEvent::Added(it) | WatchEvent::Modified(it) => {
                let noted = it.metadata.annotations.unwrap_or_default();
                if noted.get("round").is_some_and(|noted| noted == round) {
                    return Ok(());
                }
            }
            WatchEvent::Bookmark(_) => {}
            other => bail!("{other:?}"),
        }
    }
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = format!("https://kubernetes{path}").parse().unwrap_or_default();
    request
}

/// A connection to the host, of a user who may list the requests of the namespace.
async fn tenant(shared: &Shared, namespace: &Namespace) -> Result<SendRequest<Empty<Bytes>>> {
    let may =
        ["create", "role", "reader", "--verb=get,list", "--resource=evictionrequests.coordination.k8s.io"];
    namespace.kubectl.ok(&may).await?;
    namespace.kubectl.ok(&["create", "rolebinding", "reader", "--role=reader", "--user=canceller"]).await?;
    let list = json!({"group": "coordination.k8s.io", "resource": "evictionrequests", "verb": "list",
        "namespace": namespace.name});
    let review = json!({"spec": {"user": "canceller", "resourceAttributes": list}});
    allowed(&namespace.client, &serde_json::from_value(review)?, LIMIT).await?;
    let file = Kubeconfig::read_from(shared.drydock.host.kubeconfig("canceller", &[])?)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let authority = config.cluster_url.authority().context("the host's address")?;
    let stream = TcpStream::connect(authority.as_str()).await?;
    let name = ServerName::try_from(authority.host().to_owned())?;
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
    let (sends, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sends)
}
