//! The output: a line for each attack, and a table of all.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::host::repository;

use crate::judge::AttackResult;

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
    "stream broken + not ready",
    "drain",
    "harm",
];

/// Prints how an attack went.
pub fn print(result: &AttackResult) {
    let verdict = if result.harm.is_empty() { "no harm" } else { "HARM" };
    let [_, peak, probe, refused, reviews, failed, served, p99, broken, stream, drain, _] = row(result);
    println!(
        "{:<24} {verdict:<8} {peak} MiB, probe {probe}, refused {refused}, {reviews} reviews/s, \
         others failed {failed}, served in {served}, p99 {p99}, watch broken {broken}, stream broken {stream}, drain {drain}; {}",
        result.name, result.summary
    );
    result.harm.iter().for_each(|harm| println!("    {harm}"));
}

/// Prints the table, writes it to conformance/out/hostile.md, and returns whether nothing did harm.
pub fn table(all: &[AttackResult]) -> Result<bool> {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&HEAD.map(str::to_owned));
    text += &line(&HEAD.map(|_| "---".to_owned()));
    all.iter().for_each(|result| text += &line(&row(result)));
    let path = out()?.join("hostile.md");
    std::fs::write(&path, &text)?;
    let bad = all.iter().filter(|result| !result.harm.is_empty()).count();
    println!("\n{text}\n{} attacks, {bad} did harm; the table is in {}", all.len(), path.display());
    Ok(bad == 0)
}

fn row(result: &AttackResult) -> [String; 12] {
    let bystanders = &result.bystanders;
    let of = |count: &crate::bystanders::RequestCount| format!("{}/{}", count.failed, count.asked);
    [
        result.name.to_owned(),
        result.peak.to_string(),
        seconds(bystanders.probes.slowest),
        of(&bystanders.probes),
        format!("{:.0}", result.review_rate()),
        format!("{} + {} of system:masters", of(&bystanders.other_tenant), of(&bystanders.system_masters)),
        seconds(result.slowest()),
        seconds(bystanders.other_tenant.p99()),
        bystanders.watch.breaks.to_string(),
        format!("{} + {}", bystanders.stream.breaks, bystanders.stream.not_ready),
        bystanders
            .drain
            .failure
            .as_ref()
            .map_or_else(|| seconds(bystanders.drain.took), |_| "never".to_owned()),
        result.harm.join("; ").replace(['|', '\n'], " "),
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
