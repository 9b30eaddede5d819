// Command tare-web serves the runs of a folder as pages. `tare web` starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tarehq/tare/web"
	"github.com/tarehq/tare/web/history"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintf(os.Stderr, "tare: %v\n", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	dir, listen, db, tokenFile string
	reindex                    bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("tare-web", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8273", "address to serve on")
	flags.StringVar(&o.db, "db", "", "file of the index, or postgres://… (default: a file in the user's cache)")
	flags.BoolVar(&o.reindex, "reindex", false, "build the index anew from the folders first")
	flags.StringVar(&o.tokenFile, "upload-token-file", "", "file with the token that allows uploads")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 1 {
		return o, fmt.Errorf("%d folders are named: give one", flags.NArg())
	}
	o.dir = "runs"
	if flags.NArg() == 1 {
		o.dir = flags.Arg(0)
	}
	return o, nil
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	token, err := readToken(o.tokenFile)
	if err != nil {
		return err
	}
	index, err := history.Open(ctx, o.dir, o.db)
	if err != nil {
		return err
	}
	defer index.Close()
	if o.reindex {
		if err := index.Reset(ctx); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("%w (name another address by --listen)", err)
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	local := isLoopback(listener.Addr())
	server := &http.Server{
		Handler:           web.New(web.Options{Index: index, Token: token, Log: log, AnyHost: !local}),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	following := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(following)
		web.Follow(ctx, index, log)
	}()
	fmt.Fprintf(stderr, "serving the runs of %s on http://%s/\n", index.Root(), listener.Addr())
	if !local {
		fmt.Fprintln(stderr, "warning: whoever reaches this address reads all runs, without TLS; put a proxy with TLS and accounts before it")
	}
	err = serve(ctx, server, listener)
	cancel()
	<-following
	return err
}

// serve serves until ctx ends, and then ends what has begun.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(late); err != nil {
		return server.Close()
	}
	return nil
}

func isLoopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// leastToken is how long a token is at least, in bytes.
const leastToken = 16

// readToken reads the token that allows uploads; "" without a file.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the token for uploads: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < leastToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("reading the token for uploads: %s must hold one word of at least %d characters: openssl rand -hex 32 > %s", path, leastToken, path)
	}
	return token, nil
}
