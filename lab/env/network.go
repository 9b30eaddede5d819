package env

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// network are the facts of TCP as this network namespace has it.
func network() []item {
	return []item{ports, waiting, finTimeout, backlog, tracking, fastOpen, congestion, buffers}
}

const ipv4 = "proc/sys/net/ipv4/"

// ports says how many connections a second one destination can be given. A
// closed connection keeps its port for 60 s, a constant of the kernel, or for
// one second where tcp_tw_reuse lets a new one have it.
func ports(s *survey) Fact {
	f := Fact{
		Name: "local ports", Verdict: OK,
		Why:    "a closed connection holds its port for 60 s; new connections fail once all are held",
		Remedy: `sudo sysctl net.ipv4.ip_local_port_range="1024 65535" net.ipv4.tcp_tw_reuse=1`,
	}
	n := s.ports()
	if n == 0 {
		return f.unknown(untold)
	}
	rate, reuse := n/60, s.text(ipv4+"tcp_tw_reuse")
	if reuse == "1" || reuse == "2" { // 2: where both ends are on this machine, as tare's are
		rate = n
	}
	if reuse == "" {
		reuse = "not reported"
	}
	f.Value = fmt.Sprintf("%d, for %d new connections a second (tcp_tw_reuse %s)", n, rate, reuse)
	switch {
	case rate < 100:
		f.Verdict = Disturbs
	case rate < 10_000:
		f.Verdict = Note
	}
	return f
}

// ports is the number of local ports that connections are given, 0 if unknown.
func (m Machine) ports() int {
	bounds := strings.Fields(m.text(ipv4 + "ip_local_port_range"))
	if len(bounds) != 2 {
		return 0
	}
	return counted(strings.Join(bounds, "-"))
}

func waiting(s *survey) Fact {
	f := Fact{
		Name: "time-wait", Verdict: OK,
		Why:    "sockets left by an earlier load hold local ports and are searched on every new connection",
		Remedy: "wait a minute",
	}
	words := strings.Fields(s.keyed("proc/net/sockstat")["TCP"])
	at := slices.Index(words, "tw")
	if at < 0 || at+1 == len(words) {
		return f.unknown(untold)
	}
	n, err := strconv.Atoi(words[at+1])
	f.Value = unit.Plural(n, "socket")
	switch ports := max(s.ports(), 1); {
	case err != nil:
		return f.unknown(untold)
	case n > ports/2:
		f.Verdict = Disturbs
	case n > ports/20:
		f.Verdict = Note
	}
	if most, ok := s.number(ipv4 + "tcp_max_tw_buckets"); ok && err == nil {
		f.Value += fmt.Sprintf(", %d at most", most)
	}
	return f
}

func finTimeout(s *survey) Fact {
	f := Fact{
		Name: "fin timeout", Verdict: OK,
		Why: "how long a half-closed socket is kept; it does not shorten TIME_WAIT, whatever is said of it",
	}
	seconds, ok := s.number(ipv4 + "tcp_fin_timeout")
	f.Value = fmt.Sprintf("%d s", seconds)
	if !ok {
		return f.unknown(untold)
	}
	return f
}

func backlog(s *survey) Fact {
	f := Fact{
		Name: "listen backlog", Verdict: OK,
		Why:    "connections beyond it are dropped when many come at once, and tried again a second later",
		Remedy: "sudo sysctl net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=4096",
	}
	accept, ok := s.number("proc/sys/net/core/somaxconn")
	syn, ok2 := s.number(ipv4 + "tcp_max_syn_backlog")
	if !ok || !ok2 {
		return f.unknown(untold)
	}
	f.Value = fmt.Sprintf("somaxconn %d, tcp_max_syn_backlog %d", accept, syn)
	switch least := min(accept, syn); {
	case least < 256:
		f.Verdict = Disturbs
	case least < 1024:
		f.Verdict = Note
	}
	return f
}

func tracking(s *survey) Fact {
	n, ok := s.number("proc/sys/net/netfilter/nf_conntrack_count")
	most, ok2 := s.number("proc/sys/net/netfilter/nf_conntrack_max")
	if !ok || !ok2 {
		return Fact{}
	}
	f := Fact{
		Name: "connection tracking", Verdict: Note,
		Value:  fmt.Sprintf("%s tracked, %d at most", unit.Plural(n, "connection"), most),
		Why:    "the firewall looks at every packet, on loopback, too; new connections fail when its table is full",
		Remedy: "sudo iptables -t raw -A PREROUTING -i lo -j NOTRACK; the same for OUTPUT -o lo",
	}
	switch {
	case n == 0: // no rule asks for it
		f.Verdict = OK
	case n > most/10*8:
		f.Verdict = Disturbs
	}
	return f
}

func fastOpen(s *survey) Fact {
	f := Fact{
		Name: "tcp fast open", Verdict: Note,
		Why: "saves a round trip a connection where both ends ask for it; tare's generator does not",
	}
	bits, ok := s.number(ipv4 + "tcp_fastopen")
	if !ok {
		return f.unknown(untold)
	}
	f.Value = [...]string{"off", "for clients", "for servers", "for both"}[bits&3]
	if bits&3 == 0 {
		f.Verdict = OK
	}
	return f
}

func congestion(s *survey) Fact {
	f := Fact{
		Name: "congestion control", Value: s.text(ipv4 + "tcp_congestion_control"), Verdict: Note,
		Why:    "bbr paces what is sent by timers, which costs CPU on loopback; others do not",
		Remedy: "sudo sysctl net.ipv4.tcp_congestion_control=cubic",
	}
	switch f.Value {
	case "":
		return f.unknown(untold)
	case "cubic", "reno":
		f.Verdict = OK
	}
	return f
}

func buffers(s *survey) Fact {
	f := Fact{
		Name: "socket buffers", Verdict: Note,
		Why: "an answer that does not fit takes several writes and a round trip more",
	}
	read, written := strings.Fields(s.text(ipv4+"tcp_rmem")), strings.Fields(s.text(ipv4+"tcp_wmem"))
	if len(read) != 3 || len(written) != 3 {
		return f.unknown(untold)
	}
	f.Value = fmt.Sprintf("receive %s, grows to %s; send %s, grows to %s",
		size(first(read[1])), size(first(read[2])), size(first(written[1])), size(first(written[2])))
	return f
}
