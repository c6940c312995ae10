// SPDX-License-Identifier: Apache-2.0
//! Random flows of a universe so small that most of them overlap.
use super::model::{KNOWN, PRESENT, Packet, World};
use super::reference;
use crate::tables::{self, Chip, Frames, MacLookup, MacTable, Widths};
use crate::{Act, Beyond, Chain, Change, Flow, Only, PortMask, Rewrite, Tagging, Wanted, Why};
use proptest::prelude::*;
use tandem_ofpipeline::flows::blank;
use tandem_ofpipeline::{Config, Switch};
use tandem_openflow::model::FlowMod;
use tandem_openflow::{Field, Instructions, Match, Oxm, oxm};

const MACS: [u128; 3] = [0x0200_0000_0001, 0x0200_0000_0002, 0xffff_ffff_ffff];
const VLANS: [u128; 3] = [0, PRESENT | 1, PRESENT | 2];

pub fn packets() -> Vec<Packet> {
    let mut list = Vec::new();
    for port in [1, 2] {
        for dst in MACS {
            for src in [MACS[0], MACS[1]] {
                for vlan in VLANS {
                    let base = [
                        (Field::InPort, port),
                        (Field::EthDst, dst),
                        (Field::EthSrc, src),
                        (Field::VlanVid, vlan),
                    ];
                    let mut with = |more: &[(Field, u128)]| {
                        let all: Vec<_> = base.iter().chain(more).copied().collect();
                        list.push(Packet::new(&all));
                    };
                    with(&[(Field::EthType, 0x1234)]);
                    with(&[
                        (Field::EthType, 0x0806),
                        (Field::ArpOp, 1),
                        (Field::ArpSpa, 1),
                    ]);
                    with(&[
                        (Field::EthType, 0x86dd),
                        (Field::IpProto, 6),
                        (Field::Ipv6Flabel, 1),
                        (Field::TcpDst, 80),
                    ]);
                    for (proto, to) in [(6, 80), (17, 53), (1, 0)] {
                        for ip in [1, 2] {
                            let mut l = vec![
                                (Field::EthType, 0x0800),
                                (Field::IpProto, proto),
                                (Field::Ipv4Dst, ip),
                            ];
                            match proto {
                                6 => l.push((Field::TcpDst, to)),
                                17 => l.push((Field::UdpDst, to)),
                                _ => {}
                            }
                            with(&l);
                        }
                    }
                }
            }
        }
    }
    list
}

