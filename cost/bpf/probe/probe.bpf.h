// What the programs need of the kernel's types. Offsets are found when they are
// loaded, by the kernel's own type information, so this is all there is to say
// about them.

#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_F_USER_STACK = 1 << 8,
	BPF_RB_NO_WAKEUP = 1 << 0,
};

// The longest slow-down of one call, in nanoseconds.
#define SLOWEST 1000000

// The deepest stack of a goroutine: its limit is 1 GB unless it is raised.
#define DEEPEST (1ull << 34)

// The compiler drops a mask that it can prove needless, and the verifier, which
// cannot prove it, then refuses the access.
#define BOUND(i) asm volatile("%0 &= 31" : "+r"(i))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long regs[31], sp;
};
#else
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#endif

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
