package adviseverb

import (
	"slices"
	"strings"
)

// part is one thing to choose.
type part struct {
	name string
	// asked are the needs and protocols without which nothing of it is wanted; none: it
	// always is.
	asked   []string
	options []option // the first where nothing else decides
	speed   question // what speed means here; the zero one has no study
	memory  question // likewise for a bound of memory
	claims  []string // published claims that say something of it, for what was measured elsewhere
}

// question is what a figure answers: a metric of a study's arms under a workload, "" for
// the study's primary one.
type question struct{ study, workload, metric string }

// option is what may be chosen.
type option struct {
	name string
	arm  string            // in the studies of the part's questions; "" = none
	also []string          // other names that it is known by
	have map[string]string // needs that only some options meet, and how it meets them
	lack map[string]string // needs and protocols that it does not meet, and why
}

const (
	noHTTP2    = "it has no HTTP/2"
	noGRPC     = "gRPC needs HTTP/2, which it has not"
	noHTTP3    = "it has no HTTP/3; a proxy in front can have it"
	noHandlers = "it does not run handlers of net/http without an adaptor"
)

// parts are all that is chosen from studies of whole programs. What an option has and lacks
// is what its documentation says; no figure is behind it.
func parts() []part {
	return []part{
		{
			name: engine,
			options: []option{
				{name: "net/http", arm: "nethttp", lack: map[string]string{"http3": noHTTP3}},
				{name: onServe, arm: "serve", also: []string{"tare"}, lack: map[string]string{"http3": noHTTP3}},
				{name: "fasthttp", arm: "fasthttp", also: []string{"fiber"}, lack: map[string]string{"http2": noHTTP2, "grpc": noGRPC, "http3": noHTTP3, handlers: noHandlers}},
				{name: "Hertz", arm: "hertz", lack: map[string]string{"http2": "its HTTP/2 is another module", "grpc": "it has no gRPC", "http3": noHTTP3, handlers: noHandlers}},
				{name: "nbio", arm: "nbio", lack: map[string]string{"http2": noHTTP2, "grpc": noGRPC, "http3": noHTTP3}},
			},
			speed:  question{"engine", "browser", "cpu_per_request"},
			memory: question{"engine", "browser", "rss_peak"},
			claims: []string{"P3.frameworks", "P1.compat"},
		},
		{
			name: router,
			options: []option{
				{name: "ServeMux", arm: "servemux", also: []string{"net/http", "nethttp"}},
				{name: "serve/router", arm: "serve", also: []string{"tare"}},
				{name: "chi", arm: "chi"},
				{name: "Gin", arm: "gin"},
				{name: "Echo", arm: "echo"},
				{name: "httprouter", arm: "httprouter"},
				{name: "bunrouter", arm: "bunrouter"},
				{name: "gorilla/mux", arm: "mux", also: []string{"mux", "gorilla"}},
			},
			speed:  question{"routers", "parameter", "loop_time"},
			claims: []string{"P4.routers", "P3.frameworks"},
		},
		{
			name:  "proxy",
			asked: []string{inFront, mesh, annotations, "http3"},
			options: []option{
				{name: "nginx", arm: "nginx"},
				{name: "HAProxy", arm: "haproxy"},
				{name: "tare proxy", arm: "ours", also: []string{"tare", "serve/proxy"}, lack: map[string]string{"http3": "it has no HTTP/3"}},
				{name: "Envoy", arm: "envoy", have: map[string]string{mesh: "it takes its set-up from a control plane by xDS, as the proxies of Istio do"}},
				{name: "Traefik", arm: "traefik", have: map[string]string{annotations: "it is set up by labels of containers and by annotations in Kubernetes"}},
				{name: "Caddy", arm: "caddy"},
			},
			speed:  question{study: "proxies", metric: "cpu_per_request"},
			memory: question{study: "proxies", metric: "rss_peak"},
			claims: []string{"P4.proxies", "P4.steering"},
		},
	}
}

const (
	engine  = "engine"
	router  = "router"
	onServe = "serve"
)

// modules are what a program is built of that shows an option of a part.
var modules = []struct{ path, part, option string }{
	{"github.com/go-chi/chi", router, "chi"},
	{"github.com/gin-gonic/gin", router, "Gin"},
	{"github.com/labstack/echo", router, "Echo"},
	{"github.com/julienschmidt/httprouter", router, "httprouter"},
	{"github.com/uptrace/bunrouter", router, "bunrouter"},
	{"github.com/gorilla/mux", router, "gorilla/mux"},
	{"github.com/cloudwego/hertz", engine, "Hertz"},
	{"github.com/lesismal/nbio", engine, "nbio"},
	{"github.com/valyala/fasthttp", engine, "fasthttp"},
	{"github.com/tarehq/tare/serve", engine, onServe},
	{"github.com/traefik/traefik", "proxy", "Traefik"},
	{"github.com/caddyserver/caddy", "proxy", "Caddy"},
}

// protocolModules are what a program is built of that shows a protocol.
var protocolModules = []struct{ path, protocol string }{
	{"google.golang.org/grpc", "grpc"},
	{"connectrpc.com/connect", "grpc"},
	{"github.com/gorilla/websocket", "websocket"},
	{"github.com/coder/websocket", "websocket"},
	{"github.com/quic-go/quic-go", "http3"},
}

// goesBy reports whether a name is the option's, in any case.
func (o *option) goesBy(name string) bool {
	return strings.EqualFold(o.name, name) || slices.ContainsFunc(o.also, func(also string) bool { return strings.EqualFold(also, name) })
}

// names are those of all options.
func names() []string {
	var all []string
	for _, p := range parts() {
		for _, o := range p.options {
			all = append(all, o.name)
		}
	}
	return all
}