fn fields() -> impl Strategy<Value = Vec<Oxm>> {
    let mac = (
        0..3usize,
        prop_oneof![Just(None), (0..3usize).prop_map(Some)],
    )
        .prop_map(|(m, v)| {
            let mut l = vec![Oxm::exact(Field::EthDst, MACS[m])];
            l.extend(v.map(|v| Oxm::exact(Field::VlanVid, VLANS[v])));
            l
        });
    let some = |field, values: Vec<u128>| {
        prop_oneof![
            3 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(Oxm::exact(field, v)))
        ]
    };
    let l2 = (
        some(Field::InPort, vec![1, 2]),
        some(Field::EthDst, MACS.to_vec()),
        some(Field::EthSrc, vec![MACS[0], MACS[1]]),
        some(Field::VlanVid, VLANS.to_vec()),
        any::<bool>(),
        prop_oneof![4 => Just(None), 1 => Just(Some(Oxm::exact(Field::Metadata, 0)))],
    );
    let l3 = prop_oneof![
        4 => Just(vec![]),
        1 => Just(vec![(Field::EthType, 0x1234)]),
        1 => Just(vec![(Field::EthType, 0x0806)]),
        1 => Just(vec![(Field::EthType, 0x0806), (Field::ArpOp, 1)]),
        1 => Just(vec![(Field::EthType, 0x86dd)]),
        1 => Just(vec![(Field::EthType, 0x86dd), (Field::Ipv6Flabel, 1)]),
        2 => Just(vec![(Field::EthType, 0x0800)]),
        2 => (1..3u128).prop_map(|ip| vec![(Field::EthType, 0x0800), (Field::Ipv4Dst, ip)]),
        1 => Just(vec![(Field::EthType, 0x0800), (Field::IpProto, 1)]),
        1 => Just(vec![(Field::EthType, 0x0800), (Field::IpProto, 6), (Field::TcpDst, 80)]),
        1 => Just(vec![(Field::EthType, 0x0800), (Field::IpProto, 17), (Field::UdpDst, 53)]),
    ];
    let any = (l2, l3).prop_map(|((port, dst, src, vlan, tagged, meta), l3)| {
        let mut l: Vec<Oxm> = [port, dst, src, vlan, meta].into_iter().flatten().collect();
        if vlan.is_none() && tagged {
            let p = u128::from(oxm::VID_PRESENT);
            l.push(Oxm::masked(Field::VlanVid, p, p));
        }
        l.extend(l3.iter().map(|(f, v)| Oxm::exact(*f, *v)));
        l.sort_by_key(|o| o.field);
        l
    });
    prop_oneof![3 => mac, 4 => any, 1 => Just(vec![])]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let set = |a, b| {
        let mut ports = PortMask::one(a);
        ports.insert(b);
        Act::Out {
            ports,
            rewrite: Rewrite::default(),
        }
    };
    let rewrite = Act::Out {
        ports: PortMask::one(3),
        rewrite: Rewrite {
            vid: Some(7),
            ..Rewrite::default()
        },
    };
    let writes = (0..5usize, 3..5u8).prop_map(|(n, port)| {
        let plain = Rewrite::default();
        let rewrite = match n {
            0 => Rewrite {
                vid: Some(7),
                ..plain
            },
            1 => Rewrite {
                pcp: Some(5),
                ..plain
            },
            2 => Rewrite {
                dscp: Some(46),
                ..plain
            },
            3 => Rewrite {
                tag: Tagging::Goes,
                ..plain
            },
            _ => Rewrite {
                tag: Tagging::Comes,
                vid: Some(7),
                pcp: Some(0),
                ..plain
            },
        };
        Wanted::Act(Act::Out {
            ports: PortMask::one(port),
            rewrite,
        })
    });
    prop_oneof![
        3 => writes,
        6 => (1..5u8).prop_map(|p| Wanted::Act(Act::port(p))),
        1 => Just(Wanted::Act(Act::Drop)),
        2 => Just(Wanted::Act(Act::Cpu)),
        1 => Just(Wanted::Act(set(1, 2))),
        1 => Just(Wanted::Act(set(3, 4))),
        1 => Just(Wanted::Act(set(2, 5))),
        1 => Just(Wanted::Act(rewrite)),
        1 => Just(Wanted::Beyond(Beyond::Meter)),
    ]
}

