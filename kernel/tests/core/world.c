// SPDX-License-Identifier: GPL-2.0
/* See world.h */
#include "devlink/devlink.h"
#include "world.h"

struct world w;
const struct devlink_ops clsw_devlink_ops;

/* ---- bodies ---- */

static struct thing things[THINGS];

/* What takes no room of the others: a domain, and a router interface on it */
enum { DOMAIN, INTERFACE, PLACES };
static const char *const place_names[PLACES] = { "fids", "rifs" };

union body {
	struct tnd_fdb fdb;
	struct tnd_neigh neigh;
	struct tnd_route route;
	struct tnd_nexthop nexthop;
	struct tnd_nhg nhg;
	u8 bytes[512];
};

/* Bytes of it */
static u32 make_body(u32 n, u8 variant, union body *b)
{
	struct thing t;

	thing_of(n, &t);
	memset(b, 0, sizeof(*b));
	switch (t.req.cls) {
	case TND_CLS_FDB:
		b->fdb.fid = t.req.space;
		memcpy(b->fdb.mac, t.req.addr, ETH_ALEN);
		b->fdb.port = 1 + variant;
		return sizeof(b->fdb);
	case TND_CLS_NEIGH:
		b->neigh.family = t.req.family;
		memcpy(b->neigh.addr, t.req.addr, sizeof(b->neigh.addr));
		b->neigh.mac[5] = variant;
		return sizeof(b->neigh);
	case TND_CLS_ROUTE:
		b->route.family = t.req.family;
		b->route.prefix_len = 24;
		memcpy(b->route.addr, t.req.addr, sizeof(b->route.addr));
		b->route.reason = variant;
		if (w.target[n]) {
			b->route.action = TND_ACT_FORWARD;
			b->route.target_kind = w.target[n] % CLASSES == C_NHG ?
					       TND_RT_NHG : TND_RT_NEXTHOP;
			b->route.target = w.target[n];
		}
		return sizeof(b->route);
	case TND_CLS_NEXTHOP:
		b->nexthop.nexthop = n;
		b->nexthop.mac[5] = variant;
		return sizeof(b->nexthop);
	default:
		if (variant > 1)
			t.units = variant - 1;
		b->nhg.nhg = n;
		b->nhg.count = t.units;
		b->bytes[sizeof(b->nhg)] = variant;
		return sizeof(b->nhg) + t.units * sizeof(struct tnd_nhg_member);
	}
}

static u32 thing_named(u16 cls, const void *body)
{
	const union body *b = body;
	u32 n;

	if (cls == TND_CLS_NEXTHOP)
		return b->nexthop.nexthop;
	if (cls == TND_CLS_NHG)
		return b->nhg.nhg;
	for (n = 0; n < THINGS; n++) {
		const struct rm_req *req = &things[n].req;

		if (req->cls != cls)
			continue;
		if (cls == TND_CLS_FDB && req->space == b->fdb.fid &&
		    !memcmp(b->fdb.mac, req->addr, ETH_ALEN))
			return n;
		if (cls == TND_CLS_NEIGH && req->family == b->neigh.family &&
		    !memcmp(b->neigh.addr, req->addr, sizeof(b->neigh.addr)))
			return n;
		if (cls == TND_CLS_ROUTE && req->family == b->route.family &&
		    !memcmp(b->route.addr, req->addr, sizeof(b->route.addr)))
			return n;
	}
	CHECK(0, "class %u: no such thing", cls);
}

/* ---- the chip behind its queues ---- */

static void grant(const struct posted *p, struct tnd_cpl *cpl)
{
	const struct tnd_lease *head = (const void *)p->body;
	struct rm_ask ask = { .count = head->count };

	memcpy(ask.item, head + 1, ask.count * sizeof(ask.item[0]));
	chip_lease(&w.chip, &ask, cpl);
	if (!cpl->status)
		w.lease_of[cpl->result % ARRAY_SIZE(w.lease_of)] = p->cmd.cookie;
}

static u32 lease_named(const struct tnd_cmd *cmd)
{
	u32 i;

	if (cmd->lease)
		return cmd->lease;
	for (i = 0; i < CHIP_LEASES; i++) {
		u32 id = w.chip.lease[i].id;

		if (id && w.lease_of[id % ARRAY_SIZE(w.lease_of)] == cmd->arg)
			return id;
	}
	return 0;
}

