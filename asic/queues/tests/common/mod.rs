//! Frames, and a wire that writes down what leaves.
#![allow(dead_code)]

use tandem_packet::{Buffer, Offload};
use tandem_queues::{Config, Fabric, Handling, Packet, Wire};

/// What left: port, bytes.
#[derive(Default)]
pub struct Log {
    pub sent: Vec<(u16, Vec<u8>)>,
    pub blocked: Vec<u16>,
}

impl Wire for Log {
    fn ready(&mut self, port: u16) -> bool {
        !self.blocked.contains(&port)
    }
    fn send(&mut self, port: u16, packet: &Packet) {
        self.sent.push((port, packet.bytes().to_vec()));
    }
}

impl Log {
    pub fn count(&self, port: u16) -> usize {
        self.sent.iter().filter(|(p, _)| *p == port).count()
    }
}

/// Ports of a fabric as a test drives it.
pub struct Bed {
    pub fabric: Fabric,
    pub log: Log,
    buffer: Buffer,
}

impl Bed {
    pub fn new(config: Config) -> Bed {
        Bed {
            fabric: Fabric::new(config).unwrap(),
            log: Log::default(),
            buffer: Buffer::new(),
        }
    }

    /// A frame of the given priority and number from `from`, to all of `to`.
    pub fn send(&mut self, from: u16, to: &[u16], priority: u8, number: u32, len: usize, now: u64) {
        let bytes = frame(priority, number, len);
        self.fabric.begin(from, &bytes);
        assert!(self.buffer.set(&bytes));
        let frame = self.buffer.frame(Offload::NONE);
        for port in to {
            if self.fabric.offer(*port, &frame, now) == Handling::Direct {
                self.log.sent.push((*port, bytes.clone()));
            }
        }
    }

    pub fn run(&mut self, now: u64) -> usize {
        self.fabric.run(now, usize::MAX, &mut self.log)
    }
}

pub fn frame(priority: u8, number: u32, len: usize) -> Vec<u8> {
    let mut f = vec![0; len.max(22)];
    f[12..16].copy_from_slice(&[0x81, 0, priority << 5, 1]);
    f[18..22].copy_from_slice(&number.to_be_bytes());
    f
}

/// Numbers that look random, the same in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}
