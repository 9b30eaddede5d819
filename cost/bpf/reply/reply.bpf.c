//go:build ignore

// How long a process takes to answer: on a connection that it accepted, from the
// arrival of data to the next that it sends there.
//
// Data that comes before what came earlier was read belongs to the same wait. Data
// that comes after it begins the wait anew: it is the rest of a request, or the one
// before it wanted no answer, as much of what HTTP/2 sends does not.

#include "../kernel.bpf.h"
#include "../../internal/loglinear/loglinear.bpf.h"

char licence[] SEC("license") = "Dual BSD/GPL";

enum {
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,

	AF_UNIX = 1,
	AF_INET = 2,
	AF_INET6 = 10,
	SOCK_STREAM = 1,
	IPPROTO_TCP = 6,
	RCV_SHUTDOWN = 1,
	TCP_ESTABLISHED = 1,
	TCP_SYN_RECV = 3,
	TCP_CLOSE_WAIT = 8,
	TCP_LISTEN = 10,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	void *net;
} possible_net_t;

struct sock_common {
	unsigned short skc_family;
	unsigned char skc_state;
	__u16 skc_num;
	possible_net_t skc_net;
};

struct sk_buff_head {
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u8 sk_shutdown;
	__u16 sk_type, sk_protocol;
};

struct tcp_sock {
	__u32 rcv_nxt, copied_seq, write_seq;
	__u8 is_mptcp : 1;
};

struct unix_sock {
	struct unix_address *addr; // of an accepted one: the listening one's own
	struct sock *peer;
};

struct socket {
	struct sock *sk;
};

struct upid {
	int nr;
	void *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	int tgid;
	struct pid *thread_pid;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

// The process, as who watches it sees its number.
volatile const __u32 pid = 0;

// The same, as the kernel numbers it; 0 as long as it was not found.
__u32 tgid;

// How many connections wait, as counted by waiting.
__u64 waits;

// conn is a connection that was accepted. Waits are numbered: what begins them and
// what ends them may run at the same time.
struct conn {
	__u64 since; // when the data arrived that the last wait begins with
	__u32 begun, ended; // the last waits that did; one is under way if they differ
	__u32 passed; // data that was read and not answered when other came
	__u32 read_to, wrote; // of TCP: where what arrived ends, what was sent before
	__u32 foreign; // it is another process's
};

// What is kept of a connection goes with it.
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

// place is where a socket is bound: a port of a network, or the address of a name.
struct place {
	__u64 net, at;
};

// Where the process listens.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct place);
	__type(value, __u8);
} listening SEC(".maps");

