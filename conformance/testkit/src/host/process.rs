//! Processes that end when this process ends, however it ends.
//!
//! Each has a process group of its own, so that Ctrl-C reaches this process alone, which stops them in order. A **reaper**
//! ends what is left after a panic, after `kill -9`, and of a host in a static, which is never dropped: a shell that reads
//! from a pipe which closes when this process is gone. It then kills the pids in a file, and removes the folder. If
//! `DRYDOCK_CPU_LOG` is set, the reaper first adds the line of /proc/PID/stat of each pid to the file of that name, because
//! nobody waits for these processes. If `DRYDOCK_LOGS` names a folder, the reaper copies the logs of the processes there before
//! it removes them. The copy has the name of the host's folder, and a file `started-by` with the name of the test that started
//! the host.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The started processes of one host, in the order of their start.
pub struct Processes {
    dir: PathBuf,
    running: Mutex<Vec<Process>>,
    reaper: Mutex<Child>,
}

/// One started process.
pub struct Process {
    name: String,
    child: Child,
}

const TAIL_LINES: usize = 30;

const REAPER: &str = r#"trap '' INT TERM HUP; read -r _
for p in $(cat "$1/pids" 2>/dev/null); do
    if [ -n "$DRYDOCK_CPU_LOG" ]; then cat "/proc/$p/stat" >>"$DRYDOCK_CPU_LOG" 2>/dev/null; fi
    kill -9 "$p"
done
if [ -d "$DRYDOCK_LOGS" ]; then
    cp -r "$1/logs" "$DRYDOCK_LOGS/${1##*/}"
    if [ -f "$1/drydock/audit.log" ]; then cp "$1/drydock/audit.log" "$DRYDOCK_LOGS/${1##*/}"; fi
fi
if [ -z "$DRYDOCK_KEEP" ]; then rm -rf "$1"; fi"#;

impl Processes {
    /// Starts the reaper. No process runs yet.
    pub fn new(dir: &Path) -> Result<Processes> {
        std::fs::create_dir_all(dir.join("logs"))?;
        // Each test has a thread with its name.
        let thread = std::thread::current();
        std::fs::write(dir.join("logs/started-by"), thread.name().unwrap_or("an unnamed thread"))?;
        std::fs::write(dir.join("pids"), "")?;
        let reaper = Command::new("sh")
            .args(["-c", REAPER, "reaper"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("sh does not start")?;
        Ok(Processes { dir: dir.into(), running: Mutex::new(Vec::new()), reaper: Mutex::new(reaper) })
    }

    /// Starts a process whose output goes to `logs/NAME.log`.
    pub fn start(&self, name: &str, program: &Path, args: &[String]) -> Result<()> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("logs").join(format!("{name}.log")))?;
        let child = Command::new(program)
            .args(args)
            .current_dir(&self.dir)
            .env("HOME", &self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let mut running = self.lock();
        running.push(Process { name: name.into(), child });
        self.note(&running)
    }

    /// Kills a process at once and forgets it; false if there is none of that name.
    pub fn kill(&self, name: &str) -> Result<bool> {
        let mut running = self.lock();
        let Some(at) = running.iter().position(|process| process.name == name) else { return Ok(false) };
        drop(running.remove(at));
        self.note(&running)?;
        Ok(true)
    }

    /// Asks a process to end, forgets it, and returns how it ended; it is killed if it does not within the limit.
    pub async fn terminate(&self, name: &str, limit: Duration) -> Result<ExitStatus> {
        let mut process = {
            let mut running = self.lock();
            let at = running.iter().position(|process| process.name == name);
            running.remove(at.with_context(|| format!("{name} does not run"))?)
        };
        let pid = process.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().context("kill does not start")?;
        anyhow::ensure!(asked.success(), "{name} could not be asked to end");
        let began = Instant::now();
        let ended = loop {
            if let Some(status) = process.child.try_wait()? {
                break status;
            }
            anyhow::ensure!(began.elapsed() < limit, "{name} did not end within {limit:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        self.note(&self.lock())?;
        Ok(ended)
    }

    /// The pid of a process that was started and not yet stopped.
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.lock().iter().find(|process| process.name == name).map(|process| process.child.id())
    }

    /// Whether a process of this name was started and has not ended.
    pub fn runs(&self, name: &str) -> bool {
        let mut running = self.lock();
        let mut same = running.iter_mut().filter(|process| process.name == name);
        same.any(|process| matches!(process.child.try_wait(), Ok(None)))
    }

    /// Whether a process has ended by itself.
    pub fn has_ended(&self, name: &str) -> bool {
        let mut running = self.lock();
        let mut same = running.iter_mut().filter(|process| process.name == name);
        same.any(|process| matches!(process.child.try_wait(), Ok(Some(_))))
    }

    /// Names the processes that have ended by themselves, with the last lines of their logs, for the message of a failed test.
    pub fn ended_processes(&self) -> String {
        let names: Vec<String> = self.lock().iter().map(|process| process.name.clone()).collect();
        let ended: Vec<_> = names.iter().filter(|name| self.has_ended(name)).collect();
        if ended.is_empty() {
            return "all processes run".to_owned();
        }
        ended
            .iter()
            .map(|name| format!("{name} has ended; it said last:\n{}\n", self.log_tail(name)))
            .collect()
    }

    /// The last lines of a process's log.
    pub fn log_tail(&self, name: &str) -> String {
        let log = std::fs::read(self.dir.join("logs").join(format!("{name}.log"))).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n")
    }

    fn note(&self, running: &[Process]) -> Result<()> {
        let pids: String = running.iter().map(|process| format!("{}\n", process.child.id())).collect();
        Ok(std::fs::write(self.dir.join("pids"), pids)?)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Process>> {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let mut running = self.lock();
        while let Some(process) = running.pop() {
            drop(process);
        }
        // Nothing is left to kill; the reaper removes the folder.
        let _ = self.note(&running);
        drop(running);
        let reaper = self.reaper.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(reaper.stdin.take());
        let _ = reaper.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_say_which_test_started_the_programs() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let _processes = Processes::new(dir.path())?;
        let test = std::fs::read_to_string(dir.path().join("logs/started-by"))?;
        assert!(test.ends_with("logs_say_which_test_started_the_programs"), "{test}");
        Ok(())
    }

    /// The logs of a live test that failed went with the folder of its host.
    #[test]
    fn the_reaper_copies_logs_into_the_folder_that_asks_for_them_and_removes_the_others() -> Result<()> {
        let [host, kept] = [tempfile::tempdir()?.keep(), tempfile::tempdir()?.keep()];
        for (folder, file) in [("logs", "etcd.log"), ("drydock", "audit.log")] {
            std::fs::create_dir(host.join(folder))?;
            std::fs::write(host.join(folder).join(file), file)?;
        }
        let mut reaper = Command::new("sh");
        reaper
            .args(["-c", REAPER, "reaper"])
            .arg(&host)
            .env("DRYDOCK_LOGS", &kept)
            .env_remove("DRYDOCK_KEEP");
        assert!(reaper.stdin(Stdio::null()).status()?.success());
        let copied = kept.join(host.file_name().context("no name")?);
        for file in ["etcd.log", "audit.log"] {
            assert_eq!(std::fs::read_to_string(copied.join(file))?, file);
        }
        assert!(!host.exists());
        Ok(std::fs::remove_dir_all(kept)?)
    }
}
