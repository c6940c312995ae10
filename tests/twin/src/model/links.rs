//! Devices: up and down, carrier, the link watch; and what hangs on them.

use super::Net;
use super::messages::{INET, INET6, Message, NEWLINK, NEWNETCONF, attribute};

pub const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;
const IFF_RUNNING: u32 = 0x40;
const IFF_LOWER_UP: u32 = 0x1_0000;
const OPER_UNKNOWN: u8 = 0;
const OPER_DOWN: u8 = 2;
const OPER_UP: u8 = 6;

/// include/uapi/linux/netconf.h
const CONF_IFINDEX: u16 = 1;
const CONF_FORWARDING: u16 = 2;
const CONF_RP_FILTER: u16 = 3;
const CONF_MC_FORWARDING: u16 = 4;
const CONF_PROXY_NEIGH: u16 = 5;
const CONF_IGNORE: u16 = 6;
const CONF_BC_FORWARDING: u16 = 8;

/// What befell a device (include/linux/netdevice.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Up,
    Down,
    /// Carrier came or went.
    Change,
}

#[derive(Debug, Clone, Copy)]
pub struct Addr4 {
    pub local: u32,
    pub len: u8,
    pub scope: u8,
    pub secondary: bool,
}

impl Addr4 {
    pub fn mask(&self) -> u32 {
        super::mask4(self.len)
    }

    /// `inet_ifa_match`
    pub fn covers(&self, a: u32) -> bool {
        (a ^ self.local) & self.mask() == 0
    }
}

#[derive(Debug, Clone)]
pub struct Dev {
    pub index: u32,
    pub name: String,
    pub mac: [u8; 6],
    pub up: bool,
    pub carrier: bool,
    oper: u8,
    /// The host's end is up.
    pub cable: bool,
    /// The link watch has something to do.
    watch: bool,
    pub forwarding: bool,
    /// `ignore_routes_with_linkdown`
    pub ignore: bool,
    /// IPv6 is at work (`IF_READY`).
    pub ready: bool,
    pub addrs4: Vec<Addr4>,
    /// IPv4's group of all hosts is in the filter.
    all_hosts: bool,
}

impl Dev {
    pub fn new(index: u32, name: &str, mac: [u8; 6]) -> Self {
        Self {
            index,
            name: name.to_owned(),
            mac,
            up: false,
            carrier: index == 1,
            oper: if index == 1 { OPER_UNKNOWN } else { OPER_DOWN },
            cable: false,
            watch: false,
            forwarding: true,
            ignore: false,
            ready: false,
            addrs4: Vec::new(),
            all_hosts: false,
        }
    }

    pub const fn is_lo(&self) -> bool {
        self.index == 1
    }

    /// `dev_get_flags`
    pub const fn flags(&self) -> u32 {
        let mut flags = if self.is_lo() { IFF_LOOPBACK } else { 0x1002 };
        if self.up {
            flags |= IFF_UP;
            if self.oper == OPER_UP || self.oper == OPER_UNKNOWN {
                flags |= IFF_RUNNING;
            }
            if self.carrier {
                flags |= IFF_LOWER_UP;
            }
        }
        flags
    }

    /// `dev_get_flags(dev) & (IFF_RUNNING | IFF_LOWER_UP)`
    pub const fn lives(&self) -> bool {
        self.flags() & (IFF_RUNNING | IFF_LOWER_UP) != 0
    }

    /// `rtnl_fill_ifinfo`
    pub fn message(&self, flags: u16, seq: u32, port: u32, change: u32) -> Vec<u8> {
        let mut fixed = [0; 16];
        fixed[2..4].copy_from_slice(&if self.is_lo() { 772u16 } else { 1 }.to_ne_bytes());
        fixed[4..8].copy_from_slice(&self.index.to_ne_bytes());
        fixed[8..12].copy_from_slice(&self.flags().to_ne_bytes());
        fixed[12..].copy_from_slice(&change.to_ne_bytes());
        let mut m = Message::new(NEWLINK, flags, seq, port, &fixed);
        m.text(3, &self.name);
        m.bytes(16, &[if self.up { self.oper } else { OPER_DOWN }]);
        m.number(4, if self.is_lo() { 65536 } else { 1500 });
        m.number(30, 0);
        m.bytes(33, &[u8::from(self.carrier)]);
        m.bytes(1, &self.mac);
        if !self.is_lo() {
            m.number(5, self.index + 90);
            m.number(37, 0);
            m.bytes(18, &attribute(1, b"veth\0"));
        }
        m.done()
    }

    /// `netif_oper_up`
    pub const fn is_running(&self) -> bool {
        self.flags() & IFF_RUNNING != 0
    }

    /// MAC addresses of the filter, as `ndo_dflt_fdb_dump` shows them: of IPv6's nodes and routers, of IPv4's hosts.
    pub fn filter(&self) -> Vec<[u8; 6]> {
        let mut all = Vec::new();
        if self.all_hosts {
            all.push([1, 0, 0x5e, 0, 0, 1]);
        }
        if self.ready {
            all.extend([1, 2].map(|n| [0x33, 0x33, 0, 0, 0, n]));
        }
        all
    }
}

impl Net {
    pub fn dev(&self, index: u32) -> Option<&Dev> {
        self.devs.iter().find(|d| d.index == index)
    }

    pub fn dev_mut(&mut self, index: u32) -> Option<&mut Dev> {
        self.devs.iter_mut().find(|d| d.index == index)
    }

    /// `ip_ignore_linkdown` (the setting of all devices is never written)
    pub fn ignores(&self, index: u32) -> bool {
        self.dev(index).is_some_and(|d| d.ignore)
    }

