//go:build !linux

package wrapped

import "net"

// Direct returns nc.
func Direct(nc net.Conn) net.Conn { return nc }
