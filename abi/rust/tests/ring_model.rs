//! Rings, layouts and commands against simple models.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::VecDeque;

use proptest::prelude::*;
use tandem_abi::layout::{Layout, LayoutError, LayoutSpec};
use tandem_abi::memory::{Arena, HeapMemory, Memory};
use tandem_abi::object::{self, Object};
use tandem_abi::ring::{Consumer, Producer, PushError, RingLayout};
use tandem_abi::{Command, command, raw};

#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    Publish,
    Pop,
    Pending,
    Arm,
    Disarm,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Push),
        3 => Just(Step::Publish),
        4 => Just(Step::Pop),
        1 => Just(Step::Pending),
        1 => Just(Step::Arm),
        1 => Just(Step::Disarm),
    ]
}

fn ring(count: u32) -> RingLayout {
    RingLayout {
        kind: raw::TND_RING_EVENT,
        pair: 0,
        entry_size: 64,
        entry_count: count,
        doorbell: 1,
        prod: 0,
        cons: 64,
        entries: 128,
    }
}

proptest! {
    #[test]
    fn a_ring_is_a_bounded_queue(
        steps in prop::collection::vec(step(), 0..200),
        log2 in 0u32..4,
        start in prop_oneof![Just(0u32), any::<u32>(), (u32::MAX - 20..=u32::MAX)],
    ) {
        let r = ring(1 << log2);
        let mem = HeapMemory::new(128 + (64 << log2));
        mem.store_release(r.prod, start);
        mem.store_release(r.cons, start);
        let mut producer = Producer::starting_at(mem.clone(), r, start);
        let mut consumer = Consumer::starting_at(mem.clone(), r, start);
        let (mut hidden, mut visible) = (VecDeque::new(), VecDeque::new());
        let mut armed = false;
        for s in steps {
            match s {
                Step::Push(n) => {
                    let len = usize::from(n) % 70;
                    let data = vec![n; len];
                    let got = producer.push(&[&data[..len / 2], &data[len / 2..]]);
                    if len > 64 {
                        prop_assert_eq!(got, Err(PushError::TooLong { len, entry_size: 64 }));
                    } else if hidden.len() + visible.len() == 1 << log2 {
                        prop_assert_eq!(got, Err(PushError::Full));
                    } else {
                        prop_assert_eq!(got, Ok(()));
                        hidden.push_back(data);
                    }
                }
                Step::Publish => {
                    prop_assert_eq!(producer.publish(), armed && !hidden.is_empty());
                    visible.append(&mut hidden);
                }
                Step::Pop => {
                    let mut out = [0; 64];
                    match visible.pop_front() {
                        None => prop_assert_eq!(consumer.pop(&mut out).unwrap(), None),
                        Some(want) => {
                            prop_assert_eq!(consumer.pop(&mut out).unwrap(), Some(64));
                            prop_assert_eq!(&out[..want.len()], &want[..]);
                        }
                    }
                }
                Step::Pending => {
                    prop_assert_eq!(consumer.pending().unwrap() as usize, visible.len());
                    let taken = hidden.len() + visible.len();
                    prop_assert_eq!(producer.occupancy().unwrap() as usize, taken);
                }
                Step::Arm => {
                    prop_assert_eq!(consumer.arm().unwrap(), visible.is_empty());
                    armed = true;
                }
                Step::Disarm => {
                    consumer.disarm();
                    armed = false;
                }
            }
        }
    }

    #[test]
    fn an_index_that_can_not_be_is_noticed(
        log2 in 0u32..4, filled in 0u32..8, taken in 0u32..8, wrong: u32, start: u32,
    ) {
        let r = ring(1 << log2);
        let n = r.entry_count;
        let filled = filled.min(n);
        let taken = taken.min(filled);
        let mem = HeapMemory::new(128 + (64 << log2));
        mem.store_release(r.prod, start);
        mem.store_release(r.cons, start);
        let mut producer = Producer::starting_at(mem.clone(), r, start);
        let mut consumer = Consumer::starting_at(mem.clone(), r, start);
        for _ in 0..filled {
            producer.push(&[&[1]]).unwrap();
        }
        let _ = producer.publish();
        for _ in 0..taken {
            consumer.pop(&mut [0; 64]).unwrap().unwrap();
        }
        prop_assert_eq!(producer.free_slots().unwrap(), n - filled + taken);

        // a producer may stand from what was seen of it to a full ring
        mem.store_release(r.prod, wrong);
        let ahead = wrong.wrapping_sub(start.wrapping_add(taken));
        let seen = if taken > 0 { filled - taken } else { 0 };
        prop_assert_eq!(consumer.pending().is_ok(), ahead <= n && ahead >= seen);

        // a consumer may stand from what was seen of it to what was published
        mem.store_release(r.cons, wrong);
        let behind = wrong.wrapping_sub(start.wrapping_add(taken));
        prop_assert_eq!(producer.free_slots().is_ok(), behind <= filled - taken);
    }

    #[test]
    fn what_a_device_lays_out_a_driver_reads(
        logs in prop::collection::vec(0u32..8, 2..6), ev in 0u32..8, rx in 0u32..5, tx in 0u32..5,
        entry in 2usize..40, arena in 0usize..10_000, platform in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let spec = LayoutSpec {
            pairs: logs.iter().map(|n| 1 << n).collect(),
            events: 1 << ev,
            rx: 1 << rx,
            tx: 1 << tx,
            packet_entry: entry * 64,
            arena,
            platform,
            device_name: "a name that is longer than the field of 32 bytes".into(),
            ..Default::default()
        };
        let layout = Layout::new(&spec).unwrap();
        let mem = HeapMemory::new(layout.size);
        prop_assert!(matches!(Layout::read(&mem), Err(LayoutError::Magic(0))));
        layout.write(&mem, &spec);
        prop_assert_eq!(&Layout::read(&mem).unwrap(), &layout);
        let header: raw::tnd_header = tandem_abi::memory::read_struct(&mem, 0);
        prop_assert_eq!(tandem_abi::get_name(&header.device_name), &spec.device_name[..31]);
        // nothing overlaps, and every doorbell has one ring
        let mut parts: Vec<(usize, usize)> = vec![(0, 4096), layout.arena, layout.platform];
        for r in &layout.rings {
            parts.extend([(r.prod, 64), (r.cons, 64)]);
            parts.push((r.entries, r.entry_size * r.entry_count as usize));
        }
        parts.retain(|p| p.1 > 0);
        parts.sort_unstable();
        for w in parts.windows(2) {
            prop_assert!(w[0].0 + w[0].1 <= w[1].0, "{:?}", w);
        }
        prop_assert!(parts.last().is_none_or(|p| p.0 + p.1 <= layout.size));
        let (to_device, to_driver) = layout.doorbells();
        prop_assert_eq!((to_device + to_driver) as usize, layout.rings.len() + 2);
    }

    #[test]
    fn a_group_travels_whole_by_descriptor_or_arena(
        id: u32, weights in prop::collection::vec(1u32..256, 0..256), seq: u32, at in 0u32..100,
    ) {
        let members: Vec<_> = (0..)
            .zip(&weights)
            .map(|(nexthop, &weight)| raw::tnd_nhg_member { nexthop, weight })
            .collect();
        let count = members.len() as u16;
        let nhg = raw::tnd_nhg { nhg: id, count, ..Default::default() };
        let cmd = Command::create(&nhg).members(&members).cookie(5).with_lease(3);
        let arena = Arena::new(HeapMemory::new(8192), 64, 4096);
        prop_assert_eq!(cmd.arena_size() == 0, members.len() <= 6);
        if cmd.arena_size() > 0 {
            arena.write(at, cmd.body()).unwrap();
        }
        let wire = cmd.encode(seq, 9, at);
        prop_assert_eq!((wire.seq, wire.epoch, wire.cookie, wire.lease), (seq, 9, 5, 3));
        let mut body = Vec::new();
        command::read_body(&wire, &arena, &mut body).unwrap();
        let (got, got_members) = object::read_nhg(&body).unwrap();
        prop_assert_eq!((got.nhg, usize::from(got.count)), (id, members.len()));
        prop_assert_eq!(got_members, members);
        prop_assert_eq!(got.key(), nhg.key());
    }

    #[test]
    fn older_and_newer_bodies_are_read(extra in prop::collection::vec(any::<u8>(), 0..40), cut in 4u16..32) {
        use zerocopy::IntoBytes;
        let mut rif = raw::tnd_rif {
            rif: 7, vrf: 1, kind: 2, port: 3, fid: 4, vid: 5, mac: [6; 6], flags: 7, mtu: 8,
            ..Default::default()
        };
        rif.set_struct_size();
        // newer: longer than we know, and another record behind it
        let mut bytes = rif.as_bytes().to_vec();
        bytes.extend(&extra);
        let size = u16::try_from(bytes.len()).unwrap();
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes.extend(rif.as_bytes());
        let all: Vec<u16> = object::records::<raw::tnd_rif>(&bytes).map(|(r, _)| r.mtu as u16).collect();
        prop_assert_eq!(all, vec![8, 8]);
        // older: shorter, the rest is zero
        let mut bytes = rif.as_bytes()[..usize::from(cut)].to_vec();
        bytes[..2].copy_from_slice(&cut.to_le_bytes());
        let (old, rest) = object::read_object::<raw::tnd_rif>(&bytes).unwrap();
        prop_assert!(rest.is_empty());
        prop_assert_eq!(old.rif, 7);
        prop_assert!(cut >= 32 || old.reserved0 == 0);
        prop_assert_eq!(old.mtu, if cut >= 28 { 8 } else { 8 & ((1u64 << (8 * cut.saturating_sub(24))) - 1) as u32 });
        prop_assert!(object::read_object::<raw::tnd_rif>(&bytes[..usize::from(cut) - 1]).is_err());
    }
}