static void sweep(struct tnd_cpl *cpl)
{
	struct tnd_cpl one;
	u32 n;

	memset(cpl, 0, sizeof(*cpl));
	for (n = 0; n < THINGS; n++) {
		if (!chip_has(&w.chip, n) || w.gen[n] == w.gen_now)
			continue;
		chip_delete(&w.chip, n, &one);
		cpl->result++;
		w.swept++;
	}
	w.sweeps++;
}

/* Some route forwards by it */
static bool in_use(u32 target)
{
	u32 n;

	for (n = 0; n < THINGS && target; n++)
		if (w.way[n] == target)
			return true;
	return false;
}

static bool route_refused(const struct posted *p, struct tnd_cpl *cpl)
{
	const struct tnd_route *route = (const void *)p->body;

	if (p->cmd.cls != TND_CLS_ROUTE || p->cmd.op == TND_OP_DELETE || !route->target_kind ||
	    chip_has(&w.chip, route->target))
		return false;
	w.depends++;
	cpl->status = TND_ST_DEPEND;
	return true;
}

/* The domain and the router interface on it: no slots, and one refers to the other */
static void execute_place(const struct posted *p, struct tnd_cpl *cpl)
{
	bool is_rif = p->cmd.cls == TND_CLS_RIF;
	const struct tnd_rif *rif = (const void *)p->body;
	const struct tnd_vlan *vlan = (const void *)p->body;
	bool *there = is_rif ? &w.has_rif : &w.has_domain, was = *there;

	switch (p->cmd.op) {
	case TND_OP_CREATE:
	case TND_OP_UPDATE:
		if (is_rif ? rif->flags & TND_RIF_TRAP_ALL : vlan->flags & TND_VLAN_UC_TRAP)
			w.degraded++;
		else
			w.plain++;
		*there = true;
		break;
	case TND_OP_DELETE:
		if (!is_rif && w.has_rif) {
			w.in_use++;
			cpl->status = TND_ST_IN_USE;
		} else {
			*there = false;
		}
		break;
	}
	if (*there != was) {
		cpl->delta[0].pool = POOLS + (is_rif ? INTERFACE : DOMAIN);
		cpl->delta[0].slots = *there ? 1 : (u32)-1;
		cpl->delta_count = 1;
	}
}

static void execute(const struct posted *p, struct tnd_cpl *cpl)
{
	u32 lease = p->cmd.flags & TND_CMD_LEASE ? p->cmd.lease : 0;
	const union body *body = (const void *)p->body;
	u32 n = 0;

	memset(cpl, 0, sizeof(*cpl));
	switch (p->cmd.op) {
	case TND_OP_LEASE:
		grant(p, cpl);
		return;
	case TND_OP_RELEASE:
		chip_release(&w.chip, lease_named(&p->cmd), cpl);
		return;
	case TND_OP_BEGIN_RESYNC:
		w.resyncs++;
		if (w.begin_errors) {
			w.begin_errors--;
			cpl->status = TND_ST_FAULT;
			return;
		}
		w.gen_now++;
		w.resync = true;
		return;
	case TND_OP_END_RESYNC:
		if (!w.resync) {
			cpl->status = TND_ST_INVALID;
		} else if (w.end_errors) {
			w.end_errors--;
			cpl->status = TND_ST_FAULT;
		} else {
			sweep(cpl);
			w.resync = false;
		}
		return;
	}
	w.writes++;
	w.cls_writes[p->cmd.cls]++;
	if (p->cmd.cls == TND_CLS_PORT || p->cmd.cls == TND_CLS_TRAP)
		return;
	if (p->cmd.cls == TND_CLS_VLAN || p->cmd.cls == TND_CLS_RIF) {
		execute_place(p, cpl);
		return;
	}
	n = thing_named(p->cmd.cls, p->body);
	if (w.broken && w.broken == n) {
		cpl->status = TND_ST_FAULT;
		return;
	}
	if (below(&w.rnd, 100) < w.refuse_percent &&
	    (!w.refuse_cls || w.refuse_cls == p->cmd.cls)) {
		cpl->status = w.refuse_status;
		return;
	}
	if (route_refused(p, cpl))
		return;
	if (lease && w.wrong_leases) {
		w.wrong_leases--;
		cpl->status = TND_ST_LEASE;
		return;
	}
	switch (p->cmd.op) {
	case TND_OP_CREATE:
		if (p->cmd.cls == TND_CLS_NHG && chip_has(&w.chip, n) &&
		    chip_units(&w.chip, n) != body->nhg.count)
			cpl->status = TND_ST_EXISTS;
		else if (p->cmd.cls == TND_CLS_NHG)
			chip_create_group(&w.chip, n, body->nhg.count, lease, cpl);
		else
			chip_create(&w.chip, n, lease, cpl);
		break;
	case TND_OP_UPDATE:
		if (!chip_has(&w.chip, n))
			cpl->status = TND_ST_NOENT;
		else if (p->cmd.cls == TND_CLS_NHG)
			chip_update_group(&w.chip, n, body->nhg.count, lease, cpl);
		break;
	case TND_OP_DELETE:
		w.deletes++;
		if (in_use(n))
			cpl->status = TND_ST_IN_USE;
		else if (chip_has(&w.chip, n))
			chip_delete(&w.chip, n, cpl);
		else if (w.strict || !(p->cmd.flags & TND_CMD_IDEMPOTENT))
			cpl->status = TND_ST_NOENT;
		if (!cpl->status)
			w.way[n] = 0;
		return;
	}
	if (cpl->status)
		return;
	w.gen[n] = w.gen_now;
	if (p->cmd.cls == TND_CLS_ROUTE)
		w.way[n] = body->route.target_kind ? body->route.target : 0;
}

