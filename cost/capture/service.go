package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/internal/cgroup"
)

// Service names what to look at: one of its fields is set.
type Service struct {
	URL       string // of its profiles, or of a port of it
	PID       int
	Cgroup    string // directory of a control group, or its path below /sys/fs/cgroup
	Container string // the beginning of a container's ID
}

// ParseService reads how a service is named in one word: 4711 or pid:4711, cgroup:PATH,
// container:ID; anything else is a URL.
func ParseService(text string) (Service, error) {
	kind, arg, _ := strings.Cut(text, ":")
	switch kind {
	case "cgroup":
		return Service{Cgroup: arg}, nil
	case "container":
		return Service{Container: arg}, nil
	case "pid":
	default:
		if strings.Trim(text, "0123456789") != "" {
			return Service{URL: text}, nil
		}
		arg = text
	}
	pid, err := strconv.Atoi(arg)
	if err != nil || pid < 1 {
		return Service{}, fmt.Errorf("%q is not a process ID", arg)
	}
	return Service{PID: pid}, nil
}

// Outside reports whether a service is named by its processes.
func (s Service) Outside() bool { return s.PID != 0 || s.Cgroup != "" || s.Container != "" }

// String names the service for people.
func (s Service) String() string {
	switch {
	case s.PID != 0:
		return "process " + strconv.Itoa(s.PID)
	case s.Container != "":
		return "container " + s.Container
	case s.Cgroup != "":
		return "group " + s.Cgroup
	}
	return s.URL
}

// Source is by what means a service is looked at.
type Source int

const (
	// Cheapest looks at processes from outside, or where that is not possible by the
	// profiles they expose; at a URL by these.
	Cheapest Source = iota
	// Own looks by the profiles that the service exposes. Those of a process are looked
	// for on the ports on which it listens.
	Own
	// Outside looks from outside alone.
	Outside
)

// Target is a service that was found.
type Target struct {
	Name     string
	Profiles *pprof.Service // nil: it is looked at from outside
	PID      int            // 0: several processes, or one that nobody looked for
	cgroup   string
	cheapest bool
}

// NotFoundError says that there is no such service, and what to name instead.
type NotFoundError struct {
	Err    error
	Remedy string
}

func (e *NotFoundError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotFoundError) Unwrap() error { return e.Err }

// NetworkError says that a process has a network namespace of its own: what listens
// here on the same ports is another service.
type NetworkError struct{ PID int }

func (e *NetworkError) Error() string {
	return fmt.Sprintf("process %d is in another network namespace", e.PID)
}

// ErrNoProfiles says that a process exposes no profiles.
var ErrNoProfiles = errors.New("no profiles")

// Find finds the service for a source.
func (s Service) Find(ctx context.Context, by Source) (*Target, error) {
	if s.URL != "" && by != Outside {
		p, err := pprof.Find(s.URL)
		if err != nil {
			return nil, &NotFoundError{err, "such as localhost:6060"}
		}
		return &Target{Name: p.String(), Profiles: p}, nil
	}
	t := &Target{Name: s.String(), PID: s.PID, cheapest: by == Cheapest}
	var err error
	switch {
	case s.Container != "":
		t.cgroup, err = cgroup.Container(s.Container)
		if err != nil {
			err = &NotFoundError{err, "it takes the ID, not the name: docker ps, podman ps and crictl ps show it"}
		}
	case s.Cgroup != "":
		if t.cgroup, err = cgroup.Find(s.Cgroup); err != nil {
			err = &NotFoundError{err, "control groups are directories below " + cgroup.Mounted + "; /proc/N/cgroup names that of process N"}
		}
	case s.URL != "", s.PID != 0:
		t.PID, err = s.Process(ctx)
	}
	if err != nil || by != Own {
		return t, err
	}
	if t.PID, err = s.Process(ctx); err != nil {
		return nil, err
	}
	t.Profiles, err = findProfiles(ctx, t.PID)
	return t, ExplainForeign(t.PID, err)
}

