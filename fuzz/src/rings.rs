//! Fuzz entries for both directions: any bytes in the shared region, at any time.
//!
//! Both take the fuzzer's bytes as a script of writes by the hostile side, mixed with everything
//! the honest side does. The honest side must not panic, must not touch anything outside of the
//! region, and must not take more entries than a ring holds. `tests/rings.rs` runs them with
//! deterministic bytes; a coverage-guided fuzzer can call them as they are.

use std::cell::Cell;

use tandem_abi::command::{completion, read_body};
use tandem_abi::handshake::{self, Ack};
use tandem_abi::layout::{Layout, LayoutSpec};
use tandem_abi::memory::{Arena, HeapMemory, Memory, read_struct};
use tandem_abi::object::{self, BODY_MAX, Object};
use tandem_abi::ring::{Consumer, Corrupt};
use tandem_abi::{DeviceRings, DriverRings, Status, describe, get_name, raw};

/// A region that refuses to let an access outside of it go unnoticed.
#[derive(Clone, Debug)]
struct Strict(HeapMemory);

impl Strict {
    fn check(&self, off: usize, len: usize, aligned: usize) {
        let fits = off.checked_add(len).is_some_and(|end| end <= self.0.len());
        assert!(
            fits && off.is_multiple_of(aligned),
            "access of {len} bytes at {off} in a region of {}",
            self.0.len()
        );
    }
}

impl Memory for Strict {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn load_acquire(&self, off: usize) -> u32 {
        self.check(off, 4, 4);
        self.0.load_acquire(off)
    }
    fn store_release(&self, off: usize, v: u32) {
        self.check(off, 4, 4);
        self.0.store_release(off, v);
    }
    fn fence(&self) {}
    fn read(&self, off: usize, out: &mut [u8]) {
        self.check(off, out.len(), 1);
        self.0.read(off, out);
    }
    fn write(&self, off: usize, data: &[u8]) {
        self.check(off, data.len(), 1);
        self.0.write(off, data);
    }
}

/// The fuzzer's bytes, taken from the front; zeroes when they are used up.
struct Script<'a> {
    data: &'a [u8],
}

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        match self.data.split_first() {
            Some((&b, rest)) => {
                self.data = rest;
                b
            }
            None => 0,
        }
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// A number that is often one of interest.
    fn value(&mut self, interesting: &[u32]) -> u32 {
        let pick = usize::from(self.byte());
        match interesting.get(pick) {
            Some(&v) => v,
            None => self.number(),
        }
    }
}

/// A small layout: every ring wraps within a few entries.
fn spec() -> LayoutSpec {
    LayoutSpec {
        pairs: vec![4, 8],
        events: 4,
        rx: 4,
        tx: 4,
        packet_entry: 256,
        arena: 4096,
        platform: vec![0; 64],
        device_name: "fuzz".into(),
        ..Default::default()
    }
}

fn frame() -> Option<(Strict, Layout)> {
    let spec = spec();
    let layout = Layout::new(&spec).ok()?;
    let mem = HeapMemory::new(layout.size);
    layout.write(&mem, &spec);
    Some((Strict(mem), layout))
}

/// One write of the hostile side: into an index word, an entry, the arena or anywhere.
fn scribble(script: &mut Script<'_>, mem: &HeapMemory, layout: &Layout) {
    let rings = layout.rings.len();
    let ring = layout
        .rings
        .get(usize::from(script.byte()) % rings)
        .copied();
    let Some(ring) = ring else { return };
    match script.byte() % 8 {
        0..=2 => {
            // mostly plausible: a few entries on from what stands there
            let at = [ring.prod, ring.cons][usize::from(script.byte() & 1)];
            let now = mem.load_acquire(at);
            let n = ring.entry_count;
            let v = script.value(&[
                now.wrapping_add(1),
                now.wrapping_add(2),
                now.wrapping_add(n),
                now.wrapping_sub(1),
                0,
                n,
                n + 1,
                u32::MAX,
            ]);
            mem.store_release(at, v);
        }
        3 => mem.store_release(ring.cons + 4, script.number()),
        4 | 5 => {
            let slot = usize::from(script.byte()) % ring.entry_count as usize;
            let field = usize::from(script.byte()) % ring.entry_size;
            let bytes: Vec<u8> = (0..script.byte() % 32).map(|_| script.byte()).collect();
            mem.write(ring.entries + slot * ring.entry_size + field, &bytes);
        }
        6 => {
            let at = layout.arena.0 + script.number() as usize % layout.arena.1;
            let bytes: Vec<u8> = (0..script.byte() % 64).map(|_| script.byte()).collect();
            mem.write(at, &bytes);
        }
        _ => {
            let at = script.number() as usize % layout.size;
            mem.store_release(at & !3, script.value(&[0, 1, 2, 4096, u32::MAX]));
        }
    }
}

