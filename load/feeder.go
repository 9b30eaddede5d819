package load

import (
	"github.com/tarehq/tare/load/internal/feed"
	"github.com/tarehq/tare/load/internal/template"
)

// Feeder is a table of records that fill {{.name}} in targets. It does not
// change once opened and is safe for concurrent use; each run reads it from
// its first record.
type Feeder struct{ table *feed.Table }

// OpenFeeder reads the records in path: CSV with a header row (.csv), or one
// JSON object a line (.jsonl, .ndjson). Columns of JSON are the first object's
// keys in order, and every object must have just these, with strings, numbers
// or booleans as values. The file may have up to 256 MiB. Errors in it begin
// with file:line.
func OpenFeeder(path string) (*Feeder, error) {
	t, err := feed.Open(path)
	if err != nil {
		return nil, err
	}
	return &Feeder{t}, nil
}

// Len is the number of records, at least one.
func (f *Feeder) Len() int { return len(f.table.Records) }

// Table is the columns' names and the records, to which the caller does not write.
func (f *Feeder) Table() (columns []string, records [][]string) {
	return f.table.Columns, f.table.Records
}

// source is f for templates; nil for nil.
func (f *Feeder) source() *template.Source {
	if f == nil {
		return nil
	}
	return &template.Source{Path: f.table.Path, Columns: f.table.Columns}
}
