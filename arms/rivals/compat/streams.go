package compat

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// streams are probes of what goes on while a request or an answer is on its way.
func streams() []Probe {
	const proxy = "net/http/httputil"
	return []Probe{
		{"ReverseProxy", proxy, "request and answer passed on, hop-by-hop fields taken out, trailers kept", probeProxy},
		{"ReverseProxy, streaming", proxy, "the first part before the upstream has ended", probeProxyStream},
		{"ReverseProxy, upgrade", proxy, "101 and bytes both ways", probeProxyUpgrade},
		{"server-sent events", "net/http", "the first event before the handler ends", probeEvents},
		{"upload as it comes", "net/http", "the first bytes before the last are sent, and all 3 MiB", probeUpload},
		{"full duplex", "net/http", "lines answered one by one while the body comes", probeDuplex},
		{"context, client gone", "net/http", "the context ends while the handler waits", probeGone},
		{"context, request over", "net/http", "the context ends with the handler, not before", probeOver},
		{"read deadline", "net/http", "ResponseController.SetReadDeadline ends a read", probeReadDeadline},
	}
}

// upstream starts a server that a proxy passes requests on to.
func (t *Trial) upstream(h http.HandlerFunc) *httputil.ReverseProxy {
	s := httptest.NewServer(h)
	t.cleanups = append(t.cleanups, s.CloseClientConnections)
	target, err := url.Parse(s.URL)
	if err != nil {
		panic(err) // httptest is wrong
	}
	return &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		FlushInterval: -1,
	}
}

func probeProxy(t *Trial) {
	t.serve(t.upstream(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("X-Target", fmt.Sprint(r.Method, " ", r.RequestURI))
		w.Header().Set("X-Hops", strings.Join(r.Header["X-Hop"], ", "))
		w.Header().Set("X-Words", strings.Join(r.Header["X-Many"], ", "))
		w.Header().Set("X-Client", r.Header.Get("X-Forwarded-For"))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "echo ", string(body))
		w.Header().Set("X-Sum", "sum of "+string(body))
	}))
	for i := range 4 {
		body := fmt.Sprint("body-", i)
		a := t.send(t.request(http.MethodPost, "/a%2Fb/c?q=d", body, "Connection: X-Hop", "X-Hop: secret", "X-Many: one", fmt.Sprint("X-Many: ", i)))
		t.wants(a, http.StatusCreated, "echo "+body)
		target := a.header.Get("X-Target")
		t.must(target == "POST /a%2Fb/c?q=d", "%q is passed on as %q", "POST /a%2Fb/c?q=d", target)
		t.must(a.header.Get("X-Hops") == "", "a hop-by-hop field is passed on")
		t.must(a.header.Get("X-Words") == fmt.Sprint("one, ", i), "a field of two lines is passed on otherwise")
		t.must(a.header.Get("X-Client") == "127.0.0.1", "X-Forwarded-For lacks the client")
		t.promised(a.trailer.Get("X-Sum") == "sum of "+body, "the answer's trailer is lost")
	}
}

func probeProxyStream(t *Trial) {
	release := make(chan struct{})
	t.serve(t.upstream(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-time.After(patience):
		}
		io.WriteString(w, "second\n")
	}))
	t.firstThenSecond(release)
}

// firstThenSecond reads an answer whose second line the handler sends when the
// first has been read, or else when it has lost patience.
func (t *Trial) firstThenSecond(release chan struct{}) {
	began := time.Now()
	res, err := t.client.Do(t.request(http.MethodGet, "/", ""))
	t.need(err == nil, "no answer: %s", reason(err))
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	first, err := lines.ReadString('\n')
	t.need(err == nil && first == "first\n", "the first part is missing")
	t.promised(time.Since(began) < patience, "the first part comes with the last, not before")
	close(release)
	second, err := lines.ReadString('\n')
	t.need(err == nil && second == "second\n", "the second part is missing")
	_, err = lines.ReadByte()
	t.must(err == io.EOF, "the answer has no end")
}

func probeProxyUpgrade(t *Trial) {
	t.serve(t.upstream(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "lines" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(c, strings.ToUpper(line))
		}
	}))
	c, r := t.dial()
	fmt.Fprint(c, "GET /lines HTTP/1.1\r\nHost: host.example\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	t.need(err == nil, "no answer: %s", reason(err))
	t.need(res.StatusCode == http.StatusSwitchingProtocols, "status %d instead of 101", res.StatusCode)
	for _, line := range []string{"one\n", "two\n", strings.Repeat("three ", 5000) + "\n"} {
		go io.WriteString(c, line) // long lines come back before they are sent
		got, err := r.ReadString('\n')
		t.need(err == nil, "a line does not come back: %s", reason(err))
		t.must(got == strings.ToUpper(line), "a line comes back otherwise")
	}
}

