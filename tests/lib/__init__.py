# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests and the demo stand on: namespaces, hosts, the switch, FRR, packets, traffic."""