struct tally {
	__u64 count[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

static __always_inline int is_inet(struct sock *sk)
{
	unsigned short family = sk->__sk_common.skc_family;

	return family == AF_INET || family == AF_INET6;
}

static __always_inline int is_unix(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX && sk->sk_type == SOCK_STREAM;
}

// MPTCP's own socket is told by its protocol, a connection below it by a mark.
static __always_inline int is_tcp(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!is_inet(sk) || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	return !bpf_core_field_exists(tp->is_mptcp) || !BPF_CORE_READ_BITFIELD_PROBED(tp, is_mptcp);
}

// bound says where a socket is; at is 0 if it is nowhere, or of no kind that counts.
static __always_inline struct place bound(struct sock *sk)
{
	struct place p = {};

	if (is_inet(sk)) {
		p.net = (__u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
		p.at = sk->__sk_common.skc_num;
	} else if (is_unix(sk)) {
		p.at = (__u64)BPF_CORE_READ((struct unix_sock *)sk, addr);
	}
	return p;
}

static __always_inline int is_ours(struct sock *sk)
{
	struct place p = bound(sk);

	return p.at && bpf_map_lookup_elem(&listening, &p);
}

static __always_inline volatile struct conn *known(struct sock *sk)
{
	return bpf_sk_storage_get(&conns, sk, 0, 0);
}

static __always_inline volatile struct conn *add(struct sock *sk)
{
	return bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline void record(__u64 since, __u64 now)
{
	__u32 zero = 0, b = bucket(now > since ? now - since : 0);
	struct tally *t = bpf_map_lookup_elem(&tallies, &zero);

	if (t && b < BUCKETS)
		__sync_fetch_and_add(&t->count[b], 1);
}

// begin begins a wait, or the one that is under way anew.
static __always_inline void begin(struct sock *sk, volatile struct conn *c)
{
	__u64 now = bpf_ktime_get_ns();
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk); // none of a Unix socket
	__u32 wrote = tp ? tp->write_seq : 0;
	int read;

	if (c->begun != c->ended && c->wrote != wrote) {
		record(c->since, now); // the answer is out, and its sender not yet done
		c->ended = c->begun;
	}
	if (tp) {
		read = (__s32)(tp->copied_seq - c->read_to) >= 0;
		c->read_to = tp->rcv_nxt;
	} else {
		read = sk->sk_receive_queue.qlen <= 1;
	}
	if (c->begun != c->ended) {
		if (!read)
			return;
		c->passed++;
		c->since = now;
		return;
	}
	c->since = now;
	c->wrote = wrote;
	c->begun++;
}

// end ends the wait that is under way, if it began before what was sent.
static __always_inline void end(struct sock *sk, volatile struct conn *c)
{
	__u32 begun = c->begun;
	__u64 since = c->since;
	struct tcp_sock *tp;

	if (begun == c->ended || c->foreign)
		return;
	if (bpf_get_current_pid_tgid() >> 32 != tgid) {
		c->foreign = 1;
		return;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && c->wrote == tp->write_seq)
		return;
	if (c->begun != begun)
		return; // ended meanwhile, and the next has begun
	c->ended = begun;
	record(since, bpf_ktime_get_ns());
}

// What arrives at one end of a Unix socket is what the other end sends.
SEC("tp_btf/sk_data_ready")
int arrive(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0], *peer;
	volatile struct conn *c = known(sk);
	struct unix_sock *u;

	if (is_unix(sk)) {
		u = bpf_skc_to_unix_sock(sk);
		if (!u || sk->__sk_common.skc_state == TCP_LISTEN)
			return 0;
		peer = u->peer;
		if (peer) {
			volatile struct conn *other = known(peer);
			if (other)
				end(peer, other);
		}
		if (!c && is_ours(sk))
			c = add(sk);
	}
	if (c && !c->foreign && !(sk->sk_shutdown & RCV_SHUTDOWN)) // its end is told likewise
		begin(sk, c);
	return 0;
}

SEC("tp_btf/sock_send_length")
int sent(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	volatile struct conn *c;

	if (!is_inet(sk))
		return 0;
	c = known(sk);
	if (c)
		end(sk, c);
	return 0;
}

// opened sees connections that others open to where the process listens.
SEC("tp_btf/inet_sock_set_state")
int opened(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	if ((int)ctx[1] == TCP_SYN_RECV && (int)ctx[2] == TCP_ESTABLISHED && is_tcp(sk) && is_ours(sk))
		add(sk);
	return 0;
}

// number is that of a process as who runs the program sees it; 0 if it does not.
static __always_inline __u32 number(struct task_struct *task)
{
	struct pid *own = BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid);
	struct pid *other = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(own, level);
	struct upid seen = {}, by = {};

	if (!other || BPF_CORE_READ(other, level) < level)
		return 0;
	bpf_probe_read_kernel(&by, sizeof(by), (void *)__builtin_preserve_access_index(&own->numbers) + level * sizeof(by));
	bpf_probe_read_kernel(&seen, sizeof(seen), (void *)__builtin_preserve_access_index(&other->numbers) + level * sizeof(seen));
	return seen.ns == by.ns ? seen.nr : 0;
}

// find looks through all files that are open. Run once, it finds the process and
// where it listens; run again, the connections that it accepted there before.
SEC("iter/task_file")
int find(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct place p;
	struct socket *s;
	struct sock *sk;
	__u8 one = 1;

	if (!task || !file || number(task) != pid)
		return 0;
	tgid = task->tgid;
	s = bpf_sock_from_file(file);
	if (!s)
		return 0;
	sk = s->sk;
	if (!sk)
		return 0;
	if (sk->__sk_common.skc_state == TCP_LISTEN) {
		p = bound(sk);
		if (p.at)
			bpf_map_update_elem(&listening, &p, &one, 0);
	} else if ((is_tcp(sk) || is_unix(sk)) && is_ours(sk)) {
		add(sk);
	}
	return 0;
}

// waiting counts connections on which data waits for an answer, but for those where
// much came that wanted none.
SEC("iter/bpf_sk_storage_map")
int waiting(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct conn *c = ctx->value;
	__u8 state;

	if (!sk || !c || c->foreign || c->begun == c->ended || 2 * (__u64)c->passed > c->ended)
		return 0;
	state = sk->__sk_common.skc_state;
	if (state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT)
		waits++;
	return 0;
}
