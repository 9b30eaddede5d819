// Command gateway is a reverse proxy. tare proxy runs it; it also runs alone.
//
//	gateway FILE.json         serves what the file says, and reads it anew upon SIGHUP
//	gateway                   serves what comes on standard input, one JSON value after the other
//	gateway -check [FILE]     says what is wrong with it, and serves nothing
//	gateway -schema           prints the JSON Schema of files
//	gateway -hash             prints what basicauth wants of the password on standard input
//	gateway -region ADDR,… [FILE]  prints in which region addresses are, by the file's database
//
// With -replace SOCKET it takes the listening sockets of the gateway with that admin socket
// over. That one ends once its requests and upgraded connections have. If this one cannot serve
// within 30 s, the other goes on, and this one ends. SIGUSR2 starts the program with its FILE
// again in this way. Sockets of a service manager (LISTEN_FDS) are taken where the file has
// their addresses, and their paths stay.
//
// What comes on standard input is answered on standard output, a line each: an object with
// problems, a list, empty if it was taken, and listening, the addresses. What is not taken
// changes nothing. The end of standard input ends the gateway, as SIGTERM does: requests
// that have begun are answered first. A second signal ends it at once.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/tarehq/tare/serve/middleware/basicauth"
	"github.com/tarehq/tare/serve/proxy/config"
	_ "github.com/tarehq/tare/serve/proxy/internal/extended" // WebSockets by HTTP/2
)

func main() {
	check := flag.Bool("check", false, "say what is wrong with the file, and serve nothing")
	schema := flag.Bool("schema", false, "print the JSON Schema of files")
	hash := flag.Bool("hash", false, "print what basicauth wants of the password on standard input")
	regions := flag.String("region", "", "print in which region these `addresses` are, separated by commas, and serve nothing")
	replaces := flag.String("replace", "", "take over from the gateway whose admin `socket` this is")
	flag.Parse()
	var err error
	switch {
	case *schema:
		_, err = os.Stdout.Write(config.Schema())
	case *hash:
		err = printHash(os.Stdin, os.Stdout)
	case flag.NArg() > 1:
		err = errors.New("want one file at most")
	case *check:
		err = examine(flag.Arg(0))
	case *regions != "":
		err = locate(flag.Arg(0), strings.Split(*regions, ","), os.Stdout)
	case flag.NArg() == 1:
		err = serveFile(flag.Arg(0), *replaces)
	default:
		err = serveInput(os.Stdin, os.Stdout, *replaces)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gateway: %v\n", err)
		os.Exit(1)
	}
}

// printHash prints what basicauth wants of a password, whose line's end does not count.
func printHash(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(io.LimitReader(in, 4096))
	if err != nil {
		return err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return errors.New("want a password on standard input")
	}
	_, err = fmt.Fprintln(out, basicauth.Hash(password))
	return err
}

// reply is what became of a file.
type reply struct {
	Problems  config.Problems `json:"problems"`
	Listening []string        `json:"listening,omitzero"`
	Admin     string          `json:"admin,omitzero"` // the socket
	Regions   []located       `json:"regions,omitzero"`
}

func problems(err error) config.Problems {
	var all config.Problems
	var one *config.Problem
	switch {
	case err == nil:
		return config.Problems{}
	case errors.As(err, &all):
		return all
	case errors.As(err, &one):
		return config.Problems{*one}
	}
	return config.Problems{{Text: err.Error()}}
}

// readInput reads a file, or without a path what comes on standard input.
func readInput(path string) ([]byte, error) {
	if path == "" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(path)
}

// examine checks a file, or what comes on standard input, and prints a reply.
func examine(path string) error {
	data, err := readInput(path)
	if err != nil {
		return err
	}
	f, err := config.Parse(data)
	if err == nil {
		_, err = certificates(f)
	}
	if err == nil {
		_, err = f.OpenRegions(openRegions)
	}
	return json.NewEncoder(os.Stdout).Encode(reply{Problems: problems(err)})
}

// located is the region of an address; empty: none is known.
type located struct {
	Address netip.Addr `json:"address"`
	Region  string     `json:"region"`
}

// locate prints a reply with the regions of addresses.
func locate(path string, addresses []string, to io.Writer) error {
	data, err := readInput(path)
	if err != nil {
		return err
	}
	var r reply
	f, err := config.Parse(data)
	if err == nil && f.Regions.Database == "" {
		err = &config.Problem{Text: "lacks the key regions, which names a database"}
	}
	var find config.RegionFinder
	if err == nil {
		find, err = f.OpenRegions(openRegions)
	}
	for _, text := range addresses {
		at, perr := netip.ParseAddr(text)
		switch {
		case err != nil:
		case perr != nil:
			err = perr
		default:
			r.Regions = append(r.Regions, located{at, find.Region(at)})
		}
	}
	r.Problems = problems(err)
	return json.NewEncoder(to).Encode(r)
}

// serveFile serves what a file says.
func serveFile(path, replaces string) error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	g, err := newGateway(replaces)
	if err != nil {
		return err
	}
	take := func() error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err = g.take(data); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(os.Stderr, "gateway: serving %s on %v, admin on %q\n", path, g.addresses(), g.adminPath())
		return nil
	}
	ended, restart := endSignal(), restartSignal()
	if err := take(); err != nil {
		return err
	}
	for {
		select {
		case <-restart:
			if err := g.restart(path); err != nil {
				fmt.Fprintf(os.Stderr, "gateway: no other process was started: %v\n", err)
			}
		case <-again:
			if err := take(); err != nil {
				fmt.Fprintf(os.Stderr, "gateway: kept what was served: %v\n", err)
			}
		case w := <-g.words:
			if g.hear(w) {
				return g.leave(ended)
			}
		case err := <-g.failed:
			return err
		case <-ended:
			return g.end(ended)
		}
	}
}

// serveInput serves what comes.
func serveInput(in io.Reader, out io.Writer, replaces string) error {
	files := make(chan json.RawMessage)
	broken := make(chan error, 1)
	go func() {
		for dec := json.NewDecoder(in); ; {
			var data json.RawMessage
			if err := dec.Decode(&data); err != nil {
				broken <- err
				return
			}
			files <- data
		}
	}()
	ended := endSignal()
	_ = restartSignal() // it is for who gives the files, and ends nothing
	g, err := newGateway(replaces)
	if err != nil {
		return err
	}
	if f, ok := out.(*os.File); ok {
		g.replies, _ = f.Stat() // without it a log that writes there breaks them
	}
	for {
		select {
		case data := <-files:
			err := g.take(data)
			if err := json.NewEncoder(out).Encode(reply{Problems: problems(err), Listening: g.addresses(), Admin: g.adminPath()}); err != nil {
				return err
			}
		case w := <-g.words:
			if g.hear(w) {
				go refuseFiles(files, out)
				go func() { <-broken; ended <- os.Interrupt }()
				return g.leave(ended)
			}
		case err := <-g.failed:
			return err
		case err := <-broken:
			if err != io.EOF {
				return fmt.Errorf("reading standard input: %w", err)
			}
			return g.end(ended)
		case <-ended:
			return g.end(ended)
		}
	}
}

// refuseFiles answers files that come once another process goes on.
func refuseFiles(files <-chan json.RawMessage, out io.Writer) {
	for range files {
		replaced := config.Problem{Text: "another process has taken over; give it the file"}
		_ = json.NewEncoder(out).Encode(reply{Problems: config.Problems{replaced}}) // its reader may have gone
	}
}

func endSignal() chan os.Signal {
	ended := make(chan os.Signal, 2)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	return ended
}
