// SPDX-License-Identifier: Apache-2.0
//! All the way: flows, rules, a decision for a chip, writes, and a chip that does what it is told. After each write
//! every frame has the pipeline's answer of before the flow changed, of after, or the CPU's.
use super::model::{Out, Packet, World};
use super::property::{Op, begin, ops, packets, play};
use crate::{Answer, Effect, Flow, Limits, Tag};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use tandem_ofoffload::tables::{self, Chip, MacLookup, MacTable, Widths};
use tandem_ofoffload::{Act, MacKey, Offload, Rewrite, Tagging, Vlan, Write};
use tandem_ofpipeline::key::Key;
use tandem_openflow::{Action, Field, Instructions, Oxm};

struct Row {
    kind: usize,
    value: Key,
    mask: Key,
    act: Act,
    /// The group that it is for.
    group: Option<u8>,
    /// Not for packets of any.
    ungrouped: bool,
}

/// A row that classifies.
struct Class {
    kind: usize,
    value: Key,
    mask: Key,
    writes: Rewrite,
}

struct Device {
    chip: Chip,
    rows: BTreeMap<u32, Row>,
    class: BTreeMap<(u8, u8), Class>,
    macs: BTreeMap<MacKey, Act>,
    miss: Act,
    /// Is a frame's source asked for where no row matched?
    asks: bool,
}

impl Device {
    fn write(&mut self, w: Write) {
        match w {
            Write::RowAdd {
                at,
                kind,
                fields,
                ungrouped,
                act,
                ..
            } => {
                let (value, mask) = Key::of_match(&fields);
                let row = Row {
                    kind,
                    value,
                    mask,
                    act,
                    group: None,
                    ungrouped,
                };
                assert!(self.rows.insert(at, row).is_none());
            }
            Write::GroupAdd { at, group, .. } => {
                let row = Row {
                    kind: 0,
                    value: Key::default(),
                    mask: Key::default(),
                    act: Act::Cpu,
                    group: Some(group),
                    ungrouped: false,
                };
                assert!(self.rows.insert(at, row).is_none());
            }
            Write::ClassAdd {
                group,
                row,
                kind,
                fields,
                writes,
            } => {
                let (value, mask) = Key::of_match(&fields);
                let new = Class {
                    kind,
                    value,
                    mask,
                    writes,
                };
                assert!(self.class.insert((group, row), new).is_none());
            }
            Write::ClassAct { group, row, writes } => {
                self.class.get_mut(&(group, row)).unwrap().writes = writes;
            }
            Write::ClassDel { group, row } => assert!(self.class.remove(&(group, row)).is_some()),
            Write::RowAct { at, act } => self.rows.get_mut(&at).unwrap().act = act,
            Write::RowMove { from, to } => {
                let row = self.rows.remove(&from).unwrap();
                self.rows.insert(to, row);
            }
            Write::RowDel { at } => assert!(self.rows.remove(&at).is_some()),
            Write::MacPut { key, act, .. } => {
                self.macs.insert(key, act);
            }
            Write::MacDel(key) => assert!(self.macs.remove(&key).is_some()),
            Write::Miss(act) => self.miss = act,
            Write::SetAdd(_) | Write::SetDel(_) => {}
            Write::FormAdd { .. } | Write::FormDel { .. } => {}
        }
    }

    fn entry(&self, vlan: Vlan, address: u64) -> Option<Act> {
        let keys = [vlan, Vlan::Any].map(|vlan| MacKey { vlan, address });
        keys.iter().find_map(|k| self.macs.get(k).copied())
    }

    /// Does the MAC table answer, if there is no row?
    fn answer(&self, p: &Packet) -> (Act, bool) {
        let ether = Some(p.key.get(Field::EthType) as u16);
        let proto = p.key.field(Field::IpProto).map(|v| v as u8);
        let class = self.class.iter().find(|(_, c)| {
            let rows = &self.chip.class.as_ref().unwrap().rows;
            rows.kinds[c.kind].frames.covers(ether, proto) && p.key.and(&c.mask) == c.value
        });
        let group = class.map(|((group, _), _)| *group);
        let seen = class.map_or(p.key, |(_, c)| classified(p, c.writes));
        for r in self.rows.values() {
            let frames = self.chip.acl.kinds[r.kind].frames;
            let own = match r.group {
                Some(_) => r.group == group,
                None => !r.ungrouped || group.is_none(),
            };
            if own && frames.covers(ether, proto) && seen.and(&r.mask) == r.value {
                // Whoever sends it, it leaves as it is classified
                return match (r.act, class) {
                    (Act::Out { ports, .. }, Some((_, c))) => {
                        let rewrite = c.writes;
                        (Act::Out { ports, rewrite }, false)
                    }
                    (act, _) => (act, false),
                };
            }
        }
        assert_eq!(group, None, "{p:?} meets no row of its group");
        let vlan = match p.key.get(Field::VlanVid) {
            0 => Vlan::Untagged,
            v => Vlan::Tag(v as u16 & 0xfff),
        };
        let here = Some(Act::port(p.port as u8));
        if self.asks && self.entry(vlan, p.key.get(Field::EthSrc) as u64) != here {
            return (Act::Cpu, false);
        }
        match self.entry(vlan, p.key.get(Field::EthDst) as u64) {
            Some(act) => (act, true),
            None => (self.miss, false),
        }
    }
}

