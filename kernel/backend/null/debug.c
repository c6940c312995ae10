// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs, /sys/kernel/debug/clsw_null/NAME/: what the bench reads, and how a
 * test makes the chip misbehave.
 *
 *   timing   "name value" lines, times in ns of CLOCK_MONOTONIC; a write resets
 *   watch    "10.1.2.0/24": timing's watch_ns is when this route was effective
 *   faults   "ACTION [op=N] [cls=N] [after=N] [count=N] [ns=N]", "clear", or
 *            "return" (a chip that had vanished is there again)
 *   link     "PORT 0|1"
 *   packet   "PORT 10.1.2.3": an IPv4 packet comes in and goes to the CPU if no
 *            route of the chip's is there for it
 *   check    "ok", or the name of the pool whose counters contradict the tables
 *   pools    the chip's accounting, a pool a line: name size used in_flight committed free
 */
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "null.h"

static const char * const actions[NULL_FAULT_COUNT] = {
	[NULL_FAULT_FAIL] = "fail",
	[NULL_FAULT_FULL] = "full",
	[NULL_FAULT_DELAY] = "delay",
	[NULL_FAULT_DROP] = "drop",
	[NULL_FAULT_HANG] = "hang",
	[NULL_FAULT_RESET] = "reset",
	[NULL_FAULT_VANISH] = "vanish",
};

/* The fault of a command: every one that matches counts it, the first that fires wins */
u8 null_fault(struct null_chip *n, u16 op, u16 cls, u64 *ns)
{
	u8 action = NULL_FAULT_NONE;
	u32 i;

	for (i = 0; i < n->faults; i++) {
		struct null_fault *f = &n->fault[i];

		if ((f->op && f->op != op) || (f->cls && f->cls != cls))
			continue;
		f->seen++;
		if (f->seen < f->after || (f->count && f->seen - f->after >= f->count) || action)
			continue;
		action = f->action;
		*ns = f->action == NULL_FAULT_DELAY ? f->ns : 0;
	}
	return action;
}

void null_note_route(struct null_chip *n, const struct tnd_route *r, u64 at)
{
	struct null_timing *t = &n->timing;

	if (!t->routes++)
		t->first_ns = at;
	t->last_ns = at;
	if (n->watching && !t->watch_ns && r->family == n->watch.family &&
	    r->prefix_len == n->watch.prefix_len && r->action == TND_ACT_FORWARD &&
	    !memcmp(r->addr, n->watch.addr, sizeof(r->addr)))
		t->watch_ns = at;
}

static int null_timing_show(struct seq_file *s, void *unused)
{
	struct null_chip *n = s->private;
	struct null_timing t;

	clsw_lock(n->cd);
	null_advance(n, ktime_get_ns());
	t = n->timing;
	clsw_unlock(n->cd);
	seq_printf(s, "now_ns %llu\n", ktime_get_ns());
	seq_printf(s, "routes %llu\n", t.routes);
	seq_printf(s, "first_ns %llu\n", t.first_ns);
	seq_printf(s, "last_ns %llu\n", t.last_ns);
	seq_printf(s, "watch_ns %llu\n", t.watch_ns);
	seq_printf(s, "writes %llu\n", t.writes);
	seq_printf(s, "batches %llu\n", t.batches);
	seq_printf(s, "queries %llu\n", t.queries);
	seq_printf(s, "busy_ns %llu\n", t.busy_ns);
	seq_printf(s, "model_ns %llu\n", t.model_ns);
	seq_printf(s, "irqs %llu\n", t.irqs);
	seq_printf(s, "depth %u\n", t.depth);
	seq_printf(s, "refused %llu\n", t.refused);
	seq_printf(s, "refused_op %u\n", t.refused_op);
	seq_printf(s, "refused_cls %u\n", t.refused_cls);
	seq_printf(s, "refused_status %u\n", t.refused_status);
	return 0;
}

static int null_timing_open(struct inode *inode, struct file *file)
{
	return single_open(file, null_timing_show, inode->i_private);
}

static ssize_t null_timing_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct null_chip *n = file_inode(file)->i_private;

	clsw_lock(n->cd);
	null_advance(n, ktime_get_ns());
	memset(&n->timing, 0, sizeof(n->timing));
	clsw_unlock(n->cd);
	return len;
}

static const struct file_operations timing_fops = {
	.owner = THIS_MODULE,
	.open = null_timing_open,
	.read = seq_read,
	.write = null_timing_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* One line of a user's, NUL terminated */
static ssize_t null_debug_line(char *to, size_t size, const char __user *buf, size_t len)
{
	if (len >= size)
		return -E2BIG;
	if (copy_from_user(to, buf, len))
		return -EFAULT;
	to[len] = 0;
	return len;
}

static ssize_t null_watch_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct null_chip *n = file_inode(file)->i_private;
	struct tnd_route r = {};
	char text[64], *slash;
	ssize_t got = null_debug_line(text, sizeof(text), buf, len);

	if (got < 0)
		return got;
	slash = strchr(strim(text), '/');
	if (!slash || kstrtou8(slash + 1, 10, &r.prefix_len))
		return -EINVAL;
	*slash = 0;
	r.family = strchr(text, ':') ? TND_AF_INET6 : TND_AF_INET;
	if (r.family == TND_AF_INET6 ? !in6_pton(text, -1, r.addr, -1, NULL) :
				       !in4_pton(text, -1, r.addr, -1, NULL))
		return -EINVAL;
	clsw_lock(n->cd);
	n->watch = r;
	n->watching = true;
	n->timing.watch_ns = 0;
	clsw_unlock(n->cd);
	return len;
}

static const struct file_operations watch_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = null_watch_write,
};

/* -------------------------------------------------------------------------
 * Faults
 */
