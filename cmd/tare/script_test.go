package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tarehq/tare/internal/injected"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tare": main, "tare-arm": specimen, "tare-traced": traced})
}

// TestScripts runs the command as a user does. Scripts find servers to load
// under $URL, $TLSURL, $EXPIREDURL and $DEADURL, see startServers, and under
// $PROFILEDURL, see startAlone.
func TestScripts(t *testing.T) {
	urls, programs := startServers(t), buildProfiled(t)
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "XDG_CACHE_HOME="+env.WorkDir+"/cache", "TMPDIR="+t.TempDir())
			env.Setenv("GOCACHE", strings.TrimSpace(string(goCache))) // what is compiled once
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Vars = append(env.Vars, urls...)
			env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+programs)
			alone, err := startAlone(env)
			env.Vars = append(env.Vars, alone...)
			return err
		},
		Condition: condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":    statusCmd,
			"interrupt": interruptCmd,
			"killed":    killedCmd,
			"parses":    parsesCmd,

			"interrupted": interruptedCmd,
		},
	})
}

// buildProfiled builds arms/injected, which tare can ask for its profiles, as
// tare-profiled, and returns its folder.
func buildProfiled(t *testing.T) string {
	t.Helper()
	path := injected.Build(t)
	dir := filepath.Dir(path)
	if err := os.Rename(path, filepath.Join(dir, "tare-profiled")); err != nil {
		t.Fatal(err)
	}
	return dir
}
