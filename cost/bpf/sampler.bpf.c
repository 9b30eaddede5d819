//go:build ignore

// One program, run at every tick of a clock of each CPU. If what runs there is
// being watched, it writes down where: the stack in the kernel, the stack of the
// process by its frame pointers, and the top of the process's stack as it is.
//
// The last is for functions without a frame of their own. The chain of frame
// pointers leads from such a function to its caller's caller, and the caller is
// lost; its address is on the top of the stack, and the program's own tables say
// where.

#include "kernel.bpf.h"

char licence[] SEC("license") = "Dual BSD/GPL";

// The PID namespace of who watches; 0 for the first one.
volatile const __u64 namespace_device = 0;
volatile const __u64 namespace_inode = 0;

#define TOP 16
#define KERNEL 64
#define USER 127

struct sample {
	__u64 weight; // cycles of a hardware clock, nanoseconds of the other
	__u64 ip, sp, bp;
	__u32 pid;
	__s32 kernel_bytes, user_bytes; // negative: none
	__u32 top_bytes;
	__u64 top[TOP];
	__u64 kernel[KERNEL];
	__u64 user[USER];
};

const struct sample *unused_sample __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); // set when loaded
} samples SEC(".maps");

// The processes watched, as who watches them sees their numbers.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} watched SEC(".maps");

struct tally {
	__u64 lost; // samples that found the ring full
	__u64 nanoseconds; // that samples took
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

static __always_inline __u32 current_pid(void)
{
	struct bpf_pidns_info seen = {};

	if (!namespace_inode)
		return bpf_get_current_pid_tgid() >> 32;
	if (bpf_get_ns_current_pid_tgid(namespace_device, namespace_inode, &seen, sizeof(seen)))
		return 0;
	return seen.tgid;
}

static __always_inline void fill(struct bpf_perf_event_data *ctx, struct sample *s)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	s->weight = ctx->sample_period;
	s->ip = BPF_CORE_READ(regs, ip);
	s->sp = BPF_CORE_READ(regs, sp);
	s->bp = BPF_CORE_READ(regs, bp);
	s->top_bytes = sizeof(s->top);
	if (bpf_probe_read_user(s->top, sizeof(s->top), (void *)s->sp))
		s->top_bytes = 0;
	s->kernel_bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
	s->user_bytes = bpf_get_stack(ctx, s->user, sizeof(s->user), BPF_F_USER_STACK);
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0, pid = current_pid();
	struct sample *s;
	struct tally *t;
	__u64 begun;

	if (!bpf_map_lookup_elem(&watched, &pid))
		return 0;
	t = bpf_map_lookup_elem(&tallies, &zero);
	if (!t)
		return 0;
	begun = bpf_ktime_get_ns();
	s = bpf_ringbuf_reserve(&samples, sizeof(*s), 0);
	if (!s) {
		t->lost++;
		return 0;
	}
	s->pid = pid;
	fill(ctx, s);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	t->nanoseconds += bpf_ktime_get_ns() - begun;
	return 0;
}
