// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink family "clsw": reservations and the objects of the store.
 * include/uapi/clsw.h has the messages.
 *
 * Lock order: devices_lock -> clsw_lock(). Nobody waits for a chip with the first one held:
 * a device that a reservation is asked of is pinned meanwhile.
 */
#include <linux/mutex.h>
#include <net/genetlink.h>

#include "../core.h"
#include "hold.h"

static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock);
static DECLARE_WAIT_QUEUE_HEAD(unpinned);

static struct genl_family family;

/* Sockets that may have a reservation at a time */
#define OWNERS_MAX	64

/* What a socket owns, from its first RESERVE_ADD to its end. Under devices_lock */
struct owner {
	struct list_head list;
	possible_net_t net;
	u32 portid;
	bool busy;			/* its reservation is being made, without devices_lock */
	bool gone;			/* ... and its socket has ended meanwhile */
	struct clsw_hold hold;
};

static LIST_HEAD(owners);
static unsigned int owner_count;

static struct owner *gnl_find_owner(const struct net *net, u32 portid)
{
	struct owner *owner;

	list_for_each_entry(owner, &owners, list)
		if (owner->portid == portid && net_eq(read_pnet(&owner->net), net))
			return owner;
	return NULL;
}

static struct owner *gnl_get_owner(struct genl_info *info)
{
	struct owner *owner = gnl_find_owner(genl_info_net(info), info->snd_portid);

	if (owner)
		return owner;
	if (owner_count >= OWNERS_MAX) {
		NL_SET_ERR_MSG(info->extack, "too many sockets hold a reservation");
		return ERR_PTR(-EUSERS);
	}
	owner = kzalloc(sizeof(*owner), GFP_KERNEL);
	if (!owner)
		return ERR_PTR(-ENOMEM);
	write_pnet(&owner->net, genl_info_net(info));
	owner->portid = info->snd_portid;
	INIT_LIST_HEAD(&owner->hold.list);
	list_add_tail(&owner->list, &owners);
	owner_count++;
	return owner;
}

static void gnl_put_owner(struct owner *owner)
{
	clsw_hold_drop(&owner->hold);
	list_del(&owner->list);
	owner_count--;
	kfree(owner);
}

/* A socket ends: may sleep */
static int gnl_socket_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct netlink_notify *notify = ptr;
	struct owner *owner;

	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC)
		return NOTIFY_DONE;
	mutex_lock(&devices_lock);
	owner = gnl_find_owner(notify->net, notify->portid);
	if (owner && owner->busy)
		owner->gone = true;
	else if (owner)
		gnl_put_owner(owner);
	mutex_unlock(&devices_lock);
	return NOTIFY_DONE;
}

static struct notifier_block socket_nb = { .notifier_call = gnl_socket_event };

/* Where a dump of objects is. Under devices_lock; a chip that leaves ends it */
struct dump_state {
	struct list_head list;		/* in clsw_device.dumps, while there is a chip */
	struct clsw_device *cd;
	struct clsw_walk walk;
	u16 cls;
};

void clsw_genl_add(struct clsw_device *cd)
{
	mutex_lock(&devices_lock);
	list_add_tail(&cd->list, &devices);
	mutex_unlock(&devices_lock);
}

void clsw_genl_remove(struct clsw_device *cd)
{
	struct dump_state *dump, *more;
	struct clsw_hold *hold, *next;

	mutex_lock(&devices_lock);
	list_del_init(&cd->list);
	mutex_unlock(&devices_lock);
	/* who waits for its answer hears that it leaves */
	wait_event(unpinned, !READ_ONCE(cd->pins));
	mutex_lock(&devices_lock);
	clsw_lock(cd);
	/* their sockets may live on: the device doesn't */
	list_for_each_entry_safe(hold, next, &cd->holds, list) {
		list_del_init(&hold->list);
		rm_drop_hold(cd->rm, hold->id);
		hold->id = 0;
		hold->cd = NULL;
	}
	clsw_unlock(cd);
	list_for_each_entry_safe(dump, more, &cd->dumps, list) {
		list_del_init(&dump->list);
		dump->cd = NULL;
	}
	mutex_unlock(&devices_lock);
}

/* The device that a message names; NULL with a reason in extack. Under devices_lock */
static struct clsw_device *gnl_find_device(const struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[CLSW_ATTR_DEVICE];
	struct clsw_device *cd, *found = NULL;
	char name[64];

	list_for_each_entry(cd, &devices, list) {
		snprintf(name, sizeof(name), "%s/%s", cd->parent->bus->name,
			 dev_name(cd->parent));
		if (attr && !nla_strcmp(attr, name))
			return cd;
		if (!attr && found) {
			NL_SET_ERR_MSG(info->extack, "several chips: name one as bus/device");
			return NULL;
		}
		if (!attr)
			found = cd;
	}
	if (!found)
		NL_SET_ERR_MSG(info->extack, "no such chip");
	return found;
}

