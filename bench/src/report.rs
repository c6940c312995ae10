//! What every benchmark writes: `out/bench/NAME.json` and a table for eyes.

use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;

/// One line of the report: our figure beside a peer's, measured interleaved in the same run.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What is measured.
    pub claim: String,
    /// Median of our figures.
    pub value: f64,
    /// Unit of both figures.
    pub unit: String,
    /// The peer, empty if there is none.
    pub peer: String,
    /// Median of the peer's figures.
    pub peer_value: Option<f64>,
    /// Median of the per-pair ratios, ours over the peer's (times: peer's over ours would mislead, so never).
    pub ratio: Option<f64>,
    /// The ratio (or value) to reach, with its direction, as text; empty if none.
    pub target: String,
    /// Whether the target was met; absent if there is none.
    pub met: Option<bool>,
    /// Number of pairs.
    pub runs: usize,
    /// Smallest and largest ratio (or value, without a peer).
    pub spread: [f64; 2],
}

/// What a target asks for.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Nothing to reach: the figure is reported.
    None,
    /// The ratio must be at least this.
    RatioAtLeast(f64),
    /// The ratio must be at most this.
    RatioAtMost(f64),
    /// The value must be at least this.
    ValueAtLeast(f64),
    /// The value must be at most this.
    ValueAtMost(f64),
}

fn median(v: &[f64]) -> f64 {
    let mut s: Vec<f64> = v.to_vec();
    s.sort_by(f64::total_cmp);
    match s.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => s[n / 2],
        n => (s[n / 2 - 1] + s[n / 2]) / 2.0,
    }
}

fn spread(v: &[f64]) -> [f64; 2] {
    let lo = v.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [lo, hi]
}

impl Row {
    /// A row from pairs (ours, peer's) that were measured one after the other.
    pub fn paired(
        claim: &str,
        unit: &str,
        peer: &str,
        pairs: &[(f64, f64)],
        target: Target,
    ) -> Row {
        let ours: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        let theirs: Vec<f64> = pairs.iter().map(|p| p.1).collect();
        let ratios: Vec<f64> = pairs.iter().map(|p| p.0 / p.1).collect();
        let mut row = Row::alone(claim, unit, &ours, Target::None);
        row.peer = peer.to_string();
        row.peer_value = Some(median(&theirs));
        row.ratio = Some(median(&ratios));
        row.spread = spread(&ratios);
        row.judge(target);
        row
    }

    /// A row without a peer.
    pub fn alone(claim: &str, unit: &str, values: &[f64], target: Target) -> Row {
        let mut row = Row {
            claim: claim.to_string(),
            value: median(values),
            unit: unit.to_string(),
            peer: String::new(),
            peer_value: None,
            ratio: None,
            target: String::new(),
            met: None,
            runs: values.len(),
            spread: spread(values),
        };
        row.judge(target);
        row
    }

    fn judge(&mut self, target: Target) {
        let ratio = self.ratio.unwrap_or(f64::NAN);
        let (text, met) = match target {
            Target::None => return,
            Target::RatioAtLeast(t) => (format!(">= {t}x"), ratio >= t),
            Target::RatioAtMost(t) => (format!("<= {t}x"), ratio <= t),
            Target::ValueAtLeast(t) => (format!(">= {t}"), self.value >= t),
            Target::ValueAtMost(t) => (format!("<= {t}"), self.value <= t),
        };
        self.target = text;
        self.met = Some(met);
    }
}

fn short(v: f64) -> String {
    match v.abs() {
        a if a >= 1000.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    }
}

/// Writes the JSON file and prints the table, or what is in the file.
pub fn publish(name: &str, dir: &Path, rows: &[Row], json: bool) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(rows)? + "\n";
    std::fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    if json {
        print!("{text}");
        return Ok(());
    }
    let head = [
        "claim", "value", "unit", "peer", "peer's", "ratio", "target", "met", "runs", "spread",
    ];
    let mut table: Vec<Vec<String>> = vec![head.iter().map(|s| s.to_string()).collect()];
    for r in rows {
        table.push(vec![
            r.claim.clone(),
            short(r.value),
            r.unit.clone(),
            r.peer.clone(),
            r.peer_value.map(short).unwrap_or_default(),
            r.ratio.map(|v| format!("{v:.2}")).unwrap_or_default(),
            r.target.clone(),
            r.met
                .map(|m| if m { "yes" } else { "NO" }.to_string())
                .unwrap_or_default(),
            r.runs.to_string(),
            format!("{}..{}", short(r.spread[0]), short(r.spread[1])),
        ]);
    }
    let widths: Vec<usize> = (0..head.len())
        .map(|c| {
            table
                .iter()
                .map(|row| row[c].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in &table {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(c, w)| format!("{c:<w$}"))
            .collect();
        println!("{}", cells.join("  ").trim_end());
    }
    println!("written to {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_the_median_of_pairs_not_the_ratio_of_medians() {
        let r = Row::paired(
            "c",
            "u",
            "p",
            &[(10.0, 10.0), (30.0, 10.0), (100.0, 50.0)],
            Target::RatioAtLeast(2.0),
        );
        assert_eq!(r.ratio, Some(2.0));
        assert_eq!(r.value, 30.0);
        assert_eq!(r.met, Some(true));
        assert_eq!(r.spread, [1.0, 3.0]);
    }

    #[test]
    fn a_missed_target_says_so() {
        let r = Row::alone("c", "u", &[1.0, 2.0, 3.0], Target::ValueAtLeast(2.5));
        assert_eq!(r.met, Some(false));
    }
}
