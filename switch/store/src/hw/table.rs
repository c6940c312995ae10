//! One hardware table of one class: objects by id.

use super::ids::{Ids, Numbers};
use super::{Fail, Ref};
use crate::api::Body;
use std::fmt::Debug;

/// What a class's body must be able to do.
pub(crate) trait HwBody: Clone + PartialEq + Debug {
    /// The objects are there from the start and only updated.
    const FIXED: bool = false;
    /// Ids are given once and for all: the key follows from the id.
    const KEEP: bool = false;
    /// The other body is the same object for the chip; else it must be deleted before this one is made.
    fn same_key(&self, _other: &Self) -> bool {
        true
    }
    /// The chip's numbers of its objects, if they don't follow from what they are.
    fn numbers(_ids: &mut Ids) -> Option<&mut Numbers> {
        None
    }
    /// It is about to be created: it gets its number on the chip, if its class has such.
    fn name(&mut self, _id: u32, _ids: &mut Ids) {}
    /// The command's body; `id` is the object's id in its table.
    fn encode(&self, id: u32, ids: &Ids) -> Body;
    /// What it refers to.
    fn deps(&self, f: &mut dyn FnMut(Ref));
    /// It is where it may not stay, should what it is to be have no room: it is deleted then.
    fn is_astray(&self, _want: &Self) -> bool {
        false
    }
    /// What an earlier core has left off stays off until all routes are what they are to be.
    fn as_left(&mut self, _ids: &Ids) {}
    /// What it is until it may take more than it does.
    fn not_yet(&mut self, _have: &Self) {}
    /// What it is on a chip that has little else yet.
    fn on_bare(&mut self) {}
    /// Becomes unequal to every body that can be wanted, with the same key and references.
    fn spoil(&mut self);
}

/// What is on its way.
#[derive(Debug, Clone, Default)]
pub(crate) enum Sent<B> {
    #[default]
    Nothing,
    Put(B),
    Delete,
}

/// One object.
#[derive(Debug, Clone)]
pub(crate) struct Obj<B> {
    pub want: Option<B>,
    pub have: Option<B>,
    pub sent: Sent<B>,
    /// Entries in hardware (or on their way) that refer to it.
    pub refs: u32,
    pub queued: bool,
    /// It failed, and something was freed since.
    pub retry: bool,
    /// A command about its key got no answer: `have` may be there or not, with any content.
    pub unsure: bool,
    pub attempts: u8,
    /// The id is taken.
    pub taken: bool,
    /// Slots, by the completions' deltas.
    pub cost: u32,
    pub fail: Option<Fail>,
    /// Somebody was told that it failed, and is to be told once it stands or goes: `fail` may be forgotten before, when
    /// it is to be tried again.
    pub told: bool,
    pub since: u64,
}

impl<B> Default for Obj<B> {
    fn default() -> Self {
        Obj {
            want: None,
            have: None,
            sent: Sent::Nothing,
            refs: 0,
            queued: false,
            retry: false,
            unsure: false,
            attempts: 0,
            taken: false,
            cost: 0,
            fail: None,
            told: false,
            since: 0,
        }
    }
}

impl<B> Obj<B> {
    /// Why it is not there, though it is wanted.
    pub fn failed(&self) -> Option<&Fail> {
        self.fail.as_ref().filter(|_| self.want.is_some())
    }

    /// It is on the chip as wanted, and nothing is on its way.
    pub fn is_settled(&self, want: Option<&B>) -> bool
    where
        B: PartialEq,
    {
        self.have.as_ref() == want && matches!(self.sent, Sent::Nothing)
    }

    /// It is wanted, failed and has not come to stand since, though it may be on its way again.
    pub fn missing(&self) -> bool {
        self.want.is_some() && (self.fail.is_some() || self.told)
    }

    /// It stands or goes: whether it had failed before.
    pub fn recovered(&mut self) -> bool {
        self.fail.take().is_some() | std::mem::take(&mut self.told)
    }
}

/// Objects by id. Ids are dense and the lowest free one is taken; the chip's are another matter ([`Ids`]).
#[derive(Debug)]
pub(crate) struct Table<B> {
    objs: Vec<Obj<B>>,
    free: std::collections::BinaryHeap<std::cmp::Reverse<u32>>,
    /// Ids given back since the last look: their owners drop the key.
    pub released: Vec<u32>,
}

impl<B> Default for Table<B> {
    fn default() -> Self {
        Table {
            objs: Vec::new(),
            free: Default::default(),
            released: Vec::new(),
        }
    }
}

impl<B: HwBody> Table<B> {
    /// Takes an id.
    pub fn take(&mut self) -> u32 {
        let id = match self.free.pop() {
            Some(std::cmp::Reverse(id)) => id,
            None => {
                self.objs.push(Obj::default());
                self.objs.len() as u32 - 1
            }
        };
        self.objs[id as usize].taken = true;
        id
    }

    /// The object; ids come from [`Table::take`].
    pub fn at(&mut self, id: u32) -> &mut Obj<B> {
        &mut self.objs[id as usize]
    }

    pub fn get(&self, id: u32) -> Option<&Obj<B>> {
        self.objs.get(id as usize)
    }

    /// Gives the id back, when neither wanted nor there nor on its way.
    pub fn release(&mut self, id: u32) {
        let o = &mut self.objs[id as usize];
        if o.taken && !B::KEEP {
            *o = Obj::default();
            self.free.push(std::cmp::Reverse(id));
            self.released.push(id);
        }
    }

    pub fn ids(&self) -> Vec<u32> {
        self.objs
            .iter()
            .enumerate()
            .filter(|(_, o)| o.taken)
            .map(|(i, _)| i as u32)
            .collect()
    }

    /// Objects that are wanted and failed.
    pub fn failed(&self) -> usize {
        self.objs.iter().filter(|o| o.failed().is_some()).count()
    }

    pub fn forget(&mut self) {
        for o in &mut self.objs {
            o.have = None;
            o.sent = Sent::Nothing;
            o.refs = 0;
            o.queued = false;
            o.retry = false;
            o.unsure = false;
            o.attempts = 0;
            o.cost = 0;
            o.fail = None;
            o.told = false;
        }
    }
}
