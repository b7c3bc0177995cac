//! Waiting for a state: by watch where there is an object, by bounded retry for a process that starts.

use std::fmt::Debug;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, PostParams};
use kube::runtime::wait::Condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::Processes;

/// How long to wait for anything: only what is broken takes so long, on a busy machine too. What takes a host, Drydock or a
/// person seconds may take minutes there.
pub const LIMIT: Duration = Duration::from_secs(300);

const RETRY: Duration = Duration::from_millis(100);

/// Watches one object until the condition holds, and returns it (None if the condition holds for its absence). A watch that
/// fails is opened again: a busy server may be away for a moment.
pub async fn until<K>(
    api: Api<K>,
    name: &str,
    limit: Duration,
    what: &str,
    condition: impl Condition<K>,
) -> Result<Option<K>>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    let mut states = pin!(watcher::watch_object(api.clone(), name).default_backoff());
    let found = async {
        while let Some(state) = states.next().await {
            if let Ok(object) = state
                && condition.matches_object(object.as_ref())
            {
                return Ok(object);
            }
        }
        bail!("the watch of {name} ended")
    };
    let Ok(found) = tokio::time::timeout(limit, found).await else {
        let last = api.get_opt(name).await;
        bail!("{name}: not {what} within {limit:?}; it is now {last:?}");
    };
    found
}

/// Waits for what a process does when it starts, such as that it listens. If the process ends before, it fails at once, with
/// the last lines of the log.
pub async fn unless_ended<T>(
    processes: &Processes,
    name: &str,
    started: impl Future<Output = Result<T>>,
) -> Result<T> {
    let ended = async {
        while processes.runs(name) {
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::select! {
        started = started => started,
        () = ended => bail!("{name} ended while starting. Its log:\n{}", processes.log_tail(name)),
    }
}

/// Retries until `GET /readyz` of a server says ok, or its process has ended.
pub async fn server_ready(client: &Client, processes: &Processes, name: &str, limit: Duration) -> Result<()> {
    let began = Instant::now();
    let ready = async {
        while let Err(error) = client.request_text(http_get("/readyz")?).await {
            if began.elapsed() > limit {
                return Err(error).context("the server is not ready in time");
            }
            tokio::time::sleep(RETRY).await;
        }
        Ok(())
    };
    unless_ended(processes, name, ready).await
}

/// Retries until an address answers a plain HTTP request with 200.
pub async fn http_ready(address: &str, path: &str, limit: Duration) -> Result<()> {
    let late = || format!("http://{address}{path} did not answer 200 within {limit:?}");
    retry(limit, late, async || Ok(answers_ok(address, path).await.unwrap_or(false))).await
}

/// Retries until one of our programs answers a request with 200 on its port.
pub async fn https_ready(port: u16, path: &str, limit: Duration) -> Result<()> {
    let began = Instant::now();
    loop {
        match https_answers(port, path).await {
            Ok(200) => return Ok(()),
            answer if began.elapsed() > limit => {
                bail!("port {port} did not answer {path} with 200 within {limit:?}: {answer:?}");
            }
            _ => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Returns the status code with which one of our programs answers a request on its port. Its certificate is not verified.
pub async fn https_answers(port: u16, path: &str) -> Result<u16> {
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.accept_invalid_certs = true;
    let request = http_get(path)?.map(Into::into);
    Ok(Client::try_from(config)?.send(request).await?.status().as_u16())
}

/// Retries until a starting process has written a file, or has ended.
pub async fn file(path: &Path, processes: &Processes, name: &str, limit: Duration) -> Result<()> {
    let late = || format!("{} was not written within {limit:?}", path.display());
    let written = retry(limit, late, async || Ok(path.metadata().is_ok_and(|found| found.len() > 0)));
    unless_ended(processes, name, written).await
}

/// Watches an APIService until the aggregator finds it available.
pub async fn api_available(client: &Client, name: &str, limit: Duration) -> Result<()> {
    let available = |service: Option<&APIService>| is_available(service) == Some(true);
    until(Api::all(client.clone()), name, limit, "available", available).await.map(drop)
}

/// Watches an APIService until the aggregator finds that it is not served.
pub async fn api_unavailable(client: &Client, name: &str, limit: Duration) -> Result<()> {
    let unavailable = |service: Option<&APIService>| is_available(service) == Some(false);
    until(Api::all(client.clone()), name, limit, "unavailable", unavailable).await.map(drop)
}

fn is_available(service: Option<&APIService>) -> Option<bool> {
    let conditions = service?.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Available").map(|c| c.status == "True")
}

/// Retries until the host has merged our schema into its OpenAPI v3, which it does some time after the API is available.
pub async fn schema_served(client: &Client, group_version: &str, limit: Duration) -> Result<()> {
    let path = format!("apis/{group_version}");
    let late = || format!("the host does not list {path} in /openapi/v3 within {limit:?}");
    retry(limit, late, async || {
        let index: serde_json::Value = client.request(http_get("/openapi/v3")?).await?;
        Ok(index["paths"][&path].is_object())
    })
    .await
}

/// Retries until the host's authorizer says yes to a SubjectAccessReview: roles reach it some time after they are made.
pub async fn allowed(client: &Client, review: &SubjectAccessReview, limit: Duration) -> Result<()> {
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let late = || format!("not allowed within {limit:?}: {:?}", review.spec);
    retry(limit, late, async || {
        let answer = reviews.create(&PostParams::default(), review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    })
    .await
}

/// Calls `ask` until it returns something. After the limit it fails with the message of `late`.
pub async fn until_some<T>(
    limit: Duration,
    late: impl Fn() -> String,
    mut ask: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        if began.elapsed() > limit {
            bail!(late());
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Calls `met` until it returns true. After the limit it fails with the message of `late`.
pub async fn retry(
    limit: Duration,
    late: impl Fn() -> String,
    mut met: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    until_some(limit, late, async || Ok(met().await?.then_some(()))).await
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}

async fn answers_ok(address: &str, path: &str) -> Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    Ok(head.ends_with(b" 200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Result<(tempfile::TempDir, Processes)> {
        let dir = tempfile::tempdir()?;
        let processes = Processes::new(dir.path())?;
        processes.start("sh", Path::new("sh"), &["-c".into(), script.into()])?;
        Ok((dir, processes))
    }

    /// A controller manager whose port was taken ended at its start, and its test waited for what it never did.
    #[tokio::test]
    async fn a_process_that_ends_at_its_start_is_told_at_once_with_its_log() -> Result<()> {
        let (_dir, processes) = start("echo the port is taken; exit 1")?;
        let listens = std::future::pending::<Result<()>>();
        let Err(error) = unless_ended(&processes, "sh", listens).await else { bail!("it listens") };
        let words = error.to_string();
        assert!(words.contains("sh ended while starting") && words.contains("the port is taken"), "{words}");
        Ok(())
    }

    #[tokio::test]
    async fn a_process_that_runs_is_waited_for() -> Result<()> {
        let (_dir, processes) = start("kill -STOP $$")?;
        let listens = async {
            tokio::task::yield_now().await;
            Ok(7)
        };
        assert_eq!(unless_ended(&processes, "sh", listens).await?, 7);
        Ok(())
    }
}