static int gnl_busy(const struct owner *owner, struct netlink_ext_ack *extack)
{
	if (!owner->busy)
		return 0;
	NL_SET_ERR_MSG(extack, "this socket's reservation is being made: try again");
	return -EBUSY;
}

static int gnl_reserve_add(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *routes = info->attrs[CLSW_ATTR_ROUTES];
	struct owner *owner;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, CLSW_ATTR_ROUTES))
		return -EINVAL;
	if (nla_len(routes) % sizeof(struct clsw_route_key)) {
		NL_SET_ERR_MSG_ATTR(info->extack, routes, "not a whole number of route keys");
		return -EINVAL;
	}
	mutex_lock(&devices_lock);
	owner = gnl_get_owner(info);
	if (IS_ERR(owner)) {
		mutex_unlock(&devices_lock);
		return PTR_ERR(owner);
	}
	err = gnl_busy(owner, info->extack);
	if (err) {
		mutex_unlock(&devices_lock);
		return err;
	}
	err = clsw_hold_add(&owner->hold, nla_data(routes),
			    nla_len(routes) / sizeof(struct clsw_route_key));
	mutex_unlock(&devices_lock);
	if (err == -EINVAL)
		NL_SET_ERR_MSG_ATTR(info->extack, routes, "a route key that can't be");
	else if (err == -E2BIG)
		NL_SET_ERR_MSG_ATTR(info->extack, routes, "too many routes for one reservation");
	else if (err == -EBUSY)
		NL_SET_ERR_MSG(info->extack, "this socket's reservation is made: drop it first");
	return err;
}

static u32 gnl_get_u32(const struct genl_info *info, int attr)
{
	return info->attrs[attr] ? nla_get_u32(info->attrs[attr]) : 0;
}

static int gnl_reserve_commit(struct sk_buff *skb, struct genl_info *info)
{
	char text[CLSW_TEXT] = "";
	struct clsw_device *cd;
	struct owner *owner;
	int err;

	mutex_lock(&devices_lock);
	owner = gnl_find_owner(genl_info_net(info), info->snd_portid);
	cd = gnl_find_device(info);
	if (!owner)
		NL_SET_ERR_MSG(info->extack, "nothing to reserve: list routes first");
	err = !owner ? -EINVAL : !cd ? -ENODEV : gnl_busy(owner, info->extack);
	if (!err) {
		owner->busy = true;
		cd->pins++;
	}
	mutex_unlock(&devices_lock);
	if (err)
		return err;
	err = clsw_hold_commit(cd, &owner->hold, gnl_get_u32(info, CLSW_ATTR_NEXTHOPS),
			       gnl_get_u32(info, CLSW_ATTR_GROUPS),
			       gnl_get_u32(info, CLSW_ATTR_MEMBERS), text);
	if (err == -EAGAIN)
		NL_SET_ERR_MSG(info->extack, "the chip is being recovered: try again");
	else if (err && text[0])
		NL_SET_ERR_MSG_FMT_MOD(info->extack, "%s", text);
	mutex_lock(&devices_lock);
	WRITE_ONCE(cd->pins, cd->pins - 1);
	owner->busy = false;
	if (owner->gone)
		gnl_put_owner(owner);
	/* the device may be gone when the lock is let go */
	wake_up_all(&unpinned);
	mutex_unlock(&devices_lock);
	return err;
}

static int gnl_reserve_drop(struct sk_buff *skb, struct genl_info *info)
{
	struct owner *owner;
	int err = 0;

	mutex_lock(&devices_lock);
	owner = gnl_find_owner(genl_info_net(info), info->snd_portid);
	if (owner)
		err = gnl_busy(owner, info->extack);
	if (owner && !err)
		gnl_put_owner(owner);
	mutex_unlock(&devices_lock);
	return err;
}

static u8 gnl_state_of(const struct clsw_obj *obj)
{
	if (obj->unknown)
		return CLSW_OBJECT_UNKNOWN;
	switch (obj->state) {
	case CLSW_OBJ_SYNCED:
		return obj->sent_forced || obj->lacks_target ? CLSW_OBJECT_TRAP :
							       CLSW_OBJECT_HARDWARE;
	case CLSW_OBJ_STALE:
		return CLSW_OBJECT_UPDATING;
	case CLSW_OBJ_FAILED:
		return CLSW_OBJECT_FAILED;
	case CLSW_OBJ_GOING:
		return CLSW_OBJECT_LEAVING;
	default:
		return CLSW_OBJECT_PENDING;
	}
}

