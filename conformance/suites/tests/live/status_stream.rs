//! The status stream on our own port, with the tokens of service accounts: who may open it, and what ends it.

use std::path::Path;

use anyhow::{Context, Result, bail};
use drydock_proto::status::v1alpha1::status_service_client::StatusServiceClient;
use drydock_proto::status::v1alpha1::watch_evictions_response::Event;
use drydock_proto::status::v1alpha1::{GetNodeRequest, WatchEvictionsRequest, WatchEvictionsResponse};
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::allowed;
use serde_json::json;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::shared::{LIMIT, Namespace, Shared, shared};

const SERVICE: &str = "drydock.status.v1alpha1.StatusService";

/// Connects to a server of ours whose certificate a CA has signed.
pub async fn connect(url: &str, ca: &Path, server_name: &str) -> Result<Channel> {
    let ca = Certificate::from_pem(std::fs::read(ca)?);
    let tls = ClientTlsConfig::new().ca_certificate(ca).domain_name(server_name);
    Ok(Endpoint::new(url.to_owned())?.tls_config(tls)?.connect().await?)
}

/// A request with a token, or with none.
pub fn with_token<T>(message: T, token: &str) -> Result<Request<T>> {
    let mut request = Request::new(message);
    if !token.is_empty() {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse()?);
    }
    Ok(request)
}

/// The next response, if there is one within the limit.
pub async fn next<T>(stream: &mut Streaming<T>) -> Result<Result<T, Status>> {
    let message = tokio::time::timeout(LIMIT, stream.message()).await.context("the stream says nothing")?;
    Ok(message.and_then(|message| message.ok_or_else(|| Status::ok("the stream has ended without a status"))))
}

async fn channel(shared: &Shared) -> Result<Channel> {
    let drydock = &shared.drydock;
    connect(&drydock.url(), &drydock.ca(), &drydock.server_name()).await
}

/// A service account `watcher` that may watch the evictions of its namespace, and its token.
async fn watcher(shared: &Shared, namespace: &Namespace) -> Result<String> {
    let kubectl = &namespace.kubectl;
    kubectl.ok(&["create", "serviceaccount", "watcher"]).await?;
    let resource = "--resource=evictionrequests.coordination.k8s.io";
    kubectl.ok(&["create", "role", "watcher", "--verb=watch", resource]).await?;
    let account = format!("--serviceaccount={}:watcher", namespace.name);
    kubectl.ok(&["create", "rolebinding", "watcher", "--role=watcher", &account]).await?;
    let attributes = json!({"namespace": namespace.name, "verb": "watch", "group": "coordination.k8s.io",
                            "version": "v1alpha1", "resource": "evictionrequests"});
    let user = format!("system:serviceaccount:{}:watcher", namespace.name);
    let review = json!({"spec": {"user": user, "resourceAttributes": attributes}});
    allowed(&shared.drydock.host.client().await?, &serde_json::from_value(review)?, LIMIT).await?;
    Ok(kubectl.ok(&["create", "token", "watcher"]).await?.trim().to_owned())
}

async fn watch(
    channel: &Channel,
    token: &str,
    namespace: &str,
) -> Result<Result<Streaming<WatchEvictionsResponse>, Status>> {
    let message = WatchEvictionsRequest { namespace: namespace.to_owned(), ..Default::default() };
    let request = with_token(message, token)?;
    let opened = StatusServiceClient::new(channel.clone()).watch_evictions(request).await;
    Ok(opened.map(tonic::Response::into_inner))
}

/// Reads up to the end of the snapshot, and returns how many evictions it has.
async fn snapshot(stream: &mut Streaming<WatchEvictionsResponse>) -> Result<usize> {
    let mut evictions = 0;
    loop {
        match next(stream).await??.event {
            Some(Event::Updated(_)) => evictions += 1,
            Some(Event::SnapshotComplete(_)) => return Ok(evictions),
            _ => {}
        }
    }
}

