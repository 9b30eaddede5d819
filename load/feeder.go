package load

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/load/internal/template"
)

// maxFeeder bounds a feeder file, which is held in memory whole: reading while
// the load runs would disturb what is measured.
const maxFeeder = 256 << 20

// byteOrderMark is what spreadsheets and editors of some systems begin a file with.
const byteOrderMark = "\ufeff"

// Feeder is a table of records that fill {{.name}} in targets. It does not
// change once opened and is safe for concurrent use; each run reads it from
// its first record.
type Feeder struct {
	path    string
	columns []string
	records [][]string
	lines   []int // where record i begins in the file
}

// OpenFeeder reads the records in path: CSV with a header row (.csv), or one
// JSON object a line (.jsonl, .ndjson). Columns of JSON are the first object's
// keys in order, and every object must have just these, with strings, numbers
// or booleans as values. The file may have up to 256 MiB. Errors in it begin
// with file:line.
func OpenFeeder(path string) (*Feeder, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening feeder: %w", err)
	}
	defer file.Close()
	f := &Feeder{path: path}
	bounded := &io.LimitedReader{R: file, N: maxFeeder + 1}
	r := bufio.NewReader(bounded)
	if mark, _ := r.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		r.Discard(len(mark)) // of what is there
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		err = f.readCSV(r)
	case ".jsonl", ".ndjson":
		err = f.readJSON(r)
	default:
		err = fmt.Errorf("opening feeder: %s: extension %q is not .csv, .jsonl or .ndjson", path, ext)
	}
	if err != nil && bounded.N > 0 {
		return nil, err
	}
	if bounded.N <= 0 {
		return nil, fmt.Errorf("opening feeder: %s has more than the %d bytes that are held in memory: split it", path, maxFeeder)
	}
	if len(f.records) == 0 {
		return nil, fmt.Errorf("opening feeder: %s has no records", path)
	}
	return f, nil
}

// Len is the number of records, at least one.
func (f *Feeder) Len() int { return len(f.records) }

// Table is the columns' names and the records, to which the caller does not write.
func (f *Feeder) Table() (columns []string, records [][]string) { return f.columns, f.records }

func (f *Feeder) columnList() string { return strings.Join(f.columns, ", ") }

// source is f for templates; nil for nil.
func (f *Feeder) source() *template.Source {
	if f == nil {
		return nil
	}
	return &template.Source{Path: f.path, Columns: f.columns}
}

func (f *Feeder) at(line int, err error) error {
	return fmt.Errorf("%s:%d: %w", f.path, line, err)
}

func (f *Feeder) setColumns(names []string, line int) error {
	if len(names) == 0 {
		return f.at(line, errors.New("no columns"))
	}
	for i, n := range names {
		if n == "" || strings.ContainsAny(n, "{}") {
			return f.at(line, fmt.Errorf("%q is no name for a column", n))
		}
		if slices.Contains(names[:i], n) {
			return f.at(line, fmt.Errorf("column %q appears twice", n))
		}
	}
	f.columns = names
	return nil
}

func (f *Feeder) readCSV(r io.Reader) error {
	cr := csv.NewReader(r)
	for {
		rec, err := cr.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if pe, ok := errors.AsType[*csv.ParseError](err); ok {
				return f.at(pe.Line, pe.Err)
			}
			return fmt.Errorf("reading feeder %s: %w", f.path, err)
		}
		line, _ := cr.FieldPos(0)
		if f.columns == nil {
			if err := f.setColumns(rec, line); err != nil {
				return err
			}
			continue
		}
		f.records = append(f.records, rec)
		f.lines = append(f.lines, line)
	}
}

func (f *Feeder) readJSON(r io.Reader) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxFeeder)
	for line := 1; sc.Scan(); line++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		names, values, err := decodeObject(sc.Bytes())
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = errors.New("the line ends within the object")
		}
		if err != nil {
			return f.at(line, err)
		}
		if f.columns == nil {
			if err := f.setColumns(names, line); err != nil {
				return err
			}
		}
		rec, err := f.arrange(names, values)
		if err != nil {
			return f.at(line, err)
		}
		f.records = append(f.records, rec)
		f.lines = append(f.lines, line)
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("reading feeder %s: %w", f.path, err)
	}
	return nil
}

// arrange puts an object's values into the order of the columns.
func (f *Feeder) arrange(names, values []string) ([]string, error) {
	rec := make([]string, len(f.columns))
	seen := make([]bool, len(f.columns))
	for i, n := range names {
		col := slices.Index(f.columns, n)
		if col < 0 {
			return nil, fmt.Errorf("%q is not among the first record's keys: %s", n, f.columnList())
		}
		if seen[col] {
			return nil, fmt.Errorf("key %q appears twice", n)
		}
		seen[col], rec[col] = true, values[i]
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, fmt.Errorf("key %q is missing", f.columns[i])
	}
	return rec, nil
}

// decodeObject reads one flat JSON object. It goes by tokens because a map
// would lose the order of the keys.
func decodeObject(b []byte) (names, values []string, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if tok, err := dec.Token(); err != nil {
		return nil, nil, err
	} else if tok != json.Delim('{') {
		return nil, nil, errors.New("not a JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		val, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		name := key.(string) // the decoder gives nothing else before a value
		switch v := val.(type) {
		case string:
			values = append(values, v)
		case json.Number, bool:
			values = append(values, fmt.Sprint(v))
		default:
			return nil, nil, fmt.Errorf("key %q: want a string, a number or a boolean", name)
		}
		names = append(names, name)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, nil, errors.New("more than one value in the line")
	}
	return names, values, nil
}
