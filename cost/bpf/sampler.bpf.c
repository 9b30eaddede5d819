//go:build ignore

// One program, run at every tick of a clock of each CPU. If what runs there is
// being watched, it writes down where: the stack in the kernel, the stack of the
// process by its frame pointers, and the top of the process's stack as it is.
//
// The last is for functions without a frame of their own. The chain of frame
// pointers leads from such a function to its caller's caller, and the caller is
// lost; its address is on the top of the stack, and the program's own tables say
// where.
//
// Functions in assembly may have saved the frame pointer and use its register for
// something else, so that there is no chain: of their stacks a part is written down.
//
// Another runs where the kernel switches from one thread to the next, which it does with
// interrupts off, the clock's among them: that time is on no sample. It counts the
// switches of each process and writes some of them down, with how many each stands for.
//
// A virtual machine's clock may tick tens of microseconds late, most of all on a CPU that
// idles: such a tick comes when the CPU is woken by something else, amid what it is woken
// for. So a tick that was due while the CPU idled is no sample.
//
// Where a goroutine's stack grows, a thread's own stack is looked at, on which that
// is done. It goes on with the goroutine's, as it was when it called for more room.

#include "kernel.bpf.h"

char licence[] SEC("license") = "Dual BSD/GPL";

// The PID namespace of who watches; 0 for the first one.
volatile const __u64 namespace_device = 0;
volatile const __u64 namespace_inode = 0;

#define FEWEST 32

// The least time between two switches that are written down on a CPU. It may change.
volatile __u64 between = 2000000;

#define TOP 16
#define KERNEL 64
#define USER 127

struct sample {
	__u64 weight; // cycles of a hardware clock, nanoseconds of the other; of a switch, how many
	__u64 ip, sp, bp;
	__u32 pid;
	__s32 kernel_bytes, user_bytes; // negative: none
	__u32 top_bytes;
	__u32 switched; // it is of a switch
	__u32 pad;
	__u64 top[TOP];
	__u64 kernel[KERNEL];
	__u64 user[USER];
};

const struct sample *unused_sample __attribute__((unused));

#define STACK 6144
#define SHORT 1024

// A sample of a function that has something else where the frame pointer is kept.
struct astray {
	struct sample sample;
	__u32 bytes; // of the stack, from sp on
	__u32 pad;
	__u64 stack[STACK / 8];
};

const struct astray *unused_astray __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); // set when loaded
} samples SEC(".maps");

// What is known of a process's program: where its functions are; the function of Go's
// runtime that has a goroutine's stack grown, on the thread's own; and where a thread's
// record has the goroutine that it runs, and a goroutine's record the frame pointer that
// it left.
struct program {
	__u64 text, text_bytes; // 0 bytes if the program is not Go's
	__u64 grows; // its address; 0 if the program is not Go's
	__u32 grows_bytes;
	__u32 curg, bp;
	__u32 pad;
};

const struct program *unused_program __attribute__((unused));

// The processes watched, as who watches them sees their numbers.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct program);
} watched SEC(".maps");