/// Flows that write, mostly in front of the others, and with matches that say what there is to be written to.
fn writer() -> impl Strategy<Value = (u16, Vec<Oxm>, Wanted)> {
    let some = |field, values: Vec<u128>| {
        prop_oneof![
            1 => Just(None),
            1 => proptest::sample::select(values).prop_map(move |v| Some(Oxm::exact(field, v)))
        ]
    };
    let end = prop_oneof![
        some(Field::EthDst, MACS.to_vec()),
        some(Field::EthSrc, MACS[..2].to_vec()),
        some(Field::EthType, vec![0x0800, 0x86dd, 0x1234]),
    ];
    let port = some(Field::InPort, vec![1, 2]);
    (0..6usize, 1..7u16, 3..6u8, port, end, any::<bool>()).prop_map(
        |(n, priority, to, port, end, both)| {
            let plain = Rewrite::default();
            let (vlan, rewrite) = match n {
                // Into VLANs that others ask for, and into such as nobody does
                0 => (
                    VLANS[1],
                    Rewrite {
                        vid: Some(2),
                        ..plain
                    },
                ),
                1 => (
                    VLANS[1],
                    Rewrite {
                        vid: Some(8),
                        pcp: Some(1),
                        ..plain
                    },
                ),
                2 => (
                    VLANS[2],
                    Rewrite {
                        pcp: Some(5),
                        dscp: None,
                        ..plain
                    },
                ),
                3 => (
                    VLANS[2],
                    Rewrite {
                        tag: Tagging::Goes,
                        ..plain
                    },
                ),
                4 => (
                    VLANS[2],
                    Rewrite {
                        dscp: Some(46),
                        vid: Some(7),
                        ..plain
                    },
                ),
                _ => (
                    VLANS[0],
                    Rewrite {
                        tag: Tagging::Comes,
                        vid: Some(1),
                        pcp: Some(0),
                        ..plain
                    },
                ),
            };
            let vlan = Some(Oxm::exact(Field::VlanVid, vlan));
            let mut fields: Vec<Oxm> = [port, end, vlan].into_iter().flatten().collect();
            if n == 4 {
                fields.retain(|o| o.field != Field::EthType);
                fields.push(Oxm::exact(Field::EthType, 0x0800));
            }
            fields.sort_by_key(|o| o.field);
            let mut ports = PortMask::one(to);
            if both {
                ports.insert(1);
            }
            (priority, fields, Wanted::Act(Act::Out { ports, rewrite }))
        },
    )
}

pub fn flow() -> impl Strategy<Value = Flow> {
    let rare = || proptest::bool::weighted(0.1);
    let what = prop_oneof![
        3 => (0..4u16, fields(), wanted()),
        1 => writer(),
    ];
    (what, rare(), rare(), 0..20u64).prop_map(
        |((priority, fields, wanted), idle, counted, traffic)| Flow {
            priority,
            fields,
            wanted,
            idle,
            counted,
            traffic,
        },
    )
}

#[derive(Clone, Debug)]
pub enum Op {
    Add(u32, Flow),
    Remove(usize),
    Modify(usize, Wanted, bool),
    Measure(usize, u64),
    Resize(u32, u32),
    ResizeClass(u32),
    Batch(Vec<Op>),
}

pub fn ops(n: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (any::<u32>(), flow()).prop_map(|(id, f)| Op::Add(id, f)),
        3 => any::<usize>().prop_map(Op::Remove),
        2 => (any::<usize>(), wanted(), any::<bool>()).prop_map(|(n, w, i)| Op::Modify(n, w, i)),
        1 => (any::<usize>(), 0..40u64).prop_map(|(n, t)| Op::Measure(n, t)),
        1 => (0..12u32, 0..5u32).prop_map(|(a, m)| Op::Resize(a, m)),
        1 => (0..9u32).prop_map(Op::ResizeClass),
    ];
    let several = proptest::collection::vec(op.clone(), 2..8).prop_map(Op::Batch);
    proptest::collection::vec(prop_oneof![4 => op, 1 => several], 1..n)
}

