package arm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/tarehq/tare"

// FindModule returns the root directory of tare's own module: dir, or the
// nearest directory above it, whose go.mod declares it. The arms that come
// with tare are built from there.
func FindModule(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding tare's source: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		if mod, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && directive(mod, "module") == modulePath {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("finding tare's source: no go.mod of %s in %s or above it "+
				"(the arms that come with tare are built from source: clone https://%s and run tare inside the clone, or name it by --module)",
				modulePath, start, modulePath)
		}
	}
}

// directive returns the first word after the directive's name in a go.mod
// file; "" if there is none.
func directive(mod []byte, name string) string {
	for line := range strings.Lines(string(mod)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == name {
			return strings.Trim(words[1], `"`)
		}
	}
	return ""
}
