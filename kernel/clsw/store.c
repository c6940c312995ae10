// SPDX-License-Identifier: GPL-2.0
/*
 * The store: objects by key, what is wanted of them. See store.h for a drawing
 * of an object's life, drain.c for its way to the chip.
 */
#include <linux/hash.h>
#include <linux/slab.h>

#include "core.h"

/* A route's object with its body */
#define ROUTE_SIZE	(sizeof(struct clsw_obj) + sizeof(struct tnd_route))

/* Buckets of the table of objects, as a power of two */
#define BITS_LEAST	8
#define BITS_MOST	20

static const struct clsw_class *store_class_of(u16 cls)
{
	return clsw_class_known(cls) ? &clsw_classes[cls] : NULL;
}

/* Bytes of the largest body */
static u32 store_class_room(const struct clsw_class *class)
{
	return class->size + class->members * class->member_size;
}

static void store_make_key(struct clsw_key *key, u16 cls, const void *body)
{
	const struct clsw_class *class = &clsw_classes[cls];
	const struct tnd_route *route = body;
	unsigned int i, at = 0;

	memset(key, 0, sizeof(*key));
	key->cls = cls;
	if (cls == TND_CLS_ROUTE) {
		/* there are a million of these: the same, without a loop */
		memcpy(key->bytes, &route->vrf, sizeof(route->vrf));
		key->bytes[2] = route->family;
		key->bytes[3] = route->prefix_len;
		memcpy(key->bytes + 4, route->addr, sizeof(route->addr));
		return;
	}
	for (i = 0; i < ARRAY_SIZE(class->key) && class->key[i].len; i++) {
		memcpy(key->bytes + at, (const u8 *)body + class->key[i].offset,
		       class->key[i].len);
		at += class->key[i].len;
	}
}

static struct hlist_head *store_bucket_of(struct clsw_device *cd, const struct clsw_key *key)
{
	unsigned int i, words = clsw_classes[key->cls].key_words;
	u64 h = key->word[0];

	for (i = 1; i < words; i++)
		h = (h ^ h >> 32) * GOLDEN_RATIO_64 ^ key->word[i];
	return &cd->objects[hash_64(h ^ h >> 29, cd->object_bits)];
}

/* The class is in the first word: as many as it has */
static bool store_same_key(const struct clsw_key *a, const struct clsw_key *b)
{
	unsigned int i, words = clsw_classes[b->cls].key_words;
	u64 differs = 0;

	for (i = 0; i < words; i++)
		differs |= a->word[i] ^ b->word[i];
	return !differs;
}

static struct clsw_obj *store_find_in(const struct hlist_head *bucket, const struct clsw_key *key)
{
	struct clsw_obj *obj;

	hlist_for_each_entry(obj, bucket, node)
		if (store_same_key(&obj->key, key))
			return obj;
	return NULL;
}

static struct clsw_obj *store_find_key(struct clsw_device *cd, const struct clsw_key *key)
{
	return store_find_in(store_bucket_of(cd, key), key);
}

struct clsw_obj *clsw_find(struct clsw_device *cd, u16 cls, const void *body)
{
	struct clsw_key key;

	lockdep_assert_held(&cd->lock);
	if (!store_class_of(cls))
		return NULL;
	store_make_key(&key, cls, body);
	return store_find_key(cd, &key);
}

void clsw_obj_req(struct clsw_device *cd, const struct clsw_obj *obj, struct rm_req *req)
{
	*req = (struct rm_req){ .cls = obj->key.cls, .units = 1, .hold = cd->hold };
	switch (obj->key.cls) {
	case TND_CLS_ROUTE:
		req->family = ((const struct tnd_route *)obj->body)->family;
		break;
	case TND_CLS_FDB: {
		const struct tnd_fdb *fdb = (const void *)obj->body;

		req->space = le16_to_cpu(fdb->fid);
		memcpy(req->addr, fdb->mac, ETH_ALEN);
		break;
	}
	case TND_CLS_NEIGH: {
		const struct tnd_neigh *neigh = (const void *)obj->body;
		struct tnd_rif probe = { .rif = neigh->rif };
		struct clsw_obj *rif = clsw_find(cd, TND_CLS_RIF, &probe);

		req->family = neigh->family;
		if (rif)
			req->space = le16_to_cpu(((struct tnd_rif *)rif->body)->vrf);
		memcpy(req->addr, neigh->addr, sizeof(neigh->addr));
		break;
	}
	case TND_CLS_NHG: {
		const struct tnd_nhg *nhg = (const void *)obj->body;

		req->units = le16_to_cpu(nhg->count);
		break;
	}
	}
	if (obj->flags & (CLSW_PUT_MUST | CLSW_PUT_NOWAIT) || !clsw_up(cd) || cd->resync)
		req->flags |= RM_REQ_BEST_EFFORT;
	if (obj->flags & CLSW_PUT_RESERVE)
		req->flags |= RM_REQ_RESERVE;
}

