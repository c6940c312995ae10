/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the resource manager needs from its surroundings: integer types, byte
 * order, strings. The same sources build into clsw.ko and, without
 * __KERNEL__, into the tests, the simulator and the fuzz targets.
 */
#ifndef _CLSW_RESOURCE_ENV_H
#define _CLSW_RESOURCE_ENV_H

#ifdef __KERNEL__

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/unaligned.h>

static inline u64 rm_mul_high(u64 a, u64 b)
{
	return mul_u64_u64_shr(a, b, 64);
}

#else /* user space */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the tests of the resource manager run on little-endian machines only"
#endif
#define cpu_to_le16(x)	((__le16)(u16)(x))
#define cpu_to_le32(x)	((__le32)(u32)(x))
#define cpu_to_le64(x)	((__le64)(u64)(x))
#define le16_to_cpu(x)	((u16)(x))
#define le32_to_cpu(x)	((u32)(x))
#define le64_to_cpu(x)	((u64)(x))

#define min_t(t, a, b)	((t)rm_min(a, b))
#define max_t(t, a, b)	((t)rm_max(a, b))
#ifndef min
/* of the kernel's types: what is 32 bits wide stays so */
#define min(a, b)	({ __typeof__((a) + (b)) a_ = (a), b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b)	({ __typeof__((a) + (b)) a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#endif
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1UL << (n))
#define U32_MAX		UINT32_MAX
#define U16_MAX		UINT16_MAX
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define hweight8(x)	((unsigned int)__builtin_popcount((u8)(x)))
#define hweight32(x)	((unsigned int)__builtin_popcount((u32)(x)))
#define scnprintf	rm_scnprintf

/* All that is compared here is unsigned */
static inline u64 rm_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 rm_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

#ifndef div_u64
#if __SIZEOF_LONG__ == 4
u64 div_u64(u64 a, u32 b);	/* a test looks for other divisions there */
#else
#define div_u64(a, b)	((u64)(a) / (u32)(b))
#endif
#endif

static inline size_t ALIGN(size_t x, size_t a)
{
	return (x + a - 1) & ~(a - 1);
}

static inline u64 rol64(u64 x, unsigned int n)
{
	return x << n | x >> (64 - n);
}

static inline u64 get_unaligned_be64(const void *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

static inline u32 get_unaligned_be32(const void *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline void put_unaligned_be32(u32 v, void *p)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static inline u64 rm_mul_high(u64 a, u64 b)
{
#ifdef __SIZEOF_INT128__
	return (u64)((__uint128_t)a * b >> 64);
#else
	return a & b;		/* only ever compiled: see kernel/tests/resource/run */
#endif
}

/* As the kernel's: what was written, never what would have been */
static inline int rm_scnprintf(char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(buf, size, fmt, args);
	va_end(args);
	if (n < 0 || !size)
		return 0;
	return (size_t)n < size ? n : (int)size - 1;
}

#endif
#endif /* _CLSW_RESOURCE_ENV_H */
