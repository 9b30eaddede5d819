// Package reply writes the parts of an answer's head.
package reply

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tarehq/tare/serve/internal/http1"
)

// AppendStatus writes the status line of an answer by HTTP/1.1 or 1.0.
func AppendStatus(b []byte, is11 bool, status int) []byte {
	if is11 && status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	if is11 {
		b = append(b, "HTTP/1.1 "...)
	} else {
		b = append(b, "HTTP/1.0 "...)
	}
	b = strconv.AppendInt(b, int64(status), 10)
	text := http.StatusText(status)
	if text == "" {
		b = append(b, " status code "...)
		b = strconv.AppendInt(b, int64(status), 10)
	} else {
		b = append(append(b, ' '), text...)
	}
	return append(b, "\r\n"...)
}

// AppendField writes a field's lines. A name that is none is left out; a line
// break in a value becomes a space.
func AppendField(b []byte, name string, values []string) []byte {
	if !http1.ValidFieldName(name) {
		return b
	}
	for _, v := range values {
		b = append(append(b, name...), ": "...)
		v = http1.TrimValue(v)
		from := len(b)
		b = append(b, v...)
		if strings.IndexByte(v, '\n') >= 0 || strings.IndexByte(v, '\r') >= 0 {
			unbreak(b[from:])
		}
		b = append(b, "\r\n"...)
	}
	return b
}

func unbreak(value []byte) {
	for i, c := range value {
		if c == '\r' || c == '\n' {
			value[i] = ' '
		}
	}
}