void clsw_reason_set(struct clsw_reason *reason, u16 status, const struct rm_verdict *v)
{
	memset(reason, 0, sizeof(*reason));
	reason->status = status;
	if (!v)
		return;
	reason->pool = v->pool;
	reason->row = v->row;
	reason->capped = v->capped;
	reason->needed = v->needed;
	reason->free = v->free;
	reason->size = v->size;
}

static const char silent[] = "the chip does not answer";

int clsw_obj_reason(struct clsw_device *cd, const struct clsw_obj *obj, char *buf, size_t size)
{
	const struct clsw_reason *r = &obj->reason;
	struct rm_verdict v = { .result = RM_FULL };

	if (!r->status)
		return 0;
	switch (r->status) {
	case TND_ST_TABLE_FULL:
	case TND_ST_BUCKET_FULL:
		v.pool = r->pool;
		v.row = r->row;
		v.capped = r->capped;
		v.bucket = r->status == TND_ST_BUCKET_FULL;
		v.needed = r->needed;
		v.free = r->free;
		v.size = r->size;
		return rm_full_text(cd->rm, &v, buf, size);
	case TND_ST_DEPEND:
		return scnprintf(buf, size, "what the %s refers to is not in hardware",
				 clsw_classes[obj->key.cls].name);
	case TND_ST_UNSUPPORTED:
		return scnprintf(buf, size, "the chip has no %s", clsw_classes[obj->key.cls].name);
	case TND_ST_FAULT:
		return scnprintf(buf, size, "the chip failed to write the %s",
				 clsw_classes[obj->key.cls].name);
	case CLSW_ST_SILENT:
		return scnprintf(buf, size, "%s", silent);
	case CLSW_ST_TOO_LONG:
		return scnprintf(buf, size, "the chip takes no %s as large as this (%u bytes)",
				 clsw_classes[obj->key.cls].name, obj->size);
	default:
		return scnprintf(buf, size, "the chip refused the %s (status %u)",
				 clsw_classes[obj->key.cls].name, r->status);
	}
}

/* The first field is struct_size, which the store fills in */
static bool store_same_body(const struct clsw_obj *obj, const void *body, u32 size)
{
	return obj->size == size &&
	       !memcmp(obj->body + sizeof(__le16), (const u8 *)body + sizeof(__le16),
		       size - sizeof(__le16));
}

static void store_set_body(struct clsw_obj *obj, const void *body, u32 size)
{
	memcpy(obj->body, body, size);
	obj->size = size;
	((struct tnd_port *)obj->body)->struct_size = cpu_to_le16(clsw_classes[obj->key.cls].size);
}

/* An object that is wanted gets another body. An error has changed nothing */
static int store_update(struct clsw_device *cd, struct clsw_obj *obj, const void *body, u32 size,
			struct rm_verdict *verdict)
{
	bool waits = obj->waits;
	int err = 0;

	verdict->sync = false;
	if (store_same_body(obj, body, size) && obj->state != CLSW_OBJ_FAILED)
		return 0;
	if (obj->key.cls == TND_CLS_NHG &&
	    (obj->written || obj->in_flight || rm_ticket_open(&obj->ticket)))
		err = clsw_admit_growth(cd, obj, body, verdict);
	else if (!obj->written && !obj->in_flight)
		err = clsw_admit_as(cd, obj, body, verdict);
	if (err && !(obj->flags & CLSW_PUT_MUST)) {
		/* what it was is not decided on by this no */
		obj->waits = waits;
		return err;
	}
	store_set_body(obj, body, size);
	/* what was waited for may have had it dropped */
	clsw_obj_want(cd, obj, true);
	if (!obj->written && !obj->in_flight)
		obj->state = err ? CLSW_OBJ_FAILED : CLSW_OBJ_NEW;
	else if (obj->state != CLSW_OBJ_NEW)
		obj->state = CLSW_OBJ_STALE;
	if (obj->in_flight)
		obj->again = true;
	return 0;
}

