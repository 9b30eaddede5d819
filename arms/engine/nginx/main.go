// Command nginx becomes nginx, set up for speed, to answer what the engine
// study asks but for the echo, which nginx alone cannot give.
//
// It writes the configuration and the page to the working directory, which for
// an arm is the trial's own, and then runs nginx in its own place: as many
// workers as GOMAXPROCS, no logs, files kept open, connections kept for any
// number of requests.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"text/template"

	"github.com/tarehq/tare/arms/engine/answers"
)

const (
	page  = "page"  // the file
	files = 1 << 14 // open at once in a worker: more than any workload's connections
)

func main() {
	err := become(os.Getenv("TARE_ADDR"))
	fmt.Fprintf(os.Stderr, "nginx: %v\n", err)
	os.Exit(1)
}

// become runs nginx in this process's place and returns only what kept it from
// that.
func become(addr string) error {
	if addr == "" {
		return errors.New("TARE_ADDR does not say where to listen")
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		return err
	}
	conf := configuration(addr, runtime.GOMAXPROCS(0))
	for name, text := range map[string][]byte{"nginx.conf": []byte(conf), page: answers.Page()} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	args := []string{"nginx", "-p", dir, "-e", "stderr", "-c", "nginx.conf"}
	return fmt.Errorf("running %s: %w", program, syscall.Exec(program, args, os.Environ()))
}

// configuration is nginx's, with paths relative to its prefix.
func configuration(addr string, workers int) string {
	var b strings.Builder
	err := template.Must(template.New("").Parse(text)).Execute(&b, map[string]any{
		"Addr": addr, "Workers": workers, "Files": files,
		"Plain": string(answers.Plain()), "Object": string(answers.Object()), "Page": page,
		"Root": os.Geteuid() == 0, "Text": answers.Text, "JSON": answers.JSON,
	})
	if err != nil {
		panic(err) // every name above is known
	}
	return b.String()
}

// Workers of a master that is root's would be nobody's, who may not read a
// trial's directory.
const text = `daemon off;
{{if .Root}}user root;
{{end -}}
pid nginx.pid;
error_log stderr error;
worker_processes {{.Workers}};
worker_rlimit_nofile {{.Files}};

events {
	worker_connections {{.Files}};
	multi_accept on;
}

http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	keepalive_requests 1000000000;
	sendfile on;
	tcp_nopush on;
	open_file_cache max=8;
	default_type "{{.Text}}";

	server {
		listen {{.Addr}} backlog=4096;

		location = /plain { return 200 "{{.Plain}}"; }
		location = /json {
			default_type "{{.JSON}}";
			return 200 '{{.Object}}';
		}
		location = /page { alias {{.Page}}; }
		location / { return 404 "404 page not found\n"; }
	}
}
`
