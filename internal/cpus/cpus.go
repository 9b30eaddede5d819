// Package cpus lists the processors in use.
package cpus

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Online returns the numbers of the CPUs in use, of Linux.
func Online() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	return Parse(strings.TrimSpace(string(text)))
}

// Parse reads a list such as 0-3,8.
func Parse(list string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		lo, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("CPUs %q: %w", list, err)
		}
		hi := lo
		if ranged {
			if hi, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("CPUs %q: %w", list, err)
			}
		}
		const most = 1 << 16
		if lo < 0 || hi > most {
			return nil, fmt.Errorf("CPUs %q: out of range", list)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			all = append(all, cpu)
		}
	}
	return all, nil
}
