package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tare": main, "tare-arm": specimen, "tare-traced": traced, "tare-profiled": askable})
}

// TestScripts runs the command as a user does. Scripts find servers to load
// under $URL, $TLSURL, $EXPIREDURL and $DEADURL, see startServers, and under
// $PROFILEDURL, see startAlone.
func TestScripts(t *testing.T) {
	urls := startServers(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "XDG_CACHE_HOME="+env.WorkDir+"/cache", "TMPDIR="+t.TempDir())
			env.Vars = append(env.Vars, urls...)
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
		},
	})
}
