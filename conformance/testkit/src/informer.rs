//! Informers of client-go (conformance/host/informer), and what their handlers get.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::host::repository;
use crate::wait::LIMIT;

/// An informer that runs; it ends when this is dropped.
pub struct Informer {
    /// Its name, which its user agent ends with.
    pub name: String,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
    /// The encoding of each answer, in order: `list` or `watch`, its media type, and what its bytes were.
    pub wire: Vec<[String; 3]>,
    /// The last delivered step of each object.
    steps: HashMap<String, String>,
    _child: Child,
}

/// How an informer is to get its objects.
#[derive(Clone, Copy, Debug)]
pub struct InformerWay {
    /// `dynamic`, `metadata` (in protobuf) or `rest`.
    pub client: &'static str,
    /// By one watch that begins with what is there, in place of a list and a watch.
    pub watch_list: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InformerEvent {
    event: String,
    name: String,
    step: String,
    names: Vec<String>,
}

/// Builds the program unless it is built, and returns its path.
pub async fn program() -> Result<PathBuf> {
    let script = repository().join("conformance/host/informer/build");
    let out = Command::new(&script).stderr(Stdio::inherit()).output().await;
    let out = out.with_context(|| format!("{} does not start", script.display()))?;
    ensure!(out.status.success(), "conformance/host/informer/build failed");
    Ok(PathBuf::from(String::from_utf8(out.stdout)?.trim()))
}

/// An object as client-go gets it in protobuf, read by our .proto files: version, kind, and the message as JSON.
pub async fn decoded(program: &Path, kubeconfig: &Path, path: &str) -> Result<Value> {
    let out = Command::new(program).args(["-path", path, "-kubeconfig"]).arg(kubeconfig).output().await?;
    ensure!(out.status.success(), "{path}: {}", String::from_utf8_lossy(&out.stderr));
    Ok(serde_json::from_slice(&out.stdout)?)
}

impl Informer {
    /// Starts one on the objects of a resource (`resource.version.group`) that a label selector selects.
    pub fn start(
        program: &Path,
        dir: &Path,
        kubeconfig: &Path,
        way: InformerWay,
        resource: &str,
        selector: &str,
    ) -> Result<Self> {
        let mut parts = resource.splitn(3, '.');
        let mut part = || parts.next().context("resource.version.group is wanted");
        let (plural, version, group) = (part()?, part()?, part()?);
        let name = format!("{}-{}", way.client, if way.watch_list { "watchlist" } else { "list" });
        let log = dir.join(format!("go-{name}.log"));
        let mut child = Command::new(program)
            .args(["-client", way.client, "-agent", &format!("informer/{name}"), "-selector", selector])
            .args(["-resource", plural, "-version", version, "-group", group, "-kubeconfig"])
            .arg(kubeconfig)
            .env("KUBE_FEATURE_WatchListClient", way.watch_list.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .context("the informers' program does not start")?;
        let out = child.stdout.take().context("no stdout")?;
        let lines = BufReader::new(out).lines();
        Ok(Self { name, lines, log, wire: Vec::new(), steps: HashMap::new(), _child: child })
    }

    /// Reads until it has synced. Returns the names of the objects in its cache, and what its handlers got until then.
    pub async fn synced(&mut self) -> Result<(Vec<String>, Vec<String>)> {
        let mut events = Vec::new();
        loop {
            let event = self.next_event().await?;
            if event.event == "synced" {
                return Ok((event.names, events));
            }
            events.extend(self.change(event));
        }
    }

    /// The next change that its handlers get, as `add NAME STEP`. An update that changes nothing that the test
    /// wrote is the controllers' doing.
    pub async fn next(&mut self) -> Result<String> {
        loop {
            let event = self.next_event().await?;
            if let Some(change) = self.change(event) {
                return Ok(change);
            }
        }
    }

    /// What it wrote to stderr.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }

    fn change(&mut self, event: InformerEvent) -> Option<String> {
        let InformerEvent { event, name, step, .. } = event;
        let before = match event.as_str() {
            "delete" => self.steps.remove(&name),
            _ => self.steps.insert(name.clone(), step.clone()),
        };
        (event != "update" || before.as_ref() != Some(&step)).then(|| format!("{event} {name} {step}"))
    }

    async fn next_event(&mut self) -> Result<InformerEvent> {
        loop {
            let event = self.line().await?;
            if event.event != "wire" {
                return Ok(event);
            }
            self.wire.push([event.name, event.step, event.names.concat()]);
        }
    }

    async fn line(&mut self) -> Result<InformerEvent> {
        let Ok(line) = tokio::time::timeout(LIMIT, self.lines.next_line()).await else {
            bail!("{}: no event in time: {}", self.name, self.log()?);
        };
        let line =
            line?.with_context(|| format!("{} ended: {}", self.name, self.log().unwrap_or_default()))?;
        serde_json::from_str(&line).with_context(|| format!("{}: {line}", self.name))
    }
}
