package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A gateway that is to go on where another one is gets that one's listening sockets through
// its admin socket. Nothing that clients see is closed: the kernel's queue of connections
// belongs to the socket, which both have for a while.
//
//	next → former: POST /handover, which changes the protocol to handoverProtocol
//	next → former: "?" asks for the sockets
//	former → next: "s" with the descriptors; "k" if the service manager keeps the admin socket
//	next → former: "!" once it can serve
//	former → next: "." if it is to, or "x" and the reason if not
//
// So there is always one that accepts: the former one goes on until it has said ".", and closes
// its sockets then; the next one begins once it has heard that. For an instant both may accept.
// A next one that stops waiting closes its ear first, so that the former one cannot say "." any
// more and goes on. A former one that has ended says nothing, and the next one goes on.
const (
	handoverProtocol = "tare-handover"
	answerPatience   = 10 * time.Second // for a word of the former one, which may be reading a file
	mostSockets      = 250              // that one message can have (SCM_MAX_FD is 253)
)

// handoverPatience is how long the next one may take to be able to serve. Tests wait less.
var handoverPatience = 30 * time.Second

// word is what a process says that is to go on in this one's place: a byte, or with an error
// nothing any more.
type word struct {
	from net.Conn
	said byte
	err  error
}

// handOver lets the gateway hear what a process says that is to go on in its place.
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
	_ = conn.SetReadDeadline(time.Now().Add(handoverPatience)) // what fails, the first read tells
	if _, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", handoverProtocol); err != nil {
		conn.Close()
	}
	for err == nil {
		said := byte(0)
		said, err = rw.ReadByte()
		select {
		case a.words <- word{conn, said, err}: // who hears them closes the connection
		case <-time.After(handoverPatience): // the gateway is about to end, or busy
			_, _ = fmt.Fprint(conn, "x", "it takes nobody's word") // the other one may have ended
			conn.Close()
			return
		}
	}
}

// hear acts on a word, and reports whether the other process goes on in this one's place.
func (g *gateway) hear(w word) (gone bool) {
	err := w.err
	switch {
	case err == nil && w.said == '?':
		g.stay("another process has asked since")
		g.next = w.from
		err = g.pass(w.from)
	case w.from != g.next: // it has been told to end
		w.from.Close()
		return false
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the next process could not serve within %s", handoverPatience)
	case errors.Is(err, io.EOF):
		err = errors.New("the next process ended before it could serve")
	case err == nil && w.said == '!':
		return g.yield()
	case err == nil:
		err = fmt.Errorf("got the byte %q", w.said)
	}
	if err != nil {
		g.stay(err.Error())
	}
	return false
}

// stay has the process that is to go on in this one's place, if there is one, not do so.
func (g *gateway) stay(reason string) {
	if g.next == nil {
		return
	}
	_, _ = fmt.Fprint(g.next, "x", reason) // it may have ended
	g.next.Close()
	g.next = nil
	g.site.Log.Warn("no other process goes on", "reason", reason)
}

// yield has it do so, and reports whether there was one.
func (g *gateway) yield() bool {
	if g.next == nil {
		return false
	}
	if _, err := g.next.Write([]byte(".")); err != nil {
		g.stay(err.Error())
		return false
	}
	g.next.Close()
	g.next = nil
	return true
}

// pass gives a process the sockets, which stay open here.
func (g *gateway) pass(to net.Conn) error {
	var sockets []net.Listener
	kept := false
	if g.admin != nil { // it may have been taken off since
		sockets, kept = append(sockets, g.admin.l), g.admin.kept
	}
	for _, s := range g.servers {
		sockets = append(sockets, s.l)
	}
	return sendSockets(to, sockets, kept)
}

// former is what a gateway was given before it serves anything.
type former struct {
	sockets []net.Listener // that no address of a file has taken
	kept    bool           // the service manager keeps the Unix ones: their paths stay
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
	_ = conn.SetDeadline(time.Now().Add(answerPatience)) // what fails, the first read tells
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
		f.sockets, f.kept, err = receiveSockets(conn)
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
	return former{sockets: sockets, kept: true}, err
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

// succeed has the process that has the sockets, too, end, and returns an error if that one
// goes on.
func (f *former) succeed() error {
	if f.conn == nil {
		return nil
	}
	_ = f.conn.SetDeadline(time.Now().Add(answerPatience)) // what fails, the read tells
	_, _ = f.conn.Write([]byte("!"))
	said, err := io.ReadAll(io.LimitReader(f.conn, mostSaid))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		said = append(said, f.lastWords()...)
	}
	switch reason, no := strings.CutPrefix(string(said), "x"); {
	case string(said) == ".":
		return nil // it has yielded, whether or not it has closed the socket in time
	case no:
		return fmt.Errorf("the gateway that was to be replaced goes on: %s", reason)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the gateway that was to be replaced does not answer within %s", answerPatience)
	}
	return nil // it ends, or has ended
}

// mostSaid is how much of a former one's reason is read, in bytes.
const mostSaid = 1 << 10

// lastWords returns what the former one has said by now, and has it say nothing any more: what
// it writes from now on fails.
func (f *former) lastWords() []byte {
	if c, ok := f.conn.(interface{ CloseRead() error }); ok && c.CloseRead() == nil {
		_ = f.conn.SetReadDeadline(time.Time{}) // what is there comes at once, and then the end
		said, _ := io.ReadAll(io.LimitReader(f.conn, mostSaid))
		return said
	}
	return nil
}

// close gives back what was not taken.
func (f *former) close() {
	for _, l := range f.sockets {
		l.Close()
	}
	if f.conn != nil {
		f.conn.Close()
	}
	*f = former{}
}

// settle closes the sockets that the file has no use for.
func (f *former) settle() (unused []string) {
	for _, l := range f.sockets {
		unused = append(unused, l.Addr().String())
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(!f.kept) // another path is the admin socket's now
		}
	}
	f.close()
	return unused
}
