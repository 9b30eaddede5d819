// Package history indexes a folder of runs in a database.
//
// The folders stay the truth: everything here is made from them and can be made again.
// [Index.Sync] takes over which runs there are, at the cost of their manifests, and
// [Index.Analyse] what they found, which takes longer. A folder that cannot be read is a
// row that says why.
//
// What is kept of a run for comparing it with others are ratios of its arms to its own
// control, never absolute times. Which of these may stand in one series is [Series]'s to
// say: those that had one control program, on one kind of processor.
//
// SQLite is built in. PostgreSQL takes its place for a team. An Index is safe for
// concurrent use.
package history

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// Index is a database of what lies in one folder.
type Index struct {
	root    string
	db      *sql.DB
	writing sync.Mutex
}

// mostConnections to the database are open at one time. A server has few for all its clients.
const mostConnections = 8

// version is that of the tables. Tables of another version are made anew.
const version = "2"

// tables are the statements that make them, in the words that both databases know.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS tare_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS tare_runs (
		name TEXT PRIMARY KEY, stamp TEXT NOT NULL, analysed TEXT NOT NULL, touched BIGINT NOT NULL,
		study TEXT NOT NULL, started BIGINT NOT NULL, outcome TEXT NOT NULL, trials BIGINT NOT NULL, reason TEXT NOT NULL,
		title TEXT NOT NULL, headline TEXT NOT NULL, quick BIGINT NOT NULL, ranked BIGINT NOT NULL, tare TEXT NOT NULL,
		machine TEXT NOT NULL, control TEXT NOT NULL, control_build TEXT NOT NULL, metric TEXT NOT NULL, workload TEXT NOT NULL,
		command TEXT NOT NULL)`,
	`CREATE INDEX IF NOT EXISTS tare_runs_started ON tare_runs (started, name)`,
	`CREATE INDEX IF NOT EXISTS tare_runs_study ON tare_runs (study, started)`,
	`CREATE TABLE IF NOT EXISTS tare_series (
		run TEXT NOT NULL, workload TEXT NOT NULL, metric TEXT NOT NULL, floor DOUBLE PRECISION NOT NULL, points TEXT NOT NULL,
		PRIMARY KEY (run, workload, metric))`,
	`CREATE TABLE IF NOT EXISTS tare_claims (
		run TEXT NOT NULL, claim TEXT NOT NULL, verdict TEXT NOT NULL, sentence TEXT NOT NULL, rule TEXT NOT NULL, PRIMARY KEY (run, claim))`,
}

// Open opens the index of the runs in a folder. source is a URL that begins with
// postgres://, the path of a file of SQLite, or "" for a file in the user's cache
// directory. A database that is the index of another folder is refused.
func Open(ctx context.Context, root, source string) (*Index, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(root); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("there is no folder %s: name the one that holds the runs", root)
	}
	driver, name, shown, err := address(root, source)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		return nil, fmt.Errorf("opening the index %s: %w", shown, err)
	}
	db.SetMaxOpenConns(mostConnections)
	x := &Index{root: root, db: db}
	if err := x.prepare(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("opening the index %s: %s", shown, strings.Join(strings.Fields(err.Error()), " ")) // drivers' messages have lines
	}
	return x, nil
}

// address is a database as its driver takes it, and as it may be shown.
func address(root, source string) (driver, name, shown string, err error) {
	if isPostgres(source) {
		u, err := url.Parse(source)
		if err != nil {
			return "", "", "", errors.New("the address of the database is not a URL such as postgres://user@host:5432/name")
		}
		return "pgx", source, u.Redacted(), nil
	}
	if source == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", "", "", fmt.Errorf("finding a place for the index: %w (name a file by --db)", err)
		}
		sum := sha256.Sum256([]byte(root))
		source = filepath.Join(cache, "tare", "index", filepath.Base(root)+"-"+hex.EncodeToString(sum[:6])+".db")
	}
	if source, err = filepath.Abs(source); err != nil {
		return "", "", "", err
	}
	if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
		return "", "", "", fmt.Errorf("making a place for the index: %w", err)
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(source),
		RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"}
	return "sqlite", u.String(), source, nil
}

// isPostgres reports whether a source is the address of a PostgreSQL database.
func isPostgres(source string) bool {
	return strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://")
}

// prepare makes the tables, and finds whose index they are.
func (x *Index) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := x.makeTables(ctx); err != nil {
		return err
	}
	was, err := x.meta(ctx, "version")
	if err != nil {
		return err
	}
	if was != "" && was != version {
		return x.Reset(ctx)
	}
	root, err := x.meta(ctx, "root")
	switch {
	case err != nil:
		return err
	case root == "":
		return x.sign(ctx)
	case root != x.root:
		return fmt.Errorf("it is that of %s: name another database for %s by --db", root, x.root)
	}
	return nil
}

func (x *Index) makeTables(ctx context.Context) error {
	for _, statement := range tables {
		if _, err := x.db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%w (create it, or name another database by --db if this is none of tare's)", err)
		}
	}
	return nil
}

// sign notes the version and the folder.
func (x *Index) sign(ctx context.Context) error {
	for name, value := range map[string]string{"version": version, "root": x.root} {
		const upsert = `INSERT INTO tare_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
		if _, err := x.db.ExecContext(ctx, upsert, name, value); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) meta(ctx context.Context, name string) (value string, err error) {
	err = x.db.QueryRowContext(ctx, `SELECT value FROM tare_meta WHERE name = $1`, name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

// Reset empties the index. Sync and Analyse fill it again.
func (x *Index) Reset(ctx context.Context) error {
	for _, table := range []string{"tare_runs", "tare_series", "tare_claims", "tare_meta"} {
		if _, err := x.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return fmt.Errorf("emptying the index: %w", err)
		}
	}
	if err := x.makeTables(ctx); err != nil {
		return err
	}
	return x.sign(ctx)
}

// Root is the folder of the runs.
func (x *Index) Root() string { return x.root }

// Dir is the folder of a run that is in the index.
func (x *Index) Dir(name string) string { return filepath.Join(x.root, name) }

// Close closes the database.
func (x *Index) Close() error { return x.db.Close() }
