// SPDX-License-Identifier: Apache-2.0
//! The rules, and what of them has changed since it was last told.
use crate::form::{Answer, Effect, TPID, Tag};
use crate::groups::{Via, Vias};
use crate::tree::NodeId;
use crate::{Compose, FlowId, RuleId, Through, source};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use tandem_ofoffload::{
    Act, Beyond, Chain, Change, Flow, Only, Rewrite, Second, Step, Tagging, Wanted,
};
use tandem_openflow::Oxm;

/// A rule of the composition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Less is further in front.
    pub place: Vec<Step>,
    /// What is asked of a packet as it comes in.
    pub fields: Vec<Oxm>,
    /// What becomes of it.
    pub answer: Answer,
    /// Has a flow of it an idle timeout?
    pub idle: bool,
    /// Must a flow of it be counted?
    pub counted: bool,
    /// Only for frames whose source the chip has at their port; of others the answer is the CPU's.
    pub checked: bool,
    /// The table of the chip that may answer.
    pub only: Option<Only>,
    /// Of a source that no table of sources has.
    pub unknown: bool,
    /// Where some ports' frames are in VLANs whatever tag they have: the VLAN of all of its packets, 0 for none. Of a
    /// [checked](Rule::checked) rule it is what its match does not say.
    pub domain: Option<u16>,
    /// The flows that it is made of.
    pub flows: Vec<FlowId>,
    /// Those of them that count other bytes than came in.
    pub resized: Vec<FlowId>,
    /// The groups and buckets that its packets go through, each as often as they do.
    pub via: Via,
    /// The table that has no flow for its packets.
    pub ends: Option<u8>,
}

impl Rule {
    /// What a chip of [`tandem_ofoffload`] is asked for.
    pub fn wanted(&self) -> Wanted {
        match &self.answer {
            Answer::Drop => Wanted::Act(Act::Drop),
            Answer::Out { ports, effect } => match written(*effect) {
                Some(rewrite) => {
                    let ports = *ports;
                    Wanted::Act(Act::Out { ports, rewrite })
                }
                None => Wanted::Beyond(Beyond::Tag),
            },
            Answer::Forms(both) => match both.map(|(_, effect)| written(effect)) {
                [Some(rewrite), Some(_)] => {
                    let ports = both[0].0;
                    Wanted::Act(Act::Out { ports, rewrite })
                }
                _ => Wanted::Beyond(Beyond::Tag),
            },
            Answer::Cpu(None) => Wanted::Act(Act::Cpu),
            Answer::Cpu(Some(b)) => Wanted::Beyond(*b),
        }
    }

    /// Ports that its packets leave in another form than by those that are [wanted](Rule::wanted).
    pub fn second(&self) -> Option<Second> {
        let (Answer::Forms(both), Wanted::Act(_)) = (&self.answer, self.wanted()) else {
            return None;
        };
        let (ports, effect) = both[1];
        written(effect).map(|rewrite| Second { ports, rewrite })
    }

    /// Both forms: what another flow at its place has to have in common with it to be that one, modified.
    fn forms(&self) -> Option<(Wanted, Second)> {
        self.second().map(|second| (self.wanted(), second))
    }

    /// Who counts its packets.
    fn counts(&self) -> (&[FlowId], &[FlowId], &[Through], Option<u8>) {
        (&self.flows, &self.resized, &self.via, self.ends)
    }

    fn same_place(&self) -> Same {
        let here = (self.place.clone(), self.fields.clone());
        let more = (self.only, self.unknown, self.domain);
        (here.0, here.1, more, self.forms())
    }
}

/// Place and match, what else a rule has that stays, and its forms, if it has two.
type Same = (
    Vec<Step>,
    Vec<Oxm>,
    (Option<Only>, bool, Option<u16>),
    Option<(Wanted, Second)>,
);

/// What of a packet is written, its tag included, if a chip has words for it: one tag of 802.1Q at most, whose VLAN is known.
fn written(effect: Effect) -> Option<Rewrite> {
    let own = effect.rewrite;
    match effect.tag {
        Tag::Keep => Some(own),
        Tag::Pop => Some(Rewrite {
            tag: Tagging::Goes,
            ..own
        }),
        Tag::Push {
            tpid: TPID,
            vid: Some(vid @ 1..=4094),
            pcp,
        } if (own.vid, own.pcp) == (None, None) => Some(Rewrite {
            tag: Tagging::Comes,
            vid: Some(vid),
            pcp: Some(pcp.unwrap_or(0)),
            dscp: own.dscp,
        }),
        Tag::Push { .. } => None,
    }
}

/// Whose a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Node(NodeId),
    /// Of rules that are one.
    Group(u32),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Boxed: a table that grows has room for twice as many.
    live: HashMap<RuleId, Box<(Owner, Rule)>>,
    of: HashMap<Owner, RuleId>,
    /// Those that ask for a source.
    from: HashMap<u64, BTreeSet<RuleId>>,
    /// As they were told, if they changed since; `None`: they were not.
    told: BTreeMap<RuleId, Option<Rule>>,
    next: RuleId,
    free: Vec<RuleId>,
    /// Of other flows than before, under their old numbers.
    pub moved: BTreeSet<RuleId>,
    /// Are the sources asked for, as far as was told?
    asked: bool,
    pub vias: Vias,
}

impl Rules {
    pub fn iter(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        self.live.iter().map(|(id, l)| (*id, &l.1))
    }

    pub fn get(&self, id: RuleId) -> Option<&Rule> {
        self.live.get(&id).map(|l| &l.1)
    }

