//! Measures the most expensive request bodies: `cargo run --release -p drydock-measure --example body_cost`. Each body
//! has about the maximum length and runs in its own process. The output has the CPU time and the growth of the
//! memory.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cases;
mod objects;
mod patches;
mod texts;

use std::fs::read_to_string;
use std::process::Command;

use drydock_machinery::ApiError;

/// Maximum length of a body, in bytes.
const MAX: usize = 3 << 20;

/// The code that is measured.
type MeasuredCall = Box<dyn FnOnce() -> Result<(), ApiError>>;
/// Prepares the code that is measured.
type Prepare = Box<dyn Fn() -> MeasuredCall>;

fn main() {
    let wanted = std::env::args().nth(1);
    for (name, prepare) in cases::all() {
        match &wanted {
            None => {
                let out = Command::new(std::env::current_exe().unwrap()).arg(name).output().unwrap();
                print!("{}", String::from_utf8_lossy(&out.stdout));
            }
            Some(wanted) if wanted == name => run(name, prepare()),
            Some(_) => {}
        }
    }
}

fn run(name: &str, work: MeasuredCall) {
    let (before, start) = (peak(), cpu());
    let outcome = work();
    let (took, grown) = ((cpu() - start) / 1_000_000, peak().saturating_sub(before) >> 10);
    let said = outcome.err().map(|error| format!("{} {:.70}", error.code(), error.status.message));
    println!("{name:40} {took:6} ms {grown:6} MiB  {}", said.unwrap_or_default());
}

/// Peak memory so far, in KiB.
fn peak() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// CPU time so far, in nanoseconds.
fn cpu() -> u64 {
    read_to_string("/proc/self/schedstat").unwrap().split(' ').next().unwrap().parse().unwrap()
}
