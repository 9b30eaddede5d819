package client

import (
	"net"
	"net/http"
	"time"
)

// The settings of NewTransport that differ from http.DefaultTransport's.
const (
	dialTimeout      = 3 * time.Second
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 50 * time.Second // servers close theirs after 60 s and more, so that the client is first
	idleConns        = 1024
	idleConnsPerHost = 64 // the default, two, closes connections as soon as a third is idle
	connsPerHost     = 512
	headerBytes      = 64 << 10 // the default is 10 MB
	pingAfter        = 15 * time.Second
	pingTimeout      = 5 * time.Second // a dead HTTP/2 connection is not found otherwise
)

// NewTransport returns a transport for calls between services. It keeps 64 idle
// connections a host, opens at most 512, gives up a dial after 3 s, takes answers with at
// most 64 KiB of header, and finds dead HTTP/2 connections. The caller may change it before
// its first use.
//
// A program needs one: each transport has connections of its own.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    idleConnsPerHost,
		MaxConnsPerHost:        connsPerHost,
		MaxResponseHeaderBytes: headerBytes,
		ExpectContinueTimeout:  time.Second,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}
