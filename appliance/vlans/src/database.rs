//! The database: VLANs, ports' memberships, stations; and each of its objects as the store understands it.
//!
//! Whatever changes is *touched*, and said as it is when its turn comes: changes of one object in between are one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tandem_store::OWN_NUMBERS;
use tandem_store::model::{
    BR_STATE_FORWARDING, BridgeInfo, BridgePort, BridgeVlan, FdbEntry, FdbKey, FdbKind, Key, Link,
    LinkKind, Object,
};
use thiserror::Error;

use crate::frames::is_station;
use crate::groups;
use crate::multicast::{Groups, Multicast};
use crate::rules::{self, Rules};
use crate::states::State;
use crate::vlanset::{IDS, VlanSet};

/// Stations that are remembered at most: what the chip learns beyond is on the chip alone.
pub const STATIONS: usize = 65_536;
/// Objects that wait to be said at most; beyond, all is said anew.
const TOUCHED: usize = 65_536;
/// The device that the bridge is, to the store; port N is N behind it.
pub(crate) const BRIDGE: u32 = OWN_NUMBERS;
/// The VLAN that is always there.
const DEFAULT_VLAN: u16 = 1;

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not 1..=4094.
    #[error("{0} is no VLAN id: 1 to 4094 are")]
    NoVlanId(u16),
    /// Port 0.
    #[error("ports begin with 1")]
    NoPortNumber,
    /// It is not there, or is none.
    #[error("there is no group {0}")]
    NoGroup(u16),
    /// It belongs to another source, or is nowhere.
    #[error("port {0} is not of the VLAN database")]
    NoSuchPort(u16),
    /// The same, by the number that it would have in the store.
    #[error("device {0} is no port of the VLAN database")]
    NoSuchDevice(u32),
    /// It is the database's, but what is said of it is of a VLAN that it has left.
    #[error("port {port} is not in VLAN {vid}")]
    NotInVlan {
        /// Whose number.
        port: u16,
        /// That VLAN.
        vid: u16,
    },
    /// As IOS has it.
    #[error("VLAN 1 is the default VLAN: it stays, and is active")]
    DefaultVlan,
    /// Of a VLAN that is to be removed, or to have a state.
    #[error("VLAN {0} is not there")]
    NoSuchVlan(u16),
    /// A device takes what goes up in one VLAN.
    #[error("device {device} is the TAP of VLAN {vid} already")]
    TapOfAnother {
        /// Its interface index.
        device: u32,
        /// The VLAN that has it.
        vid: u16,
    },
    /// What the chip says can't be.
    #[error("{0:02x?} is no station")]
    NoStation([u8; 6]),
    /// There are so many.
    #[error("the database has {STATIONS} stations")]
    Stations,
}

/// A VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// For people.
    pub name: String,
    /// Not suspended: a suspended one has no members, and is not routed.
    pub active: bool,
}

/// Which VLANs a port is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One, without tag.
    Access(u16),
    /// Those of `allowed` that there are; `native` is the one of frames without tag.
    Trunk {
        /// Its frames have no tag, unless [`Database::set_tag_native`] says that they have.
        native: u16,
        /// Those that may pass.
        allowed: VlanSet,
    },
}

/// A front-panel port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// For people.
    pub name: String,
    /// Its own address.
    pub mac: [u8; 6],
    /// Bytes of a packet without Ethernet's header.
    pub mtu: u32,
    /// Not shut down.
    pub up: bool,
    /// Its VLANs.
    pub mode: Mode,
}

/// The device that takes what goes up in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapOf {
    /// Its interface index in the kernel.
    pub device: u32,
    /// Its MAC.
    pub mac: [u8; 6],
}

/// What can change, in the order in which it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Bridge,
    Port(u16),
    /// A port's rule, of what leaves or comes in. The last one, which denies, is said first.
    Rule(u16, bool, Reverse<u16>),
    /// What goes up in a VLAN.
    Up(u16),
    /// Port and VLAN.
    Member(u16, u16),
    /// VLAN and address.
    Station(u16, [u8; 6]),
    Multicast(Multicast),
}

