// SPDX-License-Identifier: Apache-2.0
//! Where algorithm 1 of *Partial Offloading of OpenFlow Rules on a Traditional Hardware Switch ASIC* (2017) strays
//! from the flow table's answers, case by case: docs/openflow-offload.md has the list. Each case first has the
//! algorithm's own answer, which is wrong, and then this one's.
use super::model::{Answer, Packet, World, answer};
use super::property::packets;
use crate::tables::{self, MacLookup, MacTable, Widths};
use crate::{Act, Beyond, Flow, Id, Share, Stand, Vlan, Wanted, Why};
use tandem_openflow::{Field, Oxm};

const A: u128 = 0x0200_0000_0001;
const B: u128 = 0x0200_0000_0002;

fn chip() -> tables::Chip {
    let widths = Widths {
        l2: 1,
        ipv4: 1,
        ipv6: 2,
        full: 4,
    };
    let mac = MacTable {
        size: 64,
        vlan: true,
        any_vlan: true,
        port_sets: 4,
    };
    tables::by_widths("two tables", "acl", 64, widths, Some(mac))
}

fn flow(priority: u16, fields: &[(Field, u128)], act: Act) -> Flow {
    Flow {
        priority,
        fields: fields.iter().map(|(f, v)| Oxm::exact(*f, *v)).collect(),
        wanted: Wanted::Act(act),
        idle: false,
        counted: false,
        traffic: 0,
    }
}

/// A frame to a station.
fn to(dst: u128, more: &[(Field, u128)]) -> Packet {
    let mut fields = vec![(Field::InPort, 9), (Field::EthDst, dst), (Field::EthSrc, B)];
    fields.extend(more);
    Packet::new(&fields)
}

/// The chip as the algorithm leaves it: rows of the ACL in its list's order, and MAC entries.
#[derive(Default)]
struct Paper {
    acl: Vec<(u16, Flow)>,
    mac: Vec<Flow>,
}

impl Paper {
    /// Line 2 to 18, with section IV.C: only what has lower priority entries in the ACL goes in front of them.
    fn add(&mut self, f: &Flow) {
        let wide = f.fields.iter().any(|o| o.field == Field::Ipv6Flabel);
        if wide {
            let inside = |g: &Flow| {
                f.fields.iter().all(|o| {
                    g.fields
                        .iter()
                        .any(|p| p.field == o.field && p.value == o.value)
                })
            };
            self.acl.retain(|(_, g)| !inside(g));
            self.mac.retain(|g| !inside(g));
            return;
        }
        let mac = |o: &Oxm| matches!(o.field, Field::EthDst | Field::VlanVid);
        let lower = self.acl.iter().any(|(p, _)| *p < f.priority);
        if !f.fields.is_empty() && f.fields.iter().all(mac) && !lower {
            self.mac.push(f.clone());
            return;
        }
        let at = self.acl.iter().position(|(p, _)| *p < f.priority);
        self.acl
            .insert(at.unwrap_or(self.acl.len()), (f.priority, f.clone()));
    }

    fn remove(&mut self, f: &Flow) {
        self.acl.retain(|(_, g)| g != f);
        self.mac.retain(|g| g != f);
    }

    fn answer(&self, p: &Packet) -> Answer {
        let all = self.acl.iter().map(|(_, f)| f).chain(&self.mac);
        let hit = all.into_iter().find(|f| p.matches(&f.fields));
        hit.map_or(Answer::Cpu, |f| answer(f.wanted.act(), p))
    }
}

/// Both, side by side.
struct Pair {
    paper: Paper,
    ours: World,
}

impl Pair {
    fn new() -> Pair {
        Pair {
            paper: Paper::default(),
            ours: World::new(chip(), packets()),
        }
    }

    fn add(&mut self, id: Id, f: Flow) {
        self.paper.add(&f);
        self.ours.add(id, f);
    }

    fn remove(&mut self, id: Id) {
        self.paper.remove(&self.ours.software.flows[&id].clone());
        self.ours.remove(id);
    }

    fn stand(&self, id: Id) -> Stand {
        self.ours.offload.flows[&id].state.stand
    }

    /// The algorithm has another answer than the flow table, this one the table's or the CPU's.
    fn strays(&self, p: &Packet) {
        let right = self.ours.software.answer(p);
        let papers = self.paper.answer(p);
        assert!(papers != right && papers != Answer::Cpu, "{papers:?}");
        let ours = self.ours.device.answer(p);
        assert!(ours == right || ours == Answer::Cpu, "{ours:?}");
    }
}

