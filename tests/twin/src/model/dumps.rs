//! Everything, as the kernel shows it (`rtnl_dumpit` of each kind).

use super::Net;
use super::messages::{DONE, MULTI, Message, NEWADDR, NEWNEIGH};
use crate::recording::{Bytes, Dump, Socket};
use tandem_linux::netlink::{Dump as What, Family, Protocol};
use tandem_netlink::DUMPS;

const ALL: [u32; 2] = [u32::MAX, u32::MAX - 1];

impl Net {
    /// The answers to these requests, of those that the recorder makes.
    pub fn dumps(&self, requests: &[Vec<u8>]) -> Vec<Dump> {
        let known = |r: &Vec<u8>| DUMPS.iter().find(|what| what.request() == *r);
        (requests.iter().filter_map(known))
            .map(|what| self.dump(*what))
            .collect()
    }

    fn dump(&self, what: What) -> Dump {
        let six = |f: Family| f == Family::V6;
        let mut all = match what {
            What::Links => (self.devs.iter())
                .map(|d| d.message(MULTI, 0, 0, 0))
                .collect(),
            What::Netconf(f) => (self.devs.iter().map(|d| d.index).chain(ALL))
                .map(|t| self.netconf(six(f), t, 0, MULTI))
                .collect(),
            What::Addrs => self.dump_addrs(),
            What::Nexthops => self.dump_nexthops(),
            What::Neighs(f) => (self.neighs.iter().filter(|n| n.addr.is_ipv6() == six(f)))
                .map(|n| n.message(NEWNEIGH, MULTI, 0, 0))
                .collect(),
            What::Fdb => self.dump_filters(),
            What::Rules(f) => self.dump_rules(six(f)),
            What::Routes(Family::V4, _) => self.dump_routes4(),
            What::Routes(Family::V6, _) => self.dump_routes6(),
            _ => Vec::new(),
        };
        all.push(Message::new(DONE, MULTI, 0, 0, &[0; 4]).done());
        Dump {
            socket: match what.protocol() {
                Protocol::Route => Socket::Route,
                Protocol::Netfilter => Socket::Netfilter,
            },
            request: Bytes(what.request()),
            data: vec![Bytes(all.concat())],
        }
    }

    fn dump_addrs(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for d in &self.devs {
            for a in &d.addrs4 {
                all.push(a.message(NEWADDR, d.index, &d.name, MULTI, (0, 0)));
            }
        }
        all.extend(Self::dump_addrs6());
        all
    }

    fn dump_filters(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for d in self.devs.iter().filter(|d| !d.is_lo()) {
            for mac in d.filter() {
                let mut fixed = [7, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 2, 0];
                fixed[4..8].copy_from_slice(&d.index.to_ne_bytes());
                let mut m = Message::new(NEWNEIGH, MULTI, 0, 0, &fixed);
                m.bytes(2, &mac);
                all.push(m.done());
            }
        }
        all
    }
}
