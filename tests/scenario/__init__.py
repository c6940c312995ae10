# SPDX-License-Identifier: Apache-2.0
"""Random scenarios, played on the kernel alone and on kernel + ASIC at the same time: docs/scenario.md."""
