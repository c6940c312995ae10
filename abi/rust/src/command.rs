//! Commands as tests and benches build them, and what a device of theirs makes of one (feature `testing`).
//!
//! ```text
//! Command::create(&route).cookie(7).with_lease(3)   what is to be done
//!     .encode(seq, epoch, arena_offset)             the descriptor of one post
//! ```

use zerocopy::{Immutable, IntoBytes};

use crate::memory::{Arena, Memory};
use crate::object::{BODY_MAX, BodyError, Object};
use crate::raw;

/// One command before it has a place in a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    head: raw::tnd_cmd,
    body: Vec<u8>,
}

impl Command {
    fn new(op: u16, cls: u16) -> Self {
        Command {
            head: raw::tnd_cmd {
                op,
                cls,
                ..Default::default()
            },
            body: Vec::new(),
        }
    }

    fn object<T: Object>(op: u16, object: &T) -> Self {
        let mut object = *object;
        object.set_struct_size();
        Command {
            body: object.as_bytes().to_vec(),
            ..Command::new(op, T::CLASS)
        }
    }

    /// Asks for nothing: whoever posts it is there.
    pub fn nop() -> Self {
        Self::new(raw::TND_OP_NOP, raw::TND_CLS_NONE)
    }

    /// Makes an object; an equal one that is there already is success.
    pub fn create(object: &impl Object) -> Self {
        Self::object(raw::TND_OP_CREATE, object)
    }

    /// Replaces an object in place.
    pub fn update(object: &impl Object) -> Self {
        Self::object(raw::TND_OP_UPDATE, object)
    }

    /// Removes the object with this one's key.
    pub fn delete(object: &impl Object) -> Self {
        Self::object(raw::TND_OP_DELETE, object)
    }

    /// What follows the struct: members of a next-hop group or of a LAG, whose `count` says how many.
    #[must_use]
    pub fn members<M: IntoBytes + Immutable>(mut self, members: &[M]) -> Self {
        self.body.extend_from_slice(members.as_bytes());
        self
    }

    /// Reads objects of a class from `cursor` (0 first; then the completion's `result`); needs
    /// [`output`](Self::output).
    pub fn dump(cls: u16, cursor: u64) -> Self {
        let mut cmd = Self::new(raw::TND_OP_DUMP, cls);
        cmd.head.arg = cursor;
        cmd
    }

    /// Gives back what is left of a lease.
    pub fn release(lease: u32) -> Self {
        let mut cmd = Self::new(raw::TND_OP_RELEASE, raw::TND_CLS_NONE);
        cmd.head.lease = lease;
        cmd
    }

    /// All pools of one instant; needs [`output`](Self::output).
    pub fn snapshot() -> Self {
        Self::new(raw::TND_OP_SNAPSHOT, raw::TND_CLS_NONE)
    }

    /// Comes back unchanged in the completion.
    #[must_use]
    pub fn cookie(mut self, cookie: u64) -> Self {
        self.head.cookie = cookie;
        self
    }

    /// Takes slots from this lease before free ones.
    #[must_use]
    pub fn with_lease(mut self, lease: u32) -> Self {
        self.head.flags |= raw::TND_CMD_LEASE;
        self.head.lease = lease;
        self
    }

    /// Starts when command `seq` of another pair is done.
    #[must_use]
    pub fn wait(mut self, pair: u16, seq: u32) -> Self {
        self.head.flags |= raw::TND_CMD_WAIT;
        self.head.wait_pair = pair;
        self.head.wait_seq = seq;
        self
    }

    /// Where results go: offset in the arena and bytes.
    #[must_use]
    pub fn output(mut self, offset: u32, size: u32) -> Self {
        self.head.out_offset = offset;
        self.head.out_size = size;
        self
    }

    /// `TND_OP_*`.
    pub fn op(&self) -> u16 {
        self.head.op
    }

    /// `TND_CLS_*`.
    pub fn cls(&self) -> u16 {
        self.head.cls
    }

    /// The whole body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Bytes of arena that the body needs: none when it fits the descriptor.
    pub fn arena_size(&self) -> usize {
        if self.body.len() <= raw::TND_BODY_INLINE {
            0
        } else {
            self.body.len()
        }
    }

    /// The descriptor of one post. `arena_offset` is where the caller has written
    /// [`body`](Self::body) if [`arena_size`](Self::arena_size) isn't 0.
    pub fn encode(&self, seq: u32, epoch: u32, arena_offset: u32) -> raw::tnd_cmd {
        let mut cmd = self.head;
        cmd.seq = seq;
        cmd.epoch = epoch;
        cmd.body_size = self.body.len() as u32;
        if self.arena_size() > 0 {
            cmd.flags |= raw::TND_CMD_ARENA;
            cmd.body_offset = arena_offset;
        } else {
            for (to, from) in cmd.body.iter_mut().zip(&self.body) {
                *to = *from;
            }
        }
        cmd
    }
}

/// Device: copies a command's body out, once, into `out`. The descriptor itself was copied before.
pub fn read_body<M: Memory>(
    cmd: &raw::tnd_cmd,
    arena: &Arena<M>,
    out: &mut Vec<u8>,
) -> Result<(), BodyError> {
    out.clear();
    let size = usize::try_from(cmd.body_size).unwrap_or(usize::MAX);
    if size > BODY_MAX {
        return Err(BodyError::Long(cmd.body_size));
    }
    if cmd.flags & raw::TND_CMD_ARENA != 0 {
        arena.check(cmd.body_offset, size)?;
        out.resize(size, 0);
        arena.read(cmd.body_offset, out)?;
    } else {
        let body = cmd.body.get(..size).ok_or(BodyError::Long(cmd.body_size))?;
        out.extend_from_slice(body);
    }
    Ok(())
}

/// Device: a completion with the command's own words filled in.
pub fn completion(cmd: &raw::tnd_cmd, status: u16) -> raw::tnd_cpl {
    raw::tnd_cpl {
        op: cmd.op,
        cls: cmd.cls,
        status,
        cookie: cmd.cookie,
        seq: cmd.seq,
        epoch: cmd.epoch,
        ..Default::default()
    }
}
