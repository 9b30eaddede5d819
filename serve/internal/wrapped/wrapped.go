// Package wrapped finds the connection or listener that another wraps.
package wrapped

import (
	"net"
	"reflect"
	"syscall"
)

// Layers bounds how far callers look into what wraps something: it may wrap itself.
const Layers = 8

// Conn returns the connection that nc wraps and tells of, as tls.Conn does by a method
// NetConn and those of golang.org/x/net/netutil do by embedding it; nil if there is none.
func Conn(nc net.Conn) net.Conn {
	if w, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return w.NetConn()
	}
	within, _ := embedded[net.Conn](nc)
	return within
}

// Socket returns the socket that nc itself is; nil if it wraps one, or is none.
func Socket(nc net.Conn) (raw syscall.RawConn) {
	switch s := nc.(type) {
	case *net.TCPConn:
		raw, _ = s.SyscallConn()
	case *net.UnixConn:
		raw, _ = s.SyscallConn()
	case interface{ socket() syscall.RawConn }: // of Direct
		raw = s.socket()
	}
	return raw
}

// DirectListener accepts connections of l as [Direct] has them.
type DirectListener struct{ net.Listener }

// Accept returns the next connection.
func (l DirectListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Direct(nc), nil
}

// Listener returns the innermost of the listeners that l wraps by embedding, l if it
// embeds none.
func Listener(l net.Listener) net.Listener {
	for range Layers {
		within, ok := embedded[net.Listener](l)
		if !ok {
			break
		}
		l = within
	}
	return l
}

// embedded returns what outer, a structure or a pointer to one, embeds of a kind. It reads
// nothing else, which may be another goroutine's.
func embedded[T any](outer any) (within T, ok bool) {
	v := reflect.Indirect(reflect.ValueOf(outer))
	if v.Kind() != reflect.Struct {
		return within, false
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.IsExported() && f.Type.Implements(reflect.TypeFor[T]()) {
			within, ok = v.Field(i).Interface().(T)
			return within, ok
		}
	}
	return within, false
}
