/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of tests share, and the tests of test_faults.c */
#ifndef CORE_TESTS_H
#define CORE_TESTS_H

#include "world.h"

extern u64 base_seed;

/* Hosts behind an interface have its VRF; there is none here */
static inline bool usable(u32 n)
{
	return (n % CLASSES != C_HOST4 && n % CLASSES != C_HOST6) || n % 4 == 0;
}

/* Bodies that differ, groups in their size */
static inline u8 variant(u32 n)
{
	return n % CLASSES == C_NHG ? below(&w.rnd, 2 + CHIP_MEMBERS) : below(&w.rnd, 2);
}

void what_takes_too_long_is_deferred(void);
void silence_ends_the_trust(void);
void a_slow_chip_is_not_waited_for(void);
void a_slow_chip_takes_reservations(void);
void too_few_router_interfaces(void);
void without_warm_attach(void);
void a_class_that_it_lacks(void);
void a_wrong_lease_is_given_up(void);
void a_group_on_its_way_is_put_again(void);
void a_failed_write_is_tried_again(void);
void a_refused_resync_is_no_end(void);
void a_lost_create_is_made_anew(void);
void a_late_answer_is_none(void);
void unknown_needs_room(void);
void a_limit_holds_with_a_lease(void);
void what_aged_is_made_anew(void);
void a_retry_does_not_wait(void);
void who_waits_is_told(void);
void a_replay_sweeps_nothing_that_is_wanted(void);
void another_version_is_updated(void);
void degraded_until_all_is_there(void);

/* test_order.c */
void a_domain_goes_after_its_interface(void);
void a_lost_lease_is_that_lease(void);
void a_reservation_ends_with_a_signal(void);
void a_reservation_without_answer_says_so(void);
void a_reservation_that_can_not_be_says_why(void);
void one_broken_object_asks_for_nobody(void);
void a_fault_without_room_waits_for_room(void);
void packets_that_are_too_small(void);
void a_chip_that_comes_back_with_less(void);
void a_replay_hides_what_is_missing(void);
void who_claims_a_prefix(void);

#endif
