//go:build ignore

// Probes on instructions of Go functions. Everything is keyed by goroutine and by
// the distance from the top of its stack, since goroutines change threads and
// their stacks are moved.
//
// Every program here runs where ABIInternal keeps the goroutine in a register, on amd64 at
// an instruction that the kernel emulates.

#include "probe.bpf.h"
#include "../../internal/loglinear/loglinear.bpf.h"

char licence[] SEC("license") = "Dual BSD/GPL";

// Offsets in runtime.g. The goroutine's number depends on the Go version.
#define G_STACK_HI 8
volatile const __u32 goid_offset = 152;

// Nanoseconds of one side of a hit that no program can see: the trap on the way
// in, or the return on the way out.
volatile const __u64 trap_ns = 0;

// Which window this is, 0 between windows: probes are not all placed, nor taken
// away, in one moment. Frames of one window are not continued in the next.
__u64 window;

// The moment after which calls are neither timed nor told of any more, whatever
// becomes of the process that asked for it: it may have been stopped.
__u64 until;

// What the slow-down takes, and the moment after which it takes nothing any more
// whatever becomes of the process that asked for it.
__u64 slow_ns;
__u64 slow_until;

#define FRAMES 24
#define OWNERS 64
#define MARKS 512
#define CHAIN 48

struct frame {
	__u64 from;   // when the entry's program began: as the frame around sees it
	__u64 since;  // when it ended: as the frame itself sees it
	__u64 inner;  // frames inside and the probes' own time, to be taken off
	__u64 nested; // time of the frames inside, net of probes
	__u64 depth;  // top of stack - SP at entry
	__u32 id;
	__u32 pad;
};

struct stack {
	__u64 window;
	__u32 n;
	__u32 pad;
	struct frame at[FRAMES];
};

struct tally {
	__u64 entered, finished, stale, deep, strange;
	__u64 total, self, longest;
	__u64 hist[BUCKETS];
};

struct mark {
	__u64 hits, closed;
};

// chain is who called a function: return addresses, the innermost first.
struct chain {
	__u32 id;
	__s32 n;
	__u64 pc[CHAIN];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct stack);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack);
} blank SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OWNERS);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MARKS);
	__type(key, __u32);
	__type(value, struct mark);
} marks SEC(".maps");

// callers are the return addresses for which marks are planned.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u8);
} callers SEC(".maps");

// seen counts the calls of functions that are only looked at.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
	__type(value, struct chain);
} chains SEC(".maps");

#if defined(__TARGET_ARCH_arm64)
#define GOROUTINE(ctx) ((ctx)->regs[28])
#else
#define GOROUTINE(ctx) ((ctx)->r14)
#endif

// caller_of is where the function returns to that has just begun.
static __always_inline __u64 caller_of(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_arm64)
	return ctx->regs[30];
#else
	__u64 pc = 0;
	bpf_probe_read_user(&pc, 8, (void *)ctx->sp);
	return pc;
#endif
}

#define ADD(field, v) __sync_fetch_and_add(&(field), (v))

// where finds the goroutine, and how deep in its stack an address is.
static __always_inline int where(struct pt_regs *ctx, __u64 sp, __u64 *goid, __u64 *depth)
{
	__u64 g = GOROUTINE(ctx), hi = 0;
	if (bpf_probe_read_user(goid, 8, (void *)(g + goid_offset)))
		return -1;
	if (bpf_probe_read_user(&hi, 8, (void *)(g + G_STACK_HI)))
		return -1;
	*depth = hi - sp;
	// Otherwise it is no goroutine, or not laid out as was thought.
	return *goid && !(*goid >> 48) && *depth <= DEEPEST ? 0 : -1;
}

static __always_inline void tell_chain(struct pt_regs *ctx, __u32 id)
{
	struct chain *c = bpf_ringbuf_reserve(&chains, sizeof(*c), 0);
	if (!c)
		return;
	long n = bpf_get_stack(ctx, c->pc, sizeof(c->pc), BPF_F_USER_STACK);
	c->id = id;
	c->n = n > 0 ? (__u32)n / 8 : 0;
	// The frame pointer is still the caller's: the kernel's walk leaves the
	// caller out, and what it has in first place is the function itself.
	c->pc[0] = caller_of(ctx);
	if (!c->pc[0])
		c->n = 0;
	bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);
}

// look counts calls, and tells who called: often at first, then seldom.
SEC("uprobe.multi/look")
int look(struct pt_regs *ctx)
{
	__u32 id = bpf_get_attach_cookie(ctx);
	__u64 *n = bpf_map_lookup_elem(&seen, &id);
	if (!n || bpf_ktime_get_ns() > until)
		return 0;
	__u64 before = ADD(*n, 1);
	if (before < 16 || before % 61 == 0)
		tell_chain(ctx, id);
	return 0;
}

SEC("uprobe.multi/count")
int count(struct pt_regs *ctx)
{
	__u32 id = bpf_get_attach_cookie(ctx);
	__u64 *n = bpf_map_lookup_elem(&seen, &id);
	if (n)
		ADD(*n, 1);
	return 0;
}

static __always_inline struct stack *stack_of(__u64 goid)
{
	__u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&stacks, &goid);
	if (s)
		return s;
	struct stack *b = bpf_map_lookup_elem(&blank, &zero);
	if (!b)
		return 0;
	bpf_map_update_elem(&stacks, &goid, b, BPF_ANY);
	return bpf_map_lookup_elem(&stacks, &goid);
}

