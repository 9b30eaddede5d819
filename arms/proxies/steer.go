package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tarehq/tare/serve/proxy/config"
	"github.com/tarehq/tare/serve/proxy/gateway/region"
	"github.com/tarehq/tare/serve/proxy/gateway/region/regiontest"
)

// changes is how often weights change.
const changes = 1000

// steer returns what was found of steering: requests are split by a header and by the
// client's region, and weights change while requests come.
func steer(addresses []string) map[string]string {
	return map[string]string{
		"split by a header":                  splitByHeader(addresses),
		"split by the client's region":       splitByRegion(addresses),
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

// splitByRegion asks from addresses of two regions, as a database has them, and from one that
// is in none, and counts who is asked.
func splitByRegion(addresses []string) string {
	file, err := os.CreateTemp("", "regions-*.mmdb")
	if err != nil {
		return err.Error()
	}
	defer os.Remove(file.Name())
	_, err = file.Write(regiontest.Database(map[string]string{"203.0.113.0/24": "DE", "198.51.100.0/24": "US"}))
	if err := errors.Join(err, file.Close()); err != nil {
		return err.Error()
	}
	s := &config.Site{Regions: func(r config.Regions) (config.RegionFinder, error) { return region.Open(r.Database, r.Field) }}
	defer s.Close()
	text, err := json.Marshal(map[string]any{
		"listen": []any{map[string]any{"address": ":80"}}, "regions": map[string]string{"database": file.Name()},
		"upstreams": map[string]any{"eu": servers(addresses[1:2], 1), "us": servers(addresses[2:3], 1)},
		"routes": []any{
			map[string]any{"path": "/", "region": []string{"DE", "FR"}, "upstream": "eu"},
			map[string]any{"path": "/", "upstream": "us"},
		},
	})
	if err == nil {
		err = take(s, text)
	}
	if err != nil {
		return err.Error()
	}
	for i := range 90 {
		r := httptest.NewRequest(http.MethodGet, "/plain", nil)
		r.RemoteAddr = []string{"203.0.113.7:4711", "198.51.100.7:4711", "192.0.2.7:4711"}[i%3]
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	status := s.Status()
	if status["eu"][0].Requests != 30 || status["us"][0].Requests != 60 {
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