static int post(struct clsw_device *cd, enum clsw_queue q, const struct tnd_cmd *cmd,
		const void *body)
{
	struct line *line = &w.line[q];
	struct posted *p = &line->p[line->head % OUT_MOST];

	if (!w.alive)
		return -ENODEV;
	if (cmd->body_size >= w.too_long)
		return -E2BIG;
	if (w.stuffed || line->head - line->tail == OUT_MOST)
		return -EAGAIN;
	memcpy(&p->cmd, cmd, offsetof(struct tnd_cmd, body));
	if (body)
		memcpy(p->body, body, cmd->body_size);
	line->last_due = max(line->last_due, shim_now) + w.answer_ns;
	p->due = line->last_due;
	line->head++;
	return 0;
}

static void kick(struct clsw_device *cd, enum clsw_queue q)
{
}

static int reap(struct clsw_device *cd, enum clsw_queue q, int budget)
{
	struct line *line = &w.line[q];
	struct tnd_cpl cpl;
	int n = 0;

	while (n < budget && line->tail != line->head) {
		struct posted *p = &line->p[line->tail % OUT_MOST];

		if (p->due > shim_now || !w.alive)
			break;
		execute(p, &cpl);
		cpl.op = p->cmd.op;
		cpl.cls = p->cmd.cls;
		cpl.cookie = p->cmd.cookie;
		line->tail++;
		n++;
		if (below(&w.rnd, 100) >= w.lose_percent)
			clsw_complete(cd, &cpl);
	}
	return n;
}

static bool answered(void)
{
	u32 q;

	for (q = 0; q < CLSW_Q_COUNT; q++) {
		const struct line *line = &w.line[q];

		if (line->tail != line->head && line->p[line->tail % OUT_MOST].due <= shim_now)
			return w.alive;
	}
	return false;
}

/* The chip's pools, and one each for the domain and the router interface */
static void snapshot(struct tnd_pool *pools)
{
	const bool there[PLACES] = { w.has_domain, w.has_rif };
	u32 i;

	chip_snapshot(&w.chip, pools);
	memset(pools + POOLS, 0, PLACES * sizeof(*pools));
	for (i = 0; i < PLACES; i++) {
		pools[POOLS + i].pool = POOLS + i;
		pools[POOLS + i].size = 8;
		pools[POOLS + i].used = there[i];
		pools[POOLS + i].free = 8 - there[i];
		memcpy(pools[POOLS + i].name, place_names[i], strlen(place_names[i]));
		memcpy(pools[POOLS + i].unit, "slot", 4);
	}
}

