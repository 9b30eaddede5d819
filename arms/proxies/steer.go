package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/proxy/config"
)

// changes is how often weights change.
const changes = 1000

// steer returns what was found of steering: requests are split by a header, and weights
// change while requests come.
func steer(addresses []string) map[string]string {
	return map[string]string{
		"split by a header":                  splitByHeader(addresses),
		"failed in 1,000 changes of weights": changeWeights(addresses),
	}
}

// site returns one that serves a file's upstreams and routes.
func site(upstreams map[string]any, routes []any) (*config.Site, error) {
	text, err := json.Marshal(map[string]any{"listen": []any{map[string]any{"address": ":80"}}, "upstreams": upstreams, "routes": routes})
	if err != nil {
		return nil, err
	}
	s := &config.Site{}
	return s, take(s, text)
}

func take(s *config.Site, text []byte) error {
	f, err := config.Parse(text)
	if err != nil {
		return err
	}
	return s.Take(f)
}

func servers(addresses []string, weights ...int) map[string]any {
	var all []any
	for i, a := range addresses {
		all = append(all, map[string]any{"address": a, "weight": weights[i]})
	}
	return map[string]any{"servers": all}
}

// splitByHeader asks with a header and without, and counts who is asked.
func splitByHeader(addresses []string) string {
	s, err := site(map[string]any{"old": servers(addresses[1:2], 1), "new": servers(addresses[2:3], 1)}, []any{
		map[string]any{"path": "/", "header": map[string]string{"X-Beta": "1"}, "upstream": "new"},
		map[string]any{"path": "/", "upstream": "old"},
	})
	if err != nil {
		return err.Error()
	}
	defer s.Close()
	for i := range 100 {
		r := httptest.NewRequest(http.MethodGet, "/plain", nil)
		if i < 40 {
			r.Header.Set("X-Beta", "1")
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	status := s.Status()
	if status["new"][0].Requests != 40 || status["old"][0].Requests != 60 {
		return fmt.Sprintf("no: %+v", status)
	}
	return "yes"
}

// changeWeights counts what fails while weights change, of requests that come all the time.
func changeWeights(addresses []string) string {
	file := func(n int) ([]byte, error) {
		return json.Marshal(map[string]any{"listen": []any{map[string]any{"address": ":80"}},
			"upstreams": map[string]any{"up": servers(addresses, 1+n%9, n%4, 3)}, "routes": []any{map[string]any{"path": "/", "upstream": "up"}}})
	}
	text, err := file(0)
	if err != nil {
		return err.Error()
	}
	s := &config.Site{}
	defer s.Close()
	if err := take(s, text); err != nil {
		return err.Error()
	}
	var failed atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for !over.Load() {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/plain", nil))
				if w.Code != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	for n := range changes {
		if text, err = file(n); err == nil {
			err = take(s, text)
		}
		if err != nil {
			break
		}
	}
	over.Store(true)
	all.Wait()
	if err != nil {
		return err.Error()
	}
	return strconv.FormatInt(failed.Load(), 10)
}
