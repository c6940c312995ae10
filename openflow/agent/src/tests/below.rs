// SPDX-License-Identifier: Apache-2.0
//! Messages that wait for a chip, which answers what it is told one command at a time.

use super::*;
use tandem_ofchip::{Chip, Limits, Lookup, PortOf, Setup};
use tandem_ofpipeline::flows::{all_flows, blank};
use tandem_openflow::model::{
    Bucket, FlowCommand, FlowMod, GROUP_ANY, GroupCommand, GroupMod, GroupType, flow_flags,
};
use tandem_openflow::{Action, Field, Instructions, Match, Oxm, port};
use tandem_sal::told::{Answer, Told};

/// Pools of `tiny`, and every command is done.
fn slow() -> Box<Told> {
    let pools = [("acl-tcam", 32), ("acl-counter", 8), ("vlan", 4)];
    Box::new(Told::new(&pools, []))
}

fn with_chip() -> Bench {
    let mut b = Bench::new(Settings::default());
    let ports = (1..=4u8).map(|n| PortOf {
        number: n.into(),
        port: n,
        mac: mac(n),
    });
    let chip = Chip::new(Setup {
        profile: "tiny".into(),
        lookup: Lookup::Address,
        version: Version::V13,
        ports: ports.collect(),
        local: false,
        chains: Limits::default(),
        classes: true,
        slice: tandem_ofchip::Slice::default(),
    });
    b.agent.set_chip(chip.unwrap(), 0);
    b
}

fn to(command: FlowCommand, port: u32) -> FlowMod {
    FlowMod {
        command,
        matching: Match {
            fields: vec![Oxm::exact(Field::EthType, 0x88b5)],
            exact: false,
        },
        instructions: Instructions {
            apply: Some(vec![Action::Output { port, max_len: 0 }]),
            ..Instructions::default()
        },
        ..blank()
    }
}

/// Attached, and open.
fn attach(b: &mut Bench) {
    let now = b.now;
    let chip = b.agent.chip_mut().unwrap();
    chip.attach(slow(), now).unwrap();
    rest(b);
    assert!(b.agent.chip_mut().unwrap().is_open());
}

/// The chip has nothing left to do.
fn rest(b: &mut Bench) {
    let now = b.now;
    let chip = b.agent.chip_mut().unwrap();
    for _ in 0..10_000 {
        if !chip.turn(now) {
            return;
        }
    }
    panic!("it never ends: {chip:?}");
}

/// What a controller is told when what waits is looked at.
fn woken(b: &mut Bench, id: ConnId) -> Vec<Said> {
    while b.agent.work(id, 100, b.now, &mut b.out) {}
    b.said(id)
}

fn kinds(said: &[Said]) -> Vec<u8> {
    said.iter().map(|s| s.kind).collect()
}

fn flows(b: &Bench) -> u32 {
    let tables = b.agent.datapath().switch().table_stats();
    tables.map(|t| t.active).sum()
}

fn wide(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Packets of the flow that an answer about flows has alone: behind type, flags and padding.
fn packets(said: &[Said]) -> u64 {
    assert_eq!(kinds(said), [MULTIPART_REPLY]);
    wide(&said[0].body, 8 + 32)
}

#[test]
fn a_barrier_waits_for_nobody_who_writes_behind_it() {
    let mut b = with_chip();
    let (one, other) = (b.connect(Version::V13), b.connect(Version::V13));
    let now = b.now;
    attach(&mut b);
    b.fine(one, &Request::FlowMod(to(FlowCommand::Add, 2)));
    assert_eq!(b.ask(other, &Request::Barrier), []);
    let mut said = Vec::new();
    for _ in 0..50 {
        for port in [3, 2, 3, 2, 3, 2] {
            b.fine(one, &Request::FlowMod(to(FlowCommand::Modify, port)));
        }
        let chip = b.agent.chip_mut().unwrap();
        chip.turn(now);
        assert!(!chip.is_settled());
        b.agent.work(other, 100, now, &mut b.out);
        said.extend(b.said(other));
    }
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].kind, BARRIER_REPLY);
}

