/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A board's own description of its front panel (seed 000, 6.1), for the chip behind PCI at 00:02.0 of the lab's
 * machine: three cages, printed 11 to 13 on the box, and the base of their MAC addresses. docs/ports.md has the words.
 */
DefinitionBlock ("", "SSDT", 2, "TANDEM", "BOARD", 1)
{
    External (\_SB.PCI0.S10, DeviceObj)

    Scope (\_SB.PCI0.S10)
    {
        Name (_DSD, Package ()
        {
            ToUUID ("daffd814-6eba-4d8c-8a91-bc9bbf4aa301"),
            Package ()
            {
                Package () { "mac-address", Package () { 0x02, 0x54, 0x4E, 0xAC, 0x00, 0x00 } }
            },
            ToUUID ("dbb8e3e6-5886-4ba6-8795-1319f52a966b"),
            Package ()
            {
                Package () { "port@1", "PRT1" },
                Package () { "port@2", "PRT2" },
                Package () { "port@3", "PRT3" }
            }
        })
        Name (PRT1, Package ()
        {
            ToUUID ("daffd814-6eba-4d8c-8a91-bc9bbf4aa301"),
            Package ()
            {
                Package () { "reg", 1 },
                Package () { "tandem,front-panel", 11 },
                Package () { "tandem,cage", "qsfp" },
                Package () { "tandem,lanes", 4 },
                Package () { "tandem,breakout", Package () { 1, 2 } },
                Package () { "tandem,max-speed-mbps", 40000 }
            }
        })
        Name (PRT2, Package ()
        {
            ToUUID ("daffd814-6eba-4d8c-8a91-bc9bbf4aa301"),
            Package ()
            {
                Package () { "reg", 2 },
                Package () { "tandem,front-panel", 12 },
                Package () { "tandem,cage", "qsfp" },
                Package () { "tandem,lanes", 4 },
                Package () { "tandem,max-speed-mbps", 40000 }
            }
        })
        Name (PRT3, Package ()
        {
            ToUUID ("daffd814-6eba-4d8c-8a91-bc9bbf4aa301"),
            Package ()
            {
                Package () { "reg", 3 },
                Package () { "tandem,front-panel", 13 },
                Package () { "tandem,cage", "sfp" },
                Package () { "tandem,max-speed-mbps", 10000 }
            }
        })
    }
}
