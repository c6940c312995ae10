//! The kernel and the VLAN database: who says what of a VLAN that is routed.
//!
//! ```text
//!   kernel: device 57 (10.10.0.1/24), device 58 (10.20.0.1/24), swp4, routes ─┐
//!   vlans:  port 1 access 10, port 2 access 20, port 3 trunk 10,20;           ├─► store ─► firmware ─► a packet
//!           VLAN 10 goes up to device 57, VLAN 20 to device 58 ───────────────┘
//! ```

use super::*;
use tandem_core::source::Source as _;
use tandem_vlans::{Database, Mode, Port, Switch, TapOf, Vlan, VlanSet, tagged};

const VLANS: u8 = 9;
/// The kernel's numbers of the two TAPs.
const TAPS: [(u16, u32); 2] = [(10, 57), (20, 58)];

/// The MAC of a VLAN's TAP.
fn tap_mac(vid: u16) -> [u8; 6] {
    mac(200 + vid as u8)
}

/// A TAP as the kernel's source says it: `10.VID.0.1/24`, and stations `.2` and `.3`.
fn tap(vid: u16, i: u32) -> Vec<Object> {
    let link = Link {
        ifindex: i,
        name: format!("vlan{vid}"),
        kind: LinkKind::Other("tun".into()),
        mac: tap_mac(vid),
        ..swp(1)
    };
    vec![
        Object::Link(link),
        forwarding(Family::V4, ConfScope::Interface(i)),
        addr(i, &format!("10.{vid}.0.1/24")),
        local(&format!("10.{vid}.0.1/32"), i, RouteType::Local),
        via(&format!("10.{vid}.0.0/24"), i, ""),
        neigh(i, &format!("10.{vid}.0.2"), 100 + vid as u8),
        neigh(i, &format!("10.{vid}.0.3"), 101 + vid as u8),
    ]
}

fn kernel_says() -> Vec<Object> {
    let mut all = Vec::new();
    for f in [Family::V4, Family::V6] {
        all.push(rule(f, 32765, TABLE_LOCAL, false));
        all.push(rule(f, 32766, TABLE_MAIN, false));
    }
    for (vid, i) in TAPS {
        all.extend(tap(vid, i));
    }
    all.extend(interface(4, 0, None));
    all.push(via("20.0.0.0/8", 58, "10.20.0.2"));
    all
}

fn switch() -> Switch {
    let mut d = Database::new(mac(199));
    let trunk = Mode::Trunk {
        native: 1,
        allowed: [10, 20].into_iter().collect::<VlanSet>(),
    };
    for (n, mode) in [(1, Mode::Access(10)), (2, Mode::Access(20)), (3, trunk)] {
        let port = Port {
            name: format!("GigabitEthernet1/0/{n}"),
            mac: mac(n as u8),
            mtu: 1500,
            up: true,
            mode,
        };
        d.set_port(n, port).unwrap();
    }
    for (vid, device) in TAPS {
        d.set_vlan(vid, vlan(true)).unwrap();
        let mac = tap_mac(vid);
        d.set_tap(vid, Some(TapOf { device, mac })).unwrap();
    }
    Switch::new(d)
}

fn vlan(active: bool) -> Vlan {
    let name = String::from("a");
    Vlan { name, active }
}

/// The chip has learned the stations: .2 of each VLAN behind the trunk, .3 behind the access port.
fn learn(source: &tandem_vlans::Vlans) {
    let mut writes = Vec::new();
    for (vlan, access) in [(10u16, 1), (20, 2)] {
        for (n, port) in [(100, 3), (101, access)] {
            writes.push(Write::FdbLearned {
                ifindex: Database::device(port),
                mac: mac(n + vlan as u8),
                vlan,
            });
        }
    }
    let mut writer = source.writer().unwrap();
    writer.write(&writes, &mut |_, e| panic!("{e}")).unwrap();
}

fn seats(kernel: &Arc<Fake>, vlans: tandem_vlans::Vlans) -> Vec<Seat> {
    let seat = |source, ports: &[u16]| Seat {
        source,
        ports: ports.to_vec(),
        hold_ns: HOLD,
    };
    let kernel: Arc<dyn tandem_core::source::Source + Sync> = kernel.clone();
    vec![seat(kernel, &[4]), seat(Arc::new(vlans), &[1, 2, 3])]
}

