package source

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// readOpenAPI reads the GET operations whose parameters have examples, defaults or
// enumerated values. Optional parameters without one are left out of the request.
func readOpenAPI(data []byte) (_ []Request, warnings []error, err error) {
	loader := openapi3.NewLoader() // follows no reference out of the file
	doc, err := loader.LoadFromData(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	if doc.Paths == nil {
		return nil, nil, nil
	}
	base, kinds := basePath(doc), tally{at: map[[3]string]int{}}
	paths := doc.Paths.Map()
	var others []string // operations that may change something
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path]
		if item == nil || !strings.HasPrefix(path, "/") {
			continue
		}
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			if method != http.MethodGet {
				others = append(others, method+" "+path)
			}
		}
		if item.Get == nil {
			continue
		}
		r, err := fill(base+path, append(slices.Clone(item.Parameters), item.Get.Parameters...))
		if err != nil {
			warnings = append(warnings, fmt.Errorf("ignoring GET %s: %w", path, err))
			continue
		}
		kinds.add(r)
	}
	if len(others) > 0 {
		warnings = append(warnings, fmt.Errorf("ignoring %d operations, %s the first: GET alone is safe to repeat", len(others), others[0]))
	}
	return kinds.all, warnings, nil
}

// basePath is the path of the first server.
func basePath(doc *openapi3.T) string {
	if len(doc.Servers) == 0 {
		return ""
	}
	path, err := doc.Servers[0].BasePath()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, "/")
}

// fill makes the request of a path from its parameters' examples. It is an error if one
// that is required has none.
func fill(path string, parameters openapi3.Parameters) (r Request, err error) {
	lacks := func(name string) error { return fmt.Errorf("its parameter %q has no example", name) }
	r.Method = http.MethodGet
	query := url.Values{}
	for _, ref := range parameters {
		p := ref.Value
		if p == nil {
			continue
		}
		value, ok := example(p)
		if !ok {
			if p.Required {
				return r, lacks(p.Name)
			}
			continue
		}
		switch p.In {
		case openapi3.ParameterInPath:
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case openapi3.ParameterInQuery:
			query.Set(p.Name, value)
		case openapi3.ParameterInHeader:
			r.Header = append(r.Header, Field{p.Name, value})
		}
	}
	if open := strings.IndexByte(path, '{'); open >= 0 {
		name, _, _ := strings.Cut(path[open+1:], "}")
		return r, lacks(name)
	}
	r.Path = path
	if len(query) > 0 {
		r.Path += "?" + query.Encode()
	}
	return r, nil
}

// example is a value for a parameter: its own example, or its schema's example,
// default or first enumerated value.
func example(p *openapi3.Parameter) (string, bool) {
	candidates := []any{p.Example}
	for _, name := range slices.Sorted(maps.Keys(p.Examples)) {
		if e := p.Examples[name]; e != nil && e.Value != nil {
			candidates = append(candidates, e.Value.Value)
		}
	}
	if p.Schema != nil && p.Schema.Value != nil {
		s := p.Schema.Value
		candidates = append(candidates, s.Example, s.Default)
		candidates = append(candidates, s.Enum...)
	}
	for _, c := range candidates {
		switch v := c.(type) {
		case nil:
		case string:
			return v, true
		case float64: // as every number is read
			return strconv.FormatFloat(v, 'f', -1, 64), true
		case bool, int, int64, uint64:
			return fmt.Sprint(v), true
		}
	}
	return "", false
}
