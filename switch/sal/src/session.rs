//! One connection to the device.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use tandem_abi::layout::DOORBELL_HEADER;
use tandem_carrier::{Bell, CarrierError, DriverSide};

use crate::SalError;
use crate::control::SalControl;
use crate::io::{Parts, SalIo};
use crate::platform::{Platform, Splits};

/// How to attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// Tables emptied.
    Cold,
    /// Tables kept.
    Warm,
}

/// A connection: the board's description, kept descriptors, attach. Dropping it detaches; the
/// device goes on forwarding with what its tables hold.
#[derive(Debug)]
pub struct Sal {
    driver: DriverSide,
    platform: Platform,
}

impl Sal {
    /// Connects; `name` is what a refused second driver is told, `splits` the ports that are to be split.
    pub fn connect(
        path: &Path,
        name: &str,
        splits: &Splits,
        timeout: Duration,
    ) -> Result<Sal, SalError> {
        let driver = DriverSide::connect(path, name, timeout)?;
        let mut platform = Platform::parse(&driver.platform())?;
        platform.split(splits)?;
        Ok(Sal { driver, platform })
    }

    /// The board.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// The device's name.
    pub fn device_name(&self) -> String {
        self.driver.device_name()
    }

    /// Attaches. The halves of an earlier attach are dead with the call.
    pub fn attach(&mut self, how: Attach) -> Result<(SalControl, SalIo), SalError> {
        let rings = self.driver.attach(how == Attach::Cold)?;
        let epoch = rings.epoch;
        let mut pairs = Vec::with_capacity(rings.pairs.len());
        for pair in rings.pairs {
            let kick = self.driver.to_device(pair.cmd.ring().doorbell)?;
            let wake = self.driver.from_device(pair.cpl.ring().doorbell)?;
            pairs.push((pair, kick, wake));
        }
        let parts = Parts {
            event_wake: self.driver.from_device(rings.event.ring().doorbell)?,
            rx_wake: self.driver.from_device(rings.rx.ring().doorbell)?,
            tx_kick: self.driver.to_device(rings.tx.ring().doorbell)?,
            event: rings.event,
            rx: rings.rx,
            tx: rings.tx,
        };
        Ok((
            SalControl::new(pairs, rings.arena, epoch),
            SalIo::new(parts, epoch),
        ))
    }

    /// Detaches in good order; tables stay.
    pub fn detach(&mut self) -> Result<(), SalError> {
        Ok(self.driver.detach()?)
    }

    /// Whether the session stands: an error says why it doesn't.
    pub fn check(&self) -> Result<(), CarrierError> {
        self.driver.check()
    }

    /// Readable when the device goes away.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.driver.socket()
    }

    /// Rung when the device's state changes.
    pub fn state_bell(&self) -> Result<Bell, CarrierError> {
        self.driver.from_device(DOORBELL_HEADER)
    }

    /// Has the device keep a duplicate of `fd` for the next driver process.
    pub fn keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> Result<(), CarrierError> {
        self.driver.keep(name, fd)
    }

    /// A duplicate of what is kept.
    pub fn get(&mut self, name: &str) -> Result<Option<OwnedFd>, CarrierError> {
        self.driver.get(name)
    }

    /// All names that are kept, sorted.
    pub fn kept(&mut self) -> Result<Vec<String>, CarrierError> {
        self.driver.kept()
    }

    /// Lets the device close what it keeps under `name`; false: nothing was.
    pub fn forget(&mut self, name: &str) -> Result<bool, CarrierError> {
        self.driver.forget(name)
    }
}
