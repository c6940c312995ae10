//! Buckets of resilient groups: what the kernel moves, by timers and in silence, is followed.

use tandem_store::model::{NexthopKind, Object, add_run};

use super::Lab;
use tandem_core::source::Source;

/// Resilient groups as the mirror has them: id, and runs of members.
fn ours(lab: &Lab) -> Vec<(u32, Vec<(u32, u32)>)> {
    let mut groups = lab.mirror.get(|o| match o {
        Object::Nexthop(n) => match &n.kind {
            NexthopKind::Buckets(runs) => Some((n.id, runs.clone())),
            _ => None,
        },
        _ => None,
    });
    groups.sort_unstable();
    groups
}

/// The same as `ip` has them.
fn theirs(lab: &Lab) -> Vec<(u32, Vec<(u32, u32)>)> {
    let mut out: Vec<(u32, Vec<(u32, u32)>)> = Vec::new();
    let shown = lab.json("nexthop bucket show");
    for b in shown.as_array().into_iter().flatten() {
        let number = |v: &serde_json::Value| u32::try_from(v.as_u64().unwrap()).unwrap();
        let (id, member) = (number(&b["id"]), number(&b["bucket"]["nhid"]));
        match out.last_mut() {
            Some((last, runs)) if *last == id => add_run(runs, member, 1),
            _ => out.push((id, vec![(member, 1)])),
        }
    }
    out.sort_unstable();
    out
}

/// The mirror's buckets are the kernel's, a moment after what its timers do. Without a dump of everything.
pub(super) fn check(lab: &mut Lab, context: &str) -> Vec<(u32, Vec<(u32, u32)>)> {
    until(lab, context, |_| true)
}

/// The same, once the kernel's own are as they are to be: what it does late is waited for.
fn until(
    lab: &mut Lab,
    context: &str,
    wanted: impl Fn(&[(u32, Vec<(u32, u32)>)]) -> bool,
) -> Vec<(u32, Vec<(u32, u32)>)> {
    let mut found = Vec::new();
    lab.lasts(context, |lab| {
        let theirs = theirs(lab);
        found = ours(lab);
        match found == theirs && wanted(&theirs) {
            true => Ok(()),
            false => Err(format!("ours: {found:?}\nthe kernel's: {theirs:?}")),
        }
    });
    found
}

const SETUP: &str = "link add v1 type veth peer name p1
link add v2 type veth peer name p2
link set p1 up
link set p2 up
link set v1 up
link set v2 up
addr add 10.0.1.1/24 dev v1
addr add 10.0.2.1/24 dev v2
nexthop add id 1 via 10.0.1.2 dev v1
nexthop add id 2 via 10.0.2.2 dev v2
nexthop add id 3 via 10.0.2.3 dev v2
nexthop add id 10 group 1/2 type resilient buckets 8 idle_timer 3600
route add 172.16.0.0/16 nhid 10
";

#[test]
fn buckets_are_followed() {
    let Some(mut lab) = Lab::with("buckets", SETUP, super::Config::default()) else {
        return;
    };
    let halves = check(&mut lab, "there at the start");
    assert_eq!(halves.len(), 1);
    assert_eq!(halves[0].1.iter().map(|r| r.1).sum::<u32>(), 8);
    lab.ip("nexthop add id 11 group 1,2/3,1 type resilient buckets 600\n");
    assert_eq!(check(&mut lab, "a second one").len(), 2);
    // a member comes: buckets that were used wait for the timer
    let used = |rest: &str| {
        let mut used: String = (1..100)
            .map(|i| format!("route get 172.16.0.{i}\n"))
            .collect();
        used += &format!("nexthop replace id 10 group 1/2/3 type resilient{rest}\n");
        used
    };
    lab.ip(&used(""));
    assert_eq!(check(&mut lab, "a third member")[0], halves[0]);
    // which tells of each, unless this machine is so slow that they have waited long enough already
    lab.ip(&used(" idle_timer 1"));
    let moved = |groups: &[(u32, Vec<(u32, u32)>)]| groups[0].1.iter().any(|r| r.0 == 3);
    until(&mut lab, "after the timer", moved);
    // a group's replacement moves buckets without a message of theirs
    lab.ip("nexthop replace id 10 group 2/3 type resilient\n");
    let moved = check(&mut lab, "a member taken away");
    assert!(moved[0].1.iter().all(|r| r.0 != 1), "{moved:?}");
    // and a link that goes takes next hops out of groups without any
    lab.ip("link set p1 down\n");
    until(&mut lab, "a link down", |groups| {
        groups[1] == (11, vec![(3, 600)])
    });
    lab.ip("nexthop del id 10\n");
    assert_eq!(check(&mut lab, "one deleted").len(), 1);
    let status = lab.source.status();
    assert_eq!((status.overruns, status.resyncs), (0, 1));
    // a full dump brings the same
    let before = ours(&lab);
    lab.source.resync();
    assert_eq!(check(&mut lab, "a full dump"), before);
}

/// A bridge that loses its last port is told of twice: that its carrier has gone, and a moment later that it does not run. Its
/// next hops go with the second.
#[test]
fn the_next_hops_of_a_bridge_go_with_its_last_port() {
    let setup = "link add v1 type veth peer name p1
link add v2 type veth peer name p2
link add name b0 type bridge
link set v1 master b0
link set p1 up
link set p2 up
link set v1 up
link set v2 up
link set b0 up
addr add 10.0.1.1/24 dev b0
addr add 10.0.2.1/24 dev v2
";
    let Some(mut lab) = Lab::with("lastport", setup, super::Config::default()) else {
        return;
    };
    lab.lasts("the bridge comes up", |lab| {
        match &lab.json("link show dev b0")[0]["operstate"] {
            state if state == "UP" => Ok(()),
            state => Err(state.to_string()),
        }
    });
    lab.ip("nexthop add id 1 via 10.0.1.2 dev b0
nexthop add id 2 via 10.0.2.2 dev v2
nexthop add id 10 group 1/2 type resilient buckets 8
route add 172.16.0.0/16 nhid 10
");
    assert_eq!(check(&mut lab, "there at the start")[0].1.len(), 2);
    lab.ip("link set v1 nomaster\n");
    until(&mut lab, "no port left", |groups| {
        groups == [(10, vec![(2, 8)])]
    });
}
