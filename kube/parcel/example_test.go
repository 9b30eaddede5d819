package parcel_test

import (
	"bytes"
	"fmt"

	"github.com/tarehq/tare/kube/parcel"
)

func Example() {
	var way bytes.Buffer
	sent := &parcel.Outcome{Status: 4, Output: []byte("undecided\n"), Files: parcel.Files{"runs/r/report.html": []byte("<p>")}}
	if err := sent.Write(&way); err != nil {
		fmt.Println(err)
		return
	}
	got, err := parcel.Read(&way)
	fmt.Println(got.Status, len(got.Files), err)
	// Output: 4 1 <nil>
}