/// How a port is in a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    pvid: bool,
    untagged: bool,
}

/// VLANs, ports and stations of one switch.
#[derive(Debug)]
pub struct Database {
    pub(crate) mac: [u8; 6],
    ageing_s: u32,
    tag_native: bool,
    vlans: BTreeMap<u16, Vlan>,
    pub(crate) ports: BTreeMap<u16, Port>,
    taps: BTreeMap<u16, TapOf>,
    stations: BTreeMap<(u16, [u8; 6]), u16>,
    /// Those that the chip has not learned, by what the CPU got of them, and when that was last. Said to nobody.
    heard: BTreeMap<(u16, [u8; 6]), (u16, u64)>,
    /// Set by hand.
    fixed: BTreeMap<(u16, [u8; 6]), u16>,
    /// Ports' carriers, as far as the chip has said.
    pub(crate) carriers: BTreeMap<u16, bool>,
    /// The groups that ports are in.
    pub(crate) groups: BTreeMap<u16, u16>,
    /// Ports' states of a spanning tree; without one a port forwards.
    pub(crate) states: BTreeMap<u16, State>,
    /// Rules of ports and of VLANs' devices.
    pub(crate) rules: Rules,
    pub(crate) multicast: Groups,
    touched: BTreeSet<What>,
    /// More was touched than is remembered.
    all: bool,
}

pub(crate) fn device(port: u16) -> u32 {
    BRIDGE + u32::from(port)
}

impl Database {
    /// With VLAN 1 and no ports. `mac` is the switch's.
    #[must_use]
    pub fn new(mac: [u8; 6]) -> Database {
        let default = Vlan {
            name: "default".into(),
            active: true,
        };
        Database {
            mac,
            ageing_s: 300,
            tag_native: false,
            vlans: BTreeMap::from([(DEFAULT_VLAN, default)]),
            ports: BTreeMap::new(),
            taps: BTreeMap::new(),
            stations: BTreeMap::new(),
            heard: BTreeMap::new(),
            fixed: BTreeMap::new(),
            carriers: BTreeMap::new(),
            groups: BTreeMap::new(),
            states: BTreeMap::new(),
            rules: Rules::default(),
            multicast: Groups::default(),
            touched: BTreeSet::new(),
            all: false,
        }
    }

    /// The device number that stands for a port of the database.
    #[must_use]
    pub fn device(port: u16) -> u32 {
        device(port)
    }

    /// VLANs by id.
    #[must_use]
    pub fn vlans(&self) -> &BTreeMap<u16, Vlan> {
        &self.vlans
    }

    /// Ports by number.
    #[must_use]
    pub fn ports(&self) -> &BTreeMap<u16, Port> {
        &self.ports
    }

    /// Stations that were learned, by the chip or else by what the CPU got: VLAN, address, port.
    pub fn stations(&self) -> impl Iterator<Item = (u16, [u8; 6], u16)> {
        let chips = self.stations.iter().map(|((v, m), p)| (*v, *m, *p));
        chips.chain(self.heard.iter().map(|((v, m), (p, _))| (*v, *m, *p)))
    }

    /// Stations that were set by hand: VLAN, address, port.
    pub fn fixed(&self) -> impl Iterator<Item = (u16, [u8; 6], u16)> {
        self.fixed.iter().map(|((v, m), p)| (*v, *m, *p))
    }

    /// The device of a VLAN that is routed.
    #[must_use]
    pub fn tap(&self, vid: u16) -> Option<TapOf> {
        self.taps.get(&vid).copied()
    }

    // -- changes ----------------------------------------------------------------------------------------------------

