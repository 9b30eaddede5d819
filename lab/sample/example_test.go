package sample_test

import (
	"fmt"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/sample"
	"github.com/tarehq/tare/lab/study"
)

func ExampleUnlike() {
	w := study.Workload{Name: "orders", Targets: []study.Target{{Path: "/orders/7"}}}
	control := sample.Arm{Name: "plain", Answers: []record.Answer{{Target: "GET /orders/7", Status: 200, Length: 9, SHA256: "9f86d081884c", Stable: true}}}
	arm := sample.Arm{Name: "layers", Answers: []record.Answer{{Target: "GET /orders/7", Status: 404, Length: 0, SHA256: "e3b0c44298fc", Stable: true}}}
	for _, text := range sample.Unlike(w, arm, control) {
		fmt.Println(text)
	}
	// Output:
	// layers answers GET /orders/7 with status 404 and a body of 0 bytes (SHA-256 e3b0c442…), plain with status 200 and a body of 9 bytes (SHA-256 9f86d081…): the arms may not do the same work; say in verify what is correct
}
