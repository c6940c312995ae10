//! Printing: text for people, JSON for programs. Errors of the pipe come back instead of a panic.

use anyhow::Result;
use serde_json::Value;
use std::io::Write;

/// How to print.
#[derive(Clone, Copy)]
pub struct Out {
    /// JSON instead of text
    pub json: bool,
    /// indented
    pub pretty: bool,
}

impl Out {
    /// Prints JSON if it was asked for, else what `text` makes.
    pub fn print(self, value: &Value, text: impl FnOnce() -> String) -> Result<()> {
        let s = if self.pretty {
            serde_json::to_string_pretty(value)?
        } else if self.json {
            value.to_string()
        } else {
            text()
        };
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(s.as_bytes())?;
        if !s.is_empty() && !s.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()?;
        Ok(())
    }
}

/// The reader of our output went away.
pub fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.chain()
        .filter_map(|c| c.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
