//! One test for each thing that the kernel does in silence.