struct tally {
	__u64 lost; // samples that found the ring full
	__u64 nanoseconds; // that samples took
	__u64 due; // when a switch may be written down again,
	__u64 enough; // and with how many
	__u64 switches; // since the last that was
	__u64 rings; // one of the times at which the clock is to tick
	__u64 woke; // when the CPU last had something to run again
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

// Offsets in a goroutine's record and in a thread's that no version known has changed.
#define G_M 48
#define G_SCHED_SP 56
#define G_SCHED_PC 64
#define G_SCHED_G 72
#define M_G0 0

// Where the function returns to that called for more room: on top of its stack, or in the
// link register, which the record has before the frame pointer.
#ifdef LINK
#define CALLER(g, p) word((g) + (p)->bp - sizeof(__u64))
#else
#define CALLER(g, p) word(word((g) + G_SCHED_SP))
#endif

// The calls on a thread's own stack that are looked through for what has another grow.
#define OWN 32

static __always_inline __u64 word(__u64 at)
{
	__u64 w = 0;

	if (bpf_probe_read_user(&w, sizeof(w), (void *)at))
		return 0;
	return w;
}

// growing returns the record of the goroutine whose stack the thread has grown that
// runs on its own stack, as g0; 0 if the records do not lead to one another.
static __always_inline __u64 growing(__u64 g0, struct program *p)
{
	__u64 m = word(g0 + G_M), g = word(m + p->curg);

	if (!m || word(m + M_G0) != g0 || !g || g == g0)
		return 0;
	return word(g + G_M) == m && word(g + G_SCHED_G) == g ? g : 0;
}

// go_on has a stack on which another grows go on with that one: where it called for
// more, who called that, and so on by frame pointers.
static __always_inline void go_on(struct sample *s, __u64 g0, struct program *p)
{
	__u64 g, bp, grew, called;
	__u32 at, n;

	for (at = 0; at < OWN; at++) {
		if (s->user_bytes <= (__s32)(at * sizeof(__u64)))
			return;
		if (s->user[at] - p->grows < p->grows_bytes)
			break;
	}
	if (at >= OWN)
		return;
	n = at + 1;
	s->user_bytes = n * sizeof(__u64); // what is further out called nobody
	g = growing(g0, p);
	grew = word(g + G_SCHED_PC);
	called = CALLER(g, p);
	if (!g || !grew || !called)
		return;
	s->user[n++] = grew;
	s->user[n++] = called;
	bp = word(g + p->bp);
	for (; n < USER && bp; n++) {
		called = word(bp + sizeof(__u64));
		if (!called)
			break;
		s->user[n] = called;
		bp = word(bp);
	}
	s->user_bytes = n * sizeof(__u64);
}

// strays reports whether a function of the program has something else where the frame
// pointer is kept: above that one there is an address in the program to return to.
static __always_inline int strays(struct pt_regs *regs, struct program *p)
{
	if (AT(regs) - p->text >= p->text_bytes)
		return 0;
	return word(FRAME(regs) + sizeof(__u64)) - p->text >= p->text_bytes;
}

static __always_inline void fill(void *ctx, struct pt_regs *regs, struct sample *s, struct program *p)
{
	s->ip = AT(regs);
	s->sp = BPF_CORE_READ(regs, sp);
	s->bp = FRAME(regs);
	s->top_bytes = sizeof(s->top);
	if (bpf_probe_read_user(s->top, sizeof(s->top), (void *)s->sp))
		s->top_bytes = 0;
#ifdef LINK
	s->top[TOP - 1] = LINK(regs); // a function without a frame has its caller there alone
#endif
	s->kernel_bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
	s->user_bytes = bpf_get_stack(ctx, s->user, sizeof(s->user), BPF_F_USER_STACK);
	if (p->grows)
		go_on(s, GOROUTINE(regs), p);
}

// keep writes a sample down; 0 if there is no room for it.
static __always_inline int keep(void *ctx, struct pt_regs *regs, struct program *p, __u64 weight, __u32 switched)
{
	struct sample *s = bpf_ringbuf_reserve(&samples, sizeof(*s), 0);

	if (!s)
		return 0;
	s->pid = current_pid();
	s->weight = weight;
	fill(ctx, regs, s, p);
	s->switched = switched;
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return 1;
}

// keep_stack does so with a part of the stack.
static __always_inline int keep_stack(void *ctx, struct pt_regs *regs, struct program *p, __u64 weight, __u32 switched)
{
	struct astray *a = bpf_ringbuf_reserve(&samples, sizeof(*a), 0);

	if (!a)
		return 0;
	a->sample.pid = current_pid();
	a->sample.weight = weight;
	fill(ctx, regs, &a->sample, p);
	a->sample.switched = switched;
	a->bytes = STACK;
	if (bpf_probe_read_user(a->stack, STACK, (void *)a->sample.sp)) {
		a->bytes = SHORT;
		if (bpf_probe_read_user(a->stack, SHORT, (void *)a->sample.sp))
			a->bytes = 0;
	}
	bpf_ringbuf_submit(a, BPF_RB_NO_WAKEUP);
	return 1;
}

// take writes down where the current thread is, with the stack where the frame pointer leads nowhere; 0 if there is no
// room for it.
static __always_inline int take(void *ctx, struct program *p, __u64 weight, __u32 switched)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return strays(regs, p) ? keep_stack(ctx, regs, p, weight, switched) : keep(ctx, regs, p, weight, switched);
}

// late returns how long ago the clock was to tick, which it does in even steps: the least
// late of its ticks say when, of late the more. A tick that would be later than a quarter of a
// step begins anew: it is early, or the last one was far too late.
static __always_inline __u64 late(struct tally *t, __u64 now, __u64 step)
{
	__u64 by;

	if (!t->rings || !step) {
		t->rings = now;
		return 0;
	}
	by = (now - t->rings) % step;
	if (by > step / 4) {
		t->rings = now;
		return 0;
	}
	t->rings += by / 64;
	return by;
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0, pid = current_pid();
	struct program *p;
	struct tally *t;
	__u64 begun, due;

	t = bpf_map_lookup_elem(&tallies, &zero);
	if (!t)
		return 0;
	begun = bpf_ktime_get_ns();
	due = begun - late(t, begun, ctx->sample_period);
	p = bpf_map_lookup_elem(&watched, &pid);
	if (!p || due < t->woke)
		return 0;
	if (!take(ctx, p, ctx->sample_period, 0)) {
		t->lost++;
		return 0;
	}
	t->nanoseconds += bpf_ktime_get_ns() - begun;
	return 0;
}

SEC("tp_btf/sched_switch")
int leave(__u64 *ctx)
{
	__u32 zero = 0, pid = current_pid();
	struct program *p = 0;
	struct tally *t;
	__u64 begun;
	int idle = !(bpf_get_current_pid_tgid() >> 32);

	if (!idle)
		p = bpf_map_lookup_elem(&watched, &pid);
	if (!p && !idle)
		return 0;
	t = bpf_map_lookup_elem(&tallies, &zero);
	if (!t)
		return 0;
	if (!p) {
		t->woke = bpf_ktime_get_ns();
		return 0;
	}
	t->switches++;
	begun = bpf_ktime_get_ns();
	if (begun < t->due || t->switches < t->enough)
		return 0;
	if (!take(ctx, p, t->switches, 1))
		return 0;
	t->due = begun + between;
	t->enough = FEWEST + bpf_get_prandom_u32() % (2 * FEWEST); // not in step with requests
	t->switches = 0;
	t->nanoseconds += bpf_ktime_get_ns() - begun;
	return 0;
}