static void costs(struct tnd_class_cost *costs)
{
	u32 i;

	chip_costs(&w.chip, costs);
	memset(costs + CLASSES, 0, PLACES * sizeof(*costs));
	for (i = 0; i < PLACES; i++) {
		costs[CLASSES + i].struct_size = sizeof(*costs);
		costs[CLASSES + i].cls = i == INTERFACE ? TND_CLS_RIF : TND_CLS_VLAN;
		costs[CLASSES + i].pool = POOLS + i;
		costs[CLASSES + i].cost = 1;
		costs[CLASSES + i].free_guaranteed = 8;
		memcpy(costs[CLASSES + i].name, place_names[i], strlen(place_names[i]));
	}
}

static bool want_irq(struct clsw_device *cd)
{
	w.armed = !answered();
	return !w.armed;
}

static int chip_read(struct clsw_device *cd, const struct tnd_cmd *cmd, const void *body, void *out,
		     u32 out_size, struct tnd_cpl *cpl)
{
	memset(cpl, 0, sizeof(*cpl));
	shim_sleep(w.answer_ns);
	if (cmd->op == TND_OP_SNAPSHOT) {
		snapshot(out);
		cpl->out_count = POOLS + PLACES;
	} else if (cmd->cls == TND_CLS_COST) {
		costs(out);
		cpl->out_count = CLASSES + PLACES;
	} else {
		memcpy(out, &w.chip.geometry, sizeof(w.chip.geometry));
		cpl->out_count = 1;
	}
	return 0;
}

static int attach(struct clsw_device *cd, enum clsw_attach_mode mode)
{
	memset(w.line, 0, sizeof(w.line));
	chip_restart(&w.chip, mode == CLSW_ATTACH_COLD);
	w.resync = false;
	w.alive = true;
	w.attaches++;
	return 0;
}

static void detach(struct clsw_device *cd)
{
	w.alive = false;
}

static bool alive(struct clsw_device *cd)
{
	return w.alive;
}

static void caps(struct clsw_device *cd, struct clsw_caps *caps)
{
	caps->can = (CLSW_CAN_LEARN | CLSW_CAN_ATTACH_WARM | CLSW_CAN_BUSY_WAIT) & ~w.cannot;
	caps->classes = (CLSW_CLASSES_L2 | CLSW_CLASSES_L3) & ~w.cannot_hold;
	caps->rif = w.rif;
	caps->mtu = w.mtu;
}

static const struct tnd_platform *platform(struct clsw_device *cd, size_t *size)
{
	static const struct tnd_platform nothing;

	*size = sizeof(nothing);
	return &nothing;
}

static const struct clsw_table_ops table_ops = {
	.post = post, .kick = kick, .reap = reap, .want_irq = want_irq, .read = chip_read,
};

static const struct clsw_device_ops device_ops = {
	.attach = attach, .detach = detach, .alive = alive, .caps = caps, .platform = platform,
};

static const struct clsw_backend backend = {
	.name = "test", .device = &device_ops, .table = &table_ops,
};

/* ---- parts of the driver that are not here ---- */

int clsw_devlink_init(struct clsw_device *cd)
{
	return 0;
}

void clsw_devlink_exit(struct clsw_device *cd)
{
}

int clsw_ports_init(struct clsw_device *cd)
{
	return 0;
}

void clsw_ports_exit(struct clsw_device *cd)
{
}

void clsw_ports_resume(struct clsw_device *cd)
{
}

int clsw_l2_init(struct clsw_device *cd)
{
	if (w.trouble)
		clsw_trouble(cd, "test");
	return 0;
}

void clsw_l2_exit(struct clsw_device *cd)
{
}

void clsw_l2_resync(struct clsw_device *cd)
{
}

int clsw_l3_init(struct clsw_device *cd)
{
	return w.l3_err;
}

void clsw_l3_exit(struct clsw_device *cd)
{
}

int clsw_genl_init(void)
{
	return 0;
}

void clsw_genl_exit(void)
{
}

void clsw_genl_add(struct clsw_device *cd)
{
}

void clsw_genl_remove(struct clsw_device *cd)
{
}

void clsw_health_live(struct clsw_device *cd, bool on)
{
}

void clsw_health_report(struct clsw_device *cd)
{
}

