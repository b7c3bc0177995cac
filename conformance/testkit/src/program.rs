//! One of our programs by itself, with flags that the test chooses: how it starts, what it logs, how it ends.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::wait::LIMIT;

/// A program that runs; it is killed when this is dropped.
pub struct Program {
    child: Child,
    said: Arc<ProgramOutput>,
    reader: JoinHandle<()>,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct ProgramEnd {
    /// Exit code.
    pub code: i32,
    /// The lines that it logged.
    pub lines: Vec<String>,
}

#[derive(Default)]
struct ProgramOutput {
    lines: Mutex<Vec<String>>,
    more: Notify,
}

impl Program {
    /// Starts it in a folder.
    pub fn start(program: &Path, dir: &Path, args: &[String]) -> Result<Program> {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let said = Arc::<ProgramOutput>::default();
        let err = child.stderr.take().context("no stderr")?;
        let (heard, mut lines) = (said.clone(), BufReader::new(err).lines());
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                heard.more.notify_waiters();
            }
        });
        Ok(Program { child, said, reader })
    }

    /// Waits for what it does when it starts, such as that it listens. If it ends before, this fails at once, with its log.
    pub async fn unless_ended<T>(&mut self, started: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            started = started => started,
            ended = self.child.wait() => {
                let ended = ended?;
                // Its last lines, which say why, may not have been read yet.
                (&mut self.reader).await?;
                bail!("it ended while starting, {ended}: {:#?}", self.said.all())
            }
        }
    }

    /// Waits until it has logged a line with all of these words `times` times.
    pub async fn says(&self, words: &[&str], times: usize) -> Result<()> {
        let heard = async {
            loop {
                let more = self.said.more.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                if self.said(words) >= times {
                    return;
                }
                more.await;
            }
        };
        match tokio::time::timeout(LIMIT, heard).await {
            Ok(()) => Ok(()),
            Err(_) => bail!("{words:?} was not said {times} times: {:#?}", self.said.all()),
        }
    }

    /// Returns how often it has logged a line with all of these words.
    pub fn said(&self, words: &[&str]) -> usize {
        self.said.all().iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    /// Waits until it has ended by itself.
    pub async fn ended(mut self) -> Result<ProgramEnd> {
        let waited = tokio::time::timeout(LIMIT, self.child.wait()).await;
        let Ok(status) = waited else { bail!("it goes on: {:#?}", self.said.all()) };
        let code = status?.code().unwrap_or(-1);
        // Its last lines may not have been read yet.
        (&mut self.reader).await?;
        Ok(ProgramEnd { code, lines: self.said.all() })
    }

    /// Kills it (SIGKILL).
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// The id of its process, if that has not been waited for.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("it has ended")
    }

    /// Stops it (SIGSTOP), until [`Self::thaw`].
    pub fn freeze(&self) -> Result<()> {
        self.signal("-STOP")
    }

    /// Continues it (SIGCONT).
    pub fn thaw(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, which: &str) -> Result<()> {
        let pid = self.pid()?.to_string();
        let sent = std::process::Command::new("kill").args([which, &pid]).status()?;
        anyhow::ensure!(sent.success(), "kill {which} failed");
        Ok(())
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Returns the lines that it has logged.
    pub fn lines(&self) -> Vec<String> {
        self.said.all()
    }

    /// Whether it has logged a panic.
    pub fn has_panicked(&self) -> bool {
        self.said.all().iter().any(|line| line.contains("panicked"))
    }
}

impl ProgramOutput {
    fn all(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A flag whose value is a path.
pub fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Creates a folder in another, and returns its path.
pub fn folder(parent: &Path, name: &str) -> Result<PathBuf> {
    let path = parent.join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason was missing from the message: the process had ended before its last line was read.
    #[tokio::test]
    async fn a_program_that_ends_at_its_start_is_reported_with_its_last_line() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let script = "for i in $(seq 5000); do echo line $i; done >&2; echo why it ended >&2; exit 3";
        let mut program = Program::start(Path::new("sh"), dir.path(), &["-c".into(), script.into()])?;
        let ended = program.unless_ended(std::future::pending::<Result<()>>()).await;
        let words = ended.err().context("it has ended")?.to_string();
        assert!(words.contains("why it ended") && words.contains("exit status: 3"), "{words}");
        Ok(())
    }
}
