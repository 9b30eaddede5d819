// What the program needs of the kernel's types. Offsets are found when it is
// loaded, by the kernel's own type information, so this is all there is to say
// about them.

#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_F_USER_STACK = 1 << 8,
	BPF_RB_NO_WAKEUP = 1 << 0,
};

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_arm64)
struct pt_regs {
	unsigned long regs[31], sp, pc;
};
#else
struct pt_regs {
	unsigned long r14, bp, ip, sp;
};
#endif

struct bpf_perf_event_data {
	__u64 sample_period;
};

#pragma clang attribute pop

struct task_struct;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// Registers of a thread: where it runs, its stack and frame pointers, and the one in which
// Go has the goroutine's record.
#if defined(__TARGET_ARCH_arm64)
#define AT(r) BPF_CORE_READ(r, pc)
#define FRAME(r) BPF_CORE_READ(r, regs[29])
#define GOROUTINE(r) BPF_CORE_READ(r, regs[28])
#define LINK(r) BPF_CORE_READ(r, regs[30])
#else
#define AT(r) BPF_CORE_READ(r, ip)
#define FRAME(r) BPF_CORE_READ(r, bp)
#define GOROUTINE(r) BPF_CORE_READ(r, r14)
#endif
