// SPDX-License-Identifier: Apache-2.0
//! What is said to people.

use crate::flow::reasons;

#[test]
fn reasons_of_most_rules_come_first() {
    let told =
        |all: &[(&str, u32)]| reasons(all.iter().map(|(w, n)| ((*w).to_owned(), *n)).collect());
    assert!(told(&[]).starts_with("nowhere"));
    assert_eq!(told(&[("in IS2", 1)]), "in IS2");
    assert_eq!(told(&[("in IS2", 3)]), "3 of 3 rules: in IS2");
    let many = [("a", 1), ("b", 2), ("c", 9), ("d", 1), ("e", 1)];
    assert_eq!(
        told(&many),
        "9 of 14 rules: c; 2: b; 1: a; 2: for other reasons"
    );
}