/// A frame as rows of the ACL see it behind classification: another VLAN id and priority, the tag as it came.
fn classified(p: &Packet, writes: Rewrite) -> Key {
    let mut key = p.key;
    let came = p.key.get(Field::VlanVid) & 0x1000;
    let vid = match writes.tag {
        Tagging::Goes => Some(0xfff),
        _ => writes.vid.map(u128::from),
    };
    if let Some(vid) = vid {
        key.set(Field::VlanVid, came | vid);
    }
    if let Some(pcp) = writes.pcp {
        key.set(Field::VlanPcp, pcp.into());
    }
    key
}

fn chips() -> Vec<Chip> {
    let one = Widths {
        l2: 1,
        ipv4: 1,
        ipv6: 2,
        full: 4,
    };
    let mac = MacTable {
        size: 100,
        vlan: true,
        any_vlan: true,
        port_sets: 3,
    };
    let mut small = tables::vsc9953(MacLookup::Vlan);
    small.acl.size = 12;
    small.mac = small.mac.map(|m| MacTable { size: 2, ..m });
    let mut drops = tables::by_widths("a", "tcam", 4096, one, Some(mac));
    drops.miss_drop = true;
    vec![
        tables::vsc9953(MacLookup::Vlan),
        tables::vsc9953(MacLookup::Both),
        drops,
        small,
    ]
}

/// Sent, dropped, and sent by the MAC table behind a question for the source, when all was said.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    sent: usize,
    dropped: usize,
    asked: usize,
    /// Of what was sent, with something written.
    written: usize,
}

fn run(chip: &Chip, ops: &[Op], packets: &[Packet]) -> Seen {
    let mut w = begin(Limits::default());
    let mut offload = Offload::new(chip.clone());
    let mut device = Device {
        chip: chip.clone(),
        rows: BTreeMap::new(),
        class: BTreeMap::new(),
        macs: BTreeMap::new(),
        miss: Act::Cpu,
        asks: false,
    };
    let mut next = 0;
    let mut before: Vec<Out> = packets.iter().map(|p| w.pipeline(p)).collect();
    for op in ops {
        // A station is learned in four steps, each a change of its own
        for op in op.steps() {
            let was: Vec<Act> = packets.iter().map(|p| device.answer(p).0).collect();
            play(&mut w, &op, &mut next);
            let after: Vec<Out> = packets.iter().map(|p| w.pipeline(p)).collect();
            let asks = w.compose.asks_sources();
            device.asks |= asks;
            // A cable is what it is at once: the old answer is what was written, sent by the cables as they are now
            if matches!(op, Op::Link(..)) {
                let written = packets.iter().zip(was).zip(&after);
                let sent = written.map(|((p, act), new)| match does(act) {
                    Some(answer) => Out {
                        sent: sent(&mut w, p, answer),
                        ..Out::default()
                    },
                    None => new.clone(),
                });
                before = sent.collect();
            }
            for changes in std::mem::take(&mut w.changes) {
                for write in offload.batch(changes) {
                    let said = format!("{write:?}");
                    device.write(write);
                    let both = before.iter().zip(&after);
                    for (p, (old, new)) in packets.iter().zip(both) {
                        judge(&mut w, &device, p, [old, new], &said);
                    }
                }
            }
            device.asks = asks;
            for (p, new) in packets.iter().zip(&after) {
                judge(&mut w, &device, p, [new, new], "the end");
            }
            before = after;
        }
    }
    let mut seen = Seen::default();
    for p in packets {
        match device.answer(p) {
            (Act::Out { rewrite, .. }, mac) => {
                seen.written += usize::from(rewrite != Rewrite::default());
                seen.sent += 1;
                seen.asked += usize::from(mac && device.asks);
            }
            (Act::Drop, _) => seen.dropped += 1,
            (Act::Cpu, _) => {}
        }
    }
    seen
}

