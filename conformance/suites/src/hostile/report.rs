//! What is printed: a line when an attack is over, and the table of all.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::host::repository;

use crate::judge::Happened;

const HEAD: [&str; 12] = [
    "attack",
    "peak MiB",
    "slowest probe",
    "probes refused",
    "reviews/s",
    "others failed",
    "others served within",
    "99% of another tenant's within",
    "watch broken",
    "stream broken",
    "drain",
    "harm",
];

/// Prints how an attack went.
pub fn print(happened: &Happened) {
    let verdict = if happened.harm.is_empty() { "no harm" } else { "HARM" };
    let [_, peak, probe, refused, reviews, failed, served, p99, broken, stream, drain, _] = row(happened);
    println!(
        "{:<24} {verdict:<8} {peak} MiB, probe {probe}, refused {refused}, {reviews} reviews/s, \
         others failed {failed}, served in {served}, p99 {p99}, watch broken {broken}, stream broken {stream}, drain {drain}; {}",
        happened.name, happened.summary
    );
    happened.harm.iter().for_each(|harm| println!("    {harm}"));
}

/// Prints the table, writes it to conformance/out/hostile.md, and returns whether nothing did harm.
pub fn table(all: &[Happened]) -> Result<bool> {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&HEAD.map(str::to_owned));
    text += &line(&HEAD.map(|_| "---".to_owned()));
    all.iter().for_each(|happened| text += &line(&row(happened)));
    let path = out()?.join("hostile.md");
    std::fs::write(&path, &text)?;
    let bad = all.iter().filter(|happened| !happened.harm.is_empty()).count();
    println!("\n{text}\n{} attacks, {bad} did harm; the table is in {}", all.len(), path.display());
    Ok(bad == 0)
}

fn row(happened: &Happened) -> [String; 12] {
    let others = &happened.others;
    let of = |count: &crate::others::RequestCount| format!("{}/{}", count.failed, count.asked);
    [
        happened.name.to_owned(),
        happened.peak.to_string(),
        seconds(others.probes.slowest),
        of(&others.probes),
        format!("{:.0}", happened.review_rate()),
        format!("{} + {} masters", of(&others.observer), of(&others.system_masters)),
        seconds(happened.slowest()),
        seconds(others.observer.p99()),
        others.watch.breaks.to_string(),
        others.stream.breaks.to_string(),
        others.drain.failure.as_ref().map_or_else(|| seconds(others.drain.took), |_| "never".to_owned()),
        happened.harm.join("; ").replace(['|', '\n'], " "),
    ]
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn out() -> Result<PathBuf> {
    let out = repository().canonicalize()?.join("conformance/out");
    std::fs::create_dir_all(&out).context("conformance/out cannot be made")?;
    Ok(out)
}
