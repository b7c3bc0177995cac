//! What is left of a run: `bench.md`, `bench.json`, `bench.svg`.

mod plot;
mod table;

use std::path::Path;

use anyhow::Result;

use crate::run::Results;

/// Writes all three, and prints the table.
pub fn write(results: &Results, out: &Path) -> Result<()> {
    std::fs::create_dir_all(out)?;
    let table = table::markdown(results);
    std::fs::write(out.join("bench.md"), &table)?;
    std::fs::write(out.join("bench.json"), serde_json::to_vec_pretty(results)?)?;
    plot::svg(results, &out.join("bench.svg"))?;
    println!("{table}");
    eprintln!("==> written to {}", out.display());
    Ok(())
}