const FLABEL: [(Field, u128); 2] = [(Field::EthType, 0x86dd), (Field::Ipv6Flabel, 1)];

fn labelled(dst: u128) -> Packet {
    to(dst, &[(Field::EthType, 0x86dd), (Field::Ipv6Flabel, 1)])
}

/// 1: line 11 deletes only entries whose packets all are the new rule's.
#[test]
fn a_partial_overlap_is_an_overlap() {
    let mut two = Pair::new();
    two.add(1, flow(1, &[(Field::EthDst, A)], Act::port(1)));
    two.add(2, flow(9, &FLABEL, Act::port(2)));
    two.strays(&labelled(A));
}

/// 2: what was deleted never comes back.
#[test]
fn what_was_turned_comes_back() {
    let mut two = Pair::new();
    let mut inside = FLABEL.to_vec();
    inside.insert(0, (Field::EthDst, A));
    two.add(1, flow(1, &[(Field::EthDst, A)], Act::port(1)));
    // Weighed, it is better that what is behind it traps: a row for IPv6 would trap all of the other flow's
    let other = &[(Field::EthType, 0x86dd), (Field::EthSrc, B)];
    two.ours.add(
        3,
        Flow {
            traffic: 100,
            ..flow(0, other, Act::port(3))
        },
    );
    two.add(2, flow(9, &inside, Act::port(2)));
    two.remove(2);
    assert_eq!(
        two.ours.device.answer(&to(A, &[])),
        answer(Act::port(1), &to(A, &[]))
    );
    assert_eq!(two.ours.offload.usage().turned, 0);
    assert_eq!(two.stand(1), Stand::Acl { wide: false });
    two.remove(3);
    assert_eq!(two.stand(1), Stand::Mac);
}

/// 3: entries in front of the new rule are deleted with those behind it.
#[test]
fn who_stands_in_front_goes_on_answering() {
    let mut two = Pair::new();
    let v6 = [(Field::EthType, 0x86dd)];
    two.add(1, flow(9, &v6, Act::port(1)));
    two.add(2, flow(1, &FLABEL, Act::port(2)));
    assert_eq!(
        two.ours.device.answer(&labelled(A)),
        answer(Act::port(1), &labelled(A))
    );
}

/// 4: only the rule that comes is looked at: one that the chip can do, and that comes behind one that it can't,
/// answers for it.
#[test]
fn a_rule_that_comes_later_respects_those_in_software() {
    let mut two = Pair::new();
    two.add(2, flow(9, &FLABEL, Act::port(2)));
    two.add(1, flow(1, &[(Field::EthDst, A)], Act::port(1)));
    two.strays(&labelled(A));
}

/// 5: a rule of lower priority goes to the end of the ACL, and so in front of the MAC table.
#[test]
fn the_acl_does_not_shadow_the_mac_table() {
    let mut two = Pair::new();
    two.add(1, flow(9, &[(Field::EthDst, A)], Act::port(1)));
    two.add(2, flow(1, &[(Field::EthType, 0x0800)], Act::port(2)));
    two.strays(&to(A, &[(Field::EthType, 0x0800)]));
    assert_eq!(two.stand(1), Stand::Acl { wide: false });
    assert_eq!(
        two.ours.offload.why(1).unwrap().to_string(),
        "in acl, because flow 2 behind it overlaps it"
    );
    two.remove(2);
    assert_eq!(two.stand(1), Stand::Mac);
}

/// 6: the MAC table has no priorities.
#[test]
fn two_entries_of_one_station_need_a_priority() {
    let mut two = Pair::new();
    two.add(1, flow(1, &[(Field::EthDst, A)], Act::port(1)));
    two.add(
        2,
        flow(
            9,
            &[(Field::EthDst, A), (Field::VlanVid, 0x1001)],
            Act::port(2),
        ),
    );
    two.strays(&to(A, &[(Field::VlanVid, 0x1001)]));
    assert_eq!(two.stand(1), Stand::Mac);
    assert_eq!(two.stand(2), Stand::Acl { wide: false });
}