/// While the chip is lost nobody can say that its answers are right: a barrier waits, and with it all that came behind it.
/// Whether the switch lives can be said.
#[test]
fn an_echo_behind_a_barrier_that_waits_is_answered() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    assert!(b.agent.chip_mut().unwrap().lost().is_some());
    assert_eq!(b.ask(id, &Request::Barrier), []);
    for _ in 0..300 {
        let said = b.ask(id, &Request::Echo(&[1, 2]));
        assert_eq!(said.len(), 1);
        assert_eq!((said[0].kind, &said[0].body[..]), (ECHO_REPLY, &[1, 2][..]));
    }
    // what is behind another message is behind that
    b.fine(id, &Request::FlowMod(to(FlowCommand::Add, 2)));
    assert_eq!(b.ask(id, &Request::Echo(&[3])), []);
    assert_eq!(flows(&b), 0);
    attach(&mut b);
    assert_eq!(kinds(&woken(&mut b, id)), [BARRIER_REPLY, ECHO_REPLY]);
}

/// A chip that has ended forwards nothing, so what the tables say is all there is. One that merely does not answer may
/// forward on as it was.
#[test]
fn a_barrier_is_answered_while_no_chip_forwards() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    attach(&mut b);
    b.agent.chip_mut().unwrap().lose("it says nothing");
    b.fine(id, &Request::FlowMod(to(FlowCommand::Add, 2)));
    assert_eq!((flows(&b), b.ask(id, &Request::Barrier)), (1, vec![]));
    b.fine(id, &Request::FlowMod(to(FlowCommand::Delete, 2)));
    b.agent.chip_mut().unwrap().lose("still");
    assert_eq!((woken(&mut b, id), flows(&b)), (vec![], 1));
    b.agent.chip_mut().unwrap().gone();
    assert_eq!(kinds(&woken(&mut b, id)), [BARRIER_REPLY]);
    assert_eq!(flows(&b), 0);
    // it stays so, whatever becomes of attempts
    b.agent.chip_mut().unwrap().lose("nobody is there");
    assert_eq!(kinds(&b.ask(id, &Request::Barrier)), [BARRIER_REPLY]);
    // the next one may forward as soon as its ports are up
    let now = b.now;
    let chip = b.agent.chip_mut().unwrap();
    chip.attach(slow(), now).unwrap();
    assert_eq!(b.ask(id, &Request::Barrier), []);
    rest(&mut b);
    assert_eq!(kinds(&woken(&mut b, id)), [BARRIER_REPLY]);
    // and its end is not known of the one that is lost next
    b.agent.chip_mut().unwrap().lose("it says nothing");
    assert_eq!(b.ask(id, &Request::Barrier), []);
}

/// How much there was of a flow is told when the chip was asked since; one that can't be asked is not waited for.
#[test]
fn counts_are_those_of_after_the_question() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    attach(&mut b);
    b.fine(id, &Request::FlowMod(to(FlowCommand::Add, 2)));
    rest(&mut b);
    assert_eq!(b.frame(1, &ether(2, 1)).len(), 1);
    let all = asks(Asks::Flow(all_flows()));
    for _ in 0..2 {
        assert_eq!(b.ask(id, &all), []);
        assert_eq!(woken(&mut b, id), []);
        rest(&mut b);
        // the chip's row has met none
        assert_eq!(packets(&woken(&mut b, id)), 1);
    }
    // what is no question for numbers waits for none
    assert_eq!(b.ask(id, &Request::Barrier).len(), 1);
    // nor is one that is lost; what its row has met since nobody knows
    b.agent.chip_mut().unwrap().lose("it says nothing");
    assert_eq!(packets(&b.ask(id, &all)), u64::MAX);
}

/// One that is attached and does not answer is waited for a few seconds: then who asks for numbers is told that they are not
/// known, those who have waited first.
#[test]
fn numbers_of_a_chip_that_does_not_answer_are_not_waited_for() {
    const ANSWERS: usize = 100;
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    let done = std::iter::repeat_n(Answer::Status(0), ANSWERS);
    let pools = [("acl-tcam", 32), ("acl-counter", 8), ("vlan", 4)];
    let told = Told::new(&pools, done.chain([Answer::Silent]));
    let now = b.now;
    let chip = b.agent.chip_mut().unwrap();
    chip.attach(Box::new(told), now).unwrap();
    rest(&mut b);
    b.fine(id, &Request::FlowMod(to(FlowCommand::Add, 2)));
    rest(&mut b);
    let all = asks(Asks::Flow(all_flows()));
    let mut said = b.ask(id, &all);
    // all that it would answer, and some seconds
    for _ in 0..2 * ANSWERS {
        assert!(!b.agent.chip_mut().unwrap().is_silent());
        b.now += 1_000_000_000;
        rest(&mut b);
        said.extend(woken(&mut b, id));
        if b.agent.chip_mut().unwrap().is_silent() {
            break;
        }
        if !said.is_empty() {
            assert_eq!(packets(&std::mem::take(&mut said)), 0);
            said = b.ask(id, &all);
        }
    }
    assert_eq!(packets(&said), u64::MAX);
    assert_eq!(packets(&b.ask(id, &all)), u64::MAX);
    assert!(b.agent.chip_mut().unwrap().lost().is_none());
}

