package compat

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/handlers"
	"github.com/gorilla/websocket"
	"github.com/julienschmidt/httprouter"
	"github.com/rs/cors"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// outsiders are probes of single middlewares and handlers of many authors.
func outsiders() []Probe {
	const gorilla = "github.com/gorilla/handlers"
	return []Probe{
		{"otelhttp", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", "a span with route, path and status, below the client's, exported in a batch", probeTracing},
		{"cors", "github.com/rs/cors", "preflight and actual requests", probeCORS},
		{"CombinedLoggingHandler", gorilla, "a line a request", probeCombinedLog},
		{"CompressHandler", gorilla, "gzip for who accepts it", probeGorillaCompress},
		{"ProxyHeaders", gorilla, "address, scheme and host as the proxy says", probeProxyHeaders},
		{"RecoveryHandler", gorilla, "500 for a panic, and the next request served", probeGorillaRecovery},
		{"websocket.Upgrader", "github.com/gorilla/websocket", "text and binary messages echoed, and closed", probeWebSocket},
		{"httprouter", "github.com/julienschmidt/httprouter", "parameters, 404 and 405", probeHTTPRouter},
	}
}

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// probeTracing exports in batches, as services do: spans outlive their requests.
func probeTracing(t *Trial) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithBatcher(spans, sdktrace.WithBatchTimeout(time.Hour)),
	)
	t.cleanups = append(t.cleanups, func() { _ = provider.Shutdown(context.Background()) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, trace.SpanContextFromContext(r.Context()).TraceID())
	})
	t.serve(otelhttp.NewHandler(mux, "server", otelhttp.WithTracerProvider(provider),
		otelhttp.WithPropagators(propagation.TraceContext{})))
	const requests = 5
	for i := range requests {
		a := t.get(fmt.Sprintf("/orders/%d", 10+i), "Traceparent: 00-"+clientTrace+"-"+clientSpan+"-01", fmt.Sprintf("User-Agent: agent/%d", i))
		t.wants(a, http.StatusAccepted, clientTrace)
	}
	t.need(provider.ForceFlush(context.Background()) == nil, "the spans cannot be exported")
	got := spans.GetSpans()
	t.need(len(got) == requests, "%d spans instead of %d", len(got), requests)
	for i, s := range got {
		attributes := map[string]string{}
		for _, kv := range s.Attributes {
			attributes[string(kv.Key)] = kv.Value.String()
		}
		t.must(s.Name == "GET /orders/{id}", "the span's name lacks the route")
		t.must(s.Parent.SpanID().String() == clientSpan, "the span is not below the client's")
		t.must(attributes["http.response.status_code"] == "202", "the span lacks the status")
		t.must(attributes["url.path"] == fmt.Sprintf("/orders/%d", 10+i), "the span's path is that of another request")
		t.must(attributes["user_agent.original"] == fmt.Sprintf("agent/%d", i), "the span's user agent is that of another request")
	}
}

func probeCORS(t *Trial) {
	policy := cors.New(cors.Options{
		AllowedOrigins:   []string{"https://one.example", "https://two.example"},
		AllowedMethods:   []string{http.MethodPut},
		AllowedHeaders:   []string{"X-Token"},
		AllowCredentials: true,
		MaxAge:           60,
	})
	t.serve(policy.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "handled") })))
	for _, origin := range []string{"https://one.example", "https://two.example"} {
		a := t.send(t.request(http.MethodOptions, "/", "", "Origin: "+origin,
			"Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: x-token"))
		t.wants(a, http.StatusNoContent, "")
		t.field(a, "Access-Control-Allow-Origin", origin)
		t.field(a, "Access-Control-Allow-Methods", "PUT")
		t.field(a, "Access-Control-Allow-Headers", "x-token")
		t.field(a, "Access-Control-Max-Age", "60")
		a = t.send(t.request(http.MethodPut, "/", "body", "Origin: "+origin))
		t.wants(a, http.StatusOK, "handled")
		t.field(a, "Access-Control-Allow-Origin", origin)
		t.field(a, "Access-Control-Allow-Credentials", "true")
		t.field(a, "Vary", "Origin")
	}
	a := t.send(t.request(http.MethodPut, "/", "", "Origin: https://other.example"))
	t.field(a, "Access-Control-Allow-Origin", "")
}

func probeCombinedLog(t *Trial) {
	var lines journal
	t.serve(handlers.CombinedLoggingHandler(&lines, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	})))
	for _, pot := range []string{"red", "tin"} {
		a := t.get("/pot?kind="+pot, "Referer: http://kitchen.example/"+pot, "User-Agent: cook/"+pot)
		t.wants(a, http.StatusTeapot, "short and stout")
		t.must(lines.awaits(`"GET /pot?kind=`+pot+` HTTP/1.1" 418 15 "http://kitchen.example/`+pot+`" "cook/`+pot+`"`), "the line is not that of the request")
	}
	for line := range strings.Lines(lines.String()) {
		t.must(strings.HasPrefix(line, "127.0.0.1 - - ["), "the line lacks the client's address")
	}
}

// poem is long enough for a compressor to take an interest.
var poem = strings.Repeat("a rose is a rose ", 400)

