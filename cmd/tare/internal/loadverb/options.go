package loadverb

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"github.com/alecthomas/kong"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/load/source"
	"github.com/tarehq/tare/stats/unit"
)

// share is a flag's value from 0 to 1 that is 1 when none is given.
type share float64

// IsBool lets the flag stand without a value.
func (s *share) IsBool() bool { return true }

// Decode reads the value, as 0.1 or 10%.
func (s *share) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Peek()
	v, err := parseShare(token.String())
	if token.Type != kong.FlagValueToken && err != nil {
		*s = 1 // what comes next is no number: it is not the flag's
		return nil
	}
	ctx.Scan.Pop()
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%q is not a share: want 0 to 1, or a percentage", token)
	}
	*s = share(v)
	return nil
}

// parseShare reads 0.1 or 10%.
func parseShare(text string) (float64, error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	if !percent {
		return 0, fmt.Errorf("%q is neither a number nor a percentage", text)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return v / 100, err
}

// options are what the flags ask for.
func (c *Command) options() (load.Options, error) {
	o := load.Options{
		Connections: c.Offer.Connections, MaxInFlight: c.Offer.MaxInFlight, Duration: c.Offer.Duration,
		Requests: c.Offer.Requests, WarmUp: c.Offer.WarmUp, Seed: c.Offer.Seed,
		NewConnections: float64(c.Carriage.NewConnections), NoResume: !c.Carriage.TLSResume, Timeout: c.Carriage.Timeout,
		Unix: c.Carriage.Unix, Proxy: c.Carriage.Proxy, Streams: c.Carriage.Streams, Pipeline: c.Carriage.Pipeline, Threads: c.Carriage.Threads, Spin: c.Carriage.Spin,
	}
	if err := c.check(); err != nil {
		return o, err
	}
	switch {
	case c.Carriage.HTTP2:
		o.Protocol = load.HTTP2
	case c.Carriage.HTTP3:
		o.Protocol = load.HTTP3
	}
	if c.Carriage.Engine != "auto" {
		o.Engine = load.Engine(c.Carriage.Engine)
	}
	if o.Timeout == 0 {
		o.Timeout = -1 // none
	}
	var err error
	if c.Offer.Rate != "" {
		if o.Schedule, err = pace.Parse(c.Offer.Rate, cmp.Or(c.Offer.Seed, 1)); err != nil {
			return o, cli.Usage("--rate takes "+pace.Forms, fmt.Errorf("--rate: %w", err))
		}
	}
	if o.TLS, err = c.Carriage.tls(); err != nil {
		return o, err
	}
	if c.Request.Feed != "" {
		if o.Feeder, err = load.OpenFeeder(c.Request.Feed); err != nil {
			return o, cli.Usage("--feed takes a .csv file with a header row, or a .jsonl file", fmt.Errorf("--feed: %w", err))
		}
	}
	o.Targets, err = c.targets()
	return o, err
}

// check refuses numbers and combinations that cannot be meant.
func (c *Command) check() error {
	for _, f := range []struct {
		flag  string
		value int64
	}{
		{"--connections", int64(c.Offer.Connections)}, {"--duration", int64(c.Offer.Duration)},
		{"--requests", c.Offer.Requests}, {"--max-in-flight", int64(c.Offer.MaxInFlight)},
		{"--warm-up", int64(c.Offer.WarmUp)}, {"--timeout", int64(c.Carriage.Timeout)},
		{"--streams", int64(c.Carriage.Streams)}, {"--pipeline", int64(c.Carriage.Pipeline)}, {"--threads", int64(c.Carriage.Threads)},
	} {
		if f.value < 0 {
			return cli.Usage("leave it out for the default", fmt.Errorf("%s is negative", f.flag))
		}
	}
	search := c.Offer.FindMax != ""
	for _, f := range []struct {
		wrong       bool
		what, claim string
	}{
		{c.Offer.MaxInFlight > 0 && c.Offer.Rate == "" && !search, "--max-in-flight", "needs --rate: without one, the connections bound what is in flight"},
		{c.Carriage.Streams > 0 && !c.Carriage.HTTP2 && !c.Carriage.HTTP3, "--streams", "needs --http2 or --http3"},
		{c.Carriage.Pipeline > 1 && (search || c.Offer.Rate != ""), "--pipeline", "does not go with --rate or --find-max: requests sent together have no starts of their own"},
		{c.Request.Follow && c.Request.Feed != "", "--follow", "does not go with --feed: give the URL that redirects lead to"},
		{search && c.Offer.Rate != "", "--rate", "does not go with --find-max, which picks the rates"},
		{search && c.Offer.Requests > 0, "--requests", "does not go with --find-max: --duration is the length of each probe"},
		{search && len(c.Judge.FailIf) > 0, "--fail-if", "does not go with --find-max: its threshold is what is held"},
		{search && c.Output.CSV != "", "--csv", "does not go with --find-max: load the rate found with --rate"},
		{search && len(c.On) > 0, "--on", "does not go with --find-max: try rates one by one with --rate"},
		{search && c.Output.HDR != "", "--hdr", "does not go with --find-max: load the rate found with --rate"},
	} {
		if f.wrong {
			return cli.Usage("see `tare load --help`", fmt.Errorf("%s %s", f.what, f.claim))
		}
	}
	return nil
}

// tls is nil where https is to be verified as usual.
func (c *Carriage) tls() (*tls.Config, error) {
	if c.CA == "" && !c.Insecure {
		return nil, nil
	}
	config := &tls.Config{InsecureSkipVerify: c.Insecure}
	if c.CA == "" {
		return config, nil
	}
	pem, err := readUpTo(mostList, c.CA)
	if err != nil {
		return nil, cli.Usage("--ca takes a file of PEM certificates", fmt.Errorf("--ca: %w", err))
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, cli.Usage("--ca takes a file of PEM certificates", fmt.Errorf("--ca: %s holds no certificate", c.CA))
	}
	return config, nil
}

// targets are the URLs and the lines of the targets file, each with the header
// fields, body and checks that the flags give.
func (c *Command) targets() ([]load.Target, error) {
	body, method := []byte(c.Request.Body), c.Request.Method
	if c.Request.BodyFile != "" {
		var err error
		if body, err = readUpTo(mostBody, c.Request.BodyFile); err != nil {
			return nil, cli.Usage("--body-file takes a file that can be read", fmt.Errorf("--body-file: %w", err))
		}
	}
	if method == "" && (len(body) > 0 || c.Request.BodyFile != "") {
		method = "POST"
	}
	var all []load.Target
	for _, u := range c.URLs {
		if n, err := strconv.ParseUint(u, 10, 64); err == nil { // what other tools have after -q, say
			return nil, cli.Usage(fmt.Sprintf("a port of this machine is :%d, a rate --rate %[1]d", n), fmt.Errorf("%q is a number, not a URL", u))
		}
		if info, err := os.Stat(u); err == nil && info.Mode().IsRegular() {
			return nil, cli.Usage("`tare flow FILE` loads by the steps in a file, --targets FILE by a list of URLs", fmt.Errorf("%q is a file, not a URL", u))
		}
		all = append(all, load.Target{Method: method, URL: u})
	}
	if c.Request.Targets != "" {
		listed, err := readTargets(c.Request.Targets)
		if err != nil {
			return nil, cli.Usage("--targets takes lines such as: GET http://localhost:8080/ 3", err)
		}
		for _, t := range listed {
			t.Method = cmp.Or(t.Method, method)
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, cli.Usage("try `tare load http://localhost:8080/`", errors.New("no URL is given"))
	}
	header, err := c.Request.fields()
	if err != nil {
		return nil, err
	}
	verify, err := c.Verify.verify()
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Header, all[i].Body, all[i].Verify = header, body, verify
	}
	if c.Request.Feed != "" && !slices.ContainsFunc(all, asksFields) {
		return nil, cli.Usage("write {{.name}} for the column of that name", errors.New("--feed fills nothing: no URL, header field or body has a field"))
	}
	return all, nil
}

// fields are the header fields, with that of basic authentication.
func (r *Request) fields() ([]load.Field, error) {
	header, err := r.Fields()
	if err != nil || r.User == "" {
		return header, err
	}
	if !strings.Contains(r.User, ":") {
		return nil, cli.Usage("--user takes NAME:PASSWORD", errors.New("--user has no colon"))
	}
	if slices.ContainsFunc(header, func(f load.Field) bool { return strings.EqualFold(f.Name, "Authorization") }) {
		return nil, cli.Usage("leave one of the two out", errors.New("--user and --header both give Authorization"))
	}
	value := "Basic " + base64.StdEncoding.EncodeToString([]byte(r.User))
	return append(header, load.Field{Name: "Authorization", Value: value}), nil
}

// asksFields reports whether a feeder is to fill something of t.
func asksFields(t load.Target) bool {
	const field = "{{"
	return strings.Contains(t.URL, field) || bytes.Contains(t.Body, []byte(field)) ||
		slices.ContainsFunc(t.Header, func(f load.Field) bool { return strings.Contains(f.Value, field) })
}

func (c *Verify) verify() (load.Verify, error) {
	header, err := cli.HeaderFields("--verify-header", c.VerifyHeader)
	return load.Verify{Status: c.VerifyStatus, Header: header, Contains: c.VerifyBody,
		Length: c.VerifyLength, SHA256: c.VerifySHA256}, err
}

// readTargets reads a list of requests.
func readTargets(path string) ([]load.Target, error) {
	data, err := readUpTo(mostList, path)
	if err != nil {
		return nil, fmt.Errorf("--targets: %w", err)
	}
	lines, err := source.ParseList(path, string(data))
	if err != nil {
		return nil, err
	}
	all := make([]load.Target, len(lines))
	for i, line := range lines {
		all[i] = load.Target{Method: line.Method, URL: line.Path, Weight: line.Weight, Source: line.At}
	}
	return all, nil
}

// Bounds of the files that a load is given, in bytes.
const (
	mostBody = 64 << 20
	mostList = 8 << 20 // of targets, or of certificates
)

// readUpTo reads a file of at most so many bytes: a device may have no end.
func readUpTo(most int64, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1)) // one more shows that it is too large
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: too large: more than %s", path, unit.Format(float64(most), unit.Bytes))
	}
	return data, nil
}

