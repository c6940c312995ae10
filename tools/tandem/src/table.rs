//! Aligned tables for people.

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// How a cell is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words
    Left,
    /// Numbers
    Right,
}

/// One column: its heading, the row's key, how it is set. A key `a|b` shows the first of them that has a
/// value; `a.b` looks into an object.
#[derive(Clone, Copy)]
pub struct Column {
    /// Heading
    pub head: &'static str,
    /// Key or keys
    pub key: &'static str,
    /// Alignment
    pub align: Align,
}

/// A column of words.
pub const fn left(head: &'static str, key: &'static str) -> Column {
    Column {
        head,
        key,
        align: Align::Left,
    }
}

/// A column of numbers.
pub const fn right(head: &'static str, key: &'static str) -> Column {
    Column {
        head,
        key,
        align: Align::Right,
    }
}

/// A value as one cell: words without quotes, lists joined, nothing as "-".
pub fn cell(v: &Value) -> String {
    match v {
        Value::Null => "-".into(),
        Value::Bool(b) => if *b { "yes" } else { "no" }.into(),
        Value::Number(n) => n.to_string(),
        Value::String(s) if s.is_empty() => "-".into(),
        Value::String(s) => s.clone(),
        Value::Array(a) if a.is_empty() => "-".into(),
        Value::Array(a) => a.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(o) => nexthop(v).unwrap_or_else(|| {
            o.iter()
                .map(|(k, v)| format!("{k}={}", cell(v)))
                .collect::<Vec<_>>()
                .join(" ")
        }),
    }
}

/// `{"via": …, "dev": …, "weight": …}` in the words of `ip route`.
fn nexthop(v: &Value) -> Option<String> {
    let dev = v.get("dev")?;
    let mut s = String::new();
    if let Some(via) = v.get("via").and_then(Value::as_str) {
        s = format!("via {via} ");
    }
    s += &format!("dev {}", cell(dev));
    match v.get("weight").and_then(Value::as_u64) {
        Some(w) if w > 1 => s += &format!(" weight {w}"),
        _ => {}
    }
    Some(s)
}

fn lookup(row: &Value, key: &str) -> String {
    key.split('|')
        .map(|k| {
            k.split('.')
                .try_fold(row, |v, part| v.get(part))
                .unwrap_or(&Value::Null)
        })
        .find(|v| !v.is_null())
        .map_or_else(|| "-".into(), cell)
}

/// Rows as aligned text. Columns in which every row has nothing are left out.
pub fn render(columns: &[Column], rows: &[Value]) -> String {
    let cells: Vec<Vec<String>> = columns
        .iter()
        .map(|c| rows.iter().map(|r| lookup(r, c.key)).collect())
        .collect();
    let shown: Vec<(&Column, &Vec<String>)> = columns
        .iter()
        .zip(&cells)
        .filter(|(_, v)| v.is_empty() || v.iter().any(|s| s != "-"))
        .collect();
    let widths: Vec<usize> = shown
        .iter()
        .map(|(c, v)| {
            v.iter()
                .map(|s| s.width())
                .max()
                .unwrap_or(0)
                .max(c.head.len())
        })
        .collect();
    let mut out = String::new();
    let mut line = |texts: Vec<&str>| {
        let mut s = String::new();
        for ((text, (column, _)), width) in texts.iter().zip(&shown).zip(&widths) {
            let pad = " ".repeat(width.saturating_sub(text.width()));
            match column.align {
                Align::Left => s += &format!("{text}{pad}  "),
                Align::Right => s += &format!("{pad}{text}  "),
            }
        }
        out.push_str(s.trim_end());
        out.push('\n');
    };
    line(shown.iter().map(|(c, _)| c.head).collect());
    for i in 0..rows.len() {
        line(
            shown
                .iter()
                .map(|(_, v)| v.get(i).map_or("", String::as_str))
                .collect(),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let columns = [
            left("NAME", "name"),
            right("USED", "n.used"),
            left("WHY", "reason"),
            left("IN", "dev|bridge"),
        ];
        let rows = [
            json!({"name": "exact-match", "n": {"used": 7}, "bridge": "br0"}),
            json!({"name": "lpm", "n": {"used": 1200}, "dev": "swp1", "reason": null}),
        ];
        assert_eq!(
            render(&columns, &rows),
            "NAME         USED  IN\nexact-match     7  br0\nlpm          1200  swp1\n"
        );
    }

    #[test]
    fn wide_and_combining_characters_line_up() {
        let rows = [
            json!({"name": "交換機", "n": 1}),
            json!({"name": "bru\u{308}cke", "n": 22}),
        ];
        // a terminal sets the first in six columns, the second in six as well
        assert_eq!(
            render(&[left("NAME", "name"), right("N", "n")], &rows),
            "NAME     N\n交換機   1\nbru\u{308}cke  22\n"
        );
    }

    #[test]
    fn next_hops_read_as_in_ip_route() {
        let v = json!([{"via": "10.0.0.1", "dev": "swp1", "weight": 1}, {"via": null, "dev": "swp2", "weight": 3}]);
        assert_eq!(cell(&v), "via 10.0.0.1 dev swp1, dev swp2 weight 3");
    }

    #[test]
    fn nothing_is_a_dash() {
        assert_eq!(cell(&json!([])), "-");
        assert_eq!(cell(&json!("")), "-");
        assert_eq!(render(&[left("A", "a")], &[]), "A\n");
    }
}
