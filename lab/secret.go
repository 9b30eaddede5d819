package lab

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/tarehq/tare/lab/study"
)

// withSecrets is s with every ${NAME} in the targets' header fields filled from
// the environment. It is for the load alone: what is recorded is s, so that a
// token is neither in a study's file nor in a run's folder.
func withSecrets(s *study.Study) (*study.Study, error) {
	filled := *s
	filled.Workloads = slices.Clone(s.Workloads)
	for i := range filled.Workloads {
		w := &filled.Workloads[i]
		w.Targets = slices.Clone(w.Targets)
		for k := range w.Targets {
			header, err := fromEnv(w.Targets[k].Header)
			if err != nil {
				return nil, fmt.Errorf("workload %s: %w", w.Name, err)
			}
			w.Targets[k].Header = header
		}
	}
	return &filled, nil
}

// fromEnv is the header with its variables filled.
func fromEnv(header map[string]string) (map[string]string, error) {
	variable := regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
	filled := maps.Clone(header)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		var missing string
		filled[name] = variable.ReplaceAllStringFunc(header[name], func(v string) string {
			value, ok := os.LookupEnv(v[len("${") : len(v)-len("}")])
			if !ok {
				missing = v
			}
			return value
		})
		if missing != "" {
			return nil, fmt.Errorf("header %s: %s is not set in the environment", name, missing)
		}
	}
	return filled, nil
}
