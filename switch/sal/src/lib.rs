//! SAL: the user-space driver of the ABI
