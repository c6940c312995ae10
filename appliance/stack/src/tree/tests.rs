// SPDX-License-Identifier: Apache-2.0
use super::*;
use tandem_swconfig::Kind;

/// Ports that have states and nothing else.
#[derive(Clone, Default)]
struct Switch(Arc<Mutex<BTreeMap<u16, PortState>>>);

impl Switch {
    fn state(&self, port: u16) -> PortState {
        let states = self.0.lock().unwrap();
        states.get(&port).copied().unwrap_or(Forwarding)
    }
}

impl Ports for Switch {
    fn set(&self, port: u16, state: PortState) -> bool {
        let was = self.state(port);
        self.0.lock().unwrap().insert(port, state);
        was != state
    }

    fn forget(&self, _: u16) {}
}

fn tree() -> (Arc<Tree>, Switch) {
    let member = |number: u16| Member {
        number,
        name: Name {
            kind: Kind::Gigabit,
            number,
        },
        mac: [2, 0, 0, 0, 1, number as u8],
        mbps: 1000,
    };
    let switch = Switch::default();
    let wake = Arc::new(EventFd::new().unwrap());
    let ports = Box::new(switch.clone());
    let all = (1..=3).map(member).collect();
    let tree = Tree::new([2, 0, 0, 0, 0, 1], all, ports, wake);
    (Arc::new(tree), switch)
}

fn on(edges: &[u16]) -> Wanted {
    let edge = PortTree {
        edge: true,
        ..PortTree::default()
    };
    Wanted {
        tree: tree::Tree {
            on: true,
            ..tree::Tree::default()
        },
        ports: edges.iter().map(|n| (*n, (edge.clone(), false))).collect(),
        groups: BTreeMap::new(),
    }
}

fn states(switch: &Switch) -> Vec<PortState> {
    (1..=3).map(|n| switch.state(n)).collect()
}

use PortState::{Discarding as Blocking, Forwarding};

fn asks(tree: &Tree) -> Arc<Mutex<Vec<u64>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&asked);
    tree.set_ask(Box::new(move |n| {
        to.lock().unwrap().push(n);
        true
    }));
    asked
}

fn state(port: u16, state: PortState) -> Action {
    Action::State { port, state }
}

fn say(tree: &Tree, now: u64) {
    let send = Action::Send {
        port: 1,
        frame: vec![1],
    };
    let mut inner = tree.lock();
    inner.todo.extend([
        state(1, PortState::Discarding),
        send,
        state(2, PortState::Forwarding),
    ]);
    tree.carry_out(&mut inner, now);
}

#[test]
fn what_is_said_after_a_port_has_closed_waits_for_the_chip() {
    let (tree, switch) = tree();
    let asked = asks(&tree);
    switch.set(2, Blocking);
    // `passed` has a clock of its own, which does not come so far, however long this takes
    let now = clock::now_ns() + 1_000 * PATIENCE;
    say(&tree, now);
    assert_eq!(states(&switch), [Blocking, Blocking, Forwarding]);
    assert_eq!(tree.next_out(), None);
    assert_eq!(*asked.lock().unwrap(), [1]);
    tree.passed(1, false);
    assert_eq!(tree.next_out(), None);
    // another one closes meanwhile: at once, whatever waits, and it has to be asked for by itself
    {
        let mut inner = tree.lock();
        inner.todo.push_back(state(3, PortState::Discarding));
        tree.carry_out(&mut inner, now);
    }
    assert_eq!(states(&switch), [Blocking, Blocking, Blocking]);
    tree.passed(1, true);
    assert_eq!(tree.next_out(), None);
    tree.passed(2, true);
    assert_eq!(tree.next_out(), Some((1, vec![1])));
    assert_eq!(states(&switch), [Blocking, Forwarding, Blocking]);
    assert_eq!(*asked.lock().unwrap(), [1, 2]);
}

/// However often ports come and go while the chip does not answer: what waits is the last of each.
#[test]
fn what_waits_has_a_bound() {
    let (tree, switch) = tree();
    let _asked = asks(&tree);
    switch.set(2, Blocking);
    say(&tree, 0);
    for _ in 0..100 {
        let mut inner = tree.lock();
        inner.todo.extend([
            Action::Flush { port: 3 },
            state(3, PortState::Learning),
            state(3, PortState::Discarding),
            state(3, PortState::Learning),
            state(3, PortState::Forwarding),
        ]);
        tree.carry_out(&mut inner, PATIENCE + 1);
    }
    // a flush, and what opens last of two ports
    assert_eq!(tree.lock().todo.len(), 3);
    assert_eq!(states(&switch), [Blocking, Blocking, Blocking]);
    let closed = tree.lock().closed;
    tree.passed(closed, true);
    assert_eq!(states(&switch), [Blocking, Forwarding, Forwarding]);
}

