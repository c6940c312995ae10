//! Events to the driver: numbered, bounded, never lost in silence.
//!
//! FDB events wait in a queue of bounded length until the ring has room. If the queue is full,
//! too, FDB events are dropped and one LOST event says so; link states and counts of policed
//! packets are kept as state, so of those only the intermediate steps can be lost.

use std::collections::VecDeque;

use tandem_abi::{Memory, Producer, PushError, raw};
use tandem_pipeline::Event;
use tandem_pipeline::police::Police;
use tandem_ports::Link;
use zerocopy::{FromZeros, IntoBytes};

/// Events that wait beside the ring.
pub const QUEUE: usize = 4096;
/// Policed packets of a class are reported at most this often.
pub const TRAP_DROP_NS: u64 = 100_000_000;

/// Events of the present epoch.
pub struct Events {
    queue: VecDeque<raw::tnd_event>,
    epoch: u32,
    attached: bool,
    /// Number of the next event.
    next_seq: u32,
    /// Events that are in the ring.
    posted: u32,
    lost_fdb: u64,
    lost_total: u64,
    /// Ports whose link state the driver doesn't know yet.
    links: Vec<Option<Link>>,
    link_waits: bool,
    trap_drop_at: u64,
}

impl Events {
    /// For ports 1..=`ports`, no driver.
    pub fn new(ports: u16) -> Self {
        Events {
            queue: VecDeque::new(),
            epoch: 0,
            attached: false,
            next_seq: 0,
            posted: 0,
            lost_fdb: 0,
            lost_total: 0,
            links: vec![None; usize::from(ports) + 1],
            link_waits: false,
            trap_drop_at: 0,
        }
    }

    /// A new epoch: numbers start at zero. The caller tells all link states afterwards.
    pub fn attach(&mut self, epoch: u32) {
        self.detach();
        self.epoch = epoch;
        self.attached = true;
    }

    /// No driver: nothing is kept, a driver reads the tables when it attaches.
    pub fn detach(&mut self) {
        self.queue.clear();
        self.links.fill(None);
        self.link_waits = false;
        self.lost_fdb = 0;
        self.next_seq = 0;
        self.posted = 0;
        self.attached = false;
    }

    /// Events numbered so far: what a packet that comes now must wait for.
    #[inline]
    pub fn seq(&self) -> u32 {
        self.next_seq
    }

    /// Events in the ring so far.
    pub fn posted(&self) -> u32 {
        self.posted
    }

