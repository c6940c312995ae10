// SPDX-License-Identifier: Apache-2.0
//! Random frames and messages out of few values, so that flows meet packets.

use super::packet::Ether;
use std::collections::BTreeMap;
use tandem_ofpipeline::flows::blank;
use tandem_openflow::model::{
    Band, BandType, Bucket, FlowCommand, FlowMod, GroupCommand, GroupMod, GroupType, MeterCommand,
    MeterMod,
};
use tandem_openflow::oxm::prerequisites_met;
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, port};

pub struct Rng(pub u64);

impl Rng {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn bytes(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}

fn mac(r: &mut Rng) -> [u8; 6] {
    [2, 0, 0, 0, 0, r.of(&[1, 2, 3])]
}

fn ether(r: &mut Rng, depth: u32) -> Vec<u8> {
    let mut f = [mac(r), mac(r)].concat();
    for _ in 0..r.of(&[0, 0, 1, 1, 2]) {
        f.extend(r.of(&[0x8100u16, 0x88a8]).to_be_bytes());
        f.extend([r.of(&[0x00u8, 0x20, 0x60, 0x70]), r.of(&[0u8, 1, 2])]);
    }
    let kinds: &[u16] = if depth == 0 {
        &[
            0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x8847, 0x8848, 0x88e7, 0x88cc,
        ]
    } else {
        &[0x0800, 0x86dd, 0x88cc]
    };
    let kind = r.of(kinds);
    f.extend(kind.to_be_bytes());
    match kind {
        0x0800 => f.extend(ip4(r)),
        0x86dd => f.extend(ip6(r)),
        0x0806 => {
            f.extend([0, 1, 8, 0, 6, 4, 0, r.of(&[1, 2])]);
            for _ in 0..2 {
                f.extend(mac(r));
                f.extend([10, 0, 0, r.of(&[1, 2, 3])]);
            }
            f.extend([0; 18]);
        }
        0x8847 | 0x8848 => {
            for bottom in [r.of(&[0, 1]), 1] {
                let label = [
                    0,
                    r.of(&[1, 2]),
                    r.of(&[0, 2, 8]) << 1 | bottom,
                    r.of(&[0, 1, 2, 64]),
                ];
                f.extend(label);
                if bottom == 1 {
                    break;
                }
            }
            if r.one_in(2) {
                f.extend(ip4(r));
            } else {
                f.extend(ip6(r));
            }
        }
        0x88e7 => {
            f.extend([r.of(&[0, 0x20]), 0, 0, r.of(&[1, 2])]);
            f.extend(ether(r, 1));
        }
        _ => f.extend(r.bytes(30)),
    }
    f
}

fn transport(r: &mut Rng, proto: u8) -> Vec<u8> {
    let mut b = vec![0; 8];
    for at in [1, 3] {
        b[at - 1] = 4;
        b[at] = r.of(&[1, 2]);
    }
    let n = r.below(9);
    let payload = r.bytes(n);
    match proto {
        6 => {
            b.extend(r.bytes(12));
            b[12] = 0x50;
        }
        17 => {
            b[4..6].copy_from_slice(&(8 + n as u16).to_be_bytes());
            // Not zero: there is a checksum, to be repaired. Or zero
            b[7] = u8::from(!r.one_in(4));
        }
        132 => b.extend([0; 4]),
        58 => {
            b[0] = r.of(&[128, 135, 136]);
            b[1] = r.of(&[0, 1]);
            if b[0] != 128 {
                b.extend([
                    0xfe,
                    0x80,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    r.of(&[1, 2]),
                ]);
                for _ in 0..r.below(3) {
                    b.extend([r.of(&[1, 2, 3]), 1]);
                    b.extend(mac(r));
                }
            }
            return b;
        }
        4 => {
            return Ether::parse(&[&[0; 12][..], &[8, 0], &ip4_of(r, 17)].concat())
                .repaired()
                .build()[14..]
                .to_vec();
        }
        41 => {
            return Ether::parse(&[&[0; 12][..], &[0x86, 0xdd], &ip6_of(r, 6)].concat())
                .repaired()
                .build()[14..]
                .to_vec();
        }
        _ => {
            b[0] = r.of(&[0, 8]);
            b[1] = r.of(&[0, 1]);
        }
    }
    b.extend(payload);
    b
}

fn ip4(r: &mut Rng) -> Vec<u8> {
    let proto = r.of(&[6, 6, 17, 17, 132, 1, 47, 4, 41]);
    ip4_of(r, proto)
}

fn ip4_of(r: &mut Rng, proto: u8) -> Vec<u8> {
    let options = r.of(&[0u8, 0, 0, 4, 8]);
    let mut l4 = transport(r, proto);
    let frag: u16 = r.of(&[0, 0, 0, 0x4000, 0x2000, 0x2003, 0x0003]);
    if frag & 0x3fff != 0 && proto == 17 {
        l4[6..8].fill(0);
    }
    let total = 20 + u16::from(options) + l4.len() as u16;
    let mut h = vec![
        0x45 + options / 4,
        r.of(&[0, 10 << 2, 12 << 2, 34 << 2 | 1, 3]),
    ];
    h.extend(total.to_be_bytes());
    h.extend([1, 2]);
    h.extend(frag.to_be_bytes());
    h.extend([r.of(&[0, 1, 2, 64, 255]), proto, 0, 0]);
    for _ in 0..2 {
        h.extend([10, 0, 0, r.of(&[1, 2, 3])]);
    }
    h.extend(vec![1; usize::from(options)]);
    h.extend(l4);
    if r.one_in(3) {
        h.extend([0; 6]);
    }
    h
}

fn ip6(r: &mut Rng) -> Vec<u8> {
    let proto = r.of(&[6, 6, 17, 17, 132, 58, 58, 59, 50, 4, 41]);
    ip6_of(r, proto)
}

fn ip6_of(r: &mut Rng, proto: u8) -> Vec<u8> {
    let mut kinds: Vec<u8> = Vec::new();
    if r.one_in(3) {
        for _ in 0..r.below(5) {
            kinds.push(r.of(&[0, 43, 44, 51, 60, 60]));
        }
    }
    let mut l4 = transport(r, proto);
    let mut body = Vec::new();
    for (n, k) in kinds.iter().enumerate() {
        let next = kinds.get(n + 1).copied().unwrap_or(proto);
        match k {
            44 => {
                let later = u8::from(r.one_in(3));
                body.extend([next, 0, 0, later << 3 | 1, 0, 0, 0, 9]);
                if proto == 17 {
                    l4[6..8].fill(0);
                }
            }
            51 => body.extend([[next, 4].as_slice(), &[7; 22]].concat()),
            43 => body.extend(
                [
                    [next, 2, 0, r.of(&[0, 1]), 0, 0, 0, 0].as_slice(),
                    &[0x20; 16],
                ]
                .concat(),
            ),
            _ => body.extend([next, 0, 1, 4, 0, 0, 0, 0]),
        }
    }
    body.extend(l4);
    let class = r.of(&[0u32, 10 << 2, 34 << 2 | 1]);
    let mut h = (6 << 28 | class << 20 | r.of(&[0, 5, 6]))
        .to_be_bytes()
        .to_vec();
    h.extend((body.len() as u16).to_be_bytes());
    h.extend([
        kinds.first().copied().unwrap_or(proto),
        r.of(&[0, 1, 2, 64]),
    ]);
    for _ in 0..2 {
        h.extend([
            0x20,
            1,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            r.of(&[1, 2, 3]),
        ]);
    }
    h.extend(body);
    h
}

/// A frame of Ethernet as one of 802.3, mostly with a SNAP header that has its type.
fn with_length(r: &mut Rng, f: &mut Vec<u8>) {
    let at = 12 + 4 * Ether::parse(f).tags.len();
    let snap = [0xaa, 0xaa, 3, 0, 0, r.of(&[0, 0, 0, 1])];
    let length = (f.len() - at + 6) as u16;
    f.splice(at..at, [&length.to_be_bytes()[..], &snap].concat());
}

/// Mostly whole, now and then cut or broken.
pub fn frame(r: &mut Rng) -> Vec<u8> {
    let mut f = Ether::parse(&ether(r, 0)).repaired().build();
    if r.one_in(12) {
        with_length(r, &mut f);
    }
    if r.one_in(16) {
        f.truncate(r.below(f.len() as u64) as usize);
    }
    if r.one_in(16) && f.len() > 14 {
        let at = 12 + r.below(f.len() as u64 - 12) as usize;
        f[at] = r.bits() as u8;
    }
    f
}

/// Fields of a frame of the pool, with what is no part of it.
fn known(r: &mut Rng, pool: &[Vec<u8>]) -> BTreeMap<Field, u128> {
    let f = &pool[r.below(pool.len() as u64) as usize];
    let mut fields = if f.len() < 14 {
        BTreeMap::new()
    } else {
        Ether::parse(f).fields()
    };
    let port = r.of::<u128>(&[1, 2]);
    fields.insert(Field::InPort, port);
    fields.insert(Field::InPhyPort, port);
    fields.insert(Field::Metadata, r.of::<u128>(&[0, 1, 0x11]));
    fields.insert(Field::TunnelId, r.of::<u128>(&[0, 5]));
    fields
}

/// One of 1.0: twelve fields, each of them asked for or not, of addresses a prefix.
fn matching10(r: &mut Rng, pool: &[Vec<u8>]) -> Match {
    if r.one_in(6) {
        return Match::default();
    }
    let f = &pool[r.below(pool.len() as u64) as usize];
    let mut have = match f.len() < 14 {
        true => BTreeMap::new(),
        false => Ether::parse10(f).fields10(),
    };
    have.insert(Field::InPort, r.of::<u128>(&[1, 2]));
    let exact = r.one_in(6);
    let most = r.of(&[2, 4, 12]);
    let asked = |r: &mut Rng| exact || r.one_in(most);
    let mut fields = Vec::new();
    for field in [Field::InPort, Field::EthDst, Field::EthSrc] {
        if let Some(v) = have.get(&field)
            && asked(r)
        {
            fields.push(Oxm::exact(field, *v));
        }
    }
    // Each needs what stands before it on its line
    for line in [
        &[&[Field::VlanVid][..], &[Field::VlanPcp]][..],
        &[
            &[Field::EthType],
            &[Field::IpDscp, Field::IpProto, Field::ArpOp],
            &[Field::TcpSrc, Field::UdpSrc, Field::Icmpv4Type],
            &[Field::TcpDst, Field::UdpDst, Field::Icmpv4Code],
        ],
    ] {
        let deep = r.below(line.len() as u64 + 1) as usize;
        for step in &line[..if exact { line.len() } else { deep }] {
            let there = step.iter().filter_map(|f| Some((*f, *have.get(f)?)));
            fields.extend(there.map(|(f, v)| Oxm::exact(f, v)));
        }
    }
    let ether = fields.iter().any(|o| o.field == Field::EthType);
    for field in [Field::Ipv4Src, Field::Ipv4Dst, Field::ArpSpa, Field::ArpTpa] {
        if let Some(v) = have.get(&field)
            && ether
            && asked(r)
        {
            let bits = if exact { 0 } else { r.of(&[0, 1, 2, 8]) };
            let mask = u128::from(u32::MAX << bits);
            fields.push(Oxm::masked(field, *v, mask));
        }
    }
    if !exact && r.one_in(8) && !fields.iter().any(|o| o.field == Field::VlanVid) {
        // A priority of any VLAN
        fields.push(Oxm::masked(Field::VlanVid, 0x1000, 0x1000));
        fields.push(Oxm::exact(Field::VlanPcp, r.of(&[0, 1, 3])));
    }
    Match { fields, exact }
}

fn actions10(r: &mut Rng) -> Vec<Action> {
    let one = |r: &mut Rng| {
        let dst = r.one_in(2);
        match r.below(12) {
            0 => Action::SetVlanVid10(r.of(&[0, 1, 0xfff])),
            1 => Action::SetVlanPcp10(r.of(&[0, 1, 7])),
            2 | 3 => Action::StripVlan10,
            4 => Action::SetField {
                field: r.of(&[Field::EthSrc, Field::EthDst]),
                value: r.of(&[1, 0xffff_ffff_ffff]),
            },
            5 => Action::SetNw10 {
                dst,
                addr: r.of(&[0, 0x0a00_0002, u32::MAX]),
            },
            6 => Action::SetNwTos10(r.of(&[0, 0x28, 0xfc])),
            7 => Action::SetTp10 {
                dst,
                port: r.of(&[0, 0x0401, 0xffff]),
            },
            8 => Action::Enqueue10 {
                port: r.of(&[1, 2, 3, port::IN_PORT]),
                queue: r.of(&[5, 6]),
            },
            _ => out(r),
        }
    };
    (0..r.below(5)).map(|_| one(r)).collect()
}

/// A message of 1.0, as the codec hands it on: one table, no masks of cookies, an addition that begins its counters anew.
pub fn flow_mod10(r: &mut Rng, pool: &[Vec<u8>]) -> FlowMod {
    let m = flow_mod(r, pool);
    let actions = actions10(r);
    let reset = if m.command == FlowCommand::Add { 4 } else { 0 };
    FlowMod {
        table: if m.command.deletes() { 255 } else { 0 },
        cookie_mask: 0,
        flags: m.flags & 3 | reset,
        out_group: 0xffff_ffff,
        matching: matching10(r, pool),
        instructions: Instructions {
            apply: (!actions.is_empty()).then_some(actions),
            ..Instructions::default()
        },
        ..m
    }
}

pub fn matching(r: &mut Rng, pool: &[Vec<u8>]) -> Vec<Oxm> {
    let fields = known(r, pool);
    let names: Vec<Field> = fields.keys().copied().collect();
    let mut chosen: BTreeMap<Field, Oxm> = BTreeMap::new();
    for _ in 0..r.of(&[0, 0, 1, 1, 1, 2, 2, 3]) {
        let f = r.of(&names);
        let v = fields[&f];
        let ones = f.all_ones();
        let mask = match f {
            Field::VlanVid => r.of(&[ones, ones, if v == 0 { ones } else { 0x1000 }]),
            f if f.maskable() => r.of(&[ones, ones, ones & !3, ones & !1, ones >> 1, 1]),
            _ => ones,
        };
        chosen.insert(f, Oxm::masked(f, v, mask));
        for need in [
            Field::EthType,
            Field::IpProto,
            Field::Icmpv6Type,
            Field::VlanVid,
            Field::InPort,
        ] {
            let exact = |f: Field| {
                chosen
                    .get(&f)
                    .filter(|o| o.mask == f.all_ones())
                    .map(|o| o.value)
            };
            if !prerequisites_met(f, exact)
                && let Some(v) = fields.get(&need)
                && need != f
            {
                chosen.insert(need, Oxm::exact(need, *v));
            }
        }
    }
    chosen.into_values().collect()
}

fn out(r: &mut Rng) -> Action {
    Action::Output {
        port: r.of(&[
            1,
            2,
            2,
            3,
            3,
            4,
            port::IN_PORT,
            port::ALL,
            port::CONTROLLER,
            port::FLOOD,
            port::NORMAL,
        ]),
        max_len: r.of(&[64, 0xffff]),
    }
}

fn action(r: &mut Rng, pool: &[Vec<u8>], near: &[Oxm]) -> Action {
    let set = |r: &mut Rng| {
        let mut fields = known(r, pool);
        // What goes with the match is likelier to be allowed
        for _ in 0..6 {
            if near
                .iter()
                .all(|o| fields.get(&o.field).is_none_or(|v| v & o.mask == o.value))
            {
                break;
            }
            fields = known(r, pool);
        }
        let names: Vec<Field> = fields.keys().copied().filter(|f| f.settable()).collect();
        let field = r.of(&names);
        let value = match field {
            Field::EthType => r.of(&[0x88cc, 0x9999, 0x8847]),
            Field::IpProto => r.of(&[6, 17, 47, 132]),
            Field::Icmpv6Type => r.of(&[128, 135, 136]),
            Field::VlanVid => r.of(&[0x1000, 0x1001, 0x1007]),
            f => r.of(&[fields[&f], u128::from(r.0) & f.all_ones(), f.all_ones(), 0]),
        };
        Action::SetField { field, value }
    };
    match r.below(26) {
        0 => Action::CopyTtlIn,
        1 => Action::CopyTtlOut,
        2 => Action::SetMplsTtl(r.of(&[0, 1, 9])),
        3 => Action::DecMplsTtl,
        4 | 5 => Action::PushVlan(r.of(&[0x8100, 0x88a8])),
        6 | 7 => Action::PopVlan,
        8 => Action::PushMpls(r.of(&[0x8847, 0x8848])),
        9 => Action::PopMpls(r.of(&[0x0800, 0x86dd, 0x8847, 0x8100])),
        10 => Action::SetNwTtl(r.of(&[0, 1, 9])),
        11 => Action::DecNwTtl,
        12 => Action::PushPbb(0x88e7),
        13 => Action::PopPbb,
        14 => Action::Group(r.of(&[1, 2, 3])),
        15..18 => out(r),
        _ => set(r),
    }
}

pub fn actions(r: &mut Rng, pool: &[Vec<u8>], near: &[Oxm]) -> Vec<Action> {
    let mut list: Vec<Action> = (0..r.below(4)).map(|_| action(r, pool, near)).collect();
    // A protocol, and then what its checksum is over
    let ether = near
        .iter()
        .find(|o| o.field == Field::EthType)
        .map(|o| o.value);
    let address = match ether {
        Some(0x0800) => Some(Field::Ipv4Dst),
        Some(0x86dd) => Some(Field::Ipv6Dst),
        _ => None,
    };
    if let Some(field) = address
        && r.one_in(6)
    {
        let value = r.of(&[6, 17, 47, 132]);
        list.push(Action::SetField {
            field: Field::IpProto,
            value,
        });
        list.push(Action::SetField { field, value: 77 });
    }
    if !r.one_in(4) {
        list.push(out(r));
    }
    list
}

fn instructions(r: &mut Rng, pool: &[Vec<u8>], near: &[Oxm], table: u8) -> Instructions {
    Instructions {
        meter: r.one_in(12).then(|| r.of(&[1, 2])),
        apply: r.one_in(2).then(|| actions(r, pool, near)),
        clear: r.one_in(8),
        write: (!r.one_in(3)).then(|| actions(r, pool, near)),
        metadata: r
            .one_in(4)
            .then(|| (u64::from(r.of(&[1, 0x10u8])), u64::from(r.of(&[1, 0x11u8])))),
        goto: (table < 3 && r.one_in(2)).then(|| table + 1 + r.below(u64::from(3 - table)) as u8),
    }
}

pub fn flow_mod(r: &mut Rng, pool: &[Vec<u8>]) -> FlowMod {
    let command = r.of(&[
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Modify,
        FlowCommand::ModifyStrict,
        FlowCommand::Delete,
        FlowCommand::DeleteStrict,
    ]);
    let table = if command.deletes() && r.one_in(3) {
        255
    } else {
        r.of(&[0, 0, 1, 2, 3])
    };
    let mut fields = matching(r, pool);
    while command == FlowCommand::Delete && fields.len() < 2 && !r.one_in(8) {
        fields = matching(r, pool);
    }
    let deletes_less = command == FlowCommand::Delete && r.one_in(2);
    FlowMod {
        command,
        table,
        priority: r.of(&[0, 1, 1, 2, 2]),
        cookie: r.of(&[0, 1, 2, 3]),
        cookie_mask: r.of(&[0, 0, 1, 3]),
        idle_timeout: r.of(&[0, 0, 0, 2]),
        hard_timeout: r.of(&[0, 0, 0, 3]),
        flags: r.of(&[0, 1, 1, 2, 4, 8, 16]),
        out_port: if deletes_less {
            r.of(&[port::ANY, 2, 3])
        } else {
            port::ANY
        },
        out_group: if deletes_less {
            r.of(&[0xffff_ffff, 1])
        } else {
            0xffff_ffff
        },
        instructions: instructions(r, pool, &fields, table.min(3)),
        matching: Match {
            fields,
            exact: false,
        },
        ..blank()
    }
}

pub fn group_mod(r: &mut Rng, pool: &[Vec<u8>]) -> GroupMod {
    let kind = r.of(&[
        GroupType::All,
        GroupType::Select,
        GroupType::Indirect,
        GroupType::FastFailover,
    ]);
    let n = match kind {
        GroupType::Indirect => 1,
        _ => r.below(4),
    };
    let buckets = (0..n)
        .map(|_| Bucket {
            weight: if kind == GroupType::Select {
                r.of(&[0, 1, 2, 3])
            } else {
                0
            },
            watch_port: match kind {
                GroupType::FastFailover => r.of(&[1, 2, 3]),
                GroupType::Select => r.of(&[port::ANY, port::ANY, 2]),
                _ => port::ANY,
            },
            watch_group: if r.one_in(8) {
                r.of(&[1, 2, 3])
            } else {
                0xffff_ffff
            },
            actions: actions(r, pool, &[]),
        })
        .collect();
    GroupMod {
        command: r.of(&[
            GroupCommand::Add,
            GroupCommand::Add,
            GroupCommand::Modify,
            GroupCommand::Delete,
        ]),
        kind,
        group: r.of(&[1, 2, 3]),
        buckets,
    }
}

pub fn meter_mod(r: &mut Rng) -> MeterMod {
    let kind = [
        BandType::Drop,
        BandType::DscpRemark(1),
        BandType::DscpRemark(2),
    ];
    MeterMod {
        command: r.of(&[
            MeterCommand::Add,
            MeterCommand::Add,
            MeterCommand::Modify,
            MeterCommand::Delete,
        ]),
        flags: 4 | r.of(&[1, 2]),
        meter: r.of(&[1, 2]),
        bands: (0..r.below(3))
            .map(|_| Band {
                rate: r.of(&[1, 2, 5]),
                burst: r.of(&[1, 2, 3]),
                kind: r.of(&kind),
            })
            .collect(),
    }
}
