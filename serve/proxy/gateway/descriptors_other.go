//go:build !unix

package main

import (
	"errors"
	"net"
	"syscall"
)

func keepPrivate(_, _ string, _ syscall.RawConn) error { return nil }

func sendSockets(net.Conn, []net.Listener, bool) error { return errors.ErrUnsupported }

func receiveSockets(net.Conn) ([]net.Listener, bool, error) {
	return nil, false, errors.ErrUnsupported
}
