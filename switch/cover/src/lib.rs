//! The cover rule: what turns to CPU when something does not fit
