package tunnel_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/proxy/tunnel"
)

// TestRefusedIsLast sends what was for a tunnel behind a CONNECT that is refused: it is no
// request.
func TestRefusedIsLast(t *testing.T) {
	s := httptest.NewServer(&tunnel.Connect{To: []string{"127.0.0.1:1"}, Next: http.NotFoundHandler()})
	defer s.Close()
	for _, to := range []string{"127.0.0.2:80", "127.0.0.1:1"} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
		said, _ := io.ReadAll(c)
		if n := strings.Count(string(said), "HTTP/1.1 "); n != 1 {
			t.Errorf("%s: %d answers, want that to CONNECT alone: %q", to, n, said)
		}
	}
}
