// SPDX-License-Identifier: Apache-2.0
//! Messages made of any bytes, for tests, fuzzing and the comparison with another implementation: each is one that
//! [`crate::decode`] takes and gives back as it was.

mod replies;

pub use replies::{OwnedPart, OwnedReply};

use crate::model::*;
use crate::oxm::{VID_PRESENT, prerequisites_met};
use crate::{Action, Field, Hello, Instructions, Match, Oxm, Version, matching, port};

/// Where choices come from: bytes, and zeros after their end.
#[derive(Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
}

/// Bytes of a seed, enough for some messages.
pub fn stretch(seed: u64, n: usize) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(n + 8);
    while out.len() < n {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend_from_slice(&(z ^ z >> 31).to_le_bytes());
    }
    out.truncate(n);
    out
}

impl<'a> Source<'a> {
    /// Choices come from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Source { bytes }
    }

    /// Are there bytes left?
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn slice(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.bytes.split_at(n.min(self.bytes.len()));
        self.bytes = tail;
        head
    }

    fn number(&mut self, bytes: usize) -> u128 {
        let got = self.slice(bytes);
        got.iter().fold(0, |sum, &b| sum << 8 | u128::from(b))
    }

    fn u8(&mut self) -> u8 {
        self.number(1) as u8
    }

    fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    fn u64(&mut self) -> u64 {
        self.number(8) as u64
    }

    fn below(&mut self, n: usize) -> usize {
        usize::from(self.u8()) % n.max(1)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).copied()
    }

    fn often(&mut self) -> bool {
        self.u8().is_multiple_of(3)
    }

    fn data(&mut self) -> &'a [u8] {
        let n = self.below(200);
        self.slice(n)
    }

    fn mac(&mut self) -> [u8; 6] {
        let [_, _, mac @ ..] = self.u64().to_be_bytes();
        mac
    }

    fn text(&mut self, most: usize) -> String {
        let n = self.below(most);
        (0..n).map(|_| char::from(b'a' + self.u8() % 26)).collect()
    }

    fn many<T>(&mut self, most: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let n = self.below(most + 1);
        (0..n).map(|_| one(self)).collect()
    }

    /// A port number of the version; not a reserved one.
    fn port(&mut self, version: Version) -> u32 {
        match version {
            Version::V10 => u32::from(self.u16()) % 0xfe00 + 1,
            Version::V13 => self.u32() % 0xffff_fe00 + 1,
        }
    }

    fn out_port(&mut self, version: Version) -> u32 {
        let reserved = [
            port::IN_PORT,
            port::NORMAL,
            port::FLOOD,
            port::ALL,
            port::CONTROLLER,
            port::LOCAL,
        ];
        match self.u8() % 4 {
            0 => self.one(&reserved).unwrap_or(port::LOCAL),
            _ => self.port(version),
        }
    }

    fn lifetime(&mut self) -> Lifetime {
        Lifetime {
            sec: self.u32(),
            nsec: self.u32() % 1_000_000_000,
        }
    }

    fn value(&mut self, field: Field) -> u128 {
        let any = self.number(field.bytes()) & field.all_ones();
        let likely: &[u128] = match field {
            Field::EthType => &[0x0800, 0x0806, 0x86dd, 0x8847, 0x8848, 0x88e7],
            Field::IpProto => &[1, 6, 17, 58, 132],
            Field::Icmpv6Type => &[135, 136],
            _ => return any,
        };
        if self.u8().is_multiple_of(8) {
            any
        } else {
            self.one(likely).unwrap_or(any)
        }
    }

    /// A match of the version.
    pub fn matching(&mut self, version: Version) -> Match {
        let mut fields: Vec<Oxm> = Vec::new();
        for field in Field::ALL {
            let met = prerequisites_met(field, |f| matching::asked(&fields, f));
            if !met || !self.often() {
                continue;
            }
            let oxm = match version {
                Version::V10 => self.field10(field),
                Version::V13 => Some(self.field13(field)),
            };
            fields.extend(oxm);
        }
        let whole = fields.iter().all(|o| o.mask == o.field.all_ones());
        let exact = version == Version::V10 && whole && fields.len() == 12;
        Match { fields, exact }
    }

    fn field13(&mut self, field: Field) -> Oxm {
        let value = self.value(field);
        if field.maskable() && self.often() {
            let mask = self.number(field.bytes()) & field.all_ones();
            if mask != 0 {
                return Oxm::masked(field, value, mask);
            }
        }
        if field == Field::VlanVid && value != 0 {
            return Oxm::exact(field, value | u128::from(VID_PRESENT));
        }
        Oxm::exact(field, value)
    }

    fn field10(&mut self, field: Field) -> Option<Oxm> {
        let value = self.value(field);
        let present = u128::from(VID_PRESENT);
        Some(match field {
            Field::InPort => Oxm::exact(field, u128::from(self.port(Version::V10))),
            Field::VlanVid if value == 0 => Oxm::exact(field, 0),
            Field::VlanVid => Oxm::exact(field, value | present),
            Field::ArpOp => Oxm::exact(field, value & 0xff),
            Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => {
                let mask = u32::MAX << (self.u8() % 32);
                Oxm::masked(field, value, u128::from(mask))
            }
            Field::EthDst
            | Field::EthSrc
            | Field::EthType
            | Field::VlanPcp
            | Field::IpDscp
            | Field::TcpSrc
            | Field::TcpDst
            | Field::UdpSrc
            | Field::UdpDst
            | Field::Icmpv4Type
            | Field::Icmpv4Code
            | Field::Icmpv6Type
            | Field::Icmpv6Code => Oxm::exact(field, value),
            Field::IpProto => Oxm::exact(field, value),
            _ => return None,
        })
    }

    fn actions(&mut self, version: Version) -> Vec<Action> {
        self.many(5, |s| s.action(version))
    }

    fn action(&mut self, version: Version) -> Action {
        match version {
            Version::V10 => self.action10(),
            Version::V13 => self.action13(),
        }
    }

    fn output(&mut self, version: Version) -> Action {
        Action::Output {
            port: self.out_port(version),
            max_len: self.u16(),
        }
    }

    fn action13(&mut self) -> Action {
        match self.u8() % 20 {
            0 => Action::CopyTtlOut,
            1 => Action::CopyTtlIn,
            2 => Action::SetMplsTtl(self.u8()),
            3 => Action::DecMplsTtl,
            4 => Action::PushVlan(self.one(&[0x8100, 0x88a8]).unwrap_or(0x8100)),
            5 => Action::PopVlan,
            6 => Action::PushMpls(self.one(&[0x8847, 0x8848]).unwrap_or(0x8847)),
            7 => Action::PopMpls(self.u16()),
            8 => Action::SetQueue(self.u32()),
            9 => Action::Group(self.u32() % GROUP_MAX),
            10 => Action::SetNwTtl(self.u8()),
            11 => Action::DecNwTtl,
            12 => Action::PushPbb(0x88e7),
            13 => Action::PopPbb,
            14..18 => {
                let field = self.one(&Field::ALL).filter(|f| f.settable());
                let field = field.unwrap_or(Field::EthDst);
                let mut value = self.value(field);
                if field == Field::VlanVid {
                    value |= u128::from(VID_PRESENT);
                }
                Action::SetField { field, value }
            }
            _ => self.output(Version::V13),
        }
    }

    fn action10(&mut self) -> Action {
        match self.u8() % 12 {
            0 => Action::SetVlanVid10(self.u16() & 0xfff),
            1 => Action::SetVlanPcp10(self.u8() & 7),
            2 => Action::StripVlan10,
            3 | 4 => {
                let field = self.one(&[Field::EthSrc, Field::EthDst]);
                let value = self.number(6);
                Action::SetField {
                    field: field.unwrap_or(Field::EthSrc),
                    value,
                }
            }
            5 | 6 => Action::SetNw10 {
                dst: self.often(),
                addr: self.u32(),
            },
            7 => Action::SetNwTos10(self.u8() & 0xfc),
            8 | 9 => Action::SetTp10 {
                dst: self.often(),
                port: self.u16(),
            },
            10 => Action::Enqueue10 {
                port: self.port(Version::V10),
                queue: self.u32(),
            },
            _ => self.output(Version::V10),
        }
    }

    fn instructions(&mut self, version: Version) -> Instructions {
        if version == Version::V10 {
            let actions = self.actions(version);
            return Instructions {
                apply: (!actions.is_empty()).then_some(actions),
                ..Instructions::default()
            };
        }
        Instructions {
            meter: self.often().then(|| self.u32()),
            apply: self.often().then(|| self.actions(version)),
            clear: self.often(),
            write: self.often().then(|| self.actions(version)),
            metadata: self.often().then(|| (self.u64(), self.u64())),
            goto: self.often().then(|| self.u8()),
        }
    }

    fn flow_mod(&mut self, version: Version) -> FlowMod {
        let command = self.one(FlowCommand::ALL).unwrap_or(FlowCommand::Add);
        let ten = version == Version::V10;
        let table = match (ten, command.deletes()) {
            (true, true) => TABLE_ALL,
            (true, false) => 0,
            (false, _) => self.u8() % TABLE_ALL,
        };
        let flags = match (ten, command) {
            (true, FlowCommand::Add) => self.u16() & 3 | flow_flags::RESET_COUNTS,
            (true, _) => self.u16() & 3,
            (false, _) => self.u16() & flow_flags::ALL,
        };
        FlowMod {
            cookie: self.u64(),
            cookie_mask: if ten { 0 } else { self.u64() },
            table,
            command,
            idle_timeout: self.u16(),
            hard_timeout: self.u16(),
            priority: self.u16(),
            buffer: self.buffer(),
            out_port: self.out_port(version),
            out_group: if ten { GROUP_ANY } else { self.u32() },
            flags,
            matching: self.matching(version),
            instructions: self.instructions(version),
        }
    }

    fn buffer(&mut self) -> Option<u32> {
        self.often().then(|| self.u32() % NO_BUFFER)
    }

    fn filter(&mut self, version: Version) -> FlowFilter {
        let ten = version == Version::V10;
        FlowFilter {
            table: self.u8(),
            out_port: self.out_port(version),
            out_group: if ten { GROUP_ANY } else { self.u32() },
            cookie: if ten { 0 } else { self.u64() },
            cookie_mask: if ten { 0 } else { self.u64() },
            matching: Match {
                exact: false,
                ..self.matching(version)
            },
        }
    }

    fn buckets(&mut self) -> Vec<Bucket> {
        self.many(4, |s| Bucket {
            weight: s.u16(),
            watch_port: s.u32(),
            watch_group: s.u32(),
            actions: s.actions(Version::V13),
        })
    }

    fn bands(&mut self) -> Vec<Band> {
        self.many(4, |s| Band {
            rate: s.u32(),
            burst: s.u32(),
            kind: if s.often() {
                BandType::DscpRemark(s.u8())
            } else {
                BandType::Drop
            },
        })
    }

    fn meter_mod(&mut self) -> MeterMod {
        let command = self.one(MeterCommand::ALL).unwrap_or(MeterCommand::Add);
        let bands = self.bands();
        MeterMod {
            command,
            flags: self.u16() & (meter_flags::ALL & !meter_flags::KBPS),
            meter: self.u32() % METER_MAX + 1,
            bands: if command == MeterCommand::Delete {
                Vec::new()
            } else {
                bands
            },
        }
    }

    /// Features of a table.
    pub fn table_features(&mut self) -> TableFeatures {
        let mut properties = Vec::new();
        for kind in 0..16u8 {
            if kind == 9 || kind == 11 || !self.often() {
                continue;
            }
            let (miss, write) = (kind & 1 != 0, matches!(kind, 4 | 5 | 12 | 13));
            properties.push(match kind & !1 {
                0 => Property::Instructions {
                    miss,
                    kinds: self.many(6, |s| u16::from(s.u8() % 6 + 1)),
                },
                2 => Property::NextTables {
                    miss,
                    tables: self.data().to_vec(),
                },
                4 | 6 => Property::Actions {
                    miss,
                    write,
                    kinds: self.many(9, |s| [0, 11, 12, 15, 16, 17, 21, 22, 25][s.below(9)]),
                },
                8 => Property::Match(self.ids()),
                10 => Property::Wildcards(self.ids()),
                _ => Property::SetField {
                    miss,
                    write,
                    fields: self.ids(),
                },
            });
        }
        TableFeatures {
            table: self.u8(),
            name: self.text(32),
            metadata_match: self.u64(),
            metadata_write: self.u64(),
            config: self.u32(),
            max_entries: self.u32(),
            properties,
        }
    }

    fn ids(&mut self) -> Vec<FieldId> {
        self.many(20, |s| FieldId {
            field: s.one(&Field::ALL).unwrap_or(Field::InPort),
            masked: s.often(),
        })
    }

    fn experimenter(&mut self, version: Version) -> Experimenter<'a> {
        Experimenter {
            experimenter: self.u32(),
            kind: if version == Version::V10 {
                0
            } else {
                self.u32()
            },
            data: self.data(),
        }
    }

    /// A question of the version.
    pub fn asks(&mut self, version: Version) -> Asks<'a> {
        let kinds = if version == Version::V10 { 7 } else { 15 };
        match self.u8() % kinds {
            0 => Asks::Desc,
            1 => Asks::Flow(self.filter(version)),
            2 => Asks::Aggregate(self.filter(version)),
            3 => Asks::Table,
            4 => Asks::Port {
                port: self.port(version),
            },
            5 => Asks::Queue {
                port: self.port(version),
                queue: self.u32(),
            },
            6 => Asks::Experimenter(self.experimenter(version)),
            7 => Asks::Group { group: self.u32() },
            8 => Asks::GroupDesc,
            9 => Asks::GroupFeatures,
            10 => Asks::Meter { meter: self.u32() },
            11 => Asks::MeterConfig { meter: self.u32() },
            12 => Asks::MeterFeatures,
            13 => Asks::TableFeatures(self.many(3, Self::table_features)),
            _ => Asks::PortDesc,
        }
    }

    fn hello(&mut self) -> Hello {
        Hello {
            version: self.u8(),
            bitmap: self.often().then(|| self.u32()),
        }
    }

    fn config(&mut self) -> Config {
        Config {
            fragments: self.one(Fragments::ALL).unwrap_or(Fragments::Normal),
            miss_send_len: self.u16(),
        }
    }

    fn role(&mut self) -> RoleRequest {
        RoleRequest {
            role: self.one(Role::ALL).unwrap_or(Role::Equal),
            generation: self.u64(),
        }
    }

    fn filters(&mut self) -> Async {
        let mut pair = || [self.u32(), self.u32()];
        Async {
            packet_in: pair(),
            port_status: pair(),
            flow_removed: pair(),
        }
    }

    /// A controller's message.
    pub fn request(&mut self, version: Version) -> Request<'a> {
        let kinds = if version == Version::V10 { 15 } else { 20 };
        match self.u8() % kinds {
            0 => Request::Hello(self.hello()),
            1 => Request::Error {
                kind: self.u16(),
                code: self.u16(),
                data: self.data(),
            },
            2 => Request::Echo(self.data()),
            3 => Request::EchoReply(self.data()),
            4 => Request::Experimenter(self.experimenter(version)),
            5 => Request::Features,
            6 => Request::GetConfig,
            7 => Request::SetConfig(self.config()),
            8 => Request::PacketOut(PacketOut {
                buffer: self.buffer(),
                in_port: self.port(version),
                actions: self.actions(version),
                data: self.data(),
            }),
            9 | 10 => Request::FlowMod(self.flow_mod(version)),
            11 => Request::PortMod(self.port_mod(version)),
            12 => Request::Multipart(Multipart {
                more: version == Version::V13 && self.often(),
                asks: self.asks(version),
            }),
            13 => Request::Barrier,
            14 => Request::QueueConfig {
                port: self.port(version),
            },
            15 => Request::GroupMod(GroupMod {
                command: self.one(GroupCommand::ALL).unwrap_or(GroupCommand::Add),
                kind: self.one(GroupType::ALL).unwrap_or(GroupType::All),
                group: self.u32() % GROUP_MAX,
                buckets: self.buckets(),
            }),
            16 => Request::TableMod(TableMod {
                table: self.u8(),
                config: self.u32() & 3,
            }),
            17 => Request::Role(self.role()),
            18 => match self.u8() % 2 {
                0 => Request::GetAsync,
                _ => Request::SetAsync(self.filters()),
            },
            _ => Request::MeterMod(self.meter_mod()),
        }
    }

    fn port_mod(&mut self, version: Version) -> PortMod {
        let (config, advertise) = match version {
            // 1.0's features are 12 of 1.3's 16
            Version::V10 => (port_config::ALL10, 0xf87f),
            Version::V13 => (port_config::ALL, port_features::ALL),
        };
        PortMod {
            port: self.port(version),
            hw_addr: self.mac(),
            config: self.u32() & config,
            mask: self.u32() & config,
            advertise: self.u32() & advertise,
        }
    }
}
