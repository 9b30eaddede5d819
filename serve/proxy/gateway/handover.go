package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// A gateway that is to go on where another one is gets that one's listening sockets through
// its admin socket. Nothing that clients see is closed: the kernel's queue of connections
// belongs to the socket, which both have for a moment.
//
//	next → former: POST /handover, which changes the protocol to handoverProtocol
//	next → former: "?" asks for the sockets
//	former → next: "s" with the descriptors
//	next → former: "!" once it accepts; without it the former one goes on as if nothing were
const (
	handoverProtocol = "tare-handover"
	handoverPatience = 30 * time.Second // for the next one to begin
	mostSockets      = 250              // that one message can have (SCM_MAX_FD is 253)
)

// handover is a process that asks for the sockets of this one.
type handover struct {
	conn net.Conn
	in   *bufio.Reader
	done chan struct{} // closed once it is over
}

// handOver has the process that asks get the gateway's sockets.
func (a *admin) handOver(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != handoverProtocol {
		http.Error(w, "want Upgrade: "+handoverProtocol+", as gateway -replace sends it", http.StatusBadRequest)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(handoverPatience)) // what fails, the first read tells
	h := &handover{conn, rw.Reader, make(chan struct{})}
	select {
	case a.handovers <- h:
		<-h.done
	case <-time.After(handoverPatience): // the gateway is about to end
	}
}

// perform passes the sockets on, and reports whether the other process goes on with them.
func (h *handover) perform(g *gateway) bool {
	defer close(h.done)
	err := h.pass(g)
	if err != nil {
		g.site.Log.Warn("no other process goes on", "error", err)
	}
	return err == nil
}

func (h *handover) pass(g *gateway) error {
	if _, err := fmt.Fprintf(h.conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", handoverProtocol); err != nil {
		return err
	}
	if err := expect(h.in, '?'); err != nil {
		return err
	}
	var sockets []net.Listener
	if g.admin != nil { // it may have been taken off since
		sockets = append(sockets, g.admin.l)
	}
	for _, s := range g.servers {
		sockets = append(sockets, s.l)
	}
	if err := sendSockets(h.conn, sockets); err != nil {
		return err
	}
	return expect(h.in, '!')
}

// expect reads one byte.
func expect(in *bufio.Reader, want byte) error {
	got, err := in.ReadByte()
	if err == nil && got != want {
		err = fmt.Errorf("got the byte %q, want %q", got, want)
	}
	return err
}

// former is what a gateway was given before it serves anything.
type former struct {
	sockets []net.Listener // that no address of the file has taken yet
	conn    net.Conn       // of the process that has them, too; nil: none
}

// replace takes over the sockets of the gateway whose admin socket is at a path.
func replace(path string) (former, error) {
	f, err := requestSockets(path)
	if err != nil {
		return former{}, fmt.Errorf("taking over from the gateway at %s: %w", path, err)
	}
	return f, nil
}

func requestSockets(path string) (former, error) {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return former{}, err
	}
	_ = conn.SetDeadline(time.Now().Add(handoverPatience)) // what fails, the first read tells
	f := former{conn: conn}
	if _, err = fmt.Fprintf(conn, "POST /handover HTTP/1.1\r\nHost: gateway\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", handoverProtocol); err == nil {
		var res *http.Response
		if res, err = http.ReadResponse(bufio.NewReader(conn), nil); err == nil && res.StatusCode != http.StatusSwitchingProtocols {
			err = fmt.Errorf("it answers %s", res.Status)
		}
	}
	if err == nil {
		_, err = conn.Write([]byte("?")) // only now, as the reader above would swallow the descriptors
	}
	if err == nil {
		f.sockets, err = receiveSockets(conn)
	}
	if err != nil {
		conn.Close()
	}
	return f, err
}

// restart starts the program again, with the file that it serves, to take over. What keeps
// that process from it, it says itself.
func (g *gateway) restart(file string) error {
	if g.admin == nil {
		return errors.New("it would ask for the sockets by the admin socket: set admin to a path")
	}
	cmd := exec.Command(g.program, "-replace", g.admin.path, file)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // if it fails; else this process ends first
	return nil
}

// activated returns the sockets that the service manager has opened, as sd_listen_fds(3)
// describes it. A process that passes them on to its child leaves LISTEN_PID out.
func activated() (former, error) {
	count, pid := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID")
	for _, name := range []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		os.Unsetenv(name) // they are of this process alone
	}
	if count == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return former{}, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > mostSockets {
		return former{}, fmt.Errorf("LISTEN_FDS is %q; want a number up to %d", count, mostSockets)
	}
	const first = 3
	var files []*os.File
	for fd := first; fd < first+n; fd++ {
		files = append(files, os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd)))
	}
	sockets, err := listeners(files)
	return former{sockets: sockets}, err
}

// listeners returns what the descriptors are, and closes them.
func listeners(files []*os.File) (all []net.Listener, err error) {
	for _, f := range files {
		l, err := net.FileListener(f)
		if err != nil { // f may be anything, such as what the runtime polls by
			return nil, fmt.Errorf("%s is not listened on: %w", f.Name(), err)
		}
		f.Close() // l has a duplicate
		all = append(all, l)
	}
	return all, nil
}

// take returns the socket of an address, nil if there is none. It is the caller's then.
func (f *former) take(network, address string) net.Listener {
	for i, l := range f.sockets {
		if listensOn(l, network, address) {
			f.sockets = append(f.sockets[:i], f.sockets[i+1:]...)
			return l
		}
	}
	return nil
}

// listensOn reports whether a socket is that of an address as files have it.
func listensOn(l net.Listener, network, address string) bool {
	at := l.Addr()
	if network == "unix" {
		return at.Network() == "unix" && at.String() == address
	}
	is, ok := at.(*net.TCPAddr)
	want, err := net.ResolveTCPAddr(network, address)
	if !ok || err != nil || is.Port != want.Port {
		return false
	}
	return is.IP.Equal(want.IP) || is.IP.IsUnspecified() && (want.IP == nil || want.IP.IsUnspecified())
}

// settle ends what the file has no use for, and has the process that was there before end.
func (f *former) settle() (unused []string) {
	for _, l := range f.sockets {
		unused = append(unused, l.Addr().String())
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(true) // another path is the admin socket's now
		}
		l.Close()
	}
	if f.conn != nil {
		_, _ = f.conn.Write([]byte("!")) // if it has ended by itself, nobody need be told
		f.conn.Close()
	}
	*f = former{}
	return unused
}
