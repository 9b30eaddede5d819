// Command kernel answers from a network namespace of its own, whose settings are private.
//
// It makes the namespace, sets there what the flag -set says, joins it to the one in which
// it was started by a pair of virtual devices, and starts itself again within. It listens
// at port 8080 of an address that is its own, of the block reserved for measuring (RFC
// 2544). Traffic does not leave the machine, and nothing is left when it ends. It needs
// Linux, the program ip, and the right to make a namespace: root's, or a user namespace's.
//
//	GET /plain  5 bytes of text
//	GET /page   64 KiB of text
//	GET /last   as /plain, and the connection is closed
//	GET /call   as /plain, after a call within the namespace on a new connection, for
//	            which both ends ask for TCP fast open
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
)

func main() {
	o := options{settings: linuxDefaults()}
	flag.Func("set", "set `NAME=VALUE` in the namespace, such as net.core.somaxconn=128; may be repeated", o.add)
	flag.BoolVar(&o.allCPUs, "all-cpus", false, "run on any CPU, whatever it was bound to; GOMAXPROCS stays")
	flag.BoolVar(&o.within, "within", false, "it is in its namespace already")
	flag.Parse()
	fmt.Fprintf(os.Stderr, "kernel: %v\n", run(o))
	os.Exit(1)
}

// options are what the flags say.
type options struct {
	settings        []setting // in the order in which they are made
	allCPUs, within bool
}

// setting is one of the kernel's, by the name that sysctl(8) has for it.
type setting struct{ name, value string }

// linuxDefaults are Linux's values of what a new namespace takes over from the first, whose
// values may be others. CUBIC, the default, may be set only where the first has it; Reno may
// always be.
func linuxDefaults() []setting {
	return []setting{
		{"net.ipv4.tcp_congestion_control", "reno"},
		{"net.ipv4.tcp_rmem", "4096 131072 6291456"},
		{"net.ipv4.tcp_wmem", "4096 16384 4194304"},
	}
}

var settingName = regexp.MustCompile(`^net(\.[a-z0-9_]+)+$`)

// add takes NAME=VALUE.
func (o *options) add(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || value == "" || !settingName.MatchString(name) {
		return errors.New("want NAME=VALUE with a name that begins with net., such as net.core.somaxconn=128")
	}
	o.settings = append(o.settings, setting{name, value})
	return nil
}