void clsw_health_recovered(struct clsw_device *cd, int err)
{
}

/* ---- life ---- */

void world_is_stuck(void)
{
	struct clsw_device *cd = w.cd;

	fprintf(stderr, "no end: %u in flight, dirty %x, resync %u, state %u, lines %u %u\n",
		cd->in_flight, cd->dirty_bits, cd->resync, cd->state,
		w.line[CLSW_Q_SYNC].head - w.line[CLSW_Q_SYNC].tail,
		w.line[CLSW_Q_BULK].head - w.line[CLSW_Q_BULK].tail);
	fprintf(stderr, "posted %llu, completed %llu\n", cd->count.posted,
		cd->count.completed);
}

void world_goes_on(void)
{
	u64 began;

	if (w.busy || !w.cd || !w.cd->drainer)
		return;
	w.busy = true;
	if (w.meanwhile)
		w.meanwhile(&w);
	if (w.armed && answered()) {
		w.armed = false;
		clsw_wake(w.cd);
	}
	began = shim_now;
	shim_run_thread(w.cd->drainer);
	w.turn_ns = max(w.turn_ns, shim_now - began);
	w.busy = false;
}

static int begin(u64 seed, bool trouble, int l3_err, u32 cannot, u32 cannot_hold, u16 rif,
		 u16 mtu)
{
	static struct device parent;
	struct clsw_device *cd;
	u32 n;

	memset(&w, 0, sizeof(w));
	w.trouble = trouble;
	w.cannot = cannot;
	w.cannot_hold = cannot_hold;
	w.rif = rif;
	w.mtu = mtu;
	w.l3_err = l3_err;
	w.rnd.s = seed;
	w.answer_ns = 20000;
	w.too_long = U32_MAX;
	w.refuse_status = TND_ST_FAULT;
	chip_init(&w.chip, THINGS, false);
	for (n = 0; n < THINGS; n++)
		thing_of(n, &things[n]);
	cd = clsw_device_alloc(&backend, &parent);
	CHECK(cd);
	w.cd = cd;
	return clsw_device_register(cd);
}

int world_begin(u64 seed)
{
	return begin(seed, false, 0, 0, 0, 0, 0);
}

int world_begin_with(u64 seed, int l3_err)
{
	return begin(seed, true, l3_err, 0, 0, 0, 0);
}

int world_begin_without(u64 seed, u32 cannot, u32 cannot_hold)
{
	return begin(seed, false, 0, cannot, cannot_hold, 0, 0);
}

int world_begin_rifs(u64 seed, u16 rif)
{
	return begin(seed, false, 0, 0, 0, rif, 0);
}

int world_begin_mtu(u64 seed, u16 mtu)
{
	return begin(seed, false, 0, 0, 0, 0, mtu);
}

void world_free(void)
{
	clsw_device_free(w.cd);
	w.cd = NULL;
	chip_fini(&w.chip);
}

void world_policy(u8 policy)
{
	clsw_lock(w.cd);
	CHECK(!rm_set_policy(w.cd->rm, policy));
	clsw_unlock(w.cd);
}

void world_end(void)
{
	struct clsw_device *cd = w.cd;

	w.meanwhile = NULL;
	clsw_device_unregister(cd);
	world_free();
}

static void changed(struct clsw_device *cd, struct clsw_obj *obj)
{
	u32 n;

	for (n = 0; n < THINGS; n++)
		w.told_of[n] += w.obj[n] == obj;
	CHECK(obj->wanted && (obj->state == CLSW_OBJ_SYNCED || obj->state == CLSW_OBJ_FAILED),
	      "state %u", obj->state);
	w.told++;
}

static const struct clsw_watch watch = { .changed = changed };

int world_put(u32 n, u8 flags, u8 variant)
{
	char text[CLSW_TEXT] = "";
	struct clsw_obj *obj;
	struct thing t;
	union body b;
	u32 size = make_body(n, variant, &b);
	int err;

	thing_of(n, &t);
	clsw_lock(w.cd);
	err = clsw_put(w.cd, t.req.cls, &b, size, flags, &watch, NULL, &obj, text);
	if (!err)
		w.obj[n] = obj;
	else
		CHECK(!(flags & CLSW_PUT_MUST), "a put that must is refused: %d, %s", err, text);
	clsw_unlock(w.cd);
	return err;
}

