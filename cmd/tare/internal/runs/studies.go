package runs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/studies"
)

// findStudy reads a study file, or returns the built-in study of that name.
func findStudy(name string) (*study.Study, error) {
	if strings.ContainsAny(name, "./") {
		s, err := study.ParseFile(name)
		if errors.As(err, new(*fs.PathError)) {
			return nil, cli.Usage(findInstead(name), err)
		}
		if err != nil && strings.Contains(err.Error(), "not YAML") {
			return nil, cli.Usage("check the indentation, and the quotes around values with a colon or a brace", err)
		}
		if err != nil {
			return nil, cli.Usage("`tare help study-files` lists every key", err)
		}
		return s, nil
	}
	s, err := studies.Named(name)
	if err != nil {
		return nil, cli.Usage("`tare list` shows the studies", err)
	}
	return s, nil
}

// findInstead is what may have been meant by the path of no study file.
func findInstead(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "a study is a YAML file; `tare ab " + path + "@main " + path + "` compares a program's commits, `tare report` shows a run"
	}
	return "`tare list` shows the built-in studies; `tare init` writes a file for the service in this folder"
}

// LongestTime is how long a study takes if it runs to its last look. blocks is the cap; 0 is
// the study's own.
func LongestTime(s *study.Study, blocks int) time.Duration {
	return study.Estimate(s, lastLook(s, blocks).Blocks, lab.Overhead) + lab.Besides(s)
}

func lastLook(s *study.Study, blocks int) stats.Look {
	looks := lab.Looks(s, blocks)
	return looks[len(looks)-1]
}
