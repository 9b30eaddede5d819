package load

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tarehq/tare/load/internal/check"
	"golang.org/x/net/http/httpguts"
)

// compileVerify checks v; head tells that the answer will have no body.
func compileVerify(v *Verify, head bool) (check.Check, error) {
	c := check.Check{Status: v.Status, Length: -1}
	if v.Status != 0 && (v.Status < 200 || v.Status > 599) {
		return c, fmt.Errorf("verify: status %d is outside 200 to 599", v.Status)
	}
	for _, h := range v.Header {
		if !httpguts.ValidHeaderFieldName(h.Name) {
			return c, fmt.Errorf("verify: header %q: the name is not a token", h.Name)
		}
		c.Header = append(c.Header, check.Field(h))
	}
	if v.Contains != "" {
		c.Contains = []byte(v.Contains)
	}
	if v.Length != nil {
		if c.Length = *v.Length; c.Length < 0 {
			return c, fmt.Errorf("verify: length %d is negative", c.Length)
		}
	}
	if v.SHA256 != "" {
		d, err := hex.DecodeString(v.SHA256)
		if err != nil || len(d) != sha256.Size {
			return c, fmt.Errorf("verify: SHA-256 %q is not %d hexadecimal digits", v.SHA256, 2*sha256.Size)
		}
		c.Digest = d
	}
	if head && c.NeedsBody() {
		return c, errors.New("verify: an answer to HEAD has no body to verify")
	}
	return c, nil
}