    /// A VLAN, new or changed.
    ///
    /// # Errors
    /// It is no VLAN id, or VLAN 1 were suspended.
    pub fn set_vlan(&mut self, vid: u16, vlan: Vlan) -> Result<(), Refusal> {
        checked(vid)?;
        if vid == DEFAULT_VLAN && !vlan.active {
            return Err(Refusal::DefaultVlan);
        }
        let was = self.is_active(vid);
        self.vlans.insert(vid, vlan);
        if was != self.is_active(vid) {
            self.vlan_changed(vid);
        }
        Ok(())
    }

    /// A VLAN goes. Ports and an interface that name it wait for it to come back.
    ///
    /// # Errors
    /// It is not there, or VLAN 1.
    pub fn remove_vlan(&mut self, vid: u16) -> Result<(), Refusal> {
        if vid == DEFAULT_VLAN {
            return Err(Refusal::DefaultVlan);
        }
        self.vlans.remove(&vid).ok_or(Refusal::NoSuchVlan(vid))?;
        self.vlan_changed(vid);
        Ok(())
    }

    /// A port of the switch that is the database's, or a group of such; new or changed.
    ///
    /// # Errors
    /// It has no number, or its mode names what is no VLAN id.
    pub fn set_port(&mut self, number: u16, port: Port) -> Result<(), Refusal> {
        groups::checked(number)?;
        match &port.mode {
            Mode::Access(vid) | Mode::Trunk { native: vid, .. } => checked(*vid)?,
        }
        let before = self.members_of(number);
        if self.ports.insert(number, port).is_none() {
            self.touch_group(number);
        }
        self.touch(What::Port(number));
        self.members_changed(number, &before);
        Ok(())
    }

    /// A port that is nobody's from here on, or another source's.
    ///
    /// # Errors
    /// It is not the database's.
    pub fn remove_port(&mut self, number: u16) -> Result<(), Refusal> {
        let before = self.members_of(number);
        let gone = self.ports.remove(&number);
        gone.ok_or(Refusal::NoSuchPort(number))?;
        self.touch_group(number);
        self.touch(What::Port(number));
        self.members_changed(number, &before);
        Ok(())
    }

    /// Frames of the native VLAN have a tag on trunks, and those without one are nobody's.
    pub fn set_tag_native(&mut self, on: bool) {
        if std::mem::replace(&mut self.tag_native, on) == on {
            return;
        }
        let trunks = self.ports.iter().filter_map(|(n, p)| match p.mode {
            Mode::Trunk { native, .. } => Some(What::Member(*n, native)),
            Mode::Access(_) => None,
        });
        let trunks: Vec<What> = trunks.collect();
        trunks.into_iter().for_each(|w| self.touch(w));
    }

    /// Stations that are not heard for so long are forgotten; 0: none is learned.
    pub fn set_ageing(&mut self, seconds: u32) {
        self.ageing_s = seconds;
        self.touch(What::Bridge);
    }

    /// A VLAN is routed by this device, or not. The VLAN may come later.
    ///
    /// # Errors
    /// It is no VLAN id, or the device is another VLAN's.
    pub fn set_tap(&mut self, vid: u16, tap: Option<TapOf>) -> Result<(), Refusal> {
        checked(vid)?;
        if let Some(new) = tap {
            let mut others = self.taps.iter().filter(|(v, _)| **v != vid);
            if let Some((other, _)) = others.find(|(_, t)| t.device == new.device) {
                return Err(Refusal::TapOfAnother {
                    device: new.device,
                    vid: *other,
                });
            }
        }
        let old = match tap {
            Some(new) => self.taps.insert(vid, new),
            None => self.taps.remove(&vid),
        };
        if old != tap {
            self.touch(What::Up(vid));
            for t in old.into_iter().chain(tap) {
                self.touch(What::Station(vid, t.mac));
            }
            self.touch_groups(vid, Some(0));
        }
        Ok(())
    }

