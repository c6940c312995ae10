// SPDX-License-Identifier: Apache-2.0
//! Instructions as answers, the order of rules, numbers of rows, reasons in words.
use super::model::World;
use super::property::packets;
use crate::labels::Labels;
use crate::order::{Order, Rank, Step};
use crate::tables::{self, MacLookup};
use crate::{
    Act, Beyond, Chain, Change, Flow, Offload, Only, PortMask, Rewrite, Share, Wanted, Why, Write,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tandem_ofpipeline::key::Key;
use tandem_openflow::{Action, Field, Instructions, Oxm, port};

fn ports(p: u32) -> Option<PortMask> {
    match p {
        1..=8 => Some(PortMask::one(p as u8)),
        port::ALL => {
            let mut all = PortMask::default();
            (1..=8).for_each(|p| all.insert(p));
            Some(all)
        }
        _ => None,
    }
}

fn out(port: u32) -> Action {
    Action::Output { port, max_len: 0 }
}

fn of(apply: &[Action], write: &[Action]) -> Wanted {
    let some = |l: &[Action]| (!l.is_empty()).then(|| l.to_vec());
    let i = Instructions {
        apply: some(apply),
        write: some(write),
        ..Instructions::default()
    };
    Wanted::of(&i, ports)
}

#[test]
fn instructions_as_answers() {
    let beyond = |b| Wanted::Beyond(b);
    let vid = Action::SetField {
        field: Field::VlanVid,
        value: 0x1005,
    };
    assert_eq!(of(&[], &[]), Wanted::Act(Act::Drop));
    assert_eq!(of(&[out(3)], &[]), Wanted::Act(Act::port(3)));
    assert_eq!(of(&[], &[out(3)]), Wanted::Act(Act::port(3)));
    assert_eq!(of(&[], &[out(3), out(4)]), Wanted::Act(Act::port(4)));
    assert_eq!(of(&[out(port::CONTROLLER)], &[]), Wanted::Act(Act::Cpu));
    assert_eq!(
        of(&[out(1), out(port::CONTROLLER)], &[]),
        beyond(Beyond::Copies)
    );
    assert_eq!(of(&[out(1), out(1)], &[]), beyond(Beyond::Copies));
    assert_eq!(of(&[out(1), vid, out(2)], &[]), beyond(Beyond::Copies));
    assert_eq!(of(&[out(port::NORMAL)], &[]), beyond(Beyond::Port));
    assert_eq!(of(&[Action::Group(1)], &[]), beyond(Beyond::Group));
    assert_eq!(
        of(&[Action::DecNwTtl, out(1)], &[]),
        beyond(Beyond::Rewrite)
    );
    let rewritten = Act::Out {
        ports: PortMask::one(2),
        rewrite: Rewrite {
            vid: Some(5),
            ..Rewrite::default()
        },
    };
    assert_eq!(of(&[vid, out(2)], &[]), Wanted::Act(rewritten));
    // The action set writes first, whatever its list's order
    assert_eq!(of(&[], &[out(2), vid]), Wanted::Act(rewritten));
    let metered = Instructions {
        meter: Some(1),
        apply: Some(vec![out(1)]),
        ..Instructions::default()
    };
    assert_eq!(Wanted::of(&metered, ports), beyond(Beyond::Meter));
    let Wanted::Act(Act::Out { ports, .. }) = of(&[out(port::ALL)], &[]) else {
        panic!();
    };
    assert_eq!(ports.count(), 8);
}

/// Priority first, then [`Key::rank`], as the pipeline's tables have it.
#[test]
fn the_order_is_the_pipelines() {
    let mut order = Order::default();
    let mask = |fields: &[Oxm]| Key::of_match(fields).1;
    let (src, dst) = (
        mask(&[Oxm::exact(Field::EthSrc, 1)]),
        mask(&[Oxm::exact(Field::EthDst, 1)]),
    );
    let port = mask(&[Oxm::exact(Field::InPort, 1)]);
    let list = [
        order.enter(Step::new(5, &port), &[], &Key::default(), 1),
        order.enter(Step::new(4, &dst), &[], &Key::default(), 2),
        order.enter(Step::new(4, &src), &[], &Key::default(), 3),
        order.enter(Step::new(4, &port), &[], &Key::default(), 4),
    ];
    for pair in list.windows(2) {
        assert!(order.cmp(pair[0], pair[1]).is_lt());
        assert!(order.full(pair[0]) < order.full(pair[1]));
    }
    assert_eq!(dst.rank() > src.rank(), list[1].id < list[2].id);
}

/// Flows that no packet meets both stand in one order, whoever came first.
#[test]
fn what_never_meets_stands_as_it_asks() {
    let value = |n: u128| Key::of_match(&[Oxm::exact(Field::EthDst, n)]);
    let at = |order: &mut Order, n: u128, id| {
        let (value, mask) = value(n);
        order.enter(Step::new(5, &mask), &[], &value, id)
    };
    let mut order = Order::default();
    for n in 0..100 {
        let (a, b) = (at(&mut order, n, 1), at(&mut order, n + 1, 2));
        let (c, d) = (at(&mut order, n, 4), at(&mut order, n + 1, 3));
        assert_eq!(order.cmp(a, b), order.cmp(c, d));
        assert!(order.cmp(a, b).is_ne());
        assert_eq!(order.full(a).cmp(&order.full(b)), order.cmp(c, d));
    }
}

/// Chains of flows stand by their first flow, then by the second.
#[test]
fn chains_stand_as_words_do() {
    let mut order = Order::default();
    let mask = |f: Field| Key::of_match(&[Oxm::exact(f, 1)]).1;
    let step = |priority, f| Step::new(priority, &mask(f));
    let (a, b) = (step(5, Field::EthDst), step(5, Field::InPort));
    let miss = Step::new(0, &Key::default());
    let words = [
        vec![a.clone(), step(2, Field::EthSrc), step(1, Field::EthSrc)],
        vec![a.clone(), step(2, Field::EthSrc), miss.clone()],
        vec![a.clone(), step(1, Field::EthDst), step(9, Field::EthDst)],
        vec![a, miss.clone()],
        vec![b, step(9, Field::EthDst)],
        vec![miss],
    ];
    // Came in another order than they stand in
    let mut places: Vec<_> = (0..6u32).zip(&words).rev().collect::<Vec<_>>();
    let mut list: Vec<_> = places
        .drain(..)
        .map(|(n, w)| order.enter(w[0].clone(), &w[1..], &Key::default(), 10 - n))
        .collect();
    list.reverse();
    for (n, a) in list.iter().enumerate() {
        for b in &list[n + 1..] {
            assert!(order.cmp(*a, *b).is_lt() && order.cmp(*b, *a).is_gt());
            assert!(order.full(*a) < order.full(*b));
        }
    }
}

proptest! {
    /// Rows keep their order whatever comes and goes, and a move passes by no other row.
    #[test]
    fn numbers_of_rows(ops in proptest::collection::vec((0..3u8, any::<u16>()), 1..400)) {
        let mut labels = Labels::default();
        let mut chip: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        let key = |n: u32| (n, Rank::default(), 0, 0);
        let mut last = 1u32 << 31;
        for (op, n) in ops {
            // Most of them between two that are there, so that the gaps are used up
            let n = match op {
                0 => u32::from(n) << 16,
                1 => { last = last.wrapping_add(1); last }
                _ => { last = last.wrapping_sub(u32::from(n & 1)); last }
            };
            if labels.of(&key(n), 0).is_some() {
                let at = labels.remove(&key(n), 0).unwrap();
                prop_assert_eq!(chip.remove(&at), Some((n, 0)));
                continue;
            }
            let (at, moves) = labels.insert(key(n), 0);
            for (from, to) in moves {
                let row = chip.remove(&from).unwrap();
                let (lo, hi) = (from.min(to), from.max(to));
                prop_assert!(chip.range(lo..=hi).next().is_none());
                chip.insert(to, row);
            }
            prop_assert!(chip.insert(at, (n, 0)).is_none());
            let rows: Vec<_> = chip.values().collect();
            prop_assert!(rows.is_sorted());
        }
    }
}

/// The same place again and again: gaps end, and neighbours make room.
#[test]
fn rows_between_two_rows_without_end() {
    let mut labels = Labels::default();
    let key = |n: u32| (n, Rank::default(), 0, 0);
    labels.insert(key(0), 0);
    let mut moved = 0;
    for n in (1..3000).rev() {
        moved += labels.insert(key(n), 0).1.len();
    }
    let numbers: Vec<u32> = (0..3000).filter_map(|n| labels.of(&key(n), 0)).collect();
    assert!(numbers.len() == 3000 && numbers.is_sorted_by(|a, b| a < b));
    assert!(moved > 0 && moved < 60_000, "{moved}");
}

/// A flow of a source that the MAC table does not have guards nothing there: without it, its rows for IP would trap
/// all IP of its port, as their key has no source address.
#[test]
fn unknown_sources_stand_in_nobodys_way() {
    for (size, unknown, rows, turned) in [
        (2048, true, 5, 1),
        (2048, false, 7, 0),
        (0, true, 0, 1),
        (0, false, 0, 2),
    ] {
        let mut chip = tables::vsc9953(MacLookup::Vlan);
        chip.acl.size = size;
        let mut o = Offload::new(chip);
        let add = |id, priority, fields: &[(Field, u128)], act, chain| Change::Add {
            id,
            flow: Flow {
                priority,
                fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
                wanted: Wanted::Act(act),
                idle: false,
                counted: false,
                traffic: u64::from(priority == 5),
            },
            chain,
        };
        let known = Chain {
            only: Some(Only::Mac),
            ..Chain::default()
        };
        let from = Chain {
            unknown,
            ..Chain::default()
        };
        let to = [(Field::EthDst, 0x0200_0000_0001), (Field::VlanVid, 0x1005)];
        let source = [(Field::InPort, 1), (Field::EthSrc, 0xffff_ffff_ffff)];
        // An entry that answers whoever asks has to trap for it
        let other = [(Field::EthDst, 0x0200_0000_0002), (Field::VlanVid, 0x1005)];
        o.batch(vec![
            add(1, 5, &to, Act::port(1), known),
            add(2, 6, &source, Act::Drop, from),
            add(3, 4, &other, Act::port(2), Chain::default()),
        ]);
        let u = o.usage();
        let is = (u.mac_used, u.acl_used, u.turned);
        assert_eq!(is, (2, rows, turned), "{size} lines, unknown {unknown}");
    }
}

#[test]
fn reasons() {
    let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
    let flow = |priority, fields: &[(Field, u128)], act| Flow {
        priority,
        fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
        wanted: Wanted::Act(act),
        idle: false,
        counted: false,
        traffic: 1,
    };
    let (ip, src) = ((Field::EthType, 0x0800), (Field::EthSrc, 5));
    let vlan = [(Field::EthDst, 0x0200_0000_0001), (Field::VlanVid, 0x1005)];
    o.add(1, flow(5, &vlan, Act::port(1)));
    o.add(2, flow(4, &[src, ip, (Field::VlanVid, 0)], Act::port(2)));
    let why = |o: &Offload, n| o.why(n).unwrap().to_string();
    assert_eq!(why(&o, 1), "in the MAC table, 02:00:00:00:00:01 VLAN 5");
    assert_eq!(
        why(&o, 2),
        "software: no row has a place for eth_src; needs no entry, nothing behind it answers its packets"
    );
    // IS2 knows no stations of IPv4: what the MAC table answers is not given away for a row with no more traffic
    let writes = o.add(3, flow(3, &[ip, (Field::Ipv4Dst, 9)], Act::port(3)));
    assert_eq!(writes, []);
    assert_eq!(
        why(&o, 3),
        "software: its row would be in the way of flows of the MAC table that the ACL can't do: 1, 1 packets/s"
    );
    let writes = o.measured(&[(3, 9)]);
    assert!(matches!(writes[0], Write::RowAdd { .. }));
    assert_eq!(
        why(&o, 2),
        "software: IS2 has no place for eth_src; what it can ask for is trapped at its place, in IS2"
    );
    assert_eq!(
        why(&o, 1),
        "partly software: IS2 has no place for eth_dst; what it can ask for is trapped at its place, in IS2, 7 lines"
    );
    assert_eq!(why(&o, 3), "in IS2");
    let needs = |o: &Offload, n| o.why(n).unwrap().needs();
    assert_eq!(needs(&o, 2).unwrap(), "a match without eth_src");
    assert_eq!(needs(&o, 3), None);
    assert_eq!(o.cost(1), (7, 0));
    let shares = [1, 2, 3].map(|n| o.share(n));
    assert_eq!(
        shares,
        [Share::Part, Share::Nothing, Share::Whole].map(Some)
    );
    o.remove(3);
    assert_eq!(why(&o, 1), "in the MAC table, 02:00:00:00:00:01 VLAN 5");
}

/// An addition takes the place of the flow of its match and priority: no packet meets what is behind it meanwhile.
#[test]
fn added_once_more_is_changed_in_place() {
    let mut chip = tables::tiny(MacLookup::Both);
    chip.miss_drop = true;
    let mut w = World::new(chip, packets());
    let drops = Flow {
        wanted: Wanted::Act(Act::Drop),
        ..exactly(0, &[], 1)
    };
    w.add(1, drops);
    let flow = |port| exactly(9, &[(Field::EthDst, 0x0200_0000_0001)], port);
    w.add(2, flow(1));
    w.add(
        2,
        Flow {
            traffic: 7,
            ..flow(2)
        },
    );
    assert_eq!(w.offload.flows[&2].flow.traffic, 7);
    assert_eq!(w.offload.add(2, flow(2)), []);
}

/// A flow that the CPU answers is the software's wherever it is trapped, and says why, in words that are all there.
#[test]
fn reasons_of_what_traps() {
    let why = |w: &World, n| w.offload.why(n).unwrap().to_string();
    let station = [(Field::EthDst, 0x0200_0000_0001), (Field::VlanVid, 0x1001)];
    let ip = (Field::EthType, 0x0800);
    // In the MAC table, in front of a miss that drops
    let mut w = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    let all = exactly(0, &[], 1);
    let drops = Flow {
        wanted: Wanted::Act(Act::Drop),
        ..all
    };
    w.add(1, drops);
    for (beyond, said) in [
        (Wanted::Act(Act::Cpu), "it goes to the controller"),
        (
            Wanted::Beyond(Beyond::Group),
            "it goes through a group that chooses a bucket for each packet, or through too many",
        ),
    ] {
        let flow = exactly(9, &station, 1);
        w.add(
            2,
            Flow {
                wanted: beyond,
                ..flow
            },
        );
        assert_eq!(
            why(&w, 2),
            format!(
                "software: {said}; trapped at its place, in the MAC table, 02:00:00:00:00:01 VLAN 1"
            )
        );
        assert_eq!(w.offload.share(2), Some(Share::Nothing));
    }
    // Its exact rows would push a flow with more traffic out of the MAC table
    let mut w = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    w.add(
        1,
        Flow {
            traffic: 9,
            ..exactly(9, &station, 1)
        },
    );
    w.add(2, exactly(0, &[ip], 2));
    w.measured(&[(2, 1)]);
    w.add(3, exactly(1, &[(Field::InPort, 1)], 3));
    w.modify(3, Wanted::Beyond(Beyond::Meter), false, false);
    for n in [2, 3] {
        assert!(!why(&w, n).contains("place for ,"), "{}", why(&w, n));
    }
    // A part in rows, nothing behind the rest: no row traps
    let mut w = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    w.add(1, exactly(1, &[(Field::EthSrc, 0x0200_0000_0001)], 1));
    assert_eq!(
        why(&w, 1),
        "partly software: IS2 has no place for eth_src; frames of other kinds are answered in IS2, 5 lines"
    );
    assert_eq!(w.offload.share(1), Some(Share::Part));
    // They trap while a flow in front has none: its row, all of IP, would trap more than it guards
    let other = exactly(1, &[(Field::EthSrc, 0x0200_0000_0002)], 1);
    w.add(
        2,
        Flow {
            traffic: 9,
            ..other
        },
    );
    w.add(3, exactly(9, &[(Field::EthSrc, 0x0200_0000_0001), ip], 2));
    assert_eq!(
        why(&w, 1),
        "software: IS2 has no place for eth_src; frames of other kinds are answered in IS2, 5 lines; \
         traps, because 1 flow in front that overlaps it is in software"
    );
    assert_eq!(w.offload.share(1), Some(Share::Nothing));
    // One that no packet gets to has no share
    w.add(4, exactly(8, &[(Field::EthSrc, 0x0200_0000_0001)], 1));
    assert_eq!(w.offload.share(1), None);
}

/// Each flow of a full table is asked for: what is said of one must not need a look at those in front of it, however
/// many there are.
#[test]
fn a_reason_is_the_same_behind_many_rows() {
    let mut o = Offload::new(tables::vsc9953(MacLookup::Vlan));
    let udp = [(Field::EthType, 0x0800), (Field::IpProto, 17)];
    o.add(
        1,
        exactly(1, &[&udp[..], &[(Field::UdpDst, 9)]].concat(), 1),
    );
    let station = [(Field::EthSrc, 0x0200_0000_0001), (Field::InPort, 2)];
    o.add(2, exactly(1, &station, 1));
    let said = |o: &Offload| [1, 2].map(|n| o.why(n).unwrap().to_string());
    let before = said(&o);
    assert!(before.iter().all(|s| s.contains("in IS2")), "{before:?}");
    for n in 0..100 {
        o.add(
            10 + n,
            exactly(
                9,
                &[&udp[..], &[(Field::UdpDst, 1000 + u128::from(n))]].concat(),
                2,
            ),
        );
    }
    assert!(o.usage().acl_used > 100);
    assert_eq!(said(&o), before);
}

#[test]
fn shares_of_several_rules() {
    use Share::{Nothing, Part, Whole};
    for (rules, is) in [
        (&[][..], Nothing),
        (&[Nothing, Nothing], Nothing),
        (&[Whole], Whole),
        (&[Whole, Whole], Whole),
        (&[Whole, Nothing], Part),
        (&[Nothing, Part], Part),
        (&[Part, Part], Part),
    ] {
        assert_eq!(Share::of(rules.iter().copied()), is, "{rules:?}");
    }
}

fn exactly(priority: u16, fields: &[(Field, u128)], port: u8) -> Flow {
    Flow {
        priority,
        fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
        wanted: Wanted::Act(Act::port(port)),
        idle: false,
        counted: false,
        traffic: 1,
    }
}

/// The hidden flow's row does not fit beside that of the flow that hid it: what is behind both traps meanwhile.
#[test]
fn a_guard_gives_way_to_another_in_a_full_table() {
    let mut chip = tables::tiny(MacLookup::Both);
    chip.acl.size = 2;
    let mut w = World::new(chip, packets());
    let ip = (Field::EthType, 0x0800);
    w.add(1, exactly(1, &[ip], 3));
    w.add(2, exactly(5, &[ip, (Field::Ipv4Dst, 1)], 4));
    w.add(3, exactly(9, &[(Field::InPort, 1), ip], 5));
    w.remove(3);
    w.remove(2);
    w.add(
        4,
        exactly(4, &[(Field::InPort, 1), ip, (Field::Ipv4Dst, 1)], 6),
    );
    w.add(3, exactly(9, &[(Field::InPort, 1), ip], 5));
    assert_eq!(w.offload.usage().acl_used, 2);
    assert_eq!(w.offload.why(4), Some(Why::Shadowed(3)));
    w.remove(3);
    assert_eq!([4, 1].map(|n| w.offload.share(n)), [Some(Share::Whole); 2]);
}

/// Between an entry that goes and one of the same station that comes, a miss that drops must not.
#[test]
fn a_miss_that_drops_waits() {
    let mut chip = tables::tiny(MacLookup::Both);
    chip.miss_drop = true;
    let mut w = World::new(chip, packets());
    let to = (Field::EthDst, 0x0200_0000_0001);
    w.add(
        1,
        Flow {
            wanted: Wanted::Act(Act::Drop),
            ..exactly(0, &[], 0)
        },
    );
    w.add(2, exactly(5, &[to, (Field::VlanVid, 0x1001)], 4));
    w.add(3, exactly(9, &[to], 5));
    assert_eq!(w.offload.why(2), Some(Why::Shadowed(3)));
    w.remove(3);
    assert_eq!([2, 1].map(|n| w.offload.share(n)), [Some(Share::Whole); 2]);
}

/// A flow that goes leaves its packets to the miss: no other frame has to wait for that.
#[test]
fn a_miss_that_drops_goes_on_while_flows_go() {
    let mut chip = tables::tiny(MacLookup::Both);
    chip.miss_drop = true;
    let mut w = World::new(chip, packets());
    w.add(
        1,
        Flow {
            wanted: Wanted::Act(Act::Drop),
            ..exactly(0, &[], 0)
        },
    );
    w.add(2, exactly(5, &[(Field::EthDst, 0x0200_0000_0001)], 4));
    w.add(3, exactly(9, &[(Field::EthType, 0x0806)], 5));
    for id in [2, 3] {
        let writes = w.offload.remove(id);
        let all: Vec<&Write> = writes.iter().collect();
        assert!(
            matches!(all[..], [Write::MacDel(_) | Write::RowDel { .. }]),
            "{all:?}"
        );
    }
}