/// Takes all that waits; asserts that it isn't more than one ring may hold twice over (once what
/// was seen, once what came meanwhile: the hostile side doesn't run meanwhile here).
fn drain<M: Memory>(
    ring: &mut Consumer<M>,
    mut each: impl FnMut(&mut Consumer<M>) -> Result<bool, Corrupt>,
) -> Result<(), Corrupt> {
    let taken = Cell::new(0u32);
    while each(ring)? {
        taken.set(taken.get() + 1);
        assert!(
            taken.get() <= 2 * ring.ring().entry_count,
            "endless {}",
            ring.ring().name()
        );
    }
    Ok(())
}

/// Everything that is ever done with an untrusted body.
fn read_bodies(cls: u16, body: &[u8]) {
    fn one<T: Object>(body: &[u8]) {
        if let Ok((value, rest)) = object::read_object::<T>(body) {
            let _ = (value.key(), rest.len());
        }
        // every record takes at least four bytes
        assert!(object::records::<T>(body).count() <= body.len() / 4);
    }
    match cls % 16 {
        raw::TND_CLS_PORT => one::<raw::tnd_port>(body),
        raw::TND_CLS_VLAN => one::<raw::tnd_vlan>(body),
        raw::TND_CLS_VLAN_MEMBER => one::<raw::tnd_vlan_member>(body),
        raw::TND_CLS_FDB => one::<raw::tnd_fdb>(body),
        raw::TND_CLS_VRF => one::<raw::tnd_vrf>(body),
        raw::TND_CLS_RIF => one::<raw::tnd_rif>(body),
        raw::TND_CLS_NEIGH => one::<raw::tnd_neigh>(body),
        raw::TND_CLS_NEXTHOP => one::<raw::tnd_nexthop>(body),
        raw::TND_CLS_NHG => {
            one::<raw::tnd_nhg>(body);
            if let Ok((nhg, members)) = object::read_nhg(body) {
                assert_eq!(usize::from(nhg.count), members.len());
            }
        }
        raw::TND_CLS_ROUTE => one::<raw::tnd_route>(body),
        raw::TND_CLS_TRAP => one::<raw::tnd_trap>(body),
        12 => one::<raw::tnd_class_cost>(body),
        13 => one::<raw::tnd_geometry>(body),
        14 => one::<raw::tnd_led>(body),
        15 => one::<raw::tnd_port_stats>(body),
        _ => {
            if let Ok(items) = object::read_lease(body) {
                assert!(items.len() <= raw::TND_LEASE_MAX_CLASSES);
            }
        }
    }
}

fn device_turn<M: Memory>(rings: &mut DeviceRings<M>, body: &mut Vec<u8>) -> Result<(), Corrupt> {
    use zerocopy::IntoBytes;
    for pair in &mut rings.pairs {
        let cpl = &mut pair.cpl;
        drain(&mut pair.cmd, |ring| {
            let Some(cmd) = ring.pop_struct::<raw::tnd_cmd>()? else {
                return Ok(false);
            };
            if read_body(&cmd, &rings.arena, body).is_ok() {
                assert!(body.len() <= BODY_MAX);
                read_bodies(cmd.cls, body);
            }
            let _ = rings.arena.write(cmd.out_offset, body);
            let _ = cpl.push(&[completion(&cmd, raw::TND_ST_OK).as_bytes()]);
            Ok(true)
        })?;
        let _ = pair.cpl.publish();
        pair.cpl.free_slots()?;
        let _ = pair.cmd.arm()?;
        pair.cmd.disarm();
    }
    drain(&mut rings.tx, |ring| {
        let head = ring.pop_packet(body, |t: &raw::tnd_tx| t.len as usize)?;
        assert!(body.len() <= 256 - raw::TND_PKT_META_SIZE);
        Ok(head.is_some())
    })?;
    let _ = rings.event.push(&[raw::tnd_event::default().as_bytes()]);
    let _ = rings.event.publish();
    let _ = rings
        .rx
        .push(&[raw::tnd_rx::default().as_bytes(), &[0; 192]]);
    let _ = rings.rx.publish();
    rings.rx.occupancy()?;
    Ok(())
}