/// 7: rules of one priority stand as they came, not as the flow table has them.
#[test]
fn ties_are_the_flow_tables() {
    for first in [1, 2] {
        let mut two = Pair::new();
        let both = [
            flow(5, &[(Field::InPort, 9)], Act::port(1)),
            flow(
                5,
                &[(Field::EthType, 0x0800), (Field::Ipv4Dst, 1)],
                Act::port(2),
            ),
        ];
        two.add(first, both[first as usize - 1].clone());
        two.add(3 - first, both[2 - first as usize].clone());
        let p = to(A, &[(Field::EthType, 0x0800), (Field::Ipv4Dst, 1)]);
        assert_eq!(two.ours.device.answer(&p), two.ours.software.answer(&p));
        if first == 1 {
            two.strays(&p);
        }
    }
}

/// 8: a table-miss in the ACL, as line 7 has it, shadows the MAC table.
#[test]
fn a_table_miss_shadows_nothing() {
    let mut two = Pair::new();
    two.add(1, flow(9, &[(Field::EthDst, A)], Act::port(1)));
    two.add(2, flow(0, &[], Act::Cpu));
    assert_eq!(two.paper.answer(&to(A, &[])), Answer::Cpu);
    assert_eq!(two.stand(1), Stand::Mac);
    assert_eq!(two.stand(2), Stand::Idle);
    let (known, unknown) = (to(A, &[]), to(B, &[]));
    assert_ne!(two.ours.device.answer(&known), Answer::Cpu);
    assert_eq!(two.ours.device.answer(&unknown), Answer::Cpu);
    // A miss that drops is what the chip does with a miss, where it can; where not, it moves who would be shadowed
    let mut drops = tables::vsc9953(MacLookup::Vlan);
    drops.acl.size = 8;
    let mut w = World::new(drops, packets());
    let vlan = [(Field::EthDst, A), (Field::VlanVid, 0x1001)];
    w.add(1, flow(9, &vlan, Act::port(1)));
    w.add(2, flow(0, &[], Act::Drop));
    assert_eq!(w.offload.flows[&1].state.stand, Stand::Mac);
    assert_eq!(w.offload.why(2), Some(Why::Miss { turned: 0 }));
    assert_eq!(w.device.answer(&unknown), Answer::Drop);
}

/// 9: a rule whose action the chip can't do is copied to the CPU, and forwarded by whatever comes behind.
#[test]
fn an_action_beyond_the_chip_is_the_cpus_alone() {
    let mut two = Pair::new();
    two.add(1, flow(1, &[(Field::EthDst, A)], Act::port(1)));
    let meter = Flow {
        wanted: Wanted::Beyond(Beyond::Meter),
        ..flow(9, &[(Field::InPort, 9)], Act::Drop)
    };
    two.ours.add(2, meter);
    assert_eq!(two.ours.device.answer(&to(A, &[])), Answer::Cpu);
    assert_eq!(two.stand(2), Stand::Acl { wide: true });
    assert!(
        two.ours
            .offload
            .why(2)
            .unwrap()
            .to_string()
            .contains("a meter's rate")
    );
}

/// 10: nothing is said of a full table.
#[test]
fn what_does_not_fit_is_not_answered_by_another() {
    let mut c = chip();
    c.acl.size = 1;
    let mut w = World::new(c, packets());
    w.add(
        1,
        Flow {
            traffic: 5,
            ..flow(1, &[(Field::EthType, 0x0800)], Act::port(1))
        },
    );
    w.add(
        2,
        Flow {
            traffic: 9,
            ..flow(
                9,
                &[(Field::EthType, 0x0800), (Field::InPort, 9)],
                Act::port(2),
            )
        },
    );
    let p = to(A, &[(Field::EthType, 0x0800)]);
    // The one with less traffic is out, and the other answers
    assert_eq!(w.device.answer(&p), answer(Act::port(2), &p));
    assert_eq!(
        w.offload.why(1).unwrap().to_string(),
        "software: acl full: needs 1 lines, free 0 of 1"
    );
    // With the other one out it would trap itself: more traffic alone does not bring it in
    w.measured(&[(1, 100)]);
    assert_eq!(w.device.answer(&p), answer(Act::port(2), &p));
    // but it does bring in one that has nothing in front of it
    let arp = to(A, &[(Field::EthType, 0x0806)]);
    w.add(3, flow(9, &[(Field::EthType, 0x0806)], Act::port(3)));
    assert_eq!(w.device.answer(&arp), Answer::Cpu);
    w.measured(&[(1, 0), (3, 100)]);
    assert_eq!(w.device.answer(&arp), answer(Act::port(3), &arp));
    assert_eq!(w.device.answer(&p), Answer::Cpu);
    w.remove(3);
    assert_eq!(w.device.answer(&p), answer(Act::port(2), &p));
}