// title says in a line what is offered to whom.
func (c *Command) title() string {
	var what string
	switch {
	case len(c.URLs) == 1 && c.Request.Targets == "":
		what = load.AbsoluteURL(c.URLs[0])
	case len(c.URLs) == 0:
		what = c.Request.Targets
	default:
		what = fmt.Sprintf("%s and others", load.AbsoluteURL(c.URLs[0]))
	}
	return load.Shown(what) + ", " + c.how()
}

// how names the loop.
func (c *Command) how() string {
	n := uint64(cmp.Or(c.Offer.Connections, 64))
	switch {
	case c.Offer.FindMax != "":
		return "looking for the highest rate with " + c.Offer.FindMax
	case c.Offer.Rate != "":
		return "open loop at " + c.Offer.Rate
	case c.Carriage.Streams > 1:
		return fmt.Sprintf("closed loop of %s with %s each", unit.Plural(n, "connection"), unit.Plural(c.Carriage.Streams, "stream"))
	case c.Carriage.Pipeline > 1:
		return fmt.Sprintf("closed loop of %s, %d requests at once", unit.Plural(n, "connection"), c.Carriage.Pipeline)
	default:
		return "closed loop of " + unit.Plural(n, "connection")
	}
}

// seconds is a duration to a tenth of a second.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}