// ExplainForeign replaces why a process cannot be looked at by the reason that it is no Go
// program, if it is none.
func ExplainForeign(pid int, err error) error {
	if err == nil || pid == 0 || errors.As(err, new(*NetworkError)) {
		return err
	}
	if facts, unread := proc.Read(pid); unread == nil && facts.Foreign() != nil {
		return &NotFoundError{facts.Foreign(), "name the process of the service itself, not of what started it"}
	}
	return err
}

// checkAlive finds out whether a process is there before anything is done.
func checkAlive(pid int) error {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if _, linux := os.Stat("/proc/self"); err == nil || linux != nil {
		return nil
	}
	return &NotFoundError{fmt.Errorf("there is no process %d", pid), "it has ended, or never was: pgrep -a NAME shows those that are there"}
}

// Process finds the service's one process: who listens on the URL's port, or the member
// of a group that listens on any if there are several.
func (s Service) Process(ctx context.Context) (int, error) {
	switch {
	case s.PID != 0:
		return s.PID, checkAlive(s.PID)
	case s.URL != "":
		return findListener(ctx, s.URL)
	}
	t, err := s.Find(ctx, Outside)
	if err != nil {
		return 0, err
	}
	pids, err := cgroup.Members(t.cgroup)
	if err != nil || len(pids) == 1 {
		return append(pids, 0)[0], err
	}
	var servers []int
	for _, pid := range pids {
		if ports, err := proc.Listening(pid); err == nil && len(ports) > 0 {
			servers = append(servers, pid)
		}
	}
	if len(servers) != 1 {
		return 0, &NotFoundError{fmt.Errorf("%s has %d processes, of which %d listen on TCP ports", s, len(pids), len(servers)), "name one by --pid N"}
	}
	return servers[0], nil
}

// findListener finds the process that listens where a URL points to.
func findListener(ctx context.Context, raw string) (int, error) {
	s, err := pprof.Find(raw)
	if err != nil {
		return 0, &NotFoundError{err, "such as localhost:6060"}
	}
	port, local := localPort(s.String())
	if !local {
		return 0, errors.New("the service is on another machine")
	}
	pid, err := proc.Listener(port)
	if err != nil {
		return 0, err
	}
	brief, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if seen, err := s.Goroutines(brief); err == nil && !runsProgram(pid, seen) {
		return 0, fmt.Errorf("process %d listens there, but forwards to the service: it is not %s", pid, seen.Program())
	}
	return pid, nil
}

// localPort returns the port of a URL, and whether it is of this machine.
func localPort(raw string) (port int, local bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return 0, false
	}
	name := u.Port()
	if name == "" {
		name = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port, err = strconv.Atoi(name); err != nil {
		return 0, false
	}
	return port, u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// OfThisMachine reports whether a URL points to this machine.
func OfThisMachine(raw string) bool {
	_, local := localPort(raw)
	return local
}

// findProfiles finds a process's profiles on the ports on which it listens.
func findProfiles(ctx context.Context, pid int) (*pprof.Service, error) {
	ports, err := proc.Listening(pid)
	if err != nil {
		return nil, err
	}
	if InOwnNetwork(pid) {
		return nil, &NetworkError{pid}
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("process %d shows %w: it listens on no TCP port", pid, ErrNoProfiles)
	}
	var asked []string
	for _, port := range ports {
		s, err := pprof.Find(net.JoinHostPort("localhost", strconv.Itoa(port)))
		if err != nil {
			return nil, err
		}
		brief, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = s.Memory(brief)
		cancel()
		if err == nil {
			return s, nil
		}
		asked = append(asked, strconv.Itoa(port))
	}
	return nil, fmt.Errorf("process %d shows %w on the ports on which it listens: %s", pid, ErrNoProfiles, strings.Join(asked, ", "))
}

// InOwnNetwork reports whether a process is in another network namespace than this one,
// as far as that is known.
func InOwnNetwork(pid int) bool {
	facts, err := proc.Read(pid)
	return err == nil && facts.OwnNetwork
}