static struct clsw_obj *store_create(struct clsw_device *cd, struct hlist_head *bucket,
				     const struct clsw_key *key, const void *body, u32 size)
{
	/* a group may grow in place, and a put must not fail for memory then */
	const struct clsw_class *class = &clsw_classes[key->cls];
	u32 room = class->members ? store_class_room(class) : size;
	struct clsw_obj *obj;

	if (key->cls == TND_CLS_ROUTE && size == sizeof(struct tnd_route))
		obj = clsw_pool_get(&cd->route_memory, ROUTE_SIZE);
	else
		obj = kzalloc(struct_size(obj, body, room), GFP_ATOMIC | __GFP_NOWARN);
	if (!obj)
		return NULL;
	obj->key = *key;
	obj->room = room;
	INIT_LIST_HEAD(&obj->work);
	store_set_body(obj, body, size);
	obj->state = CLSW_OBJ_NEW;
	obj->needs_rm = !class->fixed;
	obj->written = class->fixed;
	hlist_add_head(&obj->node, bucket);
	cd->object_count++;
	return obj;
}

static void store_free_memory(struct clsw_device *cd, struct clsw_obj *obj)
{
	if (obj->key.cls == TND_CLS_ROUTE && obj->room == sizeof(struct tnd_route))
		clsw_pool_put(&cd->route_memory, obj, ROUTE_SIZE);
	else
		kfree(obj);
}

void clsw_obj_free(struct clsw_device *cd, struct clsw_obj *obj)
{
	clsw_ticket_cancel(cd, obj);
	clsw_replayed(cd, obj);
	list_del_init(&obj->work);
	hlist_del(&obj->node);
	if (cd->target == obj)
		cd->target = NULL;
	cd->object_count--;
	store_free_memory(cd, obj);
}

static void store_why(struct clsw_device *cd, const struct clsw_obj *obj, char *text)
{
	if (text && !clsw_obj_reason(cd, obj, text, CLSW_TEXT))
		strscpy(text, silent, CLSW_TEXT);
}

/* It is in hardware, and nothing that is out takes it away */
static bool store_stays(const struct clsw_obj *obj)
{
	return obj->written && !obj->unknown && !(obj->in_flight && obj->op == TND_OP_DELETE);
}

