//! One connection to the device.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use tandem_abi::DriverRings;
use tandem_abi::layout::DOORBELL_HEADER;
use tandem_carrier::{Bell, CarrierError, Connection, DriverSide, Region};

use crate::SalError;
use crate::control::SalControl;
use crate::io::{Parts, SalIo};
use crate::platform::{Platform, Splits};

/// A connection that the device has not answered yet.
#[derive(Debug)]
pub struct Connecting {
    begun: tandem_carrier::Connecting,
    splits: Splits,
}

/// What [`Connecting::go_on`] comes to.
#[derive(Debug)]
pub enum Connected {
    /// Nothing was heard.
    Waits(Connecting),
    /// It stands.
    Up(Box<Sal>),
}

impl Connecting {
    /// As [`Sal::connect`], without waiting; `timeout` is of the later calls.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn begin(
        path: &Path,
        name: &str,
        splits: &Splits,
        timeout: Duration,
    ) -> Result<Connecting, SalError> {
        Ok(Connecting {
            begun: tandem_carrier::Connecting::begin(path, name, timeout)?,
            splits: splits.clone(),
        })
    }

    /// Looks whether the device has answered. [`socket`](Self::socket) is readable then.
    ///
    /// # Errors
    /// It has refused, or gone, or its board can't be used.
    pub fn go_on(self) -> Result<Connected, SalError> {
        let Connecting { begun, splits } = self;
        Ok(match begun.go_on()? {
            Connection::Waits(begun) => Connected::Waits(Connecting { begun, splits }),
            Connection::Up(driver) => Connected::Up(Box::new(Sal::of(driver, &splits)?)),
        })
    }

    /// Its socket; none while the device takes no connections: then nothing tells when it does.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.begun.socket()
    }
}

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
        Sal::of(DriverSide::connect(path, name, timeout)?, splits)
    }

    fn of(driver: DriverSide, splits: &Splits) -> Result<Sal, SalError> {
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

    /// What the device can: `TND_FEAT_*`.
    pub fn offered(&self) -> u64 {
        self.driver.offered()
    }

    /// Attaches. The halves of an earlier attach are dead with the call.
    pub fn attach(&mut self, how: Attach) -> Result<(SalControl, SalIo), SalError> {
        let rings = self.driver.attach(how == Attach::Cold)?;
        self.halves(rings)
    }

    /// Asks for an attach; [`attached`](Self::attached) says when it is made.
    ///
    /// # Errors
    /// The device can't be asked.
    pub fn ask_attach(&mut self, how: Attach) -> Result<(), SalError> {
        Ok(self.driver.ask_attach(how == Attach::Cold)?)
    }

    /// What was [asked](Self::ask_attach) for; `None`: not yet. [`state_bell`](Self::state_bell) rings then.
    ///
    /// # Errors
    /// It was refused, or the device is gone.
    pub fn attached(&mut self) -> Result<Option<(SalControl, SalIo)>, SalError> {
        let rings = self.driver.attached()?;
        rings.map(|rings| self.halves(rings)).transpose()
    }

    fn halves(&mut self, rings: DriverRings<Region>) -> Result<(SalControl, SalIo), SalError> {
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

    /// Asks whether something is kept under `name`; [`answered`](Self::answered) has the answer. Several questions may be
    /// under way: they are answered in their order.
    ///
    /// # Errors
    /// It can't be asked.
    pub fn ask_kept(&mut self, name: &str) -> Result<(), CarrierError> {
        self.driver.ask_kept(name)
    }

    /// As [`keep`](Self::keep), without waiting; [`answered`](Self::answered) has the answer.
    ///
    /// # Errors
    /// It can't be asked.
    pub fn ask_keep(&mut self, name: &str, fd: BorrowedFd<'_>) -> Result<(), CarrierError> {
        self.driver.ask_keep(name, fd)
    }

    /// Whether what was asked first, of what is not answered, is there, or was done; `None`: not yet. [`socket`](Self::socket)
    /// is readable then.
    ///
    /// # Errors
    /// Refused, or the device is gone.
    pub fn answered(&mut self) -> Result<Option<bool>, CarrierError> {
        self.driver.answered()
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