func probeEvents(t *Trial) {
	release := make(chan struct{})
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "first\n")
		http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-time.After(patience):
		}
		io.WriteString(w, "second\n")
	}))
	t.firstThenSecond(release)
}

func probeUpload(t *Trial) {
	const size, part = 3 << 20, 64 << 10
	began := make(chan struct{})
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := make([]byte, part)
		if _, err := io.ReadFull(r.Body, first); err != nil {
			http.Error(w, "the first bytes do not come", http.StatusBadRequest)
			return
		}
		close(began)
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, part+n, " ", err)
	}))
	early := make(chan bool, 1)
	body, feed := io.Pipe()
	go func() {
		defer feed.Close()
		data := make([]byte, size)
		if _, err := feed.Write(data[:2*part]); err != nil {
			return
		}
		_, ok := within(began)
		early <- ok
		feed.Write(data[2*part:])
	}()
	r := t.request(http.MethodPost, "/", "")
	r.Body, r.ContentLength = body, size
	t.wants(t.send(r), http.StatusOK, fmt.Sprint(size, " ", nil))
	t.promised(<-early, "the handler gets the body when all of it has come, not before")
}

// probeDuplex goes on where full duplex cannot be switched on: it may be on.
func probeDuplex(t *Trial) {
	enabled := make(chan error, 1)
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		enabled <- rc.EnableFullDuplex()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(w, strings.ToUpper(line))
			rc.Flush()
		}
	}))
	c, r := t.dial()
	say := func(line string) {
		_, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(line), line)
		t.need(err == nil, "the body is not taken while the answer comes")
	}
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: host.example\r\nTransfer-Encoding: chunked\r\n\r\n")
	say("first\n")
	res, err := http.ReadResponse(r, nil)
	t.need(err == nil, "nothing is answered before the body has ended: %s", reason(err))
	t.need(res.StatusCode == http.StatusOK, "status %d instead of 200", res.StatusCode)
	t.promised(<-enabled == nil, "EnableFullDuplex is not supported")
	answers := bufio.NewReader(res.Body)
	for i, line := range []string{"first\n", "second\n", "third\n"} {
		if i > 0 {
			say(line)
		}
		got, err := answers.ReadString('\n')
		t.need(err == nil, "a line is not answered while the body comes: %s", reason(err))
		t.must(got == strings.ToUpper(line), "a line is answered otherwise")
	}
	say("") // the last chunk
	rest, err := io.ReadAll(answers)
	t.must(err == nil && len(rest) == 0, "the answer has no end")
}

func probeGone(t *Trial) {
	entered, ended := make(chan struct{}, 1), make(chan bool, 1)
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		_, ok := within(r.Context().Done())
		ended <- ok
	}))
	c, _ := t.dial()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: host.example\r\n\r\n")
	_, ok := within(entered)
	t.need(ok, "the request does not reach the handler")
	c.Close()
	t.promised(<-ended, "the context goes on when the client has gone")
}

func probeOver(t *Trial) {
	done := make(chan (<-chan struct{}), 1)
	early := make(chan bool, 1)
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done <- r.Context().Done()
		early <- r.Context().Err() != nil
		io.WriteString(w, "done")
	}))
	for range 3 {
		t.wants(t.get("/"), http.StatusOK, "done")
		t.must(!<-early, "the context has ended before the handler")
		over := <-done
		ended := make(chan struct{})
		if over != nil {
			go func() { <-over; close(ended) }()
		}
		_, ok := within(ended)
		t.promised(ok, "the context goes on after the request")
		if !ok {
			return
		}
	}
}

func probeReadDeadline(t *Trial) {
	type result struct{ set, read bool }
	results := make(chan result, 1)
	t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set := http.NewResponseController(w).SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		read := make(chan error, 1)
		go func() { _, err := io.ReadAll(r.Body); read <- err }()
		err, ok := within(read)
		results <- result{set == nil, ok && err != nil}
	}))
	c, _ := t.dial()
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: host.example\r\nContent-Length: 10\r\n\r\nhalf")
	got, ok := within(results)
	if !ok { // the handler's patience began later than this one
		got, ok = within(results)
	}
	t.promised(ok, "the handler is not called before the whole body has come, which it cannot limit")
	t.promised(!ok || got.set, "SetReadDeadline is not supported")
	t.promised(!ok || !got.set || got.read, "the read goes on after its deadline")
}