#[test]
fn what_waits_for_too_long_is_not_sent_and_nothing_opens() {
    let (tree, switch) = tree();
    let _asked = asks(&tree);
    switch.set(2, Blocking);
    say(&tree, 0);
    {
        let mut inner = tree.lock();
        tree.carry_out(&mut inner, PATIENCE + 1);
    }
    assert_eq!(states(&switch), [Blocking, Blocking, Forwarding]);
    tree.passed(1, true);
    assert_eq!(tree.next_out(), None);
    assert_eq!(states(&switch), [Blocking, Forwarding, Forwarding]);
}

#[test]
fn hosts_are_not_cut_off_when_a_tree_begins() {
    let (tree, switch) = tree();
    let asked = asks(&tree);
    tree.configure(&on(&[1, 2])).unwrap();
    // neither for a moment: what closed is port 3 alone
    assert_eq!(*asked.lock().unwrap(), [1]);
    assert_eq!(tree.lock().closed, 1);
    tree.passed(1, true);
    assert_eq!(states(&switch), [Forwarding, Forwarding, Blocking]);
    // a port without a link is none
    tree.link(2, false, 0, 1);
    assert_eq!(states(&switch), [Forwarding, Blocking, Blocking]);
}

#[test]
fn without_a_tree_all_forwards_and_bpdus_are_frames() {
    let (tree, switch) = tree();
    assert!(!tree.receive(1, &[0; 60], 0));
    tree.configure(&on(&[])).unwrap();
    assert_eq!(states(&switch), [Blocking; 3]);
    assert!(tree.receive(1, &[0; 60], 0));
    tree.configure(&Wanted::default()).unwrap();
    assert_eq!(states(&switch), [Forwarding; 3]);
    assert_eq!(tree.view(), None);
    assert!(!tree.receive(1, &[0; 60], 0));
}

#[test]
fn what_was_known_of_links_is_not_kept_without_a_chip() {
    let (tree, switch) = tree();
    tree.configure(&on(&[1])).unwrap();
    let second = 1_000_000_000;
    let now = clock::now_ns();
    tree.link(3, true, 1000, now);
    // nobody answers: hosts
    for n in 1..10 {
        tree.tick(now + n * second);
    }
    assert_eq!(states(&switch), [Forwarding, Blocking, Forwarding]);
    tree.detached(now + 10 * second);
    assert_eq!(states(&switch), [Forwarding, Blocking, Blocking]);
    assert_eq!(tree.next_out(), None);
}

#[test]
fn a_bpdu_takes_a_guarded_port_out_until_it_is_shut() {
    let (tree, switch) = tree();
    let mut wanted = on(&[1]);
    let guarded = |shut| {
        let set = PortTree {
            edge: true,
            guard: true,
            ..PortTree::default()
        };
        (set, shut)
    };
    wanted.ports.insert(1, guarded(false));
    tree.configure(&wanted).unwrap();
    let now = clock::now_ns();
    tree.link(1, true, 1000, now);
    assert!(tree.receive(1, &bpdu(now), now));
    assert_eq!(tree.err_disabled(), [1]);
    assert_eq!(states(&switch)[0], Blocking);
    wanted.ports.insert(1, guarded(true));
    tree.configure(&wanted).unwrap();
    wanted.ports.insert(1, guarded(false));
    tree.configure(&wanted).unwrap();
    assert!(tree.err_disabled().is_empty());
    assert_eq!(states(&switch)[0], Forwarding);
}

/// A BPDU of another bridge.
fn bpdu(now: u64) -> Vec<u8> {
    let mut other = Bridge::new(tandem_rstp::Config::new([2, 0, 0, 0, 0, 9])).unwrap();
    other
        .set_port(1, PortConfig::new([2, 0, 0, 0, 0, 9]), now)
        .unwrap();
    let link = Link {
        mbps: 1000,
        full_duplex: true,
    };
    let said = other.port_up(1, link, now).unwrap();
    let frame = said.into_iter().find_map(|a| match a {
        Action::Send { frame, .. } => Some(frame),
        _ => None,
    });
    frame.unwrap()
}

