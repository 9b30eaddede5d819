package arm

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	commandWithin = 5 * time.Minute // for a command before a start or after an end
	portWithin    = 2 * time.Second // for one of several ports, which may have no answer for us
)

// prepareService reads what the declaration says of a program's surroundings.
func (p *Program) prepareService() error {
	s := &p.Service
	if s.Dir != "" {
		dir, err := filepath.Abs(s.Dir)
		if err != nil {
			return err
		}
		if !isDir(dir) {
			return fmt.Errorf("working directory %q: %w", s.Dir, ErrNoDirectory)
		}
		p.Dir = dir
	}
	if s.EnvFile == "" {
		return nil
	}
	env, err := readEnvFile(s.EnvFile)
	if err != nil {
		return fmt.Errorf("reading the environment file: %w", err)
	}
	p.Env = append(env, p.Env...) // of two settings of a name the last holds
	return nil
}

// readEnvFile reads lines of NAME=value. Empty lines and those that begin with # are
// comments; a value may stand in quotes.
func readEnvFile(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []string
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "))
		if text == "" || text[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("%s:%d: want NAME=value", path, n)
		}
		if last := len(value) - 1; last > 0 && (value[0] == '"' || value[0] == '\'') && value[last] == value[0] {
			value = value[1:last]
		}
		all = append(all, name+"="+value)
	}
	return all, lines.Err()
}

// runCommand runs a shell command, expanded as arguments are, in the arm's directory.
func (a *Process) runCommand(ctx context.Context, command string) error {
	if command == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", a.expand.Replace(command))
	cmd.Dir, cmd.Env = a.cmd.Dir, a.cmd.Env
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %q: %w: %s", command, errors.Join(ctx.Err(), err), cmp.Or(firstLines(string(out), outputLines), "it printed nothing"))
	}
	return nil
}

// Locate finds the address of a program that listens wherever it does. try asks a base
// URL, such as http://127.0.0.1:8080, for an answer; the first without an error is the
// arm's, which URL and Addr return from then on. Where TARE_ADDR says, it looks for HTTP and TLS.
// It looks once, is called until it succeeds, and not while other methods of the Process are.
func (a *Process) Locate(ctx context.Context, try func(ctx context.Context, base string) error) error {
	if a.listen == "" {
		err := try(ctx, a.url)
		dial, ok := errors.AsType[*net.OpError](err)
		if secure := "https://" + a.addr; err != nil && a.cmd != nil && !(ok && dial.Op == "dial") && try(ctx, secure) == nil {
			a.url, err = secure, nil
		}
		return err
	}
	addrs, err := a.Listening()
	if err != nil {
		return fmt.Errorf("finding where it listens: %w", err)
	}
	last, heard := errors.New("it listens on no TCP port yet"), false
	within := readyWithin
	if a.listen == "any" && slices.ContainsFunc(addrs, func(addr string) bool { return portOf(addr) != portOf(addrs[0]) }) {
		within = portWithin
	}
	for _, addr := range addrs {
		if a.listen != "any" && portOf(addr) != a.listen {
			last = fmt.Errorf("it listens on %s, and not on port %s", strings.Join(addrs, ", "), a.listen)
			continue
		}
		for _, scheme := range []string{"http", "https"} {
			base := scheme + "://" + addr
			asking, cancel := context.WithTimeout(ctx, within)
			err := try(asking, base)
			cancel()
			if err == nil {
				a.addr, a.url = addr, base
				return nil
			}
			if errors.As(err, new(tls.RecordHeaderError)) || strings.Contains(err.Error(), "HTTP response to HTTPS client") {
				continue // it speaks no TLS
			}
			dial, unheard := errors.AsType[*net.OpError](err)
			if unheard = unheard && dial.Op == "dial"; !unheard || !heard { // what answered explains more than what did not
				last, heard = fmt.Errorf("asking %s: %w", base, err), heard || !unheard
			}
		}
	}
	return last
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