/// A hostile driver against the device's code.
pub fn fuzz_device(data: &[u8]) {
    let Some((mem, layout)) = frame() else { return };
    let mut script = Script { data };
    let mut body = Vec::new();
    let mut rings = DeviceRings::new(&mem, &layout, 1).ok();
    let mut last = 0;
    while !script.data.is_empty() {
        for _ in 0..script.byte() % 8 {
            scribble(&mut script, &mem.0, &layout);
        }
        if let Some((seq, op)) = handshake::pending_request(&mem, last) {
            last = seq;
            let status = match handshake::Request::from_raw(op) {
                Some(r) if r.attaches() => {
                    layout.clear_rings(&mem);
                    rings = DeviceRings::new(&mem, &layout, 1).ok();
                    raw::TND_ST_OK
                }
                Some(_) => raw::TND_ST_OK,
                None => raw::TND_ST_UNSUPPORTED,
            };
            handshake::acknowledge(&mem, seq, Ack { status, epoch: 1 });
        }
        let _ = handshake::features(&mem);
        if let Some(r) = &mut rings
            && device_turn(r, &mut body).is_err()
        {
            // what a carrier does: the session ends, the next one has clean rings
            handshake::set_state(&mem, raw::TND_DEV_FAILED, raw::TND_FAIL_RING_INDEX);
            layout.clear_rings(&mem);
            rings = DeviceRings::new(&mem, &layout, 1).ok();
        }
    }
}

fn driver_turn<M: Memory>(
    rings: &mut DriverRings<M>,
    arena: &Arena<M>,
    body: &mut Vec<u8>,
) -> Result<(), Corrupt> {
    use zerocopy::IntoBytes;
    for pair in &mut rings.pairs {
        let _ = pair.cmd.push(&[raw::tnd_cmd::default().as_bytes()]);
        let _ = pair.cmd.publish();
        drain(&mut pair.cpl, |ring| {
            let Some(cpl) = ring.pop_struct::<raw::tnd_cpl>()? else {
                return Ok(false);
            };
            let _ = (describe(&cpl, "ipv4-lpm"), Status::from_raw(cpl.status));
            let _ = cpl.delta.iter().take(usize::from(cpl.delta_count)).count();
            body.resize((cpl.out_len as usize).min(arena.size()), 0);
            if arena.read(0, body).is_ok() {
                read_bodies(cpl.cls, body);
                for pool in object::fixed::<raw::tnd_pool>(body) {
                    assert!(get_name(&pool.name).len() <= raw::TND_NAME_SIZE);
                }
            }
            Ok(true)
        })?;
        let _ = pair.cpl.arm()?;
        pair.cpl.disarm();
        pair.cmd.free_slots()?;
    }
    drain(&mut rings.event, |ring| {
        Ok(ring.pop_struct::<raw::tnd_event>()?.is_some())
    })?;
    drain(&mut rings.rx, |ring| {
        let head = ring.pop_packet(body, |r: &raw::tnd_rx| r.len as usize)?;
        Ok(head.is_some())
    })?;
    let _ = rings
        .tx
        .push(&[raw::tnd_tx::default().as_bytes(), &[1; 64]]);
    let _ = rings.tx.publish();
    Ok(())
}

/// A hostile device against the driver's code: header and directory first, then rings.
pub fn fuzz_driver(data: &[u8]) {
    let Some((mem, good)) = frame() else { return };
    let mut script = Script { data };
    // changes of header and directory
    for _ in 0..script.byte() % 4 {
        let at = usize::from(script.byte()) * 4 + usize::from(script.byte() & 3) * 256;
        let page = good.size as u32;
        let v = script.value(&[0, 1, 2, 3, 64, 63, 4096, page, page - 64, 1 << 31, u32::MAX]);
        mem.0.store_release(at, v);
    }
    let Ok(layout) = Layout::read(&mem) else {
        return;
    };
    let mut platform = vec![0; layout.platform.1];
    mem.read(layout.platform.0, &mut platform);
    let header: raw::tnd_header = read_struct(&mem, 0);
    let _ = (get_name(&header.device_name), layout.doorbells());
    let arena = Arena::new(mem.clone(), layout.arena.0, layout.arena.1);
    let mut body = Vec::new();
    let Ok(mut rings) = DriverRings::new(&mem, &layout, 1) else {
        return;
    };
    let seq = handshake::request(&mem, handshake::Request::AttachWarm);
    // rings that overlap each other or the header are the hostile device's own trouble
    while !script.data.is_empty() {
        for _ in 0..script.byte() % 8 {
            scribble(&mut script, &mem.0, &good);
        }
        let _ = handshake::acknowledged(&mem, seq);
        let _ = handshake::fail_reason_text(handshake::state(&mem).1);
        if driver_turn(&mut rings, &arena, &mut body).is_err() {
            return;
        }
    }
}