int clsw_put(struct clsw_device *cd, u16 cls, const void *body, u32 size, u8 flags,
	     const struct clsw_watch *watch, void *owner, struct clsw_obj **objp, char *text)
{
	const struct clsw_class *class = store_class_of(cls);
	struct rm_verdict verdict;
	struct hlist_head *bucket;
	struct clsw_obj *obj;
	struct clsw_key key;
	bool made = false, fresh;
	int err;

	verdict.sync = false;
	lockdep_assert_held(&cd->lock);
	/* all that this put waits for has one bound; a watcher's waits are its caller's */
	if (!cd->in_callback)
		cd->wait_end = 0;
	if (READ_ONCE(cd->trap_when_full) &&
	    (cls == TND_CLS_ROUTE || cls == TND_CLS_NEXTHOP || cls == TND_CLS_NHG))
		flags |= CLSW_PUT_MUST;
	if (flags & CLSW_PUT_MUST)
		flags &= ~CLSW_PUT_NOWAIT;
	if (!class || size < class->size || size > store_class_room(class))
		return -EINVAL;
	store_make_key(&key, cls, body);
	bucket = store_bucket_of(cd, &key);
	obj = store_find_in(bucket, &key);
	if (!obj) {
		obj = store_create(cd, bucket, &key, body, size);
		if (!obj)
			return -ENOMEM;
		made = true;
	} else if (size > obj->room) {
		return -EINVAL;
	}
	fresh = !obj->wanted;
	if (!fresh) {
		u8 was = obj->flags;

		obj->flags = flags;
		err = store_update(cd, obj, body, size, &verdict);
		if (err) {
			obj->flags = was;
			goto refused;
		}
	} else {
		/* new, or on its way out: what is not in hardware needs room again */
		obj->flags = flags;
		store_set_body(obj, body, size);
		obj->state = CLSW_OBJ_STALE;
		if (!store_stays(obj)) {
			err = clsw_admit(cd, obj, &verdict);
			if (err && !(flags & CLSW_PUT_MUST))
				goto refused;
			if (!store_stays(obj)) {
				obj->state = err ? CLSW_OBJ_FAILED : CLSW_OBJ_NEW;
			} else {	/* a delete that was waited for was refused */
				obj->waits = false;
				clsw_ticket_cancel(cd, obj);
			}
		}
		if (obj->in_flight)
			obj->again = true;
		clsw_obj_want(cd, obj, true);
		obj->forced = flags & CLSW_PUT_TRAP;
	}
	obj->watch = watch;
	obj->owner = owner;
	if (obj->state != CLSW_OBJ_FAILED)
		memset(&obj->reason, 0, sizeof(obj->reason));
	clsw_drain_queue(cd, obj);
	/*
	 * Nobody is told no during a replay, nor who is owed no veto: they don't wait for what is
	 * queued before it, but where a policy writes before it answers
	 */
	if (((verdict.sync && !(flags & (CLSW_PUT_MUST | CLSW_PUT_NOWAIT))) ||
	     clsw_rm_lockstep(cd)) && !obj->waits &&
	    !cd->in_callback && clsw_up(cd) && !cd->resync) {
		err = clsw_flush_obj(cd, obj);
		/* it is queued or out: its watcher hears what becomes of it */
		if (err == -EAGAIN) {
			obj->flags |= CLSW_PUT_MUST;
			goto done;
		}
		/* what stands stays: its new body is written as soon as the chip answers */
		if (fresh && !(flags & CLSW_PUT_MUST) && (err || obj->state == CLSW_OBJ_FAILED)) {
			bool full = obj->reason.status == TND_ST_TABLE_FULL ||
				    obj->reason.status == TND_ST_BUCKET_FULL;

			store_why(cd, obj, text);
			clsw_drop(cd, obj);
			return err ? -EIO : full ? -ENOSPC : -EIO;
		}
	}
done:
	if (objp)
		*objp = obj;
	return 0;

refused:
	store_why(cd, obj, text);
	memset(&obj->reason, 0, sizeof(obj->reason));
	if (made)
		clsw_obj_free(cd, obj);
	else
		clsw_drain_queue(cd, obj);	/* what was waited for may have been its own */
	return err;
}

void clsw_drop(struct clsw_device *cd, struct clsw_obj *obj)
{
	lockdep_assert_held(&cd->lock);
	if (!obj->wanted)
		return;
	clsw_obj_want(cd, obj, false);
	obj->watch = NULL;
	obj->owner = NULL;
	obj->forced = false;
	obj->waits = false;
	if (!obj->in_flight && !obj->unknown && rm_ticket_open(&obj->ticket)) {
		clsw_ticket_cancel(cd, obj);
		clsw_room_came(cd);
	}
	obj->state = CLSW_OBJ_GOING;
	if (obj->in_flight)
		obj->again = true;
	clsw_drain_queue(cd, obj);
}

int clsw_adopt(struct clsw_device *cd, u16 cls, const void *body, u32 size,
	       const struct clsw_watch *watch, void *owner, struct clsw_obj **objp)
{
	const struct clsw_class *class = store_class_of(cls);
	struct hlist_head *bucket;
	struct clsw_obj *obj;
	struct clsw_key key;

	lockdep_assert_held(&cd->lock);
	if (!class || class->fixed || size != class->size)
		return -EINVAL;
	store_make_key(&key, cls, body);
	bucket = store_bucket_of(cd, &key);
	obj = store_find_in(bucket, &key);
	if (obj && (!obj->wanted || obj->state != CLSW_OBJ_SYNCED || obj->in_flight ||
		    obj->unknown))
		return -EBUSY;
	if (!obj) {
		obj = store_create(cd, bucket, &key, body, size);
		if (!obj)
			return -ENOMEM;
		obj->wanted = true;
		obj->written = true;
		obj->state = CLSW_OBJ_SYNCED;
		obj->flags = CLSW_PUT_MUST;
	}
	memcpy(obj->body, body, size);
	((struct tnd_route *)obj->body)->struct_size = cpu_to_le16(class->size);
	obj->watch = watch;
	obj->owner = owner;
	if (objp)
		*objp = obj;
	return 0;
}