    /// A station is behind this port, whatever the chip learns, or is so no longer. It waits for its VLAN, and for the
    /// port to be in it.
    ///
    /// # Errors
    /// It is no VLAN id, or the address is no station's.
    pub fn fix(&mut self, vid: u16, mac: [u8; 6], port: Option<u16>) -> Result<(), Refusal> {
        checked(vid)?;
        is_station(mac)?;
        let key = (vid, mac);
        let old = match port {
            Some(port) => self.fixed.insert(key, port),
            None => self.fixed.remove(&key),
        };
        if old != port {
            // what was learned of it is not to come back when it goes
            self.stations.remove(&key);
            self.heard.remove(&key);
            self.touch(What::Station(vid, mac));
        }
        Ok(())
    }

    /// Forgets learned stations: of all VLANs or of one, behind any port or this one.
    pub fn forget_stations(&mut self, vid: Option<u16>, port: Option<u16>) {
        let all = self.stations.iter().map(|((v, _), p)| (*v, *p));
        let heard = self.heard.iter().map(|((v, _), (p, _))| (*v, *p));
        let of =
            |(v, p): &(u16, u16)| vid.is_none_or(|vid| vid == *v) && port.is_none_or(|x| x == *p);
        let vids: BTreeSet<u16> = all.chain(heard).filter(of).map(|(v, _)| v).collect();
        for vid in vids {
            self.forget(vid, |p| port.is_none_or(|port| port == p));
        }
    }

    // -- what the chip says -----------------------------------------------------------------------------------------

    /// The chip has learned a station behind a device of ours.
    ///
    /// # Errors
    /// The device is not ours or not in this VLAN, the address is no station's, or there are as many as may be.
    pub(crate) fn learned(&mut self, on: u32, vid: u16, mac: [u8; 6]) -> Result<(), Refusal> {
        let port = self.port_of(on)?;
        self.member(port, vid)
            .ok_or(Refusal::NotInVlan { port, vid })?;
        is_station(mac)?;
        let key = (vid, mac);
        if self.fixed.contains_key(&key) {
            return Ok(());
        }
        if self.stations.len() >= STATIONS && !self.stations.contains_key(&key) {
            return Err(Refusal::Stations);
        }
        self.heard.remove(&key);
        if self.stations.insert(key, port) != Some(port) {
            self.touch(What::Station(vid, mac));
        }
        Ok(())
    }

    /// The chip has forgotten one, behind this device.
    pub(crate) fn aged(&mut self, on: u32, vid: u16, mac: [u8; 6]) {
        let there = self.stations.get(&(vid, mac)).copied();
        if there.is_some_and(|port| device(port) == on) {
            self.stations.remove(&(vid, mac));
            self.touch(What::Station(vid, mac));
        }
    }

    /// All behind this device in a VLAN.
    pub(crate) fn flush(&mut self, on: u32, vid: u16) {
        self.forget(vid, |port| device(port) == on);
    }

    /// A frame from this station came to the CPU. The chip learns by itself what it looks at; of a port whose frames all
    /// trap it learns nobody.
    pub fn heard(&mut self, port: u16, vid: u16, mac: [u8; 6], now_ns: u64) {
        let key = (vid, mac);
        let own = self.taps.get(&vid).is_some_and(|t| t.mac == mac);
        let no_station = is_station(mac).is_err() || own || self.fixed.contains_key(&key);
        let learns = self.state(port) != State::Blocking;
        if no_station || !learns || self.ageing_s == 0 || self.member(port, vid).is_none() {
            return;
        }
        match self.stations.get(&key) {
            Some(there) if *there == port => return,
            // the chip does not see that it is here now
            Some(_) => {
                self.stations.remove(&key);
                self.touch(What::Station(vid, mac));
            }
            None => {}
        }
        if self.heard.len() < STATIONS || self.heard.contains_key(&key) {
            self.heard.insert(key, (port, now_ns));
        }
    }

    /// Forgets those that the CPU has not heard for the ageing time. False: there are none left.
    pub fn age(&mut self, now_ns: u64) -> bool {
        let time = u64::from(self.ageing_s).saturating_mul(1_000_000_000);
        self.heard
            .retain(|_, (_, at)| now_ns.saturating_sub(*at) < time);
        !self.heard.is_empty()
    }

