package env

import (
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/internal/task"
)

// reading is what counts up while a machine runs.
type reading struct {
	at         time.Duration // since boot, to 10 ms; 0: unknown
	times      CPUTime
	processes  map[int]task.Stat
	stalled    map[string]pressure
	swapped    int64 // pages, in and out
	overheated int64 // throttling events
}

// CPUTime is what all CPUs together did since boot, to 10 ms. The zero value: this
// system does not tell.
type CPUTime struct {
	Busy, Idle time.Duration // busy time is often counted at ticks, and misses what runs between two; idle time is exact
	Stolen     time.Duration // the host gave it to others though it was wanted here
	Capacity   time.Duration // their number times the time since this program began, exactly; 0: not known
}

// Used is the CPU time used since an earlier reading, to 30 ms: all but idle and stolen time.
func (t CPUTime) Used(since CPUTime) time.Duration {
	return t.Capacity - since.Capacity - (t.Idle - since.Idle) - (t.Stolen - since.Stolen)
}

func (t CPUTime) total() time.Duration { return t.Busy + t.Idle + t.Stolen }

// Withheld is the share, 0 to 1, of the CPU time wanted since an earlier reading that
// the host gave to others. It is not known where no host ever did.
func (t CPUTime) Withheld(since CPUTime) (part float64, known bool) {
	stolen := t.Stolen - since.Stolen
	wanted := t.Used(since) + stolen
	if t.Stolen == 0 || wanted <= 0 {
		return 0, false
	}
	return share(stolen, wanted), true
}

// pressure is how long tasks stood still for want of a resource.
type pressure struct {
	total time.Duration // since boot
	avg10 float64       // percent of the last ten seconds
}

func (m Machine) takeReading() reading {
	l := reading{at: m.uptime(), times: m.CPUTime(), processes: m.processes(), stalled: map[string]pressure{}}
	for _, resource := range []string{"cpu", "memory", "io"} {
		if p, ok := m.pressure(resource); ok {
			l.stalled[resource] = p
		}
	}
	vm := m.keyed("proc/vmstat")
	l.swapped = first(vm["pswpin"]) + first(vm["pswpout"])
	l.overheated, _ = m.sum("sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count")
	return l
}

// uptime is the time since boot, 0 if unknown.
func (m Machine) uptime() time.Duration {
	first, _, _ := strings.Cut(m.text("proc/uptime"), " ")
	d, _ := time.ParseDuration(first + "s")
	return d
}

var started = time.Now()

// CPUTime reads what the CPUs did.
func (m Machine) CPUTime() (t CPUTime) {
	if m.Root == nil {
		return t
	}
	t.Capacity = time.Duration(m.online()) * time.Since(started)
	// user nice system idle iowait irq softirq steal; guests' time is in user.
	for i, word := range strings.Fields(m.keyed("proc/stat")["cpu"]) {
		n, err := strconv.ParseInt(word, 10, 48)
		if err != nil || i > 7 {
			break
		}
		switch d := time.Duration(n) * task.Tick; i {
		case 3, 4:
			t.Idle += d
		case 7:
			t.Stolen += d
		default:
			t.Busy += d
		}
	}
	return t
}

// pressure reads one file of /proc/pressure, whose "some" line counts the time
// in which at least one task stood still.
func (m Machine) pressure(resource string) (p pressure, ok bool) {
	for word := range strings.FieldsSeq(m.keyed("proc/pressure/" + resource)["some"]) {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "avg10":
			p.avg10, err = strconv.ParseFloat(value, 64)
		case "total":
			var us int64
			us, err = strconv.ParseInt(value, 10, 52)
			p.total = time.Duration(us) * time.Microsecond
			ok = true
		}
		if err != nil {
			return pressure{}, false
		}
	}
	return p, ok
}

// processes reads every process that this one may see.
func (m Machine) processes() map[int]task.Stat {
	entries, err := fs.ReadDir(m.Root, "proc")
	if err != nil {
		return nil
	}
	all := map[int]task.Stat{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := task.ParseStat(m.text("proc/" + e.Name() + "/stat")); err == nil {
			all[pid] = p
		}
	}
	return all
}
