//! TND_CLS_LED: the lamp beside a port. There from the start, UPDATE only; it forwards nothing.

use crate::Firmware;
use crate::dump::slots;
use crate::object::{Failure, INVALID, Object, body};
use tandem_abi::raw;
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Led(raw::tnd_led);

impl Led {
    fn new(port: u16, blink: bool) -> Self {
        Self(raw::tnd_led {
            struct_size: size_of::<raw::tnd_led>() as u16,
            port,
            blink: blink.into(),
            ..Default::default()
        })
    }
}

impl Object for Led {
    const CLASS: u16 = raw::TND_CLS_LED;
    const NAME: &'static str = "led";
    const FIXED: bool = true;

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 4).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        if self.0.blink > 1 {
            return Err(INVALID);
        }
        Ok(Self::new(self.0.port, self.0.blink == 1))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let port = self.0.port;
        fw.state
            .port(port)
            .map(|_| Self::new(port, fw.blinks(port)))
    }
    fn write(&self, fw: &mut Firmware, _: Option<&Self>) -> Result<(), Failure> {
        if self.0.blink == 1 {
            fw.blinking.insert(self.0.port);
        } else {
            fw.blinking.remove(&self.0.port);
        }
        Ok(())
    }
    fn remove(&self, _: &mut Firmware) {}
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        slots(fw, from, u32::from(fw.state.port_count()) + 1, |at| {
            let n = at as u16;
            fw.state.port(n).map(|_| Self::new(n, fw.blinks(n)))
        })
    }
}