static int null_parse_fault(char *text, struct null_fault *f)
{
	char *word = strsep(&text, " ");
	int i = match_string(actions + 1, NULL_FAULT_COUNT - 1, word);
	u64 value;

	if (i < 0)
		return -EINVAL;
	*f = (struct null_fault){ .action = i + 1, .after = 1, .count = 1 };
	while ((word = strsep(&text, " "))) {
		char *is = strchr(word, '=');

		if (!*word)
			continue;
		if (!is || kstrtou64(is + 1, 0, &value))
			return -EINVAL;
		*is = 0;
		if (!strcmp(word, "op") && value <= U16_MAX)
			f->op = value;
		else if (!strcmp(word, "cls") && value <= U16_MAX)
			f->cls = value;
		else if (!strcmp(word, "after") && value)
			f->after = value;
		else if (!strcmp(word, "count"))
			f->count = value;
		else if (!strcmp(word, "ns") && value <= 3600 * (u64)NSEC_PER_SEC)
			f->ns = value;
		else
			return -EINVAL;
	}
	return 0;
}

static ssize_t null_faults_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct null_chip *n = file_inode(file)->i_private;
	char text[128], *trimmed;
	ssize_t got = null_debug_line(text, sizeof(text), buf, len);
	struct null_fault f;
	int err = 0;

	if (got < 0)
		return got;
	trimmed = strim(text);
	clsw_lock(n->cd);
	if (!strcmp(trimmed, "clear"))
		n->faults = 0;
	else if (!strcmp(trimmed, "return"))
		n->vanished = false;
	else if (n->faults == NULL_FAULTS)
		err = -ENOSPC;
	else
		err = null_parse_fault(trimmed, &f);
	if (!err && strcmp(trimmed, "clear") && strcmp(trimmed, "return"))
		n->fault[n->faults++] = f;
	clsw_unlock(n->cd);
	return err ?: len;
}

static int null_faults_show(struct seq_file *s, void *unused)
{
	struct null_chip *n = s->private;
	u32 i;

	clsw_lock(n->cd);
	for (i = 0; i < n->faults; i++) {
		const struct null_fault *f = &n->fault[i];

		seq_printf(s, "%s op=%u cls=%u after=%llu count=%llu ns=%llu seen=%llu\n",
			   actions[f->action], f->op, f->cls, f->after, f->count, f->ns, f->seen);
	}
	clsw_unlock(n->cd);
	return 0;
}

static int null_faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, null_faults_show, inode->i_private);
}

static const struct file_operations faults_fops = {
	.owner = THIS_MODULE,
	.open = null_faults_open,
	.read = seq_read,
	.write = null_faults_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ------------------------------------------------------------------------- */

static ssize_t null_link_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct null_chip *n = file_inode(file)->i_private;
	unsigned int port, up;
	char text[32];
	ssize_t got = null_debug_line(text, sizeof(text), buf, len);

	if (got < 0)
		return got;
	if (sscanf(text, "%u %u", &port, &up) != 2 || !port || port > n->ports || up > 1)
		return -EINVAL;
	null_link_set(n, port, up);
	return len;
}

static const struct file_operations link_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = null_link_write,
};

static ssize_t null_packet_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct null_chip *n = file_inode(file)->i_private;
	unsigned int port;
	char text[32], addr[16];
	u8 dst[4];
	ssize_t got = null_debug_line(text, sizeof(text), buf, len);

	if (got < 0)
		return got;
	if (sscanf(text, "%u %15s", &port, addr) != 2 || !port || port > n->ports ||
	    !in4_pton(addr, -1, dst, -1, NULL))
		return -EINVAL;
	null_packet(n, port, dst);
	return len;
}

static const struct file_operations packet_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = null_packet_write,
};

static int null_check_show(struct seq_file *s, void *unused)
{
	struct null_chip *n = s->private;
	const char *bad;

	clsw_lock(n->cd);
	null_advance(n, ktime_get_ns());
	bad = null_check(n);
	clsw_unlock(n->cd);
	seq_printf(s, "%s\n", bad ?: "ok");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(null_check);

static int null_pools_show(struct seq_file *s, void *unused)
{
	struct null_chip *n = s->private;
	struct tnd_pool p;
	u32 i;

	clsw_lock(n->cd);
	null_advance(n, ktime_get_ns());
	for (i = 0; i < NULL_POOLS; i++) {
		null_pool_row(n, i, &p);
		seq_printf(s, "%.*s %u %u %u %u %u\n", TND_NAME_SIZE, p.name,
			   le32_to_cpu(p.size), le32_to_cpu(p.used), le32_to_cpu(p.in_flight),
			   le32_to_cpu(p.committed), le32_to_cpu(p.free));
	}
	clsw_unlock(n->cd);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(null_pools);

void null_debug_init(struct null_chip *n, const char *name)
{
	struct dentry *top = debugfs_lookup("clsw_null", NULL);

	if (!top)
		top = debugfs_create_dir("clsw_null", NULL);
	else
		dput(top);
	n->debugfs = debugfs_create_dir(name, top);
	debugfs_create_file("timing", 0600, n->debugfs, n, &timing_fops);
	debugfs_create_file("watch", 0200, n->debugfs, n, &watch_fops);
	debugfs_create_file("faults", 0600, n->debugfs, n, &faults_fops);
	debugfs_create_file("link", 0200, n->debugfs, n, &link_fops);
	debugfs_create_file("packet", 0200, n->debugfs, n, &packet_fops);
	debugfs_create_file("check", 0400, n->debugfs, n, &null_check_fops);
	debugfs_create_file("pools", 0400, n->debugfs, n, &null_pools_fops);
}

void null_debug_exit(struct null_chip *n)
{
	debugfs_remove_recursive(n->debugfs);
}
