//! A webhook as in a real cluster: HTTPS with a certificate of its own CA, and an answer for each path.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use drydock_testkit::link::accepted;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The server. It ends with the test.
pub struct WebhookServer {
    /// Where it listens, on loopback.
    pub port: u16,
    /// The CA of its certificate, in PEM.
    pub ca: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    is_released: watch::Sender<bool>,
}

impl WebhookServer {
    /// Starts it, with a certificate for loopback and for `name`.
    pub async fn start(name: &str) -> Result<Self> {
        let (ca, config) = certificate(name)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_released = watch::Sender::new(false);
        let (acceptor, seen) = (TlsAcceptor::from(Arc::new(config)), asked.clone());
        let released = is_released.subscribe();
        tokio::spawn(async move {
            loop {
                let stream = accepted(&listener).await;
                let (acceptor, seen, released) = (acceptor.clone(), seen.clone(), released.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service =
                        service_fn(move |request| answered(request, seen.clone(), released.clone()));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { port, ca, asked, is_released })
    }

    /// Allows what is held on the path `held`, from now on at once.
    pub fn release(&self) {
        self.is_released.send_replace(true);
    }

    /// Its address for a path, and whom to believe.
    pub fn client_config(&self, path: &str) -> Value {
        let url = format!("https://127.0.0.1:{}/{path}", self.port);
        json!({"url": url, "caBundle": ByteString(self.ca.clone().into_bytes())})
    }

    /// What it was asked on a path so far, and forgets it.
    pub fn asked(&self, path: &str) -> Vec<Value> {
        let mut all = self.asked.lock().unwrap_or_else(|broken| broken.into_inner());
        let (of_path, others) = std::mem::take(&mut *all).into_iter().partition(|(it, _)| it == path);
        *all = others;
        let of_path: Vec<(String, Value)> = of_path;
        of_path.into_iter().map(|(_, review)| review).collect()
    }
}

fn certificate(name: &str) -> Result<(String, ServerConfig)> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, format!("CA of {name}"));
    let key = KeyPair::generate()?;
    let ca = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate()?;
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".into(), name.into()])?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((ca, config))
}

type Seen = Arc<Mutex<Vec<(String, Value)>>>;

async fn answered(
    request: Request<Incoming>,
    seen: Seen,
    mut released: watch::Receiver<bool>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let answer = answer(&path, request, seen).await;
    if path == "held" {
        let _ = released.wait_for(|is_released| *is_released).await;
    }
    Ok(answer.unwrap_or_else(|error| plain(400, &format!("{error:#}"))))
}

async fn answer(path: &str, request: Request<Incoming>, seen: Seen) -> Result<Response<Full<Bytes>>> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body)?;
    let uid = review["request"]["uid"].as_str().context("no uid")?.to_owned();
    seen.lock().unwrap_or_else(|broken| broken.into_inner()).push((path.to_owned(), review.clone()));
    let said = |response: Value| {
        let mut whole =
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
        if whole["response"]["uid"].is_null() {
            whole["response"]["uid"] = uid.clone().into();
        }
        plain(200, &whole.to_string())
    };
    let patch = |operations: Value| {
        said(
            json!({"allowed": true, "patchType": "JSONPatch", "patch": ByteString(operations.to_string().into_bytes())}),
        )
    };
    Ok(match path {
        "deny" => said(json!({"allowed": false, "status": {"message": "not today", "code": 403, "reason": "Forbidden"}})),
        "details" => said(json!({"allowed": false, "status": {
            "status": "Success", "code": 200, "reason": "Teapot",
            "details": {"name": "x", "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "spec"}]},
        }})),
        "silent" => said(json!({"allowed": false})),
        "warn" => said(json!({"allowed": true, "warnings": ["mind the gap"], "auditAnnotations": {"a": "b"}})),
        "patching" => patch(json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}])),
        "missing" => patch(json!([{"op": "replace", "path": "/nothing/there", "value": 1}])),
        "undecodable" => patch(json!("no patch")),
        "unknown" => patch(json!([{"op": "add", "path": "/spec/nobodyKnows", "value": 1}])),
        "invalid" => patch(json!([{"op": "add", "path": "/metadata/labels/x", "value": "not a label!"}])),
        "count" => {
            let labels = &review["request"]["object"]["metadata"]["labels"];
            let seen = labels["count"].as_str().and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
            patch(json!([{"op": "add", "path": "/metadata/labels/count", "value": (seen + 1).to_string()}]))
        }
        "garbage" => plain(200, "not even JSON"),
        "absent" => plain(200, r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#),
        "other" => plain(200, &json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v9", "response": {"uid": uid}}).to_string()),
        "boom" => {
            let mut boom = plain(500, "boom");
            boom.headers_mut().insert("content-type", http::HeaderValue::from_static("text/plain"));
            boom
        }
        "bang" => plain(500, "bang"),
        "away" => plain(404, "away"),
        "never" => std::future::pending().await,
        _ => said(json!({"allowed": true})),
    })
}

fn plain(code: u16, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
