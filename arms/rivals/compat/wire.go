package compat

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
)

// wire are probes of the parts of HTTP that handlers use besides one body each
// way.
func wire() []Probe {
	return []Probe{
		{"trailers of an answer", "net/http", "declared and by TrailerPrefix", probeTrailers},
		{"trailers of a request", "net/http", "in Request.Trailer once the body is read", probeRequestTrailers},
		{"103 Early Hints", "net/http", "the hints, then the answer", probeHints},
		{"panic(http.ErrAbortHandler)", "net/http", "no whole answer, and service to others", probeAbort},
		{"panic", "net/http", "no answer that looks right, and service to others", probePanic},
		{"Expect: 100-continue", "net/http", "a body asked for when the handler reads it, and else not", probeExpect},
		{"Hijacker", "net/http", "the connection with what was read ahead", probeHijack},
		{"context keys", "net/http", "http.ServerContextKey and http.LocalAddrContextKey", probeContextKeys},
	}
}

func probeTrailers(t *Trial) {
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "sum")
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	}))
	for range 2 {
		a := t.get("/")
		t.wants(a, http.StatusOK, "body")
		t.promised(a.trailer.Get("X-Sum") == "sum", "a declared trailer is lost")
		t.promised(a.trailer.Get("X-Late") == "late", "a trailer by TrailerPrefix is lost")
		t.must(a.header.Get(http.TrailerPrefix+"X-Late") == "", "TrailerPrefix is sent as a header")
	}
}

func probeRequestTrailers(t *Trial) {
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, declared := r.Trailer["X-Sum"]
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, string(body), "|", declared, "|", r.Trailer.Get("X-Sum"))
	}))
	for _, sum := range []string{"one", "two"} {
		r := t.request(http.MethodPost, "/", "body")
		r.ContentLength = -1
		r.Trailer = http.Header{"X-Sum": {sum}}
		a := t.send(r)
		body, seen, _ := strings.Cut(a.body, "|")
		t.must(a.status == http.StatusOK && body == "body", "status %d, body %s", a.status, short(body))
		t.promised(seen == "true|"+sum, "the request's trailer is not in Request.Trailer")
	}
}

func probeHints(t *Trial) {
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "page")
	}))
	for range 2 {
		var hints []string
		r := t.request(http.MethodGet, "/", "")
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
				return nil
			},
		}))
		t.wants(t.send(r), http.StatusAccepted, "page")
		t.promised(slices.Equal(hints, []string{"103 </style.css>; rel=preload"}), "the hints are lost")
	}
}

func probeAbort(t *Trial) {
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/written":
			io.WriteString(w, "half an answer")
		case "/flushed":
			io.WriteString(w, "half an answer")
			http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}))
	for _, path := range []string{"/written", "/flushed"} {
		a, err := t.trySend(t.request(http.MethodGet, path, ""))
		t.must(err != nil || a.status >= http.StatusInternalServerError, "half an answer comes as a whole one with status %d", a.status)
	}
	a, err := t.trySend(t.request(http.MethodGet, "/nothing", ""))
	t.must(err != nil || a.status >= http.StatusInternalServerError, "nothing comes as an answer with status %d", a.status)
	t.promised(err != nil, "an aborted answer comes with status %d instead of none", a.status)
}

func probePanic(t *Trial) {
	t.serve(http.HandlerFunc(panicsAt))
	for range 2 {
		for _, path := range []string{"/panic", "/late"} {
			a, err := t.trySend(t.request(http.MethodGet, path, ""))
			t.must(err != nil || a.status >= http.StatusInternalServerError, "a panic comes as an answer with status %d", a.status)
		}
		t.wants(t.get("/"), http.StatusOK, "tea")
	}
}

func probeExpect(t *Trial) {
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		b, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(b), " ", err)
	}))
	const head = " HTTP/1.1\r\nHost: host.example\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
	c, r := t.dial()
	io.WriteString(c, "POST /take"+head)
	res, err := http.ReadResponse(r, nil)
	t.need(err == nil, "a handler that reads the body: %s", reason(err))
	t.need(res.StatusCode == http.StatusContinue, "status %d instead of 100", res.StatusCode)
	io.WriteString(c, "body")
	res, err = http.ReadResponse(r, nil)
	t.need(err == nil, "after the body: %s", reason(err))
	body, _ := io.ReadAll(res.Body)
	t.wants(answer{status: res.StatusCode, body: string(body)}, http.StatusOK, "body <nil>")

	c, r = t.dial()
	io.WriteString(c, "POST /refuse"+head)
	res, err = http.ReadResponse(r, nil)
	t.need(err == nil, "a handler that does not read the body: %s", reason(err))
	t.promised(res.StatusCode != http.StatusContinue, "a body is asked for that the handler does not want")
	if res.StatusCode == http.StatusContinue {
		io.WriteString(c, "body")
		res, err = http.ReadResponse(r, nil)
		t.need(err == nil, "after the body: %s", reason(err))
	}
	t.must(res.StatusCode == http.StatusRequestEntityTooLarge, "status %d instead of 413", res.StatusCode)
}

func probeHijack(t *Trial) {
	entered := make(chan struct{}, 2)
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, "no hijacking", http.StatusInternalServerError)
			return
		}
		defer c.Close()
		entered <- struct{}{}
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "HTTP/1.1 200 OK\r\nContent-Length: ", len(line), "\r\n\r\n", line)
		rw.Flush()
	}))
	for _, ahead := range []string{"", "sent ahead\n"} {
		c, r := t.dial()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: host.example\r\n\r\n"+ahead)
		if ahead == "" {
			_, ok := within(entered)
			t.need(ok, "the request does not reach the handler")
			io.WriteString(c, "sent after\n")
		}
		sent := "a line sent with the request"
		if ahead == "" {
			sent = "a line sent after it"
		}
		res, err := http.ReadResponse(r, nil)
		t.need(err == nil, "no answer on the connection, %s: %s", sent, reason(err))
		body, err := io.ReadAll(res.Body)
		t.must(err == nil, "the answer is cut short")
		t.wants(answer{status: res.StatusCode, body: string(body)}, http.StatusOK, cmp.Or(ahead, "sent after\n"))
		_, err = r.ReadByte()
		t.must(err == io.EOF, "the connection is not closed")
	}
}

func probeContextKeys(t *Trial) {
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, server := r.Context().Value(http.ServerContextKey).(*http.Server)
		address, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		fmt.Fprint(w, server, " ", address)
	}))
	for range 2 {
		a := t.get("/")
		t.must(a.status == http.StatusOK, "status %d instead of 200", a.status)
		server, address, _ := strings.Cut(a.body, " ")
		t.promised(server == "true", "http.ServerContextKey has no *http.Server")
		t.promised(address == t.addr, "http.LocalAddrContextKey has no address")
	}
}
