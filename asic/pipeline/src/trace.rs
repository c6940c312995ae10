//! A trace: one frame through the very code that forwards, with nothing sent and nothing remembered.

use tandem_packet::{Buffer, Frame, Offload};

use crate::io::{CpuMeta, Event, Sink};
use crate::names::Stage;
use crate::run;
use crate::state::State;

/// One line of a trace.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    /// Name of the stage.
    pub stage: &'static str,
    /// What it found or did.
    pub text: String,
}

/// What would have happened to a frame.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Stage by stage.
    pub lines: Vec<Line>,
    /// Egress ports and the frames they would have sent.
    pub tx: Vec<(u16, Vec<u8>)>,
    /// What the CPU would have got.
    pub cpu: Vec<CpuMeta>,
}

impl Sink for Trace {
    const TRACE: bool = true;
    const DRY: bool = true;

    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.tx.push((port, frame.bytes().to_vec()));
    }
    fn cpu(&mut self, meta: CpuMeta, _frame: &Frame<'_>) {
        self.cpu.push(meta);
    }
    fn event(&mut self, _event: Event) {}
    fn trace(&mut self, stage: Stage, text: std::fmt::Arguments<'_>) {
        self.lines.push(Line {
            stage: stage.name(),
            text: text.to_string(),
        });
    }
}

/// Says what would happen to `frame` on port `ingress`. Nothing is learned, counted or charged to a policer. A frame
/// longer than 64 KiB is cut.
pub fn trace(state: &mut State, frame: &[u8], ingress: u16, now_ns: u64) -> Trace {
    let mut buffer = Buffer::with_capacity(frame.len().min(tandem_packet::MAX_FRAME));
    let cut = frame.get(..buffer.capacity()).unwrap_or_default();
    let _ = buffer.set(cut);
    let mut out = Trace::default();
    run::process(
        state,
        &mut buffer.frame(Offload::NONE),
        ingress,
        now_ns,
        &mut out,
        crate::Hint::default(),
    );
    out
}
