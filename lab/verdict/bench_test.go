package verdict_test

import (
	"fmt"
	"testing"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// BenchmarkAnalyse: a run looks at itself between blocks, so an analysis must
// take far less time than a trial.
func BenchmarkAnalyse(b *testing.B) {
	for _, size := range []struct{ arms, blocks, workloads int }{{4, 8, 1}, {8, 30, 2}, {13, 30, 4}} {
		b.Run(fmt.Sprintf("arms=%d/blocks=%d/workloads=%d", size.arms, size.blocks, size.workloads), func(b *testing.B) {
			u := base()
			u.arms(size.arms)
			u.blocks = size.blocks
			for i := 1; i < size.workloads; i++ {
				u.study.Workloads = append(u.study.Workloads, study.Workload{Name: fmt.Sprint("w", i)})
			}
			for _, m := range study.Metrics() {
				u.level[m.Name] = 1000
			}
			r := u.run()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := verdict.Analyse(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