#[test]
fn a_port_that_the_guard_took_out_comes_back_in_its_time() {
    const SECOND: u64 = 1_000_000_000;
    let (tree, switch) = tree();
    let mut wanted = on(&[]);
    wanted.tree.recovers = true;
    wanted.tree.interval = Some(40);
    // of a port without words of its own
    (wanted.tree.edge_default, wanted.tree.guard_default) = (true, true);
    tree.configure(&wanted).unwrap();
    let now = clock::now_ns();
    tree.link(1, true, 1000, now);
    assert_eq!(states(&switch)[0], Forwarding, "hosts are behind it");
    assert!(tree.receive(1, &bpdu(now), now));
    assert_eq!(tree.err_disabled(), [1]);
    // whoever waits is called in time
    assert!(tree.tick(now).unwrap() <= now + 40 * SECOND);
    tree.tick(now + 40 * SECOND - 1);
    assert_eq!(tree.err_disabled(), [1]);
    // what is set of another port meanwhile is no new time
    wanted.ports.insert(2, (PortTree::default(), true));
    tree.configure(&wanted).unwrap();
    tree.tick(now + 40 * SECOND);
    assert!(tree.err_disabled().is_empty());
    // without it, it stays out; a time that is set then begins then
    wanted.tree.recovers = false;
    tree.configure(&wanted).unwrap();
    assert!(tree.receive(1, &bpdu(now), now + 41 * SECOND));
    tree.tick(now + 400 * SECOND);
    assert_eq!(tree.err_disabled(), [1]);
    assert_eq!(tree.view().unwrap().ports[0].recovers_in, None);
    wanted.tree.recovers = true;
    tree.configure(&wanted).unwrap();
    tree.tick(now + 401 * SECOND);
    assert_eq!(tree.err_disabled(), [1]);
    tree.tick(now + 441 * SECOND);
    assert!(tree.err_disabled().is_empty());
}

#[test]
fn what_is_set_for_all_ports_is_of_those_that_it_is_for() {
    let set = tree::Tree {
        edge_default: true,
        guard_default: true,
        ..tree::Tree::default()
    };
    let of = |port: &PortTree, access| {
        let with = port.with(&set, access);
        (with.edge, with.guard)
    };
    let usual = PortTree::default();
    assert_eq!(of(&usual, true), (true, true));
    assert_eq!(of(&usual, false), (false, false), "a trunk has bridges");
    let edge = PortTree {
        edge: true,
        ..PortTree::default()
    };
    assert_eq!(of(&edge, false), (true, true));
    let no_guard = PortTree {
        no_guard: true,
        ..PortTree::default()
    };
    assert_eq!(of(&no_guard, true), (true, false));
}

/// A group is one port of the tree, with the links of its ports; those that it has are none.
#[test]
fn a_group_is_one_port() {
    let (tree, switch) = tree();
    tree.configure(&on(&[])).unwrap();
    for n in 1..=3 {
        tree.link(n, true, 1000, clock::now_ns());
    }
    let group = 1001;
    let with = |up: [bool; 2]| Wanted {
        groups: [(group, (channel::name(1), [(2, up[0]), (3, up[1])].into()))].into(),
        ..on(&[])
    };
    let ports = || {
        let all = tree.view().unwrap().ports.into_iter();
        all.map(|p| {
            (
                p.name.short(),
                p.number,
                p.cost,
                p.role != tree::Role::Disabled,
            )
        })
        .collect::<Vec<_>>()
    };
    tree.configure(&with([true; 2])).unwrap();
    let one = ("Gi1/0/1".into(), 1, 20_000, true);
    let po = |cost, up| ("Po1".into(), group, cost, up);
    // twice as fast
    assert_eq!(ports(), [one.clone(), po(10_000, true)]);
    tree.link(3, false, 1000, clock::now_ns());
    assert_eq!(ports()[1], po(20_000, true));
    tree.link(2, false, 1000, clock::now_ns());
    assert!(!ports()[1].3);
    tree.link(2, true, 1000, clock::now_ns());
    assert!(ports()[1].3);
    // one that is shut down is no link
    tree.configure(&with([false, true])).unwrap();
    assert!(!ports()[1].3);
    // apart they are ports again, and none of what was said of the group is left
    switch.set(group, Blocking);
    let waits = state(group, PortState::Learning);
    tree.lock().todo.push_back(waits);
    tree.configure(&on(&[])).unwrap();
    assert_eq!(ports().len(), 3);
    assert_eq!(switch.state(group), Forwarding);
    let inner = tree.lock();
    let left = |a: &Action| port_of(a) == group;
    assert!(!inner.todo.iter().any(left) && inner.out.iter().all(|o| o.0 != group));
}
