package initverb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/study"
)

// listed is what go list says of a package.
type listed struct {
	Name, Dir, ImportPath string
	GoFiles, Deps         []string
	Module                *struct{ Main bool }
}

// listPackages runs go list.
func listPackages(ctx context.Context, args ...string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-json=Name,Dir,ImportPath,GoFiles,Deps,Module"}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading go list: %w", err)
		}
		all = append(all, p)
	}
}

// servers are packages of which a program imports one if it serves HTTP.
var servers = []string{"net/http", "github.com/valyala/fasthttp", "github.com/cloudwego/hertz/pkg/app/server"}

// findServer is the folder of the only program below this folder that can serve HTTP. One
// that lies in this folder itself comes before others.
func findServer(ctx context.Context) (string, error) {
	all, err := listPackages(ctx, "./...")
	if err != nil {
		return "", cli.Usage("start tare init in the folder of a Go module, or name a main package: tare init ./cmd/api", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	var found []string
	for _, p := range all {
		serves := slices.ContainsFunc(servers, func(s string) bool { return slices.Contains(p.Deps, s) })
		if p.Name != "main" || !serves {
			continue
		}
		path, err := filepath.Rel(here, p.Dir)
		if err != nil || path == "." {
			return ".", nil
		}
		found = append(found, "./"+filepath.ToSlash(path))
	}
	switch len(found) {
	case 0:
		return "", cli.Usage("tare ab compares programs in other languages", errors.New("no main package below this folder imports an HTTP server"))
	case 1:
		return found[0], nil
	}
	return "", cli.Usage("name one: tare init "+found[0], fmt.Errorf("%d programs import an HTTP server: %s", len(found), strings.Join(found, ", ")))
}

// routes are the patterns that a program's source registers, each once.
type routes []string

var (
	// registering are the names of methods that register a handler for GET requests or all.
	registering = []string{"Handle", "HandleFunc", "Get", "GET"}
	pattern     = regexp.MustCompile(`^(?:([A-Z]+) )?[a-z0-9.-]*(/[^\s]*)$`)
	// monitoring are paths that no user asks for.
	monitoring = regexp.MustCompile(`(?i)^/(health|healthz|livez?|readyz?|ready|ping|metrics|version|favicon\.ico|robots\.txt)/?$`)
	// harmful are paths that init does not ask for: profiles take long, others may end the service.
	harmful = regexp.MustCompile(`(?i)^/debug/|shutdown|quit|stop|exit|kill|restart|reload|delete|logout`)
)

// findRoutes finds the routes in the source of a program and of its module's packages.
func findRoutes(ctx context.Context, dir string) (routes, error) {
	if !filepath.IsAbs(dir) {
		dir = "./" + filepath.ToSlash(dir)
	}
	all, err := listPackages(ctx, "-deps", dir)
	if err != nil {
		return nil, err
	}
	var found routes
	for _, p := range all {
		if p.Module == nil || !p.Module.Main {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if route := routeOf(n); route != "" && !slices.Contains(found, route) {
					found = append(found, route)
				}
				return true
			})
		}
	}
	return found, nil
}

// routeOf is the pattern of a call that registers a handler; "" of everything else.
func routeOf(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(registering, method.Sel.Name) {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil || !pattern.MatchString(text) {
		return ""
	}
	return text
}

// mostCandidates bounds how many routes are asked for.
const mostCandidates = 8

// candidates are the paths to ask for: / first, then routes for GET without parameters.
func (r routes) candidates() []string {
	paths := []string{"/"}
	for _, route := range r {
		m := pattern.FindStringSubmatch(route)
		path := strings.TrimSuffix(m[2], "{$}")
		if m[1] != "" && m[1] != "GET" || strings.ContainsAny(path, "{}:*") || harmful.MatchString(path) || slices.Contains(paths, path) || len(paths) == mostCandidates {
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// without are the routes that are no targets.
func (r routes) without(targets []study.Target) []string {
	return slices.DeleteFunc(slices.Clone(r), func(route string) bool {
		path := strings.TrimSuffix(pattern.FindStringSubmatch(route)[2], "{$}")
		return slices.ContainsFunc(targets, func(t study.Target) bool { return t.Path == path })
	})
}
