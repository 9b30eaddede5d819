package sys

import (
	"net/http"
	"reflect"
	"slices"
	"unsafe"
)

// PathRoom is how many path values a [RoomyRequest] holds.
const PathRoom = 6

// RoomyRequest is a request with room for path values behind it, so that a
// server that makes requests spares its router an allocation each. The room
// belongs to this request alone: a copy of it has none, and whoever matches the
// copy finds its values elsewhere.
type RoomyRequest struct {
	http.Request
	values [PathRoom]string
}

// PathFields knows where this build's http.Request keeps the values that
// Request.PathValue finds. Its zero value does not know and goes the public way.
//
// Note: the public way, Request.SetPathValue, makes a map for each request: three
// parameters cost it some eight times what storing them at the fields costs
// (BenchmarkPathValues). Hence the fields; they are found by name and type when
// a router is built and tried before they are used, and where anything
// differs the public way is taken.
type PathFields struct {
	pat, matches uintptr // offsets
	known        bool
}

// FindPathFields looks up and tries the fields.
func FindPathFields() PathFields {
	request := reflect.TypeFor[http.Request]()
	pat, hasPat := request.FieldByName("pat")
	matches, hasMatches := request.FieldByName("matches")
	if !hasPat || !hasMatches || pat.Type.Kind() != reflect.Pointer || matches.Type != reflect.TypeFor[[]string]() {
		return PathFields{}
	}
	if f := (PathFields{pat.Offset, matches.Offset, true}); f.work() {
		return f
	}
	return PathFields{}
}

// work reports whether a request whose fields are set answers as it should.
func (f PathFields) work() bool {
	var r http.Request
	f.Names([]string{"first", "second"}).Set(&r, []string{"1", "2"})
	if r.PathValue("first") != "1" || r.PathValue("second") != "2" || r.PathValue("third") != "" {
		return false
	}
	r.SetPathValue("second", "two")
	if r.PathValue("second") != "two" {
		return false
	}
	f.Clear(&r)
	return r.PathValue("first") == ""
}

// Known reports whether the fields are used.
func (f PathFields) Known() bool { return f.known }

// Clear makes r forget the values of an earlier match.
func (f PathFields) Clear(r *http.Request) {
	if f.known {
		*(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(r), f.pat)) = nil
	}
}

// Reserve makes the room known to routers. It is called once for each request,
// before anybody sees it.
func (f PathFields) Reserve(q *RoomyRequest) {
	if f.known {
		*f.values(&q.Request) = q.values[:0]
	}
}

// Room returns the room behind r for n values, or nil if r has none to spare: because its server made none, because r is a copy, or
// because values of an earlier match, which a copy may still show, lie there.
func (f PathFields) Room(r *http.Request, n int) []string {
	if !f.known {
		return nil
	}
	v := *f.values(r)
	if len(v) > 0 || cap(v) < n || cap(v) == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(v))) != uintptr(unsafe.Pointer(r))+unsafe.Sizeof(*r) {
		return nil
	}
	return v[:n]
}

func (f PathFields) values(r *http.Request) *[]string {
	return (*[]string)(unsafe.Add(unsafe.Pointer(r), f.matches))
}

// PathNames hands values of certain names to requests. It is safe for
// concurrent use.
type PathNames struct {
	fields PathFields
	pat    unsafe.Pointer // the standard library's own pattern with these names
	names  []string
}

// Names returns the names as requests need them. They must be valid names of
// wildcards in a pattern of http.ServeMux, each there once.
func (f PathFields) Names(names []string) *PathNames {
	n := &PathNames{names: slices.Clone(names)}
	if f.known && len(names) > 0 {
		n.pat = f.patternOf(names)
	}
	if n.pat != nil {
		n.fields = f
	}
	return n
}

// patternOf lets a ServeMux make a pattern with these names and takes it from a
// request that it served, or returns nil if it finds none.
//
// Note: a pattern of our own, laid out as the standard library's, would spare
// the mux but need its fields checked as well.
func (f PathFields) patternOf(names []string) unsafe.Pointer {
	var path, example []byte
	for _, name := range names {
		path = append(append(append(path, "/{"...), name...), '}')
		example = append(example, "/x"...)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(string(path), func(http.ResponseWriter, *http.Request) {})
	r, err := http.NewRequest(http.MethodGet, string(example), nil)
	if err != nil {
		return nil
	}
	mux.ServeHTTP(deaf{}, r)
	return *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(r), f.pat))
}

// deaf takes an answer that nobody reads: a mux that does not know the pattern's
// syntax (GODEBUG=httpmuxgo121=1) answers that it was not found.
type deaf struct{}

func (deaf) Header() http.Header         { return http.Header{} }
func (deaf) Write(p []byte) (int, error) { return len(p), nil }
func (deaf) WriteHeader(int)             {}

// Set makes r.PathValue return values[i] for the i-th name. It keeps values,
// and r may change them.
func (n *PathNames) Set(r *http.Request, values []string) {
	if !n.fields.known {
		n.setPublicly(r, values)
		return
	}
	*(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(r), n.fields.pat)) = n.pat
	*n.fields.values(r) = values
}

func (n *PathNames) setPublicly(r *http.Request, values []string) {
	for i, name := range n.names {
		r.SetPathValue(name, values[i])
	}
}

// Neighbourhood returns a number that requests made by one processor one after
// another mostly share, and those of different processors mostly do not: that of
// the piece of memory they were allocated from.
func Neighbourhood(r *http.Request) uintptr {
	return uintptr(unsafe.Pointer(r)) >> 13 // the least size of the allocator's spans
}