    // -- what packets of the CPU need -------------------------------------------------------------------------------

    /// The VLAN of a frame that came in by a port with this tag; 0: without one. None: the port lets no such frame in.
    #[must_use]
    pub fn vlan_at(&self, port: u16, tag: u16) -> Option<u16> {
        match tag {
            0 => {
                let vid = match self.ports.get(&port)?.mode {
                    Mode::Access(vid) | Mode::Trunk { native: vid, .. } => vid,
                };
                self.member(port, vid).filter(|m| m.pvid).map(|_| vid)
            }
            vid => self.member(port, vid).map(|_| vid),
        }
    }

    /// By which ports a frame of a VLAN leaves that the CPU sends to this address, and whether with its tag.
    #[must_use]
    pub fn ways(&self, vid: u16, to: [u8; 6]) -> Vec<(u16, bool)> {
        let way = |port: u16| {
            let member = self.member(port, vid).filter(|_| self.sends(port))?;
            Some((port, !member.untagged))
        };
        let key = (vid, to);
        let heard = || self.heard.get(&key).map(|(port, _)| port);
        let known = self.fixed.get(&key).or_else(|| self.stations.get(&key));
        match known.or_else(heard) {
            Some(port) => way(*port).into_iter().collect(),
            None => self.ports.keys().filter_map(|p| way(*p)).collect(),
        }
    }