void world_drop(u32 n)
{
	clsw_lock(w.cd);
	if (w.obj[n])
		clsw_drop(w.cd, w.obj[n]);
	w.obj[n] = NULL;
	clsw_unlock(w.cd);
}

static struct clsw_obj *put_place(u16 cls, const void *body, u32 size)
{
	struct clsw_obj *obj;

	clsw_lock(w.cd);
	CHECK(!clsw_put(w.cd, cls, body, size, CLSW_PUT_MUST, NULL, NULL, &obj, NULL));
	clsw_unlock(w.cd);
	return obj;
}

struct clsw_obj *world_put_domain(void)
{
	const struct tnd_vlan vlan = { .fid = 1 };

	return put_place(TND_CLS_VLAN, &vlan, sizeof(vlan));
}

struct clsw_obj *world_put_rif(u8 variant)
{
	const struct tnd_rif rif = {
		.rif = CLSW_FID_RIFS + 1, .kind = TND_RIF_FID, .fid = 1, .mac[5] = variant,
	};

	return put_place(TND_CLS_RIF, &rif, sizeof(rif));
}

void world_drop_obj(struct clsw_obj *obj)
{
	clsw_lock(w.cd);
	clsw_drop(w.cd, obj);
	clsw_unlock(w.cd);
}

bool world_settle(void)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		/* what was lost may have been too much */
		shim_run_work(&w.cd->recover_work);
		if (!clsw_settle(w.cd, 20000))
			return true;
	}
	world_is_stuck();
	return false;
}

void world_agree(void)
{
	struct rm_pool_state pool;
	struct tnd_pool chip[POOLS + PLACES];
	u32 n, i;

	clsw_lock(w.cd);
	for (n = 0; n < THINGS; n++) {
		bool there = w.obj[n] && w.obj[n]->written;

		CHECK(chip_has(&w.chip, n) == there, "thing %u, %s in the chip", n,
		      there ? "not" : "still");
		CHECK(!w.obj[n] || w.obj[n]->state == CLSW_OBJ_SYNCED ||
		      w.obj[n]->state == CLSW_OBJ_FAILED, "thing %u: state %u", n, w.obj[n]->state);
		CHECK(!w.obj[n] || !rm_ticket_open(&w.obj[n]->ticket),
		      "thing %u keeps a ticket (%x): state %u, op %u, written %u", n,
		      w.obj[n]->ticket.state, w.obj[n]->state, w.obj[n]->op, w.obj[n]->written);
	}
	snapshot(chip);
	for (i = 0; rm_pool_state(w.cd->rm, i, &pool); i++) {
		CHECK(pool.used == chip[i].used && pool.committed == chip[i].committed &&
		      !pool.in_flight, "%s: %u used, %u committed, %u in flight; the chip %u, %u",
		      pool.name, pool.used, pool.committed, pool.in_flight, chip[i].used,
		      chip[i].committed);
	}
	clsw_unlock(w.cd);
}

void world_full(void)
{
	static const u8 pool_of[CLASSES] = {
		[C_ROUTE4] = P_LPM4, [C_ROUTE6] = P_LPM6, [C_NEXTHOP] = P_NEXTHOP, [C_NHG] = P_NHG,
	};
	u32 n, there, members;

	for (n = 0; n < THINGS; n++) {
		const struct clsw_obj *obj = w.obj[n];
		u8 pool = pool_of[n % CLASSES];

		if (!pool || !obj || obj->written || obj->state != CLSW_OBJ_FAILED ||
		    obj->reason.status != TND_ST_TABLE_FULL)
			continue;
		there = chip_free(&w.chip, pool) + w.chip.committed[pool];
		members = chip_free(&w.chip, P_MEMBER) + w.chip.committed[P_MEMBER];
		if (pool == P_NHG && ((const struct tnd_nhg *)obj->body)->count > members)
			continue;
		CHECK(there < w.chip.cost[n % CLASSES],
		      "thing %u has found no room (needed %u, %u free), and %u are free, %u leased",
		      n, obj->reason.needed, obj->reason.free, chip_free(&w.chip, pool),
		      w.chip.committed[pool]);
	}
}
