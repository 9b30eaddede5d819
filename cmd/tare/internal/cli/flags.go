package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tarehq/tare/load"
)

// HeaderFields parses the header fields that a flag gave.
func HeaderFields(flag string, lines []string) ([]load.Field, error) {
	var all []load.Field
	for _, l := range lines {
		name, value, ok := strings.Cut(l, ":")
		if !ok || name == "" {
			return nil, Usage("write it as 'Accept: text/html'", fmt.Errorf("%s %q is not of the form 'Name: value'", flag, l))
		}
		all = append(all, load.Field{Name: name, Value: strings.TrimSpace(value)})
	}
	return all, nil
}

// FailIf reads a threshold by which a load fails if it is so.
func FailIf(text string) (load.Threshold, error) {
	th, err := load.ParseThreshold(text)
	if err != nil {
		return th, fmt.Errorf("--fail-if: %w", err)
	}
	if th.BoundsTime() {
		slow := strings.NewReplacer("<=", ">", "<", ">=").Replace(th.String())
		return th, fmt.Errorf("--fail-if %s fails what is fast enough; %s fails what is slower", th, slow)
	}
	return th, nil
}

// Percent is a share of 100, written with or without its sign.
type Percent float64

// UnmarshalText reads 5 or 5%.
func (p *Percent) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "%"), 64)
	if err != nil {
		return fmt.Errorf("%q is not a percentage, such as 5%%", text)
	}
	*p = Percent(v)
	return nil
}
