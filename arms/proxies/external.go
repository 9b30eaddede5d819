package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"github.com/tarehq/tare/arms/engine/answers"
)

// program is a proxy of others: its configuration, and how it is started with the file's
// path.
type program struct {
	text string
	args func(file string, s setting) []string
}

// setting is what a configuration is made for.
type setting struct {
	Addr, Host, Port string
	Upstreams        []endpoint
	Workers          int
	Dir              string
	Root             bool
	Cert             string // a file with certificate and key; empty: no TLS
}

type endpoint struct{ Addr, Host, Port string }

// external are the programs that the arm becomes. All pass the client's Host on, say for
// whom in X-Forwarded-For, keep their connections to upstreams, and write no logs.
var external = map[string]*program{
	"nginx": {nginxConf, func(file string, s setting) []string {
		return []string{"-p", s.Dir, "-e", "stderr", "-c", file}
	}},
	"haproxy": {haproxyConf, func(file string, _ setting) []string { return []string{"-db", "-f", file} }},
	"envoy": {envoyConf, func(file string, s setting) []string {
		return []string{"-c", file, "--concurrency", fmt.Sprint(s.Workers), "--use-dynamic-base-id", "--log-level", "error"}
	}},
	"traefik": {traefikConf, func(file string, s setting) []string {
		return []string{"--entrypoints.web.address=" + s.Addr, "--providers.file.filename=" + file,
			"--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=ERROR"}
	}},
	"caddy": {caddyConf, func(file string, _ setting) []string {
		return []string{"run", "--config", file, "--adapter", "caddyfile"}
	}},
}

// become runs a program in this process's place and returns only what kept it from that.
// An arm's working directory is its own.
func become(kind, addr string, upstreams []string, secure bool) error {
	if addr == "" {
		return errors.New("TARE_ADDR does not say where to listen")
	}
	path, err := exec.LookPath(kind)
	if err != nil {
		return err
	}
	s := setting{Addr: addr, Workers: runtime.GOMAXPROCS(0), Root: os.Geteuid() == 0}
	if s.Host, s.Port, err = net.SplitHostPort(addr); err != nil {
		return err
	}
	for _, u := range upstreams {
		host, port, err := net.SplitHostPort(u)
		if err != nil {
			return err
		}
		s.Upstreams = append(s.Upstreams, endpoint{u, host, port})
	}
	if s.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if secure {
		s.Cert = filepath.Join(s.Dir, "cert.pem")
		if err := answers.WriteSelfSigned(s.Cert); err != nil {
			return fmt.Errorf("making a certificate: %w", err)
		}
	}
	p := external[kind]
	var b strings.Builder
	if err := template.Must(template.New(kind).Parse(p.text)).Execute(&b, s); err != nil {
		return err
	}
	file := filepath.Join(s.Dir, "proxy.yaml") // two want the ending; Traefik takes a traefik.yaml for other settings
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return err
	}
	env := append(os.Environ(), "XDG_CONFIG_HOME="+s.Dir, "XDG_DATA_HOME="+s.Dir) // Caddy's own files
	return fmt.Errorf("running %s: %w", path, execute(path, append([]string{kind}, p.args(file, s)...), env))
}

// Workers of a master that is root's would be nobody's, who may not read a trial's
// directory.
const nginxConf = `daemon off;
{{if .Root}}user root;
{{end -}}
pid nginx.pid;
error_log stderr error;
worker_processes {{.Workers}};
worker_rlimit_nofile 16384;
events {
	worker_connections 16384;
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
	tcp_nopush on;
	upstream up {
{{range .Upstreams}}		server {{.Addr}};
{{end}}		keepalive 512;
		keepalive_requests 1000000000;
	}
	server {
		listen {{.Addr}}{{if .Cert}} ssl{{end}} backlog=4096;
{{if .Cert}}		ssl_certificate {{.Cert}};
		ssl_certificate_key {{.Cert}};
{{end}}		location / {
			proxy_pass http://up;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header X-Forwarded-Host $http_host;
			proxy_set_header X-Forwarded-Proto $scheme;
		}
	}
}
`

const haproxyConf = `global
	maxconn 8000
	nbthread {{.Workers}}
defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	option forwardfor
	http-reuse always
frontend in
	bind {{.Addr}}{{if .Cert}} ssl crt {{.Cert}}{{end}}
	http-request set-header X-Forwarded-Host %[req.hdr(host)]
	http-request set-header X-Forwarded-Proto http{{if .Cert}}s{{end}}
	default_backend up
backend up
	balance leastconn
{{range $i, $u := .Upstreams}}	server u{{$i}} {{$u.Addr}}
{{end}}`

const envoyConf = `static_resources:
  listeners:
  - address: {socket_address: {address: {{.Host}}, port_value: {{.Port}}}}
    filter_chains:
    - {{if .Cert}}transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates:
            - certificate_chain: {filename: "{{.Cert}}"}
              private_key: {filename: "{{.Cert}}"}
      {{end}}filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          use_remote_address: true
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{match: {prefix: "/"}, route: {cluster: up}}]
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: up
    type: STATIC
    lb_policy: LEAST_REQUEST
    load_assignment:
      cluster_name: up
      endpoints:
      - lb_endpoints:
{{range .Upstreams}}        - endpoint: {address: {socket_address: {address: {{.Host}}, port_value: {{.Port}}}}}
{{end}}`

const traefikConf = `http:
  routers:
    all:
      rule: PathPrefix(` + "`/`" + `)
      service: up
      entryPoints: [web]{{if .Cert}}
      tls: {}{{end}}
  services:
    up:
      loadBalancer:
        servers:
{{range .Upstreams}}        - url: http://{{.Addr}}
{{end}}{{if .Cert}}tls:
  stores:
    default:
      defaultCertificate:
        certFile: {{.Cert}}
        keyFile: {{.Cert}}
{{end}}`

const caddyConf = `{
	admin off
	auto_https off
	persist_config off
	log {
		level ERROR
	}
	servers {
		protocols h1
	}
}
{{if .Cert}}https{{else}}http{{end}}://:{{.Port}} {
	bind {{.Host}}
{{if .Cert}}	tls {{.Cert}} {{.Cert}}
{{end}}	reverse_proxy {{range .Upstreams}}{{.Addr}} {{end}}{
		transport http {
			compression off
			keepalive_idle_conns_per_host 512
		}
	}
}
`