pub fn chips() -> Vec<Chip> {
    let mac = |size, vlan, any_vlan, port_sets| {
        Some(MacTable {
            size,
            vlan,
            any_vlan,
            port_sets,
        })
    };
    let one = Widths {
        l2: 1,
        ipv4: 1,
        ipv6: 2,
        full: 4,
    };
    let small = |mut c: Chip, size: u32, macs: u32, sets: u32| {
        c.acl.size = size;
        if let Some(m) = &mut c.mac {
            m.size = macs;
            m.port_sets = sets;
        }
        if let Some(c) = &mut c.class {
            (c.rows.size, c.groups, c.first) = (size, sets as u8 + 1, 200);
        }
        c
    };
    // Two kinds of rows classify what one does elsewhere, so pairs have several
    let mut split = tables::vsc9953(MacLookup::Both);
    if let Some(c) = &mut split.class {
        for kind in c.rows.kinds.iter_mut().filter(|k| k.frames == Frames::Any) {
            kind.frames = Frames::Others(&[0x0800]);
        }
        c.rows.split = vec![0, 2];
    }
    let mut with_drop = tables::by_widths("a", "tcam", 4096, one, mac(4096, true, true, 3));
    with_drop.miss_drop = true;
    vec![
        tables::vsc9953(MacLookup::Both),
        tables::vsc9953(MacLookup::Vlan),
        tables::vsc9953(MacLookup::Address),
        with_drop.clone(),
        tables::by_widths("b", "tcam", 4096, one, mac(4096, true, true, 0)),
        tables::by_widths("c", "tcam", 4096, one, None),
        small(tables::vsc9953(MacLookup::Both), 6, 3, 1),
        small(tables::vsc9953(MacLookup::Vlan), 3, 2, 2),
        small(with_drop, 5, 2, 1),
        small(tables::tiny(MacLookup::Both), 4, 3, 0),
        split.clone(),
        small(split, 7, 3, 1),
    ]
}

/// Flows of one match and priority are one flow: the number that has it, or a new one.
fn number(w: &World, id: u32, f: &Flow) -> u32 {
    let same = w
        .software
        .flows
        .iter()
        .find(|(_, g)| g.priority == f.priority && g.fields == f.fields);
    same.map_or(id % 1000, |(id, _)| *id)
}

/// As one decision: each flow at most once, and no number that one of them gives back.
fn batch(w: &mut World, ops: &[Op]) {
    let mut ids: Vec<u32> = w.software.flows.keys().copied().collect();
    ids.sort_unstable();
    let mut changes = Vec::new();
    let mut used = Vec::new();
    for op in ops {
        let nth = |n: usize| ids.get(n.checked_rem(ids.len())?).copied();
        let of = |n| nth(n).filter(|id| !used.contains(id));
        let change = match op {
            Op::Add(id, f) => {
                let id = number(w, *id, f);
                let same = |c: &Change| match c {
                    Change::Add { flow, .. } => {
                        flow.priority == f.priority && flow.fields == f.fields
                    }
                    _ => false,
                };
                if used.contains(&id)
                    || changes.iter().any(same)
                    || w.software.flows.contains_key(&id)
                {
                    continue;
                }
                used.push(id);
                Change::Add {
                    id,
                    flow: f.clone(),
                    chain: Chain::default(),
                }
            }
            Op::Remove(n) => {
                let Some(id) = of(*n) else { continue };
                used.push(id);
                Change::Remove { id }
            }
            Op::Modify(n, wanted, idle) => {
                let Some(id) = of(*n) else { continue };
                used.push(id);
                Change::Modify {
                    id,
                    wanted: *wanted,
                    idle: *idle,
                    counted: w.software.flows[&id].counted,
                }
            }
            _ => continue,
        };
        changes.push(change);
    }
    w.batch(changes);
}

pub fn play(w: &mut World, op: &Op) {
    let mut ids: Vec<u32> = w.software.flows.keys().copied().collect();
    ids.sort_unstable();
    let nth = |n: usize| (!ids.is_empty()).then(|| ids[n % ids.len()]);
    match op {
        Op::Add(id, f) => {
            let id = number(w, *id, f);
            match w.software.flows.get(&id) {
                // Added once more it takes the place of itself
                Some(g) if g.fields == f.fields && g.priority == f.priority => {
                    if f.traffic.is_multiple_of(2) {
                        w.add(id, f.clone());
                    } else {
                        w.modify(id, f.wanted, f.idle, f.counted);
                    }
                }
                Some(_) => {
                    w.remove(id);
                    w.add(id, f.clone());
                }
                None => w.add(id, f.clone()),
            }
        }
        Op::Remove(n) => {
            if let Some(id) = nth(*n) {
                w.remove(id);
            }
        }
        Op::Modify(n, wanted, idle) => {
            if let Some(id) = nth(*n) {
                let counted = w.software.flows[&id].counted;
                w.modify(id, *wanted, *idle, counted);
            }
        }
        Op::Batch(ops) => batch(w, ops),
        // Chips that have room keep it
        Op::Resize(acl, mac) => {
            if w.offload.usage().acl_size < 100 {
                w.resize(*acl, *mac);
            }
        }
        Op::ResizeClass(lines) => {
            if w.offload.usage().acl_size < 100 {
                w.resize_class(*lines);
            }
        }
        Op::Measure(n, t) => {
            if let Some(id) = nth(*n) {
                // and it is asked meanwhile whether it is used
                w.ask(id, true);
                w.measured(&[(id, *t)]);
                w.ask(id, false);
            }
        }
    }
}

