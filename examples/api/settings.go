package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// settings are those of the environment.
type settings struct {
	secret                 string
	addr, admin, orders    string
	proxies                []netip.Prefix
	rate, inFlight, traces int
	drain                  time.Duration
}

const leastSecret = 32 // bytes, as many as HS256's hash has

// readSettings reads all variables, and returns an error that names each that is wrong.
func readSettings(getenv func(string) string) (settings, error) {
	set := settings{
		secret: getenv("API_SECRET"),
		addr:   cmp.Or(getenv("API_ADDR"), "127.0.0.1:8080"),
		admin:  cmp.Or(getenv("API_ADMIN"), "127.0.0.1:8081"),
		orders: cmp.Or(getenv("API_ORDERS"), "orders.db"),
		drain:  2 * time.Second,
	}
	var errs []error
	if len(set.secret) < leastSecret {
		errs = append(errs, fmt.Errorf("API_SECRET has %d bytes: set %d or more", len(set.secret), leastSecret))
	}
	for _, n := range []struct {
		name string
		to   *int
		def  int
	}{{"API_RATE", &set.rate, 100}, {"API_IN_FLIGHT", &set.inFlight, 512}, {"API_TRACES", &set.traces, 10}} {
		*n.to = n.def
		if text := getenv(n.name); text != "" {
			var err error
			if *n.to, err = strconv.Atoi(text); err != nil || *n.to < 1 {
				errs = append(errs, fmt.Errorf("%s is %q: set a number from 1", n.name, text))
			}
		}
	}
	if text := getenv("API_DRAIN"); text != "" {
		var err error
		if set.drain, err = time.ParseDuration(text); err != nil || set.drain < 0 {
			errs = append(errs, fmt.Errorf("API_DRAIN is %q: set a duration, such as 2s", text))
		}
	}
	for text := range strings.FieldsFuncSeq(getenv("API_PROXIES"), func(c rune) bool { return c == ',' || c == ' ' }) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("API_PROXIES has %q: set networks, such as 10.0.0.0/8", text))
		}
		set.proxies = append(set.proxies, prefix)
	}
	return set, errors.Join(errs...)
}