/// Packets of each flow of an answer about flows.
fn each(said: &[Said]) -> Vec<u64> {
    assert_eq!(kinds(said), [MULTIPART_REPLY]);
    let (mut all, mut at) = (Vec::new(), 8);
    while at < said[0].body.len() {
        all.push(wide(&said[0].body, at + 32));
        at += usize::from(u16::from_be_bytes([said[0].body[at], said[0].body[at + 1]]));
    }
    all
}

/// What a chip that is lost has counted since it was read nobody knows, nor what it counts meanwhile: all ones, whether it
/// has ended or says nothing. What it never had is the software's alone.
#[test]
fn numbers_of_a_chip_that_is_lost_are_all_ones() {
    let typed = |ether: u128, m: FlowMod| {
        let fields = vec![Oxm::exact(Field::EthType, ether)];
        let matching = Match {
            fields,
            exact: false,
        };
        Request::FlowMod(FlowMod { matching, ..m })
    };
    const LOST: u64 = u64::MAX;
    for ended in [false, true] {
        let mut b = with_chip();
        let id = b.connect(Version::V13);
        attach(&mut b);
        let to_2 = Action::Output {
            port: 2,
            max_len: 0,
        };
        b.fine(
            id,
            &Request::GroupMod(GroupMod {
                command: GroupCommand::Add,
                kind: GroupType::Indirect,
                group: 8,
                buckets: vec![Bucket {
                    weight: 0,
                    watch_port: port::ANY,
                    watch_group: GROUP_ANY,
                    actions: vec![to_2],
                }],
            }),
        );
        let mut grouped = to(FlowCommand::Add, 2);
        grouped.instructions.apply = Some(vec![Action::Group(8)]);
        b.fine(id, &typed(0x88b5, to(FlowCommand::Add, 2)));
        b.fine(id, &typed(0x88b6, grouped));
        // the controller's are the software's
        b.fine(id, &typed(0x88b7, to(FlowCommand::Add, port::CONTROLLER)));
        rest(&mut b);
        let all = asks(Asks::Flow(all_flows()));
        let told = |b: &mut Bench| {
            b.ask(id, &all);
            rest(b);
            woken(b, id)
        };
        assert_eq!(b.frame(1, &ether(2, 1)).len(), 1);
        assert_eq!(each(&told(&mut b)), [1, 0, 0]);
        let chip = b.agent.chip_mut().unwrap();
        chip.lose("it says nothing");
        if ended {
            chip.gone();
        }
        // what comes now it never had
        b.fine(id, &typed(0x88b8, to(FlowCommand::Add, 2)));
        assert_eq!(each(&b.ask(id, &all)), [LOST, LOST, 0, 0]);
        let at = |b: &mut Bench, what: Asks<'_>, at: usize| {
            let said = b.ask(id, &asks(what));
            assert_eq!(kinds(&said), [MULTIPART_REPLY]);
            wide(&said[0].body, 8 + at)
        };
        assert_eq!(at(&mut b, Asks::Aggregate(all_flows()), 0), LOST);
        assert_eq!(at(&mut b, Asks::Group { group: 8 }, 16), LOST);
        assert_eq!(at(&mut b, Asks::Group { group: 8 }, 40), LOST);
        // lookups of the first table
        assert_eq!(at(&mut b, Asks::Table, 8), LOST);
        let ports = [8, 16, 40, 48].map(|n| at(&mut b, Asks::Port { port: 2 }, n));
        // of ports this device has told nothing; no frame that it lost is known
        assert_eq!(ports, [LOST, LOST, 0, LOST]);
        // the next one is written anew: of these it stays so, the others are known
        attach(&mut b);
        assert_eq!(each(&told(&mut b)), [LOST, LOST, 0, 0]);
    }
}

/// Nothing is looked at while it is not known whether the chip has room for it.
#[test]
fn messages_wait_for_room() {
    let mut b = with_chip();
    let (id, now) = (b.connect(Version::V13), b.now);
    let chip = b.agent.chip_mut().unwrap();
    chip.attach(slow(), now).unwrap();
    while !chip.is_busy() {
        assert!(chip.turn(now), "it never asks for room: {chip:?}");
    }
    b.fine(id, &Request::FlowMod(to(FlowCommand::Add, 2)));
    assert_eq!(kinds(&b.ask(id, &Request::Echo(b"x"))), [ECHO_REPLY]);
    assert_eq!(flows(&b), 0);
    rest(&mut b);
    assert_eq!((woken(&mut b, id), flows(&b)), (vec![], 1));
}

