//! A switch that routes between two hosts, to put routes into.
//!
//! ```text
//!  host 192.0.2.2 ═ swp1 192.0.2.1 ── sw ── 198.51.100.1 swp2 ═ 198.51.100.2 far
//! ```

use crate::prefixes;
use crate::rig::{Rig, sh};
use anyhow::{Context, Result, ensure};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tandem_linux::netlink::{Nexthops, Requests, Route, RouteNexthop, blast};
use tandem_linux::netns;
use tandem_mgmt::{Client, Daemon, Instance, types};

/// The chip: a table for more than a million prefixes.
pub const PROFILE: &str = "jericho2-large";
// linux/rtnetlink.h
const TABLE_MAIN: u32 = 254;
const RTN_UNICAST: u8 = 1;
const RTPROT_BGP: u8 = 186;

/// The gateway of all routes: the near host.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The far host.
pub const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// The switch, its hosts and its daemons' sockets.
pub struct Routed {
    /// Namespaces `sw`, `host`, `far`, and what was asked for.
    pub rig: Rig,
    /// switchd's socket.
    pub switchd: Client,
    /// asicd's socket.
    pub asicd: Client,
    /// Prefixes in the chip before any was added.
    pub base: u64,
}

impl Routed {
    /// Starts it; both gateways are resolved. `more`: further namespaces.
    pub fn new(more: &[&str]) -> Result<Routed> {
        let mut words = vec!["sw", "host", "far"];
        words.extend_from_slice(more);
        let mut rig = Rig::new(&words)?;
        rig.veth(("sw", "fp1"), ("host", "eth0"))?;
        rig.veth(("sw", "fp2"), ("far", "eth0"))?;
        rig.up(PROFILE, &["swp1=fp1", "swp2=fp2"])?;
        rig.sysctl("sw", "net/ipv4/ip_forward", "1")?;
        for (host, dev, ours, theirs) in [
            ("host", "swp1", "192.0.2.1", "192.0.2.2"),
            ("far", "swp2", "198.51.100.1", "198.51.100.2"),
        ] {
            rig.ip(
                host,
                &["addr", "add", &format!("{theirs}/24"), "dev", "eth0"],
            )?;
            rig.ip(host, &["route", "add", "default", "via", ours])?;
            rig.ip("sw", &["addr", "add", &format!("{ours}/24"), "dev", dev])?;
            rig.ip("sw", &["link", "set", dev, "up"])?;
            // The gateway is resolved before anything is timed
            let ns = rig.ns("sw");
            sh(&[
                "ip", "netns", "exec", &ns, "ping", "-c", "3", "-i", "0.2", theirs,
            ])?;
        }
        let instance = Instance::resolve(Some(rig.instance()))?;
        let mut me = Routed {
            switchd: Client::to(&instance, Daemon::Switchd).with_timeout(Duration::from_secs(90)),
            asicd: Client::to(&instance, Daemon::Asicd),
            rig,
            base: 0,
        };
        me.sync()?;
        me.base = me.in_hardware()?;
        Ok(me)
    }

    /// Waits until all that the kernel has is in the chip.
    pub fn sync(&self) -> Result<()> {
        let _: serde_json::Value = self
            .switchd
            .post("/v1/sync", &serde_json::json!({"timeout_ms": 60_000}))?;
        Ok(())
    }

    /// IPv4 prefixes in the chip's table, by its own count.
    pub fn in_hardware(&self) -> Result<u64> {
        prefixes_of(&self.asicd.get("/v1/resources")?)
    }

    /// Waits for the barrier, then holds the chip to `count` prefixes of ours.
    pub fn confirm(&self, count: usize) -> Result<()> {
        self.sync()?;
        let (have, want) = (self.in_hardware()?, self.base + count as u64);
        ensure!(have == want, "{have} prefixes in hardware, {want} wanted");
        Ok(())
    }

    /// switchd's own counters.
    pub fn status(&self) -> Result<serde_json::Value> {
        Ok(self.switchd.get("/v1/status")?)
    }

    /// Runs `work` with a netlink socket in the namespace `word`.
    pub fn netlink<T: Send>(
        &self,
        word: &str,
        work: impl FnOnce(&mut Requests) -> Result<T> + Send,
    ) -> Result<T> {
        netns::run_in_named(Some(&self.rig.ns(word)), || {
            let run = || work(&mut Requests::open()?);
            run().map_err(std::io::Error::other)
        })
        .map_err(Into::into)
    }

    /// Adds routes in `sw`; an error if the kernel refuses one.
    pub fn add(&self, list: &[Route]) -> Result<()> {
        self.netlink("sw", |s| add(s, list))
    }

    /// `count` routes by way of `dev` in the namespace `word`, with the lengths of the public table.
    pub fn routes(&self, word: &str, dev: &str, count: usize) -> Result<Vec<Route>> {
        let ifindex = ifindex(&self.rig.ns(word), dev)?;
        prefixes::table(count, 42)
            .iter()
            .map(|p| {
                let dst = ipnet::Ipv4Net::new(Ipv4Addr::from(p.addr), p.len).context("prefix")?;
                let nexthop = RouteNexthop {
                    ifindex,
                    gateway: Some(IpAddr::V4(GATEWAY)),
                    weight: 1,
                    flags: 0,
                    encap: false,
                };
                Ok(Route {
                    table: TABLE_MAIN,
                    dst: dst.into(),
                    tos: 0,
                    metric: 0,
                    kind: RTN_UNICAST,
                    scope: 0,
                    protocol: RTPROT_BGP,
                    flags: 0,
                    nh_id: 0,
                    nexthops: Nexthops::One(nexthop),
                    src: None,
                    prefsrc: None,
                    mtu: 0,
                    other: 0,
                })
            })
            .collect()
    }
}

/// Prefixes in a chip, by its own count.
pub fn prefixes_of(r: &types::Resources) -> Result<u64> {
    let pool = r
        .items
        .iter()
        .find(|p| p.name == "ipv4-lpm")
        .context("no pool named ipv4-lpm")?;
    Ok(pool.used.into())
}

/// Adds routes; an error if the kernel refuses one.
pub fn add(socket: &mut Requests, list: &[Route]) -> Result<()> {
    let outcome = blast::add_routes(socket, list, 0)?;
    ensure!(
        outcome.refused == 0,
        "{} routes refused: {:?}",
        outcome.refused,
        outcome.first_error
    );
    Ok(())
}

fn ifindex(ns: &str, dev: &str) -> Result<u32> {
    let json = sh(&["ip", "-n", ns, "-j", "link", "show", dev])?;
    let v: serde_json::Value = serde_json::from_str(&json)?;
    v[0]["ifindex"]
        .as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .context("no ifindex")
}