struct World {
    rig: Rig,
    kernel: Arc<Fake>,
    switch: Switch,
}

impl World {
    fn new() -> World {
        let mut w = World::on(chip(), Attach::Cold, switch());
        assert_eq!(audit(&mut w.rig), Ok(0));
        w.rig.changes();
        w
    }

    /// A core, and sources, on a chip that may have something.
    fn on(chip: Shared, how: Attach, switch: Switch) -> World {
        let kernel = Fake::told(KERNEL, "kernel", kernel_says());
        let (vlans, teller) = switch.source(SourceId(VLANS), None);
        let front = |port| Front {
            port,
            name: format!("port {port}"),
            ifindex: match port {
                4 => 14,
                _ => Database::device(port),
            },
        };
        if switch.change(|d| d.stations().next().is_none()) {
            learn(&vlans);
        }
        let seats = seats(&kernel, vlans);
        let mut rig = Rig::seated(chip, how, (1..=4).map(front).collect(), seats);
        rig.teller = Some(teller);
        rig.settle();
        let mut w = World {
            rig,
            kernel,
            switch,
        };
        w.all_is_routed();
        w
    }

    /// A new source over the same database.
    fn vlans_come(&mut self) {
        let (vlans, teller) = self.switch.source(SourceId(VLANS), None);
        self.rig.teller = Some(teller);
        self.rig.core.replace_source(Arc::new(vlans)).unwrap();
    }

    /// Nothing of it is left but its database.
    fn vlans_die(&mut self) {
        self.rig.teller = None;
    }

    fn kernel_comes(&mut self) {
        self.kernel = Fake::told(KERNEL, "kernel", kernel_says());
        self.rig.core.replace_source(self.kernel.clone()).unwrap();
    }

    /// What the chip makes of a frame: what leaves, and whether the CPU gets it.
    fn pass(&mut self, port: u16, frame: &[u8]) -> (Vec<(u16, Vec<u8>)>, bool) {
        let mut passed = Passed::default();
        let now = self.rig.now;
        self.rig.chip.lock().look(port, frame, now, &mut passed);
        (passed.out, !passed.cpu.is_empty())
    }

    fn is_routed(&mut self, (port, frame): (u16, Vec<u8>), to: (u16, Vec<u8>)) {
        assert_eq!(self.pass(port, &frame), (vec![to], false));
    }

    /// From VLAN to VLAN by the chip, with and without tags as the ports have it, and to port 4.
    fn all_is_routed(&mut self) {
        let there = [10, 20, 0, 2];
        let bare = packet(tap_mac(10), there);
        let out = tagged(&routed(&bare, tap_mac(20), mac(120)), 20).unwrap();
        self.is_routed((1, bare.clone()), (3, out.clone()));
        self.is_routed((3, tagged(&bare, 10).unwrap()), (3, out));
        let bare = packet(tap_mac(10), [10, 20, 0, 3]);
        let out = routed(&bare, tap_mac(20), mac(121));
        self.is_routed((1, bare.clone()), (2, out.clone()));
        self.is_routed((3, tagged(&bare, 10).unwrap()), (2, out));
        let bare = packet(mac(4), [20, 0, 0, 1]);
        let out = tagged(&routed(&bare, tap_mac(20), mac(120)), 20).unwrap();
        self.is_routed((4, bare), (3, out));
        let bare = packet(tap_mac(20), [10, 4, 0, 2]);
        let out = routed(&bare, mac(4), mac(104));
        self.is_routed((2, bare), (4, out));
        self.all_is_bridged();
    }

    /// Within VLAN 20, and from there nowhere else.
    fn all_is_bridged(&mut self) {
        let bare = packet(mac(120), [10, 20, 0, 2]);
        let with = tagged(&bare, 20).unwrap();
        assert_eq!(self.pass(2, &bare), (vec![(3, with.clone())], false));
        let back = packet(mac(121), [10, 20, 0, 3]);
        let tag = |vid| tagged(&back, vid).unwrap();
        let there = (vec![(2, back.clone())], false);
        assert_eq!(self.pass(3, &tag(20)), there);
        // no native VLAN, another VLAN, and an access port's frame with a tag of another
        assert_eq!(self.pass(3, &back).0, []);
        assert_eq!(self.pass(3, &tag(30)).0, []);
        assert_eq!(self.pass(1, &with).0, []);
    }

