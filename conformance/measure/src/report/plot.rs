//! The plot: CPU time for one operation, a group of bars each row, on a logarithmic scale.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::run::{Measured, Results};
use crate::sample::SampleSpread;
use crate::subject::Who;

const WIDTH: u32 = 1100;
const HEIGHT_OF_ROW: u32 = 190;

/// Draws it.
pub fn svg(results: &Results, path: &Path) -> Result<()> {
    let rows = results.rows.len().max(1);
    let height = HEIGHT_OF_ROW * u32::try_from(rows)?;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    for (part, row) in area.split_evenly((rows, 1)).iter().zip(&results.rows) {
        one(part, row)?;
    }
    area.present().map_err(failed)
}

fn one(area: &DrawingArea<SVGBackend<'_>, Shift>, row: &Measured) -> Result<()> {
    let spreads: Vec<(Who, SampleSpread)> =
        row.samples.iter().map(|(who, s)| (*who, SampleSpread::of(s.iter().map(|s| s.cpu_us)))).collect();
    let most = spreads.iter().map(|(_, s)| s.most).fold(10.0, f64::max);
    let bars = spreads.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("Row {}: {} (CPU us per operation)", row.row, row.title), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(100)
        .build_cartesian_2d((1.0..most * 3.0).log_scale(), 0.0..bars)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .draw()
        .map_err(failed)?;
    for (index, (who, spread)) in spreads.iter().enumerate() {
        let (low, high) = (bars - index as f64 - 0.85, bars - index as f64 - 0.15);
        let bar = Rectangle::new([(1.0, low), (spread.median.max(1.0), high)], colour(*who).filled());
        let middle = (low + high) / 2.0;
        let spread_line =
            PathElement::new([(spread.least.max(1.0), middle), (spread.most.max(1.0), middle)], BLACK);
        let label = format!("  {} {:.1}", who.title(), spread.median);
        let text = Text::new(label, (spread.most.max(1.0), high - 0.1), ("sans-serif", 13));
        chart.draw_series([bar]).map_err(failed)?;
        chart.draw_series([spread_line]).map_err(failed)?;
        chart.draw_series([text]).map_err(failed)?;
    }
    Ok(())
}

fn colour(who: Who) -> RGBColor {
    match who {
        Who::Sqlite => RGBColor(0, 110, 180),
        Who::SlowDisk => RGBColor(0, 70, 110),
        Who::Etcd => RGBColor(90, 170, 220),
        Who::Kube => RGBColor(200, 80, 60),
        Who::Sample => RGBColor(230, 150, 60),
        Who::Raw => RGBColor(130, 130, 130),
        Who::LowerBound => RGBColor(60, 60, 60),
    }
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the plot cannot be drawn: {error}")
}
