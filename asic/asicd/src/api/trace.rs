//! One frame through the very pipeline code, without any effect.

use std::fmt::Arguments;

use tandem_mgmt::hex;
use tandem_mgmt::types::{TraceAnswer, TraceStep};
use tandem_packet::{Buffer, Frame, Offload};
use tandem_pipeline::trap::reason_name;
use tandem_pipeline::{CpuMeta, Event, Sink, Stage, process};

use crate::asic::Asic;

/// Lines that a trace has at most.
const STEPS: usize = 1000;

#[derive(Default)]
struct Tracer(TraceAnswer);

impl Sink for Tracer {
    const TRACE: bool = true;
    const DRY: bool = true;

    fn tx(&mut self, port: u16, frame: &Frame<'_>) {
        self.0.egress.push(format!("swp{port}"));
        self.0.frames.push(hex::encode(frame.bytes()));
        let text = format!("leaves by swp{port}, {} bytes", frame.len());
        self.step("egress", text);
    }

    fn cpu(&mut self, meta: CpuMeta, _frame: &Frame<'_>) {
        self.0.cpu.push(reason_name(meta.reason).into());
    }

    fn event(&mut self, _event: Event) {}

    fn trace(&mut self, stage: Stage, text: Arguments<'_>) {
        self.step(stage.name(), text.to_string());
    }
}

impl Tracer {
    fn step(&mut self, stage: &str, text: String) {
        if self.0.items.len() < STEPS {
            self.0.items.push(TraceStep {
                stage: stage.into(),
                text,
            });
        }
    }
}

/// Sends `frame` through the pipeline as if it came in on `port`.
pub fn trace(asic: &mut Asic, port: u16, frame: &[u8], now_ns: u64) -> Result<TraceAnswer, String> {
    if asic.port(port).is_none() {
        return Err(format!(
            "no port swp{port}: the chip has swp1 to swp{}",
            asic.ports.len()
        ));
    }
    let mut buffer = Buffer::new();
    if !buffer.set(frame) {
        return Err(format!(
            "a frame of {} bytes is longer than {} bytes",
            frame.len(),
            buffer.capacity()
        ));
    }
    let mut tracer = Tracer::default();
    process(
        &mut asic.fw.state,
        &mut buffer.frame(Offload::NONE),
        port,
        now_ns,
        &mut tracer,
    );
    let Tracer(mut answer) = tracer;
    let (egress, cpu) = (answer.egress.join(", "), answer.cpu.join(", "));
    answer.verdict = match (answer.egress.is_empty(), answer.cpu.is_empty()) {
        (true, true) => "dropped".into(),
        (false, true) => format!("forwarded to {egress}"),
        (true, false) => format!("to the CPU: {cpu}"),
        (false, false) => format!("forwarded to {egress}, a copy to the CPU: {cpu}"),
    };
    Ok(answer)
}
