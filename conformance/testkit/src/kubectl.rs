//! kubectl, run as a user runs it: a command line, a manifest on stdin, what it prints and how it exits.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::host::TestHost;
use crate::wait;

/// How long a command may take: longer than `kubectl wait`, which then says what it waited for.
const LIMIT: Duration = wait::LIMIT.saturating_add(Duration::from_secs(60));

/// kubectl of the host's version, for one user and one namespace.
#[derive(Clone)]
pub struct Kubectl {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    editor: String,
}

/// What kubectl printed, and with which code it exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubectlOutput {
    /// Exit code.
    pub code: i32,
    /// stdout.
    pub out: String,
    /// stderr.
    pub err: String,
}

/// A kubectl that goes on printing, as `get --watch` does; it ends when it is dropped.
pub struct FollowedKubectl {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Kubectl {
    /// Returns the kubectl of the admin, in the namespace `default`.
    pub fn new(host: &TestHost) -> Kubectl {
        Kubectl {
            program: host.bin.join("kubectl"),
            home: host.dir.clone(),
            kubeconfig: host.admin(),
            namespace: "default".into(),
            editor: "false".into(),
        }
    }

    /// Sets another user.
    pub fn with_kubeconfig(mut self, kubeconfig: &Path) -> Kubectl {
        self.kubeconfig = kubeconfig.into();
        self
    }

    /// Sets another namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Kubectl {
        self.namespace = namespace.into();
        self
    }

    /// Sets the editor for `edit`: a command that gets the file's name.
    pub fn with_editor(mut self, editor: &str) -> Kubectl {
        self.editor = editor.into();
        self
    }

    /// Runs a command to its end, whether it succeeds or fails.
    pub async fn run(&self, args: &[&str], stdin: &str) -> Result<KubectlOutput> {
        let mut child = self.command(args).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("no stdin")?;
        // kubectl may refuse its command line and be gone before it has read anything.
        let _ = input.write_all(stdin.as_bytes()).await;
        drop(input);
        let ended = tokio::time::timeout(LIMIT, child.wait_with_output()).await;
        Ok(KubectlOutput::of(&ended.with_context(|| format!("kubectl {} did not end", args.join(" ")))??))
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub async fn ok(&self, args: &[&str]) -> Result<String> {
        let said = self.run(args, "").await?;
        ensure!(said.code == 0, "kubectl {}: {said:?}", args.join(" "));
        Ok(said.out)
    }

    /// Runs a command that must fail, and returns the error that it printed.
    pub async fn refused(&self, args: &[&str]) -> Result<String> {
        self.refused_with(args, "").await
    }

    /// Applies an object, and returns what kubectl printed.
    pub async fn apply(&self, object: &Value) -> Result<String> {
        let said = self.run(&["apply", "-f", "-"], &object.to_string()).await?;
        ensure!(said.code == 0, "kubectl apply of {object}: {said:?}");
        Ok(said.out)
    }

    /// Applies an object that must be refused, and returns the error.
    pub async fn apply_refused(&self, object: &Value) -> Result<String> {
        self.refused_with(&["apply", "-f", "-"], &object.to_string()).await
    }

    /// Returns an object as it is.
    pub async fn object(&self, kind: &str, name: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.ok(&["get", kind, name, "--output=json"]).await?)?)
    }

    /// Runs a bash script in a folder, with this kubectl on its PATH. Returns what it printed, and its exit
    /// code.
    pub async fn script(&self, folder: &Path, script: &str) -> Result<KubectlOutput> {
        let path = self.program.parent().context("kubectl is in no folder")?.display();
        let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", script]).current_dir(folder);
        bash.env("PATH", path).env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.home).kill_on_drop(true);
        let ended = tokio::time::timeout(LIMIT, bash.output()).await;
        Ok(KubectlOutput::of(&ended.context("the script did not end")??))
    }

    /// Starts it and reads what it prints, line by line.
    pub fn follow(&self, args: &[&str]) -> Result<FollowedKubectl> {
        let mut child = self.command(args).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let out = child.stdout.take().context("no stdout")?;
        Ok(FollowedKubectl { lines: BufReader::new(out).lines(), _child: child })
    }

    /// As [`Self::refused`], with an input on stdin.
    pub async fn refused_with(&self, args: &[&str], stdin: &str) -> Result<String> {
        let said = self.run(args, stdin).await?;
        ensure!(said.code == 1, "kubectl {} was not refused: {said:?}", args.join(" "));
        Ok(said.err)
    }

    /// `kubectl wait` gives up after 30 s by default: here it waits for as long as tests wait.
    fn command(&self, args: &[&str]) -> Command {
        let is_default_wait =
            args.first() == Some(&"wait") && !args.iter().any(|arg| arg.starts_with("--timeout"));
        let timeout = is_default_wait.then(|| format!("--timeout={}s", wait::LIMIT.as_secs()));
        let mut command = Command::new(&self.program);
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(args)
            .args(timeout)
            .env("HOME", &self.home)
            .env("KUBE_EDITOR", &self.editor)
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl KubectlOutput {
    fn of(out: &Output) -> KubectlOutput {
        KubectlOutput {
            code: out.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&out.stdout).into_owned(),
            err: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }
}

impl FollowedKubectl {
    /// Reads up to the first line with all of the words.
    pub async fn line_with(&mut self, words: &[&str]) -> Result<String> {
        let mut seen = Vec::new();
        let reading = async {
            while let Some(line) = self.lines.next_line().await? {
                if words.iter().all(|word| line.contains(word)) {
                    return Ok(line);
                }
                seen.push(line);
            }
            bail!("kubectl ended")
        };
        let found = tokio::time::timeout(LIMIT, reading).await;
        found
            .unwrap_or_else(|_| bail!("not in time"))
            .with_context(|| format!("no line with {words:?}: {seen:?}"))
    }
}
