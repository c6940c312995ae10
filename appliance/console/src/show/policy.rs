// SPDX-License-Identifier: Apache-2.0
//! `show policy-map interface`: what has passed, and what was too much.

use std::fmt::Write as _;

use tandem_swconfig::policy::DEFAULT;
use tandem_swgrammar::Parsed;

use super::chosen;
use crate::Switch;

/// All ports with a policy, or one.
pub(super) fn interfaces(switch: &Switch, parsed: &Parsed) -> String {
    let policed = switch.engine.policed();
    let mut text = String::new();
    for state in chosen(switch, parsed) {
        let Some(name) = &state.set.policy else {
            continue;
        };
        let _ = writeln!(text, " {}\n\n  Service-policy input: {name}\n", state.name);
        let policy = switch.config.policies.get(name);
        for (class, police) in policy.into_iter().flat_map(|p| &p.classes) {
            let any = switch.config.classes.get(class).is_some_and(|c| c.any);
            let kind = if any || class == DEFAULT {
                "match-any"
            } else {
                "match-all"
            };
            let _ = writeln!(text, "    Class-map: {class} ({kind})");
            let Some(police) = police else { continue };
            let key = (state.name, format!("class {class}"));
            let [passed, dropped] = policed.get(&key).copied().unwrap_or_default();
            let burst = police
                .burst
                .map_or_else(String::new, |b| format!(", burst {b} bytes"));
            let _ = writeln!(
                text,
                "      police:\n          rate {} bps{burst}",
                police.rate
            );
            let _ = writeln!(
                text,
                "        conformed {passed} packets; actions:\n          transmit"
            );
            let _ = writeln!(
                text,
                "        exceeded {dropped} packets; actions:\n          drop"
            );
        }
        text.push('\n');
    }
    text
}
