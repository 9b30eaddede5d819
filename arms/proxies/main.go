// Command proxies is a proxy before three upstreams. The flag -proxy says which:
//
//	ours           serve/proxy on serve.Server
//	no-retry       the same, without retries and ejection
//	steered        ours, which reports as facts what it found of its steering
//	reverse        httputil.ReverseProxy on http.Server, as many connections kept as are used
//	reverse-serve  the same on serve.Server
//	tutorial       httputil.NewSingleHostReverseProxy as it comes, on http.Server
//	direct         none: what the upstreams answer, on serve.Server
//	nginx, haproxy, envoy, traefik, caddy    becomes that program, set up for speed
//
// With -tls clients come by TLS and HTTP/1.1, with a certificate that signs itself.
//
// With -script it prints what clients of some proxies see, second by second, while one of
// three upstreams fails:
//
//	go run ./arms/proxies -script ours,reverse,nginx,haproxy
//
// The upstreams are those of package upstreams. A client whose request failed has its
// connection cut, as tare counts that as an error.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/proxies/upstreams"
	"github.com/tarehq/tare/arms/serve/engines"
)

func main() {
	upstreams.Main()
	kind := flag.String("proxy", "ours", "which `proxy`: ours, no-retry, steered, reverse, reverse-serve, tutorial, direct, nginx, haproxy, envoy, traefik or caddy")
	behind := flag.String("upstreams", "", "`addresses` of upstreams, with commas between; the program starts its own if there are none")
	secure := flag.Bool("tls", false, "speak TLS with clients")
	script := flag.String("script", "", "print what clients of these `proxies` see while an upstream fails")
	second := flag.Duration("second", time.Second, "how long a second of the script is")
	flag.Parse()
	var err error
	if *script != "" {
		err = runScript(strings.Split(*script, ","), *second, os.Stdout)
	} else {
		err = run(*kind, *behind, *secure)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "proxies: %v\n", err)
		os.Exit(1)
	}
}

func run(kind, behind string, secure bool) error {
	addresses := strings.Split(behind, ",")
	if behind == "" {
		var err error
		if addresses, err = upstreams.Start(); err != nil {
			return err
		}
	}
	if external[kind] != nil {
		return become(kind, os.Getenv("TARE_ADDR"), addresses, secure)
	}
	o, engine, err := newProxy(kind, addresses)
	if err != nil {
		return err
	}
	o.Serve = answers.Secure(secure, engine.Run(o.Handler), engine.RunTLS(o.Handler))
	arm.Main(o)
	return nil
}

// newProxy returns the arm of a proxy that is a handler, and what serves it.
func newProxy(kind string, addresses []string) (o arm.Options, engine engines.Engine, err error) {
	engine = engines.Serve
	switch kind {
	case "ours", "no-retry", "steered":
		o.Handler, err = newOurs(kind != "no-retry", addresses)
	case "reverse", "reverse-serve":
		o.Handler = newReverse(addresses)
	case "tutorial":
		o.Handler = newTutorial(addresses[1])
	case "direct":
		o.Handler = answers.New()
	default:
		err = fmt.Errorf("no proxy is called %q", kind)
	}
	if kind == "reverse" || kind == "tutorial" {
		engine = engines.NetHTTP
	}
	if kind == "steered" {
		o.Facts = func() map[string]string { return steer(addresses) }
	}
	return o, engine, err
}