    fn traps(&mut self, port: u16, frame: &[u8]) {
        assert_eq!(self.pass(port, frame), (vec![], true));
    }

    fn table(&mut self, cls: u16) -> Vec<(usize, u16, Vec<u8>)> {
        let all = self.rig.changes().into_iter().enumerate();
        let of_it = all.filter(|(_, c)| c.1 == cls);
        of_it.map(|(n, (op, _, body))| (n, op, body)).collect()
    }
}

/// What the chip makes of a packet that it routes: what fills it up to the shortest frame is the next port's to add.
fn routed(frame: &[u8], from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let len = u16::from_be_bytes([frame[16], frame[17]]);
    let mut f = frame[..14 + usize::from(len)].to_vec();
    f[..6].copy_from_slice(&to);
    f[6..12].copy_from_slice(&from);
    f[22] -= 1;
    // one less in the high byte of a word: one more there in the sum (RFC 1624)
    let sum = u16::from_be_bytes([f[24], f[25]]);
    let (sum, carry) = sum.overflowing_add(0x100);
    f[24..26].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    f
}

/// Where a write of this class is first that deletes something.
fn deletes(changes: &[(u16, u16, Vec<u8>)], class: u16) -> Option<usize> {
    let mut all = changes.iter();
    all.position(|(op, cls, _)| (*op, *cls) == (raw::TND_OP_DELETE, class))
}

/// Of VLAN 20: what leads there traps or goes, then the next hop and the neighbours go, the router interface, and the
/// domain last.
fn referrers_go_first(changes: &[(u16, u16, Vec<u8>)]) {
    let mut all = changes.iter();
    let routed = all.position(|(_, cls, body)| {
        *cls == raw::TND_CLS_ROUTE && read_object::<raw::tnd_route>(body).unwrap().0.addr[0] == 20
    });
    let nexthop = deletes(changes, raw::TND_CLS_NEXTHOP);
    let mut all = changes.iter();
    let rif = all.position(|(op, cls, body)| {
        (*op, *cls) == (raw::TND_OP_DELETE, raw::TND_CLS_RIF)
            && read_object::<raw::tnd_rif>(body).unwrap().0.fid == 20
    });
    let order = [routed.unwrap(), nexthop.unwrap(), rif.unwrap()];
    assert!(order.is_sorted(), "{order:?}");
    let neighbours = changes.iter().enumerate().filter(|(_, (_, cls, body))| {
        *cls == raw::TND_CLS_NEIGH
            && read_object::<raw::tnd_neigh>(body).unwrap().0.addr[..2] == [10, 20]
    });
    let neighbours: Vec<usize> = neighbours.map(|(n, _)| n).collect();
    assert_eq!(neighbours.len(), 2);
    assert!(neighbours.iter().all(|n| Some(n) < rif.as_ref()));
    if let Some(vlan) = deletes(changes, raw::TND_CLS_VLAN) {
        assert!(rif.unwrap() < vlan);
        assert!(deletes(changes, raw::TND_CLS_VLAN_MEMBER).unwrap() < vlan);
    }
}

#[test]
fn a_vlan_is_routed_by_a_device_of_the_kernel() {
    let mut w = World::new();
    // what is not for the router, and what only the kernel can answer
    w.traps(1, &packet(tap_mac(10), [10, 10, 0, 1]));
    w.traps(1, &packet(tap_mac(10), [10, 20, 0, 9]));
    w.traps(1, &packet(tap_mac(10), [99, 0, 0, 1]));
    // who asks for the router's address is heard in each VLAN that is routed
    let mut arp = packet([0xff; 6], [10, 20, 0, 1]);
    arp[12..14].copy_from_slice(&[8, 6]);
    let (out, cpu) = w.pass(2, &arp);
    assert_eq!(out, [(3, tagged(&arp, 20).unwrap())]);
    assert!(cpu);
}

#[test]
fn either_source_may_die() {
    let mut w = World::new();
    w.vlans_die();
    w.rig.run(HOLD - SECOND);
    w.all_is_routed();
    w.vlans_come();
    w.rig.run(HOLD);
    assert!(w.rig.core.settled());
    assert_eq!(w.rig.changes(), [], "it says what it had said");
    w.all_is_routed();
    w.kernel.kill();
    w.rig.run(HOLD - SECOND);
    w.all_is_routed();
    w.kernel_comes();
    w.rig.run(HOLD);
    assert!(w.rig.core.settled());
    assert_eq!(w.rig.changes(), []);
    w.all_is_routed();
    assert_eq!(audit(&mut w.rig), Ok(0));
}