void clsw_abandon(struct clsw_device *cd, struct clsw_obj *obj)
{
	lockdep_assert_held(&cd->lock);
	if (obj->in_flight || obj->unknown || !obj->wanted) {
		/* what is under way may have made it again */
		clsw_drop(cd, obj);
		return;
	}
	obj->written = false;
	clsw_drop(cd, obj);
}

void clsw_force_trap(struct clsw_device *cd, struct clsw_obj *obj, bool on)
{
	lockdep_assert_held(&cd->lock);
	if (obj->forced == on)
		return;
	obj->forced = on;
	clsw_touch(cd, obj);
}

void clsw_touch(struct clsw_device *cd, struct clsw_obj *obj)
{
	lockdep_assert_held(&cd->lock);
	if (!obj->wanted)
		return;
	if (obj->state == CLSW_OBJ_SYNCED)
		obj->state = CLSW_OBJ_STALE;
	if (obj->in_flight)
		obj->again = true;
	clsw_drain_queue(cd, obj);
}

/* ---- all of them ---- */

bool clsw_walk_more(struct clsw_device *cd, struct clsw_walk *walk)
{
	while (walk->bucket < BIT(cd->object_bits) && hlist_empty(&cd->objects[walk->bucket])) {
		walk->bucket++;
		walk->at = 0;
	}
	return walk->bucket < BIT(cd->object_bits);
}

struct clsw_obj *clsw_walk_next(struct clsw_device *cd, struct clsw_walk *walk)
{
	struct clsw_obj *obj;
	u32 i = 0;

	lockdep_assert_held(&cd->lock);
	hlist_for_each_entry(obj, &cd->objects[walk->bucket], node) {
		if (i++ == walk->at) {
			walk->at++;
			return obj;
		}
	}
	walk->bucket++;
	walk->at = 0;
	return NULL;
}

void clsw_store_each(struct clsw_device *cd,
		     void (*fn)(struct clsw_device *cd, struct clsw_obj *obj))
{
	struct clsw_walk walk = {};
	struct hlist_node *next;
	struct clsw_obj *obj;

	for (; clsw_walk_more(cd, &walk); walk.bucket++) {
		clsw_lock(cd);
		hlist_for_each_entry_safe(obj, next, &cd->objects[walk.bucket], node)
			fn(cd, obj);
		clsw_unlock(cd);
		cond_resched();
	}
}

void clsw_store_init(struct clsw_device *cd)
{
	int i;

	INIT_LIST_HEAD(&cd->waiting.next);
	INIT_LIST_HEAD(&cd->waiting.rest);
	INIT_LIST_HEAD(&cd->failed.next);
	INIT_LIST_HEAD(&cd->failed.rest);
	INIT_LIST_HEAD(&cd->faulted.next);
	INIT_LIST_HEAD(&cd->faulted.rest);
	INIT_LIST_HEAD(&cd->stuck);
	for (i = 0; i < ARRAY_SIZE(cd->dirty); i++) {
		INIT_LIST_HEAD(&cd->dirty[i]);
		INIT_LIST_HEAD(&cd->going[i]);
	}
}

int clsw_store_start(struct clsw_device *cd)
{
	struct rm_pool_state pool;
	u64 slots = 0;
	u32 i;

	for (i = 0; rm_pool_state(cd->rm, i, &pool); i++)
		slots += pool.size;
	/* a full chip has two objects in a bucket */
	cd->object_bits = clamp(fls64(slots / 2), BITS_LEAST, BITS_MOST);
	cd->objects = kvcalloc(BIT(cd->object_bits), sizeof(*cd->objects), GFP_KERNEL);
	return cd->objects ? 0 : -ENOMEM;
}

void clsw_store_exit(struct clsw_device *cd)
{
	struct hlist_node *next;
	struct clsw_obj *obj;
	u32 i;

	/* the drainer is gone, and with it everybody who could look */
	for (i = 0; cd->objects && i < BIT(cd->object_bits); i++)
		hlist_for_each_entry_safe(obj, next, &cd->objects[i], node)
			store_free_memory(cd, obj);
	clsw_pool_trim(&cd->route_memory, ROUTE_SIZE, true);
	kvfree(cd->objects);
	cd->objects = NULL;
}
