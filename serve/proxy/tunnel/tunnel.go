// Package tunnel joins connections, and answers CONNECT by tunnels to a few addresses.
package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// connectTimeout is how long a connection for a tunnel may take to be made.
const connectTimeout = 10 * time.Second

// Connect answers CONNECT by a tunnel to an address, if that is one of a few, and passes other
// requests on. The server must let CONNECT through: serve.Server does with Lenient.Connect.
// By HTTP/2 there are no tunnels.
type Connect struct {
	// To are the addresses, as host:port. Others are answered 403. None: all are, 501.
	To []string
	// Next answers other requests.
	Next http.Handler
	// Open counts the tunnels that are open. No server knows of them. Nil: nobody counts.
	Open *atomic.Int64
}

// Last closes the connection of a CONNECT by HTTP/1.1 after its answer, unless a tunnel takes it
// over, which writes its own head: what a client sent behind a refused CONNECT was for the
// tunnel, and is no request (RFC 9931, 8). A layer that may answer before Connect calls it.
func Last(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

func (c *Connect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Last(w, r)
	switch {
	case r.Method != http.MethodConnect:
		c.Next.ServeHTTP(w, r)
	case len(c.To) == 0, r.ProtoMajor != 1:
		refuse(w, http.StatusNotImplemented)
	case !slices.ContainsFunc(c.To, func(to string) bool { return strings.EqualFold(to, r.Host) }):
		refuse(w, http.StatusForbidden)
	default:
		c.tunnel(w, r)
	}
}

func (c *Connect) tunnel(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), connectTimeout)
	to, err := new(net.Dialer).DialContext(ctx, "tcp", r.Host)
	cancel()
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		refuse(w, http.StatusGatewayTimeout)
		return
	}
	if err != nil {
		refuse(w, http.StatusBadGateway)
		return
	}
	defer to.Close()
	if c.Open != nil {
		c.Open.Add(1) // before the server lets go of it: who waits for both sees one
		defer c.Open.Add(-1)
	}
	client, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	defer client.Close()
	_ = client.SetDeadline(time.Time{}) // the server's are for requests
	if _, err := ahead.WriteString("HTTP/1.1 200 OK\r\n\r\n"); err != nil || ahead.Flush() != nil {
		return
	}
	Join(client, ahead, to)
}

// refuse answers with a status and its name.
func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }

// lastWords is how long one side of a tunnel may go on once the other has ended.
const lastWords = 30 * time.Second

// Join copies both ways until both have ended, or one and the time for last words.
func Join(client io.WriteCloser, ahead io.Reader, upstream io.ReadWriteCloser) {
	ended := make(chan struct{}, 2)
	carry := func(to io.WriteCloser, from io.Reader) {
		_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 8<<10))
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok || half.CloseWrite() != nil {
			client.Close()
			upstream.Close()
		}
		ended <- struct{}{}
	}
	go carry(upstream, ahead)
	go carry(client, upstream)
	<-ended
	late := time.AfterFunc(lastWords, func() {
		client.Close()
		upstream.Close()
	})
	<-ended
	late.Stop()
}