#[test]
fn wishes_that_the_frame_can_not_hold_are_refused() {
    for (spec, want) in [
        (
            LayoutSpec {
                pairs: vec![8],
                ..Default::default()
            },
            "1 command pairs",
        ),
        (
            LayoutSpec {
                events: 3,
                ..Default::default()
            },
            "power of two",
        ),
        (
            LayoutSpec {
                events: 0,
                ..Default::default()
            },
            "power of two",
        ),
        (
            LayoutSpec {
                packet_entry: 100,
                ..Default::default()
            },
            "packet entries",
        ),
        (
            LayoutSpec {
                packet_entry: 1000,
                ..Default::default()
            },
            "multiple of 64",
        ),
        (
            LayoutSpec {
                arena: 2 << 30,
                ..Default::default()
            },
            "more than",
        ),
        (
            LayoutSpec {
                arena: usize::MAX,
                ..Default::default()
            },
            "more than",
        ),
    ] {
        let e = Layout::new(&spec).unwrap_err().to_string();
        assert!(e.contains(want), "{e}");
    }
    let size = Layout::new(&LayoutSpec::default()).unwrap().size;
    assert!((19 << 20..22 << 20).contains(&size), "{size}");
}

#[test]
fn bodies_out_of_bounds_are_told_apart() {
    let arena = Arena::new(HeapMemory::new(8192), 4096, 4096);
    let mut out = Vec::new();
    let mut cmd = raw::tnd_cmd {
        body_size: 65,
        ..Default::default()
    };
    let e = command::read_body(&cmd, &arena, &mut out).unwrap_err();
    assert_eq!(e, object::BodyError::Long(65));
    cmd.flags = raw::TND_CMD_ARENA;
    cmd.body_offset = 4096 - 64;
    let e = command::read_body(&cmd, &arena, &mut out).unwrap_err();
    assert_eq!(
        e.to_string(),
        "65 bytes at 4032 lie outside the arena of 4096 bytes"
    );
    cmd.body_offset = u32::MAX;
    cmd.body_size = u32::MAX;
    assert!(command::read_body(&cmd, &arena, &mut out).is_err());
}

#[test]
fn a_consumer_that_gives_no_hint_gets_every_doorbell() {
    let mem = HeapMemory::new(1024);
    let mut producer = Producer::new(mem.clone(), ring(8));
    producer.push(&[&[1]]).unwrap();
    assert!(!producer.publish());
    producer.set_hint(false);
    assert!(!producer.publish(), "nothing new");
    producer.push(&[&[1]]).unwrap();
    assert!(producer.publish());
}