/// And for whom a place is made: who has more than twice what would leave, has something to answer then, and nobody for whom
/// what leaves would make others trap as much.
#[test]
fn who_comes_in_is_worth_it() {
    let of = |n: u32| flow(9, &[(Field::EthType, 0x2000 + u128::from(n))], Act::port(1));
    let full = || {
        let mut c = chip();
        c.acl.size = 3;
        let mut w = World::new(c, packets());
        (1..=4).for_each(|n| w.add(n, of(n)));
        w
    };
    let inside = |w: &World| -> Vec<u32> {
        let whole = |id: &u32| w.offload.share(*id) == Some(Share::Whole);
        (1..=6).filter(whole).collect()
    };
    let mut w = full();
    assert_eq!(inside(&w), [1, 2, 3]);
    w.measured(&[(1, 30), (2, 30), (3, 30), (4, 60)]);
    assert_eq!(inside(&w), [1, 2, 3]);
    assert_eq!(
        w.offload.why(4).unwrap().needs().unwrap(),
        "1 more lines that are free, or more than 60 packets/s, twice what would leave for it (it is worth 60)"
    );
    w.measured(&[(4, 61)]);
    assert_eq!(inside(&w).len(), 3);
    assert!(inside(&w).contains(&4));
    // several at once
    let mut w = full();
    w.add(5, of(5));
    w.add(6, of(6));
    w.measured(&[(4, 9), (5, 8), (6, 7)]);
    assert_eq!(inside(&w), [4, 5, 6]);
    // one that stands behind those that leave, whoever it is: they would make it trap
    let mut w = full();
    w.remove(4);
    w.add(5, flow(1, &[(Field::InPort, 9)], Act::port(2)));
    let why = w.offload.why(5).unwrap().to_string();
    assert!(why.contains("full: needs"), "{why}");
    w.measured(&[(5, 900)]);
    assert_eq!(inside(&w), [1, 2, 3]);
    let needs = w.offload.why(5).unwrap().needs().unwrap();
    assert!(needs.contains("would make it trap"), "{needs}");
}

/// 11: a MAC entry ages by the source, and counts nothing: a flow with an idle timeout, or whose packets must be
/// counted, is lost or lied about in the MAC table.
#[test]
fn who_must_be_seen_or_counted_is_in_the_acl() {
    let mut w = World::new(chip(), packets());
    let plain = flow(1, &[(Field::EthDst, A)], Act::port(1));
    w.add(
        1,
        Flow {
            idle: true,
            ..plain.clone()
        },
    );
    assert_eq!(w.offload.flows[&1].state.stand, Stand::Acl { wide: false });
    assert!(w.offload.counts(1).unwrap().packets);
    assert_eq!(w.offload.rows(1).len(), 1);
    w.modify(1, plain.wanted, false, true);
    assert_eq!(w.offload.flows[&1].state.stand, Stand::Acl { wide: false });
    w.modify(1, plain.wanted, false, false);
    assert_eq!(w.offload.flows[&1].state.stand, Stand::Mac);
    assert!(!w.offload.counts(1).unwrap().packets);
    // What was not counted stays unknown wherever the flow goes
    w.modify(1, plain.wanted, true, false);
    assert!(!w.offload.counts(1).unwrap().packets);
    w.offload.reset_counts(1);
    assert!(w.offload.counts(1).unwrap().packets);
    // IS2 counts packets only
    let mut vsc = World::new(tables::vsc9953(MacLookup::Vlan), packets());
    vsc.add(1, flow(1, &[(Field::InPort, 1)], Act::port(1)));
    let counts = vsc.offload.counts(1).unwrap();
    assert!(counts.packets && !counts.bytes);
}

/// 12: no tag, VLAN 0 and the port's VLAN are three things.
#[test]
fn untagged_is_not_vlan_0() {
    let mut w = World::new(chip(), packets());
    w.add(
        1,
        flow(1, &[(Field::EthDst, A), (Field::VlanVid, 0)], Act::port(1)),
    );
    let key = w.offload.flows[&1].mac.unwrap();
    assert_eq!(key.vlan, Vlan::Untagged);
    assert_eq!(
        w.device.answer(&to(A, &[(Field::VlanVid, 0x1000)])),
        Answer::Cpu
    );
    assert_ne!(w.device.answer(&to(A, &[])), Answer::Cpu);
}
