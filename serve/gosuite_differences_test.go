package serve_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// suiteDifference is an edit of one of Go's tests where serve answers otherwise
// on purpose: the rest of the test is run, and what serve does instead is
// checked. http.Server is held to Go's own lines.
type suiteDifference struct {
	suiteEdit
	why string
}

// suiteDifferences are the deliberate differences that Go's tests meet, besides
// those in skips.txt.
var suiteDifferences = []suiteDifference{
	{suiteEdit{
		file: "serve_test.go", function: "testServeWithSlashRedirectKeepsQueryString",
		old: "newClientServerTest(t, mode, mux)",
		new: "newClientServerTest(t, mode, mux, func(s *Server) { s.Lenient.ConnectPath = true })",
	}, "CONNECT names a host and a port (RFC 9112, 3.2.3); Lenient.ConnectPath lets it name a path"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportCONNECTBidi",
		old: "			brw.Flush()\n		}\n	}))",
		new: "			brw.Flush()\n		}\n	}), func(s *Server) { s.Lenient.Connect, s.Lenient.OtherHost = true, true })",
	}, "Host is the authority of CONNECT's target (RFC 9112, 3.2); Lenient.OtherHost lets it name another, Lenient.Connect passes CONNECT on"},
	{suiteEdit{
		file: "serve_test.go", function: "testServerShutdownStateNew",
		old: "ts.Listener.Close()",
		new: "ts.Listener.Close(); ts.Config.Limits.ShutdownGrace = 5 * time.Second",
	}, "Shutdown waits for a first request as for a next one, Limits.ShutdownGrace, and not 5 s"},
	{suiteEdit{
		file: "serve_test.go", function: "TestServerUnencryptedHTTP2HeaderTimeout",
		old: "; got != want {",
		new: "; got < want || got > want+want/4 {",
	}, "limits are looked at eight times in the shortest of them: never early, at most two of these late"},
	{suiteEdit{
		file: "serve_test.go", function: "TestServerValidatesHostHeader",
		old: `"Host: ::1\r\n", 200}`,
		new: `"Host: ::1\r\n", 400}`,
	}, "an IPv6 address stands in brackets (RFC 3986, 3.2.2)"},
	{suiteEdit{
		file: "serve_test.go", function: "TestServerValidatesHostHeader",
		old: `"Host: [::1%25en0]:80\r\n", 200}`,
		new: `"Host: [::1%25en0]:80\r\n", 400}`,
	}, "a zone means nothing on another machine and is not to be sent (RFC 6874, 4)"},
	{suiteEdit{
		file: "serve_test.go", function: "TestServerValidatesHostHeader",
		old: `{"CONNECT golang.org:443 HTTP/1.1", "", 200}`,
		new: `{"CONNECT golang.org:443 HTTP/1.1", "", 400}`,
	}, "an HTTP/1.1 request without Host MUST be answered with 400, whatever its method (RFC 9112, 3.2)"},
	{suiteEdit{
		file: "serve_test.go", function: "TestServerValidatesHostHeader",
		old: `"Host: \r\n", 200}`,
		new: `"Host: \r\n", 400}`,
	}, "an http URL has a host, so Host is not empty (RFC 9112, 3.3; RFC 9110, 4.2.1)"},
	{suiteEdit{
		file: "serve_test.go", function: "TestServerValidatesHostHeader",
		old: `{"PRI * HTTP/2.0", "", 200}`,
		new: `{"PRI * HTTP/2.0", "", 505}`,
	}, "a version that is not served is answered with 505 (RFC 9110, 15.6.6)"},
	{suiteEdit{
		file: "serve_test.go", function: "testServerHandlersCanHandleH2PRI",
		old: "})).ts",
		new: "}), func(s *Server) { s.Lenient.Preface = true }).ts",
	}, "the preface of HTTP/2 is no request (RFC 9113, 3.4); Lenient.Preface passes it on"},
	{suiteEdit{
		file: "clientserver_test.go", function: "testConnectRequest",
		old: "gotc <- r\n	}))",
		new: "gotc <- r\n	}), func(s *Server) { s.Lenient.Connect = true })",
	}, "CONNECT is for proxies (RFC 9110, 9.3.6); Lenient.Connect passes it on"},
	{suiteEdit{
		file: "transport_test.go", function: "TestTransportProxy",
		old: "newClientServerTest(t, proxyMode, h2)",
		new: "newClientServerTest(t, proxyMode, h2, func(s *Server) { s.Lenient.Connect = true })",
	}, "CONNECT is for proxies (RFC 9110, 9.3.6); Lenient.Connect passes it on"},
	{suiteEdit{
		file: "transport_test.go", function: "TestOnProxyConnectResponse",
		old: "newClientServerTest(t, https1Mode, h2)",
		new: "newClientServerTest(t, https1Mode, h2, func(s *Server) { s.Lenient.Connect = true })",
	}, "CONNECT is for proxies (RFC 9110, 9.3.6); Lenient.Connect passes it on"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportProxyConnectHeader",
		old: "})).ts",
		new: "}), func(s *Server) { s.Lenient.Connect = true }).ts",
	}, "CONNECT is for proxies (RFC 9110, 9.3.6); Lenient.Connect passes it on"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportProxyGetConnectHeader",
		old: "})).ts",
		new: "}), func(s *Server) { s.Lenient.Connect = true }).ts",
	}, "CONNECT is for proxies (RFC 9110, 9.3.6); Lenient.Connect passes it on"},
	{suiteEdit{
		file: "clientserver_test.go", function: "testStarRequest",
		old: "\tres.Body.Close()\n",
		new: "\tres.Body.Close(); if method != \"OPTIONS\" { if res.StatusCode != 400 { t.Errorf(\"status code = %v; want 400\", res.Status) }; return }\n",
	}, "* is a target of OPTIONS alone (RFC 9112, 3.2.4; RFC 9113, 8.3.1)"},
	{suiteEdit{
		file: "serve_test.go", function: "testUnsupportedTransferEncodingsReturn501",
		old: "501 Not Implemented",
		new: "400 Bad Request",
	}, "a request whose last transfer coding is not chunked MUST be answered with 400 (RFC 9112, 6.3)"},
	{suiteEdit{
		file: "serve_test.go", function: "testUnsupportedTransferEncodingsReturn501",
		old: "Unsupported transfer encoding",
		new: "400 Bad Request: Transfer-Encoding does not end with chunked",
	}, "the same: the reason is told"},
	{suiteEdit{
		file: "serve_test.go", function: "testUnsupportedTransferEncodingsReturn501",
		old: "if string(gotBody) != wantBody {",
		new: "if gotBody = regexp.MustCompile(`Date: [^\\r]+\\r\\n`).ReplaceAll(gotBody, nil); string(gotBody) != wantBody {",
	}, "a refusal has a Date (RFC 9110, 6.6.1)"},
}

