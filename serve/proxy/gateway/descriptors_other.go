//go:build !unix

package main

import (
	"errors"
	"net"
)

func sendSockets(net.Conn, []net.Listener) error { return errors.ErrUnsupported }

func receiveSockets(net.Conn) ([]net.Listener, error) { return nil, errors.ErrUnsupported }