static int gnl_put_object(struct clsw_device *cd, struct sk_buff *skb, struct netlink_callback *cb,
			  const struct clsw_obj *obj)
{
	char text[CLSW_TEXT];
	void *head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				 NLM_F_MULTI, CLSW_CMD_OBJECTS);
	int len;

	if (!head)
		return -EMSGSIZE;
	len = clsw_obj_reason(cd, obj, text, sizeof(text));
	if (!len && obj->watch && obj->watch->why)
		len = obj->watch->why(obj, text, sizeof(text));
	if (nla_put_u16(skb, CLSW_ATTR_CLASS, obj->key.cls) ||
	    nla_put(skb, CLSW_ATTR_BODY, obj->size, obj->body) ||
	    nla_put_u8(skb, CLSW_ATTR_STATE, gnl_state_of(obj)) ||
	    (len && nla_put_string(skb, CLSW_ATTR_REASON, text))) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

static int gnl_objects_start(struct netlink_callback *cb)
{
	const struct genl_dumpit_info *info = genl_dumpit_info(cb);
	struct dump_state *state = kzalloc(sizeof(*state), GFP_KERNEL);
	struct clsw_device *cd;

	if (!state)
		return -ENOMEM;
	mutex_lock(&devices_lock);
	cd = gnl_find_device(&info->info);
	if (cd) {
		state->cd = cd;
		list_add_tail(&state->list, &cd->dumps);
	}
	mutex_unlock(&devices_lock);
	if (!cd) {
		kfree(state);
		return -ENODEV;
	}
	if (info->info.attrs[CLSW_ATTR_CLASS])
		state->cls = nla_get_u16(info->info.attrs[CLSW_ATTR_CLASS]);
	cb->args[0] = (long)state;
	return 0;
}

static int gnl_objects_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_state *state = (void *)cb->args[0];
	struct clsw_device *cd;
	struct clsw_obj *obj;
	int err = 0;

	mutex_lock(&devices_lock);
	cd = state->cd;
	if (!cd)
		goto out;
	while (!err && clsw_walk_more(cd, &state->walk)) {
		clsw_lock(cd);
		while (!err && (obj = clsw_walk_next(cd, &state->walk))) {
			if (state->cls && obj->key.cls != state->cls)
				continue;
			err = gnl_put_object(cd, skb, cb, obj);
			/* it comes first in the next message */
			if (err)
				state->walk.at--;
		}
		clsw_unlock(cd);
	}
out:
	mutex_unlock(&devices_lock);
	return skb->len ?: err;
}

static int gnl_objects_done(struct netlink_callback *cb)
{
	struct dump_state *state = (void *)cb->args[0];

	if (!state)
		return 0;
	mutex_lock(&devices_lock);
	if (state->cd)
		list_del(&state->list);
	mutex_unlock(&devices_lock);
	kfree(state);
	return 0;
}

static int gnl_put_pool(struct sk_buff *skb, const struct rm_pool_state *state)
{
	struct tnd_pool pool = {
		.pool = cpu_to_le16(state->pool),
		.size = cpu_to_le32(state->size),
		.used = cpu_to_le32(state->used),
		.in_flight = cpu_to_le32(state->in_flight),
		.committed = cpu_to_le32(state->committed),
		.free = cpu_to_le32(state->free),
		.high_watermark = cpu_to_le32(state->high_watermark),
	};

	memcpy(pool.name, state->name, sizeof(pool.name));
	memcpy(pool.unit, state->unit, sizeof(pool.unit));
	return nla_put(skb, CLSW_ATTR_POOL, sizeof(pool), &pool);
}

static int gnl_put_cost(struct sk_buff *skb, const struct rm_class_state *state)
{
	struct tnd_class_cost cost = {
		.struct_size = cpu_to_le16(sizeof(cost)),
		.cls = cpu_to_le16(state->cls),
		.family = state->family,
		.pool = cpu_to_le16(state->pool),
		.cost = cpu_to_le32(state->cost),
		.free_guaranteed = cpu_to_le32(state->free_guaranteed),
		.free_expected = cpu_to_le32(state->free_expected),
	};

	memcpy(cost.name, state->name, sizeof(cost.name));
	return nla_put(skb, CLSW_ATTR_COST, sizeof(cost), &cost);
}

/* One message: pool number @at, or class number @at behind the last pool. 0: there is none */
static int gnl_put_resource(struct clsw_device *cd, struct sk_buff *skb,
			    struct netlink_callback *cb, long *pools, long at)
{
	struct rm_class_state class;
	struct rm_pool_state pool;
	bool is_pool, is_class;
	void *head;
	int err;

