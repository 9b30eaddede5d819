package carry

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

const (
	// Port is where an outcome is offered.
	Port = "7412"
	// Path is its path there.
	Path = "/outcome"
)

// Offer serves the outcome that is kept in a file to whoever shows a certificate of the run's
// authority, as often as it is asked for. It returns nil when ctx ends, or after a time. It
// closes the listener.
func Offer(ctx context.Context, l net.Listener, security *tls.Config, file string, linger time.Duration) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.ServeFile(w, r, file)
	})
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 5 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // strangers' handshakes
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(tls.NewListener(l, security)) }()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case err := <-ended:
		return fmt.Errorf("offering the outcome: %w", err)
	case <-ctx.Done():
	case <-timer.C:
	}
	return server.Close()
}
