//! Requests and answers as bytes: for who records what a kernel is asked and says.

use super::consts::{NLM_F_ACK, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR};
use super::socket::{Dump, Error, Protocol, Requests, Result};
use super::wire::{Msgs, Writer, u16_at, u32_at};

impl Dump {
    /// The request, with sequence number 0.
    #[must_use]
    pub fn request(self) -> Vec<u8> {
        let mut w = Writer::new();
        self.write(&mut w, 0);
        w.bytes().to_vec()
    }
}

impl Requests {
    /// Sends one message to rtnetlink, as it is, and waits for its NLMSG_ERROR (the message has NLM_F_ACK, or is a
    /// question that is answered by one other message): 0 or a positive errno. What else comes goes to `other`.
    ///
    /// # Errors
    /// Only when the socket itself fails.
    pub fn raw(&mut self, message: &[u8], mut other: impl FnMut(&[u8])) -> Result<i32> {
        const REQUEST: &str = "send a message";
        self.give(Protocol::Route, message, REQUEST)?;
        let seq = u32_at(message, 8);
        let acknowledged = u16_at(message, 6) & NLM_F_ACK != 0;
        loop {
            let mut end = None;
            self.take(Protocol::Route, REQUEST, |datagram| {
                for msg in Msgs::new(datagram).filter(|m| m.seq == seq) {
                    match msg.kind {
                        NLMSG_ERROR => end = Some((u32_at(msg.payload, 0) as i32).wrapping_neg()),
                        _ if !acknowledged => end = Some(0),
                        _ => {}
                    }
                }
                other(datagram);
            })?;
            if let Some(errno) = end {
                return Ok(errno);
            }
        }
    }

    /// A whole dump as it comes, each datagram to `sink`: the last has NLMSG_DONE or, from a kernel that has no such
    /// objects, NLMSG_ERROR. `true`: the tables changed meanwhile, so objects may be missing; dump again.
    ///
    /// # Errors
    /// Only when the socket itself fails.
    pub fn raw_dump(
        &mut self,
        protocol: Protocol,
        request: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<bool> {
        const REQUEST: &str = "dump";
        self.give(protocol, request, REQUEST)?;
        let (mut done, mut interrupted) = (false, false);
        while !done {
            self.take(protocol, REQUEST, |datagram| {
                for msg in Msgs::new(datagram) {
                    interrupted |= msg.flags & NLM_F_DUMP_INTR != 0;
                    done |= matches!(msg.kind, NLMSG_DONE | NLMSG_ERROR);
                }
                sink(datagram);
            })?;
        }
        Ok(interrupted)
    }

    fn give(&mut self, protocol: Protocol, message: &[u8], request: &'static str) -> Result<()> {
        self.socket(protocol)?
            .send(message, 0)
            .map(|_| ())
            .map_err(|e| Error::io(request, &e))
    }

    fn take(
        &mut self,
        protocol: Protocol,
        request: &'static str,
        sink: impl FnOnce(&[u8]),
    ) -> Result<()> {
        let mut buf = std::mem::take(&mut self.buf);
        let got = self
            .socket(protocol)
            .and_then(|s| super::socket::recv(s, &mut buf, request));
        if let Ok(n) = &got {
            sink(buf.get(..*n).unwrap_or(&[]));
        }
        self.buf = buf;
        got.map(|_| ())
    }
}