	clsw_lock(cd);
	is_pool = *pools < 0 && rm_pool_state(cd->rm, at, &pool);
	if (!is_pool && *pools < 0)
		*pools = at;
	is_class = !is_pool && rm_class_state(cd->rm, at - *pools, &class);
	clsw_unlock(cd);
	if (!is_pool && !is_class)
		return 0;
	head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
			   NLM_F_MULTI, CLSW_CMD_RESOURCES);
	if (!head)
		return -EMSGSIZE;
	err = is_pool ? gnl_put_pool(skb, &pool) : gnl_put_cost(skb, &class);
	if (err) {
		genlmsg_cancel(skb, head);
		return err;
	}
	genlmsg_end(skb, head);
	return 1;
}

/* args: [0] what comes next, [1] number of pools + 1, 0 as long as they come */
static int gnl_resources_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	long pools = cb->args[1] - 1;
	struct clsw_device *cd;
	int err = -ENODEV;

	mutex_lock(&devices_lock);
	cd = gnl_find_device(&genl_dumpit_info(cb)->info);
	while (cd) {
		err = gnl_put_resource(cd, skb, cb, &pools, cb->args[0]);
		if (err <= 0)
			break;
		cb->args[0]++;
	}
	mutex_unlock(&devices_lock);
	cb->args[1] = pools + 1;
	return skb->len ?: err;
}

static const struct netlink_range_validation reserve_range = { .max = CLSW_RESERVE_MAX };

static const struct nla_policy policy[CLSW_ATTR_MAX + 1] = {
	[CLSW_ATTR_DEVICE] = { .type = NLA_NUL_STRING, .len = 63 },
	[CLSW_ATTR_ROUTES] = { .type = NLA_BINARY },
	[CLSW_ATTR_NEXTHOPS] = NLA_POLICY_FULL_RANGE(NLA_U32, &reserve_range),
	[CLSW_ATTR_GROUPS] = NLA_POLICY_FULL_RANGE(NLA_U32, &reserve_range),
	[CLSW_ATTR_MEMBERS] = NLA_POLICY_FULL_RANGE(NLA_U32, &reserve_range),
	[CLSW_ATTR_CLASS] = { .type = NLA_U16 },
};

static const struct genl_split_ops ops[] = {
	{ .cmd = CLSW_CMD_RESERVE_ADD, .doit = gnl_reserve_add, .policy = policy,
	  .maxattr = CLSW_ATTR_ROUTES, .flags = GENL_ADMIN_PERM | GENL_CMD_CAP_DO },
	{ .cmd = CLSW_CMD_RESERVE_COMMIT, .doit = gnl_reserve_commit, .policy = policy,
	  .maxattr = CLSW_ATTR_MEMBERS, .flags = GENL_ADMIN_PERM | GENL_CMD_CAP_DO },
	{ .cmd = CLSW_CMD_RESERVE_DROP, .doit = gnl_reserve_drop, .policy = policy,
	  .maxattr = CLSW_ATTR_DEVICE, .flags = GENL_ADMIN_PERM | GENL_CMD_CAP_DO },
	{ .cmd = CLSW_CMD_OBJECTS, .start = gnl_objects_start, .dumpit = gnl_objects_dump,
	  .done = gnl_objects_done, .policy = policy, .maxattr = CLSW_ATTR_CLASS,
	  .flags = GENL_CMD_CAP_DUMP },
	{ .cmd = CLSW_CMD_RESOURCES, .dumpit = gnl_resources_dump, .policy = policy,
	  .maxattr = CLSW_ATTR_DEVICE, .flags = GENL_CMD_CAP_DUMP },
};

static struct genl_family family __ro_after_init = {
	.name = CLSW_GENL_NAME,
	.version = CLSW_GENL_VERSION,
	.module = THIS_MODULE,
	.split_ops = ops,
	.n_split_ops = ARRAY_SIZE(ops),
	/* who waits for a chip keeps no other family from its work */
	.parallel_ops = true,
};

int __init clsw_genl_init(void)
{
	int err = genl_register_family(&family);

	if (err)
		return err;
	err = netlink_register_notifier(&socket_nb);
	if (err)
		genl_unregister_family(&family);
	return err;
}

void clsw_genl_exit(void)
{
	struct owner *owner, *next;

	netlink_unregister_notifier(&socket_nb);
	genl_unregister_family(&family);
	list_for_each_entry_safe(owner, next, &owners, list)
		gnl_put_owner(owner);
}
