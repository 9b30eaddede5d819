// Command emulated is the first program of a machine that has no other. It samples a process
// of itself that answers requests, counts these, says what it saw, and switches the machine
// off.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/bpf/reply"
)

var sink atomic.Uint64

// leaf has no frame, so that its caller is in the link register alone.
//
//go:noinline
func leaf(n uint64) (x uint64) {
	for i := range n {
		x = x*31 + i
	}
	return x
}

//go:noinline
func middle(n uint64) { sink.Add(leaf(n)) }

//go:noinline
func outer(w http.ResponseWriter, _ *http.Request) {
	middle(1_000_000)
	io.WriteString(w, "so it is")
}

func main() {
	if len(os.Args) == 1 {
		begin()
	}
	if os.Args[1] == "answer" {
		answer()
	}
	if err := watch(); err != nil {
		fmt.Println("tare: failed:", err)
	}
	fmt.Println("tare: over")
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("tare: switching off:", err)
	}
}

// begin mounts what programs expect to be there when they begin, and begins anew.
func begin() {
	for kind, dir := range map[string]string{"proc": "/proc", "sysfs": "/sys"} {
		if err := unix.Mount(kind, dir, kind, 0, ""); err != nil {
			fmt.Printf("tare: mounting %s: %v\n", dir, err)
		}
	}
	fmt.Println("tare:", unix.Exec("/init", []string{"/init", "watch"}, os.Environ()))
}

// answer asks for itself for ever.
func answer() {
	l, err := net.Listen("unix", "@answer")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, http.HandlerFunc(outer))
	here, err := net.Dial("unix", "@answer")
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(here)
	for {
		io.WriteString(here, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, res.Body)
	}
}

// watch samples a process for some seconds.
func watch() error {
	if err := bpf.Verify(); err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	cmd := exec.Command("/init", "answer")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr // there is no /dev/null
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Process.Kill()
	s, err := bpf.Start(bpf.Options{PID: cmd.Process.Pid, Hz: 99})
	if err != nil {
		return err
	}
	time.Sleep(5 * time.Second)
	p, err := s.Stop()
	if err != nil {
		return err
	}
	leaves, whole := 0.0, 0.0
	want := []string{"main.leaf", "main.middle", "main.outer", "net/http.HandlerFunc.ServeHTTP", "net/http.serverHandler.ServeHTTP", "net/http.(*conn).serve"}
	for _, stack := range p.Stacks {
		var names []string
		for _, f := range stack.Frames {
			if !strings.HasPrefix(f.Func, "[kernel]") {
				names = append(names, f.Func)
			}
		}
		if slices.Contains(names, "main.leaf") {
			leaves += stack.Value
		}
		if len(names) > len(want) && slices.Equal(names[:len(want)], want) && names[len(names)-1] == "runtime.goexit" {
			whole += stack.Value
		}
		fmt.Printf("tare: %.0f ns: %s\n", stack.Value, strings.Join(names, " "))
	}
	fmt.Printf("tare: whole %.3f of %.3f, %d samples, by %s\n", whole/float64(p.CPU), leaves/float64(p.CPU), p.Seen, p.Clock)
	for _, w := range p.Warnings {
		fmt.Println("tare: warning:", w)
	}
	return errors.Join(count(cmd.Process.Pid), timeAnswers(cmd.Process.Pid))
}

// timeAnswers times the answers of a process for some seconds, where the kernel can.
func timeAnswers(pid int) error {
	w, err := reply.Start(pid)
	if errors.Is(err, cost.ErrNotSupported) {
		fmt.Println("tare: not timed:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Close()
	time.Sleep(5 * time.Second)
	seen, err := w.Read()
	if err != nil {
		return err
	}
	var n uint64
	for _, b := range seen.Times {
		n += b.Count
	}
	fmt.Printf("tare: timed %d answers, %v\n", n, seen.Times)
	return nil
}

// count counts the requests of a process for some seconds, where the kernel can.
func count(pid int) error {
	price, err := probe.Calibrate(context.Background())
	if errors.Is(err, cost.ErrNotSupported) {
		fmt.Println("tare: not counted:", err)
		return nil
	}
	if err != nil {
		return err
	}
	t, err := probe.Open(pid)
	if err != nil {
		return err
	}
	defer t.Close()
	c, err := t.NewCounter(price)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := c.Run(context.Background(), 10*time.Second)
	if err != nil {
		return err
	}
	fmt.Printf("tare: counted %.0f requests in %s of CPU, ± %.2f, in %d windows; a hit takes %s\n", n.Requests, n.CPU, n.Margin, n.Windows, price.Count)
	return nil
}