// zipped asks for gzip twice and for none once.
func zipped(t *Trial, wantType string) {
	for range 2 {
		a := t.get("/", "Accept-Encoding: gzip")
		t.must(a.status == http.StatusOK, "status %d instead of 200", a.status)
		t.field(a, "Content-Encoding", "gzip")
		t.field(a, "Content-Type", wantType)
		t.must(slices.Contains(a.header.Values("Vary"), "Accept-Encoding"), "Vary does not name Accept-Encoding")
		plain, err := gzip.NewReader(strings.NewReader(a.body))
		t.need(err == nil, "the body is not gzip")
		got, err := io.ReadAll(plain)
		t.must(err == nil && string(got) == poem, "the body is not what was compressed")
		t.must(len(a.body) < len(poem)/4, "the body is not compressed")
	}
	a := t.get("/", "Accept-Encoding: identity")
	t.wants(a, http.StatusOK, poem)
	t.field(a, "Content-Encoding", "")
}

func probeGorillaCompress(t *Trial) {
	t.serve(handlers.CompressHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, poem) })))
	zipped(t, "text/plain; charset=utf-8")
}

func probeProxyHeaders(t *Trial) {
	t.serve(handlers.ProxyHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr, " ", r.URL.Scheme, " ", r.Host)
	})))
	for _, host := range []string{"one.example", "two.example"} {
		a := t.get("/", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: "+host)
		t.wants(a, http.StatusOK, "192.0.2.7 https "+host)
	}
	a := t.get("/", "Host: three.example")
	addr, rest, _ := strings.Cut(a.body, " ")
	scheme, host, _ := strings.Cut(rest, " ")
	ip, _, err := net.SplitHostPort(addr)
	t.must(err == nil && ip == "127.0.0.1", "the client's address is missing")
	t.must(host == "three.example", "host %q instead of three.example", host)
	t.promised(scheme == "", "Request.URL has a scheme where the request's target has none")
}

// panicsAt answers, but panics at /panic before and at /late after it wrote.
func panicsAt(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/panic":
		panic("out of tea")
	case "/late":
		io.WriteString(w, "tea")
		panic("out of tea")
	}
	io.WriteString(w, "tea")
}

// recovered checks what a middleware makes of panics.
func recovered(t *Trial) {
	for range 2 {
		a := t.get("/panic")
		t.must(a.status == http.StatusInternalServerError, "status %d instead of 500 after a panic", a.status)
		a = t.get("/late")
		t.must(a.body == "tea", "body %s instead of what was written before the panic", short(a.body))
		t.promised(a.status == http.StatusOK, "a status set after the first Write still takes effect")
		t.wants(t.get("/"), http.StatusOK, "tea")
	}
}

func probeGorillaRecovery(t *Trial) {
	var lines journal
	h := handlers.RecoveryHandler(handlers.RecoveryLogger(log.New(&lines, "", 0)))(http.HandlerFunc(panicsAt))
	t.serve(h)
	recovered(t)
	t.must(lines.awaits("out of tea"), "the panic is not logged")
}

func probeWebSocket(t *Trial) {
	var up websocket.Upgrader
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, http.Header{"X-Room": {r.URL.Path}})
		if err != nil {
			return // Upgrade has answered
		}
		defer c.Close()
		for {
			kind, message, err := c.ReadMessage()
			if err != nil {
				return
			}
			if err := c.WriteMessage(kind, message); err != nil {
				return
			}
		}
	}))
	big := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	for range 2 {
		dialer := websocket.Dialer{HandshakeTimeout: limit}
		c, res, err := dialer.Dial("ws://"+t.addr+"/room", nil)
		status := 0
		if res != nil {
			status = res.StatusCode
		}
		t.need(err == nil, "the upgrade fails with status %d", status)
		t.cleanups = append(t.cleanups, func() { c.Close() })
		t.must(res.Header.Get("X-Room") == "/room", "the handshake lacks a header")
		_ = c.SetReadDeadline(time.Now().Add(limit))
		for _, m := range []struct {
			kind int
			data []byte
		}{{websocket.TextMessage, []byte("hello")}, {websocket.BinaryMessage, []byte{0, 1, 254, 255}}, {websocket.BinaryMessage, big}} {
			t.need(c.WriteMessage(m.kind, m.data) == nil, "a message cannot be sent")
			kind, got, err := c.ReadMessage()
			t.need(err == nil, "a message does not come back")
			t.must(kind == m.kind && bytes.Equal(got, m.data), "a message comes back otherwise")
		}
		farewell := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		t.need(c.WriteControl(websocket.CloseMessage, farewell, time.Now().Add(patience)) == nil, "closing cannot be said")
		_, _, err = c.ReadMessage()
		t.must(websocket.IsCloseError(err, websocket.CloseNormalClosure), "closing is not answered")
	}
}

func probeHTTPRouter(t *Trial) {
	router := httprouter.New()
	router.GET("/users/:name/files/*path", func(w http.ResponseWriter, _ *http.Request, p httprouter.Params) {
		fmt.Fprint(w, p.ByName("name"), " ", p.ByName("path"))
	})
	t.serve(router)
	t.wants(t.get("/users/ann/files/a/b.txt"), http.StatusOK, "ann /a/b.txt")
	t.wants(t.get("/users/j%C3%B6rg/files/c%20d"), http.StatusOK, "jörg /c d")
	t.wants(t.get("/nowhere"), http.StatusNotFound, "404 page not found\n")
	a := t.send(t.request(http.MethodPost, "/users/ann/files/a", "body"))
	t.must(a.status == http.StatusMethodNotAllowed, "status %d instead of 405", a.status)
	t.field(a, "Allow", "GET, OPTIONS")
}
