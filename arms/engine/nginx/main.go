// Command nginx becomes nginx, set up for speed, to answer what the engine
// study asks but for the echo, which nginx alone cannot give; or to serve what
// package pages holds, from files. With -tls it speaks TLS and by it HTTP/2, with a
// certificate that signs itself, and tells who asks without TLS what /plain is; -handshake says
// by which version, and whether sessions are resumed. With -h2c it speaks HTTP/2 alone, without
// TLS.
//
// It writes the configuration and the files to the working directory, which for
// an arm is the trial's own, and then runs nginx in its own place: as many
// workers as GOMAXPROCS, no logs, files kept open, connections kept for any
// number of requests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"text/template"

	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/pages"
	"github.com/tarehq/tare/arms/routes"
)

const files = 1 << 14 // open at once in a worker: more than any workload's connections

// settings are what the flags say.
type settings struct {
	serve string
	gzip  int
	tls   bool
	shake string
	h2c   bool
}

// handshakes are nginx's settings by the words of -handshake, which are arms/nethttp's.
var handshakes = map[string]string{
	"1.2": "ssl_protocols TLSv1.2;", "1.3": "ssl_protocols TLSv1.3;", "no-tickets": "ssl_session_tickets off;",
}

func main() {
	var s settings
	flag.StringVar(&s.serve, "serve", "answers", "`what` to serve: answers, pages or files")
	flag.IntVar(&s.gzip, "gzip", 0, "`level` at which pages are compressed; 0: they are not")
	flag.BoolVar(&s.tls, "tls", false, "speak TLS and HTTP/2")
	flag.StringVar(&s.shake, "handshake", "", "with -tls: `words` of 1.2, 1.3 and no-tickets, separated by commas")
	flag.BoolVar(&s.h2c, "h2c", false, "speak HTTP/2 alone, without TLS")
	flag.Parse()
	err := become(os.Getenv("TARE_ADDR"), s)
	fmt.Fprintf(os.Stderr, "nginx: %v\n", err)
	os.Exit(1)
}

// become runs nginx in this process's place and returns only what kept it from
// that.
func become(addr string, s settings) error {
	if addr == "" {
		return errors.New("TARE_ADDR does not say where to listen")
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		return err
	}
	const root = "root"
	var all []pages.Page
	switch s.serve {
	case "answers":
		all = []pages.Page{{Path: "/page", Body: answers.Page()}}
	case "pages":
		all = pages.All()
	case "files":
		all = pages.Files()
	default:
		return fmt.Errorf("-serve %q: there are answers, pages and files", s.serve)
	}
	conf, err := configuration(addr, root, s)
	if err != nil {
		return err
	}
	if err := errors.Join(pages.Write(root, all), os.WriteFile("nginx.conf", []byte(conf), 0o644)); err != nil {
		return err
	}
	if s.tls {
		if err := answers.WriteSelfSigned("cert.pem"); err != nil {
			return fmt.Errorf("making a certificate: %w", err)
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
func configuration(addr, root string, s settings) (string, error) {
	var shake []string
	for word := range strings.FieldsFuncSeq(s.shake, func(c rune) bool { return c == ',' }) {
		setting, ok := handshakes[word]
		if !ok {
			return "", fmt.Errorf("-handshake: %q is none of 1.2, 1.3, no-tickets", word)
		}
		shake = append(shake, setting)
	}
	ping := routes.Ping()[0].Example()
	var b strings.Builder
	err := template.Must(template.New("").Parse(text)).Execute(&b, map[string]any{
		"Addr": addr, "Workers": runtime.GOMAXPROCS(0), "Files": files, "Root": root, "Answers": s.serve == "answers", "Gzip": s.gzip,
		"TLS": s.tls, "Handshake": shake, "H2C": s.h2c, "Ping": ping.Path, "Pong": ping.Body,
		"Plain": string(answers.Plain()), "Object": string(answers.Object()),
		"Superuser": os.Geteuid() == 0, "Text": answers.Text, "JSON": answers.JSON,
	})
	if err != nil {
		panic(err) // every name above is known
	}
	return b.String(), nil
}

// Workers of a master that is root's would be nobody's, who may not read a
// trial's directory. Compression is as the other arms have it: of the types of text, from
// 1 KiB on.
const text = `daemon off;
{{if .Superuser}}user root;
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
	{{- if .Gzip}}
	gzip on;
	gzip_comp_level {{.Gzip}};
	gzip_min_length 1024;
	gzip_types text/plain application/json;
	gzip_vary on;
	{{- end}}

	server {
		{{- if .TLS}}
		listen {{.Addr}} ssl http2 backlog=4096;
		ssl_certificate cert.pem;
		ssl_certificate_key cert.pem;
		error_page 497 =200 /plain;
		{{- range .Handshake}}
		{{.}}
		{{- end}}
		{{- else}}
		listen {{.Addr}}{{if .H2C}} http2{{end}} backlog=4096;
		{{- end}}
		root {{.Root}};
		{{- if .Answers}}
		default_type "{{.Text}}";

		location = /plain { return 200 "{{.Plain}}"; }
		location = /json {
			default_type "{{.JSON}}";
			return 200 '{{.Object}}';
		}
		location = {{.Ping}} {
			default_type "{{.JSON}}";
			return 200 '{{.Pong}}';
		}
		location = /page { }
		location / { return 404 "404 page not found\n"; }
		{{- else}}
		charset utf-8;
		types {
			text/html html;
			text/plain txt;
			application/json json;
			image/jpeg jpg;
		}
		{{- end}}
	}
}
`
