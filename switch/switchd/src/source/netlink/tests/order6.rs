//! IPv6 routes that share a key stand in the order in which they came, which no message tells.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Lab, batch};
use tandem_store::model::{Object, RouteNextHops};

const PAIRS: usize = 800;

/// A second device is looked at again and again (a preferred source goes) while routes come, each to one device and then to
/// the other: what such a look finds may not overtake what was told before it.
#[test]
fn a_look_at_one_device_does_not_overtake_messages() {
    let setup = "link add d1 type veth peer name p1
link add d2 type veth peer name p2
link set p1 up
link set p2 up
link set d1 up
link set d2 up
";
    let Some(mut lab) = Lab::with("order6", setup, Default::default()) else {
        return;
    };
    lab.sync();
    let mut commands = String::new();
    for i in 0..PAIRS {
        let route = format!("2001:db8:77:{i:x}::/64");
        let _ = write!(
            commands,
            "addr add 2001:db8:9::{i:x}/128 dev d2 nodad
route add 2001:db8:8::/64 dev d2 src 2001:db8:9::{i:x}
addr del 2001:db8:9::{i:x}/128 dev d2
route add {route} dev d1 metric 50
route append {route} dev d2 metric 50
route del 2001:db8:8::/64
"
        );
    }
    std::thread::scope(|s| {
        let name = lab.name.clone();
        let ip = s.spawn(move || batch(&name, &commands));
        while !ip.is_finished() {
            lab.sync();
        }
    });
    lab.sync();
    let indexes: Vec<u32> = ["d1", "d2"].map(|d| index(&lab, d)).into();
    let mut found: BTreeMap<String, Vec<(u16, u32)>> = BTreeMap::new();
    for (prefix, at) in lab.mirror.get(|o| match o {
        Object::Route(r) if r.key.metric == 50 => {
            let RouteNextHops::One(hop) = &r.nexthops else {
                return None;
            };
            Some((r.key.prefix.to_string(), (r.key.position, hop.ifindex)))
        }
        _ => None,
    }) {
        found.entry(prefix).or_default().push(at);
    }
    assert_eq!(found.len(), PAIRS);
    for (prefix, mut aliases) in found {
        aliases.sort_unstable();
        let order: Vec<u32> = aliases.iter().map(|(_, index)| *index).collect();
        assert_eq!(order, indexes, "{prefix}");
    }
}

fn index(lab: &Lab, device: &str) -> u32 {
    let all = lab.json("link show");
    let links = all.as_array().unwrap().iter();
    let mut found = links.filter(|l| l["ifname"] == device);
    found.next().unwrap()["ifindex"].as_u64().unwrap() as u32
}