/// Reads to the end of the stream, and returns the status that it ends with.
async fn end(stream: &mut Streaming<WatchEvictionsResponse>) -> Result<Status> {
    loop {
        if let Err(status) = next(stream).await? {
            return Ok(status);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_in_one_namespace_give_its_stream_which_ends_with_them() -> Result<()> {
    let shared = shared().await?;
    let (namespace, other) =
        (shared.namespace("stream-mine").await?, shared.namespace("stream-other").await?);
    let (token, channel) = (watcher(shared, &namespace).await?, channel(shared).await?);
    let mut stream = watch(&channel, &token, "stream-mine").await??;
    assert_eq!(snapshot(&mut stream).await?, 0);
    for elsewhere in ["stream-other", ""] {
        let refused = watch(&channel, &token, elsewhere).await?.err().context("not refused")?;
        assert_eq!(refused.code(), Code::PermissionDenied, "{elsewhere:?}: {refused}");
        assert!(refused.message().contains("cannot watch resource \"evictionrequests\""), "{refused}");
    }
    let node = with_token(GetNodeRequest { name: "n".to_owned() }, &token)?;
    let refused =
        StatusServiceClient::new(channel.clone()).get_node(node).await.err().context("not refused")?;
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    for token_of in ["", "no-token"] {
        // On a connection of its own: one without an authenticated user takes no further requests.
        let channel = self::channel(shared).await?;
        let refused = watch(&channel, token_of, "stream-mine").await?.err().context("not refused")?;
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    }
    // The other namespace's object first: if it were delivered, it would come before our own.
    let node = shared.node("stream-rights").await?;
    other.held_request("p", &node).await?;
    let uid = namespace.held_pod("p", &node).await?;
    namespace.kubectl.apply(&eviction_request("p", &uid, "test.example.com")).await?;
    let eviction = loop {
        if let Some(Event::Updated(eviction)) = next(&mut stream).await??.event {
            break eviction;
        }
    };
    assert_eq!((eviction.namespace.as_str(), eviction.name.as_str()), ("stream-mine", uid.as_str()));
    namespace.kubectl.ok(&["delete", "rolebinding", "watcher"]).await?;
    let ended = end(&mut stream).await?;
    assert_eq!(ended.code(), Code::PermissionDenied, "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_deleted_service_account_ends() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("stream-leaver").await?;
    let (token, channel) = (watcher(shared, &namespace).await?, channel(shared).await?);
    let mut stream = watch(&channel, &token, "stream-leaver").await??;
    snapshot(&mut stream).await?;
    namespace.kubectl.ok(&["delete", "serviceaccount", "watcher"]).await?;
    let ended = end(&mut stream).await?;
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_for_everybody_and_reflection_for_whoever_is_authenticated() -> Result<()> {
    let shared = shared().await?;
    let channel = channel(shared).await?;
    let check = HealthCheckRequest { service: SERVICE.to_owned() };
    let healthy = HealthClient::new(channel.clone()).check(check).await?.into_inner();
    assert_eq!(healthy.status(), ServingStatus::Serving);
    let refused = services(&self::channel(shared).await?, "").await?.err().context("not refused")?;
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let namespace = shared.namespace("stream-reflection").await?;
    let token = watcher(shared, &namespace).await?;
    let Some(MessageResponse::ListServicesResponse(list)) =
        services(&channel, &token).await??.message_response
    else {
        bail!("no list of services")
    };
    assert!(list.service.iter().any(|service| service.name == SERVICE), "{list:?}");
    Ok(())
}

/// What reflection says of the services.
async fn services(channel: &Channel, token: &str) -> Result<Result<ServerReflectionResponse, Status>> {
    let question = MessageRequest::ListServices(String::new());
    let question = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let request = with_token(futures::stream::iter([question]), token)?;
    match ServerReflectionClient::new(channel.clone()).server_reflection_info(request).await {
        Ok(answers) => next(&mut answers.into_inner()).await,
        Err(status) => Ok(Err(status)),
    }
}
