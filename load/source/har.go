package source

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// archive is the part of HAR 1.2 that says what was asked
// (http://www.softwareishard.com/blog/har-12-spec/).
type archive struct {
	Log struct {
		Entries []struct {
			Request struct {
				Method   string `json:"method"`
				URL      string `json:"url"`
				Headers  []struct{ Name, Value string }
				PostData struct {
					Text string `json:"text"`
				} `json:"postData"`
			} `json:"request"`
		} `json:"entries"`
	} `json:"log"`
}

// notSent are fields that the load sets itself, or that held for one connection.
var notSent = map[string]bool{
	"host": true, "content-length": true, "connection": true, "keep-alive": true, "proxy-connection": true,
	"transfer-encoding": true, "upgrade": true, "te": true, "trailer": true, "expect": true,
	"accept-encoding": true, "if-none-match": true, "if-modified-since": true,
}

// readHAR reads an archive. Requests to all but the first one's host are left out:
// pages fetch from many, and one service is measured.
func readHAR(data []byte) (_ []Request, warnings []error, err error) {
	var a archive
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, nil, fmt.Errorf("reading the HTTP archive: %w", err)
	}
	host, others := "", map[string]int{}
	kinds := tally{at: map[[3]string]int{}}
	for i, e := range a.Log.Entries {
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			warnings = append(warnings, fmt.Errorf("entry %d: %q is not the URL of an HTTP request", i+1, e.Request.URL))
			continue
		}
		if host == "" {
			host = u.Host
		}
		if u.Host != host {
			others[u.Host]++
			continue
		}
		r := Request{Method: e.Request.Method, Path: pathOf(u), Body: e.Request.PostData.Text}
		for _, h := range e.Request.Headers {
			if !notSent[strings.ToLower(h.Name)] && !strings.HasPrefix(h.Name, ":") {
				r.Header = append(r.Header, Field(h))
			}
		}
		kinds.add(r)
	}
	for h, n := range others {
		warnings = append(warnings, fmt.Errorf("ignoring %d requests to %s: only those to %s are read", n, h, host))
	}
	return kinds.all, warnings, nil
}
