package study

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// target checks a request as the load will: what it refuses to send is a mistake of
// the file.
func (c *checker) target(path string, t Target) {
	switch v := t.Verify; {
	case t.Method == http.MethodConnect:
		c.Wrong(path+".method", "CONNECT opens a tunnel, which has no answer to measure; take another method")
	case t.Method == http.MethodHead && (v.Contains != "" || v.Length != nil || v.SHA256 != ""):
		c.Wrong(path+".verify", "an answer to HEAD has no body; verify status and header alone")
	}
	if _, err := url.PathUnescape(t.Path); err != nil {
		c.Wrong(path+".path", "path: %v; a per cent sign itself is written %%25", err)
	}
	if strings.Contains(t.Path, "{{") {
		c.Wrong(path+".path", "path: nothing fills {{…}} in a study; a brace itself is written %%7B")
	}
	var seen []string
	for _, name := range slices.Sorted(maps.Keys(t.Header)) {
		low, at := strings.ToLower(name), fmt.Sprintf("%s.header.%s", path, name)
		switch {
		case low == "content-length" || low == "transfer-encoding":
			c.Wrong(at, "%s follows from the body; leave it out", name)
		case slices.Contains(seen, low):
			c.Wrong(at, "header says %s twice, for case is no difference there; say it once", name)
		}
		seen = append(seen, low)
	}
}