// transportDifferences are the same of the transport, besides those in transport.txt.
var transportDifferences = []suiteDifference{
	{suiteEdit{
		file: "transport_test.go", function: "runCancelTest",
		old: "t.Run(\"RequestCancel\", func(t *testing.T) {\n\t\t\trunCancelTestChannel(t, mode, f)\n\t\t})",
		new: "\n\n",
	}, "a request is ended by its context, not by Request.Cancel, which is deprecated"},
	{suiteEdit{
		file: "transport_test.go", function: "runCancelTest",
		old: "if mode == http1Mode {",
		new: "if false {",
	}, "nor by Transport.CancelRequest, which is deprecated"},
	{suiteEdit{
		file: "transport_test.go", function: "TestTransportCancelRequestBeforeDo",
		old: "runCancelTestChannel(t, mode, testTransportCancelRequestBeforeDo)",
		new: "_ = mode",
	}, "the same"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportResponseHeaderTimeout",
		old: "timeout awaiting response headers",
		new: "no answer in time", times: 2,
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportResponseHeaderLength",
		old: "server response headers exceeded 524288 bytes",
		new: "the answer's header has more than 524288 bytes",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "TestTransportNoHost",
		old: "http: no Host in request URL",
		new: "transport: want an absolute URL of the scheme http",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportClosesBodyOnInvalidRequests",
		old: "no Host in request URL",
		new: "want an absolute URL of the scheme http",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportClosesBodyOnInvalidRequests",
		old: "`invalid method \" \"`",
		new: "`\" \" is not a method`",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportClosesBodyOnInvalidRequests",
		old: "`invalid header field name \"💡\"`",
		new: "`\"💡\" is not a field's name`",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportClosesBodyOnInvalidRequests",
		old: "`invalid header field value for \"key\"`",
		new: "`the field key has a value that cannot be sent`",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testValidateClientRequestTrailers",
		old: "`invalid trailer field value for \"Trx\"`",
		new: "`the field Trx has a value that cannot be sent`",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testValidateClientRequestTrailers",
		old: "`invalid trailer field name \"\\r\\nTrx\"`",
		new: "`\"\\r\\nTrx\" is not a field's name`",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportRejectsSignInContentLength",
		old: "`bad Content-Length \"+3\"`",
		new: "`invalid Content-Length`",
	}, "its own words"},
	{suiteEdit{
		file: "transport_test.go", function: "TestTransportFlushesBodyChunks",
		old: "chunked\\r\\nAccept-Encoding: gzip\\r\\n",
		new: "chunked\\r\\n",
	}, "compression is not its business"},
	{suiteEdit{
		file: "client_test.go", function: "testClientCopyHeadersOnRedirect",
		old: "\"Accept-Encoding\": []string{\"gzip\"},",
		new: "",
	}, "compression is not its business"},
	{suiteEdit{
		file: "transport_test.go", function: "testTransportRequestWriteRoundTrip",
		old: "expectedReadFrom: true",
		new: "expectedReadFrom: false",
	}, "a request's body is read, also that of a file, and not left to the kernel"},
	{suiteEdit{
		file: "client_test.go", function: "testTransportBodyReadError",
		old: "if err != someErr {",
		new: "if !errors.Is(err, someErr) {",
	}, "the error says that it is the request's body's"},
}

// TestGoSuiteDocs has docs/conformance.md list what is changed and what is not
// run.
func TestGoSuiteDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Concat(suiteDifferences, transportDifferences) {
		row := "| `" + d.function + "` | " + d.why + " |"
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/conformance.md has no row\n%s", row)
		}
	}
	rows, err := readSuiteSkips("testdata/gosuite/skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		family, _, _ := strings.Cut(row.test, "_Serve_")
		if row.kind == "difference" && !strings.Contains(string(page), "`"+family) {
			t.Errorf("docs/conformance.md says nothing of %s", row.test)
		}
	}
	rows, err = readSuiteSkips("testdata/gosuite/transport.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(string(page), "`"+row.test+"`") {
			t.Errorf("docs/conformance.md does not list %s", row.test)
		}
	}
}