/// A flow that went is told of with its rows' last counts, at once if it has none, and with none if nobody can be asked.
#[test]
fn flow_removed_has_the_last_counts() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    attach(&mut b);
    let told = |m: FlowMod| {
        let flags = flow_flags::SEND_FLOW_REM;
        Request::FlowMod(FlowMod { flags, ..m })
    };
    // the controller's own packets are the software's
    b.fine(id, &told(to(FlowCommand::Add, port::CONTROLLER)));
    rest(&mut b);
    b.frame(1, &ether(2, 1));
    assert_eq!(kinds(&b.said(id)), [PACKET_IN]);
    let said = b.ask(id, &told(to(FlowCommand::Delete, 2)));
    assert_eq!(kinds(&said), [FLOW_REMOVED]);
    assert_eq!(wide(&said[0].body, 24), 1);
    // a row's
    b.fine(id, &told(to(FlowCommand::Add, 2)));
    rest(&mut b);
    b.frame(1, &ether(2, 1));
    assert_eq!(b.ask(id, &told(to(FlowCommand::Delete, 2))), []);
    b.agent.tick(b.now);
    assert_eq!((b.said(id), flows(&b)), (vec![], 0));
    b.agent.chip_mut().unwrap().lose("it says nothing");
    b.agent.tick(b.now);
    let said = b.said(id);
    assert_eq!(kinds(&said), [FLOW_REMOVED]);
    assert_eq!(wide(&said[0].body, 24), u64::MAX);
}

/// Where the tables begin anew meanwhile, nothing is known of these.
#[test]
fn flow_removed_comes_without_last_counts_when_the_tables_begin_anew() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    attach(&mut b);
    let told = |m: FlowMod| {
        let flags = flow_flags::SEND_FLOW_REM;
        Request::FlowMod(FlowMod { flags, ..m })
    };
    b.fine(id, &told(to(FlowCommand::Add, 2)));
    rest(&mut b);
    assert_eq!(b.ask(id, &told(to(FlowCommand::Delete, 2))), []);
    b.agent.disconnected(id, b.now);
    let other = b.connect(Version::V10);
    // empty as they are, its flow is waited for
    assert_eq!(b.agent.datapath().version(), Version::V13);
    let said = b.ask(other, &Request::FlowMod(blank()));
    assert_eq!(kinds(&said), [FLOW_REMOVED]);
    assert_eq!(wide(&said[0].body, 64), u64::MAX);
    assert_eq!(b.agent.datapath().version(), Version::V10);
}

/// Whether a flow was used the chip is asked before it ends; one that can't be asked keeps nothing alive.
#[test]
fn an_idle_flow_ends_when_the_chip_was_asked() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    attach(&mut b);
    let idle = || {
        Request::FlowMod(FlowMod {
            idle_timeout: 1,
            ..to(FlowCommand::Add, 2)
        })
    };
    b.fine(id, &idle());
    rest(&mut b);
    b.now += 2_000_000_000;
    for _ in 0..3 {
        b.agent.tick(b.now);
        assert_eq!(flows(&b), 1, "nobody was asked");
    }
    rest(&mut b);
    b.agent.tick(b.now);
    assert_eq!(flows(&b), 0);
    b.fine(id, &idle());
    b.agent.chip_mut().unwrap().lose("it says nothing");
    b.now += 2_000_000_000;
    b.agent.tick(b.now);
    assert_eq!(flows(&b), 0);
}

/// What the chip looked up counts too: none before it answers. Nobody knows it any more once a chip was lost that did, nor
/// what met a flow where it may drop what meets none.
#[test]
fn lookups_of_the_first_table_are_the_chips_too() {
    let mut b = with_chip();
    let id = b.connect(Version::V13);
    let ask = asks(Asks::Table);
    let table0 = |said: &[Said]| {
        assert_eq!(kinds(said), [MULTIPART_REPLY]);
        [16, 24].map(|at| wide(&said[0].body, at))
    };
    assert_eq!(b.frame(1, &ether(2, 1)), []);
    assert_eq!(table0(&b.ask(id, &ask)), [1, u64::MAX]);
    for told in [[1, u64::MAX], [u64::MAX; 2]] {
        attach(&mut b);
        assert_eq!(b.ask(id, &ask), []);
        rest(&mut b);
        assert_eq!(table0(&woken(&mut b, id)), told);
        b.agent.chip_mut().unwrap().lose("it says nothing");
    }
}