/// What the chip has, by class.
fn tables(chip: &Shared) -> Vec<(u16, Vec<u8>)> {
    let all = [
        raw::TND_CLS_PORT,
        raw::TND_CLS_VLAN,
        raw::TND_CLS_VLAN_MEMBER,
        raw::TND_CLS_FDB,
        raw::TND_CLS_RIF,
        raw::TND_CLS_NEIGH,
        raw::TND_CLS_NEXTHOP,
        raw::TND_CLS_NHG,
        raw::TND_CLS_ROUTE,
    ];
    let mut chip = chip.lock();
    let rows = all.map(|cls| {
        let mut dump = raw::tnd_cmd {
            op: raw::TND_OP_DUMP,
            cls,
            out_size: 65536,
            ..Default::default()
        };
        let mut rows = Vec::new();
        loop {
            let answer = chip.firmware.execute(&dump, &[], &mut rows, 0);
            assert_eq!(answer.status, raw::TND_ST_OK);
            dump.arg = answer.result;
            if dump.arg == 0 {
                return (cls, rows);
            }
        }
    });
    rows.to_vec()
}

/// Another core finds what the last one has left, and writes nothing again.
#[test]
fn the_core_may_die() {
    let w = World::new();
    let (chip, switch) = (w.rig.chip.clone(), w.switch.clone());
    let had = tables(&chip);
    assert!(
        had.iter()
            .all(|(cls, rows)| !rows.is_empty() || *cls == raw::TND_CLS_NHG)
    );
    drop(w);
    let mut w = World::on(chip.clone(), Attach::Warm, switch);
    let mut changes = w.rig.changes();
    changes.retain(|c| c.0 != raw::TND_OP_END_RESYNC);
    let written: Vec<(u16, u16)> = changes.iter().map(|c| (c.0, c.1)).collect();
    let again = |c: &(u16, u16)| c.0 == raw::TND_OP_CREATE;
    assert!(written.iter().all(again), "all is there: {written:?}");
    assert_eq!(tables(&chip), had, "and nothing but that");
    assert_eq!(audit(&mut w.rig), Ok(0));
}

#[test]
fn without_the_database_its_vlans_trap_and_go() {
    let mut w = World::new();
    w.vlans_die();
    w.rig.run(HOLD + SECOND);
    assert!(w.rig.core.settled());
    assert!(w.rig.warned("vlans is not there"));
    let changes = w.rig.changes();
    referrers_go_first(&changes);
    assert_eq!(w.pass(1, &packet(tap_mac(10), [10, 20, 0, 2])).0, []);
    // what led there is the kernel's still, and the chip leaves it to it
    w.traps(4, &packet(mac(4), [20, 0, 0, 1]));
    let bare = packet(mac(4), [10, 4, 0, 2]);
    let out = routed(&bare, mac(4), mac(104));
    // back where it came from: the CPU has a copy, for a redirect
    assert_eq!(w.pass(4, &bare), (vec![(4, out)], true));
    assert_eq!(audit(&mut w.rig), Ok(0));
    w.vlans_come();
    w.rig.settle();
    w.all_is_routed();
    assert_eq!(audit(&mut w.rig), Ok(0));
}

#[test]
fn without_the_kernel_the_vlans_are_bridged() {
    let mut w = World::new();
    w.kernel.kill();
    w.rig.run(HOLD + SECOND);
    assert!(w.rig.core.settled());
    let changes = w.rig.changes();
    referrers_go_first(&changes);
    for (op, cls, body) in &changes {
        let of_database = [
            raw::TND_CLS_VLAN,
            raw::TND_CLS_VLAN_MEMBER,
            raw::TND_CLS_FDB,
        ];
        assert!(!of_database.contains(cls), "op {op}, class {cls}: {body:?}");
        if *cls == raw::TND_CLS_PORT {
            assert_eq!(read_object::<raw::tnd_port>(body).unwrap().0.port, 4);
        }
    }
    w.all_is_bridged();
    w.kernel_comes();
    w.rig.settle();
    w.all_is_routed();
    assert_eq!(audit(&mut w.rig), Ok(0));
}

