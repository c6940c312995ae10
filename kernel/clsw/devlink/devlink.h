/* SPDX-License-Identifier: GPL-2.0 */
/* devlink as the rest of clsw sees it. */
#ifndef _CLSW_DEVLINK_H
#define _CLSW_DEVLINK_H

#include "../core.h"

extern const struct devlink_ops clsw_devlink_ops;

/* May sleep: cd->trouble becomes a health report */
void clsw_health_report(struct clsw_device *cd);
/* May sleep: recovery has ended, 0 or -errno */
void clsw_health_recovered(struct clsw_device *cd, int err);

#endif /* _CLSW_DEVLINK_H */
