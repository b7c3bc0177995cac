//! Calls a webhook over HTTP, with the errors of the host's client (k8s.io/client-go rest/request.go, apimachinery
//! pkg/api/errors, NewGenericServerResponse).

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use drydock_machinery::quote::go_quote;
use drydock_serving::clock;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use kube::Client;
use serde_json::Value;

use super::endpoint::Endpoint;

/// Largest response that is read, in bytes.
const LARGEST: usize = 3 << 20;
/// Maximum number of retries of a webhook that asks for one (k8s.io/client-go rest/request.go, maxRetries).
const RETRIES: usize = 10;
/// Maximum number of bytes of an error response that are shown.
const SHOWN: usize = 2048;

/// Why a call failed, and the code for the metrics: that of the response, or 503 without a response (k8s.io/apiserver
/// pkg/admission/plugin/webhook/validating/dispatcher.go).
#[derive(Debug)]
pub struct WebhookCallError {
    /// The message.
    pub why: String,
    /// The HTTP status.
    pub code: u16,
}

impl From<String> for WebhookCallError {
    fn from(why: String) -> Self {
        Self { why, code: 503 }
    }
}

/// Posts a review and returns the body of the response. Fails if there is none before `deadline`.
pub async fn post(
    host: &Client,
    to: &Endpoint,
    review: &Value,
    deadline: Instant,
) -> Result<Bytes, WebhookCallError> {
    let client = to.client(host).map_err(|why| WebhookCallError { why, code: 500 })?;
    let left = deadline.saturating_duration_since(clock::now());
    let url = with_timeout(to.url()?, left);
    let failed = |why: &str| format!("Post {}: {why}", go_quote(&url));
    let body = Bytes::from(review.to_string());
    let send = || async {
        let request = Request::post(&url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, concat!("drydock-apiserver/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body.clone()))
            .map_err(|error| failed(&error.to_string()))?;
        client.request(request).await.map_err(|error| failed(&words(&error)))
    };
    let answered = async {
        let answer = persistently(send).await?;
        let (status, is_text) = (answer.status(), is_text(answer.headers()));
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => format!("webhook response body is larger than {LARGEST} bytes"),
            None => failed(&error.to_string()),
        })?;
        Ok((status, is_text, body.to_bytes()))
    };
    let answered = tokio::time::timeout_at(deadline.into(), answered).await;
    let (status, is_text, body) = answered.unwrap_or_else(|_| Err(failed("context deadline exceeded")))?;
    if status.is_success() {
        return Ok(body);
    }
    Err(WebhookCallError { why: refused(status, is_text, &body), code: status.as_u16() })
}

/// Sends the request, and again if the response has a Retry-After (k8s.io/client-go rest/with_retry.go).
async fn persistently<B, F>(send: impl Fn() -> F) -> Result<Response<B>, String>
where
    B: BodyExt,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    F: Future<Output = Result<Response<B>, String>>,
{
    for _ in 0..RETRIES {
        let answer = send().await?;
        let Some(wait) = retry_after(answer.status(), answer.headers()) else { return Ok(answer) };
        // Reading the body lets the next request reuse the connection.
        drop(Limited::new(answer.into_body(), SHOWN).collect().await);
        tokio::time::sleep(wait).await;
    }
    send().await
}

fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let may_ask = status == StatusCode::TOO_MANY_REQUESTS || status.as_u16() >= 500;
    let asked = headers.get(header::RETRY_AFTER).filter(|_| may_ask)?;
    let seconds = asked.to_str().ok()?.parse::<i64>().ok()?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

/// Adds the remaining time to the URL, in whole seconds, for the webhook.
fn with_timeout(url: &str, left: Duration) -> String {
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}timeout={seconds}s")
}

/// Returns Go's message for a connection error.
fn words(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = cause(innermost) {
        innermost = cause;
    }
    match innermost.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("tls: failed to verify certificate: {}", x509(why))
        }
        Some(other) => format!("tls: {other}"),
        None => innermost.to_string(),
    }
}

/// Returns the cause of an error. An I/O error contains its cause without returning it from `source`.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let held = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    held.map(|held| held as &(dyn Error + 'static)).or_else(|| error.source())
}

fn x509(why: &rustls::CertificateError) -> String {
    use rustls::CertificateError as E;
    match why {
        E::UnknownIssuer => "x509: certificate signed by unknown authority".to_owned(),
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            format!("x509: certificate has expired or is not yet valid: {why}")
        }
        E::NotValidForNameContext { expected, presented } => {
            let named = |name: &String| {
                name.strip_prefix("DnsName(\"")
                    .and_then(|it| it.strip_suffix("\")"))
                    .unwrap_or(name)
                    .to_owned()
            };
            let presented: Vec<String> = presented.iter().map(named).collect();
            format!("x509: certificate is valid for {}, not {}", presented.join(", "), expected.to_str())
        }
        other => format!("x509: {other}"),
    }
}

/// Whether the body may be shown: only text is.
fn is_text(headers: &HeaderMap) -> bool {
    let type_ = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    type_.is_none_or(|type_| type_.starts_with("text/"))
}

fn refused(status: StatusCode, is_text: bool, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    let shown = if is_text { text.trim().to_owned() } else { "unknown".to_owned() };
    let fixed = match status.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        403 | 406 | 415 => return shown,
        500.. => {
            return format!(
                "an error on the server ({}) has prevented the request from succeeding",
                go_quote(&shown)
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Returns the final status, and the number of calls, for these responses; the last one repeats.
    async fn asked(answers: &[(u16, Option<&str>)]) -> (u16, usize) {
        let count = AtomicUsize::new(0);
        let send = || async {
            let turn = count.fetch_add(1, Ordering::Relaxed);
            let (status, retry) = answers[turn.min(answers.len() - 1)];
            let mut answer = Response::new(Full::new(Bytes::new()));
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            if let Some(retry) = retry {
                answer.headers_mut().insert(header::RETRY_AFTER, retry.parse().unwrap());
            }
            Ok(answer)
        };
        let last = persistently(send).await.unwrap().status().as_u16();
        (last, count.into_inner())
    }

    #[tokio::test]
    async fn a_webhook_that_asks_for_another_time_is_asked_again() {
        assert_eq!(asked(&[(503, Some("0")), (429, Some("0")), (200, None)]).await, (200, 3));
        assert_eq!(asked(&[(429, Some("0"))]).await, (429, 11));
        for (status, retry) in [(503, None), (404, Some("0")), (500, Some("soon"))] {
            assert_eq!(asked(&[(status, retry)]).await, (status, 1));
        }
    }

    #[test]
    fn an_answer_that_is_none_is_described_as_the_host_describes_it() {
        let said = |code: u16, body: &str| {
            refused(StatusCode::from_u16(code).unwrap_or_default(), !body.starts_with('{'), body.as_bytes())
        };
        assert_eq!(said(404, "nothing here"), "the server could not find the requested resource");
        assert_eq!(
            said(500, "boom\n"),
            "an error on the server (\"boom\") has prevented the request from succeeding"
        );
        assert_eq!(
            said(502, "{}"),
            "an error on the server (\"unknown\") has prevented the request from succeeding"
        );
        assert_eq!(said(403, "no"), "no");
    }

    #[test]
    fn the_webhook_is_told_its_time_in_whole_seconds() {
        assert_eq!(with_timeout("https://a/b", Duration::from_millis(1500)), "https://a/b?timeout=2s");
        assert_eq!(with_timeout("https://a/b?c=d", Duration::from_secs(3)), "https://a/b?c=d&timeout=3s");
    }
}
