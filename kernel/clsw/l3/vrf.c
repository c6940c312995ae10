// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel tables and VRFs. Routes of any table are remembered, because the FIB
 * can't be read again when a table turns out to be a VRF's; they cost the chip
 * nothing until an interface is in it.
 */
#include <linux/slab.h>

#include "l3.h"

struct l3_vrf *l3_vrf_find(struct clsw_l3 *l3, u32 tb_id)
{
	struct l3_vrf *vrf;

	list_for_each_entry(vrf, &l3->vrfs, list)
		if (vrf->tb_id == tb_id)
			return vrf;
	return NULL;
}

struct l3_vrf *l3_vrf_get(struct clsw_l3 *l3, u32 tb_id)
{
	struct l3_vrf *vrf;

	if (tb_id == RT_TABLE_LOCAL)
		tb_id = RT_TABLE_MAIN;
	/* asked after main and only then: what misses in the chip goes to the CPU anyway */
	if (tb_id == RT_TABLE_DEFAULT)
		return NULL;
	vrf = l3_vrf_find(l3, tb_id);
	if (vrf)
		return vrf;
	vrf = kzalloc(sizeof(*vrf), GFP_ATOMIC);
	if (!vrf)
		return NULL;
	vrf->tb_id = tb_id;
	vrf->active = tb_id == RT_TABLE_MAIN;
	clsw_cover_init(&vrf->cover[0], CLSW_COVER_V4);
	clsw_cover_init(&vrf->cover[1], CLSW_COVER_V6);
	list_add(&vrf->list, &l3->vrfs);
	return vrf;
}

static void vrf_drop(struct clsw_l3 *l3, struct l3_vrf *vrf)
{
	if (vrf->obj)
		clsw_drop(l3->cd, vrf->obj);
	if (vrf->id)
		ida_free(&l3->vrf_ids, vrf->id);
	vrf->obj = NULL;
	vrf->id = 0;
}

void l3_vrf_put(struct clsw_l3 *l3, struct l3_vrf *vrf)
{
	if (vrf == l3->main || vrf->rifs || vrf->routes)
		return;
	list_del(&vrf->list);
	clsw_cover_exit(&vrf->cover[0]);
	clsw_cover_exit(&vrf->cover[1]);
	kfree(vrf);
}

/*
 * One whose number was given up may still have routes in the chip: they go after
 * everything that is put, so another table doesn't get it before.
 */
static int vrf_new_id(struct clsw_l3 *l3)
{
	struct tnd_vrf probe = {};
	int id = 0;

	do {
		id = ida_alloc_range(&l3->vrf_ids, id + 1, U16_MAX, GFP_ATOMIC);
		if (id < 0)
			return id;
		probe.vrf = cpu_to_le16(id);
		if (!clsw_find(l3->cd, TND_CLS_VRF, &probe))
			return id;
		ida_free(&l3->vrf_ids, id);
	} while (id < U16_MAX);
	return -ENOSPC;
}

int l3_vrf_join(struct clsw_l3 *l3, struct l3_vrf *vrf, char *text)
{
	struct tnd_vrf body = {};
	int id, err;

	if (vrf == l3->main || vrf->rifs++)
		return 0;
	id = vrf_new_id(l3);
	if (id < 0) {
		err = id;
		if (err == -ENOSPC)
			strscpy(text, "no number is left for another VRF", CLSW_TEXT);
		goto err;
	}
	body.vrf = cpu_to_le16(id);
	err = clsw_put(l3->cd, TND_CLS_VRF, &body, sizeof(body), 0, NULL, NULL, &vrf->obj, text);
	if (err)
		goto err_id;
	vrf->id = id;
	vrf->active = true;
	l3_routes_apply(l3, vrf);
	return 0;

err_id:
	ida_free(&l3->vrf_ids, id);
err:
	vrf->rifs--;
	return err;
}

void l3_vrf_leave(struct clsw_l3 *l3, struct l3_vrf *vrf)
{
	if (vrf == l3->main || --vrf->rifs)
		return;
	vrf->active = false;
	l3_routes_apply(l3, vrf);
	vrf_drop(l3, vrf);
	l3_vrf_put(l3, vrf);
}

static void vrf_free_route(struct clsw_l3 *l3, struct l3_route *route)
{
	struct l3_source *source, *next;

	l3_alias_release(l3, &route->alias[0]);
	l3_alias_release(l3, &route->alias[1]);
	if (route->obj)
		clsw_drop(l3->cd, route->obj);
	list_for_each_entry_safe(source, next, &route->sources, list)
		l3_source_free(source);
	clsw_pool_put(&l3->memory, route, sizeof(*route));
}

/* At the end, or before the FIB is dumped once more: hardware keeps none either */
void l3_routes_free(struct clsw_l3 *l3)
{
	struct l3_vrf *vrf, *next;
	struct clsw_cover_node *n;
	int i;

	INIT_LIST_HEAD(&l3->flag_list);
	list_for_each_entry_safe(vrf, next, &l3->vrfs, list) {
		for (i = 0; i < 2; i++) {
			struct clsw_cover *c = &vrf->cover[i];

			for (n = &c->root; n; n = clsw_cover_next_below(&c->root, n)) {
				if (n->owner)
					vrf_free_route(l3, n->owner);
				n->owner = NULL;
			}
			clsw_cover_exit(c);
		}
		vrf->routes = 0;
		l3_vrf_put(l3, vrf);
	}
}

void l3_vrfs_free(struct clsw_l3 *l3)
{
	struct l3_vrf *vrf, *next;

	l3_routes_free(l3);
	clsw_pool_trim(&l3->memory, sizeof(struct l3_route), true);
	l3->main = NULL;
	list_for_each_entry_safe(vrf, next, &l3->vrfs, list) {
		vrf_drop(l3, vrf);
		list_del(&vrf->list);
		kfree(vrf);
	}
}
