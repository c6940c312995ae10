//! Curves over a row of sizes, drawn as SVG.

use std::fmt::Write;

const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 62.0;
const TOP: f64 = 64.0;
const GAP: f64 = 78.0;
const COLUMNS: usize = 2;
/// Each curve's, in their order.
const COLOURS: [&str; 5] = ["#1b6ca8", "#c4501b", "#2a9d6f", "#8a8a8a", "#c58a00"];

/// A curve: its name, a value for each size, and whether it is dashed, as what is computed and not measured.
pub struct Curve {
    pub name: String,
    pub values: Vec<f64>,
    pub dashed: bool,
}

/// One set of axes; the upright one is logarithmic.
pub struct Panel {
    pub title: String,
    pub unit: &'static str,
    pub from: f64,
    pub to: f64,
    pub curves: Vec<Curve>,
}

impl Panel {
    fn up(&self, y: f64, value: f64) -> f64 {
        let at = value.clamp(self.from, self.to).ln() - self.from.ln();
        y + HEIGHT - at / (self.to.ln() - self.from.ln()) * HEIGHT
    }

    fn draw(&self, out: &mut String, sizes: &[u32], x: f64, y: f64) -> std::fmt::Result {
        writeln!(
            out,
            "<text class=\"t\" x=\"{x}\" y=\"{}\">{}</text>",
            y - 14.0,
            self.title
        )?;
        let mut mark = self.from;
        while mark <= self.to * 1.001 {
            let at = self.up(y, mark);
            writeln!(
                out,
                "<line class=\"g\" x1=\"{x}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\"/>\n\
                 <text class=\"a\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{mark} {}</text>",
                x + WIDTH,
                x - 6.0,
                at + 4.0,
                self.unit
            )?;
            mark = (mark * 10.0 * 1e6).round() / 1e6;
        }
        let step = (WIDTH - 30.0) / (sizes.len().max(2) - 1) as f64;
        let across = |n: usize| x + 15.0 + n as f64 * step;
        for (n, size) in sizes.iter().enumerate() {
            writeln!(
                out,
                "<text class=\"a\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{size}</text>",
                across(n),
                y + HEIGHT + 17.0
            )?;
        }
        for (curve, colour) in self.curves.iter().zip(COLOURS) {
            let points: Vec<(f64, f64)> = (curve.values.iter().enumerate())
                .map(|(n, v)| (across(n), self.up(y, *v)))
                .collect();
            let path: Vec<String> = points
                .iter()
                .map(|(a, b)| format!("{a:.1},{b:.1}"))
                .collect();
            let dash = if curve.dashed { "5 4" } else { "none" };
            writeln!(
                out,
                "<polyline points=\"{}\" stroke=\"{colour}\" stroke-dasharray=\"{dash}\"/>",
                path.join(" ")
            )?;
            for (a, b) in points.iter().filter(|_| !curve.dashed) {
                writeln!(
                    out,
                    "<circle cx=\"{a:.1}\" cy=\"{b:.1}\" r=\"2.6\" fill=\"{colour}\"/>"
                )?;
            }
        }
        Ok(())
    }

    fn legend(&self, out: &mut String, x: f64, y: f64) -> std::fmt::Result {
        for (n, (curve, colour)) in self.curves.iter().zip(COLOURS).enumerate() {
            let (x, y) = (x + (n % 2) as f64 * 178.0, y + (n / 2) as f64 * 15.0);
            writeln!(
                out,
                "<path d=\"M{x} {} h18\" stroke=\"{colour}\" stroke-width=\"2.5\"/>\n\
                 <text class=\"a\" x=\"{}\" y=\"{y}\">{}</text>",
                y - 4.0,
                x + 23.0,
                curve.name
            )?;
        }
        Ok(())
    }
}

/// Panels, two in a line, with their curves' names below each.
pub fn draw(title: &str, sizes: &[u32], panels: &[Panel]) -> Result<String, std::fmt::Error> {
    let lines = panels.len().div_ceil(COLUMNS) as f64;
    let width = LEFT + COLUMNS as f64 * (WIDTH + GAP) - GAP + 20.0;
    let below = 108.0;
    let height = TOP + lines * (HEIGHT + below);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>text{{font:12px sans-serif;fill:#222}}\
         .t{{font-weight:bold;font-size:13px}}.a{{font-size:11px;fill:#555}}.g{{stroke:#ddd}}\
         polyline{{fill:none;stroke-width:1.8}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text class=\"t\" x=\"{LEFT}\" y=\"24\">{title}</text>\n"
    );
    for (n, panel) in panels.iter().enumerate() {
        let x = LEFT + (n % COLUMNS) as f64 * (WIDTH + GAP);
        let y = TOP + (n / COLUMNS) as f64 * (HEIGHT + below);
        panel.draw(&mut out, sizes, x, y)?;
        panel.legend(&mut out, x, y + HEIGHT + 38.0)?;
    }
    out.push_str("</svg>\n");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_a_point_for_each_size() {
        let panel = Panel {
            title: "t".into(),
            unit: "Mpps",
            from: 0.01,
            to: 10.0,
            curves: vec![Curve {
                name: "c".into(),
                values: vec![0.01, 10.0],
                dashed: false,
            }],
        };
        let Ok(text) = draw("all", &[64, 1500], &[panel]) else {
            unreachable!("a panel is drawn")
        };
        assert_eq!(text.matches("<circle").count(), 2);
        // the least is at the bottom, the most at the top
        assert!(
            text.contains(&format!("cy=\"{:.1}\"", TOP + HEIGHT)),
            "{text}"
        );
        assert!(text.contains(&format!("cy=\"{TOP:.1}\"")), "{text}");
        // four decades have lines
        assert_eq!(text.matches("class=\"g\"").count(), 4);
    }
}
