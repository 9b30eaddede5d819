// Package feed reads files of records that fill fields of requests.
package feed

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
)

// maxSize bounds a file, which is held in memory whole: reading while
// the load runs would disturb what is measured.
const maxSize = 256 << 20

// byteOrderMark is what spreadsheets and editors of some systems begin a file with.
const byteOrderMark = "\ufeff"

// Table is the records of a file. It does not change once opened.
type Table struct {
	Path    string
	Columns []string   // their names
	Records [][]string // at least one, each with a value a column
	lines   []int      // where record i begins in the file
}

// Open reads the records in path: CSV with a header row (.csv), or one JSON object a line
// (.jsonl, .ndjson) of strings, numbers and booleans, whose keys are the first one's. The
// file may have up to 256 MiB. Errors in it begin with file:line.
func Open(path string) (*Table, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening feeder: %w", err)
	}
	defer file.Close()
	f := &Table{Path: path}
	bounded := &io.LimitedReader{R: file, N: maxSize + 1}
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
		return nil, fmt.Errorf("opening feeder: %s has more than the %d bytes that are held in memory: split it", path, maxSize)
	}
	if len(f.Records) == 0 {
		return nil, fmt.Errorf("opening feeder: %s has no records", path)
	}
	return f, nil
}

// At is err with the place of record i.
func (f *Table) At(i int, err error) error { return f.at(f.lines[i], err) }

func (f *Table) at(line int, err error) error {
	return fmt.Errorf("%s:%d: %w", f.Path, line, err)
}

func (f *Table) setColumns(names []string, line int) error {
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
	f.Columns = names
	return nil
}

func (f *Table) readCSV(r io.Reader) error {
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
			return fmt.Errorf("reading feeder %s: %w", f.Path, err)
		}
		line, _ := cr.FieldPos(0)
		if f.Columns == nil {
			if err := f.setColumns(rec, line); err != nil {
				return err
			}
			continue
		}
		f.Records = append(f.Records, rec)
		f.lines = append(f.lines, line)
	}
}

func (f *Table) readJSON(r io.Reader) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxSize)
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
		if f.Columns == nil {
			if err := f.setColumns(names, line); err != nil {
				return err
			}
		}
		rec, err := f.arrange(names, values)
		if err != nil {
			return f.at(line, err)
		}
		f.Records = append(f.Records, rec)
		f.lines = append(f.lines, line)
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("reading feeder %s: %w", f.Path, err)
	}
	return nil
}

// arrange puts an object's values into the order of the columns.
func (f *Table) arrange(names, values []string) ([]string, error) {
	rec := make([]string, len(f.Columns))
	seen := make([]bool, len(f.Columns))
	for i, n := range names {
		col := slices.Index(f.Columns, n)
		if col < 0 {
			return nil, fmt.Errorf("%q is not among the first record's keys: %s", n, strings.Join(f.Columns, ", "))
		}
		if seen[col] {
			return nil, fmt.Errorf("key %q appears twice", n)
		}
		seen[col], rec[col] = true, values[i]
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, fmt.Errorf("key %q is missing", f.Columns[i])
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