    /// FDB events that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost_total
    }

    /// Takes an event of the pipeline.
    pub fn fdb(&mut self, event: Event) {
        if !self.attached {
            return;
        }
        if self.queue.len() >= QUEUE || self.lost_fdb > 0 {
            self.lost_fdb += 1;
            self.lost_total += 1;
            return;
        }
        let mut e = raw::tnd_event::new_zeroed();
        match event {
            Event::Learn { fid, mac, port } => {
                e.kind = raw::TND_EV_LEARN;
                (e.fid, e.mac, e.port) = (fid, mac, port);
            }
            Event::Move {
                fid,
                mac,
                port,
                old_port,
            } => {
                e.kind = raw::TND_EV_MOVE;
                (e.fid, e.mac, e.port, e.old_port) = (fid, mac, port, old_port);
            }
            Event::Age { fid, mac, port } => {
                e.kind = raw::TND_EV_AGE;
                (e.fid, e.mac, e.port) = (fid, mac, port);
            }
        }
        self.number(e);
    }

    /// A port's link state is this now.
    pub fn link(&mut self, port: u16, link: Link) {
        if !self.attached {
            return;
        }
        if let Some(l) = self.links.get_mut(usize::from(port)) {
            *l = Some(link);
            self.link_waits = true;
        }
    }

    /// Moves what waits into the ring; returns how many. The caller publishes. An error is the
    /// ring's end.
    pub fn drain<M: Memory>(
        &mut self,
        ring: &mut Producer<M>,
        police: &mut Police,
        now_ns: u64,
    ) -> Result<usize, PushError> {
        if self.queue.is_empty()
            && self.lost_fdb == 0
            && !self.link_waits
            && now_ns < self.trap_drop_at
        {
            return Ok(0);
        }
        let mut free = ring.free_slots().map_err(PushError::from)? as usize;
        if self.link_waits && self.queue.len() < QUEUE {
            self.queue_links();
        }
        if now_ns >= self.trap_drop_at {
            self.trap_drop_at = now_ns + TRAP_DROP_NS;
            for (class, count) in police.take_unreported() {
                if self.queue.len() >= QUEUE {
                    police.put_unreported(class, count);
                    continue;
                }
                let mut e = raw::tnd_event::new_zeroed();
                e.kind = raw::TND_EV_TRAP_DROP;
                e.trap_class = u32::from(class);
                e.count = count;
                self.number(e);
            }
        }
        let mut moved = 0;
        loop {
            while free > 0 {
                let Some(e) = self.queue.front() else {
                    break;
                };
                ring.push(&[e.as_bytes()])?;
                self.queue.pop_front();
                self.posted = self.posted.wrapping_add(1);
                free -= 1;
                moved += 1;
            }
            if self.lost_fdb == 0 || !self.queue.is_empty() {
                return Ok(moved);
            }
            let mut e = raw::tnd_event::new_zeroed();
            e.kind = raw::TND_EV_LOST;
            e.cls = raw::TND_CLS_FDB;
            e.count = std::mem::take(&mut self.lost_fdb);
            self.number(e);
        }
    }

    fn queue_links(&mut self) {
        for port in 0..self.links.len() {
            if self.queue.len() >= QUEUE {
                return;
            }
            let Some(link) = self.links.get_mut(port).and_then(Option::take) else {
                continue;
            };
            let mut e = raw::tnd_event::new_zeroed();
            e.kind = raw::TND_EV_LINK;
            e.port = port as u16;
            e.up = u16::from(link.up);
            e.speed_mbps = link.speed_mbps;
            self.number(e);
        }
        self.link_waits = false;
    }

    fn number(&mut self, mut e: raw::tnd_event) {
        e.seq = self.next_seq;
        e.epoch = self.epoch;
        self.next_seq = self.next_seq.wrapping_add(1);
        self.queue.push_back(e);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Cpu, RING_SHARE};
    use tandem_abi::{DeviceRings, DriverRings, Layout, LayoutSpec};
    use tandem_carrier::Region;
    use tandem_linux::shm::Shared;
    use tandem_pipeline::CpuMeta;

    fn rings(events: u32) -> (DeviceRings<Region>, DriverRings<Region>) {
        let spec = LayoutSpec {
            events,
            rx: 64,
            packet_entry: 64 + 128,
            ..LayoutSpec::default()
        };
        let layout = Layout::new(&spec).unwrap();
        let region = Region::new(Shared::create("test", layout.size).unwrap());
        layout.write(&region, &spec);
        (
            DeviceRings::new(&region, &layout, 1).unwrap(),
            DriverRings::new(&region, &layout, 1).unwrap(),
        )
    }

    fn learn(n: usize) -> Event {
        let n = n as u32;
        Event::Learn {
            fid: 1,
            mac: [2, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8, 1],
            port: 1,
        }
    }

    #[test]
    fn what_is_lost_is_said_once_and_in_order() {
        let (mut device, mut driver) = rings(64);
        let (mut events, mut police) = (Events::new(2), Police::new(4));
        events.fdb(learn(0));
        assert_eq!(events.seq(), 0, "nobody is attached");
        events.attach(1);
        for n in 0..QUEUE + 100 {
            events.fdb(learn(n));
        }
        assert_eq!(events.lost(), 100);
        events.link(
            2,
            Link {
                up: true,
                speed_mbps: 10,
            },
        );
        events.link(
            2,
            Link {
                up: false,
                speed_mbps: 10,
            },
        );
        let (mut seen, mut kinds) = (0, Vec::new());
        for _ in 0..200 {
            events.drain(&mut device.event, &mut police, 1).unwrap();
            let _ = device.event.publish();
            while let Some(e) = driver.event.pop_struct::<raw::tnd_event>().unwrap() {
                assert_eq!((e.seq, e.epoch), (seen, 1));
                seen += 1;
                if e.kind != raw::TND_EV_LEARN {
                    kinds.push((e.kind, e.cls, e.count, e.up));
                }
            }
        }
        assert_eq!(events.seq(), seen);
        assert_eq!(events.posted(), seen);
        kinds.sort_unstable();
        // The link's last state is not lost, its intermediate one is
        assert_eq!(
            kinds,
            [
                (raw::TND_EV_LOST, raw::TND_CLS_FDB, 100, 0),
                (raw::TND_EV_LINK, 0, 0, 0)
            ]
        );
        events.fdb(learn(1));
        assert_eq!(events.seq(), seen + 1, "learning is told again");
    }

    #[test]
    fn a_packet_waits_for_its_events_and_classes_keep_their_order() {
        let (mut device, mut driver) = rings(64);
        let (mut events, mut cpu) = (Events::new(2), Cpu::new(4));
        let mut police = Police::new(4);
        events.attach(1);
        cpu.set_attached(true);
        let meta = |class: u16| CpuMeta {
            port: 1,
            reason: raw::TND_TRAP_ROUTE,
            class,
            flags: 0,
            fid: 0,
            tag: None,
            time_ns: 0,
        };
        for n in 0..65 {
            events.fdb(learn(n));
        }
        // 64 events fill the ring: the packet that the 65th belongs to must wait
        cpu.offer(meta(3), &[0; 60], events.seq());
        events.drain(&mut device.event, &mut police, 0).unwrap();
        assert_eq!(cpu.drain(&mut device.rx, 1, events.posted()), Ok(0));
        let _ = device.event.publish();
        while driver
            .event
            .pop_struct::<raw::tnd_event>()
            .unwrap()
            .is_some()
        {}
        events.drain(&mut device.event, &mut police, 0).unwrap();
        assert_eq!(cpu.drain(&mut device.rx, 1, events.posted()), Ok(1));

        // A flood of data fills its share only; what is above goes first
        for _ in 0..200 {
            cpu.offer(meta(3), &[0; 60], 0);
        }
        for _ in 0..10 {
            cpu.offer(meta(0), &[0; 60], 0);
        }
        let share = 64 / 8 * RING_SHARE[3] as usize;
        assert_eq!(cpu.drain(&mut device.rx, 1, 0), Ok(share - 1));
        let _ = device.rx.publish();
        let mut classes = Vec::new();
        while let Some(head) = driver.rx.pop_struct::<raw::tnd_rx>().unwrap() {
            classes.push(head.trap_class);
        }
        assert_eq!(classes[..11], [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(classes.len(), share);
        // Longer than an entry: counted, not delivered, nobody stalls
        cpu.set_attached(false);
        cpu.set_attached(true);
        let before = cpu.class(1).queue_full;
        cpu.offer(meta(1), &[0; 500], 0);
        cpu.offer(meta(1), &[0; 60], 0);
        assert_eq!(cpu.drain(&mut device.rx, 1, 0), Ok(1));
        assert_eq!(cpu.class(1).queue_full, before + 1);
    }
}