    fn tell_link(&mut self, index: u32, change: u32) {
        if let Some(d) = self.dev(index) {
            let bytes = d.message(0, 0, 0, change);
            self.tell(bytes);
        }
    }

    /// `dev_change_flags`
    pub fn set_up(&mut self, index: u32, up: bool) -> Result<(), i32> {
        let Some(dev) = self.dev_mut(index) else {
            return Err(super::ENODEV);
        };
        if dev.up == up {
            return Ok(());
        }
        dev.up = up;
        // `veth_open`, `veth_close`: a pair has carrier when both are up
        if !dev.is_lo() {
            let carrier = up && dev.cable;
            dev.watch |= dev.carrier != carrier;
            dev.carrier = carrier;
        }
        self.tell_link(index, 1);
        self.notify(index, if up { Event::Up } else { Event::Down });
        Ok(())
    }

    /// The host's end goes up or down.
    pub fn set_cable(&mut self, index: u32, up: bool) {
        if let Some(dev) = self.dev_mut(index) {
            dev.cable = up;
            let carrier = up && dev.up;
            dev.watch |= dev.carrier != carrier;
            dev.carrier = carrier;
        }
    }

    /// `linkwatch_do_dev`, of all devices that changed.
    pub fn watch(&mut self) {
        let all: Vec<u32> = (self.devs.iter().filter(|d| d.watch))
            .map(|d| d.index)
            .collect();
        for index in all {
            let Some(dev) = self.dev_mut(index) else {
                continue;
            };
            dev.watch = false;
            dev.oper = if dev.carrier { OPER_UP } else { OPER_DOWN };
            if dev.up {
                self.notify(index, Event::Change);
                self.tell_link(index, 0);
            }
        }
    }

    /// The notifiers, in the order in which they were registered: next-hop objects, addresses, IPv4 routes, ARP, IPv6.
    fn notify(&mut self, index: u32, event: Event) {
        let lives = self.dev(index).is_some_and(Dev::lives);
        // `nh_netdev_event`
        if event == Event::Down || event == Event::Change && !lives {
            self.nexthop_flush_dev(index);
        }
        // `inetdev_event`
        match event {
            Event::Up => {
                if index == 1 {
                    self.loopback_address();
                }
                self.all_hosts(index, true);
            }
            Event::Down => self.all_hosts(index, false),
            Event::Change => {}
        }
        self.fib_netdev_event(index, event, lives);
        self.addrconf_notify(index, event);
    }

    fn all_hosts(&mut self, index: u32, on: bool) {
        if let Some(d) = self.dev_mut(index) {
            d.all_hosts = on && !d.is_lo();
        }
    }

    /// `fib_netdev_event`, then `arp_netdev_event`
    fn fib_netdev_event(&mut self, index: u32, event: Event, lives: bool) {
        match event {
            Event::Up => {
                let addrs = self.dev(index).map(|d| d.addrs4.clone());
                for ifa in addrs.unwrap_or_default() {
                    self.fib_add_ifaddr(index, ifa);
                }
                self.fib_sync_up(index, super::DEAD);
            }
            Event::Down => self.fib_disable_ip(index, false),
            Event::Change if lives => self.fib_sync_up(index, super::LINKDOWN),
            Event::Change => {
                self.fib_sync_down_dev(index, Event::Change, false);
            }
        }
        if event == Event::Change && self.dev(index).is_some_and(|d| !d.carrier) {
            self.neigh_carrier_down(index);
        }
    }

    /// `inet_netconf_fill_devconf`, `inet6_netconf_fill_devconf`; 0: all of it.
    pub fn netconf(&self, six: bool, target: u32, what: u16, flags: u16) -> Vec<u8> {
        let (forwarding, ignore) = match self.dev(target) {
            Some(d) if !six => (d.forwarding, d.ignore),
            _ => (true, false),
        };
        let family = if six { INET6 } else { INET };
        let mut m = Message::new(NEWNETCONF, flags, 0, 0, &[family, 0, 0, 0]);
        m.number(CONF_IFINDEX, target);
        for (kind, value, four) in [
            (CONF_FORWARDING, forwarding, false),
            (CONF_RP_FILTER, false, true),
            (CONF_MC_FORWARDING, false, false),
            (CONF_BC_FORWARDING, false, true),
            (CONF_PROXY_NEIGH, false, false),
            (CONF_IGNORE, ignore, false),
        ] {
            if (what == 0 || what == kind) && !(four && six) {
                m.number(kind, u32::from(value));
            }
        }
        m.done()
    }

    /// `devinet_sysctl_forward`, `devinet_conf_proc`
    pub fn sysctl(&mut self, key: &str, value: &str) -> Result<(), super::Unknown> {
        let unknown = || super::Unknown(format!("the sysctl {key}={value}"));
        let on = match value {
            "0" => false,
            "1" => true,
            _ => return Err(unknown()),
        };
        if key.starts_with("ipv6/") {
            return Err(super::Unknown("IPv6".into()));
        }
        // as it is at first; no other is known
        if key == "ipv4/fib_multipath_hash_policy" && !on {
            return Ok(());
        }
        let setting = key
            .strip_prefix("ipv4/conf/")
            .and_then(|k| k.split_once('/'));
        let (name, what) = setting.ok_or_else(unknown)?;
        let dev = self.devs.iter_mut().find(|d| d.name == name);
        let dev = dev.ok_or_else(unknown)?;
        let index = dev.index;
        let (slot, what) = match what {
            "forwarding" => (&mut dev.forwarding, CONF_FORWARDING),
            "ignore_routes_with_linkdown" => (&mut dev.ignore, CONF_IGNORE),
            _ => return Err(unknown()),
        };
        if std::mem::replace(slot, on) != on {
            let bytes = self.netconf(false, index, what, 0);
            self.tell(bytes);
        }
        Ok(())
    }
}
