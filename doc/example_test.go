package doc_test

import (
	"os"

	"github.com/tarehq/tare/doc"
)

func Example() {
	var page doc.Page
	page.Add(
		doc.Heading{Level: 1, Text: "chi costs 2.1 % more CPU per request than net/http."},
		doc.Table{
			Columns: []doc.Column{{Head: "arm", Key: true}, {Head: "CPU per request", Right: true}, {Head: "verdict"}},
			Rows: []doc.Row{
				{Cells: doc.Cells("net/http", "18.2 µs", "control")},
				{Cells: []doc.Cell{{Text: "chi"}, {Text: "18.6 µs"}, {Text: "slower", Tone: doc.Bad}}},
			},
		},
	)
	if err := doc.Text(os.Stdout, page, doc.TextOptions{}); err != nil {
		panic(err)
	}
	if err := doc.Markdown(os.Stdout, page); err != nil {
		panic(err)
	}
	// Output:
	// chi costs 2.1 % more CPU per request than net/http.
	//
	//   arm       CPU per request  verdict
	//   net/http          18.2 µs  control
	//   chi               18.6 µs  slower
	// ## chi costs 2.1 % more CPU per request than net/http.
	//
	// | arm | CPU per request | verdict |
	// | --- | --: | --- |
	// | net/http | 18.2 µs | control |
	// | chi | 18.6 µs | slower |
}
