//! The driver's arena, cut into slots: long bodies on one side, results on the other.
//!
//! ```text
//!   0        bodies: 4 KiB each                 │  outputs: 64 KiB each             size
//!   ├──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬──┬─┼────────┬────────┬────────┬────────┤
//! ```
//!
//! A slot belongs to a command from post to completion. One whose command was never answered stays
//! taken: the device may still write there.

use tandem_abi::object::BODY_MAX;

/// Bytes of a body slot.
const BODY: usize = BODY_MAX;
/// Bytes of an output slot, at most.
const OUTPUT: usize = 64 * 1024;
/// Output slots, at most; they take at most half of the arena.
const OUTPUTS: usize = 16;

/// A range of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub offset: u32,
    pub size: u32,
}

/// Free slots of both kinds.
#[derive(Debug)]
pub(crate) struct Slots {
    bodies: Vec<Slot>,
    outputs: Vec<Slot>,
}

impl Slots {
    pub(crate) fn new(arena: usize) -> Slots {
        let half = arena / 2;
        let output = OUTPUT.min(half) & !63;
        let outputs = half.checked_div(output).unwrap_or(0).min(OUTPUTS);
        let split = arena - outputs * output;
        Slots {
            bodies: cut(0, split / BODY, BODY),
            outputs: cut(split, outputs, output),
        }
    }

    pub(crate) fn take_body(&mut self) -> Option<Slot> {
        self.bodies.pop()
    }

    pub(crate) fn take_output(&mut self) -> Option<Slot> {
        self.outputs.pop()
    }

    pub(crate) fn give_body(&mut self, slot: Option<Slot>) {
        self.bodies.extend(slot);
    }

    pub(crate) fn give_output(&mut self, slot: Option<Slot>) {
        self.outputs.extend(slot);
    }
}

fn cut(from: usize, count: usize, size: usize) -> Vec<Slot> {
    (0..count)
        .rev()
        .filter_map(|i| {
            Some(Slot {
                offset: u32::try_from(from + i * size).ok()?,
                size: u32::try_from(size).ok()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_inside_and_apart() {
        for arena in [0, 100, 8192, 70_000, 1 << 20, 4 << 20] {
            let mut s = Slots::new(arena);
            let mut all: Vec<Slot> = Vec::new();
            while let Some(b) = s.take_body() {
                all.push(b);
            }
            while let Some(o) = s.take_output() {
                all.push(o);
            }
            all.sort_by_key(|s| s.offset);
            let mut end = 0;
            for slot in &all {
                assert!(slot.offset >= end, "{arena}: {slot:?}");
                end = slot.offset + slot.size;
            }
            assert!(end as usize <= arena, "{arena}");
        }
        let mut s = Slots::new(4 << 20);
        assert_eq!(s.take_output().unwrap().size, 65536);
        assert_eq!(s.bodies.len(), 768);
    }
}
