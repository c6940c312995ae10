//! The shared region as the rings see it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tandem_abi::Memory;
use tandem_linux::shm::Shared;

/// A mapped region; clones share the mapping, which goes with the last of them.
#[derive(Clone, Debug)]
pub struct Region(Arc<Shared>);

impl Region {
    /// Wraps a mapping.
    pub fn new(shared: Shared) -> Self {
        Region(Arc::new(shared))
    }

    /// A region of our own, zeroed and sealed: of a device, or of a test that is both sides.
    ///
    /// # Errors
    /// The system's, when there is no memory or no descriptor.
    pub fn create(name: &str, len: usize) -> Result<Self, crate::CarrierError> {
        Ok(Region::new(Shared::create(name, len)?))
    }
}

impl Memory for Region {
    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline]
    fn load_acquire(&self, off: usize) -> u32 {
        self.0.load_acquire(off)
    }
    #[inline]
    fn store_release(&self, off: usize, v: u32) {
        self.0.store_release(off, v);
    }
    #[inline]
    fn fence(&self) {
        self.0.fence();
    }
    #[inline]
    fn read(&self, off: usize, out: &mut [u8]) {
        self.0.read(off, out);
    }
    #[inline]
    fn write(&self, off: usize, data: &[u8]) {
        self.0.write(off, data);
    }
}

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
