package proxy

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/proxy/internal/fields"
	"github.com/tarehq/tare/serve/proxy/tunnel"
)

// tunnel joins the two connections once the upstream has changed protocols.
func (e *exchange) tunnel(a *attempt) {
	upstream, ok := a.res.Body.(io.ReadWriteCloser)
	if protocol := a.res.Header.Get("Upgrade"); !ok || e.upgrade == "" || !strings.EqualFold(protocol, e.upgrade) {
		a.tell(true) // nobody has asked for that
		e.giveUp(http.StatusBadGateway)
		return
	}
	a.tell(false)
	header := e.w.Header().Clone()
	fields.CopyAnswer(header, a.res.Header)
	header["Connection"], header["Upgrade"] = fields.UpgradeToken, []string{e.upgrade}
	client, ahead, err := http.NewResponseController(e.w).Hijack()
	if err != nil {
		e.giveUp(http.StatusInternalServerError)
		return
	}
	defer client.Close()
	_ = client.SetDeadline(time.Time{}) // the server's are for requests
	switched := http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: header}
	if err := switched.Write(ahead); err != nil || ahead.Flush() != nil {
		return
	}
	e.h.tunnels.Add(1)
	defer e.h.tunnels.Add(-1)
	tunnel.Join(client, ahead, upstream)
}
