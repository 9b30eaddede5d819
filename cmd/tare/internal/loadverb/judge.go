package loadverb

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Judge says what a result must hold.
type Judge struct {
	FailIf []string `sep:"none" help:"Exit with status 3 if this is so, such as 'p99>50ms', 'errors>0.1%', 'status_4xx>0' or 'rate<1000'; repeatable." placeholder:"THRESHOLD"`

	thresholds []load.Threshold
}

// parse reads the thresholds.
func (j *Judge) parse() error {
	for _, s := range j.FailIf {
		th, err := cli.FailIf(s)
		if err != nil {
			return cli.Usage("--fail-if takes p50 to p99.999, max, mean, errors, rate or status_1xx to status_5xx; <, <=, > or >=; and a bound, as in status_5xx>0", err)
		}
		j.thresholds = append(j.thresholds, th)
	}
	return nil
}

// outcome is what became of a threshold.
type outcome struct {
	threshold load.Threshold
	failed    bool
	value     string
	err       error // it could not be judged
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("fail if %s: inconclusive, %v", o.threshold, o.err)
	case o.failed:
		return fmt.Sprintf("fail if %s: failed, it is %s", o.threshold, o.value)
	default:
		return fmt.Sprintf("fail if %s: held, it is %s", o.threshold, o.value)
	}
}

// MarshalJSON gives the threshold, "held", "failed" or "inconclusive", and the
// value that decided.
func (o outcome) MarshalJSON() ([]byte, error) {
	state := bound.Held
	if o.failed {
		state = bound.Failed
	}
	if o.err != nil {
		state = bound.Inconclusive
	}
	return json.Marshal(struct {
		FailIf  string        `json:"fail_if"`
		Outcome bound.Outcome `json:"outcome"`
		Value   string        `json:"value"`
	}{o.threshold.String(), state, o.value})
}

func (j *Judge) outcomes(res *load.Result) []outcome {
	all := []outcome{}
	for _, th := range j.thresholds {
		o := outcome{threshold: th}
		o.failed, o.value, o.err = th.Holds(res)
		all = append(all, o)
	}
	return all
}

// verdict is the exit status of a result that was shown. A failed threshold comes first: a
// rate that was not offered does not hide it, but is told beside it.
func (s *summary) verdict() error {
	if s.res.Ended != "" {
		return &cli.Failure{Status: cli.ExitInterrupted}
	}
	if !slices.ContainsFunc(s.outcomes, func(o outcome) bool { return o.failed }) {
		return cmp.Or(s.useless(), s.notOffered(), s.undecided())
	}
	failed := &cli.Failure{Status: cli.ExitThreshold}
	if late, is := errors.AsType[*cli.Failure](s.notOffered()); is {
		failed.Err, failed.Hint = late.Err, late.Hint
	}
	return failed
}

// useless is the failure of a load that got no answer of the kind that was expected.
func (s *summary) useless() error {
	c := s.res.Counts
	switch {
	case c.Unverified > 0 && c.Unverified == c.Answered():
		return &cli.Failure{Status: cli.ExitFailed, Err: errors.New("no answer was as --verify asks"), Hint: "look at an answer, then at the --verify flags"}
	case s.onlyErrors() != nil:
		return &cli.Failure{Status: cli.ExitFailed, Err: s.onlyErrors(), Hint: "check the URL, and the header fields that it needs (-H); --verify-status CODE says that this status is expected"}
	}
	return nil
}

// notOffered is the failure of an open loop that did not keep its schedule.
func (s *summary) notOffered() error {
	res := s.res
	switch {
	case !s.open:
		return nil
	case res.Counts.Dropped > 0:
		return &cli.Failure{Status: cli.ExitNotOffered, Err: fmt.Errorf("%s of %d were dropped: the rate was not offered",
			unit.Plural(res.Counts.Dropped, "request"), res.Counts.Scheduled), Hint: "ask for a lower --rate, or allow more with --max-in-flight and --connections"}
	case !res.Bound:
		return nil
	}
	why := fmt.Sprintf("the rate may not have been offered on time: the generator was busy for %s of the time", unit.Format(res.Busy(), unit.Share))
	switch {
	case res.Stopped:
		why = "the rate was not offered on time: the generator was stopped during the run"
	case res.IsLate():
		why = fmt.Sprintf("the rate was not offered on time: 1 %% of the requests were sent %s or more late", nanoseconds(res.Late.Quantile(0.99)))
	}
	hint := "ask for a lower --rate, or give the generator more --threads or CPUs of its own"
	if res.Starved() {
		hint = "stop other programs, or give the generator CPUs of its own (taskset); a lower --rate may not help"
	}
	if res.Waited {
		hint += "; more --connections"
	}
	return &cli.Failure{Status: cli.ExitNotOffered, Err: errors.New(why), Hint: hint}
}

// undecided is the failure of a threshold that could not be judged.
func (s *summary) undecided() error {
	i := slices.IndexFunc(s.outcomes, func(o outcome) bool { return o.err != nil })
	if i < 0 {
		return nil
	}
	o := s.outcomes[i]
	return &cli.Failure{Status: cli.ExitInconclusive, Err: o.err,
		Hint: fmt.Sprintf("%s needs %s: raise --duration, --requests or --rate", o.threshold, unit.Plural(o.threshold.Requests(), "request"))}
}

// explainRefusal is an error without a result: of the machine or the network where
// these gave it, else a mistake in what was asked for.
func explainRefusal(err error) error {
	if errors.Is(err, context.Canceled) || errors.As(err, new(*cli.Failure)) {
		return err // interrupted while a name was looked up, or explained already
	}
	_, system := errors.AsType[syscall.Errno](err)
	_, network := errors.AsType[net.Error](err)
	if system || network {
		return explainFailure(err)
	}
	if strings.Contains(err.Error(), "credentials in a URL") {
		return cli.Usage("--user NAME:PASSWORD sends them", err)
	}
	return cli.Usage("see `tare load --help`", err)
}

// explainFailure is an error of a run, with the flag that helps.
func explainFailure(err error) error {
	f := &cli.Failure{Status: cli.ExitFailed, Err: errors.New(strings.ReplaceAll(err.Error(), "\n", ": "))}
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
	)
	switch {
	case errors.As(err, &unknown):
		f.Hint = "--ca FILE names the authority to trust, --insecure trusts all"
	case errors.As(err, &invalid), errors.As(err, &name):
		f.Hint = "--insecure does not verify certificates"
	}
	return f
}