proptest! {
    /// After each write: the answer from before, the one from after, or the CPU. After the last one: the software's,
    /// or the CPU. With room for all: each flow stands where the written rules have it, whatever the way there was.
    #[test]
    fn never_another_answer(chip in 0..12usize, ops in ops(30)) {
        let chip = chips()[chip].clone();
        let roomy = chip.acl.size > 100;
        let mut w = World::new(chip, packets());
        for op in &ops {
            play(&mut w, op);
            if roomy {
                reference::judge(&w);
            } else {
                reference::nobody_is_kept_out(&w);
                reference::no_pair_is_kept_out(&w);
            }
        }
        if roomy {
            reference::from_scratch(&w);
        }
    }

    /// Flows for known sources, and others, on a chip that asks for the source where no row matched: the same.
    #[test]
    fn known_sources(chip in 0..12usize, ops in ops(30), only in any::<u64>()) {
        let mut w = World::asking(chips()[chip].clone(), packets());
        for (n, op) in ops.iter().enumerate() {
            let Op::Add(id, f) = op else {
                play(&mut w, op);
                continue;
            };
            let id = number(&w, *id, f);
            let mut changes = Vec::new();
            if w.software.flows.contains_key(&id) {
                w.batch(vec![Change::Remove { id }]);
            }
            let from = f.fields.iter().find(|o| o.field == Field::EthSrc);
            let only = match only.rotate_right(2 * n as u32) & 3 {
                0 => Some(Only::Mac),
                1 => Some(Only::Acl),
                _ => None,
            };
            let checked = only == Some(Only::Mac);
            changes.push(Change::Add {
                id,
                flow: f.clone(),
                chain: Chain {
                    place: Vec::new(),
                    only,
                    unknown: !checked && from.is_some_and(|o| o.value != KNOWN),
                    domain: None,
                    second: None,
                },
            });
            w.batch(changes);
            let mac = matches!(w.offload.why(id), Some(Why::Mac { .. }));
            prop_assert!(!mac || only != Some(Only::Acl));
        }
    }

    /// The order of rules is the pipeline's own: each packet meets there the flow that is the first here.
    #[test]
    fn one_order(flows in proptest::collection::vec(flow(), 1..40)) {
        let mut w = World::new(tables::vsc9953(MacLookup::Both), Vec::new());
        let mut switch = Switch::new(Config::default());
        for (id, f) in (0u32..).zip(&flows) {
            if number(&w, id, f) != id {
                continue;
            }
            w.add(id, f.clone());
            let m = FlowMod {
                priority: f.priority,
                cookie: u64::from(id),
                matching: Match { fields: f.fields.clone(), exact: false },
                instructions: Instructions::default(),
                ..blank()
            };
            switch.flow_mod(&m, 0, &mut Vec::new()).unwrap();
        }
        for p in packets() {
            let there = switch.lookup(0, &p.key).map(|f| f.flow.cookie as u32);
            prop_assert_eq!(there, w.software.first(&p));
            let o = &w.offload;
            let hits = o.flows.values().filter(|e| p.matches(&e.flow.fields));
            let first = hits.min_by(|a, b| o.order.cmp(a.place, b.place));
            prop_assert_eq!(there, first.map(|e| e.place.id));
        }
    }
}
