# SPDX-License-Identifier: Apache-2.0
"""python3 -m lib.osken_run APPLICATION.py PORT: runs an os-ken application on 127.0.0.1, as osken-manager does, without
eventlet."""

import importlib
import os
import sys

os.environ.setdefault("OSKEN_HUB_TYPE", "native")

from os_ken import cfg  # noqa: E402
from os_ken.base import app_manager  # noqa: E402

importlib.import_module("os_ken.controller.controller")  # its options
cfg.CONF(["--ofp-listen-host=127.0.0.1", f"--ofp-tcp-listen-port={sys.argv[2]}"], project="os_ken")
app_manager.AppManager.run_apps([sys.argv[1]])