    /// Whether a VLAN has a port with carrier. None: there is no such one, and of some it is not known.
    #[must_use]
    pub fn is_alive(&self, vid: u16) -> Option<bool> {
        let up = self.ports.iter().filter(|(_, p)| p.up).map(|(n, _)| n);
        let mut alive = Some(false);
        for port in up.filter(|n| self.member(**n, vid).is_some()) {
            match self.carrier(*port) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => alive = None,
            }
        }
        alive
    }

    /// Not shut down, nor known to have no carrier, nor held back by a spanning tree.
    fn sends(&self, port: u16) -> bool {
        self.state(port) == State::Forwarding
            && self.ports.get(&port).is_some_and(|p| p.up)
            && self.carrier(port) != Some(false)
    }

    // -- what is said -----------------------------------------------------------------------------------------------

    /// An object as it is now; none: it is not there.
    pub(crate) fn object(&self, what: What) -> Option<Object> {
        let vlan = |ifindex, vid, m: Member, tap| {
            Object::BridgeVlan(BridgeVlan {
                ifindex,
                vid,
                pvid: m.pvid,
                untagged: m.untagged,
                state: BR_STATE_FORWARDING,
                unsupported: None,
                tap,
            })
        };
        match what {
            What::Bridge => Some(Object::Link(self.bridge())),
            What::Port(n) => {
                let port = self.ports.get(&n)?;
                let single = groups::group_of_port(n).is_none();
                match self.is_bridged(n) {
                    true => Some(Object::Link(port_link(n, port, self.state(n)))),
                    false => {
                        single.then(|| Object::Link(groups::of_group(n, port, self.master(n))))
                    }
                }
            }
            What::Rule(port, egress, Reverse(n)) => {
                let rule = self.rule(port, egress, n)?;
                Some(Object::Filter(Box::new(rule.clone())))
            }
            What::Up(vid) => {
                let tap = self.taps.get(&vid).filter(|_| self.is_active(vid))?;
                let tagged = Member {
                    pvid: false,
                    untagged: false,
                };
                Some(vlan(BRIDGE, vid, tagged, tap.device))
            }
            What::Member(n, vid) => Some(vlan(device(n), vid, self.member(n, vid)?, 0)),
            What::Station(vid, mac) => self.station(vid, mac).map(Object::Fdb),
            What::Multicast(what) => self.multicast(what),
        }
    }

    /// What it is called, there or not.
    pub(crate) fn key(what: What) -> Key {
        match what {
            What::Bridge => Key::Link(BRIDGE),
            What::Port(n) => Key::Link(device(n)),
            What::Rule(port, egress, Reverse(n)) => Key::Filter(rules::key(port, egress, n)),
            What::Up(vid) => Key::BridgeVlan(BRIDGE, vid),
            What::Member(n, vid) => Key::BridgeVlan(device(n), vid),
            What::Station(vlan, mac) => Key::Fdb(FdbKey {
                bridge: BRIDGE,
                vlan,
                mac,
            }),
            What::Multicast(what) => what.key(),
        }
    }

    /// All that may be there.
    pub(crate) fn every(&self) -> BTreeSet<What> {
        let mut all = BTreeSet::from([What::Bridge]);
        for n in self.ports.keys() {
            all.insert(What::Port(*n));
            all.extend(self.members_of(*n).iter().map(|vid| What::Member(*n, vid)));
        }
        for (vid, tap) in &self.taps {
            all.extend([What::Up(*vid), What::Station(*vid, tap.mac)]);
        }
        all.extend(self.every_rule());
        all.extend(self.every_group());
        let stations = self.stations.keys().chain(self.fixed.keys());
        all.extend(stations.map(|(vid, mac)| What::Station(*vid, *mac)));
        all
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.all || !self.touched.is_empty()
    }

    /// The next that was touched.
    pub(crate) fn take(&mut self) -> Option<What> {
        self.touched.pop_first()
    }

    /// More was touched than is remembered: all is to be said.
    pub(crate) fn is_all_touched(&self) -> bool {
        self.all
    }

    /// All of it is said anew: nothing need be said of what was touched.
    pub(crate) fn untouch(&mut self) {
        self.touched.clear();
        self.all = false;
    }

    // -- inside -----------------------------------------------------------------------------------------------------

    pub(crate) fn touch(&mut self, what: What) {
        if self.all {
            return;
        }
        self.touched.insert(what);
        if self.touched.len() > TOUCHED {
            self.touched.clear();
            self.all = true;
        }
    }

    pub(crate) fn is_active(&self, vid: u16) -> bool {
        self.vlans.get(&vid).is_some_and(|v| v.active)
    }

    fn member(&self, port: u16, vid: u16) -> Option<Member> {
        let here = self.is_active(vid) && self.is_bridged(port);
        let port = self.ports.get(&port).filter(|_| here)?;
        match &port.mode {
            Mode::Access(access) => (*access == vid).then_some(Member {
                pvid: true,
                untagged: true,
            }),
            Mode::Trunk { native, allowed } => allowed.contains(vid).then(|| {
                let bare = *native == vid && !self.tag_native;
                Member {
                    pvid: bare,
                    untagged: bare,
                }
            }),
        }
    }

    pub(crate) fn is_in(&self, port: u16, vid: u16) -> bool {
        self.member(port, vid).is_some()
    }

    pub(crate) fn members_of(&self, port: u16) -> VlanSet {
        let all = self.vlans.keys().copied();
        all.filter(|vid| self.member(port, *vid).is_some())
            .collect()
    }

    /// A port's VLANs are others: those that it is in otherwise as well are looked at.
    pub(crate) fn members_changed(&mut self, port: u16, before: &VlanSet) {
        self.touch_router(port);
        let after = self.members_of(port);
        let either = IDS.filter(|vid| before.contains(*vid) || after.contains(*vid));
        for vid in either {
            self.touch(What::Member(port, vid));
            self.touch_fixed(vid, Some(port));
            self.touch_groups(vid, Some(port));
            if !after.contains(vid) {
                self.forget(vid, |p| p == port);
            }
        }
    }

    /// A VLAN came, went, or has another state.
    fn vlan_changed(&mut self, vid: u16) {
        self.touch(What::Up(vid));
        if let Some(tap) = self.taps.get(&vid) {
            self.touch(What::Station(vid, tap.mac));
        }
        let ports: Vec<u16> = self.ports.keys().copied().collect();
        for port in ports {
            self.touch(What::Member(port, vid));
        }
        self.touch_fixed(vid, None);
        self.touch_groups(vid, None);
        if !self.is_active(vid) {
            self.forget(vid, |_| true);
        }
    }

    /// Stations set by hand in a VLAN, behind any port or this one.
    fn touch_fixed(&mut self, vid: u16, port: Option<u16>) {
        let of_vlan = self.fixed.range((vid, [0; 6])..=(vid, [u8::MAX; 6]));
        let some = of_vlan.filter(|(_, p)| port.is_none_or(|port| port == **p));
        for (vid, mac) in some.map(|(k, _)| *k).collect::<Vec<_>>() {
            self.touch(What::Station(vid, mac));
        }
    }

    fn forget(&mut self, vid: u16, behind: impl Fn(u16) -> bool) {
        self.heard
            .retain(|(v, _), (port, _)| *v != vid || !behind(*port));
        let of_vlan = self.stations.range((vid, [0; 6])..=(vid, [u8::MAX; 6]));
        let gone = of_vlan.filter(|(_, port)| behind(**port)).map(|(k, _)| *k);
        for (vid, mac) in gone.collect::<Vec<_>>() {
            self.stations.remove(&(vid, mac));
            self.touch(What::Station(vid, mac));
        }
    }

    fn port_of(&self, on: u32) -> Result<u16, Refusal> {
        let number = on.checked_sub(BRIDGE).and_then(|n| u16::try_from(n).ok());
        number
            .filter(|port| self.ports.contains_key(port))
            .ok_or(Refusal::NoSuchDevice(on))
    }

    fn station(&self, vid: u16, mac: [u8; 6]) -> Option<FdbEntry> {
        let local = self.taps.get(&vid).is_some_and(|t| t.mac == mac);
        let fixed = self.fixed.get(&(vid, mac)).copied();
        let (ifindex, kind) = match (local && self.is_active(vid), fixed) {
            (true, _) => (BRIDGE, FdbKind::Local),
            (false, Some(port)) => {
                self.member(port, vid)?;
                (device(port), FdbKind::Static)
            }
            (false, None) => {
                let port = self.stations.get(&(vid, mac))?;
                (device(*port), FdbKind::ExternLearn)
            }
        };
        Some(FdbEntry {
            bridge: BRIDGE,
            vlan: vid,
            mac,
            ifindex,
            kind,
            sticky: kind == FdbKind::Static,
        })
    }

    fn bridge(&self) -> Link {
        Link {
            ifindex: BRIDGE,
            name: "vlans".into(),
            kind: LinkKind::Bridge(BridgeInfo {
                vlan_filtering: true,
                ageing_s: self.ageing_s,
                ..BridgeInfo::default()
            }),
            mac: self.mac,
            ..plain()
        }
    }
}

/// What devices of the database have in common.
fn plain() -> Link {
    Link {
        ifindex: 0,
        name: String::new(),
        kind: LinkKind::Loopback,
        master: 0,
        lower: 0,
        promiscuous: false,
        admin_up: true,
        carrier: true,
        mtu: 1500,
        mac: [0; 6],
        bridge_port: None,
        bond_active: false,
        mc_forwarding: false,
    }
}

pub(crate) fn port_link(number: u16, port: &Port, state: State) -> Link {
    Link {
        ifindex: device(number),
        name: port.name.clone(),
        kind: groups::kind(number),
        master: BRIDGE,
        admin_up: port.up,
        mtu: port.mtu,
        mac: port.mac,
        bridge_port: Some(BridgePort {
            state: state.number(),
            ..BridgePort::default()
        }),
        ..plain()
    }
}

fn checked(vid: u16) -> Result<(), Refusal> {
    match IDS.contains(&vid) {
        true => Ok(()),
        false => Err(Refusal::NoVlanId(vid)),
    }
}
