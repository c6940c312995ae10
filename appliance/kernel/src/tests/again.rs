// SPDX-License-Identifier: Apache-2.0
//! A new process on what another one has left.

use super::*;

/// Who begins has told FRR nothing, and has no tree: both are told all of it, whatever one before has carried out.
#[test]
fn who_starts_again_tells_protocols_and_the_tree_anew() {
    let mut now = Config::default();
    now.tree.on = true;
    let ospf = tandem_swconfig::routing::Router::Ospf(1);
    now.routers.insert(ospf, BTreeSet::new());
    let (_, kernel) = engine(&now);
    let told = (kernel.is().protocols, kernel.is().tree);
    assert!(!told.0.is_empty() && told.1.tree.on);
    // the same process would say nothing of it
    kernel.others(|is| (is.protocols, is.tree) = Default::default());
    let mut again = on(&kernel);
    again.restore(Was::Said(&now), &now).unwrap();
    assert_eq!((kernel.is().protocols, kernel.is().tree), told);
    // and one that is to have no tree opens what another one has closed
    kernel.others(|is| is.tree.tree.on = true);
    on(&kernel)
        .restore(Was::Said(&now), &Config::default())
        .unwrap();
    assert!(!kernel.is().tree.tree.on);
}

/// A port's PVID goes from VLAN 4 to VLAN 2, and the very step that gives it is refused when the kernel has done it.
#[test]
fn a_pvid_that_is_refused_is_where_it_was() {
    let native = |vid| {
        let mut set = trunk(&[2, 4]);
        set.switchport.as_mut().unwrap().native = vid;
        Config {
            vlans: BTreeMap::from([(2, Vlan::default()), (4, Vlan::default())]),
            interfaces: BTreeMap::from([(port(1), set)]),
            ..Config::default()
        }
    };
    for n in 0..2 {
        let (engine, kernel) = engine(&native(4));
        let before = kernel.is();
        kernel.0.lock().unwrap().left = Some(n);
        engine.apply(&native(4), &native(2)).unwrap_err();
        assert_eq!(kernel.is(), before, "step {n}");
    }
}
