package adviseverb

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/internal/task"
	"github.com/tarehq/tare/stats/unit"
)

// service is what a running service shows of itself.
type service struct {
	Seen  []string          // in words
	now   map[string]string // the option that it has, by part
	needs []string          // what it needs, by what it shows
}

func (s *service) see(format string, args ...any) {
	s.Seen = append(s.Seen, doc.Printable(fmt.Sprintf(format, args...)))
}

// has notes an option that the service has of a part; the first that is found stays.
func (s *service) has(part, option string) {
	if s.now == nil {
		s.now = map[string]string{}
	}
	if s.now[part] == "" {
		s.now[part] = option
	}
}

// readProcess reads what a process is built of, and its memory.
func (s *service) readProcess(pid int) error {
	if runtime.GOOS != "linux" {
		return cli.Usage("give --url", errors.New("reading a process by --pid needs Linux"))
	}
	exe := task.Path(pid, "exe")
	path, err := os.Readlink(exe)
	if err != nil {
		return &cli.Failure{Status: cli.ExitUsage, Err: fmt.Errorf("reading process %d: %w", pid, err), Hint: "it must run, and be yours or you root"}
	}
	if stat, err := task.ReadStat(pid); err == nil {
		s.see("process %d takes %s (RSS)", pid, unit.Format(float64(stat.RSS), unit.Bytes))
	}
	info, err := buildinfo.ReadFile(exe)
	if err != nil { // no Go program; its name may be a proxy's
		name := task.ProgramName(path)
		s.see("process %d is %s, not a Go program", pid, name)
		s.seeProxy(name)
		return nil
	}
	s.see("process %d is %s, built by %s", pid, info.Path, info.GoVersion)
	for _, d := range append(info.Deps, &info.Main) {
		s.seeModule(d.Path, d.Version)
	}
	s.has(router, "ServeMux")
	s.has(engine, "net/http")
	return nil
}

func (s *service) seeModule(path, version string) {
	is := func(module string) bool { return path == module || strings.HasPrefix(path, module+"/") }
	for _, m := range modules {
		if is(m.path) {
			s.has(m.part, m.option)
			s.see("%s: %s %s", m.part, path, version)
		}
	}
	for _, m := range protocolModules {
		if is(m.path) {
			s.needs = append(s.needs, m.protocol)
			s.see("%s: %s %s", m.protocol, path, version)
		}
	}
}

// seeProxy notes the proxy whose name a text begins with.
func (s *service) seeProxy(text string) {
	for _, p := range parts() {
		if p.name != "proxy" {
			continue
		}
		for _, o := range p.options {
			if strings.HasPrefix(strings.ToLower(strings.TrimPrefix(text, "istio-")), strings.ToLower(o.name)) {
				s.has(p.name, o.name)
			}
		}
	}
}

// askWithin bounds the one request to a service.
const askWithin = 10 * time.Second

// ask sends one GET request and reads who answers, by which protocol, and what.
func (s *service) ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil || r.URL.Host == "" {
		return cli.Usage("such as --url http://localhost:8080/", fmt.Errorf("--url %q is not an absolute URL", url))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("asking the service: %w", err)
	}
	res.Body.Close()
	server := res.Header.Get("Server")
	s.see("%s answers %s by %s%s", url, res.Status, res.Proto, strings.TrimSuffix(", Server: "+server, ", Server: "))
	s.seeProxy(server)
	if res.ProtoMajor == 2 {
		s.needs = append(s.needs, "http2")
	}
	if strings.Contains(res.Header.Get("Alt-Svc"), "h3") {
		s.needs = append(s.needs, "http3")
		s.see("it offers HTTP/3")
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		s.needs = append(s.needs, browsers)
		s.see("it answers with pages, for browsers")
	}
	engines := map[string]string{"fasthttp": "fasthttp", "fiber": "fasthttp", "hertz": "Hertz"}
	if o := engines[strings.ToLower(server)]; o != "" {
		s.has(engine, o)
	}
	return nil
}