#[test]
fn a_vlan_that_goes_traps_before_its_domain_goes() {
    for suspended in [false, true] {
        let mut w = World::new();
        w.switch.change(|d| match suspended {
            true => d.set_vlan(20, vlan(false)).unwrap(),
            false => d.remove_vlan(20).unwrap(),
        });
        w.rig.settle();
        let changes = w.rig.changes();
        referrers_go_first(&changes);
        assert!(deletes(&changes, raw::TND_CLS_VLAN).is_some());
        for (_, cls, body) in &changes {
            if *cls == raw::TND_CLS_VLAN {
                let fid = read_object::<raw::tnd_vlan>(body).unwrap().0.fid;
                assert_eq!(fid, 20, "the other VLAN stays as it is");
            }
        }
        w.traps(1, &packet(tap_mac(10), [10, 20, 0, 2]));
        assert_eq!(w.pass(2, &packet(tap_mac(20), [10, 10, 0, 2])).0, []);
        assert_eq!(audit(&mut w.rig), Ok(0));
        // back: its stations are to be learned anew
        w.switch.change(|d| d.set_vlan(20, vlan(true))).unwrap();
        let (vlans, teller) = w.switch.source(SourceId(VLANS), None);
        learn(&vlans);
        w.rig.teller = Some(teller);
        w.rig.run(SECOND);
        w.rig.core.replace_source(Arc::new(vlans)).unwrap();
        w.rig.settle();
        w.all_is_routed();
        assert_eq!(audit(&mut w.rig), Ok(0));
    }
}

/// `no interface vlan 20`, of which the one source or the other tells first.
#[test]
fn an_interface_that_goes_leaves_its_vlan() {
    for kernel_first in [false, true] {
        let mut w = World::new();
        let link = Event::Remove(SourceId(KERNEL), Key::Link(58));
        if kernel_first {
            w.kernel.pass(std::slice::from_ref(&link));
            w.rig.settle();
        }
        w.switch.change(|d| d.set_tap(20, None)).unwrap();
        w.rig.settle();
        if !kernel_first {
            w.traps(1, &packet(tap_mac(10), [10, 20, 0, 2]));
            w.kernel.pass(&[link]);
            w.rig.settle();
        }
        let changes = w.rig.changes();
        referrers_go_first(&changes);
        assert_eq!(deletes(&changes, raw::TND_CLS_VLAN), None);
        w.all_is_bridged();
    }
}

/// What the kernel's bridges do, the database's does not.
#[test]
fn chains_of_the_kernels_bridges_are_not_the_databases() {
    let mut w = World::new();
    let chain = |family| {
        Object::BaseChain(BaseChain {
            family,
            table: "t".into(),
            name: "forward".into(),
            hook: 2,
            devices: Vec::new(),
        })
    };
    // bridge: what is bridged there
    w.kernel.say(chain(7));
    w.rig.settle();
    w.all_is_routed();
    // ip: what is routed, and with br_netfilter what is bridged there
    w.kernel.say(chain(2));
    let ip = NfCall {
        ip: true,
        ..NfCall::default()
    };
    w.kernel.say(Object::Settings(Settings {
        nf_call: ip,
        ..Settings::default()
    }));
    w.rig.settle();
    w.traps(1, &packet(tap_mac(10), [10, 20, 0, 2]));
    w.all_is_bridged();
}

#[test]
fn a_port_has_one_source() {
    let kernel = Fake::told(KERNEL, "kernel", kernel_says());
    let (vlans, _teller) = switch().source(SourceId(VLANS), None);
    let mut two = seats(&kernel, vlans);
    two[0].ports.push(2);
    let error = Sources::new(two).err().unwrap();
    assert_eq!(error.0, "port 2 is claimed by kernel and by vlans");

    let mut w = World::new();
    w.kernel.say(Object::Link(swp(2)));
    w.rig.settle();
    assert!(w.rig.warned("kernel: port 2 belongs to vlans"));
    let port = w.switch.change(|d| d.ports()[&2].clone());
    w.switch.change(|d| d.set_port(4, port)).unwrap();
    w.rig.settle();
    assert!(w.rig.warned("vlans: port 4 belongs to kernel"));
    assert_eq!(w.table(raw::TND_CLS_PORT), []);
    w.all_is_routed();
}