    pub fn of(&self, owner: Owner) -> Option<RuleId> {
        self.of.get(&owner).copied()
    }

    /// The rule of an owner, or that there is none.
    pub fn put(&mut self, owner: Owner, rule: Option<Rule>) {
        if let Some(id) = self.of.remove(&owner)
            && let Some(live) = self.live.remove(&id)
        {
            let (_, old) = *live;
            self.index(id, &old, false);
            if let Some(None) = self.told.get(&id) {
                self.told.remove(&id);
                self.free.push(id);
            } else {
                self.told.insert(id, Some(old));
            }
        }
        let Some(mut rule) = rule else { return };
        self.vias.share(&mut rule.via);
        let id = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.index(id, &rule, true);
        self.live.insert(id, Box::new((owner, rule)));
        self.of.insert(owner, id);
        self.told.insert(id, None);
    }

    fn index(&mut self, id: RuleId, rule: &Rule, to: bool) {
        if let Some(a) = source::address(&rule.fields) {
            source::put(&mut self.from, a, id, to);
        }
    }

    /// What has changed, as one decision: a rule of the place and match of one that went has its number.
    fn changes(&mut self) -> Vec<Change> {
        let mut gone = HashMap::default();
        let (mut new, mut out) = (Vec::new(), Vec::new());
        for (id, was) in std::mem::take(&mut self.told) {
            match was {
                Some(old) => {
                    gone.insert(old.same_place(), (id, old));
                }
                None => new.push(id),
            }
        }
        for id in new {
            let Some((owner, rule)) = self.live.get(&id).map(|l| (**l).clone()) else {
                continue;
            };
            if let Some((old_id, old)) = gone.remove(&rule.same_place()) {
                self.live.remove(&id);
                self.index(id, &rule, false);
                self.index(old_id, &rule, true);
                self.free.push(id);
                self.of.insert(owner, old_id);
                if old.counts() != rule.counts() {
                    self.moved.insert(old_id);
                }
                let same = (old.wanted(), old.idle, old.counted)
                    == (rule.wanted(), rule.idle, rule.counted);
                if !same {
                    out.push(Change::Modify {
                        id: old_id,
                        wanted: rule.wanted(),
                        idle: rule.idle,
                        counted: rule.counted,
                    });
                }
                self.live.insert(old_id, Box::new((owner, rule)));
                continue;
            }
            out.push(Change::Add {
                id,
                flow: Flow {
                    priority: 0,
                    fields: rule.fields.clone(),
                    wanted: rule.wanted(),
                    idle: rule.idle,
                    counted: rule.counted,
                    // As long as nothing is measured, what is dropped matters least
                    traffic: u64::from(rule.answer != Answer::Drop),
                },
                chain: Chain {
                    second: rule.second(),
                    place: rule.place,
                    only: rule.only,
                    unknown: rule.unknown,
                    domain: rule.domain,
                },
            });
        }
        let mut ids: Vec<RuleId> = gone.into_values().map(|(id, _)| id).collect();
        ids.sort_unstable();
        for id in ids {
            // Its number is free when this is told
            self.free.push(id);
            out.push(Change::Remove { id });
        }
        out
    }
}

impl Compose {
    pub(crate) fn rule_at(&self, n: NodeId) -> Option<RuleId> {
        let owner = match self.group_of(n) {
            Some(g) => Owner::Group(g),
            None => Owner::Node(n),
        };
        self.rules.of(owner)
    }

    /// A leaf has a rule.
    pub(crate) fn emit(&mut self, n: NodeId) {
        let Some(x) = self.node(n) else { return };
        let flows = self.way(n);
        let has = |f: fn(&crate::Flow) -> bool| {
            let mut all = flows.iter().filter_map(|id| self.flows.get(id));
            all.any(|k| f(&k.flow))
        };
        let (answer, via) = self.answer(x);
        let rule = Rule {
            place: self.place(n),
            fields: x.fields.clone(),
            answer,
            idle: has(|f| f.idle),
            counted: has(|f| f.counted),
            checked: x.form.checked,
            only: None,
            unknown: false,
            domain: None,
            flows,
            resized: self.resized(n),
            via,
            ends: self.ends(x),
        };
        if rule.checked {
            self.join(n, rule);
        } else {
            self.rules.put(Owner::Node(n), Some(rule));
        }
    }

    pub(crate) fn unemit(&mut self, n: NodeId) {
        if self.group_of(n).is_some() {
            self.part(n);
        } else {
            self.rules.put(Owner::Node(n), None);
        }
    }

    pub(crate) fn flush(&mut self) -> Vec<Change> {
        self.regroup();
        let asks = self.asks_sources();
        let all = std::mem::replace(&mut self.rules.asked, asks) != asks || self.take_reclassed();
        let ids: BTreeSet<RuleId> = match all {
            true => self.rules.live.keys().copied().collect(),
            false => {
                let known = self.changed_sources();
                let of = known.iter().filter_map(|a| self.rules.from.get(a));
                let told = self.rules.told.keys();
                told.chain(of.flatten()).copied().collect()
            }
        };
        for id in ids {
            let Some((owner, rule)) = self.rules.live.get(&id).map(|l| &**l) else {
                continue;
            };
            let (owner, only, unknown) = (*owner, self.only(rule), self.unknown(rule));
            let domain = self.domain(&rule.fields);
            let is = (rule.only, rule.unknown, rule.domain);
            if !rule.checked && is != (only, unknown, domain) {
                let rule = Rule {
                    only,
                    unknown,
                    domain,
                    ..rule.clone()
                };
                self.rules.put(owner, Some(rule));
            }
        }
        self.rules.changes()
    }
}