/// The same in the words of the composition.
fn effect(all: Rewrite) -> Effect {
    let none = Rewrite::default();
    match all.tag {
        Tagging::Stays => Effect {
            rewrite: all,
            tag: Tag::Keep,
        },
        Tagging::Goes => Effect {
            rewrite: Rewrite {
                tag: none.tag,
                ..all
            },
            tag: Tag::Pop,
        },
        Tagging::Comes => Effect {
            rewrite: Rewrite {
                dscp: all.dscp,
                ..none
            },
            tag: Tag::Push {
                tpid: 0x8100,
                vid: all.vid,
                pcp: all.pcp,
            },
        },
    }
}

/// What the chip does with a frame; `None`: it is the CPU's.
fn does(act: Act) -> Option<Answer> {
    match act {
        Act::Cpu => None,
        Act::Drop => Some(Answer::Drop),
        Act::Out { ports, rewrite } => Some(Answer::Out {
            ports,
            effect: effect(rewrite),
        }),
    }
}

fn sent(w: &mut World, p: &Packet, answer: Answer) -> Vec<(u32, Vec<u8>)> {
    let mut is = w.carried_out(p, answer);
    is.sort();
    is
}

fn judge(w: &mut World, device: &Device, p: &Packet, may: [&Out; 2], said: &str) {
    let Some(answer) = does(device.answer(p).0) else {
        return;
    };
    let is = sent(w, p, answer.clone());
    let fits = may.iter().any(|o| o.told == 0 && o.sent == is);
    assert!(fits, "{p:?}: {answer:?}, not {may:?}, after {said}");
}

proptest! {
    #[test]
    fn as_the_pipeline_write_by_write(chip in 0..4usize, ops in ops(25)) {
        run(&chips()[chip], &ops, &packets());
    }
}

/// Tags that come and go, of one table and of two, are the chip's.
#[test]
fn what_writes_is_answered() {
    let tagged = Oxm::masked(Field::VlanVid, 0x1000, 0x1000);
    let untagged = Oxm::exact(Field::VlanVid, 0);
    let port = |n| Oxm::exact(Field::InPort, n);
    let set = |field, value| Action::SetField { field, value };
    let vid = |v: u128| set(Field::VlanVid, 0x1000 | v);
    let to = |port| Action::Output { port, max_len: 0 };
    let flow = |table, fields: &[Oxm], apply: &[Action], goto| {
        Op::Add(Flow {
            table,
            priority: 9,
            fields: fields.to_vec(),
            instructions: Instructions {
                apply: Some(apply.to_vec()),
                goto,
                ..Instructions::default()
            },
            idle: false,
            counted: false,
        })
    };
    let two = Oxm::exact(Field::VlanVid, 0x1000 | 2);
    let ops = [
        flow(
            0,
            &[port(1), untagged],
            &[Action::PushVlan(0x8100), vid(100)],
            Some(1),
        ),
        flow(
            1,
            &[Oxm::exact(Field::VlanVid, 0x1000 | 100)],
            &[to(3)],
            None,
        ),
        flow(0, &[port(2), two], &[Action::PopVlan, to(4)], None),
        flow(
            0,
            &[port(1), two],
            &[set(Field::VlanPcp, 1), vid(7), to(3)],
            None,
        ),
        // In front of them, and then they are the CPU's
        flow(0, &[port(3), tagged], &[to(1)], None),
        Op::Remove(0),
    ];
    let chip = &chips()[0];
    let packets = packets();
    let mut written = Vec::new();
    for n in 1..=ops.len() {
        written.push(run(chip, &ops[..n], &packets).written);
    }
    // A push alone goes on to a table without a flow for it; with two tags it is the software's, and what no row tells
    assert_eq!(written, [0, 12, 24, 36, 36, 24]);
}

#[test]
fn chips_answer() {
    let mut runner = TestRunner::deterministic();
    let mut sum = Seen::default();
    for n in 0..180 {
        let list = ops(30).new_tree(&mut runner).unwrap().current();
        let s = run(&chips()[n % 3], &list, &packets());
        sum.sent += s.sent;
        sum.dropped += s.dropped;
        sum.asked += s.asked;
        sum.written += s.written;
    }
    assert!(
        sum.sent > 100 && sum.dropped > 1000 && sum.asked > 30,
        "{sum:?}"
    );
    println!("{sum:?}");
    assert!(sum.written > 200, "{sum:?}");
}
