package http

import (
	"context"
	"net"
	"net/http"
)

// Server is the one that Go has, as the control.
type Server = http.Server

// StandardServer is Go's own.
type StandardServer = http.Server

// ServeHook is a BaseContext that needs do nothing: net/http has the hook itself.
func ServeHook(net.Listener) context.Context { return context.Background() }