// check tells who called if no mark is planned for it, and now and then anyway:
// what matters may be further out than the caller.
static __always_inline void check(struct pt_regs *ctx, struct tally *t, __u32 id, __u64 before)
{
	__u64 caller = caller_of(ctx);
	int strange = !bpf_map_lookup_elem(&callers, &caller);
	if (strange && ADD(t->strange, 1) < 64)
		tell_chain(ctx, id);
	else if (before % 1021 == 1020)
		tell_chain(ctx, id);
}

// enter runs at an owner's push.
SEC("uprobe.multi/enter")
int enter(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 goid, depth;
	__u32 id = bpf_get_attach_cookie(ctx);
	__u64 current = window;
	if (now > until)
		return 0;
	struct tally *t = bpf_map_lookup_elem(&tallies, &id);
	if (!current || !t || where(ctx, ctx->sp, &goid, &depth))
		return 0;
	__u64 before = ADD(t->entered, 1);
	struct stack *s = stack_of(goid);
	if (!s)
		return 0;
	__u32 n = s->window == current ? s->n : 0;
	s->window = current;
	for (int i = 0; i < FRAMES; i++) {
		if (n == 0 || n > FRAMES)
			break;
		__u32 j = n - 1;
		BOUND(j);
		if (j >= FRAMES || s->at[j].depth < depth)
			break;
		__u32 left = s->at[j].id;
		struct tally *l = bpf_map_lookup_elem(&tallies, &left);
		if (l)
			ADD(l->stale, 1);
		n--; // left by a panic
	}
	if (n >= FRAMES) {
		s->n = FRAMES;
		ADD(t->deep, 1);
		return 0;
	}
	if (n > 0) {
		__u32 p = n - 1;
		BOUND(p);
		if (p < FRAMES)
			s->at[p].inner += trap_ns;
	}
	check(ctx, t, id, before);
	BOUND(n);
	if (n >= FRAMES)
		return 0;
	struct frame *f = &s->at[n];
	f->from = now;
	f->inner = trap_ns;
	f->nested = 0;
	f->depth = depth;
	f->id = id;
	s->n = n + 1;
	f->since = bpf_ktime_get_ns();
	return 0;
}

// close ends a frame, and returns its time net of probes.
static __always_inline __u64 close(struct frame *f, __u64 now)
{
	__u64 gross = now - f->since;
	__u64 self = gross > f->inner ? gross - f->inner : 0;
	__u64 total = self + f->nested;
	__u32 id = f->id;
	struct tally *t = bpf_map_lookup_elem(&tallies, &id);
	if (!t)
		return total;
	ADD(t->finished, 1);
	ADD(t->self, self);
	ADD(t->total, total);
	if (total > t->longest)
		t->longest = total;
	__u32 b = bucket(self);
	if (b < BUCKETS)
		ADD(t->hist[b], 1);
	return total;
}

// leave runs at a mark: a call made by the frame at this depth has returned, so
// frames deeper than it are over. The cookie is the mark's number and, above 32
// bits, the distance of SP here from SP at the function's entry.
SEC("uprobe.multi/leave")
int leave(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u64 goid, depth, from = 0;
	__u32 id = cookie, closed = 0;
	__u64 current = window;
	if (now > until)
		return 0;
	struct mark *m = bpf_map_lookup_elem(&marks, &id);
	if (!current || !m || where(ctx, ctx->sp + (cookie >> 32), &goid, &depth))
		return 0;
	ADD(m->hits, 1);
	struct stack *s = bpf_map_lookup_elem(&stacks, &goid);
	if (!s || s->window != current)
		return 0;
	__u32 n = s->n;
	for (int i = 0; i < FRAMES; i++) {
		if (n == 0 || n > FRAMES)
			break;
		__u32 j = n - 1;
		BOUND(j);
		if (j >= FRAMES)
			break;
		struct frame *f = &s->at[j];
		if (f->depth <= depth)
			break;
		if (closed == 0)
			f->inner += trap_ns;
		__u64 total = close(f, now);
		from = f->from;
		n--;
		closed++;
		if (n == 0)
			break;
		__u32 p = n - 1;
		BOUND(p);
		if (p >= FRAMES)
			break;
		s->at[p].nested += total;
		s->at[p].inner += now - from;
	}
	s->n = n;
	if (closed)
		ADD(m->closed, closed);
	if (n == 0 || n > FRAMES)
		return 0;
	__u32 p = n - 1;
	BOUND(p);
	if (p >= FRAMES)
		return 0;
	struct frame *f = &s->at[p];
	f->inner += (closed ? trap_ns : 2 * trap_ns) + bpf_ktime_get_ns() - now;
	return 0;
}

struct spin {
	__u64 until;
};

static long spin_on(__u32 i, struct spin *s) { return bpf_ktime_get_ns() >= s->until; }

// slow takes slow_ns of CPU, and counts the calls and the nanoseconds taken.
SEC("uprobe.multi/slow")
int slow(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 id = bpf_get_attach_cookie(ctx), taken = id + 1;
	__u64 *n = bpf_map_lookup_elem(&seen, &id);
	__u64 *ns = bpf_map_lookup_elem(&seen, &taken);
	if (!n || !ns)
		return 0;
	ADD(*n, 1);
	__u64 d = slow_ns;
	if (d == 0 || d > SLOWEST || now > slow_until)
		return 0;
	struct spin s = { .until = now + d };
	bpf_loop(1 << 17, spin_on, &s, 0);
	ADD(*ns, bpf_ktime_get_ns() - now);
	return 0;
}
