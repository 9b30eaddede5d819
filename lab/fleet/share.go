package fleet

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
)

// What package load takes where a load names no number of connections.
const (
	closedConnections = 64
	openConnections   = 4096
)

// shareOut is share k, from 0, of n of a load. ca are the certificates that its https
// targets are verified by.
func shareOut(o load.Options, k, n int, ca []byte) (*wire.Job, error) {
	if err := checkShared(&o, n, ca); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnshared, err)
	}
	j := &wire.Job{Options: o}
	if o.TLS != nil {
		j.Insecure = o.TLS.InsecureSkipVerify
	}
	j.CA = ca
	if o.Schedule != nil {
		s := *o.Schedule
		s.Part, s.Parts = k, n
		j.Schedule = &s
	}
	j.Connections = int(divide(int64(connections(&o)), k, n))
	j.Requests = divide(o.Requests, k, n)
	if o.MaxInFlight > 0 {
		j.MaxInFlight = int(divide(int64(o.MaxInFlight), k, n))
	}
	if len(o.CPUs) > 0 {
		j.Threads = 0 // they were the number of CPUs here
	}
	j.Seed = cmp.Or(o.Seed, 1) + uint64(k)*0x9e3779b97f4a7c15 // far apart
	// What stays here. The job's fields of these names hide them on the way.
	j.Options.TLS, j.Options.CPUs, j.Options.Progress, j.Options.Mark, j.Options.Sealed = nil, nil, nil, nil, nil
	return j, nil
}

// connections is how many a load has, or may have.
func connections(o *load.Options) int {
	if o.Schedule != nil {
		return cmp.Or(o.Connections, openConnections)
	}
	return cmp.Or(o.Connections, closedConnections)
}

// divide is part k, from 0, of n of a number.
func divide(whole int64, k, n int) int64 {
	part := whole / int64(n)
	if int64(k) < whole%int64(n) {
		part++
	}
	return part
}

// checkShared refuses what agents cannot do, or what is too little for each to have some.
func checkShared(o *load.Options, n int, ca []byte) error {
	switch {
	case o.Feeder != nil:
		return errors.New("agents take no records to fill fields with")
	case o.Unix != "":
		return errors.New("a Unix socket is on this host alone")
	case o.TLS != nil && o.TLS.RootCAs != nil && len(ca) == 0:
		return errors.New("the certificates that https targets are verified by are missing")
	case o.Schedule != nil && o.Schedule.Parts > 1:
		return errors.New("the schedule is a part already")
	}
	for _, v := range []struct {
		what  string
		whole int64
	}{{"connections", int64(connections(o))}, {"requests", o.Requests}, {"requests in flight", int64(o.MaxInFlight)}} {
		if v.whole > 0 && v.whole < int64(n) {
			return fmt.Errorf("%d %s are fewer than %d agents", v.whole, v.what, n)
		}
	}
	return nil
}
